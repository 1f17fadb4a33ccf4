//! What is measured of one connection, whether it is split or not, at the terrestrial interface.
//!
//! Only data from the link to a host can be timed there: the interface sees when it reaches the host's side. Data of a host enters
//! the gateway at once if the connection is split, and its arrival behind the link cannot be seen here.
//!
//! ```text
//! SYN ──── first byte ─── last ·· idle ·· request ──── first byte ─── last
//!   waiting            flowing                  waiting            flowing        active = waiting + flowing
//! ```

use super::arm::Arm;
use super::header::{ACK, FIN, Head, RST, SYN};
use std::net::SocketAddr;

/// Largest advance of a sequence number that is believed, bytes: the largest window (RFC 7323 §2.3).
const FURTHEST: i32 = 1 << 30;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Both directions ended with a FIN, or that from the link did before a reset.
    Finished,
    /// It was reset, or its SYN was refused with a reset.
    Reset,
    /// Nothing was seen of it for too long, or a new connection used its ports.
    Silent,
    /// Its SYN was not answered.
    Unanswered,
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// Next new sequence number; `None` before the SYN of this direction.
    next: Option<u32>,
    /// Payload, each byte once.
    bytes: u64,
    /// Payload seen again or out of order, bytes.
    again: u64,
    /// A FIN was seen.
    ended: bool,
}

impl Stream {
    /// Counts a segment; returns whether it carries payload, and whether any of the payload is new.
    fn take(&mut self, head: &Head) -> (bool, bool) {
        if head.has(SYN) {
            self.next.get_or_insert(head.seq.wrapping_add(1));
            return (false, false);
        }
        let Some(next) = self.next else { return (false, false) };
        let end = head.seq.wrapping_add(head.payload);
        let ahead = end.wrapping_sub(next) as i32;
        if !(-FURTHEST..=FURTHEST).contains(&ahead) {
            return (false, false);
        }
        self.ended |= head.has(FIN);
        if head.payload == 0 {
            return (false, false);
        }
        let new = u64::from(ahead.max(0) as u32);
        if new > 0 {
            self.next = Some(end);
            self.bytes += new;
        }
        self.again += u64::from(head.payload).saturating_sub(new);
        (true, new > 0)
    }
}

/// A connection that is observed. Times are nanoseconds of the clock that stamps packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    pub(crate) arm: Arm,
    /// The gateway has reported that it splits this connection.
    pub(crate) split: bool,
    /// The client is a host on the terrestrial side.
    from_hosts: bool,
    /// Sequence number of the SYN.
    syn: u32,
    began: u64,
    /// The SYN-ACK.
    answered: Option<u64>,
    to_hosts: Stream,
    to_link: Stream,
    /// The first byte from the link.
    first: Option<u64>,
    /// The client's first byte.
    requested: Option<u64>,
    /// Start of the current exchange: the SYN, or the first request after a response.
    asked: u64,
    /// First and latest byte of the current response.
    response: Option<(u64, u64)>,
    /// Sums over past exchanges: see the figure at the head of this file.
    waiting: u64,
    flowing: u64,
    /// The last segment.
    pub(crate) seen: u64,
    reset: bool,
}

/// The result of one connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    pub(crate) ending: Outcome,
    /// Bytes to hosts and to the link, and those seen again or out of order.
    pub(crate) to_hosts: u64,
    pub(crate) to_link: u64,
    pub(crate) again: u64,
    /// From the SYN to its answer, seconds.
    pub(crate) setup: Option<f64>,
    /// From the SYN to the first byte from the link, seconds.
    pub(crate) first_byte: Option<f64>,
    /// From the client's first byte to the first byte from the link, seconds; `None` if the server speaks first.
    pub(crate) answer: Option<f64>,
    /// Time with a request or a response under way, seconds.
    pub(crate) active: f64,
    /// Part of `active` from the client's first byte on, seconds; `None` if the server speaks first.
    pub(crate) requested: Option<f64>,
    /// Part of `active` from the first byte of each response to its last, seconds.
    pub(crate) flowing: f64,
}

