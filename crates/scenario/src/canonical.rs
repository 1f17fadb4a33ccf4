//! The resolved scenario as a file: every value explicit, in canonical units, so that reading it back gives the same
//! scenario.

use crate::amount::{Count, QueueLimit, RateSpec, Size, Span, Time, Window};
use crate::memory;
use crate::model::{
    ArqSpec, CcSpec, ChainSpec, DirectionSpec, EndpointSpec, EventSpec, FadeSpec, FecSpec, FeedbackSpec,
    FlowSpec, GatewaySpec, HandOverSpec, LinkSpec, OrTrace, QueueSpec, RateOrKind, RecordSpec, RepeatsSpec,
    Scenario, Short, StartSpec,
};
use crate::resolve::chain::spec_of;
use crate::resolved::{
    Direction, Event, FlowGroup, Gateway, HandOver, Misfortune, Resolved, Start, Transport,
};
use crate::trace;
use sha2::{Digest, Sha256};
use skyhaul_path::{Change, Delay, Limit, QueueConfig, arq, rate};
use std::fmt::Write;

impl Resolved {
    /// The scenario as a file with every value explicit. Reading and resolving it gives an equal scenario.
    #[must_use]
    pub fn to_model(&self) -> Scenario {
        Scenario {
            schema: Some(1),
            extends: None,
            title: (!self.title.is_empty()).then(|| self.title.clone()),
            duration: Some(Time(self.duration)),
            seed: Some(self.seed),
            max_memory: (self.memory != memory::USUAL_LIMIT).then_some(Size(self.memory)),
            record: (self.record.sample.is_some() || !self.record.series.is_empty()).then(|| RecordSpec {
                sample: self.record.sample.map(Time),
                series: Some(self.record.series.clone()),
            }),
            links: self
                .links
                .iter()
                .map(|l| {
                    let forward = direction(&l.forward);
                    let orbit = l.forward.orbit.as_ref().map(|o| Box::new(o.config().clone()));
                    // Default values are not written, except where the reverse direction would otherwise inherit
                    // another value.
                    let own = direction(&l.reverse);
                    let reverse = DirectionSpec {
                        up: own.up.or(forward.up.map(|_| true)),
                        drop_in_flight: own.drop_in_flight.or(forward.drop_in_flight.map(|_| false)),
                        fec: own.fec.or(forward.fec.as_ref().map(|_| Short::default())),
                        fade: own.fade.or(forward.fade.as_ref().map(|_| FadeSpec::None)),
                        arq: own.arq.or(forward.arq.as_ref().map(|_| Short::default())),
                        ..own
                    };
                    let spec = LinkSpec {
                        packet: None,
                        rate: forward.rate,
                        delay: forward.delay,
                        orbit,
                        allow_reorder: forward.allow_reorder,
                        queue: forward.queue,
                        error: forward.error,
                        ack_errors: forward.ack_errors,
                        up: forward.up,
                        drop_in_flight: forward.drop_in_flight,
                        fade: forward.fade,
                        fec: forward.fec,
                        arq: forward.arq,
                        ack_size: forward.ack_size,
                        reconstruct_acks: forward.reconstruct_acks,
                        reverse: Some(reverse),
                    };
                    (l.name.clone(), spec)
                })
                .collect(),
            gateways: self.gateways.iter().map(|g| (g.name.clone(), self.gateway(g))).collect(),
            flows: self
                .flows
                .iter()
                .filter(|f| !f.is_leg())
                .map(|f| (f.name.clone(), self.whole_flow(f)))
                .collect(),
            event: self.all_events(),
        }
    }

