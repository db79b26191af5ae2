//! Mobility bindings: where the packets of mobile nodes go.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::mip4::{Identification, Lifetime, PathReport, ReceivedData};

use super::{BindingChanged, Change, Tunnel};
use crate::multipath::PathId;

/// What a home agent knows of one care-of address of one mobile node (RFC 5944 section 3.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MobilityBinding {
    /// The mobile node.
    pub home_address: Ipv4Addr,
    /// Where its packets go.
    pub care_of: Ipv4Addr,
    /// The lifetime granted.
    pub lifetime: Lifetime,
    /// When it ends.
    pub expires: Instant,
    /// The Identification of the request that made it.
    pub identification: Identification,
    /// The mobile node decapsulates itself (D).
    pub co_located: bool,
    /// The mobile node wants the broadcasts of its home link (B).
    pub broadcasts: bool,
    /// Packets may come back through the tunnel (T).
    pub reverse_tunnel: bool,
    /// Which path of the mobile node it is: packets are dispersed over all that have a number.
    pub path_id: Option<PathId>,
    /// The care-of address is a relay's, which takes the outer header off and passes on what is for the home address.
    pub relayed: bool,
    /// The tunnel from the home agent to the care-of address.
    pub tunnel: Tunnel,
    /// What the mobile node reported of the path with the request; not kept across a restart of the home agent.
    pub path: Option<PathReport>,
}

#[derive(Debug, Default)]
struct Node {
    bindings: Vec<MobilityBinding>,
    /// The tunnels of `bindings`, in the same order, as the data plane wants them.
    tunnels: Vec<Tunnel>,
}

/// The bindings of all mobile nodes of a home agent.
#[derive(Debug, Default)]
pub(crate) struct BindingTable {
    /// Each apart from the tree, which is searched for every packet and is small that way.
    nodes: BTreeMap<Ipv4Addr, Box<Node>>,
    /// (end of lifetime, home address, care-of address) of every binding that ends.
    deadlines: BTreeSet<(Instant, Ipv4Addr, Ipv4Addr)>,
    count: usize,
}

fn removed(binding: &MobilityBinding, change: Change) -> BindingChanged {
    BindingChanged {
        home_address: binding.home_address,
        care_of: binding.care_of,
        lifetime: Lifetime::ZERO,
        change,
        path: None,
        received: ReceivedData::EMPTY,
    }
}

impl BindingTable {
    /// The tunnels to all current care-of addresses of `home_address`.
    pub(crate) fn tunnels(&self, home_address: Ipv4Addr) -> &[Tunnel] {
        self.nodes.get(&home_address).map_or(&[], |node| &node.tunnels)
    }

    /// The bindings of one node.
    pub(crate) fn of(&self, home_address: Ipv4Addr) -> &[MobilityBinding] {
        self.nodes.get(&home_address).map_or(&[], |node| &node.bindings)
    }

    /// All bindings, by home address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &MobilityBinding> {
        self.nodes.values().flat_map(|node| &node.bindings)
    }

    /// Those of mobile nodes with this home address and larger ones.
    pub(crate) fn from(&self, home_address: Ipv4Addr) -> impl Iterator<Item = &MobilityBinding> {
        self.nodes.range(home_address..).flat_map(|(_, node)| &node.bindings)
    }

    /// How many bindings there are.
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// The earliest end of a lifetime.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, ..)| at)
    }

    /// Enters `binding`; the node's other ones go unless `keep_others`. Returns what changed, removals first.
    pub(crate) fn insert(&mut self, binding: MobilityBinding, keep_others: bool) -> Vec<BindingChanged> {
        let mut changes = Vec::new();
        let node = self.nodes.entry(binding.home_address).or_default();
        let mut change = Change::Created;
        for old in &node.bindings {
            if old.care_of == binding.care_of {
                change = Change::Updated;
            } else if !keep_others {
                changes.push(removed(old, Change::Removed));
            } else {
                continue;
            }
            self.deadlines.remove(&(old.expires, old.home_address, old.care_of));
        }
        self.count -= node.bindings.len();
        node.bindings.retain(|old| keep_others && old.care_of != binding.care_of);
        node.bindings.push(binding);
        self.count += node.bindings.len();
        node.refresh();
        if binding.expires < Instant::MAX {
            self.deadlines.insert((binding.expires, binding.home_address, binding.care_of));
        }
        changes.push(BindingChanged {
            home_address: binding.home_address,
            care_of: binding.care_of,
            lifetime: binding.lifetime,
            change,
            path: binding.path,
            received: ReceivedData::EMPTY,
        });
        changes
    }

    /// Takes one binding out.
    pub(crate) fn remove(&mut self, home_address: Ipv4Addr, care_of: Ipv4Addr) -> Option<BindingChanged> {
        self.take(home_address, care_of).map(|binding| removed(&binding, Change::Removed))
    }

    /// Takes all bindings of a node out.
    pub(crate) fn remove_all(&mut self, home_address: Ipv4Addr) -> Vec<BindingChanged> {
        let Some(node) = self.nodes.remove(&home_address) else { return Vec::new() };
        self.count -= node.bindings.len();
        for binding in &node.bindings {
            self.deadlines.remove(&(binding.expires, binding.home_address, binding.care_of));
        }
        node.bindings.iter().map(|binding| removed(binding, Change::Removed)).collect()
    }

    /// Takes out one binding whose lifetime has ended by `now`; to be called until `None`.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<BindingChanged> {
        let &(at, home_address, care_of) = self.deadlines.first()?;
        if at > now {
            return None;
        }
        self.take(home_address, care_of).map(|binding| removed(&binding, Change::Expired))
    }

    fn take(&mut self, home_address: Ipv4Addr, care_of: Ipv4Addr) -> Option<MobilityBinding> {
        let node = self.nodes.get_mut(&home_address)?;
        let at = node.bindings.iter().position(|binding| binding.care_of == care_of)?;
        let binding = node.bindings.remove(at);
        self.count -= 1;
        node.refresh();
        if node.bindings.is_empty() {
            self.nodes.remove(&home_address);
        }
        self.deadlines.remove(&(binding.expires, home_address, care_of));
        Some(binding)
    }
}