impl Measured {
    /// Whether most of its bytes arrived from the link, so that its times mean something.
    pub(crate) fn is_timed(&self) -> bool {
        self.to_hosts > self.to_link
    }
}

impl Observed {
    pub(crate) fn new(now: u64, arm: Arm, from_hosts: bool, syn: &Head) -> Self {
        let mut new = Self {
            arm,
            split: false,
            from_hosts,
            syn: syn.seq,
            began: now,
            answered: None,
            to_hosts: Stream::default(),
            to_link: Stream::default(),
            first: None,
            requested: None,
            asked: now,
            response: None,
            waiting: 0,
            flowing: 0,
            seen: now,
            reset: false,
        };
        new.stream(true).take(syn);
        new
    }
    /// Whether this SYN is a retransmission of the one that opened the connection.
    pub(crate) fn began_with(&self, syn: &Head) -> bool {
        self.syn == syn.seq
    }

    /// The direction from the client, or that to the client.
    fn stream(&mut self, from_client: bool) -> &mut Stream {
        if from_client == self.from_hosts { &mut self.to_link } else { &mut self.to_hosts }
    }

    /// Takes a segment; true if the connection is over.
    pub(crate) fn take(&mut self, now: u64, from_client: bool, head: &Head) -> bool {
        // The clock may be set back.
        let now = now.max(self.seen);
        self.seen = now;
        if head.has(RST) {
            self.reset = true;
            return true;
        }
        if head.has(SYN) && head.has(ACK) && !from_client {
            self.answered.get_or_insert(now);
        }
        let to_link = from_client == self.from_hosts;
        let (payload, new) = self.stream(from_client).take(head);
        if from_client && new {
            self.requested.get_or_insert(now);
        }
        if to_link
            && new
            && let Some((first, last)) = self.response.take()
        {
            self.flowing += last - first;
            self.asked = now;
        }
        if !to_link && payload {
            match &mut self.response {
                Some((_, last)) => *last = now,
                // Retransmitted data before a request is answered belongs to the previous response.
                None if new => {
                    self.waiting += now - self.asked;
                    self.first.get_or_insert(now);
                    self.response = Some((now, now));
                }
                None => {}
            }
        }
        self.to_hosts.ended && self.to_link.ended
    }

    /// The result of the connection, once it is over.
    pub(crate) fn result(&self) -> Measured {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let since = |at: Option<u64>| at.map(|at| seconds(at - self.began));
        // Times from the request leave out the handshake, and are known only if a host asks before the first byte from the link.
        let asked =
            self.requested.filter(|at| self.from_hosts && self.first.is_some_and(|first| first >= *at));
        let flowing = self.flowing + self.response.map_or(0, |(first, last)| last - first);
        let ending = match (self.to_hosts.ended, self.to_link.ended) {
            (true, true) => Outcome::Finished,
            // A host that has everything may reset instead of closing.
            (true, false) if self.reset => Outcome::Finished,
            _ if self.reset => Outcome::Reset,
            _ if self.answered.is_none() => Outcome::Unanswered,
            _ => Outcome::Silent,
        };
        Measured {
            ending,
            to_hosts: self.to_hosts.bytes,
            to_link: self.to_link.bytes,
            again: self.to_hosts.again + self.to_link.again,
            setup: since(self.answered),
            first_byte: since(self.first),
            answer: asked.zip(self.first).map(|(asked, first)| seconds(first - asked)),
            active: seconds(self.waiting + flowing),
            requested: asked
                .map(|asked| seconds((self.waiting + flowing).saturating_sub(asked - self.began))),
            flowing: seconds(flowing),
        }
    }
}

