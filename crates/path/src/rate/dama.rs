//! The return channel of a satellite terminal: capacity on demand, with random access until it is assigned.
//!
//! An idle terminal has no capacity. When a packet arrives it requests some (demand-assigned multiple access; ETSI
//! EN 301 545-2, "DVB-RCS2"). One round trip over the satellite later, plus the processing time of the control
//! centre, it has a slot in every frame. It keeps the slot while it has something to send and for some time after.
//! The first packet after a pause and those behind it therefore wait 250 ms to 700 ms.
//!
//! ```text
//! packet ─ request ──────────────────┐ frame │ frame │ frame
//!   [contention: a little at once] … └▶███░░░░███░░░░███░░░░   █ slot of this terminal, at the carrier's rate
//! ```
//! With a contention rate, that much may be sent at once, in slots of the same frames, until the capacity is
//! assigned (random access). Collisions are not modelled: use an error model of the link for these. The slot is at
//! the start of a frame, and frames start with the run (*our choice*). A packet that does not fit continues in the
//! next slot.

use super::model::{Sending, Table};
use crate::param::Invalid;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
#[cfg(feature = "schema")]
use skyhaul_base::amount::{RateSpec, Time};
use skyhaul_base::{Duration, Instant, Rate};

/// Bits are counted in units of 1e-9, so that bits over bit/s are nanoseconds.
const UNIT: u128 = 1_000_000_000;

/// A channel assigned on demand (DAMA).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, rename_all = "kebab-case")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Rate assigned to the terminal on request: the size of its slot divided by the frame length.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::rate"))]
    #[cfg_attr(feature = "schema", schemars(with = "RateSpec"))]
    pub rate: Rate,
    /// Rate within a slot of the shared carrier; by default `rate`, so that a slot fills its frame.
    #[cfg_attr(
        feature = "serde",
        serde(
            default,
            with = "skyhaul_base::amount::plain::optional_rate",
            skip_serializing_if = "Option::is_none"
        )
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<RateSpec>"))]
    pub carrier_rate: Option<Rate>,
    /// Length of a frame.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::time"))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub frame: Duration,
    /// Request delay, from a packet at an idle terminal to the first frame with capacity: a round trip over the
    /// satellite plus the processing of the control centre.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::time"))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub request: Duration,
    /// Time for which an idle terminal keeps its capacity; none by default.
    #[cfg_attr(feature = "serde", serde(default, with = "skyhaul_base::amount::plain::time"))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub hold: Duration,
    /// Rate at which the terminal may send by random access until capacity is assigned; none by default.
    #[cfg_attr(
        feature = "serde",
        serde(
            default,
            with = "skyhaul_base::amount::plain::optional_rate",
            skip_serializing_if = "Option::is_none"
        )
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<RateSpec>"))]
    pub contention_rate: Option<Rate>,
}

impl Config {
    fn carrier(&self) -> Rate {
        self.carrier_rate.unwrap_or(self.rate)
    }
}

impl Table for Config {
    type Run = Run;

    fn validate(&self) -> Result<(), Invalid> {
        let refuse = |key, message| Err(Invalid { key, message });
        let (least, longest) = (Duration::from_micros(10), Duration::from_secs(10));
        if self.frame < least || self.frame > longest {
            return refuse("frame", "write from 10 us to 10 s".into());
        }
        for (key, time) in [("request", self.request), ("hold", self.hold)] {
            if time > Duration::from_secs(3_600) {
                return refuse(key, "longer than an hour".into());
            }
        }
        for (key, rate) in [("rate", Some(self.rate)), ("contention-rate", self.contention_rate)] {
            let Some(rate) = rate else { continue };
            if rate > self.carrier() {
                let message = format!(
                    "{} bit/s is more than the carrier has ({} bit/s): write less, or a higher carrier-rate",
                    rate.bits_per_sec(),
                    self.carrier().bits_per_sec()
                );
                return refuse(key, message);
            }
            // A slot must carry something.
            if u128::from(rate.bits_per_sec()) * u128::from(self.frame.as_nanos()) < 8 * UNIT {
                return refuse(
                    key,
                    "less than a byte per frame: write a higher rate, or a longer frame".into(),
                );
            }
        }
        Ok(())
    }
    fn mean(&self) -> Rate {
        self.rate
    }
    fn words(&self, rate: &dyn Fn(Rate) -> String) -> String {
        let first = if self.contention_rate.is_some() {
            ", with contention until the capacity is assigned"
        } else {
            ""
        };
        format!("{} on demand{first}", rate(self.rate))
    }
    fn run(self: &Arc<Self>) -> Run {
        Run { config: Arc::clone(self), granted: Instant::ZERO, kept: None, free_at: Instant::ZERO, carry: 0 }
    }
}

