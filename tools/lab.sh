#!/usr/bin/env bash
# Builds the page of the lab into site/lab/dist, and with "test" drives it in a browser. Needs node, npm and a compiler for
# wasm32; the tests also need Chromium (CHROMIUM names it). Where something is missing, the tests are skipped with a message;
# with SKYHAUL_REQUIRE=all they fail.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-build}

stop() {
  echo "lab: $1" >&2
  [ "$what" = test ] || exit 1
  [ "${SKYHAUL_REQUIRE:-}" != all ] || exit 1
  mkdir -p "${CARGO_TARGET_DIR:-target}"
  echo "SKIPPED lab: $1" | tee -a "${CARGO_TARGET_DIR:-target}/skipped.txt" >&2
  exit 0
}

command -v node >/dev/null && command -v npm >/dev/null || stop "node or npm is not installed"
if [ "$what" = test ]; then
  CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
  [ -n "$CHROMIUM" ] || stop "no Chromium: install it, or name it with CHROMIUM"
  export CHROMIUM
fi
toolchain=$(sh tools/wasm-toolchain.sh .cache/wasm) || stop "no compiler for wasm32-unknown-unknown"

lock=site/lab/package-lock.json
installed=site/lab/node_modules/.skyhaul-lock
if ! cmp -s "$lock" "$installed"; then
  (cd site/lab && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund --loglevel=error) || stop "npm could not install what package-lock.json names"
  cp "$lock" "$installed"
fi

mkdir -p "${CARGO_TARGET_DIR:-target}"
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
(
  eval "$toolchain"
  cargo build -p skyhaul-wasm --release --locked --quiet --target-dir "$target/wasm"
)
(cd site/lab && npm run --silent check && node build.mjs "$target/wasm/wasm32-unknown-unknown/release/skyhaul_wasm.wasm")
[ "$what" = test ] || exit 0

cargo build -p skyhaul-cli --locked --quiet
export SKYHAUL=${SKYHAUL:-$target/debug/skyhaul}
cd site/lab
node --test test/