/// Client and server of a connection.
pub(crate) type Ends = (SocketAddr, SocketAddr);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    struct Talk(Observed);

    impl Talk {
        fn new(from_hosts: bool) -> Self {
            let mut t = Self(Observed::new(0, Arm::First, from_hosts, &head(SYN, 0xffff_ff00, 0)));
            t.0.take(500 * MS, false, &head(SYN | ACK, 99, 0));
            t
        }
        fn say(&mut self, at: u64, from_client: bool, seq: u32, payload: u32) -> bool {
            let base = if from_client { 0xffff_ff01_u32 } else { 100 };
            self.0.take(at * MS, from_client, &head(ACK, base.wrapping_add(seq), payload))
        }
        fn end(&mut self, at: u64, from_client: bool, seq: u32) -> bool {
            let base = if from_client { 0xffff_ff01_u32 } else { 100 };
            self.0.take(at * MS, from_client, &head(ACK | FIN, base.wrapping_add(seq), 0))
        }
    }
    fn head(flags: u8, seq: u32, payload: u32) -> Head {
        let at = SocketAddr::from(([192, 0, 2, 1], 1));
        Head { from: at, to: at, seq, flags, payload }
    }

    #[test]
    fn two_requests_and_what_is_in_between() {
        let mut t = Talk::new(true);
        t.say(510, true, 0, 300);
        // 3000 bytes from 1110 to 1210 ms, the middle one lost and repeated; its numbers wrap at the client.
        t.say(1110, false, 0, 1000);
        t.say(1120, false, 2000, 1000);
        t.say(1210, false, 1000, 1000);
        // A second between response and request counts for neither; then a request is sent twice.
        t.say(2210, true, 300, 300);
        t.say(2220, true, 300, 300);
        t.say(2810, false, 3000, 500);
        assert!(!t.end(2820, false, 3500));
        assert!(t.end(2830, true, 600));
        let m = t.0.result();
        assert_eq!((m.ending, m.to_hosts, m.to_link), (Outcome::Finished, 3500, 600));
        assert_eq!(m.again, 1000 + 300);
        assert_eq!((m.setup, m.first_byte), (Some(0.5), Some(1.11)));
        // SYN to 1110, 100 ms of the response, 600 ms for the second request.
        assert!((m.active - (1.11 + 0.1 + 0.6)).abs() < 1e-9, "{m:?}");
        // The same without the 510 ms before the first request.
        assert!(m.requested.is_some_and(|r| (r - (m.active - 0.51)).abs() < 1e-9), "{m:?}");
        assert!(m.answer.is_some_and(|a| (a - 0.6).abs() < 1e-9), "{m:?}");
        assert!((m.flowing - 0.1).abs() < 1e-9 && m.is_timed());
    }

    #[test]
    fn endings() {
        let reset = |t: &mut Talk| t.0.take(3000 * MS, true, &head(RST, 0, 0));
        let mut t = Talk::new(true);
        t.say(1000, false, 0, 10);
        assert!(reset(&mut t));
        assert_eq!(t.0.result().ending, Outcome::Reset);
        let mut t = Talk::new(true);
        t.end(1000, false, 0);
        assert!(reset(&mut t));
        assert_eq!(t.0.result().ending, Outcome::Finished, "everything was there");
        // A server that speaks first.
        let mut t = Talk::new(true);
        t.say(1000, false, 0, 10);
        t.say(1010, true, 0, 10);
        let m = t.0.result();
        assert_eq!((m.first_byte, m.answer, m.requested), (Some(1.0), None, None));
        let t = Talk::new(true);
        assert_eq!(t.0.result().ending, Outcome::Silent);
        let t = Observed::new(0, Arm::First, true, &head(SYN, 1, 0));
        assert_eq!(t.result().ending, Outcome::Unanswered);
    }

    #[test]
    fn bytes_of_a_client_behind_the_link_go_to_hosts() {
        let mut t = Talk::new(false);
        t.say(900, true, 0, 5000);
        t.say(950, false, 0, 10);
        let m = t.0.result();
        assert_eq!((m.to_hosts, m.to_link, m.first_byte, m.requested), (5000, 10, Some(0.9), None));
    }

    #[test]
    fn absurd_numbers_and_clocks_count_for_nothing() {
        let mut t = Talk::new(true);
        t.say(1000, false, 0, 100);
        t.say(1001, false, 0x7000_0000, 100);
        t.say(100, false, 100, 100);
        let m = t.0.result();
        assert_eq!(m.to_hosts, 200);
        assert!(m.flowing >= 0.0 && m.active >= m.flowing);
    }
}
