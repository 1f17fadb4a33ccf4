#!/bin/sh
# Runs a command as root under another kernel: that of Debian, in a virtual machine, where this one lacks something.
#
#   tools/in-vm.sh COMMAND [ARGUMENT ...]
#
# The root file system is this machine's, read-only, with a layer in memory above it; what the command writes is gone afterwards, but
# for the folder that VM_OUT names. There is no network. Output and exit status are those of the command; 124: it took too long.
#
#   VM_SECONDS  the longest time, 600 by default            VM_MEMORY  memory, "4G" by default
#   VM_CPUS     processors, all by default                  VM_ACCEL   "kvm" or "tcg"; by default kvm where it works
#   VM_CLOCK    "real" or "virtual"; see below
#   VM_KERNEL   a folder with boot/vmlinuz-VERSION and lib/modules/VERSION, as in a kernel's package; by default Debian's linux-image-amd64
#   VM_OUT      a folder in which the command may write
#
# Where there is no KVM, the processor is emulated, some fifty times slower. By default the machine then has one processor that takes 1 ns of
# its own time for each instruction, and clocks that show this time (VM_CLOCK=virtual): whatever waits for time, such as a timer or a
# link of 10 Mbit/s, is as it would be on a real machine, and everything takes longer to watch. With VM_CLOCK=real its clocks are those of here.
#
# The kernel's package is unpacked into the folder of build products, not installed. Needs Debian, qemu-system-x86 and busybox-static.
set -eu
from=$(pwd)
cd "$(dirname "$0")/.."
fail() {
  echo "in-vm: $*" >&2
  exit 2
}
[ $# -gt 0 ] || fail "no command: write such as tools/in-vm.sh uname -r"
[ "$(id -u)" = 0 ] || fail "the files of this machine are shared as root sees them: run it as root"
for need in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static cpio:cpio depmod:kmod; do
  command -v "${need%:*}" >/dev/null || fail "${need%:*} is not installed: apt install ${need#*:}"
done
busybox=$(command -v busybox)
vm=$(realpath -m "${CARGO_TARGET_DIR:-target}/vm")
mkdir -p "$vm"

# The kernel.
if [ -n "${VM_KERNEL:-}" ]; then
  kernel=$(realpath -e "$VM_KERNEL" 2>/dev/null) || fail "VM_KERNEL: $VM_KERNEL does not exist"
else
  kernel=$vm/kernel
  if [ ! -e "$kernel/complete" ]; then
    package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-image-[0-9].*-amd64\)$/\1/p' | head -n 1)
    [ -n "$package" ] || fail "apt knows no linux-image-amd64: write VM_KERNEL=FOLDER"
    rm -rf "$kernel" "$vm/package"
    mkdir -p "$vm/package"
    (cd "$vm/package" && apt-get -qq -o APT::Sandbox::User=root download "$package") || fail "$package cannot be downloaded: write VM_KERNEL=FOLDER"
    dpkg-deb -x "$vm"/package/*.deb "$kernel"
    rm -r "$vm/package"
    depmod -b "$kernel" "$(ls "$kernel/lib/modules")"
    touch "$kernel/complete"
  fi
fi
image=$(ls "$kernel"/boot/vmlinuz-* 2>/dev/null | tail -n 1)
[ -n "$image" ] || fail "$kernel has no boot/vmlinuz-VERSION"
version=${image##*/vmlinuz-}
modules=$kernel/lib/modules/$version
[ -e "$modules/modules.dep" ] || fail "$modules/modules.dep does not exist: depmod -b $kernel $version"

run=$(mktemp -d "$vm/run-XXXXXX")
qemu=
trap '[ -z "$qemu" ] || kill "$qemu" 2>/dev/null || true; rm -rf "$run"' EXIT
trap 'exit 130' INT TERM

# The initial file system: what it takes to mount the other ones.
root=$run/root
mkdir -p "$root/bin" "$root/modules"
cp "$busybox" "$root/bin/busybox"
if ldd "$busybox" >/dev/null 2>&1; then
  for library in $(ldd "$busybox" | grep -o '/[^ ]*'); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
fi
# In the order in which they are loaded. A module that is built in has no line.
for module in virtio_pci 9pnet_virtio 9p overlay virtio_rng; do
  line=$(grep "/$module\.ko[^/]*:" "$modules/modules.dep" || true)
  reversed=
  for file in $(echo "$line" | tr -d ':'); do reversed="$file $reversed"; done
  for file in $reversed; do
    name=$(basename "$file")
    [ ! -e "$root/modules/$name" ] || continue
    cp "$modules/$file" "$root/modules/$name"
    echo "$name" >>"$root/modules/order"
  done
done
cat >"$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin
mkdir -p /proc /sys /dev /below /above /new
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
echo begun >/dev/ttyS2
while read -r name; do
  case $name in
    *.xz) xz -dc "/modules/$name" >"/modules/${name%.xz}" && name=${name%.xz} ;;
    *.gz) gzip -dc "/modules/$name" >"/modules/${name%.gz}" && name=${name%.gz} ;;
  esac
  insmod "/modules/$name"
