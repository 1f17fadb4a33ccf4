#!/usr/bin/env bash
# Builds crates/wasm for wasm32 and checks under node that it gives the same results as the native build.
# Skipped with a message where node or the compiler is missing; with CI=true or SKYHAUL_REQUIRE=all it fails.
set -euo pipefail
cd "$(dirname "$0")/.."

skip() {
  echo "wasm: $1" >&2
  [ "${CI:-}" = true ] && exit 1
  [ "${SKYHAUL_REQUIRE:-}" != all ] || exit 1
  mkdir -p "${CARGO_TARGET_DIR:-target}"
  echo "SKIPPED wasm: $1" | tee -a "${CARGO_TARGET_DIR:-target}/skipped.txt" >&2
  exit 0
}

command -v node >/dev/null || skip "node is not installed"
toolchain=$(sh tools/wasm-toolchain.sh .cache/wasm) || skip "no compiler for wasm32-unknown-unknown"
eval "$toolchain"

target=${CARGO_TARGET_DIR:-target}/wasm # a folder of its own: the compiler may be another one
cargo build -p skyhaul-wasm --release --locked --quiet --target-dir "$target"
node tools/wasm-golden.mjs "$target/wasm32-unknown-unknown/release/skyhaul_wasm.wasm"
