//! The nodes that lend a mobile node their links.

use super::Network;
use crate::error::Problems;
use crate::model::{Link, LinkId, NodeId, RelayLink, Role};
use crate::node::NodeDraft;
use crate::tree::quote;

impl Network {
    /// Refuses relays where nobody uses several links at once.
    pub(super) fn refuse_relays(nodes: &[NodeDraft<'_>], problems: &mut Problems) {
        for draft in nodes.iter().filter(|draft| draft.role == Role::Relay) {
            let expected = "only with several links at once a node lends its own";
            problems.add(draft.place(), "\"relay\"", expected, Some("add [multipath]".to_owned()));
        }
    }

    /// The relays of the mobile node `mobile`, in the order of the file.
    pub(super) fn relays(
        &self,
        nodes: &[NodeDraft<'_>],
        mobile: NodeId,
        problems: &mut Problems,
    ) -> Vec<RelayLink> {
        let relays = nodes.iter().filter(|draft| draft.role == Role::Relay);
        relays.filter_map(|draft| self.relay(draft, mobile, problems)).collect()
    }

    fn relay(&self, draft: &NodeDraft<'_>, mobile: NodeId, problems: &mut Problems) -> Option<RelayLink> {
        let node = self.by_name.get(draft.name).copied()?;
        let links = || self.links.iter().zip(0..).map(|(link, id)| (link, LinkId(id)));
        let own: Vec<(&Link, LinkId)> = links().filter(|(link, _)| link.ends[1] == node).collect();
        let in_cluster: Vec<(&Link, LinkId)> = links().filter(|(link, _)| link.ends[0] == node).collect();
        let lends = |(link, _): &(&Link, LinkId)| {
            !matches!(self.role(link.ends[0]), Role::Relay | Role::Correspondent)
        };
        let (&[own], true) = (own.as_slice(), own.iter().all(lends)) else {
            let expected = "a relay lends one link: it is the second end of one that begins at a router";
            let hint = format!("write between = [\"ROUTER\", {}] for one link", quote(draft.name));
            problems.add(draft.place(), quote(draft.name), expected, Some(hint));
            return None;
        };
        let (&[cluster], true) =
            (in_cluster.as_slice(), in_cluster.iter().all(|(link, _)| link.ends[1] == mobile))
        else {
            let expected = "a relay is the first end of one link, whose second end is the mobile node";
            let hint = format!("write between = [{}, \"mobile\"] for one link", quote(draft.name));
            problems.add(draft.place(), quote(draft.name), expected, Some(hint));
            return None;
        };
        let told = draft.relay;
        Some(RelayLink {
            node,
            link: own.1,
            cluster: cluster.1,
            cost: told.cost,
            claims: told.claims,
            client_rate: told.client_rate,
            client_bytes: told.client_bytes,
            longest: told.longest,
            drops: told.drops,
            gone: told.vanishes.map(|vanishes| (vanishes, told.returns)),
        })
    }
}
