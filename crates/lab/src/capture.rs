//! `run --pcap`: the packets of a run as a capture file.
//!
//! Every flow has its own addresses: 10.0.0.1 and up for senders, 10.128.0.1 and up for receivers, in the order of
//! the result; each connection of a flow has its own port. Packets have real headers, written by `skyhaul-wire`, and a
//! payload of zeros.

use crate::cases::Case;
use crate::error::{CaptureError, LabError};
use skyhaul_base::Instant;
use skyhaul_rate::REPORT_BYTES;
use skyhaul_scenario::Resolved;
use skyhaul_sim::{Opened, Place, Sighting, Tap};
use skyhaul_tcp::Mark;
use skyhaul_tcp::config::ProbeNegotiation;
use skyhaul_trace::{Event, Recorder};
use skyhaul_wire::pcapng::{Capture, Ticket, is_ours};
use skyhaul_wire::{Agreement, Envelope, MAX_HEADER, Payload, Profile, encode, encode_udp};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// First port of receivers.
const RECEIVER_PORT: u16 = 5001;
/// First port of senders: the dynamic range (RFC 6335).
const FIRST_PORT: u16 = 49_152;
/// Number of sender ports.
const SENDER_PORTS: u64 = (u16::MAX - FIRST_PORT) as u64 + 1;
/// Transfers reuse the number of a closed connection, with the next generation. This many generations of a number are
/// remembered: packets of older ones have long arrived.
const REMEMBERED: u16 = 64;

/// What to capture.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// The file.
    pub path: PathBuf,
    /// `sender`, `receiver`, `links.NAME`, `links.NAME.forward` or `.reverse`.
    pub at: Vec<String>,
    /// Groups, or single flows `GROUP[INDEX]`; all if empty.
    pub flows: Vec<String>,
    /// Bytes captured per packet, at least its headers.
    pub snaplen: u32,
}

/// A captured flow.
#[derive(Clone, Debug)]
struct FlowCapture {
    agreed: Agreement,
    /// Whether its packets are datagrams.
    udp: bool,
    /// Interfaces at the sender and at the receiver.
    ends: [Option<u32>; 2],
    /// IPv4 identification of the next packet to the receiver and to the sender.
    ids: [u16; 2],
}

/// Interfaces where packets enter a directed link and where they leave it.
type LinkCapture = Option<(u32, u32)>;

/// Writes packets as they are seen.
#[derive(Debug)]
pub struct PcapTap {
    path: PathBuf,
    capture: Capture<BufWriter<File>>,
    flows: Vec<Option<FlowCapture>>,
    links: Vec<LinkCapture>,
    link_names: Vec<String>,
    /// By `flow` and `generation` of a transfer's packets: the flow of the result, and the number of the transfer within it.
    transfers: BTreeMap<(u32, u16), (u32, u64)>,
    /// For each packet in flight, by key: the records that wait for its outcome, and its IPv4 identification.
    open: Vec<(Vec<Ticket>, u16)>,
    failed: Option<LabError>,
}

