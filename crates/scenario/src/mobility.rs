//! `[mobility]` and `[[handover]]` as the file gives them, their names not yet looked up.

use core::net::Ipv4Addr;

use careof_base::Duration;
use careof_link::WirelessHandover;

use crate::decode::{Field, Reader};
use crate::error::{Origin, Problems};
use crate::hierarchy::{HierarchyDraft, hierarchy, refuse_as_protocol};
use crate::link::MOST_COPIES;
use crate::link_layer::link_layer;
use crate::model::{
    Algorithm, CareOf, Dhcp, Discovery, DuplicateAddressDetection, Encapsulation, FastHandover,
    HandoverStyle, MovementDetection, Protocol, QueuedFate, Replay, Routing,
};
use crate::reference::{HANDOVER, MOBILITY, POLICY};
use crate::repeated::{At, Draws, Times, expand, is_repeated, links_to, times};
use crate::trace::ReadFile;
use crate::tree::Value;
use crate::walk::{self, WalkDraft};
use crate::words::ReadWord as _;

/// The name of a link or node and where it is written.
#[derive(Clone, Debug)]
pub(crate) struct Reference<'a> {
    pub(crate) name: &'a str,
    pub(crate) origin: Origin,
    pub(crate) path: String,
}

impl<'a> Reference<'a> {
    pub(crate) fn read(field: &Field<'a>, problems: &mut Problems) -> Option<Self> {
        let name = field.text(problems)?;
        Some(Self { name, origin: field.node.origin, path: field.path.clone() })
    }

    pub(crate) fn place(&self) -> (Origin, &str) {
        (self.origin, &self.path)
    }
}

/// The `[mobility]` table.
#[derive(Debug)]
pub(crate) struct MobilityDraft<'a> {
    pub(crate) origin: Origin,
    /// How many mobile nodes; `None` is the one called `mobile`.
    pub(crate) nodes: Option<usize>,
    pub(crate) protocol: Protocol,
    pub(crate) care_of: CareOf,
    pub(crate) dhcp: Option<Dhcp>,
    pub(crate) routing: Routing,
    pub(crate) encapsulation: Encapsulation,
    pub(crate) leave_room: bool,
    pub(crate) path_monitor: bool,
    pub(crate) order: Vec<Reference<'a>>,
    pub(crate) metered: Vec<Reference<'a>>,
    pub(crate) leave_bad_paths: bool,
    pub(crate) start: Option<Reference<'a>>,
    pub(crate) home: Option<Reference<'a>>,
    pub(crate) lifetime: Option<Duration>,
    pub(crate) discovery: Discovery,
    pub(crate) movement_detection: MovementDetection,
    pub(crate) algorithm: Algorithm,
    pub(crate) replay: Replay,
    pub(crate) early_requests: u32,
    pub(crate) simultaneous_bindings: bool,
    pub(crate) keep_old: Option<Duration>,
    pub(crate) route_optimization: bool,
    pub(crate) smooth_handoff: bool,
    pub(crate) fast_handover: Option<FastHandover>,
    pub(crate) duplicate_address_detection: DuplicateAddressDetection,
    pub(crate) policy: Vec<PolicyDraft<'a>>,
    pub(crate) hierarchy: HierarchyDraft,
}

/// A rule of the policy table.
#[derive(Debug)]
pub(crate) struct PolicyDraft<'a> {
    pub(crate) to: To<'a>,
    pub(crate) port: Option<u16>,
    pub(crate) method: Routing,
}

/// The destination of a rule.
#[derive(Debug)]
pub(crate) enum To<'a> {
    Any,
    Prefix(Ipv4Addr, u8),
    Node(Reference<'a>),
}

/// Registration requests, or Binding Updates, that a mobile node may send early.
pub(crate) const MOST_EARLY_REQUESTS: u32 = 2;

/// Those that it sends early if nothing else is said.
pub(crate) const fn usual_early_requests(protocol: Protocol) -> u32 {
    match protocol {
        Protocol::MobileIpv4 => MOST_EARLY_REQUESTS,
        Protocol::MobileIpv6 => 0,
    }
}

const LATER_PROTOCOLS: [&str; 1] = ["proxy-mobile-ipv6"];

