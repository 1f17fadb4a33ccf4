//! Explicit congestion notification (RFC 3168) and accurate ECN (RFC 9768): the negotiation, and the duties of both ends.

use super::{Connection, State};
use crate::accecn::{Echo, Feedback, handshake_encoding};
use crate::config::Ecn;
use crate::segment::{Codepoint, Flags, Mark, Segment};
use crate::sender::OutgoingSegment;
use crate::store::Store;
use alloc::boxed::Box;

/// State of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Notification {
    /// ECN was negotiated: the classic or the accurate one.
    pub(super) agreed: bool,
    /// One of our SYNs offered ECN.
    asked: bool,
    /// A CE mark has arrived, and the peer has not yet signalled CWR (RFC 3168 §6.1.3).
    echo: bool,
    /// ECT is not set on any packet (RFC 3168 §6.1.1, RFC 9768 §3.1.5, §3.2.2.1 note 1, §3.2.2.3).
    forbids_ect: bool,
    /// Present with accurate ECN.
    accurate: Option<Box<Accurate>>,
}

/// State of a connection with accurate ECN.
#[derive(Clone, Debug)]
struct Accurate {
    echo: Echo,
    /// The ECN field of the peer's latest SYN or SYN-ACK.
    syn: Codepoint,
    /// Our next segment is the first one after the handshake: as a pure acknowledgement it tells the peer the field of its SYN-ACK
    /// (§3.2.2.1).
    tells_syn: bool,
    /// A pure acknowledgement tells us the field of our SYN-ACK.
    hears_syn: bool,
    /// Feedback is ignored (§3.2.2.1 note 1).
    ignores_feedback: bool,
}

impl Accurate {
    fn new(marked: bool) -> Self {
        Self {
            echo: Echo::new(marked),
            syn: Codepoint::NotCapable,
            tells_syn: false,
            hears_syn: false,
            ignores_feedback: false,
        }
    }
}

const BOTH: Flags = Flags::ECE.with(Flags::CWR);

impl Notification {
    /// With accurate ECN.
    pub(super) fn is_accurate(&self) -> bool {
        self.accurate.is_some()
    }
}

impl<S: Store> Connection<S> {
    /// ECN flags of a SYN or SYN-ACK. A retransmitted SYN offers no classic ECN, and accurate ECN only once more: middleboxes may
    /// drop SYNs with ECN (RFC 3168 §6.1.1.1, RFC 9768 §3.1.4.1).
    pub(super) fn ecn_of_syn(&mut self, answering: bool) -> Flags {
        let tries = self.handshake.tries;
        if answering {
            return match &self.ecn.accurate {
                // §3.2.3.2.2: after two losses a SYN-ACK without, which forbids ECT.
                Some(_) if tries > 2 => {
                    self.ecn.forbids_ect = true;
                    Flags::NONE
                }
                Some(accurate) => handshake_encoding(accurate.syn),
                None if self.ecn.agreed => Flags::ECE,
                None => Flags::NONE,
            };
        }
        let offers = match self.config.ecn {
            Ecn::Ask if tries == 1 => BOTH,
            Ecn::Accurate if tries <= 2 => Flags::ECN,
            _ => Flags::NONE,
        };
        // The peer may have received an earlier SYN, and then uses ECN: its SYN-ACK still concludes the negotiation.
        self.ecn.asked |= offers != Flags::NONE;
        offers
    }

    /// Takes the ECN flags of the peer's SYN or SYN-ACK: RFC 3168 §6.1.1, RFC 9768 §3.1.1 to §3.1.3.
    pub(super) fn agree_on_ecn(&mut self, seg: &Segment) {
        let ace = seg.flags.ace();
        let answer = seg.flags.has(Flags::ACK);
        let accurate = self.config.ecn == Ecn::Accurate;
        if !answer {
            // Reserved combinations ask for accurate ECN, too (§3.1.3).
            if accurate && !matches!(ace, 0b000 | 0b011) {
                self.begin_accurate(false);
                if let Some(a) = &mut self.ecn.accurate {
                    (a.syn, a.hears_syn) = (seg.ecn, true);
                }
            }
            let classic = if accurate { ace == 0b011 } else { seg.flags.has(BOTH) };
            self.ecn.agreed = self.ecn.is_accurate() || self.config.ecn != Ecn::Off && classic;
            return;
        }
        // 111 is the reflection of a broken server.
        if accurate && self.ecn.asked && !matches!(ace, 0b000 | 0b001 | 0b111) {
            self.begin_accurate(seg.ecn == Codepoint::Marked);
            if let Some(a) = &mut self.ecn.accurate {
                (a.syn, a.tells_syn) = (seg.ecn, true);
                // Our SYN was not ECN-capable: that it arrived otherwise shows mangling (§3.2.2.3). 101 is reserved (§3.1.3).
                self.ecn.forbids_ect = !matches!(ace, 0b010 | 0b101);
            }
        }
        let granted =
            self.ecn.asked && if accurate { ace == 0b001 } else { seg.flags.has(Flags::ECE) && ace & 2 == 0 };
        self.ecn.agreed = self.ecn.is_accurate() || granted;
    }

    /// Accurate ECN is used in both directions; `marked`: the peer's SYN-ACK arrived with CE.
    pub(super) fn begin_accurate(&mut self, marked: bool) {
        self.ecn.agreed = true;
        self.ecn.accurate = Some(Box::new(Accurate::new(marked)));
        self.sender.count_marks(false);
    }

