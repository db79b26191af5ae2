//! `[multipath]` as the file gives it, its names not yet looked up.

use crate::decode::Field;
use crate::error::{Origin, Problems};
use crate::mobility::{MobilityDraft, Reference, To, destination};
use crate::model::{
    CareOf, Dispersion, Encapsulation, Protocol, Resequencing, Routing, Treatment, Trust, Uplink,
};
use crate::reference::multipath::{MULTIPATH, PATH, PATH_RULE, RESEQUENCER};
use crate::tree::{Value, join};
use crate::words::ReadWord as _;

/// Paths that one tunnel has at most.
pub(crate) const MOST_PATHS: usize = 8;
const MOST_PACKETS: u64 = 100_000;
/// The largest Differentiated Services Code Point (RFC 2474 section 3).
const MOST_DSCP: u64 = 63;

/// The `[multipath]` table.
#[derive(Debug)]
pub(crate) struct MultipathDraft<'a> {
    pub(crate) origin: Origin,
    pub(crate) dispersion: Dispersion,
    pub(crate) resequencer: Option<Resequencing>,
    pub(crate) uplink: Uplink,
    pub(crate) trust: Trust,
    /// `None`: all access links.
    pub(crate) paths: Option<Vec<PathDraft<'a>>>,
    pub(crate) rules: Vec<RuleDraft<'a>>,
}

/// One of its `paths`.
#[derive(Debug)]
pub(crate) struct PathDraft<'a> {
    pub(crate) link: Reference<'a>,
    pub(crate) cost: u16,
    pub(crate) weight: u32,
}

/// One of its `rules`.
#[derive(Debug)]
pub(crate) struct RuleDraft<'a> {
    pub(crate) to: To<'a>,
    pub(crate) port: Option<u16>,
    pub(crate) dscp: Option<u8>,
    /// `None`: all.
    pub(crate) paths: Option<Vec<Reference<'a>>>,
    pub(crate) treatment: Treatment,
}

/// Reads the value of `multipath`.
pub(crate) fn multipath<'a>(field: &Field<'a>, problems: &mut Problems) -> Option<MultipathDraft<'a>> {
    let reader = field.reader(&MULTIPATH, problems)?;
    let dispersion = reader.get("dispersion").and_then(|field| field.word(problems)).unwrap_or_default();
    let resequencer = match reader.get("resequencer") {
        Some(field) => resequencer(&field, problems),
        None => Some(Resequencing::default()),
    };
    const PATHS: &str = "the paths are an array of access links, such as [\"lte\", \"starlink\"]";
    let paths = reader.get("paths").map(|field| {
        let paths = field.list(PATHS, problems);
        paths.iter().filter_map(|one| path(one, problems)).collect()
    });
    const RULES: &str =
        "the rules are an array of tables, such as [{ port = 5060, treatment = \"duplicated\" }]";
    let rules = reader.get("rules").map(|field| field.list(RULES, problems)).unwrap_or_default();
    Some(MultipathDraft {
        origin: reader.origin,
        dispersion,
        resequencer,
        uplink: reader.get("uplink").and_then(|field| field.word(problems)).unwrap_or_default(),
        trust: reader.get("trust").and_then(|field| field.word(problems)).unwrap_or_default(),
        paths,
        rules: rules.iter().filter_map(|one| rule(one, problems)).collect(),
    })
}

fn resequencer(field: &Field<'_>, problems: &mut Problems) -> Option<Resequencing> {
    let usual = Resequencing::default();
    match field.node.value {
        Value::Boolean(on) => return on.then_some(usual),
        Value::Table(_) => {}
        _ => {
            let hint = "write resequencer = { packets = 1024 }, for example".to_owned();
            field.wrong("it must be true, false or a table", Some(hint), problems);
            return None;
        }
    }
    let reader = field.reader(&RESEQUENCER, problems)?;
    let packets = reader.get("packets").and_then(|field| field.integer(1, MOST_PACKETS, problems));
    let bytes = reader.get("bytes").and_then(|field| {
        let bytes = field.size(problems)?;
        if bytes == 0 {
            field.wrong("it must be above zero", Some("write resequencer = false".to_owned()), problems);
        }
        Some(bytes)
    });
    let wait = reader.get("longest_wait").and_then(|field| field.positive_duration(problems));
    Some(Resequencing {
        packets: packets.and_then(|packets| u32::try_from(packets).ok()).unwrap_or(usual.packets),
        bytes: bytes.unwrap_or(usual.bytes),
        longest_wait: wait.unwrap_or(usual.longest_wait),
    })
}

