//! The end that receives.

use super::{Config, Data, Repair, Report};
use std::collections::BTreeMap;

/// Maximum ranges in a report: those that fit into a packet of 1500 bytes.
const MOST_SPANS: usize = 80;

/// The receiving end of a connection.
#[derive(Debug)]
pub struct Receiver {
    config: Config,
    rseq: u64,
    unread: u64,
    buffer: u64,
    /// Data beyond gaps: start and end.
    spans: BTreeMap<u64, u64>,
    echo: u32,
    due: bool,
    told: u64,
    heard: bool,
    duplicates: u64,
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
            spans: BTreeMap::new(),
            echo: 0,
            due: false,
            told: buffer,
            heard: false,
            duplicates: 0,
        }
    }
    /// Whether anything has arrived from the peer.
    #[must_use]
    pub fn heard(&self) -> bool {
        self.heard
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
    fn alloc(&self) -> u64 {
        self.rseq + self.buffer.saturating_sub(self.unread)
    }

    /// Reads `n` of the available bytes.
    pub fn read(&mut self, n: u64) -> u64 {
        let n = n.min(self.unread);
        self.unread -= n;
        // A nearly closed window is announced again as soon as a quarter of the buffer is free.
        self.due |= n > 0 && self.alloc() >= self.told + self.buffer / 4;
        n
    }

    /// A packet arrived.
    pub fn handle(&mut self, d: &Data) {
        self.heard = true;
        if d.sync != 0 {
            // Sync requests are numbered in order of transmission; a late one is outdated.
            self.echo = self.echo.max(d.sync);
            self.due = true;
        }
        let end = d.seq + u64::from(d.len);
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
        let opens = self.spans.last_key_value().map_or(self.rseq, |(_, &to)| to) < d.seq;
        if self.config.repair == Repair::Selective {
            self.keep(d.seq, end);
            self.due |= self.config.fastnak && opens;
        } else {
            // With go-back-N one negative acknowledgement per gap suffices: later data is retransmitted anyway.
            self.due |= self.config.fastnak && self.spans.is_empty();
            self.spans.insert(end, end);
        }
    }

    /// Everything up to `end` has arrived: advances past it and past adjacent ranges.
    fn advance(&mut self, end: u64) {
        let before = self.rseq;
        self.rseq = end;
        if self.config.repair == Repair::GoBackN {
            self.spans.clear();
        }
        while let Some(first) = self.spans.first_entry().filter(|f| *f.key() <= self.rseq) {
            self.rseq = self.rseq.max(first.remove());
        }
        self.unread += self.rseq - before;
    }

    fn keep(&mut self, from: u64, to: u64) {
        let (mut from, mut to) = (from, to);
        while let Some((&start, &end)) = self.spans.range(..=to).next_back() {
            if end < from {
                break;
            }
            self.spans.remove(&start);
            (from, to) = (from.min(start), to.max(end));
        }
        self.spans.insert(from, to);
    }

    /// The report to send now.
    pub fn poll(&mut self) -> Option<Report> {
        if !core::mem::take(&mut self.due) {
            return None;
        }
        self.told = self.alloc();
        let selective = self.config.repair == Repair::Selective;
        let spans = self.spans.iter().take(MOST_SPANS).filter(|_| selective);
        Some(Report {
            rseq: self.rseq,
            alloc: self.told,
            echo: self.echo,
            gap: !self.spans.is_empty(),
            spans: spans.map(|(&from, &to)| (from, to)).collect(),
        })
    }
}
