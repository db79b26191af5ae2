//! `[nodes]`: who is there, and which home agent a mobile node has.

use super::{CORRESPONDENT, HOME_AGENT, MOBILE, Network, listed};
use crate::error::{Origin, Problems};
use crate::link::LinkDraft;
use crate::mobility::MobilityDraft;
use crate::model::{IpVersion, NodeId, Role};
use crate::node::{MOST_MOBILE_NODES, NodeDraft};
use crate::prefix::check_prefixes;
use crate::tree::quote;
use crate::words::nearest;

/// The nodes that are understood where the file gives none of their role.
const UNDERSTOOD: [(Role, &str); 3] =
    [(Role::Correspondent, CORRESPONDENT), (Role::HomeAgent, HOME_AGENT), (Role::Mobile, MOBILE)];

impl Network {
    /// Remembers the roles of `drafts`, and adds the correspondents, home agents and mobile nodes, those given or the ones that
    /// are understood; `many` is whether mobile nodes come with their radio.
    pub(super) fn add_nodes(
        &mut self,
        drafts: &[NodeDraft<'_>],
        mobility: Option<&MobilityDraft<'_>>,
        problems: &mut Problems,
    ) {
        self.roles = drafts.iter().map(|draft| (draft.name.to_owned(), draft.role)).collect();
        let Some(mobility) = mobility else { return };
        for (role, understood) in UNDERSTOOD {
            let mut given: Vec<&NodeDraft<'_>> = drafts.iter().filter(|draft| draft.role == role).collect();
            if role == Role::Mobile && mobility.nodes.is_some() {
                continue;
            }
            if role == Role::Mobile {
                // Those of one home agent stand in a row.
                let agent = |draft: &&NodeDraft<'_>| {
                    draft.home_agent.as_ref().and_then(|agent| self.by_name.get(agent.name)).copied()
                };
                given.sort_by_key(agent);
            }
            if given.is_empty() {
                match drafts.iter().find(|draft| draft.name == understood) {
                    Some(other) => {
                        let expected = format!("without another {} the node of this name is it", role.name());
                        let hint =
                            format!("name it otherwise, or give another node role = \"{}\"", role.name());
                        problems.add(other.place(), quote(other.role.name()), expected, Some(hint));
                    }
                    None => _ = self.add_node(understood, role),
                }
            }
            for draft in given {
                let id = self.add_node(draft.name, role);
                if role == Role::Mobile {
                    let agent = self.home_agent_of(draft, problems);
                    self.home_agents.extend(agent.map(|agent| (id, agent)));
                }
            }
        }
        self.give_understood_node_its_agent(mobility.origin, problems);
        for agent in self.with_role(Role::HomeAgent) {
            let served = self.home_agents.iter().filter(|(_, of)| *of == agent).count();
            if served > MOST_MOBILE_NODES {
                let place = drafts.iter().find(|draft| Some(draft.name) == self.name(agent));
                let place = place.map_or((mobility.origin, "nodes"), NodeDraft::place);
                let expected = format!("a home agent has at most {MOST_MOBILE_NODES} of them by name");
                let hint = "more that are alike are `nodes` of [mobility]".to_owned();
                problems.add(place, format!("{served} mobile nodes"), expected, Some(hint));
            }
        }
    }

    fn give_understood_node_its_agent(&mut self, origin: Origin, problems: &mut Problems) {
        let Some(mobile) = self.by_name.get(MOBILE).copied() else { return };
        let has_one = self.home_agents.iter().any(|(node, _)| *node == mobile);
        if has_one || self.role(mobile) != Role::Mobile || self.roles.contains_key(MOBILE) {
            return;
        }
        match self.with_role(Role::HomeAgent).collect::<Vec<_>>().as_slice() {
            [] => {}
            [agent] => self.home_agents.push((mobile, *agent)),
            agents => {
                let expected =
                    format!("of {} one is the home agent of \"{MOBILE}\"", self.listed_nodes(agents));
                let hint = format!(
                    "add {MOBILE} = {{ role = \"mobile\", home_agent = \"{}\" }} to [nodes]",
                    agents.first().and_then(|agent| self.name(*agent)).unwrap_or_default()
                );
                problems.add((origin, "nodes"), "several home agents", expected, Some(hint));
            }
        }
    }