/// Protocols that are below this one.
const OF_MICRO_MOBILITY: [&str; 3] = ["cellular-ip", "hawaii", "building-blocks"];

/// The name of a protocol that is another with a key more.
const FAST: &str = "fast-mobile-ipv6";

/// Reads the value of `mobility`. What is wrong in it is reported and replaced by its default, so that the rest of
/// the file can be checked.
pub(crate) fn mobility<'a>(field: &Field<'a>, problems: &mut Problems) -> Option<MobilityDraft<'a>> {
    let reader = field.reader(&MOBILITY, problems)?;
    let protocol = reader.get("protocol").and_then(|field| protocol(&field, problems)).unwrap_or_default();
    refuse_keys_of_the_other(protocol, &reader, problems);
    let routing = reader.get("routing").and_then(|field| default_routing(&field, protocol, problems));
    let algorithm = reader.get("algorithm").and_then(|field| algorithm(&field, protocol, problems));
    let movement_detection = word(&reader, "movement_detection", problems);
    let policy = reader.get("policy").map(|field| policy(&field, problems));
    let nodes = reader.get("nodes").map(|field| field.integer(1, MOST_COPIES, problems).unwrap_or(1));
    if nodes.is_some() {
        reader.refuse(
            &["start", "home"],
            "with `nodes` each begins at a station of its own, away from home",
            problems,
        );
        if let Some(field) = reader.get("movement_detection")
            && movement_detection == MovementDetection::UnreachableRouter
        {
            let hint = "leave `movement_detection` out, or leave `nodes` out".to_owned();
            let expected = "with `nodes` neighbors are known for good: no router is found to be unreachable";
            field.wrong(expected, Some(hint), problems);
        }
    }
    let care_of = care_of(&reader, protocol, nodes.is_some(), problems);
    let path_monitor = reader.get("path_monitor").and_then(|field| field.boolean(problems)).unwrap_or(false);
    let order = links(&reader, "order", problems);
    if order.is_empty() {
        let reason = "they are about the access links in `order`: write order = [\"wifi\", \"lte\"]";
        reader.refuse(&["metered", "leave_bad_paths"], reason, problems);
    } else {
        reader.refuse(
            &["start", "nodes", "home"],
            "with `order` the mobile node chooses by itself",
            problems,
        );
        if let Some(field) = reader.get("order").filter(|_| !path_monitor) {
            let hint = "write path_monitor = true".to_owned();
            field.wrong("the mobile node has to watch the paths that it chooses among", Some(hint), problems);
        }
        if let Some(field) =
            reader.get("order").filter(|_| movement_detection != MovementDetection::LinkTrigger)
        {
            let hint = "leave `movement_detection` out".to_owned();
            field.wrong(
                "the mobile node has to be told by its links whether they are up",
                Some(hint),
                problems,
            );
        }
    }
    let replay: Replay = word(&reader, "replay", problems);
    let simultaneous_bindings =
        reader.get("simultaneous_bindings").and_then(|field| field.boolean(problems)).unwrap_or(false);
    Some(MobilityDraft {
        origin: reader.origin,
        nodes: nodes.map(|nodes| usize::try_from(nodes).unwrap_or(usize::MAX)),
        protocol,
        care_of,
        dhcp: crate::dhcp::dhcp(&reader, care_of, problems),
        routing: routing.unwrap_or(match protocol {
            Protocol::MobileIpv4 => Routing::default(),
            // RFC 6275 has no triangle.
            Protocol::MobileIpv6 => Routing::ReverseTunnel,
        }),
        encapsulation: word(&reader, "encapsulation", problems),
        leave_room: reader.get("leave_room").and_then(|field| field.boolean(problems)).unwrap_or(true),
        path_monitor,
        order,
        metered: links(&reader, "metered", problems),
        leave_bad_paths: reader
            .get("leave_bad_paths")
            .and_then(|field| field.boolean(problems))
            .unwrap_or(false),
        start: reader.get("start").and_then(|field| Reference::read(&field, problems)),
        home: reader.get("home").and_then(|field| Reference::read(&field, problems)),
        lifetime: lifetime(reader.get("lifetime").as_ref(), problems),
        discovery: crate::discovery::discovery(&reader, (protocol, movement_detection), problems),
        movement_detection,
        algorithm: algorithm.unwrap_or(match protocol {
            Protocol::MobileIpv4 => Algorithm::default(),
            Protocol::MobileIpv6 => Algorithm::HmacSha1,
        }),
        duplicate_address_detection: word(&reader, "duplicate_address_detection", problems),
        fast_handover: crate::fast_handover::fast_handover(&reader, movement_detection, problems),
        replay,
        early_requests: reader
            .get("early_requests")
            .and_then(|field| field.integer(0, MOST_EARLY_REQUESTS.into(), problems))
            .and_then(|count| u32::try_from(count).ok())
            .unwrap_or(usual_early_requests(protocol)),
        simultaneous_bindings,
        keep_old: reader.get("keep_old").and_then(|field| keep_old(&field, problems)),
        route_optimization: reader
            .get("route_optimization")
            .and_then(|field| field.boolean(problems))
            .unwrap_or(false),
        smooth_handoff: smooth_handoff(
            &reader,
            care_of,
            replay,
            simultaneous_bindings,
            nodes.is_some(),
            problems,
        ),
        policy: policy.unwrap_or_default(),
        hierarchy: hierarchy(&reader, problems),
    })
}

