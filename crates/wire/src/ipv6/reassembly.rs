//! Putting fragments together again (RFC 8200 section 4.5, RFC 5722, RFC 6946, RFC 7112).

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use careof_base::Instant;

use super::extension_header::{ExtensionHeaderKind, ExtensionHeaders, FragmentHeader};
use super::fragmentation::{set_byte, set_payload_len, upper_layer_header_len};
use super::{Ipv6Header, PacketError};
use crate::Error;
use crate::icmpv6::ParameterProblemCode;
use crate::reassembly::{Fragment, Fragments, Head, ReassemblyCounters, ReassemblyLimits};

/// Tells the fragments of one packet from those of another. The Next Header does not: that of the first fragment counts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    identification: u32,
}

/// The part of the first fragment that stands in front of its Fragment header, which now names what stood behind that.
struct Unfragmentable(Vec<u8>);

impl Head for Unfragmentable {
    fn cost(&self) -> usize {
        self.0.len()
    }
}

/// Puts fragments together, within limits.
///
/// The owner hands every packet to [`Reassembler::handle_fragment`], which gives the whole one as soon as it is there, and calls
/// [`Reassembler::handle_timeout`] at [`Reassembler::next_timeout`]. Fragments that overlap, but for exact duplicates, end the
/// packet (RFC 5722). A packet that is whole although it has a Fragment header never mixes with others (RFC 6946). A first
/// fragment without the whole chain of headers is refused (RFC 7112). No Time Exceeded is made for packets that run out of time.
pub struct Reassembler {
    fragments: Fragments<Key, Unfragmentable>,
}

impl Reassembler {
    /// A reassembler that holds nothing.
    #[must_use]
    pub const fn new(limits: ReassemblyLimits) -> Self {
        Self { fragments: Fragments::new(limits) }
    }

    /// What became of fragments so far.
    #[must_use]
    pub const fn counters(&self) -> &ReassemblyCounters {
        &self.fragments.counters
    }

    /// Fragments that wait for others.
    #[must_use]
    pub fn fragments_waiting(&self) -> usize {
        self.fragments.waiting()
    }

    /// When [`Reassembler::handle_timeout`] has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.fragments.next_timeout()
    }

    /// Drops the packets that have waited too long.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.fragments.handle_timeout(now);
    }

    /// Takes the packet `bytes`: gives back a whole one, completed by this fragment or none to begin with, or `None` while
    /// others are missing. Of a packet that is put together the Fragment header is gone.
    ///
    /// # Errors
    ///
    /// Bytes that are no packet, or a fragment that cannot be one; some of these are answered with a Parameter Problem. Each is
    /// counted as [`ReassemblyCounters::dropped_malformed`] as well.
    pub fn handle_fragment(&mut self, now: Instant, bytes: &[u8]) -> Result<Option<Vec<u8>>, PacketError> {
        self.handle_timeout(now);
        let received = match Received::parse(bytes) {
            Ok(Some(received)) => received,
            Ok(None) => return Ok(Some(bytes.to_vec())),
            Err(error) => {
                self.fragments.counters.dropped_malformed += 1;
                return Err(error);
            }
        };
        let Received { header, fragment, unfragmentable, named_at, payload } = received;
        let mut head = unfragmentable.to_vec();
        set_byte(&mut head, named_at, fragment.next_header);
        if fragment.is_atomic() {
            return Ok(Some(join(head, [payload])));
        }
        let fragment = Fragment {
            key: Key {
                source: header.source,
                destination: header.destination,
                identification: fragment.identification,
            },
            offset: usize::from(fragment.offset),
            more_fragments: fragment.more_fragments,
            payload,
            head: Unfragmentable(head),
        };
        let Some(whole) = self.fragments.handle(now, fragment) else { return Ok(None) };
        let Unfragmentable(head) = whole.head;
        if head.len() + whole.len > usize::from(Ipv6Header::LEN) + usize::from(u16::MAX) {
            // Each fragment was short enough, but with the headers of the first the whole is not.
            let counters = &mut self.fragments.counters;
            counters.datagrams_reassembled -= 1;
            counters.fragments_reassembled -= whole.pieces.len() as u64;
            counters.dropped_inconsistent += whole.pieces.len() as u64;
            return Ok(None);
        }
        Ok(Some(join(head, whole.pieces.iter().map(Vec::as_slice))))
    }
}

fn join<'a>(mut packet: Vec<u8>, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    pieces.into_iter().for_each(|piece| packet.extend(piece));
    set_payload_len(&mut packet);
    packet
}

/// A fragment as received.
struct Received<'a> {
    header: Ipv6Header,
    fragment: FragmentHeader,
    /// All that stands in front of the Fragment header.
    unfragmentable: &'a [u8],
    /// Where the Next Header field stands that names the Fragment header.
    named_at: usize,
    /// All that stands behind it.
    payload: &'a [u8],
}

impl<'a> Received<'a> {
    /// A packet whose fragment fields make sense; `None` where it has no Fragment header.
    fn parse(bytes: &'a [u8]) -> Result<Option<Self>, PacketError> {
        let (header, payload) = Ipv6Header::parse(bytes)?;
        let packet = bytes.get(..usize::from(Ipv6Header::LEN) + payload.len()).unwrap_or(bytes);
        let mut headers = ExtensionHeaders::new(packet, &header);
        let found = loop {
            match headers.next() {
                None => return Ok(None),
                Some(Err(error)) => return Err(error.into()),
                Some(Ok(extension)) if extension.kind == ExtensionHeaderKind::Fragment => break extension,
                Some(Ok(_)) => {}
            }
        };
        let fragment = FragmentHeader::decode(found.bytes)?;
        let payload_at = found.offset + found.bytes.len();
        let (unfragmentable, payload) =
            (packet.get(..found.offset).unwrap_or_default(), packet.get(payload_at..).unwrap_or_default());
        let problem = |code, pointer: usize| PacketError::ParameterProblem { code, pointer: pointer as u32 };
        if payload.is_empty() && !fragment.is_atomic() {
            let (field, offset) = ("length of a fragment", found.offset);
            return Err(Error::Invalid { field, offset, found: 0, expected: "1 or more" }.into());
        }
        if fragment.more_fragments && !payload.len().is_multiple_of(8) {
            return Err(problem(ParameterProblemCode::ErroneousField, Ipv6Header::PAYLOAD_LENGTH));
        }
        let extensions_len = unfragmentable.len() - usize::from(Ipv6Header::LEN);
        if extensions_len + usize::from(fragment.offset) + payload.len() > usize::from(u16::MAX) {
            const OFFSET_FIELD: usize = 2;
            return Err(problem(ParameterProblemCode::ErroneousField, found.offset + OFFSET_FIELD));
        }
        if fragment.offset == 0 && fragment.more_fragments && !holds_whole_chain(packet, headers) {
            return Err(problem(ParameterProblemCode::IncompleteHeaderChain, 0));
        }
        Ok(Some(Self { header, fragment, unfragmentable, named_at: found.named_at, payload }))
    }
}

/// Whether the first fragment `packet` holds all headers up to the upper-layer header, that one included. `headers` has come as
/// far as the Fragment header.
fn holds_whole_chain(packet: &[u8], mut headers: ExtensionHeaders<'_>) -> bool {
    if headers.by_ref().any(|extension| extension.is_err()) {
        return false;
    }
    let upper_layer = packet.get(headers.payload_offset()..).unwrap_or_default();
    upper_layer.len() >= upper_layer_header_len(headers.protocol(), upper_layer)
}

#[cfg(test)]
mod tests;
