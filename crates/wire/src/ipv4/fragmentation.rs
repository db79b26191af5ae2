//! Cutting a datagram to an MTU (RFC 791 section 3.2).

use alloc::vec::Vec;

use etherparse::{IpFragOffset, Ipv4Options};

use super::Received;
use crate::Error;

/// The unit of the Fragment Offset, bytes.
const UNIT: usize = 8;

/// Why a datagram cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FragmentationError {
    /// It is no datagram.
    #[error(transparent)]
    Malformed(#[from] Error),
    /// Its DF bit is set: the sender is told with Fragmentation Needed.
    #[error("{len} bytes do not fit an MTU of {mtu} and DF is set")]
    DontFragment {
        /// Bytes of the datagram.
        len: usize,
        /// The MTU, bytes.
        mtu: u16,
    },
    /// The MTU leaves no room for 8 bytes of payload.
    #[error("an MTU of {mtu} leaves no room behind a header of {header_len} bytes")]
    MtuTooSmall {
        /// The MTU, bytes.
        mtu: u16,
        /// Bytes of the datagram's header.
        header_len: usize,
    },
}

/// Cuts `datagram` into fragments of at most `mtu` bytes; one that fits comes back as it is. A fragment can
/// be cut further.
///
/// # Errors
///
/// [`FragmentationError`]; nothing has been cut then.
pub fn fragment(datagram: &[u8], mtu: u16) -> Result<Vec<Vec<u8>>, FragmentationError> {
    let (received, mut payload) = Received::parse_whole(datagram)?;
    let header_len = received.header_len;
    let len = header_len + payload.len();
    if len <= usize::from(mtu) {
        return Ok(alloc::vec![datagram.get(..len).unwrap_or(datagram).to_vec()]);
    }
    if received.header.dont_fragment {
        return Err(FragmentationError::DontFragment { len, mtu });
    }
    // Later headers are no longer than the first, so what holds for it holds for all.
    if usize::from(mtu) < header_len + UNIT {
        return Err(FragmentationError::MtuTooSmall { mtu, header_len });
    }
    let mut fragments = Vec::with_capacity(len / usize::from(mtu) + 1);
    let mut header = received.to_etherparse();
    let mut offset = usize::from(received.header.fragment_offset);
    while !payload.is_empty() {
        let header_len = header.header_len();
        let room = usize::from(mtu).saturating_sub(header_len);
        let take = if payload.len() <= room { payload.len() } else { room / UNIT * UNIT };
        let (now, later) = payload.split_at(take);
        header.more_fragments = received.header.more_fragments || !later.is_empty();
        // A datagram of 65,535 bytes has offsets of 13 bits.
        header.fragment_offset = IpFragOffset::try_new((offset / UNIT) as u16).unwrap_or_default();
        header.total_len = (header_len + take) as u16;
        header.header_checksum = header.calc_header_checksum();
        let mut bytes = Vec::with_capacity(header_len + take);
        bytes.extend(header.to_bytes());
        bytes.extend(now);
        fragments.push(bytes);
        header.options = copied_options(&header.options);
        offset += take;
        payload = later;
    }
    Ok(fragments)
}

/// The options that go into every fragment, not only into the first.
fn copied_options(options: &Ipv4Options) -> Ipv4Options {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const COPIED: u8 = 0x80;
    let mut copied = Vec::new();
    let mut rest: &[u8] = options;
    while let Some((&kind, after)) = rest.split_first() {
        let len = match (kind, after.first()) {
            (END, _) => break,
            (NO_OPERATION, _) => 1,
            (_, Some(&len)) if len >= 2 => usize::from(len),
            _ => break,
        };
        let Some((option, after)) = rest.split_at_checked(len) else { break };
        if kind & COPIED != 0 {
            copied.extend(option);
        }
        rest = after;
    }
    copied.resize(copied.len().next_multiple_of(4), END);
    Ipv4Options::try_from(copied.as_slice()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv4::Ipv4Header;

    fn datagram(header: Ipv4Header, len: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        Ipv4Header { payload_len: len, ..header }.emit(&mut bytes);
        bytes.extend((0..len).map(|i| i as u8));
        bytes
    }

    fn shapes(fragments: &[Vec<u8>]) -> Vec<(u16, u16, bool)> {
        let shape = |bytes: &Vec<u8>| {
            let (header, payload) = Ipv4Header::parse(bytes).unwrap();
            assert_eq!(payload[0], header.fragment_offset as u8);
            (header.fragment_offset, header.payload_len, header.more_fragments)
        };
        fragments.iter().map(shape).collect()
    }

    #[test]
    fn fragments_are_cut_at_multiples_of_eight() {
        let bytes = datagram(Ipv4Header::default(), 100);
        assert_eq!(fragment(&bytes, 120).unwrap().concat(), bytes);
        let fragments = fragment(&bytes, 63).unwrap();
        assert_eq!(shapes(&fragments), [(0, 40, true), (40, 40, true), (80, 20, false)]);
    }

    #[test]
    fn fragments_of_a_fragment_keep_their_place() {
        let header = Ipv4Header { more_fragments: true, fragment_offset: 800, ..Ipv4Header::default() };
        let fragments = fragment(&datagram(header, 48), 60).unwrap();
        let places: Vec<_> = fragments.iter().map(|bytes| Ipv4Header::parse(bytes).unwrap().0).collect();
        assert_eq!(
            places.iter().map(|h| (h.fragment_offset, h.payload_len)).collect::<Vec<_>>(),
            [(800, 40), (840, 8)]
        );
        assert!(places.iter().all(|header| header.more_fragments));
    }

    #[test]
    fn df_and_a_tiny_mtu_are_refused() {
        let bytes = datagram(Ipv4Header { dont_fragment: true, ..Ipv4Header::default() }, 100);
        assert_eq!(fragment(&bytes, 68), Err(FragmentationError::DontFragment { len: 120, mtu: 68 }));
        let bytes = datagram(Ipv4Header::default(), 100);
        assert_eq!(fragment(&bytes, 27), Err(FragmentationError::MtuTooSmall { mtu: 27, header_len: 20 }));
        assert_eq!(fragment(&bytes, 28).unwrap().len(), 13);
        let nothing = datagram(Ipv4Header::default(), 0);
        for mtu in [0, 19] {
            assert_eq!(fragment(&nothing, mtu), Err(FragmentationError::MtuTooSmall { mtu, header_len: 20 }));
        }
        assert_eq!(fragment(&nothing, 20).unwrap().concat(), nothing);
    }

    #[test]
    fn only_options_marked_so_are_copied() {
        // Record route (7) is not copied, strict source route (137) is; no-operations pad.
        let options = Ipv4Options::from([7, 7, 4, 0, 0, 0, 0, 1, 137, 3, 4, 0]);
        assert_eq!(copied_options(&options).as_slice(), [137, 3, 4, 0]);
        assert_eq!(copied_options(&Ipv4Options::from([137, 0, 0, 0])).as_slice(), []);
        assert_eq!(copied_options(&Ipv4Options::from([1, 1, 137, 9])).as_slice(), []);
    }
}
