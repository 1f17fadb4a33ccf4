//! Shadowing of a moving receiver: line of sight, trees, buildings.
//!
//! A continuous-time Markov chain, with exponentially distributed stays in each state. Two states, good and bad,
//! are the channel of E. Lutz, D. Cygan, M. Dippold, F. Dolainsky, W. Papke, "The land mobile satellite
//! communication channel — recording, statistics, and channel model", IEEE Transactions on Vehicular Technology
//! 40(2), 1991. Three, line of sight, shadowed and blocked, are those of Y. Karasawa, K. Kimura, K. Minamisono,
//! "Analysis of availability improvement in LMSS by means of satellite diversity based on three-state propagation
//! channel model", same journal, 46(4), 1997, and of F. Pérez Fontán and others, "Statistical modeling of the LMS
//! channel", same journal, 50(6), 2001; ITU-R P.681 has both kinds.
//!
//! The sources' models within a state are simplified (*our choice*): the mean power of a stay is log-normal as in
//! theirs, but drawn once for the whole stay, and multipath fading, which takes milliseconds, is left to
//! interleaver and margin. A stay is given in seconds: the metres of the sources divided by the speed.

use super::Invalid;
use super::carrier;
use super::model::{Model, Sky, Weather};
use super::normal;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
#[cfg(feature = "schema")]
use skyhaul_base::amount::{Decibels, Probability, Time};
use skyhaul_base::{Duration, Instant, Rng};

/// Maximum states of a chain.
const MOST: usize = 16;

/// A state of the channel.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ShadowSpec"))]
pub struct State {
    /// Name of the state, such as "line of sight".
    pub name: String,
    /// Mean duration.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::time"))]
    #[cfg_attr(feature = "schema", schemars(with = "Time"))]
    pub mean: Duration,
    /// Mean attenuation; 0 dB by default.
    #[cfg_attr(feature = "serde", serde(default, with = "skyhaul_base::amount::plain::decibels"))]
    #[cfg_attr(feature = "schema", schemars(with = "Decibels"))]
    pub attenuation: f64,
    /// Standard deviation of the attenuation over the stays; the attenuation is never below 0 dB. 0 dB by default.
    #[cfg_attr(feature = "serde", serde(default, with = "skyhaul_base::amount::plain::decibels"))]
    #[cfg_attr(feature = "schema", schemars(with = "Decibels"))]
    pub deviation: f64,
    /// Additional loss probability of a packet of 188 bytes, besides the effect of the attenuation; 0 by default.
    #[cfg_attr(feature = "serde", serde(default, with = "skyhaul_base::amount::plain::probability"))]
    #[cfg_attr(feature = "schema", schemars(with = "Probability"))]
    pub loss: f64,
    /// Weights of the states that may follow, by name; by default all others are equally likely.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "BTreeMap::is_empty"))]
    pub then: BTreeMap<String, f64>,
}

/// Shadowing: a Markov chain of states.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Config {
    /// Two or more states.
    pub states: Vec<State>,
    /// Both directions of the link are in the same state; true by default.
    #[cfg_attr(feature = "serde", serde(default = "yes"))]
    pub shared: bool,
    /// The carrier that fades; needed if a state attenuates.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub carrier: Option<carrier::Config>,
}

#[cfg(feature = "serde")]
fn yes() -> bool {
    true
}

impl Config {
    /// Transition probabilities between states; the sum of a row is 1.
    fn jumps(&self) -> Vec<Vec<f64>> {
        let row = |(i, state): (usize, &State)| {
            let weight = |j: usize| match (i == j, state.then.is_empty()) {
                (true, _) => 0.0,
                (false, true) => 1.0,
                (false, false) => state.then.get(&self.states[j].name).copied().unwrap_or(0.0),
            };
            let weights: Vec<f64> = (0..self.states.len()).map(weight).collect();
            let sum: f64 = weights.iter().sum();
            weights.into_iter().map(|w| w / sum).collect()
        };
        self.states.iter().enumerate().map(row).collect()
    }

    /// Long-run fraction of time in each state.
    ///
    /// The fraction of stays in each state is found by the elimination of Grassmann, Taksar and Heyman, which never
    /// subtracts; weighted by the duration of stays it is a fraction of time.
    #[must_use]
    pub fn shares(&self) -> Vec<f64> {
        let n = self.states.len();
        let mut p = self.jumps();
        for k in (1..n).rev() {
            let out: f64 = p[k][..k].iter().sum();
            for i in 0..k {
                p[i][k] /= out;
                for j in 0..k {
                    p[i][j] += p[i][k] * p[k][j];
                }
            }
        }
        let mut shares = vec![1.0; n];
        for k in 1..n {
            shares[k] = (0..k).map(|i| shares[i] * p[i][k]).sum();
        }
        for (share, state) in shares.iter_mut().zip(&self.states) {
            *share *= state.mean.as_secs_f64();
        }
        let sum: f64 = shares.iter().sum();
        shares.into_iter().map(|s| s / sum).collect()
    }

