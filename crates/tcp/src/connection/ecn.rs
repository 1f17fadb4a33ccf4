//! Explicit congestion notification (RFC 3168): the negotiation, and the duties of both ends.

use super::Connection;
use crate::config::Ecn;
use crate::segment::{Codepoint, Flags, Mark, Segment};
use crate::sender::OutgoingSegment;
use crate::store::Store;

/// State of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Notification {
    /// ECN was negotiated.
    pub(super) agreed: bool,
    /// Our first SYN offered ECN.
    asked: bool,
    /// A CE mark has arrived, and the peer has not yet signalled CWR (§6.1.3).
    echo: bool,
}

const BOTH: Flags = Flags::ECE.with(Flags::CWR);

impl<S: Store> Connection<S> {
    /// ECN flags of a SYN or SYN-ACK. A retransmitted SYN offers nothing: middleboxes may drop SYNs with ECN
    /// (§6.1.1.1). The first SYN may have arrived all the same, and the peer then marks its data as ECN-capable: a SYN-ACK
    /// that grants ECN still concludes the negotiation (§6.1.1).
    pub(super) fn ecn_of_syn(&mut self, answering: bool) -> Flags {
        if answering {
            return if self.ecn.agreed { Flags::ECE } else { Flags::NONE };
        }
        let offers = self.handshake.tries == 1 && self.config.ecn == Ecn::Ask;
        self.ecn.asked |= offers;
        if offers { BOTH } else { Flags::NONE }
    }

    /// Takes the ECN flags of the peer's SYN or SYN-ACK: ECE and CWR request ECN, ECE alone grants it (§6.1.1).
    pub(super) fn agree_on_ecn(&mut self, seg: &Segment) {
        let (ece, cwr) = (seg.flags.has(Flags::ECE), seg.flags.has(Flags::CWR));
        self.ecn.agreed = if seg.flags.has(Flags::ACK) {
            self.ecn.asked && ece && !cwr
        } else {
            self.config.ecn != Ecn::Off && ece && cwr
        };
    }

    /// Processes the marks and ECN flags of an accepted segment. Probes are never ECN-capable.
    #[inline]
    pub(super) fn take_notification(&mut self, seg: &Segment) {
        if self.ecn.agreed {
            let reduced = seg.flags.has(Flags::CWR);
            // A mark on a pure acknowledgement concerns the ACK ratio, not our window.
            let marked = seg.ecn == Codepoint::Marked && seg.span() > 0;
            self.ecn.echo = marked || self.ecn.echo && !reduced;
        }
    }

    /// Acknowledgements under congestion control may be marked (RFC 5690 §4.1, contrary to RFC 3168 §6.1.4).
    pub(super) fn let_ack_be_marked(&self, seg: &mut Segment) {
        if self.ecn.agreed {
            seg.ecn = Codepoint::Capable;
        }
    }

    /// Whether ECE is an echo, which requires the negotiation of ECN.
    pub(super) fn is_echo(&self, seg: &Segment) -> bool {
        self.ecn.agreed && seg.flags.has(Flags::ECE)
    }

    /// ECN flags of every segment with an acknowledgement.
    #[inline]
    pub(super) fn ecn_flags(&self) -> Flags {
        if self.ecn.echo { Flags::ECE } else { Flags::NONE }
    }

    /// Lets routers mark new data or, with `ecn_plus`, whatever the sending half sends but probes. The first new segment
    /// after a reduction of the window signals it with CWR (§6.1.2, §6.1.5).
    #[inline]
    pub(super) fn notify(&mut self, seg: &mut Segment, out: &OutgoingSegment) {
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
