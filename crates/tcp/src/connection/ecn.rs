//! Explicit congestion notification (RFC 3168): what was agreed on, and what either end owes the other.

use super::Connection;
use crate::config::Ecn;
use crate::segment::{Codepoint, Flags, Mark, Segment};
use crate::sender::Out;
use crate::store::Store;

/// State of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Notification {
    /// Both ends take part.
    pub(super) agreed: bool,
    /// Our SYN asked for it.
    asked: bool,
    /// A mark has arrived, and the peer has not yet said that it reduced its window (§6.1.3).
    echo: bool,
}

const BOTH: Flags = Flags::ECE.with(Flags::CWR);

impl<S: Store> Connection<S> {
    /// Flags of a SYN, or of its answer. A SYN that is repeated asks for nothing: there may be boxes on the way that drop such
    /// SYNs (§6.1.1.1).
    pub(super) fn ecn_of_syn(&mut self, answering: bool) -> Flags {
        let first = self.handshake.tries == 1;
        self.ecn.asked = !answering && first && self.config.ecn == Ecn::Ask;
        match answering {
            true if self.ecn.agreed => Flags::ECE,
            false if self.ecn.asked => BOTH,
            _ => Flags::NONE,
        }
    }

    /// The peer's SYN: it asks by both flags, and grants by one of them (§6.1.1).
    pub(super) fn agree_on_ecn(&mut self, seg: &Segment) {
        let (ece, cwr) = (seg.flags.has(Flags::ECE), seg.flags.has(Flags::CWR));
        self.ecn.agreed = if seg.flags.has(Flags::ACK) {
            self.ecn.asked && ece && !cwr
        } else {
            self.config.ecn != Ecn::Off && ece && cwr
        };
    }

    /// A segment was accepted that may be marked, or says that the peer has heard of a mark. Probes are never capable of marks.
    #[inline]
    pub(super) fn take_notification(&mut self, seg: &Segment) {
        if self.ecn.agreed {
            let heard = seg.flags.has(Flags::CWR);
            // A mark on a pure acknowledgement concerns those, not our window.
            let marked = seg.ecn == Codepoint::Marked && seg.span() > 0;
            self.ecn.echo = marked || self.ecn.echo && !heard;
        }
    }

    /// Acknowledgements whose number answers congestion may be marked (RFC 5690 §4.1, against RFC 3168 §6.1.4).
    pub(super) fn let_ack_be_marked(&self, seg: &mut Segment) {
        if self.ecn.agreed {
            seg.ecn = Codepoint::Capable;
        }
    }

    /// An echo means something only where it was agreed on.
    pub(super) fn is_echo(&self, seg: &Segment) -> bool {
        self.ecn.agreed && seg.flags.has(Flags::ECE)
    }

    /// Flags that every segment with an acknowledgement carries.
    #[inline]
    pub(super) fn ecn_flags(&self) -> Flags {
        if self.ecn.echo { Flags::ECE } else { Flags::NONE }
    }

    /// What leaves for the first time may be marked, and the first of it says that the window was reduced (§6.1.2, §6.1.5).
    #[inline]
    pub(super) fn notify(&mut self, seg: &mut Segment, out: &Out) {
        if !self.ecn.agreed || out.mark != Mark::None {
            return;
        }
        let new = out.first && out.len > 0;
        if new || self.config.ecn_plus {
            seg.ecn = Codepoint::Capable;
        }
        if new && self.sender.take_reduction() {
            seg.flags = seg.flags.with(Flags::CWR);
        }
    }
}
