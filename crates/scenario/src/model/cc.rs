//! The congestion control of a flow: the registry's configuration.

use super::short::ShortForm;
use crate::error::ValueError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use skyhaul_cc::Reading;
use std::borrow::Cow;

/// Name of the default congestion control.
pub(super) const DEFAULT_CC: &str = "sack";

/// The default congestion control.
pub(crate) fn default_cc() -> skyhaul_cc::Config {
    skyhaul_cc::Config::by_name(DEFAULT_CC).expect("the default is a registered name")
}

/// Congestion control: the registry's configuration. In files, `reading` may name a set of options of the control; options
/// beside it depart from that set. It is written out with all options and without the name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct CcSpec(pub skyhaul_cc::Config);

impl<'de> Deserialize<'de> for CcSpec {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let given = Map::deserialize(d)?;
        let options = with_reading(given).map_err(D::Error::custom)?;
        serde_json::from_value(Value::Object(options)).map(Self).map_err(D::Error::custom)
    }
}

/// The options of the named reading, if there is one, under those that are given.
fn with_reading(mut given: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let Some(reading) = given.remove("reading") else { return Ok(given) };
    let control = given.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let known: Vec<&str> = Reading::all_of(&control).map(|r| r.name).collect();
    if known.is_empty() {
        let with = skyhaul_cc::NAMES.iter().filter(|cc| Reading::all_of(cc).next().is_some());
        let with = with.map(|cc| format!("\"{cc}\"")).collect::<Vec<_>>().join(" and ");
        return Err(format!("reading: only {with} have named readings"));
    }
    let Some(found) = reading.as_str().and_then(|name| Reading::of(&control, name)) else {
        let name = reading.as_str().map_or_else(|| reading.to_string(), str::to_owned);
        let unknown = ValueError::unknown(&name, "a reading", known.iter().copied(), "");
        return Err(format!("reading: {unknown}"));
    };
    let mut options = match serde_json::to_value(found.config()) {
        Ok(Value::Object(options)) => options,
        _ => Map::new(),
    };
    options.append(&mut given);
    Ok(options)
}

impl JsonSchema for CcSpec {
    fn schema_name() -> Cow<'static, str> {
        "CcSpec".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let of_options = generator.subschema_for::<skyhaul_cc::Config>();
        let of_readings = skyhaul_cc::NAMES.iter().filter_map(|cc| {
            let names: Vec<&str> = Reading::all_of(cc).map(|r| r.name).collect();
            let about: Vec<String> =
                Reading::all_of(cc).map(|r| format!("`{}`: {}", r.name, r.about)).collect();
            (!names.is_empty()).then(|| {
                json_schema!({
                    "description": "A named set of options; those beside it depart from it.",
                    "type": "object",
                    "required": ["name", "reading"],
                    "properties": {
                        "name": { "const": cc },
                        "reading": { "enum": names, "description": about.join(". ") },
                    },
                })
            })
        });
        let all: Vec<Schema> = std::iter::once(of_options).chain(of_readings).collect();
        json_schema!({ "anyOf": all })
    }
}

impl ShortForm for CcSpec {
    const EXPECTING: &'static str = "a name such as \"peach\", or a table such as { name = \"peach\" }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        skyhaul_cc::Config::by_name(text).map(Self).ok_or_else(|| {
            let names = skyhaul_cc::NAMES.iter().copied();
            ValueError::unknown(text, "a congestion control", names, "; your own: \"user:NAME\"")
        })
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "enum": skyhaul_cc::NAMES },
            { "description": "A user-defined control, provided by the program that runs the scenario.",
              "type": "string", "pattern": "^user:[A-Za-z0-9_-]+$" },
        ] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(options: Value) -> Result<skyhaul_cc::Config, String> {
        serde_json::from_value::<CcSpec>(options).map(|spec| spec.0).map_err(|e| e.to_string())
    }

    #[test]
    fn a_reading_stands_for_its_options_and_others_depart_from_it() {
        for reading in skyhaul_cc::READINGS {
            let named = read(json!({ "name": reading.control, "reading": reading.name }));
            assert_eq!(named, Ok(reading.config()));
        }
        let text = json!({ "name": "peach", "recovery": "reno", "on-rto": "slow", "leftover-adsn": "keep",
            "final-ack": "send-first", "wdsn-on-restart": "keep", "strict-epoch": false, "dummies-without-data": true });
        assert_eq!(read(json!({ "name": "peach", "reading": "listing" })), read(text));
        let departs = json!({ "name": "peach", "reading": "listing", "leftover-adsn": "drop" });
        let Ok(skyhaul_cc::Config::Peach(peach)) = read(departs) else { panic!("Peach") };
        assert_eq!(peach.leftover_adsn, skyhaul_cc::alg::peach::LeftoverAdsn::Drop);
        assert_eq!(peach.on_rto, skyhaul_cc::alg::peach::Opening::Slow);
        // It is written without the name of the reading, and read again as the same.
        let written = serde_json::to_value(CcSpec(skyhaul_cc::Config::Peach(peach.clone()))).expect("writes");
        assert_eq!(written.get("reading"), None);
        assert_eq!(read(written), Ok(skyhaul_cc::Config::Peach(peach)));
    }

    #[test]
    fn a_reading_that_does_not_exist_is_refused_with_those_that_do() {
        let error = |options| read(options).expect_err("refused");
        let unknown = error(json!({ "name": "peach", "reading": "lising" }));
        assert!(unknown.contains("reading: ") && unknown.contains("did you mean \"listing\"?"), "{unknown}");
        assert!(
            error(json!({ "name": "peach-plus", "reading": 3 })).contains("printed, both-papers, scoreboard")
        );
        assert_eq!(
            error(json!({ "name": "sack", "reading": "listing" })),
            "reading: only \"peach\" and \"peach-plus\" have named readings"
        );
        // With a reading or without: an unknown option is refused.
        assert!(
            error(json!({ "name": "peach", "reading": "listing", "recovry": "reno" })).contains("recovry")
        );
    }
}
