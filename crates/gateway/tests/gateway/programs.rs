//! Well-known programs through two gateways over a link with losses. Programs that are not installed are skipped, with a message.

use crate::bed::{Bed, CLIENT, FAR, Link, NEAR, SERVER};
use crate::{bytes, digest};
use skyhaul_base::Duration;
use skyhaul_testkit::need;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration as Patience;

const SIZE: usize = 1_500_000;

/// A server that is killed when the test is done with it.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a socket of the calling thread's namespace listens at a port.
fn listens(port: u16) -> bool {
    ["tcp", "tcp6"].iter().any(|of| {
        let all = std::fs::read_to_string(format!("/proc/thread-self/net/{of}")).unwrap_or_default();
        all.lines().skip(1).any(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            // The local address and port, and the state: 0A is TCP_LISTEN.
            fields[1].ends_with(&format!(":{port:04X}")) && fields[3] == "0A"
        })
    })
}

struct Stage<'a> {
    bed: &'a Bed,
    folder: PathBuf,
    data: Vec<u8>,
}

impl Stage<'_> {
    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.folder.join(name), text).expect("writes");
        self.path(name)
    }
    /// Runs a line of the shell in a namespace, and checks that it succeeds.
    fn run(&self, at: usize, line: &str) -> Output {
        let run = || Command::new("sh").args(["-c", line]).stdin(Stdio::null()).output().expect("runs");
        let done = self.bed.spaces[at].within(run).expect("enters");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{line}: {said} {}", String::from_utf8_lossy(&done.stdout));
        done
    }
    /// Starts a server that stays in the foreground, and waits until it listens at a port. The wait makes no connection: iperf3 takes one
    /// without data for a failed test, and may then refuse the next one.
    fn serve(&self, line: &str, port: u16) -> Serving {
        let start = || {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("exec {line}")]).stdin(Stdio::null()).stdout(Stdio::null());
            command
                .stderr(std::fs::File::create(self.folder.join("said")).expect("creates"))
                .spawn()
                .expect("starts")
        };
        let serving = Serving(self.bed.spaces[SERVER].within(start).expect("enters"));
        let mut turns = 0;
        while !self.bed.spaces[SERVER].within(|| listens(port)).expect("enters") {
            let said = std::fs::read_to_string(self.folder.join("said")).unwrap_or_default();
            turns += 1;
            assert!(turns < 1000, "{line} does not listen at {port}: {said}");
            std::thread::sleep(Patience::from_millis(20));
        }
        serving
    }

    /// Downloads by HTTP: whole, in parts, twice over one connection.
    fn web(&self) {
        if !need::program("nginx") || !need::program("curl") || !need::program("openssl") {
            return;
        }
        std::fs::write(self.folder.join("film"), &self.data).expect("writes");
        self.run(
            SERVER,
            &format!(
                "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=server \
                 -addext subjectAltName=IP:10.2.0.2 -keyout {} -out {}",
                self.path("key.pem"),
                self.path("cert.pem")
            ),
        );
        let places: String = ["body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|of| {
                let key =
                    if *of == "body" { "client_body_temp_path".into() } else { format!("{of}_temp_path") };
                format!("{key} {};\n", self.path(&format!("temp-{of}")))
            })
            .collect();
        let config = self.write(
            "nginx.conf",
            &format!(
                "daemon off; master_process off; pid {pid}; error_log {log}; user root; events {{}}\nhttp {{ access_log off; {places}\n\
                 server {{ listen 8081; listen 8443 ssl; ssl_certificate {cert}; ssl_certificate_key {key}; root {root}; }} }}\n",
                pid = self.path("nginx.pid"),
                log = self.path("nginx.log"),
                cert = self.path("cert.pem"),
                key = self.path("key.pem"),
                root = self.folder.display(),
            ),
        );
        let _nginx = self.serve(&format!("nginx -c {config} -e {}", self.path("nginx.log")), 8081);
        for url in ["http://10.2.0.2:8081/film", "https://10.2.0.2:8443/film"] {
            let curl = format!("curl -sS --fail --max-time 60 --cacert {}", self.path("cert.pem"));
            let whole = self.run(CLIENT, &format!("{curl} {url}")).stdout;
            assert_eq!(digest(&whole), digest(&self.data), "{url}");
            let parts =
                self.run(CLIENT, &format!("{curl} -r 0-699999 {url} --next {} -r 700000- {url}", &curl[4..]));
            assert_eq!(digest(&parts.stdout), digest(&self.data), "{url} in parts");
        }
    }

    /// A file through ssh, to the server and back.
    fn shell(&self) {
        if !need::program("sshd") || !need::program("ssh") || !need::program("ssh-keygen") {
            return;
        }
        for name in ["host", "user"] {
            self.run(SERVER, &format!("ssh-keygen -q -t ed25519 -N '' -f {}", self.path(name)));
        }
        let config = self.write(
            "sshd_config",
            &format!(
                "Port 2222\nListenAddress 10.2.0.2\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
                 PermitRootLogin yes\nPasswordAuthentication no\nPidFile none\n",
                self.path("host"),
                self.path("user.pub")
            ),
        );
        // sshd needs the folder /run/sshd: it gets a file system at /run that no other process sees.
        let line = format!(
            "unshare -m sh -c 'mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec $(command -v sshd) -D -e -f {config}'"
        );
        let _sshd = self.serve(&line, 2222);
        let sent = self.path("sent");
        std::fs::write(&sent, &self.data).expect("writes");
        let back = self.run(
            CLIENT,
            &format!(
                "ssh -i {} -p 2222 -o StrictHostKeyChecking=no -o UserKnownHostsFile={} -o BatchMode=yes -F none \
                 root@10.2.0.2 cat < {sent}",
                self.path("user"),
                self.path("known"),
            ),
        );
        assert_eq!(digest(&back.stdout), digest(&self.data), "through ssh and back");
    }

    /// What iperf3 sends arrives, in both directions and over several connections.
    fn iperf(&self) {
        if !need::program("iperf3") {
            return;
        }
        for (way, port) in [("", 5201), ("-R", 5202), ("-P 3", 5203)] {
            // Each test has its own server: one that does not know yet that its test is over refuses the next one.
            let _server = self.serve(&format!("iperf3 -s -p {port}"), port);
            // The test lasts for a time, not for a number of bytes: a sender is done once it has written all bytes to the gateway, and the
            // receiver, which then stops counting, may have received none yet.
            let said = self.run(CLIENT, &format!("iperf3 -c 10.2.0.2 -p {port} -t 3 {way} --json")).stdout;
            let said: serde_json::Value = serde_json::from_slice(&said).expect("JSON");
            // After an error, iperf3 ends with status 0 all the same.
            assert!(said["error"].is_null(), "{way}: {said:#}");
            let sum = |which: &str| {
                let bytes = said["end"][which]["bytes"].as_u64();
                bytes.unwrap_or_else(|| panic!("iperf3 {way}: no sum in {said:#}"))
            };
            let (sent, received) = (sum("sum_sent"), sum("sum_received"));
            assert!(received > 0 && received <= sent, "{way}: {sent} {received}");
        }
    }
}

pub(crate) fn real_programs_work() {
    let rough = Link { delay: Duration::from_millis(20), loss: 0.005, ..Link::default() };
    let Some(bed) = Bed::new("programs", rough) else { return };
    let near = bed.gateway(NEAR, "rate = \"30 Mbit/s\"\n");
    let far = bed.gateway(FAR, "rate = \"30 Mbit/s\"\n");
    let folder: &Path = &bed.folder;
    let stage = Stage { bed: &bed, folder: folder.into(), data: bytes(7, SIZE) };
    stage.web();
    stage.shell();
    for gateway in [&near, &far] {
        assert_eq!((gateway.count("refused"), gateway.count("bytes-lost")), (0, 0));
    }
    // iperf3 comes after these counters were checked: it closes connections that still carry data.
    stage.iperf();
    assert_eq!(near.count("from-hosts"), far.count("from-link"));
}
