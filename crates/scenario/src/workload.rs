//! Workloads: what senders have to send, over what, and the random quantities in it.

use crate::error::Problem;
use crate::model::{AppSpec, Short, SizesSpec, TimesSpec};
use crate::quantity::{Count, Frequency, RateSpec, Size, Time};
use skyhaul_base::{Duration, Rate, Rng, math};

/// Headers of IPv4 and UDP (RFC 791, RFC 768), in bytes.
pub const UDP_HEADER: u32 = 28;
/// Packet of a datagram flow that names none.
pub(crate) const USUAL_PACKET: u32 = 1000;
/// Largest packet.
const MAX_PACKET: u32 = 65_535;
/// Largest transfer: a TCP stream of the simulator counts bytes in 63 bits.
const MAX_TRANSFER: u64 = 1 << 60;
/// Longest phase of a source.
const MAX_PHASE: Duration = Duration::from_secs(366 * 86_400);

/// What carries the data of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// A connection with congestion control.
    #[default]
    Tcp,
    /// Datagrams.
    Udp,
}

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

/// A random time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Times {
    /// Always the same.
    Constant(Duration),
    /// Exponentially distributed.
    Exponential {
        /// The mean.
        mean: Duration,
    },
    /// Pareto distributed.
    Pareto {
        /// The mean.
        mean: Duration,
        /// The shape, more than 1.
        shape: f64,
    },
}

impl Times {
    /// The mean, in seconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Constant(mean) | Self::Exponential { mean } | Self::Pareto { mean, .. } => {
                mean.as_secs_f64()
            }
        }
    }

    /// A draw (inverse transform: one draw of the stream, none for a constant).
    pub fn draw(&self, rng: &mut Rng) -> Duration {
        match *self {
            Self::Constant(time) => time,
            Self::Exponential { mean } => Duration::from_secs_f64(rng.exponential(mean.as_secs_f64())),
            Self::Pareto { mean, shape } => {
                let least = mean.as_secs_f64() * (shape - 1.0) / shape;
                let long = least / math::pow(1.0 - rng.unit(), 1.0 / shape);
                Duration::from_secs_f64(long.min(MAX_PHASE.as_secs_f64()))
            }
        }
    }
}

/// A random number of bytes, at least 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// Always the same.
    Constant(u64),
    /// Exponentially distributed.
    Exponential {
        /// The mean.
        mean: u64,
    },
    /// One of these, each as likely. Never empty.
    List(Vec<u64>),
    /// The logarithm is normal.
    Lognormal {
        /// Half of the sizes are below.
        median: u64,
        /// Deviation of the natural logarithm.
        sigma: f64,
    },
    /// Pareto distributed between two bounds.
    Pareto {
        /// Smallest.
        min: u64,
        /// Largest, more than `min`.
        max: u64,
        /// The shape, more than 0.
        shape: f64,
    },
}

