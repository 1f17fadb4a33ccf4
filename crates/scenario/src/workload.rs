//! Workloads: what senders have to send, and over what.

use crate::error::Problem;
use crate::model::{AppSpec, Short};
use crate::quantity::{Count, Frequency, RateSpec, Size};
use crate::transport::Transport;
use skyhaul_base::Rate;
use skyhaul_base::dist::{InvalidDistribution, Sizes, Times};

/// Headers of IPv4 and UDP (RFC 791, RFC 768), in bytes.
pub const UDP_HEADER: u32 = 28;
/// Packet of a datagram flow that names none.
pub(crate) const USUAL_PACKET: u32 = 1000;
/// Largest packet.
const MAX_PACKET: u32 = 65_535;

/// What a sender has to send.
#[derive(Clone, Debug, PartialEq)]
pub enum App {
    /// Short transfers at random times, each over a new connection: a Poisson process.
    Arrivals {
        /// Arrivals per second, on average; more than 0.
        per_second: f64,
        /// Bytes of a transfer.
        size: Sizes,
    },
    /// Without end.
    Bulk,
    /// Pages one after the other, each over a new connection, the next as soon as all of one is acknowledged, or a
    /// pause after that.
    Pages {
        /// Full segments per page, at least 1.
        segments: u64,
        /// How many pages; `None`: until the end.
        count: Option<u64>,
        /// The pause between two pages, if any.
        idle: Option<Times>,
    },
    /// At a constant rate, with or without pauses.
    Stream {
        /// While on: of packets over UDP, of the application's data over TCP.
        rate: Rate,
        /// Bytes at a time: a packet with its headers over UDP, what is written over TCP. At least 1.
        packet: u32,
        /// How long it is on and how long it pauses; `None`: no pauses.
        pauses: Option<(Times, Times)>,
    },
}

impl App {
    /// The rate at which the application has data, in bit/s; `None` if as fast as the network takes it.
    #[must_use]
    pub fn offered(&self) -> Option<f64> {
        match self {
            Self::Bulk | Self::Pages { .. } => None,
            Self::Arrivals { per_second, size } => Some(per_second * size.mean() * 8.0),
            Self::Stream { rate, pauses, .. } => {
                #[expect(clippy::cast_precision_loss, reason = "rates far below 2^53 bit/s")]
                let peak = rate.bits_per_sec() as f64;
                Some(match pauses {
                    None => peak,
                    Some((on, off)) => peak * on.mean() / (on.mean() + off.mean()),
                })
            }
        }
    }
}

fn refuse<T>(key: String, message: impl core::fmt::Display) -> Result<T, Problem> {
    Err(Problem::new(key, message))
}

/// From the file: `key` is that of the application, `mss` the payload of a full segment.
pub(crate) fn resolve(
    key: &str,
    spec: Option<&AppSpec>,
    transport: Transport,
    mss: u32,
) -> Result<App, Problem> {
    let at = |k: &str| format!("{key}.{k}");
    if transport == Transport::Udp && !matches!(spec, Some(AppSpec::Cbr { .. } | AppSpec::OnOff { .. })) {
        let message = "transport = \"udp\" sends at a rate of its own: write app = { kind = \"cbr\", rate = \
                       \"1 Mbit/s\" } or kind = \"on-off\"";
        return refuse(key.into(), message);
    }
    match spec {
        None | Some(AppSpec::Bulk {}) => Ok(App::Bulk),
        Some(AppSpec::Pages { segments: Count(0), .. }) => {
            refuse(at("segments"), "a page has at least 1 segment")
        }
        Some(AppSpec::Pages { count: Some(Count(0)), .. }) => {
            refuse(at("count"), "0 pages do nothing: write at least 1")
        }
        Some(AppSpec::Pages { segments, count, idle }) => {
            let idle = idle.map(|spec| times(&at("idle"), spec.0)).transpose()?;
            Ok(App::Pages { segments: segments.0, count: count.map(|c| c.0), idle })
        }
        Some(AppSpec::Arrivals { rate, size }) => {
            Ok(App::Arrivals { per_second: rate.0, size: sizes(&at("size"), &size.0)? })
        }
        Some(AppSpec::Cbr { rate, packet }) => stream(key, *rate, *packet, transport, mss, None),
        Some(AppSpec::OnOff { rate, packet, on, off }) => {
            let pauses = (times(&at("on"), on.0)?, times(&at("off"), off.0)?);
            if pauses.0.mean() <= 0.0 {
                return refuse(at("on"), "a source that is never on sends nothing: write a time above zero");
            }
            stream(key, *rate, *packet, transport, mss, Some(pauses))
        }
    }
}

