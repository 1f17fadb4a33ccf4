//! Operating systems around 2000: their untuned TCP settings.
//!
//! Source: Luglio, Roseti, Gerla, "The impact of efficient flow control and OS features on TCP performance over
//! satellite links", Table 1, which cites the Pittsburgh Supercomputing Center's page on performance tuning. 1 kbyte
//! is read as 1024 bytes. The table has no column for selective acknowledgements: these follow the endpoint.

use super::short::ShortForm;
use crate::error::ValueError;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use skyhaul_tcp::Config;
use skyhaul_tcp::config::RttSource;

/// Size of a socket buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Buffer {
    /// Bytes.
    Of(u64),
    /// As much as memory allows: more than any window that can be advertised.
    Memory,
    /// At least this many bytes, and as many segments up to `most` bytes.
    Segments { least: u64, segments: u64, most: u64 },
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Name in files.
    name: &'static str,
    /// Default size of the socket buffer of TCP.
    default: Buffer,
    /// The largest that a program may request unless an administrator raises the limit.
    max: Buffer,
    /// The vendor's recommendation for satellite paths.
    satellite: Option<Buffer>,
    /// RFC 1323, window scaling.
    window_scaling: bool,
    /// RFC 1323, timestamps.
    timestamps: bool,
    /// RFC 1191; `None` if the table has no entry. It has no effect here: the segment size has its own key, and a
    /// host of that time without discovery would send 536 bytes beyond its own network (RFC 1122 §3.3.3).
    path_mtu_discovery: Option<bool>,
}

const KB: u64 = 1 << 10;
/// Largest window without and with scaling (RFC 7323 §2.2).
const PLAIN: u64 = 65_535;
const SCALED: u64 = PLAIN << 14;

const fn row(name: &'static str, default_kb: u64, max: Buffer) -> Row {
    Row {
        name,
        default: Buffer::Of(default_kb * KB),
        max,
        satellite: None,
        window_scaling: true,
        timestamps: true,
        path_mtu_discovery: Some(true),
    }
}

/// Table 1, by name.
const TABLE: [Row; 10] = [
    Row { path_mtu_discovery: Some(false), ..row("aix-4.1", 16, Buffer::Of(64 * KB)) },
    row("bsd-os", 8, Buffer::Of(256 * KB)),
    Row { timestamps: false, path_mtu_discovery: None, ..row("digital-unix-4.0", 32, Buffer::Of(128 * KB)) },
    row("freebsd-2.1.5", 16, Buffer::Of(256 * KB)),
    row("hp-ux-9", 32, Buffer::Of(256 * KB)),
    row("linux-2.4", 32, Buffer::Of(64 * KB)),
    row("mac-os-open-transport", 32, Buffer::Memory),
    // 963.75 MB.
    Row { satellite: Some(Buffer::Of(146 * KB)), ..row("onnet-4.0", 8, Buffer::Of(986_880 * KB)) },
    row("solaris-7", 8, Buffer::Of(1024 * KB)),
    Row {
        default: Buffer::Segments { least: 8 * KB, segments: 4, most: 64 * KB },
        window_scaling: false,
        timestamps: false,
        ..row("windows-nt-4.0", 8, Buffer::Of(64 * KB))
    },
];

/// Names of the operating systems.
pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
    TABLE.iter().map(|row| row.name)
}

/// Defaults of an operating system around 2002 (Luglio, Roseti, Gerla, Table 1): buffers of both ends, window scaling
/// and timestamps. Short form: the name, for the default buffers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OsSpec {
    /// Name of the operating system: aix-4.1, bsd-os, digital-unix-4.0, freebsd-2.1.5, hp-ux-9, linux-2.4,
    /// mac-os-open-transport, onnet-4.0, solaris-7 or windows-nt-4.0.
    pub name: String,
    /// Which buffers; "default" by default.
    #[serde(default)]
    pub buffers: OsBuffers,
}

/// Which buffers of an operating system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OsBuffers {
    /// The default size.
    #[default]
    Default,
    /// The largest size that a program may request.
    Max,
    /// The vendor's recommendation for satellite paths (onnet-4.0 only).
    Satellite,
}

