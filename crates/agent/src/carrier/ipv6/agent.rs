//! The nodes under one name.

use careof_base::{Instant, Randomness};
use careof_mobility::WallClock;
use careof_mobility::v6::access_router::AccessRouter;
use careof_mobility::v6::{
    CorrespondentNode, Counters, Event, HierarchicalMobileNode, HomeAgent, Input, MobileNode,
    MobilityAnchorPoint, Transmit, Wake,
};

use super::mobile::Mobile;
use super::{Ipv6MobileSetup, Ipv6Setup};
use crate::carrier::Error;

/// The node that is carried.
#[derive(Debug)]
pub(super) enum Agent {
    /// A home agent, or a mobility anchor point, which is one of regional care-of addresses.
    Home(Box<HomeAgent>),
    /// A mobile node.
    Mobile(Mobile),
    /// A correspondent node.
    Correspondent(Box<CorrespondentNode>),
    /// An access router. What it does to packets is in `access_router`.
    AccessRouter(Box<AccessRouter>),
}

/// The same call on whichever node there is.
macro_rules! on_agent {
    ($agent:expr, $bound:ident => $call:expr) => {
        match $agent {
            Agent::Home($bound) => $call,
            Agent::Mobile(Mobile::Plain($bound)) => $call,
            Agent::Mobile(Mobile::Hierarchical($bound)) => $call,
            Agent::Correspondent($bound) => $call,
            Agent::AccessRouter($bound) => $call,
        }
    };
}

impl Agent {
    pub(super) fn new(
        now: Instant,
        setup: &Ipv6Setup,
        clock: WallClock,
        random: Randomness,
    ) -> Result<Self, Error> {
        // Which links are up the kernel says.
        let of_mobile_node = |setup: &Ipv6MobileSetup| {
            let mut config = setup.config.clone();
            config.clock = clock;
            for interface in &mut config.interfaces {
                interface.up = false;
            }
            config
        };
        Ok(match setup {
            Ipv6Setup::Home(setup) => {
                let mut config = setup.config.clone();
                config.clock = clock;
                Self::Home(Box::new(HomeAgent::new(now, config, random)?))
            }
            Ipv6Setup::AnchorPoint(setup) => {
                let mut config = setup.config.clone();
                config.clock = clock;
                Self::Home(Box::new(MobilityAnchorPoint::new(now, config, random)?.into_home_agent()))
            }
            Ipv6Setup::Mobile(setup) => {
                let node = MobileNode::new(now, of_mobile_node(setup), random)?;
                Self::Mobile(Mobile::Plain(Box::new(node)))
            }
            Ipv6Setup::HierarchicalMobile(setup) => {
                let config = setup.config(of_mobile_node(&setup.mobile));
                let node = HierarchicalMobileNode::new(now, config, random)?;
                Self::Mobile(Mobile::Hierarchical(Box::new(node)))
            }
            Ipv6Setup::AccessRouter(setup) => {
                let mut config = setup.config.clone();
                config.clock = clock;
                Self::AccessRouter(Box::new(AccessRouter::new(config, random)?))
            }
            Ipv6Setup::Correspondent(setup) => {
                Self::Correspondent(Box::new(CorrespondentNode::new(setup.config.clone(), random)?))
            }
        })
    }

    pub(super) fn set_clock(&mut self, clock: WallClock) {
        match self {
            Self::Home(agent) => agent.set_clock(clock),
            Self::Mobile(Mobile::Plain(node)) => node.set_clock(clock),
            Self::Mobile(Mobile::Hierarchical(node)) => node.set_clock(clock),
            Self::AccessRouter(router) => router.set_clock(clock),
            Self::Correspondent(_) => {}
        }
    }

    pub(super) fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        on_agent!(self, agent => agent.handle_input(now, input));
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        on_agent!(self, agent => agent.handle_timeout(now));
    }

    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        match self {
            Self::Home(agent) => agent.poll_transmit(now),
            Self::Mobile(Mobile::Plain(node)) => node.poll_transmit(now),
            Self::Mobile(Mobile::Hierarchical(node)) => node.poll_transmit(now),
            Self::Correspondent(node) => node.poll_transmit(now),
            // The kernel knows the station of whoever has just announced itself, or asks for it.
            Self::AccessRouter(router) => router.poll_transmit(now).map(|transmit| transmit.packet),
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        match self {
            Self::Home(agent) => agent.poll_event(),
            Self::Mobile(Mobile::Plain(node)) => node.poll_event(),
            Self::Mobile(Mobile::Hierarchical(node)) => node.poll_event(),
            Self::Correspondent(node) => node.poll_event(),
            // They are of another kind.
            Self::AccessRouter(_) => None,
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        on_agent!(self, agent => agent.next_timeout().map(|(at, _)| at))
    }

    /// Whether what is due next is a probe of a path.
    pub(super) fn probes_next(&self) -> bool {
        matches!(self, Self::Mobile(Mobile::Plain(node)) if matches!(node.next_timeout(), Some((_, Wake::PathProbe))))
    }

    pub(super) fn counters(&self) -> &Counters {
        on_agent!(self, agent => agent.counters())
    }
}
