//! The cost and the residual loss of link-layer repair, by closed forms for independent losses.

use super::display::{percent, seconds, short};
use crate::resolved::Direction;
use core::fmt;
use serde::Serialize;
use skyhaul_base::{Duration, Rate};
use skyhaul_path::arq;
use skyhaul_path::fec::{Code, Config, Shape};

/// The repair in one direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RepairCheck {
    /// Description of the code.
    pub code: Option<String>,
    /// Fraction of the capacity that the code leaves.
    pub code_rate: f64,
    /// Fraction of transmissions lost, before any repair above the modem.
    pub transmission_loss: f64,
    /// Fraction of packets that the code does not recover.
    pub code_loss: f64,
    /// The retransmissions of the link's ARQ.
    pub repeats: Option<RepeatsCheck>,
    /// The longest time from the beginning of a transmission to delivery without queueing: with the whole fill time
    /// of each block and all retransmissions.
    pub worst_delay_s: f64,
}

/// The retransmissions of the link's ARQ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RepeatsCheck {
    /// Largest number of outstanding packets.
    pub window_packets: u32,
    /// The window as transmission time.
    pub window_s: Option<f64>,
    /// Largest number of retransmissions of a packet.
    pub retries: u32,
    /// Time from a transmission to its retransmission. With a code, it is the longest one: that of a packet whose block is closed
    /// at the fill time.
    pub period_s: f64,
    /// Mean number of transmissions of a packet.
    pub mean_transmissions: f64,
    /// Packets wait for the retransmission of earlier ones (in-order delivery).
    pub in_order: bool,
}

/// The outcome for packets of one size on a direction.
pub(super) struct Repaired {
    code: Code,
    /// Fraction of transmissions lost.
    transmission: f64,
    /// Fraction of packets that the code does not recover.
    code_loss: f64,
    /// Fraction of packets that nothing recovers.
    pub(super) loss: f64,
    /// Mean number of transmissions of a packet.
    transmissions: f64,
}

impl Repaired {
    pub(super) fn new(d: &Direction, size: u32) -> Self {
        let config = d.link_config();
        let code = d.fec.as_ref().map_or(Code::NONE, Config::code);
        let transmission = config.losses().mean_loss(size);
        let code_loss = code.residual_loss(transmission);
        let (loss, transmissions) = d.arq.map_or((code_loss, 1.0), |arq| {
            (arq.residual_loss(code_loss), arq.mean_transmissions(code_loss))
        });
        Self { code, transmission, code_loss, loss, transmissions }
    }

    /// Fraction of the transmitter's rate that carries first transmissions.
    pub(super) fn share(&self) -> f64 {
        self.code.rate() / self.transmissions
    }

    /// The report; `None` without repair.
    pub(super) fn check(&self, d: &Direction, size: u32) -> Option<RepairCheck> {
        if d.fec.is_none() && d.arq.is_none() {
            return None;
        }
        let bytes = f64::from(size) / self.code.bits;
        let sending = d.rate.mean().map_or(0.0, |rate: Rate| bytes / rate.bytes_per_sec());
        let Shape { k, parity, depth, fill_time, .. } = self.code.shape;
        let coded = if parity == 0 {
            sending
        } else {
            // A packet waits for the parity of its block: at most the fill time, at which a block is closed even if it is not
            // full, and for the packet that is then being sent. A block of one packet is full at once.
            let filled = if k == 1 && depth == 1 { 0.0 } else { fill_time.as_secs_f64() };
            filled + sending + f64::from(parity) * f64::from(depth) * sending
        };
        let delay = d.delay.base();
        let period = |arq: arq::Config| arq.period(delay, Duration::from_secs_f64(coded)).as_secs_f64();
        let retries = d.arq.map_or(0, |arq| arq.retries);
        Some(RepairCheck {
            code: d.fec.as_ref().map(|fec| fec.words(&short)),
            code_rate: self.code.rate(),
            transmission_loss: self.transmission,
            code_loss: self.code_loss,
            repeats: d.arq.map(|arq| RepeatsCheck {
                window_packets: arq.window,
                window_s: (sending > 0.0).then(|| f64::from(arq.window) * sending),
                retries: arq.retries,
                period_s: period(arq),
                mean_transmissions: self.transmissions,
                in_order: arq.in_order,
            }),
            worst_delay_s: coded + delay.as_secs_f64() + d.arq.map_or(0.0, period) * f64::from(retries),
        })
    }
}

impl fmt::Display for RepairCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(code) = &self.code {
            write!(f, "    code       {code}: {} of the capacity", percent(self.code_rate))?;
            if self.transmission_loss > 0.0 {
                write!(
                    f,
                    "; of {} lost it leaves {}",
                    percent(self.transmission_loss),
                    percent(self.code_loss)
                )?;
            }
            writeln!(f)?;
        }
        if let Some(r) = &self.repeats {
            write!(f, "    repeats    up to {}, {} apart", r.retries, seconds(r.period_s))?;
            if self.code_loss > 0.0 {
                write!(f, "; {} transmissions a packet", short(r.mean_transmissions))?;
            }
            write!(f, "; window {} packets", r.window_packets)?;
            if let Some(time) = r.window_s {
                write!(f, " = {}", seconds(time))?;
            }
            writeln!(f, "{}", if r.in_order { "; in order" } else { "" })?;
        }
        writeln!(f, "    worst      {} from transmission to delivery", seconds(self.worst_delay_s))
    }
}
