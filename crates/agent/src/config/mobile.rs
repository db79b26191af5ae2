//! The configuration of a mobile node.

use std::time::Duration;

use careof_assist::Place;
use careof_document::decode::{Field, Reader};
use careof_document::error::Problems;
use careof_document::tree::Value;
use careof_mobility::v4::{
    CareOfChoice, DeliveryMethod, EncapsulationChoice, InterfaceConfig, InterfaceId, MobileNodeConfig,
    PathProperties, PolicyEntry, PolicyTable, Prefix, RetransmissionConfig, Selection,
};
use careof_wire::mip4::Lifetime;

use super::Source;
use super::agents::{at_home, interface_name, peers};
use super::assist::assist;
use super::cluster::add_relays;
use super::fields::{Ip, address, at_least, given, lifetime, network, prefix, required, tables};
use super::key::security_association;
use super::multipath::{Multipath, multipath, refuse_too_many_paths};
use super::reference::{MOBILE_INTERFACE, MOBILE_MULTIPATH, POLICY};
use super::service::host;
use crate::{Device, MobileSetup};

pub(super) fn mobile(
    reader: &Reader<'_>,
    source: Source<'_>,
    problems: &mut Problems,
) -> Option<MobileSetup> {
    let before = problems.count();
    let expected = "a mobile node needs its home network: home_network = \"192.0.2.0/24\"";
    let home_network = required(reader, "home_network", expected, problems, network);
    let expected = "a mobile node needs its home address: home_address = \"192.0.2.10\"";
    let home_address = required(reader, "home_address", expected, problems, |field, problems| {
        let address = address(field, problems)?;
        at_home(field, address, home_network, problems)?;
        Some(address)
    });
    let home_agent = given(reader, "home_agent", problems, |field, p| home_agent(field, home_address, p));
    let security = security_association(reader, source, problems);
    let asked = given(reader, "lifetime", problems, lifetime).unwrap_or(Lifetime::from_secs(300));
    let renew_after_percent = given(reader, "renew_after", problems, percent).unwrap_or(75);
    let attempts = given(reader, "attempts", problems, |field, p| field.integer(1, 1000, p));
    let early = given(reader, "early_requests", problems, |field, p| field.integer(0, 2, p));
    let probe = given(reader, "probe", problems, |field, p| at_least(field, Duration::from_secs(1), p));
    let default = given(reader, "routing", problems, routing).unwrap_or(DeliveryMethod::ReverseTunnel);
    let encapsulations = [
        ("ip-in-ip", EncapsulationChoice::IpInIp),
        ("minimal", EncapsulationChoice::Minimal),
        ("gre", EncapsulationChoice::Gre),
    ];
    let encapsulation =
        given(reader, "encapsulation", problems, |field, p| field.choice(&encapsulations, &[], p));
    let report_paths = given(reader, "report_paths", problems, |field, p| field.boolean(p)).unwrap_or(true);
    let path_monitor = given(reader, "path_monitor", problems, |field, p| field.boolean(p)).unwrap_or(true);
    let leave_bad_paths = given(reader, "leave_bad_paths", problems, |field, p| field.boolean(p));
    let mut flag = |key: &str| given(reader, key, problems, |field, p| field.boolean(p)).unwrap_or(false);
    let encapsulating_delivery = flag("encapsulating_delivery");
    let simultaneous = flag("simultaneous_bindings");
    let broadcasts = flag("broadcasts");
    let selection = selection(reader, problems);
    refuse_choice_of_paths(reader, selection, path_monitor, problems);
    let keep_old = keep_old(reader, problems);
    let expected =
        "a mobile node needs an interface: write [[interface]], once for each, the preferred one first";
    let interfaces = required(reader, "interface", expected, problems, interfaces);
    let policy =
        given(reader, "policy", problems, |field, problems| tables(field, "policy", problems, policy));
    let foreign_agents = peers(reader, "foreign_agent", source, problems);
    let several = multipath(reader, &MOBILE_MULTIPATH, source, problems);
    if let (Some(several), Some(all)) = (&several, &interfaces) {
        refuse_too_many_paths(reader, (all.len(), several.relays), default, problems);
        refuse_cluster_of_its_own(reader, several, all, problems);
    }
    let assist = assist(reader, Place::MobileNode, problems);
    let host = host(reader, problems);
    if problems.count() > before {
        return None;
    }
    let (mut interfaces, names): (Vec<_>, Vec<_>) = interfaces?.into_iter().unzip();
    let devices =
        interfaces.iter().zip(names).map(|(interface, name)| Device { id: interface.id, name }).collect();
    add_relays(&mut interfaces, several.as_ref().map_or(0, |several| several.relays));
    let home_network = home_network?;
    // The address is replaced by what the file says, which may be nothing.
    let defaults =
        MobileNodeConfig::new(home_address?, home_network, home_network.address(), security?, interfaces);
    let config = MobileNodeConfig {
        home_agent,
        foreign_agents,
        lifetime: asked,
        renew_after_percent,
        probe,
        simultaneous,
        multipath: several.as_ref().map(|several| several.form),
        broadcasts,
        reverse_tunnel: default == DeliveryMethod::ReverseTunnel,
        encapsulating_delivery,
        encapsulation: encapsulation.unwrap_or_default(),
        retransmission: RetransmissionConfig {
            attempts: attempts.map_or(defaults.retransmission.attempts, |count| u32::try_from(count).ok()),
            early: early.and_then(|count| u32::try_from(count).ok()).unwrap_or(defaults.retransmission.early),
            ..defaults.retransmission
        },
        selection,
        keep_old,
        report_paths,
        path_monitor,
        leave_bad_paths: leave_bad_paths.unwrap_or(true),
        policy: PolicyTable::new(default, policy.unwrap_or_default()),
        ..defaults
    };
    let multipath = several.map(|several| several.setup).unwrap_or_default();
    Some(MobileSetup { config, devices, host, assist, multipath })
}

