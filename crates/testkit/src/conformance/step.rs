//! A line of a case.
//!
//! ```text
//! [ours|linux|] [+TIME] [NUMBERx] < PACKET       arrives
//! [ours|linux|] [+TIME] [NUMBERx] > PACKET       leaves
//! +TIME silent                                   nothing leaves until then
//! +TIME skip                                     whatever left until then is forgotten
//! +TIME left 0..10                               so many packets left until then, whatever they were
//! peer b                                         from here on another peer, of another port
//! again                                          the peer's numbers count from a new beginning
//! server <OPTIONS> [win N]                       listens, and the handshake with a peer that has these options
//! client <OPTIONS> [win N]                       connects, and the handshake with a peer that has these options
//! listen · connect · accept · shutdown · close · abort
//! write N [= M] · read [N] [= M]                 so many bytes, of which M are taken or there; without M all N
//! sees nothing|reset|refused|timeout|unreachable|end
//! state established · cwnd 10 · ssthresh 5 · rto 200ms..300ms · mss 1448
//! ```

use super::notation::PacketNotation;
use super::number::{duration, range, whole};
use super::target::{Call, SocketStatus, TargetKind};
use skyhaul_base::Duration;

/// The targets that a line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Targets {
    /// Every target.
    All,
    /// Our endpoint and host.
    Ours,
    /// The kernel.
    Linux,
}

/// A line.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its number in the file, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
    /// The targets that it is for.
    pub targets: Targets,
    /// After the line before it, from and to; `None`: at once.
    pub after: Option<(Duration, Duration)>,
    /// What happens.
    pub act: Act,
}

/// What happens in a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// This number of packets arrives.
    Arrives(u32, PacketNotation),
    /// This number of packets leaves.
    Leaves(u32, PacketNotation),
    /// Nothing leaves.
    Silent,
    /// Whatever left is forgotten.
    Skip,
    /// From the first to the second number of packets have left.
    Left(u32, u32),
    /// The lines from here on are about another peer.
    Peer(String),
    /// The peer begins again with other numbers.
    Again,
    /// The application does something.
    Call(Call),
    /// What the application sees.
    ExpectStatus(SocketStatus),
    /// What shows of the endpoint.
    ExpectInfo(InfoRange),
}

/// What can be seen of the endpoint from outside of it.
#[derive(Clone, Debug, PartialEq)]
pub enum InfoRange {
    /// Its state, by its name.
    State(String),
    /// Congestion window, segments.
    Cwnd(u32, u32),
    /// Slow-start threshold, segments.
    Ssthresh(u32, u32),
    /// Retransmission timeout.
    Rto(Duration, Duration),
    /// Payload of a full segment, bytes.
    Mss(u32, u32),
}

const STATES: [&str; 10] = [
    "syn-sent",
    "syn-received",
    "established",
    "fin-wait-1",
    "fin-wait-2",
    "close-wait",
    "closing",
    "last-ack",
    "time-wait",
    "closed",
];

impl Step {
    /// The lines that a line of text stands for.
    ///
    /// # Errors
    /// If it makes no sense.
    pub fn parse(line: usize, text: &str) -> Result<Vec<Self>, String> {
        let (targets, rest) = match text.split_once('|') {
            Some(("ours", rest)) => (Targets::Ours, rest.trim()),
            Some(("linux", rest)) => (Targets::Linux, rest.trim()),
            _ => (Targets::All, text),
        };
        let (after, rest) = match rest.strip_prefix('+') {
            Some(timed) => {
                let (time, rest) = timed.split_once(char::is_whitespace).ok_or("something after the time")?;
                (Some(range(time, Duration::ZERO, Duration::from_secs(1_000_000), duration)?), rest.trim())
            }
            None => (None, rest),
        };
        let step = |act| Self { line, text: text.to_owned(), targets, after, act };
        let at = |after: Option<Duration>, act| Self { after: after.map(|t| (t, t)), ..step(act) };
        if let Some((role, options)) = handshake(rest) {
            return role.steps(options).map(|all| all.into_iter().map(|(t, act)| at(t, act)).collect());
        }
        act(rest).map(|act| vec![step(act)])
    }
}

/// The role of the TCP under test in a handshake.
#[derive(Clone, Copy)]
enum Role {
    Server,
    Client,
}

fn handshake(text: &str) -> Option<(Role, &str)> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match word {
        "server" => Some((Role::Server, rest)),
        "client" => Some((Role::Client, rest)),
        _ => None,
    }
}

/// Round-trip time of the handshakes that a word stands for.
const ROUND: Duration = Duration::from_millis(100);

