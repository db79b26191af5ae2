//! How a mobile node sends: the data plane.

use core::net::Ipv4Addr;

use super::MobileNode;
use super::attachment::{Attachment, Held, Interface};
use crate::v4::{DeliveryMethod, InterfaceId, Tunnel};

/// How to send a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The method; it differs from the policy table's where that cannot be had.
    pub method: DeliveryMethod,
    /// The interface.
    pub interface: InterfaceId,
    /// The source address of the packet itself.
    pub source: Ipv4Addr,
    /// The tunnel around it.
    pub tunnel: Option<Tunnel>,
    /// The next hop on that link; `None`: the destination (of the tunnel, if there is one) itself, or a
    /// point-to-point link.
    pub via: Option<Ipv4Addr>,
}

impl MobileNode {
    /// How to send a packet to `destination` and TCP or UDP `port` now; `None`: there is no way. Only for
    /// packets whose source address the application has left open: one that has bound itself to an
    /// interface's address has made its own choice. Cheap enough for every packet.
    #[must_use]
    pub fn delivery(&self, destination: Ipv4Addr, port: Option<u16>) -> Option<Delivery> {
        self.delivery_by(self.config.policy.lookup(destination, port), destination)
    }

    /// How to send a packet to `destination` now, if the policy table wished for `wish`: for an owner that hands
    /// the table to its kernel instead of asking for every packet.
    #[must_use]
    pub fn delivery_by(&self, wish: DeliveryMethod, destination: Ipv4Addr) -> Option<Delivery> {
        if let Some((interface, agent)) = self.early_interface() {
            // Nobody tunnels back yet for who is about to register.
            return Some(Delivery {
                method: DeliveryMethod::Triangle,
                interface: interface.config.id,
                source: self.config.home_address,
                tunnel: None,
                via: Some(agent),
            });
        }
        let interface = self.interfaces.get(self.active?).filter(|interface| interface.up)?;
        match interface.held {
            Some(held) => self.deliver_registered(interface, &held, wish, destination),
            // Not reachable at the home address, but still a host.
            None if wish == DeliveryMethod::RegularIp => regular(interface, destination),
            None => None,
        }
    }

    /// The longest datagram that a flow by this delivery can send and ask for, if nothing of it is to be too long for a tunnel: `None`
    /// where there is none either way. `link_mtu` is that of the interface, bytes.
    #[must_use]
    pub fn mtu_beside_tunnel(&self, delivery: &Delivery, link_mtu: u16) -> Option<u16> {
        if let Some(tunnel) = delivery.tunnel {
            return Some(tunnel.mtu(link_mtu));
        }
        // What comes back to the home address passes a tunnel on the same link.
        let away = delivery.source == self.config.home_address && !self.is_at_home();
        let held = self.active.and_then(|index| self.interfaces.get(index)).and_then(|i| i.held);
        let overhead = held.map_or(20, |held| held.encapsulation.encapsulation().max_overhead());
        away.then(|| link_mtu.saturating_sub(overhead))
    }

    fn deliver_registered(
        &self,
        interface: &Interface,
        held: &Held,
        wish: DeliveryMethod,
        destination: Ipv4Addr,
    ) -> Option<Delivery> {
        let own = interface.address.map(|own| own.address);
        let from_home = |method, tunnel, via| {
            let (interface, source) = (interface.config.id, self.config.home_address);
            Some(Delivery { method, interface, source, tunnel, via })
        };
        match held.attachment {
            Attachment::Home => {
                let via = match own {
                    Some(_) => interface.next_hop(destination),
                    None if self.config.home_network.contains(destination) => None,
                    None => self.home_agent,
                };
                from_home(DeliveryMethod::RegularIp, None, via)
            }
            // The address is gone or another; the registration is about to follow.
            Attachment::CoLocated { care_of, .. } if own != Some(care_of) => None,
            Attachment::CoLocated { care_of, .. } => match (wish, self.home_agent) {
                (DeliveryMethod::RegularIp, _) => regular(interface, destination),
                (DeliveryMethod::ReverseTunnel, Some(home_agent)) if held.reverse_tunnel => {
                    let encapsulation = held.encapsulation.encapsulation();
                    let tunnel = Tunnel {
                        entry: care_of,
                        exit: home_agent,
                        encapsulation,
                        ttl: crate::v4::TUNNEL_TTL,
                    };
                    from_home(DeliveryMethod::ReverseTunnel, Some(tunnel), interface.next_hop(home_agent))
                }
                _ => from_home(DeliveryMethod::Triangle, None, interface.next_hop(destination)),
            },
            // It is never in use.
            Attachment::Relayed { .. } => None,
            Attachment::ForeignAgent { agent, .. } => {
                let encapsulation = held.encapsulation.encapsulation();
                let to_agent = Tunnel {
                    entry: self.config.home_address,
                    exit: agent,
                    encapsulation,
                    ttl: crate::v4::TUNNEL_TTL,
                };
                match wish {
                    DeliveryMethod::RegularIp if own.is_some() => regular(interface, destination),
                    DeliveryMethod::ReverseTunnel if held.reverse_tunnel && held.encapsulating_delivery => {
                        from_home(DeliveryMethod::ReverseTunnel, Some(to_agent), Some(agent))
                    }
                    // With the direct style the agent tunnels everything back (RFC 3024 section 2.1).
                    _ if held.reverse_tunnel && !held.encapsulating_delivery => {
                        from_home(DeliveryMethod::ReverseTunnel, None, Some(agent))
                    }
                    _ => from_home(DeliveryMethod::Triangle, None, Some(agent)),
                }
            }
        }
    }
}

fn regular(interface: &Interface, destination: Ipv4Addr) -> Option<Delivery> {
    let own = interface.address?;
    Some(Delivery {
        method: DeliveryMethod::RegularIp,
        interface: interface.config.id,
        source: own.address,
        tunnel: None,
        via: interface.next_hop(destination),
    })
}