impl Node {
    fn refresh(&mut self) {
        self.tunnels.clear();
        self.tunnels.extend(self.bindings.iter().map(|binding| binding.tunnel));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v4::EncapsulationChoice;

    const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
    const AGENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

    fn care_of(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 2, last)
    }

    fn binding(last: u8, seconds: u16) -> MobilityBinding {
        let lifetime = Lifetime::from_secs(seconds);
        MobilityBinding {
            home_address: HOME,
            care_of: care_of(last),
            lifetime,
            expires: crate::v4::lifetime::end_of(lifetime, Instant::ZERO),
            identification: Identification(0),
            co_located: true,
            broadcasts: false,
            reverse_tunnel: false,
            path_id: None,
            relayed: false,
            tunnel: Tunnel {
                entry: AGENT,
                exit: care_of(last),
                encapsulation: EncapsulationChoice::IpInIp.encapsulation(),
                ttl: crate::v4::TUNNEL_TTL,
            },
            path: None,
        }
    }

    fn exits(table: &BindingTable) -> Vec<Ipv4Addr> {
        table.tunnels(HOME).iter().map(|tunnel| tunnel.exit).collect()
    }

    #[test]
    fn a_new_binding_replaces_the_others_unless_they_are_to_be_kept() {
        let mut table = BindingTable::default();
        table.insert(binding(1, 100), false);
        let changes = table.insert(binding(2, 100), true);
        assert_eq!(changes.iter().map(|c| c.change).collect::<Vec<_>>(), [Change::Created]);
        assert_eq!(exits(&table), [care_of(1), care_of(2)]);
        let changes = table.insert(binding(3, 100), false);
        assert_eq!(
            changes.iter().map(|c| (c.care_of, c.change)).collect::<Vec<_>>(),
            [(care_of(1), Change::Removed), (care_of(2), Change::Removed), (care_of(3), Change::Created)]
        );
        assert_eq!((exits(&table), table.len()), (alloc::vec![care_of(3)], 1));
    }

    #[test]
    fn a_renewal_moves_the_deadline() {
        let mut table = BindingTable::default();
        table.insert(binding(1, 100), false);
        let changes = table.insert(binding(1, 300), false);
        assert_eq!(changes.iter().map(|c| c.change).collect::<Vec<_>>(), [Change::Updated]);
        assert_eq!(table.deadline(), Some(Instant::from_secs(300)));
        assert_eq!(table.expire(Instant::from_secs(299)), None);
        assert_eq!(table.expire(Instant::from_secs(300)).map(|c| c.change), Some(Change::Expired));
        assert!(table.tunnels(HOME).is_empty() && table.deadline().is_none());
    }

    #[test]
    fn an_infinite_binding_has_no_deadline() {
        let mut table = BindingTable::default();
        table.insert(binding(1, 0xffff), false);
        assert_eq!(table.deadline(), None);
        assert_eq!(table.expire(Instant::MAX), None);
    }

    #[test]
    fn removing_everything_leaves_nothing_behind() {
        let mut table = BindingTable::default();
        table.insert(binding(1, 100), true);
        table.insert(binding(2, 100), true);
        assert!(table.remove(HOME, care_of(9)).is_none());
        assert!(table.remove(HOME, care_of(1)).is_some());
        assert_eq!(table.remove_all(HOME).len(), 1);
        assert_eq!((table.len(), table.deadline(), table.nodes.len()), (0, None, 0));
    }
}
