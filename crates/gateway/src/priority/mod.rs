//! The path priority test: does the path to another gateway delay or drop low-priority packets first? TCP-Peach and others send
//! low-priority probes that must not take capacity from other traffic. On a path that is not known to protect it,
//! `satellite.fallback-cc` runs instead.
//!
//! ```text
//! settings  [priority-test] of the file
//! message   what two gateways say to each other
//! judge     what trains of probes show about the path
//! tester    which path is tested when
//! answer    the far end of a test: reports which probes arrived
//! trust     the results
//! service   the thread and its sockets
//! ```

mod answer;
mod judge;
mod message;
mod service;
pub(crate) mod settings;
mod tester;
mod trust;

pub use judge::{Counts, Verdict};
pub(crate) use service::Service;
pub use settings::Settings;
pub use tester::Finding;
pub(crate) use trust::Trust;
pub use trust::{PathStatus, PriorityStatus};

/// Reads a message whose bytes are made up: for the fuzz target. One that can be read is the same after it was written again.
#[doc(hidden)]
pub(crate) fn read_bytes(data: &[u8]) {
    use skyhaul_base::{Instant, Rng};
    let Some(m) = message::Message::read(data) else { return };
    let mut out = [0; message::ROOM];
    let n = m.write(&mut out);
    assert_eq!(out.get(..n).and_then(message::Message::read).as_ref(), Some(&m));
    let from = std::net::SocketAddr::from(([192, 0, 2, 1], 1));
    answer::Answerer::new(std::num::NonZeroU32::MIN).take(Instant::ZERO, from, 0, &m);
    if let message::Message::Report { arrivals, .. } = &m {
        let train = judge::train(64, &mut Rng::stream(1, "train"));
        let sent: Vec<i64> = (0..64).collect();
        let counts = judge::judge(&train, &sent, arrivals, 1);
        assert!(counts.low_second <= counts.pairs && counts.low_lost <= counts.broken);
    }
}
