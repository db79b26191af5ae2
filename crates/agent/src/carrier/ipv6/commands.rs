//! What the owner of a carrier of Mobile IPv6 asks for.

use std::time::Duration;

use careof_base::Instant;
use careof_mobility::Notice;

use super::agent::Agent;
use super::mobile::Mobile;
use super::{Error, Ipv6Carrier};

impl Ipv6Carrier {
    /// See [`Carrier::switch_to`](crate::Carrier::switch_to).
    pub(in crate::carrier) fn switch_to(&mut self, interface: &str, notice: Notice) -> Result<(), Error> {
        let id = self.interfaces.id_named(interface)?;
        self.leaving = false;
        let now = self.clock.now();
        self.look_at_links(now)?;
        self.read_addresses(now);
        self.tell_received_data(now);
        self.command("switch to an interface", |node, now| {
            // It has this interface: every device is one of its configuration.
            let _ = node.switch_to(now, id, notice);
        })
    }

    pub(in crate::carrier) fn release(&mut self, interface: &str) -> Result<(), Error> {
        let id = self.interfaces.id_named(interface)?;
        self.command("release an interface", |node, now| node.release(now, id))
    }

    /// See [`Carrier::announce_handover`](crate::Carrier::announce_handover).
    pub(in crate::carrier) fn announce_handover(
        &mut self,
        interface: &str,
        within: Duration,
    ) -> Result<(), Error> {
        let id = self.interfaces.id_named(interface)?;
        let now = self.clock.now();
        if let Some(fast) = &mut self.fast {
            fast.announced(now, id);
        }
        self.drain(now);
        if let Some(setup) = self.setup.mobile() {
            let new = setup.config.interfaces.iter().find(|known| known.id == id);
            let new = new.map(|known| known.path).unwrap_or_default();
            let mobile = setup.config.home_address.into();
            return self.tell_assists_of(&careof_assist::Input::Announced { mobile, within, new });
        }
        self.finish_turn()
    }

    /// See [`Carrier::prepare_handover`](crate::Carrier::prepare_handover).
    pub(in crate::carrier) fn prepare_handover(&mut self, interface: &str) -> Result<(), Error> {
        let id = self.interfaces.id_named(interface)?;
        let now = self.clock.now();
        if let Some(fast) = &mut self.fast {
            fast.prepare(now, id);
        }
        self.drain(now);
        self.finish_turn()
    }

    /// See [`Carrier::call_off_handover`](crate::Carrier::call_off_handover).
    pub(in crate::carrier) fn call_off_handover(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        if let Some(fast) = &mut self.fast {
            fast.call_off(now);
        }
        self.drain(now);
        self.finish_turn()
    }

    pub(in crate::carrier) fn deregister(&mut self) -> Result<(), Error> {
        self.leaving = true;
        self.command("deregister", Mobile::deregister)
    }

    pub(in crate::carrier) fn ask_links(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        if matches!(self.agent, Agent::Mobile(_)) {
            self.questions.ask(now);
            self.ask_again(now)?;
        }
        self.finish_turn()
    }

    fn command(
        &mut self,
        what: &'static str,
        command: impl FnOnce(&mut Mobile, Instant),
    ) -> Result<(), Error> {
        let role = self.setup.role().name();
        let now = self.clock.now();
        self.read_clock(now);
        let Agent::Mobile(node) = &mut self.agent else {
            return Err(Error::NotForThisRole { what, role });
        };
        command(node, now);
        self.drain(now);
        self.finish_turn()
    }
}
