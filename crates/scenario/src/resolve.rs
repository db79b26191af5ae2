//! From the file to a [`Scenario`]: names looked up, what is understood made explicit, the whole checked.

mod addresses;
mod flows;
mod hierarchy;
mod micro_mobility;
mod mobility;
mod multipath;
mod nodes;
mod relay;

use std::collections::{BTreeMap, BTreeSet};

use careof_link::Config;

use crate::assist::{AssistDraft, Surroundings, assist};
use crate::decode::{Field, Reader};
use crate::error::{Origin, Problems};
use crate::flow::flow;
use crate::link::{Between, IMPLIED_PRESET, LinkDraft, link};
use crate::many::{MOBILES, MoreOfRadios, RADIO, is_the_radio};
use crate::medium::{MediumDraft, media};
use crate::micro_mobility::{micro_mobility, refuse_other_mobility};
use crate::mobility::{HandoverDraft, MobilityDraft, Reference, To, handover, mobility, round};
use crate::model::{
    Assist, AssistException, CareOf, CopyNumber, Destination, Fleet, IpVersion, Link, LinkId, Medium,
    MicroProtocol, Node, NodeId, Protocol, Role, Routing, Scenario,
};
use crate::multipath::{fit_mobility, multipath};
use crate::node::{NodeDraft, nodes};
use crate::pattern::{is_pattern, numbered};
use crate::presets::preset;
use crate::reference::ROOT;
use crate::trace::ReadFile;
use crate::tree::{Entry, Table, Value, quote};
use crate::words::{nearest, one_of};

const CORRESPONDENT: &str = "correspondent";
pub(crate) const HOME_AGENT: &str = "home-agent";
pub(crate) const MOBILE: &str = "mobile";
const FOREIGN_AGENT_PREFIX: &str = "foreign-agent-";
/// The link between correspondent and home agent where the file gives none.
const ETHERNET: &str = "ethernet";
/// What the name of a foreign agent's own link ends with where the file gives none.
const BACKHAUL: &str = "-backhaul";

/// The version of IP: the one that is asked for, else that of the protocol by which somebody moves.
fn ip_version(top: &Reader<'_>, protocol: Option<Protocol>, problems: &mut Problems) -> IpVersion {
    let of_protocol = protocol.map(Protocol::ip_version);
    let Some(field) = top.get("ip_version") else { return of_protocol.unwrap_or_default() };
    let asked = match field.integer(4, 6, problems) {
        Some(6) => IpVersion::V6,
        Some(5) => {
            field.wrong("there is 4 and there is 6", None, problems);
            return IpVersion::default();
        }
        _ => IpVersion::V4,
    };
    if let (Some(protocol), true) = (protocol, of_protocol.is_some_and(|version| version != asked)) {
        let expected = format!("{protocol} is for version {}", protocol.ip_version().number());
        field.wrong(
            expected,
            Some("leave `ip_version` out, or choose the other protocol".to_owned()),
            problems,
        );
    }
    asked
}

