//! Home agent: bindings that come from its store, or end at the owner's request.

use std::net::Ipv6Addr;

use careof_base::Instant;
use careof_mobility::v6::Event;

use super::agent::Agent;
use super::{Error, Ipv6Carrier};
use crate::carrier::StoreError;

impl Ipv6Carrier {
    /// Home agent: reads its bindings, and what it must not accept again, from its store.
    pub(super) fn restore(&mut self, now: Instant) -> Result<(), Error> {
        let records = self.persistence.load()?;
        self.host.is_unhurried = true;
        for record in records {
            if let Agent::Home(agent) = &mut self.agent
                && agent.restore(now, &record)
            {
                let home_address = record.home_address;
                let bindings = agent.bindings_of(home_address).len();
                self.persistence.take_over(record, bindings, agent.record(now, home_address));
                self.take_restored(now);
            }
        }
        self.host.is_unhurried = false;
        Ok(())
    }

    /// Brings the host in line with bindings that the agent has restored. They are not new, so the owner gets no events.
    pub(super) fn take_restored(&mut self, now: Instant) {
        while let Some(event) = self.agent.poll_event() {
            match event {
                Event::Binding(change) => self.binding_changed(now, change.home_address),
                Event::Neighbor(event) => self.neighbor_event(now, event),
                _ => {}
            }
        }
    }

    pub(in crate::carrier) const fn restored(&self) -> u64 {
        self.persistence.restored
    }

    pub(in crate::carrier) fn store_problem(&self) -> Option<&StoreError> {
        self.persistence.problem()
    }

    /// See [`Carrier::drop_mobile_node`](crate::Carrier::drop_mobile_node).
    pub(in crate::carrier) fn drop_mobile_node(&mut self, home_address: Ipv6Addr) -> Result<usize, Error> {
        let now = self.clock.now();
        self.read_clock(now);
        let Agent::Home(agent) = &mut self.agent else {
            return Err(Error::NotForThisRole { what: "drop bindings", role: self.setup.role().name() });
        };
        let dropped = agent.drop_bindings(now, home_address);
        self.drain(now);
        self.finish_turn()?;
        Ok(dropped)
    }
}
