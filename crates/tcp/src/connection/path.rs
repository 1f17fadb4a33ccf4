//! What connections of one path can learn from each other: the driver reads the state of one and passes it to the others.

use super::{Connection, State};
use crate::store::Store;
use skyhaul_base::Instant;

/// What the path MTU search of a connection has found so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundMtu {
    /// Options and payload of the longest packet that the path is known to carry, bytes.
    pub limit: u32,
    /// The search has ended for now: the path carries no longer packets, or the ends accept none.
    pub complete: bool,
    /// A probe, which is a packet longer than known to pass, was lost.
    pub failed: bool,
}

impl<S: Store> Connection<S> {
    /// What the path MTU search of this connection has found; `None` without a search
    /// ([`Config::mtu_search`](crate::Config::mtu_search)).
    #[must_use]
    pub fn found_mtu(&self) -> Option<FoundMtu> {
        let search = self.sender.mtu_search()?;
        let limit = search.size() + self.options_of_each();
        Some(FoundMtu { limit, complete: search.is_complete(), failed: search.lost_until() > 0 })
    }

    /// Another connection has shown that the path works again: a SYN or data that waits for a backed-off timer is
    /// retransmitted now. False if nothing waits. If no retransmission is left, the deadline of the connection stays.
    pub fn retry(&mut self, now: Instant) -> bool {
        let (tries, most) = (self.handshake.tries, self.config.max_retransmissions);
        let may_repeat = tries > 1 && (most == 0 || tries <= most);
        let opens = matches!(self.state, State::SynSent | State::SynReceived) && may_repeat;
        if opens {
            self.deadline = self.deadline.min(now);
        }
        let waits = self.sender.retry(now) || opens;
        if waits {
            self.handle_timeout(now);
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::connection::{Established, Event};
    use crate::segment::{Flags, Seq};
    use crate::store::Counted;
    use skyhaul_base::{Duration, Rng};

    #[test]
    fn a_path_that_works_again_repeats_data_but_keeps_the_deadline_of_the_last_retransmission() {
        let config = Config { max_retransmissions: 2, user_timeout: Duration::ZERO, ..Config::rfc() };
        let cc = skyhaul_cc::Config::by_name("sack").expect("known").build(&config.rules);
        let (iss, peer_iss, rng) = (Seq(7), Seq(70), Rng::stream(1, "path"));
        let e = Established { iss, peer_iss, peer: &config, sack: true, rtt: None, probes: false };
        let mut c = Connection::<Counted>::established(Instant::ZERO, config, cc, rng, &e);
        c.write(Instant::ZERO, &[], 500);
        let data = |c: &mut Connection<Counted>, now| c.poll_transmit(now).is_some_and(|s| s.len == 500);
        assert!(data(&mut c, Instant::ZERO));
        assert!(!c.retry(Instant::ZERO), "the timer has not expired yet");
        let mut now = c.next_timeout();
        c.handle_timeout(now);
        assert!(data(&mut c, now));
        now += Duration::from_millis(1);
        assert!(c.retry(now) && data(&mut c, now), "the second repetition leaves at once");
        // The timer starts anew without backoff, so two more timeouts use the repetitions up.
        while c.sender.counters().timeouts < 4 && c.state() == State::Established {
            now = c.next_timeout();
            c.handle_timeout(now);
            let _ = data(&mut c, now);
        }
        let deadline = c.next_timeout();
        now += Duration::from_millis(1);
        assert!(!c.retry(now));
        assert_eq!((c.state(), c.next_timeout(), c.poll_event()), (State::Established, deadline, None));
        c.handle_timeout(deadline);
        assert_eq!((c.state(), c.poll_event()), (State::Closed, Some(Event::TimedOut)));
    }

    #[test]
    fn a_path_that_works_again_repeats_a_syn_but_keeps_the_deadline_of_the_last_one() {
        let config = Config { max_retransmissions: 2, user_timeout: Duration::ZERO, ..Config::rfc() };
        let cc = skyhaul_cc::Config::by_name("sack").expect("known").build(&config.rules);
        let rng = Rng::stream(1, "path");
        let mut c = Connection::<Counted>::connect(Instant::ZERO, config, cc, Seq(7), rng);
        let syn =
            |c: &mut Connection<Counted>, now| c.poll_transmit(now).is_some_and(|s| s.flags.has(Flags::SYN));
        assert!(syn(&mut c, Instant::ZERO));
        assert!(!c.retry(Instant::ZERO), "the first SYN has not been repeated yet");
        let mut now = c.next_timeout();
        c.handle_timeout(now);
        assert!(syn(&mut c, now));
        now += Duration::from_millis(1);
        assert!(c.retry(now) && syn(&mut c, now), "the second repetition leaves at once");
        // No repetition is left: the connection waits for the answer as long as it would have.
        let deadline = c.next_timeout();
        now += Duration::from_millis(1);
        assert!(!c.retry(now));
        assert_eq!((c.state(), c.next_timeout(), c.poll_event()), (State::SynSent, deadline, None));
        c.handle_timeout(deadline);
        assert_eq!((c.state(), c.poll_event()), (State::Closed, Some(Event::TimedOut)));
    }
}
