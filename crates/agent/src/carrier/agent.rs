//! The three agents under one name.

use careof_base::{Instant, Randomness};
use careof_mobility::v4::{
    Counters, Event, ForeignAgent, HomeAgent, Input, MobileNode, Transmit, Wake, WallClock,
};

use super::{Error, Role, Setup};

/// The agent that is carried.
#[derive(Debug)]
pub(super) enum Agent {
    /// A home agent.
    Home(Box<HomeAgent>),
    /// A foreign agent.
    Foreign(Box<ForeignAgent>),
    /// A mobile node.
    Mobile(Box<MobileNode>),
}

/// The same call on whichever agent there is.
macro_rules! on_agent {
    ($agent:expr, $bound:ident => $call:expr) => {
        match $agent {
            Agent::Home($bound) => $call,
            Agent::Foreign($bound) => $call,
            Agent::Mobile($bound) => $call,
        }
    };
}

impl Agent {
    pub(super) fn new(
        now: Instant,
        setup: &Setup,
        clock: WallClock,
        random: Randomness,
    ) -> Result<Self, Error> {
        Ok(match setup {
            Setup::Home(setup) => {
                let mut config = setup.config.clone();
                config.clock = clock;
                Self::Home(Box::new(HomeAgent::new(now, config, random)?))
            }
            Setup::Foreign(setup) => {
                Self::Foreign(Box::new(ForeignAgent::new(now, setup.config.clone(), random)?))
            }
            Setup::Mobile(setup) => {
                let mut config = setup.config.clone();
                config.clock = clock;
                for interface in &mut config.interfaces {
                    interface.up = false;
                    interface.address = None;
                }
                Self::Mobile(Box::new(MobileNode::new(now, config, random)?))
            }
        })
    }

    pub(super) const fn role(&self) -> Role {
        match self {
            Self::Home(_) => Role::Home,
            Self::Foreign(_) => Role::Foreign,
            Self::Mobile(_) => Role::Mobile,
        }
    }

    pub(super) fn set_clock(&mut self, clock: WallClock) {
        match self {
            Self::Home(agent) => agent.set_clock(clock),
            Self::Foreign(_) => {}
            Self::Mobile(node) => node.set_clock(clock),
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
