//! Where a table stands for many: links with `count`, mobile nodes with their radios, handovers round the stations.

use crate::error::Problems;
use crate::link::LinkDraft;
use crate::mobility::{HandoverDraft, RoundDraft};
use crate::model::{CareOf, CopyNumber, Fleet, Link, LinkId, NodeId, Role, Round, Walk};
use crate::pattern::{is_pattern, numbered, shared_out};
use crate::resolve::{MOBILE, Network};
use crate::tree::quote;
use crate::units;
use crate::walk::{TraceDraft, WalkDraft};
use crate::words::{nearest, one_of};

/// Many mobile nodes.
pub(crate) const MOBILES: &str = "mobile-*";
/// An example of a radio.
pub(crate) const RADIO: &str = "[\"station-*\", \"mobile-*\"]";

impl Network {
    /// Where many move, no link but the radio leads to a mobile node.
    pub(crate) fn leaves_mobile_nodes_alone(
        &self,
        draft: &LinkDraft<'_>,
        ends: &[String; 2],
        problems: &mut Problems,
    ) -> bool {
        let is_mobile = |end: &&String| {
            let number = end.strip_prefix("mobile-").unwrap_or_default();
            end.as_str() == MOBILE || end.as_str() == MOBILES || number.parse::<u64>().is_ok()
        };
        let Some(mobile) = ends.iter().find(is_mobile) else { return true };
        let (origin, path) = draft.ends_place();
        let expected = "with `nodes` one link leads to the mobile nodes, the radio, and to all of them";
        let hint = format!("write between = {RADIO}");
        problems.add((origin, &path), quote(mobile), expected, Some(hint));
        false
    }

    /// Adds the links that a table with `count` stands for; whether that could be done.
    pub(crate) fn place_copies(
        &mut self,
        draft: &LinkDraft<'_>,
        patterns: [&str; 2],
        many: bool,
        care_of: CareOf,
        problems: &mut Problems,
    ) -> bool {
        let (origin, path) = draft.ends_place();
        let found = format!("[\"{}\", \"{}\"]", patterns[0], patterns[1]);
        let Some((count, origin_of_count, path_of_count)) = &draft.count else {
            let (expected, hint) = if patterns.contains(&MOBILES) {
                ("how many mobile nodes there are is missing", "add nodes = 10 to [mobility]")
            } else {
                ("how many `*` stands for is missing", "add count = 10 to the link")
            };
            problems.add((origin, &path), found, expected, Some(hint.to_owned()));
            return false;
        };
        if !patterns.iter().any(|pattern| is_pattern(pattern)) {
            let expected = "where a link stands many times, an end is numbered";
            let hint = format!("write between = [\"{}\", \"{}-*\"], for example", patterns[0], patterns[1]);
            problems.add((*origin_of_count, path_of_count), count.to_string(), expected, Some(hint));
            return false;
        }
        let there = patterns.map(|pattern| match is_pattern(pattern).then(|| self.count_of(pattern)) {
            None | Some(0) => *count,
            Some(there) => there,
        });
        for number in 1..=*count {
            let mut end = 0;
            let ends = patterns.map(|pattern| {
                end += 1;
                numbered(pattern, shared_out(number, *count, there[end - 1]))
            });
            if many && !self.leaves_mobile_nodes_alone(draft, &ends, problems) {
                return false;
            }
            let name = format!("{}-{number}", draft.name);
            let before = problems.count();
            self.place(draft, name, ends, Some(CopyNumber { number, of: *count }), care_of, None, problems);
            if problems.count() > before {
                return false;
            }
        }
        true
    }

