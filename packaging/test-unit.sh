#!/usr/bin/env bash
# Runs the unit of a gateway under a systemd of its own: packaging/test-unit.sh PROGRAM|PACKAGE.deb
#
# systemd is process 1 of new namespaces (processes, mounts, network, names, cgroups). Its root is this machine's file system under
# a layer in memory, so nothing here is changed. A client and a server have network namespaces of their own. A package is
# installed and removed there with dpkg. The test needs root, and is skipped with a message where something is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
what="$(realpath "$1")"

skip() { echo "test-unit: skipped: $1"; exit 0; }
[ "$(id -u)" = 0 ] || skip "it needs root"
for program in unshare nsenter findmnt ip nft python3 systemctl; do
  command -v "$program" >/dev/null || skip "there is no $program"
done
systemd=/usr/lib/systemd/systemd
[ -x "$systemd" ] || systemd=/lib/systemd/systemd
[ -x "$systemd" ] || skip "there is no systemd"
groups="$(findmnt -n -t cgroup2 -o TARGET | head -1)"
[ -n "$groups" ] || skip "no cgroup2 file system is mounted"
group="$groups/skyhaul-unit-$$"
mkdir "$group" 2>/dev/null || skip "$groups is read-only"
work="$(mktemp -d)"
cleanup() {
  local status=$?
  [ $status = 0 ] || [ ! -e "$work/log" ] || cat "$work/log" >&2
  echo 1 >"$group/cgroup.kill" 2>/dev/null || true
  # The kernel takes a moment to empty the groups.
  for _ in $(seq 50); do
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null && break
    sleep 0.1
  done
  rm -rf "$work"
}
trap cleanup EXIT

