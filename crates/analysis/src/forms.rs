//! The closed forms by name, as functions from numbers to a number, for expressions in study files and for Python.

use crate::period::{self, Path};
use crate::{Value, aimd, fairness, loss, start, throughput, utilization, window};

/// A closed form.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Its name.
    pub name: &'static str,
    /// Names of its arguments, in order.
    pub arguments: &'static [&'static str],
    /// Description, with unit and source.
    pub description: &'static str,
    eval: fn(&[f64]) -> Value,
}

impl Form {
    /// The form called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        FORMS.iter().find(|f| f.name == name)
    }

    /// Its value, for one argument per name.
    ///
    /// # Errors
    /// If an argument is outside of the domain.
    ///
    /// # Panics
    /// If there are more or fewer arguments.
    pub fn value(&self, arguments: &[f64]) -> Value {
        assert_eq!(arguments.len(), self.arguments.len(), "{} takes {:?}", self.name, self.arguments);
        (self.eval)(arguments)
    }
}

/// Declares the forms, one line each.
macro_rules! forms {
    ($($name:ident($($argument:ident),*) = $value:expr, $description:literal;)*) => {
        /// All closed forms, by name.
        pub const FORMS: &[Form] = &[$(Form {
            name: stringify!($name),
            arguments: &[$(stringify!($argument)),*],
            description: $description,
            eval: |all| match all {
                &[$($argument),*] => $value,
                _ => unreachable!("`Form::value` checks the number of arguments"),
            },
        }),*];
    };
}

