//! From a resolved scenario to a world.

use crate::error::{BuildError, caught};
use crate::flow::agent::Agents;
use crate::flow::user::check_controls;
use crate::flow::{Flow, Record};
use crate::observe::delay::Delays;
use crate::observe::sampler::Sampler;
use crate::observe::tap::Tap;
use crate::observe::truth::Truth;
use crate::packet::links::Links;
use crate::packet::network::Network;
use crate::repaired::segment::{self, RepairedSegment};
use crate::sim::budget::Budget;
use crate::sim::change;
use crate::sim::{Run, Sim};
use crate::split::chain::Chain;
use crate::split::tunnel;
use skyhaul_base::{Instant, Rng};
use skyhaul_cc::{Controls, SharedRules};
use skyhaul_path::chain::Tournament;
use skyhaul_scenario::resolved::{FlowGroup, Resolved, Start};
use skyhaul_tcp::config::LossClassifier;
use std::sync::Arc;

impl<R: Tap> Sim<R> {
    /// A world at time zero.
    ///
    /// # Errors
    /// If the scenario cannot be simulated.
    pub fn new(scenario: &Resolved, seed: u64, recorder: R) -> Result<Self, BuildError> {
        Self::with_agents(scenario, seed, recorder, Agents::Scenario)
    }

    /// A world at time zero whose flows may also use controls provided by the caller.
    ///
    /// # Errors
    /// If the scenario cannot be simulated, or a control panics when it is asked about its options.
    pub fn with_controls(
        scenario: &Resolved,
        seed: u64,
        recorder: R,
        controls: &Controls,
    ) -> Result<Self, BuildError> {
        Self::make(scenario, seed, recorder, Agents::Scenario, controls)
    }

    /// A world with other protocols than the scenario's.
    ///
    /// # Errors
    /// If the scenario cannot be simulated.
    pub fn with_agents(
        scenario: &Resolved,
        seed: u64,
        recorder: R,
        agents: Agents,
    ) -> Result<Self, BuildError> {
        Self::make(scenario, seed, recorder, agents, &Controls::default())
    }

    fn make(
        scenario: &Resolved,
        seed: u64,
        recorder: R,
        agents: Agents,
        controls: &Controls,
    ) -> Result<Self, BuildError> {
        if agents == Agents::Scenario {
            check_controls(scenario, controls)?;
        }
        let build = || Self::build(scenario, seed, recorder, agents, controls);
        caught(build).unwrap_or_else(|failure| Err(BuildError::Broken { message: failure.message }))
    }

