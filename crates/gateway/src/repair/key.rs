//! The pre-shared key, the keys that follow from it (HKDF, RFC 5869), and the AEAD (ChaCha20-Poly1305, RFC 8439).

use chacha20poly1305::aead::generic_array::GenericArray;
use chacha20poly1305::{AeadInPlace, ChaCha20Poly1305, KeyInit, Tag};
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt;

/// Identity of an end in a session, drawn at random for each.
pub(crate) type Id = [u8; 16];
/// Bytes of the tag of the AEAD.
pub(crate) const TAG: usize = 16;
/// Bytes of the authentication code of a hello: HMAC-SHA-256-128 (RFC 4868).
pub(crate) const MAC: usize = 16;

/// What a nonce is for, so that no two are the same.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Space {
    /// Frames, counted by their numbers.
    Frames = 0,
    /// Signs of life, counted apart.
    Signs = 1,
}

/// What follows from the pre-shared key.
#[derive(Clone)]
pub(crate) struct Secret {
    hello: [u8; 32],
    sessions: Hkdf<Sha256>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    pub(crate) fn new(shared: &[u8]) -> Self {
        let sessions = Hkdf::new(Some(b"skyhaul repair"), shared);
        let mut hello = [0; 32];
        // Expansion fails only for more than 255 blocks.
        let _ = sessions.expand(b"hello", &mut hello);
        Self { hello, sessions }
    }
    /// The authentication code of a hello.
    pub(crate) fn mac(&self, message: &[u8]) -> [u8; MAC] {
        let mut code = [0; MAC];
        if let Ok(mac) = <Hmac<Sha256> as Mac>::new_from_slice(&self.hello) {
            let whole = mac.chain_update(message).finalize().into_bytes();
            code.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
        }
        code
    }
    /// Whether this is the authentication code of a hello; in constant time.
    pub(crate) fn verifies(&self, message: &[u8], code: &[u8]) -> bool {
        code.len() == MAC
            && <Hmac<Sha256> as Mac>::new_from_slice(&self.hello)
                .is_ok_and(|mac| mac.chain_update(message).verify_truncated_left(code).is_ok())
    }
    /// The key of what one end sends to the other in their session.
    pub(crate) fn session(&self, from: &Id, to: &Id) -> Key {
        let mut key = [0; 32];
        let _ = self.sessions.expand_multi_info(&[b"session", from, to], &mut key);
        Key(ChaCha20Poly1305::new(&key.into()))
    }
}

/// A key of one direction of a session.
#[derive(Clone)]
pub(crate) struct Key(ChaCha20Poly1305);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

fn nonce(space: Space, counter: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[0] = space as u8;
    nonce[4..].copy_from_slice(&counter.to_be_bytes());
    nonce
}

impl Key {
    /// Encrypts all but the first `clear` bytes, which are authenticated, too, and appends the tag.
    pub(crate) fn seal(&self, space: Space, counter: u64, clear: usize, packet: &mut Vec<u8>) {
        let Some((head, rest)) = packet.split_at_mut_checked(clear) else { return };
        let nonce = nonce(space, counter);
        // Encryption fails only for messages of 256 GiB and more.
        if let Ok(tag) = self.0.encrypt_in_place_detached(&nonce.into(), head, rest) {
            packet.extend_from_slice(&tag);
        }
    }
    /// Decrypts what [`Self::seal`] has made. Returns the packet without its tag; `None` if it is not authentic.
    pub(crate) fn open<'a>(
        &self,
        space: Space,
        counter: u64,
        clear: usize,
        packet: &'a mut [u8],
    ) -> Option<&'a [u8]> {
        let end = packet.len().checked_sub(TAG).filter(|end| *end >= clear)?;
        let (message, tag) = packet.split_at_mut(end);
        let (head, rest) = message.split_at_mut(clear);
        let tag: &Tag = GenericArray::from_slice(tag);
        self.0.decrypt_in_place_detached(&nonce(space, counter).into(), head, rest, tag).ok()?;
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_other_end_of_the_session_reads_it() {
        let secret = Secret::new(b"a key of at least thirty-two bytes");
        let (a, b) = ([1; 16], [2; 16]);
        let mut sealed = b"\x10\0\0\x07 content".to_vec();
        let plain = sealed.clone();
        secret.session(&a, &b).seal(Space::Frames, 7, 4, &mut sealed);
        assert_eq!(sealed.len(), plain.len() + TAG);
        assert_eq!(sealed[..4], plain[..4]);
        let open = |key: &Key, space, counter, bytes: &[u8]| {
            let mut copy = bytes.to_vec();
            key.open(space, counter, 4, &mut copy).map(<[u8]>::to_vec)
        };
        let key = secret.session(&a, &b);
        assert_eq!(open(&key, Space::Frames, 7, &sealed), Some(plain));
        assert_eq!(open(&key, Space::Frames, 8, &sealed), None, "another number");
        assert_eq!(open(&key, Space::Signs, 7, &sealed), None, "another kind");
        assert_eq!(open(&secret.session(&b, &a), Space::Frames, 7, &sealed), None, "the other direction");
        assert_eq!(open(&Secret::new(b"another").session(&a, &b), Space::Frames, 7, &sealed), None);
        for n in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[n] ^= 1;
            assert_eq!(open(&key, Space::Frames, 7, &changed), None, "byte {n}");
            assert_eq!(open(&key, Space::Frames, 7, &sealed[..n]), None, "{n} bytes");
        }
    }

    #[test]
    fn keys_are_those_of_rfc_5869() {
        // HKDF-Expand(HKDF-Extract("skyhaul repair", 32 bytes 0x0b), "hello", 32), computed with Python's hmac and hashlib.
        let secret = Secret::new(&[0x0b; 32]);
        let hex: String = secret.hello.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "290f012b7041cbd37181eef893ad8e28acf95b8496a028eb28d9b4db48a23756");
    }
}
