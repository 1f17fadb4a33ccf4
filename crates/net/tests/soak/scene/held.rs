//! Many connections that are idle most of the time.

use super::{Outcome, Run};
use crate::bed::{self, Server};
use crate::crowd::Crowd;
use crate::finding::Finding;
use crate::machine;
use std::time::Duration;

/// What a connection that is idle may cost the host, bytes: a record, no buffers.
const EACH: f64 = 8192.0;
/// Idle time in the short form: buffers of idle connections are released after a second.
const IDLE: Duration = Duration::from_millis(2500);

pub fn play(run: &Run) -> Outcome {
    let n: usize = run.choose(20_000, 1_000);
    let ns = bed::space()?;
    let server = Server::start(&ns, false, |_| {})?;
    let before = machine::resident();
    let (mut crowd, opened) = Crowd::new(&ns, n)?;
    bed::sleep(run.choose(Duration::from_secs(60), IDLE));
    let held = server.snapshot()?;
    let resident = machine::resident() - before;
    let again = crowd.again()?;
    drop(crowd);
    bed::sleep(Duration::from_millis(1500));
    let after = server.snapshot()?;
    server.end()?;
    let each = |n: f64| n / opened.max(1) as f64;
    Ok(vec![
        Finding::at_least("connections opened and served", opened as f64, n as f64, ""),
        Finding::at_least("connections held simultaneously", held.connections as f64, n as f64, ""),
        Finding::at_least("served again after the silence", again as f64, n as f64, ""),
        Finding::at_most("memory of the host per connection", each(held.memory.held as f64), EACH, "bytes"),
        Finding::recorded("growth of resident memory per connection", each(resident), "bytes"),
        Finding::at_most("timers per connection", each(held.timers as f64), 8.0, ""),
        Finding::at_most("connections after all are closed", after.connections as f64, 0.0, ""),
        Finding::at_most("memory after all are closed", after.memory.held as f64, 1e5, "bytes"),
    ])
}
