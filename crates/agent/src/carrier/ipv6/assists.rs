//! The assists of an agent of Mobile IPv6: what they are shown and told, and the ways of what they have kept.

use core::convert::Infallible;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use careof_assist::{Input, PathId, Told};
use careof_base::Instant;
use careof_mobility::v6::Event;
use careof_mobility::{HandoverEvent, PathProperties};
use careof_wire::icmpv6::{DestinationUnreachable, Icmpv6Message, QuotedPacket, UnreachableCode};
use careof_wire::ipv6::Ipv6Header;
use careof_wire::{IpHeader, protocol};

use super::agent::Agent;
use super::behind::Inside;
use super::packets::encapsulated;
use super::{Ipv6Carrier, Ipv6Setup};
use crate::carrier::assist_actions::{Ways, do_for_assist};
use crate::carrier::assists::{Assists, Heading, Shown};
use crate::carrier::error_reports::SegmentReport;
use crate::carrier::tunnel_entry::Way;
use crate::carrier::{Error, Role};

/// The assists that a setup asks for.
pub(super) fn assistance(setup: &Ipv6Setup) -> Result<Option<Box<Assists>>, Error> {
    let Some(config) = setup.assist() else { return Ok(None) };
    let own = setup.home_side().map(|side| side.address).or(setup.home_address());
    let own = own.unwrap_or(Ipv6Addr::UNSPECIFIED);
    Ok(Some(Box::new(Assists::new(config.clone(), own.into(), setup.host().tunnel_mtu)?)))
}

impl Ipv6Carrier {
    pub(in crate::carrier) fn assists(&mut self) -> Option<&mut Assists> {
        self.assists.as_deref_mut()
    }

    pub(in crate::carrier) fn tell_assists_of(&mut self, input: &Input<'_>) -> Result<(), Error> {
        let now = self.clock.now();
        if let Some(assists) = &mut self.assists {
            assists.handle_event(now, input);
        }
        self.finish_turn()
    }

    /// Mobile node: what an update that it may send now says of its flows.
    pub(super) fn tell_received_data(&mut self, now: Instant) {
        if let (Agent::Mobile(node), Some(assists)) = (&mut self.agent, &self.assists)
            && let Some(mobile) = self.setup.home_address()
        {
            node.set_received_data(assists.received_data(now, mobile.into()));
        }
    }

    /// What an event of the agent means to assists; `moved` are the mobile nodes whose path may be another, and what they told.
    pub(super) fn tell_assists(&mut self, now: Instant, event: &Event, moved: &mut BTreeMap<Ipv6Addr, Told>) {
        let Some(assists) = &mut self.assists else { return };
        match event {
            Event::Binding(change) if matches!(self.agent, Agent::Home(_)) => {
                moved.entry(change.home_address).or_default().take_in(change.path, change.received);
            }
            Event::Handover(event) => {
                if let Some(mobile) = self.setup.home_address() {
                    if let (HandoverEvent::Registered { .. }, Agent::Mobile(node)) = (event, &self.agent) {
                        let peers = node.outdated_correspondents();
                        let mobile = mobile.into();
                        assists.handle_event(now, &Input::Outdated { mobile, peers: &peers });
                    }
                    let (mobile, event) = (mobile.into(), &event.phase());
                    assists.handle_event(now, &Input::Handover { mobile, event });
                }
            }
            Event::Correspondent(change) => {
                if let Some(mobile) = self.setup.home_address() {
                    let (mobile, peer) = (mobile.into(), change.correspondent.into());
                    assists.handle_event(now, &Input::Updated { mobile, peer });
                }
            }
            _ => {}
        }
    }

    /// Home agent: tells the assists by which paths a mobile node is reached now. `bound` is its address that is bound: at a mobility
    /// anchor point the regional one, while the assists know mobile nodes by home addresses.
    pub(super) fn tell_paths(&mut self, now: Instant, bound: Ipv6Addr, told: &Told) {
        if self.setup.role() != Role::AnchorPoint {
            return self.tell_paths_to(now, bound, bound, told);
        }
        // Who has left the domain has told the home agent, whose assists see to that movement.
        if self.is_within_domain(bound) {
            for home_address in self.behind.homes_of(bound) {
                self.tell_paths_to(now, home_address, bound, told);
            }
        }
        if matches!(&self.agent, Agent::Home(agent) if agent.bindings_of(bound).is_empty()) {
            self.behind.forget(bound);
        }
    }

