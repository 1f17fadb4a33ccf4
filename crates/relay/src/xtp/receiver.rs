//! The receiving end.

use super::{Close, Config, Data, FIRST_WAIT, MOST_SPANS, Repair, Report};
use crate::ranges::Ranges;
use skyhaul_base::{Duration, Instant};

/// The receiving end of a connection.
#[derive(Debug)]
pub struct Receiver {
    config: Config,
    /// The next byte that is expected.
    rseq: u64,
    /// Bytes in order that have not been read.
    unread: u64,
    /// Size of the buffer, bytes.
    buffer: u64,
    /// Data beyond gaps.
    spans: Ranges,
    /// The last sync request received.
    echo: u32,
    /// A report is to be sent.
    due: bool,
    /// End of the window in the last report.
    advertised: u64,
    has_received: bool,
    /// Packets without new data.
    duplicates: u64,
    /// The end of the stream, once known.
    fin: Option<u64>,
    /// Nothing is written in the other direction.
    finished: bool,
    /// When `finished` is reported again, since the peer has not confirmed it, and how often it was.
    repeats_at: Instant,
    tries: u64,
    /// Both sides have closed, and the peer has confirmed it.
    over: bool,
    /// One side, the peer or this one, has given up.
    dead: bool,
}

impl Receiver {
    /// A receiver with a buffer of this many bytes.
    #[must_use]
    pub fn new(config: &Config, buffer: u64) -> Self {
        Self {
            config: *config,
            rseq: 0,
            unread: 0,
            buffer,
            spans: Ranges::default(),
            echo: 0,
            due: false,
            advertised: buffer,
            has_received: false,
            duplicates: 0,
            fin: None,
            finished: false,
            repeats_at: Instant::MAX,
            tries: 0,
            over: false,
            dead: false,
        }
    }
    /// Whether anything has arrived from the peer.
    #[must_use]
    pub fn has_received(&self) -> bool {
        self.has_received
    }
    /// Bytes in order that have not been read.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.unread
    }
    /// Bytes received in order.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.rseq
    }
    /// Packets without new data.
    #[must_use]
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }
    /// Whether everything has arrived, up to the end of the stream.
    fn complete(&self) -> bool {
        self.fin.is_some_and(|end| self.rseq >= end)
    }
    /// Whether the stream has ended and all of it has been read.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.complete() && self.unread == 0
    }
    /// Whether both sides have closed and the peer has confirmed it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }
    /// Whether one side has given up.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.dead
    }
    /// Nothing is written in the other direction.
    pub fn finish(&mut self, now: Instant) {
        if !self.finished && !self.dead {
            (self.finished, self.due) = (true, true);
            self.repeats_at = now + FIRST_WAIT;
        }
    }
    /// Gives up; the next report informs the peer.
    pub fn abort(&mut self) {
        (self.dead, self.due, self.repeats_at) = (true, true, Instant::MAX);
    }
    /// When [`Self::handle_timeout`] has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        self.repeats_at
    }
    /// Reports again that nothing is written in the other direction, since the peer has not confirmed it; the interval doubles
    /// each time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.repeats_at > now {
            return;
        }
        self.tries += 1;
        let wait: Duration = FIRST_WAIT * (1 << self.tries.min(16));
        let repeats = self.tries <= self.config.retry;
        self.due |= repeats;
        self.repeats_at = if repeats { now + wait } else { Instant::MAX };
    }
    fn alloc(&self) -> u64 {
        self.rseq + self.buffer.saturating_sub(self.unread)
    }

    /// Reads `n` of the available bytes.
    pub fn read(&mut self, n: u64) -> u64 {
        let n = n.min(self.unread);
        self.unread -= n;
        // A nearly closed window is announced again as soon as a quarter of the buffer is free.
        self.due |= n > 0 && self.alloc() >= self.advertised + self.buffer / 4;
        n
    }

    /// A packet arrived.
    pub fn handle(&mut self, d: &Data) {
        self.has_received = true;
        if d.sync != 0 {
            // Sync requests are numbered in order of transmission; a late one is outdated. Even a receiver that has given up answers.
            self.echo = self.echo.max(d.sync);
            self.due = true;
        }
        let end = d.seq + u64::from(d.len);
        if self.dead {
            return;
        }
        if d.close != Close::default() {
            self.close(d.close, end);
        }
        if d.len == 0 || end > self.alloc() {
            return;
        }
        if end <= self.rseq {
            self.duplicates += 1;
            return;
        }
        if d.seq <= self.rseq {
            self.advance(end);
            return;
        }
        let opens = self.spans.end().unwrap_or(self.rseq) < d.seq;
        if self.config.repair == Repair::Selective {
            self.spans.add(d.seq, end);
            self.due |= self.config.fastnak && opens;
        } else {
            // With go-back-N one negative acknowledgement per gap suffices: later data is retransmitted anyway.
            self.due |= self.config.fastnak && self.spans.is_empty();
            self.spans.add(d.seq, end);
        }
    }

    /// Processes the closing state of a packet that ends at `end`.
    #[cold]
    fn close(&mut self, close: Close, end: u64) {
        if close.wclose && self.fin.is_none() {
            self.fin = Some(end);
        }
        if close.rclose {
            self.repeats_at = Instant::MAX;
        }
        if close.end {
            // An end before everything has arrived means that the peer gave up.
            self.over = self.complete();
            self.dead = !self.over;
            self.repeats_at = Instant::MAX;
        }
    }

    /// Everything up to `end` has arrived: advances past it and past adjacent ranges.
    fn advance(&mut self, end: u64) {
        let before = self.rseq;
        self.rseq = end;
        if self.config.repair == Repair::GoBackN {
            self.spans.clear();
        }
        self.rseq = self.spans.cut(self.rseq);
        self.unread += self.rseq - before;
        self.due |= self.complete();
    }

    /// The report to send now.
    pub fn poll(&mut self) -> Option<Report> {
        if !core::mem::take(&mut self.due) {
            return None;
        }
        self.advertised = self.alloc();
        let selective = self.config.repair == Repair::Selective;
        let rclose = self.complete();
        let spans = self.spans.iter().take(MOST_SPANS).filter(|_| selective);
        Some(Report {
            rseq: self.rseq,
            alloc: self.advertised,
            echo: self.echo,
            gap: !self.spans.is_empty(),
            spans: spans.collect(),
            // Repeated until the peer confirms it.
            close: Close { wclose: self.repeats_at < Instant::MAX, rclose, end: self.dead },
        })
    }
}
