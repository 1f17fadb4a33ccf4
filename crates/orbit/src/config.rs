//! Configuration of a link over satellites.

use crate::constellation::{Constellation, named};
use crate::epoch::Epoch;
use crate::handover::Policy;
use crate::invalid::Invalid;
use crate::station::Station;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use skyhaul_base::Duration;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Time;

/// Two ground stations, and the satellites between them.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "kebab-case")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "OrbitSpec"))]
pub struct Config {
    /// The station at the senders' end: a city, or a table with coordinates.
    pub from: Station,
    /// The station at the receivers' end.
    pub to: Station,
    /// The satellites that may serve: the name of a known constellation, a table, or a list of these.
    pub constellation: Shells,
    /// Start time of the run (UTC), required for orbital elements. Without it, the Earth's rotation angle is 0 at the
    /// start.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub epoch: Option<Epoch>,
    /// Time offset of the orbits and the Earth's rotation at the start of the run; 0 by default.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::time", default))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub offset: Duration,
    /// How satellites forward packets; "bent-pipe" by default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub relay: Relay,
    /// Processing delay of each satellite on the path; by default 0 for a bent pipe, otherwise 1 ms.
    #[cfg_attr(
        feature = "serde",
        serde(with = "optional_time", default, skip_serializing_if = "Option::is_none")
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Time>"))]
    pub processing: Option<Duration>,
    /// Interval at which the delay is computed, with linear interpolation between. By default 100 ms for low orbits,
    /// 1 s for medium and 60 s for geostationary ones.
    #[cfg_attr(
        feature = "serde",
        serde(with = "optional_time", default, skip_serializing_if = "Option::is_none")
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Time>"))]
    pub step: Option<Duration>,
    /// Which of the visible satellites serves; "max-elevation" by default.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "policy::read", default))]
    #[cfg_attr(feature = "schema", schemars(schema_with = "policy::schema"))]
    pub handover: Policy,
    /// Interval of handover decisions, from the start of the run; 1 s by default.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::time", default = "second"))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub interval: Duration,
    /// Handover between satellites; "hard" by default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub switch: Switch,
    /// Interruption by a hard handover; 100 ms by default.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::time", default = "tenth"))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub interruption: Duration,
    /// Satellite diversity: how many satellites serve at a time; "none" by default.
    #[cfg_attr(feature = "serde", serde(default))]
    pub diversity: Diversity,
}

#[cfg(feature = "serde")]
const fn second() -> Duration {
    Duration::from_secs(1)
}
#[cfg(feature = "serde")]
const fn tenth() -> Duration {
    Duration::from_millis(100)
}

/// How satellites forward packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "RelaySpec"))]
pub enum Relay {
    /// One satellite, visible from both stations, relays packets.
    #[default]
    BentPipe,
    /// Satellites relay packets over inter-satellite links to their neighbours, two in their own plane and one in
    /// each adjacent plane, on the path of least delay, recomputed every second.
    InterSatellite,
}

/// Handover between satellites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SwitchSpec"))]
pub enum Switch {
    /// The link is interrupted, and packets in flight are lost unless its `drop-in-flight` is false.
    #[default]
    Hard,
    /// Packets in flight arrive, and later packets take the new path at once.
    Soft,
}

/// How many satellites serve at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "DiversitySpec"))]
pub enum Diversity {
    /// One.
    #[default]
    None,
    /// Two, of which the nearer one carries the packets; during the handover of one, the other serves.
    Best,
    /// Two, and each packet is sent over both; the first copy to arrive is delivered, the other is dropped.
    Both,
}

/// One constellation or more.
#[derive(Clone, Debug, PartialEq)]
pub struct Shells(pub Vec<Constellation>);

impl Shells {
    /// The known constellation of this name.
    ///
    /// # Errors
    /// If the name is unknown; the message lists the known ones.
    pub fn named(name: &str) -> Result<Constellation, UnknownConstellation> {
        named::find(name).ok_or_else(|| {
            let known: Vec<&str> = named::NAMED.iter().map(|n| n.0).collect();
            UnknownConstellation(format!(
                "there is no constellation \"{name}\" (known: {})",
                known.join(", ")
            ))
        })
    }
}

/// A name that is no known constellation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownConstellation(String);

impl Config {
    /// A bent pipe between two stations with default settings.
    #[must_use]
    pub fn new(from: Station, to: Station, constellation: impl Into<Constellation>) -> Self {
        Self {
            from,
            to,
            constellation: Shells(Vec::from([constellation.into()])),
            epoch: None,
            offset: Duration::ZERO,
            relay: Relay::default(),
            processing: None,
            step: None,
            handover: Policy::default(),
            interval: Duration::from_secs(1),
            switch: Switch::default(),
            interruption: Duration::from_millis(100),
            diversity: Diversity::default(),
        }
    }

    /// The canonical form, shared by all equivalent configurations.
    #[must_use]
    pub fn canonical(mut self) -> Self {
        self.constellation.0 = self.constellation.0.into_iter().map(Constellation::canonical).collect();
        self
    }

    /// Processing delay of each satellite on the path.
    #[must_use]
    pub fn processing(&self) -> Duration {
        self.processing.unwrap_or(match self.relay {
            Relay::BentPipe => Duration::ZERO,
            Relay::InterSatellite => Duration::from_millis(1),
        })
    }

