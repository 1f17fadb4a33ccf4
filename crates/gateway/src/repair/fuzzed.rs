//! The body of the fuzz target `repair_packets`.

#![allow(clippy::indexing_slicing, reason = "an index out of bounds is a fault of the test")]

use super::key::{Secret, Space};
use super::pair::{KEY, Pair, datagram};
use skyhaul_base::Duration;
use skyhaul_repair::wire::DIGITS;
use std::collections::BTreeSet;

/// Two gateways with an attacker between them, who drops, repeats, delays, changes and invents packets as the bytes say. Without the key, the
/// attacker brings about no datagram that was not sent, to the last bit but for marks, and none twice. With it, what is authentic may be any
/// frame: nothing panics, and nothing grows without limit.
///
/// Of the first byte, bit 0 says whether the attacker has the key, bits 1 to 3 how long the two run before (2 to their power ms), and bits 4
/// to 7 are the delay of the path in ms. Then each two bytes are a step: bit 0 of the first is the side, bits 1 to 3 are what happens there.
///
/// # Panics
/// If one of these fails.
pub(crate) fn packets(data: &[u8]) {
    let Some((first, mut rest)) = data.split_first() else { return };
    let insider = first & 1 == 1;
    let mut pair = Pair::new(Duration::from_millis(u64::from(first >> 4)));
    pair.run(Duration::from_millis(1 << (first >> 1 & 7)));
    let (mut sent, mut number) = ([BTreeSet::new(), BTreeSet::new()], 0);
    let mut seen: Vec<Vec<u8>> = Vec::new();
    while let Some((&[what, by], after)) = rest.split_first_chunk() {
        rest = after;
        let side = usize::from(what & 1);
        match what >> 1 & 7 {
            0 => {
                let d = datagram(number, by & 3, 32 + usize::from(by) * 5);
                number += 1;
                let now = pair.now;
                if pair.ends[side].offer(now, &d) {
                    sent[1 - side].insert(unmarked(&d));
                }
            }
            1 => drop(pair.flying[side].pop_front()),
            2 => pair.flying[side].extend(pair.flying[side].front().cloned()),
            3 => {
                if let Some((_, packet, _)) = pair.flying[side].front_mut() {
                    let at = usize::from(by) % packet.len();
                    packet[at] ^= 1 << (what >> 5);
                }
            }
            4 => {
                if let Some((_, packet, marked)) = pair.flying[side].front_mut() {
                    packet.truncate(usize::from(by));
                    *marked = by & 1 == 1;
                }
            }
            5 => {
                let (raw, after) = rest.split_at(usize::from(by).min(rest.len()));
                rest = after;
                let mut packet = raw.to_vec();
                let session = pair.ends[side].session().map(|s| (s.theirs, s.mine));
                if let (true, Some((theirs, mine))) = (insider, session) {
                    let next = pair.ends[side].session().map_or(0, |s| s.end.expected().number);
                    packet.splice(0..0, [DIGITS << 4 | what >> 6]);
                    packet.splice(1..1, next.to_be_bytes()[5..].iter().copied());
                    let clear = 1 + usize::from(DIGITS);
                    Secret::new(KEY).session(&theirs, &mine).seal(Space::Frames, next, clear, &mut packet);
                }
                let now = pair.now;
                pair.ends[side].receive(now, &mut packet, false);
            }
            6 => {
                // Sent again, to either end.
                seen.extend(pair.flying.iter().flatten().map(|(_, p, _)| p.clone()).take(4));
                if let Some(old) = seen.get(usize::from(by) % seen.len().max(1)) {
                    let (now, mut packet) = (pair.now, old.clone());
                    pair.ends[side].receive(now, &mut packet, false);
                }
                seen.truncate(64);
            }
            _ => pair.run(Duration::from_millis(u64::from(by))),
        }
        pair.serve();
        pair.flying.iter_mut().for_each(|f| f.truncate(256));
    }
    pair.run(Duration::from_secs(2));
    if insider {
        return;
    }
    for (sent, delivered) in sent.iter().zip(&pair.delivered) {
        let mut got = BTreeSet::new();
        for packet in delivered {
            assert!(sent.contains(&unmarked(packet)), "a datagram that nobody has sent");
            assert!(got.insert(packet[28..32].to_vec()), "a datagram twice");
        }
    }
}

/// A datagram without its traffic class, which may be marked, and the checksum of its header.
fn unmarked(datagram: &[u8]) -> Vec<u8> {
    [&datagram[..1], &datagram[2..10], &datagram[12..]].concat()
}
