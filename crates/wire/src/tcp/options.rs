//! TCP options: MSS (RFC 9293), window scale and timestamps (RFC 7323), SACK (RFC 2018, 2883), and three experimental
//! ones (RFC 6994): probes, the receiver's rate reports, and the ACK ratio.

use super::OPTION_SPACE;
use crate::{ACK_RATIO_EXID, Capability, RATE_EXID, Refusal};
use core::num::{NonZeroU16, NonZeroU32};
use skyhaul_tcp::{EcnBytes, Mark, SackBlocks, Seq};

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
/// AccECN in the order ECT(0), CE, ECT(1), and in the opposite order (RFC 9768 §3.2.3).
const ACC_ECN_0: u8 = 172;
const ACC_ECN_1: u8 = 174;
const EXPERIMENT: u8 = 253;

/// Lengths of the experimental options.
const CAPABILITY_LEN: usize = 8;
const MARK_LEN: usize = 10;
const RATE_LEN: usize = 12;
const ACK_RATIO_LEN: usize = 7;
/// Capabilities with the number of the gateway that announces them.
const GATEWAY_LEN: usize = CAPABILITY_LEN + 4;
/// The same with what concerns data in the SYN.
const EARLY_LEN: usize = GATEWAY_LEN + 8;

/// The options of a segment. If one is repeated, the last one counts; of experimental ones with the same identifier and
/// length, the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale.
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack_permitted: bool,
    /// TSval, TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// Bytes by ECN field, from the AccECN option; a field that is left out has its initial value.
    pub ecn_bytes: Option<EcnBytes>,
    sack: &'a [u8],
    /// There are experimental options.
    experiments: bool,
    /// All options as received, for those that are looked up by identifier.
    all: &'a [u8],
}

/// Content of the probe option: the capabilities of the sender in a SYN, otherwise the kind of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeOption {
    /// In a SYN.
    Capability(Capability),
    /// In a probe, or in the answer to one.
    Mark {
        /// Which of them.
        mark: Mark,
        /// Number of the probe.
        id: u16,
    },
}

/// The options one by one: kind and content.
fn each(mut bytes: &[u8]) -> impl Iterator<Item = Result<(u8, &[u8]), Refusal>> {
    core::iter::from_fn(move || {
        loop {
            match *bytes {
                [] | [END, ..] => return None,
                [NOP, ref rest @ ..] => bytes = rest,
                [kind, ref rest @ ..] => {
                    let parts = rest
                        .split_first()
                        .and_then(|(len, rest)| rest.split_at_checked(usize::from(*len).checked_sub(2)?));
                    let Some((content, after)) = parts else {
                        bytes = &[];
                        return Some(Err(Refusal::OptionCut));
                    };
                    bytes = after;
                    return Some(Ok((kind, content)));
                }
            }
        }
    })
}

/// The AccECN option with these fields of 24 bits; `None` if it has too few to say something of CE. Bytes beyond whole fields are
/// ignored.
fn ecn_bytes(fields: &[u8], reversed: bool) -> Option<EcnBytes> {
    let mut of = fields.chunks_exact(3).map(|f| f.iter().fold(0, |n, b| n << 8 | u32::from(*b)));
    let (first, ce, last) = (of.next()?, of.next()?, of.next());
    let last = last.unwrap_or(EcnBytes::INITIAL.ect0);
    let (ect0, ect1) = if reversed { (last, first) } else { (first, last) };
    Some(EcnBytes { ect0, ce, ect1 })
}

impl<'a> Options<'a> {
    /// Parses the options of a segment; `syn`: it is a SYN. A SYN with a malformed option is accepted, as in Linux: an option
    /// of a wrong length is skipped, and a truncated one ends the list. A refused SYN would be repeated in vain, and what a
    /// malformed option announces is not used. In any other segment a malformed option shows damage, or a segment made by
    /// hand. It is refused: without its timestamp or blocks it could be mistaken for another, and its sender repeats it.
    pub(super) fn parse(all: &'a [u8], syn: bool) -> Result<Self, Refusal> {
        let mut o = Self { all, ..Self::default() };
        for option in each(all) {
            let option = match option {
                Err(_) if syn => break,
                option => option?,
            };
            match option {
                (MSS, &[a, b]) => o.mss = Some(u16::from_be_bytes([a, b])),
                (WINDOW_SCALE, &[shift]) => o.window_scale = Some(shift),
                (SACK_PERMITTED, &[]) => o.sack_permitted = true,
                (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                    o.timestamps = Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
                }
                (SACK, blocks) if !blocks.is_empty() && blocks.len() % 8 == 0 => o.sack = blocks,
                (MSS | WINDOW_SCALE | SACK_PERMITTED | SACK | TIMESTAMPS, _) if !syn => {
                    return Err(Refusal::OptionLength);
                }
                // A SYN has none (RFC 9768 §3.2.3.2.1).
                (ACC_ECN_0 | ACC_ECN_1, fields) if !syn => {
                    o.ecn_bytes = ecn_bytes(fields, option.0 == ACC_ECN_1);
                }
                (EXPERIMENT, _) => o.experiments = true,
                // Unknown options are skipped, including experimental ones without an identifier of RFC 6994 (RFC 9293
                // MUST-6).
                _ => {}
            }
        }
        Ok(o)
    }

