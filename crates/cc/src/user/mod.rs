//! Controls that are not built in: a scenario names one (`cc = "user:NAME"`), and the program that runs it provides
//! it.
//!
//! There is no global registry. A program fills a [`Controls`] and passes it to the simulator; two simulations in
//! one process may have different controls under the same name.
//!
//! ```
//! use skyhaul_cc::alg::vegas::{self, Vegas};
//! use skyhaul_cc::{Controls, user};
//!
//! let mut controls = Controls::default();
//! controls.provide("mine", |request: &user::Request<'_>| {
//!     Ok(Box::new(Vegas::new(&vegas::Config::default(), request.rules)) as _)
//! });
//! assert!(controls.check(&user::Config::new("mine")).is_ok());
//! let unknown = controls.check(&user::Config::new("yours")).unwrap_err();
//! assert!(unknown.to_string().contains("known: mine"));
//! ```

pub mod inherited;
mod options;

pub use options::{NoCanonicalForm, OptionValue, Options, ReadError};

use crate::control::{CongestionControl, ControlOptions};
use crate::rules::{Rules, SharedRules};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
#[cfg(feature = "serde")]
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;

/// A user-defined control by name, with options that only it understands. In files: `cc = "user:NAME"` or `cc = { name
/// = "user", control = "NAME", options = { … } }`.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case", deny_unknown_fields)
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// The name under which the program that runs the scenario provides the control.
    pub control: String,
    /// Options of the control.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Options::is_empty"))]
    pub options: Options,
}

/// Prefix of the name in the short form.
pub(crate) const PREFIX: &str = "user:";

impl Config {
    /// The control called `control` without options.
    #[must_use]
    pub fn new(control: &str) -> Self {
        Self { control: control.to_owned(), options: Options::default() }
    }
}

impl ControlOptions for Config {
    type Control = Box<Box<dyn CongestionControl>>;
    type Invalid = Invalid;

    /// Refuses names with other characters than letters, digits, - and _, and options that have no canonical form.
    fn validate(&self) -> Result<(), Invalid> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.control.is_empty() || !self.control.chars().all(allowed) {
            return Err(Invalid::Control);
        }
        Ok(self.options.validate()?)
    }
    /// # Panics
    /// Always: only [`Controls`] can build a user's own control.
    fn build(&self, _: SharedRules) -> Self::Control {
        panic!("the control \"{}\" is not built in", self.control)
    }
}

/// Why the configuration of a user's own control is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each displays as a sentence that says what to write instead")]
pub enum Invalid {
    #[error("control is the name of a user's own control: letters, digits, - and _")]
    Control,
    #[error(transparent)]
    Options(#[from] NoCanonicalForm),
}

/// Why a user's control cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No control of that name is provided.
    #[error(
        "nobody provides the control \"{name}\" (known: {known}): in Python pass controls={{\"{name}\": YourClass}}, in \
         Rust add it to skyhaul_cc::Controls and run with those"
    )]
    Unknown {
        /// The name asked for.
        name: String,
        /// The provided names, or `none`.
        known: String,
    },
    /// The control refuses these options.
    #[error(transparent)]
    Options(#[from] ReadError),
    /// A message of the control itself or of the program that provides it.
    #[error("{0}")]
    Refused(String),
}

impl From<String> for Error {
    fn from(words: String) -> Self {
        Self::Refused(words)
    }
}

impl From<&str> for Error {
    fn from(words: &str) -> Self {
        Self::Refused(words.to_owned())
    }
}

/// Inputs of a factory.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Options of the scenario.
    pub options: &'a Options,
    /// Window arithmetic of the endpoint preset.
    pub rules: &'a Rules,
    /// The flow, such as `bulk[3]`, for messages.
    pub flow: &'a str,
}

/// Creates instances of a control: one for each connection.
///
/// Implemented by functions `Fn(&Request) -> Result<Box<dyn CongestionControl>, Error>`.
pub trait Factory: Send + Sync {
    /// A new instance.
    ///
    /// # Errors
    /// Displays as one sentence.
    fn build(&self, request: &Request<'_>) -> Result<Box<dyn CongestionControl>, Error>;

    /// Refuses options before anything runs.
    ///
    /// # Errors
    /// Displays as one sentence that names the option and what to write instead.
    fn check(&self, options: &Options) -> Result<(), Error> {
        let _ = options;
        Ok(())
    }

    /// A text that changes whenever the control may behave differently with equal options. With `None`, results
    /// cannot be cached.
    fn fingerprint(&self) -> Option<String> {
        None
    }
}

impl<F> Factory for F
where
    F: Fn(&Request<'_>) -> Result<Box<dyn CongestionControl>, Error> + Send + Sync,
{
    fn build(&self, request: &Request<'_>) -> Result<Box<dyn CongestionControl>, Error> {
        self(request)
    }
}

/// The user's own controls that a program provides, by name. Cheap to clone.
#[derive(Clone, Default)]
pub struct Controls {
    factories: BTreeMap<String, Arc<dyn Factory>>,
}

impl fmt::Debug for Controls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.factories.keys()).finish()
    }
}

impl Controls {
    /// Provides a control; replaces one of the same name.
    pub fn provide(&mut self, name: &str, factory: impl Factory + 'static) {
        self.factories.insert(name.to_owned(), Arc::new(factory));
    }