    fn home_agent_of(&self, draft: &NodeDraft<'_>, problems: &mut Problems) -> Option<NodeId> {
        let agents: Vec<NodeId> = self.with_role(Role::HomeAgent).collect();
        let expected = || format!("the home agents are {}", self.listed_nodes(&agents));
        match (&draft.home_agent, agents.as_slice()) {
            (None, [agent]) => Some(*agent),
            (None, []) => None,
            (None, [first, ..]) => {
                let hint = format!(
                    "write {} = {{ role = \"mobile\", home_agent = \"{}\" }}",
                    draft.name,
                    self.name(*first).unwrap_or_default()
                );
                problems.add(draft.place(), "no home agent", expected(), Some(hint));
                None
            }
            (Some(named), _) => {
                let found = agents.iter().find(|agent| self.name(**agent) == Some(named.name)).copied();
                if found.is_none() {
                    let names = agents.iter().filter_map(|agent| self.name(*agent));
                    let hint = nearest(named.name, names).map(|near| format!("did you mean \"{near}\"?"));
                    problems.add(named.place(), quote(named.name), expected(), hint);
                }
                found
            }
        }
    }

    /// Says of which given nodes no link is, and of which mobile nodes no access link.
    pub(super) fn check_nodes(&self, drafts: &[NodeDraft<'_>], problems: &mut Problems) {
        for draft in drafts {
            let is_end = |id: NodeId| self.links.iter().any(|link| link.ends.contains(&id));
            if self.by_name.get(draft.name).copied().is_some_and(is_end) {
                continue;
            }
            let hint = format!("add a link with between = [\"ROUTER\", \"{}\"] to [links]", draft.name);
            let expected = "every node stands at the end of a link, and no link names this one";
            problems.add(draft.place(), quote(draft.name), expected, Some(hint));
        }
    }

    /// Gives the links and home agents the prefixes of the file.
    pub(super) fn give_prefixes(
        &mut self,
        links: &[LinkDraft<'_>],
        nodes: &[NodeDraft<'_>],
        version: IpVersion,
        problems: &mut Problems,
    ) {
        let of_links = links.iter().filter_map(|draft| draft.prefix.as_ref());
        let of_nodes = nodes.iter().filter_map(|draft| draft.prefix.as_ref());
        check_prefixes(of_links.chain(of_nodes), version, problems);
        for draft in links {
            if let Some(link) = self.links.iter_mut().find(|link| link.name == draft.name) {
                link.prefix = draft.prefix.as_ref().map(|draft| draft.prefix);
            }
        }
        for draft in nodes {
            if let Some(node) = self.nodes.iter_mut().find(|node| node.name == draft.name) {
                node.home_prefix = draft.prefix.as_ref().map(|draft| draft.prefix);
            }
        }
    }

    /// All nodes with `role`, in order. They may be many: who asks for each link takes no more of them than it needs.
    pub(super) fn with_role(&self, role: Role) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.nodes.len()).map(NodeId).filter(move |id| self.role(*id) == role)
    }

    /// Whether several nodes move or several home agents are there, so that nothing is understood of links.
    pub(super) fn is_several(&self) -> bool {
        [Role::HomeAgent, Role::Mobile].into_iter().any(|role| self.with_role(role).nth(1).is_some())
    }

    /// The home agent of the mobile node at the second end of an access link; of many mobile nodes the only one.
    pub(super) fn agent_of(&self, mobile: NodeId) -> Option<NodeId> {
        let own = self.home_agents.iter().find(|(node, _)| *node == mobile).map(|(_, agent)| *agent);
        own.or_else(|| self.with_role(Role::HomeAgent).next())
    }

    pub(super) fn name(&self, id: NodeId) -> Option<&str> {
        self.nodes.get(id.0).map(|node| node.name.as_str())
    }

    fn listed_nodes(&self, ids: &[NodeId]) -> String {
        let names: Vec<&str> = ids.iter().filter_map(|id| self.name(*id)).collect();
        listed(&names)
    }
}
