//! Why a scenario cannot be simulated, or not to its end.

use core::any::Any;
use core::fmt;
use skyhaul_base::Instant;
use skyhaul_cc::user::Failed;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a scenario cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A flow group uses a control that is not provided, or options that the control refuses.
    #[error("flows.{flow}.cc: {message}")]
    Control {
        /// Name of the group of flows.
        flow: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// A flow's path has neither delay nor rate: infinitely many events would happen at one time.
    #[error("the path of `{flow}` has neither delay nor rate: give a link a delay")]
    NoDelay {
        /// Name of the group of flows.
        flow: String,
    },
    /// A flow's path names a link that does not exist.
    #[error("the path of `{flow}` names link {link}, which does not exist")]
    NoSuchLink {
        /// Name of the group of flows.
        flow: String,
        /// The number of the link that the path names.
        link: usize,
    },
    /// A user's own control panicked while the simulation was built, or the engine broke an invariant.
    #[error("{message}")]
    Broken {
        /// What happened, in one line.
        message: String,
    },
    /// More flows than can be numbered, or more distinct paths than the route table holds.
    #[error("too many flows or too many distinct paths")]
    TooLarge,
}

/// Why a run failed.
pub struct Failure {
    /// The simulated time reached.
    pub at: Instant,
    /// What happened, in one line.
    pub message: String,
    /// More lines, such as a traceback.
    pub detail: Option<String>,
    /// The value that the failed control passed; see [`Failed`].
    pub source: Option<Box<dyn Any + Send>>,
}

/// Calls `run`, and returns a panic as an error: of a user's own control, or of the engine if an invariant breaks. All panics of a
/// simulation, while it is built and while it runs, are caught here.
///
/// What `run` has changed must not be used after an error, except to be dropped.
///
/// # Errors
/// The panic. Its time is zero: the caller knows the simulated time.
pub fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| Failure::new(Instant::ZERO, payload))
}

impl Failure {
    fn new(at: Instant, payload: Box<dyn Any + Send>) -> Self {
        let payload = match payload.downcast::<Failed>() {
            Ok(own) => {
                let Failed { message, detail, source } = *own;
                return Self { at, message, detail, source };
            }
            Err(other) => other,
        };
        let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "a panic without a message".to_owned());
        let message = format!("the engine or a control broke an invariant: {}", text.replace('\n', " "));
        Self { at, message, detail: None, source: None }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("at", &self.at)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at {:.6} s of simulated time)", self.message, self.at.as_secs_f64())
    }
}

impl core::error::Error for Failure {}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario cannot be simulated.
    #[error(transparent)]
    Build(BuildError),
    /// It began and failed.
    #[error(transparent)]
    Failed(Failure),
}
