#!/usr/bin/env bash
# build.sh BROKER_JARS_DIR TAG - builds an image that can stand in for the official apache/kafka image where
# no image registry is reachable: same entry script, same KAFKA_* variables, same 'Kafka Server started'.
# Nothing but Debian's busybox-static is fetched; the Java runtime and the shared libraries are this machine's.
# If TAG exists and was made from the same jars and the same files, nothing is built.
set -euo pipefail
umask 022 # the image's user must be able to read what is copied into it

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
label=kafka-image.content

# What Kafka's classes need. jlink leaves the rest of the JDK out: 120 MB instead of 300.
modules=java.base,java.logging,java.management,java.management.rmi,java.naming,java.net.http
modules+=,java.security.jgss,java.security.sasl,java.sql,java.xml
modules+=,jdk.crypto.ec,jdk.management,jdk.security.auth,jdk.unsupported,jdk.zipfs

say() { echo "kafka-image: $*"; }

fail() {
  say "$*" >&2
  exit 1
}

# log4j-core would take the logging away from slf4j-simple (see etc/kafka/docker/run).
broker_jars() {
  find "$jars_dir/" -maxdepth 1 -name '*.jar' ! -name 'log4j-core-*.jar' | LC_ALL=C sort
}

# Names are enough for the jars: a release's file never changes under its name.
content_hash() {
  {
    broker_jars | sed 's|.*/||'
    (cd "$here" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
  } | sha256sum | cut -d ' ' -f 1
}

image_hash() {
  docker image inspect --format "{{index .Config.Labels \"$label\"}}" "$tag" 2>/dev/null || true
}

find_java() {
  if [[ -z ${JAVA_HOME:-} ]]; then
    local java
    java=$(command -v java) || fail "there is no java on the PATH, and JAVA_HOME is not set."
    JAVA_HOME=$(dirname "$(dirname "$(readlink -f "$java")")")
  fi
  [[ -x $JAVA_HOME/bin/java ]] || fail "JAVA_HOME ($JAVA_HOME) has no bin/java."
  local version
  version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$JAVA_HOME/release" 2>/dev/null || true)
  [[ -z $version || $version -ge 17 ]] || fail "Kafka needs Java 17 or newer; $JAVA_HOME is Java $version."
}

add_jre() {
  if [[ -x $JAVA_HOME/bin/jlink ]] &&
    "$JAVA_HOME/bin/jlink" --add-modules "$modules" --strip-debug --no-header-files --no-man-pages \
      --output "$image/jre" >"$log" 2>&1; then
    # jlink leaves no archive of the JDK's own classes; with one, each JVM starts sooner.
    "$image/jre/bin/java" -Xshare:dump -Xlog:disable >/dev/null 2>&1 || true
  else
    say "no usable jlink: copying the whole Java runtime"
    rm -rf "$image/jre"
    mkdir "$image/jre"
    # -h: Debian's runtime has links to files outside its folder. A dangling one is no reason to give up.
    tar -C "$JAVA_HOME" -chf - --ignore-failed-read --exclude=./jmods --exclude=./include --exclude=./man \
      --exclude=./docs --exclude=./lib/src.zip . 2>"$log" | tar -C "$image/jre" -xf - || true
    "$image/jre/bin/java" -version >/dev/null 2>&1 || fail "the copy of $JAVA_HOME does not run."
  fi
}

# A shell for the entry script. Downloaded and unpacked rather than installed: to install it would remove
# a busybox that is there already.
add_busybox() {
  local bin=$image/base/bin applet
  mkdir "$work/deb"
  (
    cd "$work/deb"
    download() { apt-get download -qq -o APT::Sandbox::User=root busybox-static; }
    download || { apt-get update -qq && download; }
    dpkg-deb -x busybox-static_*.deb .
  ) </dev/null >"$log" 2>&1 || fail "busybox-static could not be fetched ($(tail -n 1 "$log"))."
  install "$(find "$work/deb" -type f -name busybox -path '*bin/busybox')" "$bin/busybox"
  for applet in $("$bin/busybox" --list); do
    [[ $applet == busybox ]] || ln -s busybox "$bin/$applet"
  done
}

# The shared libraries of the Java runtime, and those that the compression codecs in the jars link to: with
# a newer glibc some of these are empty shells that the runtime itself no longer needs.
add_shared_libraries() {
  local libraries libc folder library
  libraries=$(find "$image/jre" -type f \( -name '*.so' -o -path '*/bin/java' \) -exec ldd {} + 2>/dev/null |
    tr -s '[:blank:]' '\n' | grep '^/' | grep -vF "$image/" | sort -u) || true
  libc=$(grep '/libc\.so\.6$' <<<"$libraries" | head -n 1) || fail "the Java runtime here does not use glibc."
  folder=$(dirname "$libc")
  for library in libstdc++.so.6 libgcc_s.so.1 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1; do
    libraries+=$'\n'$folder/$library
  done
  while read -r library; do
    if [[ -e $library ]]; then install -D "$(readlink -f "$library")" "$image/base$library"; fi
  done <<<"$libraries"
}

add_files() {
  local jars
  mapfile -t jars < <(broker_jars)
  cp -L -- "${jars[@]}" "$image/libs/"
  cp -R "$here/etc/." "$image/base/etc/"
  chmod 755 "$image/base/etc/kafka/docker/run"
  printf '%s\n' 'root:x:0:0::/:/bin/sh' 'appuser:x:1000:1000::/home/appuser:/bin/sh' >"$image/base/etc/passwd"
  printf '%s\n' 'root:x:0:' 'appuser:x:1000:' >"$image/base/etc/group"
  echo 'hosts: files dns' >"$image/base/etc/nsswitch.conf"
  cp "$here/Dockerfile" "$image/Dockerfile"
}

[[ $# -eq 2 && -n $1 && -n $2 ]] || fail "usage: build.sh BROKER_JARS_DIR TAG"
jars_dir=$1
tag=$2
[[ -n $(find "$jars_dir/" -maxdepth 1 -name 'kafka_*.jar' 2>/dev/null) ]] || fail "no broker jars in $jars_dir."

docker version >/dev/null 2>&1 || fail "no Docker engine answers."

hash=$(content_hash)
if [[ $(image_hash) == "$hash" ]]; then
  say "$tag is up to date."
  exit 0
fi

find_java
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
image=$work/image # what docker gets to see
log=$work/log
mkdir -p "$image"/base/{bin,etc,proc,sys,dev} "$image/libs" \
  "$image"/owned/{opt/kafka/config,var/lib/kafka/data,mnt/shared/config,home/appuser}
mkdir -m 1777 "$image/base/tmp"

add_jre
add_busybox
add_shared_libraries
add_files
if ! docker build -q --label "$label=$hash" -t "$tag" "$image" </dev/null >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  fail "docker build failed."
fi
say "built $tag in $SECONDS s."
