//! The end that restores packets.

use super::header::{Layout, Reference};
use super::{COMPRESSED, CONTEXTS, INSTALLS, REFERENCES};

/// The end that restores packets.
#[derive(Debug)]
pub(crate) struct Decompressor {
    /// The references of each context.
    references: Vec<Option<Reference>>,
}

/// A packet, and whether the reference is installed that it was to install, if any.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) packet: Vec<u8>,
    pub(crate) installs: Option<bool>,
}

impl Default for Decompressor {
    fn default() -> Self {
        let references = CONTEXTS * usize::from(REFERENCES);
        Self { references: (0..references).map(|_| None).collect() }
    }
}

impl Decompressor {
    fn slot(&mut self, context: u8, number: u8) -> Option<&mut Option<Reference>> {
        self.references
            .get_mut(usize::from(context) * usize::from(REFERENCES) + usize::from(number % REFERENCES))
    }
    /// A header becomes a reference, unless a later datagram has installed another one. Returns whether it did.
    fn install(&mut self, context: u8, number: u8, reference: Option<Reference>) -> bool {
        let Some(slot) = self.slot(context, number) else { return false };
        let Some(reference) = reference else { return false };
        let newer = slot.as_ref().is_none_or(|old| reference.at > old.at);
        if newer {
            *slot = Some(reference);
        }
        newer
    }

    /// The packet in one form, which datagram `seq` carried; `None` if that is none, or its reference is not there.
    pub(crate) fn restore(&mut self, seq: u64, form: &[u8]) -> Option<Restored> {
        let first = *form.first()?;
        match first >> 4 {
            4 | 6 => Some(Restored { packet: form.to_vec(), installs: None }),
            0 => {
                let (&[_, context], packet) = form.split_first_chunk()?;
                let layout = Layout::of(packet)?.told(packet, first >> 2 & 3)?;
                let installs = self.install(context, first & 3, Reference::new(packet, layout, seq));
                Some(Restored { packet: packet.to_vec(), installs: Some(installs) })
            }
            _ if first & COMPRESSED != 0 => {
                let context = *form.get(1)?;
                let number = first >> 5 & 3;
                // A later datagram may have displaced the reference.
                let reference = self.slot(context, number)?.as_ref().filter(|r| r.at < seq)?;
                let packet = reference.restore(form, seq)?;
                let installs = (first & INSTALLS != 0).then(|| {
                    let layout = Layout::of(&packet)?.with(reference.layout.profile, &packet)?;
                    Reference::new(&packet, layout, seq)
                });
                let installs = installs.map(|reference| self.install(context, number + 1, reference));
                Some(Restored { packet, installs })
            }
            _ => None,
        }
    }
}