// A form that concerns only a part of a path gives 1 to the other rates and sizes, and no delay: they have no effect on it.
forms! {
    ack_period(w, acks, d, forward, reverse, packet, ack, propagation) =
        Ok(Path::new(forward, reverse, packet, ack, propagation)?.delayed_period(w, acks, d)?.length),
        "transmission period with `acks` acknowledgements delayed by d, s (Papadimitriou 2007, Eq. 9)";
    ack_time(acks, reverse, ack) = Path::new(1.0, reverse, 1.0, ack, 0.0)?.ack_time(acks),
        "time that acknowledgements take on the return link, s (Papadimitriou 2007, Eqs. 2, 8)";
    acks_by_timer(w, d, forward, packet) = Path::new(forward, 1.0, packet, 1.0, 0.0)?.acks_by_timer(w, d),
        "acknowledgements for w packets, one per d seconds (Papadimitriou 2007, L)";
    acks_every(w, b) = period::acks_every(w, b),
        "acknowledgements for w packets, one per b packets (Papadimitriou 2007, L)";
    aimd(p, rtt, b, alpha, beta) = aimd::sawtooth(p, rtt, b, alpha, beta),
        "AIMD(alpha, beta) under periodic losses, packets/s (Yang, Lam 2000)";
    aimd_timeouts(p, rtt, t0, b, alpha, beta) = aimd::with_timeouts(p, rtt, t0, b, alpha, beta),
        "AIMD(alpha, beta) with timeouts, packets/s (Yang, Lam 2000)";
    asymmetry(forward, reverse, packet, ack) = window::asymmetry(forward, reverse, packet, ack),
        "normalised asymmetry k (RFC 3449)";
    clean_utilization(bdp, buffer, beta) = utilization::clean_utilization(bdp, buffer, beta),
        "utilization of an error-free drop-tail link by synchronised flows";
    critical_loss(c, bdp) = utilization::critical_loss(c, bdp),
        "loss probability above which one flow cannot fill the path (Lakshman, Madhow 1997)";
    data_time(w, forward, packet) = Path::new(forward, 1.0, packet, 1.0, 0.0)?.data_time(w),
        "time that a window takes on the forward link, s (Papadimitriou 2007, Eqs. 1, 6)";
    friendly_alpha(beta) = aimd::friendly_alpha(beta),
        "increase as strong as Reno's with timeouts, packets per RTT (Yang, Lam 2000)";
    friendly_alpha_without_timeouts(beta) = aimd::friendly_alpha_without_timeouts(beta),
        "increase as strong as Reno's without timeouts, packets per RTT (Floyd et al. 2000)";
    goodput_ratio(x, y) = fairness::goodput_ratio(x, y), "ratio of the goodputs of two classes (Akyildiz 2001, Eq. 6)";
    lossy_utilization(flows, x, p, capacity) = utilization::lossy_utilization(flows, x, p, capacity),
        "utilization of a link by flows that send at x each and lose p of it";
    mathis(p, rtt, c) = throughput::mathis(p, rtt, c),
        "square-root law, packets/s (Mathis 1997); c is 1.2247, 0.8660, 1.31 or 0.93";
    no_fast_retransmit(w, q) = loss::no_fast_retransmit(w, q),
        "probability that fewer than three duplicate acknowledgements of a window come back";
    normalized_throughput(x, capacity, flows) = fairness::normalized_throughput(x, capacity, flows),
        "rate of a flow divided by the fair share (Papadimitriou 2007, §4.2)";
    packet_loss(ber, size) = loss::packet_loss(ber, size),
        "probability that a packet has a wrong bit";
    period(w, forward, reverse, packet, ack, propagation) =
        Ok(Path::new(forward, reverse, packet, ack, propagation)?.period(w)?.length),
        "transmission period, s (Papadimitriou 2007, Eq. 5)";
    pftk(p, rtt, t0, b, wm) = throughput::pftk(p, rtt, t0, b, wm),
        "full throughput equation, packets/s (Padhye 1998)";
    pftk_approximate(p, rtt, t0, b, wm) = throughput::pftk_approximate(p, rtt, t0, b, wm),
        "approximate throughput equation, packets/s (Padhye 1998)";
    return_cap(rate, ack, b) = window::return_cap(rate, ack, b),
        "data packets per second that a return link can acknowledge";
    rtt_of_period(forward, reverse, packet, ack, propagation) =
        Ok(Path::new(forward, reverse, packet, ack, propagation)?.rtt()),
        "RTT of a single packet, s (Papadimitriou 2007, Eqs. 3, 4)";
    sawtooth_period(flows, rtt, bdp, buffer, beta) = utilization::sawtooth_period(flows, rtt, bdp, buffer, beta),
        "time from loss to loss on an error-free link, s";
    slow_start_rounds(n, w1, growth) = start::slow_start_rounds(n, w1, growth).map(f64::from),
        "round trips that n packets take without loss";
    slow_start_time(rtt, rate, bits) = start::slow_start_time(rtt, rate, bits),
        "duration of slow start, s (Akyildiz 2001, Eq. 1)";
    steady_run(p, x) = loss::steady_run(p, x),
        "shortest run to compare with a steady state, s: 50 losses";
    tail_cost(p, rtt, t0) = loss::tail_cost(p, rtt, t0),
        "mean delay by the loss of the last packet, s";
    tfrc(p, rtt, t0, b) = throughput::tfrc(p, rtt, t0, b),
        "equation of TFRC, packets/s (RFC 5348)";
    transfer_floor(size, window, rtt, rate) = window::transfer_floor(size, window, rtt, rate),
        "least time of a transfer, s";
    transient_rate(w0, duration, b, rtt) = start::transient_rate(w0, duration, b, rtt),
        "mean rate of a window that grows undisturbed, packets/s";
    two_or_more(w, p) = loss::two_or_more(w, p),
        "probability that a window loses two or more packets";
    window_knee(rate, rtt) = window::window_knee(rate, rtt),
        "window beyond which a larger one adds nothing, bytes";
    window_limit(window, rtt) = window::window_limit(window, rtt),
        "rate of one window per RTT, in the unit of the window per second";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near;
    use std::vec;

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(FORMS.windows(2).all(|w| w[0].name < w[1].name));
        assert!(Form::named("pftk").is_some() && Form::named("pftk2").is_none());
    }

    #[test]
    fn forms_are_the_functions() {
        let value = |name: &str, arguments: &[f64]| Form::named(name).expect("known").value(arguments);
        near(value("pftk", &[1e-2, 0.55, 1.0, 1.0, 64.0]), 21.117, 1e-4);
        near(value("period", &[800.0, 10e6, 256e3, 1000.0, 40.0, 0.27]), 1.0, 1e-9);
        near(value("ack_period", &[800.0, 400.0, 0.1, 10e6, 256e3, 1000.0, 40.0, 0.27]), 0.64205, 1e-9);
        near(value("ack_time", &[800.0, 256e3, 40.0]), 1.0, 1e-9);
        near(value("data_time", &[800.0, 10e6, 1000.0]), 0.64, 1e-9);
        near(value("slow_start_rounds", &[50.0, 1.0, 2.0]), 6.0, 1e-12);
    }

    #[test]
    fn no_form_yields_nan_of_anything() {
        for form in FORMS {
            for odd in [f64::NAN, -1.0, 0.0, 0.5, 1.0, 2.0, 1e300, f64::INFINITY] {
                for fill in [0.5, 1.0, 3.0] {
                    for at in 0..form.arguments.len() {
                        let mut arguments = vec![fill; form.arguments.len()];
                        arguments[at] = odd;
                        if let Ok(x) = form.value(&arguments) {
                            assert!(!x.is_nan(), "{} {arguments:?}", form.name);
                        }
                    }
                }
            }
        }
    }
}
