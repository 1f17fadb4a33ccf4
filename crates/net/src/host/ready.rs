//! Connections that may have something to send, in order.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// What a client may send in its turn, bytes: two full packets.
const QUANTUM: i64 = 3000;

/// Connections that may have something to send. If clients are distinguished, clients take turns, however many
/// connections each has; otherwise connections take turns.
#[derive(Debug)]
pub(super) enum Ready {
    Connections(VecDeque<u32>),
    Clients { turns: VecDeque<IpAddr>, of: BTreeMap<IpAddr, Client>, len: usize },
}

/// The connections of a client, and what it may still send in its turn, bytes: a deficit round robin (Shreedhar and Varghese 1996),
/// in which a client pays for a packet after it has left.
#[derive(Debug)]
pub(super) struct Client {
    slots: VecDeque<u32>,
    credit: i64,
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
                let known = of.entry(client).or_insert_with(|| {
                    turns.push_back(client);
                    Client { slots: VecDeque::new(), credit: QUANTUM }
                });
                known.slots.push_back(slot);
                *len += 1;
            }
        }
    }
    /// The next connection. Its client keeps the turn until it has [spent](Self::spend) its credit, or has nothing more to send.
    pub(super) fn pop(&mut self) -> Option<u32> {
        match self {
            Self::Connections(slots) => slots.pop_front(),
            Self::Clients { turns, of, len } => loop {
                let first = *turns.front()?;
                let client = of.get_mut(&first)?;
                if client.slots.is_empty() {
                    turns.pop_front();
                    of.remove(&first);
                } else if client.credit <= 0 {
                    client.credit += QUANTUM;
                    turns.rotate_left(1);
                } else {
                    *len -= 1;
                    return client.slots.pop_front();
                }
            },
        }
    }
    /// The connection that [`Self::pop`] has returned last has sent this many bytes.
    pub(super) fn spend(&mut self, bytes: u64) {
        if let Self::Clients { turns, of, .. } = self
            && let Some(client) = turns.front().and_then(|first| of.get_mut(first))
        {
            client.credit -= bytes as i64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    #[test]
    fn clients_take_turns() {
        let mut all: Vec<Vec<u32>> = Vec::new();
        for by_client in [false, true] {
            let mut ready = Ready::new(by_client);
            for slot in 0..4 {
                ready.push(client(1), slot);
            }
            ready.push(client(2), 9);
            assert_eq!(ready.len(), 5);
            let next = |ready: &mut Ready| ready.pop().inspect(|_| ready.spend(3000));
            all.push(core::iter::from_fn(|| next(&mut ready)).collect());
            assert_eq!(ready.len(), 0);
        }
        assert_eq!(all, [vec![0, 1, 2, 3, 9], vec![0, 9, 1, 2, 3]]);
    }

    /// One client has ten connections, some of which have nothing to send or only acknowledgements; the other has one.
    #[test]
    fn a_client_with_ten_connections_sends_as_many_bytes_as_one_with_a_single_one() {
        let mut ready = Ready::new(true);
        (0..11).for_each(|slot| ready.push(client(u8::from(slot == 10)), slot));
        let mut sent = [0u64; 2];
        for turn in 0..30_000 {
            let slot = ready.pop().expect("all have more to send");
            let bytes = match slot {
                10 if turn % 5 == 0 => 1000,
                0..4 => 52,
                4 => 0,
                _ => 2896,
            };
            sent[usize::from(slot == 10)] += bytes;
            ready.spend(bytes);
            ready.push(client(u8::from(slot == 10)), slot);
        }
        assert!(sent[0].abs_diff(sent[1]) <= 2 * QUANTUM as u64, "{sent:?}");
    }
}
