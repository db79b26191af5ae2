//! The assists of an agent of Mobile IPv6: what they are shown and told, and the ways of what they have kept.

use core::convert::Infallible;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use careof_assist::{Input, PathId, Told};
use careof_base::Instant;
use careof_mobility::v6::Event;
use careof_mobility::{HandoverEvent, PathProperties};
use careof_wire::IpHeader;
use careof_wire::icmpv6::{DestinationUnreachable, Icmpv6Message, QuotedPacket, UnreachableCode};
use careof_wire::ipv6::Ipv6Header;

use super::agent::Agent;
use super::{Ipv6Carrier, Ipv6Setup};
use crate::carrier::Error;
use crate::carrier::assist_actions::{Ways, do_for_assist};
use crate::carrier::assists::{Assists, Heading, Shown};
use crate::carrier::error_reports::SegmentReport;
use crate::carrier::tunnel_entry::Way;

/// What a tunnel adds to a packet, bytes. The headers of route optimisation add less, but come and go.
const OVERHEAD: u16 = Ipv6Header::LEN;

/// The assists that a setup asks for.
pub(super) fn assistance(setup: &Ipv6Setup) -> Result<Option<Box<Assists>>, Error> {
    let Some(config) = setup.assist() else { return Ok(None) };
    let own = match setup {
        Ipv6Setup::Home(setup) => setup.config.address,
        Ipv6Setup::Mobile(setup) => setup.config.home_address,
        Ipv6Setup::Correspondent(setup) => setup.config.address,
    };
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
                        let peers: Vec<IpAddr> = node.outdated_correspondents().map(IpAddr::V6).collect();
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

    /// Home agent: tells the assists by which paths a mobile node is reached now.
    pub(super) fn tell_paths(&mut self, now: Instant, mobile: Ipv6Addr, told: &Told) {
        let (Agent::Home(agent), Some(assists)) = (&self.agent, &mut self.assists) else { return };
        let bindings = agent.bindings_of(mobile).iter();
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
        let Some((ports, seq)) = inner.ports().and_then(|ports| Some((ports, ports.seq?))) else { return };
        let ports = (ports.source_port, ports.destination_port);
        if assists.stored_segment(&inner.header.into(), ports, seq).is_some() {
            assists.handle_event(now, &Input::Unreachable { path: path_to(outer.header.destination) });
        }
    }

    /// Whether a packet that leaves is of a mobile node whose flows assists follow.
    pub(super) fn assists_follow(&self, header: &Ipv6Header) -> bool {
        self.assists.is_some()
            && match &self.agent {
                Agent::Home(agent) => agent.serves(header.destination),
                Agent::Mobile(_) => Some(header.source) == self.setup.home_address(),
                Agent::Correspondent(_) => false,
            }
    }

    /// The path by which a packet with this header leaves.
    pub(super) fn present_path(&mut self, header: &Ipv6Header) -> Option<PathId> {
        match &self.agent {
            Agent::Home(agent) => agent.tunnels(header.destination).last().map(|tunnel| path_to(tunnel.exit)),
            Agent::Mobile(node) => node.active_interface().map(PathId::Interface),
            Agent::Correspondent(_) => None,
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
        let assists = self.assists.as_mut();
        assists.map_or(Shown::Passes, |assists| assists.show(now, heading, path, OVERHEAD, packet))
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
        OVERHEAD
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
