//! Serves the counters of a running stack.

use super::figures::Figures;
use crate::command::metrics::Metrics;
use crate::stop::Stop;
use skyhaul_base::Duration;
use skyhaul_net::Clock;
use skyhaul_net::app::Drain;
use skyhaul_net::driver::Driver;
use skyhaul_net::host::Host;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The server of counters, if there is one.
pub(super) struct Exporter {
    metrics: Option<Metrics>,
    interface: String,
    /// Packets that the interface refused, counted by the driver.
    refused: Arc<AtomicU64>,
}

impl Exporter {
    /// Listens at `address`, if given, and wakes the driver on a request.
    pub(super) fn begin(address: Option<SocketAddr>, driver: &Driver) -> Result<Self, Stop> {
        let mut metrics = address.map(Metrics::open).transpose()?;
        if let Some(m) = &mut metrics {
            let waker = driver.waker();
            m.begin(move || waker.wake());
        }
        Ok(Self { metrics, interface: driver.tun().name().to_owned(), refused: driver.refusals() })
    }
    /// Answers pending requests. It runs on the thread of the stack, since the page has the processor time of its thread.
    pub(super) fn answer(&self, host: &Host) {
        let Some(metrics) = &self.metrics else { return };
        metrics.answer(|| {
            let dropped = skyhaul_net::tun::dropped(&self.interface).unwrap_or(0);
            let cpu = Clock::thread_cpu().as_secs_f64();
            Figures::of(host, self.refused.load(Ordering::Relaxed), dropped, cpu).page()
        });
    }
    /// Waits for the last packets of connections with this RTT, and answers requests meanwhile.
    pub(super) fn linger(&self, driver: &mut Driver, rtt: Duration) -> Result<(), Stop> {
        let each = |_, _: &mut Drain, host: &mut Host| {
            self.answer(host);
            false
        };
        driver.run(&mut Drain::new(rtt), each).map_err(Stop::bad)
    }
}
