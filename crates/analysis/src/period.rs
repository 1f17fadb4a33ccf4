//! The transmission periods of Papadimitriou and Tsaoussidis (2007), Eqs. 1 to 9.
//!
//! A window is sent once per transmission period: the longest of the round trip, the time to send the window over the
//! forward link, and the time to send its acknowledgements over the return link. Sizes are bytes; where the source
//! divides bytes by bit/s, bits are meant. One sentence of the paper swaps the names of T and T'; Eqs. 1 and 2 are right.

use crate::domain::{at_least_one, fraction, not_negative, positive};
use crate::{DomainError, Value};
use skyhaul_base::math;

/// An asymmetric path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Rate of the forward link, BW_Dn, bit/s.
    forward: f64,
    /// Rate of the return link, BW_Up, bit/s.
    reverse: f64,
    /// Size of a data packet, S, bytes.
    packet: f64,
    /// Size of an acknowledgement, S', bytes.
    ack: f64,
    /// Propagation delay each way, P, s.
    propagation: f64,
}

/// What determines a transmission period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Governs {
    /// The round trip (Fig. 3a).
    Rtt,
    /// Data on the forward link (Fig. 3b).
    Data,
    /// Acknowledgements on the return link (Fig. 3c).
    Acks,
}

/// A transmission period and its parts, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    /// RTT of Eq. 4, or RTT' of Eq. 7.
    pub rtt: f64,
    /// T of Eq. 1.
    pub data: f64,
    /// T' of Eq. 2, or T'' of Eq. 8.
    pub acks: f64,
    /// t of Eq. 5, or t' of Eq. 9: the longest of the three.
    pub length: f64,
    /// Which of them is the longest; of equal ones, the first.
    pub governs: Governs,
}

impl Period {
    fn of(rtt: f64, data: f64, acks: f64) -> Self {
        let (length, governs) = if rtt >= data && rtt >= acks {
            (rtt, Governs::Rtt)
        } else if data >= acks {
            (data, Governs::Data)
        } else {
            (acks, Governs::Acks)
        };
        Self { rtt, data, acks, length, governs }
    }
}

impl Path {
    /// Rates `forward` and `reverse` in bit/s, sizes `packet` and `ack` in bytes, `propagation` in s each way.
    ///
    /// # Errors
    /// If a rate or a size is not above 0, or `propagation` negative.
    pub fn new(
        forward: f64,
        reverse: f64,
        packet: f64,
        ack: f64,
        propagation: f64,
    ) -> Result<Self, DomainError> {
        positive("forward", forward)?;
        positive("reverse", reverse)?;
        positive("packet", packet)?;
        positive("ack", ack)?;
        not_negative("propagation", propagation)?;
        Ok(Self { forward, reverse, packet, ack, propagation })
    }

    /// T, s: a window of `w` packets on the forward link (Eq. 1).
    ///
    /// # Errors
    /// If `w` is below 1.
    pub fn data_time(&self, w: f64) -> Value {
        at_least_one("w", w)?;
        Ok(8.0 * self.packet * w / self.forward)
    }

    /// T' or T'', s: `acks` acknowledgements on the return link (Eqs. 2 and 8).
    ///
    /// # Errors
    /// If `acks` is below 1.
    pub fn ack_time(&self, acks: f64) -> Value {
        at_least_one("acks", acks)?;
        Ok(8.0 * self.ack * acks / self.reverse)
    }

    /// RTT, s, of a single packet, without queueing (Eqs. 3 and 4).
    #[must_use]
    pub fn rtt(&self) -> f64 {
        2.0 * self.propagation + 8.0 * self.packet / self.forward + 8.0 * self.ack / self.reverse
    }

    /// The period of a window of `w` packets that are acknowledged one by one (Eq. 5).
    ///
    /// # Errors
    /// If `w` is below 1.
    pub fn period(&self, w: f64) -> Result<Period, DomainError> {
        Ok(Period::of(self.rtt(), self.data_time(w)?, self.ack_time(w)?))
    }

    /// The period of a window of `w` packets with `acks` acknowledgements that are delayed by `d` s (Eqs. 7 to 9).
    ///
    /// # Errors
    /// If `w` or `acks` is below 1 or `d` negative.
    pub fn delayed_period(&self, w: f64, acks: f64, d: f64) -> Result<Period, DomainError> {
        not_negative("d", d)?;
        Ok(Period::of(self.rtt() + d, self.data_time(w)?, self.ack_time(acks)?))
    }

