//! Notices of changes to nftables in a network namespace (NFNLGRP_NFTABLES, linux/netfilter/nf_tables.h).

use super::netlink;
use crate::error::NetError;
use netlink_sys::{Socket, protocols::NETLINK_NETFILTER};
use std::os::fd::{AsFd, BorrowedFd};

/// The group of such messages, and the bytes that each of them has before its attributes: those of netlink and of nfnetlink.
const GROUP: u32 = 7;
const HEADERS: usize = 16 + 4;
/// The last message of a transaction, NFT_MSG_NEWGEN of NFNL_SUBSYS_NFTABLES, and its attributes: who made it.
const NEW_GENERATION: u16 = 10 << 8 | 15;
const PROCESS: u16 = 2;
const NAME: u16 = 3;
/// The attribute with the name of the table in all other messages (NFTA_TABLE_NAME, NFTA_CHAIN_TABLE, NFTA_RULE_TABLE and so on).
const TABLE: u16 = 1;

/// Which changes are told.
#[derive(Debug)]
enum Scope {
    /// Those of this table.
    Of(Vec<u8>),
    /// Those of all whose names do not begin like this.
    Beside(Vec<u8>),
}

impl Scope {
    /// Whether a message is of interest whose attributes have this name of a table.
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
    /// The transaction of which messages are coming concerns one of the tables.
    concerned: bool,
}

/// The process that has changed something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Author {
    /// Its id.
    pub process: u32,
    /// Its name, cut by the kernel to 15 letters.
    pub name: String,
}

impl Changes {
    /// Of a table in the calling thread's namespace, from now on.
    ///
    /// # Errors
    /// If the privileges are missing, or the kernel has no nftables.
    pub fn new(table: &str) -> Result<Self, NetError> {
        // Names end with a zero byte.
        Self::within(Scope::Of([table.as_bytes(), &[0]].concat()))
    }
    /// Of all tables but those whose names begin with `prefix`.
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

    /// Whether a transaction since the last call has changed something of these tables, and who made the last such one, if the kernel says
    /// so.
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
    use std::process::Command;

    #[test]
    fn a_change_has_an_author() {
        let Ok(ns) = Namespace::new() else { return };
        let nft = |rule: &str| ns.within(|| Command::new("nft").arg(rule).status()).expect("enters");
        if nft("list tables").is_err() {
            return;
        }
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
        // To look is no change, and another table is another's.
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
