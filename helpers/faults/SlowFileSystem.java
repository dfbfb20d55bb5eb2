package lab;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.*;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

public class SlowFileSystem extends RawLocalFileSystem {
    private URI uri;
    private long delay;

    public void initialize(URI address, Configuration conf) throws IOException {
        this.uri = URI.create(address.getScheme() + "://" + address.getAuthority());
        this.delay = Long.parseLong(address.getAuthority());
        super.initialize(address, conf);
        this.setWorkingDirectory(this.getInitialWorkingDirectory());
    }

    public URI getUri() { return this.uri == null ? super.getUri() : this.uri; }

    public String getScheme() { return this.getUri().getScheme(); }

    private void hold() throws IOException {
        try {
            Thread.sleep(this.delay);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new java.io.InterruptedIOException("the query was stopped");
        }
    }

    public FSDataInputStream open(Path file, int buffer) throws IOException {
        this.hold();
        return super.open(file, buffer);
    }

    public FSDataOutputStream create(Path file, FsPermission permission, boolean overwrite, int buffer,
            short replication, long block, Progressable progress) throws IOException {
        this.hold();
        return super.create(file, permission, overwrite, buffer, replication, block, progress);
    }

    public FSDataOutputStream create(Path file, boolean overwrite, int buffer, short replication, long block,
            Progressable progress) throws IOException {
        this.hold();
        return super.create(file, overwrite, buffer, replication, block, progress);
    }

    public void setPermission(Path file, FsPermission permission) {
        // Hadoop's local file system starts a chmod for this; a store knows no such thing
    }

    public boolean rename(Path from, Path to) throws IOException {
        this.hold();
        return super.rename(from, to);
    }

    public boolean delete(Path file, boolean recursive) throws IOException {
        this.hold();
        return super.delete(file, recursive);
    }

    public FileStatus[] listStatus(Path folder) throws IOException {
        this.hold();
        return super.listStatus(folder);
    }
}