    /// Whether every state can be reached from every other.
    fn connected(&self) -> bool {
        let jumps = self.jumps();
        let n = jumps.len();
        let reached = |forward: bool| {
            let (mut seen, mut todo) = (vec![false; n], vec![0]);
            seen[0] = true;
            while let Some(i) = todo.pop() {
                for j in 0..n {
                    let p = if forward { jumps[i][j] } else { jumps[j][i] };
                    if p > 0.0 && !seen[j] {
                        seen[j] = true;
                        todo.push(j);
                    }
                }
            }
            seen.into_iter().all(|s| s)
        };
        reached(true) && reached(false)
    }

    fn validate_state(&self, i: usize) -> Result<(), String> {
        let state = &self.states[i];
        if self.states[..i].iter().any(|other| other.name == state.name) {
            return Err("this name appears twice".into());
        }
        if state.mean < Duration::from_micros(100) || state.mean > Duration::from_secs(366 * 86_400) {
            return Err("mean: write a time from 100 us to a year".into());
        }
        if !(state.attenuation >= 0.0 && state.attenuation <= 200.0) {
            return Err(format!("attenuation {} dB: write from 0 dB to 200 dB", state.attenuation));
        }
        if !(state.deviation >= 0.0 && state.deviation <= 50.0) {
            return Err(format!("deviation {} dB: write from 0 dB to 50 dB", state.deviation));
        }
        if !(state.loss >= 0.0 && state.loss <= 1.0) {
            return Err(format!("loss {}: write a number from 0 to 1", state.loss));
        }
        if self.carrier.is_none() && (state.attenuation > 0.0 || state.deviation > 0.0) {
            return Err("an attenuation needs a carrier: write carrier = { es-n0 = \"10 dB\" }, or a loss \
                        instead of the attenuation"
                .into());
        }
        let mut sum = 0.0;
        for (name, weight) in &state.then {
            if *name == state.name || self.states.iter().all(|other| other.name != *name) {
                return Err(format!("then: {name:?} is not the name of another state"));
            }
            if !(*weight >= 0.0 && *weight <= 1e9) {
                return Err(format!("then: {weight} is not a weight: write a number from 0 to 1e9"));
            }
            sum += weight;
        }
        if !state.then.is_empty() && sum <= 0.0 {
            return Err("then: write a weight above 0".into());
        }
        Ok(())
    }
}

impl Model for Config {
    type Run = Shadowing;

    fn validate(&self) -> Result<(), Invalid> {
        let refuse = |message| Err(Invalid { key: "states", message });
        if self.states.len() < 2 || self.states.len() > MOST {
            return refuse(format!("{} states: write from 2 to {MOST}", self.states.len()));
        }
        for (i, state) in self.states.iter().enumerate() {
            if let Err(message) = self.validate_state(i) {
                return refuse(format!("{:?}: {message}", state.name));
            }
        }
        if !self.connected() {
            return refuse(
                "some states are never left or never reached: make every state reachable from every other"
                    .into(),
            );
        }
        self.carrier.as_ref().map_or(Ok(()), carrier::Config::validate)
    }
    fn carrier(&self) -> Option<&carrier::Config> {
        self.carrier.as_ref()
    }
    fn carrier_mut(&mut self) -> Option<&mut carrier::Config> {
        self.carrier.as_mut()
    }
    fn shared(&self) -> bool {
        self.shared
    }
    fn exceeded(&self, a: f64) -> f64 {
        let above = |state: &State| {
            if a < 0.0 {
                1.0
            } else if state.deviation > 0.0 {
                normal::above((a - state.attenuation) / state.deviation)
            } else {
                f64::from(u8::from(state.attenuation > a))
            }
        };
        self.shares().iter().zip(&self.states).map(|(share, state)| share * above(state)).sum()
    }
    fn loss(&self) -> f64 {
        self.shares().iter().zip(&self.states).map(|(share, state)| share * state.loss).sum()
    }
    fn words(&self) -> String {
        format!("shadowing in {} states", self.states.len())
    }
    fn run(&self, mut rng: Rng) -> Shadowing {
        let at = pick(&self.shares(), &mut rng);
        let stays = self.states.iter().map(|s| Stay {
            mean: s.mean.as_secs_f64(),
            attenuation: s.attenuation,
            deviation: s.deviation,
            loss: s.loss,
        });
        let mut run = Shadowing {
            stays: stays.collect(),
            jumps: self.jumps(),
            at,
            weather: Weather { attenuation: 0.0, loss: 0.0 },
            next: Instant::ZERO,
            rng,
        };
        // The rest of an exponentially distributed stay has the same distribution.
        run.stay();
        run
    }
}

