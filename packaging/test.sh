#!/usr/bin/env bash
# Installs each package of dist/ into something empty and runs the demo there: make test-dist
#
# A file system that holds nothing but the package shows what a machine would have to provide. It needs root, or the
# right to make a user namespace.
set -euo pipefail
cd "$(dirname "$0")/.."
here="$PWD"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
version="$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)"
tested=0

# Whether the demo has written what it says it writes.
demo_of() { # folder with the results
  [ -s "$1/report.html" ] && [ -s "$1/manifest.json" ] && [ -s "$1/cells.parquet" ] ||
    { echo "test-dist: the demo has left no report in $1" >&2; exit 1; }
}

# A command with this folder as the whole file system.
inside() { # root, command
  local root=$1
  shift
  if [ "$(id -u)" = 0 ]; then env -i HOME=/ "$(command -v chroot)" "$root" "$@"
  else env -i HOME=/ unshare -r "$(command -v chroot)" "$root" "$@"; fi
}

# What systemd says of the unit of the gateway that is installed in this root.
unit() { # root
  local root=$1 name="skyhaul-gateway@near.service"
  [ -s "$root/usr/lib/systemd/system/skyhaul-gateway@.service" ] ||
    { echo "test-dist: the unit is missing" >&2; exit 1; }
  if ! command -v systemd-analyze >/dev/null; then
    echo "test-dist: unit: not analysed, there is no systemd-analyze here"
    return
  fi
  local tree="$work/units"
  mkdir -p "$tree/usr/lib/systemd" "$tree/usr/bin" "$tree/etc"
  cp -r /usr/lib/systemd/system "$tree/usr/lib/systemd/"
  cp "$root"/usr/lib/systemd/system/*.service "$tree/usr/lib/systemd/system/"
  install -m 755 /dev/null "$tree/usr/bin/skyhaul"
  local faults
  faults="$(systemd-analyze verify --man=no --root="$tree" "$name" 2>&1 | grep -F skyhaul || true)"
  [ -z "$faults" ] || { echo "test-dist: unit: $faults" >&2; exit 1; }
  # systemd-analyze rates exposure from 0 to 10, which is no protection at all; a threshold of 30 is 3.0.
  systemd-analyze security --offline=true --threshold=30 --root="$tree" "$name" >/dev/null 2>&1 ||
    { echo "test-dist: unit: systemd-analyze security rates it above 3.0" >&2; exit 1; }
  passed "unit: systemd-analyze finds no fault"
}

# What the service of OpenWrt tells procd, for two gateways.
service_of_openwrt() { # folder of the service
  local files="$work/openwrt" said
  rm -rf "$files" && mkdir -p "$files"
  touch "$files/near.toml" "$files/far.toml" "$files/notes.txt"
  said="$(sed "s#/etc/skyhaul#$files#" "$1/skyhaul" | sh -euc '
    procd_open_instance() { echo "open $*"; }
    procd_set_param() { echo "set $*"; }
    procd_close_instance() { echo close; }
    . /dev/stdin
    start_service')"
  [ "$(grep "^set command" <<<"$said")" = "set command /usr/bin/skyhaul gateway run $files/far.toml
set command /usr/bin/skyhaul gateway run $files/near.toml" ] && [ "$(grep -c -e "^open near$" -e "^open far$" -e ^close <<<"$said")" = 4 ] ||
    { echo "test-dist: the service of OpenWrt says: $said" >&2; exit 1; }
}

passed() { echo "test-dist: $1"; tested=$((tested + 1)); }
skipped() { echo "test-dist: $1"; }

for file in dist/skyhaul-"$version"-linux-*.tar.gz; do
  [ -e "$file" ] || continue
  arch="${file##*-linux-}" && arch="${arch%.tar.gz}"
  root="$work/static-$arch"
  small="" && [ "$arch" = "${arch%-small}" ] || { small=yes && arch="${arch%-small}"; }
  mkdir -p "$root"
  tar -xzf "$file" -C "$root" --strip-components 1
  emulator=()
  if [ "$arch" != "$(uname -m)" ]; then
    # QEMU names all 32-bit ARM processors alike.
    qemu="qemu-${arch/#armv7/arm}-static"
    command -v "$qemu" >/dev/null || { skipped "${file##*/}: not run, there is no $qemu (Debian: qemu-user-static)"; continue; }
    qemu="$(command -v "$qemu")"
    cp "$qemu" "$root/qemu"
    emulator=(/qemu)
  fi
  [ "$(inside "$root" "${emulator[@]}" /skyhaul --version)" = "skyhaul $version" ]
  if [ -n "$small" ]; then
    size="$(stat -c %s "$root/skyhaul")"
    [ "$size" -le 8000000 ] || { echo "test-dist: ${file##*/}: the program has $size bytes, more than 8 MB" >&2; exit 1; }
    inside "$root" "${emulator[@]}" /skyhaul gateway check /openwrt/gateway.toml >/dev/null
    inside "$root" "${emulator[@]}" /skyhaul wire --help >/dev/null
    service_of_openwrt "$root/openwrt"
    passed "${file##*/}: $size bytes, checks the file of a gateway in an empty file system${emulator:+ under QEMU}"
    continue
  fi
  inside "$root" "${emulator[@]}" /skyhaul demo --out /demo >/dev/null
  demo_of "$root/demo"
  passed "${file##*/}: runs in an empty file system${emulator:+ under QEMU}"
