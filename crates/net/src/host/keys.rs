//! Configures connections on a real network with the keys of a flow in a scenario file.

use super::Endpoint;
use skyhaul_scenario::{Document, ScenarioError, no_files};
use skyhaul_wire::Profile;
use toml::Value;

/// A flow between hosts; its link is not simulated.
const FLOW: &str = r#"schema = 1
duration = "1 s"
[links.wire]
rate = "unlimited"
delay = "0 s"
[flows.wire]
path = ["wire"]
endpoint = { preset = "host" }
"#;
const AT: &str = "flows.wire.";
const DETECTION: &str = "endpoint.loss-detection";
const TAIL_PROBE: &str = "endpoint.tail-loss-probe";

/// The keys set so far: `cc`, `endpoint`, `rwnd`, `sndbuf` and keys below them. Errors use the same names.
#[derive(Clone, Debug)]
pub struct Keys {
    document: Document,
    set: Vec<String>,
}

/// Translates the keys in an error to the names used here.
fn here(mut e: ScenarioError) -> ScenarioError {
    if let Some(key) = e.key.strip_prefix(AT) {
        e.key = key.into();
    }
    e
}

/// An error that scenario files do not have.
fn refused(key: &str, message: &str) -> ScenarioError {
    ScenarioError { file: "wire".into(), line: None, key: key.into(), message: message.into() }
}

impl Keys {
    /// The keys of a connection with this congestion control, a name or a table.
    ///
    /// # Errors
    /// If it is a user's control, which no program on a real network provides.
    pub fn new(cc: Value) -> Result<Self, ScenarioError> {
        let user = |name: &str| name == "user" || name.starts_with("user:");
        if cc.as_str().is_some_and(user) {
            return Err(foreign());
        }
        let document = Document::parse("wire", FLOW, &no_files).map_err(here)?;
        let mut keys = Self { document, set: Vec::new() };
        keys.set("cc", cc)?;
        Ok(keys)
    }

    /// Sets a key.
    ///
    /// # Errors
    /// If the key does not exist.
    pub fn set(&mut self, key: &str, value: Value) -> Result<(), ScenarioError> {
        self.set.push(key.into());
        self.document.set_value(&format!("{AT}{key}"), value).map_err(here)
    }

    /// Sets a key in the syntax of a command line: `endpoint.rto-min=1 s`.
    ///
    /// # Errors
    /// If there is no value or the key does not exist.
    pub fn assign(&mut self, assignment: &str) -> Result<(), ScenarioError> {
        self.set.push(assignment.split('=').next().unwrap_or("").trim().into());
        self.document.set(&format!("{AT}{assignment}")).map_err(here)
    }

    /// The resulting endpoint, with probes marked according to `profile`.
    ///
    /// # Errors
    /// If a value is invalid, or valid only in the simulator.
    pub fn endpoint(mut self, profile: Profile) -> Result<Endpoint, ScenarioError> {
        // A table that was set as a whole, such as `endpoint`, takes the place of the preset.
        let asked = |key: &str| {
            self.set
                .iter()
                .any(|set| key.strip_prefix(set).is_some_and(|k| k.is_empty() || k.starts_with('.')))
        };
        let by_preset = !asked(DETECTION) && !asked(TAIL_PROBE);
        let resolved = match self.document.resolve().map_err(here) {
            // The preset detects losses by time, which a control without SACK cannot use.
            Err(e) if e.key == DETECTION && by_preset => {
                self.set(DETECTION, Value::String("dup-acks".into()))?;
                self.set(TAIL_PROBE, Value::Boolean(false))?;
                self.document.resolve().map_err(here)
            }
            resolved => resolved,
        }?;
        let Some(flow) = resolved.flows.first() else { return Err(refused("flows", "there is no flow")) };
        if flow.endpoint.loss_classifier.is_oracle() {
            return Err(refused(
                "endpoint.loss-classifier",
                "\"oracle\" knows why each packet was lost, which only the simulator does: write \"inter-arrival\", \"spike\" or \
                 \"none\"",
            ));
        }
        if matches!(flow.cc, skyhaul_cc::Config::User(_)) {
            return Err(foreign());
        }
        Ok(Endpoint { tcp: flow.endpoint, cc: flow.cc.clone(), profile, dscp: 0, longest: None })
    }
}

fn foreign() -> ScenarioError {
    refused(
        "cc",
        "a user-defined control runs only inside the program that provides it (Python, Rust), which this command does not \
         run: choose a built-in one",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_tcp::config::LossDetection;

    fn keys(cc: &str, sets: &[&str]) -> Result<Endpoint, ScenarioError> {
        let mut keys = Keys::new(Value::String(cc.into()))?;
        for set in sets {
            keys.assign(set)?;
        }
        keys.endpoint(Profile::Option)
    }
    fn wrong(cc: &str, sets: &[&str]) -> String {
        keys(cc, sets).expect_err("a refusal").key
    }

    #[test]
    fn what_the_preset_asks_for_gives_way_to_a_control_without_sack() {
        assert_eq!(keys("cubic", &[]).unwrap().tcp.loss_detection, LossDetection::Rack);
        assert_eq!(keys("tahoe", &[]).unwrap().tcp.loss_detection, LossDetection::DupAcks);
        for asked in ["endpoint.loss-detection=rack", "endpoint={loss-detection=\"rack\"}"] {
            assert_eq!(wrong("tahoe", &[asked]), DETECTION, "it was asked for");
        }
    }

    #[test]
    fn keys_are_called_as_they_were_set() {
        assert_eq!(wrong("cubic", &["endpoint.rto-min=3"]), "endpoint.rto-min");
        assert_eq!(wrong("cubic", &["rwnd=soon"]), "rwnd");
        assert_eq!(wrong("kubic", &[]), "cc");
        for own in ["user:mine", "user"] {
            assert_eq!(wrong(own, &[]), "cc");
        }
        assert_eq!(wrong("cubic", &["endpoint.loss-classifier=oracle"]), "endpoint.loss-classifier");
        assert_eq!(wrong("cubic", &["cc.name=user:mine"]), "cc.name");
    }
}
