//! Quantities of flows that carry video; zero or missing for other flows.

use crate::result::FlowResult;
use skyhaul_apps::{FRAME_SHARES, FrameType, Share, Viewed};
use skyhaul_base::Instant;

/// Results of the viewer, if there is one.
pub(super) fn of<T>(f: &FlowResult, what: fn(&Viewed) -> T) -> Option<T> {
    f.video.as_deref().map(what)
}
/// A count of the viewer; 0 without a viewer.
pub(super) fn count(f: &FlowResult, what: fn(&Viewed) -> u64) -> u64 {
    of(f, what).unwrap_or_default()
}
/// A fraction of the viewer.
pub(super) fn share(f: &FlowResult, what: fn(&Viewed) -> Share) -> Option<f64> {
    of(f, what)?.value()
}
/// Fraction of the frames of all types that were complete in time.
pub(super) fn complete(f: &FlowResult) -> Option<f64> {
    let all = of(f, |v| v.complete)?;
    Share { part: all.iter().map(|s| s.part).sum(), of: all.iter().map(|s| s.of).sum() }.value()
}
/// Fraction of the frames of one type that were complete in time.
pub(super) fn complete_of(f: &FlowResult, kind: FrameType) -> Option<f64> {
    f.video.as_deref()?.complete[kind as usize].value()
}
/// Spread of the packet delays in seconds: the 99th percentile minus the minimum (RFC 5481 §6.1).
pub(super) fn delay_variation(f: &FlowResult) -> Option<f64> {
    let m = f.datagrams?;
    Some((m.delay_p99? - m.delay_min?).max(0.0))
}
/// Time from production to arrival, in seconds, within which `share` of the frames arrived; `share` is one of
/// [`FRAME_SHARES`].
pub(super) fn frame_delay(f: &FlowResult, share: f64) -> Option<f64> {
    let place = FRAME_SHARES.iter().position(|s| *s == share)?;
    f.video.as_deref()?.frame_delays[place]
}
/// Time at which the transport failed, in seconds.
pub(super) fn died(f: &FlowResult) -> Option<f64> {
    f.video.as_deref()?.died.map(Instant::as_secs_f64)
}
