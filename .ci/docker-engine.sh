#!/usr/bin/env bash
# docker-engine.sh start DIR - makes sure that a Docker engine answers. If none does, starts one by hand
#                              (as root, without systemd) that keeps all its files in DIR.
# docker-engine.sh stop DIR  - ends the engine that `start DIR` started, and removes its files, images
#                              included. An engine that was there before is left alone.
#
# What stays after a stop is in the kernel, and the next engine uses it again: the idle bridge docker0 and
# Docker's iptables chains.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { echo "docker-engine: $*"; }

fail() {
  say "$*" >&2
  exit 1
}

# Sets the names of everything that an engine keeps in DIR. They are distinctive on purpose: stop removes
# them with rm -rf, and DIR could be a folder that holds other things too.
use_dir() {
  dir=$(readlink -m -- "$1")
  data_root=$dir/dockerd-data
  exec_root=$dir/dockerd-exec
  pidfile=$dir/dockerd.pid
  log=$dir/dockerd.log
}

engine_answers() {
  timeout 10 docker version >/dev/null 2>&1
}

# Prints the pid of the engine of DIR. Not by the pid file alone: after a crash the number in it may
# belong to another program.
engine_pid() {
  local pid
  pid=$(cat "$pidfile" 2>/dev/null) || return 1
  [[ -n $pid ]] || return 1
  tr '\0' '\n' <"/proc/$pid/cmdline" 2>/dev/null | grep -qxF -- "--exec-root=$exec_root" || return 1
  echo "$pid"
}

# Prints the pids of DIR's engine: dockerd, its containerd, the containers' shims (they are children of
# process 1, but have DIR's socket in their command line) and all descendants of those: docker-proxy and
# the programs in the containers. Zombies do not count.
engine_processes() {
  ps -ww -eo pid=,ppid=,stat=,args= | EXEC_ROOT=$exec_root awk '
    $3 ~ /^Z/ { next }
    { parent[$1] = $2 }
    $4 ~ /(^|\/)(dockerd|containerd|containerd-shim[^\/]*)$/ &&
      (index($0, "=" ENVIRON["EXEC_ROOT"]) || index($0, " " ENVIRON["EXEC_ROOT"] "/")) { ours[$1] = 1 }
    END {
      do {
        grown = 0
        for (p in parent) if (!(p in ours) && (parent[p] in ours)) { ours[p] = 1; grown = 1 }
      } while (grown)
      for (p in ours) print p
    }'
}

# Deepest first, so that each one can be unmounted.
engine_mounts() {
  DIR_PREFIX=$dir/ awk 'index($5, ENVIRON["DIR_PREFIX"]) == 1 { print $5 }' /proc/self/mountinfo | sort -r
}

# wait_until SECONDS COMMAND... - true as soon as the command is.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.2
  done
}

no_engine_processes() { [[ -z $(engine_processes) ]]; }

engine_answers_or_died() { engine_answers || ! kill -0 "$launched" 2>/dev/null; }

launch() {
  # setsid and the redirections: whoever called this script may wait until the other end of its pipes is
  # closed, and the engine must not hold them open, nor get that caller's Ctrl-C.
  # --ip: what a test publishes without saying where is reachable from this machine only.
  (
    cd /
    for fd in /proc/"$BASHPID"/fd/*; do
      fd=${fd##*/}
      if ((fd > 2 && fd != 255)); then exec {fd}>&-; fi # 255 is bash's own, and closed on exec
    done
    exec setsid dockerd --data-root="$data_root" --exec-root="$exec_root" --pidfile="$pidfile" \
      --ip=127.0.0.1 </dev/null >"$log" 2>&1
  ) </dev/null >/dev/null 2>&1 &
  launched=$!
}

start() {
  if engine_answers; then
    say "an engine answers already: nothing to start."
    return
  fi
  [[ $EUID -eq 0 ]] || fail "no engine answers, and only root can start one."
  if engine_pid >/dev/null; then
    fail "the engine of $dir runs but does not answer: stop it first."
  fi
  if ! command -v dockerd >/dev/null || ! command -v docker >/dev/null; then
    say "installing Debian's docker.io and iptables"
    bash "$here/apt-install.sh" docker.io iptables || exit 1
  fi
  mkdir -p -- "$data_root" "$exec_root"
  rm -f -- "$pidfile"
  local began=$SECONDS
  launch
  if ! wait_until 60 engine_answers_or_died || ! engine_answers; then
    say "the engine did not start; the end of its log:" >&2
    tail -n 20 -- "$log" >&2 || true
    stop >&2
    exit 1
  fi
  say "started in $((SECONDS - began)) s, process $(engine_pid), files in $dir."
}

stop() {
  if [[ ! -d $data_root ]]; then
    say "no engine was started in $dir: nothing to stop."
    return
  fi
  local pid processes mount
  # Asked politely, dockerd first stops its containers, then containerd, then itself.
  if pid=$(engine_pid); then
    kill -TERM "$pid" 2>/dev/null || true
    wait_until 45 no_engine_processes || true
  fi
  # Only after a crash, or when dockerd hangs: whatever of it is left.
  processes=$(engine_processes)
  if [[ -n $processes ]]; then
    say "ending what is left of the engine: $(tr '\n' ' ' <<<"$processes")"
    # shellcheck disable=SC2086 # one argument for each pid
    kill -KILL $processes 2>/dev/null || true
    wait_until 10 no_engine_processes || fail "these processes did not end: $(engine_processes | tr '\n' ' ')"
  fi
  while read -r mount; do
    umount -- "$mount" 2>/dev/null || umount --lazy -- "$mount" || true
  done < <(engine_mounts)
  # --one-file-system: should an unmount have failed, what is mounted there is not emptied.
  rm -rf --one-file-system -- "$data_root" "$exec_root" "$pidfile" "$log"
  rmdir --ignore-fail-on-non-empty -- "$dir"
  say "stopped, and its files in $dir removed."
}

[[ $# -eq 2 && -n $2 ]] || fail "usage: docker-engine.sh start|stop DIR"
use_dir "$2"
case $1 in
  start) start ;;
  stop) stop ;;
  *) fail "usage: docker-engine.sh start|stop DIR" ;;
esac
