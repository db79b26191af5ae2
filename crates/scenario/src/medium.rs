//! `[media]`: cables and radio channels that links share, and who is on them.

mod wireless;

use careof_link::{Config, EthernetConfig, MEDIUM_MTU, MINIMUM_MTU, MediumConfig};

use crate::decode::{Field, Reader, check_name};
use crate::error::{Origin, Problems};
use crate::link::{Directions, queue};
use crate::model::{KnownRate, Link, LinkId, Medium, MediumId, NodeId, Role};
use crate::reference::medium::MEDIUM;
use crate::resolve::Network;
use crate::tree::{Entry, Value, join, quote};
use crate::units;
use crate::words::{MediumKind, ReadWord as _, nearest};

/// Nodes on one medium: as many as a 10BASE5 segment has.
const MOST_STATIONS: usize = 100;

/// Keys of a link that the medium has in its place.
const OF_THE_MEDIUM: [&str; 16] = [
    "preset",
    "rate",
    "rate_up",
    "delay",
    "delay_up",
    "jitter",
    "jitter_up",
    "loss",
    "loss_up",
    "queue",
    "queue_up",
    "trace",
    "trace_up",
    "icmp",
    "icmp_up",
    "framing",
];

/// A medium as the file gives it, those on it still open.
#[derive(Debug)]
pub(crate) struct MediumDraft<'a> {
    name: &'a str,
    origin: Origin,
    path: String,
    /// `None` if there was an error in it.
    config: Option<MediumConfig>,
}

/// Reads `[media]`.
pub(crate) fn media<'a>(top: &Reader<'a>, problems: &mut Problems) -> Vec<MediumDraft<'a>> {
    let Some(field) = top.get("media") else { return Vec::new() };
    let Value::Table(table) = &field.node.value else {
        field.wrong("media is a table of media: [media.lan] with rate and delay", None, problems);
        return Vec::new();
    };
    table.entries.iter().map(|entry| medium(entry, problems)).collect()
}

fn medium<'a>(entry: &'a Entry, problems: &mut Problems) -> MediumDraft<'a> {
    let path = join("media", &entry.key);
    let field = Field { node: &entry.node, path: path.clone() };
    if let Err(expected) = check_name(&entry.key) {
        problems.add((entry.origin, &path), "a medium of that name", expected, None);
    }
    let config = field.reader(&MEDIUM, problems).and_then(|reader| config(&reader, problems));
    MediumDraft { name: &entry.key, origin: entry.node.origin, path, config }
}

fn config(reader: &Reader<'_>, problems: &mut Problems) -> Option<MediumConfig> {
    let errors_before = problems.count();
    let kind = match reader.get("kind") {
        Some(field) => field.word(problems)?,
        None => MediumKind::CsmaCd,
    };
    let config = match kind {
        MediumKind::CsmaCd => {
            reader.refuse(&wireless::KEYS, "it belongs to kind = \"802.11b\" or \"802.11g\"", problems);
            cable(reader, problems).map(MediumConfig::from)
        }
        MediumKind::B | MediumKind::G => wireless::channel(reader, kind, problems).map(MediumConfig::from),
    };
    config.filter(|_| problems.count() == errors_before)
}

fn cable(reader: &Reader<'_>, problems: &mut Problems) -> Option<EthernetConfig> {
    let expected = "a medium needs rate and delay: rate = \"10 Mbit/s\"";
    let rate = reader.require("rate", expected, problems);
    let expected = "a medium needs rate and delay: delay = \"1 us\" (one way, from end to end)";
    let delay = reader.require("delay", expected, problems);
    let mut config = EthernetConfig {
        rate: rate.as_ref()?.rate(problems)?,
        delay: delay.as_ref()?.duration(problems)?,
        ..EthernetConfig::default()
    };
    if !(1..=1_000_000_000).contains(&config.rate.bits_per_second())
        && let Some(field) = &rate
    {
        field.wrong("a shared medium carries something, and at most 1 Gbit/s", None, problems);
        return None;
    }
    let longest = EthernetConfig::longest_delay(config.rate);
    if config.delay > longest
        && let Some(field) = &delay
    {
        let hint = format!("write at most \"{}\"", units::duration(longest));
        field.wrong(
            "at this rate a collision would be heard too late by the one who sent",
            Some(hint),
            problems,
        );
    }
    if let Some(field) = reader.get("queue") {
        config.queue = queue(&field, config.queue, problems)?;
    }
    Some(config)
}

