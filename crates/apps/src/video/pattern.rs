//! The order in which types of frames follow each other.

use crate::frame::FrameType as Type;

/// The types of the frames of a group of pictures, from I to the last before the next I, in the order in which they are
/// sent: a frame comes after those that it is coded from. That is the order of the letters of the pattern as it is usually
/// written, with the B frames behind I being those before it on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(Box<[Type]>);

/// Most frames of a group of pictures.
const LONGEST: usize = 1000;

impl Pattern {
    /// The pattern of a text such as `IBBPBBPBBPBB`; `None` unless it begins with its only I and has P and B behind.
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
    /// How many frames there are of a type.
    #[must_use]
    pub fn count(&self, kind: Type) -> usize {
        self.0.iter().filter(|t| **t == kind).count()
    }
}

/// Types one after the other. The first group of pictures has no B frames behind its I: they would be coded from an anchor
/// before it.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pattern: Pattern,
    next: usize,
}

impl Order {
    /// From the beginning of a film.
    #[must_use]
    pub(super) fn new(pattern: Pattern) -> Self {
        Self { pattern, next: 0 }
    }
    /// The next type.
    pub(super) fn step(&mut self) -> Type {
        let types = self.pattern.types();
        let now = types[self.next % types.len()];
        let first = self.next == 0;
        self.next += 1;
        if first {
            while self.next < types.len() && types[self.next] == Type::B {
                self.next += 1;
            }
        }
        if self.next > types.len() {
            self.next -= types.len();
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
    fn patterns_that_are_none() {
        for text in ["", "P", "BI", "IPIP", "IXP", "ibb", &format!("I{}", "P".repeat(1000))] {
            assert_eq!(Pattern::parse(text), None, "{text}");
        }
        let p = Pattern::parse("IBBPBBPBBPBB").unwrap();
        assert_eq!(Type::ALL.map(|t| p.count(t)), [1, 3, 8]);
    }
}