    fn build(
        scenario: &Resolved,
        seed: u64,
        recorder: R,
        agents: Agents,
        controls: &Controls,
    ) -> Result<Self, BuildError> {
        let mut links = Links::new(scenario, seed);
        let named: usize = scenario.flows.iter().map(|g| g.count as usize).sum();
        let mut flows = Vec::with_capacity(named + 2);
        let mut records = Vec::with_capacity(named + 2);
        for (g, group) in scenario.flows.iter().enumerate() {
            check(scenario, group)?;
            let (forward, reverse) = links.routes(group, &group.path).ok_or(BuildError::TooLarge)?;
            for index in 0..group.count {
                flows.push(Flow::new(forward, reverse, false, (group.endpoint.header, group.dscp)));
                let stop = group.stop.map_or(Instant::MAX, |d| Instant::ZERO + d);
                let begins = if group.is_leg() { Instant::MAX } else { start(group, index, seed) };
                records.push(Record::new(g, index, begins, stop));
            }
        }
        let chains = if agents == Agents::Scenario {
            chains(scenario, seed, &mut flows, &mut links)?
        } else {
            Vec::new()
        };
        let named_flows = u32::try_from(flows.len()).map_err(|_| BuildError::TooLarge)?;
        // A fixed window reacts to no loss, so no losses are kept.
        let with_truth = if agents == Agents::Scenario { flows.len() + 2 } else { 0 };
        let segment_routes = links.segment_routes().ok_or(BuildError::TooLarge)?;
        let delays = scenario.record.packet_delay.then(|| Delays::new(flows.len()));
        let mut net = Network::new(
            links.hops,
            (links.routes, links.gates),
            // After the flows of the scenario and two dummies.
            named_flows + 2..named_flows + 2 + scenario.repair.len() as u32,
            Truth::new(with_truth),
            recorder,
            delays,
        );
        // One timer per flow, then those of the sampler, of the changes, of the segments that gateways repair, and of connections that come
        // and go.
        // Sampler and changes have dummy flows, so that a timer and its flow have the same number.
        let mut timers = Tournament::new(flows.len() + 2);
        for (i, r) in (0..named_flows).zip(&records) {
            timers.set(i, r.start);
            flows[i as usize].armed = r.start;
        }
        for _ in 0..2 {
            flows.push(Flow::new(0, 0, false, (0, 0)));
            records.push(Record::new(0, 0, Instant::MAX, Instant::MAX));
        }
        segment::flows(scenario, &segment_routes, &mut flows, &mut records);
        timers.grow(flows.len());
        let segments = (named_flows + 2..)
            .zip(&scenario.repair)
            .map(|(flow, r)| RepairedSegment::new(r, flow, seed))
            .collect();
        let sampler = Sampler::new(scenario, seed);
        if scenario.record.sample.is_some() {
            timers.set(named_flows, Instant::ZERO);
        }
        let agenda = change::begin(scenario, seed, &mut net);
        let gateway_event = scenario.gateway_events.first().map_or(Instant::MAX, |m| Instant::ZERO + m.at);
        timers.set(named_flows + 1, agenda.next().min(gateway_event));
        let run = Run {
            groups: scenario.flows.clone(),
            endpoints: scenario.flows.iter().map(|g| Arc::new(g.endpoint)).collect(),
            rules: scenario.flows.iter().map(|g| SharedRules::from(&g.endpoint.rules)).collect(),
            classified: scenario.flows.iter().any(|g| g.endpoint.loss_classifier != LossClassifier::None),
            gateways: scenario.gateways.clone(),
            gateway_events: scenario.gateway_events.iter().rev().cloned().collect(),
            link_names: scenario.links.iter().map(|l| l.name.clone()).collect(),
            agents,
            controls: controls.clone(),
            seed,
            duration: scenario.duration,
        };
        let sim = Self {
            now: Instant::ZERO,
            events: 0,
            budget: Budget::new(scenario.memory),
            net,
            timers,
            flows,
            records,
            named_flows,
            idle: Vec::new(),
            sampler,
            agenda,
            chains,
            segments,
            moves: Vec::new(),
            split_connections: vec![0; scenario.gateways.len()],
            run,
        };
        Ok(sim)
    }
}

/// The chains of all groups that start one, and which flows start them.
fn chains(
    scenario: &Resolved,
    seed: u64,
    flows: &mut [Flow],
    links: &mut Links,
) -> Result<Vec<Chain>, BuildError> {
    // The first flow of each group.
    let first: Vec<u32> = scenario
        .flows
        .iter()
        .scan(0, |next, g| {
            let first = *next;
            *next += g.count;
            Some(first)
        })
        .collect();
    let handovers = tunnel::tunnels(scenario, links)?;
    let mut chains = Vec::new();
    for (g, group) in scenario.flows.iter().enumerate() {
        let Some(chain) = group.chain() else { continue };
        let bypass = links.routes(group, &chain.path).ok_or(BuildError::TooLarge)?;
        let ahead = tunnel::ahead(scenario, g, &handovers, links)?;
        for index in 0..group.count {
            let legs = core::iter::once(g).chain(chain.legs.iter().copied()).map(|l| first[l] + index);
            let head = &mut flows[(first[g] + index) as usize];
            head.chain = u32::try_from(chains.len()).map_err(|_| BuildError::TooLarge)?;
            let rng = Rng::stream(seed, &format!("flows.{}[{index}].asym", group.name));
            let mut made = Chain::new(chain, legs.collect(), (head.forward, head.reverse), bypass, rng);
            made.ahead.clone_from(&ahead);
            chains.push(made);
        }
    }
    Ok(chains)
}

fn start(group: &FlowGroup, index: u32, seed: u64) -> Instant {
    let offset = match group.start {
        Start::At(at) => at,
        Start::Uniform { from, to } => {
            let mut rng = Rng::stream(seed, &format!("flows.{}[{index}].start", group.name));
            from + rng.uniform(to.saturating_sub(from))
        }
    };
    Instant::ZERO + offset
}

fn check(scenario: &Resolved, group: &FlowGroup) -> Result<(), BuildError> {
    let flow = || group.name.clone();
    if let Some(link) = group.path.iter().copied().find(|i| *i >= scenario.links.len()) {
        return Err(BuildError::NoSuchLink { flow: flow(), link });
    }
    let mut ways = group.path.iter().flat_map(|&i| [&scenario.links[i].forward, &scenario.links[i].reverse]);
    let takes_time =
        !group.extra_delay.is_zero() || ways.any(|d| d.rate.mean().is_some() || !d.delay.base().is_zero());
    if takes_time { Ok(()) } else { Err(BuildError::NoDelay { flow: flow() }) }
}
