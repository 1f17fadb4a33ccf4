//! TCP options as bytes. They are not read and written by the code under test, whose mistakes would cancel out.

/// An option; numbers as on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opt {
    /// End of the list.
    End,
    /// Padding.
    Nop,
    /// RFC 9293.
    Mss(u16),
    /// RFC 7323.
    Scale(u8),
    /// RFC 2018.
    SackPermitted,
    /// RFC 2018: edges.
    Sack(Vec<(u32, u32)>),
    /// RFC 7323: value and echo.
    Stamps(u32, u32),
    /// Probes are understood: flags, and log2 of the largest number of probes answered per RTT.
    Capability(u8, u8),
    /// A probe or its answer: kind and number.
    Probe(u8, u16),
    /// Anything else: kind and content.
    Other(u8, Vec<u8>),
}

/// Kind of experimental options (RFC 6994), and the experiment identifier of our probes.
const EXPERIMENT: u8 = 253;
const PROBES: [u8; 4] = *b"PEAC";

impl Opt {
    fn write(&self, out: &mut Vec<u8>) {
        let mut option = |kind: u8, content: &[u8]| {
            out.push(kind);
            out.push(content.len() as u8 + 2);
            out.extend_from_slice(content);
        };
        match self {
            Self::End => out.push(0),
            Self::Nop => out.push(1),
            Self::Mss(n) => option(2, &n.to_be_bytes()),
            Self::Scale(n) => option(3, &[*n]),
            Self::SackPermitted => option(4, &[]),
            Self::Sack(blocks) => {
                let edges = blocks.iter().flat_map(|(a, b)| [*a, *b]);
                option(5, &edges.flat_map(u32::to_be_bytes).collect::<Vec<_>>());
            }
            Self::Stamps(value, echo) => option(8, &[value.to_be_bytes(), echo.to_be_bytes()].concat()),
            Self::Capability(flags, most) => option(EXPERIMENT, &[&PROBES[..], &[*flags, *most]].concat()),
            Self::Probe(kind, id) => {
                option(EXPERIMENT, &[&PROBES[..], &[*kind, 0], &id.to_be_bytes()].concat());
            }
            Self::Other(kind, content) => option(*kind, content),
        }
    }
}

/// The bytes of a list of options, filled up to whole words.
#[must_use]
pub fn encode(options: &[Opt]) -> Vec<u8> {
    let mut out = Vec::new();
    for o in options {
        o.write(&mut out);
    }
    out.resize(out.len().next_multiple_of(4), 1);
    out
}

/// The options in these bytes, padding left out. A length below two, or beyond the end of the bytes, ends the list. A known
/// kind with content of another form is [`Opt::Other`].
#[must_use]
pub fn decode(mut bytes: &[u8]) -> Vec<Opt> {
    let mut all = Vec::new();
    let long = |b: &[u8]| u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
    while let [kind, rest @ ..] = bytes {
        match kind {
            0 => break,
            1 => {
                bytes = rest;
                continue;
            }
            _ => {}
        }
        let Some(len) = rest.first().map(|n| usize::from(*n)).filter(|n| (2..=bytes.len()).contains(n))
        else {
            break;
        };
        let content = &bytes[2..len];
        bytes = &bytes[len..];
        all.push(match (*kind, content) {
            (2, &[a, b]) => Opt::Mss(u16::from_be_bytes([a, b])),
            (3, &[n]) => Opt::Scale(n),
            (4, []) => Opt::SackPermitted,
            (5, edges) if edges.len() % 8 == 0 => {
                Opt::Sack(edges.chunks(8).map(|e| (long(e), long(&e[4..]))).collect())
            }
            (8, c) if c.len() == 8 => Opt::Stamps(long(c), long(&c[4..])),
            (EXPERIMENT, c) if c.starts_with(&PROBES) && c.len() == 6 => Opt::Capability(c[4], c[5]),
            (EXPERIMENT, c) if c.starts_with(&PROBES) && c.len() == 8 => {
                Opt::Probe(c[4], u16::from_be_bytes([c[6], c[7]]))
            }
            (kind, content) => Opt::Other(kind, content.to_vec()),
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_bytes() {
        let all = vec![
            Opt::Mss(1460),
            Opt::SackPermitted,
            Opt::Stamps(7, 9),
            Opt::Scale(3),
            Opt::Sack(vec![(1, 2), (3, 4)]),
            Opt::Capability(1, 0),
            Opt::Probe(0x81, 7),
            Opt::Other(30, vec![1, 2, 3]),
        ];
        let bytes = encode(&all);
        assert_eq!((decode(&bytes), bytes.len() % 4), (all, 0));
        assert_eq!(decode(&[2, 4, 5, 180, 0, 3, 3]), [Opt::Mss(1460)], "the end ends");
        assert_eq!(decode(&[2, 0, 1]), [], "a length of none");
    }
}
