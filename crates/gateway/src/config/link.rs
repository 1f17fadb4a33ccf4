//! The TCP settings of connections over the link: a profile sets them, and keys of `[satellite]` override the profile.

use super::file::{Marking, Satellite};
use crate::error::GatewayError;
use crate::evidence::settings as evidence;
use crate::profile::{LinkSettings, RTTS};
use skyhaul_base::Duration;
use skyhaul_cc::CongestionControl;
use skyhaul_net::host::{Endpoint, Keys};
use skyhaul_scenario::ScenarioError;
use skyhaul_tcp::config::Keepalive;
use skyhaul_wire::Profile;

/// Time after the last packet of a connection over the link at which the kernel forgets the connection: the timeout of elements of an
/// nftables set, seconds.
pub(crate) const MEMORY: u32 = 120;
/// Maximum idle time before a keepalive: half of [`MEMORY`], since the answer to one keepalive may be lost.
const LONGEST_SILENCE: Duration = Duration::from_secs(MEMORY as u64 / 2);

/// Keepalives of connections over the link. They detect that the peer is gone, since the peer's reset is sent once and may be lost.
/// Keepalives are repeated for `stuck` (`limits.stuck`), so that an outage of that length does not end a connection.
fn keepalive(stuck: Duration) -> Keepalive {
    let interval = Duration::from_secs(10);
    let probes = (stuck.as_secs_f64() / interval.as_secs_f64()).ceil();
    Keepalive { idle: LONGEST_SILENCE, interval, probes: (probes as u32).max(3) }
}

