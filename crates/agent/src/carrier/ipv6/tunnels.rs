//! What has passed in each tunnel: for status and metrics, and for what a home agent tells in its answers to probes.
//!
//! Only tunnels are noted that the agent has, and those that it has no longer are forgotten at the next change of a binding; so there are
//! not more of them than bindings and care-of addresses lately left.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::ops::RangeInclusive;

use careof_base::Instant;
use careof_mobility::InterfaceId;
use careof_mobility::v6::Tunnel;
use careof_wire::mip6::{Message, PathCounts, PathProbe};

use super::Ipv6Carrier;
use super::agent::Agent;
use crate::carrier::TunnelStatus;
use crate::carrier::decisions::Traffic;

/// All home addresses.
pub(super) const ALL: RangeInclusive<Ipv6Addr> =
    Ipv6Addr::UNSPECIFIED..=Ipv6Addr::new(!0, !0, !0, !0, !0, !0, !0, !0);

/// Before all tunnels, in their order.
const FIRST: Tunnel = Tunnel { entry: Ipv6Addr::UNSPECIFIED, exit: Ipv6Addr::UNSPECIFIED };

/// What has passed in a tunnel.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    sent: Traffic,
    received: Traffic,
}

/// What has passed in each tunnel, by the home address that it is for. A tunnel is named the way that packets leave by it.
#[derive(Debug, Default)]
pub(super) struct Tunnels(BTreeMap<(Ipv6Addr, Tunnel), Passed>);

impl Tunnels {
    fn note(&mut self, home_address: Ipv6Addr, tunnel: Tunnel, put_in: bool, bytes: u64) {
        let passed = self.0.entry((home_address, tunnel)).or_default();
        if put_in { &mut passed.sent } else { &mut passed.received }.note(1, bytes);
    }

    /// Forgets tunnels of `home_address` that are not kept.
    fn retain(&mut self, home_address: Ipv6Addr, keeps: impl Fn(&Tunnel) -> bool) {
        let known = self.0.range((home_address, FIRST)..).map(|(key, _)| *key);
        let known = known.take_while(|(home, _)| *home == home_address);
        let gone: Vec<_> = known.filter(|(_, tunnel)| !keeps(tunnel)).collect();
        for key in gone {
            self.0.remove(&key);
        }
    }

    /// Those of mobile nodes with these home addresses, what different mobile nodes have to the same place together.
    pub(super) fn statuses(&self, of: &RangeInclusive<Ipv6Addr>) -> Vec<TunnelStatus> {
        let mut statuses = BTreeMap::<Tunnel, TunnelStatus>::new();
        let first = (*of.start(), FIRST);
        for ((_, tunnel), passed) in self.0.range(first..).take_while(|((home, _), _)| of.contains(home)) {
            let status = statuses.entry(*tunnel).or_insert_with(|| TunnelStatus {
                here: tunnel.entry.to_canonical(),
                there: tunnel.exit.to_canonical(),
                mtu: None,
                packets_out: 0,
                bytes_out: 0,
                packets_in: 0,
                bytes_in: 0,
            });
            let Passed { sent, received } = *passed;
            status.packets_out += sent.packets;
            status.bytes_out += sent.bytes;
            status.packets_in += received.packets;
            status.bytes_in += received.bytes;
        }
        statuses.into_values().collect()
    }

    /// How many tunnels are known, those of each mobile node counted apart.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What has been put into `tunnel` for `home_address`, and has come out of it.
    fn counts(&self, home_address: Ipv6Addr, tunnel: Tunnel) -> PathCounts {
        let Passed { sent, received } = self.0.get(&(home_address, tunnel)).copied().unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, reason = "the field wraps")]
        let packets = |traffic: Traffic| traffic.packets as u32;
        PathCounts {
            packets_sent: packets(sent),
            packets_received: packets(received),
            bytes_sent: sent.bytes,
            bytes_received: received.bytes,
        }
    }
}

/// How a packet of the mobile node travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Travel {
    /// In this tunnel, the outermost one, named the way that packets leave by it.
    Tunnelled(Tunnel),
    /// In one, and of IPv4: the home agent counts it elsewhere.
    Ipv4(Tunnel),
    /// Between mobile node and correspondent node, without a tunnel.
    Straight,
}

impl Ipv6Carrier {
    /// Home agent: a packet has entered `tunnel` for `home_address`, or come out of it.
    pub(super) fn note_at_home(
        &mut self,
        home_address: Ipv6Addr,
        tunnel: Tunnel,
        put_in: bool,
        bytes: usize,
    ) {
        self.tunnels.note(home_address, tunnel, put_in, bytes as u64);
        let carried = &mut self.carried;
        if put_in { &mut carried.tunnelled_out } else { &mut carried.tunnelled_in }.note(1, bytes as u64);
    }

