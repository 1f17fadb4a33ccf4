//! A slab with a LIFO free list: stable `u32` keys, and reuse of the slot freed last, which is likely in the cache.

use alloc::vec::Vec;

/// Storage for values addressed by small integers. A freed slot keeps its old value until it is reused, so `T` should
/// be cheap to keep.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { items: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Stores a value, returns its key.
    ///
    /// # Panics
    /// If more than 2^32 values are stored.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(key) = self.free.pop() {
            self.items[key as usize] = value;
            key
        } else {
            let key = u32::try_from(self.items.len()).expect("at most 2^32 values in a slab");
            self.items.push(value);
            key
        }
    }
    /// The value of a live key.
    #[inline]
    #[must_use]
    pub fn get(&self, key: u32) -> &T {
        &self.items[key as usize]
    }
    /// The value of a live key, to change it.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, key: u32) -> &mut T {
        &mut self.items[key as usize]
    }
    /// Frees a key for reuse.
    #[inline]
    pub fn free(&mut self, key: u32) {
        self.free.push(key);
    }
    /// How many values are live.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }
    /// True if no value is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_reused_last_freed_first() {
        let mut s = Slab::default();
        let (a, b) = (s.insert('a'), s.insert('b'));
        s.free(a);
        s.free(b);
        assert_eq!(s.insert('c'), b);
        assert_eq!(s.insert('d'), a);
        assert_eq!((*s.get(b), *s.get(a), s.len()), ('c', 'd', 2));
    }
}