/// An index drawn with these probabilities, by one draw.
fn pick(probabilities: &[f64], rng: &mut Rng) -> usize {
    let mut left = rng.unit();
    let last = probabilities.iter().rposition(|p| *p > 0.0).unwrap_or(0);
    for (i, p) in probabilities[..last].iter().enumerate() {
        if left < *p {
            return i;
        }
        left -= p;
    }
    last
}

/// The distributions of a stay in a state.
#[derive(Clone, Debug)]
struct Stay {
    mean: f64,
    attenuation: f64,
    deviation: f64,
    loss: f64,
}

/// Shadowing in progress. Four draws per stay, whatever the state.
#[derive(Clone, Debug)]
pub struct Shadowing {
    stays: Vec<Stay>,
    jumps: Vec<Vec<f64>>,
    at: usize,
    weather: Weather,
    next: Instant,
    rng: Rng,
}

impl Shadowing {
    /// Draws a stay in the current state, from the current time on.
    fn stay(&mut self) {
        let stay = &self.stays[self.at];
        // Never empty, so that time advances.
        let span = Duration::from_secs_f64(self.rng.exponential(stay.mean)).max(Duration::from_nanos(1));
        let attenuation = stay.attenuation + stay.deviation * self.rng.normal();
        self.weather = Weather { attenuation: attenuation.max(0.0), loss: stay.loss };
        self.next += span;
    }
}

