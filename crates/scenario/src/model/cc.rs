//! The congestion control of a flow: the registry's configuration.

use super::names::holds_names;
use super::short::ShortForm;
use crate::error::{Problem, ValueError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use toml::{Table, Value};

/// Name of the default congestion control.
pub(super) const DEFAULT_CC: &str = "sack";

/// The default congestion control.
pub(crate) fn default_cc() -> skyhaul_cc::Config {
    skyhaul_cc::Config::by_name(DEFAULT_CC).expect("the default is a registered name")
}

/// Congestion control: the registry's configuration. In files, `reading` may name a set of options of the
/// control; options beside it depart from that set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CcSpec(pub skyhaul_cc::Config);

/// Replaces each named reading of a control in the table at `path` by its options; options beside it depart from them.
pub(crate) fn expand_readings(table: &mut Table, path: &str) -> Result<(), Problem> {
    for (key, value) in table.iter_mut() {
        let Value::Table(inner) = value else { continue };
        let here = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if key != "cc" || holds_names(path) {
            expand_readings(inner, &here)?;
        } else if let Some(reading) = inner.remove("reading") {
            let mut options = options_of(inner, &reading)
                .map_err(|message| Problem::new(format!("{here}.reading"), message))?;
            options.extend(core::mem::take(inner));
            *inner = options;
        }
    }
    Ok(())
}

/// The options of the control's named reading.
fn options_of(given: &Table, reading: &Value) -> Result<Table, String> {
    let control = given.get("name").and_then(Value::as_str).unwrap_or_default();
    let readings = skyhaul_cc::Config::by_name(control).map(|c| c.readings()).unwrap_or_default();
    if readings.is_empty() {
        let with =
            controls_with_readings().map(|(cc, _)| format!("\"{cc}\"")).collect::<Vec<_>>().join(" and ");
        return Err(format!("only {with} have named readings"));
    }
    let found = readings.iter().find(|(name, ..)| reading.as_str() == Some(*name)).ok_or_else(|| {
        let name = reading.as_str().map_or_else(|| reading.to_string(), str::to_owned);
        ValueError::unknown(&name, "a reading", readings.iter().map(|(name, ..)| *name), "").to_string()
    })?;
    Table::try_from(&found.2).map_err(|e| e.to_string())
}

/// Controls that have named readings: name, and [its readings](skyhaul_cc::Config::readings).
fn controls_with_readings()
-> impl Iterator<Item = (&'static str, Vec<(&'static str, &'static str, skyhaul_cc::Config)>)> {
    skyhaul_cc::NAMES.iter().filter_map(|cc| {
        let all = skyhaul_cc::Config::by_name(cc)?.readings();
        (!all.is_empty()).then_some((*cc, all))
    })
}

impl JsonSchema for CcSpec {
    fn schema_name() -> Cow<'static, str> {
        "CcSpec".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let of_options = generator.subschema_for::<skyhaul_cc::Config>();
        let of_readings = controls_with_readings().map(|(cc, readings)| {
            let names: Vec<&str> = readings.iter().map(|(name, ..)| *name).collect();
            let about: Vec<String> =
                readings.iter().map(|(name, about, _)| format!("`{name}`: {about}")).collect();
            json_schema!({
                "description": "A named set of options; those beside it depart from it.",
                "type": "object",
                "required": ["name", "reading"],
                "properties": {
                    "name": { "const": cc },
                    "reading": { "enum": names, "description": about.join(". ") },
                },
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
    use crate::Document;
    use skyhaul_cc::Config;
    use skyhaul_cc::alg::peach::{LeftoverAdsn, Opening};

    fn read(cc: &str) -> Result<Config, String> {
        let mut document = Document::preset("peach-geo").expect("a preset");
        document.set(&format!("flows.bulk.cc={cc}")).map_err(|e| e.to_string())?;
        document.resolve().map(|r| r.flows[0].cc.clone()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_reading_stands_for_its_options_and_others_depart_from_it() {
        let mut count = 0;
        for (control, readings) in super::controls_with_readings() {
            for (name, _, config) in readings {
                assert_eq!(read(&format!("{{ name = '{control}', reading = '{name}' }}")), Ok(config));
                count += 1;
            }
        }
        assert_eq!(count, 6);
        let text = "{ name = 'peach', recovery = 'reno', on-rto = 'slow', leftover-adsn = 'keep', final-ack = 'send-first', \
                    wdsn-on-restart = 'keep', strict-epoch = false, dummies-without-data = true }";
        assert_eq!(read("{ name = 'peach', reading = 'listing' }"), read(text));
        let departs = read("{ name = 'peach', reading = 'listing', leftover-adsn = 'drop' }");
        let Ok(Config::Peach(peach)) = departs else { panic!("{departs:?}") };
        assert_eq!((peach.leftover_adsn, peach.on_rto), (LeftoverAdsn::Drop, Opening::Slow));
        // Over an option in short form, as a study sets it.
        let mut document = Document::preset("peach-geo").expect("a preset");
        document.set("flows.bulk.cc.reading=both-papers").expect("a key");
        let both = document.resolve().expect("valid").flows[0].cc.clone();
        assert_eq!(Ok(both), read("{ name = 'peach', reading = 'both-papers' }"));
        // That reading is the default.
        assert_eq!(read("{ name = 'peach', reading = 'both-papers' }"), read("peach"));
        assert_eq!(read("{ name = 'peach-plus', reading = 'both-papers' }"), read("peach-plus"));
    }

    #[test]
    fn a_reading_that_does_not_exist_is_refused_with_those_that_do() {
        let error = |cc| read(cc).expect_err("refused");
        let unknown = error("{ name = 'peach', reading = 'lising' }");
        assert!(
            unknown.contains("flows.bulk.cc.reading: ") && unknown.contains("did you mean \"listing\"?"),
            "{unknown}"
        );
        assert!(error("{ name = 'peach-plus', reading = 3 }").contains("printed, both-papers, improved"));
        assert!(
            error("{ name = 'sack', reading = 'listing' }")
                .ends_with("reading: only \"peach\" and \"peach-plus\" have named readings")
        );
        // With a reading or without: an unknown option is refused.
        assert!(error("{ name = 'peach', reading = 'listing', recovry = 'reno' }").contains("recovry"));
    }
}
