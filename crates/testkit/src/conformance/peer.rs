//! The scripted peer: its numbers, and what its packets mean in them.

use super::notation::{AbsentOption, IcmpError, IcmpMessage, OptionNotation, Segment, TimestampNotation};
use super::option::Opt;
use super::packet::{ACK, Damage, FLAGS, PSH, Packet, SYN, Tcp, Transport};
use super::pattern;
use super::target::{PORT, addresses};
use std::fmt::Write as _;
use std::net::SocketAddr;

/// One scripted peer.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address and port.
    pub at: SocketAddr,
    /// The end of the TCP under test.
    pub other: SocketAddr,
    /// Its initial sequence number.
    isn: u32,
    /// That of the TCP under test, once a SYN was seen.
    iss: Option<u32>,
    /// The newest timestamp seen.
    newest: Option<u32>,
    /// Bytes that the application under test has written since the last SYN, and those that it has read.
    pub written: u64,
    read: u64,
    /// Where this peer's last SYN was.
    syn_at: i64,
}

/// The first peer's port; each has its own.
const FIRST_PORT: u16 = 40_000;

impl Peer {
    /// The peer of this number.
    #[must_use]
    pub fn new(number: u16, v6: bool) -> Self {
        let [stack, peer] = addresses(v6);
        Self {
            at: SocketAddr::new(peer, FIRST_PORT + number),
            other: SocketAddr::new(stack, PORT),
            // The sequence numbers of the first peer wrap after 3000 bytes.
            isn: 0u32.wrapping_sub(3000).wrapping_add(u32::from(number) * 0x0123_4567),
            iss: None,
            newest: None,
            written: 0,
            read: 0,
            syn_at: 0,
        }
    }
    /// Its numbers begin elsewhere.
    pub fn begin_again(&mut self) {
        self.isn = self.isn.wrapping_mul(69_069).wrapping_add(1);
    }

