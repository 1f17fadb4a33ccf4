//! What runs on a host.

use super::Host;
use skyhaul_base::Instant;

/// Whether an application goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It waits for something.
    Waiting,
    /// It is done.
    Done,
}

/// An application on a host. It is called whenever something arrived, a deadline passed, or it asked to be.
pub trait App {
    /// Does what there is to do.
    fn turn(&mut self, now: Instant, host: &mut Host) -> Turn;
    /// When it wants to be called at the latest; [`Instant::MAX`] for whenever something happens.
    fn next_timeout(&self) -> Instant;
    /// The user wants it to end: it closes what it has open, and is done when that is closed.
    fn stop(&mut self, now: Instant, host: &mut Host);
}
