//! `[[flow]]`, its nodes looked up and its copies made.

use std::collections::BTreeSet;

use super::{Network, listed};
use crate::error::Problems;
use crate::flow::{FlowDraft, ProgramsDraft, Work};
use crate::mobility::Reference;
use crate::model::{CopyNumber, Flow, IpVersion, Link, LinkId, Mptcp, NodeId, Programs, Workload};
use crate::mptcp::MptcpDraft;
use crate::pattern::is_pattern;
use crate::tree::quote;
use crate::words::nearest;

impl Network {
    pub(super) fn flows(
        &self,
        drafts: Vec<FlowDraft<'_>>,
        ip_version: IpVersion,
        problems: &mut Problems,
    ) -> Vec<Flow> {
        let mut given: Vec<(&str, usize)> = Vec::new();
        for (index, draft) in drafts.iter().enumerate() {
            let Some(name) = draft.name else { continue };
            if let Some((_, first)) = given.iter().find(|(other, _)| *other == name) {
                let (origin, path) = &draft.place;
                problems.add(
                    (*origin, path),
                    quote(name),
                    format!("no two flows share a name, and flow.{first} has it already"),
                    Some("give this one another name, or none".to_owned()),
                );
            }
            given.push((name, index));
        }
        let (reach, mtus) = (self.reach(), self.mtus());
        let mut flows: Vec<Flow> = Vec::new();
        let mut names: BTreeSet<String> = given.iter().map(|(name, _)| (*name).to_owned()).collect();
        for (index, draft) in drafts.into_iter().enumerate() {
            let name = match draft.name {
                Some(name) => name.to_owned(),
                None => unused_name(index + 1, |name| names.contains(name)),
            };
            names.insert(name.clone());
            let all_from =
                draft.from.as_ref().map(|from| self.look_up_nodes(from, problems)).unwrap_or_default();
            let all_to = draft.to.as_ref().map(|to| self.look_up_nodes(to, problems)).unwrap_or_default();
            let (false, false, Some(written)) = (all_from.is_empty(), all_to.is_empty(), &draft.to) else {
                continue;
            };
            let patterns =
                [&draft.from, &draft.to].map(|end| end.as_ref().is_some_and(|end| is_pattern(end.name)));
            let nodes = all_from.len().max(all_to.len());
            if let (Some((count, origin, path)), true) = (&draft.count, patterns.contains(&true)) {
                let expected = "a table with a pattern stands for a flow for each node of it";
                problems.add(
                    (*origin, path),
                    count.to_string(),
                    expected,
                    Some("leave `count` out".to_owned()),
                );
                continue;
            }
            let of = draft.count.as_ref().map_or(nodes, |(count, ..)| *count);
            if patterns == [true, true] && all_from.len() != all_to.len() {
                let expected =
                    format!("node by node, and of those it is to be joined to there are {}", all_from.len());
                problems.add(written.place(), format!("{} nodes", all_to.len()), expected, None);
                continue;
            }
            let is_copied = patterns.contains(&true) || draft.count.is_some();
            let start = draft.from.as_ref().map_or("", |from| from.name);
            for (number, (from, to)) in all_from
                .iter()
                .cycle()
                .zip(all_to.iter().cycle())
                .map(|(from, to)| (*from, *to))
                .take(of)
                .enumerate()
            {
                let name = if is_copied { format!("{name}-{}", number + 1) } else { name.clone() };
                if is_copied && !names.insert(name.clone()) {
                    let expected = "no two flows share a name, and another flow has this one";
                    problems.add((draft.place.0, &draft.place.1), quote(&name), expected, None);
                    break;
                }
                if from == to {
                    problems.add(
                        written.place(),
                        quote(written.name),
                        "a flow joins two different nodes",
                        None,
                    );
                    break;
                }
                if reach[from.0].is_disjoint(&reach[to.0]) {
                    let expected = format!("no path of links leads there from \"{start}\"");
                    let hint = "join them in [links]".to_owned();
                    problems.add(written.place(), quote(written.name), expected, Some(hint));
                    break;
                }
                let before = problems.count();
                let mtu = mtus[from.0].min(mtus[to.0]);
                let tcp = draft.tcp.clone().and_then(|tcp| tcp.resolve(mtu, problems));
                let quic = match &draft.quic {
                    Some(quic) => match quic.clone().resolve(mtu, ip_version, problems) {
                        Some(quic) => Some(quic),
                        None => break,
                    },
                    None => None,
                };
                let mptcp = match &draft.mptcp {
                    Some(mptcp) => match self.mptcp(mptcp, [from, to], problems) {
                        Some(mptcp) => Some(mptcp),
                        None => break,
                    },
                    None => None,
                };
                let (Some(work), Some(tcp)) = (&draft.workload, tcp) else { break };
                let (workload, programs) = match work {
                    Work::Model(workload) => (*workload, None),
                    Work::Programs(draft) => {
                        self.check_placeholders(draft, problems);
                        (Workload::Command, Some(draft.programs.clone()))
                    }
                    Work::Probe(link) => {
                        let Some(link) = self.probed(link.as_ref(), [from, to], written, problems) else {
                            break;
                        };
                        (Workload::Probe { link }, None)
                    }
                };
                let (start, stop) = (draft.start, draft.stop);
                let copy = is_copied.then_some(CopyNumber { number: number + 1, of });
                flows.push(Flow { name, from, to, start, stop, workload, programs, tcp, quic, mptcp, copy });
                if problems.count() > before {
                    break;
                }
            }
        }
        flows
    }