/// Reads the whole tree. Everything wrong is in `problems`; without problems there is a scenario.
pub(crate) fn scenario(
    tree: &Table,
    stem: &str,
    files: &ReadFile<'_>,
    problems: &mut Problems,
) -> Option<Scenario> {
    let top = Reader::new(tree, &ROOT, (Origin::File(0), ""), problems);
    let title = top.get("title").and_then(|field| field.text(problems));
    let description = top.get("description").and_then(|field| field.text(problems));
    let duration = top
        .require("duration", "a scenario needs its length: duration = \"120 s\"", problems)
        .and_then(|field| field.positive_duration(problems));
    let seed = top.get("seed").and_then(|field| field.integer(0, u64::MAX, problems));
    let stall_threshold = top.get("stall_threshold").and_then(|field| field.positive_duration(problems));
    let mobility_given = top.get("mobility");
    let mut mobility = mobility_given.as_ref().and_then(|field| mobility(field, problems));
    let ip_version = ip_version(&top, mobility.as_ref().map(|mobility| mobility.protocol), problems);
    let many = mobility.as_ref().is_some_and(|mobility| mobility.nodes.is_some());
    let nodes = nodes(&top, mobility_given.is_some(), many, problems);
    let media = media(&top, problems);
    let links = links(&top, mobility_given.is_some(), &media, files, problems);
    let micro_given = top.get("micro_mobility");
    let micro = micro_given.as_ref().and_then(|field| micro_mobility(field, problems));
    let given = tables(&top, "handover", problems);
    let (mut handovers, mut rounds, mut unread) = (Vec::new(), Vec::new(), 0);
    for (table, field) in given.iter().enumerate() {
        match round(field, (many, micro_given.is_some()), files, problems) {
            Some(Some(round)) => rounds.push(round),
            Some(None) => unread += 1,
            None => match handover(field, table, duration, problems) {
                Some(of_table) => handovers.extend(of_table),
                None => unread += 1,
            },
        }
    }
    let flows: Vec<_> =
        tables(&top, "flow", problems).iter().filter_map(|field| flow(field, duration, problems)).collect();
    let assists = top.get("assist").map(|field| assist(&field, problems)).unwrap_or_default();

    if let Some(micro) = &micro {
        let before = problems.count();
        refuse_other_mobility(micro, mobility.as_ref(), problems);
        if problems.count() > before {
            return None;
        }
    }
    let multipath = top.get("multipath").and_then(|field| multipath(&field, problems));
    if let Some(multipath) = &multipath {
        let before = problems.count();
        fit_mobility(
            multipath,
            mobility.as_mut(),
            mobility_given.as_ref(),
            top.get("handover").is_some(),
            problems,
        );
        if problems.count() > before {
            return None;
        }
    }
    // From here on names are looked up, which is pointless where what they name could not be read.
    let more = MoreOfRadios {
        second: rounds.first().is_some_and(|round| !round.overlap.is_zero())
            || micro.as_ref().and_then(|micro| micro.protocol).is_some_and(MicroProtocol::is_semi_soft),
        in_domain: micro.is_some(),
    };
    let mut network = network(
        &links,
        &nodes,
        &media,
        mobility.as_ref(),
        (mobility_given.is_some(), more),
        &handovers,
        problems,
    )?;
    if let Some(micro) = &micro {
        network.place_gateway(micro);
    }
    network.check_ipv4_only(&links, mobility.as_ref(), problems);
    if let Some(mobility) = &mobility {
        network.check_fast_handovers(&links, mobility, problems);
    }
    network.give_prefixes(&links, &nodes, ip_version, problems);
    if mobility_given.is_none()
        && let Some(field) = top.get("handover")
    {
        let hint = "add [mobility] with protocol = \"mobile-ipv4\"".to_owned();
        problems.add(field.place(), field.node.value.describe(), "handovers need a mobile node", Some(hint));
    }
    network.rounds(&rounds, &handovers, mobility.is_some(), problems);
    let surroundings = mobility.as_ref().map(|mobility| Surroundings {
        foreign_agents: network.nodes.iter().any(|node| node.role == Role::ForeignAgent),
        access_routers: (mobility.protocol == Protocol::MobileIpv6).then(|| network.has_access_router()),
        reverse_tunnels: mobility.routing == Routing::ReverseTunnel,
        one_way: mobility.policy.iter().position(|rule| rule.method != Routing::ReverseTunnel),
        simultaneous_bindings: mobility.simultaneous_bindings,
        handovers: (unread == 0)
            .then(|| handovers.iter().map(|one| (one.table, one.notice, one.queued)).collect()),
    });
    let (assists, assist_except) = network.assists(assists, surroundings.as_ref(), problems);
    if multipath.is_none() {
        Network::refuse_relays(&nodes, problems);
    }
    let mobility = mobility
        .and_then(|draft| network.mobility(draft, &nodes, (micro.as_ref(), multipath), &handovers, problems));
    // A handover that could not be read leaves a gap in the chain of links.
    let chain = mobility.as_ref().filter(|_| unread == 0).map(|mobility| mobility.nodes.as_slice());
    network.give_addresses(&nodes, mobility.as_ref(), ip_version, problems);
    let (handovers, poisson_handovers) = network.handovers(handovers, chain, duration, problems);
    let flows = network.flows(flows, ip_version, problems);

    let duration = duration?;
    if problems.count() > 0 {
        return None;
    }
    Some(Scenario {
        title: title.unwrap_or(stem).to_owned(),
        description: description.unwrap_or_default().trim().to_owned(),
        duration,
        seed: seed.unwrap_or(1),
        stall_threshold,
        ip_version,
        nodes: network.nodes,
        links: network.links,
        media: network.media,
        mobility,
        handovers,
        poisson_handovers,
        flows,
        assists,
        assist_except,
    })
}

