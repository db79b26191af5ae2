//! What the agent has decided about packets: the table that whoever carries them looks at.
//!
//! The agents fill it in when something changes; nothing in it is asked for a packet. It is all that another way of
//! carrying, as programs inside the kernel, would have to be given.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use careof_assist::PathId;
use careof_mobility::v4::{
    EncapsulationChoice, Encapsulations, ForeignAgent, HomeAgent, InterfaceId, MobileNode, Tunnel,
};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::tunnel::{Encapsulation, nested};

use super::interfaces::Interfaces;
use super::paths::{PathKey, Paths};

/// Tunnels that a datagram may be in already when it enters one (RFC 2473 section 4.1.1 has the same number for IPv6). Several agents
/// whose tunnels lead to each other would wrap it for ever, and to each other's copies of it.
const MOST_NESTED: usize = 4;
/// Of tunnels that are only known by their ends here, hops.
const TUNNEL_TTL: u8 = 64;

/// Packets and the bytes of their datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Traffic {
    pub(super) const fn note(&mut self, packets: u64, bytes: u64) {
        self.packets = self.packets.saturating_add(packets);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Both sums.
    pub(super) const fn sums(self) -> (u64, u64) {
        (self.packets, self.bytes)
    }
}

/// A tunnel that packets are put into.
#[derive(Clone, Debug)]
pub(super) struct Entrance {
    pub(super) tunnel: Tunnel,
    /// The interface that the outer datagram leaves by; `None` leaves it to the routes.
    pub(super) interface: Option<u32>,
    /// The way to, or from, the mobile node that it leads by.
    pub(super) path: PathId,
    pub(super) traffic: Traffic,
}

impl Entrance {
    /// The path that the outer datagrams take.
    pub(super) const fn key(&self) -> PathKey {
        PathKey::of(self.tunnel, self.interface)
    }
}

/// A tunnel that packets are taken out of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exit {
    /// The only interface by which they may come, where there is but one.
    interface: Option<u32>,
    /// Whether what comes out goes into the next tunnel at once, instead of to the kernel.
    pub(super) onwards: bool,
    /// The way to, or from, the mobile node; a mobile node knows it by the interface.
    pub(super) path: Option<PathId>,
    /// How packets are wrapped; a mobile node knows it by the interface.
    encapsulations: Encapsulations,
    pub(super) traffic: Traffic,
}

/// Why a packet must not come out of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// There is no such tunnel, or the packet does not belong into it.
    NotOurs,
    /// It is not wrapped as was agreed on.
    OtherEncapsulation,
}

/// Which address of a packet says into which tunnel it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Source,
    Destination,
}

/// The decisions about packets.
#[derive(Debug)]
pub(super) struct Decisions {
    key: Key,
    /// By the key address of the packet.
    entrances: BTreeMap<Ipv4Addr, Vec<Entrance>>,
    /// By the packet's own source, and the tunnel's other end.
    exits_by_source: BTreeMap<(Ipv4Addr, Ipv4Addr), Exit>,
    /// By the packet's own destination, and the tunnel's other end.
    exits_by_destination: BTreeMap<(Ipv4Addr, Ipv4Addr), Exit>,
    /// Mobile node: the interfaces by which tunnelled packets may come, and how they are wrapped.
    listening: Option<Vec<(u32, PathId, Encapsulations)>>,
    /// What is known of the paths of all entrances.
    pub(super) paths: Paths,
}

/// The path by an agent's or a mobile node's own interface.
pub(super) const fn path_by(interface: InterfaceId) -> PathId {
    PathId::Interface(interface)
}

/// The path to a care-of address.
pub(super) fn path_to(care_of: Ipv4Addr) -> PathId {
    PathId::CareOf(care_of.into())
}

impl Decisions {
    /// Those of a home agent: packets for a mobile node go into the tunnel.
    pub(super) fn by_destination() -> Self {
        Self::new(Key::Destination, None)
    }

    /// Those of a foreign agent: packets from a visitor go into the tunnel.
    pub(super) fn by_source() -> Self {
        Self::new(Key::Source, None)
    }

