//! `[multipath]`: all interfaces of a mobile node at once.

use std::net::IpAddr;
use std::time::Duration;

use careof_document::decode::{Field, Reader};
use careof_document::error::Problems;
use careof_document::section::Section;
use careof_mobility::multipath::{
    DelayReading, LengthReading, MAX_PATHS, PathId, PathSet, RatioReading, ResequencerConfig, Rule, Rules,
    Scheduler, Treatment,
};
use careof_mobility::v4::{DeliveryMethod, MultipathForm, Prefix};
use careof_wire::protocol;

use super::Source;
use super::cluster::cluster;
use super::fields::{at_most, given, prefix, tables};
use super::reference::MULTIPATH_RULE;
use crate::MultipathSetup;

/// The longest that packets may be asked to wait for earlier ones: a second and more is what TCP takes for a loss (RFC 6298).
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// What a file says of several paths.
pub(super) struct Multipath {
    pub(super) setup: MultipathSetup,
    /// Mobile node: how its paths are registered.
    pub(super) form: MultipathForm,
    /// Mobile node: relays that it uses at a time.
    pub(super) relays: usize,
}

/// Reads `[multipath]`; `None`: there is none.
pub(super) fn multipath(
    reader: &Reader<'_>,
    section: &'static Section,
    source: Source<'_>,
    problems: &mut Problems,
) -> Option<Multipath> {
    let reader = reader.get("multipath")?.reader(section, problems)?;
    let defaults = MultipathSetup::default();
    let forms = [("shake", MultipathForm::Shake), ("rfc-7629", MultipathForm::Rfc7629)];
    let form = if reader.knows("registration") {
        given(&reader, "registration", problems, |field, p| field.choice(&forms, &[], p))
    } else {
        None
    };
    let scheduler = given(&reader, "dispersion", problems, scheduler).unwrap_or(defaults.scheduler);
    let longest_wait = given(&reader, "wait", problems, |field, p| at_most(field, LONGEST_WAIT, p));
    let bytes = given(&reader, "buffer", problems, |field, p| field.size(p));
    let rules = given(&reader, "rule", problems, |field, problems| {
        tables(field, "rule", problems, |field, _, problems| rule(field, problems))
    });
    let cluster = if reader.knows("cluster") { cluster(&reader, source, problems) } else { None };
    let (cluster, relays) = cluster.map_or((None, 0), |(setup, relays)| (Some(setup), relays));
    let kept = ResequencerConfig::default();
    let resequencer = ResequencerConfig {
        longest_wait: longest_wait.unwrap_or(kept.longest_wait),
        bytes: bytes.unwrap_or(kept.bytes),
        ..kept
    };
    let rules = Rules::new(rules.unwrap_or_default());
    let setup = MultipathSetup { scheduler, resequencer, rules, cluster, ..defaults };
    Some(Multipath { setup, form: form.unwrap_or_default(), relays })
}

fn scheduler(field: &Field<'_>, problems: &mut Problems) -> Option<Scheduler> {
    let queue = Scheduler::DelayQueue { delay: DelayReading::default(), length: LengthReading::default() };
    let choices = [
        ("auto", Scheduler::Auto),
        ("per-flow", Scheduler::PerFlow),
        ("earliest-arrival", Scheduler::EarliestArrival),
        ("ecf", Scheduler::Ecf),
        ("blest", Scheduler::Blest { window: ResequencerConfig::default().bytes }),
        ("overflow", Scheduler::Overflow),
        ("duplicate", Scheduler::Duplicate),
        ("d", Scheduler::RoundTripRatio(RatioReading::default())),
        ("dq", queue),
    ];
    field.choice(&choices, &[], problems)
}

fn rule(field: &Field<'_>, problems: &mut Problems) -> Option<Rule> {
    let before = problems.count();
    let reader = field.reader(&MULTIPATH_RULE, problems)?;
    let to = given(&reader, "to", problems, prefix::<Prefix>);
    let port = given(&reader, "port", problems, |field, p| field.integer(1, 65_535, p));
    let protocols = [("tcp", protocol::TCP), ("udp", protocol::UDP), ("icmp", protocol::ICMP)];
    let protocol = given(&reader, "protocol", problems, |field, p| field.choice(&protocols, &[], p));
    let dscp = given(&reader, "dscp", problems, |field, p| field.integer(0, 63, p));
    let treatments = [
        ("dispersed", Treatment::Dispersed),
        ("pinned", Treatment::Pinned),
        ("duplicated", Treatment::Duplicated),
    ];
    let treatment = given(&reader, "treatment", problems, |field, p| field.choice(&treatments, &[], p));
    let paths = given(&reader, "paths", problems, paths);
    if problems.count() > before {
        return None;
    }
    let port = port.and_then(|port| u16::try_from(port).ok());
    Some(Rule {
        prefix: to.map(|to| (IpAddr::V4(to.address()), to.length())),
        ports: port.map(|port| (port, port)),
        protocol,
        dscp: dscp.and_then(|dscp| u8::try_from(dscp).ok()),
        paths: paths.unwrap_or(PathSet::ALL),
        treatment: treatment.unwrap_or_default(),
    })
}

/// Numbers of paths.
fn paths(field: &Field<'_>, problems: &mut Problems) -> Option<PathSet> {
    const EXPECTED: &str = "it must be an array of numbers of paths, such as [0, 2]";
    let before = problems.count();
    let listed = field.list(EXPECTED, problems);
    let numbers = listed.iter().filter_map(|one| one.integer(0, MAX_PATHS as u64 - 1, problems));
    let paths: PathSet = numbers.filter_map(|number| PathId::new(u8::try_from(number).ok()?)).collect();
    if problems.count() == before && paths.is_empty() {
        let hint = "leave `paths` out for all of them";
        field.wrong("a rule without paths would drop what it fits", Some(hint.to_owned()), problems);
    }
    (problems.count() == before).then_some(paths)
}

/// Reports what of a mobile node does not go together with several paths.
pub(super) fn refuse_too_many_paths(
    reader: &Reader<'_>,
    (interfaces, relays): (usize, usize),
    routing: DeliveryMethod,
    problems: &mut Problems,
) {
    if routing != DeliveryMethod::ReverseTunnel {
        let reason = "with [multipath] packets go both ways through the tunnel: routing = \"reverse-tunnel\"";
        reader.refuse(&["routing"], reason, problems);
    }
    if interfaces + relays > MAX_PATHS
        && let Some(field) = reader.get("multipath")
    {
        let expected = format!(
            "a tunnel has at most {MAX_PATHS} paths, and there are {interfaces} interfaces and {relays} relays"
        );
        field.wrong(expected, None, problems);
    }
}
