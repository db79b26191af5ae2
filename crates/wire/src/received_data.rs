//! How far a mobile node has received the data of its TCP flows, as it travels in a registration request or a Binding Update.
//!
//! The acknowledgements of the last round trip were lost with the path that carried them, so whoever repeats what that path
//! lost does not know what arrived. The mobile node does. The value of a vendor extension ([`crate::mip4::VendorExtension`]), or
//! the data of a vendor's mobility option ([`crate::mip6::VendorOption`]), of vendor [`crate::ENTERPRISE`] and type
//! [`ReceivedData::KIND`] is a list of up to [`ReceivedData::CAPACITY`] of
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |       address of the peer: 4 octets, in the mobility option   |
//! |       16, where an IPv4 address is IPv4-mapped (RFC 4291)     |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |       port of the peer        |    port of the mobile node    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |            acknowledgement number sent to the peer            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |              timestamp echoed with it (TSecr)                 |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! The echoed timestamp is zero where the flow has none: what is older than it, the mobile node would refuse (RFC 7323 section 5.3).
//! Entries beyond the capacity and an incomplete one at the end are ignored when received.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};

use alloc::vec::Vec;

use crate::SeqNumber;
use crate::fixed::Fixed;

/// Offsets in what follows the address of an entry.
mod entry {
    pub(super) const PEER_PORT: usize = 0;
    pub(super) const MOBILE_PORT: usize = 2;
    pub(super) const ACK: usize = 4;
    pub(super) const ECHO: usize = 8;
    pub(super) const LEN: usize = 12;
}

/// How far one TCP flow to the mobile node has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReceivedFlow {
    /// The other end.
    pub peer: IpAddr,
    /// Its port.
    pub peer_port: u16,
    /// The port of the mobile node.
    pub mobile_port: u16,
    /// The acknowledgement number that the mobile node has sent: it has all data before that.
    pub ack: SeqNumber,
    /// The timestamp that it has echoed with that; `None` without timestamps, and for the one value that means so on the wire, zero.
    pub echo: Option<u32>,
}

/// A flow as it is kept: as small as it is on the wire, for the list travels in events.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Entry {
    /// An IPv4 address is IPv4-mapped.
    peer: [u8; 16],
    peer_port: u16,
    mobile_port: u16,
    ack: SeqNumber,
    /// Zero for none.
    echo: u32,
}

impl Entry {
    const NONE: Self = Self { peer: [0; 16], peer_port: 0, mobile_port: 0, ack: SeqNumber(0), echo: 0 };

    fn of(flow: &ReceivedFlow) -> Self {
        let peer = match flow.peer {
            IpAddr::V4(peer) => peer.to_ipv6_mapped(),
            IpAddr::V6(peer) => peer,
        };
        Self {
            peer: peer.octets(),
            peer_port: flow.peer_port,
            mobile_port: flow.mobile_port,
            ack: flow.ack,
            echo: flow.echo.unwrap_or(0),
        }
    }

    fn flow(&self) -> ReceivedFlow {
        ReceivedFlow {
            peer: IpAddr::V6(Ipv6Addr::from(self.peer)).to_canonical(),
            peer_port: self.peer_port,
            mobile_port: self.mobile_port,
            ack: self.ack,
            echo: Some(self.echo).filter(|echo| *echo != 0),
        }
    }
}

/// How far the flows of a mobile node have come, at most [`ReceivedData::CAPACITY`] of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReceivedData {
    len: u8,
    flows: [Entry; Self::CAPACITY],
}

impl ReceivedData {
    /// The Vendor-NVSE-Type, or Sub-Type.
    pub const KIND: u8 = 2;
    /// The most flows that are told of: 128 bytes of a request that may have to cross a slow radio, 224 of a Binding Update.
    pub const CAPACITY: usize = 8;
    /// Nothing is told.
    pub const EMPTY: Self = Self { len: 0, flows: [Entry::NONE; Self::CAPACITY] };

    /// Adds a flow; returns `false` when the list is full.
    pub fn push(&mut self, flow: ReceivedFlow) -> bool {
        let Some(slot) = self.flows.get_mut(usize::from(self.len)) else { return false };
        *slot = Entry::of(&flow);
        self.len += 1;
        true
    }

    /// The flows, in the order in which they were added.
    pub fn flows(&self) -> impl Iterator<Item = ReceivedFlow> {
        self.flows.iter().take(self.len()).map(Entry::flow)
    }

    /// How many they are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether nothing is told.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value, with addresses as `octets` writes them; flows whose address it does not write are left out.
    pub(crate) fn encode<const ADDRESS_LEN: usize>(
        &self,
        octets: impl Fn(IpAddr) -> Option<[u8; ADDRESS_LEN]>,
    ) -> Vec<u8> {
        let mut value = Vec::with_capacity((ADDRESS_LEN + entry::LEN) * self.len());
        for flow in self.flows() {
            let Some(peer) = octets(flow.peer) else { continue };
            let mut fixed = Fixed::<{ entry::LEN }>::ZERO;
            fixed.put::<{ entry::PEER_PORT }, 2>(flow.peer_port.to_be_bytes());
            fixed.put::<{ entry::MOBILE_PORT }, 2>(flow.mobile_port.to_be_bytes());
            fixed.put::<{ entry::ACK }, 4>(flow.ack.0.to_be_bytes());
            fixed.put::<{ entry::ECHO }, 4>(flow.echo.unwrap_or(0).to_be_bytes());
            value.extend(peer);
            value.extend(fixed.bytes());
        }
        value
    }

    /// Reads the value, with addresses as `address` reads them.
    pub(crate) fn decode<const ADDRESS_LEN: usize>(
        bytes: &[u8],
        address: impl Fn([u8; ADDRESS_LEN]) -> IpAddr,
    ) -> Self {
        let mut data = Self::EMPTY;
        for bytes in bytes.chunks_exact(ADDRESS_LEN + entry::LEN).take(Self::CAPACITY) {
            let Some((peer, rest)) = bytes.split_first_chunk::<ADDRESS_LEN>() else { break };
            let Ok((fixed, _)) = Fixed::<{ entry::LEN }>::split(rest, "received data") else { break };
            data.push(ReceivedFlow {
                peer: address(*peer),
                peer_port: fixed.u16::<{ entry::PEER_PORT }>(),
                mobile_port: fixed.u16::<{ entry::MOBILE_PORT }>(),
                ack: SeqNumber(fixed.u32::<{ entry::ACK }>()),
                echo: Some(fixed.u32::<{ entry::ECHO }>()).filter(|echo| *echo != 0),
            });
        }
        data
    }
}

impl Default for ReceivedData {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for ReceivedData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.flows()).finish()
    }
}

impl FromIterator<ReceivedFlow> for ReceivedData {
    /// The first [`ReceivedData::CAPACITY`] flows.
    fn from_iter<I: IntoIterator<Item = ReceivedFlow>>(flows: I) -> Self {
        let mut data = Self::EMPTY;
        flows.into_iter().take(Self::CAPACITY).for_each(|flow| {
            data.push(flow);
        });
        data
    }
}
