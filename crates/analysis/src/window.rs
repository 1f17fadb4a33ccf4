//! Limits by window and return link.

use crate::Value;
use crate::domain::{at_least_one, limit, positive};

/// Rate of a window that is sent once per RTT, in the unit of `window` per second (\[Luglio\], \[Neglia\]).
///
/// # Errors
/// If `window` is not above 0 (it may be infinite) or `rtt` not a number above 0.
pub fn window_limit(window: f64, rtt: f64) -> Value {
    limit("window", window)?;
    positive("rtt", rtt)?;
    Ok(window / rtt)
}

/// The window in bytes beyond which a larger one has no effect: `rate` bit/s times `rtt`.
///
/// # Errors
/// If an argument is not a number above 0.
pub fn window_knee(rate: f64, rtt: f64) -> Value {
    positive("rate", rate)?;
    positive("rtt", rtt)?;
    Ok(rate * rtt / 8.0)
}

/// Minimum time in seconds for `size` bytes with a window of `window` bytes on a link of `rate` bit/s, without slow start.
///
/// # Errors
/// If `size` or `rtt` is not a number above 0, or `window` or `rate` not above 0 (they may be infinite).
pub fn transfer_floor(size: f64, window: f64, rtt: f64, rate: f64) -> Value {
    positive("size", size)?;
    limit("rate", rate)?;
    Ok(8.0 * size / (8.0 * window_limit(window, rtt)?).min(rate))
}

/// Data packets per second that a return link of `rate` bit/s can acknowledge with packets of `ack` bytes, one per `b`
/// data packets: `rate b / (8 ack)`.
///
/// # Errors
/// If `rate` or `ack` is not a number above 0, or `b` not a number from 1.
pub fn return_cap(rate: f64, ack: f64, b: f64) -> Value {
    positive("rate", rate)?;
    positive("ack", ack)?;
    at_least_one("b", b)?;
    Ok(rate * b / (8.0 * ack))
}

/// Normalised asymmetry k of RFC 3449: ratio of the rates over ratio of the packet sizes. If k exceeds `b`, the number
/// of data packets per acknowledgement, the return link limits.
///
/// # Errors
/// If an argument is not a number above 0.
pub fn asymmetry(forward: f64, reverse: f64, packet: f64, ack: f64) -> Value {
    positive("forward", forward)?;
    positive("reverse", reverse)?;
    positive("packet", packet)?;
    positive("ack", ack)?;
    Ok((forward / reverse) / (packet / ack))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near;

    #[test]
    fn window_limits() {
        near(window_limit(8.0 * 65_535.0, 0.5), 1_048_560.0, 1e-9);
        // [Neglia]: about 900 kbit/s.
        near(window_limit(8.0 * 65_536.0, 0.58), 903_900.0, 1e-3);
        // Windows of 64, 128 and 256 KiB over the RTT of [Luglio], 508 ms.
        for (kib, mbit) in [(64.0, 1.0321), (128.0, 2.0641), (256.0, 4.1283)] {
            near(window_limit(8.0 * kib * 1024.0, 0.508), mbit * 1e6, 1e-4);
        }
        // The knee on 4 Mbit/s: about 170 packets ([Luglio]), 254 kB.
        near(window_knee(4e6, 0.508), 254e3, 1e-9);
        near(Ok(window_knee(4e6, 0.508).unwrap() / 1500.0), 169.33, 1e-4);
        // A packet of 1500 bytes more in the window: 12000 bit per 0.508 s.
        near(window_limit(12_000.0, 0.508), 23_622.0, 1e-4);
    }

    #[test]
    fn the_time_that_files_take_at_least() {
        // [Luglio] Fig. 3: 50 and 100 MB.
        for (bytes, row) in [(50e6, [387.6, 193.8, 100.0]), (100e6, [775.1, 387.6, 200.0])] {
            for (kib, want) in [64.0, 128.0, 256.0].into_iter().zip(row) {
                near(transfer_floor(bytes, kib * 1024.0, 0.508, 4e6), want, 1e-3);
            }
        }
        near(transfer_floor(50e6, f64::INFINITY, 0.508, 4e6), 100.0, 1e-12);
    }

    #[test]
    fn return_links() {
        near(return_cap(256e3, 40.0, 1.0), 800.0, 1e-12);
        near(return_cap(256e3, 40.0, 2.0), 1600.0, 1e-12);
        near(asymmetry(10e6, 50e3, 1000.0, 40.0), 8.0, 1e-12);
        near(asymmetry(10e6, 256e3, 1000.0, 40.0), 1.5625, 1e-12);
        assert_eq!(return_cap(256e3, 40.0, 0.5).unwrap_err().argument, "b");
    }
}
