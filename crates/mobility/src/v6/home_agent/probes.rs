//! Probes of a mobile node's paths are answered; nothing follows from them.

use core::net::Ipv6Addr;

use careof_base::Instant;
use careof_wire::mip6::{Message, MobilityOptions, PathCounts, PathProbe, PathProbeKind};

use super::HomeAgent;
use crate::v6::{Addresses, DropReason, authentication};

impl HomeAgent {
    /// What the owner has put into the tunnel to `care_of` for `home_address` so far, and taken out of the one from there: the
    /// answer to a probe that comes next from there tells it. Without this it tells nothing.
    pub fn note_traffic(&mut self, home_address: Ipv6Addr, care_of: Ipv6Addr, counts: PathCounts) {
        self.noted = Some((home_address, care_of, counts));
    }

    /// Answers a probe, wherever it comes from, to there: its sender has the key, or repeats what somebody with it has sent. That is why
    /// there is a ration, and why nothing is remembered of it. The authenticator covers the address it came from, so that nobody can
    /// have the answer sent to somebody else: but through IPv4 it does not.
    pub(super) fn handle_probe(
        &mut self,
        now: Instant,
        addresses: Addresses,
        bytes: &[u8],
        probe: &PathProbe,
    ) {
        let source = addresses.source;
        let noted = self.noted.take();
        let home_address = probe.home_address;
        let ipv4 = addresses.ipv4_tunnel();
        // Through IPv4 the home address is the source (RFC 5555 section 4.4.2); otherwise the care-of address is, and stands alone.
        let is_way = match ipv4 {
            Some(_) => source == home_address,
            None => addresses.tunnel.is_none(),
        };
        let is_plain = addresses.home_address.is_none() && addresses.type_2_routing.is_none();
        if probe.kind != PathProbeKind::Probe || !is_way || !is_plain {
            return self.outbox.drop(DropReason::NotForUs, source);
        }
        let care_of = ipv4.map_or(source, |(entry, _)| entry.to_ipv6_mapped());
        if !self.can_be_care_of(care_of) {
            return self.outbox.drop(DropReason::NotForUs, source);
        }
        let way = Addresses { udp_port: addresses.udp_port, ..Addresses::new(self.config.address, source) };
        let way = if ipv4.is_some() { way.through(self.tunnel_to(care_of)) } else { way };
        let Some(node) = self.nodes.get_mut(&home_address) else {
            return self.outbox.drop(DropReason::UnknownHomeAddress, source);
        };
        let associations = node.security.iter();
        let association =
            match authentication::check(bytes, &probe.options, associations, care_of, home_address) {
                Ok(association) => association,
                Err(reason) => return self.outbox.drop(reason, source),
            };
        if !node.permitted {
            return self.outbox.drop(DropReason::NotOffered, source);
        }
        if !node.probes.allows(now) {
            return self.outbox.drop(DropReason::OverRation, source);
        }
        let counts = noted.filter(|(home, from, _)| (*home, *from) == (home_address, care_of));
        let answer = Message::PathProbe(PathProbe {
            kind: PathProbeKind::Answer,
            home_address,
            sequence: probe.sequence,
            nonce: probe.nonce,
            counts: counts.map(|(_, _, counts)| counts),
            options: MobilityOptions::new(),
        });
        let authentication = association.authentication(care_of, home_address);
        let Ok(bytes) = answer.emit_authenticated(way.source, way.destination, &authentication) else {
            return;
        };
        self.outbox.mobility(None, way, bytes);
    }
}
