#!/bin/sh
# Tests tools/check-needs.sh with programs of its own in place of the machine's.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for tool in sh sed sort tail head awk dirname printf; do ln -s "$(command -v "$tool")" "$work/$tool"; done
fake() { # name, what it does
  printf '#!/bin/sh\n%s\n' "$2" >"$work/$1"
  chmod +x "$work/$1"
}
all() {
  fake cargo ''
  fake rustc 'echo "rustc 1.95.0 (0 2026-01-01)"'
  fake python3 ''
  fake cc ''
  fake df 'printf "h\nd 0 0 99999999 0 /\n"'
}
expect() { # status, words of the output; empty: anything
  status=0
  output=$(env PATH="$work" PYTHON=python3 CARGO_TARGET_DIR="$work/none" tools/check-needs.sh demo 2>&1) || status=$?
  lines=$(printf '%s\n' "$output" | wc -l)
  case $status:$lines:$output in
    "$1:1:"*"$2"*) ;;
    *) echo "check-needs: expected status $1 and one line with \"$2\", got $status: $output" >&2; exit 1 ;;
  esac
}
all; expect 0 "the first build takes"
all; rm "$work/cargo"; expect 2 "Rust is not installed"
all; fake rustc 'echo "rustc 1.63.0 (4b91a6ea7 2022-08-08)"'; expect 2 "Rust 1.63 is too old"
all; fake rustc 'exit 1'; expect 2 "rustc does not run"
all; rm "$work/python3"; expect 2 "python3 is not installed"
all; fake python3 'case $2 in *version_info*) exit 1;; esac'; expect 2 "older than Python 3.11"
all; fake python3 'case $2 in *venv*) exit 1;; esac'; expect 2 "apt install python3-venv"
all; rm "$work/cc"; expect 2 "no C compiler"
all; fake df 'printf "h\nd 0 0 1048576 0 /\n"'; expect 2 "of disk, here are 1 GB"
