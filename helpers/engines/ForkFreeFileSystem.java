package lab;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/** Hadoop's local file system, but a file gets its permissions by a system call, not by a process that runs chmod. */
public class ForkFreeFileSystem extends LocalFileSystem {
    public ForkFreeFileSystem() { super(new Raw()); }

    public static class Raw extends RawLocalFileSystem {
        public void setPermission(Path file, FsPermission permission) throws IOException {
            String letters = permission.toString().replace('t', 'x').replace('T', '-');
            Files.setPosixFilePermissions(this.pathToFile(file).toPath(), PosixFilePermissions.fromString(letters));
        }
    }
}
