#!/usr/bin/env bash
# Builds what is installed elsewhere, into dist/: make dist
#
# The static program is for Linux with any C library (musl is inside). The wheel serves Python 3.11 and newer (stable ABI)
# on Linux with glibc 2.17 or newer: Zig links against that old version. PARTS="static deb" builds some only.
set -euo pipefail
cd "$(dirname "$0")/.."
tools="$PWD/target/dist-venv/bin"
arch="$(uname -m)"
target="$arch-unknown-linux-musl"
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
parts=" ${PARTS:-static deb wheel sdist sbom} "
# The same bytes again from the same commit.
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}"
export SOURCE_DATE_EPOCH
mkdir -p dist

wanted() { case "$parts" in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

program="target/$target/packaged/skyhaul"
if wanted static || wanted deb; then
  rustup target list --installed 2>/dev/null | grep -cx "$target" >/dev/null || rustup target add "$target"
  cargo build --profile packaged --target "$target" -p skyhaul-cli --locked --quiet
  tree="target/dist/skyhaul-$version-linux-$arch"
  rm -rf "$tree" && mkdir -p "$tree/completions"
  install -m 755 "$program" "$tree/skyhaul"
  strip "$tree/skyhaul" 2>/dev/null || true
  "$tree/skyhaul" man "$tree/man"
  for shell in bash zsh fish; do "$tree/skyhaul" completions $shell >"$tree/completions/skyhaul.$shell"; done
  cp LICENSE README.md CHANGELOG.md "$tree/"
fi
if wanted static; then
  tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C target/dist -cf - "${tree##*/}" |
    gzip -n9 >"dist/${tree##*/}.tar.gz"
fi
if wanted deb; then
  packaging/deb.sh "$tree" "$version"
fi
if wanted wheel; then
  PATH="$tools:$PATH" "$tools/maturin" build --profile packaged --locked --zig --compatibility manylinux2014 --quiet --out dist
fi
if wanted sdist; then
  "$tools/maturin" sdist --out dist
fi
if wanted sbom; then
  "$tools/python" tools/sbom.py dist/skyhaul.cdx.json
fi
(cd dist && sha256sum -- *.tar.gz *.deb *.whl *.json 2>/dev/null >SHA256SUMS || true)
ls -l dist