# The root of the file system, without the services of this machine.
cat >"$work/begin" <<'BEGIN'
set -eu
work=$1 systemd=$2
mount -t tmpfs none "$work"
mkdir "$work/upper" "$work/work" "$work/root"
mount -t overlay none -o "lowerdir=/,upperdir=$work/upper,workdir=$work/work" "$work/root"
root="$work/root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
for at in run tmp var/tmp var/log; do mount -t tmpfs tmpfs "$root/$at"; done
mkdir -p "$root/run/systemd" "$root/run/lock"
mount --rbind /dev "$root/dev"
rm -rf "$root"/etc/systemd/system "$root"/lib/systemd/system-generators "$root"/lib/systemd/system/*.wants
mkdir -p "$root/etc/systemd/system"
cat >"$root/etc/systemd/system/ours.target" <<'UNIT'
[Unit]
Description=Nothing but what the test starts
Wants=systemd-journald.service
UNIT
cd "$root"
pivot_root . mnt
umount -l /mnt
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin "$systemd" --unit=ours.target --log-target=journal-or-kmsg
BEGIN
cat >"$work/enter" <<'ENTER'
set -eu
echo 0 >"$1/cgroup.procs"
shift
exec unshare --cgroup sh "$@"
ENTER
mkdir "$work/layer"
unshare --pid --mount --net --uts --ipc --fork --kill-child --propagation private \
  sh "$work/enter" "$group" "$work/begin" "$work/layer" "$systemd" </dev/null >"$work/log" 2>&1 &
started=$!
init=""
for _ in $(seq 100); do
  init="$(cat "/proc/$started/task/$started/children" 2>/dev/null || true)"
  init="${init%% *}"
  [ -n "$init" ] && [ "$(cat "/proc/$init/comm" 2>/dev/null || true)" = systemd ] && break
  kill -0 "$started" 2>/dev/null || break
  sleep 0.1
done
if [ "$(cat "/proc/$init/comm" 2>/dev/null || true)" != systemd ]; then
  skip "this machine does not let systemd run in namespaces: $(tail -1 "$work/log")"
fi

inside() { nsenter -t "$init" -a -- env -i HOME=/root LC_ALL=C PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
unit=skyhaul-gateway@near
fail() {
  echo "test-unit: $1" >&2
  inside systemctl --no-pager status "$unit" >&2 || true
  inside journalctl --no-pager -n 30 >&2 || true
  exit 1
}
property() { inside systemctl show -P "$1" "$unit"; }
is() { [ "$2" = "$3" ] || fail "$1: $2 instead of $3"; }
# Waits for a condition for a minute.
wait_for() { # message, command
  local message=$1
  shift
  for _ in $(seq 600); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.1
  done
  fail "$message"
}
passed() { echo "test-unit: $1"; }
# The journal may write a line a moment after its program has ended. The whole output is read: with pipefail, grep -q would end
# journalctl by SIGPIPE and turn a line that is there into a failure.
journal_has() { inside journalctl --no-pager -u "$unit" | grep -ic -- "$1" >/dev/null; }
wait_for "systemd does not start" inside systemctl is-active ours.target

# client 10.1.0.2 - lan0 | this router | sat0 - server 10.9.0.2
inside sh -eu -c '
  ip link set lo up
  for name in client server; do ip netns add $name; ip -n $name link set lo up; done
  ip link add lan0 type veth peer name c0 netns client
  ip link add sat0 type veth peer name s0 netns server
  ip addr add 10.1.0.1/24 dev lan0
  ip addr add 10.9.0.1/24 dev sat0
  ip link set lan0 up
  ip link set sat0 up
  ip -n client addr add 10.1.0.2/24 dev c0
  ip -n client link set c0 up
  ip -n client route add default via 10.1.0.1
  ip -n server addr add 10.9.0.2/24 dev s0
  ip -n server link set s0 up
  ip -n server route add default via 10.9.0.1
  echo 1 >/proc/sys/net/ipv4/ip_forward
' || skip "this kernel has no veth interfaces"
# A server that returns every line, and a client that sends one; "hold" waits for a file between two lines.
cat >"$work/echo.py" <<'PYTHON'
import os, socket, sys, threading, time
if sys.argv[1] == "serve":
    def serve(s):
        with s, s.makefile("rwb") as f:
            for line in f:
                f.write(line)
                f.flush()
    with socket.create_server(("10.9.0.2", 7000)) as listener:
        while True:
            threading.Thread(target=serve, args=[listener.accept()[0]], daemon=True).start()
with socket.create_connection(("10.9.0.2", 7000), 20) as s, s.makefile("rwb") as f:
    def say(line):
        f.write(line)
        f.flush()
        assert f.readline() == line
    say(b"one\n")
    if sys.argv[1] == "hold":
        open("/tmp/held", "w").close()
        while os.path.exists("/tmp/held"):
            time.sleep(0.05)
    say(b"two\n")
PYTHON
inside sh -c 'cat >/tmp/echo.py' <"$work/echo.py"
nsenter -t "$init" -a -- ip netns exec server python3 /tmp/echo.py serve </dev/null >/dev/null 2>&1 &
connect() { inside ip netns exec client python3 /tmp/echo.py once; }
wait_for "the server does not answer" connect
# The tables, rules, routes, interfaces and settings that a gateway changes.
traces() { inside sh -c 'nft list tables; ip rule; ip -6 rule; ip route show table all | grep 2132; ip -br link | grep sky-
  cat /proc/sys/net/ipv4/tcp_early_demux /proc/sys/net/ipv4/tcp_reflect_tos; ls /run/skyhaul' 2>/dev/null || true; }
gateway() { inside skyhaul gateway "$@"; }
# A number of the gateway's status.
count() { gateway status near --json | python3 -c "
import json, sys
s = json.load(sys.stdin)
print(s['counts'].get('$1', s.get('$1')))"; }

# Installed, but not enabled.
case "$what" in
  *.deb) nsenter -t "$init" -m -- sh -c 'cat >/tmp/it.deb' <"$what" && inside dpkg -i /tmp/it.deb >/dev/null ;;
  *)
    inside sh -c 'rm -f /usr/bin/skyhaul; cat >/usr/bin/skyhaul; chmod 755 /usr/bin/skyhaul' <"$what"
    inside sh -c 'mkdir -p /etc/skyhaul; cat >/lib/systemd/system/skyhaul-gateway@.service' <"packaging/systemd/skyhaul-gateway@.service"
    inside systemctl daemon-reload
    ;;
esac
file() { inside sh -c 'cat >/etc/skyhaul/near.toml'; }
file <<'TOML'
name = "near"
[terrestrial]
interface = "lan0"
[satellite]
interface = "sat0"
rate = "50 Mbit/s"
[limits]
drain = "3 s"
[log]
flows = "/var/log/skyhaul/near.jsonl"
events = "stderr"
TOML
before="$(traces)"

# A start returns when the gateway is ready, and not before.
inside systemctl start "$unit" || fail "it does not start"
first="$(property MainPID)"
is "the first connection is split" "$(connect && count from-hosts)" 1
is "Type" "$(property Type)" notify
is "ActiveState" "$(property ActiveState)" active
state_in_words() { property StatusText | grep -c connections >/dev/null; }
wait_for "systemd shows no status text" state_in_words
passed "starts: ready when systemd says so; a connection is split"

# Capabilities as written: CAP_NET_BIND_SERVICE (10) and CAP_NET_ADMIN (12).
mask() { inside grep "^$1:" "/proc/$first/status" | cut -f2; }
for set in CapEff CapPrm CapBnd CapAmb CapInh; do
  is "$set" "$((16#$(mask $set)))" "$((1 << 10 | 1 << 12))"
done
is "NoNewPrivs" "$(mask NoNewPrivs)" 1
is "Seccomp" "$(mask Seccomp)" 2
in_unit() { inside nsenter -t "$first" -m "$@"; }
! in_unit touch /usr/there 2>/dev/null || fail "it may write below /usr"
in_unit touch /var/log/skyhaul/there || fail "it may not write its logs"
in_unit grep -q hidepid=invisible /proc/mounts || fail "it sees the processes of others"
passed "holds two capabilities, no new privileges, filtered system calls, a read-only file system"

# A reload keeps the process and its connections; a bad file changes nothing and is an error.
nsenter -t "$init" -a -- ip netns exec client python3 /tmp/echo.py hold </dev/null >"$work/hold" 2>&1 &
hold=$!
wait_for "the connection does not open" inside test -e /tmp/held
inside sh -c 'printf "[split]\nexclude-ports = [22]\n" >>/etc/skyhaul/near.toml'
inside systemctl reload "$unit" || fail "the reload fails"
inside sh -c 'echo "nonsense = 1" >>/etc/skyhaul/near.toml'
! inside systemctl reload "$unit" 2>/dev/null || fail "a reload of a bad file succeeds"
inside sed -i '$d' /etc/skyhaul/near.toml
is "after a bad reload, ActiveState" "$(property ActiveState)" active
is "after two reloads, MainPID" "$(property MainPID)" "$first"
inside rm /tmp/held
wait "$hold" || fail "a reload cut a connection: $(tail -1 "$work/hold")"
passed "reloads: the process and an open connection stay; a bad file is refused"

# A halted gateway is killed by the watchdog, its rules go, and another one starts.
inside kill -STOP "$first"
is "the table is there while it is halted" "$(inside nft list tables | grep -c skyhaul_near)" 1
restarted() { [ "$(property NRestarts)" = "$1" ] && [ "$(property ActiveState)" = active ]; }
wait_for "the watchdog does not restart it" restarted 1
second="$(property MainPID)"
[ "$second" != "$first" ] || fail "the watchdog has not replaced the process"
wait_for "the journal says nothing of the watchdog" journal_has "watchdog timeout"
is "after the watchdog, a connection is split" "$(connect && count from-hosts)" 1
passed "watchdog: a halted gateway is killed and started again"

# One thread of several that stands still is as bad. A debugger's call holds it; a gateway that paces has one thread.
inside sed -i 's/^rate = .*/# &/; s/^\[limits\]$/&\nthreads = 2/' /etc/skyhaul/near.toml
inside systemctl reset-failed "$unit"
inside systemctl restart "$unit"
before_halt="$(property NRestarts)"
second="$(property MainPID)"
cat >"$work/halt.py" <<'PYTHON'
import ctypes, os, sys
SEIZE, INTERRUPT, ANY = 0x4206, 0x4207, 0x40000000
tasks = f"/proc/{sys.argv[1]}/task"
thread = next(int(t) for t in os.listdir(tasks) if open(f"{tasks}/{t}/comm").read().strip() == "gateway-1")
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long] * 4
for request in SEIZE, INTERRUPT:
    if ptrace(request, thread, 0, 0) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
