//! `[multipath]`, its names looked up.

use super::Network;
use crate::error::Problems;
use crate::model::{LinkId, Multipath, NodeId, PathLink, PathRule};
use crate::multipath::{MOST_PATHS, MultipathDraft};
use crate::node::NodeDraft;
use crate::tree::quote;

impl Network {
    /// Several links at once of the mobile node `mobile`; `None` where something is wrong, which is reported.
    pub(super) fn multipath(
        &self,
        draft: MultipathDraft<'_>,
        nodes: &[NodeDraft<'_>],
        mobile: NodeId,
        problems: &mut Problems,
    ) -> Option<Multipath> {
        let before = problems.count();
        let place = (draft.origin, "multipath");
        let mut paths: Vec<PathLink> = Vec::new();
        match draft.paths {
            None => {
                let own = self.links.iter().enumerate().filter(|(_, link)| link.access);
                let own = own.filter(|(_, link)| link.ends[1] == mobile);
                paths.extend(own.map(|(index, _)| PathLink { link: LinkId(index), cost: 0, weight: 1 }));
            }
            Some(named) => {
                for path in named {
                    let Some(link) = self.look_up_access(&path.link, problems) else { continue };
                    if paths.iter().any(|known| known.link == link) {
                        let expected = "each link is named once";
                        problems.add(path.link.place(), quote(path.link.name), expected, None);
                    }
                    paths.push(PathLink { link, cost: path.cost, weight: path.weight });
                }
            }
        }
        let relays = self.relays(nodes, mobile, problems);
        let several = (2..=MOST_PATHS).contains(&(paths.len() + relays.len())) && !paths.is_empty();
        if !several && problems.count() == before {
            let found = format!("{} access links and {} relays", paths.len(), relays.len());
            let expected =
                format!("several links at once are 2 to {MOST_PATHS}, one of them the mobile node's own");
            problems.add(place, found, expected, Some("name them in `paths`".to_owned()));
        }
        let mut rules = Vec::new();
        for rule in draft.rules {
            let mut links = Vec::new();
            for name in rule.paths.iter().flatten() {
                let Some(link) = self.look_up_access(name, problems) else { continue };
                if !paths.iter().any(|path| path.link == link) {
                    let expected = "a rule names links that are among the paths";
                    problems.add(name.place(), quote(name.name), expected, None);
                }
                links.push(link);
            }
            if rule.paths.is_none() {
                let lent = relays.iter().map(|relay| relay.link);
                links = paths.iter().map(|path| path.link).chain(lent).collect();
            }
            let to = self.destination(&rule.to, problems);
            rules.extend(to.map(|to| PathRule {
                to,
                port: rule.port,
                dscp: rule.dscp,
                paths: links,
                treatment: rule.treatment,
            }));
        }
        (problems.count() == before).then_some(Multipath {
            dispersion: draft.dispersion,
            resequencer: draft.resequencer,
            uplink: draft.uplink,
            paths,
            relays,
            trust: draft.trust,
            rules,
        })
    }
}