impl PcapTap {
    /// Opens the file and writes its interfaces.
    ///
    /// # Errors
    /// If something to capture does not exist, or the file cannot be written.
    pub fn open(options: &CaptureOptions, case: &Case) -> Result<Self, LabError> {
        let s = &case.scenario;
        let path = &options.path;
        let at = Points::read(&options.at, s)?;
        let chosen = choose("--pcap-flow", &options.flows, s)?;
        let file = File::create(&options.path).map_err(LabError::write(path))?;
        let mut capture =
            Capture::new(BufWriter::new(file), options.snaplen).map_err(LabError::write(path))?;
        let mut flows = Vec::new();
        for (group, index) in s.flows.iter().flat_map(|g| (0..g.count).map(move |i| (g, i))) {
            if !chosen.iter().any(|(name, i)| *name == group.name && i.is_none_or(|i| i == index)) {
                flows.push(None);
                continue;
            }
            let mut end = |wanted: bool, words: &str| {
                let name = format!("flows.{}[{index}].{words}", group.name);
                wanted.then(|| capture.interface(&name, &format!("as seen by the {words}"))).transpose()
            };
            let ends = [
                end(at.sender, "sender").map_err(LabError::write(path))?,
                end(at.receiver, "receiver").map_err(LabError::write(path))?,
            ];
            let e = &group.endpoint;
            let profile = match e.probes {
                ProbeNegotiation::Off => Profile::Off,
                ProbeNegotiation::Paper => Profile::Paper,
                ProbeNegotiation::Negotiate if e.probe_ids => Profile::Option,
                ProbeNegotiation::Negotiate => Profile::Compact,
            };
            let window_shift = if e.window_scaling { skyhaul_tcp::scale_for(e.receive_buffer) } else { 0 };
            let agreed = Agreement { window_shift, dscp: group.dscp, ..Agreement::with(profile) };
            let udp = group.transport.sends_datagrams();
            flows.push(Some(FlowCapture { agreed, udp, ends, ids: [0; 2] }));
        }
        let mut links = Vec::new();
        let mut link_names = Vec::new();
        for (i, link) in s.links.iter().enumerate() {
            for (direction, word) in ["forward", "reverse"].into_iter().enumerate() {
                let name = format!("links.{}.{word}", link.name);
                let mut interface = |end: &str, words: &str| {
                    capture.interface(&format!("{name}.{end}"), words).map_err(LabError::write(path))
                };
                links.push(if at.links[2 * i + direction] {
                    Some((interface("in", "packets offered")?, interface("out", "packets delivered")?))
                } else {
                    None
                });
                link_names.push(name);
            }
        }
        let path = path.clone();
        let (transfers, open) = (BTreeMap::new(), Vec::new());
        Ok(Self { path, capture, flows, links, link_names, transfers, open, failed: None })
    }

    /// Writes all pending records.
    ///
    /// # Errors
    /// An earlier write error, or one of this call.
    pub fn finish(self) -> Result<(), LabError> {
        if let Some(e) = self.failed {
            return Err(e);
        }
        self.capture.finish().map(drop).map_err(LabError::write(&self.path))
    }

    /// The value of a write; keeps the first error, which [`PcapTap::finish`] returns.
    fn written<T>(&mut self, result: std::io::Result<T>) -> Option<T> {
        result
            .map_err(|e| {
                self.failed.get_or_insert(LabError::write(&self.path)(e));
            })
            .ok()
    }

    /// Completes the records of a packet: lost, with the reason as comment, or delivered.
    fn settle(&mut self, key: u32, comment: Option<&str>) {
        let Some((tickets, _)) = self.open.get_mut(key as usize) else { return };
        let mut tickets = core::mem::take(tickets);
        for ticket in tickets.drain(..) {
            let result = self.capture.settle(ticket, comment);
            self.written(result);
        }
        // The empty list keeps its allocation for the next packet with this key.
        self.open[key as usize].0 = tickets;
    }

    /// The flow of the result that a packet belongs to, and the number of its connection within the flow.
    fn owner(&self, seen: &Sighting<'_>) -> Option<(u32, u64)> {
        if (seen.flow as usize) < self.flows.len() {
            return Some((seen.flow, seen.generation.into()));
        }
        self.transfers.get(&(seen.flow, seen.generation)).copied()
    }

