//! Packets that have arrived at the queue of another host on the same device.
//!
//! The kernel remembers through which queue of the device the last packet of a connection was written, and delivers the connection's
//! packets there. It forgets after some seconds of silence, and knows nothing of a connection that begins. Then a packet may arrive at
//! any queue; its host passes it on.

use crate::device::wait::Waker;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum packets that wait for a host; further ones are dropped, as a full queue of the device would drop them.
const MOST: usize = 4096;

#[derive(Debug, Default)]
struct Inbox {
    packets: Vec<Box<[u8]>>,
    waker: Option<Waker>,
    dropped: u64,
}

/// An inbox for each of several hosts.
#[derive(Debug)]
pub struct Exchange(Vec<Mutex<Inbox>>);

impl Exchange {
    /// Inboxes for this many hosts.
    #[must_use]
    pub fn new(hosts: usize) -> Self {
        Self((0..hosts).map(|_| Mutex::default()).collect())
    }
    fn of(&self, host: usize) -> Option<MutexGuard<'_, Inbox>> {
        self.0.get(host).map(|inbox| inbox.lock().unwrap_or_else(PoisonError::into_inner))
    }
    /// Sets how a host is woken.
    pub(in crate::host) fn set_waker(&self, host: usize, waker: Waker) {
        if let Some(mut inbox) = self.of(host) {
            inbox.waker = Some(waker);
        }
    }
    /// Passes a packet to a host.
    pub(in crate::host) fn pass(&self, host: usize, packet: &[u8]) {
        let Some(mut inbox) = self.of(host) else { return };
        if inbox.packets.len() >= MOST {
            inbox.dropped += 1;
            return;
        }
        inbox.packets.push(packet.into());
        // A host with more packets has been woken already.
        if inbox.packets.len() == 1
            && let Some(waker) = &inbox.waker
        {
            waker.wake();
        }
    }
    /// Moves the packets for a host to `into`, which is empty.
    pub(in crate::host) fn take(&self, host: usize, into: &mut Vec<Box<[u8]>>) {
        if let Some(mut inbox) = self.of(host) {
            std::mem::swap(&mut inbox.packets, into);
        }
    }
    /// Packets that were dropped because a host was too slow.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        (0..self.0.len()).filter_map(|n| self.of(n)).map(|inbox| inbox.dropped).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_keep_their_order_and_an_inbox_is_limited() {
        let exchange = Exchange::new(2);
        for n in 0..MOST + 3 {
            exchange.pass(1, &n.to_be_bytes());
        }
        exchange.pass(7, b"nobody");
        let mut got = Vec::new();
        exchange.take(0, &mut got);
        assert!(got.is_empty());
        exchange.take(1, &mut got);
        assert_eq!((got.len(), exchange.dropped()), (MOST, 3));
        assert!(got.iter().enumerate().all(|(n, p)| **p == n.to_be_bytes()));
        got.clear();
        exchange.pass(1, b"again");
        exchange.take(1, &mut got);
        assert_eq!(got, [Box::from(*b"again")]);
    }
}
