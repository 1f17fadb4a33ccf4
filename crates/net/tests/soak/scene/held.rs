//! Many connections that say nothing most of the time.

use super::{Outcome, Run};
use crate::bed::{self, Server};
use crate::client;
use crate::finding::Finding;
use crate::{machine, stop};
use std::net::TcpStream;
use std::time::Duration;

/// What a connection that is idle may cost the host, bytes: a record, no buffers.
const EACH: f64 = 8192.0;
/// Buffers of idle connections are given back after a second.
const IDLE: Duration = Duration::from_millis(2500);

pub fn play(run: &Run) -> Outcome {
    let wanted: usize = run.choose(20_000, 1_000);
    let ns = bed::space()?;
    let server = Server::start(&ns, false, |_| {})?;
    let most = machine::descriptors().saturating_sub(200) as usize;
    let n = wanted.min(most);
    let before = machine::resident();
    let open = || -> (Vec<TcpStream>, usize) {
        let (mut all, mut failed) = (Vec::with_capacity(n), 0);
        for i in 0..n {
            if stop::requested() {
                break;
            }
            match client::connect(bed::at(i as u32, bed::HTTP)) {
                Ok(mut s) => match client::fetch(&mut s, 100, false) {
                    Ok(()) => all.push(s),
                    Err(_) => failed += 1,
                },
                Err(_) => failed += 1,
            }
        }
        (all, failed)
    };
    let (mut all, failed) = ns.within(open).map_err(|e| e.to_string())?;
    bed::sleep(run.choose(Duration::from_secs(60), IDLE));
    let held = server.seen()?;
    let resident = machine::resident() - before;
    let again = all.iter_mut().map(|s| client::fetch(s, 100, false)).filter(Result::is_ok).count();
    let count = all.len();
    drop(all);
    bed::sleep(Duration::from_millis(1500));
    let after = server.seen()?;
    server.end()?;
    let each = held.memory.held as f64 / count.max(1) as f64;
    Ok(vec![
        Finding::at_least("connections held at once", held.connections as f64, n as f64, ""),
        Finding::at_most("not served at first", failed as f64, 0.0, ""),
        Finding::at_least("served again after the silence", again as f64, n as f64, ""),
        Finding::at_most("memory of the host per connection", each, EACH, "bytes"),
        Finding::told(
            "resident memory per connection, the client's side included",
            resident / count.max(1) as f64,
            "bytes",
        ),
        Finding::at_most("timers per connection", held.timers as f64 / count.max(1) as f64, 8.0, ""),
        Finding::at_most("connections after all were closed", after.connections as f64, 0.0, ""),
        Finding::at_most("memory after all were closed", after.memory.held as f64, 1e5, "bytes"),
    ])
}