    /// Captures a packet of connection `number` of flow `owner` at an interface. With `open`, the outcome of the packet is not
    /// known yet, and [`PcapTap::settle`] completes the record.
    fn write(
        &mut self,
        now: Instant,
        seen: &Sighting<'_>,
        (owner, number): (u32, u64),
        interface: u32,
        open: bool,
    ) {
        let Some(Some(flow)) = self.flows.get(owner as usize) else { return };
        let mut segment = *seen.segment;
        if flow.agreed.profile == Profile::Paper || segment.mark == Mark::None {
            // The paper's bits carry no probe number, and a segment without a mark is no probe.
            segment.probe_id = None;
        }
        let (sender, receiver) = addresses(owner, number);
        let (src, dst) = if seen.backward { (receiver, sender) } else { (sender, receiver) };
        let id = self.open.get(seen.key as usize).map_or(0, |o| o.1);
        let envelope = Envelope { id, ..Envelope::new(src, dst) };
        let mut header = [0; MAX_HEADER];
        let (agreed, payload) = (&flow.agreed, Payload::Zeros);
        let encoded = if flow.udp {
            // Datagrams travel to the receiver, reports back to the sender.
            let len = if seen.backward { REPORT_BYTES } else { segment.len as usize };
            let low = segment.low_priority;
            encode_udp(&mut header, &envelope, agreed, low, len, payload)
        } else {
            encode(&mut header, &envelope, agreed, &segment, payload)
        };
        match encoded {
            Ok(e) => {
                let header = &header[..e.written];
                let result = self.capture.packet(now.as_nanos(), interface, header, e.total, open, None);
                if let (Some(ticket), true) = (self.written(result), open) {
                    self.open[seen.key as usize].0.push(ticket);
                }
            }
            Err(source) => {
                let at = now.as_secs_f64();
                self.failed.get_or_insert(CaptureError::Packet { at, source }.into());
            }
        }
    }
}

impl Recorder for PcapTap {
    const ENABLED: bool = false;

    fn record(&mut self, _now: Instant, _event: &Event) {}
    fn held(&self) -> usize {
        self.transfers.len() * 2 * size_of::<((u32, u16), (u32, u64))>()
    }
}

impl Tap for PcapTap {
    const PACKETS: bool = true;

    fn packet(&mut self, now: Instant, seen: &Sighting<'_>) {
        let Some(owner) = self.owner(seen) else { return };
        let Some(flow) = self.flows.get_mut(owner.0 as usize).and_then(Option::as_mut) else { return };
        let ends = flow.ends;
        let direction = usize::from(seen.backward);
        match seen.place {
            Place::Sent => {
                flow.ids[direction] = flow.ids[direction].wrapping_add(1);
                let id = flow.ids[direction];
                let key = seen.key as usize;
                if self.open.len() <= key {
                    self.open.resize_with(key + 1, Default::default);
                }
                self.open[key].1 = id;
                if let Some(interface) = ends[direction] {
                    self.write(now, seen, owner, interface, true);
                }
            }
            Place::Copied { of } => {
                // The same packet of IP, as far as anyone behind the link can tell.
                let id = self.open.get(of as usize).map_or(0, |o| o.1);
                let key = seen.key as usize;
                if self.open.len() <= key {
                    self.open.resize_with(key + 1, Default::default);
                }
                self.open[key].1 = id;
            }
            Place::Arrived => {
                self.settle(seen.key, None);
                if let Some(interface) = ends[1 - direction] {
                    self.write(now, seen, owner, interface, false);
                }
            }
            Place::Entered { link } => {
                if let Some(Some((entry, _))) = self.links.get(link as usize).copied() {
                    self.write(now, seen, owner, entry, true);
                }
            }
            Place::Left { link } => {
                if let Some(Some((_, exit))) = self.links.get(link as usize).copied() {
                    self.write(now, seen, owner, exit, true);
                }
            }
            Place::Lost { link, cause } => {
                let name = self.link_names.get(link as usize).map_or("access", String::as_str);
                let words = format!("lost on {name}: {} at {} s", cause.name(), now.as_secs_f64());
                self.settle(seen.key, Some(&words));
            }
        }
    }

    fn transfer(&mut self, opened: &Opened) {
        let Opened { flow, generation, owner, number } = *opened;
        self.transfers.remove(&(flow, generation.wrapping_sub(REMEMBERED)));
        self.transfers.insert((flow, generation), (owner, number));
    }
}

/// Addresses of sender and receiver of connection `number` of a flow, which is the index into the result.
pub fn addresses(flow: u32, number: u64) -> (SocketAddr, SocketAddr) {
    let [_, b, c, d] = (flow + 1).to_be_bytes();
    let (port, peer) = ports(number);
    (SocketAddr::from(([10, b & 0x7f, c, d], port)), SocketAddr::from(([10, b | 0x80, c, d], peer)))
}

