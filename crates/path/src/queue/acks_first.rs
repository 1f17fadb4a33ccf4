//! Pure acknowledgements before data (RFC 3449 §5.4.2): with data in both directions, they do not wait behind much
//! longer packets. No transmission is interrupted, and each of the two classes is served in order of arrival. All
//! share one limit; nothing is pushed out.

use super::acks::{Lines, Waiting};
use super::limit::Load;
use super::model::{Order, without_options};
use super::moment::Moment;
use crate::packet::{DropReason, PacketView};

without_options! {
    /// Serves pure TCP acknowledgements before data.
    AcksFirst, "acknowledgements served before data", blind: false, AcksFirst { lines: Lines::new(true) }
}

/// The packets that wait.
#[derive(Clone, Debug)]
pub struct AcksFirst<P> {
    lines: Lines<P>,
}

impl<P: PacketView> Order<P> for AcksFirst<P> {
    fn enqueue(
        &mut self,
        _: &mut Moment<'_>,
        p: P,
        held: &mut Load,
        limit: Load,
        _: u32,
        lost: &mut impl FnMut(P, DropReason),
    ) -> bool {
        self.lines.push(Waiting::new(p), held, limit, lost)
    }
    fn dequeue(&mut self, _: &mut Moment<'_>, _: &mut Load, _: &mut impl FnMut(P, DropReason)) -> Option<P> {
        self.lines.pop()
    }
}