    /// The text of `scenario.resolved.toml`.
    ///
    /// # Panics
    /// If the seed is above `i64::MAX`, which a file cannot express.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.to_model()).expect("a resolved scenario is made of texts, numbers and tables")
    }

    /// A hash of the scenario: 64 hexadecimal digits of SHA-256 over the canonical form, equal exactly for equal
    /// scenarios. With the engine version it is the key of cached results.
    ///
    /// # Panics
    /// Never: see [`Self::to_toml`].
    #[must_use]
    pub fn hash(&self) -> String {
        // JSON without white space: fields in the order of declaration, maps by name, shortest decimal numbers.
        let text = serde_json::to_vec(&self.to_model()).expect("a resolved scenario can be written as JSON");
        let mut digest = Sha256::new();
        digest.update(b"skyhaul scenario 1\n");
        digest.update(&text);
        digest.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    /// An event as written in a file; `None` for changes by courses, which no file can express.
    fn event(&self, event: &Event) -> Option<EventSpec> {
        let way = if event.forward { "" } else { ".reverse" };
        let key = |k: &str| format!("links.{}{way}.{k}", self.links[event.link].name);
        let (key, value) = match &event.change {
            Change::Rate(rate) => (key("rate"), written(transmitter(rate))),
            Change::Delay(d) => (key("delay"), written(delay(d))),
            Change::Error(e) => (key("error"), written(e)),
            Change::Limit(limit) => (key("queue.limit"), written(queue_limit(limit))),
            Change::Up(up) => (key("up"), toml::Value::Boolean(*up)),
            Change::Fade(_) | Change::Visible(_) | Change::Way(..) | Change::Handover(_) => return None,
        };
        Some(EventSpec {
            at: Time(event.at),
            set: [(key, value)].into_iter().collect(),
            crash: None,
            reroute: None,
            hand_over: None,
        })
    }

    /// The events of links, followed by those of gateways.
    fn all_events(&self) -> Vec<EventSpec> {
        let links = self.events.iter().filter_map(|e| self.event(e));
        let gateways = self.mishaps.iter().map(|m| {
            let name = || self.gateways[m.gateway].name.clone();
            EventSpec {
                at: Time(m.at),
                set: toml::Table::new(),
                crash: (m.what == Misfortune::Crash).then(name),
                reroute: (m.what == Misfortune::Reroute).then(name),
                hand_over: match &m.what {
                    Misfortune::HandOver(h) => Some(self.hand_over(name(), h)),
                    Misfortune::Crash | Misfortune::Reroute => None,
                },
            }
        });
        links.chain(gateways).collect()
    }

    fn hand_over(&self, from: String, h: &HandOver) -> HandOverSpec {
        let names = |path: &Vec<usize>| path.iter().map(|&i| self.links[i].name.clone()).collect();
        HandOverSpec {
            from: Some(from),
            to: Some(self.gateways[h.to].name.clone()),
            path: h.path.as_ref().map(names),
            signalling: Some(Time(h.signalling)),
            backhaul: Some(RateSpec::Bits(h.backhaul)),
        }
    }

    fn gateway(&self, g: &Gateway) -> GatewaySpec {
        GatewaySpec {
            behind: Some(self.links[g.behind].name.clone()),
            buffer: g.buffer.map(Size),
            delay: Some(Time(g.delay)),
            connections: g.connections.map(Count),
            overload: Some(g.overload),
        }
    }

    /// A flow group with its chain, as written in a file.
    fn whole_flow(&self, f: &FlowGroup) -> FlowSpec {
        let spec = self.flow(f);
        let Some(chain) = f.chain() else { return spec };
        let name = |g: &usize| self.gateways[*g].name.clone();
        let legs = chain.gateways.iter().zip(&chain.legs);
        FlowSpec {
            path: Some(chain.path.iter().map(|&i| self.links[i].name.clone()).collect()),
            chain: Some(ChainSpec {
                kind: Some(chain.kind),
                gateways: chain.gateways.iter().map(name).collect(),
                open: Some(chain.open),
                ack_mode: Some(chain.ack_mode),
                asym: Some(chain.asym).filter(|a| *a > 0.0),
                encrypted: chain.encrypted.then_some(true),
                legs: legs
                    .map(|(g, &l)| (name(g), spec_of(&self.flows[l], &self.flow(&self.flows[l]))))
                    .collect(),
            }),
            ..spec
        }
    }

    fn flow(&self, f: &FlowGroup) -> FlowSpec {
        let tcp = f.transport == Transport::Tcp;
        let mss = u64::from(f.endpoint.mss);
        let window = |bytes: u64| match bytes {
            u64::MAX => Window::Unlimited,
            n if n % mss == 0 => Window::Segments(n / mss),
            n => Window::Bytes(n),
        };
        FlowSpec {
            count: Some(Count(f.count.into())),
            path: Some(f.path.iter().map(|&i| self.links[i].name.clone()).collect()),
            direction: (!f.sends_forward()).then_some(f.direction),
            extra_delay: Some(Time(f.extra_delay)),
            transport: (!tcp).then_some(Short(f.transport)),
            cc: tcp.then(|| Short(CcSpec(f.cc.clone()))),
            endpoint: tcp.then(|| Short(EndpointSpec::of(&f.endpoint))),
            rwnd: tcp.then(|| window(f.endpoint.receive_buffer)),
            sndbuf: tcp.then(|| window(f.endpoint.send_buffer)),
            app: Some(Short(f.app.clone())),
            start: Some(Short(match f.start {
                Start::At(at) => StartSpec::At(Span::Time(at)),
                Start::Uniform { from, to } => StartSpec::Uniform([Span::Time(from), Span::Time(to)]),
            })),
            stop: f.stop.map(Time),
            handshake: tcp.then_some(f.handshake),
            close: f.close.then_some(true),
            known_rtt: f.known_rtt.map(Time),
            chain: None,
        }
    }
}

