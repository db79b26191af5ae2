//! Probes of a mobile node's paths are answered; nothing follows from them.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::mip4::{AuthenticationKind, Message, PathCounts, PathProbe, PathProbeKind};

use super::{HomeAgent, Origin};
use crate::v4::io::{DEFAULT_TTL, REGISTRATION_PORT};
use crate::v4::{DropReason, Transmit, TransmitPayload, authentication};

impl HomeAgent {
    /// What the owner has put into the tunnel to `care_of` for `home_address` so far, and taken out of the one from there: the
    /// answer to a probe that comes next from there tells it. Without this it tells nothing.
    pub fn note_traffic(&mut self, home_address: Ipv4Addr, care_of: Ipv4Addr, counts: PathCounts) {
        self.noted = Some((home_address, care_of, counts));
    }

    /// Answers a probe, wherever it comes from, to there: its sender has the key, or repeats what somebody with it has sent.
    /// That is why there is a ration, and why nothing is remembered of it.
    pub(super) fn handle_probe(
        &mut self,
        now: Instant,
        origin: Origin,
        bytes: &[u8],
        message: &Message,
        probe: &PathProbe,
    ) {
        let source = origin.source;
        let noted = self.noted.take();
        if probe.kind != PathProbeKind::Probe || origin.destination != self.config.address {
            return self.outbox.drop(DropReason::NotForUs, source);
        }
        let Some(node) = self.nodes.get_mut(&probe.home_address) else {
            return self.outbox.drop(DropReason::UnknownHomeAddress, source);
        };
        let kind = AuthenticationKind::MobileHome;
        let associations = node.security.iter().map(|(association, _)| association);
        let association = match authentication::check(bytes, message, kind, associations) {
            Ok((association, _)) => association,
            Err(reason) => return self.outbox.drop(reason, source),
        };
        if !node.permitted {
            return self.outbox.drop(DropReason::NotOffered, source);
        }
        if !node.probes.allows(now) {
            return self.outbox.drop(DropReason::OverShare, source);
        }
        let counts = noted.filter(|(home, care_of, _)| (*home, *care_of) == (probe.home_address, source));
        let answer = PathProbe {
            kind: PathProbeKind::Answer,
            home_address: probe.home_address,
            sequence: probe.sequence,
            nonce: probe.nonce,
            counts: counts.map(|(_, _, counts)| counts),
            extensions: Vec::new(),
        };
        let mut bytes = Message::PathProbe(answer).emit();
        authentication::append(&mut bytes, kind, association);
        self.outbox.transmit(Transmit {
            interface: (source == probe.home_address).then_some(origin.interface),
            source: self.config.address,
            destination: source,
            ttl: DEFAULT_TTL,
            payload: TransmitPayload::Udp {
                source_port: REGISTRATION_PORT,
                destination_port: origin.source_port,
                bytes,
            },
        });
    }
}