done </modules/order
share=trans=virtio,version=9p2000.L,msize=512000
mount -t 9p -o "ro,cache=loose,$share" files /below || poweroff -f
mount -t tmpfs -o size=75% none /above
mkdir /above/upper /above/work
mount -t overlay -o lowerdir=/below,upperdir=/above/upper,workdir=/above/work none /new || poweroff -f
read -r modules out </modules/places
mount -t proc none /new/proc
mount -t sysfs none /new/sys
mount -t devtmpfs none /new/dev
mkdir -p /new/dev/pts /new/dev/shm
mount -t devpts none /new/dev/pts
for folder in dev/shm run tmp; do mount -t tmpfs none "/new/$folder"; done
chmod 1777 /new/tmp /new/dev/shm
mkdir -p "/new/lib/modules/$(uname -r)"
mount -o bind "/new$modules" "/new/lib/modules/$(uname -r)"
mount -t cgroup2 none /new/sys/fs/cgroup
mount -t bpf none /new/sys/fs/bpf
if [ -n "$out" ]; then
  mkdir -p "/new$out"
  mount -t 9p -o "rw,cache=none,$share" out "/new$out"
fi
cp /bin/busybox /modules/command /new/run/
cat >/new/run/start <<'START'
# Devices whose modules are loaded when they are opened, such as /dev/net/tun.
while read -r module name kind; do
  case $module in '#') continue ;; esac
  number=${kind#?}
  mkdir -p "$(dirname "/dev/$name")"
  [ -e "/dev/$name" ] || mknod "/dev/$name" "${kind%"$number"}" "${number%:*}" "${number#*:}"
done <"/lib/modules/$(uname -r)/modules.devname"
/run/busybox ip link set lo up
# As systemd starts services.
ulimit -n 524288
# The lines of the command come out as they are.
/run/busybox stty -F /dev/ttyS1 raw -echo
/bin/sh /run/command </dev/null >/dev/ttyS1 2>&1
echo "$?" >/dev/ttyS2
sync
/run/busybox poweroff -f
START
# The kernel looks for modprobe in the root of the first process.
exec switch_root /new /bin/sh /run/start
INIT
chmod +x "$root/init"
out=
if [ -n "${VM_OUT:-}" ]; then
  mkdir -p "$VM_OUT"
  out=$(realpath "$VM_OUT")
fi
echo "$modules $out" >"$root/modules/places"
quoted() {
  for word in "$@"; do printf " '%s'" "$(printf %s "$word" | sed "s/'/'\\\\''/g")"; done
}
{
  # What programs and tests look at, of the environment here.
  for name in PATH HOME LANG CARGO_TARGET_DIR CARGO_MANIFEST_DIR SKYHAUL_REQUIRE RUST_BACKTRACE; do
    if value=$(printenv "$name"); then echo "export $name=$(quoted "$value" | cut -c 2-)"; fi
  done
  echo "cd$(quoted "$from") || exit"
  echo "$(quoted "$@")"
} >"$root/modules/command"
(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$run/initrd"
rm -rf "$root"

# Some machines have a /dev/kvm that runs no ordinary kernel. There, after half a minute, once, the processor is emulated.
given=${VM_ACCEL:-}
case $given in
  kvm | tcg) accelerator=$given ;;
  '')
    accelerator=tcg
    if [ -w /dev/kvm ] && [ ! -e "$vm/no-kvm" ]; then accelerator=kvm; fi
    ;;
  *) fail "VM_ACCEL: $given is neither kvm nor tcg" ;;
esac
clock=${VM_CLOCK:-}
case $clock in
  '' | real) ;;
  virtual) accelerator=tcg given=tcg ;;
  *) fail "VM_CLOCK: $clock is neither real nor virtual" ;;
esac
share() { # its name, a folder, more options
  printf '%s' "local,id=$1,path=$2,security_model=none,multidevs=remap$3"
}
set -- -m "${VM_MEMORY:-4G}" \
  -kernel "$image" -initrd "$run/initrd" -append "console=ttyS0 loglevel=4 panic=-1 random.trust_cpu=on" \
  -nodefaults -no-user-config -no-reboot -display none -nic none -device virtio-rng-pci \
  -serial "file:$run/console" -serial stdio -serial "file:$run/status" \
  -fsdev "$(share files / ,readonly=on)" -device virtio-9p-pci,fsdev=files,mount_tag=files
if [ -n "$out" ]; then
  set -- "$@" -fsdev "$(share out "$out" "")" -device virtio-9p-pci,fsdev=out,mount_tag=out
fi
boot() {
  if [ "$accelerator" = kvm ]; then
    set -- -cpu host -smp "${VM_CPUS:-$(nproc)}" "$@"
  elif [ "$clock" = real ]; then
    set -- -cpu max -smp "${VM_CPUS:-$(nproc)}" "$@"
  else
    set -- -cpu max -smp 1 -icount shift=0,sleep=on -rtc clock=vm "$@"
  fi
  : >"$run/status"
  timeout "${VM_SECONDS:-600}" qemu-system-x86_64 -accel "$accelerator" "$@" </dev/null &
  qemu=$!
}
boot "$@"
if [ "$accelerator" = kvm ] && [ -z "$given" ]; then
  for _ in $(seq 300); do
    [ ! -s "$run/status" ] && kill -0 "$qemu" 2>/dev/null || break
    sleep 0.1
  done
  if [ ! -s "$run/status" ]; then
    echo "in-vm: KVM starts no guest here; from now on the processor is emulated, which is slow" >&2
    kill "$qemu" 2>/dev/null || true
    wait "$qemu" 2>/dev/null || true
    touch "$vm/no-kvm"
    accelerator=tcg
    boot "$@"
  fi
fi
ended=0
wait "$qemu" || ended=$?
qemu=
status=$(tr -d '\r' <"$run/status" | sed -n 2p)
if [ -n "$status" ]; then exit "$status"; fi
if [ "$ended" = 124 ]; then
  echo "in-vm: not finished after ${VM_SECONDS:-600} s: VM_SECONDS=N allows more" >&2
  exit 124
fi
tail -n 20 "$run/console" >&2 || true
fail "the virtual machine has ended before the command (QEMU: status $ended)"