/// The value as written in a file.
fn written(value: impl serde::Serialize) -> toml::Value {
    toml::Value::try_from(value).expect("a resolved value is made of texts, numbers and tables")
}

fn direction(d: &Direction) -> DirectionSpec {
    DirectionSpec {
        rate: Some(transmitter(&d.rate)),
        delay: d.orbit.is_none().then(|| delay(&d.delay)),
        allow_reorder: Some(d.allow_reorder),
        queue: Some(Short(queue(&d.queue))),
        error: Some(Short(d.error.clone())),
        ack_errors: Some(d.ack_errors),
        // Only values that differ from the default, so that new keys do not change the hash of existing scenarios.
        up: (!d.up).then_some(false),
        drop_in_flight: (d.drop_in_flight || d.orbit.is_some()).then_some(d.drop_in_flight),
        fade: d.fade.as_ref().map(|f| trace::fade_spec(f)),
        fec: d.fec.clone().map(|fec| Short(FecSpec(Some(fec)))),
        arq: d.arq.map(|arq| Short(ArqSpec(Some(repeats(&arq))))),
        ack_size: d.ack_size.map(|n| Size(n.into())),
        reconstruct_acks: d.reconstruct_acks.map(|n| Size(n.into())),
    }
}

fn repeats(arq: &arq::Config) -> RepeatsSpec {
    let feedback = match arq.feedback {
        arq::Feedback::Ideal => FeedbackSpec::Ideal,
        arq::Feedback::After(time) => FeedbackSpec::After { time: Time(time) },
    };
    RepeatsSpec {
        window: Some(QueueLimit::Packets(arq.window.into())),
        retries: Some(Count(arq.retries.into())),
        in_order: Some(arq.in_order),
        guard: Some(Time(arq.guard)),
        feedback: Some(Short(feedback)),
    }
}

fn transmitter(rate: &rate::Config) -> OrTrace<RateOrKind> {
    let own = |rate| OrTrace::Own(RateOrKind::Rate(rate));
    if let Some(kind) = rate.kind() {
        return OrTrace::Own(RateOrKind::Kind(kind));
    }
    match rate {
        rate::Config::Unlimited => own(RateSpec::Unlimited),
        rate::Config::Constant(rate) => own(RateSpec::Bits(*rate)),
        varying => OrTrace::Trace(trace::rate_spec(varying)),
    }
}

fn delay(d: &Delay) -> OrTrace<Short<Delay>> {
    match d {
        Delay::Trace(trace) => OrTrace::Trace(trace::delay_spec(trace)),
        own => OrTrace::Own(Short(own.clone())),
    }
}

fn queue_limit(limit: &Limit) -> QueueLimit {
    match *limit {
        Limit::Bytes(n) => QueueLimit::Bytes(n),
        Limit::Packets(n) => QueueLimit::Packets(n.into()),
        Limit::Unlimited => QueueLimit::Unlimited,
    }
}

fn queue(q: &QueueConfig) -> QueueSpec {
    QueueSpec {
        discipline: q.discipline,
        limit: Some(queue_limit(&q.limit)),
        count_in_service: Some(q.count_in_service),
        ns2_limit: Some(q.ns2_limit),
    }
}