    /// The peer repeats its SYN, before the end of the handshake. The mode stays (RFC 9768 §3.1.5), but a SYN without ECN forbids ECT
    /// (also RFC 3168 §6.1.1).
    pub(super) fn repeat_ecn(&mut self, seg: &Segment) {
        if let Some(a) = &mut self.ecn.accurate {
            a.syn = seg.ecn;
        }
        self.ecn.forbids_ect |= seg.flags.ace() == 0 && !seg.flags.has(Flags::ACK);
    }

    /// Processes the marks and ECN flags of an accepted segment. Probes are never ECN-capable.
    #[inline]
    pub(super) fn take_notification(&mut self, seg: &Segment) {
        if !self.ecn.agreed {
            return;
        }
        if let Some(accurate) = &mut self.ecn.accurate {
            if accurate.echo.arrived(seg.ecn, seg.len) {
                self.receiver.ack_now();
            }
            return;
        }
        let reduced = seg.flags.has(Flags::CWR);
        // A mark on a pure acknowledgement concerns the ACK ratio, not our window.
        let marked = seg.ecn == Codepoint::Marked && seg.span() > 0;
        self.ecn.echo = marked || self.ecn.echo && !reduced;
    }

    /// Acknowledgements under congestion control may be marked (RFC 5690 §4.1, contrary to RFC 3168 §6.1.4).
    pub(super) fn let_ack_be_marked(&self, seg: &mut Segment) {
        if self.ecn.agreed {
            seg.ecn = self.codepoint();
        }
    }

    /// The codepoint of ECN-capable packets: ECT(1) only with a scalable control and accurate feedback (RFC 9331 §4.1, §4.2).
    fn codepoint(&self) -> Codepoint {
        match &self.ecn.accurate {
            _ if self.ecn.forbids_ect => Codepoint::NotCapable,
            Some(_) if self.sender.is_scalable() => Codepoint::Scalable,
            _ => Codepoint::Capable,
        }
    }

    /// Whether ECE is an echo, which requires the negotiation of classic ECN.
    pub(super) fn is_echo(&self, seg: &Segment) -> bool {
        self.ecn.agreed && !self.ecn.is_accurate() && seg.flags.has(Flags::ECE)
    }

    /// The feedback of accurate ECN in a segment other than a SYN.
    pub(super) fn feedback(&mut self, seg: &Segment) -> Option<Feedback> {
        let accurate = self.ecn.accurate.as_mut()?;
        let hears = core::mem::take(&mut accurate.hears_syn);
        if seg.flags.has(Flags::SYN) {
            return None;
        }
        // Table 4: what a pure acknowledgement says in SYN-RECEIVED is no counter.
        if hears && seg.len == 0 && seg.sack.is_empty() {
            match seg.flags.ace() {
                0b000 => (self.ecn.forbids_ect, accurate.ignores_feedback) = (true, true),
                // Our SYN-ACK is not ECN-capable, so anything else shows mangling (§3.2.2.3).
                0b011 | 0b100 => self.ecn.forbids_ect = true,
                0b110 => {
                    self.ecn.forbids_ect = true;
                    self.sender.count_marks(true);
                }
                _ => {}
            }
            return None;
        }
        let ce_bytes = seg.ecn_bytes.map(|b| b.ce);
        (!accurate.ignores_feedback).then_some(Feedback { ace: seg.flags.ace(), ce_bytes })
    }

    /// ECN flags of every segment with an acknowledgement but a SYN-ACK.
    #[inline]
    pub(super) fn ecn_flags(&mut self) -> Flags {
        match &mut self.ecn.accurate {
            Some(accurate) if self.state != State::SynSent => {
                accurate.tells_syn = false;
                accurate.echo.feed_back()
            }
            None if self.ecn.echo => Flags::ECE,
            _ => Flags::NONE,
        }
    }

    /// A pure acknowledgement is about to leave, from [`Connection::segment`] with its ACE field. The first one after the
    /// handshake tells the field of the SYN-ACK instead (`tells`), and some carry the option.
    pub(super) fn feed_back(&mut self, seg: &mut Segment, tells: bool) {
        let Some(accurate) = &mut self.ecn.accurate else { return };
        if tells && seg.sack.is_empty() {
            let others = Flags::from_bits(seg.flags.bits() & !Flags::ECN.bits());
            seg.flags = others.with(handshake_encoding(accurate.syn));
        }
        seg.ecn_bytes = accurate.echo.option();
    }
    /// Whether the next pure acknowledgement tells the field of the SYN-ACK.
    pub(super) fn tells_syn(&self) -> bool {
        self.ecn.accurate.as_ref().is_some_and(|a| a.tells_syn)
    }

    /// Lets routers mark new data or, with `ecn_plus`, whatever the sending half sends but probes. The first new segment
    /// after a reduction of the window signals it with CWR (RFC 3168 §6.1.2, §6.1.5), but not with accurate ECN (RFC 9768 §3.1.5).
    #[inline]
    pub(super) fn notify(&mut self, seg: &mut Segment, out: &OutgoingSegment) {
        if !self.ecn.agreed || out.mark != Mark::None {
            return;
        }
        let new = out.first && out.len > 0;
        if new || self.config.ecn_plus {
            seg.ecn = self.codepoint();
        }
        if new && !self.ecn.is_accurate() && self.sender.take_reduction() {
            seg.flags = seg.flags.with(Flags::CWR);
        }
    }
}