/// Reports a cluster behind an interface that is a path of its own.
fn refuse_cluster_of_its_own(
    reader: &Reader<'_>,
    several: &Multipath,
    interfaces: &[(InterfaceConfig, String)],
    problems: &mut Problems,
) {
    let cluster = several.setup.cluster.as_ref().map(|cluster| &cluster.interface);
    if let Some(name) = cluster.filter(|name| interfaces.iter().any(|(_, own)| own == *name))
        && let Some(field) = reader.get("multipath")
    {
        let expected = format!("{name} is the way to the cluster, or a path of its own, but not both");
        let hint = format!("take {name} out of the [[interface]] tables");
        field.wrong(expected, Some(hint), problems);
    }
}

/// Regular IP is a choice for single destinations; as the rule for all it would be no Mobile IP.
fn routing(field: &Field<'_>, problems: &mut Problems) -> Option<DeliveryMethod> {
    let method = field.choice(&METHODS, &[], problems)?;
    if method == DeliveryMethod::RegularIp {
        let hint = "say for which destinations, in [[policy]]";
        field.wrong("it must be \"reverse-tunnel\" or \"triangle\"", Some(hint.to_owned()), problems);
        return None;
    }
    Some(method)
}

const METHODS: [(&str, DeliveryMethod); 3] = [
    ("reverse-tunnel", DeliveryMethod::ReverseTunnel),
    ("triangle", DeliveryMethod::Triangle),
    ("regular-ip", DeliveryMethod::RegularIp),
];

/// `"75 %"`, as whole percent.
pub(super) fn percent(field: &Field<'_>, problems: &mut Problems) -> Option<u8> {
    let percent = field.probability(problems)?.get() * 100.0;
    // Through the nearest whole number: 0.07 is not exactly 7 hundredths.
    let whole = (1..=95).find(|whole| (percent - f64::from(*whole)).abs() < 1e-6);
    if whole.is_none() {
        field.wrong("it must be a whole percentage from 1 % to 95 %", None, problems);
    }
    whole
}

/// `None` is until the link goes down.
pub(super) fn keep_old(reader: &Reader<'_>, problems: &mut Problems) -> Option<Duration> {
    let Some(field) = reader.get("keep_old") else { return Some(Duration::from_secs(2)) };
    match &field.node.value {
        Value::Text(text) if text == "until-down" => None,
        Value::Text(text) if text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            field.wrong("it must be a duration, such as \"2 s\", or \"until-down\"", None, problems);
            None
        }
        _ => field.duration(problems),
    }
}

pub(super) fn selection(reader: &Reader<'_>, problems: &mut Problems) -> Selection {
    const HOLD: Duration = Duration::from_secs(5);
    let modes = [("preferred", Selection::Preferred { hold: HOLD }), ("manual", Selection::Manual)];
    let mode = given(reader, "selection", problems, |field, p| field.choice(&modes, &[], p));
    match mode.unwrap_or(Selection::Preferred { hold: HOLD }) {
        Selection::Manual => {
            reader.refuse(
                &["hold"],
                "with selection = \"manual\" the node goes back to nothing by itself",
                problems,
            );
            Selection::Manual
        }
        Selection::Preferred { hold } => {
            let given = given(reader, "hold", problems, |field, p| field.duration(p));
            Selection::Preferred { hold: given.unwrap_or(hold) }
        }
    }
}

