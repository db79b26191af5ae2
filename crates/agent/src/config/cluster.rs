//! Clusters: a relay, and `[multipath.cluster]` of a mobile node that uses relays.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use careof_document::decode::{Field, Reader};
use careof_document::error::Problems;
use careof_document::section::Section;
use careof_mobility::multipath::alliance::{ClusterKey, RelayConfig, Trust};
use careof_mobility::v4::{InterfaceConfig, InterfaceId, Prefix};

use super::Source;
use super::fields::{address, count, given, interface, required, tables};
use super::key::cluster_key;
use super::reference::{CLUSTER, CLUSTER_RELAY, RELAY_CLIENT};
use crate::{ClusterSetup, RelaySetup};

/// For how long a link is lent at once, or asked for.
const USUAL_TIME: Duration = Duration::from_secs(60);
/// Clients of a relay, and relays of a mobile node, at a time.
const MOST_CLIENTS: u64 = 1000;
const MOST_RELAYS: u64 = 8;
/// The keys of a table that go with `trust = "keys"`.
const KEYS: [&str; 3] = ["spi", "key", "key_file"];

/// Reads the configuration of a relay.
pub(super) fn relay(reader: &Reader<'_>, source: Source<'_>, problems: &mut Problems) -> Option<RelaySetup> {
    let before = problems.count();
    let expected = "a relay needs the interface to those it lends its link: cluster = \"wlan0\"";
    let cluster = required(reader, "cluster", expected, problems, interface);
    let expected = "a relay needs the interface of the link that it lends: link = \"wwan0\"";
    let link = required(reader, "link", expected, problems, |field, problems| {
        let link = interface(field, problems)?;
        if Some(&link) == cluster.as_ref() {
            let hint = "name the interface by which the relay itself reaches the network".to_owned();
            field.wrong("nothing is relayed to where it comes from", Some(hint), problems);
            return None;
        }
        Some(link)
    });
    let rate = given(reader, "rate", problems, |field, p| field.rate(p));
    let rate_up = given(reader, "rate_up", problems, |field, p| field.rate(p)).or(rate);
    let cost = given(reader, "cost", problems, whole_cost).unwrap_or_default();
    let clients = given(reader, "clients", problems, |field, p| count(field, 1, MOST_CLIENTS, p));
    let client_rate = given(reader, "client_rate", problems, |field, problems| {
        let rate = field.rate(problems)?;
        above_zero(field, rate.bits_per_second(), problems).then_some(rate)
    });
    let client_bytes = given(reader, "client_bytes", problems, |field, problems| {
        let bytes = field.size(problems)?;
        above_zero(field, bytes, problems).then_some(bytes)
    });
    let longest = given(reader, "longest", problems, time).unwrap_or(USUAL_TIME);
    let trust = trust(reader, source, ("client", "home_address", &RELAY_CLIENT), problems);
    if problems.count() > before {
        return None;
    }
    let config = RelayConfig {
        // They are read from the interfaces.
        cluster: Ipv4Addr::UNSPECIFIED,
        cluster_network: Prefix::ALL,
        outside: Ipv4Addr::UNSPECIFIED,
        downlink: rate,
        uplink: rate_up,
        cost,
        clients: clients.unwrap_or(4),
        client_rate,
        client_bytes,
        longest,
        trust: trust?,
    };
    Some(RelaySetup { config, cluster: cluster?, link: link? })
}

/// Reads `[multipath.cluster]`, and how many relays are used at a time; `None`: there is none.
pub(super) fn cluster(
    reader: &Reader<'_>,
    source: Source<'_>,
    problems: &mut Problems,
) -> Option<(ClusterSetup, usize)> {
    let reader = reader.get("cluster")?.reader(&CLUSTER, problems)?;
    let before = problems.count();
    let expected = "a cluster needs the interface to it: interface = \"wlan0\"";
    let interface = required(&reader, "interface", expected, problems, interface);
    let relays = given(&reader, "relays", problems, |field, p| count(field, 1, MOST_RELAYS, p));
    let highest_cost = given(&reader, "highest_cost", problems, whole_cost).unwrap_or(u16::MAX);
    let lifetime = given(&reader, "lifetime", problems, time).unwrap_or(USUAL_TIME);
    let trust = trust(&reader, source, ("relay", "address", &CLUSTER_RELAY), problems);
    if problems.count() > before {
        return None;
    }
    let setup = ClusterSetup { interface: interface?, highest_cost, lifetime, trust: trust? };
    Some((setup, relays.unwrap_or(1)))
}

/// Adds the interfaces that stand for relays behind a mobile node's own.
pub(super) fn add_relays(interfaces: &mut Vec<InterfaceConfig>, relays: usize) {
    let first = interfaces.len();
    let more = (first..first + relays).filter_map(|number| {
        let id = InterfaceId(u16::try_from(number).ok()?);
        Some(InterfaceConfig { relay: true, ..InterfaceConfig::new(id) })
    });
    interfaces.extend(more);
}

/// Whom a node believes. Peers are in the tables `table`, known by their key `by`.
fn trust(
    reader: &Reader<'_>,
    source: Source<'_>,
    (table, by, section): (&str, &str, &'static Section),
    problems: &mut Problems,
) -> Option<Trust> {
    const EXPECTED: &str =
        "say whom the node believes: trust = \"keys\", or \"first-use\" where none were agreed on";
    let words = [("keys", true), ("first-use", false)];
    let by_keys = required(reader, "trust", EXPECTED, problems, |field, p| field.choice(&words, &[], p))?;
    if !by_keys {
        let reason = "with trust = \"first-use\" there are no keys to agree on";
        reader.refuse(&[&KEYS[..], &[table]].concat(), reason, problems);
        return Some(Trust::FirstUse);
    }
    let cluster = cluster_key(reader, source, problems);
    let expected = format!("with trust = \"keys\" each has a key: write [[{table}]], once for each");
    let mut seen = BTreeSet::new();
    let peers = required(reader, table, &expected, problems, |field, problems| {
        tables(field, table, problems, |field, _, problems| {
            let reader = field.reader(section, problems)?;
            let expected = format!("a peer needs its address: {by} = \"192.0.2.10\"");
            let peer = required(&reader, by, &expected, problems, |field, problems| {
                let peer: Ipv4Addr = address(field, problems)?;
                if !seen.insert(peer) {
                    field.wrong("this address has a key already", None, problems);
                    return None;
                }
                Some(peer)
            });
            let key = cluster_key(&reader, source, problems);
            Some((peer?, key?))
        })
    });
    let peers: Vec<(Ipv4Addr, ClusterKey)> = peers?;
    Some(Trust::Keys { cluster: cluster?, peers })
}

/// What a link costs, in whatever the cluster has agreed on.
fn whole_cost(field: &Field<'_>, problems: &mut Problems) -> Option<u16> {
    field.integer(0, u16::MAX.into(), problems).and_then(|cost| u16::try_from(cost).ok())
}

/// Whole seconds, as alliance messages have them.
fn time(field: &Field<'_>, problems: &mut Problems) -> Option<Duration> {
    let time = field.positive_duration(problems)?;
    if time.subsec_nanos() != 0 || time.as_secs() > u16::MAX.into() {
        let expected = "alliances are for whole seconds, at most 65535";
        field.wrong(expected, Some("write \"60 s\"".to_owned()), problems);
        return None;
    }
    Some(time)
}

fn above_zero(field: &Field<'_>, number: u64, problems: &mut Problems) -> bool {
    if number == 0 {
        field.wrong("it must be above zero", Some("leave it out for no limit".to_owned()), problems);
    }
    number > 0
}
