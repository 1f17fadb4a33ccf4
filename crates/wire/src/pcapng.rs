//! Capture files (pcapng), written as packets arrive.
//!
//! A packet whose fate is unknown is held back, so that its comment can give the reason of a loss; packets captured
//! after it wait behind it, since captures are ordered by time. At most [`HELD`] packets wait: beyond that the
//! oldest is written without its fate, and counted.

use crate::MAX_HEADER;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Duration;

/// Maximum number of packets held back, those that wait behind another included.
pub const HELD: usize = 1 << 16;
/// Zeros for payloads that are not given.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// A packet waiting to be written.
#[derive(Clone, Debug)]
struct Held {
    nanos: u64,
    interface: u32,
    /// Its fate is still unknown.
    open: bool,
    /// The given bytes, at most `snaplen`.
    bytes: Box<[u8]>,
    /// Length of the whole packet, bytes.
    total: u32,
    comment: Option<Box<str>>,
}

/// Name of the writing program in the section header.
const WRITER: &str = "skyhaul";

/// Whether a file with this beginning was written by [`Capture`]. 256 bytes suffice.
#[must_use]
pub fn is_ours(head: &[u8]) -> bool {
    let block = head.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]);
    block && head.windows(WRITER.len()).take(256).any(|w| w == WRITER.as_bytes())
}

/// Identifies a packet whose fate is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// Writes a capture file: raw IP packets, times in nanoseconds. Payloads that are not given are zeros, or left out
/// ([`Self::cut`]).
pub struct Capture<W: Write> {
    file: PcapNgWriter<W>,
    snaplen: u32,
    /// Payloads that are not given are left out, not zero.
    cuts: bool,
    interfaces: u32,
    held: VecDeque<Held>,
    /// Number of the packet at the front.
    first: u64,
    /// Packets written.
    packets: u64,
    /// Packets written without their fate because too many waited.
    unknown: u64,
}

impl<W: Write> core::fmt::Debug for Capture<W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Capture").field("held", &self.held.len()).finish_non_exhaustive()
    }
}

fn io(e: pcap_file::PcapError) -> io::Error {
    match e {
        pcap_file::PcapError::IoError(e) => e,
        other => io::Error::other(other),
    }
}

impl<W: Write> Capture<W> {
    /// A file without interfaces; at most `snaplen` bytes of each packet are captured, but at least its header.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(to: W, snaplen: u32) -> io::Result<Self> {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed(WRITER))],
            ..SectionHeaderBlock::default()
        };
        Ok(Self {
            file: PcapNgWriter::with_section_header(to, section).map_err(io)?,
            snaplen: snaplen.clamp(MAX_HEADER as u32, 1 << 16),
            cuts: false,
            interfaces: 0,
            held: VecDeque::new(),
            first: 0,
            packets: 0,
            unknown: 0,
        })
    }

    /// Of a packet that is given partly, captures only that part, without zeros for the rest. To be called before the first
    /// packet.
    #[must_use]
    pub fn cut(self) -> Self {
        Self { cuts: true, ..self }
    }

    /// Adds a capture point; returns its number. All must be added before the first packet.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn interface(&mut self, name: &str, description: &str) -> io::Result<u32> {
        let mut block = InterfaceDescriptionBlock::new(DataLink::RAW, self.snaplen);
        block.options = vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
            InterfaceDescriptionOption::IfDescription(Cow::Borrowed(description)),
            // Times in units of 10^-9 s.
            InterfaceDescriptionOption::IfTsResol(9),
        ];
        self.file.write_pcapng_block(block).map_err(io)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Adds a packet of `total` bytes, of which `header` is the beginning or the whole. Times must not decrease from call
    /// to call. If `open`, the packet's fate is not known yet and is given later with the ticket ([`Self::settle`]).
    ///
    /// # Errors
    /// If writing fails.
    pub fn packet(
        &mut self,
        nanos: u64,
        interface: u32,
        header: &[u8],
        total: usize,
        open: bool,
        comment: Option<&str>,
    ) -> io::Result<Ticket> {
        let h = Held {
            nanos,
            interface,
            open,
            bytes: header.get(..self.snaplen as usize).unwrap_or(header).into(),
            total: total as u32,
            comment: comment.map(Into::into),
        };
        let ticket = Ticket(self.first + self.held.len() as u64);
        self.held.push_back(h);
        if self.held.len() > HELD {
            if let Some(oldest) = self.held.front_mut() {
                self.unknown += u64::from(std::mem::replace(&mut oldest.open, false));
            }
        }
        self.drain()?;
        Ok(ticket)
    }

    /// Sets the fate of a packet: the reason of its loss as `comment`, `None` if it arrived. Without effect once the packet
    /// is written.
    ///
    /// # Errors
    /// If writing fails.
    pub fn settle(&mut self, ticket: Ticket, comment: Option<&str>) -> io::Result<()> {
        let at = ticket.0.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        if let Some(h) = at.and_then(|at| self.held.get_mut(at)) {
            h.open = false;
            h.comment = comment.map(Into::into);
        }
        self.drain()
    }

    /// Writes packets that need not wait.
    fn drain(&mut self) -> io::Result<()> {
        while self.held.front().is_some_and(|h| !h.open) {
            self.write_first()?;
        }
        Ok(())
    }

    fn write_first(&mut self) -> io::Result<()> {
        let Some(h) = self.held.pop_front() else { return Ok(()) };
        self.first += 1;
        self.packets += 1;
        let header = &h.bytes;
        let kept = (h.total.min(self.snaplen) as usize).max(header.len());
        let data = if kept == header.len() || self.cuts {
            Cow::Borrowed(&**header)
        } else {
            Cow::Owned([header, ZEROS.get(..kept - header.len()).unwrap_or(&ZEROS)].concat())
        };
        let options = match &h.comment {
            Some(c) => vec![EnhancedPacketOption::Comment(Cow::Borrowed(c))],
            None => Vec::new(),
        };
        let block = EnhancedPacketBlock {
            interface_id: h.interface,
            timestamp: Duration::from_nanos(h.nanos),
            original_len: h.total,
            data,
            options,
        };
        self.file.write_pcapng_block(block).map_err(io)?;
        Ok(())
    }

    /// Adds how many packets a capture point had failed to capture by the time `nanos`. To be called after its last
    /// packet.
    ///
    /// # Errors
    /// If writing fails.
    pub fn dropped(&mut self, nanos: u64, interface: u32, packets: u64) -> io::Result<()> {
        // In the file the upper half of the time comes first; `pcap_file` writes one little-endian number, lower half first.
        let timestamp = nanos.rotate_left(32);
        let options = vec![InterfaceStatisticsOption::IsbIfDrop(packets)];
        let block = InterfaceStatisticsBlock { interface_id: interface, timestamp, options };
        self.file.write_pcapng_block(block).map(drop).map_err(io)
    }

    /// Writes all waiting packets. Returns the number of packets, and of those without their fate because too many
    /// waited.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(mut self) -> io::Result<(u64, u64)> {
        while !self.held.is_empty() {
            self.write_first()?;
        }
        let mut to = self.file.into_inner();
        to.flush()?;
        Ok((self.packets, self.unknown))
    }
}