impl OsSpec {
    fn row(&self) -> Result<&'static Row, ValueError> {
        let unknown = || ValueError::unknown(&self.name, "an operating system", names(), "");
        TABLE.iter().find(|row| row.name == self.name).ok_or_else(unknown)
    }

    /// Applies window scaling and timestamps (without them one segment at a time is timed), before keys of the
    /// endpoint change them.
    pub(crate) fn apply_options(&self, config: &mut Config) -> Result<(), ValueError> {
        let row = self.row()?;
        config.window_scaling = row.window_scaling;
        config.timestamps = row.timestamps;
        if !row.timestamps && config.rtt_source == RttSource::Timestamps {
            config.rtt_source = RttSource::Timed;
        }
        Ok(())
    }

    /// Applies the buffers of both ends; a receiver without window scaling advertises at most 65535 bytes.
    pub(crate) fn apply_buffers(&self, config: &mut Config) -> Result<(), ValueError> {
        let row = self.row()?;
        let buffer = match self.buffers {
            OsBuffers::Default => row.default,
            OsBuffers::Max => row.max,
            OsBuffers::Satellite => row.satellite.ok_or(ValueError::NoSatelliteBuffers(row.name))?,
        };
        let bytes = match buffer {
            Buffer::Of(bytes) => bytes,
            Buffer::Memory => SCALED,
            Buffer::Segments { least, segments, most } => {
                least.max((segments * u64::from(config.mss)).min(most))
            }
        };
        let announced = if config.window_scaling { SCALED } else { PLAIN };
        config.receive_buffer = bytes.min(announced);
        config.send_buffer = bytes;
        Ok(())
    }

    /// The operating system `name` with its default buffers.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.into(), buffers: OsBuffers::Default }
    }

    /// Whether it discovers the path MTU (RFC 1191); `None` if the source does not say.
    #[must_use]
    pub fn path_mtu_discovery(&self) -> Option<bool> {
        self.row().ok().and_then(|row| row.path_mtu_discovery)
    }
}

impl ShortForm for OsSpec {
    const EXPECTING: &'static str =
        "a name such as \"linux-2.4\", or a table such as { name = \"linux-2.4\", buffers = \"max\" }";
    fn from_text(text: &str) -> Result<Self, ValueError> {
        Ok(Self::named(text))
    }
    fn text_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": names().collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(os: &OsSpec, mss: u32) -> Config {
        let mut config = Config { mss, ..Config::ns2_2001() };
        os.apply_options(&mut config).unwrap();
        os.apply_buffers(&mut config).unwrap();
        config
    }

    /// A row of Table 1, typed in again: name, default and largest buffer in kbyte, window scaling, timestamps, path MTU
    /// discovery.
    type Printed = (&'static str, u64, f64, bool, bool, Option<bool>);

    #[test]
    fn table_1() {
        let of_the_paper: [Printed; 10] = [
            ("bsd-os", 8, 256.0, true, true, Some(true)),
            ("digital-unix-4.0", 32, 128.0, true, false, None),
            ("freebsd-2.1.5", 16, 256.0, true, true, Some(true)),
            ("hp-ux-9", 32, 256.0, true, true, Some(true)),
            ("aix-4.1", 16, 64.0, true, true, Some(false)),
            ("linux-2.4", 32, 64.0, true, true, Some(true)),
            ("mac-os-open-transport", 32, f64::INFINITY, true, true, Some(true)),
            ("onnet-4.0", 8, 963.75 * 1024.0, true, true, Some(true)),
            ("solaris-7", 8, 1024.0, true, true, Some(true)),
            ("windows-nt-4.0", 8, 64.0, false, false, Some(true)),
        ];
        assert_eq!(of_the_paper.len(), TABLE.len());
        for (name, default, max, scaling, timestamps, discovery) in of_the_paper {
            let mut os = OsSpec::named(name);
            let small = resolved(&os, 1460);
            os.buffers = OsBuffers::Max;
            let large = resolved(&os, 1460);
            let max = (max * 1024.0).min(SCALED as f64) as u64;
            assert_eq!((small.send_buffer, large.send_buffer), (default * 1024, max), "{name}");
            assert_eq!(large.receive_buffer, if scaling { max } else { max.min(65_535) }, "{name}");
            assert_eq!((large.window_scaling, large.timestamps), (scaling, timestamps), "{name}");
            assert_eq!(os.path_mtu_discovery(), discovery, "{name}");
        }
    }

    #[test]
    fn what_depends_on_the_segment_and_what_is_for_satellites() {
        let nt = OsSpec::named("windows-nt-4.0");
        let default = |mss| resolved(&nt, mss).receive_buffer;
        assert_eq!((default(536), default(4096), default(60_000)), (8_192, 16_384, 65_535));
        let satellite = |name: &str| OsSpec { buffers: OsBuffers::Satellite, ..OsSpec::named(name) };
        assert_eq!(resolved(&satellite("onnet-4.0"), 1460).receive_buffer, 149_504);
        let why = satellite("solaris-7").apply_buffers(&mut Config::ns2_2001()).unwrap_err();
        assert!(why.to_string().contains("buffers = \"default\" or \"max\""), "{why}");
    }

    #[test]
    fn every_name_is_in_the_description() {
        let schema = serde_json::to_string(&schemars::schema_for!(OsSpec)).unwrap();
        for name in names() {
            assert!(schema.contains(name), "{name}");
        }
    }
}