try:
    while os.WIFSTOPPED(os.waitpid(thread, ANY)[1]):
        print("halted", flush=True)
except ChildProcessError:
    pass
PYTHON
nsenter -t "$init" -a -- python3 - "$second" <"$work/halt.py" >"$work/halt" 2>&1 &
halt=$!
for _ in $(seq 100); do grep -q halted "$work/halt" && break; kill -0 "$halt" 2>/dev/null || break; sleep 0.1; done
if grep -q halted "$work/halt"; then
  wait_for "the watchdog does not restart a gateway of which one thread stands still" restarted "$((before_halt + 1))"
  [ "$(property MainPID)" != "$second" ] || fail "the watchdog has not replaced the process with the halted thread"
  wait "$halt"
  passed "watchdog: a gateway of which one thread stands still is killed and started again"
else
  echo "test-unit: skipped: one thread cannot be held here: $(tail -1 "$work/halt")"
  kill "$halt" 2>/dev/null || true
fi
inside sed -i 's/^# rate/rate/; /^threads = 2$/d' /etc/skyhaul/near.toml
inside systemctl reset-failed "$unit"
inside systemctl restart "$unit"
restarts="$(property NRestarts)"
second="$(property MainPID)"

# The same after SIGKILL. New connections pass meanwhile. A connection that the gateway accepts before it is gone is reset with it.
inside kill -KILL "$second"
gone() { ! inside kill -0 "$1"; }
wait_for "SIGKILL does not end it" gone "$second"
connect || fail "no connection passes while it restarts"
wait_for "it is not restarted after SIGKILL" restarted "$((restarts + 1))"
is "after SIGKILL, a connection is split" "$(connect && count from-hosts)" 1
passed "restarts after SIGKILL; connections pass meanwhile"

