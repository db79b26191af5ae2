//! The three nodes under one name.

use careof_base::{Instant, Randomness};
use careof_mobility::WallClock;
use careof_mobility::v6::{CorrespondentNode, Counters, Event, HomeAgent, Input, MobileNode, Transmit, Wake};

use super::Ipv6Setup;
use crate::carrier::Error;

/// The node that is carried.
#[derive(Debug)]
pub(super) enum Agent {
    /// A home agent.
    Home(Box<HomeAgent>),
    /// A mobile node.
    Mobile(Box<MobileNode>),
    /// A correspondent node.
    Correspondent(Box<CorrespondentNode>),
}

/// The same call on whichever node there is.
macro_rules! on_agent {
    ($agent:expr, $bound:ident => $call:expr) => {
        match $agent {
            Agent::Home($bound) => $call,
            Agent::Mobile($bound) => $call,
            Agent::Correspondent($bound) => $call,
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
        Ok(match setup {
            Ipv6Setup::Home(setup) => {
                let mut config = setup.config.clone();
                config.clock = clock;
                Self::Home(Box::new(HomeAgent::new(now, config, random)?))
            }
            Ipv6Setup::Mobile(setup) => {
                let mut config = setup.config.clone();
                config.clock = clock;
                for interface in &mut config.interfaces {
                    interface.up = false;
                }
                Self::Mobile(Box::new(MobileNode::new(now, config, random)?))
            }
            Ipv6Setup::Correspondent(setup) => {
                Self::Correspondent(Box::new(CorrespondentNode::new(setup.config.clone(), random)?))
            }
        })
    }

    pub(super) fn set_clock(&mut self, clock: WallClock) {
        match self {
            Self::Home(agent) => agent.set_clock(clock),
            Self::Mobile(node) => node.set_clock(clock),
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
        on_agent!(self, agent => agent.poll_transmit(now))
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        on_agent!(self, agent => agent.poll_event())
    }

    pub(super) fn next_timeout(&self) -> Option<(Instant, Wake)> {
        on_agent!(self, agent => agent.next_timeout())
    }

    pub(super) fn counters(&self) -> &Counters {
        on_agent!(self, agent => agent.counters())
    }
}