    /// Mobile node: a packet has left by `interface`, or come by it.
    pub(super) fn note_passed(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        put_in: bool,
        travel: Travel,
        bytes: usize,
    ) {
        let Agent::Mobile(node) = &mut self.agent else { return };
        let (len, home_address) = (bytes as u64, self.setup.home_address());
        let is_tunnelled = matches!(travel, Travel::Tunnelled(_));
        if put_in {
            node.note_sent(now, interface, is_tunnelled, len);
        } else {
            node.note_received(now, interface, is_tunnelled, len);
        }
        if let (Travel::Tunnelled(tunnel) | Travel::Ipv4(tunnel), Some(home_address)) = (travel, home_address)
        {
            self.tunnels.note(home_address, tunnel, put_in, len);
            let carried = &mut self.carried;
            if put_in { &mut carried.tunnelled_out } else { &mut carried.tunnelled_in }.note(1, len);
        }
    }

    /// A binding has changed, or the way that packets of the mobile node take: tunnels that are no more are forgotten.
    pub(super) fn forget_tunnels(&mut self, home_address: Ipv6Addr) {
        match &self.agent {
            Agent::Home(agent) => {
                let kept: Vec<Tunnel> = agent.reverse_tunnels(home_address).collect();
                self.tunnels.retain(home_address, |tunnel| kept.contains(tunnel));
            }
            Agent::Mobile(node) => {
                let ids = self.interfaces.named().iter().map(|interface| interface.device.id);
                let used = ids.filter(|id| node.listens_on(*id));
                let addresses = used.flat_map(|id| {
                    let ipv4 = self.addresses.ipv4_of(id).map(|(own, _)| own.to_ipv6_mapped());
                    self.addresses.of(id).chain(ipv4)
                });
                let kept: Vec<Ipv6Addr> = addresses.collect();
                self.tunnels.retain(home_address, |tunnel| kept.contains(&tunnel.entry));
            }
            Agent::Correspondent(_) | Agent::AccessRouter(_) => {}
        }
    }

    /// Home agent: has what it answers to a probe, which came from `care_of`, tell what has passed there.
    pub(super) fn tell_traffic(&mut self, source: Ipv6Addr, care_of: Ipv6Addr, message: &[u8]) {
        let (Agent::Home(agent), Some(&own)) = (&mut self.agent, self.own.first()) else { return };
        if message.get(2) != Some(&PathProbe::TYPE) {
            return;
        }
        let Ok(Message::PathProbe(probe)) = Message::parse(source, own, message) else { return };
        let counts = self.tunnels.counts(probe.home_address, agent.tunnel_to(care_of));
        agent.note_traffic(probe.home_address, care_of, counts);
    }

    /// The tunnels one by one, where they are at most `most`.
    pub(super) fn few_tunnels(&self, most: usize) -> Vec<TunnelStatus> {
        if self.tunnels.len() <= most { self.tunnels.statuses(&ALL) } else { Vec::new() }
    }
}

/// The addresses of a tunnel, named the other way.
pub(super) const fn turned(Tunnel { entry, exit }: Tunnel) -> Tunnel {
    Tunnel { entry: exit, exit: entry }
}

/// The same for the tunnel of a packet that came to the mobile node.
pub(super) const fn came_by(tunnel: Tunnel) -> Travel {
    Travel::Tunnelled(turned(tunnel))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);
    const OTHER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 8);

    fn tunnel(number: u16) -> Tunnel {
        Tunnel {
            entry: Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1),
            exit: Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 7),
        }
    }

    #[test]
    fn what_passes_is_kept_for_each_home_address_and_tunnel_until_the_tunnel_is_gone() {
        let mut tunnels = Tunnels::default();
        tunnels.note(HOME, tunnel(2), true, 100);
        tunnels.note(HOME, tunnel(2), false, 40);
        tunnels.note(HOME, tunnel(3), true, 10);
        tunnels.note(OTHER, tunnel(2), true, 1);
        let expected =
            PathCounts { packets_sent: 1, packets_received: 1, bytes_sent: 100, bytes_received: 40 };
        assert_eq!(tunnels.counts(HOME, tunnel(2)), expected);
        assert_eq!(tunnels.counts(OTHER, tunnel(3)), PathCounts::default());
        let sums = |of: &RangeInclusive<Ipv6Addr>| -> Vec<(IpAddr, u64, u64)> {
            let statuses = tunnels.statuses(of).into_iter();
            statuses.map(|one| (one.there, one.bytes_out, one.bytes_in)).collect()
        };
        let [second, third] = [tunnel(2), tunnel(3)].map(|tunnel| IpAddr::V6(tunnel.exit));
        assert_eq!(sums(&ALL), [(second, 101, 40), (third, 10, 0)]);
        assert_eq!(sums(&(OTHER..=OTHER)), [(second, 1, 0)]);
        tunnels.retain(HOME, |kept| *kept == tunnel(3));
        assert_eq!(tunnels.len(), 2);
        assert_eq!(tunnels.counts(HOME, tunnel(2)), PathCounts::default());
    }
}
