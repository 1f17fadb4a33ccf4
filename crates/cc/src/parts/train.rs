//! The train of probes that opens a window: Sudden Start \[Peach §III-B\] and Jump Start \[Peach+ §I-B\].

use crate::action::{ProbeSource, Train};
use crate::event::{Cx, ProbeSupport};
use skyhaul_base::{Duration, math};

/// RTT assumed where neither the handshake nor data has given one (R5).
const RTT_INIT: Duration = Duration::from_secs(1);

/// Asks for `rwnd - 1` probes, one every `tau = RTT / rwnd`, behind the first data segment, or stops a train where
/// there is nothing to probe for. `cap` limits their number, `limit_to_app` to the data that could follow.
pub fn open(
    cx: &mut Cx<'_>,
    source: ProbeSource,
    handshake_rtt: Option<Duration>,
    cap: Option<u32>,
    limit_to_app: bool,
) {
    let rtt = cx.path.srtt.or(handshake_rtt).unwrap_or(RTT_INIT);
    let rwnd = cx.path.rwnd;
    let mut total = rwnd;
    if let Some(cap) = cap {
        total = total.min(f64::from(cap));
    }
    if limit_to_app {
        total = total.min(math::ceil(cx.path.queued + cx.path.in_flight));
    }
    if rwnd < 2.0 || total < 2.0 || cx.path.probes == ProbeSupport::No {
        cx.act.stop_probes = true;
        return;
    }
    let tau = rtt.mul_f64(1.0 / rwnd);
    cx.act.train = Some(Train { source, count: total as u32 - 1, first: tau, spacing: tau });
    if cx.path.probes == ProbeSupport::Unknown {
        // No answer of either kind within 2R + 4 rttvar of the last probe: slow start instead (R3).
        cx.act.wake_at = Some(cx.now + rtt * 3 + cx.path.rttvar * 4);
    }
}
