#!/bin/sh
# Finds a compiler for wasm32-unknown-unknown. Usage: eval "$(sh tools/wasm-toolchain.sh CACHE_DIR)"
# The log goes to stderr, `export` lines to stdout.
# SKYHAUL_WASM=auto|rustup|debian  chooses the source (auto: rustup's target if present or installable, else Debian's).
set -eu
cache=${1:?usage: wasm-toolchain.sh CACHE_DIR}; mode=${SKYHAUL_WASM:-auto}
t=wasm32-unknown-unknown
say() { echo "wasm-toolchain: $*" >&2; }
have_target() { [ -n "$(ls "$("$1" --print sysroot)/lib/rustlib/$t/lib"/libstd-*.rlib 2>/dev/null)" ]; }
emit() { for kv in "$@"; do printf "export %s='%s'\n" "${kv%%=*}" "${kv#*=}"; done; }

if [ "$mode" != debian ]; then
  rc=${RUSTC:-rustc}
  if ! have_target "$rc" && command -v rustup >/dev/null; then
    say "rustup target add $t"
    timeout 300 rustup target add $t >&2 || say "rustup could not add $t"
  fi
  if have_target "$rc"; then
    say "using $($rc --version) with its own $t"
    emit CARGO_BUILD_TARGET=$t SKYHAUL_WASM_SOURCE=rustup
    exit 0
  fi
  [ "$mode" = auto ] || { say "no $t"; exit 1; }
fi

# ---- Debian 13's rustc 1.85.1, in a private folder, run by its own ld.so (host glibc does not matter)
[ "$(uname -m)" = x86_64 ] && command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
  { say "no $t here: run 'rustup target add $t' where there is a network"; exit 1; }
mkdir -p "$cache"; cache=$(cd "$cache" && pwd); root=$cache/debian13; bin=$cache/bin
if [ ! -e "$root/.done" ]; then
  w=$cache/apt; rm -rf "$w" "$root"; mkdir -p "$w/lists/partial" "$w/archives/partial" "$w/debs" "$root" "$bin"; : >"$w/status"
  mirror=${SKYHAUL_DEBIAN_MIRROR:-http://deb.debian.org/debian}
  key=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$key] $mirror trixie main" >"$w/sources.list"
  apt="apt-get -q -y -o Dir::Etc::sourcelist=$w/sources.list -o Dir::Etc::sourceparts=- -o Dir::Etc::preferencesparts=/dev/null \
    -o Dir::State::lists=$w/lists -o Dir::State::status=$w/status -o Dir::Cache=$w -o Dir::Cache::archives=$w/archives \
    -o APT::Architecture=amd64 -o APT::Architectures::=amd64 -o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Sandbox::User=$(id -un) \
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false"
  say "fetching Debian 13's rustc and $t std (about 206 MB) into $cache"
  $apt update >&2
  (cd "$w/debs" && $apt download rustc libstd-rust-1.85 libstd-rust-dev libstd-rust-dev-wasm32 lld-19 libllvm19 \
     libc6 libgcc-s1 libstdc++6 libedit2 libffi8 libxml2 libz3-4 libzstd1 zlib1g libtinfo6 libbsd0 libmd0 liblzma5 libicu76) >&2
  for d in "$w"/debs/*.deb; do dpkg-deb -x "$d" "$root"; done
  du -cm "$w"/debs/*.deb | tail -1 >&2; rm -rf "$w"; : >"$root/.done"
fi
mkdir -p "$bin"
wrap() { # name, program, extra args: run with the unpacked ld.so, so that children keep the host's libraries
  ld=$(ls "$root"/usr/lib64/ld-linux-x86-64.so.2 "$root"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 2>/dev/null | head -1)
  printf '#!/bin/sh\nexec "%s" --library-path "%s/usr/lib/x86_64-linux-gnu:%s/usr/lib/llvm-19/lib" "%s" %s "$@"\n' "$ld" "$root" "$root" "$2" "$3" >"$bin/$1"
  chmod +x "$bin/$1"
}
wrap rustc "$root/usr/bin/rustc" "--sysroot \"$root/usr\""
wrap rust-lld "$root/usr/lib/llvm-19/bin/lld" ""  # rustc itself passes "-flavor wasm"
have_target "$bin/rustc" || { say "unpacked, but no $t found"; exit 1; }
say "using $("$bin/rustc" --version) from Debian"
emit CARGO_BUILD_TARGET=$t SKYHAUL_WASM_SOURCE=debian RUSTC="$bin/rustc" RUSTC_WRAPPER= RUSTC_WORKSPACE_WRAPPER= \
  CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$bin/rust-lld"
