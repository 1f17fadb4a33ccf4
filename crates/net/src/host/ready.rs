//! Connections that may have something to send, in order.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Connections that may have something to send. If clients are distinguished, clients take turns, however many
/// connections each has; otherwise connections take turns.
#[derive(Debug)]
pub(super) enum Ready {
    Connections(VecDeque<u32>),
    Clients { turns: VecDeque<IpAddr>, of: BTreeMap<IpAddr, VecDeque<u32>>, len: usize },
}

impl Ready {
    pub(super) fn new(by_client: bool) -> Self {
        if by_client {
            Self::Clients { turns: VecDeque::new(), of: BTreeMap::new(), len: 0 }
        } else {
            Self::Connections(VecDeque::new())
        }
    }
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Connections(slots) => slots.len(),
            Self::Clients { len, .. } => *len,
        }
    }
    pub(super) fn push(&mut self, client: IpAddr, slot: u32) {
        match self {
            Self::Connections(slots) => slots.push_back(slot),
            Self::Clients { turns, of, len } => {
                let slots = of.entry(client).or_default();
                if slots.is_empty() {
                    turns.push_back(client);
                }
                slots.push_back(slot);
                *len += 1;
            }
        }
    }
    /// The next connection; its client goes to the end of the queue if it has more.
    pub(super) fn pop(&mut self) -> Option<u32> {
        match self {
            Self::Connections(slots) => slots.pop_front(),
            Self::Clients { turns, of, len } => {
                let client = turns.pop_front()?;
                let slots = of.get_mut(&client)?;
                let slot = slots.pop_front();
                *len -= usize::from(slot.is_some());
                if slots.is_empty() {
                    of.remove(&client);
                } else {
                    turns.push_back(client);
                }
                slot
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_take_turns() {
        let client = |n: u8| IpAddr::from([10, 0, 0, n]);
        let mut all: Vec<Vec<u32>> = Vec::new();
        for by_client in [false, true] {
            let mut ready = Ready::new(by_client);
            for slot in 0..4 {
                ready.push(client(1), slot);
            }
            ready.push(client(2), 9);
            assert_eq!(ready.len(), 5);
            all.push(core::iter::from_fn(|| ready.pop()).collect());
            assert_eq!(ready.len(), 0);
        }
        assert_eq!(all, [vec![0, 1, 2, 3, 9], vec![0, 9, 1, 2, 3]]);
    }
}
