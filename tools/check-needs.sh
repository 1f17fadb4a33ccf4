#!/bin/sh
# Looks for what make demo and make test need, before minutes of building: a line for each thing that is missing says how to get it.
# With PYTHON in the environment that program is the Python. Status 2 if something is missing.
cd "$(dirname "$0")/.." || exit 2
PYTHON=${PYTHON:-python3}
missing=0
lacks() {
  echo "make: $1" >&2
  missing=1
}
has() { command -v "$1" >/dev/null 2>&1; }

# With rustup, rust-toolchain.toml names the version and the first call installs it.
wanted=$(sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' Cargo.toml crates/*/Cargo.toml | sort -t. -k1,1n -k2,2n | tail -n 1)
rustup="curl --proto '=https' -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal, and open a new shell"
if ! has cargo || ! has rustc; then
  lacks "Rust is not installed: $rustup"
else
  found=$(rustc --version | sed -n 's/^rustc \([0-9]*\.[0-9]*\).*/\1/p')
  oldest=$(printf '%s\n%s\n' "$wanted" "$found" | sort -t. -k1,1n -k2,2n | head -n 1)
  if [ -z "$found" ]; then
    lacks "rustc does not run (rustc --version fails): $rustup"
  elif [ "$oldest" != "$wanted" ]; then
    lacks "Rust $found is too old, $wanted or newer is needed: remove it (Debian, Ubuntu: apt remove cargo rustc) and $rustup"
  fi
fi

if ! has "$PYTHON"; then
  lacks "$PYTHON is not installed: install Python 3.11 or newer (Debian, Ubuntu: apt install python3 python3-venv), or name one: make PYTHON=python3.12 ..."
elif ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  lacks "$PYTHON is older than Python 3.11: install a newer one and name it: make PYTHON=python3.12 ..."
elif ! "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null; then
  lacks "$PYTHON has no venv: install it (Debian, Ubuntu: apt install python3-venv)"
fi

has cc || has gcc || has clang || lacks "there is no C compiler: install one (Debian, Ubuntu: apt install gcc libc6-dev; macOS: xcode-select --install)"

# Estimates for machines of two to eight processors.
target=${CARGO_TARGET_DIR:-target}
case ${1:-demo} in
  test) gigabytes=12 minutes="15 to 40 minutes" ;;
  *) gigabytes=3 minutes="3 to 10 minutes" ;;
esac
if [ ! -e "$target/.built-${1:-demo}" ]; then
  free=$(df -Pk . 2>/dev/null | awk 'NR == 2 { print int($4 / 1048576) }')
  if [ -n "$free" ] && [ "$free" -lt "$gigabytes" ]; then
    lacks "the first build needs $gigabytes GB of disk, here are $free GB: free some, or name a folder elsewhere: CARGO_TARGET_DIR=/path"
  fi
  [ "$missing" = 0 ] && echo "make: the first build takes $minutes and $gigabytes GB of disk; later ones take seconds"
fi
[ "$missing" = 0 ] || exit 2