    /// Duration of the interruption by a handover.
    #[must_use]
    pub fn interruption(&self) -> Duration {
        match self.switch {
            Switch::Hard => self.interruption,
            Switch::Soft => Duration::ZERO,
        }
    }

    /// Refuses errors that can be found without the constellations.
    pub(crate) fn validate(&self) -> Result<(), Invalid> {
        self.from.validate().map_err(|e| e.below("from"))?;
        self.to.validate().map_err(|e| e.below("to"))?;
        self.handover.validate().map_err(|e| e.below("handover"))?;
        time("offset", self.offset, Duration::ZERO, Duration::from_secs(366 * 86_400))?;
        time("processing", self.processing(), Duration::ZERO, Duration::from_secs(1))?;
        time("interval", self.interval, Duration::from_millis(10), Duration::from_secs(3_600))?;
        time("interruption", self.interruption, Duration::ZERO, Duration::from_secs(60))?;
        if let Some(step) = self.step {
            time("step", step, Duration::from_millis(1), Duration::from_secs(3_600))?;
        }
        if self.constellation.0.is_empty() {
            return Err(Invalid::new(
                "constellation",
                "an empty list: write at least one, such as \"leo550\"",
            ));
        }
        if self.relay == Relay::InterSatellite && self.diversity != Diversity::None {
            let message = "two paths at a time need relay = \"bent-pipe\": leave this out, or write \"none\"";
            return Err(Invalid::new("diversity", message));
        }
        Ok(())
    }
}

fn time(key: &str, value: Duration, min: Duration, max: Duration) -> Result<(), Invalid> {
    crate::invalid::within(key, value.as_secs_f64(), min.as_secs_f64(), max.as_secs_f64(), "s")
}

#[cfg(feature = "serde")]
mod optional_time {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use skyhaul_base::Duration;
    use skyhaul_base::amount::Time;

    pub(super) fn serialize<S: Serializer>(value: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
        value.map(Time).serialize(s)
    }
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
        Time::deserialize(d).map(|t| Some(t.0))
    }
}

#[cfg(feature = "serde")]
mod policy {
    use crate::handover::{NAMES, Policy};
    use alloc::format;
    use alloc::string::String;
    use serde::Deserializer;
    use skyhaul_base::amount::text_or_table;

    pub(super) fn read<'de, D: Deserializer<'de>>(d: D) -> Result<Policy, D::Error> {
        let find = |text: &str| {
            Policy::find(text)
                .ok_or_else(|| format!("there is no policy \"{text}\" (known: {})", NAMES.join(", ")))
        };
        let bare = |n: &str| -> String { format!("{n} is not a policy: write one of {}", NAMES.join(", ")) };
        text_or_table(d, "a policy such as \"max-elevation\", or a table with its kind", find, bare)
    }

    #[cfg(feature = "schema")]
    pub(super) fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let table = generator.subschema_for::<Policy>();
        schemars::json_schema!({
            "description": "Which of the visible satellites serves; \"max-elevation\" by default.",
            "anyOf": [{ "type": "string", "enum": NAMES }, table],
        })
    }
}

#[cfg(feature = "serde")]
mod shells {
    use super::*;
    use core::fmt;
    use serde::de::value::MapAccessDeserializer;
    use serde::de::{Error, MapAccess, SeqAccess, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use skyhaul_base::amount::text_or_table;

    const EXPECTED: &str = "a constellation such as \"leo550\", a table with its kind, or a list of these";

    fn bare(n: &str) -> String {
        format!("{n} is not a constellation: write {EXPECTED}")
    }

    /// One of a list.
    struct ListEntry(Constellation);

    impl<'de> Deserialize<'de> for ListEntry {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            text_or_table(d, EXPECTED, Shells::named, bare).map(Self)
        }
    }

    struct Reader;

    impl<'de> Visitor<'de> for Reader {
        type Value = Shells;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(EXPECTED)
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<Shells, E> {
            Shells::named(text).map(|c| Shells(Vec::from([c]))).map_err(E::custom)
        }
        fn visit_i64<E: Error>(self, n: i64) -> Result<Shells, E> {
            Err(E::custom(bare(&format!("{n}"))))
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Shells, A::Error> {
            let mut shells = Vec::new();
            while let Some(ListEntry(shell)) = list.next_element()? {
                shells.push(shell);
            }
            Ok(Shells(shells))
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Shells, A::Error> {
            Constellation::deserialize(MapAccessDeserializer::new(map)).map(|c| Shells(Vec::from([c])))
        }
    }

    impl<'de> Deserialize<'de> for Shells {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            d.deserialize_any(Reader)
        }
    }

    impl Serialize for Shells {
        fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            match self.0.as_slice() {
                [one] => one.serialize(s),
                list => s.collect_seq(list),
            }
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Shells {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "ConstellationsSpec".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let table = generator.subschema_for::<Constellation>();
        let names: Vec<&str> = named::NAMED.iter().map(|n| n.0).collect();
        schemars::json_schema!({
            "anyOf": [
                { "type": "string", "enum": names.clone() },
                table.clone(),
                { "type": "array", "minItems": 1, "items": { "anyOf": [{ "type": "string", "enum": names }, table] } },
            ],
        })
    }
}