    /// T(k+1), s: the window of `w` packets after a loss that leaves the fraction `beta` of it (Eq. 6).
    ///
    /// # Errors
    /// If `w` is below 1 or `beta` not between 0 and 1.
    pub fn data_time_after_loss(&self, w: f64, beta: f64) -> Value {
        at_least_one("w", w)?;
        fraction("beta", beta)?;
        Ok(beta * self.data_time(w)?)
    }

    /// The interval, s, between transmission k of `w` packets and the next one after a timeout, with a coder that takes
    /// `coder` s to change its rate: t(k) + D_v (Fig. 4).
    ///
    /// # Errors
    /// If `w` is below 1 or `coder` negative.
    pub fn timeout_gap(&self, w: f64, coder: f64) -> Value {
        not_negative("coder", coder)?;
        Ok(self.period(w)?.length + coder)
    }

    /// L, the number of acknowledgements for `w` packets, if the receiver only waits for `d` s: one per `d`, but at
    /// least one. The source does not define L; this is one reading, [`acks_every`] the other, and a receiver that does
    /// both sends the larger of the two ([`Self::delayed_acks`]).
    ///
    /// # Errors
    /// If `w` is below 1 or `d` not above 0.
    pub fn acks_by_timer(&self, w: f64, d: f64) -> Value {
        positive("d", d)?;
        Ok(math::ceil(self.data_time(w)? / d).max(1.0))
    }

    /// L of a receiver that acknowledges every `b`-th packet, and at the latest after `d` s.
    ///
    /// # Errors
    /// If `w` or `b` is below 1 or `d` not above 0.
    pub fn delayed_acks(&self, w: f64, b: f64, d: f64) -> Value {
        Ok(acks_every(w, b)?.max(self.acks_by_timer(w, d)?))
    }

    /// Rate, bit/s, of a window of `w` packets per `length` s.
    ///
    /// # Errors
    /// If `w` is below 1 or `length` not above 0.
    pub fn rate(&self, w: f64, length: f64) -> Value {
        at_least_one("w", w)?;
        positive("length", length)?;
        Ok(8.0 * self.packet * w / length)
    }

    /// The maximum rate, bit/s, that the return link permits for any window: `S BW_Up b / S'`, or BW_Dn if that is
    /// less.
    ///
    /// # Errors
    /// If `b` is below 1.
    pub fn plateau(&self, b: f64) -> Value {
        at_least_one("b", b)?;
        Ok((self.packet * self.reverse * b / self.ack).min(self.forward))
    }

    /// The window in packets from which data (`Governs::Data`) or acknowledgements (`Governs::Acks`) take longer than
    /// the RTT; for `Governs::Rtt`, the smaller of the two, up to which the RTT determines the period.
    #[must_use]
    pub fn window_of(&self, governs: Governs) -> f64 {
        let data = self.rtt() * self.forward / (8.0 * self.packet);
        let acks = self.rtt() * self.reverse / (8.0 * self.ack);
        match governs {
            Governs::Data => data,
            Governs::Acks => acks,
            Governs::Rtt => data.min(acks),
        }
    }

    /// W, a window limited to 1 … MWS/S packets, for a largest window of `mws` bytes (§3).
    ///
    /// # Errors
    /// If `w` is NaN or `mws` smaller than a packet.
    pub fn clamp(&self, w: f64, mws: f64) -> Value {
        if mws.is_nan() || mws < self.packet {
            return Err(DomainError {
                argument: "mws",
                value: mws,
                needs: "a window holds at least one packet",
            });
        }
        if w.is_nan() {
            return Err(DomainError { argument: "w", value: w, needs: "write a number" });
        }
        Ok(w.max(1.0).min(mws / self.packet))
    }
}

