//! What is printed of a scene, and what is kept of it.

use crate::finding::{Finding, Verdict};
use crate::machine;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// What a scene measured, or why it did not.
pub type Outcome = Result<Vec<Finding>, String>;

/// Where results lie unless somebody says something else: beside those of other commands.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/soak")
}

pub struct Record {
    folder: PathBuf,
    long: bool,
}

impl Record {
    pub fn new(out: &Path, long: bool) -> Self {
        Self { folder: out.join(if long { "long" } else { "short" }), long }
    }
    fn file(&self, scene: &str) -> PathBuf {
        self.folder.join(format!("{scene}.json"))
    }
    /// The file of a scene that has finished and held, in the long form; a test begins anew each time.
    pub fn kept(&self, scene: &str, again: bool) -> Option<String> {
        let file = self.file(scene);
        let text = fs::read_to_string(&file).ok().filter(|_| self.long && !again)?;
        let kept: Value = serde_json::from_str(&text).ok()?;
        (kept["verdict"] == "holds").then(|| file.display().to_string())
    }
    /// Prints and keeps; returns true if something does not hold.
    pub fn write(&self, scene: &str, outcome: &Outcome, took: std::time::Duration) -> bool {
        let findings = match outcome {
            Ok(findings) => findings,
            Err(why) => {
                println!("  not measured: {why}\n");
                return false;
            }
        };
        let width = findings.iter().map(|f| f.what.chars().count()).max().unwrap_or(0);
        for f in findings {
            println!(
                "  {:<width$}  {:>18}  {:<26}  {}",
                f.what,
                f.value_words(),
                f.bound_words(),
                f.verdict(self.long)
            );
        }
        let fails = findings.iter().any(|f| f.verdict(self.long) == Verdict::Fails);
        println!("  {} after {:.0} s\n", if fails { "does not hold" } else { "holds" }, took.as_secs_f64());
        let one = |f: &Finding| {
            json!({
                "what": f.what, "value": f.value, "unit": f.unit, "bound": f.bound_words(),
                "verdict": f.verdict(self.long).to_string(),
            })
        };
        let document = json!({
            "scene": scene, "form": if self.long { "long" } else { "short" },
            "verdict": if fails { "does not hold" } else { "holds" },
            "seconds": took.as_secs_f64(), "ended_unix_s": machine::unix_seconds(), "machine": machine::describe(),
            "findings": findings.iter().map(one).collect::<Vec<_>>(),
        });
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| fs::write(self.file(scene), format!("{document:#}\n")));
        if let Err(e) = written {
            println!("  cannot write {}: {e}", self.file(scene).display());
        }
        fails
    }
}
