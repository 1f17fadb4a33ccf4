//! One endpoint against a scripted peer, in the manner of packetdrill.
//!
//! Segments are written as text, with sequence numbers relative to the initial ones:
//!
//! ```text
//! S 0:0 win 65535 <mss 1460,sackOK,wscale 3,probes,ts 1 0>     a SYN
//! . 1:1001 ack 1 win 5000 <sack 2001:3001 4001:5001>           1000 bytes of data
//! F. 1001:1001 ack 1 win 5000                                  a FIN without data
//! . 1:1001 ack 1 win 5000 <dummy,id 7>                         a probe (the answer: dummy-ack)
//! . 1:1001 ack 1 win 5000 <ect0>                               data that routers may mark; `ce`: one has
//! ```
//! Flags are letters of `SFRPECA.`, the point being ACK and A being AE (RFC 9768).

use core::fmt::Write;
use core::num::NonZeroU8;
use skyhaul_base::{Duration, Instant, Rng};
use skyhaul_cc::Config as Control;
use skyhaul_tcp::config::ProbeNegotiation;
use skyhaul_tcp::{
    Codepoint, Config, Connection, EcnBytes, Established, Event, Flags, Mark, Rejected, SackBlocks, Segment,
    Seq, Store,
};
use std::collections::VecDeque;

const FLAGS: [(char, Flags); 8] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('E', Flags::ECE),
    ('C', Flags::CWR),
    ('A', Flags::AE),
    ('.', Flags::ACK),
];

/// The segment that a text describes; numbers of the sender of the segment count from `from`, those of its
/// receiver from `to`.
///
/// # Panics
/// If the text cannot be understood.
#[must_use]
pub fn parse(text: &str, from: Seq, to: Seq) -> Segment {
    let number =
        |s: &str| -> u32 { s.parse().unwrap_or_else(|_| panic!("a number, not {s:?}, in {text:?}")) };
    let range = |s: &str| -> (u32, u32) {
        let (a, b) = s.split_once(':').unwrap_or_else(|| panic!("a:b, not {s:?}, in {text:?}"));
        (number(a), number(b))
    };
    let (head, options) = match text.split_once('<') {
        Some((head, rest)) => (head, rest.trim_end_matches('>')),
        None => (text, ""),
    };
    let mut words = head.split_whitespace();
    let mut seg = Segment::default();
    for c in words.next().expect("flags").chars() {
        let flag = FLAGS.iter().find(|f| f.0 == c).unwrap_or_else(|| panic!("flag {c:?} in {text:?}"));
        seg.flags = seg.flags.with(flag.1);
    }
    let (a, b) = range(words.next().expect("a range"));
    seg.seq = from.add(a);
    seg.len = b - a;
    while let Some(word) = words.next() {
        let value = number(words.next().expect("a value"));
        match word {
            "ack" => seg.ack = to.add(value),
            "win" => seg.window = value,
            _ => panic!("{word:?} in {text:?}"),
        }
    }
    for option in options.split(',').filter(|o| !o.is_empty()) {
        let words: Vec<&str> = option.split_whitespace().collect();
        match words.as_slice() {
            ["mss", n] => seg.syn.mss = Some(number(n) as u16),
            ["wscale", n] => seg.syn.window_scale = Some(number(n) as u8),
            ["sackOK"] => seg.syn.sack_permitted = true,
            ["probes"] => seg.syn.probes = true,
            ["ts", val, echo] => seg.ts = Some((number(val), number(echo))),
            ["dummy"] => seg.mark = Mark::Dummy,
            ["dummy-ack"] => seg.mark = Mark::DummyAck,
            ["nil"] => seg.mark = Mark::Nil,
            ["ratio", n] => seg.ack_ratio = NonZeroU8::new(number(n) as u8),
            ["ect0"] => seg.ecn = Codepoint::Capable,
            ["ect1"] => seg.ecn = Codepoint::Scalable,
            ["ecn", ect0, ce, ect1] => {
                let [ect0, ce, ect1] = [ect0, ce, ect1].map(|n| number(n));
                seg.ecn_bytes = Some(EcnBytes { ect0, ce, ect1 });
            }
            ["ce"] => seg.ecn = Codepoint::Marked,
            ["id", n] => seg.probe_id = Some(number(n) as u16),
            ["sack", blocks @ ..] => {
                let mut all = SackBlocks::EMPTY;
                for (a, b) in blocks.iter().map(|b| range(b)) {
                    all.push(to.add(a), to.add(b));
                }
                seg.sack = all;
            }
            _ => panic!("option {option:?} in {text:?}"),
        }
    }
    seg
}