    /// Multipath TCP between `ends`, its links looked up.
    fn mptcp(&self, draft: &MptcpDraft<'_>, ends: [NodeId; 2], problems: &mut Problems) -> Option<Mptcp> {
        let mut mptcp = draft.mptcp.clone();
        for reference in &draft.backup {
            let link = self.look_up_access(reference, problems)?;
            let is_own = self.links.get(link.0).is_some_and(|link| ends.contains(&link.ends[1]));
            if !is_own {
                let expected = "it is a link of neither end of the flow";
                problems.add(reference.place(), quote(reference.name), expected, None);
                return None;
            }
            mptcp.backup.push(link);
        }
        Some(mptcp)
    }

    /// The link that a probe between `ends` measures.
    fn probed(
        &self,
        link: Option<&Reference<'_>>,
        ends: [NodeId; 2],
        to: &Reference<'_>,
        problems: &mut Problems,
    ) -> Option<LinkId> {
        let joins = |link: &Link| link.ends.iter().all(|end| ends.contains(end));
        let Some(named) = link else {
            let found = self.links.iter().position(joins);
            if found.is_none() {
                let expected = "a probe measures a link that joins its two nodes, and none does";
                problems.add(to.place(), quote(to.name), expected, None);
            }
            return found.map(LinkId);
        };
        let found = self.links.iter().position(|link| link.name == named.name && joins(link));
        if found.is_none() {
            let joining: Vec<&str> =
                self.links.iter().filter(|link| joins(link)).map(|link| link.name.as_str()).collect();
            let expected = match joining.as_slice() {
                [] => "no link joins the probe's two nodes".to_owned(),
                _ => format!("the probe's two nodes are joined by {}", listed(&joining)),
            };
            problems.add(named.place(), quote(named.name), expected, None);
        }
        found.map(LinkId)
    }

    /// Whether everything in braces in the words of programs is a node.
    fn check_placeholders(&self, draft: &ProgramsDraft, problems: &mut Problems) {
        let programs = [Some(&draft.programs.command), draft.programs.server.as_ref()];
        for (words, (origin, path)) in programs.into_iter().flatten().zip(&draft.places) {
            for word in words {
                let known = |name: &str| self.nodes.iter().any(|node| node.name == name).then(String::new);
                let Err(name) = Programs::fill(word, known) else { continue };
                let names: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
                let hint =
                    nearest(name, names.iter().copied()).map(|near| format!("did you mean \"{{{near}}}\"?"));
                let expected = format!("in braces stand nodes, and those are {}", listed(&names));
                problems.add((*origin, path), format!("\"{{{name}}}\""), expected, hint);
            }
        }
    }
}

/// `flow-N` with the first free N from `number`.
fn unused_name(number: usize, taken: impl Fn(&str) -> bool) -> String {
    (number..).map(|number| format!("flow-{number}")).find(|name| !taken(name)).unwrap_or_default()
}