    /// Adds the mobile nodes with their radios.
    pub(crate) fn place_radios(
        &mut self,
        draft: &LinkDraft<'_>,
        pattern: &str,
        count: usize,
        (care_of, more): (CareOf, MoreOfRadios),
        problems: &mut Problems,
    ) -> Option<()> {
        let stations: Vec<NodeId> = if is_pattern(pattern) {
            (1..).map_while(|number| self.by_name.get(&numbered(pattern, number)).copied()).collect()
        } else {
            self.by_name.get(pattern).copied().into_iter().collect()
        };
        let (origin, path) = draft.ends_place();
        let wrong = stations.iter().find(|id| !matches!(self.role(**id), Role::Host | Role::ForeignAgent));
        if stations.is_empty() || wrong.is_some() {
            let expected = match wrong {
                Some(_) => "a station is a node of its own, neither correspondent nor home agent".to_owned(),
                None => "the stations are nodes that other links join to the rest".to_owned(),
            };
            let hint = "add such as backhaul = { between = [\"home-agent\", \"station-*\"], count = 3, ... }"
                .to_owned();
            problems.add((origin, &path), quote(pattern), expected, Some(hint));
            return None;
        }
        if draft.medium.is_some() && !more.in_domain {
            let expected = "mobile nodes share a radio channel in a domain of micro-mobility";
            let hint =
                "add [micro_mobility], or leave `medium` out and give the radio rate and delay".to_owned();
            problems.add((draft.origin, &draft.path), quote(draft.name), expected, Some(hint));
            return None;
        }
        // Over IPv6 they are routers, which advertise a prefix.
        for station in stations.iter().filter(|_| care_of == CareOf::ForeignAgent && !more.in_domain) {
            if let Some(node) = self.nodes.get_mut(station.0) {
                node.role = Role::ForeignAgent;
            }
        }
        let fleet = Fleet {
            first: NodeId(self.nodes.len()),
            count,
            radio: LinkId(self.links.len()),
            has_second_radios: more.second,
            stations,
            round: None,
            walk: Walk::default(),
        };
        let [down, up] = draft.directions.clone().unwrap_or_default();
        let mobiles: Vec<NodeId> =
            (0..count).map(|n| self.add_node(&numbered(MOBILES, n + 1), Role::Mobile)).collect();
        let names = [draft.name.to_owned(), format!("{}-second", draft.name)];
        let radios = names.iter().take(if more.second { 2 } else { 1 });
        for (name, n) in radios.flat_map(|name| (0..count).map(move |n| (name, n))) {
            let mobile = mobiles[n];
            let station = fleet.stations.get(fleet.first_station(n)).copied().unwrap_or(mobile);
            self.links.push(Link {
                name: format!("{name}-{}", n + 1),
                preset: draft.preset,
                implied: false,
                ends: [station, mobile],
                access: true,
                medium: draft.medium,
                straight: false,
                copy: Some(CopyNumber { number: n + 1, of: count }),
                down: down.clone(),
                up: up.clone(),
                traces: draft.traces.clone(),
                known_rate: draft.known_rate,
                prefix: None,
                ipv4_only: false,
            });
        }
        self.fleet = Some(fleet);
        Some(())
    }

    /// Moves the radios behind the links that are understood, so that the wired links have the first numbers.
    pub(crate) fn put_radios_last(&mut self) {
        if let Some(fleet) = &mut self.fleet {
            let links = self.links.get_mut(fleet.radio.0..).unwrap_or_default();
            links.rotate_left(fleet.radios().min(links.len()));
            fleet.radio = LinkId(self.links.len() - fleet.radios());
        }
    }