    /// Provides a control with typed options: a table of the scenario is read into `O`, and `build` makes the
    /// control from it or returns an error that displays as one sentence. Change `version` whenever the control
    /// changes, so that cached results of an older version are not reused.
    #[cfg(feature = "serde")]
    pub fn provide_typed<O, C, E>(&mut self, name: &str, version: &str, build: fn(&O, &Rules) -> Result<C, E>)
    where
        O: serde::de::DeserializeOwned + 'static,
        C: CongestionControl + 'static,
        E: fmt::Display + 'static,
    {
        self.provide(name, Typed { version: version.to_owned(), build });
    }

    /// Names of the controls.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.factories.keys().map(String::as_str)
    }

    fn find(&self, name: &str) -> Result<&Arc<dyn Factory>, Error> {
        self.factories.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.names().collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Error::Unknown { name: name.to_owned(), known }
        })
    }

    /// Refuses a control that nobody provides, and options that it does not take.
    ///
    /// # Errors
    /// Displays as one sentence.
    pub fn check(&self, config: &Config) -> Result<(), Error> {
        self.find(&config.control)?.check(&config.options)
    }

    /// A new instance for a connection of `flow` (as in `bulk[3]`).
    ///
    /// # Errors
    /// Displays as one sentence.
    pub fn build(
        &self,
        config: &Config,
        rules: &Rules,
        flow: &str,
    ) -> Result<Box<dyn CongestionControl>, Error> {
        self.find(&config.control)?.build(&Request { options: &config.options, rules, flow })
    }

    /// See [`Factory::fingerprint`].
    #[must_use]
    pub fn fingerprint(&self, name: &str) -> Option<String> {
        self.factories.get(name)?.fingerprint()
    }
}

#[cfg(feature = "serde")]
struct Typed<O, C, E> {
    version: String,
    build: fn(&O, &Rules) -> Result<C, E>,
}

#[cfg(feature = "serde")]
impl<O: serde::de::DeserializeOwned, C, E: fmt::Display> Typed<O, C, E> {
    fn make(&self, options: &Options, rules: &Rules) -> Result<C, Error> {
        (self.build)(&options.read()?, rules).map_err(|e| Error::Refused(format!("{e}")))
    }
}

#[cfg(feature = "serde")]
impl<O, C, E> Factory for Typed<O, C, E>
where
    O: serde::de::DeserializeOwned + 'static,
    C: CongestionControl + 'static,
    E: fmt::Display + 'static,
{
    fn build(&self, request: &Request<'_>) -> Result<Box<dyn CongestionControl>, Error> {
        Ok(Box::new(self.make(request.options, request.rules)?))
    }
    fn check(&self, options: &Options) -> Result<(), Error> {
        self.make(options, &Rules::MODERN).map(drop)
    }
    fn fingerprint(&self) -> Option<String> {
        Some(self.version.clone())
    }
}

/// What a user's control may unwind with (`std::panic::panic_any`) to end its run with a message of its own. Any other
/// panic ends the run as well.
pub struct Failed {
    /// What happened, in one line.
    pub message: String,
    /// More lines, such as a traceback.
    pub detail: Option<String>,
    /// Whatever the program that provided the control wants back.
    pub source: Option<Box<dyn Any + Send>>,
}

impl fmt::Debug for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failed").field("message", &self.message).finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "serde"))]
mod tests {
    use super::*;
    use crate::alg::gaimd::{self, Gaimd};
    use crate::{Algorithm, Window};
    use alloc::string::ToString;

    fn controls() -> Controls {
        let mut controls = Controls::default();
        controls.provide_typed("mine", "1", |c: &gaimd::Config, rules| {
            c.validate().map(|()| Gaimd::new(c, rules))
        });
        controls
    }

    fn with(key: &str, value: OptionValue) -> Config {
        let mut config = Config::new("mine");
        config.options.0.insert(key.into(), value);
        config
    }

    #[test]
    fn typed_options_are_read_and_checked() {
        let controls = controls();
        let good = with("beta", OptionValue::Real(0.75));
        assert_eq!(controls.check(&good), Ok(()));
        let cc = controls.build(&good, &Rules::NS2_2001, "bulk[0]").expect("a control");
        assert_eq!(Algorithm::from(cc).window(), Window { cwnd: 1.0, ssthresh: f64::INFINITY });
        for (config, words) in [
            (with("beta", OptionValue::Real(2.0)), "between 0 and 1"),
            (with("beta", OptionValue::Text("half".into())), "beta: invalid type"),
            (with("gamma", OptionValue::Integer(1)), "unknown field `gamma`"),
            (Config::new("yours"), "(known: mine)"),
        ] {
            let why = controls.check(&config).expect_err(words).to_string();
            assert!(why.contains(words), "{why}");
            assert!(controls.build(&config, &Rules::RFC, "bulk[0]").is_err());
        }
        assert_eq!(controls.fingerprint("mine").as_deref(), Some("1"));
        assert!(Controls::default().check(&good).unwrap_err().to_string().contains("known: none"));
    }

    #[test]
    fn a_later_control_of_the_same_name_takes_its_place() {
        let mut controls = controls();
        controls.provide("mine", |_: &Request<'_>| Err("never".into()));
        assert_eq!(controls.build(&Config::new("mine"), &Rules::RFC, "a[0]").err(), Some("never".into()));
        assert_eq!(controls.fingerprint("mine"), None);
    }

    #[test]
    fn names_with_other_characters_and_numbers_that_no_file_holds_are_refused() {
        assert!(Config::new("my-aimd_2").validate().is_ok());
        for name in ["", "a b", "ä", "a.b"] {
            assert!(Config::new(name).validate().is_err(), "{name}");
        }
        assert!(with("x", OptionValue::Real(f64::NAN)).validate().is_err());
    }
}
