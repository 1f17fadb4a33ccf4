//! The oracle that informs a sender whether a lost packet was a channel error. It errs with the probabilities of the
//! scenario.

use skyhaul_base::Rng;
use skyhaul_tcp::config::LossClassifier;
use skyhaul_trace::LossCause;

/// The oracle of one connection.
#[derive(Debug)]
pub(crate) struct Oracle {
    rng: Rng,
    /// Probability that a channel error is called congestion.
    false_congestion: f64,
    /// Probability that congestion is called a channel error.
    false_error: f64,
}

impl Oracle {
    /// The oracle of an endpoint, if it has one.
    pub(crate) fn of(classifier: LossClassifier, rng: impl FnOnce() -> Rng) -> Option<Self> {
        match classifier {
            LossClassifier::Oracle { false_congestion, false_error } => {
                Some(Self { rng: rng(), false_congestion, false_error })
            }
            _ => None,
        }
    }

    /// Its answer for a packet lost for this cause: whether the loss was a channel error. The answer takes one random draw.
    pub(crate) fn says_error(&mut self, cause: LossCause) -> bool {
        let truly = is_error(cause);
        let p = if truly { self.false_congestion } else { self.false_error };
        truly != (self.rng.unit() < p)
    }
}

/// Whether a smaller window could not have saved the packet: it was lost to a channel error, given up by the link's ARQ, or lost
/// when a link went down.
pub(crate) fn is_error(cause: LossCause) -> bool {
    match cause {
        LossCause::Error | LossCause::LinkDown | LossCause::ArqGaveUp => true,
        LossCause::Full | LossCause::PushedOut | LossCause::Aqm | LossCause::Filtered => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(classifier: LossClassifier, cause: LossCause) -> usize {
        let mut oracle = Oracle::of(classifier, || Rng::stream(1, "test")).expect("an oracle");
        (0..1000).filter(|_| oracle.says_error(cause)).count()
    }

    #[test]
    fn it_errs_as_often_as_asked() {
        let right = LossClassifier::Oracle { false_congestion: 0.0, false_error: 0.0 };
        assert_eq!([LossCause::Error, LossCause::LinkDown].map(|c| errors(right, c)), [1000; 2]);
        assert_eq!([LossCause::Full, LossCause::PushedOut].map(|c| errors(right, c)), [0; 2]);
        let errs = LossClassifier::Oracle { false_congestion: 0.25, false_error: 1.0 };
        assert!((700..800).contains(&errors(errs, LossCause::Error)));
        assert_eq!(errors(errs, LossCause::Full), 1000);
        assert!(Oracle::of(LossClassifier::None, || unreachable!("draws nothing")).is_none());
    }
}