done

# A program of Windows, with other programs of this test in one installation of Wine.
wine_run() { WINEPREFIX="$work/wine" WINEDEBUG=-all wine "$@"; }
# Wine before version 9 lacks a library of Windows 10 that Rust's random numbers need.
wine_library() { # folder of the program
  "$here/target/dist-venv/bin/python-zig" cc -target x86_64-windows-gnu -shared -o "$1/bcryptprimitives.dll" \
    "$here/packaging/windows/bcryptprimitives.c" -ladvapi32
}

for file in dist/skyhaul-"$version"-windows-*.zip; do
  [ -e "$file" ] || continue
  command -v wine >/dev/null || { skipped "${file##*/}: not run, there is no Wine (Debian: wine wine64)"; continue; }
  root="$work/windows"
  mkdir -p "$root"
  python3 -m zipfile -e "$file" "$root"
  program="$(echo "$root"/*/skyhaul.exe)"
  wine_library "${program%/*}"
  windows() { (cd "$root" && wine_run "$program" "$@"); }
  [ "$(windows --version 2>/dev/null | tr -d '\r')" = "skyhaul $version" ]
  windows demo --out demo >/dev/null 2>&1
  demo_of "$root/demo"
  # What needs Linux says so.
  for command in emulate wire gateway; do
    said="$(windows "$command" send 192.0.2.1:5001 --time "1 s" 2>&1 || true)"
    grep -q "needs Linux" <<<"$said" || { echo "test-dist: $command on Windows says: $said" >&2; exit 1; }
  done
  passed "${file##*/}: runs under Wine"
done

for file in dist/skyhaul-"$version"-macos-*.tar.gz; do
  [ -e "$file" ] || continue
  root="$work/${file##*/}"
  mkdir -p "$root"
  tar -xzf "$file" -C "$root" --strip-components 1
  "$here/target/dist-venv/bin/python" packaging/macos/check.py "$root/skyhaul"
  passed "${file##*/}: fits macOS 11, loads what every macOS has, and is signed where it must be; it cannot be run here"
done

