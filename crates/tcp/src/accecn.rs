//! Accurate ECN (RFC 9768): what the receiving half counts and feeds back, and what the sending half infers from it.

use crate::config::{Config, Ecn};
use crate::segment::{Codepoint, EcnBytes, Flags};

/// In how many acknowledgements in a row a change of the byte counters is repeated, so that it survives the loss of some.
const REPEATS: u8 = 3;
/// While the same counter goes on to increase, every so many acknowledgements carry the option (§3.2.3.3, continual repetition: the
/// implementer chooses the number).
const EVERY: u8 = 32;
/// The option is due after this many bytes at the latest: the RFC asks for it once for every 2^22 (§3.2.3.3).
const MOST_BYTES: u32 = 1 << 21;
/// CE marks after which an acknowledgement is due at once, with data to acknowledge and without (§3.2.2.5.1).
const MARKS_WITH_DATA: u8 = 2;
const MARKS_WITHOUT: u8 = 3;
/// Initial value of the counters of CE-marked packets (§3.2.1).
const FIRST_CEP: u32 = 5;

impl Config {
    /// Whether both ends use accurate ECN.
    #[must_use]
    pub fn agrees_on_accurate_ecn(&self, peer: &Self) -> bool {
        (self.ecn, peer.ecn) == (Ecn::Accurate, Ecn::Accurate)
    }
}

/// The ECN field of a SYN or SYN-ACK as the flags of the answer express it (§3.1.1, table 2, and §3.2.2.1, table 3).
pub(crate) const fn handshake_encoding(ecn: Codepoint) -> Flags {
    Flags::of_ace(match ecn {
        Codepoint::NotCapable => 0b010,
        Codepoint::Scalable => 0b011,
        Codepoint::Capable => 0b100,
        Codepoint::Marked => 0b110,
    })
}

/// The counters of a data receiver (§3.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echo {
    /// `r.cep`: packets that arrived with CE.
    cep: u32,
    /// `r.e0b`, `r.ceb` and `r.e1b`: bytes of payload by the field with which they arrived.
    bytes: EcnBytes,
    /// The field of the last packet.
    previous: Codepoint,
    /// CE marks since the last acknowledgement.
    marks: u8,
    /// How many more acknowledgements will carry the option.
    due: u8,
    /// Bytes that have increased the counters since the last option.
    untold: u32,
    /// Acknowledgements since the last option.
    without: u8,
}

impl Echo {
    /// At the start of a connection; `marked`: the SYN-ACK arrived with CE, which counts as one packet (§3.2.2.2).
    pub(crate) const fn new(marked: bool) -> Self {
        Self {
            cep: FIRST_CEP + marked as u32,
            bytes: EcnBytes::INITIAL,
            previous: Codepoint::NotCapable,
            marks: 0,
            due: REPEATS,
            untold: 0,
            without: 0,
        }
    }

    /// Counts an acceptable packet with `len` bytes of payload. True if an acknowledgement is due at once: the first mark after
    /// a packet without, or several marks since the last acknowledgement (§3.2.2.5.1).
    pub(crate) fn arrived(&mut self, ecn: Codepoint, len: u32) -> bool {
        let changed = self.previous != ecn;
        self.previous = ecn;
        let counter = match ecn {
            Codepoint::NotCapable => None,
            Codepoint::Capable => Some(&mut self.bytes.ect0),
            Codepoint::Scalable => Some(&mut self.bytes.ect1),
            Codepoint::Marked => Some(&mut self.bytes.ce),
        };
        if let Some(counter) = counter.filter(|_| len > 0) {
            *counter = counter.wrapping_add(len) & EcnBytes::MASK;
            self.untold = self.untold.saturating_add(len);
            // The option follows changes, and every mark (§3.2.3.3).
            if changed || ecn == Codepoint::Marked {
                self.due = REPEATS;
            }
        }
        if ecn != Codepoint::Marked {
            return false;
        }
        self.cep = self.cep.wrapping_add(1);
        self.marks = self.marks.saturating_add(1);
        changed && len > 0 || self.marks >= if len > 0 { MARKS_WITH_DATA } else { MARKS_WITHOUT }
    }

    /// The ACE field of a segment that leaves now, as flags.
    pub(crate) fn feed_back(&mut self) -> Flags {
        self.marks = 0;
        Flags::of_ace((self.cep & 7) as u8)
    }

