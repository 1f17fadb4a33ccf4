//! Which frames can be decoded: a frame can if its data arrived in time and the frames that it is coded from can be
//! decoded.

use crate::frame::FrameType as Type;

/// Processes frames in coding order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decoder {
    /// Whether the last anchor (I or P frame) can be decoded, and whether the one before it can.
    anchors: [bool; 2],
}

impl Decoder {
    /// Whether the next frame can be decoded; `complete`: all its data arrived in time.
    pub(super) fn next(&mut self, kind: Type, complete: bool) -> bool {
        let [last, before] = self.anchors;
        let decodable = complete
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
        assert_eq!(decode(order, &[2]), "++-+++++++++++++", "no frame is coded from a B frame");
        assert_eq!(
            decode(order, &[4]),
            "++++------+--+++",
            "without a P frame, no frame can be decoded until the next I frame, nor the B frames that follow that I frame"
        );
        assert_eq!(decode(order, &[0]), "----------+--+++");
        assert_eq!(
            decode(order, &[10]),
            "++++++++++------",
            "without an I frame, none of its group can be decoded"
        );
    }
}
