//! The agent's own messages: registrations by UDP, discovery and errors by ICMP.

use std::net::Ipv4Addr;

use careof_lab::{AgentSocket, Error, IcmpSocket, OutgoingDatagram, OutgoingIcmp};
use careof_mobility::v4::{ALL_MOBILITY_AGENTS, ALL_ROUTERS, REGISTRATION_PORT, Transmit, TransmitPayload};

use super::Role;
use super::interfaces::{Interface, Interfaces};

/// The longest message taken; the rest of a longer one is cut off, and then it does not parse.
pub(super) const LONGEST_MESSAGE: usize = 4096;

/// ICMP types (RFC 792, RFC 1256).
const UNREACHABLE: u8 = 3;
const ADVERTISEMENT: u8 = 9;
const SOLICITATION: u8 = 10;

/// The sockets of the agent's own messages.
#[derive(Debug)]
pub(super) struct Signalling {
    pub(super) udp: AgentSocket,
    pub(super) icmp: IcmpSocket,
    role: Role,
    /// Messages that could not be sent.
    pub(super) unsent: u64,
    /// Times that a socket had something to tell and no message.
    pub(super) unreadable: u64,
}

impl Signalling {
    pub(super) fn open(role: Role) -> Result<Self, Error> {
        let types: &[u8] = match role {
            Role::Home | Role::AnchorPoint | Role::AccessRouter | Role::Relay => &[SOLICITATION],
            // What became of the requests it relayed.
            Role::Foreign => &[SOLICITATION, UNREACHABLE],
            Role::Mobile | Role::Correspondent => &[ADVERTISEMENT],
        };
        Ok(Self {
            udp: AgentSocket::open(REGISTRATION_PORT)?,
            icmp: IcmpSocket::open(types)?,
            role,
            unsent: 0,
            unreadable: 0,
        })
    }

    /// Listens on an interface that has appeared to the groups that agents are addressed by.
    pub(super) fn join(&self, interface: &Interface) {
        let Some(index) = interface.index().filter(|_| self.role != Role::Mobile) else { return };
        // An interface without multicast has nobody who would use it.
        let _ = self.udp.join(ALL_MOBILITY_AGENTS, index);
        let _ = self.icmp.join(ALL_ROUTERS, index);
    }

    /// Sends what the agent has to say.
    pub(super) fn send(&mut self, transmit: &Transmit, interfaces: &Interfaces) {
        let interface = match transmit.interface {
            None => None,
            Some(id) => match interfaces.index_of(id) {
                Some(index) => Some(index),
                // It is gone, and there is nobody to tell.
                None => return self.unsent += 1,
            },
        };
        let (source, destination, ttl) = (transmit.source, transmit.destination, transmit.ttl);
        let sent = match &transmit.payload {
            TransmitPayload::Udp { destination_port, bytes, .. } => {
                let destination_port = *destination_port;
                self.udp.send(&OutgoingDatagram {
                    interface,
                    source,
                    destination,
                    destination_port,
                    ttl,
                    payload: bytes,
                })
            }
            TransmitPayload::Icmp { bytes } => {
                self.icmp.send(&OutgoingIcmp { interface, source, destination, ttl, message: bytes })
            }
        };
        if sent.is_err() {
            self.unsent += 1;
        }
    }

    /// Sends an ICMP error of the data plane by the host's routes.
    pub(super) fn send_error(&mut self, source: Ipv4Addr, destination: Ipv4Addr, message: &[u8]) {
        let interface = None;
        if self.icmp.send(&OutgoingIcmp { interface, source, destination, ttl: 64, message }).is_err() {
            self.unsent += 1;
        }
    }
}
