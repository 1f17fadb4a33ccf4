//! Containment of panics: a panic in the work for one connection ends that connection, and no other.

use super::Gateway;
use crate::cause::Cause;
use crate::log::Level;
use serde_json::json;
use skyhaul_base::Instant;
use skyhaul_net::host::Host;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Gateway {
    /// Does the work for one connection, which is given up if the work panics. `number` is that of the flow, if there is a flow yet. The
    /// message of the panic is on standard error.
    pub(super) fn contain(
        &mut self,
        now: Instant,
        host: &mut Host,
        number: Option<u32>,
        work: impl FnOnce(&mut Self, &mut Host),
    ) {
        self.at_work = number;
        if catch_unwind(AssertUnwindSafe(|| work(self, host))).is_ok() {
            return;
        }
        self.counts.defects += 1;
        let Some(number) = self.at_work.take() else { return };
        let far = self.flow(number).and_then(|f| f.link.id());
        let ended = catch_unwind(AssertUnwindSafe(|| self.end(now, host, number, Cause::Defect)));
        if let (Err(_), Some(far)) = (ended, far) {
            // `end` removes the flow from all tables before anything that may panic; only the leg over the link is left.
            host.abort(now, far);
            host.release(now, far);
        }
    }
    /// The number of panics that were contained, in the gateway and in its host.
    pub(super) fn defects(&self, host: &Host) -> u64 {
        self.counts.defects + host.counts().defects
    }
    /// Reports panics that were contained since the last report.
    pub(super) fn report_defects(&mut self, host: &Host) {
        let all = self.defects(host);
        if std::mem::replace(&mut self.reported_defects, all) < all
            && let Some(log) = &self.log
        {
            let message =
                "a panic was contained, which is a defect of the gateway: standard error says where";
            log.event(Level::Error, "defect", json!({ "defects": all, "message": message }));
        }
    }
}
