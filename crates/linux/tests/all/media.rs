//! Links that share a medium, between real hosts: what crosses it how often, and that its books hold.

use std::path::Path;

use crate::common::{Ran, completed, paced, parsed, run_scenario, slower};
use careof_metrics::{LinkSummary, Resumption, Summary, summary_json};
use careof_scenario::Scenario;

/// One of the ready scenarios, with a smaller file.
fn run(name: &str) -> Option<Ran> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/overheads").join(name);
    completed(|pace| {
        let overrides = ["flow.file.size=1 MB".to_owned(), format!("duration={} s", 5 * pace)];
        Scenario::load(&file, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
    })
}

fn link<'a>(summary: &'a Summary, name: &str) -> &'a LinkSummary {
    summary.links.iter().find(|link| link.name == name).unwrap_or_else(|| panic!("{name}"))
}

fn delivered(summary: &Summary, name: &str) -> u64 {
    link(summary, name).delivered_packets
}

/// The file in segments of `mss` bytes.
const fn segments(mss: u64) -> u64 {
    1_000_000_u64.div_ceil(mss)
}

/// So many other packets than those of the file cross a link: a handshake, registrations, advertisements.
const FEW: u64 = 20;

#[test]
fn at_home_what_one_sends_to_the_other_crosses_the_cable_once_and_passes_no_router() {
    for (name, data, acks) in [
        ("a.toml", "lan-correspondent-mobile.down", "lan-correspondent-mobile.up"),
        ("b.toml", "lan-correspondent-mobile.up", "lan-correspondent-mobile.down"),
    ] {
        let Some(Ran { summary, .. }) = run(name) else { return };
        assert!(summary.flows[0].complete, "{name}: {}", summary_json(&summary));
        assert!(delivered(&summary, data) >= segments(1460), "{name}");
        assert!(delivered(&summary, acks) > segments(1460) / 50, "{name}");
        for other in ["ethernet.down", "ethernet.up", "home.up"] {
            assert!(delivered(&summary, other) < FEW, "{name}: {other}");
        }
    }
}

#[test]
fn a_download_through_a_tunnel_crosses_the_cable_twice_and_in_fragments_only_where_it_does_not_fit() {
    for (name, mss, fragments) in [("c.toml", 1460, 2), ("e.toml", 1410, 1)] {
        let Some(Ran { summary, .. }) = run(name) else { return };
        assert!(summary.flows[0].complete, "{name}: {}", summary_json(&summary));
        let full = segments(mss) - 1;
        // What a busy machine makes the sender repeat comes on top.
        let again = summary.flows[0].segments_retransmitted;
        let plain = delivered(&summary, "ethernet.down");
        assert!((full..full + again + 2 * FEW).contains(&plain), "{name}: {plain}, {again} again");
        let tunnelled = delivered(&summary, "cell-backhaul.down");
        let expected = fragments * full;
        let most = expected + fragments * again + 2 * FEW;
        assert!((expected..most).contains(&tunnelled), "{name}: {tunnelled} of {plain}");
        // The foreign agent puts them together again.
        let whole = delivered(&summary, "cell.down");
        assert!((full..full + again + 2 * FEW).contains(&whole), "{name}: {whole}");
        // Acknowledgements go straight from the foreign agent to the correspondent.
        assert!(delivered(&summary, "lan-correspondent-foreign-agent-cell.up") > full / 50, "{name}");
        assert!(delivered(&summary, "ethernet.up") < FEW, "{name}: none of them passes the home agent");
    }
}

#[test]
fn an_upload_from_elsewhere_crosses_the_cable_once() {
    let Some(Ran { summary, .. }) = run("d.toml") else { return };
    assert!(summary.flows[0].complete, "{}", summary_json(&summary));
    let straight = delivered(&summary, "lan-correspondent-foreign-agent-cell.up");
    assert!(straight >= segments(1460), "{straight}");
    for way in ["ethernet.down", "cell-backhaul.down"] {
        let acks = delivered(&summary, way);
        assert!(acks > segments(1460) / 50 && acks < segments(1460), "{way}: {acks}");
    }
    assert!(delivered(&summary, "ethernet.up") < FEW);
}

/// From home, where the medium is shared with the correspondent, to a cell and back.
const JOURNEY: &str = r#"
duration = "9 s"
[media.lan]
rate = "10 Mbit/s"
delay = "1 us"
[links]
ethernet = { medium = "lan" }
home = { medium = "lan" }
cell = "ethernet-10m"
cell-backhaul = { medium = "lan" }
[mobility]
care_of = "foreign-agent"
home = "home"
[[handover]]
at = "3 s"
from = "home"
to = "cell"
style = "break-before-make"
queued = "drop"
[[handover]]
at = "6 s"
from = "cell"
to = "home"
[[flow]]
name = "down"
from = "correspondent"
to = "mobile"
tcp = "reno"
[[flow]]
name = "up"
from = "mobile"
to = "correspondent"
tcp = "reno"
"#;

#[test]
fn a_mobile_node_leaves_a_medium_and_comes_back() {
    let later = |pace| slower(JOURNEY, pace, &[("duration", 9, "s"), ("at", 6, "s"), ("at", 3, "s")]);
    // It was away, and the home agent drew its packets meanwhile.
    let is_as_planned = |Ran { summary, .. }: &Ran| {
        let mut flows = summary.handovers.iter().flat_map(|handover| &handover.flows);
        flows.all(|flow| flow.stall == Resumption::Resumed)
            && delivered(summary, "cell.down") > FEW
            && delivered(summary, "ethernet.down") > FEW
    };
    let Some(Ran { summary, .. }) = paced(later, is_as_planned) else { return };
    assert_eq!(summary.handovers.len(), 2, "{}", summary_json(&summary));
    let home = link(&summary, "lan-correspondent-mobile.down");
    assert!(home.delivered_packets > FEW, "and let them go straight before or afterwards");
}

