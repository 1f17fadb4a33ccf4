//! Classes of connections and rates of subscribers, as a file writes them. The gateway's own TCP ([`skyhaul_net::host`]) shares the link
//! by them.

use crate::network::Network;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use skyhaul_base::Rate;
use skyhaul_base::amount::{Dscp, RateSpec};
use skyhaul_net::host::{Class, Schedule, Subscribers};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

/// The name of the class of connections that fit into no class of the file.
pub(crate) const OTHERS: &str = "others";
/// The least rate of a subscriber, and of the link, bit/s: a packet of 1500 bytes takes 1.5 s.
pub(crate) const LEAST_RATE: u64 = 8000;
/// The greatest weight of a class; the least is 1.
const HEAVIEST: u32 = 100;
/// Maximum number of sections `[[class]]`, and of sections `[[subscriber]]`.
const MOST: usize = 64;

/// A section `[[class]]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClassConfig {
    /// Name of the class, for status and metrics.
    pub name: String,
    /// Ports of servers; empty: all.
    #[serde(default)]
    pub ports: Vec<Ports>,
    /// DSCPs of the client's packets; empty: all.
    #[serde(default)]
    pub dscp: Vec<Dscp>,
    /// Weight of the class: classes that have something to send share the link in proportion to their weights.
    #[serde(default = "one")]
    pub weight: u32,
}

/// A section `[[subscriber]]`: each network with a prefix of `prefix_v4` or `prefix_v6` bits within `networks` is a subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SubscriberConfig {
    /// The networks in which the subscribers are.
    pub networks: Vec<Network>,
    /// The length of the prefix of an IPv4 subscriber, bits; a subscriber is never larger than its entry in `networks`.
    #[serde(default = "an_address")]
    pub prefix_v4: u8,
    /// The length of the prefix of an IPv6 subscriber, bits.
    #[serde(default = "a_subnet")]
    pub prefix_v6: u8,
    /// The rate of each subscriber towards the link, IP headers included.
    #[serde(deserialize_with = "rate")]
    pub rate: Rate,
}

fn one() -> u32 {
    1
}
fn an_address() -> u8 {
    32
}
fn a_subnet() -> u8 {
    64
}
fn rate<'de, D: Deserializer<'de>>(d: D) -> Result<Rate, D::Error> {
    match RateSpec::deserialize(d)? {
        RateSpec::Bits(rate) if rate.bits_per_sec() >= LEAST_RATE => Ok(rate),
        _ => Err(D::Error::custom("write a rate of at least 8 kbit/s, such as \"2 Mbit/s\"")),
    }
}

/// One port, or a range of them: 22, "22", "5000-5010".
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "NumberOrText")]
pub struct Ports(RangeInclusive<u16>);

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(i64),
    Text(String),
    Other(serde::de::IgnoredAny),
}

impl NumberOrText {
    fn text(self) -> String {
        match self {
            Self::Number(n) => n.to_string(),
            Self::Text(text) => text,
            Self::Other(_) => String::new(),
        }
    }
}

impl TryFrom<NumberOrText> for Ports {
    type Error = String;
    fn try_from(from: NumberOrText) -> Result<Self, String> {
        let text = from.text();
        let (first, last) = text.split_once('-').unwrap_or((&text, &text));
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|p| *p > 0);
        match (port(first), port(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self(first..=last)),
            _ => Err(format!("{text:?} is no port: write 22, or \"5000-5010\" for a range")),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.0.start(), self.0.end());
        if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
    }
}
/// The schedule of a host by these sections.
pub(crate) fn schedule(classes: &[ClassConfig], subscribers: &[SubscriberConfig]) -> Schedule {
    let class = |c: &ClassConfig| Class {
        ports: c.ports.iter().map(|p| p.0.clone()).collect(),
        dscp: c.dscp.iter().map(|d| d.0).collect(),
        weight: c.weight,
    };
    let of = |s: &SubscriberConfig| Subscribers {
        networks: s.networks.iter().map(|n| (n.address, n.prefix)).collect(),
        prefixes: [s.prefix_v4, s.prefix_v6],
        rate: s.rate,
    };
    Schedule {
        classes: classes.iter().map(class).collect(),
        subscribers: subscribers.iter().map(of).collect(),
    }
}

