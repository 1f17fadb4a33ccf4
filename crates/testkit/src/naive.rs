//! RFC 6675 to the letter: a list that is walked to answer each question.

use skyhaul_tcp::{NextSeg, Scoreboard};

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    from: u64,
    to: u64,
    sacked: bool,
    /// Lost by an earlier judgement, a timeout, or duplicate acknowledgements that the rules do not cover.
    decreed: bool,
}

/// The scoreboard of RFC 6675, over whole segments.
#[derive(Clone, Debug)]
pub struct Naive {
    sent: Vec<Sent>,
    una: u64,
    max: u64,
    /// `HighRxt`: end of the highest segment retransmitted in this episode.
    high_rxt: u64,
    /// End of the highest octet covered by any selective acknowledgement.
    high_sacked: u64,
    rescued: bool,
    dup_thresh: u32,
    smss: u32,
}

impl Naive {
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
    fn bytes(&self, mut which: impl FnMut(usize, &Sent) -> bool) -> u64 {
        self.sent.iter().enumerate().filter(|(i, s)| which(*i, s)).map(|(_, s)| s.to - s.from).sum()
    }
}

/// Bytes read as numbers; zeros after the end.
#[derive(Clone, Debug)]
pub struct Tape<'a>(pub &'a [u8]);

impl Tape<'_> {
    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&b, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        b
    }
    /// A number below `n` (0 if `n` is 0).
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n.max(1)
    }
    /// Two bytes.
    pub fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }
    /// True at the end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Runs the operations that `data` spells on the scoreboard and on its literal version.
///
/// # Panics
/// If they differ.
pub fn scoreboard_ops(data: &[u8]) {
    const MSS: u32 = 1000;
    let mut tape = Tape(data);
    let dup_thresh = 1 + u32::from(tape.byte() % 4);
    let start = u64::from(tape.byte());
    let mut fast = Scoreboard::new(start, dup_thresh, MSS);
    let mut slow = Naive::new(start, dup_thresh, MSS);
    // After a timeout the sender goes back instead of asking NextSeg, until all of it is acknowledged.
    let mut going_back_until = start;
    let mut high_rxt = start;
    while !tape.is_empty() {
        let n = slow.sent.len();
        match tape.byte() % 16 {
            0..=4 if n < 48 => {
                let span = if tape.byte() % 4 == 0 { 1 + u32::from(tape.word()) % MSS } else { MSS };
                fast.send(span);
                slow.send(span);
            }
            5 if n > 0 => {
                let ack = slow.sent[tape.below(n)].to;
                fast.apply(ack, &[]);
                slow.apply(ack, &[]);
            }
            6 if n > 0 => {
                let s = slow.sent[tape.below(n.min(3))];
                let ack = s.from + u64::from(tape.word()) % (s.to - s.from);
                fast.apply(ack, &[]);
                slow.apply(ack, &[]);
            }
            7..=9 if n > 1 => {
                let mut blocks = Vec::new();
                for _ in 0..=tape.below(3) {
                    let i = tape.below(n);
                    let j = (i + tape.below(4)).min(n - 1);
                    blocks.push((slow.sent[i].from, slow.sent[j].to));
                }
                let ack = if tape.byte() % 8 == 0 { slow.sent[0].to } else { slow.una };
                fast.apply(ack, &blocks);
                slow.apply(ack, &blocks);
            }
            11..=13 if slow.una >= going_back_until => {
                let new = tape.byte() % 4 == 0 && n < 48;
                let want = slow.next_seg(new);
                let got = fast.next_seg(new).or_else(|| fast.rescue());
                assert_eq!(got, want, "NextSeg with new data: {new}");
                match want {
                    Some(NextSeg::Lost(i) | NextSeg::Hole(i)) => {
                        fast.retransmit(i, skyhaul_base::Instant::ZERO);
                        slow.retransmit(i);
                    }
                    Some(NextSeg::New) => {
                        fast.send(MSS);
                        slow.send(MSS);
                    }
                    _ => {}
                }
            }
            14 if n > 0 && slow.una >= going_back_until && !slow.sent[0].sacked => {
                let keep = tape.byte() % 4 == 0;
                fast.begin_episode(keep);
                slow.begin_episode(keep);
                fast.mark_head_lost();
                slow.mark_head_lost();
                fast.retransmit(0, skyhaul_base::Instant::ZERO);
                slow.retransmit(0);
            }
            15 if tape.byte() % 4 == 0 => {
                let keep = tape.byte() % 2 == 0;
                fast.timeout(keep);
                slow.timeout(keep);
                going_back_until = slow.max;
                high_rxt = slow.una;
            }
            10 if slow.una < going_back_until => {
                // The next step of going back.
                let next = slow.sent.iter().position(|s| !s.sacked && s.to > high_rxt);
                if let Some(i) = next.filter(|&i| slow.sent[i].to <= going_back_until) {
                    high_rxt = slow.sent[i].to;
                    fast.retransmit(i, skyhaul_base::Instant::ZERO);
                    slow.retransmit(i);
                }
            }
            _ => {}
        }
        compare(&fast, &slow);
    }
}

fn compare(fast: &Scoreboard, slow: &Naive) {
    assert_eq!((fast.una(), fast.max(), fast.len()), (slow.una, slow.max, slow.sent.len()));
    for (i, s) in slow.sent.iter().enumerate() {
        let want = !s.sacked && slow.is_lost(i);
        assert_eq!(fast.is_lost(i), want, "segment {i} lost\n{fast:?}\n{slow:?}");
    }
    assert_eq!(fast.sacked(), slow.bytes(|_, s| s.sacked), "sacked");
    assert_eq!(fast.lost(), slow.bytes(|i, s| !s.sacked && slow.is_lost(i)), "lost");
    assert_eq!(fast.pipe(), slow.pipe(), "pipe\n{fast:?}\n{slow:?}");
    assert_eq!(fast.head_lost(), slow.sent.first().is_some_and(|s| !s.sacked && slow.is_lost(0)));
}