# Stopped in order: an open connection has its time to end, and nothing is left.
inside systemctl stop "$unit"
is "after stop, Result" "$(property Result)" success
is "after stop, what is left" "$(traces)" "$before"
connect || fail "no connection passes after it was stopped"
inside grep -q '"event":"flow"' /var/log/skyhaul/near.jsonl || fail "its log has no connection"
passed "stops: rules, routes, interface and settings are as before"

# SIGKILL without a restart: ExecStopPost cleans, or keeps the block if the file says so.
inside sh -c "mkdir -p /run/systemd/system/$unit.service.d
printf '[Service]\nRestart=no\n' >/run/systemd/system/$unit.service.d/once.conf"
inside systemctl daemon-reload
failed() { [ "$(property ActiveState)" = failed ]; }
inside systemctl start "$unit"
inside kill -KILL "$(property MainPID)"
wait_for "it does not fail" failed
is "after SIGKILL, what is left" "$(traces)" "$before"
inside sed -i '1i on-failure = "block"' /etc/skyhaul/near.toml
inside systemctl reset-failed "$unit"
inside systemctl start "$unit"
inside kill -KILL "$(property MainPID)"
wait_for "it does not fail" failed
is "blocked after SIGKILL" "$(inside nft list tables | grep -c skyhaul_near)" 1
gateway clean near >/dev/null
is "after clean, what is left" "$(traces)" "$before"
passed "SIGKILL without a restart: cleaned, or blocked if the file says so"

# What cannot start says why in one line of the journal, with its priority, and leaves nothing.
inside sed -i '1d; s/sat0/sat9/' /etc/skyhaul/near.toml
inside systemctl reset-failed "$unit"
! inside systemctl start "$unit" 2>/dev/null || fail "it starts without its interface"
wait_for "the journal does not name the interface" journal_has sat9
is "after a failed start, what is left" "$(traces)" "$before"
inside sed -i 's/sat9/sat0/' /etc/skyhaul/near.toml
passed "a start that fails says why and leaves nothing"

# Evidence needs one capability and one family of sockets more, as docs/gateway.md says.
inside sh -c "printf '[evidence]\nmode = \"shadow\"\n' >>/etc/skyhaul/near.toml"
inside systemctl reset-failed "$unit"
! inside systemctl start "$unit" 2>/dev/null || fail "evidence works without CAP_NET_RAW"
wait_for "the journal does not name CAP_NET_RAW" journal_has CAP_NET_RAW
inside sh -c "sed -n '/^\[Service\]$/,/^\`\`\`/p' >/run/systemd/system/$unit.service.d/evidence.conf
sed -i '/\`\`\`/d' /run/systemd/system/$unit.service.d/evidence.conf" <docs/gateway.md
inside systemctl daemon-reload
inside systemctl reset-failed "$unit"
inside systemctl start "$unit" || fail "evidence does not start with the drop-in of docs/gateway.md"
connect
is "with evidence in shadow mode, from-hosts" "$(count from-hosts)" 0
gateway evidence near | grep -c "none is split" >/dev/null || fail "no evidence"
passed "evidence: refused without CAP_NET_RAW, works with the drop-in"

# Removing the package stops it.
if [ "${what%.deb}" != "$what" ]; then
  inside dpkg -r skyhaul >/dev/null
  is "after removal, ActiveState" "$(property ActiveState)" inactive
  inside test ! -e /usr/bin/skyhaul
  passed "removing the package stops the gateway"
else
  inside systemctl stop "$unit"
fi
is "at the end, what is left" "$(traces)" "$before"
echo "test-unit: systemd $(inside systemctl --version | sed -n '1s/systemd \([^ ]*\).*/\1/p'): all is well"