/// The first key that is wrong, and what to write. `paced`: the link has a rate.
pub(crate) fn wrong(
    classes: &[ClassConfig],
    subscribers: &[SubscriberConfig],
    paced: bool,
) -> Option<(String, String)> {
    for (key, many) in [("class", classes.len()), ("subscriber", subscribers.len())] {
        if many > 0 && !paced {
            let message = format!(
                "the gateway shares a link whose rate it knows: write satellite.rate, or leave [[{key}]] out"
            );
            return Some((key.into(), message));
        }
        if many > MOST {
            return Some((key.into(), format!("write at most {MOST}")));
        }
    }
    let made = schedule(classes, subscribers).classes;
    let mut names = BTreeSet::from([OTHERS]);
    for (n, c) in classes.iter().enumerate() {
        let key = |name: &str| format!("class[{n}]{name}");
        let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if c.name.is_empty() || c.name.len() > 32 || !c.name.chars().all(known) {
            return Some((key(".name"), "write 1 to 32 small letters, digits and dashes".into()));
        }
        if !names.insert(&c.name) {
            let message = if c.name == OTHERS {
                "this is the name of the class of connections that fit into none: write another one".into()
            } else {
                format!("there is another class {:?}: write another name", c.name)
            };
            return Some((key(".name"), message));
        }
        if c.weight == 0 || c.weight > HEAVIEST {
            return Some((key(".weight"), format!("write 1 to {HEAVIEST}")));
        }
        let covering = made.get(n).and_then(|own| made.iter().take(n).position(|before| before.covers(own)));
        if let Some(before) = covering.and_then(|at| classes.get(at)) {
            let message = format!(
                "{:?} takes all of its connections, since the first class that fits counts: put {:?} before it, or leave it out",
                before.name, c.name
            );
            return Some((key(""), message));
        }
    }
    let all: Vec<(usize, Network)> = subscribers
        .iter()
        .enumerate()
        .flat_map(|(n, s)| s.networks.iter().map(move |net| (n, *net)))
        .collect();
    for (n, s) in subscribers.iter().enumerate() {
        let key = |name: &str| format!("subscriber[{n}].{name}");
        if s.networks.is_empty() {
            return Some((key("networks"), "write the networks in which the subscribers are".into()));
        }
        for (name, length, bits) in [("prefix-v4", s.prefix_v4, 32), ("prefix-v6", s.prefix_v6, 128)] {
            if length > bits {
                return Some((key(name), format!("write 0 to {bits}, in bits")));
            }
        }
    }
    all.iter().enumerate().find_map(|(i, (_, a))| {
        let mut others = all.iter().enumerate().filter(|(k, _)| *k != i);
        let (_, (n, b)) = others.find(|(_, (_, b))| a.covers(b))?;
        Some((format!("subscriber[{n}].networks"), format!("{a} contains {b}: leave one of them out")))
    })
}

/// The state of a class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ClassStatus {
    /// Name of the class; "others": connections that fit into no class of the file.
    pub name: String,
    /// Weight of the class.
    pub weight: u32,
    /// Bytes of the class's packets over the link.
    pub sent: u64,
}

/// The name of the class of this number; `None` if the file has no class.
pub(crate) fn name(classes: &[ClassConfig], number: usize) -> Option<&str> {
    (!classes.is_empty()).then(|| classes.get(number).map_or(OTHERS, |c| c.name.as_str()))
}

