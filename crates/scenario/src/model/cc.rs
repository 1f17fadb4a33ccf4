//! The congestion control of a flow: the registry's configuration.

use super::short::ShortForm;
use crate::error::ValueError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Name of the default congestion control.
pub(super) const DEFAULT_CC: &str = "sack";

/// The default congestion control.
pub(crate) fn default_cc() -> skyhaul_cc::Config {
    skyhaul_cc::Config::by_name(DEFAULT_CC).expect("the default is a registered name")
}

/// Congestion control: the registry's configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CcSpec(pub skyhaul_cc::Config);

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
