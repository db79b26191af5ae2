//! Several mobile nodes and home agents on real hosts. Where this machine has no namespaces or no TUN devices for this user the tests
//! say so and pass.

use crate::common::{Ran, paced, slower};
use careof_metrics::summary_json;

const TWO_HOME_AGENTS: &str = r#"
duration = "8 s"
[nodes]
core = "router"
north = { role = "home-agent", prefix = "HOME" }
south = "home-agent"
server = "correspondent"
mirror = "correspondent"
van = { role = "mobile", home_agent = "north" }
bus = { role = "mobile", home_agent = "south" }
[links]
to-north = { preset = "ethernet-1g", between = ["core", "north"] }
to-south = { preset = "ethernet-1g", between = ["core", "south"] }
to-server = { preset = "ethernet-1g", between = ["core", "server"] }
to-mirror = { preset = "ethernet-1g", between = ["core", "mirror"] }
van-a = { rate = "4 Mbit/s", delay = "10 ms", between = ["core", "van"] }
van-b = { rate = "2 Mbit/s", delay = "30 ms", prefix = "AWAY", between = ["core", "van"] }
bus-a = { rate = "4 Mbit/s", delay = "10 ms", between = ["core", "bus"] }
bus-b = { rate = "2 Mbit/s", delay = "30 ms", between = ["core", "bus"] }
[mobility]
protocol = "PROTOCOL"
MORE
[[handover]]
at = "3 s"
from = "van-a"
to = "van-b"
style = "break-before-make"
interruption = "500 ms"
queued = "drop"
[[handover]]
at = "3 s"
from = "bus-a"
to = "bus-b"
style = "break-before-make"
interruption = "500 ms"
queued = "drop"
[[flow]]
name = "download"
from = "server"
to = "van"
tcp = { variant = "kernel", congestion = "reno" }
[[flow]]
name = "upload"
from = "bus"
to = "mirror"
tcp = { variant = "kernel", congestion = "reno" }
[[flow]]
name = "call"
from = "van"
to = "bus"
kind = "paced"
rate = "64 kbit/s"
message = "160 B"
tcp = { variant = "kernel", congestion = "reno" }
"#;

#[test]
fn two_mobile_nodes_of_two_home_agents_move_at_once_and_every_byte_arrives_in_its_place() {
    for (protocol, more, home, away) in [
        ("mobile-ipv4", "routing = \"reverse-tunnel\"", "198.51.100.0/24", "192.168.7.0/24"),
        ("mobile-ipv6", "", "2001:db8:7::/64", "fd00:7::/64"),
    ] {
        let text = TWO_HOME_AGENTS.replace("PROTOCOL", protocol).replace("MORE", more);
        let text = text.replace("HOME", home).replace("AWAY", away);
        let times = [("duration", 8, "s"), ("at", 3, "s"), ("interruption", 500, "ms")];
        let later = |pace| slower(&text, pace, &times);
        let is_as_planned = |ran: &Ran| ran.resumes_after(2);
        let Some(Ran { summary, .. }) = paced(later, is_as_planned) else { return };
        let moved: Vec<(&str, Vec<&str>)> = summary
            .handovers
            .iter()
            .map(|handover| {
                let flows = handover.flows.iter().map(|flow| flow.name.as_str()).collect();
                (handover.node.as_deref().unwrap_or_default(), flows)
            })
            .collect();
        let planned = [("van", vec!["download", "call"]), ("bus", vec!["upload", "call"])];
        assert_eq!(moved, planned, "{protocol}: {}", summary_json(&summary));
        for flow in summary.handovers.iter().flat_map(|handover| &handover.flows) {
            assert!(flow.bytes_delivered > 0, "{protocol}: by the second link: {}", summary_json(&summary));
        }
        let mobility = summary.mobility.as_ref().unwrap();
        let (sent, accepted) = (mobility.registrations_sent, mobility.registrations_accepted);
        assert!((4..=sent).contains(&accepted), "{protocol}: {accepted} of {sent}");
    }
}
