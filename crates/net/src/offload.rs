//! Super-packets: what is written to and read from a device whose packets carry a virtio-net header.
//!
//! Segments of one connection that follow each other go to the kernel as one packet, which it takes apart only where it
//! must, or not at all; and the other way round. The merging and splitting is the library's.

use crate::error::NetError;
use crate::tun::Tun;
use nix::errno::Errno;
use std::io;
use tun_rs::{ExpandBuffer, GROTable, IDEAL_BATCH_SIZE, VIRTIO_NET_HDR_LEN};

/// Room for the longest super-packet, and for the header.
const ROOM: usize = (1 << 16) + 2 * VIRTIO_NET_HDR_LEN;
/// Most packets that one super-packet can hold.
const MOST: usize = IDEAL_BATCH_SIZE;

/// A packet behind the room for its header.
#[derive(Debug)]
struct Frame(Vec<u8>);

impl AsRef<[u8]> for Frame {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
impl AsMut<[u8]> for Frame {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}
impl ExpandBuffer for Frame {
    fn buf_capacity(&self) -> usize {
        self.0.capacity()
    }
    fn buf_resize(&mut self, new_len: usize, value: u8) {
        self.0.resize(new_len, value);
    }
    fn buf_extend_from_slice(&mut self, src: &[u8]) {
        self.0.extend_from_slice(src);
    }
}

/// Packets that wait to be merged and written.
pub(crate) struct Departures {
    table: GROTable,
    frames: Vec<Frame>,
    used: usize,
}

impl Departures {
    pub(crate) fn new() -> Self {
        let frames = (0..MOST).map(|_| Frame(Vec::with_capacity(ROOM))).collect();
        Self { table: GROTable::default(), frames, used: 0 }
    }

    /// Adds a packet; returns how many the device refused.
    pub(crate) fn push(&mut self, tun: &Tun, packet: &[u8]) -> Result<u64, NetError> {
        // A probe stays what it is: merged with its neighbour it would be one, and answered once.
        let alone = marked(packet);
        let mut refused = if alone || self.used == MOST { self.flush(tun)? } else { 0 };
        let frame = &mut self.frames[self.used].0;
        frame.clear();
        frame.resize(VIRTIO_NET_HDR_LEN, 0);
        frame.extend_from_slice(packet);
        self.used += 1;
        if alone {
            refused += self.flush(tun)?;
        }
        Ok(refused)
    }

    /// Writes what waits; returns how many packets the device refused, as far as it says.
    pub(crate) fn flush(&mut self, tun: &Tun) -> Result<u64, NetError> {
        let n = std::mem::take(&mut self.used);
        if n == 0 {
            return Ok(0);
        }
        match tun.device().send_multiple(&mut self.table, &mut self.frames[..n], VIRTIO_NET_HDR_LEN) {
            Ok(_) => Ok(0),
            Err(e) => match e.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EBADFD | Errno::ENODEV) => Err(NetError::DeviceGone(tun.name().to_owned())),
                // Down, or no memory: some of them were not taken, at least one.
                _ => Ok(1),
            },
        }
    }
}

/// Of low priority, or with marks in the reserved bits of TCP.
fn marked(p: &[u8]) -> bool {
    match p {
        [v, tos, ..] if v >> 4 == 4 => tos >> 2 != 0,
        [v, next, ..] if v >> 4 == 6 => (v & 15) << 2 | next >> 6 != 0,
        _ => false,
    }
}

/// Packets that were read as one.
pub(crate) struct Arrivals {
    whole: Vec<u8>,
    packets: Vec<Vec<u8>>,
    sizes: Vec<usize>,
}

impl Arrivals {
    pub(crate) fn new() -> Self {
        Self { whole: vec![0; ROOM], packets: vec![vec![0; 1 << 16]; MOST], sizes: vec![0; MOST] }
    }

    /// Reads what the kernel sent as one packet, taken apart; `None` if there is nothing.
    ///
    /// # Errors
    /// If the device has gone.
    pub(crate) fn read(&mut self, tun: &Tun) -> Result<Option<impl Iterator<Item = &[u8]>>, NetError> {
        loop {
            match tun.device().recv_multiple(&mut self.whole, &mut self.packets, &mut self.sizes, 0) {
                Ok(n) => {
                    let all = self.packets.iter().zip(&self.sizes).take(n);
                    return Ok(Some(all.map(|(p, len)| &p[..*len])));
                }
                Err(e) => match e.raw_os_error().map(Errno::from_raw) {
                    Some(Errno::EAGAIN) => return Ok(None),
                    Some(Errno::EINTR) => {}
                    _ if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                    Some(Errno::EBADFD | Errno::ENODEV | Errno::EIO) => {
                        return Err(NetError::DeviceGone(tun.name().to_owned()));
                    }
                    _ => return Err(NetError::os(format!("read from {}", tun.name()), e)),
                },
            }
        }
    }
}
