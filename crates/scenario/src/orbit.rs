//! Satellite links of a scenario.

use crate::error::Problem;
use skyhaul_base::{Duration, Instant};
use skyhaul_orbit::{Config, Diversity, Flight, Invalid, Sky, Switch, first_path};
use skyhaul_path::Course;
use std::sync::Arc;

/// Satellites between the stations of a link. Two are equal if their configurations are.
#[derive(Clone, Debug)]
pub struct Orbit {
    config: Config,
    sky: Arc<Sky>,
}

impl PartialEq for Orbit {
    fn eq(&self, other: &Self) -> bool {
        self.config == other.config
    }
}

impl Orbit {
    /// The configuration, with defaults filled in.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// The satellites and stations at any time.
    #[must_use]
    pub fn sky(&self) -> &Arc<Sky> {
        &self.sky
    }
    /// Whether a handover loses the packets in flight, unless the link says otherwise.
    pub(crate) fn drops_in_flight(&self) -> bool {
        self.config.switch == Switch::Hard
    }
    /// Whether packets are sent over two satellites at a time.
    pub(crate) fn both_carry(&self) -> bool {
        self.config.diversity == Diversity::Both
    }
    /// The changes of the link as satellites move.
    pub(crate) fn course(&self) -> Box<dyn Course> {
        Box::new(Flight::new(&self.config, self.sky.clone()))
    }
    /// The satellites that carry the link.
    pub(crate) fn gauge(&self) -> skyhaul_orbit::Gauge {
        skyhaul_orbit::Gauge::new(&self.config, self.sky.clone())
    }
}

/// The satellites of a table, and the one-way delay at the start of a run of this duration, or when a path first
/// exists.
pub(crate) fn resolve(key: &str, config: &Config, run: Duration) -> Result<(Orbit, Duration), Problem> {
    let sky = Arc::new(Sky::new(config).map_err(|e| refused(key, e))?);
    match first_path(config, &sky, run) {
        Ok((_, delay)) => Ok((Orbit { config: config.clone().canonical(), sky }, delay)),
        Err(searched) => Err(Problem::new(key, nothing_in_sight(config, &sky, searched))),
    }
}

fn refused(key: &str, e: Invalid) -> Problem {
    Problem { key: format!("{key}.{}", e.key), message: e.message, file: e.file }
}

/// The message for stations between which there is no path.
fn nothing_in_sight(config: &Config, sky: &Sky, searched: Duration) -> String {
    let start = sky.moment(Instant::ZERO);
    let mut of_one = Vec::new();
    let counts = [0, 1].map(|end| {
        sky.candidates(skyhaul_orbit::Stations::One(end), &start, &mut of_one);
        of_one.len()
    });
    let (from, to) = (&config.from, &config.to);
    let visible = match counts {
        [0, 0] => "neither sees a satellite at the start".into(),
        [a, b] => format!("at the start {from} sees {a} and {to} {b}"),
    };
    let remedy = match config.relay {
        skyhaul_orbit::Relay::BentPipe => {
            "write relay = \"inter-satellite\" for a constellation in planes, nearer stations, a lower elevation, or \
             satellites that both see"
        }
        skyhaul_orbit::Relay::InterSatellite => "write a lower elevation, or more satellites",
    };
    format!(
        "no path between {from} and {to} within {} s: no satellite or chain of satellites is visible from both ({visible}): {remedy}",
        searched.as_secs_f64()
    )
}