fn protocol(field: &Field<'_>, problems: &mut Problems) -> Option<Protocol> {
    if matches!(&field.node.value, Value::Text(text) if text == FAST) {
        let hint = "write protocol = \"mobile-ipv6\" and fast_handover = true".to_owned();
        field.wrong("known are \"mobile-ipv4\" and \"mobile-ipv6\"", Some(hint), problems);
        // Its other keys are those of this one.
        return Some(Protocol::MobileIpv6);
    }
    if let Value::Text(text) = &field.node.value
        && OF_MICRO_MOBILITY.contains(&text.as_str())
    {
        let hint = format!("write protocol = \"{text}\" in [micro_mobility], and nothing here");
        field.wrong("it is of micro-mobility, below Mobile IPv4", Some(hint), problems);
        return None;
    }
    if refuse_as_protocol(field, problems) {
        // Its other keys are those of this one.
        return Some(Protocol::MobileIpv6);
    }
    field.word_or_later(&LATER_PROTOCOLS, problems)
}

/// The names of links.
fn links<'a>(reader: &Reader<'a>, key: &str, problems: &mut Problems) -> Vec<Reference<'a>> {
    let Some(field) = reader.get(key) else { return Vec::new() };
    let fields = field.list("it must be an array of link names, such as [\"wifi\", \"lte\"]", problems);
    fields.iter().filter_map(|field| Reference::read(field, problems)).collect()
}

fn word<W: crate::words::Word + Default>(reader: &Reader<'_>, key: &str, problems: &mut Problems) -> W {
    reader.get(key).and_then(|field| field.word(problems)).unwrap_or_default()
}

fn care_of(reader: &Reader<'_>, protocol: Protocol, many: bool, problems: &mut Problems) -> CareOf {
    let given: Option<CareOf> = reader.get("care_of").and_then(|field| {
        let care_of: CareOf = field.word(problems)?;
        if many && protocol == Protocol::MobileIpv4 && care_of.is_co_located() {
            let hint = "leave `care_of` out, or write \"foreign-agent\"".to_owned();
            field.wrong("with `nodes` the stations are foreign agents", Some(hint), problems);
        }
        Some(care_of)
    });
    let lent = many && protocol == Protocol::MobileIpv4;
    given.unwrap_or(if lent { CareOf::ForeignAgent } else { CareOf::default() })
}

/// Refuses keys that say something of the protocol that is not used.
fn refuse_keys_of_the_other(protocol: Protocol, reader: &Reader<'_>, problems: &mut Problems) {
    const OF_IPV4: [&str; 8] = [
        "care_of",
        "dhcp",
        "encapsulation",
        "replay",
        "simultaneous_bindings",
        "smooth_handoff",
        "policy",
        "keep_old",
    ];
    match protocol {
        Protocol::MobileIpv4 => reader.refuse(
            &["duplicate_address_detection", "fast_handover"],
            "it is for IPv6: write protocol = \"mobile-ipv6\"",
            problems,
        ),
        Protocol::MobileIpv6 => {
            reader.refuse(&OF_IPV4, "careof has it for protocol = \"mobile-ipv4\" only", problems);
        }
    }
}