    /// The SACK blocks in order, a D-SACK block first if there is one.
    #[must_use]
    pub fn sack(&self) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        for b in self.sack.chunks_exact(8) {
            if let &[a, b, c, d, e, f, g, h] = b {
                blocks.push(Seq(u32::from_be_bytes([a, b, c, d])), Seq(u32::from_be_bytes([e, f, g, h])));
            }
        }
        blocks
    }

    /// The content of an experimental option of this length, after its identifier.
    fn experiment(&self, exid: u32, len: usize) -> Option<&'a [u8]> {
        // Most segments have none.
        let all = if self.experiments { self.all } else { &[] };
        each(all).filter_map(Result::ok).find_map(|(kind, content)| {
            let (id, says) = content.split_first_chunk()?;
            let ours = kind == EXPERIMENT && content.len() + 2 == len && u32::from_be_bytes(*id) == exid;
            ours.then_some(says)
        })
    }

    /// The content of the probe option with this identifier; `None` if it is not understood.
    #[must_use]
    pub fn probe(&self, exid: u32) -> Option<ProbeOption> {
        let stated = [CAPABILITY_LEN, GATEWAY_LEN, EARLY_LEN];
        let stated = stated.into_iter().find_map(|len| self.experiment(exid, len));
        if let Some(&[flags, log2_most, ..]) = stated {
            return Some(ProbeOption::Capability(Capability { flags, log2_most }));
        }
        let &[kind, _, a, b] = self.experiment(exid, MARK_LEN)? else { return None };
        let mark = match kind {
            0x01 => Mark::Dummy,
            0x02 => Mark::Nil,
            0x81 => Mark::DummyAck,
            0x82 => Mark::NilAck,
            _ => return None,
        };
        Some(ProbeOption::Mark { mark, id: u16::from_be_bytes([a, b]) })
    }

    /// The wave number and the rate that the receiver reports (TCP-Real).
    #[must_use]
    pub fn rate(&self) -> (Option<NonZeroU16>, Option<NonZeroU32>) {
        let Some(&[a, b, c, d, e, f]) = self.experiment(RATE_EXID, RATE_LEN) else { return (None, None) };
        (NonZeroU16::new(u16::from_be_bytes([a, b])), NonZeroU32::new(u32::from_be_bytes([c, d, e, f])))
    }
}

impl Options<'_> {
    /// The ACK ratio (RFC 5690 §4.2); 0 in a SYN, where any number announces support.
    #[must_use]
    pub fn ack_ratio(&self) -> Option<u8> {
        self.experiment(ACK_RATIO_EXID, ACK_RATIO_LEN).and_then(|content| content.first().copied())
    }

    /// The number of the gateway that sent a SYN on behalf of another host, announced with its capabilities under this
    /// identifier.
    #[must_use]
    pub fn gateway(&self, exid: u32) -> Option<NonZeroU32> {
        let stated = self.experiment(exid, GATEWAY_LEN).or_else(|| self.experiment(exid, EARLY_LEN));
        stated?.get(2..)?.first_chunk().and_then(|n| NonZeroU32::new(u32::from_be_bytes(*n)))
    }
    /// What a gateway states about data in a SYN, behind its number: see [`crate::Agreement::early`].
    #[must_use]
    pub fn early(&self, exid: u32) -> Option<[u8; 8]> {
        self.experiment(exid, EARLY_LEN)?.last_chunk().copied()
    }
}

/// Writes options one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    bytes: [u8; OPTION_SPACE],
    len: usize,
}

/// Length of an option of `len` bytes, filled up to whole words.
pub(crate) const fn aligned(len: usize) -> usize {
    len.div_ceil(4) * 4
}