/// The state of all classes, given the bytes that each has sent; empty if the file has no class.
pub(crate) fn status(classes: &[ClassConfig], sent: &[u64]) -> Vec<ClassStatus> {
    if classes.is_empty() {
        return Vec::new();
    }
    let names = classes.iter().map(|c| (c.name.as_str(), c.weight)).chain([(OTHERS, 1)]);
    names
        .zip(sent)
        .map(|((name, weight), sent)| ClassStatus { name: name.into(), weight, sent: *sent })
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    const PACED: &str =
        "[terrestrial]\ninterface = \"lan0\"\n[satellite]\ninterface = \"sat0\"\nrate = \"10 Mbit/s\"\n";

    fn read(more: &str) -> Result<Config, String> {
        Config::parse("g.toml", &format!("{PACED}{more}")).map_err(|e| e.to_string())
    }

    #[test]
    fn classes_are_read_with_names_and_numbers() {
        let c = read(
            "[[class]]\nname = \"voice\"\ndscp = [\"EF\", \"cs5\", \"AF41\", 10, \"63\"]\nweight = 9\n\
             [[class]]\nname = \"ssh\"\nports = [22, \"53\", \"5000-5010\"]\n\
             [[subscriber]]\nnetworks = [\"10.1.0.0/24\", \"fd00::/48\"]\nrate = \"2 Mbit/s\"\n",
        )
        .unwrap();
        let s = c.schedule();
        assert_eq!((&s.classes[0].dscp[..], s.classes[0].weight), (&[46, 40, 34, 10, 63][..], 9));
        assert_eq!(s.classes[1].ports, [22..=22, 53..=53, 5000..=5010]);
        assert_eq!((s.subscribers[0].prefixes, s.subscribers[0].rate.bits_per_sec()), ([32, 64], 2_000_000));
    }

    #[test]
    fn contradictory_classes_are_refused() {
        let class = |more: &str| format!("[[class]]\nname = \"a\"\n{more}\n");
        let subscriber = |net: &str| format!("[[subscriber]]\nnetworks = [{net}]\nrate = \"1 Mbit/s\"\n");
        for (more, expected) in [
            (class("").repeat(2), "class[1].name: there is another class \"a\": write another name"),
            (class("").replace("\"a\"", "\"others\""), "class[0].name: this is the name of the class of"),
            (class("").replace("\"a\"", "\"A b\""), "class[0].name: write 1 to 32 small letters"),
            (class("weight = 0"), "class[0].weight: write 1 to 100"),
            (class("ports = [\"9-5\"]"), "class[0].ports[0]: \"9-5\" is no port: write 22, or"),
            (class("ports = [0]"), "class[0].ports[0]: \"0\" is no port: write 22"),
            (class("dscp = [64]"), "class[0].dscp[0]: \"64\" is no DSCP: write a number below 64"),
            (class("dscp = [\"AF44\"]"), "class[0].dscp[0]: \"AF44\" is no DSCP"),
            (class("dscp = [\"é\"]"), "class[0].dscp[0]: \"é\" is no DSCP"),
            (class("rate = 5"), "class[0].rate: unknown field"),
            (
                class("ports = [\"1-100\"]") + &class("ports = [22]").replace("\"a\"", "\"b\""),
                "class[1]: \"a\" takes all of its connections, since the first class that fits counts: put \"b\" before it",
            ),
            (subscriber(""), "subscriber[0].networks: write the networks"),
            (
                subscriber("\"10.0.0.0/8\"") + "prefix-v4 = 33\n",
                "subscriber[0].prefix-v4: write 0 to 32, in bits",
            ),
            (
                subscriber("\"fd00::1\"") + "prefix-v6 = 129\n",
                "subscriber[0].prefix-v6: write 0 to 128, in bits",
            ),
            (
                subscriber("\"10.0.0.0/8\"") + &subscriber("\"10.1.0.0/16\""),
                "subscriber[1].networks: 10.0.0.0/8 contains 10.1.0.0/16: leave one of them out",
            ),
            (
                subscriber("\"10.0.0.0/8\"").replace("1 Mbit/s", "1 bit/s"),
                "subscriber[0].rate: write a rate of at least 8 kbit/s",
            ),
        ] {
            let said = read(&more).unwrap_err();
            assert!(said.starts_with(&format!("g.toml: {expected}")) && !said.contains('\n'), "{said}");
        }
        let slow = PACED.replace("rate = \"10 Mbit/s\"\n", "");
        for (more, key) in [(class(""), "class"), (subscriber("\"10.0.0.0/8\""), "subscriber")] {
            let said = Config::parse("g.toml", &format!("{slow}{more}")).unwrap_err().to_string();
            assert!(
                said.starts_with(&format!("g.toml: {key}: the gateway shares a link whose rate it knows")),
                "{said}"
            );
        }
        // The first class that matches decides: a narrow class before a wide one hides nothing.
        read(&(class("ports = [22]") + &class("ports = [\"1-100\"]").replace("\"a\"", "\"b\""))).unwrap();
    }
}
