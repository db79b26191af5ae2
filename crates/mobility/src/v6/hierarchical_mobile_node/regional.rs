//! A registration with one mobility anchor point.

use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Instant, Randomness};
use careof_wire::mip6::{Lifetime, SequenceNumber};

use super::config::MapAssociation;
use super::place::Place;
use crate::back_off::BackOff;
use crate::v6::{MobileNode, MobileNodeConfig, Prefix, Tunnel};
use crate::{InterfaceId, Notice, Selection};

/// The wait before a mobility anchor point that has failed is tried again, the first time; it doubles up to the longest.
const FIRST_BAR: Duration = Duration::from_secs(30);
const LONGEST_BAR: Duration = Duration::from_secs(960);

/// A mobility anchor point that the node may use.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) association: MapAssociation,
    pub(super) regional: Ipv6Addr,
    /// It has failed, and is not used before then.
    pub(super) barred_until: Option<Instant>,
    bar: Duration,
    /// How often it is believed to be back that a router has said to have failed.
    returns: Option<BackOff>,
    /// The number of the last update that was sent there.
    last: Option<SequenceNumber>,
}

impl Candidate {
    pub(super) fn new(association: MapAssociation, home_address: Ipv6Addr) -> Self {
        let regional = association.regional_of(home_address);
        Self { association, regional, barred_until: None, bar: Duration::ZERO, returns: None, last: None }
    }

    pub(super) fn fail(&mut self, now: Instant) {
        self.bar = (self.bar * 2).clamp(FIRST_BAR, LONGEST_BAR);
        self.barred_until = Some(now + self.bar);
    }

    /// A router has said that it has failed. Anybody on the link can say so, and the opposite, so it does not come back as often as it is
    /// said.
    pub(super) fn failed(&mut self, now: Instant) {
        match &mut self.returns {
            None => self.returns = Some(BackOff::begin(now)),
            Some(returns) => {
                if !returns.allows(now) {
                    self.barred_until = self.barred_until.max(Some(returns.next()));
                }
            }
        }
    }

    /// A registration with the home agent has come through.
    pub(super) const fn works(&mut self) {
        self.bar = Duration::ZERO;
    }
}

/// How packets get to the mobility anchor point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) interface: InterfaceId,
    /// None where the node is on the link of the regional care-of address.
    pub(super) tunnel: Option<Tunnel>,
    pub(super) via: Option<Ipv6Addr>,
}

/// A mobility anchor point that the node registers with.
#[derive(Debug)]
pub(super) struct Regional {
    /// Its place among the candidates.
    pub(super) index: usize,
    pub(super) map: Ipv6Addr,
    pub(super) regional: Ipv6Addr,
    pub(super) node: MobileNode,
    /// The interface that the node was told to use.
    lead: Option<InterfaceId>,
    /// It is to be told so again: it may have given up.
    is_stale: bool,
    /// The node has moved on, and packets are sent on until then.
    pub(super) until: Option<Instant>,
}

impl Regional {
    /// `template` is the configuration of the mobile node itself. None when it makes no sense with this mobility anchor point, which the
    /// check of the configuration rules out.
    pub(super) fn new(
        now: Instant,
        (index, candidate): (usize, &Candidate),
        template: &MobileNodeConfig,
        places: &[Place],
        random: Randomness,
    ) -> Option<Self> {
        let MapAssociation { address: map, security, .. } = &candidate.association;
        let config = MobileNodeConfig {
            home_address: candidate.regional,
            home_prefix: Prefix::new(candidate.regional, candidate.association.prefix().length()),
            home_agent: Some(*map),
            security: security.clone(),
            link_local_compatible: false,
            selection: Selection::Manual,
            route_optimization: None,
            ..template.clone()
        };
        let mut node = MobileNode::local(now, config, random, candidate.last).ok()?;
        places.iter().for_each(|place| place.introduce(now, &mut node));
        Some(Self {
            index,
            map: *map,
            regional: candidate.regional,
            node,
            lead: None,
            is_stale: false,
            until: None,
        })
    }

    /// The interface that it registers through.
    pub(super) const fn lead(&self) -> Option<InterfaceId> {
        self.lead
    }

    /// Registers through `interface` from now on.
    pub(super) fn follow(&mut self, now: Instant, interface: InterfaceId, notice: Notice) {
        if core::mem::take(&mut self.is_stale) || self.lead != Some(interface) {
            self.lead = Some(interface);
            // The node has all interfaces of the whole.
            let _ = self.node.switch_to(now, interface, notice);
        }
    }

    /// It is to be told once more which interface to use.
    pub(super) const fn remind(&mut self) {
        self.is_stale = true;
    }

    /// The node uses another one from now on; this one sends packets on until `until`.
    pub(super) fn retire(&mut self, now: Instant, until: Instant) {
        self.until = Some(until);
        self.node.set_lifetime(Lifetime::from_duration(until.saturating_duration_since(now)));
    }

    /// The node comes back.
    pub(super) fn resume(&mut self, lifetime: Lifetime) {
        self.until = None;
        self.node.set_lifetime(lifetime);
    }

    /// What must be known of it when it is used again.
    pub(super) fn leave(&self, candidate: &mut Candidate) {
        candidate.last = Some(self.node.last_sequence());
    }

    /// Whether there is a binding, and until when.
    pub(super) fn binding_end(&self, now: Instant) -> Option<Instant> {
        self.node.binding_end().filter(|end| *end > now)
    }

    pub(super) fn way(&self) -> Option<Way> {
        let delivery = self.node.delivery(self.map)?;
        let (interface, via) = (delivery.interface, delivery.via);
        Some(Way { interface, tunnel: delivery.addresses.tunnel, via })
    }
}
