//! Domains of micro-mobility on real hosts: seven routers in a tree, and the kernel's TCP through them. Where this machine has no namespaces
//! or no TUN devices for this user the tests say so and pass.

use std::path::Path;

use crate::common::{Ran, completed, run_observed};
use careof_linux::Observation;
use careof_metrics::{Summary, summary_json};
use careof_scenario::Scenario;

/// A scenario of `scenarios/micromobility`, of these bytes and so many seconds, with handovers each second.
fn seven_hosts(name: &str, bytes: u64, seconds: u64, more: &[&str]) -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/micromobility");
    let mut overrides = vec![
        format!("duration={seconds} s"),
        format!("flow.download.size={bytes} B"),
        "handover.every=1 s".to_owned(),
        "handover.spread=0 s".to_owned(),
    ];
    overrides.extend(more.iter().map(|word| (*word).to_owned()));
    let file = folder.join(format!("seven-hosts-{name}.toml"));
    Scenario::load(&file, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

const BYTES: u64 = 1_500_000;
const SECONDS: u64 = 8;

/// What holds at any load of a run of so many seconds: books balance, which `run_scenario` sees, and every byte arrives, once.
fn check(ran: &Ran, name: &str, seconds: u64) {
    let Summary { roaming, micro_mobility, mobility, flows, .. } = &ran.summary;
    let told = || format!("{name}: {}", summary_json(&ran.summary));
    let flow = &flows[0];
    assert!(flow.complete && flow.bytes_delivered == BYTES, "{}", told());
    let roaming = roaming.as_ref().unwrap();
    assert_eq!((roaming.nodes, roaming.stations, roaming.handovers), (1, 4, seconds - 1), "{}", told());
    // Moves inside the domain are none of Mobile IP's.
    let mobility = mobility.as_ref().unwrap();
    assert_eq!(mobility.registrations_accepted, 1, "{}", told());
    // A kernel that acted on messages of the domain would say to routers that nobody listens.
    assert!(!mobility.discarded.contains_key("not-for-us"), "{}", told());
    let micro = micro_mobility.as_ref().unwrap();
    assert!(micro.messages_sent > roaming.handovers, "{}", told());
    let forged = ["bad-authenticator", "malformed", "wrong-interface", "wrong-source", "not-of-domain"];
    assert!(forged.iter().all(|reason| !micro.messages_discarded.contains_key(*reason)), "{}", told());
    let accounts = ran.summary.conservation.keys().filter(|what| what.starts_with("domain at "));
    assert_eq!(accounts.count(), 8, "{}", told());
}

#[test]
fn kernels_talk_through_every_kind_of_domain_and_every_byte_arrives() {
    for name in ["cellular-ip-semisoft", "hawaii-msf", "mm-bicast", "car-set"] {
        let Some(ran) = completed(|pace| seven_hosts(name, BYTES, SECONDS * pace, &[])) else { return };
        let seconds = ran.summary.duration.as_secs();
        check(&ran, name, seconds);
        let micro = ran.summary.micro_mobility.as_ref().unwrap();
        match name {
            // A copy from the crossover router, or of the packets of both base stations.
            "cellular-ip-semisoft" | "mm-bicast" => assert!(micro.copies > 0, "{name}: {micro:?}"),
            _ => assert!(micro.packets_kept > 0 && micro.packets_released > 0, "{name}: {micro:?}"),
        }
        assert!(ran.remarks.iter().all(|remark| !remark.contains("model")), "{:?}", ran.remarks);
    }
}

#[test]
fn a_domain_is_seen_from_all_of_its_hosts() {
    let scenario = seven_hosts("mm-bicast", BYTES, 4, &[]);
    let Some(ran) = run_observed(scenario, Observation { trace: true, ..Observation::default() }) else {
        return;
    };
    let [kinds, nodes, causes] = ["kind", "node", "cause"].map(|name| ran.events.by_name(name).unwrap());
    let told = |kind: &str, node: &str, cause: &str| {
        let is_it = |row: &usize| {
            [(&kinds, kind), (&nodes, node), (&causes, cause)]
                .iter()
                .all(|(column, word)| column.text(*row) == Some(*word))
        };
        (0..ran.events.rows()).filter(is_it).count()
    };
    // Three of the domain, and Mobile IP's own when the mobile node came there.
    assert_eq!(told("handover", "mobile-1", "initiated"), 4);
    assert!(told("handover", "mobile-1", "confirmed") > 0);
    for router in ["gateway", "router-1", "router-2", "station-1", "station-2", "station-3", "station-4"] {
        assert!(told("host-route", router, "created") > 0, "{router}");
    }
}

#[test]
fn a_domain_that_is_too_large_is_refused_with_the_file_that_is_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/micromobility");
    for (file, word, key) in [
        ("mm-bicast.toml", None, "links.cell.count: 21"),
        ("seven-hosts-mm-bicast.toml", Some("mobility.nodes=2"), "mobility.nodes: 2"),
    ] {
        let overrides: Vec<String> = word.into_iter().map(str::to_owned).collect();
        let scenario =
            Scenario::load(&folder.join(file), &overrides).unwrap_or_else(|errors| panic!("{errors}"));
        let said = careof_linux::check(&scenario).unwrap_err().to_string();
        assert!(said.contains(key) && said.contains("seven-hosts-cellular-ip-semisoft.toml"), "{said}");
    }
}

#[test]
fn what_domains_on_hosts_do_not_have_is_refused_by_its_key() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/micromobility/seven-hosts-car-set.toml");
    for (words, key) in [
        (&["micro_mobility.advertisement_interval=1 s"][..], "micro_mobility.advertisement_interval"),
        (
            &[
                "media.air={ kind = \"802.11b\" }",
                r#"links.radio={ medium = "air", between = ["station-*", "mobile-*"] }"#,
            ][..],
            "links.radio.medium",
        ),
    ] {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let scenario = Scenario::load(&file, &words).unwrap_or_else(|errors| panic!("{errors}"));
        let said = careof_linux::check(&scenario).unwrap_err().to_string();
        assert!(said.contains(key) && said.contains("simulator"), "{said}");
    }
}