    /// Those of a mobile node: its own packets go into the tunnel.
    pub(super) fn of_mobile_node() -> Self {
        Self::new(Key::Source, Some(Vec::new()))
    }

    fn new(key: Key, listening: Option<Vec<(u32, PathId, Encapsulations)>>) -> Self {
        Self {
            key,
            entrances: BTreeMap::new(),
            exits_by_source: BTreeMap::new(),
            exits_by_destination: BTreeMap::new(),
            listening,
            paths: Paths::default(),
        }
    }

    /// The tunnels that a packet goes into, a copy each.
    pub(super) fn entrances_for(&mut self, header: &Ipv4Header) -> &mut [Entrance] {
        let address = match self.key {
            Key::Source => header.source,
            Key::Destination => header.destination,
        };
        self.entrances.get_mut(&address).map_or(&mut [], Vec::as_mut_slice)
    }

    /// This host's end of a tunnel of a packet, for what it says of that; unspecified where there is none.
    pub(super) fn own_end(&mut self, header: &Ipv4Header) -> Ipv4Addr {
        self.entrances_for(header).last().map_or(Ipv4Addr::UNSPECIFIED, |entrance| entrance.tunnel.entry)
    }

    /// The tunnel to `there` that a packet from or to `address` goes into.
    pub(super) fn entrance(&mut self, inner: &Ipv4Header, there: Ipv4Addr) -> Option<&mut Entrance> {
        self.entrances_for(inner).iter_mut().find(|entrance| entrance.tunnel.exit == there)
    }

    /// The tunnel out of which a packet comes.
    pub(super) fn exit_for(
        &mut self,
        interface: u32,
        (outer, encapsulation): (&Ipv4Header, Encapsulation),
        inner: &Ipv4Header,
    ) -> Result<&mut Exit, NotTaken> {
        let mut by_interface = None;
        if let Some(listening) = &self.listening {
            let known = listening.iter().find(|(index, ..)| *index == interface);
            by_interface = Some(known.ok_or(NotTaken::NotOurs)?);
        }
        let by_destination = self.exits_by_destination.get_mut(&(inner.destination, outer.source));
        let exit = match by_destination {
            Some(exit) => exit,
            None => {
                let by_source = self.exits_by_source.get_mut(&(inner.source, outer.source));
                by_source.ok_or(NotTaken::NotOurs)?
            }
        };
        if let Some((_, path, encapsulations)) = by_interface {
            exit.path = Some(*path);
            exit.encapsulations = *encapsulations;
        }
        if exit.interface.is_some_and(|only| only != interface) {
            return Err(NotTaken::NotOurs);
        }
        if !exit.encapsulations.allow(encapsulation, inner.is_fragment()) {
            return Err(NotTaken::OtherEncapsulation);
        }
        Ok(exit)
    }

    /// Whether a datagram that is about to enter a tunnel has been in one of these already, or in so many that it must be
    /// going round in circles: it would be wrapped again and again. That is so where the way to a tunnel's exit leads through a
    /// tunnel, as where a care-of address is somebody's home address (RFC 2003 section 3.2).
    pub(super) fn is_circling(&self, datagram: &[u8]) -> bool {
        let mut depth = 0;
        nested(datagram).any(|outer| {
            depth += 1;
            depth > MOST_NESTED || self.paths.is_tunnel(outer.source, outer.destination)
        })
    }

    /// Foreign agent: whether `address` is a visitor's that is reached here, by this path if one is named.
    pub(super) fn delivers(&self, address: Ipv4Addr, via: Option<PathId>) -> bool {
        let mut exits = self.exits_by_destination.range(keys_of(address));
        exits.any(|(_, exit)| via.is_none() || exit.path == via)
    }

    /// How many bytes the tunnel of a mobile node adds to a datagram to it, or from it.
    pub(super) fn overhead(&self, header: &Ipv4Header) -> u16 {
        let of = |address| self.entrances.get(&address).and_then(|entrances| entrances.last());
        let entrance = of(header.source).or_else(|| of(header.destination));
        // What only comes out of a tunnel here may have come by any; the one of RFC 2003 is what all have.
        entrance.map_or(Encapsulation::IpInIp, |entrance| entrance.tunnel.encapsulation).max_overhead()
    }