/// A running channel.
#[derive(Clone, Debug)]
pub struct Run {
    config: Arc<Config>,
    /// The first frame with capacity.
    granted: Instant,
    /// Until when the terminal keeps its capacity; `None` before the first packet.
    kept: Option<Instant>,
    free_at: Instant,
    /// The part of the last packet, in units of 1e-9 bit, that takes a fraction of a nanosecond beyond `free_at`.
    carry: u64,
}

impl Sending for Run {
    type Model = Config;

    fn model(&self) -> &Arc<Config> {
        &self.config
    }

    fn send(&mut self, start: Instant, size: u32, _waited: bool) -> Instant {
        if start > self.free_at {
            self.free_at = start;
            self.carry = 0;
        }
        let start = self.free_at;
        let config = Arc::clone(&self.config);
        if self.kept.is_none_or(|kept| start > kept) {
            let frame = config.frame.as_nanos().max(1);
            let asked = start.as_nanos().saturating_add(config.request.as_nanos());
            self.granted = Instant::from_nanos(asked.div_ceil(frame).saturating_mul(frame));
        }
        let mut work = u128::from(size) * 8 * UNIT + u128::from(self.carry);
        self.carry = 0;
        let mut t = start.as_nanos();
        if t < self.granted.as_nanos() {
            let until = self.granted.as_nanos();
            t = match config.contention_rate {
                Some(rate) => self.slots(t, until, rate, &mut work),
                None => until,
            };
        }
        if work > 0 && t < u64::MAX {
            t = self.slots(t, u64::MAX, config.rate, &mut work);
        }
        self.free_at = Instant::from_nanos(t);
        self.kept = Some(self.free_at.max(self.granted) + config.hold);
        self.free_at
    }
}