impl Sky for Shadowing {
    fn weather(&self) -> Weather {
        self.weather
    }
    fn next(&self) -> Instant {
        self.next
    }
    fn step(&mut self) {
        self.at = pick(&self.jumps[self.at], &mut self.rng);
        self.stay();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(name: &str, seconds: f64, attenuation: f64, then: &[(&str, f64)]) -> State {
        State {
            name: name.into(),
            mean: Duration::from_secs_f64(seconds),
            attenuation,
            deviation: 0.0,
            loss: 0.0,
            then: then.iter().map(|(name, weight)| ((*name).into(), *weight)).collect(),
        }
    }
    fn config(states: Vec<State>) -> Config {
        Config { states, shared: true, carrier: Some(carrier::Config::default()) }
    }

    /// A highway at an elevation of 24° (Lutz and others 1991): 90 m good and 29 m bad on average, here at 30 m/s.
    fn highway() -> Config {
        config(vec![state("good", 3.0, 0.0, &[]), state("bad", 29.0 / 30.0, 20.0, &[])])
    }

    #[test]
    fn two_states_share_time_as_their_stays_do() {
        // 29/(90 + 29) = 0.244: the source gives a time-share of shadowing of 0.24.
        let shares = highway().shares();
        // Stays are whole nanoseconds.
        assert!((shares[1] - 29.0 / 119.0).abs() < 1e-9 && (shares[0] + shares[1] - 1.0).abs() < 1e-12);
        assert!((highway().exceeded(10.0) - 29.0 / 119.0).abs() < 1e-9);
        assert_eq!((highway().exceeded(20.0), highway().exceeded(-1.0)), (0.0, 1.0));
    }

    #[test]
    fn three_states_share_time_as_the_chain_balances() {
        // Stays of a, b and c in the ratio x : y : z with x = y·1/4 + z·1, y = x, z = 3/4·y: 4 : 4 : 3 of all stays, and
        // with 2 s, 1 s and 4 s of each 8 : 4 : 12 of time.
        let c = config(vec![
            state("a", 2.0, 0.0, &[("b", 5.0)]),
            state("b", 1.0, 5.0, &[("a", 1.0), ("c", 3.0)]),
            state("c", 4.0, 30.0, &[("a", 0.2)]),
        ]);
        assert!(c.validate().is_ok());
        for (share, expected) in c.shares().into_iter().zip([8.0, 4.0, 12.0]) {
            assert!((share - expected / 24.0).abs() < 1e-12);
        }
        assert!((c.exceeded(4.0) - 16.0 / 24.0).abs() < 1e-12);
    }

    #[test]
    fn a_run_spends_its_time_as_the_shares_say() {
        // n stays of each state: a mean of exponential times has the relative deviation 1/sqrt(n); the share of the bad,
        // s(1 − s)·sqrt(2/n). Four of them.
        let (c, n) = (highway(), 50_000);
        let mut run = c.run(Rng::stream(1, "links.sat.fade"));
        let (mut bad, mut from) = (0.0, Instant::ZERO);
        for _ in 0..2 * n {
            let until = run.next();
            if run.weather().attenuation > 0.0 {
                bad += (until - from).as_secs_f64();
            }
            from = until;
            run.step();
        }
        let (share, s) = (bad / from.as_secs_f64(), 29.0 / 119.0);
        let deviation = s * (1.0 - s) * (2.0 / f64::from(n)).sqrt();
        assert!((share - s).abs() < 4.0 * deviation, "{share} ± {deviation}");
        assert!((bad / f64::from(n) - 29.0 / 30.0).abs() < 4.0 * 0.967 / f64::from(n).sqrt());
    }

    #[test]
    fn it_starts_in_a_state_by_its_share() {
        let n = 20_000;
        let c = highway();
        let bad = (0..n).filter(|seed| c.run(Rng::stream(*seed, "x")).weather().attenuation > 0.0).count();
        let (p, n) = (29.0 / 119.0, n as f64);
        assert!((bad as f64 / n - p).abs() < 4.0 * (p * (1.0 - p) / n).sqrt(), "{bad}");
    }

    #[test]
    fn attenuation_varies_from_stay_to_stay_and_is_never_a_gain() {
        let mut c = highway();
        c.states[1].deviation = 5.0;
        let mut run = c.run(Rng::stream(2, "x"));
        let mut seen = Vec::new();
        for _ in 0..20_000 {
            assert!(run.weather().attenuation >= 0.0);
            if run.at == 1 {
                seen.push(run.weather().attenuation);
            }
            run.step();
        }
        let n = seen.len() as f64;
        let mean = seen.iter().sum::<f64>() / n;
        // It is cut off at 0 dB, four deviations below its mean: a share of 3e-5.
        assert!((mean - 20.0).abs() < 4.0 * 5.0 / n.sqrt() + 1e-3, "{mean}");
        let above = seen.iter().filter(|a| **a > 25.0).count() as f64 / n;
        assert!((above - 0.158_655).abs() < 4.0 * (0.1335 / n).sqrt(), "{above}");
        assert!((c.exceeded(25.0) - 0.158_655 * 29.0 / 119.0).abs() < 1e-6);
    }

    #[test]
    fn loss_without_a_carrier() {
        let mut c = Config { carrier: None, ..highway() };
        assert_eq!(c.validate().unwrap_err().key, "states");
        c.states[1].attenuation = 0.0;
        c.states[1].loss = 0.5;
        assert!(c.validate().is_ok());
        assert!((c.loss() - 0.5 * 29.0 / 119.0).abs() < 1e-9);
        let run = c.run(Rng::stream(1, "x"));
        assert!([0.0, 0.5].contains(&run.weather().loss));
    }

    #[test]
    fn chains_without_sense_are_refused() {
        let refused = |states| config(states).validate().unwrap_err().message;
        assert!(refused(vec![state("a", 1.0, 0.0, &[])]).contains("1 states"));
        assert!(
            refused(vec![state("a", 1.0, 0.0, &[]), state("a", 1.0, 0.0, &[])]).contains("appears twice")
        );
        assert!(refused(vec![state("a", 0.0, 0.0, &[]), state("b", 1.0, 0.0, &[])]).contains("mean"));
        assert!(refused(vec![state("a", 1.0, -1.0, &[]), state("b", 1.0, 0.0, &[])]).contains("-1 dB"));
        let to =
            |then| vec![state("a", 1.0, 0.0, then), state("b", 1.0, 0.0, &[]), state("c", 1.0, 0.0, &[])];
        assert!(refused(to(&[("d", 1.0)])).contains("\"d\" is not the name of another state"));
        assert!(refused(to(&[("a", 1.0)])).contains("\"a\" is not the name of another state"));
        assert!(refused(to(&[("b", 0.0)])).contains("above 0"));
        assert!(refused(to(&[("b", -1.0)])).contains("not a weight"));
        let trap = vec![
            state("a", 1.0, 0.0, &[("b", 1.0)]),
            state("b", 1.0, 0.0, &[("a", 1.0)]),
            state("c", 1.0, 0.0, &[]),
        ];
        assert!(refused(trap).contains("never reached"));
    }
}
