//! The sequence of frame types.

use crate::frame::FrameType as Type;

/// The types of the frames of a group of pictures, from its I frame to the last one before the next I frame, in the order
/// of transmission: a frame follows those that it is coded from. The usual notation (`IBBPBBPBBPBB`) is read in this
/// order, so the B frames after an I frame are displayed before that I frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Box<[Type]>);

/// Maximum frames of a group of pictures.
const LONGEST: usize = 1000;

impl Pattern {
    /// Parses a text such as `IBBPBBPBBPBB`; `None` unless it starts with its only I, followed by P and B, 1000 frames
    /// at most.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let types: Option<Box<[Type]>> = text.chars().map(Type::of).collect();
        let types = types.filter(|t| t.first() == Some(&Type::I) && t.len() <= LONGEST)?;
        types[1..].iter().all(|t| *t != Type::I).then_some(Self(types))
    }
    /// The types in order.
    #[must_use]
    pub fn types(&self) -> &[Type] {
        &self.0
    }
    /// Number of frames of a type.
    #[must_use]
    pub fn count(&self, kind: Type) -> usize {
        self.0.iter().filter(|t| **t == kind).count()
    }
}

/// The types of the frames of a film, one after the other. The first group of pictures has no B frames directly after its
/// I frame: they would be coded from an earlier anchor.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pattern: Pattern,
    /// Position in the pattern of the next frame.
    next: usize,
    /// The film has not begun: the next frame is its first I frame.
    at_start: bool,
}

impl Order {
    /// From the beginning of a film.
    #[must_use]
    pub(super) fn new(pattern: Pattern) -> Self {
        Self { pattern, next: 0, at_start: true }
    }
    /// The next type.
    pub(super) fn step(&mut self) -> Type {
        let types = self.pattern.types();
        let now = types[self.next];
        self.next += 1;
        if self.at_start {
            self.at_start = false;
            while self.next < types.len() && types[self.next] == Type::B {
                self.next += 1;
            }
        }
        if self.next >= types.len() {
            self.next = 0;
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(text: &str, n: usize) -> String {
        let mut order = Order::new(Pattern::parse(text).unwrap());
        (0..n).map(|_| order.step().letter()).collect()
    }

    #[test]
    fn frames_follow_those_they_are_coded_from() {
        assert_eq!(order("IBBPBBPBBPBB", 26), "IPBBPBBPBBIBBPBBPBBPBBIBBP");
        assert_eq!(order("IPP", 7), "IPPIPPI");
        assert_eq!(order("I", 3), "III");
        assert_eq!(order("IBB", 7), "IIBBIBB");
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for text in ["", "P", "BI", "IPIP", "IXP", "ibb", &format!("I{}", "P".repeat(1000))] {
            assert_eq!(Pattern::parse(text), None, "{text}");
        }
        let p = Pattern::parse("IBBPBBPBBPBB").unwrap();
        assert_eq!(Type::ALL.map(|t| p.count(t)), [1, 3, 8]);
    }
}
