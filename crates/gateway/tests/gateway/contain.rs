//! Panics in the work for one connection, which other connections and the gateway survive.

use crate::bed::{BREAKS, Bed, CLIENT, NEAR};
use crate::{calm, listen, server};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a short exchange with the server succeeds.
fn exchanges() -> bool {
    let asks = || {
        let mut s = TcpStream::connect(server())?;
        s.set_read_timeout(Some(std::time::Duration::from_secs(20)))?;
        s.write_all(b"question")?;
        let mut answer = [0; 6];
        s.read_exact(&mut answer)?;
        Ok::<_, std::io::Error>(&answer == b"answer")
    };
    asks().unwrap_or(false)
}

pub(crate) fn a_panic_ends_one_connection() {
    let Some(bed) = Bed::new("contain", calm()) else { return };
    let starter = ["env", &format!("{BREAKS}=1")];
    let text = "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\n\
                [evidence]\nmode = \"ab\"\nfraction = 0.5\n[evidence.other]\ncc = \"sack\"\n";
    let mut near = bed.gateway_by(&starter, NEAR, text);
    let listener = listen(&bed, server());
    listener.set_nonblocking(true).expect("is set");
    let over = AtomicBool::new(false);
    let served = std::thread::scope(|s| {
        s.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let Ok((mut s, _)) = listener.accept() else {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    continue;
                };
                let _ = s.set_nonblocking(false);
                let _ = s.read_exact(&mut [0; 8]).and_then(|()| s.write_all(b"answer"));
            }
        });
        let served = bed.spaces[CLIENT].within(|| (0..40).filter(|_| exchanges()).count());
        over.store(true, Ordering::Relaxed);
        served.expect("enters")
    });
    // The hash of its ends decides in which arm a connection is. Those of the second arm panic.
    let defects = near.count("defects");
    assert!(near.child.try_wait().expect("asks").is_none(), "the gateway lives");
    assert!(served > 0 && defects > 0, "{served} served, {defects} broke");
    assert_eq!(served as u64 + defects, 40, "each is served or has broken");
    assert_eq!(near.count("aborted"), defects);
    assert!(
        near.ask("metrics").contains(&format!("skyhaul_gateway_defects_total{{gateway=\"near\"}} {defects}"))
    );
    while near.count("flows") > 0 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    near.stop();
}