impl Sizes {
    /// The mean in bytes; that of a lognormal size does not know the largest transfer that is simulated.
    #[expect(clippy::cast_precision_loss, reason = "sizes far below 2^53")]
    #[must_use]
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Constant(mean) | Self::Exponential { mean } => mean as f64,
            Self::List(ref sizes) => sizes.iter().map(|s| *s as f64).sum::<f64>() / sizes.len() as f64,
            Self::Lognormal { median, sigma } => median as f64 * math::exp(sigma * sigma / 2.0),
            Self::Pareto { min, max, shape } => {
                let (low, high) = (min as f64, max as f64);
                let share = low / high;
                if (shape - 1.0).abs() < 1e-9 {
                    return low * math::ln(1.0 / share) / (1.0 - share);
                }
                let scale = low * shape / (shape - 1.0) / (1.0 - math::pow(share, shape));
                scale * (1.0 - math::pow(share, shape - 1.0))
            }
        }
    }

    /// A draw: one of the stream, two for a lognormal size, none for a constant.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let size = match *self {
            Self::Constant(size) => return size,
            Self::List(ref sizes) => return sizes[rng.below(sizes.len() as u64) as usize],
            Self::Exponential { mean } => rng.exponential(mean as f64),
            Self::Lognormal { median, sigma } => median as f64 * math::exp(sigma * rng.normal()),
            Self::Pareto { min, max, shape } => {
                let (low, high) = (min as f64, max as f64);
                let u = rng.unit() * (1.0 - math::pow(low / high, shape));
                (low / math::pow(1.0 - u, 1.0 / shape)).min(high)
            }
        };
        // Out-of-range floats saturate.
        (math::floor(size + 0.5) as u64).clamp(1, MAX_TRANSFER)
    }
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
            let idle = idle.map(|spec| times(&at("idle"), &spec.0)).transpose()?;
            Ok(App::Pages { segments: segments.0, count: count.map(|c| c.0), idle })
        }
        Some(AppSpec::Arrivals { rate, size }) => {
            Ok(App::Arrivals { per_second: rate.0, size: sizes(&at("size"), &size.0)? })
        }
        Some(AppSpec::Cbr { rate, packet }) => stream(key, *rate, *packet, transport, mss, None),
        Some(AppSpec::OnOff { rate, packet, on, off }) => {
            let pauses = (times(&at("on"), &on.0)?, times(&at("off"), &off.0)?);
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

fn times(key: &str, spec: &TimesSpec) -> Result<Times, Problem> {
    let times = match *spec {
        TimesSpec::Constant(Time(time)) => Times::Constant(time),
        TimesSpec::Exponential(Time(mean)) => Times::Exponential { mean },
        TimesSpec::Pareto { shape, .. } if !(shape > 1.0 && shape.is_finite()) => {
            let what = format!("{shape} is no shape with a mean: write a number above 1, such as 1.5");
            return refuse(format!("{key}.pareto.shape"), what);
        }
        TimesSpec::Pareto { mean: Time(mean), shape } => Times::Pareto { mean, shape },
    };
    if times.mean() > MAX_PHASE.as_secs_f64() {
        return refuse(key.into(), "longer than a year");
    }
    Ok(times)
}

fn sizes(key: &str, spec: &SizesSpec) -> Result<Sizes, Problem> {
    let good = |at: &str, Size(n): Size| {
        if (1..=MAX_TRANSFER).contains(&n) {
            Ok(n)
        } else {
            refuse(format!("{key}{at}"), "a transfer has from 1 B to 2^60 B")
        }
    };
    Ok(match spec {
        SizesSpec::Constant(size) => Sizes::Constant(good("", *size)?),
        SizesSpec::Exponential(mean) => Sizes::Exponential { mean: good(".exponential", *mean)? },
        SizesSpec::List(list) if list.is_empty() => {
            return refuse(format!("{key}.list"), "empty: name at least one size");
        }
        SizesSpec::List(list) => {
            Sizes::List(list.iter().map(|s| good(".list", *s)).collect::<Result<_, _>>()?)
        }
        SizesSpec::Lognormal { median, sigma } => {
            if !(*sigma >= 0.0 && *sigma <= 10.0) {
                return refuse(
                    format!("{key}.lognormal.sigma"),
                    format!("{sigma}: write a number from 0 to 10"),
                );
            }
            Sizes::Lognormal { median: good(".lognormal.median", *median)?, sigma: *sigma }
        }
        SizesSpec::Pareto { min, max, shape } => {
            if !(*shape > 0.0 && shape.is_finite()) {
                let what = format!("{shape}: write a number above 0, such as 1.2");
                return refuse(format!("{key}.pareto.shape"), what);
            }
            let (min, max) = (good(".pareto.min", *min)?, good(".pareto.max", *max)?);
            if min >= max {
                return refuse(format!("{key}.pareto.max"), "not above min: write a larger size");
            }
            Sizes::Pareto { min, max, shape: *shape }
        }
    })
}

/// Back to what a file says.
pub(crate) fn spec(app: &App) -> AppSpec {
    match app {
        App::Bulk => AppSpec::Bulk {},
        App::Pages { segments, count, idle } => AppSpec::Pages {
            segments: Count(*segments),
            count: count.map(Count),
            idle: idle.as_ref().map(times_spec),
        },
        App::Arrivals { per_second, size } => AppSpec::Arrivals {
            rate: Frequency(*per_second),
            size: Short(match size {
                Sizes::Constant(n) => SizesSpec::Constant(Size(*n)),
                Sizes::Exponential { mean } => SizesSpec::Exponential(Size(*mean)),
                Sizes::List(list) => SizesSpec::List(list.iter().map(|n| Size(*n)).collect()),
                Sizes::Lognormal { median, sigma } => {
                    SizesSpec::Lognormal { median: Size(*median), sigma: *sigma }
                }
                Sizes::Pareto { min, max, shape } => {
                    SizesSpec::Pareto { min: Size(*min), max: Size(*max), shape: *shape }
                }
            }),
        },
        App::Stream { rate, packet, pauses } => {
            let (rate, packet) = (RateSpec::Bits(*rate), Some(Size((*packet).into())));
            match pauses {
                None => AppSpec::Cbr { rate, packet },
                Some((on, off)) => AppSpec::OnOff { rate, packet, on: times_spec(on), off: times_spec(off) },
            }
        }
    }
}

fn times_spec(times: &Times) -> Short<TimesSpec> {
    Short(match *times {
        Times::Constant(time) => TimesSpec::Constant(Time(time)),
        Times::Exponential { mean } => TimesSpec::Exponential(Time(mean)),
        Times::Pareto { mean, shape } => TimesSpec::Pareto { mean: Time(mean), shape },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(n: u32, mut draw: impl FnMut(&mut Rng) -> f64) -> f64 {
        let mut rng = Rng::stream(7, "test");
        (0..n).map(|_| draw(&mut rng)).sum::<f64>() / f64::from(n)
    }

    #[test]
    #[expect(clippy::cast_precision_loss)]
    fn draws_have_the_mean_that_is_stated() {
        let all = [
            Sizes::Constant(1000),
            Sizes::Exponential { mean: 1000 },
            Sizes::List(vec![500, 1500]),
            Sizes::Lognormal { median: 1000, sigma: 0.5 },
            Sizes::Pareto { min: 500, max: 50_000, shape: 1.5 },
            Sizes::Pareto { min: 500, max: 50_000, shape: 1.0 },
        ];
        for sizes in all {
            let found = mean(200_000, |rng| sizes.draw(rng) as f64);
            assert!((found / sizes.mean() - 1.0).abs() < 0.02, "{sizes:?}: {found} against {}", sizes.mean());
        }
        let second = Duration::from_secs(1);
        let all = [
            Times::Constant(second),
            Times::Exponential { mean: second },
            Times::Pareto { mean: second, shape: 3.0 },
        ];
        for times in all {
            let found = mean(200_000, |rng| times.draw(rng).as_secs_f64());
            assert!((found - 1.0).abs() < 0.02, "{times:?}: {found}");
        }
        // ∫ x α L^α x^(−α−1) dx from L to H over 1 − (L/H)^α, α = 1.5, L = 500, H = 50000: 1350 / 0.999.
        let pareto = Sizes::Pareto { min: 500, max: 50_000, shape: 1.5 };
        assert!((pareto.mean() - 1350.0 / 0.999).abs() < 1e-6, "{}", pareto.mean());
    }

    #[test]
    fn bounded_sizes_stay_within_their_bounds() {
        let sizes = Sizes::Pareto { min: 500, max: 50_000, shape: 0.3 };
        let mut rng = Rng::stream(1, "test");
        for _ in 0..10_000 {
            assert!((500..=50_000).contains(&sizes.draw(&mut rng)));
        }
    }

    #[test]
    fn pauses_dilute_the_rate() {
        let second = Duration::from_secs(1);
        let app = App::Stream {
            rate: Rate::from_bits_per_sec(1_000_000),
            packet: 1000,
            pauses: Some((Times::Exponential { mean: second }, Times::Constant(second + second + second))),
        };
        assert_eq!(app.offered(), Some(250_000.0));
    }
}
