//! A compact table of entries by connection ends, for state that any packet from the network can create.
//!
//! A hash table with chains. Its hash is keyed, so that attackers who choose addresses and ports cannot create long
//! chains. Its entries grow by a quarter instead of doubling. It releases its memory when it is empty.

use super::deadline::Deadlines;
use super::ends::Ends;
use super::secret::Secret;
use siphasher::sip::SipHasher13;
use skyhaul_base::Instant;
use std::hash::Hasher;

const NONE: u32 = u32::MAX;
/// Initial capacity.
const FIRST: usize = 64;

#[derive(Debug)]
struct Entry<T> {
    ends: Ends,
    /// The next entry in its bucket, or in the free list.
    next: u32,
    /// Unique over all entries ever made.
    number: u32,
    value: Option<T>,
}

/// Entries by their ends, each with a deadline.
#[derive(Debug)]
pub(super) struct Table<T> {
    key: [u8; 16],
    /// Hash buckets: a power of two, at least as many as entries.
    buckets: Vec<u32>,
    entries: Vec<Entry<T>>,
    free: u32,
    len: usize,
    numbers: u32,
    deadlines: Deadlines,
}

#[expect(clippy::indexing_slicing, reason = "numbers of entries and buckets that the table itself has given")]
impl<T> Table<T> {
    /// An empty table; the key comes from `secret`.
    pub(super) fn new(secret: &Secret) -> Self {
        Self {
            key: secret.key(b"table"),
            buckets: Vec::new(),
            entries: Vec::new(),
            free: NONE,
            len: 0,
            numbers: 0,
            deadlines: Deadlines::default(),
        }
    }
    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }
    /// Number of deadlines.
    pub(super) fn timers(&self) -> usize {
        self.deadlines.len()
    }
    /// Memory use, bytes.
    pub(super) fn bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<u32>()
            + self.entries.capacity() * size_of::<Entry<T>>()
            + self.deadlines.bytes()
    }

    fn bucket(&self, ends: &Ends) -> usize {
        let mut h = SipHasher13::new_with_key(&self.key);
        h.write(ends.bytes());
        h.finish() as usize & (self.buckets.len() - 1)
    }
    /// Finds the entry of these ends.
    pub(super) fn find(&self, ends: &Ends) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let mut at = self.buckets[self.bucket(ends)];
        while at != NONE {
            let e = &self.entries[at as usize];
            if e.ends == *ends {
                return Some(at);
            }
            at = e.next;
        }
        None
    }
    /// The ends of an entry.
    pub(super) fn ends(&self, at: u32) -> Ends {
        self.entries[at as usize].ends
    }
    /// The value of an entry.
    pub(super) fn get(&self, at: u32) -> Option<&T> {
        self.entries.get(at as usize)?.value.as_ref()
    }
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.entries.get_mut(at as usize)?.value.as_mut()
    }

    /// Adds an entry; there must be none with these ends.
    pub(super) fn insert(&mut self, ends: Ends, value: T) -> u32 {
        debug_assert!(self.find(&ends).is_none());
        if self.len == self.buckets.len() {
            self.widen();
        }
        let bucket = self.bucket(&ends);
        self.numbers = self.numbers.wrapping_add(1);
        let entry = Entry { ends, next: self.buckets[bucket], number: self.numbers, value: Some(value) };
        let at = if self.free == NONE {
            if self.entries.len() == self.entries.capacity() {
                self.entries.reserve_exact((self.entries.len() / 4).max(FIRST));
            }
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        } else {
            let at = self.free;
            self.free = self.entries[at as usize].next;
            self.entries[at as usize] = entry;
            at
        };
        self.buckets[bucket] = at;
        self.len += 1;
        at
    }
    fn widen(&mut self) {
        let wide = (self.buckets.len() * 2).max(FIRST);
        self.buckets = vec![NONE; wide];
        for at in 0..self.entries.len() {
            if self.entries[at].value.is_some() {
                let bucket = self.bucket(&self.entries[at].ends);
                self.entries[at].next = std::mem::replace(&mut self.buckets[bucket], at as u32);
            }
        }
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, at: u32) -> Option<T> {
        let e = self.entries.get_mut(at as usize)?;
        let value = e.value.take()?;
        let (ends, next) = (e.ends, e.next);
        let bucket = self.bucket(&ends);
        let mut before = self.buckets[bucket];
        if before == at {
            self.buckets[bucket] = next;
        } else {
            while self.entries[before as usize].next != at {
                before = self.entries[before as usize].next;
            }
            self.entries[before as usize].next = next;
        }
        self.entries[at as usize].next = self.free;
        self.free = at;
        self.len -= 1;
        if self.len == 0 {
            (self.entries, self.buckets, self.free) = (Vec::new(), Vec::new(), NONE);
            self.deadlines = Deadlines::default();
        }
        Some(value)
    }

    /// Sets the entry's deadline; an earlier one stays.
    pub(super) fn arm(&mut self, at: u32, when: Instant) {
        let number = self.entries[at as usize].number;
        self.deadlines.arm(when, at, number);
    }
    /// The earliest deadline.
    pub(super) fn next(&self) -> Instant {
        self.deadlines.next()
    }
    /// The next entry whose deadline is at or before `now`; with [`Instant::MAX`], the entry with the earliest
    /// deadline.
    pub(super) fn due(&mut self, now: Instant) -> Option<u32> {
        while let Some((at, number)) = self.deadlines.due(now) {
            let same = self.entries.get(at as usize).is_some_and(|e| e.number == number && e.value.is_some());
            if same {
                return Some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::{Duration, Rng};
    use std::collections::BTreeMap;
    use std::net::SocketAddr;

    fn ends(n: u32) -> Ends {
        let remote = SocketAddr::new(n.to_be_bytes().into(), 7);
        Ends::new("10.0.0.1:80".parse().unwrap(), remote)
    }

    /// Random operations against a plain map.
    #[test]
    fn it_is_a_map_with_deadlines() {
        let mut table = Table::new(&Secret::fixed([3; 16]));
        let mut plain = BTreeMap::new();
        let mut rng = Rng::stream(1, "table");
        let t = |n: u64| Instant::ZERO + Duration::from_millis(n);
        for now in 0..20_000u64 {
            let n = (rng.unit() * 500.0) as u32;
            match plain.remove(&n) {
                Some((value, _)) => {
                    let at = table.find(&ends(n)).expect("is there");
                    assert_eq!((table.ends(at), table.remove(at)), (ends(n), Some(value)));
                }
                None => {
                    assert_eq!(table.find(&ends(n)), None);
                    let at = table.insert(ends(n), now);
                    let when = now + (rng.unit() * 900.0) as u64;
                    table.arm(at, t(when));
                    plain.insert(n, (now, when));
                }
            }
            while let Some(at) = table.due(t(now)) {
                let value = table.remove(at).expect("is there");
                let gone: Vec<u32> = plain
                    .iter()
                    .filter(|(_, (v, when))| *v == value && *when <= now)
                    .map(|(n, _)| *n)
                    .collect();
                assert_eq!(gone.len(), 1);
                plain.remove(&gone[0]);
            }
            assert!(plain.values().all(|(_, when)| *when > now));
            assert_eq!(table.len(), plain.len());
        }
        while let Some(at) = table.due(Instant::MAX) {
            table.remove(at);
        }
        assert_eq!((table.len(), table.entries.capacity(), table.buckets.len()), (0, 0, 0));
        let at = table.insert(ends(1), 1);
        table.arm(at, t(30_000));
        table.remove(at);
        assert_eq!((table.next(), table.bytes()), (Instant::MAX, 0), "an empty table has no deadlines");
    }
}
