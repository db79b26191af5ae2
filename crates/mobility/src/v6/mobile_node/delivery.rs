//! How a mobile node sends: the data plane (RFC 6275 section 11.3.1).

use core::net::Ipv6Addr;

use super::MobileNode;
use super::attachment::Attachment;
use crate::InterfaceId;
use crate::v6::Addresses;

/// How to send a packet from the home address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The interface.
    pub interface: InterfaceId,
    /// What stands where in its headers: with a Home Address option straight to a correspondent node that knows the care-of
    /// address, otherwise in a tunnel to the home agent; at home neither.
    pub addresses: Addresses,
    /// The router of IPv6 on that link; `None`: the destination, or that of the tunnel, is on the link, no router is known, or the tunnel is
    /// through IPv4.
    pub via: Option<Ipv6Addr>,
}

impl MobileNode {
    /// How to send a packet from the home address to `destination` now; `None`: there is no way. Cheap enough for every packet.
    #[must_use]
    pub fn delivery(&self, destination: Ipv6Addr) -> Option<Delivery> {
        let active = self.active?;
        let interface = self.interfaces.get(active).filter(|interface| interface.up)?;
        // Where it was registered it may be no longer; another registration is about to follow.
        let current = self.attachment(self.outbox.now(), active);
        let held = interface.held.filter(|held| Some(held.attachment) == current)?;
        let (addresses, via) = match held.attachment {
            Attachment::Home => {
                let on_link = self.config.home_prefix.contains(destination);
                let plain = Addresses::new(self.config.home_address, destination);
                (plain, interface.router(self.config.home_address).filter(|_| !on_link))
            }
            Attachment::Away { care_of } => {
                let addresses = self.addresses_from(care_of, held.home_agent, destination)?;
                let is_ipv4 = care_of.to_ipv4_mapped().is_some();
                (addresses, interface.router(care_of).filter(|_| !is_ipv4))
            }
        };
        Some(Delivery { interface: interface.config.id, addresses, via })
    }

    fn addresses_from(
        &self,
        care_of: Ipv6Addr,
        home_agent: Ipv6Addr,
        destination: Ipv6Addr,
    ) -> Option<Addresses> {
        let home_address = self.config.home_address;
        if self.correspondents.knows(destination, care_of, self.outbox.now()) {
            return Some(Addresses::new(care_of, destination).with_home_address(home_address));
        }
        let plain = Addresses::new(home_address, destination);
        Some(plain.through(self.tunnel_from(care_of, home_agent)?))
    }

    /// How to send a packet from the home address to `destination` by the care-of address that was registered last, where that is on a
    /// link that the node has left: through [`FastHandover::reverse_tunnel`](super::fast_handover::FastHandover::reverse_tunnel), from
    /// whatever interface (RFC 5568 section 4). `None`: nothing away from home is registered.
    #[must_use]
    pub fn delivery_from_previous(&self, destination: Ipv6Addr) -> Option<Delivery> {
        let interface = self.interfaces.get(self.active?)?;
        let held = interface.held?;
        let care_of = held.attachment.care_of()?;
        let addresses = self.addresses_from(care_of, held.home_agent, destination)?;
        Some(Delivery { interface: interface.config.id, addresses, via: None })
    }

    /// Whether a packet that came in a tunnel from `tunnel_source` is taken out of it: only the home agent tunnels (RFC 6275 section
    /// 11.3.3).
    #[must_use]
    pub fn accepts_tunnel_from(&self, tunnel_source: Ipv6Addr) -> bool {
        let asked = self.interfaces.iter().filter_map(|interface| interface.pending.as_ref()?.peer);
        let held = self.interfaces.iter().filter_map(|interface| Some(interface.held?.home_agent));
        let ipv4 = tunnel_source.to_ipv4_mapped();
        let is_ours = ipv4.is_some() && ipv4 == self.config.home_agent_ipv4;
        asked.chain(held).any(|home_agent| is_ours || home_agent == tunnel_source)
    }
}