#[test]
fn a_cable_carries_no_more_than_its_rate_allows_and_two_who_always_send_share_it() {
    let text = r#"
        duration = "6 s"
        [media.lan]
        rate = "10 Mbit/s"
        delay = "1 us"
        [links]
        office = { medium = "lan", between = ["server", "client-*"], count = 3 }
        [[flow]]
        from = "client-1"
        to = "server"
        tcp = "reno"
        [[flow]]
        from = "client-2"
        to = "client-3"
        tcp = "reno"
    "#;
    let Some(Ran { summary, .. }) = run_scenario(parsed(text)) else { return };
    let carried: u64 = summary.links.iter().map(|link| link.delivered_bytes).sum();
    let most = 6 * 10_000_000 / 8;
    assert!(carried < most, "{carried} of {most} bytes");
    for flow in &summary.flows {
        assert!(flow.bytes_delivered > 0, "{}", summary_json(&summary));
    }
    assert!(delivered(&summary, "lan-client-2-client-3.down") > FEW, "not by way of the server");
}

/// Two cells of 802.11, and two mobile nodes that begin in the first.
const CELLS: &str = r#"
duration = "12 s"
[nodes]
core = "router"
agency = "home-agent"
west = "foreign-agent"
east = "foreign-agent"
server = "correspondent"
anna = "mobile"
bert = "mobile"
[media.cell-west]
kind = "802.11g"
rate = "12 Mbit/s"
[media.cell-east]
kind = "802.11b"
[links]
to-agency = { preset = "ethernet-1g", between = ["core", "agency"] }
to-server = { preset = "ethernet-1g", between = ["core", "server"] }
to-west = { preset = "ethernet-1g", between = ["core", "west"] }
to-east = { preset = "ethernet-1g", between = ["core", "east"] }
anna-west = { medium = "cell-west", between = ["west", "anna"] }
anna-east = { medium = "cell-east", between = ["east", "anna"] }
bert-west = { medium = "cell-west", between = ["west", "bert"] }
[mobility]
care_of = "foreign-agent"
[[handover]]
at = "4 s"
from = "anna-west"
to = "anna-east"
style = "break-before-make"
interruption = "300 ms"
queued = "drop"
[[handover]]
at = "8 s"
from = "anna-east"
to = "anna-west"
style = "break-before-make"
link_layer = { scan = "passive", beacon_interval = "20 ms" }
queued = "drop"
[[flow]]
name = "anna"
from = "server"
to = "anna"
tcp = "reno"
[[flow]]
name = "bert"
from = "bert"
to = "server"
tcp = "reno"
"#;

#[test]
fn mobile_nodes_share_a_cell_of_802_11_and_one_moves_to_another_and_back() {
    let later = |pace| {
        let times = [("duration", 12, "s"), ("at", 8, "s"), ("at", 4, "s"), ("interruption", 300, "ms")];
        slower(CELLS, pace, &times)
    };
    // Who is in the first cell depends on nobody's place but its own: the second mobile node stays.
    let is_as_planned = |ran @ Ran { summary, .. }: &Ran| {
        ran.resumes_after(2)
            && ["anna-west.down", "anna-east.down", "bert-west.up"]
                .iter()
                .all(|way| delivered(summary, way) > FEW)
    };
    let Some(Ran { summary, .. }) = paced(later, is_as_planned) else { return };
    // Eleven channels of a beacon interval each, and what comes after.
    assert!(summary.handovers[1].interruption >= std::time::Duration::from_millis(220));
    let [west, east] = [["anna-west", "bert-west"].as_slice(), &["anna-east"]].map(|links| {
        let ways = links.iter().flat_map(|link| ["down", "up"].map(|way| format!("{link}.{way}")));
        ways.map(|way| link(&summary, &way).delivered_bytes).sum::<u64>()
    });
    // No cell carries more than its rate, of which the exchanges take a part. The run may be longer than the scenario.
    let seconds = summary.duration.as_secs();
    assert!(
        west < seconds * 12_000_000 / 8 && east < seconds * 11_000_000 / 8,
        "{west} and {east} bytes in {seconds} s"
    );
    assert!(delivered(&summary, "bert-west.up") > delivered(&summary, "bert-west.down") / 2);
}

#[test]
fn a_request_to_send_and_damage_are_those_of_the_simulator_as_well() {
    let text = r#"
        duration = "5 s"
        [media.air]
        kind = "802.11b"
        rts_threshold = "500 B"
        loss = "20 %"
        [links]
        air = { medium = "air", between = ["a", "b"] }
        [[flow]]
        from = "a"
        to = "b"
        tcp = "reno"
    "#;
    let Some(Ran { summary, .. }) = run_scenario(parsed(text)) else { return };
    assert!(summary.flows[0].bytes_delivered > 0, "{}", summary_json(&summary));
    // RTS, CTS, SIFS and DIFS leave less than half of 11 Mbit/s to full frames, and damage a fifth less.
    let carried = link(&summary, "air.down").delivered_bytes;
    assert!(carried < 5 * 11_000_000 / 8 / 2, "{carried} bytes");
}