for file in dist/skyhaul_"$version"_*.deb; do
  [ -e "$file" ] || continue
  root="$work/deb"
  mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
  touch "$root/var/lib/dpkg/status"
  # There is no shell inside: scripts of the package run outside, where DPKG_ROOT keeps them from this machine's services.
  dpkg_in() { dpkg --root="$root" --log="$work/dpkg.log" --force-not-root --force-script-chrootless "$@"; }
  dpkg_in -i "$file" >/dev/null
  dpkg_in -s skyhaul | grep -c "^Status: install ok installed" >/dev/null
  inside "$root" /usr/bin/skyhaul demo --out /demo >/dev/null
  demo_of "$root/demo"
  for path in man/man1/skyhaul-run.1.gz bash-completion/completions/skyhaul zsh/vendor-completions/_skyhaul \
    fish/vendor_completions.d/skyhaul.fish doc/skyhaul/copyright doc/skyhaul/examples/gateway.toml; do
    [ -s "$root/usr/share/$path" ] || { echo "test-dist: $path is missing" >&2; exit 1; }
  done
  inside "$root" /usr/bin/skyhaul gateway check /usr/share/doc/skyhaul/examples/gateway.toml >/dev/null
  unit "$root"
  # A changed conffile and a gateway's own file survive removal; the conffile goes with a purge, the other file does not.
  grep -q "^ /etc/logrotate.d/skyhaul " <(dpkg_in -s skyhaul)
  echo "# ours" >>"$root/etc/logrotate.d/skyhaul"
  echo 'name = "near"' >"$root/etc/skyhaul/near.toml"
  dpkg_in -i "$file" >/dev/null 2>&1
  grep -q "^# ours" "$root/etc/logrotate.d/skyhaul" || { echo "test-dist: an upgrade has replaced a changed conffile" >&2; exit 1; }
  dpkg_in -r skyhaul >/dev/null 2>&1
  [ ! -e "$root/usr/bin/skyhaul" ] && [ ! -e "$root/usr/lib/systemd/system/skyhaul-gateway@.service" ]
  grep -q "^# ours" "$root/etc/logrotate.d/skyhaul"
  dpkg_in -P skyhaul >/dev/null 2>&1
  [ ! -e "$root/etc/logrotate.d/skyhaul" ] && [ -s "$root/etc/skyhaul/near.toml" ]
  rm "$root/etc/skyhaul/near.toml"
  passed "${file##*/}: installs, runs and goes away without a trace but the files of gateways"
  packaging/test-unit.sh "$file"
done

# Python of Debian for another processor, in a folder.
foreign_python() { # architecture of Debian, folder
  local apt=(apt-get -qq -y -o APT::Architecture="$1" -o APT::Architectures::="$1" -o Dir::State="$2/apt" -o Dir::Cache="$2/apt"
    -o Dir::State::status="$2/apt/status" -o Acquire::Languages=none -o APT::Sandbox::User="$(id -un)")
  mkdir -p "$2/apt/lists/partial" "$2/apt/archives/partial" "$2/debs"
  touch "$2/apt/status"
  "${apt[@]}" update >/dev/null 2>&1 || return 1
  (cd "$2/debs" && "${apt[@]}" download python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libgcc-s1 libexpat1 zlib1g \
    libssl3 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1 libncursesw6 libtinfo6 libreadline8 >/dev/null 2>&1) || return 1
  for deb in "$2"/debs/*.deb; do dpkg-deb -x "$deb" "$2/root"; done
}

# CPython for Windows from Maven Central, in a folder. Its python.exe runs where it lies.
windows_python() { # folder
  local version=3.11.3-1.5.9 sum=3263a50b256447bb7b9e604d6587627e419891370fc33b94469e6a06ff4de834
  mkdir -p "$1"
  curl -fsS --max-time 300 -o "$1/cpython.jar" \
    "https://repo.maven.apache.org/maven2/org/bytedeco/cpython/$version/cpython-$version-windows-x86_64.jar" 2>/dev/null || return 1
  sha256sum --status -c <<<"$sum  $1/cpython.jar" || return 1
  python3 -m zipfile -e "$1/cpython.jar" "$1/jar"
  mv "$1/jar/org/bytedeco/cpython/windows-x86_64" "$1/python"
  wine_library "$1/python"
  # It lacks python3.dll, through which modules with the stable ABI call python311.dll.
  {
    echo "EXPORTS"
    objdump -p "$1/python/python311.dll" | sed -n 's/^.*\[ *[0-9]*\] \(_\?Py[A-Za-z0-9_]*\)\r\?$/  \1=python311.\1/p'
  } >"$1/python3.def"
  : >"$1/empty.c"
  "$here/target/dist-venv/bin/python-zig" cc -target x86_64-windows-gnu -shared -o "$1/python/python3.dll" "$1/empty.c" "$1/python3.def"
}

# What an installed wheel must do.
runs="
import skyhaul as sh
assert sh.__version__ == '$version'
assert sh.run('preset:peach-geo', set={'duration': '2 s'}).summary['goodput_bit_s'] > 0"

for file in dist/skyhaul-"$version"-*abi3*.whl; do
  [ -e "$file" ] || continue
  case "$file" in
    *linux*"_$(uname -m).whl") ;; # below
    *linux*_aarch64.whl)
      if ! command -v qemu-aarch64-static >/dev/null || ! foreign_python arm64 "$work/arm64"; then
        skipped "${file##*/}: not run, QEMU or Python for this processor is missing (Debian: qemu-user-static)"
        continue
      fi
      python3 -m zipfile -e "$file" "$work/arm64/wheel"
      (cd "$work" && PYTHONPATH="$work/arm64/wheel" qemu-aarch64-static -L "$work/arm64/root" "$work/arm64/root/usr/bin/python3.11" \
        -c "$runs")
      passed "${file##*/}: runs under QEMU" ;;
    *win_amd64.whl)
      if ! command -v wine >/dev/null || ! windows_python "$work/windows-python"; then
        skipped "${file##*/}: not run, Wine (Debian: wine wine64) or Python for Windows (Maven Central, with curl) is missing"
        continue
      fi
      python="$work/windows-python/python"
      (
        cd "$python"
        cp "$here/$file" .
        # Under Wine, Python writes to a pipe and not to a file.
        (
          wine_run python.exe -m pip install --quiet --disable-pip-version-check --no-index --no-warn-script-location "${file##*/}" &&
            wine_run python.exe -c "$runs" && wine_run Scripts/skyhaul.exe demo --out demo
        ) 2>&1 | cat >log || { cat log >&2; exit 1; }
      )
      demo_of "$python/demo"
      passed "${file##*/}: installs into Python for Windows and runs under Wine" ;;
    *macosx*.whl)
      python3 -m zipfile -e "$file" "$work/${file##*/}"
      "$here/target/dist-venv/bin/python" packaging/macos/check.py "$work/${file##*/}"/skyhaul/_core*.so
      passed "${file##*/}: fits macOS 11, loads what every macOS has, and is signed where it must be; it cannot be run here" ;;
    *)
      python3 -m zipfile -t "$file" >/dev/null
      skipped "${file##*/}: built; there is no Python for this system here to run it" ;;
  esac