impl Writer {
    pub(crate) const fn new() -> Self {
        Self { bytes: [NOP; OPTION_SPACE], len: 0 }
    }
    /// The bytes written.
    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
    /// Bytes left.
    pub(crate) const fn room(&self) -> usize {
        OPTION_SPACE - self.len
    }
    /// Appends an option, preceded by padding that aligns its end; false if there is no room.
    fn option(&mut self, kind: u8, content: &[&[u8]]) -> bool {
        let len = 2 + content.iter().map(|c| c.len()).sum::<usize>();
        let end = self.len + aligned(len);
        let Some([first, second, room @ ..]) = self.bytes.get_mut(end - len..end) else { return false };
        (*first, *second) = (kind, len as u8);
        let mut room = room;
        for c in content {
            let Some((to, rest)) = room.split_at_mut_checked(c.len()) else { return false };
            to.copy_from_slice(c);
            room = rest;
        }
        self.len = end;
        true
    }
    pub(crate) fn mss(&mut self, mss: u16) -> bool {
        self.option(MSS, &[&mss.to_be_bytes()])
    }
    pub(crate) fn window_scale(&mut self, shift: u8) -> bool {
        self.option(WINDOW_SCALE, &[&[shift]])
    }
    /// SACK permitted takes the place of the padding before the timestamps, as in all common stacks.
    pub(crate) fn sack_permitted(&mut self, ts: Option<(u32, u32)>) -> bool {
        let Some(ts) = ts else { return self.option(SACK_PERMITTED, &[]) };
        let at = self.len;
        let fits = self.timestamps(ts);
        if let Some(padding) = self.bytes.get_mut(at..).filter(|_| fits).and_then(<[u8]>::first_chunk_mut) {
            *padding = [SACK_PERMITTED, 2];
        }
        fits
    }
    pub(crate) fn timestamps(&mut self, (val, ecr): (u32, u32)) -> bool {
        self.option(TIMESTAMPS, &[&val.to_be_bytes(), &ecr.to_be_bytes()])
    }
    pub(crate) fn sack(&mut self, blocks: &[(Seq, Seq)]) -> bool {
        let mut content = [0; 32];
        for (slot, (from, to)) in content.chunks_exact_mut(8).zip(blocks) {
            let (first, second) = slot.split_at_mut(4);
            first.copy_from_slice(&from.0.to_be_bytes());
            second.copy_from_slice(&to.0.to_be_bytes());
        }
        self.option(SACK, &[content.get(..8 * blocks.len()).unwrap_or(&content)])
    }
    /// The AccECN option, in the order whose last field may be left out because it has its initial value, if one may.
    pub(crate) fn ecn_bytes(&mut self, b: EcnBytes) -> bool {
        let reversed = b.ect0 == EcnBytes::INITIAL.ect0;
        let (kind, first, last) =
            if reversed { (ACC_ECN_1, b.ect1, b.ect0) } else { (ACC_ECN_0, b.ect0, b.ect1) };
        let fields = [first, b.ce, last].map(u32::to_be_bytes);
        let [first, ce, last] = fields.each_ref().map(|f| f.get(1..).unwrap_or_default());
        let omit = if reversed { b.ect0 } else { b.ect1 } == EcnBytes::INITIAL.ect1;
        if omit { self.option(kind, &[first, ce]) } else { self.option(kind, &[first, ce, last]) }
    }
    pub(crate) fn capability(
        &mut self,
        exid: u32,
        c: Capability,
        gateway: Option<(NonZeroU32, Option<[u8; 8]>)>,
    ) -> bool {
        let (exid, says) = (exid.to_be_bytes(), [c.flags, c.log2_most]);
        match gateway {
            Some((number, early)) => {
                let early = early.as_ref().map_or(&[][..], |e| e);
                self.option(EXPERIMENT, &[&exid, &says, &number.get().to_be_bytes(), early])
            }
            None => self.option(EXPERIMENT, &[&exid, &says]),
        }
    }
    pub(crate) fn mark(&mut self, exid: u32, kind: u8, id: u16) -> bool {
        self.option(EXPERIMENT, &[&exid.to_be_bytes(), &[kind, 0], &id.to_be_bytes()])
    }
    pub(crate) fn ack_ratio(&mut self, ratio: u8) -> bool {
        self.option(EXPERIMENT, &[&ACK_RATIO_EXID.to_be_bytes(), &[ratio]])
    }
    pub(crate) fn rate(&mut self, wave: Option<NonZeroU16>, rate: Option<NonZeroU32>) -> bool {
        let wave = wave.map_or(0, NonZeroU16::get).to_be_bytes();
        let rate = rate.map_or(0, NonZeroU32::get).to_be_bytes();
        self.option(EXPERIMENT, &[&RATE_EXID.to_be_bytes(), &wave, &rate])
    }
}
