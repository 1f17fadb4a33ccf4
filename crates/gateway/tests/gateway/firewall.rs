//! A gateway beside the rules of a firewall that knows nothing of it.

use crate::bed::{Bed, CLIENT, FAR, NEAR};
use crate::{calm, listen, many, server};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::process::Command;

pub(crate) const ALL: [(&str, fn()); 2] = [
    ("the_legs_of_a_connection_are_tracked_apart", the_legs_of_a_connection_are_tracked_apart),
    ("hidden_addresses_are_split", hidden_addresses_are_split),
];

fn sh(bed: &Bed, at: usize, line: &str) {
    let run = || Command::new("sh").args(["-c", line]).output().expect("runs");
    let done = bed.spaces[at].within(run).expect("enters");
    assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Sets rules of a firewall.
fn rules(bed: &Bed, at: usize, text: &str) {
    sh(bed, at, &format!("nft -f - <<'end'\n{text}\nend"));
}

/// What the rules of every other router are made of.
const STATEFUL: &str = "table inet filter {
    chain input { type filter hook input priority filter; policy accept; ct state invalid drop; }
    chain forward {
        type filter hook forward priority filter; policy drop;
        ct state invalid drop
        ct state established,related accept
        iifname { lan0, sky-near, sky-far } oifname sat0 accept
        iifname sat0 oifname { lan0, sky-near, sky-far } accept
        iifname { sky-near, sky-far } accept
        oifname { sky-near, sky-far } accept
    }
}";

fn the_legs_of_a_connection_are_tracked_apart() {
    let Some(bed) = Bed::new("tracked", calm()) else { return };
    for at in [NEAR, FAR] {
        rules(&bed, at, STATEFUL);
    }
    // Packets whose sequence numbers do not belong to a connection are invalid where only one leg is known, too.
    let near = bed.gateway(NEAR, "");
    many(&bed, server(), 4, 100_000);
    assert_eq!((near.count("from-hosts"), near.count("finished")), (4, 4));
    let far = bed.gateway(FAR, "");
    many(&bed, server(), 4, 100_000);
    assert_eq!((near.count("from-hosts"), far.count("from-link")), (8, 4));
    assert_eq!((near.count("aborted"), far.count("aborted")), (0, 0));
    near.stop();
    far.stop();
}

fn hidden_addresses_are_split() {
    let Some(bed) = Bed::new("hidden", calm()) else { return };
    rules(
        &bed,
        NEAR,
        "table ip nat { chain out { type nat hook postrouting priority srcnat; oifname sat0 masquerade; }; }",
    );
    rules(&bed, NEAR, STATEFUL);
    let near = bed.gateway(NEAR, "");
    let listener = listen(&bed, server());
    let serves = std::thread::spawn(move || {
        (0..3)
            .map(|_| {
                let (mut s, from) = listener.accept().expect("accepts");
                let mut all = Vec::new();
                s.read_to_end(&mut all).expect("reads");
                s.write_all(&all).expect("writes");
                from.ip()
            })
            .collect::<Vec<_>>()
    });
    for n in 0..3 {
        let back = bed.spaces[CLIENT].within(|| {
            let mut s = TcpStream::connect(server()).expect("connects");
            s.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("sets");
            s.write_all(&vec![n; 100_000]).expect("writes");
            s.shutdown(std::net::Shutdown::Write).expect("half-closes");
            let mut back = Vec::new();
            s.read_to_end(&mut back).expect("reads");
            back
        });
        assert_eq!(back.expect("enters"), vec![n; 100_000]);
    }
    assert_eq!(serves.join().expect("serves"), [IpAddr::from([10, 9, 0, 1]); 3]);
    assert_eq!((near.count("from-hosts"), near.count("finished")), (3, 3), "they were split");
    near.stop();
}