done

for file in dist/skyhaul-"$version"-*abi3*linux*_"$(uname -m)".whl dist/skyhaul-"$version".tar.gz; do
  [ -e "$file" ] || continue
  venv="$work/venv-${file##*.}"
  python3 -m venv "$venv"
  case "$file" in
    *.whl) "$venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$file" ;;
    # The sources are compiled here; what maturin needs comes from the environment that built them.
    *) PATH="$here/target/dist-venv/bin:$PATH" PYTHONPATH="$(echo "$here"/target/dist-venv/lib/python3*/site-packages)" \
      CARGO_TARGET_DIR="$here/target/dist/sdist" \
      "$venv/bin/pip" install --quiet --disable-pip-version-check --no-index --no-build-isolation "$file" ;;
  esac
  (cd "$work" && env -i HOME="$work" PATH=/usr/bin:/bin "$venv/bin/skyhaul" demo --out "$venv/demo" >/dev/null)
  demo_of "$venv/demo"
  (cd "$work" && "$venv/bin/python" -c "$runs")
  passed "${file##*/}: installs into an empty environment without an index"
done

# E.g. CONTAINER="podman --runtime runc".
read -ra engine <<<"${CONTAINER:-}"
for one in docker podman; do
  [ ${#engine[@]} = 0 ] && "$one" info >/dev/null 2>&1 && engine=("$one")
done
if [ ${#engine[@]} -gt 0 ]; then
  image=skyhaul-test:$$
  "${engine[@]}" build --quiet -f packaging/Containerfile -t "$image" . >/dev/null
  mkdir -p "$work/container"
  # Limits that any user may set: an engine may not be allowed to raise its own.
  "${engine[@]}" run --rm --network none --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
    -v "$work/container:/work" "$image" demo --out /work/demo >/dev/null
  "${engine[@]}" rmi "$image" >/dev/null
  demo_of "$work/container/demo"
  passed "container: runs (${engine[*]})"
else
  echo "test-dist: container: skipped, there is neither Docker nor Podman here"
fi
[ "$tested" -gt 0 ] || { echo "test-dist: nothing in dist/: run make dist first" >&2; exit 1; }
echo "test-dist: $tested packages are good"
