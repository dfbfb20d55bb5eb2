#!/usr/bin/env bash
# apt-install.sh PACKAGE... - installs Debian packages without a question and without chatter.
# A failure is one sentence on stderr and a non-zero exit code.
set -euo pipefail

fail() {
  echo "apt-install: $*" >&2
  exit 1
}

(($# > 0)) || fail "usage: apt-install.sh PACKAGE..."
[[ $EUID -eq 0 ]] || fail "only root can install $*."
command -v apt-get >/dev/null || fail "$* must be installed by hand: there is no apt-get here."

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Another apt-get may be at work on a shared machine: wait for its lock instead of failing at once.
quiet_apt() {
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@" >"$log" 2>&1 </dev/null
}

last_error() {
  { grep -E '^(E|W):' "$log" || cat "$log"; } | tail -n 1
}

# A new machine's package lists may be empty or old, so they always come first.
quiet_apt update || fail "the package lists could not be updated ($(last_error))."
quiet_apt install -y --no-install-recommends "$@" || fail "$* could not be installed ($(last_error))."
