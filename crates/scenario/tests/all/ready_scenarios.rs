//! The files in `scenarios/` and the generated documentation.

use std::fs;
use std::path::{Path, PathBuf};

use careof_base::{DataRate, Duration};
use careof_link::{Framing, QueueLimit};
use careof_scenario::{CareOf, HandoverStyle, QueuedFate, Role, Scenario, Workload, reference_markdown};
use careof_tcp::{Profile, Variant};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn load(name: &str) -> Scenario {
    Scenario::load(&root().join("scenarios").join(name), &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn toml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            toml_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
}

#[test]
fn every_ready_scenario_loads_and_begins_with_its_idea() {
    let mut files = Vec::new();
    toml_files(&root().join("scenarios"), &mut files);
    assert!(files.len() >= 6);
    for file in files {
        let scenario = Scenario::load(&file, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(fs::read_to_string(&file).unwrap().starts_with("# "), "{}", file.display());
        assert!(!scenario.flows.is_empty(), "{}", file.display());
        for flow in &scenario.flows {
            assert_eq!(flow.tcp.config.check(), Ok(()));
        }
        for link in &scenario.links {
            assert_eq!((link.down.check(), link.up.check()), (Ok(()), Ok(())));
        }
    }
}

#[test]
fn the_download_of_the_thesis_is_resolved_completely() {
    let scenario = load("wavelan-to-gsm.toml");
    let names: Vec<_> = scenario.nodes.iter().map(|node| (node.name.as_str(), node.role)).collect();
    let expected =
        [("correspondent", Role::Correspondent), ("home-agent", Role::HomeAgent), ("mobile", Role::Mobile)];
    assert_eq!(names, expected);

    let links: Vec<_> =
        scenario.links.iter().map(|link| (link.name.as_str(), link.access, link.implied)).collect();
    assert_eq!(links, [("wavelan", true, false), ("gsm", true, false), ("ethernet", false, true)]);
    let gsm = scenario.link(scenario.link_named("gsm").unwrap());
    assert_eq!(gsm.ends.map(|end| scenario.node(end).name.as_str()), ["home-agent", "mobile"]);
    assert_eq!(gsm.down.rate, DataRate::from_bits_per_second(9_600));
    assert_eq!(gsm.down.queue.limit, QueueLimit::Packets(100));
    assert_eq!((gsm.up.framing, gsm.up.mtu), (Framing::ASYNC_PPP, 1500));

    let mobility = scenario.mobility.as_ref().unwrap();
    assert_eq!(mobility.nodes[0].start, scenario.link_named("wavelan").unwrap());
    assert_eq!((mobility.care_of, mobility.home), (CareOf::CoLocated, None));
    let handover = &scenario.handovers[0];
    assert_eq!((handover.at, handover.interruption), (Duration::from_secs(12), Duration::ZERO));
    assert_eq!((handover.style, handover.queued), (HandoverStyle::MakeBeforeBreak, QueuedFate::DrainLate));
    assert!(handover.address_changes);

    let flow = &scenario.flows[0];
    assert_eq!(flow.workload, Workload::Bulk { size: None });
    assert_eq!((flow.tcp.profile, flow.tcp.config.variant), (Profile::Linux20, Variant::Linux20));
    assert_eq!((flow.tcp.config.mss, flow.tcp.config.receive_window), (1460, 16_384));
}

#[test]
fn foreign_agents_get_their_nodes_and_backhauls() {
    let scenario = load("foreign-agents.toml");
    let agents: Vec<_> = scenario.nodes.iter().filter(|node| node.role == Role::ForeignAgent).collect();
    assert_eq!(
        agents.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(),
        ["foreign-agent-first", "foreign-agent-second"]
    );
    let links: Vec<_> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(links, ["first", "second", "ethernet", "first-backhaul", "second-backhaul"]);
    let backhaul = scenario.link(scenario.link_named("first-backhaul").unwrap());
    assert_eq!(
        backhaul.ends.map(|end| scenario.node(end).name.as_str()),
        ["home-agent", "foreign-agent-first"]
    );
    assert_eq!(scenario.access_links().count(), 2);
}

#[test]
fn the_dumbbell_is_that_of_the_benchmark() {
    let scenario = load("bench/dumbbell1.toml");
    assert_eq!(scenario.duration, Duration::from_secs(1000));
    assert!(scenario.mobility.is_none() && scenario.nodes.iter().all(|node| node.role == Role::Host));
    let delay: Duration = scenario.links.iter().map(|link| link.down.delay).sum();
    assert_eq!(delay, Duration::from_millis(30));
    let flow = &scenario.flows[0];
    assert_eq!((flow.tcp.config.variant, flow.tcp.config.receive_window), (Variant::NewReno, 1 << 20));
}

#[test]
fn the_reference_in_the_documentation_is_current() {
    let path = root().join("docs/scenario.md");
    let current = reference_markdown();
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(root().join("docs")).unwrap();
        fs::write(&path, &current).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == current,
        "docs/scenario.md is not current; write it with: UPDATE=1 cargo test -p careof-scenario --test all ready_scenarios"
    );
}
