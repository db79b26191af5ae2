//! How a mobile node is attached to an interface's link, and what it holds there.

use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::mip4::Lifetime;

use super::config::InterfaceConfig;
use super::registration::Pending;
use crate::multipath::PathId;
use crate::path_watch::WatchedPath;
use crate::v4::movement_detection::AgentList;
use crate::v4::solicitor::Solicitor;
use crate::v4::{
    EncapsulationChoice, InterfaceAddress, MovementConfig, PathProperties, Prefix, SolicitorConfig,
};

/// A point of attachment: by what a registration would be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attachment {
    /// On the home link.
    Home,
    /// With the care-of address of the foreign agent.
    ForeignAgent { agent: Ipv4Addr, care_of: Ipv4Addr },
    /// With an address of its own; registered `via` a foreign agent that demands it (R).
    CoLocated { care_of: Ipv4Addr, via: Option<Ipv4Addr> },
    /// With the address of a relay; registered by the interface in use.
    Relayed { care_of: Ipv4Addr },
}

impl Attachment {
    /// The agent that relays registrations.
    pub(super) const fn agent(self) -> Option<Ipv4Addr> {
        match self {
            Self::Home | Self::Relayed { .. } => None,
            Self::ForeignAgent { agent, .. } => Some(agent),
            Self::CoLocated { via, .. } => via,
        }
    }

    /// The care-of address; none at home.
    pub(super) const fn care_of(self) -> Option<Ipv4Addr> {
        match self {
            Self::Home => None,
            Self::ForeignAgent { care_of, .. }
            | Self::CoLocated { care_of, .. }
            | Self::Relayed { care_of } => Some(care_of),
        }
    }
}

/// What the home agent has granted for an interface, as far as the node knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) attachment: Attachment,
    pub(super) renew_at: Instant,
    pub(super) expires: Instant,
    pub(super) reverse_tunnel: bool,
    pub(super) encapsulating_delivery: bool,
    pub(super) encapsulation: EncapsulationChoice,
    /// The home agent disperses packets over this path.
    pub(super) path_id: Option<PathId>,
}

/// What denials have taught about the registrations at one point of attachment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repairs {
    /// Code 69.
    pub(super) lifetime: Option<Lifetime>,
    /// Codes 75 and 138.
    pub(super) reverse_tunnel: bool,
    /// Code 79.
    pub(super) direct_delivery: bool,
    /// Codes 72 and 139.
    pub(super) ip_in_ip: bool,
    /// Code 135.
    pub(super) alone: bool,
}

/// An interface and everything known about it.
#[derive(Debug)]
pub(crate) struct Interface {
    pub(super) config: InterfaceConfig,
    pub(super) up: bool,
    pub(super) address: Option<InterfaceAddress>,
    pub(super) path: PathProperties,
    /// The least round trip to the home agent that was given or measured here.
    pub(super) least_round_trip: Option<Duration>,
    pub(super) agents: AgentList,
    pub(super) solicitor: Solicitor,
    pub(super) held: Option<Held>,
    pub(super) pending: Option<Pending>,
    pub(super) repairs: Repairs,
    /// Register again although nothing has changed here: the agent or the home agent may have forgotten.
    pub(super) refresh: bool,
    /// When the link was last lost, unless a registration sent since then was accepted here.
    pub(super) interrupted: Option<Instant>,
    /// A registration here was denied; not again at this point of attachment before then.
    pub(super) blocked: Option<(Attachment, Instant)>,
    /// Denials in a row, each of which doubles the next wait.
    pub(super) denials: u32,
    /// Since when it could have been used.
    pub(super) viable_since: Option<Instant>,
    /// Watches the path through it.
    pub(super) watch: WatchedPath<Ipv4Addr>,
}

impl Interface {
    pub(super) fn new(
        config: InterfaceConfig,
        movement: MovementConfig,
        solicitation: SolicitorConfig,
    ) -> Self {
        Self {
            config,
            // Without the link layer's word every link counts as up.
            up: config.up || !movement.link_layer,
            address: config.address,
            path: config.path,
            least_round_trip: config.path.round_trip,
            agents: AgentList::new(movement),
            solicitor: Solicitor::new(solicitation),
            held: None,
            pending: None,
            repairs: Repairs::default(),
            refresh: false,
            interrupted: None,
            blocked: None,
            denials: 0,
            viable_since: None,
            watch: WatchedPath::default(),
        }
    }

    /// A registration was answered after this time.
    pub(super) fn measured(&mut self, round_trip: Duration) {
        self.path.round_trip = Some(round_trip);
        self.least_round_trip = Some(self.least_round_trip.map_or(round_trip, |least| least.min(round_trip)));
    }

    /// What is known of the path, for others: with the least round trip of late, if probes have measured it, for that of a
    /// registration may have stood behind a queue.
    pub(super) fn known_path(&self) -> PathProperties {
        PathProperties {
            round_trip: self.watch.record.least_round_trip().or(self.path.round_trip),
            ..self.path
        }
    }

    /// Where a registration would be made now; `None` when there is nothing to register with.
    pub(super) fn attachment(
        &self,
        home_address: Ipv4Addr,
        home_network: Prefix,
        home_agent: Option<Ipv4Addr>,
    ) -> Option<Attachment> {
        if !self.up {
            return None;
        }
        if self.config.relay {
            return self.address.map(|relay| Attachment::Relayed { care_of: relay.address });
        }
        let hears_home = self.hears_home_agent(home_network, home_agent);
        // Its home address an interface may have wherever it is: it says so on a link that is known to be there only.
        let is_home =
            self.address.is_some_and(|own| own.address == home_address) && self.agents.trusts_link();
        if hears_home || is_home {
            return Some(Attachment::Home);
        }
        let choice = self.config.care_of;
        let foreign = self.foreign_attachment().filter(|_| choice.allows_foreign_agent());
        let co_located = self.co_located_attachment().filter(|_| choice.allows_co_located());
        match choice {
            super::CareOfChoice::PreferForeignAgent => foreign.or(co_located),
            _ => co_located.or(foreign),
        }
    }

    /// Whether somebody on the link says to be the home agent, and answers.
    pub(super) fn hears_home_agent(&self, home_network: Prefix, home_agent: Option<Ipv4Addr>) -> bool {
        self.agents.hears_home_agent(|address| is_home_agent(address, home_network, home_agent))
    }

    fn foreign_attachment(&self) -> Option<Attachment> {
        let current = self.pending.as_ref().map(|pending| pending.attachment);
        let current = current.or(self.held.map(|held| held.attachment)).and_then(Attachment::agent);
        let (agent, care_of) = self.agents.foreign_agent(current)?;
        Some(Attachment::ForeignAgent { agent: agent.address, care_of })
    }

    fn co_located_attachment(&self) -> Option<Attachment> {
        let care_of = self.address?.address;
        let via = self.agents.demanding_agent();
        Some(Attachment::CoLocated { care_of, via })
    }

    /// The next hop for packets to `destination`; `None` when it is on the link, or there is but one.
    pub(super) fn next_hop(&self, destination: Ipv4Addr) -> Option<Ipv4Addr> {
        let own = self.address?;
        let on_link = Prefix::new(own.address, own.prefix_length).contains(destination);
        own.gateway.filter(|_| !on_link)
    }
}

/// Whether an agent with this address is the home agent, or one of the home network while the home agent is not known.
pub(super) fn is_home_agent(address: Ipv4Addr, home_network: Prefix, home_agent: Option<Ipv4Addr>) -> bool {
    home_agent.map_or_else(|| home_network.contains(address), |home_agent| address == home_agent)
}
