//! The parameters of a test that a client asks for.

use serde_json::Value;
use skyhaul_base::Duration;

/// Maximum parallel streams in each direction.
const MOST_STREAMS: u64 = 128;
/// The longest time and the longest omitted time of a test, seconds; `iperf3 -t` has the same limit.
const LONGEST: u64 = 86_400;
/// Longest header of a datagram, bytes: seconds (4), microseconds (4), number (4 or 8).
const HEADER: u64 = 16;

/// Direction of data, as seen from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
    Both,
}

/// The parameters of a test that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TestParameters {
    pub(super) udp: bool,
    pub(super) direction: Direction,
    /// Streams in each direction.
    pub(super) parallel: usize,
    /// Length of a datagram, bytes.
    pub(super) length: usize,
    /// Rate of each UDP stream, bit/s; 0 means as fast as possible.
    pub(super) rate: u64,
    /// Datagrams have numbers of 64 bits.
    pub(super) wide: bool,
    /// How long the client measures (`-t`), with the time that it omits (`-O`); zero means without limit.
    pub(super) time: Duration,
    /// How much data the client wants to transfer on all streams together (`-n`, `-k`), bytes; zero means without limit.
    pub(super) amount: u64,
}

impl TestParameters {
    /// Parses the parameters; `longest` is the longest datagram that needs no fragmentation, bytes. An error says
    /// why the test is refused; the client itself only learns that a parameter was bad.
    pub(super) fn read(p: &Value, longest: usize) -> Result<Self, String> {
        let flag = |key: &str| p[key].as_bool().unwrap_or(false);
        let number = |key: &str, or| p[key].as_u64().unwrap_or(or);
        let (tcp, udp) = (flag("tcp"), flag("udp"));
        if tcp == udp {
            return Err("its parameters are invalid".into());
        }
        let parallel = number("parallel", 1).max(1);
        if parallel > MOST_STREAMS {
            return Err(format!("it has more than {MOST_STREAMS} streams"));
        }
        let length = number("len", 1448);
        if udp && !(HEADER..=longest as u64).contains(&length) {
            return Err(format!(
                "its datagrams have {length} bytes (-l), but only {HEADER} to {longest} fit into a packet without fragmentation"
            ));
        }
        // 0 means no limit; so does any value that is not a number.
        let seconds = |key: &str| number(key, 0).min(LONGEST);
        let time = match (seconds("time"), seconds("omit")) {
            (0, _) => 0,
            (time, omit) => time + omit,
        };
        let blocks = number("blockcount", 0).saturating_mul(length);
        Ok(Self {
            udp,
            direction: match (flag("bidirectional"), flag("reverse")) {
                (true, _) => Direction::Both,
                (false, true) => Direction::Out,
                (false, false) => Direction::In,
            },
            parallel: parallel as usize,
            length: length as usize,
            rate: number("bandwidth", 0),
            wide: number("udp_counters_64bit", 0) > 0 || flag("udp_counters_64bit"),
            time: Duration::from_secs(time),
            amount: number("num", 0).max(blocks),
        })
    }
    /// Total number of streams.
    pub(super) fn streams(&self) -> usize {
        self.parallel * if self.direction == Direction::Both { 2 } else { 1 }
    }
    /// Whether we send on the `n`-th stream. In a test in both directions, the client's streams come first.
    pub(super) fn sends(&self, n: usize) -> bool {
        self.direction == Direction::Out || self.direction == Direction::Both && n >= self.parallel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TestParameters, String> {
        TestParameters::read(&serde_json::from_str(text).unwrap_or(Value::Null), 1472)
    }

    #[test]
    fn what_is_not_served_is_said_in_words() {
        assert!(read(r#"{"tcp":true,"parallel":500}"#).unwrap_err().contains("128"));
        assert!(read(r#"{"udp":true,"len":8192}"#).unwrap_err().contains("16 to 1472"));
        for nonsense in ["nonsense", "{}", r#"{"tcp":true,"udp":true}"#] {
            assert!(read(nonsense).unwrap_err().contains("invalid"));
        }
    }

    #[test]
    fn the_first_streams_of_a_test_both_ways_are_the_clients() {
        let w = read(r#"{"tcp":true,"bidirectional":true,"parallel":2}"#).unwrap();
        let sends: Vec<bool> = (0..w.streams()).map(|n| w.sends(n)).collect();
        assert_eq!(sends, [false, false, true, true]);
        let w = read(r#"{"udp":true,"reverse":true,"len":1000,"bandwidth":1000000,"udp_counters_64bit":1}"#)
            .unwrap();
        assert_eq!(
            (w.direction, w.streams(), w.sends(0), w.rate, w.wide),
            (Direction::Out, 1, true, 1_000_000, true)
        );
    }

    #[test]
    fn how_long_a_test_is_to_last_is_read() {
        let w = read(r#"{"tcp":true,"time":10,"omit":2}"#).unwrap();
        assert_eq!((w.time, w.amount), (Duration::from_secs(12), 0));
        let w = read(r#"{"tcp":true,"time":18446744073709551615,"omit":3}"#).unwrap();
        assert_eq!(w.time, Duration::from_secs(86_403));
        let w = read(r#"{"udp":true,"len":1000,"time":0,"omit":3,"blockcount":7}"#).unwrap();
        assert_eq!((w.time, w.amount), (Duration::ZERO, 7000));
        let w = read(r#"{"tcp":true,"num":5000}"#).unwrap();
        assert_eq!((w.time, w.amount), (Duration::ZERO, 5000));
    }
}