    /// Mobility anchor point: whether the mobile node with this regional care-of address is in the domain, or nowhere.
    fn is_within_domain(&self, regional: Ipv6Addr) -> bool {
        let (Agent::Home(agent), Ipv6Setup::AnchorPoint(setup)) = (&self.agent, &self.setup) else {
            return false;
        };
        let domain = &setup.config.domain;
        let mut bindings = agent.bindings_of(regional).iter();
        domain.is_empty()
            || bindings.all(|binding| domain.iter().any(|prefix| prefix.contains(binding.care_of)))
    }

    /// Home agent: tells the assists by which paths the mobile node with this home address is reached, whose address `bound` is bound.
    pub(super) fn tell_paths_to(&mut self, now: Instant, mobile: Ipv6Addr, bound: Ipv6Addr, told: &Told) {
        let (Agent::Home(agent), Some(assists)) = (&self.agent, &mut self.assists) else { return };
        let bindings = agent.bindings_of(bound).iter();
        let paths: Vec<_> = bindings
            .map(|binding| {
                let known = binding.path.map(PathProperties::from).unwrap_or_default();
                (path_to(binding.care_of), known)
            })
            .collect();
        let Told { old_lost, received } = *told;
        let mobile = mobile.into();
        assists.handle_event(now, &Input::Paths { mobile, paths: &paths, old_lost, received });
    }

    /// Home agent: a tunnel does not reach its end, if `told`, what its error says of the packet inside, is about one that the assists
    /// know to be on its way. Others can make up everything else.
    pub(super) fn note_unreachable(&mut self, now: Instant, error: &Icmpv6Message, told: &Icmpv6Message) {
        let (
            Icmpv6Message::DestinationUnreachable(error),
            Icmpv6Message::DestinationUnreachable(DestinationUnreachable { quoted: inner, .. }),
            Some(assists),
        ) = (error, told, &mut self.assists)
        else {
            return;
        };
        if !matches!(error.code, UnreachableCode::NoRoute | UnreachableCode::Address) {
            return;
        }
        let (Ok(outer), Ok(inner)) = (QuotedPacket::parse(&error.quoted), QuotedPacket::parse(inner)) else {
            return;
        };
        let inner = match inner.protocol {
            // At a mobility anchor point it may have been in a tunnel of the home agent's.
            protocol::IPV6 => match QuotedPacket::parse(inner.payload) {
                Ok(inside) => inside,
                Err(_) => return,
            },
            _ => inner,
        };
        let Some((ports, seq)) = inner.ports().and_then(|ports| Some((ports, ports.seq?))) else { return };
        let ports = (ports.source_port, ports.destination_port);
        if assists.stored_segment(&inner.header.into(), ports, seq).is_some() {
            assists.handle_event(now, &Input::Unreachable { path: path_to(outer.header.destination) });
        }
    }

    /// The packet, or what is in a packet, that leaves and is of a mobile node whose flows assists follow.
    pub(super) fn followed_inside(&self, header: &Ipv6Header, packet: &[u8]) -> Option<Inside> {
        self.assists.as_ref()?;
        let is_followed = match &self.agent {
            Agent::Home(_) if self.setup.role() == Role::AnchorPoint => {
                return self.behind.inside(header, packet);
            }
            Agent::Home(agent) => agent.serves(header.destination),
            Agent::Mobile(_) => Some(header.source) == self.setup.home_address(),
            Agent::Correspondent(_) | Agent::AccessRouter(_) => false,
        };
        is_followed.then_some(Inside { header: *header, at: 0 })
    }

    /// Mobility anchor point: a packet has come from a regional care-of address. If it is in a tunnel to a home agent, the home address
    /// that it comes from is behind there. At which byte the packet begins that assists are shown.
    pub(super) fn learn_inside(&mut self, now: Instant, packet: &[u8]) -> usize {
        if self.setup.role() != Role::AnchorPoint {
            return 0;
        }
        let Agent::Home(agent) = &self.agent else { return 0 };
        let is_bound = |regional| !agent.bindings_of(regional).is_empty();
        let Some((Inside { header, at }, learned)) = self.behind.learn(packet, is_bound) else { return 0 };
        if let Some(regional) = learned {
            self.tell_paths_to(now, header.source, regional, &Told::default());
        }
        at
    }

