//! Which frames can be decoded: those whose data arrived in time, if those they are coded from can be decoded, too.

use crate::frame::FrameType as Type;

/// Processes frames in coding order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decoder {
    /// Whether the last anchor and the one before it can be decoded.
    anchors: [bool; 2],
}

impl Decoder {
    /// Whether the next frame can be decoded; `there`: all its data arrived.
    pub(super) fn next(&mut self, kind: Type, there: bool) -> bool {
        let [last, before] = self.anchors;
        let decodable = there
            && match kind {
                Type::I => true,
                Type::P => last,
                Type::B => last && before,
            };
        if kind.is_anchor() {
            self.anchors = [decodable, last];
        }
        decodable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_lost_frame_takes_with_it() {
        let decode = |kinds: &str, lost: &[usize]| -> String {
            let mut d = Decoder::default();
            let one = |(i, letter)| d.next(Type::of(letter).unwrap(), !lost.contains(&i));
            kinds.chars().enumerate().map(one).map(|ok| if ok { '+' } else { '-' }).collect()
        };
        //                 0123456789012345
        let order = "IPBBPBBPBBIBBPBB";
        assert_eq!(decode(order, &[]), "++++++++++++++++");
        assert_eq!(decode(order, &[2]), "++-+++++++++++++", "nothing is coded from B");
        assert_eq!(
            decode(order, &[4]),
            "++++------+--+++",
            "a P takes all until the next I, and B before that"
        );
        assert_eq!(decode(order, &[0]), "----------+--+++");
        assert_eq!(decode(order, &[10]), "++++++++++------", "and an I those behind it");
    }
}
