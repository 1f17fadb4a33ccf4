//! Many transfers over a bad link.

use super::{Outcome, Run, Stage, judged, patience, rough};
use crate::finding::Finding;
use crate::stop;
use crate::transfer::{Tally, TransferSpec, crowd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of concurrent clients.
const CLIENTS: usize = 48;
/// Maximum length of a request and of an answer, bytes.
const LONGEST: f64 = 300_000.0;

pub fn play(run: &Run) -> Outcome {
    let wanted: u64 = run.choose(100_000, 400);
    let stage = Stage::new("transfers", rough(), patience(run))?;
    let (tally, next) = (Tally::default(), AtomicU64::new(0));
    crowd(&stage.bed, CLIENTS, &tally, &|| {
        let n = next.fetch_add(1, Ordering::Relaxed);
        (n < wanted && !stop::requested()).then(|| TransferSpec::draw(n, LONGEST))
    })?;
    let mut findings = vec![Finding::recorded("transfers", wanted as f64, "")];
    findings.extend(judged(&tally, &stage.server, false));
    findings.push(Finding::at_most(
        "connections left in the gateways",
        stage.left(Duration::from_secs(90)),
        0.0,
        "",
    ));
    Ok(findings)
}
