//! Parses pure acknowledgements.

use skyhaul_path::Acknowledgement;
use skyhaul_wire::checksum::repaired;

/// The flags ECE and CWR (RFC 3168 §6.1).
pub(super) const ECN_FLAGS: u8 = 0xc0;

/// Parses the TCP header at offset `tcp` of `bytes`, which is that of a pure acknowledgement.
pub(super) fn read(bytes: &[u8], tcp: usize) -> Option<Acknowledgement> {
    let header = bytes.get(tcp..)?;
    let fixed = header.first_chunk::<20>()?;
    let options = header.get(20..usize::from(fixed[12] >> 4) * 4)?;
    let (stamp, other) = options_of(options);
    Some(Acknowledgement {
        connection: 0,
        number: u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]),
        ecn: fixed[13] & ECN_FLAGS,
        stamp,
        // A future standard may assign the reserved bits.
        tells_more: other || fixed[12] & 15 != 0,
    })
}

/// The timestamp, and whether there are other or malformed options (RFC 9293 §3.1, RFC 7323 §3).
fn options_of(mut options: &[u8]) -> (Option<u32>, bool) {
    let mut stamp = None;
    loop {
        options = match *options {
            [] | [0, ..] => return (stamp, false),
            [1, ref rest @ ..] => rest,
            [8, 10, a, b, c, d, _, _, _, _, ref rest @ ..] => {
                stamp = Some(u32::from_be_bytes([a, b, c, d]));
                rest
            }
            _ => return (stamp, true),
        };
    }
}

/// Writes another acknowledgement number into the TCP header at offset `tcp`, and updates the checksum
/// incrementally (RFC 1624 §3).
pub(super) fn renumber(bytes: &mut [u8], tcp: usize, number: u32) -> Option<()> {
    let header = bytes.get_mut(tcp..)?.first_chunk_mut::<20>()?;
    let word = |at: [u8; 2]| u16::from_be_bytes(at);
    let [old, new] = [[header[8], header[9], header[10], header[11]], number.to_be_bytes()];
    let sum = word([header[16], header[17]]);
    let sum = repaired(sum, word([old[0], old[1]]), word([new[0], new[1]]));
    let sum = repaired(sum, word([old[2], old[3]]), word([new[2], new[3]]));
    header[8..12].copy_from_slice(&new);
    header[16..18].copy_from_slice(&sum.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_a_link_reads_are_told_from_others() {
        let stamps = [1, 1, 8, 10, 0, 0, 1, 2, 9, 9, 9, 9];
        assert_eq!(options_of(&[]), (None, false));
        assert_eq!(options_of(&stamps), (Some(258), false));
        // SACK (RFC 2018 §3) behind it; an option cut short; one of no length; the end of the list.
        assert_eq!(
            options_of(&[&stamps[..], &[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2]].concat()),
            (Some(258), true)
        );
        assert_eq!(options_of(&stamps[..11]), (None, true));
        assert_eq!(options_of(&[254, 0]), (None, true));
        assert_eq!(options_of(&[0, 5, 10]), (None, false));
    }

    #[test]
    fn bytes_that_are_cut_say_nothing() {
        let mut bytes = [0; 40];
        (bytes[20 + 8..20 + 12]).copy_from_slice(&[1, 2, 3, 4]);
        (bytes[32], bytes[33]) = (5 << 4, 0x50);
        let said = read(&bytes, 20).unwrap();
        assert_eq!((said.number, said.ecn, said.tells_more), (0x0102_0304, 0x40, false));
        bytes[32] = 5 << 4 | 1;
        assert!(read(&bytes, 20).unwrap().tells_more);
        bytes[32] = 6 << 4;
        assert_eq!((read(&bytes, 20), read(&bytes, 21), read(&bytes, 41)), (None, None, None));
        bytes[32] = 4 << 4;
        assert_eq!(read(&bytes, 20), None);
    }
}