/// The elements of the array of tables `key`.
fn tables<'a>(top: &Reader<'a>, key: &str, problems: &mut Problems) -> Vec<Field<'a>> {
    top.get(key)
        .map(|field| field.list(&format!("write [[{key}]], once for each {key}"), problems))
        .unwrap_or_default()
}

fn links<'a>(
    top: &Reader<'a>,
    mobile: bool,
    media: &[MediumDraft<'_>],
    files: &ReadFile<'_>,
    problems: &mut Problems,
) -> Vec<LinkDraft<'a>> {
    const EXPECTED: &str = "a scenario needs at least one link: [links] with wavelan = \"wavelan\"";
    let Some(field) = top.require("links", EXPECTED, problems) else { return Vec::new() };
    let Value::Table(table) = &field.node.value else {
        field.wrong("links is a table of links: [links] with wavelan = \"wavelan\"", None, problems);
        return Vec::new();
    };
    if table.entries.is_empty() {
        problems.add(field.place(), "no link", EXPECTED, None);
    }
    let implied = |entry| mobile && may_be_implied(entry, table);
    table.entries.iter().map(|entry| link(entry, implied(entry), media, files, problems)).collect()
}

/// Whether a link of this name exists without being given, so that its table only changes it.
fn may_be_implied(entry: &Entry, links: &Table) -> bool {
    let placed = matches!(&entry.node.value, Value::Table(table) if table.get("between").is_some());
    let backhaul = entry.key.strip_suffix(BACKHAUL).is_some_and(|access| links.get(access).is_some());
    !placed && (entry.key == ETHERNET || backhaul)
}

/// The network under construction.
pub(crate) struct Network {
    pub(crate) nodes: Vec<Node>,
    /// By name, as they may be many.
    pub(crate) by_name: BTreeMap<String, NodeId>,
    pub(crate) links: Vec<Link>,
    pub(crate) media: Vec<Medium>,
    /// What the file says of nodes, by name.
    roles: BTreeMap<String, Role>,
    /// Of the mobile nodes that move by themselves, each with its home agent.
    home_agents: Vec<(NodeId, NodeId)>,
    mobile: bool,
    pub(crate) fleet: Option<Fleet>,
}