/// Each protocol has an algorithm that all have, and both know HMAC-SHA-256.
fn algorithm(field: &Field<'_>, protocol: Protocol, problems: &mut Problems) -> Option<Algorithm> {
    let algorithm = field.word(problems)?;
    let (other, own) = match protocol {
        Protocol::MobileIpv4 => (Algorithm::HmacSha1, "hmac-md5"),
        Protocol::MobileIpv6 => (Algorithm::HmacMd5, "hmac-sha-1"),
    };
    if algorithm == other {
        let expected = format!("with {protocol} it is \"{own}\" or \"hmac-sha-256\"");
        field.wrong(expected, None, problems);
        return None;
    }
    Some(algorithm)
}

/// Regular IP is a choice for single destinations; as the rule for all it would be no Mobile IP.
fn default_routing(field: &Field<'_>, protocol: Protocol, problems: &mut Problems) -> Option<Routing> {
    let routing = field.word(problems)?;
    if protocol == Protocol::MobileIpv6 && routing != Routing::ReverseTunnel {
        let hint = "leave it out, or write route_optimization = true for straight ways".to_owned();
        field.wrong("with Mobile IPv6 it is \"reverse-tunnel\" (RFC 6275)", Some(hint), problems);
        return None;
    }
    if routing == Routing::RegularIp {
        let hint =
            "say for which destinations: policy = [{ to = \"correspondent\", method = \"regular-ip\" }]";
        field.wrong("it must be \"triangle\" or \"reverse-tunnel\"", Some(hint.to_owned()), problems);
    }
    Some(routing)
}

/// `None` is infinity.
fn lifetime(field: Option<&Field<'_>>, problems: &mut Problems) -> Option<Duration> {
    const DEFAULT: Duration = Duration::from_secs(600);
    let Some(field) = field else { return Some(DEFAULT) };
    if matches!(&field.node.value, Value::Text(text) if text == "infinity") {
        return None;
    }
    let Some(lifetime) = field.positive_duration(problems) else { return Some(DEFAULT) };
    if lifetime.subsec_nanos() != 0 || lifetime.as_secs() > 65_534 {
        let hint = "write \"infinity\" for a binding without end".to_owned();
        field.wrong("registrations carry whole seconds, at most 65534", Some(hint), problems);
    }
    Some(lifetime)
}

/// `None` is until the link goes down.
fn keep_old(field: &Field<'_>, problems: &mut Problems) -> Option<Duration> {
    match &field.node.value {
        Value::Text(text) if text == "until-down" => None,
        Value::Text(text) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            field.wrong("it must be a duration, such as \"2 s\", or \"until-down\"", None, problems);
            None
        }
        _ => field.duration(problems),
    }
}

/// Whether foreign agents are to help each other, where there are any that could.
fn smooth_handoff(
    reader: &Reader<'_>,
    care_of: CareOf,
    replay: Replay,
    simultaneous: bool,
    many: bool,
    problems: &mut Problems,
) -> bool {
    let Some(field) = reader.get("smooth_handoff") else { return false };
    let wanted = field.boolean(problems).unwrap_or(false);
    let (expected, hint) = match (care_of, replay) {
        _ if !wanted => return false,
        _ if many => {
            ("it is for one mobile node", "leave it out, or leave `nodes` out and name access links")
        }
        _ if simultaneous => (
            "with simultaneous bindings the home agent sends to both foreign agents itself",
            "leave one of the two out",
        ),
        (CareOf::CoLocated | CareOf::Dhcp, _) => {
            ("hand-offs are made smooth by foreign agents", "write care_of = \"foreign-agent\"")
        }
        (CareOf::ForeignAgent, Replay::Nonces) => {
            ("foreign agents tell updates from old ones by their time", "write replay = \"timestamps\"")
        }
        (CareOf::ForeignAgent, Replay::Timestamps) => return true,
    };
    field.wrong(expected, Some(hint.to_owned()), problems);
    false
}

