//! Addresses of single nodes, held against the networks that the nodes are in.

use core::net::IpAddr;

use super::Network;
use crate::address::AddressDraft;
use crate::error::Problems;
use crate::model::{CareOf, IpVersion, LinkId, Mobility, NodeId, Role};
use crate::node::NodeDraft;
use crate::prefix::Prefix;

/// A network whose prefix the file says.
struct Given {
    prefix: Prefix,
    /// The table in which it says that.
    table: String,
    /// Who is there, each with its place in the network unless the file gives it another address.
    members: Vec<(NodeId, u128)>,
    /// A link that its mobile node visits.
    is_visited: bool,
}

impl Given {
    fn place_of(&self, node: NodeId) -> Option<u128> {
        self.members.iter().find(|(member, _)| *member == node).map(|(_, place)| *place)
    }

    /// The address of the host at a place.
    fn host(&self, place: u128) -> IpAddr {
        match self.prefix.network() {
            IpAddr::V4(network) => IpAddr::V4((network.to_bits() | place as u32).into()),
            IpAddr::V6(network) => IpAddr::V6((network.to_bits() | place).into()),
        }
    }
}

impl Network {
    /// Gives nodes the addresses of the file.
    pub(super) fn give_addresses(
        &mut self,
        drafts: &[NodeDraft<'_>],
        mobility: Option<&Mobility>,
        version: IpVersion,
        problems: &mut Problems,
    ) {
        if drafts.iter().all(|draft| draft.addresses.is_empty()) {
            return;
        }
        let networks = self.given_networks(mobility);
        let mut taken: Vec<(NodeId, usize, &AddressDraft)> = Vec::new();
        for draft in drafts {
            let Some(node) = self.by_name.get(draft.name).copied() else { continue };
            for address in &draft.addresses {
                let Some(network) = self.network_of(node, address, &networks, mobility, version, problems)
                else {
                    continue;
                };
                let has_one = taken.iter().any(|(other, of, _)| (*other, *of) == (node, network));
                if has_one {
                    let expected =
                        format!("\"{}\" has one address in {}", draft.name, networks[network].prefix);
                    let hint = "leave all but one of them out";
                    add(address, expected, Some(hint.to_owned()), problems);
                    continue;
                }
                taken.push((node, network, address));
            }
        }
        for (at, (node, network, draft)) in taken.iter().enumerate() {
            let is_formed = |node: NodeId| {
                networks[*network].is_visited
                    && version == IpVersion::V6
                    && self.nodes.get(node.0).is_some_and(|node| node.role == Role::Mobile)
            };
            let given = |node: NodeId| taken.iter().find(|(other, of, _)| (*other, of) == (node, network));
            let is_same = |&&(other, place): &&(NodeId, u128)| {
                other != *node
                    && match given(other) {
                        // It is reported once.
                        Some((_, _, other)) => {
                            other.address == draft.address
                                && taken[..at].iter().any(|(_, _, before)| before.path == other.path)
                        }
                        // Where it visits it forms its address.
                        None if is_formed(other) => false,
                        None => networks[*network].host(place) == draft.address,
                    }
            };
            let Some((other, _)) = networks[*network].members.iter().find(is_same) else { continue };
            let expected =
                format!("it is the address of \"{}\" there", self.name(*other).unwrap_or_default());
            let hint = "take another; `careof check` prints all addresses of the file without this one";
            add(draft, expected, Some(hint.to_owned()), problems);
        }
        for (node, _, draft) in taken {
            if let Some(node) = self.nodes.get_mut(node.0) {
                node.addresses.push(draft.address);
            }
        }
    }

    /// The networks with a prefix of the file, and who is in them.
    fn given_networks(&self, mobility: Option<&Mobility>) -> Vec<Given> {
        let home = mobility.and_then(|mobility| mobility.home);
        let links = self.links.iter().enumerate().filter_map(|(id, link)| {
            Some(Given {
                prefix: link.prefix?,
                table: format!("links.{}", link.name),
                members: vec![(link.ends[0], 1), (link.ends[1], 2)],
                is_visited: link.access && home != Some(LinkId(id)),
            })
        });
        let homes = self.with_role(Role::HomeAgent).filter_map(|agent| {
            let node = self.nodes.get(agent.0)?;
            let own = self.home_agents.iter().filter(|(_, of)| *of == agent);
            let mobiles = own.zip(2..).map(|((mobile, _), place)| (*mobile, place));
            Some(Given {
                prefix: node.home_prefix?,
                table: format!("nodes.{}", node.name),
                members: core::iter::once((agent, 1)).chain(mobiles).collect(),
                is_visited: false,
            })
        });
        links.chain(homes).collect()
    }

    /// The network of `node` that an address is of; `None` if it can have it in none, which is reported.
    fn network_of(
        &self,
        node: NodeId,
        draft: &AddressDraft,
        networks: &[Given],
        mobility: Option<&Mobility>,
        version: IpVersion,
        problems: &mut Problems,
    ) -> Option<usize> {
        let name = self.name(node).unwrap_or_default();
        if draft.address.is_ipv4() != (version == IpVersion::V4) {
            let hint = match version {
                IpVersion::V4 => {
                    "write an IPv4 address; IPv6 is that of protocol = \"mobile-ipv6\" or ip_version = 6"
                }
                IpVersion::V6 => "write an IPv6 address",
            };
            add(draft, format!("the run is of IPv{}", version.number()), Some(hint.to_owned()), problems);
            return None;
        }
        let of_the_node = || networks.iter().enumerate().filter(|(_, given)| given.place_of(node).is_some());
        let Some((index, network)) = of_the_node().find(|(_, given)| given.prefix.contains(draft.address))
        else {
            let known: Vec<String> =
                of_the_node().map(|(_, given)| format!("{} (`{}`)", given.prefix, given.table)).collect();
            let (expected, hint) = if known.is_empty() {
                let home =
                    mobility.and_then(|mobility| mobility.home).and_then(|home| self.links.get(home.0));
                let own = home.or_else(|| self.links.iter().find(|link| link.ends.contains(&node)));
                let table = match self.home_agents.iter().find(|(mobile, _)| *mobile == node) {
                    Some((_, agent)) if home.is_none() => {
                        format!("nodes.{}", self.name(*agent).unwrap_or_default())
                    }
                    _ => format!("links.{}", own.map(|link| link.name.as_str()).unwrap_or_default()),
                };
                let prefix = Prefix::around(draft.address);
                let expected =
                    format!("it is of a network of \"{name}\" that has a `prefix`, and none has one");
                (expected, format!("write prefix = \"{prefix}\" in {table}"))
            } else {
                let expected =
                    format!("the networks of \"{name}\" that have a `prefix` are {}", known.join(" and "));
                (expected, "take an address there, or write `prefix` in another one's table".to_owned())
            };
            add(draft, expected, Some(hint), problems);
            return None;
        };
        if network.is_visited && self.role(node) == Role::Mobile {
            let refusal = match (version, mobility.map(|mobility| mobility.care_of)) {
                (IpVersion::V6, _) => Some("the mobile node forms its address there itself"),
                (IpVersion::V4, Some(CareOf::Dhcp)) => Some("the mobile node asks for its address there"),
                (IpVersion::V4, Some(CareOf::ForeignAgent)) => {
                    Some("the foreign agent lends the mobile node its own address there")
                }
                (IpVersion::V4, _) => None,
            };
            if let Some(expected) = refusal {
                let hint = "its home address is one of the `prefix` of its home agent, or of its home link";
                add(draft, expected.to_owned(), Some(hint.to_owned()), problems);
                return None;
            }
        }
        Some(index)
    }
}

fn add(draft: &AddressDraft, expected: String, hint: Option<String>, problems: &mut Problems) {
    problems.add((draft.origin, draft.path.as_str()), format!("\"{}\"", draft.address), expected, hint);
}