    /// Takes the handovers round the stations in.
    pub(crate) fn rounds(
        &mut self,
        rounds: &[RoundDraft<'_>],
        handovers: &[HandoverDraft<'_>],
        mobile: bool,
        problems: &mut Problems,
    ) {
        if let (Some(_), Some(handover)) = (&self.fleet, handovers.first()) {
            let expected = "with `nodes` the mobile nodes go round the stations";
            let hint = "write every = \"10 s\" instead of `at`, `from` and `to`".to_owned();
            problems.add(handover.at.place(), handover.at.written.as_str(), expected, Some(hint));
        }
        let [first, others @ ..] = rounds else { return };
        if let Some(other) = others.first() {
            let expected = "one [[handover]] with `every` moves all mobile nodes";
            problems.add((other.origin, &other.path), "another one", expected, None);
        }
        let found = units::duration(first.every);
        let at = (first.origin, first.path.as_str());
        match &mut self.fleet {
            Some(fleet) if fleet.stations.len() < 2 => {
                problems.add(at, found, "going round takes two stations at least", None);
            }
            Some(_) => {
                let walk = self.walk(&first.walk, problems);
                let RoundDraft { every, interruption, link_layer, overlap, spread, .. } = *first;
                if let Some(fleet) = &mut self.fleet {
                    fleet.round = Some(Round { every, interruption, link_layer, overlap, spread });
                    fleet.walk = walk;
                }
            }
            None if mobile => {
                let expected = "going round the stations is for many mobile nodes";
                let hint = "add `nodes` to [mobility], or write `from` and `to`".to_owned();
                problems.add(at, found, expected, Some(hint));
            }
            None => {}
        }
    }
}

/// What radios are like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MoreOfRadios {
    /// Whether each mobile node has two.
    pub(crate) second: bool,
    /// Whether the stations are the base stations of a domain, whose gateway is the foreign agent.
    pub(crate) in_domain: bool,
}

impl Network {
    /// The stations of a walk out of a file, looked up.
    fn traced_walk(&self, trace: &TraceDraft, problems: &mut Problems) -> Walk {
        let stations = self.fleet.as_ref().map(|fleet| fleet.stations.as_slice()).unwrap_or_default();
        let mut steps = Vec::new();
        for step in &trace.steps {
            let node = self.by_name.get(step.station.as_str());
            let Some(station) = node.and_then(|node| stations.iter().position(|station| station == node))
            else {
                let names: Vec<&str> = stations
                    .iter()
                    .filter_map(|station| Some(self.nodes.get(station.0)?.name.as_str()))
                    .collect();
                let found = format!("another station in {}", trace.at_line(step.line));
                let expected = format!("the stations are {}", one_of(&names).replace(" or ", " and "));
                problems.add((trace.origin, &trace.path), found, expected, None);
                return Walk::Round;
            };
            steps.push((step.at, station));
        }
        Walk::Trace(steps)
    }

    /// The stations of a walk, looked up.
    fn walk(&self, draft: &WalkDraft<'_>, problems: &mut Problems) -> Walk {
        let names = match draft {
            WalkDraft::Round => return Walk::Round,
            WalkDraft::RandomWaypoint => return Walk::RandomWaypoint,
            WalkDraft::Given(names) => names,
            WalkDraft::Trace(trace) => return self.traced_walk(trace, problems),
        };
        let stations = self.fleet.as_ref().map(|fleet| fleet.stations.as_slice()).unwrap_or_default();
        let mut walk = Vec::new();
        for reference in names {
            let node = self.by_name.get(reference.name);
            let Some(station) = node.and_then(|node| stations.iter().position(|station| station == node))
            else {
                let names: Vec<&str> = stations
                    .iter()
                    .filter_map(|station| Some(self.nodes.get(station.0)?.name.as_str()))
                    .collect();
                let near = nearest(reference.name, names.iter().copied());
                let hint = near.map(|near| format!("did you mean \"{near}\"?"));
                let expected = format!("the stations are {}", one_of(&names).replace(" or ", " and "));
                problems.add(reference.place(), quote(reference.name), expected, hint);
                return Walk::Round;
            };
            if walk.last() == Some(&station) {
                let expected = "a step of the walk leads to another station";
                problems.add(reference.place(), quote(reference.name), expected, None);
            }
            walk.push(station);
        }
        if let (Some(last), true) = (names.last(), walk.len() > 1 && walk.first() == walk.last()) {
            let expected =
                "behind its last station the walk begins anew, so that this is another one than the first";
            problems.add(last.place(), quote(last.name), expected, Some("leave it out".to_owned()));
        }
        Walk::Given(walk)
    }
}

/// Whether a link to all mobile nodes can be their radio: the only one, and not counted by itself.
pub(crate) fn is_the_radio(
    draft: &LinkDraft<'_>,
    other: Option<&LinkDraft<'_>>,
    problems: &mut Problems,
) -> bool {
    if let Some((count, origin, path)) = &draft.count {
        let expected = "there are as many radios as mobile nodes, which is `nodes` of [mobility]";
        problems.add((*origin, path), count.to_string(), expected, Some("leave `count` out".to_owned()));
        return false;
    }
    let Some(other) = other else { return true };
    let (origin, path) = draft.ends_place();
    let expected = format!("each mobile node has one radio, and that is \"{}\"", other.name);
    problems.add((origin, &path), quote(MOBILES), expected, None);
    false
}