    /// How many mobile nodes packets are put into tunnels for, or taken out of them; some may count twice.
    pub(super) fn mobile_nodes(&self) -> usize {
        self.entrances.len().max(self.exits_by_source.len()).max(self.exits_by_destination.len())
    }

    /// The entrances of the mobile nodes with these home addresses.
    pub(super) fn entrances_of(&self, of: RangeInclusive<Ipv4Addr>) -> impl Iterator<Item = &Entrance> {
        self.entrances.range(of).flat_map(|(_, entrances)| entrances)
    }

    /// The exits of the mobile nodes with these home addresses, with the tunnel's other end.
    pub(super) fn exits_of(&self, of: &RangeInclusive<Ipv4Addr>) -> impl Iterator<Item = (Ipv4Addr, &Exit)> {
        let keys = (*of.start(), Ipv4Addr::UNSPECIFIED)..=(*of.end(), Ipv4Addr::BROADCAST);
        let all = self.exits_by_source.range(keys.clone()).chain(self.exits_by_destination.range(keys));
        all.map(|((_, there), exit)| (*there, exit))
    }

    /// Home agent: what was put into the tunnel to `care_of` for `home_address`, and taken out of the one from there.
    pub(super) fn traffic(&self, home_address: Ipv4Addr, care_of: Ipv4Addr) -> Option<(Traffic, Traffic)> {
        let entrances = self.entrances.get(&home_address)?;
        let entrance = entrances.iter().find(|entrance| entrance.tunnel.exit == care_of)?;
        let exit = self.exits_by_source.get(&(home_address, care_of));
        Some((entrance.traffic, exit.map_or(Traffic::default(), |exit| exit.traffic)))
    }

    /// Wants packets with this key address to go into these tunnels; counts go on in those that stay.
    fn set_entrances(
        &mut self,
        address: Ipv4Addr,
        tunnels: impl Iterator<Item = (Tunnel, Option<u32>, PathId)>,
    ) {
        let mut old = self.entrances.remove(&address).unwrap_or_default();
        let left: Vec<PathKey> = old.iter().map(Entrance::key).collect();
        let new: Vec<Entrance> = tunnels
            .map(|(tunnel, interface, path)| {
                let same = |old: &Entrance| old.tunnel == tunnel && old.interface == interface;
                match old.iter().position(same) {
                    Some(at) => Entrance { path, ..old.swap_remove(at) },
                    None => Entrance { tunnel, interface, path, traffic: Traffic::default() },
                }
            })
            .collect();
        // First, so that what is known of a path that goes on being used stays.
        new.iter().for_each(|entrance| self.paths.add(entrance.key()));
        left.into_iter().for_each(|key| self.paths.remove(key));
        if !new.is_empty() {
            self.entrances.insert(address, new);
        }
    }

    /// A home agent's bindings of one mobile node changed.
    pub(super) fn home_changed(&mut self, agent: &HomeAgent, home_address: Ipv4Addr) {
        let tunnels = agent.tunnels(home_address);
        self.set_entrances(home_address, tunnels.iter().map(|tunnel| (*tunnel, None, path_to(tunnel.exit))));
        let wanted = agent.reverse_tunnels(home_address).map(|tunnel| {
            let (care_of, choice) = (tunnel.exit, EncapsulationChoice::of(tunnel.encapsulation));
            let (path, encapsulations) = (Some(path_to(care_of)), Encapsulations::of(choice));
            (care_of, Exit { onwards: true, path, encapsulations, ..Exit::default() })
        });
        set_exits(&mut self.exits_by_source, home_address, wanted);
    }

