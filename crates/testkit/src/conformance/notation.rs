//! How a packet is written in a case.
//!
//! ```text
//! S 0:0 win 65535 <mss 1460,sackOK,wscale 3,ts 100 0>    a SYN
//! . 1:1001 ack 1 win 5000 <sack 2001:3001 4001:5001>     1000 bytes of data
//! F. 1001:1001 ack 1                                     a FIN without data
//! . 1:1 ack 1 <ts 200 echo>                              echoes the newest timestamp that was seen
//! . 1:1001 ack 1 <ts 200 echo> {ce}                      marked by a router
//! icmp host-unreachable quote 1                          an ICMP message that quotes a segment
//! ```
//! Flags are letters of `SFRPUECAXYZ.`: the point is ACK, `A` is AE, and `X`, `Y`, `Z` are the reserved bits from the left; `-`
//! is no flag at all. Numbers count from the initial sequence numbers, and may be negative.
//!
//! **Where a packet is expected**, only what is written is checked: window, options, acknowledgement. `*` stands for any range
//! or number, and `...` for any segment at all. PSH counts only where it is written. `win 1..` is a range, `no sack` says that
//! there is no such option, `{ce}`, `{ect0}`, `{not-ect}`, `{dscp 1}` and `{df}` check the IP header.
//!
//! **Options**: `mss 1460`, `wscale 3`, `sackOK`, `sack 1:2 3:4`, `ts 100 echo`, `nop`, `end`, `capable` (probes), `dummy 7`, `nil 7`,
//! `dummy-ack 7`, `nil-ack 7`, and `raw 30 0a0b` for any other kind with its content.
//!
//! **Modifiers of a packet that arrives**: `{from 127.0.0.1}`, `{bad-checksum}`, `{data-offset 4}`, `{cut 10}`,
//! `{ip-options 83070408080808}`, `{extension 43 0600...}`, `{fragments 48}`, `{first-fragment 48}`, `{urgent 5}`, `{ttl 1}`,
//! `{foreign}` (payload that is not the stream's).

use super::number::{hex, range, whole};
use super::packet::{Damage, FLAGS};
use std::net::IpAddr;

/// A packet as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketNotation {
    /// A segment.
    Segment(Box<Segment>),
    /// An ICMP message.
    Icmp(IcmpMessage),
    /// Any segment.
    Any,
}

/// A segment as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Flags; see [`super::packet`].
    pub flags: u16,
    /// First byte and the one after the last; `None`: any.
    pub range: Option<(i64, i64)>,
    /// Acknowledgement number.
    pub ack: Option<i64>,
    /// The window field: from, to.
    pub window: Option<(u16, u16)>,
    /// Options.
    pub options: Vec<OptionNotation>,
    /// What stands in braces.
    pub modifiers: Modifiers,
}

/// An option as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionNotation {
    /// As on the wire.
    Plain(super::option::Opt),
    /// Timestamps: value and echo; `None`: any.
    Stamps(Option<TimestampNotation>, Option<TimestampNotation>),
    /// SACK blocks, relative.
    Sack(Vec<(i64, i64)>),
    /// No option of this name.
    No(AbsentOption),
}

/// A timestamp as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampNotation {
    /// A number of the peer's own clock.
    Number(i64),
    /// The newest value seen from the TCP under test, plus this number.
    Echo(i64),
}

/// Options that may be said to be absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsentOption {
    /// SACK blocks.
    Sack,
    /// SACK permitted.
    SackPermitted,
    /// Timestamps.
    Stamps,
    /// Window scale.
    Scale,
    /// The capability of probes.
    Capability,
    /// A probe's mark.
    Probe,
}

/// What stands in braces behind a segment: fields of the IP header, the urgent pointer, and faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modifiers {
    /// Bits of ECN: 0 not capable, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: Option<u8>,
    /// Differentiated services, the six bits.
    pub dscp: Option<u8>,
    /// Urgent pointer.
    pub urgent: Option<u16>,
    /// Time to live.
    pub ttl: Option<u8>,
    /// Do not fragment.
    pub dont_fragment: Option<bool>,
    /// From another address than the peer's.
    pub from: Option<IpAddr>,
    /// Payload that is not the stream's.
    pub foreign: bool,
    /// What is wrong with the packet on purpose.
    pub damage: Damage,
}

/// An ICMP message as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IcmpMessage {
    /// What it says.
    pub what: IcmpError,
    /// Sequence number of the quoted segment.
    pub quote: i64,
    /// From another address than the peer's.
    pub from: Option<IpAddr>,
}

/// ICMP messages that matter to TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcmpError {
    /// Network or route.
    Network,
    /// Host or address.
    Host,
    /// Protocol (of IPv6: next header unknown).
    Protocol,
    /// Port.
    Port,
    /// By an administrator.
    Prohibited,
    /// Fragmentation needed, or packet too big: the MTU.
    TooBig(u32),
    /// Source quench (RFC 6633: to be ignored).
    Quench,
    /// Time exceeded on the way.
    Exceeded,
}

