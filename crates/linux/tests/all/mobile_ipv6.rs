//! Mobile IPv6 on real hosts: the kernel's TCP, its neighbor discovery and its addresses. Where this machine has no namespaces or no
//! TUN devices for this user the tests say so and pass.

use crate::common::{Ran, did, flow, paced, slower};
use careof_metrics::{Resumption, summary_json};
use careof_trace::Columns;

const WALK: &str = r#"
duration = "8 s"
[links]
first = { rate = "4 Mbit/s", delay = "10 ms" }
second = { rate = "2 Mbit/s", delay = "30 ms" }
[mobility]
protocol = "mobile-ipv6"
[[handover]]
at = "3 s"
from = "first"
to = "second"
style = "break-before-make"
interruption = "500 ms"
queued = "drop"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
tcp = { variant = "kernel", congestion = "reno" }
[[flow]]
name = "upload"
from = "mobile"
to = "correspondent"
tcp = { variant = "kernel", congestion = "reno" }
"#;

fn messages<'a>(events: &'a Columns, kind: &'a str, message: &'a str) -> impl Iterator<Item = usize> + 'a {
    let [kinds, messages] = ["kind", "message"].map(|name| events.by_name(name).unwrap());
    (0..events.rows())
        .filter(move |row| kinds.text(*row) == Some(kind) && messages.text(*row) == Some(message))
}

fn walked(more: &str) -> Option<Ran> {
    let text = WALK.replace("[[handover]]", &format!("{more}\n[[handover]]"));
    let times = [("duration", 8, "s"), ("at", 3, "s"), ("interruption", 500, "ms")];
    let later = |pace| slower(&text, pace, &times);
    let is_as_planned = |Ran { summary, .. }: &Ran| {
        let mut flows = summary.handovers.iter().flat_map(|handover| &handover.flows);
        !summary.handovers.is_empty() && flows.all(|flow| flow.stall == Resumption::Resumed)
    };
    paced(later, is_as_planned)
}

#[test]
fn connections_survive_a_handover_of_mobile_ipv6_and_every_byte_arrives_in_its_place() {
    let Some(Ran { summary, events, .. }) = walked("") else { return };
    let [handover] = &summary.handovers[..] else { panic!("{} handovers", summary.handovers.len()) };
    assert!(handover.ready_at.is_some(), "{}", summary_json(&summary));
    for flow in &handover.flows {
        assert!(flow.bytes_delivered > 0, "by the second link: {}", summary_json(&summary));
    }
    let mobility = summary.mobility.as_ref().unwrap();
    let (sent, accepted) = (mobility.registrations_sent, mobility.registrations_accepted);
    assert!((2..=sent).contains(&accepted), "{accepted} of {sent}");
    // The mobile node forms the addresses of the plan, and everybody understands what is said.
    for message in ["RouterAdvertisement", "BindingUpdate", "BindingAcknowledgement"] {
        assert!(messages(&events, "message-received", message).count() >= 2, "{message}");
    }
    let details = events.by_name("detail").unwrap();
    for care_of in ["2001:db8:0:1:0:ff:fe00:102", "2001:db8:0:2:0:ff:fe00:202"] {
        let is_bound = |row: &usize| details.text(*row).is_some_and(|text| text.contains(care_of));
        assert!((0..events.rows()).any(|row| is_bound(&row)), "{care_of}");
    }
    assert_eq!(messages(&events, "message-sent", "Malformed").count(), 0);
}

/// RFC 5555: the second link has only IPv4. With assists, so that they are seen to work through either tunnel.
#[test]
fn connections_of_ipv6_go_on_over_a_link_that_has_only_ipv4() {
    let text = format!(
        "assist = \"default\"\n{}",
        WALK.replace("delay = \"30 ms\"", "delay = \"30 ms\", ip_version = 4")
    );
    let times = [("duration", 8, "s"), ("at", 3, "s"), ("interruption", 500, "ms")];
    let later = |pace| slower(&text, pace, &times);
    let is_as_planned = |ran: &Ran| {
        let mut flows = ran.summary.handovers.iter().flat_map(|handover| &handover.flows);
        did(&ran.events, "home-agent", "replay") > 0
            && !ran.summary.handovers.is_empty()
            && flows.all(|flow| flow.stall == Resumption::Resumed)
    };
    let Some(Ran { summary, events, .. }) = paced(later, is_as_planned) else { return };
    let [handover] = &summary.handovers[..] else { panic!("{} handovers", summary.handovers.len()) };
    assert!(handover.ready_at.is_some(), "{}", summary_json(&summary));
    for flow in &handover.flows {
        assert!(flow.bytes_delivered > 0, "by the second link: {}", summary_json(&summary));
    }
    let details = events.by_name("detail").unwrap();
    for care_of in ["2001:db8:0:1:0:ff:fe00:102", "::ffff:10.0.2.2"] {
        let is_bound = |row: &usize| details.text(*row).is_some_and(|text| text.contains(care_of));
        assert!((0..events.rows()).any(|row| is_bound(&row)), "{care_of}");
    }
    for message in ["BindingUpdate", "BindingAcknowledgement"] {
        assert!(messages(&events, "message-received", message).count() >= 2, "{message}");
    }
    assert_eq!(messages(&events, "message-sent", "Malformed").count(), 0);
    assert!(flow(&summary, "download").packets_replayed > 0, "{}", summary_json(&summary));
}

