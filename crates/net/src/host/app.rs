//! Applications on a host.

use super::Host;
use skyhaul_base::Instant;

/// Whether an application continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppStatus {
    /// It waits for something.
    Waiting,
    /// It is done.
    Done,
}

/// An application on a host. It is called when something arrived, when a deadline passed, or when it asked to be.
pub trait App {
    /// Does all work that is possible now.
    fn turn(&mut self, now: Instant, host: &mut Host) -> AppStatus;
    /// Latest time at which it wants to be called; [`Instant::MAX`] means only on events.
    fn next_timeout(&self) -> Instant;
    /// Asks it to stop: it closes its connections, and is done once they are closed.
    fn stop(&mut self, now: Instant, host: &mut Host);
}
