//! RFC 6675 to the letter: a list that is walked to answer each question.

use skyhaul_tcp::NextSeg;

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Its first octet.
    pub from: u64,
    /// The octet after its last one.
    pub to: u64,
    /// It is selectively acknowledged.
    pub sacked: bool,
    /// Lost by an earlier judgement, a timeout, or duplicate acknowledgements that the rules do not cover.
    decreed: bool,
}

/// The scoreboard of RFC 6675, over whole segments.
#[derive(Clone, Debug)]
pub struct NaiveScoreboard {
    /// What is not cumulatively acknowledged, in order.
    pub sent: Vec<Sent>,
    /// `SND.UNA`.
    pub una: u64,
    /// End of everything sent.
    pub max: u64,
    /// `HighRxt`: end of the highest segment retransmitted in this episode.
    high_rxt: u64,
    /// End of the highest octet covered by any selective acknowledgement.
    high_sacked: u64,
    rescued: bool,
    dup_thresh: u32,
    smss: u32,
}

impl NaiveScoreboard {
    /// Nothing sent yet.
    #[must_use]
    pub fn new(start: u64, dup_thresh: u32, smss: u32) -> Self {
        Self {
            sent: Vec::new(),
            una: start,
            max: start,
            high_rxt: start,
            high_sacked: start,
            rescued: false,
            dup_thresh,
            smss,
        }
    }
    /// A new segment.
    pub fn send(&mut self, span: u32) {
        let from = self.max;
        self.max += u64::from(span);
        self.sent.push(Sent { from, to: self.max, sacked: false, decreed: false });
    }
    /// The segment at `i` is sent again.
    pub fn retransmit(&mut self, i: usize) {
        self.high_rxt = self.high_rxt.max(self.sent[i].to);
    }
    /// Cumulative and selective acknowledgement (`Update()`).
    pub fn apply(&mut self, ack: u64, blocks: &[(u64, u64)]) {
        self.una = self.una.max(ack);
        self.sent.retain(|s| s.to > ack);
        if let Some(s) = self.sent.first_mut() {
            s.from = s.from.max(ack);
        }
        for &(from, to) in blocks {
            if to <= self.una {
                continue;
            }
            for s in &mut self.sent {
                s.sacked |= from <= s.from && s.to <= to;
            }
            self.high_sacked = self.high_sacked.max(to.min(self.max));
        }
        // The one liberty taken: what was lost stays lost. To the letter, a segment can be found again when two
        // runs of small segments above it grow together.
        for i in 0..self.sent.len() {
            self.sent[i].decreed |= !self.sent[i].sacked && self.is_lost(i);
        }
    }
    /// `IsLost(SeqNum)`.
    #[must_use]
    pub fn is_lost(&self, i: usize) -> bool {
        let above = &self.sent[i + 1..];
        let bytes: u64 = above.iter().filter(|s| s.sacked).map(|s| s.to - s.from).sum();
        let mut runs = 0;
        for (k, s) in above.iter().enumerate() {
            runs += u32::from(s.sacked && (k == 0 || !above[k - 1].sacked));
        }
        let limit = u64::from(self.dup_thresh - 1) * u64::from(self.smss);
        self.sent[i].decreed || runs >= self.dup_thresh || bytes > limit
    }
    /// `SetPipe()`.
    #[must_use]
    pub fn pipe(&self) -> u64 {
        let mut pipe = 0;
        for (i, s) in self.sent.iter().enumerate().filter(|(_, s)| !s.sacked) {
            // (a) not lost; (b) retransmitted.
            pipe += if self.is_lost(i) { 0 } else { s.to - s.from };
            pipe += if s.to <= self.high_rxt { s.to - s.from } else { 0 };
        }
        pipe
    }
    /// `NextSeg()`, rules 1 to 4.
    pub fn next_seg(&mut self, new_data: bool) -> Option<NextSeg> {
        let holes: Vec<usize> = (0..self.sent.len())
            .filter(|&i| !self.sent[i].sacked && self.sent[i].to > self.high_rxt)
            .collect();
        let below = |i: usize| self.sent[i].to <= self.high_sacked;
        if let Some(&i) = holes.iter().find(|&&i| self.is_lost(i)) {
            return Some(NextSeg::Lost(i));
        }
        if new_data {
            return Some(NextSeg::New);
        }
        if let Some(&i) = holes.iter().find(|&&i| below(i)) {
            return Some(NextSeg::Hole(i));
        }
        let last = self.sent.iter().rposition(|s| !s.sacked)?;
        if core::mem::replace(&mut self.rescued, true) { None } else { Some(NextSeg::Rescue(last)) }
    }
    /// A recovery begins. `keep` continues `HighRxt`.
    pub fn begin_episode(&mut self, keep: bool) {
        self.rescued = false;
        if !keep {
            self.high_rxt = self.una;
        }
    }
    /// The oldest segment is lost whatever the rules say.
    pub fn mark_head_lost(&mut self) {
        if let Some(s) = self.sent.first_mut() {
            s.decreed |= !s.sacked;
        }
    }
    /// A timeout; without `keep` the selective acknowledgements are forgotten.
    pub fn timeout(&mut self, keep: bool) {
        self.begin_episode(false);
        for s in &mut self.sent {
            s.sacked &= keep;
            s.decreed |= !s.sacked;
        }
        if !keep {
            self.high_sacked = self.una;
        }
    }
    /// Bytes of the segments for which `which` holds.
    pub fn bytes(&self, mut which: impl FnMut(usize, &Sent) -> bool) -> u64 {
        self.sent.iter().enumerate().filter(|(i, s)| which(*i, s)).map(|(_, s)| s.to - s.from).sum()
    }
}