fn policy<'a>(field: &Field<'a>, problems: &mut Problems) -> Vec<PolicyDraft<'a>> {
    const EXPECTED: &str =
        "the policy is an array of rules, such as [{ to = \"correspondent\", method = \"regular-ip\" }]";
    let rules = field.list(EXPECTED, problems);
    rules.iter().filter_map(|rule| policy_rule(rule, problems)).collect()
}

fn policy_rule<'a>(field: &Field<'a>, problems: &mut Problems) -> Option<PolicyDraft<'a>> {
    let reader = field.reader(&POLICY, problems)?;
    let to = match reader.get("to") {
        Some(field) => destination(&field, problems),
        None => Some(To::Any),
    };
    let port = reader.get("port").map(|field| field.integer(1, 65_535, problems));
    let expected = "a rule needs its method: \"triangle\", \"reverse-tunnel\" or \"regular-ip\"";
    let method = reader.require("method", expected, problems).and_then(|field| field.word(problems));
    let port = port.map(|port| port.map(|port| u16::try_from(port).unwrap_or(u16::MAX)));
    Some(PolicyDraft {
        to: to?,
        port: match port {
            Some(port) => Some(port?),
            None => None,
        },
        method: method?,
    })
}

pub(crate) fn destination<'a>(field: &Field<'a>, problems: &mut Problems) -> Option<To<'a>> {
    let reference = Reference::read(field, problems)?;
    if !reference.name.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(To::Node(reference));
    }
    let (address, length) = reference.name.split_once('/').unwrap_or((reference.name, "32"));
    let parsed =
        address.parse::<Ipv4Addr>().ok().zip(length.parse::<u8>().ok().filter(|length| *length <= 32));
    let Some((address, length)) = parsed else {
        field.wrong("it must be a node or an IPv4 prefix, such as \"10.0.0.0/8\"", None, problems);
        return None;
    };
    let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
    let prefix = Ipv4Addr::from_bits(address.to_bits() & mask);
    if prefix != address {
        let hint = Some(format!("write \"{prefix}/{length}\""));
        field.wrong(format!("the bits of a prefix beyond its length of {length} are zero"), hint, problems);
        return None;
    }
    Some(To::Prefix(address, length))
}

/// A handover of a `[[handover]]` table.
#[derive(Clone, Debug)]
pub(crate) struct HandoverDraft<'a> {
    /// Index of the table.
    pub(crate) table: usize,
    pub(crate) at: At,
    /// The distance of those of the table, where it says `every`.
    pub(crate) every: Option<Duration>,
    /// Where runs draw the instants: how. Then `at` says only where that is written.
    pub(crate) drawn: Option<Draws>,
    pub(crate) from: Reference<'a>,
    pub(crate) to: Reference<'a>,
    pub(crate) style: HandoverStyle,
    pub(crate) interruption: Duration,
    pub(crate) link_layer: Option<WirelessHandover>,
    pub(crate) overlap: Option<Duration>,
    pub(crate) queued: QueuedFate,
    pub(crate) notice: Duration,
    pub(crate) cancelled: bool,
    pub(crate) announced: Option<Reference<'a>>,
}

/// A `[[handover]]` table that sends many round their stations.
#[derive(Debug)]
pub(crate) struct RoundDraft<'a> {
    pub(crate) every: Duration,
    pub(crate) interruption: Duration,
    pub(crate) link_layer: Option<WirelessHandover>,
    pub(crate) overlap: Duration,
    pub(crate) spread: Duration,
    pub(crate) walk: WalkDraft<'a>,
    pub(crate) origin: Origin,
    pub(crate) path: String,
}