/// The text that describes a segment; numbers as for [`parse`].
#[must_use]
pub fn render(seg: &Segment, from: Seq, to: Seq) -> String {
    let mut out: String = FLAGS.iter().filter(|(_, f)| seg.flags.has(*f)).map(|(c, _)| *c).collect();
    let at = seg.seq.diff(from);
    let _ = write!(out, " {at}:{}", at + seg.len as i32);
    if seg.flags.has(Flags::ACK) {
        let _ = write!(out, " ack {}", seg.ack.diff(to));
    }
    let _ = write!(out, " win {}", seg.window);
    let mut options = Vec::new();
    options.extend(seg.syn.mss.map(|n| format!("mss {n}")));
    options.extend(seg.syn.sack_permitted.then(|| "sackOK".into()));
    options.extend(seg.syn.window_scale.map(|n| format!("wscale {n}")));
    options.extend(seg.syn.probes.then(|| "probes".into()));
    options.extend(seg.ts.map(|(v, e)| format!("ts {v} {e}")));
    options.extend(match seg.mark {
        Mark::None => None,
        Mark::Dummy => Some("dummy".to_owned()),
        Mark::Nil => Some("nil".to_owned()),
        Mark::DummyAck => Some("dummy-ack".to_owned()),
        Mark::NilAck => Some("nil-ack".to_owned()),
    });
    options.extend(seg.ack_ratio.map(|n| format!("ratio {n}")));
    options.extend(match seg.ecn {
        Codepoint::NotCapable => None,
        Codepoint::Capable => Some("ect0".to_owned()),
        Codepoint::Scalable => Some("ect1".to_owned()),
        Codepoint::Marked => Some("ce".to_owned()),
    });
    options.extend(seg.ecn_bytes.map(|b| format!("ecn {} {} {}", b.ect0, b.ce, b.ect1)));
    options.extend(seg.probe_id.map(|n| format!("id {n}")));
    if !seg.sack.is_empty() {
        let blocks = seg.sack.as_slice().iter();
        let blocks: Vec<_> = blocks.map(|(a, b)| format!("{}:{}", a.diff(to), b.diff(to))).collect();
        options.push(format!("sack {}", blocks.join(" ")));
    }
    if !options.is_empty() {
        let _ = write!(out, " <{}>", options.join(","));
    }
    out
}

/// The conversation.
pub struct Script<S: Store> {
    /// The endpoint under test.
    pub conn: Connection<S>,
    now: Instant,
    out: VecDeque<(Instant, String)>,
    /// Initial sequence numbers, ours and the peer's.
    iss: [Seq; 2],
}

/// The initial sequence number of the endpoint under test, close to the wrap.
pub const OURS: Seq = Seq(0u32.wrapping_sub(5000));

/// Ours and the peer's.
const ISS: [Seq; 2] = [OURS, Seq(0u32.wrapping_sub(3000))];

