//! The resolved scenario as a file: every value explicit, in canonical units, so that reading it back gives the same
//! scenario.

use crate::amount::{Count, Dscp, RateSpec, Size, Span, Time, Window};
use crate::memory;
use crate::model::{
    CcSpec, ChainSpec, EndpointSpec, EventSpec, FlowSpec, GatewayHandoverSpec, GatewaySpec, LinkSpec,
    RecordSpec, Scenario, Short, StartSpec,
};
use crate::resolve::chain::spec_of;
use crate::resolve::direction::{delay_spec, limit_spec, rate_spec, write};
use crate::resolve::segment;
use crate::resolved::{
    Event, FlowGroup, Gateway, GatewayEventKind, GatewayHandover, Record, Resolved, Start, Transport,
};
use sha2::{Digest, Sha256};
use skyhaul_path::Change;
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
            record: (self.record != Record::default()).then(|| RecordSpec {
                sample: self.record.sample.map(Time),
                series: self.record.sample.map(|_| self.record.series.clone()),
                packet_delay: self.record.packet_delay.then_some(true),
            }),
            links: self
                .links
                .iter()
                .enumerate()
                .map(|(i, l)| {
                    let orbit = l.forward.orbit.as_ref().map(|o| Box::new(o.config().clone()));
                    let (forward, mut reverse) =
                        (write(&l.forward, &l.forward), write(&l.reverse, &l.forward));
                    if self.only_forward_changes_up(i) {
                        reverse.up = Some(l.reverse.up);
                    }
                    (l.name.clone(), LinkSpec::of(orbit, forward, reverse))
                })
                .collect(),
            gateways: self.gateways.iter().map(|g| (g.name.clone(), self.gateway(g))).collect(),
            repair: self.repair.iter().map(|r| (r.name.clone(), segment::spec_of(r, &self.links))).collect(),
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

    /// A hash of the scenario: 64 hexadecimal digits of SHA-256 over the canonical form as JSON, the same for equal
    /// scenarios. With the engine version it is the key of cached results.
    ///
    /// # Panics
    /// Never: JSON can express every value of the canonical form.
    #[must_use]
    pub fn hash(&self) -> String {
        // Without white space: fields in the order of declaration, maps by name, shortest decimal numbers.
        let text = serde_json::to_vec(&self.to_model()).expect("a resolved scenario can be written as JSON");
        let mut digest = Sha256::new();
        digest.update(b"skyhaul scenario 1\n");
        digest.update(&text);
        digest.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    /// Whether the first event that takes this link down or brings it up concerns the forward direction alone. In a file
    /// the reverse direction would follow it, without a value of its own.
    fn only_forward_changes_up(&self, link: usize) -> bool {
        let mut events = self.events.iter().filter(|e| e.link == link && matches!(e.change, Change::Up(_)));
        let Some(first) = events.next().filter(|first| first.forward) else { return false };
        let both = |e: &Event| !e.forward && e.at == first.at && e.change == first.change;
        !events.next().is_some_and(both)
    }

    /// An event as written in a file; `None` for changes by courses, which no file can express.
    fn event(&self, event: &Event) -> Option<EventSpec> {
        let suffix = if event.forward { "" } else { ".reverse" };
        let key = |k: &str| format!("links.{}{suffix}.{k}", self.links[event.link].name);
        let (key, value) = match &event.change {
            Change::Rate(rate) => (key("rate"), written(rate_spec(rate))),
            Change::Delay(d) => (key("delay"), written(delay_spec(d))),
            Change::Error(e) => (key("error"), written(e)),
            Change::Limit(limit) => (key("queue.limit"), written(limit_spec(limit))),
            Change::Up(up) => (key("up"), toml::Value::Boolean(*up)),
            Change::Fade(_) | Change::Visible(_) | Change::Path(..) | Change::Handover(_) => return None,
        };
        Some(EventSpec {
            at: Time(event.at),
            set: [(key, value)].into_iter().collect(),
            crash: None,
            reroute: None,
            handover: None,
        })
    }

    /// The events of links, followed by those of gateways.
    fn all_events(&self) -> Vec<EventSpec> {
        let links = self.events.iter().filter_map(|e| self.event(e));
        let gateways = self.gateway_events.iter().map(|m| {
            let name = || self.gateways[m.gateway].name.clone();
            EventSpec {
                at: Time(m.at),
                set: toml::Table::new(),
                crash: (m.kind == GatewayEventKind::Crash).then(name),
                reroute: (m.kind == GatewayEventKind::Reroute).then(name),
                handover: match &m.kind {
                    GatewayEventKind::Handover(h) => Some(self.handover(name(), h)),
                    GatewayEventKind::Crash | GatewayEventKind::Reroute => None,
                },
            }
        });
        links.chain(gateways).collect()
    }

    fn handover(&self, from: String, h: &GatewayHandover) -> GatewayHandoverSpec {
        let names = |path: &Vec<usize>| path.iter().map(|&i| self.links[i].name.clone()).collect();
        GatewayHandoverSpec {
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
            dscp: (f.dscp != 0).then_some(Dscp(f.dscp)),
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
