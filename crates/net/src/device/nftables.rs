//! Notices of changes to nftables in a network namespace (NFNLGRP_NFTABLES, linux/netfilter/nf_tables.h).

use crate::error::NetError;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The group of such messages, and the bytes that each of them has before its attributes: those of netlink and of nfnetlink.
const GROUP: u32 = 7;
const HEADERS: usize = 16 + 4;
/// The last message of a transaction, NFT_MSG_NEWGEN of NFNL_SUBSYS_NFTABLES, and its attributes: who made it.
const NEW_GENERATION: u16 = 10 << 8 | 15;
const PROCESS: u16 = 2;
const NAME: u16 = 3;

/// Notices of changes.
#[derive(Debug)]
pub struct Changes(Socket);

/// The process that has changed something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// Its id.
    pub process: u32,
    /// Its name, cut by the kernel to 15 letters.
    pub name: String,
}

impl Changes {
    /// Of the calling thread's namespace, from now on.
    ///
    /// # Errors
    /// If the privileges are missing, or the kernel has no nftables.
    pub fn new() -> Result<Self, NetError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_NETFILTER)?;
            socket.bind(&SocketAddr::new(0, 0))?;
            socket.add_membership(GROUP)?;
            socket.set_non_blocking(true)?;
            Ok(socket)
        };
        open().map(Self).map_err(|e: io::Error| NetError::os("follow changes to nftables", e))
    }

    /// Whether anything has changed since the last call, and who did it last, if the kernel says so.
    pub fn take(&self) -> (bool, Option<Author>) {
        let (mut any, mut author) = (false, None);
        loop {
            match self.0.recv_from_full() {
                Ok((datagram, _)) => {
                    any = true;
                    author = last_author(&datagram).or(author);
                }
                // Some did not fit.
                Err(e) if e.raw_os_error() == Some(nix::errno::Errno::ENOBUFS as i32) => any = true,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return (any, author),
            }
        }
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Pieces of a text of messages or attributes, each with its type, length and content; netlink(7) aligns them to four bytes.
fn pieces(
    mut text: &[u8],
    head: usize,
    read: fn(&[u8]) -> Option<(u16, usize)>,
) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (kind, len) = read(text)?;
        let content = text.get(head..len)?;
        text = text.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, content))
    })
}

fn short(text: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(text.get(at..at + 2)?.try_into().ok()?))
}
fn long(text: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(text.get(at..at + 4)?.try_into().ok()?))
}

fn last_author(datagram: &[u8]) -> Option<Author> {
    let messages = pieces(datagram, HEADERS, |t| Some((short(t, 4)?, long(t, 0)? as usize)));
    let (_, generation) = messages.filter(|(kind, _)| *kind == NEW_GENERATION).last()?;
    let mut author = Author::default();
    for (kind, content) in pieces(generation, 4, |t| Some((short(t, 2)?, short(t, 0)?.into()))) {
        match kind {
            PROCESS => author.process = u32::from_be_bytes(content.try_into().ok()?),
            NAME => author.name = String::from_utf8_lossy(content).trim_end_matches('\0').to_owned(),
            _ => {}
        }
    }
    (author.process != 0).then_some(author)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Namespace;
    use std::process::Command;

    #[test]
    fn a_change_has_an_author() {
        let Ok(ns) = Namespace::new() else { return };
        let nft = |rule: &str| ns.within(|| Command::new("nft").arg(rule).status()).expect("enters");
        if nft("list tables").is_err() {
            return;
        }
        let changes = ns.within(Changes::new).expect("enters").expect("may");
        assert_eq!(changes.take(), (false, None));
        assert!(nft("add table inet theirs").expect("runs").success());
        let (changed, author) = changes.take();
        assert_eq!((changed, author.map(|a| a.name)), (true, Some("nft".into())));
        assert!(nft("list ruleset").expect("runs").success());
        assert_eq!(changes.take(), (false, None), "to look is no change");
    }

    #[test]
    fn messages_that_are_cut_say_nothing() {
        let generation = |len: u8| {
            let mut m = vec![len, 0, 0, 0, 15, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            m.extend([8, 0, 2, 0, 0, 0, 1, 2, 8, 0, 3, 0, b'n', b'f', b't', 0]);
            m
        };
        let found = Author { process: 258, name: "nft".into() };
        let whole = generation(36);
        assert_eq!(last_author(&whole), Some(found.clone()));
        assert_eq!(last_author(&[&whole[..], &whole[..7]].concat()), Some(found));
        for len in 0..whole.len() {
            assert_eq!(last_author(&whole[..len]), None, "{len}");
        }
        assert_eq!(last_author(&generation(0)), None);
    }
}
