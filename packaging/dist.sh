#!/usr/bin/env bash
# Builds what is installed elsewhere, into dist/: make dist
#
# PLATFORMS="linux-aarch64 windows-x86_64" and PARTS="static wheel" build some of it only. The part "small" is the program for
# small routers (ARM64, armv7), without the simulator. For armv7 it is the only part.
# A program for Linux is static (musl is inside). A wheel serves Python 3.11 and newer (stable ABI); on Linux it needs glibc 2.17
# or newer, since Zig links against that old version. Zig is also the linker for every other operating system and processor.
set -euo pipefail
cd "$(dirname "$0")/.."
tools="$PWD/target/dist-venv/bin"
here="linux-$(uname -m)"
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
platforms="${PLATFORMS:-linux-x86_64 linux-aarch64 linux-armv7 windows-x86_64 macos-x86_64 macos-aarch64}"
parts=" ${PARTS:-static small deb wheel sdist sbom} "
# PROFILE=release is quicker to build.
profile="${PROFILE:-packaged}"
# The same bytes again from the same commit.
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}"
export SOURCE_DATE_EPOCH
mkdir -p dist

wanted() { case "$parts" in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

# Targets of the compiler: the program's, the wheel's.
program_target() {
  case "$1" in
    linux-armv7) echo armv7-unknown-linux-musleabihf ;;
    linux-*) echo "${1#linux-}-unknown-linux-musl" ;;
    windows-*) echo "${1#windows-}-pc-windows-gnu" ;;
    macos-*) echo "${1#macos-}-apple-darwin" ;;
    *) echo "dist: unknown platform $1: linux-x86_64, linux-aarch64, linux-armv7, windows-x86_64, macos-x86_64, macos-aarch64" >&2; exit 2 ;;
  esac
}
wheel_target() {
  case "$1" in
    linux-*) echo "${1#linux-}-unknown-linux-gnu" ;;
    *) program_target "$1" ;;
  esac
}

with_target() { # target of the compiler
  std=()
  rustup target list --installed 2>/dev/null | grep -cx "$1" >/dev/null || rustup target add "$1" && return
  # Without a standard library to download, it is compiled, if its sources are here (the component rust-src of rustup).
  [ -d "$(rustc --print sysroot)/lib/rustlib/src/rust/library/std" ] || exit 1
  echo "dist: compiles the standard library for $1" >&2
  std=(-Zbuild-std=std,panic_abort)
}

# Apple's development kit is not needed: Zig brings the system library, packaging/macos the names of one framework.
framework="-Clink-arg=-F$PWD/packaging/macos"
cross() { # platform, command
  local platform=$1
  shift
  # The stable compiler has build-std only with this variable.
  [ ${#std[@]} = 0 ] || set -- env RUSTC_BOOTSTRAP=1 "$@" "${std[@]}"
  case "$platform" in
    macos-*) env PATH="$tools:$PATH" RUSTFLAGS="${RUSTFLAGS:-} $framework" "$@" ;;
    windows-*) env PATH="$tools:$PATH" CARGO_ZIGBUILD_PYTHON_PATH="$PWD/packaging/windows/python" "$@" ;;
    *) env PATH="$tools:$PATH" "$@" ;;
  esac
}

built() { # platform, profile: the program
  local target
  target="$(program_target "$1")"
  case "$1" in
    windows-*) echo "target/$target/$2/skyhaul.exe" ;;
    *) echo "target/$target/$2/skyhaul" ;;
  esac
}

build() { # platform
  local target
  target="$(program_target "$1")"
  with_target "$target"
  if [ "$1" = "$here" ]; then cargo build --profile "$profile" --target "$target" -p skyhaul-cli --locked --quiet
  else cross "$1" cargo-zigbuild build --profile "$profile" --target "$target" -p skyhaul-cli --locked --quiet
  fi
}

archive() { # platform, profile, suffix of the name
  local tree="target/dist/skyhaul-$version-$1${3-}"
  local file
  file="$(built "$1" "$2")"
  rm -rf "$tree" && mkdir -p "$tree"
  install -m 755 "$file" "$tree/${file##*/}"
  cp LICENSE README.md CHANGELOG.md "$tree/"
  # Manual and completions are those of a program that runs here. A small router has no room for them.
  if [ "$2" = small ]; then cp -r packaging/openwrt "$tree/"
  else
    local native
    native="$(built "$here" "$profile")"
    mkdir "$tree/completions"
    "$native" man "$tree/man"
    for shell in bash zsh fish powershell; do "$native" completions $shell >"$tree/completions/skyhaul.$shell"; done
  fi
  find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  case "$1" in
    windows-*)
      rm -f "dist/${tree##*/}.zip"
      (cd target/dist && TZ=UTC "$tools/python" -m zipfile -c "../../dist/${tree##*/}.zip" "${tree##*/}") ;;
    *)
      tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C target/dist -cf - "${tree##*/}" |
        gzip -n9 >"dist/${tree##*/}.tar.gz" ;;
  esac
}

if wanted static || wanted deb; then
  for platform in $platforms; do program_target "$platform" >/dev/null; done
  build "$here"
fi
if wanted static; then
  for platform in $platforms; do
    [ "$platform" != linux-armv7 ] || continue
    [ "$platform" = "$here" ] || build "$platform"
    archive "$platform" "$profile"
  done
fi
if wanted small; then
  for platform in $platforms; do
    case "$platform" in linux-aarch64 | linux-armv7) ;; *) continue ;; esac
    target="$(program_target "$platform")"
    with_target "$target"
    cross "$platform" cargo-zigbuild build --profile small --target "$target" -p skyhaul-cli --no-default-features --locked --quiet
    archive "$platform" small -small
  done
fi
if wanted deb; then
  packaging/deb.sh "target/dist/skyhaul-$version-$here" "$version"
fi
if wanted wheel; then
  for platform in $platforms; do
    [ "$platform" != linux-armv7 ] || continue
    target="$(wheel_target "$platform")"
    with_target "$target"
    cross "$platform" maturin build --profile "$profile" --target "$target" --locked --zig --compatibility manylinux2014 --quiet --out dist
  done
fi
if wanted sdist; then
  "$tools/maturin" sdist --out dist
fi
if wanted sbom; then
  "$tools/python" tools/sbom.py dist/skyhaul.cdx.json
fi
(cd dist && sha256sum -- *.tar.gz *.zip *.deb *.whl *.json 2>/dev/null >SHA256SUMS || true)
ls -l dist
