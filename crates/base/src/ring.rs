//! A ring buffer whose size is a power of two: a place is found by masking, without a branch.
//!
//! The queues of links see several calls per packet. A place holds a default value before its first use and after its
//! element is taken out, so that elements can be taken out by value.

use alloc::vec::Vec;

/// A first-in-first-out queue.
#[derive(Clone, Debug, Default)]
pub struct Ring<T> {
    /// Empty, or a power of two of places.
    places: Vec<T>,
    /// Place of the first element, before masking.
    head: usize,
    len: usize,
}

impl<T> Ring<T> {
    /// An empty queue; nothing is allocated.
    #[must_use]
    pub const fn new() -> Self {
        Self { places: Vec::new(), head: 0, len: 0 }
    }
    /// How many elements there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }
    /// How many elements fit without an allocation.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.places.capacity()
    }
    /// Releases the memory if the queue is empty.
    pub fn trim(&mut self) {
        if self.len == 0 {
            self.places = Vec::new();
            self.head = 0;
        }
    }
    /// True if there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    #[inline]
    fn place(&self, n: usize) -> usize {
        // Without places there is no mask, but no element either.
        self.head.wrapping_add(n) & self.places.len().wrapping_sub(1)
    }
    /// The `n`-th element from 0.
    #[inline]
    #[must_use]
    pub fn get(&self, n: usize) -> Option<&T> {
        if n < self.len { self.places.get(self.place(n)) } else { None }
    }
    /// The first element.
    #[inline]
    #[must_use]
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }
    /// The last element.
    #[inline]
    #[must_use]
    pub fn back(&self) -> Option<&T> {
        self.get(self.len.checked_sub(1)?)
    }
    /// All elements, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).filter_map(|n| self.get(n))
    }
}

impl<T: Default> Ring<T> {
    /// Adds an element behind all others.
    #[inline(always)]
    pub fn push_back(&mut self, element: T) {
        if self.len == self.places.len() {
            self.grow();
        }
        let place = self.place(self.len);
        if let Some(free) = self.places.get_mut(place) {
            *free = element;
            self.len += 1;
        }
    }
    /// Removes and returns the first element.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let place = self.place(0);
        let first = core::mem::take(self.places.get_mut(place)?);
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
        Some(first)
    }
    /// Removes and returns the last element.
    #[inline]
    pub fn pop_back(&mut self) -> Option<T> {
        let place = self.place(self.len.checked_sub(1)?);
        let last = core::mem::take(self.places.get_mut(place)?);
        self.len -= 1;
        Some(last)
    }

    /// Twice as many places, the elements in the first half.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let start = self.place(0);
        let places = (2 * self.places.len()).max(4);
        self.places.rotate_left(start);
        self.places.resize_with(places, T::default);
        self.head = 0;
    }
}

impl<T: Copy> Ring<T> {
    /// Removes the first element, if there is one. A copy of it stays in its place until that is used again.
    #[inline]
    pub fn skip(&mut self) {
        if self.len > 0 {
            self.head = self.head.wrapping_add(1);
            self.len -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_deque(ops in proptest::collection::vec((0..6u8, any::<u16>()), 0..300)) {
            let mut ring = Ring::new();
            let mut model = VecDeque::new();
            for (op, x) in ops {
                match op {
                    0..=2 => {
                        ring.push_back(x);
                        model.push_back(x);
                    }
                    3 => prop_assert_eq!(ring.pop_front(), model.pop_front()),
                    4 => prop_assert_eq!(ring.pop_back(), model.pop_back()),
                    _ => {
                        ring.skip();
                        model.pop_front();
                    }
                }
                prop_assert_eq!((ring.len(), ring.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!((ring.front(), ring.back()), (model.front(), model.back()));
                let n = usize::from(x) % (model.len() + 2);
                prop_assert_eq!(ring.get(n), model.get(n));
            }
            prop_assert!(ring.iter().eq(model.iter()));
        }
    }
}