/// L, the number of acknowledgements for `w` packets, when every `b`-th is acknowledged: ceil(w / b).
///
/// # Errors
/// If `w` or `b` is below 1.
pub fn acks_every(w: f64, b: f64) -> Value {
    at_least_one("w", w)?;
    at_least_one("b", b)?;
    Ok(math::ceil(w / b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near;

    /// The parameters of the paper's simulations, with P = 270 ms between its "approximately 530 ms" and 550 ms.
    fn paptsa() -> Path {
        Path::new(10e6, 256e3, 1000.0, 40.0, 0.27).unwrap()
    }

    #[test]
    fn round_trip_of_a_single_packet() {
        // 2P + 2.05 ms.
        near(Ok(paptsa().rtt()), 0.54205, 1e-9);
        let of_one = paptsa().data_time(1.0).unwrap() + paptsa().ack_time(1.0).unwrap();
        near(Ok(0.54 + of_one), paptsa().rtt(), 1e-12);
    }

    #[test]
    fn the_table_of_periods() {
        use Governs::{Acks, Rtt};
        // W; T, T', t, what governs, rate; L, T'', RTT', t' for every second packet and 100 ms.
        let rows = [
            (1.0, [0.0008, 0.00125, 0.54205, 14.76e3], Rtt, [1.0, 0.00125, 0.64205, 0.64205]),
            (240.0, [0.192, 0.300, 0.54205, 3.542e6], Rtt, [120.0, 0.150, 0.64205, 0.64205]),
            (480.0, [0.384, 0.600, 0.600, 6.4e6], Acks, [240.0, 0.300, 0.64205, 0.64205]),
            (800.0, [0.640, 1.000, 1.000, 6.4e6], Acks, [400.0, 0.500, 0.64205, 0.64205]),
        ];
        let path = paptsa();
        for (w, plain, governs, delayed) in rows {
            let t = path.period(w).unwrap();
            let rate = path.rate(w, t.length).unwrap();
            for (got, want) in [t.data, t.acks, t.length, rate].into_iter().zip(plain) {
                near(Ok(got), want, 1e-3);
            }
            assert_eq!(t.governs, governs, "{w}");
            let acks = path.delayed_acks(w, 2.0, 0.1).unwrap();
            let t = path.delayed_period(w, acks, 0.1).unwrap();
            for (got, want) in [acks, t.acks, t.rtt, t.length].into_iter().zip(delayed) {
                near(Ok(got), want, 1e-6);
            }
        }
        // Every second packet at 800: data 0.640 s against acknowledgements 0.500 s, and without the delay data governs.
        let t = path.delayed_period(800.0, 400.0, 0.0).unwrap();
        assert_eq!((t.data, t.acks, t.governs), (0.64, 0.5, Governs::Data));
    }

    #[test]
    fn delayed_acknowledgements_pay_only_where_acknowledgements_limit() {
        let path = paptsa();
        let (rtt, d) = (path.rtt(), 0.1);
        for w in (1..1200).map(f64::from) {
            let plain = path.period(w).unwrap();
            let delayed = path.delayed_period(w, acks_every(w, 2.0).unwrap(), d).unwrap();
            let pays = plain.acks > rtt + d && plain.data < plain.acks;
            assert_eq!(delayed.length < plain.length, pays, "{w}");
        }
    }

    #[test]
    fn both_readings_of_the_number_of_acknowledgements() {
        let path = paptsa();
        assert_eq!(acks_every(241.0, 2.0), Ok(121.0));
        // 192 ms of data, one acknowledgement per 100 ms.
        assert_eq!(path.acks_by_timer(240.0, 0.1), Ok(2.0));
        assert_eq!(path.acks_by_timer(1.0, 0.5), Ok(1.0));
        assert_eq!(path.delayed_acks(240.0, 2.0, 0.1), Ok(120.0));
        assert_eq!(path.delayed_acks(240.0, 240.0, 0.01), Ok(20.0));
    }

    #[test]
    fn windows_at_which_the_regime_changes() {
        let path = paptsa();
        // At an RTT of 550 ms 687 and 440 packets; at this one 1.4 % less.
        near(Ok(path.window_of(Governs::Data)), 677.56, 1e-4);
        near(Ok(path.window_of(Governs::Acks)), 433.64, 1e-4);
        assert_eq!(path.window_of(Governs::Rtt), path.window_of(Governs::Acks));
        near(path.plateau(1.0), 6.4e6, 1e-12);
        near(path.plateau(2.0), 10e6, 1e-12);
        // T'/T is the k of RFC 3449.
        let k = crate::window::asymmetry(10e6, 256e3, 1000.0, 40.0).unwrap();
        near(Ok(path.ack_time(240.0).unwrap() / path.data_time(240.0).unwrap()), k, 1e-12);
    }

    #[test]
    fn losses_and_limits_of_the_window() {
        let path = paptsa();
        near(path.data_time_after_loss(800.0, 0.5), 0.320, 1e-9);
        near(path.data_time_after_loss(800.0, 0.875), 0.560, 1e-9);
        near(path.timeout_gap(240.0, 0.2), 0.74205, 1e-9);
        assert_eq!(path.clamp(0.0, 240e3), Ok(1.0));
        assert_eq!(path.clamp(1e6, 240e3), Ok(240.0));
        assert_eq!(path.clamp(17.0, 240e3), Ok(17.0));
        assert_eq!(path.clamp(17.0, 10.0).unwrap_err().argument, "mws");
        assert_eq!(path.data_time(0.5).unwrap_err().argument, "w");
        assert_eq!(Path::new(0.0, 1.0, 1.0, 1.0, 0.0).unwrap_err().argument, "forward");
    }
}
