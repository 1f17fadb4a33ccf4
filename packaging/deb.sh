#!/usr/bin/env bash
# A Debian package of the static program: packaging/deb.sh TREE VERSION
#
# It needs no other package. The lab is inside if make lab has built its page. Units of systemd in packaging/systemd/ go
# to /usr/lib/systemd/system; none is enabled by installing. Files in /etc are conffiles: changes of an administrator survive
# upgrades and removal, and go with a purge. Files of gateways in /etc/skyhaul are the administrator's own.
set -euo pipefail
cd "$(dirname "$0")/.."
tree="$1" version="$2"
arch="$(dpkg --print-architecture)"
root="target/dist/deb"
rm -rf "$root"
install -Dm 755 "$tree/skyhaul" "$root/usr/bin/skyhaul"
for page in "$tree"/man/*.1; do
  install -Dm 644 "$page" "$root/usr/share/man/man1/${page##*/}"
done
gzip -n9 "$root"/usr/share/man/man1/*.1
install -Dm 644 "$tree/completions/skyhaul.bash" "$root/usr/share/bash-completion/completions/skyhaul"
install -Dm 644 "$tree/completions/skyhaul.zsh" "$root/usr/share/zsh/vendor-completions/_skyhaul"
install -Dm 644 "$tree/completions/skyhaul.fish" "$root/usr/share/fish/vendor_completions.d/skyhaul.fish"
install -Dm 644 LICENSE "$root/usr/share/doc/skyhaul/copyright"
# Of the programs for the kernel that the command contains.
install -Dm 644 crates/kernel/bpf/LICENSE "$root/usr/share/doc/skyhaul/LICENSE.bpf"
gzip -n9c CHANGELOG.md | install -Dm 644 /dev/stdin "$root/usr/share/doc/skyhaul/changelog.gz"
if [ -d site/lab/dist ]; then
  mkdir -p "$root/usr/share/skyhaul/lab"
  cp -r site/lab/dist/. "$root/usr/share/skyhaul/lab/"
fi
for unit in packaging/systemd/*.service; do
  [ -e "$unit" ] && install -Dm 644 "$unit" "$root/usr/lib/systemd/system/${unit##*/}"
done
install -Dm 644 packaging/logrotate/skyhaul "$root/etc/logrotate.d/skyhaul"
install -Dm 644 packaging/gateway.toml "$root/usr/share/doc/skyhaul/examples/gateway.toml"
install -Dm 644 packaging/keepalived.conf "$root/usr/share/doc/skyhaul/examples/keepalived.conf"
mkdir -p "$root/DEBIAN" "$root/etc/skyhaul"
find "$root/etc" -type f -printf '/etc/%P\n' | sort >"$root/DEBIAN/conffiles"
# With dpkg --root the package goes to another file system: the services of this machine stay as they are.
cat >"$root/DEBIAN/postinst" <<'SCRIPT'
#!/bin/sh
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
SCRIPT
cat >"$root/DEBIAN/prerm" <<'SCRIPT'
#!/bin/sh
set -e
# An upgrade leaves gateways running: the next start takes the new program.
if [ "$1" = remove ] && [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
  systemctl stop 'skyhaul-gateway@*.service' || true
fi
SCRIPT
cat >"$root/DEBIAN/postrm" <<'SCRIPT'
#!/bin/sh
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
fi
SCRIPT
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm" "$root/DEBIAN/postrm"
cat >"$root/DEBIAN/control" <<CONTROL
Package: skyhaul
Version: $version
Architecture: $arch
Maintainer: The Skyhaul developers <skyhaul@users.noreply.github.com>
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Section: net
Priority: optional
Recommends: iproute2, nftables
Suggests: logrotate, bpftool
Homepage: https://github.com/skyhaul/skyhaul
Description: TCP over satellite paths, simulated and on real packets
 A deterministic simulator of transport protocols over satellite paths, an
 emulator of the same links for real programs, and studies that compare with
 what papers state, claim by claim.
CONTROL
find "$root" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group --build "$root" "dist/skyhaul_${version}_$arch.deb" >/dev/null
