//! All interfaces at once: which of them are paths, and what the home agent is told of that.

use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::mip4::{Extension, MultipathExtension, PathNumber, RegistrationReply};

use super::MobileNode;
use super::attachment::Attachment;
use super::config::MultipathForm;
use super::registration::{Pending, Purpose};
use crate::multipath::PathId;
use crate::v4::InterfaceId;

/// One of the paths to the home agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MobilePath {
    /// Its number.
    pub path: PathId,
    /// The interface; one that stands for a relay is a way through the cluster.
    pub interface: InterfaceId,
    /// The care-of address.
    pub care_of: Ipv4Addr,
    /// The home agent.
    pub home_agent: Ipv4Addr,
    /// The care-of address is a relay's. What is put there is from the home address to the home agent, within another header (IP within
    /// IP) from the node to the relay, both by their addresses in the cluster; the relay exchanges that for one from the care-of address
    /// to the home agent.
    pub relayed: bool,
    /// The next hop on the interface's link; `None` where it has but one, and for a relay.
    pub via: Option<Ipv4Addr>,
}

impl MobileNode {
    /// The paths that the home agent disperses packets over, and takes packets from; none while it has accepted none as such.
    pub fn paths(&self) -> impl Iterator<Item = MobilePath> {
        self.interfaces.iter().filter_map(|interface| {
            let held = interface.held.filter(|_| interface.up)?;
            let own = interface.address.map(|own| own.address);
            let home_agent = self.home_agent?;
            let (care_of, relayed) = match held.attachment {
                Attachment::CoLocated { care_of, .. } => (care_of, false),
                Attachment::Relayed { care_of } => (care_of, true),
                Attachment::Home | Attachment::ForeignAgent { .. } => return None,
            };
            // The address is gone or another; the registration is about to follow.
            (own == Some(care_of)).then_some(MobilePath {
                path: held.path_id?,
                interface: interface.config.id,
                care_of,
                home_agent,
                relayed,
                via: interface.next_hop(home_agent).filter(|_| !relayed),
            })
        })
    }

    /// Whether other bindings are to stay when one is registered.
    pub(super) const fn keeps_others(&self) -> bool {
        self.config.simultaneous || self.config.multipath.is_some()
    }

    /// Whether an interface is to be registered beside the one that is wanted.
    pub(super) fn joins(&self, index: usize) -> bool {
        let several = self.config.multipath.is_some() && !self.keeps_one && !self.left;
        let is_path = |index| self.attachment(index).is_some_and(is_path);
        several
            && self.active.is_some_and(|active| active != index && is_path(active))
            && self.desired.is_some_and(|desired| desired != index && is_path(desired))
            && is_path(index)
    }

    /// The path through an interface is gone: the home agent is told by another one.
    pub(super) fn leave_path(&mut self, now: Instant, index: usize) {
        if self.config.multipath.is_some() && self.active != Some(index) {
            self.release_binding(now, index);
        }
    }

    /// The number of the path that a request is about.
    pub(super) fn asked_path(&self, index: usize, pending: &Pending) -> Option<PathId> {
        let registers = pending.purpose == Purpose::Register && self.config.multipath.is_some();
        let number = u8::try_from(index).ok().filter(|_| registers && is_path(pending.attachment))?;
        PathId::new(number)
    }

    /// How a request tells that.
    pub(super) fn path_extension(&self, index: usize, pending: &Pending) -> Option<Extension> {
        let number = self.asked_path(index, pending)?.number();
        Some(match self.config.multipath? {
            MultipathForm::Shake => PathNumber(number).extension(),
            // Binding-Ids begin with 1.
            MultipathForm::Rfc7629 => Extension::Multipath(MultipathExtension::new(number + 1)),
        })
    }

    /// The path that a reply grants: the one that was asked for, or none.
    pub(super) fn granted_path(
        &self,
        index: usize,
        granted: &Pending,
        reply: &RegistrationReply,
    ) -> Option<PathId> {
        let asked = self.asked_path(index, granted)?;
        reply.path_number().filter(|granted| granted.0 == asked.number()).map(|_| asked)
    }
}

/// Whether what the home agent disperses can reach the node there: a foreign agent would not know what to do with it.
const fn is_path(attachment: Attachment) -> bool {
    matches!(attachment, Attachment::CoLocated { .. } | Attachment::Relayed { .. })
}
