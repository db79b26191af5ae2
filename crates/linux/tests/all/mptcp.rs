//! Flows over the kernel's Multipath TCP. What an application gets is compared byte by byte on its way in.

use std::collections::BTreeMap;

use careof_linux::WorldError;
use careof_scenario::Scenario;

use crate::common::{Ran, completed, start};

/// Two links to a mobile node, and a handover between them.
const WORLD: &str = r#"
duration = "6 s"
[links]
wifi = { rate = "10 Mbit/s", delay = "5 ms" }
lte = { rate = "10 Mbit/s", delay = "15 ms" }
[mobility]
routing = "reverse-tunnel"
[[handover]]
at = "2500 ms"
from = "wifi"
to = "lte"
style = "break-before-make"
interruption = "200 ms"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
mptcp = true
"#;

fn scenario(overrides: &[&str]) -> Scenario {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    Scenario::parse("test.toml", WORLD, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The bytes of data that each subflow sent, repetitions included.
fn sent_by_subflow(ran: &Ran) -> BTreeMap<String, i128> {
    let [kinds, flows, lengths] = ["kind", "flow", "len_bytes"].map(|name| ran.events.by_name(name).unwrap());
    let mut sent = BTreeMap::new();
    for row in 0..ran.events.rows() {
        if let (Some("segment-sent"), Some(flow), Some(length)) =
            (kinds.text(row), flows.text(row), lengths.number(row))
        {
            *sent.entry(flow.to_owned()).or_default() += length;
        }
    }
    sent
}

/// A transfer of more than goes before the handover, with so much time as it needs.
fn transferred(overrides: &[&str]) -> Option<Ran> {
    completed(|pace| {
        let duration = format!("duration={} s", 10 * pace);
        scenario(&[overrides, &["flow.size=5 MB", &duration]].concat())
    })
}

fn is_whole(ran: &Ran) {
    let [flow] = &ran.summary.flows[..] else { panic!("{:?}", ran.summary.flows) };
    assert_eq!((flow.tcp.profile.as_deref(), flow.tcp.variant.as_str()), (Some("mptcp"), "kernel-cubic"));
    assert!(flow.complete, "{flow:?}");
    assert_eq!(flow.bytes_delivered, 5_000_000);
    assert!(flow.segments_arrived <= flow.segments_sent && flow.rtt_samples > 0, "{flow:?}");
    let sent: i128 = sent_by_subflow(ran).values().sum();
    assert!(sent >= 5_000_000, "{sent}");
}

#[test]
fn with_break_before_make_a_download_waits_for_another_path_and_loses_no_byte() {
    let Some(ran) = transferred(&[]) else { return };
    is_whole(&ran);
    let sent = sent_by_subflow(&ran);
    assert!(sent["download.1"] > 0 && sent["download.2"] > 0, "{sent:?}");
}

#[test]
fn with_make_before_break_one_subflow_goes_on_when_the_other_one_ends() {
    for flow in ["flow.from=correspondent", "flow.from=mobile\nflow.to=correspondent"] {
        let mut overrides: Vec<&str> = flow.lines().collect();
        overrides.push("handover=[{ at = \"2500 ms\", from = \"wifi\", to = \"lte\", style = \"make-before-break\", overlap = \"1 s\" }]");
        let Some(ran) = transferred(&overrides) else { return };
        is_whole(&ran);
        let sent = sent_by_subflow(&ran);
        assert!(sent["download.1"] > 0 && sent["download.2"] > 0, "{flow}: {sent:?}");
    }
}

#[test]
fn a_backup_path_carries_nothing_while_another_one_can() {
    let ran = completed(|pace| {
        // The old link stays as long as the run goes.
        let handover = format!(
            "handover=[{{ at = \"500 ms\", from = \"wifi\", to = \"lte\", style = \"make-before-break\", overlap = \"{} s\" }}]",
            10 * pace
        );
        let duration = format!("duration={} s", 10 * pace + 1);
        scenario(&[&handover, "flow.mptcp.backup=lte", "flow.size=5 MB", &duration])
    });
    let Some(ran) = ran else { return };
    is_whole(&ran);
    let sent = sent_by_subflow(&ran);
    assert!(sent["download.1"] >= 5_000_000, "{sent:?}");
    assert_eq!(sent.get("download.2").copied().unwrap_or_default(), 0, "{sent:?}");
}

#[test]
fn what_multipath_tcp_cannot_have_is_refused_before_anything_is_made() {
    for (overrides, expected) in [
        (&["mobility.protocol=mobile-ipv6"][..], "flow.0.mptcp"),
        (&["mobility.care_of=foreign-agent"], "flow.0.mptcp"),
        (&["flow.to=home-agent"], "flow.0.mptcp"),
        (&["flow.tcp=modern", "flow.tcp.mss=500"], "flow.0.tcp.mss"),
        (&["flow.mptcp.scheduler=nonesuch"], "flow.0.mptcp.scheduler"),
    ] {
        let error = start(scenario(overrides)).map(drop);
        match error {
            Err(WorldError::Unsupported { key, .. }) => assert_eq!(key, expected, "{overrides:?}"),
            Err(WorldError::Missing { error, .. }) => careof_testbed::skip_for(&error),
            other => panic!("{overrides:?}: {other:?}"),
        }
    }
}