fn interfaces(field: &Field<'_>, problems: &mut Problems) -> Option<Vec<(InterfaceConfig, String)>> {
    let kinds = [
        ("co-located", CareOfChoice::CoLocated),
        ("foreign-agent", CareOfChoice::ForeignAgent),
        ("prefer-co-located", CareOfChoice::PreferCoLocated),
        ("prefer-foreign-agent", CareOfChoice::PreferForeignAgent),
    ];
    let mut names = Vec::new();
    let mut interfaces = tables(field, "interface", problems, |field, index, problems| {
        let reader = field.reader(&MOBILE_INTERFACE, problems)?;
        let name = interface_name(&reader, &mut names, problems);
        let care_of = given(&reader, "care_of", problems, |field, p| field.choice(&kinds, &[], p));
        let path = path_properties(&reader, problems);
        let metered = cost(&reader, problems);
        let interface = InterfaceConfig {
            metered,
            care_of: care_of.unwrap_or_default(),
            path,
            ..InterfaceConfig::new(InterfaceId(u16::try_from(index).ok()?))
        };
        Some((interface, name?))
    })?;
    a_few(field, &interfaces, problems)?;
    // The first is the best.
    for (preference, (interface, _)) in interfaces.iter_mut().rev().enumerate() {
        interface.preference = u8::try_from(preference).unwrap_or(u8::MAX);
    }
    Some(interfaces)
}

/// Refuses `leave_bad_paths` where nothing is chosen by the quality of paths.
pub(super) fn refuse_choice_of_paths(
    reader: &Reader<'_>,
    selection: Selection,
    path_monitor: bool,
    problems: &mut Problems,
) {
    if selection == Selection::Manual || !path_monitor {
        let reason = "paths are chosen with path_monitor = true and selection = \"preferred\" only";
        reader.refuse(&["leave_bad_paths"], reason, problems);
    }
}

/// Whether the use of an interface costs something.
pub(super) fn cost(reader: &Reader<'_>, problems: &mut Problems) -> bool {
    let costs = [("free", false), ("metered", true)];
    given(reader, "cost", problems, |field, p| field.choice(&costs, &[], p)).unwrap_or(false)
}

/// What is known of the path through an interface.
pub(super) fn path_properties(reader: &Reader<'_>, problems: &mut Problems) -> PathProperties {
    let round_trip = given(reader, "round_trip", problems, |field, p| field.positive_duration(p));
    let downlink = given(reader, "rate", problems, |field, p| field.rate(p));
    let uplink = given(reader, "rate_up", problems, |field, p| field.rate(p)).or(downlink);
    PathProperties { downlink, uplink, round_trip }
}

/// Reports interfaces that are none, or more than there are routing tables for.
pub(super) fn a_few<T>(field: &Field<'_>, interfaces: &[T], problems: &mut Problems) -> Option<()> {
    if interfaces.is_empty() || interfaces.len() > 32 {
        field.wrong("a mobile node has 1 to 32 interfaces", None, problems);
        return None;
    }
    Some(())
}

/// The address of a home agent.
pub(super) fn home_agent<A: Ip + PartialEq>(
    field: &Field<'_>,
    home_address: Option<A>,
    problems: &mut Problems,
) -> Option<A> {
    let agent = address(field, problems)?;
    if Some(agent) == home_address {
        field.wrong("this is the home address", None, problems);
        return None;
    }
    Some(agent)
}

fn policy(field: &Field<'_>, _: usize, problems: &mut Problems) -> Option<PolicyEntry> {
    const EXPECTED: &str = "a policy needs its method: \"reverse-tunnel\", \"triangle\" or \"regular-ip\"";
    let before = problems.count();
    let reader = field.reader(&POLICY, problems)?;
    let to = given(&reader, "to", problems, prefix);
    let port = given(&reader, "port", problems, |field, p| field.integer(1, 65_535, p));
    let method = required(&reader, "method", EXPECTED, problems, |field, p| field.choice(&METHODS, &[], p));
    if problems.count() > before {
        return None;
    }
    Some(PolicyEntry {
        destination: to.unwrap_or(Prefix::ALL),
        port: port.and_then(|port| u16::try_from(port).ok()),
        method: method?,
    })
}