    /// The path by which a packet with this header leaves.
    pub(super) fn present_path(&mut self, header: &Ipv6Header) -> Option<PathId> {
        match &self.agent {
            Agent::Home(agent) => {
                let bound = self.behind.regional_of(header.destination).unwrap_or(header.destination);
                agent.tunnels(bound).last().map(|tunnel| path_to(tunnel.exit))
            }
            Agent::Mobile(node) => node.active_interface().map(PathId::Interface),
            Agent::Correspondent(_) | Agent::AccessRouter(_) => None,
        }
    }

    /// What the assists, if there are any, want to become of a packet, which they may change.
    pub(super) fn show(
        &mut self,
        now: Instant,
        heading: Heading,
        path: Option<PathId>,
        packet: &mut [u8],
    ) -> Shown {
        let overhead = self.setup.overhead();
        let assists = self.assists.as_mut();
        assists.map_or(Shown::Passes, |assists| assists.show(now, heading, path, overhead, packet))
    }

    /// Does what the assists want done, after what the agent has to say: its answer may be what their packets need on their way.
    pub(super) fn drive_assists(&mut self, now: Instant) {
        if self.assists.is_none() {
            return;
        }
        if !self.outgoing.is_empty() {
            self.settle(now);
        }
        self.follow_assists(now);
    }

    /// Other assists begin anew. What those before them held back goes its way.
    pub(super) fn replace_assists(&mut self, now: Instant, mut new: Option<Box<Assists>>) {
        if let Some(old) = &mut self.assists {
            old.close();
        }
        self.follow_assists(now);
        if let (Some(old), Some(new)) = (&mut self.assists, &mut new) {
            new.events = std::mem::take(&mut old.events);
        }
        self.assists = new;
    }

    /// Does what the assists want done.
    pub(super) fn follow_assists(&mut self, now: Instant) {
        let Some(mut assists) = self.assists.take() else { return };
        while let Some(action) = assists.poll_action() {
            let Ok(()) = do_for_assist(now, &mut assists, action, self);
        }
        assists.take_reports(now);
        self.assists = Some(assists);
    }
}

impl Ipv6Carrier {
    /// Mobility anchor point: sends a packet on that assists have kept, or made, in the tunnel between mobile node and home agent that
    /// packets of the mobile node are in. Whether there was a way for it.
    fn send_behind(&mut self, heading: Heading, datagram: &[u8], way: Way) -> bool {
        let Ok((header, _)) = Ipv6Header::parse(datagram) else { return false };
        let Some(tunnel) = self.behind.tunnel(heading, &header) else { return false };
        let mut nested = std::mem::take(&mut self.nested);
        let sent = encapsulated(datagram, tunnel, 0, &mut nested).is_ok()
            && match heading {
                Heading::Out => {
                    let outer = Ipv6Header { source: tunnel.entry, destination: tunnel.exit, ..header };
                    self.put_in_tunnel(way, &outer, &nested)
                }
                Heading::In => {
                    self.deliver(&nested);
                    true
                }
            };
        self.nested = nested;
        sent
    }
}

impl Ways for Ipv6Carrier {
    /// What the host does not take is counted.
    type Error = Infallible;

    fn send_on(
        &mut self,
        now: Instant,
        heading: Heading,
        datagram: &[u8],
        via: Option<PathId>,
        fragments: Option<u16>,
    ) -> Result<bool, Infallible> {
        if self.setup.role() == Role::AnchorPoint {
            return Ok(self.send_behind(heading, datagram, Way { via, fragments }));
        }
        Ok(match (heading, Ipv6Header::parse(datagram)) {
            (Heading::Out, Ok((header, _))) => self.put_out(now, Way { via, fragments }, &header, datagram),
            (Heading::In, Ok(_)) => {
                self.deliver(datagram);
                true
            }
            (_, Err(_)) => false,
        })
    }

    fn present_path(&mut self, header: &IpHeader) -> Option<PathId> {
        let IpHeader::V6(header) = header else { return None };
        Self::present_path(self, header)
    }

    fn overhead(&self, _: &IpHeader) -> u16 {
        self.setup.overhead()
    }

    fn report(&mut self, now: Instant, report: SegmentReport) {
        if let SegmentReport::V6(report) = report
            && self.limit.allows(now)
        {
            self.deliver_icmp(report.source, report.destination, &report.message);
        }
    }
}

/// A home agent knows the paths to a mobile node by its care-of addresses.
const fn path_to(care_of: Ipv6Addr) -> PathId {
    PathId::CareOf(IpAddr::V6(care_of))
}