#[test]
fn hosts_have_the_addresses_that_the_file_gives_them() {
    let nodes = "[nodes]\nhome-agent = { role = \"home-agent\", prefix = \"2001:db8:1::/64\", address = \"2001:db8:1::a:1\" }\n\
                 mobile = { role = \"mobile\", address = \"2001:db8:1::bee\" }\n\
                 correspondent = { role = \"correspondent\", address = \"2001:db8:2::5e:1\" }\n[links]\n\
                 ethernet = { preset = \"ethernet-100m\", prefix = \"2001:db8:2::/64\" }";
    let text = WALK.replace("[links]", nodes);
    let times = [("duration", 8, "s"), ("at", 3, "s"), ("interruption", 500, "ms")];
    let later = |pace| slower(&text, pace, &times);
    let is_as_planned = |Ran { summary, .. }: &Ran| {
        let mut flows = summary.handovers.iter().flat_map(|handover| &handover.flows);
        !summary.handovers.is_empty() && flows.all(|flow| flow.stall == Resumption::Resumed)
    };
    let Some(Ran { summary, events, .. }) = paced(later, is_as_planned) else { return };
    assert!(summary.handovers[0].ready_at.is_some(), "{}", summary_json(&summary));
    let details = events.by_name("detail").unwrap();
    let bound = "2001:db8:1::bee at 2001:db8:0:2:0:ff:fe00:202";
    assert!(
        (0..events.rows()).any(|row| details.text(row).is_some_and(|text| text.contains(bound))),
        "{bound}"
    );
}

#[test]
fn with_route_optimisation_packets_pass_the_home_agent_by() {
    let Some(Ran { summary, events, .. }) = walked("route_optimization = true") else { return };
    for message in ["HomeTestInit", "CareOfTestInit", "HomeTest", "CareOfTest"] {
        assert!(messages(&events, "message-received", message).count() >= 1, "{message}");
    }
    let nodes = events.by_name("node").unwrap();
    let of_correspondent = messages(&events, "message-received", "BindingUpdate")
        .filter(|row| nodes.text(*row) == Some("correspondent"))
        .count();
    assert!(of_correspondent >= 1, "{}", summary_json(&summary));
}

/// The first link is the home link: the home agent takes the mobile node's packets from there when it has left, and no longer when it is back.
#[test]
fn a_mobile_node_leaves_its_home_link_and_comes_back() {
    let back = "[[handover]]\nat = \"6 s\"\nfrom = \"second\"\nto = \"first\"\nstyle = \"break-before-make\"\n\
                interruption = \"500 ms\"\nqueued = \"drop\"\n[[flow]]";
    let text = WALK.replacen("[[flow]]", back, 1).replace("\"8 s\"", "\"10 s\"");
    let text = text.replacen("[[handover]]", "home = \"first\"\n[[handover]]", 1);
    let times = [("duration", 10, "s"), ("at", 6, "s"), ("at", 3, "s"), ("interruption", 500, "ms")];
    let text = |pace| slower(&text, pace, &times);
    let is_as_planned = |ran: &Ran| ran.resumes_after(2);
    let Some(Ran { summary, events, .. }) = paced(text, is_as_planned) else { return };
    for flow in summary.handovers.iter().flat_map(|handover| &handover.flows) {
        assert!(flow.bytes_delivered > 0, "{}", summary_json(&summary));
    }
    let details = events.by_name("detail").unwrap();
    let is_about =
        |text: &str| (0..events.rows()).any(|row| details.text(row).is_some_and(|told| told.contains(text)));
    assert!(is_about("2001:db8:0:2:0:ff:fe00:202"), "away it has an address of the second link");
    assert!(!is_about("2001:db8:0:1:0:ff:fe00:102"), "at home it forms none");
}

/// Out of one link for so long that senders back off, with assists; `more` is in `[mobility]`, so many times as slow.
fn after_an_outage(pace: u64, assist: &str, more: &str) -> String {
    let text = WALK.replace("[[handover]]", &format!("{more}\n[[handover]]")).replace("500 ms", "2000 ms");
    let times = [("duration", 8, "s"), ("at", 3, "s"), ("interruption", 2000, "ms")];
    format!("assist = {assist}\n{}", slower(&text, pace, &times))
}

#[test]
fn what_an_outage_has_cost_is_sent_again_over_mobile_ipv6() {
    let text = |pace| after_an_outage(pace, "\"default\"", "");
    let is_as_planned = |ran: &Ran| {
        let mut flows = ran.summary.handovers.iter().flat_map(|handover| &handover.flows);
        did(&ran.events, "home-agent", "replay") > 0
            && did(&ran.events, "mobile", "replay") > 0
            && flows.all(|flow| flow.stall == Resumption::Resumed)
    };
    let Some(Ran { summary, .. }) = paced(text, is_as_planned) else { return };
    for name in ["download", "upload"] {
        assert!(flow(&summary, name).packets_replayed > 0, "{}", summary_json(&summary));
    }
}

#[test]
fn a_mobile_node_sends_again_by_the_straight_way_what_an_outage_has_cost_an_upload() {
    let assist = "{ use = \"replay\", replay = { at = \"mobile\" } }";
    let text = |pace| after_an_outage(pace, assist, "route_optimization = true");
    let is_as_planned = |ran: &Ran| did(&ran.events, "mobile", "replay") > 0;
    let Some(Ran { summary, events, .. }) = paced(text, is_as_planned) else { return };
    assert_eq!(did(&events, "home-agent", "replay"), 0);
    assert!(flow(&summary, "upload").packets_replayed > 0, "{}", summary_json(&summary));
}