/// Ports of sender and receiver of a flow's connection `number`: pairs repeat only after all have been used.
fn ports(number: u64) -> (u16, u16) {
    let receivers = u64::from(u16::MAX - RECEIVER_PORT) + 1;
    let port = |first: u16, n: u64| first + n as u16;
    (port(FIRST_PORT, number % SENDER_PORTS), port(RECEIVER_PORT, number / SENDER_PORTS % receivers))
}

/// Where packets are captured.
struct Points {
    sender: bool,
    receiver: bool,
    /// By directed link.
    links: Vec<bool>,
}

impl Points {
    fn read(words: &[String], s: &Resolved) -> Result<Self, CaptureError> {
        let mut p = Self { sender: words.is_empty(), receiver: false, links: vec![false; 2 * s.links.len()] };
        for word in words {
            let link = word.strip_prefix("links.").and_then(|rest| {
                let (name, directions) = match rest.rsplit_once('.') {
                    Some((name, "forward")) => (name, 0..1),
                    Some((name, "reverse")) => (name, 1..2),
                    _ => (rest, 0..2),
                };
                let i = s.links.iter().position(|l| l.name == name)?;
                Some(2 * i + directions.start..2 * i + directions.end)
            });
            match (word.as_str(), link) {
                ("sender", _) => p.sender = true,
                ("receiver", _) => p.receiver = true,
                (_, Some(link)) => p.links[link].fill(true),
                _ => {
                    let links = s.links.iter().map(|l| format!(", links.{}", l.name)).collect::<String>();
                    return Err(CaptureError::NoPlace { word: word.clone(), links });
                }
            }
        }
        Ok(p)
    }
}

/// Groups and indices of the chosen flows, without an index for a whole group; errors name `option`.
pub(crate) fn choose(
    option: &'static str,
    words: &[String],
    s: &Resolved,
) -> Result<Vec<(String, Option<u32>)>, CaptureError> {
    if words.is_empty() {
        return Ok(s.flows.iter().map(|g| (g.name.clone(), None)).collect());
    }
    let one = |word: &String| {
        let bare = word.strip_prefix("flows.").unwrap_or(word);
        let (name, index) = match bare.strip_suffix(']').and_then(|w| w.split_once('[')) {
            Some((name, index)) => (name, Some(index.parse::<u32>().ok()?)),
            None => (bare, None),
        };
        let group = s.flows.iter().find(|g| g.name == name)?;
        index.is_none_or(|i| i < group.count).then(|| (name.to_owned(), index))
    };
    let known = || s.flows.iter().map(|g| g.name.as_str()).collect::<Vec<_>>().join(", ");
    let refuse = |word: &String| CaptureError::NoFlow { option, word: word.clone(), known: known() };
    words.iter().map(|w| one(w).ok_or_else(|| refuse(w))).collect()
}

/// Refuses a capture path in a missing folder, or one that would replace another file, unless `force` is set.
///
/// # Errors
/// If the folder does not exist, or the file exists and is not a capture of Skyhaul.
pub fn check_path(path: &Path, force: bool) -> Result<(), CaptureError> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    match folder {
        Some(f) if !f.is_dir() => Err(CaptureError::NoFolder { path: path.to_owned(), folder: f.to_owned() }),
        _ => check_overwritten(path, force),
    }
}

/// Refuses to replace a file that is not a capture, unless `force` is set. A file that cannot be read fails later,
/// when written.
///
/// # Errors
/// If the file exists and is not a capture of Skyhaul.
pub fn check_overwritten(path: &Path, force: bool) -> Result<(), CaptureError> {
    if force || !path.is_file() {
        return Ok(());
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|f| f.take(256).read_to_end(&mut head));
    let foreign = read.is_ok_and(|n| n > 0) && !is_ours(&head);
    if foreign { Err(CaptureError::NotOurs { path: path.to_owned() }) } else { Ok(()) }
}
