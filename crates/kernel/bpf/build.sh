#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Compiles the controls to BPF objects in a folder, by default that of the objects that come with the program:
#   build.sh [FOLDER] [CONTROL...]
# Needs clang 14 and bpftool (Debian 12: apt install clang-14 bpftool). With CLANG in the environment that program compiles.
set -eu
folder=$(cd "${1:-$(dirname "$0")/objects}" && pwd)
[ $# = 0 ] || shift
cd "$(dirname "$0")"
[ $# != 0 ] || set -- $(ls *.bpf.c | sed 's/\.bpf\.c$//')
clang=${CLANG:-clang-14}
bpftool=$(PATH=$PATH:/usr/sbin:/sbin command -v bpftool) || { echo "build.sh: bpftool is not installed" >&2; exit 2; }
for control; do
  # -mcpu=v3: 32-bit instructions, which kernels know since 5.1. Types come from the debug information (-g).
  "$clang" -O2 -g -Wall -Werror -target bpf -mcpu=v3 -fdebug-compilation-dir=. -c "$control.bpf.c" -o "$folder/$control.tmp.o"
  # Leaves out the debug information proper.
  "$bpftool" gen object "$folder/$control.bpf.o" "$folder/$control.tmp.o"
  rm "$folder/$control.tmp.o"
done
