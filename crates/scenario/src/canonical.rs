//! The resolved scenario as a file: every value explicit, in canonical units, so that it reads back to the same.

use crate::model::{
    AppSpec, CcSpec, ClassSpec, DelaySpec, DirectionSpec, EndpointSpec, ErrorSpec, FlowSpec, IdleSpec,
    KindOfQueue, LinkSpec, QueueSpec, RecordSpec, Scenario, Short, StartSpec, VictimSpec,
};
use crate::quantity::{Count, Probability, QueueLimit, RateSpec, Span, Time, Window};
use crate::resolved::{
    App, Delay, Direction, ErrorModel, FlowGroup, Idle, Queue, QueueKind, Resolved, Start,
};
use sha2::{Digest, Sha256};
use skyhaul_path::error::Scope;
use skyhaul_path::{Limit, Victim};
use std::fmt::Write;

impl Resolved {
    /// The scenario as a file with nothing left open. Reading and resolving it gives an equal scenario.
    #[must_use]
    pub fn to_model(&self) -> Scenario {
        Scenario {
            schema: Some(1),
            extends: None,
            title: (!self.title.is_empty()).then(|| self.title.clone()),
            duration: Some(Time(self.duration)),
            seed: Some(self.seed),
            record: (self.record.sample.is_some() || !self.record.series.is_empty()).then(|| RecordSpec {
                sample: self.record.sample.map(Time),
                series: Some(self.record.series.clone()),
            }),
            links: self
                .links
                .iter()
                .map(|l| {
                    let forward = direction(&l.forward);
                    let spec = LinkSpec {
                        packet: None,
                        rate: forward.rate,
                        delay: forward.delay,
                        allow_reorder: forward.allow_reorder,
                        queue: forward.queue,
                        error: forward.error,
                        ack_errors: forward.ack_errors,
                        reverse: Some(direction(&l.reverse)),
                    };
                    (l.name.clone(), spec)
                })
                .collect(),
            flows: self.flows.iter().map(|f| (f.name.clone(), self.flow(f))).collect(),
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

    /// A hash that is the same exactly for equal scenarios: 64 hexadecimal digits of SHA-256 over the canonical
    /// form. It keys caches of results, together with the version of the engine.
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

    fn flow(&self, f: &FlowGroup) -> FlowSpec {
        let mss = u64::from(f.endpoint.mss);
        let window = |bytes: u64| match bytes {
            u64::MAX => Window::Unlimited,
            n if n % mss == 0 => Window::Segments(n / mss),
            n => Window::Bytes(n),
        };
        FlowSpec {
            count: Some(Count(f.count.into())),
            path: Some(f.path.iter().map(|&i| self.links[i].name.clone()).collect()),
            extra_delay: Some(Time(f.extra_delay)),
            cc: Some(Short(CcSpec(f.cc.clone()))),
            endpoint: Some(Short(EndpointSpec::of(&f.endpoint))),
            rwnd: Some(window(f.endpoint.receive_buffer)),
            sndbuf: Some(window(f.endpoint.send_buffer)),
            app: Some(Short(match f.app {
                App::Bulk => AppSpec::Bulk {},
                App::Pages { segments, count, idle } => AppSpec::Pages {
                    segments: Count(segments),
                    count: count.map(Count),
                    idle: match idle {
                        Idle::None => None,
                        Idle::Fixed(t) => Some(IdleSpec::Fixed(Time(t))),
                        Idle::Exponential(t) => Some(IdleSpec::Exponential(Time(t))),
                    },
                },
            })),
            start: Some(Short(match f.start {
                Start::At(at) => StartSpec::At(Span::Time(at)),
                Start::Uniform { from, to } => StartSpec::Uniform([Span::Time(from), Span::Time(to)]),
            })),
            stop: f.stop.map(Time),
            handshake: Some(f.handshake),
            known_rtt: f.known_rtt.map(Time),
        }
    }
}

fn direction(d: &Direction) -> DirectionSpec {
    DirectionSpec {
        rate: Some(d.rate.map_or(RateSpec::Unlimited, RateSpec::Bits)),
        delay: Some(Short(match d.delay {
            Delay::Fixed(base) => DelaySpec::Fixed { base: Time(base) },
            Delay::JitterNormal { base, sigma } => DelaySpec::Normal { base: Time(base), sigma: Time(sigma) },
            Delay::JitterUniform { base, jitter } => {
                DelaySpec::Uniform { base: Time(base), jitter: Time(jitter) }
            }
        })),
        allow_reorder: Some(d.allow_reorder),
        queue: Some(Short(queue(&d.queue))),
        error: Some(Short(error(&d.error))),
        ack_errors: Some(d.ack_errors),
    }
}

fn queue(q: &Queue) -> QueueSpec {
    let pushout = matches!(q.kind, QueueKind::FifoPushout | QueueKind::StrictPushout);
    QueueSpec {
        kind: match q.kind {
            QueueKind::DropTail => KindOfQueue::DropTail,
            QueueKind::FifoPushout => KindOfQueue::FifoPushout,
            QueueKind::Gtnets => KindOfQueue::Gtnets,
            QueueKind::Plain => KindOfQueue::Plain,
            QueueKind::StrictPushout => KindOfQueue::StrictPushout,
            QueueKind::Threshold { .. } => KindOfQueue::Threshold,
        },
        limit: Some(match q.limit {
            Limit::Bytes(n) => QueueLimit::Bytes(n),
            Limit::Packets(n) => QueueLimit::Packets(n.into()),
            Limit::Unlimited => QueueLimit::Unlimited,
        }),
        count_in_service: Some(q.count_in_service),
        ns2_limit: Some(q.ns2_limit),
        victim: pushout.then_some(match q.victim {
            Victim::Oldest => VictimSpec::Oldest,
            Victim::Youngest => VictimSpec::Youngest,
        }),
        low_below: match q.kind {
            QueueKind::Threshold { low_below } => Some(Count(low_below.into())),
            _ => None,
        },
    }
}

fn error(e: &ErrorModel) -> ErrorSpec {
    match e {
        ErrorModel::None => ErrorSpec::None {},
        ErrorModel::Per { p } => ErrorSpec::Per { p: Probability(*p) },
        ErrorModel::Ber { ber } => ErrorSpec::Ber { ber: Probability(*ber) },
        ErrorModel::GilbertElliott { p_gb, p_bg, k_g, k_b } => ErrorSpec::GilbertElliott {
            p_gb: Probability(*p_gb),
            p_bg: Probability(*p_bg),
            k_g: Probability(*k_g),
            k_b: Probability(*k_b),
        },
        ErrorModel::List { indices, class } => ErrorSpec::List {
            indices: indices.clone(),
            class: match class {
                Scope::All => ClassSpec::All,
                Scope::HighPriority => ClassSpec::High,
                Scope::LowPriority => ClassSpec::Low,
            },
        },
    }
}
