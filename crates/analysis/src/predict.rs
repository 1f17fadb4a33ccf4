//! The rate of a flow: the lowest of its upper limits, which is called the active one.

use crate::DomainError;
use crate::domain::limit;

/// Upper limits of one flow, packets per second; infinite if there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Equal share of the bottleneck.
    pub fair_share: f64,
    /// Window over RTT.
    pub window: f64,
    /// Random loss.
    pub loss: f64,
    /// Acknowledgements on the return link.
    pub return_link: f64,
}

impl Default for Bounds {
    fn default() -> Self {
        let none = f64::INFINITY;
        Self { fair_share: none, window: none, loss: none, return_link: none }
    }
}

/// The limit that determines the rate of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Active {
    /// Equal share of the bottleneck.
    FairShare,
    /// Random loss.
    Loss,
    /// Nothing limits.
    None,
    /// Acknowledgements on the return link.
    ReturnLink,
    /// Window over RTT.
    Window,
}

/// The rate of one flow, packets per second, and the active limit. Of equal limits, the first in the order fair share,
/// window, loss, return link is active.
///
/// # Errors
/// If a limit is not above 0.
pub fn predict(bounds: &Bounds) -> Result<(f64, Active), DomainError> {
    let all = [
        ("fair_share", bounds.fair_share, Active::FairShare),
        ("window", bounds.window, Active::Window),
        ("loss", bounds.loss, Active::Loss),
        ("return_link", bounds.return_link, Active::ReturnLink),
    ];
    let mut best = (f64::INFINITY, Active::None);
    for (name, rate, active) in all {
        limit(name, rate)?;
        if rate < best.0 {
            best = (rate, active);
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::near;
    use crate::throughput::pftk;
    use crate::window::{return_cap, window_limit};

    /// [Peach]: 20 flows on 1300 segments/s, windows of 64 segments, 550 ms.
    fn peach(p: f64, return_rate: Option<f64>) -> (f64, Active) {
        let return_link = return_rate.map_or(f64::INFINITY, |r| return_cap(r, 40.0, 1.0).unwrap() / 20.0);
        let bounds = Bounds {
            fair_share: 1300.0 / 20.0,
            window: window_limit(64.0, 0.55).unwrap(),
            loss: pftk(p, 0.55, 1.0, 1.0, 64.0).unwrap(),
            return_link,
        };
        predict(&bounds).unwrap()
    }

    #[test]
    fn each_limit_in_turn() {
        assert_eq!(peach(1e-4, None), (65.0, Active::FairShare));
        let (rate, active) = peach(1e-2, None);
        near(Ok(rate), 21.117, 1e-4);
        assert_eq!(active, Active::Loss);
        assert_eq!(peach(1e-4, Some(256e3)), (40.0, Active::ReturnLink));
        let alone = Bounds { fair_share: 1300.0, window: 64.0 / 0.55, ..Bounds::default() };
        assert_eq!(predict(&alone), Ok((64.0 / 0.55, Active::Window)));
        assert_eq!(predict(&Bounds::default()), Ok((f64::INFINITY, Active::None)));
        assert!(predict(&Bounds { loss: f64::NAN, ..alone }).is_err());
    }
}