impl<S: Store> Script<S> {
    fn new(conn: Connection<S>) -> Self {
        let mut s = Self { conn, now: Instant::ZERO, out: VecDeque::new(), iss: ISS };
        s.collect();
        s
    }
    /// An endpoint that opens actively.
    #[must_use]
    pub fn client(config: &Config, cc: &Control) -> Self {
        let rng = Rng::stream(1, "script");
        Self::new(Connection::connect(Instant::ZERO, config, cc.build(&config.rules), ISS[0], rng))
    }
    /// An endpoint that opens actively after `written` bytes were written, of which its SYN may carry `most`.
    #[must_use]
    pub fn early_client(config: &Config, cc: &Control, written: u64, most: u32) -> Self {
        let rng = Rng::stream(1, "script");
        let mut conn = Connection::connect(Instant::ZERO, config, cc.build(&config.rules), ISS[0], rng);
        conn.offer_early(most);
        conn.write(Instant::ZERO, &vec![0; written as usize], written);
        Self::new(conn)
    }
    /// An endpoint that listens, and takes data of a SYN.
    #[must_use]
    pub fn early_server(config: &Config, cc: &Control) -> Self {
        let mut s = Self::server(config, cc);
        s.conn.take_early(false);
        s
    }
    /// An endpoint that listens.
    #[must_use]
    pub fn server(config: &Config, cc: &Control) -> Self {
        let rng = Rng::stream(1, "script");
        Self::new(Connection::listen(config, cc.build(&config.rules), ISS[0], rng))
    }
    /// An endpoint whose handshake with an equal one is over.
    #[must_use]
    pub fn established(config: &Config, cc: &Control) -> Self {
        let e = Established {
            iss: ISS[0],
            peer_iss: ISS[1],
            peer: config,
            sack: config.sack.unwrap_or(true),
            rtt: Some(Duration::from_millis(100)),
            probes: config.probes != ProbeNegotiation::Off,
        };
        let rng = Rng::stream(1, "script");
        Self::new(Connection::established(Instant::ZERO, config, cc.build(&config.rules), rng, &e))
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }
    /// Lets time pass until `secs`, with everything that expires meanwhile.
    pub fn at(&mut self, secs: f64) -> &mut Self {
        let until = Instant::from_secs_f64(secs);
        while self.conn.next_timeout() <= until {
            self.now = self.now.max(self.conn.next_timeout());
            self.conn.handle_timeout(self.now);
            self.collect();
        }
        self.now = self.now.max(until);
        self
    }
    /// The peer's segment arrives; its payload is zeros.
    pub fn inject(&mut self, text: &str) -> Result<(), Rejected> {
        let seg = parse(text, self.iss[1], self.iss[0]);
        let result = self.conn.handle(self.now, &seg, &vec![0; seg.len as usize]);
        self.collect();
        result
    }
    /// The peer's segment arrives and is accepted.
    ///
    /// # Panics
    /// If it is refused.
    pub fn accept(&mut self, text: &str) -> &mut Self {
        assert_eq!(self.inject(text), Ok(()), "{text}");
        self
    }
    /// The application writes.
    pub fn write(&mut self, n: u64) -> u64 {
        let n = self.conn.write(self.now, &vec![0; n as usize], n);
        self.collect();
        n
    }
    /// The application reads.
    pub fn read(&mut self, n: u64) -> u64 {
        let n = self.conn.read(&mut vec![0; n as usize], n);
        self.collect();
        n
    }
    /// The application closes its direction.
    pub fn shutdown(&mut self) -> &mut Self {
        self.conn.shutdown(self.now);
        self.collect();
        self
    }
    /// The application closes both directions.
    pub fn abandon(&mut self) -> &mut Self {
        self.conn.abandon(self.now);
        self.collect();
        self
    }
    /// The application aborts.
    pub fn abort(&mut self) -> &mut Self {
        self.conn.abort(self.now);
        self.collect();
        self
    }
    fn collect(&mut self) {
        for n in 0.. {
            let Some(seg) = self.conn.poll_transmit(self.now) else { break };
            assert!(n < 10_000, "an endpoint that never stops sending");
            self.out.push_back((self.now, render(&seg, self.iss[0], self.iss[1])));
        }
    }
    /// The next segment that left begins like this.
    ///
    /// # Panics
    /// If it does not, or nothing left.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> &mut Self {
        let Some((at, got)) = self.out.pop_front() else { panic!("{text} did not leave") };
        assert!(got.starts_with(text), "at {at:?} left\n  {got}\ninstead of\n  {text}");
        self
    }
    /// As [`Self::expect`], at this time.
    ///
    /// # Panics
    /// If it left at another time.
    #[track_caller]
    pub fn expect_at(&mut self, secs: f64, text: &str) -> &mut Self {
        let at = self.out.front().map(|o| o.0);
        assert_eq!(at, Some(Instant::from_secs_f64(secs)), "{text}: {:?}", self.out);
        self.expect(text)
    }
    /// Nothing else left.
    ///
    /// # Panics
    /// If something did.
    #[track_caller]
    pub fn expect_nothing(&mut self) -> &mut Self {
        assert!(self.out.is_empty(), "{:?}", self.out);
        self
    }
    /// Everything that left and was not expected yet.
    pub fn drain(&mut self) -> Vec<String> {
        self.out.drain(..).map(|o| o.1).collect()
    }
    /// News for the application.
    pub fn events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.conn.poll_event()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_segment_say_the_same() {
        for text in [
            "S 0:0 win 65535 <mss 1460,sackOK,wscale 3,probes,ts 1 0>",
            "SE. 0:0 ack 1 win 5",
            ". 1:1001 ack 1 win 5000 <sack 2001:3001 4001:5001>",
            "F. 1001:1001 ack 1 win 5000",
            ". 1:1001 ack 1 win 5000 <dummy,id 7>",
            "C. 1:1001 ack 1 win 5000 <ect0>",
            ". 1:1001 ack 1 win 5000 <ce>",
            "R 7:7 win 0",
        ] {
            assert_eq!(render(&parse(text, ISS[0], ISS[1]), ISS[0], ISS[1]), text);
        }
    }
}