fn stream(
    key: &str,
    rate: RateSpec,
    packet: Option<Size>,
    transport: Transport,
    mss: u32,
    pauses: Option<(Times, Times)>,
) -> Result<App, Problem> {
    let least = match transport {
        Transport::Tcp => 1,
        Transport::Udp => UDP_HEADER + 1,
    };
    let usual = match transport {
        Transport::Tcp => mss,
        Transport::Udp => USUAL_PACKET,
    };
    let packet = match packet {
        None => usual,
        Some(Size(n)) => match u32::try_from(n) {
            Ok(n) if (least..=MAX_PACKET).contains(&n) => n,
            _ => {
                let what = format!("\"{n} B\": write a size from {least} B to {MAX_PACKET} B");
                return refuse(format!("{key}.packet"), what);
            }
        },
    };
    let rate = match rate {
        RateSpec::Bits(rate) => rate,
        RateSpec::Packets(n) => match n.times(u64::from(packet) * 8) {
            Some(bits) if bits > 0 => Rate::from_bits_per_sec(bits),
            _ => return refuse(format!("{key}.rate"), "no rate that can be sent: write, say, \"1 Mbit/s\""),
        },
        RateSpec::Unlimited => {
            return refuse(
                format!("{key}.rate"),
                "a source needs a rate, such as \"1 Mbit/s\"; data without end is app = \"bulk\"",
            );
        }
    };
    Ok(App::Stream { rate, packet, pauses })
}

fn times(key: &str, times: Times) -> Result<Times, Problem> {
    times.validate().map_err(|e| at_key(key, &e))?;
    Ok(times)
}

fn sizes(key: &str, sizes: &Sizes) -> Result<Sizes, Problem> {
    sizes.validate().map_err(|e| at_key(key, &e))?;
    Ok(sizes.clone())
}

fn at_key(key: &str, e: &InvalidDistribution) -> Problem {
    let within = e.key();
    Problem::new(if within.is_empty() { key.into() } else { format!("{key}.{within}") }, e)
}

/// Back to what a file says.
pub(crate) fn spec(app: &App) -> AppSpec {
    match app {
        App::Bulk => AppSpec::Bulk {},
        App::Pages { segments, count, idle } => {
            AppSpec::Pages { segments: Count(*segments), count: count.map(Count), idle: idle.map(Short) }
        }
        App::Arrivals { per_second, size } => {
            AppSpec::Arrivals { rate: Frequency(*per_second), size: Short(size.clone()) }
        }
        App::Stream { rate, packet, pauses } => {
            let (rate, packet) = (RateSpec::Bits(*rate), Some(Size((*packet).into())));
            match pauses {
                None => AppSpec::Cbr { rate, packet },
                Some((on, off)) => AppSpec::OnOff { rate, packet, on: Short(*on), off: Short(*off) },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_base::Duration;

    #[test]
    fn pauses_dilute_the_rate() {
        let second = Duration::from_secs(1);
        let app = App::Stream {
            rate: Rate::from_bits_per_sec(1_000_000),
            packet: 1000,
            pauses: Some((Times::Exponential(second), Times::Constant(second + second + second))),
        };
        assert_eq!(app.offered(), Some(250_000.0));
    }
}
