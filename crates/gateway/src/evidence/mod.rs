//! Evidence: does splitting help? Connections are observed at the terrestrial interface, split or not, by the same code.
//!
//! ```text
//! settings    [evidence] of the file
//! arm         which of two arms a connection belongs to
//! tap         headers of packets that pass the interface
//! header      what a captured header says
//! connection  what is measured of one connection
//! moments     means, differences, intervals
//! tally       what all connections of a prefix yield
//! table       all observed connections
//! report      for people and programs
//! ```

pub(crate) mod arm;
mod connection;
mod header;
mod moments;
mod report;
pub(crate) mod settings;
mod table;
mod tally;
mod tap;

pub use arm::Arm;
pub use report::Evidence;
pub use settings::{AssignmentUnit, Mode, SecondArm, Settings};
pub use tally::{ArmReport, Comparison, Finished, GeometricMean, Group, OutcomeCounts, Verdict};

use crate::config::Config;
use crate::error::GatewayError;
use crate::worker::Worker;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use table::Table;
use tap::Tap;

/// How long a thread waits for packets before it looks whether it is to stop, milliseconds.
const PATIENCE: u16 = 200;
/// Packets taken while the lock is held once: readers of the results wait for no more.
const BATCH: usize = 256;

/// The results, shared by the observing thread, the gateway, and the readers of its status.
#[derive(Clone, Debug)]
pub(crate) struct Results(Arc<Mutex<Table>>);

impl Results {
    fn table(&self) -> MutexGuard<'_, Table> {
        // Each call leaves the table consistent, so that a lock poisoned by a panic can be used.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// The gateway splits this connection.
    pub(crate) fn split(&self, client: SocketAddr, server: SocketAddr) {
        self.table().split((client, server));
    }
    /// Switches to another configuration.
    pub(crate) fn reconfigure(&self, config: &Config) {
        self.table().reconfigure(config);
    }
    /// The state; with prefixes if requested.
    pub(crate) fn report(&self, prefixes: bool) -> Evidence {
        self.table().report(prefixes)
    }
}

/// The observing thread; dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Observer {
    results: Results,
    worker: Worker,
}

impl Observer {
    /// Starts to observe, in the calling thread's network namespace; `None` if the configuration asks for no evidence.
    ///
    /// # Errors
    /// If the interface cannot be observed.
    pub(crate) fn start(config: &Config) -> Result<Option<Self>, GatewayError> {
        let Some(hosts) = config.terrestrial.as_ref().filter(|_| config.evidence.measures()) else {
            return Ok(None);
        };
        let tap = Tap::open(&hosts.interfaces)?;
        let results = Results(Arc::new(Mutex::new(Table::new(config))));
        let theirs = results.clone();
        let worker = Worker::start("evidence", move |stop| observe(tap, &theirs, stop))?;
        Ok(Some(Self { results, worker }))
    }
    /// Whether it observes no more.
    pub(crate) fn has_ended(&self) -> bool {
        self.worker.has_ended()
    }
    /// What it finds.
    pub(crate) fn results(&self) -> Results {
        self.results.clone()
    }
}

fn observe(mut tap: Tap, results: &Results, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let _ = poll(&mut [PollFd::new(tap.as_fd(), PollFlags::POLLIN)], PollTimeout::from(PATIENCE));
        loop {
            let mut table = results.table();
            let mut taken = 0;
            while taken < BATCH
                && let Some(packet) = tap.next()
            {
                taken += 1;
                if let Some(head) = header::parse(packet.bytes, packet.length) {
                    table.take(packet.at, packet.arrives, &head);
                }
            }
            table.missed = tap.missed.into();
            if taken < BATCH || stop.load(Ordering::Relaxed) {
                break;
            }
        }
    }
}

/// Whether terrestrial interfaces can be observed, for `doctor`.
///
/// # Errors
/// Why not.
pub(crate) fn try_to_observe(interfaces: &[String]) -> Result<(), GatewayError> {
    Tap::open(interfaces).map(|_| ())
}

/// Observes packets of which the bytes are made up: for the fuzz target.
#[doc(hidden)]
pub(crate) fn observe_bytes(data: &[u8], config: &Config) -> Evidence {
    let mut table = Table::new(config);
    let mut now = 0;
    let mut rest = data;
    // Five bytes precede each packet: its direction, the time since the last one, its length, and how much of it was captured.
    while let Some(([direction, later, high, low, captured], after)) = rest.split_first_chunk::<5>() {
        now += u64::from(*later) << 24;
        let length = usize::from(*high) << 8 | usize::from(*low);
        let captured = usize::from(*captured).min(after.len()).min(header::CAPTURED);
        let (packet, after) = after.split_at(captured);
        if let Some(head) = header::parse(packet, length) {
            assert!(head.payload as usize <= length.max(65_535));
            table.take(now, direction & 1 == 0, &head);
        }
        rest = after;
    }
    table.report(true)
}
