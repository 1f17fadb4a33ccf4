//! Notices of changes to nftables in a network namespace (NFNLGRP_NFTABLES, linux/netfilter/nf_tables.h).

use super::netlink;
use crate::error::NetError;
use netlink_sys::{Socket, protocols::NETLINK_NETFILTER};
use std::os::fd::{AsFd, BorrowedFd};

/// The multicast group NFNLGRP_NFTABLES.
const GROUP: u32 = 7;
/// Headers of a message before its attributes, bytes: those of netlink and of nfnetlink.
const HEADERS: usize = 16 + 4;
/// The type of the last message of a transaction: NFT_MSG_NEWGEN of NFNL_SUBSYS_NFTABLES.
const NEW_GENERATION: u16 = 10 << 8 | 15;
/// The attributes of that message with the id and the name of the process (NFTA_GEN_PROC_PID, NFTA_GEN_PROC_NAME).
const PROCESS: u16 = 2;
const NAME: u16 = 3;
/// The attribute with the name of the table in all other messages (NFTA_TABLE_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_TABLE and so on).
const TABLE: u16 = 1;

/// The tables whose changes are reported.
#[derive(Debug)]
enum Scope {
    /// The table of this name, which ends with a zero byte.
    Of(Vec<u8>),
    /// All tables but those whose names begin with this prefix.
    Beside(Vec<u8>),
}

impl Scope {
    /// Whether a table of this name, which ends with a zero byte, is one of them.
    fn has(&self, table: &[u8]) -> bool {
        match self {
            Self::Of(ours) => table == ours,
            Self::Beside(ours) => !table.starts_with(ours),
        }
    }
}

/// Notices of changes to tables.
#[derive(Debug)]
pub struct Changes {
    socket: Socket,
    scope: Scope,
    /// A message of the transaction that is being received concerns one of the tables.
    concerned: bool,
}

/// The process that has changed something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// Its id.
    pub process: u32,
    /// Its name, cut by the kernel to 15 bytes.
    pub name: String,
}

impl Changes {
    /// Notices of changes to a table in the calling thread's namespace, from now on.
    ///
    /// # Errors
    /// If the privileges are missing, or the kernel has no nftables.
    pub fn new(table: &str) -> Result<Self, NetError> {
        Self::within(Scope::Of([table.as_bytes(), &[0]].concat()))
    }
    /// Notices of changes to all tables but those whose names begin with `prefix`.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn beside(prefix: &str) -> Result<Self, NetError> {
        Self::within(Scope::Beside(prefix.into()))
    }
    fn within(scope: Scope) -> Result<Self, NetError> {
        let socket = netlink::notices(NETLINK_NETFILTER, &[GROUP]);
        let socket = socket.map_err(|e| NetError::os("follow changes to nftables", e))?;
        Ok(Self { socket, scope, concerned: false })
    }

    /// Whether a transaction since the last call has changed something of these tables, and the author of the last such
    /// transaction, if the kernel names it. If the kernel has dropped notices, a change is assumed.
    pub fn take(&mut self) -> (bool, Option<Author>) {
        let Self { socket, scope, concerned } = self;
        let (mut any, mut author) = (false, None);
        let dropped = netlink::drain(socket, |datagram| {
            for (kind, content) in messages(datagram) {
                if kind != NEW_GENERATION {
                    *concerned |= attributes(content).any(|(kind, name)| kind == TABLE && scope.has(name));
                } else if std::mem::take(concerned) {
                    any = true;
                    author = author_of(content).or(author.take());
                }
            }
        });
        (any || dropped, author)
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The messages or attributes in `text`, each with its type and its content after `head` bytes; netlink(7) aligns them to
/// four bytes. `read` returns type and length of the first one.
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

/// The messages of a datagram, by type, without their headers.
fn messages(datagram: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    pieces(datagram, HEADERS, |t| Some((short(t, 4)?, long(t, 0)? as usize)))
}
fn attributes(content: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    pieces(content, 4, |t| Some((short(t, 2)?, short(t, 0)?.into())))
}

/// The author of a transaction, from its last message.
fn author_of(generation: &[u8]) -> Option<Author> {
    let mut author = Author::default();
    for (kind, content) in attributes(generation) {
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
    use skyhaul_testkit::need::{granted, program};
    use std::process::Command;

    #[test]
    fn a_change_has_an_author() {
        let Some(ns) = granted(Namespace::new()) else { return };
        if !program("nft") {
            return;
        }
        let nft = |rule: &str| ns.within(|| Command::new("nft").arg(rule).status()).expect("enters");
        let mut changes = ns.within(|| Changes::new("ours")).expect("enters").expect("may");
        let mut others = ns.within(|| Changes::beside("ou")).expect("enters").expect("may");
        assert_eq!(changes.take(), (false, None));
        for rule in
            ["add table inet ours", "add chain inet ours c", "add rule inet ours c accept", "flush ruleset"]
        {
            assert!(nft(rule).expect("runs").success());
            let (changed, author) = changes.take();
            assert_eq!((changed, author.map(|a| a.name)), (true, Some("nft".into())), "{rule}");
            assert!(!others.take().0, "{rule}");
        }
        // A listing is no change, and a change to another table is reported only by the other instance.
        for rule in ["list ruleset", "add table inet theirs", "add chain inet theirs ours", "flush ruleset"] {
            assert!(nft(rule).expect("runs").success());
            assert_eq!(changes.take(), (false, None), "{rule}");
            assert_eq!(others.take().0, !rule.starts_with("list"), "{rule}");
        }
    }

    #[test]
    fn messages_that_are_cut_say_nothing() {
        let generation = |len: u8| {
            let mut m = vec![len, 0, 0, 0, 15, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            m.extend([8, 0, 2, 0, 0, 0, 1, 2, 8, 0, 3, 0, b'n', b'f', b't', 0]);
            m
        };
        let last_author = |datagram: &[u8]| {
            let all = messages(datagram).filter(|(kind, _)| *kind == NEW_GENERATION);
            all.filter_map(|(_, content)| author_of(content)).last()
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