    /// The segment in these words, as it arrives.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn make(&mut self, words: &Segment) -> Result<Packet, String> {
        let (from, to) = words.range.ok_or("a range: * is for what is expected")?;
        let len =
            usize::try_from(to - from).ok().filter(|n| *n <= 65_000).ok_or("no more than 65000 bytes")?;
        if words.flags & SYN != 0 {
            self.syn_at = from;
        }
        let iss = self.iss.unwrap_or(0);
        let mut options = Vec::new();
        for word in &words.options {
            options.push(match word {
                OptionNotation::Plain(o) => o.clone(),
                OptionNotation::Sack(blocks) => {
                    Opt::Sack(blocks.iter().map(|(a, b)| (add(iss, *a), add(iss, *b))).collect())
                }
                OptionNotation::Stamps(Some(a), Some(b)) => Opt::Stamps(self.stamp(*a)?, self.stamp(*b)?),
                OptionNotation::Stamps(..) | OptionNotation::No(_) => {
                    return Err("* and no are for what is expected".into());
                }
            });
        }
        let payload = if words.modifiers.foreign {
            vec![0xee; len]
        } else {
            pattern::bytes(from - 1 - self.syn_at, len)
        };
        let tcp = Tcp {
            seq: add(self.isn, from),
            ack: words.ack.map_or(0, |a| add(iss, a)),
            flags: words.flags,
            window: words.window.map_or(65_535, |w| w.0),
            urgent: words.modifiers.urgent.unwrap_or(0),
            options,
            payload,
        };
        let b = &words.modifiers;
        let src = SocketAddr::new(b.from.unwrap_or(self.at.ip()), self.at.port());
        Ok(Packet {
            src,
            dst: self.other,
            ttl: b.ttl.unwrap_or(64),
            tos: b.ecn.unwrap_or(0) | b.dscp.unwrap_or(0) << 2,
            dont_fragment: b.dont_fragment.unwrap_or(true),
            transport: Transport::Tcp(tcp),
        })
    }

    fn stamp(&self, stamp: TimestampNotation) -> Result<u32, String> {
        match stamp {
            TimestampNotation::Number(n) => Ok(add(0, n)),
            TimestampNotation::Echo(more) => {
                let newest = self.newest.ok_or("echo, but no timestamp was seen")?;
                Ok(add(newest, more))
            }
        }
    }

    /// The ICMP message in these words, as it arrives.
    ///
    /// # Errors
    /// If there is none in this family.
    pub fn complain(&self, words: &IcmpMessage) -> Result<Packet, String> {
        let v6 = self.at.is_ipv6();
        let (kind, code, word) = match (words.what, v6) {
            (IcmpError::Network, false) => (3, 0, 0),
            (IcmpError::Host, false) => (3, 1, 0),
            (IcmpError::Protocol, false) => (3, 2, 0),
            (IcmpError::Port, false) => (3, 3, 0),
            (IcmpError::TooBig(mtu), false) => (3, 4, mtu),
            (IcmpError::Prohibited, false) => (3, 13, 0),
            (IcmpError::Quench, false) => (4, 0, 0),
            (IcmpError::Exceeded, false) => (11, 0, 0),
            (IcmpError::Network, true) => (1, 0, 0),
            (IcmpError::Prohibited, true) => (1, 1, 0),
            (IcmpError::Host, true) => (1, 3, 0),
            (IcmpError::Port, true) => (1, 4, 0),
            (IcmpError::TooBig(mtu), true) => (2, 0, mtu),
            (IcmpError::Exceeded, true) => (3, 0, 0),
            // The pointer is that of the example in RFC 4443 §3.4: what follows the IPv6 header is not known.
            (IcmpError::Protocol, true) => (4, 1, 40),
            (IcmpError::Quench, true) => return Err("IPv6 has no source quench".into()),
        };
        let tcp = Tcp { seq: add(self.iss.unwrap_or(0), words.quote), flags: ACK, ..Tcp::default() };
        let quoted = Packet {
            src: self.other,
            dst: self.at,
            ttl: 64,
            tos: 0,
            dont_fragment: true,
            transport: Transport::Tcp(tcp),
        };
        let mut quote = quoted.encode(&Damage::default()).remove(0);
        if !v6 {
            // RFC 792 promises the IP header and eight bytes.
            quote.truncate(28);
        }
        let src = SocketAddr::new(words.from.unwrap_or(self.at.ip()), 0);
        let dst = SocketAddr::new(self.other.ip(), 0);
        Ok(Packet {
            src,
            dst,
            ttl: 64,
            tos: 0,
            dont_fragment: true,
            transport: Transport::Icmp { kind, code, word, quote },
        })
    }

    /// Takes sequence numbers and timestamps from a packet of the TCP under test.
    pub fn learn(&mut self, packet: &Packet) {
        let Transport::Tcp(tcp) = &packet.transport else { return };
        if tcp.flags & SYN != 0 && self.iss != Some(tcp.seq) {
            self.iss = Some(tcp.seq);
            (self.written, self.read) = (0, 0);
        }
        self.other = packet.src;
        for o in &tcp.options {
            if let Opt::Stamps(value, _) = o {
                let newer = self.newest.is_none_or(|n| value.wrapping_sub(n) as i32 >= 0);
                self.newest =
                    Some(if newer || tcp.flags & SYN != 0 { *value } else { self.newest.unwrap_or(*value) });
            }
        }
    }

    /// Checks that the application read what this peer sent.
    ///
    /// # Errors
    /// The first byte that differs.
    pub fn was_read(&mut self, data: &[u8]) -> Result<(), String> {
        let from = self.read as i64;
        self.read += data.len() as u64;
        match pattern::first_difference(from, data) {
            None => Ok(()),
            Some(at) => Err(format!("byte {at} of the stream that was read is not the peer's")),
        }
    }

    /// Whether a segment that left is the one in these words.
    ///
    /// # Errors
    /// What is different.
    pub fn compare(&self, words: &Segment, packet: &Packet) -> Result<(), String> {
        let Transport::Tcp(tcp) = &packet.transport else { return Err("a segment was expected".into()) };
        let got = if words.flags & PSH == 0 { tcp.flags & !PSH } else { tcp.flags };
        if got != words.flags {
            return Err("the flags differ".into());
        }
        let iss = self.iss.unwrap_or(0);
        if let Some((from, to)) = words.range {
            if tcp.seq != add(iss, from) || tcp.payload.len() as i64 != to - from {
                return Err("the range differs".into());
            }
            if !tcp.payload.is_empty() && from >= 1 {
                if let Some(at) = pattern::first_difference(from - 1, &tcp.payload) {
                    return Err(format!("byte {at} of the stream is not what was written"));
                }
            }
        }
        if let Some(ack) = words.ack {
            if tcp.flags & ACK == 0 || tcp.ack != add(self.isn, ack) {
                return Err("the acknowledgement differs".into());
            }
        }
        if let Some((low, high)) = words.window {
            if !(low..=high).contains(&tcp.window) {
                return Err("the window differs".into());
            }
        }
        for word in &words.options {
            self.compare_option(word, &tcp.options)?;
        }
        let b = &words.modifiers;
        let ecn = b.ecn.is_none_or(|e| packet.tos & 3 == e);
        let dscp = b.dscp.is_none_or(|d| packet.tos >> 2 == d);
        let dont_fragment = b.dont_fragment.is_none_or(|d| packet.dont_fragment == d);
        let ttl = b.ttl.is_none_or(|t| packet.ttl == t);
        let urgent = b.urgent.is_none_or(|u| tcp.urgent == u);
        if ecn && dscp && dont_fragment && ttl && urgent {
            Ok(())
        } else {
            Err("the header of IP, or the urgent pointer, differs".into())
        }
    }

    fn compare_option(&self, word: &OptionNotation, options: &[Opt]) -> Result<(), String> {
        let has = |what: AbsentOption| {
            options.iter().any(|o| {
                matches!(
                    (what, o),
                    (AbsentOption::Sack, Opt::Sack(_))
                        | (AbsentOption::SackPermitted, Opt::SackPermitted)
                        | (AbsentOption::Stamps, Opt::Stamps(..))
                        | (AbsentOption::Scale, Opt::Scale(_))
                        | (AbsentOption::Capability, Opt::Capability(..))
                        | (AbsentOption::Probe, Opt::Probe(..))
                )
            })
        };
        let fine = match word {
            OptionNotation::Plain(Opt::Capability(..)) => has(AbsentOption::Capability),
            OptionNotation::Plain(o) => options.contains(o),
            OptionNotation::Sack(want) => options.iter().any(|o| {
                matches!(o, Opt::Sack(got) if got.len() == want.len()
                    && got.iter().zip(want).all(|(g, w)| (g.0, g.1) == (add(self.isn, w.0), add(self.isn, w.1))))
            }),
            OptionNotation::Stamps(None, None) => has(AbsentOption::Stamps),
            OptionNotation::Stamps(None, Some(TimestampNotation::Number(n))) => {
                options.iter().any(|o| matches!(o, Opt::Stamps(_, echo) if *echo == add(0, *n)))
            }
            OptionNotation::Stamps(..) => return Err("an expected timestamp is written ts * and a number, or ts * *".into()),
            OptionNotation::No(what) => !has(*what),
        };
        if fine { Ok(()) } else { Err(format!("the options differ: {options:?}")) }
    }

    /// The packet in words.
    #[must_use]
    pub fn describe(&self, packet: &Packet, arrives: bool) -> String {
        let tcp = match &packet.transport {
            Transport::Tcp(tcp) => tcp,
            Transport::Icmp { kind, code, word, .. } => return format!("icmp {kind} {code} {word}"),
        };
        let iss = self.iss.unwrap_or(0);
        let (from, to) = if arrives { (self.isn, iss) } else { (iss, self.isn) };
        let mut out: String = FLAGS.iter().filter(|f| tcp.flags & f.1 != 0).map(|f| f.0).collect();
        let at = tcp.seq.wrapping_sub(from) as i32;
        let _ = write!(out, " {at}:{}", i64::from(at) + tcp.payload.len() as i64);
        if tcp.flags & ACK != 0 {
            let _ = write!(out, " ack {}", tcp.ack.wrapping_sub(to) as i32);
        }
        let _ = write!(out, " win {}", tcp.window);
        let options: Vec<String> = tcp.options.iter().map(|o| option_words(o, to)).collect();
        if !options.is_empty() {
            let _ = write!(out, " <{}>", options.join(","));
        }
        if packet.tos & 3 != 0 {
            let _ = write!(out, " {{{}}}", ["", "ect1", "ect0", "ce"][usize::from(packet.tos & 3)]);
        }
        out
    }
}

fn option_words(o: &Opt, to: u32) -> String {
    let relative = |n: u32| n.wrapping_sub(to) as i32;
    match o {
        Opt::End => "end".into(),
        Opt::Nop => "nop".into(),
        Opt::Mss(n) => format!("mss {n}"),
        Opt::Scale(n) => format!("wscale {n}"),
        Opt::SackPermitted => "sackOK".into(),
        Opt::Sack(blocks) => {
            let blocks = blocks.iter().map(|(a, b)| format!(" {}:{}", relative(*a), relative(*b)));
            format!("sack{}", blocks.collect::<String>())
        }
        Opt::Stamps(a, b) => format!("ts {a} {b}"),
        Opt::Capability(..) => "capable".into(),
        Opt::Probe(kind, id) => {
            let name = match kind {
                0x01 => "dummy",
                0x02 => "nil",
                0x81 => "dummy-ack",
                _ => "nil-ack",
            };
            format!("{name} {id}")
        }
        Opt::Other(kind, content) => {
            let hex: String = content.iter().map(|b| format!("{b:02x}")).collect();
            format!("raw {kind} {hex}")
        }
    }
}

/// Sequence numbers wrap.
fn add(base: u32, n: i64) -> u32 {
    base.wrapping_add(n as u32)
}
