//! How far a mobile node has received the data of its TCP flows, as it travels in a registration request.
//!
//! The acknowledgements of the last round trip were lost with the path that carried them, so whoever repeats what that path
//! lost does not know what arrived. The mobile node does. The value of a vendor extension ([`super::VendorExtension`]) of vendor
//! [`super::ENTERPRISE`] and type [`ReceivedData::KIND`] is a list of up to [`ReceivedData::CAPACITY`] of
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                     address of the peer                       |
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
use core::net::Ipv4Addr;

use alloc::vec::Vec;

use super::{Extension, VendorExtension};
use crate::SeqNumber;
use crate::fixed::Fixed;

/// Offsets in an entry.
mod entry {
    pub(super) const PEER: usize = 0;
    pub(super) const PEER_PORT: usize = 4;
    pub(super) const MOBILE_PORT: usize = 6;
    pub(super) const ACK: usize = 8;
    pub(super) const ECHO: usize = 12;
    pub(super) const LEN: usize = 16;
}

/// How far one TCP flow to the mobile node has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReceivedFlow {
    /// The other end.
    pub peer: Ipv4Addr,
    /// Its port.
    pub peer_port: u16,
    /// The port of the mobile node.
    pub mobile_port: u16,
    /// The acknowledgement number that the mobile node has sent: it has all data before that.
    pub ack: SeqNumber,
    /// The timestamp that it has echoed with that; `None` without timestamps, and for the one value that means so on the wire, zero.
    pub echo: Option<u32>,
}

impl ReceivedFlow {
    const NONE: Self =
        Self { peer: Ipv4Addr::UNSPECIFIED, peer_port: 0, mobile_port: 0, ack: SeqNumber(0), echo: None };
}

/// How far the flows of a mobile node have come, at most [`ReceivedData::CAPACITY`] of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReceivedData {
    len: u8,
    flows: [ReceivedFlow; Self::CAPACITY],
}

impl ReceivedData {
    /// The Vendor-NVSE-Type.
    pub const KIND: u16 = 2;
    /// The most flows that are told of: 128 bytes of a request that may have to cross a slow radio.
    pub const CAPACITY: usize = 8;
    /// Nothing is told.
    pub const EMPTY: Self = Self { len: 0, flows: [ReceivedFlow::NONE; Self::CAPACITY] };

    /// Adds a flow; returns `false` when the list is full.
    pub fn push(&mut self, flow: ReceivedFlow) -> bool {
        let Some(slot) = self.flows.get_mut(usize::from(self.len)) else { return false };
        *slot = flow;
        self.len += 1;
        true
    }

    /// The flows, in the order in which they were added.
    #[must_use]
    pub fn as_slice(&self) -> &[ReceivedFlow] {
        &self.flows[..usize::from(self.len)]
    }

    /// Whether nothing is told.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The extension that carries it; `None` when there is nothing to carry.
    #[must_use]
    pub fn extension(&self) -> Option<Extension> {
        (!self.is_empty()).then(|| Extension::Vendor(VendorExtension::ours(Self::KIND, self.encode())))
    }

    fn encode(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(entry::LEN * self.as_slice().len());
        for flow in self.as_slice() {
            let mut fixed = Fixed::<{ entry::LEN }>::ZERO;
            fixed.put::<{ entry::PEER }, 4>(flow.peer.octets());
            fixed.put::<{ entry::PEER_PORT }, 2>(flow.peer_port.to_be_bytes());
            fixed.put::<{ entry::MOBILE_PORT }, 2>(flow.mobile_port.to_be_bytes());
            fixed.put::<{ entry::ACK }, 4>(flow.ack.0.to_be_bytes());
            fixed.put::<{ entry::ECHO }, 4>(flow.echo.unwrap_or(0).to_be_bytes());
            value.extend(fixed.bytes());
        }
        value
    }

    /// Reads the value of the extension.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        let mut data = Self::EMPTY;
        for bytes in bytes.chunks_exact(entry::LEN).take(Self::CAPACITY) {
            let Ok((fixed, _)) = Fixed::<{ entry::LEN }>::split(bytes, "received data") else { break };
            data.push(ReceivedFlow {
                peer: Ipv4Addr::from_bits(fixed.u32::<{ entry::PEER }>()),
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
        f.debug_list().entries(self.as_slice()).finish()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(port: u16) -> ReceivedFlow {
        ReceivedFlow {
            peer: Ipv4Addr::new(198, 51, 100, 7),
            peer_port: 443,
            mobile_port: port,
            ack: SeqNumber(0x0102_0304),
            echo: (port % 2 == 1).then_some(0x0506_0708),
        }
    }

    fn value(extension: Option<Extension>) -> Vec<u8> {
        let Some(Extension::Vendor(vendor)) = extension else { panic!("{extension:?}") };
        assert_eq!((vendor.vendor(), vendor.kind()), (super::super::ENTERPRISE, ReceivedData::KIND));
        vendor.value().to_vec()
    }

    #[test]
    fn a_flow_takes_sixteen_bytes_in_network_order() {
        let data: ReceivedData = [flow(0xc001)].into_iter().collect();
        assert_eq!(value(data.extension()), [198, 51, 100, 7, 1, 0xbb, 0xc0, 1, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(ReceivedData::EMPTY.extension(), None);
    }

    #[test]
    fn the_list_is_cut_at_its_capacity_and_at_an_incomplete_entry() {
        let full: ReceivedData = (0..20).map(flow).collect();
        assert_eq!(full.as_slice().len(), ReceivedData::CAPACITY);
        let mut bytes = value(full.extension());
        assert_eq!(ReceivedData::decode(&bytes), full);
        bytes.extend(&bytes.clone());
        assert_eq!(ReceivedData::decode(&bytes), full);
        assert_eq!(ReceivedData::decode(&bytes[..31]).as_slice(), [flow(0)]);
        assert!(ReceivedData::decode(&[]).is_empty());
    }
}