/// Joins the links to a network; `None` if something a link is made of could not be read.
fn network(
    drafts: &[LinkDraft<'_>],
    nodes: &[NodeDraft<'_>],
    media: &[MediumDraft<'_>],
    mobility: Option<&MobilityDraft<'_>>,
    (mobile, more): (bool, MoreOfRadios),
    handovers: &[HandoverDraft<'_>],
    problems: &mut Problems,
) -> Option<Network> {
    let mut network = Network {
        nodes: Vec::new(),
        by_name: BTreeMap::new(),
        links: Vec::new(),
        media: Vec::new(),
        roles: BTreeMap::new(),
        home_agents: Vec::new(),
        mobile,
        fleet: None,
    };
    if drafts.is_empty() || (mobile && mobility.is_none()) {
        return None;
    }
    let many = mobility.and_then(|mobility| mobility.nodes);
    network.add_nodes(nodes, mobility, problems);
    let is_several = network.is_several();
    let home = mobility.and_then(|mobility| mobility.home.as_ref()).map(|home| home.name);
    let care_of = mobility.map(|mobility| mobility.care_of).unwrap_or_default();
    // Tables of implied links: they take their place when it turns out that they are needed.
    let mut waiting = Vec::new();
    let mut radio = None;
    let mut complete = true;
    for draft in drafts {
        let ends = match &draft.between {
            Some(Between { ends: Some([stations, MOBILES]), .. }) if many.is_some() => {
                complete &= is_the_radio(draft, radio.map(|(draft, _)| draft), problems);
                radio = radio.or(Some((draft, *stations)));
                continue;
            }
            Some(Between { ends: Some(ends), .. })
                if draft.count.is_some() || ends.iter().any(|end| is_pattern(end)) =>
            {
                complete &= network.place_copies(draft, *ends, many.is_some(), care_of, problems);
                continue;
            }
            Some(Between { ends: Some([first, second]), .. }) => [(*first).to_owned(), (*second).to_owned()],
            Some(_) => {
                complete = false;
                continue;
            }
            None if mobile && !is_several && is_waiting(draft, drafts) => {
                waiting.push(draft);
                continue;
            }
            None if many.is_some() => {
                let hint = format!("the radio of the mobile nodes has between = {RADIO}");
                let expected = "with `nodes` a link names the nodes it joins";
                problems.add((draft.origin, &draft.path), "no ends", expected, Some(hint));
                complete = false;
                continue;
            }
            None if is_several => {
                let expected = "with several mobile nodes or home agents a link names the nodes it joins";
                let hint = "add between = [\"ROUTER\", \"MOBILE\"], the mobile node second".to_owned();
                problems.add((draft.origin, &draft.path), "no ends", expected, Some(hint));
                complete = false;
                continue;
            }
            None if mobile => {
                let agent = care_of == CareOf::ForeignAgent && home != Some(draft.name);
                let only = |role| {
                    let node = network.with_role(role).next();
                    node.and_then(|node| network.name(node)).unwrap_or_default().to_owned()
                };
                let anchor = if agent {
                    format!("{FOREIGN_AGENT_PREFIX}{}", draft.name)
                } else {
                    only(Role::HomeAgent)
                };
                [anchor, only(Role::Mobile)]
            }
            None => {
                problems.add(
                    (draft.origin, &draft.path),
                    "no ends",
                    "without [mobility] a link names the nodes it joins: between = [\"a\", \"b\"]",
                    None,
                );
                complete = false;
                continue;
            }
        };
        complete &= many.is_none() || network.leaves_mobile_nodes_alone(draft, &ends, problems);
        network.place(draft, draft.name.to_owned(), ends, None, care_of, home, problems);
    }
    if !complete {
        return None;
    }
    if let Some(count) = many {
        let Some((draft, stations)) = radio else {
            let origin = mobility.map_or(Origin::File(0), |mobility| mobility.origin);
            let expected = format!("the mobile nodes need a radio: a link with between = {RADIO}");
            problems.add((origin, "mobility"), "no radio", expected, None);
            return None;
        };
        network.place_radios(draft, stations, count, (care_of, more), problems)?;
    }
    if mobile {
        let places = drafts.iter().map(|draft| (draft.name.to_owned(), draft.ends_place())).collect();
        network.implied_links(waiting, &places, problems);
        if !network.links.iter().any(|link| link.access) {
            let origin = mobility.map_or(Origin::File(0), |mobility| mobility.origin);
            let named = handovers.first().map_or("wavelan", |handover| handover.from.name);
            problems.add(
                (origin, "mobility"),
                "no access link",
                "the mobile node needs a link: one in [links] without `between`, or with between = [\"home-agent\", \"mobile\"]",
                Some(format!("add {named} = \"wavelan\" to [links], for example")),
            );
            return None;
        }
    }
    network.check_nodes(nodes, problems);
    network.put_radios_last();
    network.lay_media(media, problems);
    Some(network)
}

/// Whether a link without `between` is one that is understood rather than an access link.
fn is_waiting(draft: &LinkDraft<'_>, drafts: &[LinkDraft<'_>]) -> bool {
    let backhaul_of = draft.name.strip_suffix(BACKHAUL);
    draft.name == ETHERNET
        || backhaul_of.is_some_and(|access| drafts.iter().any(|other| other.name == access))
}

impl Network {
    /// Whether a mobile node comes to a router that is no home agent.
    fn has_access_router(&self) -> bool {
        let mut anchors = self.links.iter().filter(|link| link.access).map(|link| link.ends[0]);
        anchors.any(|anchor| self.role(anchor) == Role::Host)
    }

    pub(crate) fn add_node(&mut self, name: &str, role: Role) -> NodeId {
        let id = NodeId(self.nodes.len());
        self.nodes.push(Node { name: name.to_owned(), role, home_prefix: None, addresses: Vec::new() });
        self.by_name.insert(name.to_owned(), id);
        id
    }

    fn node(&mut self, name: &str) -> NodeId {
        if let Some(found) = self.by_name.get(name) {
            return *found;
        }
        let given = self.roles.get(name).copied();
        let by_name = self.mobile && name.starts_with(FOREIGN_AGENT_PREFIX);
        let role = given.unwrap_or(if by_name { Role::ForeignAgent } else { Role::Host });
        self.add_node(name, role)
    }

    /// How many nodes of a pattern there are, counted without a gap from 1.
    pub(crate) fn count_of(&self, pattern: &str) -> usize {
        (1..).take_while(|number| self.by_name.contains_key(&numbered(pattern, *number))).count()
    }

    pub(crate) fn role(&self, id: NodeId) -> Role {
        self.nodes.get(id.0).map_or(Role::Host, |node| node.role)
    }

    /// Adds the link of `draft` between `ends`.
    #[expect(clippy::too_many_arguments, reason = "what a link is made of")]
    pub(crate) fn place(
        &mut self,
        draft: &LinkDraft<'_>,
        name: String,
        ends: [String; 2],
        copy: Option<CopyNumber>,
        care_of: CareOf,
        home: Option<&str>,
        problems: &mut Problems,
    ) {
        let ends = ends.map(|name| self.node(&name));
        let in_cluster = self.role(ends[0]) == Role::Relay;
        let access = self.mobile && self.role(ends[1]) == Role::Mobile && !in_cluster;
        let (origin, path) = draft.ends_place();
        let at = (origin, path.as_str());
        let written = ends.map(|id| self.nodes.get(id.0).map_or("", |node| node.name.as_str()));
        let found = format!("[\"{}\", \"{}\"]", written[0], written[1]);
        if self.role(ends[0]) == Role::Mobile {
            let (expected, hint) = match access {
                true => ("a link joins a mobile node to one that does not move", None),
                false => (
                    "the mobile node is the second end of its links, so that down is towards it",
                    Some(format!("write between = [\"{}\", \"{}\"]", written[1], written[0])),
                ),
            };
            problems.add(at, found, expected, hint);
        } else if access && home == Some(draft.name) && self.role(ends[0]) != Role::HomeAgent {
            let expected = "the mobile node is at home on this link, so it ends at \"home-agent\"";
            problems.add(at, found, expected, None);
        } else if access && self.role(ends[0]) == Role::Correspondent {
            let expected = "an access link ends at \"home-agent\", a foreign agent or another router";
            problems.add(at, found, expected, None);
        } else if access
            && care_of == CareOf::ForeignAgent
            && home != Some(draft.name)
            && self.role(ends[0]) != Role::ForeignAgent
        {
            let hint = format!("leave `between` out, or write \"{FOREIGN_AGENT_PREFIX}{}\"", draft.name);
            let expected = "with care_of = \"foreign-agent\" an access link ends at a foreign agent";
            problems.add(at, found, expected, Some(hint));
        }
        // A link that could not be read still takes its place, so that names can be looked up.
        let unknown = || Config { mtu: u16::MAX, ..Config::default() };
        let [down, up] = draft.directions.clone().unwrap_or_else(|| [unknown(), unknown()]);
        let (preset, medium, traces) = (draft.preset, draft.medium, draft.traces.clone());
        self.links.push(Link {
            name,
            preset,
            implied: false,
            ends,
            access,
            medium,
            straight: false,
            copy,
            down,
            up,
            traces,
            known_rate: draft.known_rate,
            prefix: None,
            ipv4_only: draft.ipv4_only.is_some(),
        });
    }

    /// Adds the links that are understood: correspondent to home agent, and home agent to foreign agents.
    fn implied_links(
        &mut self,
        mut waiting: Vec<&LinkDraft<'_>>,
        places: &BTreeMap<String, (Origin, String)>,
        problems: &mut Problems,
    ) {
        let mut wanted = Vec::new();
        let home_agents: Vec<NodeId> = self.with_role(Role::HomeAgent).collect();
        if let ([correspondent], [home_agent]) =
            (self.with_role(Role::Correspondent).collect::<Vec<_>>().as_slice(), home_agents.as_slice())
            && !self.joined(*correspondent, *home_agent)
        {
            wanted.push((ETHERNET.to_owned(), [*correspondent, *home_agent]));
        }
        for agent in self.with_role(Role::ForeignAgent) {
            if let [home_agent] = *home_agents.as_slice()
                && !self.joined(home_agent, agent)
            {
                let name = self.nodes.get(agent.0).map_or("", |node| node.name.as_str());
                let access = name.strip_prefix(FOREIGN_AGENT_PREFIX).unwrap_or(name);
                wanted.push((format!("{access}{BACKHAUL}"), [home_agent, agent]));
            }
        }
        for (name, ends) in wanted {
            if let Some(taken) = self.links.iter().find(|link| link.name == name) {
                let ends = ends.map(|id| self.nodes.get(id.0).map_or("", |node| node.name.as_str()));
                let [a, b] = taken.ends.map(|id| self.nodes.get(id.0).map_or("", |node| node.name.as_str()));
                problems.add(
                    places.get(&name).map_or((Origin::File(0), ""), |(origin, path)| (*origin, path)),
                    format!("a link between {a} and {b}"),
                    format!("the link between {} and {} is understood under that name", ends[0], ends[1]),
                    Some(format!(
                        "name this link otherwise, or give one with between = [\"{}\", \"{}\"]",
                        ends[0], ends[1]
                    )),
                );
                continue;
            }
            let given =
                waiting.iter().position(|draft| draft.name == name).map(|index| waiting.remove(index));
            let base = preset(IMPLIED_PRESET);
            let (preset, [down, up]) = match (given, base) {
                (Some(draft), _) => (draft.preset, draft.directions.clone().unwrap_or_default()),
                (None, Some(base)) => (Some(base.name.as_str()), [base.down.clone(), base.up.clone()]),
                (None, None) => (None, <[Config; 2]>::default()),
            };
            self.links.push(Link {
                name,
                preset,
                implied: given.is_none(),
                ends,
                access: false,
                medium: given.and_then(|draft| draft.medium),
                straight: false,
                copy: None,
                down,
                up,
                traces: given.map(|draft| draft.traces.clone()).unwrap_or_default(),
                known_rate: given.map(|draft| draft.known_rate).unwrap_or_default(),
                prefix: None,
                ipv4_only: false,
            });
        }
        let mut anchors = BTreeSet::new();
        for link in self.links.iter().filter(|link| link.access) {
            let Some(home_agent) = self.agent_of(link.ends[1]) else { continue };
            if anchors.insert((link.ends[0], home_agent)) && !self.joined(home_agent, link.ends[0]) {
                let [home_agent, anchor] =
                    [home_agent, link.ends[0]].map(|node| self.name(node).unwrap_or_default());
                problems.add(
                    places.get(&link.name).map_or((Origin::File(0), ""), |(origin, path)| (*origin, path)),
                    quote(anchor),
                    format!(
                        "no path of links leads there from \"{home_agent}\", so that nobody can register over it"
                    ),
                    Some(format!("add a link with between = [\"{home_agent}\", \"{anchor}\"]")),
                );
            }
        }
        for draft in waiting {
            problems.add(
                (draft.origin, &draft.path),
                "no ends",
                "a link of that name is only understood where nothing else joins its ends, and something does",
                Some("give it `between`, or name it otherwise".to_owned()),
            );
        }
    }

    /// Whether a path joins `a` and `b` that no mobile node is part of.
    fn joined(&self, a: NodeId, b: NodeId) -> bool {
        self.leads_to(a, b, |_| true)
    }

    /// The same, of a path that does not lead through `without`.
    fn joined_without(&self, a: NodeId, b: NodeId, without: NodeId) -> bool {
        self.leads_to(a, b, |node| node != without)
    }

    fn leads_to(&self, a: NodeId, b: NodeId, may_pass: impl Fn(NodeId) -> bool) -> bool {
        if !may_pass(a) || !may_pass(b) {
            return false;
        }
        let mut reached = vec![a];
        let mut next = 0;
        while let Some(&here) = reached.get(next) {
            if here == b {
                return true;
            }
            next += 1;
            for link in self.links.iter().filter(|link| !link.access) {
                let [first, second] = link.ends;
                let other = if first == here { second } else { first };
                if (first == here || second == here) && may_pass(other) && !reached.contains(&other) {
                    reached.push(other);
                }
            }
        }
        false
    }

    /// The node a key names.
    fn look_up_node(&self, reference: &Reference<'_>, problems: &mut Problems) -> Option<NodeId> {
        let found = self.by_name.get(reference.name).copied();
        if found.is_none() {
            let names: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
            let hint = nearest(reference.name, names.iter().copied())
                .map(|near| format!("did you mean \"{near}\"?"));
            problems.add(
                reference.place(),
                quote(reference.name),
                format!("the nodes are {}", listed(&names)),
                hint,
            );
        }
        found
    }

    /// The nodes a key names: one, or those of a pattern in order. Empty when there is none, which is reported.
    fn look_up_nodes(&self, reference: &Reference<'_>, problems: &mut Problems) -> Vec<NodeId> {
        if !is_pattern(reference.name) {
            return self.look_up_node(reference, problems).into_iter().collect();
        }
        let number = |number| self.by_name.get(&numbered(reference.name, number)).copied();
        let found: Vec<NodeId> = (1..).map_while(number).collect();
        if found.is_empty() {
            let names: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
            let expected =
                format!("there is no {}; the nodes are {}", numbered(reference.name, 1), listed(&names));
            problems.add(reference.place(), quote(reference.name), expected, None);
        }
        found
    }

    /// By node, the parts of the network that it can send to: the one it is in, for a mobile node those of its links.
    fn reach(&self) -> Vec<BTreeSet<usize>> {
        let mut part: Vec<usize> = (0..self.nodes.len()).collect();
        fn root(part: &mut [usize], mut node: usize) -> usize {
            while part[node] != node {
                part[node] = part[part[node]];
                node = part[node];
            }
            node
        }
        for link in self.links.iter().filter(|link| !link.access) {
            let [a, b] = link.ends.map(|end| root(&mut part, end.0));
            part[a] = b;
        }
        let mut reach: Vec<BTreeSet<usize>> =
            (0..part.len()).map(|node| BTreeSet::from([root(&mut part, node)])).collect();
        for link in self.links.iter().filter(|link| link.access) {
            let anchor = root(&mut part, link.ends[0].0);
            if let Some(mobile) = reach.get_mut(link.ends[1].0) {
                mobile.insert(anchor);
            }
        }
        reach
    }

    /// The access link a key names.
    fn look_up_access(&self, reference: &Reference<'_>, problems: &mut Problems) -> Option<LinkId> {
        let access: Vec<&str> =
            self.links.iter().filter(|link| link.access).map(|link| link.name.as_str()).collect();
        let expected = format!("the mobile node's links are {}", listed(&access));
        match self.links.iter().position(|link| link.name == reference.name) {
            Some(index) if self.links.get(index).is_some_and(|link| link.access) => Some(LinkId(index)),
            Some(index) => {
                let ends = self.links.get(index).map(|link| link.ends).unwrap_or([NodeId(0); 2]);
                let [a, b] = ends.map(|id| self.nodes.get(id.0).map_or("", |node| node.name.as_str()));
                let found = format!("{}, which joins {a} and {b}", quote(reference.name));
                let hint =
                    format!("write between = [\"{HOME_AGENT}\", \"{MOBILE}\"] in its table to make it one");
                problems.add(reference.place(), found, expected, Some(hint));
                None
            }
            None => {
                let near = nearest(reference.name, access.iter().copied());
                let hint = match near {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => "add it to [links]".to_owned(),
                };
                problems.add(reference.place(), quote(reference.name), expected, Some(hint));
                None
            }
        }
    }

    fn destination(&self, to: &To<'_>, problems: &mut Problems) -> Option<Destination> {
        match to {
            To::Any => Some(Destination::Any),
            To::Prefix(address, length) => Some(Destination::Prefix { address: *address, length: *length }),
            To::Node(reference) => self.look_up_node(reference, problems).map(Destination::Node),
        }
    }

    /// What helps and whom it leaves alone; `surroundings` is `None` where nobody moves.
    fn assists(
        &self,
        draft: AssistDraft<'_>,
        surroundings: Option<&Surroundings>,
        problems: &mut Problems,
    ) -> (Vec<Assist>, Vec<AssistException>) {
        match surroundings {
            Some(surroundings) => draft.uses.iter().for_each(|one| one.check(surroundings, problems)),
            None => draft.uses.iter().take(1).for_each(|first| first.refuse_fixed_network(problems)),
        }
        let mut except = Vec::new();
        for exception in draft.except {
            let peer = self.destination(&exception.peer.unwrap_or(To::Any), problems);
            except.extend(peer.map(|peer| AssistException { peer, port: exception.port }));
        }
        let mtu = self.relayed_mtu();
        let assists: Vec<Assist> =
            draft.uses.into_iter().filter_map(|one| one.resolve(mtu, problems)).collect();
        // An exception to nothing is nothing: the digest does not tell it.
        except.truncate(if assists.is_empty() { 0 } else { except.len() });
        (assists, except)
    }

    /// The least MTU of the links of the mobile nodes and of their home agent: between those runs what a relay sends.
    fn relayed_mtu(&self) -> u16 {
        let roles = self.nodes.iter().map(|node| node.role);
        let of = |(role, mtu)| matches!(role, Role::Mobile | Role::HomeAgent).then_some(mtu);
        roles.zip(self.mtus()).filter_map(of).min().unwrap_or(u16::MAX)
    }

    /// By node, the least MTU of its links.
    fn mtus(&self) -> Vec<u16> {
        let mut mtus = vec![u16::MAX; self.nodes.len()];
        for link in &self.links {
            for end in link.ends {
                if let Some(mtu) = mtus.get_mut(end.0) {
                    *mtu = (*mtu).min(link.down.mtu).min(link.up.mtu);
                }
            }
        }
        mtus
    }
}

fn listed(names: &[&str]) -> String {
    one_of(names).replace(" or ", " and ")
}
