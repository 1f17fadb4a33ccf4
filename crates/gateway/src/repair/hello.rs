//! The message that begins a session.
//!
//! ```text
//! 0   version of the format and type 15 (1)
//! 1   identity of the sender in the session (16)
//! 17  identity of the receiver, as the sender knows it; zeros if it does not (16)
//! 33  HMAC-SHA-256 of all this, its first half (16)
//! ```
//! All versions of the format have this message, so that an end can say that the other one has another version. An answer is as long as
//! what it answers. It goes to the address in the file, wherever the message came from, or to where the message came from if the file
//! names no address.

use super::key::{Id, MAC, Secret};
use skyhaul_repair::wire::VERSION;

/// The type of the message, in the lower half of its first byte.
pub(super) const TYPE: u8 = 15;
/// Its length, bytes.
pub(super) const LENGTH: usize = 33 + MAC;

/// A message that begins a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) version: u8,
    pub(super) from: Id,
    pub(super) to: Option<Id>,
}

impl Hello {
    pub(super) fn new(from: Id, to: Option<Id>) -> Self {
        Self { version: VERSION, from, to }
    }
    pub(super) fn write(&self, secret: &Secret, out: &mut Vec<u8>) {
        out.clear();
        out.push(self.version << 4 | TYPE);
        out.extend(self.from);
        out.extend(self.to.unwrap_or_default());
        out.extend(secret.mac(out));
    }
    /// Reads a message; `None` if it is not one of somebody who has the key.
    pub(super) fn read(bytes: &[u8], secret: &Secret) -> Option<Self> {
        let (message, code) = bytes.split_at_checked(bytes.len().checked_sub(MAC)?)?;
        if bytes.len() != LENGTH || !secret.verifies(message, code) {
            return None;
        }
        let (first, rest) = message.split_first()?;
        let (from, to) = rest.split_first_chunk()?;
        let to: Id = to.try_into().ok()?;
        Some(Self { version: first >> 4, from: *from, to: (to != Id::default()).then_some(to) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_read_by_who_has_the_key() {
        let secret = Secret::new(b"one");
        for to in [None, Some([9; 16])] {
            let hello = Hello { version: 3, from: [7; 16], to };
            let mut bytes = Vec::new();
            hello.write(&secret, &mut bytes);
            assert_eq!(bytes.len(), LENGTH);
            assert_eq!(Hello::read(&bytes, &secret), Some(hello));
            assert_eq!(Hello::read(&bytes, &Secret::new(b"two")), None);
            for n in 0..LENGTH {
                assert_eq!(Hello::read(&bytes[..n], &secret), None);
                bytes[n] ^= 0x80;
                assert_eq!(Hello::read(&bytes, &secret), None);
                bytes[n] ^= 0x80;
            }
        }
    }
}