/// Reads one element of `handover` if it sends many round their stations: with `every` where that is what moves here, or with a walk that has times of its own. Stations
/// are of a domain of micro-mobility or not; the inner `None` if something in it is wrong.
pub(crate) fn round<'a>(
    field: &Field<'a>,
    (many, in_domain): (bool, bool),
    files: &ReadFile<'_>,
    problems: &mut Problems,
) -> Option<Option<RoundDraft<'a>>> {
    let Value::Table(table) = &field.node.value else { return None };
    let has_times = table.get("walk").is_some_and(|walk| walk::has_times(&walk.value));
    if !has_times {
        // Of one mobile node they lead from link to link.
        let is_of_one = !many && !in_domain && (table.get("from").is_some() || table.get("to").is_some());
        table.get("every").filter(|_| !is_of_one)?;
    }
    let before = problems.count();
    let reader = field.reader(&HANDOVER, problems)?;
    let given = reader.get(if has_times { "walk" } else { "every" })?;
    let walk = match reader.get("walk").filter(|_| in_domain) {
        Some(field) => walk::walk(&field, files, problems),
        None => Some(WalkDraft::Round),
    };
    let every = match &walk {
        Some(WalkDraft::Trace(trace)) => {
            reader.refuse(&["every", "spread"], "the file of the walk says when each handover is", problems);
            Some(trace.shortest())
        }
        _ if has_times => None,
        _ => given.positive_duration(problems),
    };
    reader.refuse(
        &["at", "from", "to", "notice", "announced", "cancelled", "spacing", "least_spacing"],
        "with `every` the handovers lead round the stations, each mobile node in its own time",
        problems,
    );
    if !in_domain {
        reader.refuse(
            &["overlap", "walk"],
            "with `every` it is for the base stations of a domain: add [micro_mobility]",
            problems,
        );
    }
    let style: Option<HandoverStyle> = reader.get("style").and_then(|field| field.word(problems));
    if style == Some(HandoverStyle::MakeBeforeBreak)
        && !in_domain
        && let Some(field) = reader.get("style")
    {
        let hint = "leave `style` out, or write \"break-before-make\"".to_owned();
        field.wrong("a radio serves one station at a time", Some(hint), problems);
    }
    let queued: Option<QueuedFate> = reader.get("queued").and_then(|field| field.word(problems));
    if queued.is_some_and(|queued| queued != QueuedFate::Drop)
        && let Some(field) = reader.get("queued")
    {
        let hint = "leave `queued` out, or write \"drop\"".to_owned();
        field.wrong("what is in a radio that leaves its station is dropped", Some(hint), problems);
    }
    let most = if has_times { "the shortest step of the walk" } else { "`every`" };
    let interruption = reader.get("interruption").map(|field| (field.duration(problems), field));
    if let (Some((Some(span), field)), Some(every)) = (&interruption, every)
        && *span >= every
    {
        field.wrong(format!("the interruption must be shorter than {most}"), None, problems);
    }
    let interruption = interruption.and_then(|(span, _)| span).unwrap_or_default();
    let link_layer = link_layer(&reader, style, problems);
    let longest = link_layer.map_or(interruption, |link_layer| link_layer.longest());
    if let (Some(field), Some(every)) = (reader.get("link_layer"), every)
        && link_layer.is_some()
        && longest >= every
    {
        let taken = crate::units::duration(longest);
        field.wrong(format!("its longest, {taken}, must be shorter than {most}"), None, problems);
    }
    let overlap = reader.get("overlap").map(|field| (field.duration(problems).unwrap_or_default(), field));
    if let Some((span, field)) = overlap.as_ref().filter(|(span, _)| !span.is_zero()) {
        if !longest.is_zero() || style == Some(HandoverStyle::BreakBeforeMake) {
            let expected =
                "a mobile node is on both stations or on none: with `overlap` there is no interruption";
            field.wrong(expected, Some("leave one of the two out".to_owned()), problems);
        } else if every.is_some_and(|every| *span >= every) {
            field.wrong(format!("the overlap must be shorter than {most}"), None, problems);
        }
    }
    let overlap = overlap.map(|(span, _)| span).unwrap_or_default();
    let spread = reader.get("spread").map(|field| (field.duration(problems).unwrap_or_default(), field));
    if let (Some((span, field)), Some(every)) = (&spread, every)
        && span.saturating_add(longest.max(overlap)) >= every
    {
        let expected = "the spread, with the interruption or overlap, must be shorter than `every`";
        field.wrong(expected, None, problems);
    }
    if problems.count() > before {
        return Some(None);
    }
    let draft = every.zip(walk).map(|(every, walk)| RoundDraft {
        every,
        interruption,
        link_layer,
        overlap,
        spread: spread.map(|(span, _)| span).unwrap_or_default(),
        walk,
        origin: given.node.origin,
        path: given.path.clone(),
    });
    Some(draft)
}