    /// The option, if an acknowledgement that leaves now carries it.
    pub(crate) fn option(&mut self) -> Option<EcnBytes> {
        self.without = self.without.saturating_add(1);
        if self.untold > 0 && (self.without >= EVERY || self.untold >= MOST_BYTES) {
            self.due = self.due.max(1);
        }
        self.due = self.due.checked_sub(1)?;
        (self.untold, self.without) = (0, 0);
        Some(self.bytes)
    }
}

/// The feedback in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The ACE field.
    pub ace: u8,
    /// Bytes that arrived with CE, from the option: their lowest 24 bits.
    pub ce_bytes: Option<u32>,
}

/// The counters of a data sender (§3.2).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    /// `s.cep`.
    cep: u32,
    /// `s.ceb`, its lowest 24 bits.
    ceb: u32,
    /// Marks that were counted since the last option; `None` before the first one.
    since: Option<u32>,
    /// Marks that were fed back since the start of the connection.
    total: u64,
}

impl Tally {
    /// At the start of a connection; `marked`: our SYN-ACK arrived with CE.
    pub(crate) const fn new(marked: bool) -> Self {
        Self { cep: FIRST_CEP + marked as u32, ceb: EcnBytes::INITIAL.ce, since: None, total: 0 }
    }
    /// Marks counted so far.
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// Takes the feedback of an acknowledgement that newly reports `delivered` bytes as received, in segments of `smss` bytes.
    /// Returns how many more packets arrived with CE. The three bits of ACE tell this number modulo 8. The option tells how often
    /// they wrapped; without options, the safest likely case counts (§3.2.2.5.2 and Appendix A.2).
    pub(crate) fn take(&mut self, feedback: Feedback, delivered: u64, smss: u32) -> u32 {
        let least = u32::from(feedback.ace).wrapping_sub(self.cep) & 7;
        let smss = u64::from(smss.max(1));
        let delivered = delivered.div_ceil(smss).min(u64::from(u32::MAX)) as u32;
        let more = match feedback.ce_bytes {
            Some(ceb) => {
                let bytes = ceb.wrapping_sub(self.ceb) & EcnBytes::MASK;
                // As many wraps of the three bits as fit the bytes best.
                let packets = u64::from(bytes).div_ceil(smss) as u32;
                // Before the first option the bytes cover all marks.
                let known = self.since.unwrap_or(self.total as u32).saturating_add(least);
                self.ceb = ceb & EcnBytes::MASK;
                (packets.saturating_sub(known) + 4) / 8 * 8 + least
            }
            None if self.since.is_some() || delivered < 8 => least,
            None => delivered - (delivered.wrapping_sub(least) & 7),
        };
        self.since = match feedback.ce_bytes {
            Some(_) => Some(0),
            None => self.since.map(|n| n.saturating_add(more)),
        };
        self.cep = self.cep.wrapping_add(more);
        self.total += u64::from(more);
        more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const CE: Codepoint = Codepoint::Marked;
    const ECT1: Codepoint = Codepoint::Scalable;

    #[test]
    fn marks_trigger_acknowledgements_as_the_rfc_says() {
        let mut e = Echo::new(false);
        // The first mark after a packet without, then each second one.
        assert!(!e.arrived(ECT1, 1000) && e.arrived(CE, 1000));
        assert_eq!(e.feed_back().ace(), 6);
        assert!(!e.arrived(CE, 1000) && e.arrived(CE, 1000));
        assert_eq!(e.feed_back().ace(), 0, "5 + 3 marks, modulo 8");
        assert!(!e.arrived(ECT1, 1000));
        // Segments without data: the third mark.
        assert!(!e.arrived(CE, 0) && !e.arrived(CE, 0) && e.arrived(CE, 0));
        // Any number of segments may arrive before an acknowledgement leaves.
        assert!((0..1000).all(|_| e.arrived(CE, 1000)));
    }

    #[test]
    fn the_option_follows_changes_and_marks() {
        let mut e = Echo::new(false);
        let options = |e: &mut Echo| (0..10).filter(|_| e.option().is_some()).count();
        assert_eq!(options(&mut e), 3, "the first acknowledgements");
        e.arrived(ECT1, 1000);
        assert_eq!(options(&mut e), 3);
        e.arrived(ECT1, 1000);
        assert_eq!(options(&mut e), 0);
        e.arrived(CE, 500);
        assert_eq!(e.option(), Some(EcnBytes { ect0: 1, ce: 500, ect1: 2001 }));
        e.arrived(CE, 0xff_ffff);
        assert_eq!(e.option().map(|b| b.ce), Some(499), "24 bits");
    }

    #[test]
    fn a_counter_that_goes_on_to_increase_is_repeated() {
        let mut e = Echo::new(false);
        let mut told = Vec::new();
        for n in 0..10 * u32::from(EVERY) {
            e.arrived(ECT1, 1000);
            told.extend(e.option().map(|b| (n, b.ect1)));
        }
        // Three after the first packet, and then one in 32.
        assert_eq!(told.len(), 3 + 9, "{told:?}");
        assert!(told.windows(2).all(|w| w[1].0 - w[0].0 <= u32::from(EVERY)));
        assert_eq!(told.last(), Some(&(2 + 9 * 32, 1 + 1000 * (3 + 9 * 32))));
        // Without more data there is nothing to tell.
        assert_eq!((0..EVERY).filter(|_| e.option().is_some()).count(), 1);
        assert!((0..1000).all(|_| !e.arrived(ECT1, 0) && e.option().is_none()));
        // Acknowledgements of 1 MiB each: never more than 2^22 bytes without the option.
        let mut since = 0;
        for _ in 0..1000 {
            e.arrived(ECT1, 1 << 20);
            since += 1 << 20;
            if e.option().is_some() {
                since = 0;
            }
            assert!(since <= 1 << 22, "{since}");
        }
    }

    #[test]
    fn three_bits_mean_the_safest_likely_number() {
        let take = |tally: &mut Tally, ace, packets: u64| {
            tally.take(Feedback { ace, ce_bytes: None }, packets * 1000, 1000)
        };
        // Appendix A.2: without options, the largest number that the acknowledged packets allow.
        for (ace, packets, expected) in
            [(5, 1, 0), (6, 1, 1), (4, 7, 7), (5, 8, 8), (5, 9, 8), (6, 20, 17), (4, 20, 15), (5, 15, 8)]
        {
            let mut t = Tally::new(false);
            assert_eq!(take(&mut t, ace, packets), expected, "{ace} {packets}");
            assert_eq!(t.total(), u64::from(expected));
        }
        // More marks than newly acknowledged packets: the peer's acknowledgements count marks, too.
        assert_eq!(take(&mut Tally::new(false), 0, 1), 3);
    }

    #[test]
    fn the_option_says_how_often_the_three_bits_wrapped() {
        let mut t = Tally::new(false);
        let mut take =
            |ace, ce: Option<u32>, packets: u64| t.take(Feedback { ace, ce_bytes: ce }, packets * 1000, 1000);
        assert_eq!(take(5, Some(0), 100), 0);
        assert_eq!(take((5 + 20) & 7, Some(20_000), 100), 20);
        // Without the option this time: options arrive, so a wrap would have been told.
        assert_eq!(take((5 + 21) & 7, None, 100), 1);
        assert_eq!(take((5 + 37) & 7, Some(37_000), 100), 16);
        // Half-full packets, and three bits that wrap.
        assert_eq!(take((5 + 45) & 7, Some(41_000), 100), 8);
        // Marks that were counted before the first option are not counted again.
        let mut t = Tally::new(false);
        assert_eq!(t.take(Feedback { ace: 5, ce_bytes: None }, 16_000, 1000), 16);
        assert_eq!(t.take(Feedback { ace: 5, ce_bytes: Some(16_000) }, 0, 1000), 0);
    }

    #[test]
    fn whatever_arrives_is_counted_whatever_is_lost_of_the_feedback() {
        // A receiver of 10000 packets, a third of them marked at random; of its acknowledgements half are lost.
        let mut rng = skyhaul_base::Rng::stream(1, "test");
        let (mut echo, mut tally) = (Echo::new(false), Tally::new(false));
        let (mut marks, mut pending) = (0u64, 0);
        for n in 0..10_000 {
            let marked = rng.below(3) == 0;
            marks += u64::from(marked);
            pending += 1000;
            let now = echo.arrived(if marked { CE } else { ECT1 }, 1000);
            if now || n % 2 == 0 {
                let ace = echo.feed_back().ace();
                let ce_bytes = echo.option().map(|b| b.ce);
                if rng.below(2) == 0 || n == 9_999 {
                    tally.take(Feedback { ace, ce_bytes }, pending, 1000);
                    pending = 0;
                }
            }
        }
        let behind = marks - tally.total();
        assert!(behind < 8, "{marks} {}", tally.total());
    }
}
