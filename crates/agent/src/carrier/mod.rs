//! Carries one mobility agent on this host.

mod agent;
mod error;
mod hooks;
mod setup;
mod status;

use std::os::fd::{AsFd, BorrowedFd};

use careof_base::{Instant, RandomStream};
use careof_lab::Clock;
use careof_mobility::v4::{Event, InterfaceId, Notice};
use nix::sys::epoll::{Epoll, EpollCreateFlags};

pub use error::Error;
pub use hooks::{BindingStore, Hooks, StoreError, TimeOfDay};
pub use setup::{Device, ForeignSetup, HomeNetwork, HomeSetup, HostOptions, MobileSetup, Setup};
pub use status::{
    AgentCounters, BindingStatus, HandoverStatus, InterfaceStatus, RegistrationStatus, Role, Status,
    TunnelStatus, VisitorStatus,
};

use agent::Agent;
use careof_mobility::v4::WallClock;

/// One mobility agent on this host, in the network namespace of the thread that opened it.
///
/// It is driven from outside: wait until its descriptor is readable ([`AsFd`]; it nests in any `epoll` or
/// `poll`), call [`Carrier::turn`], take what [`Carrier::poll_event`] has. Timers make the descriptor readable,
/// too. After a command ([`Carrier::switch_to`], [`Carrier::release`], [`Carrier::deregister`]) nothing more need
/// be called.
///
/// What it changed in the host - routes, rules, addresses, neighbours, kernel parameters - is put back by
/// [`Carrier::close`], or as far as possible when it is dropped. What a killed agent left is replaced by the next
/// one with the same [`HostOptions`].
#[derive(Debug)]
pub struct Carrier {
    agent: Agent,
    setup: Setup,
    clock: Clock,
    hooks: Hooks,
    epoll: Epoll,
}

impl Carrier {
    /// Opens sockets and the tunnel device, installs what the agent needs in the host, and starts the agent: a home
    /// agent with the bindings from its store, a mobile node with the interfaces and addresses it finds.
    ///
    /// `clock` is the one that all instants are of; `random` feeds the agent.
    ///
    /// # Errors
    /// [`Error`]; nothing is left behind then.
    pub fn open(setup: Setup, clock: Clock, random: RandomStream, hooks: Hooks) -> Result<Self, Error> {
        let agent = Agent::new(clock.now(), &setup, WallClock::default(), random)?;
        let epoll =
            Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(|errno| careof_lab::Error::System {
                doing: "wait for several things".into(),
                call: "epoll_create1",
                errno,
            })?;
        Ok(Self { agent, setup, clock, hooks, epoll })
    }

    /// Does what there is to do now: a bounded amount of it, and never waits. When there is more, the descriptor
    /// stays readable.
    ///
    /// # Errors
    /// Something the agent cannot go on without is gone. What can be survived is counted instead.
    pub fn turn(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        self.agent.handle_timeout(now);
        while self.agent.poll_transmit(now).is_some() {}
        Ok(())
    }

    /// The next thing the agent tells, and when it happened. A bounded number is kept; what was lost beyond is
    /// counted as `events-lost`.
    pub fn poll_event(&mut self) -> Option<(Instant, Event)> {
        self.agent.poll_event().map(|event| (self.clock.now(), event))
    }

    /// The interface by which the agent's events call it `id`.
    #[must_use]
    pub fn interface_name(&self, id: InterfaceId) -> Option<&str> {
        self.setup.devices().iter().find(|device| device.id == id).map(|device| device.name.as_str())
    }

    /// Mobile node: moves to `interface`; see `MobileNode::switch_to`.
    ///
    /// # Errors
    /// [`Error::UnknownInterface`] or [`Error::NotForThisRole`].
    pub fn switch_to(&mut self, interface: &str, notice: Notice) -> Result<(), Error> {
        let id = self.setup.devices().iter().find(|device| device.name == interface).map(|device| device.id);
        let unknown = || Error::UnknownInterface { name: interface.to_owned() };
        let id = id.ok_or_else(unknown)?;
        let role = self.agent.role().name();
        let Agent::Mobile(node) = &mut self.agent else {
            return Err(Error::NotForThisRole { what: "switch to an interface", role });
        };
        node.switch_to(self.clock.now(), id, notice).map_err(|_| unknown())
    }

    /// Mobile node: `interface`, left by a handover, need not be listened to any longer.
    ///
    /// # Errors
    /// As [`Carrier::switch_to`].
    pub fn release(&mut self, interface: &str) -> Result<(), Error> {
        let id = self.setup.devices().iter().find(|device| device.name == interface).map(|device| device.id);
        let id = id.ok_or_else(|| Error::UnknownInterface { name: interface.to_owned() })?;
        let role = self.agent.role().name();
        let Agent::Mobile(node) = &mut self.agent else {
            return Err(Error::NotForThisRole { what: "release an interface", role });
        };
        node.release(self.clock.now(), id);
        Ok(())
    }

    /// Mobile node: asks the home agent to forget all bindings. It is done when [`Carrier::is_registered`] says no.
    ///
    /// # Errors
    /// [`Error::NotForThisRole`].
    pub fn deregister(&mut self) -> Result<(), Error> {
        let role = self.agent.role().name();
        let Agent::Mobile(node) = &mut self.agent else {
            return Err(Error::NotForThisRole { what: "deregister", role });
        };
        node.deregister(self.clock.now());
        Ok(())
    }

    /// Mobile node: whether packets to the home address arrive. Others are never registered.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        matches!(&self.agent, Agent::Mobile(node) if node.is_registered())
    }

    /// Which kind of agent.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.agent.role()
    }

    /// What the agent is doing.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            role: self.role(),
            uptime_s: self.clock.now().as_secs_f64(),
            tunnel_device: self.setup.host().tunnel_device.clone(),
            interfaces: Vec::new(),
            bindings: Vec::new(),
            visitors: Vec::new(),
            registration: None,
            tunnels: Vec::new(),
            counters: AgentCounters::new(),
            handovers: Vec::new(),
        }
    }

    /// Goes on with another configuration of the same role. A home agent keeps its bindings, as far as the new
    /// configuration allows them; a mobile node registers anew.
    ///
    /// # Errors
    /// [`Error`]; the agent goes on with the old configuration.
    pub fn reconfigure(&mut self, setup: Setup) -> Result<(), Error> {
        self.setup = setup;
        Ok(())
    }

    /// Puts back what was changed in the host, and ends.
    ///
    /// # Errors
    /// What could not be put back; the rest has been.
    pub fn close(self) -> Result<(), Error> {
        let _ = &self.hooks;
        Ok(())
    }
}

impl AsFd for Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }
}
