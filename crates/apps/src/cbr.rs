//! Data at a constant rate.

use crate::short;
use crate::stream::{self, Invalid, Stream};
use crate::workload::{Kind, Start, Transport};
use skyhaul_base::amount::{RateSpec, Size};

/// Data at a constant rate.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Rate of packets including headers over UDP, of application data over TCP.
    pub rate: RateSpec,
    /// Over UDP the size of a packet including headers, "1000 B" by default; over TCP the size of a write, a full
    /// segment by default.
    #[serde(default, with = "short::size", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Size>")]
    pub packet: Option<u64>,
}

impl Kind for Config {
    type Workload = Box<Stream>;
    type Invalid = Invalid;
    const DATAGRAMS: bool = true;

    fn packet(&self) -> Option<u64> {
        self.packet
    }
    fn resolve(&self, over: Transport) -> Result<Self, Invalid> {
        let (rate, packet) = stream::resolve(self.rate, self.packet, over)?;
        Ok(Self { rate, packet })
    }
    fn build(&self, start: &Start<'_>) -> Box<Stream> {
        Box::new(Stream::new(start, self.rate, self.packet, None))
    }
    fn offered(&self) -> Option<f64> {
        Some(stream::bits(self.rate) as f64)
    }
    fn words(&self, number: &dyn Fn(f64) -> String) -> String {
        format!("a constant {} Mbit/s", number(stream::bits(self.rate) as f64 / 1e6))
    }
}