/// Which of `media` the link of `reader` is on, if it is on one.
pub(crate) fn chosen(
    reader: &Reader<'_>,
    media: &[MediumDraft<'_>],
    problems: &mut Problems,
) -> Option<Result<MediumId, ()>> {
    let field = reader.get("medium")?;
    let Some(name) = field.text(problems) else { return Some(Err(())) };
    let found = media.iter().position(|medium| medium.name == name).map(MediumId);
    if found.is_none() {
        let names: Vec<&str> = media.iter().map(|medium| medium.name).collect();
        let (expected, hint) = match nearest(name, names.iter().copied()) {
            Some(near) => ("it must be one of the media", Some(format!("did you mean \"{near}\"?"))),
            None if names.is_empty() => (
                "there is no such medium",
                Some(format!("add [media.{name}] with rate = \"10 Mbit/s\" and delay = \"1 us\"")),
            ),
            None => ("it must be one of the media", Some(format!("they are {}", names.join(", ")))),
        };
        field.wrong(expected, hint, problems);
    }
    Some(found.ok_or(()))
}

/// Both directions of a link that is on `medium`.
pub(crate) fn directions(
    reader: &Reader<'_>,
    medium: &MediumDraft<'_>,
    problems: &mut Problems,
) -> Option<Directions> {
    let reason = format!(
        "the link is on the medium \"{}\", and has this from there: leave it out, or write it in [media.{}]",
        medium.name, medium.name
    );
    reader.refuse(&OF_THE_MEDIUM, &reason, problems);
    let mut mtu = MEDIUM_MTU;
    if let Some(field) = reader.get("mtu") {
        mtu = field.packet_size(MINIMUM_MTU, MEDIUM_MTU, problems)?;
    }
    let config = Config { mtu, ..medium.config.as_ref()?.as_link() };
    Some(Directions { configs: [config.clone(), config], traces: [None, None] })
}

impl Network {
    /// Finds out who is on which medium, and adds a link for each two of a cable that none joins: they hear each other too.
    pub(crate) fn lay_media(&mut self, drafts: &[MediumDraft<'_>], problems: &mut Problems) {
        for (index, draft) in drafts.iter().enumerate() {
            let id = MediumId(index);
            let mut stations: Vec<NodeId> = Vec::new();
            let (wired, radios) = self.links.split_at(self.first_radio());
            for end in wired.iter().filter(|link| link.medium == Some(id)).flat_map(|link| link.ends) {
                if !stations.contains(&end) {
                    stations.push(end);
                }
            }
            let of_radios: Vec<NodeId> =
                radios.iter().filter(|link| link.medium == Some(id)).map(|link| link.ends[1]).collect();
            if let (Some(fleet), false) = (&self.fleet, of_radios.is_empty()) {
                let new: Vec<NodeId> =
                    fleet.stations.iter().copied().filter(|node| !stations.contains(node)).collect();
                stations.extend(new.into_iter().chain(of_radios));
                if draft.config.as_ref().is_some_and(MediumConfig::joins_every_two) {
                    let hint = format!("write kind = \"802.11b\" or \"802.11g\" in [media.{}]", draft.name);
                    let expected =
                        "mobile nodes that go from station to station share a radio channel, not a cable";
                    problems.add((draft.origin, &draft.path), quote(draft.name), expected, Some(hint));
                    continue;
                }
            }
            let at = (draft.origin, draft.path.as_str());
            if stations.is_empty() {
                let expected = "a medium joins the nodes of the links that name it, and none does";
                let hint =
                    format!("write medium = \"{}\" in the table of a link, or leave it out", draft.name);
                problems.add(at, quote(draft.name), expected, Some(hint));
            }
            if stations.len() > MOST_STATIONS {
                let expected = format!("a medium joins at most {MOST_STATIONS} nodes");
                problems.add(at, format!("{} nodes", stations.len()), expected, None);
                continue;
            }
            let mut mobile_nodes: Vec<NodeId> = Vec::new();
            let (wired, _) = self.links.split_at(self.first_radio());
            for link in wired.iter().filter(|link| link.access && link.medium == Some(id)) {
                if mobile_nodes.contains(&link.ends[1]) {
                    let expected = "a mobile node is on a medium once, by one of its links";
                    let hint = format!("give the link {} a medium of its own, or none", link.name);
                    problems.add(at, quote(&link.name), expected, Some(hint));
                    break;
                }
                mobile_nodes.push(link.ends[1]);
            }
            let config = draft.config.clone().unwrap_or_else(|| EthernetConfig::default().into());
            if config.joins_every_two() {
                self.add_straight_links(id, draft.name, &config, &stations);
            }
            self.media.push(Medium { name: draft.name.to_owned(), config, stations });
        }
    }

    /// Where the radios of many mobile nodes begin; behind all links where there are none.
    fn first_radio(&self) -> usize {
        self.fleet.as_ref().map_or(self.links.len(), |fleet| fleet.radio.0.min(self.links.len()))
    }

    fn add_straight_links(&mut self, id: MediumId, name: &str, config: &MediumConfig, stations: &[NodeId]) {
        let mut added = Vec::new();
        for (n, a) in stations.iter().enumerate() {
            for b in stations.iter().skip(n + 1) {
                let joins =
                    |link: &&Link| link.medium == Some(id) && link.ends.contains(a) && link.ends.contains(b);
                if self.links.iter().find(joins).is_some() {
                    continue;
                }
                let mobile_last = if self.role(*a) == Role::Mobile { [*b, *a] } else { [*a, *b] };
                let [first, second] =
                    mobile_last.map(|end| self.nodes.get(end.0).map_or("", |node| node.name.as_str()));
                let mut link_name = format!("{name}-{first}-{second}");
                while self.links.iter().chain(&added).any(|link| link.name == link_name) {
                    link_name.push('-');
                }
                added.push(Link {
                    name: link_name,
                    preset: None,
                    implied: true,
                    ends: mobile_last,
                    access: false,
                    medium: Some(id),
                    straight: true,
                    copy: None,
                    down: config.as_link(),
                    up: config.as_link(),
                    traces: [None, None],
                    known_rate: KnownRate::True,
                    prefix: None,
                    ipv4_only: false,
                });
            }
        }
        // Behind those that routes lead over, before the radios of many mobile nodes.
        let at = self.first_radio();
        if let Some(fleet) = &mut self.fleet {
            fleet.radio = LinkId(fleet.radio.0 + added.len());
        }
        self.links.splice(at..at, added);
    }
}