impl Role {
    /// The handshake, segment by segment. The timestamps of a peer that offers them (`ts`) begin at 1000.
    fn steps(self, text: &str) -> Result<Vec<(Option<Duration>, Act)>, String> {
        let (options, rest) = match text.strip_prefix('<').and_then(|t| t.split_once('>')) {
            Some((options, rest)) => (options, rest.trim()),
            None => return Err("the peer's options, such as <mss 1000,sackOK>".into()),
        };
        let window = match rest.split_whitespace().collect::<Vec<_>>().as_slice() {
            [] => 65_535,
            ["win", n] => whole::<u16>(n)?,
            _ => return Err(format!("win and a number, not {rest:?}")),
        };
        let stamped = options.split(',').any(|o| o.trim() == "ts");
        let others: Vec<&str> = options.split(',').map(str::trim).filter(|o| *o != "ts").collect();
        let with = |stamps: &str| {
            let mut all: Vec<&str> = others.iter().copied().filter(|o| !o.is_empty()).collect();
            all.extend(stamped.then_some(stamps));
            all.join(",")
        };
        let acks = |stamps| if stamped { format!("<{stamps}>") } else { String::new() };
        let packet = |text: String| PacketNotation::parse(&text);
        Ok(match self {
            Self::Server => vec![
                (None, Act::Call(Call::Listen)),
                (None, Act::Arrives(1, packet(format!("S 0:0 win {window} <{}>", with("ts 1000 0")))?)),
                (None, Act::Leaves(1, packet("S. 0:0 ack 1".into())?)),
                (
                    Some(ROUND),
                    Act::Arrives(1, packet(format!(". 1:1 ack 1 win {window} {}", acks("ts 1100 echo")))?),
                ),
                (None, Act::Call(Call::Accept)),
            ],
            Self::Client => vec![
                (None, Act::Call(Call::Connect)),
                (None, Act::Leaves(1, packet("S 0:0".into())?)),
                (
                    Some(ROUND),
                    Act::Arrives(1, packet(format!("S. 0:0 ack 1 win {window} <{}>", with("ts 1000 echo")))?),
                ),
                (None, Act::Leaves(1, packet(". 1:1 ack 1".into())?)),
                (None, Act::ExpectInfo(InfoRange::State("established".into()))),
            ],
        })
    }
}

fn act(text: &str) -> Result<Act, String> {
    let (count, rest) = match text.split_once(char::is_whitespace) {
        Some((n, rest))
            if n.ends_with('x') && n[..n.len() - 1].bytes().all(|b| b.is_ascii_digit()) && n.len() > 1 =>
        {
            (whole::<u32>(&n[..n.len() - 1])?, rest.trim())
        }
        _ => (1, text),
    };
    if let Some(packet) = rest.strip_prefix('<') {
        return PacketNotation::parse(packet).map(|w| Act::Arrives(count, w));
    }
    if let Some(packet) = rest.strip_prefix('>') {
        return PacketNotation::parse(packet).map(|w| Act::Leaves(count, w));
    }
    if count != 1 {
        return Err("only packets are repeated".into());
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    let u32s = |word: &str| range(word, 0, u32::MAX, whole);
    Ok(match words.as_slice() {
        ["silent"] => Act::Silent,
        ["skip"] => Act::Skip,
        ["left", n] => u32s(n).map(|(a, b)| Act::Left(a, b))?,
        ["peer", name] => Act::Peer((*name).into()),
        ["again"] => Act::Again,
        ["listen"] => Act::Call(Call::Listen),
        ["connect"] => Act::Call(Call::Connect),
        ["accept"] => Act::Call(Call::Accept),
        ["write", n] => Act::Call(Call::Write(whole(n)?, None)),
        ["write", n, "=", m] => Act::Call(Call::Write(whole(n)?, Some(whole(m)?))),
        ["read"] => Act::Call(Call::Read(u64::MAX, None)),
        ["read", "=", m] => Act::Call(Call::Read(u64::MAX, Some(whole(m)?))),
        ["read", n] => Act::Call(Call::Read(whole(n)?, Some(whole(n)?))),
        ["read", n, "=", m] => Act::Call(Call::Read(whole(n)?, Some(whole(m)?))),
        ["shutdown"] => Act::Call(Call::Shutdown),
        ["close"] => Act::Call(Call::Close),
        ["abort"] => Act::Call(Call::Abort),
        ["sees", what] => Act::ExpectStatus(match *what {
            "nothing" => SocketStatus::Nothing,
            "reset" => SocketStatus::Reset,
            "refused" => SocketStatus::Refused,
            "timeout" => SocketStatus::TimedOut,
            "unreachable" => SocketStatus::Unreachable,
            "end" => SocketStatus::End,
            _ => {
                return Err(format!(
                    "sees nothing, reset, refused, timeout, unreachable or end, not {what:?}"
                ));
            }
        }),
        ["state", name] if STATES.contains(name) => Act::ExpectInfo(InfoRange::State((*name).into())),
        ["state", name] => return Err(format!("one of {}, not {name:?}", STATES.join(", "))),
        ["cwnd", n] => u32s(n).map(|(a, b)| Act::ExpectInfo(InfoRange::Cwnd(a, b)))?,
        ["ssthresh", n] => u32s(n).map(|(a, b)| Act::ExpectInfo(InfoRange::Ssthresh(a, b)))?,
        ["mss", n] => u32s(n).map(|(a, b)| Act::ExpectInfo(InfoRange::Mss(a, b)))?,
        ["rto", t] => {
            let (a, b) = range(t, Duration::ZERO, Duration::from_secs(1_000_000), duration)?;
            Act::ExpectInfo(InfoRange::Rto(a, b))
        }
        _ => return Err(format!("no line is written {text:?}: see step.rs")),
    })
}

impl Step {
    /// Whether a target of this kind takes part in the line.
    #[must_use]
    pub fn is_for(&self, kind: TargetKind) -> bool {
        match self.targets {
            Targets::All => true,
            Targets::Ours => kind != TargetKind::Linux,
            Targets::Linux => kind == TargetKind::Linux,
        }
    }
    /// Whether only a target that carries bytes can run the line.
    #[must_use]
    pub fn needs_bytes(&self) -> bool {
        match &self.act {
            Act::Arrives(_, PacketNotation::Icmp(_)) | Act::Leaves(_, PacketNotation::Icmp(_)) => true,
            Act::Arrives(_, PacketNotation::Segment(s)) | Act::Leaves(_, PacketNotation::Segment(s)) => {
                s.modifiers.needs_bytes()
            }
            Act::Peer(_) | Act::Again => true,
            _ => false,
        }
    }
}