impl Satellite {
    /// The settings of the profile, which keys of the file override; `None` without a profile or without a rate.
    #[must_use]
    pub fn link_settings(&self) -> Option<LinkSettings> {
        let rtt = self.rtt.as_ref().map(|t| t.0);
        self.profile.zip(self.rate).map(|(profile, rate)| profile.settings(rate, rtt, self.mtu))
    }
    /// Whether the file names a congestion control, in place of that of the profile.
    #[must_use]
    pub const fn has_own_control(&self) -> bool {
        self.cc.is_some()
    }
    /// The first key that contradicts the profile, and what to write.
    pub(super) fn contradicts_profile(&self) -> Option<(&'static str, String)> {
        let rtt = self.rtt.as_ref().map(|t| t.0);
        match (self.profile, rtt) {
            (None, Some(_)) => {
                let message = "only a profile needs it: write profile = \"geo\", or leave it out";
                Some(("satellite.rtt", message.into()))
            }
            (Some(profile), _) if self.rate.is_none() => {
                let message = format!(
                    "profile = {:?} needs the rate of the link: write rate = \"10 Mbit/s\"",
                    profile.name()
                );
                Some(("satellite.rate", message))
            }
            (Some(_), Some(rtt)) if rtt < RTTS[0] || rtt > RTTS[1] => {
                Some(("satellite.rtt", "write a round-trip time from \"1 ms\" to \"10 s\"".into()))
            }
            _ => None,
        }
    }
    /// Whether the file sets this key of `satellite.endpoint`.
    fn sets(&self, key: &str) -> bool {
        let table = self.endpoint.as_ref().and_then(toml::Value::as_table);
        table.is_some_and(|t| t.contains_key(key))
    }
    /// Whether connections search for the MTU of paths whose MTU is not known: they do unless the file sets `mtu-search`.
    pub(crate) fn searches_mtu(&self) -> bool {
        !self.sets("mtu-search")
    }
    /// A copy with the congestion control for paths on which low priority has not been found to work.
    pub(super) fn fallback(&self) -> Self {
        let cc = self.fallback_cc.clone().unwrap_or_else(|| toml::Value::String("cubic".into()));
        Self { cc: Some(cc), ..self.clone() }
    }
    /// A copy with the settings of the second arm of an A/B test.
    pub(super) fn with(&self, other: &evidence::SecondArm) -> Self {
        let or = |theirs: &Option<toml::Value>, ours: &Option<toml::Value>| {
            theirs.as_ref().or(ours.as_ref()).cloned()
        };
        Self {
            cc: or(&other.cc, &self.cc),
            endpoint: or(&other.endpoint, &self.endpoint),
            rwnd: or(&other.rwnd, &self.rwnd),
            sndbuf: or(&other.sndbuf, &self.sndbuf),
            ..self.clone()
        }
    }
    /// The congestion control and the endpoint, read as in a scenario file. `of` is the table of the file in which errors name the keys.
    pub(super) fn endpoint(
        &self,
        of: &str,
        stuck: Duration,
        fail: &dyn Fn(&str, String) -> GatewayError,
    ) -> Result<Endpoint, GatewayError> {
        let mut endpoint = self.plain_endpoint(of, fail)?;
        // The option that offers to measure rates and the one with the gateway's number do not both fit into a SYN. Rates are offered only
        // if the congestion control needs them.
        endpoint.tcp.receiver_rate &= endpoint.cc.build(&endpoint.tcp.rules).policy().receiver_rate;
        // Without pacing, the kernel merges segments on their way, and one acknowledgement is for all of them. The limit of two
        // segments (RFC 3465 §2.2) would then stop slow start.
        if self.rate.is_none() && !self.sets("abc-limit") {
            endpoint.tcp.rules.abc_limit = f64::INFINITY;
        }
        if !self.sets("keepalive-idle") {
            endpoint.tcp.keepalive = keepalive(stuck);
        }
        if let Some(link) = self.link_settings().filter(|_| !self.sets("rto-max")) {
            let tcp = &mut endpoint.tcp;
            tcp.rto.max = link.rto_max;
            if !self.sets("max-retransmissions") {
                // With a lower maximum the timer expires more often, and an outage of `stuck` must not end a connection.
                let more = (stuck.as_secs_f64() / tcp.rto.max.as_secs_f64()).ceil();
                tcp.max_retransmissions = tcp.max_retransmissions.saturating_add(more as u32);
            }
        }
        if endpoint.tcp.keepalive.idle.is_zero() || endpoint.tcp.keepalive.idle > LONGEST_SILENCE {
            let write = "write at most \"60 s\", and not 0: the kernel forgets connections that are silent for two minutes";
            return Err(fail(&format!("{of}.endpoint.keepalive-idle"), write.into()));
        }
        Ok(endpoint)
    }
    fn plain_endpoint(
        &self,
        of: &str,
        fail: &dyn Fn(&str, String) -> GatewayError,
    ) -> Result<Endpoint, GatewayError> {
        let wrong = |e: ScenarioError| fail(&format!("{of}.{}", e.key), e.message);
        let link = self.link_settings();
        let cc = self.cc.clone().unwrap_or_else(|| {
            link.map_or_else(|| toml::Value::String("cubic".into()), |link| constant_window(link.window))
        });
        let mut keys = Keys::new(cc).map_err(wrong)?;
        if let Some(link) = link {
            for buffer in ["rwnd", "sndbuf"] {
                keys.set(buffer, toml::Value::String(format!("{} B", link.buffer))).map_err(wrong)?;
            }
            // Rate and RTT are known, so the buffers need not be found by autotuning.
            for tuning in ["endpoint.receive-autotuning", "endpoint.send-autotuning"] {
                keys.set(tuning, toml::Value::Boolean(false)).map_err(wrong)?;
            }
        }
        for (key, value) in [("rwnd", &self.rwnd), ("sndbuf", &self.sndbuf)] {
            if let Some(value) = value {
                keys.set(key, value.clone()).map_err(wrong)?;
            }
        }
        if let Some(value) = &self.endpoint {
            let Some(table) = value.as_table() else {
                return Err(fail(
                    &format!("{of}.endpoint"),
                    "write a table of keys, such as { mss = \"1400 B\" }".into(),
                ));
            };
            for (key, value) in table {
                keys.set(&format!("endpoint.{key}"), value.clone()).map_err(wrong)?;
            }
        }
        let profile = match self.probe_mark {
            Marking::Option => Profile::Option,
            Marking::Compact => Profile::Compact,
            Marking::Paper => Profile::Paper,
            Marking::Off => Profile::Off,
        };
        keys.endpoint(profile).map_err(wrong)
    }
}

/// The congestion control with a constant window, segments, which losses do not change.
fn constant_window(window: f64) -> toml::Value {
    let keys = [("name", toml::Value::String("scps-like".into())), ("window", toml::Value::Float(window))];
    toml::Value::Table(keys.map(|(key, value)| (key.to_owned(), value)).into_iter().collect())
}