    /// A foreign agent's visitor came, stayed or went.
    pub(super) fn visitor_changed(
        &mut self,
        agent: &ForeignAgent,
        interfaces: &Interfaces,
        home_address: Ipv4Addr,
    ) {
        let visitor = agent.visitor(home_address);
        let back = agent.reverse_tunnel(home_address);
        let path = visitor.map(|visitor| path_by(visitor.interface));
        let back_by = back.and_then(|tunnel| Some((tunnel, None, path?)));
        self.set_entrances(home_address, back_by.into_iter());
        let here = agent.deliver(home_address).is_some();
        let forward = visitor.filter(|_| here);
        let forward = forward.map(|visitor| {
            let encapsulations = visitor.encapsulations;
            (visitor.home_agent, Exit { path, encapsulations, ..Exit::default() })
        });
        set_exits(&mut self.exits_by_destination, home_address, forward.into_iter());
        // Encapsulating delivery: the visitor's tunnel begins at its home address (RFC 3024 section 2).
        let encapsulating = visitor.filter(|visitor| visitor.encapsulating_delivery && back.is_some());
        let exit = encapsulating.map(|visitor| {
            let interface = interfaces.index_of(visitor.interface);
            let encapsulations = visitor.encapsulations;
            (home_address, Exit { interface, onwards: true, path, encapsulations, ..Exit::default() })
        });
        set_exits(&mut self.exits_by_source, home_address, exit.into_iter());
    }

    /// Something about a mobile node may have changed.
    pub(super) fn mobile_changed(
        &mut self,
        node: &MobileNode,
        interfaces: &Interfaces,
        home_address: Ipv4Addr,
    ) {
        use careof_mobility::v4::DeliveryMethod::ReverseTunnel;
        let delivery = node.delivery_by(ReverseTunnel, Ipv4Addr::UNSPECIFIED);
        let back = delivery.and_then(|delivery| {
            let interface = delivery.interface;
            Some((delivery.tunnel?, Some(interfaces.index_of(interface)?), path_by(interface)))
        });
        // With several paths each is an entrance; which of them a packet takes is decided there.
        let several = node.paths().filter(|path| !path.relayed).filter_map(|path| {
            let tunnel = Tunnel {
                entry: path.care_of,
                exit: path.home_agent,
                encapsulation: Encapsulation::IpInIp,
                ttl: TUNNEL_TTL,
            };
            Some((tunnel, Some(interfaces.index_of(path.interface)?), path_by(path.interface)))
        });
        let several: Vec<_> = several.collect();
        if several.is_empty() {
            self.set_entrances(home_address, back.into_iter());
        } else {
            self.set_entrances(home_address, several.into_iter());
        }
        let from = node.home_agent().map(|home_agent| (home_agent, Exit::default()));
        set_exits(&mut self.exits_by_destination, home_address, from.into_iter());
        let listening = interfaces.named().iter().filter(|interface| node.listens_on(interface.device.id));
        let by = |on: &super::interfaces::Interface| {
            Some((on.index()?, path_by(on.device.id), node.encapsulations(on.device.id)))
        };
        self.listening = Some(listening.filter_map(by).collect());
    }
}

/// The keys of all exits of one mobile node.
const fn keys_of(address: Ipv4Addr) -> RangeInclusive<(Ipv4Addr, Ipv4Addr)> {
    RangeInclusive::new((address, Ipv4Addr::UNSPECIFIED), (address, Ipv4Addr::BROADCAST))
}

/// Wants packets of one mobile node to come out of these tunnels and no others.
fn set_exits(
    exits: &mut BTreeMap<(Ipv4Addr, Ipv4Addr), Exit>,
    address: Ipv4Addr,
    wanted: impl Iterator<Item = (Ipv4Addr, Exit)>,
) {
    let keys: Vec<_> = exits.range(keys_of(address)).map(|(key, _)| *key).collect();
    let mut old: Vec<_> = keys.into_iter().filter_map(|key| Some((key.1, exits.remove(&key)?))).collect();
    for (there, exit) in wanted {
        let known = old.iter().position(|(other, _)| *other == there).map(|at| old.swap_remove(at).1);
        let traffic = known.map_or(Traffic::default(), |known| known.traffic);
        exits.insert((address, there), Exit { traffic, ..exit });
    }
}