fn path<'a>(field: &Field<'a>, problems: &mut Problems) -> Option<PathDraft<'a>> {
    if let Value::Text(_) = field.node.value {
        return Some(PathDraft { link: Reference::read(field, problems)?, cost: 0, weight: 1 });
    }
    let reader = field.reader(&PATH, problems)?;
    let link = reader.require("link", "a path needs its access link: link = \"lte\"", problems);
    let link = link.and_then(|field| Reference::read(&field, problems));
    let cost = reader.get("cost").and_then(|field| field.integer(0, u16::MAX.into(), problems));
    let weight = reader.get("weight").and_then(|field| field.integer(0, u32::MAX.into(), problems));
    Some(PathDraft {
        link: link?,
        cost: cost.and_then(|cost| u16::try_from(cost).ok()).unwrap_or(0),
        weight: weight.and_then(|weight| u32::try_from(weight).ok()).unwrap_or(1),
    })
}

fn rule<'a>(field: &Field<'a>, problems: &mut Problems) -> Option<RuleDraft<'a>> {
    let reader = field.reader(&PATH_RULE, problems)?;
    let before = problems.count();
    let to = reader.get("to").map(|field| destination(&field, problems));
    let port = reader.get("port").and_then(|field| field.integer(1, 65_535, problems));
    let dscp = reader.get("dscp").and_then(|field| field.integer(0, MOST_DSCP, problems));
    let paths = reader.get("paths").map(|field| named_paths(&field, problems));
    let treatment = reader.get("treatment").and_then(|field| field.word(problems)).unwrap_or_default();
    (problems.count() == before).then_some(RuleDraft {
        to: to.flatten().unwrap_or(To::Any),
        port: port.and_then(|port| u16::try_from(port).ok()),
        dscp: dscp.and_then(|dscp| u8::try_from(dscp).ok()),
        paths,
        treatment,
    })
}

fn named_paths<'a>(field: &Field<'a>, problems: &mut Problems) -> Vec<Reference<'a>> {
    const EXPECTED: &str = "it must be an array of links of `paths`, at least one";
    let names = field.list(EXPECTED, problems);
    if matches!(&field.node.value, Value::List(items) if items.is_empty()) {
        field.wrong(EXPECTED, Some("leave it out for all paths".to_owned()), problems);
    }
    names.iter().filter_map(|name| Reference::read(name, problems)).collect()
}

/// Says what several links at once need of `[mobility]` and it does not have, and gives it the routing that goes with the uplink.
pub(crate) fn fit_mobility(
    draft: &MultipathDraft<'_>,
    mobility: Option<&mut MobilityDraft<'_>>,
    given: Option<&Field<'_>>,
    has_handovers: bool,
    problems: &mut Problems,
) {
    let place = (draft.origin, "multipath");
    let mut refuse = |expected: &str, hint: &str| {
        problems.add(place, "several links at once", expected, Some(hint.to_owned()));
    };
    let Some(given) = given else {
        return refuse("they are a mobile node's", "add [mobility]");
    };
    let Some(mobility) = mobility else { return };
    if mobility.protocol != Protocol::MobileIpv4 {
        refuse("they are registered by Mobile IPv4", "leave `protocol` of [mobility] out");
    }
    if mobility.care_of != CareOf::CoLocated {
        refuse("each path has a care-of address of its own", "leave `care_of` of [mobility] out");
    }
    if mobility.encapsulation != Encapsulation::default() {
        refuse("their tunnel has a header of its own", "leave `encapsulation` of [mobility] out");
    }
    if has_handovers {
        refuse("all links are up at once, and none is left", "leave [[handover]] out");
    }
    refuse_keys(
        given,
        &[
            "nodes",
            "order",
            "path_monitor",
            "start",
            "home",
            "simultaneous_bindings",
            "keep_old",
            "route_optimization",
            "smooth_handoff",
        ],
        "with [multipath] the mobile node is away from home and uses all its paths at once",
        problems,
    );
    refuse_keys(given, &["routing", "policy"], "with [multipath] it is `uplink` that says this", problems);
    mobility.routing = match draft.uplink {
        Uplink::Dispersed => Routing::ReverseTunnel,
        Uplink::Direct => Routing::Triangle,
    };
}

/// Reports each of `keys` of a table that is given.
fn refuse_keys(table: &Field<'_>, keys: &[&str], reason: &str, problems: &mut Problems) {
    let Value::Table(given) = &table.node.value else { return };
    for entry in given.entries.iter().filter(|entry| keys.contains(&entry.key.as_str())) {
        let path = join(&table.path, &entry.key);
        problems.add((entry.node.origin, &path), entry.node.value.describe(), reason, None);
    }
}
