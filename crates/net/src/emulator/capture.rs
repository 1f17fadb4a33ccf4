//! Captures of both ends of one direction: incoming packets, with the cause of a loss as comment, and outgoing
//! packets.

use super::packet::Buf;
use crate::device::Clock;
use crate::error::NetError;
use skyhaul_base::{Duration, Instant};
use skyhaul_path::DropReason;
use skyhaul_wire::pcapng::Capture;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// A capture of one direction.
pub(super) struct DirectionCapture {
    capture: Capture<BufWriter<File>>,
    entry: u32,
    exit: u32,
    /// Time of day at the scenario's time zero, nanoseconds.
    epoch: u64,
    last: u64,
    failure: Option<io::Error>,
    path: String,
}

impl DirectionCapture {
    pub(super) fn new(path: &Path, start: Instant) -> Result<Self, NetError> {
        let name = path.display().to_string();
        let fail = |e: io::Error| NetError::of_file(format!("write {name}"), e);
        let to = BufWriter::new(File::create(path).map_err(fail)?);
        let mut capture = Capture::new(to, 1 << 16).map_err(fail)?;
        let entry = capture.interface("entry", "before the first link").map_err(fail)?;
        let exit = capture.interface("exit", "behind the last link").map_err(fail)?;
        let epoch = Clock::wall_nanos().saturating_sub((Clock::now() - start).as_nanos());
        Ok(Self { capture, entry, exit, epoch, last: 0, failure: None, path: name })
    }

    fn nanos(&mut self, at: Instant) -> u64 {
        let since: Duration = at - Instant::ZERO;
        // Captures are ordered by time.
        self.last = self.last.max(self.epoch + since.as_nanos());
        self.last
    }
    fn note<T>(&mut self, done: io::Result<T>) -> Option<T> {
        done.map_err(|e| self.failure.get_or_insert(e)).ok()
    }

    pub(super) fn enters(&mut self, at: Instant, p: &mut Buf) {
        let nanos = self.nanos(at);
        let done = self.capture.packet(nanos, self.entry, p.data(), p.data().len(), true, None);
        p.ticket = self.note(done);
    }
    pub(super) fn through(&mut self, at: Instant, p: &Buf) {
        if let Some(t) = p.ticket {
            let done = self.capture.settle(t, None);
            self.note(done);
        }
        let nanos = self.nanos(at);
        let done = self.capture.packet(nanos, self.exit, p.data(), p.data().len(), false, None);
        self.note(done);
    }
    pub(super) fn lost(&mut self, p: &Buf, link: &str, why: DropReason) {
        if let Some(t) = p.ticket {
            let done = self.capture.settle(t, Some(&comment(link, why)));
            self.note(done);
        }
    }
    pub(super) fn finish(self) -> Result<(), NetError> {
        let done = match self.failure {
            Some(e) => Err(e),
            None => self.capture.finish().map(drop),
        };
        done.map_err(|e| NetError::of_file(format!("write {}", self.path), e))
    }
}

/// The reason as written in captures.
fn comment(link: &str, why: DropReason) -> String {
    format!("lost on {link}: {}", why.name())
}