impl PacketNotation {
    /// The packet in this text.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "..." {
            return Ok(Self::Any);
        }
        match text.strip_prefix("icmp ") {
            Some(rest) => message(rest).map(Self::Icmp),
            None => segment(text).map(|s| Self::Segment(Box::new(s))),
        }
    }
}

fn flags(word: &str) -> Result<u16, String> {
    if word == "-" {
        return Ok(0);
    }
    word.chars().try_fold(0, |all, c| {
        let flag = FLAGS.iter().find(|f| f.0 == c);
        flag.map(|f| all | f.1).ok_or_else(|| format!("flags are letters of SFRPUECAXYZ. or -, not {word:?}"))
    })
}

fn edges(word: &str) -> Result<(i64, i64), String> {
    let (a, b) = word.split_once(':').ok_or_else(|| format!("a range such as 1:1001, not {word:?}"))?;
    let (a, b) = (whole::<i64>(a)?, whole::<i64>(b)?);
    if b < a { Err(format!("a range that does not run backwards, not {word:?}")) } else { Ok((a, b)) }
}

/// Text, and what stands at its end between two marks.
fn cut_out(text: &str, open: char, close: char) -> Result<(String, Option<String>), String> {
    let Some(from) = text.find(open) else { return Ok((text.to_owned(), None)) };
    let to = text.rfind(close).filter(|to| *to > from).ok_or_else(|| format!("{open} without {close}"))?;
    let mut outside = text[..from].to_owned();
    outside.push_str(&text[to + close.len_utf8()..]);
    Ok((outside, Some(text[from + 1..to].to_owned())))
}

fn segment(text: &str) -> Result<Segment, String> {
    let (text, modifiers) = cut_out(text, '{', '}')?;
    let (head, options) = cut_out(&text, '<', '>')?;
    let mut words = head.split_whitespace();
    let mut s = Segment { flags: flags(words.next().ok_or("a packet")?)?, ..Segment::default() };
    s.range = match words.next().ok_or("flags, then a range such as 1:1001")? {
        "*" => None,
        range => Some(edges(range)?),
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("a value after {word}"));
        match word {
            "ack" => s.ack = Some(value()?).filter(|v| *v != "*").map(whole).transpose()?,
            "win" => s.window = Some(range(value()?, 0, u16::MAX, whole)?),
            _ => return Err(format!("ack or win, not {word:?}")),
        }
    }
    for o in options.iter().flat_map(|o| o.split(',')).map(str::trim).filter(|o| !o.is_empty()) {
        s.options.push(option(o)?);
    }
    for b in modifiers.iter().flat_map(|b| b.split(',')).map(str::trim).filter(|b| !b.is_empty()) {
        s.modifiers.take(b)?;
    }
    Ok(s)
}

fn stamp(word: &str) -> Result<Option<TimestampNotation>, String> {
    if word == "*" {
        return Ok(None);
    }
    Ok(Some(match word.strip_prefix("echo") {
        Some("") => TimestampNotation::Echo(0),
        Some(more) => TimestampNotation::Echo(whole(more)?),
        None => TimestampNotation::Number(whole(word)?),
    }))
}

fn option(text: &str) -> Result<OptionNotation, String> {
    use super::option::Opt;
    let words: Vec<&str> = text.split_whitespace().collect();
    Ok(match words.as_slice() {
        ["mss", n] => OptionNotation::Plain(Opt::Mss(whole(n)?)),
        ["wscale", n] => OptionNotation::Plain(Opt::Scale(whole(n)?)),
        ["sackOK"] => OptionNotation::Plain(Opt::SackPermitted),
        ["nop"] => OptionNotation::Plain(Opt::Nop),
        ["end"] => OptionNotation::Plain(Opt::End),
        ["capable"] => OptionNotation::Plain(Opt::Capability(0x17, 0)),
        ["dummy", n] => OptionNotation::Plain(Opt::Probe(0x01, whole(n)?)),
        ["nil", n] => OptionNotation::Plain(Opt::Probe(0x02, whole(n)?)),
        ["dummy-ack", n] => OptionNotation::Plain(Opt::Probe(0x81, whole(n)?)),
        ["nil-ack", n] => OptionNotation::Plain(Opt::Probe(0x82, whole(n)?)),
        ["raw", kind] => OptionNotation::Plain(Opt::Other(whole(kind)?, Vec::new())),
        ["raw", kind, content] => OptionNotation::Plain(Opt::Other(whole(kind)?, hex(content)?)),
        ["ts", a, b] => OptionNotation::Stamps(stamp(a)?, stamp(b)?),
        ["sack", blocks @ ..] if !blocks.is_empty() => {
            OptionNotation::Sack(blocks.iter().map(|b| sack_block(b)).collect::<Result<_, _>>()?)
        }
        ["no", what] => OptionNotation::No(match *what {
            "sack" => AbsentOption::Sack,
            "sackOK" => AbsentOption::SackPermitted,
            "ts" => AbsentOption::Stamps,
            "wscale" => AbsentOption::Scale,
            "capable" => AbsentOption::Capability,
            "probe" => AbsentOption::Probe,
            _ => return Err(format!("no sack, sackOK, ts, wscale, capable or probe, not {what:?}")),
        }),
        _ => return Err(format!("no option is written {text:?}: see notation.rs")),
    })
}