/// Reads one element of `handover`, the table of this index, in a run of length `duration`: the handovers that it stands for; `None` if
/// something in it is wrong.
pub(crate) fn handover<'a>(
    field: &Field<'a>,
    table: usize,
    duration: Option<Duration>,
    problems: &mut Problems,
) -> Option<Vec<HandoverDraft<'a>>> {
    let before = problems.count();
    let reader = field.reader(&HANDOVER, problems)?;
    reader.refuse(
        &["spread"],
        "it is for mobile nodes that go round stations: `nodes` of [mobility]",
        problems,
    );
    reader.refuse(&["walk"], "it is for the base stations of a domain: add [micro_mobility]", problems);
    let is_repeated = is_repeated(&reader);
    let from = reader.require("from", "a handover needs the link it leaves: from = \"wavelan\"", problems);
    let from = from.and_then(|field| Reference::read(&field, problems));
    let to = links_to(&reader, is_repeated, problems);
    let style: HandoverStyle = word(&reader, "style", problems);
    let link_layer = link_layer(&reader, Some(style), problems);
    let interruption = reader.get("interruption").map(|field| (field.duration(problems), field));
    if let Some((Some(span), field)) = &interruption
        && style == HandoverStyle::MakeBeforeBreak
        && !span.is_zero()
    {
        let hint = "write style = \"break-before-make\", or leave `interruption` out".to_owned();
        field.wrong("make-before-break has no interruption", Some(hint), problems);
    }
    let interruption = interruption.and_then(|(span, _)| span).unwrap_or_default();
    if style == HandoverStyle::BreakBeforeMake {
        reader.refuse(&["overlap"], "with break-before-make the links are never up together", problems);
    }
    let overlap = reader.get("overlap").and_then(|field| field.duration(problems));
    let queued = word(&reader, "queued", problems);
    let notice_given = reader.get("notice").map(|field| (field.duration(problems), field));
    let notice = notice_given.as_ref().and_then(|(span, _)| *span).unwrap_or_default();
    let longest = link_layer.map_or(interruption, |link_layer| link_layer.longest());
    let span = longest.saturating_add(overlap.unwrap_or_default());
    let times = times(&reader, (span, notice), duration, problems);
    if let (Some((_, field)), Some(Times::Given(..))) = (&notice_given, &times)
        && times.as_ref().is_some_and(|times| notice > times.first())
    {
        field.wrong("the notice must not lie before the beginning of the run", None, problems);
    }
    if is_repeated {
        let reason = "it is for a single handover: give that a table of its own";
        reader.refuse(&["cancelled", "announced"], reason, problems);
    }
    let cancelled = reader.get("cancelled").and_then(|field| {
        let cancelled = field.boolean(problems)?;
        if cancelled && notice.is_zero() {
            let hint = "add notice = \"500 ms\"".to_owned();
            field.wrong("what does not happen has to be announced at least", Some(hint), problems);
        }
        if cancelled {
            reader.refuse(
                &["announced", "queued", "interruption", "link_layer", "overlap"],
                "a cancelled handover leaves the link alone",
                problems,
            );
        }
        Some(cancelled)
    });
    let announced = reader.get("announced").and_then(|field| {
        if notice.is_zero() {
            let hint = "add notice = \"500 ms\"".to_owned();
            field.wrong("what is announced is announced some time before", Some(hint), problems);
        }
        Reference::read(&field, problems)
    });
    if problems.count() > before {
        return None;
    }
    let (from, links, times) = (from?, to?, times?);
    let at = match &times {
        Times::Given(all, _) => all.first()?.clone(),
        Times::Drawn(_, at) => at.clone(),
    };
    let one = HandoverDraft {
        table,
        at,
        every: None,
        drawn: None,
        to: links.first()?.clone(),
        from,
        style,
        interruption,
        link_layer,
        overlap,
        queued,
        notice,
        cancelled: cancelled.unwrap_or(false),
        announced,
    };
    Some(expand(one, &links, times))
}
