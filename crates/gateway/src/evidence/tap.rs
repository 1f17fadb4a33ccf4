//! Captures the headers of TCP segments that pass an interface (packet(7)).

use super::header::CAPTURED;
use crate::error::GatewayError;
use crate::stamp;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg,
    setsockopt, socket, sockopt,
};
use skyhaul_net::Clock;
use socket2::{SockFilter, SockRef};
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Receive buffer, bytes: bursts wait here until they are read.
const BUFFER: usize = 8 << 20;
/// `PACKET_OUTGOING` (linux/if_packet.h): the packet leaves by the interface.
const OUTGOING: u8 = 4;

/// A capturing socket.
#[derive(Debug)]
pub(crate) struct Tap {
    socket: OwnedFd,
    bytes: [u8; CAPTURED],
    control: Vec<u8>,
    /// Packets that found no room, as the kernel counts them.
    pub(crate) missed: u32,
}

/// A captured packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Captured<'a> {
    pub(crate) bytes: &'a [u8],
    /// Length of the packet.
    pub(crate) length: usize,
    /// When it was seen, nanoseconds of the monotonic clock.
    pub(crate) at: u64,
    /// It comes from the interface; otherwise it leaves by it.
    pub(crate) arrives: bool,
}

/// The filter, in the language of the kernel's packet filters: TCP over IPv4 or IPv6 at some interfaces. It accepts packets whole, since
/// the length of a truncated one is lost; only the first [`CAPTURED`] bytes of each are read.
fn filter(interfaces: &[u32]) -> Vec<SockFilter> {
    const LOAD_WORD: u16 = 0x20;
    const LOAD_BYTE: u16 = 0x30;
    const RETURN: u16 = 0x06;
    const AND: u16 = 0x54;
    const IS: u16 = 0x15;
    /// `SKF_AD_OFF + SKF_AD_IFINDEX` (linux/filter.h).
    const INTERFACE: u32 = 0xffff_f008;
    let op = |code, yes, no, k| SockFilter::new(code, yes, no, k);
    // From the comparison with an interface to the tests of the packet; without a match behind the last one, to the refusal.
    let compared = interfaces.iter().rev().enumerate().rev();
    let compared = compared.map(|(more, index)| op(IS, more as u8, if more == 0 { 9 } else { 0 }, *index));
    let tests = [
        op(LOAD_BYTE, 0, 0, 0),
        op(AND, 0, 0, 0xf0),
        op(IS, 0, 2, 0x40),
        op(LOAD_BYTE, 0, 0, 9),
        op(IS, 3, 4, 6),
        op(IS, 0, 3, 0x60),
        op(LOAD_BYTE, 0, 0, 6),
        op(IS, 0, 1, 6),
        op(RETURN, 0, 0, u32::MAX),
        op(RETURN, 0, 0, 0),
    ];
    [op(LOAD_WORD, 0, 0, INTERFACE)].into_iter().chain(compared).chain(tests).collect()
}

impl Tap {
    /// Starts capturing at interfaces.
    ///
    /// # Errors
    /// If one of the interfaces does not exist or the privileges are missing.
    pub(crate) fn open(interfaces: &[String]) -> Result<Self, GatewayError> {
        let fail = |e: nix::Error| match e {
            nix::Error::EPERM | nix::Error::EACCES => GatewayError::NoPacketSocket,
            // How RestrictAddressFamilies of systemd refuses it.
            nix::Error::EAFNOSUPPORT => GatewayError::NoPacketSocket,
            e => GatewayError::os(format!("observe {}", interfaces.join(", ")))(e.into()),
        };
        let index = |name: &String| {
            let none = |_| skyhaul_net::NetError::NoInterface(name.clone());
            nix::net::if_::if_nametoindex(name.as_str()).map_err(none)
        };
        let indices = interfaces.iter().map(index).collect::<Result<Vec<_>, _>>()?;
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let all = SockProtocol::EthAll;
        let socket = socket(AddressFamily::Packet, SockType::Datagram, flags, all).map_err(fail)?;
        // The filter selects the interface: the address for a bind(2) to it cannot be made without unsafe code.
        SockRef::from(&socket)
            .attach_filter(&filter(&indices))
            .map_err(GatewayError::os("set a packet filter"))?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(fail)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1).map_err(fail)?;
        // A size beyond net.core.rmem_max needs privileges.
        if setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
            let _ = setsockopt(&socket, sockopt::RcvBuf, &BUFFER);
        }
        let control = nix::cmsg_space!(nix::sys::time::TimeSpec, u32);
        let tap = Self { socket, bytes: [0; CAPTURED], control, missed: 0 };
        tap.discard();
        Ok(tap)
    }
    /// Discards what was captured before there was a filter.
    fn discard(&self) {
        let mut byte = [0];
        while nix::sys::socket::recv(self.socket.as_raw_fd(), &mut byte, MsgFlags::MSG_DONTWAIT).is_ok() {}
    }

    /// The next packet; `None` if none waits.
    pub(crate) fn next(&mut self) -> Option<Captured<'_>> {
        let Self { socket, bytes, control, missed } = self;
        loop {
            let mut into = [IoSliceMut::new(bytes)];
            let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
            let got = match recvmsg::<LinkAddr>(socket.as_raw_fd(), &mut into, Some(control), flags) {
                Ok(got) => got,
                Err(nix::Error::EINTR) => continue,
                // Also when the interface is gone: a new one with the same name is not captured.
                Err(_) => return None,
            };
            let mut at = None;
            for message in got.cmsgs().into_iter().flatten() {
                match message {
                    ControlMessageOwned::ScmTimestampns(t) => at = Some(stamp::arrival(t)),
                    ControlMessageOwned::RxqOvfl(n) => *missed = n,
                    _ => {}
                }
            }
            let at = at.unwrap_or_else(Clock::now).as_nanos();
            let arrives = got.address.is_none_or(|a| a.pkttype() != OUTGOING);
            let length = got.bytes;
            let bytes = bytes.get(..length).unwrap_or(bytes);
            return Some(Captured { bytes, length, at, arrives });
        }
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