/// A block may run backwards: peers send what they like.
fn sack_block(word: &str) -> Result<(i64, i64), String> {
    let (a, b) = word.split_once(':').ok_or_else(|| format!("a block such as 1001:2001, not {word:?}"))?;
    Ok((whole(a)?, whole(b)?))
}

impl Modifiers {
    fn take(&mut self, text: &str) -> Result<(), String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["not-ect"] => self.ecn = Some(0),
            ["ect1"] => self.ecn = Some(1),
            ["ect0"] => self.ecn = Some(2),
            ["ce"] => self.ecn = Some(3),
            ["df"] => self.dont_fragment = Some(true),
            ["no-df"] => self.dont_fragment = Some(false),
            ["foreign"] => self.foreign = true,
            ["dscp", n] => self.dscp = Some(whole(n)?),
            ["urgent", n] => self.urgent = Some(whole(n)?),
            ["ttl", n] => self.ttl = Some(whole(n)?),
            ["from", a] => self.from = Some(a.parse().map_err(|_| format!("an address, not {a:?}"))?),
            ["bad-checksum"] => self.damage.checksum = true,
            ["data-offset", n] => self.damage.data_offset = Some(whole(n)?),
            ["cut", n] => self.damage.cut = Some(whole(n)?),
            ["ip-options", h] => self.damage.ip_options = hex(h)?,
            ["extension", kind, h] => self.damage.extensions = Some((whole(kind)?, hex(h)?)),
            ["fragments", n] => self.damage.fragments = Some(whole(n)?),
            ["first-fragment", n] => {
                (self.damage.fragments, self.damage.first_only) = (Some(whole(n)?), true);
            }
            _ => return Err(format!("nothing is called {{{text}}}: see notation.rs")),
        }
        Ok(())
    }
    /// Whether only a target that carries bytes can send or check it.
    #[must_use]
    pub fn needs_bytes(&self) -> bool {
        self.ecn.is_some()
            || self.dscp.is_some()
            || self.urgent.is_some()
            || self.ttl.is_some()
            || self.dont_fragment.is_some()
            || self.from.is_some()
            || !self.damage.is_none()
    }
}

fn message(text: &str) -> Result<IcmpMessage, String> {
    let (text, modifiers) = cut_out(text, '{', '}')?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let (name, rest) = words.split_first().ok_or("the name of an ICMP message")?;
    let (what, rest) = match (*name, rest) {
        ("net-unreachable", r) => (IcmpError::Network, r),
        ("host-unreachable", r) => (IcmpError::Host, r),
        ("protocol-unreachable", r) => (IcmpError::Protocol, r),
        ("port-unreachable", r) => (IcmpError::Port, r),
        ("prohibited", r) => (IcmpError::Prohibited, r),
        ("source-quench", r) => (IcmpError::Quench, r),
        ("time-exceeded", r) => (IcmpError::Exceeded, r),
        ("too-big", [mtu, r @ ..]) => (IcmpError::TooBig(whole(mtu)?), r),
        _ => return Err(format!("no ICMP message is called {name:?}: see notation.rs")),
    };
    let ["quote", seq] = rest else { return Err("which segment it quotes, such as quote 1".into()) };
    let mut more = Modifiers::default();
    for b in modifiers.iter().flat_map(|b| b.split(',')).map(str::trim) {
        more.take(b)?;
    }
    Ok(IcmpMessage { what, quote: whole(seq)?, from: more.from })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_in_words() {
        let Ok(PacketNotation::Segment(s)) =
            PacketNotation::parse("S. 0:0 ack 1 win 1.. <mss 1460,ts * 7,no sack> {ce,urgent 5}")
        else {
            panic!("a segment")
        };
        assert_eq!((s.flags, s.range, s.ack, s.window), (0x12, Some((0, 0)), Some(1), Some((1, 65_535))));
        assert_eq!(s.options.len(), 3);
        assert_eq!((s.modifiers.ecn, s.modifiers.urgent), (Some(3), Some(5)));
        let Ok(PacketNotation::Icmp(m)) = PacketNotation::parse("icmp too-big 1200 quote 1 {from 10.0.0.9}")
        else {
            panic!("a message")
        };
        assert_eq!((m.what, m.quote, m.from.is_some()), (IcmpError::TooBig(1200), 1, true));
        assert_eq!(PacketNotation::parse("..."), Ok(PacketNotation::Any));
    }

    #[test]
    fn nonsense_is_refused_with_what_would_be_right() {
        for (text, part) in [
            ("Q 0:0", "letters of"),
            (". 1", "a range such as"),
            (". 5:1", "backwards"),
            (". 1:1 seq 4", "ack or win"),
            (". 1:1 <foo>", "no option"),
            (". 1:1 <mss", "without"),
            (". 1:1 {what}", "nothing is called"),
            ("icmp odd quote 1", "no ICMP message"),
            ("icmp source-quench", "quotes"),
        ] {
            let e = PacketNotation::parse(text).unwrap_err();
            assert!(e.contains(part), "{text}: {e}");
        }
    }
}