impl Run {
    /// Sends `work` from `t` on in slots with a mean rate of `rate`, up to `until`: the start of a frame, or `u64::MAX`.
    /// Returns the end of the transmission, or `until` with the rest left in `work`. Times are in nanoseconds.
    fn slots(&mut self, mut t: u64, until: u64, rate: Rate, work: &mut u128) -> u64 {
        let frame = self.config.frame.as_nanos().max(1);
        let carrier = u128::from(self.config.carrier().bits_per_sec().max(1));
        let slot = u128::from(rate.bits_per_sec().max(1)) * u128::from(frame);
        while t < until {
            let passed = u128::from(t % frame) * carrier;
            let room = slot.saturating_sub(passed);
            if *work <= room {
                t = t.saturating_add(u64::try_from(*work / carrier).unwrap_or(u64::MAX));
                self.carry = u64::try_from(*work % carrier).unwrap_or(0);
                *work = 0;
                return t;
            }
            *work -= room;
            // Whole frames at once, except the last one.
            let frames = (*work - 1) / slot;
            let left = u128::from((until - t / frame * frame) / frame).saturating_sub(1);
            let frames = frames.min(left);
            *work -= frames * slot;
            let begin = u128::from(t / frame) + 1 + frames;
            t = u64::try_from(begin * u128::from(frame)).unwrap_or(u64::MAX);
        }
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate;
    use alloc::vec::Vec;
    use skyhaul_base::units::Serializer;

    fn ms(t: u64) -> Instant {
        Instant::from_nanos(t * 1_000_000)
    }
    fn mbit(rate: u64) -> Rate {
        Rate::from_bits_per_sec(rate * 1_000_000)
    }
    /// 1 Mbit/s in slots of 2.5 ms at 8 Mbit/s, one in each frame of 20 ms: 2500 bytes. A request takes 540 ms.
    fn config() -> Config {
        Config {
            rate: mbit(1),
            carrier_rate: Some(mbit(8)),
            frame: Duration::from_millis(20),
            request: Duration::from_millis(540),
            hold: Duration::from_millis(500),
            contention_rate: None,
        }
    }
    fn run(config: Config) -> Run {
        assert_eq!(config.validate(), Ok(()));
        Arc::new(config).run()
    }

    #[test]
    fn the_first_packet_waits_for_its_capacity_and_the_next_do_not() {
        let mut r = run(config());
        // A request at 5 ms: 545 ms are within the frame from 540 ms on, so the first slot is at 560 ms. 1000 bytes in 1 ms.
        assert_eq!(r.send(ms(5), 1000, false), ms(561));
        // 1500 bytes of the slot are left: the third packet continues in the next frame.
        assert_eq!(r.send(ms(561), 1000, true), ms(562));
        assert_eq!(r.send(ms(562), 1000, true), Instant::from_nanos(580_500_000));
        // 482.5 ms later the terminal still has its slot, at the start of the next frame.
        assert_eq!(r.send(ms(1_063), 40, false), Instant::from_nanos(1_080_040_000));
        // More than 500 ms after that packet it has none: a request at 1581 ms, and the first frame after 2121 ms.
        assert_eq!(r.send(ms(1_581), 1000, false), ms(2_141));
    }

    #[test]
    fn capacity_is_kept_for_its_time_to_the_nanosecond() {
        for late in [0, 1] {
            let mut r = run(config());
            assert_eq!(r.send(ms(0), 1000, false), ms(541));
            let again = ms(1_041) + Duration::from_nanos(late);
            // With capacity, the slot from 1040 ms to 1042.5 ms is used from 1041 ms on. Without, a request takes until
            // 1581 ms, and the next frame is at 1600 ms.
            let expected = if late == 0 { ms(1_042) } else { ms(1_601) };
            assert_eq!(r.send(again, 1000, false), expected, "{late}");
        }
    }

    #[test]
    fn a_little_leaves_at_once_by_contention() {
        // 64 kbit/s: 160 bytes in each frame, 0.16 ms at 8 Mbit/s.
        let mut r = run(Config { contention_rate: Some(Rate::from_bits_per_sec(64_000)), ..config() });
        assert_eq!(r.send(ms(0), 40, false), Instant::from_nanos(40_000));
        // 120 bytes are left of the slot, and the next slots have 160 each: of 400 bytes the last 120 are in that of 40 ms.
        assert_eq!(r.send(Instant::from_nanos(40_000), 400, true), Instant::from_nanos(40_120_000));
        // From 540 ms on the terminal has its slot. Before come 40 bytes of the slot of 40 ms and the 24 slots from 60 ms to
        // 520 ms: 3880 bytes. Of 10000 bytes 6120 are left: two slots of 2500 bytes, and 1120 in the third, at 580 ms.
        let before = 40 + 160 * 24;
        let rest = 10_000 - before;
        let end = r.send(Instant::from_nanos(40_120_000), 10_000, true);
        assert_eq!(end, ms(540 + 40) + Duration::from_nanos((rest - 5_000) * 1_000));
    }

    #[test]
    fn a_busy_terminal_has_its_rate() {
        // 1000 packets of 1000 bytes over frames of 2500: 400 frames, the last of which ends with its slot.
        let mut r = run(config());
        let mut t = ms(0);
        for _ in 0..1000 {
            t = r.send(t, 1000, true);
        }
        assert_eq!(t, ms(540 + 399 * 20) + Duration::from_micros(2_500));
        // One packet of a million bytes takes as long as those 1000.
        assert_eq!(run(config()).send(ms(0), 1_000_000, false), t);
        assert_eq!(config().mean(), mbit(1));
    }

    #[test]
    fn a_slot_that_fills_its_frame_is_a_constant_rate_with_a_request() {
        let odd = Rate::from_bits_per_sec(777_777);
        let whole = Config {
            rate: odd,
            carrier_rate: None,
            request: Duration::ZERO,
            hold: Duration::from_secs(9),
            ..config()
        };
        let (mut r, mut constant) = (run(whole), Serializer::new(odd));
        let mut rng = skyhaul_base::Rng::stream(1, "dama");
        let mut t = Instant::ZERO;
        // The first frame begins with the run.
        assert_eq!(r.send(t, 40, false), constant.send(t, 40));
        for _ in 0..10_000 {
            let size = 40 + (rng.next_u64() % 1461) as u32;
            t += Duration::from_nanos(rng.next_u64() % 20_000_000);
            assert_eq!(r.send(t, size, false), constant.send(t, size));
        }
    }

    #[test]
    fn it_is_a_rate_as_any_other() {
        let rate: rate::Config = config().into();
        assert_eq!(
            (rate.mean(), rate.varies(), rate.bits_until(ms(9)), rate.write()),
            (Some(mbit(1)), false, None, None)
        );
        assert_eq!(rate.kind().map(rate::Config::from), Some(rate.clone()));
        let kind = rate.kind().unwrap();
        assert_eq!(
            (kind.name(), kind.words(&|r| format!("{} bit/s", r.bits_per_sec()))),
            ("dama", "1000000 bit/s on demand".into())
        );
        let mut t = rate.build();
        assert_eq!(t.send(ms(0), 1000, false), ms(541));
        assert_eq!(t.rate_over(ms(0), ms(1)), Some(1e6));
    }

    #[test]
    fn channels_that_cannot_be_are_refused() {
        let refused: Vec<_> = [
            Config { frame: Duration::ZERO, ..config() },
            Config { request: Duration::from_secs(7_200), ..config() },
            Config { carrier_rate: Some(Rate::from_bits_per_sec(1)), ..config() },
            Config { contention_rate: Some(mbit(9)), ..config() },
            Config { contention_rate: Some(Rate::from_bits_per_sec(399)), ..config() },
        ]
        .iter()
        .map(|c| c.validate().unwrap_err().key)
        .collect();
        assert_eq!(refused, ["frame", "request", "rate", "contention-rate", "contention-rate"]);
        // 400 bit/s are a byte per frame.
        assert!(
            Config { contention_rate: Some(Rate::from_bits_per_sec(400)), ..config() }.validate().is_ok()
        );
    }
}
