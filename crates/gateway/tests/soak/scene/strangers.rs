//! An off-path attacker forges packets of the connections, with random flags, numbers, windows and options.

use super::{Outcome, Run, Stage, judged, patience};
use crate::bed::{Link, Noise};
use crate::finding::Finding;
use crate::stop;
use crate::transfer::{Tally, TransferSpec, crowd};
use skyhaul_base::Duration;
use std::sync::atomic::{AtomicU64, Ordering};

pub fn play(run: &Run) -> Outcome {
    let wanted: u64 = run.choose(10_000, 150);
    let noise = Noise { forge: 0.2, ..Noise::default() };
    let link = Link { delay: Duration::from_millis(10), loss: 0.001, noise, ..Link::default() };
    let stage = Stage::new("strangers", link, patience(run))?;
    let (tally, next) = (Tally::default(), AtomicU64::new(0));
    crowd(&stage.bed, 32, &tally, &|| {
        let n = next.fetch_add(1, Ordering::Relaxed);
        (n < wanted && !stop::requested()).then(|| TransferSpec::draw(n, 300_000.0))
    })?;
    let mut findings = vec![Finding::recorded("forged packets per genuine one", noise.forge, "")];
    findings.extend(judged(&tally, &stage.server, false));
    // A forged SYN opens a connection that is never completed; it expires after a minute.
    if run.long {
        let left = stage.left(std::time::Duration::from_secs(180));
        findings.push(Finding::at_most("connections left in the gateways", left, 0.0, ""));
    }
    Ok(findings)
}
