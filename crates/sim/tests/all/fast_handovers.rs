//! Fast handovers for Mobile IPv6 (RFC 5568): whole worlds.

use std::time::Duration;

use crate::common::finish;
use careof_metrics::Summary;
use careof_scenario::Scenario;
use careof_sim::{Observation, Simulation};
use careof_trace::Columns;

const FMIPV6: &str = include_str!("../../../../scenarios/ipv6/fmipv6.toml");

fn run(text: &str, overrides: &[&str]) -> (Summary, Columns) {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    let scenario = Scenario::parse("test.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    let observation = Observation { trace: true, ..Observation::default() };
    finish(Simulation::new(scenario, "test.toml", 0, observation).unwrap())
}

#[test]
fn explore() {
    let text = std::fs::read_to_string(std::env::var("SCN").unwrap()).unwrap();
    let sets = std::env::var("SETS").unwrap_or_default();
    for more in sets.split(" | ") {
        let more: Vec<&str> = more.split(" ; ").filter(|text| !text.is_empty()).collect();
        let (summary, events) = run(&text, &more);
        println!("{more:?}");
        for handover in &summary.handovers {
            println!("{} -> {} at {:?} ready {:?} address {:?}", handover.from, handover.to, handover.at, handover.ready_at, handover.address_at);
            for flow in &handover.flows {
                println!("  {flow:?}");
            }
        }
        println!("dropped {:?} links", summary.packets.dropped);
        println!("{:?}", summary.mobility);
        let [kinds, messages, details, nodes, causes] =
            ["kind", "message", "detail", "node", "cause"].map(|name| events.by_name(name).unwrap());
        let times = events.by_name("time_ns").or_else(|| events.by_name("time")).unwrap();
        for row in 0..events.rows() {
            let kind = kinds.text(row).unwrap_or_default();
            if ["message-sent", "message-received", "handover", "binding", "arp", "packet-dropped"].contains(&kind)
                && messages.text(row) != Some("RouterAdvertisement")
            {
                println!(
                    "{:?} {:?} {kind} {:?} {:?} {:?}",
                    times.number(row).map(|at| at as f64 / 1e9), nodes.text(row), messages.text(row), causes.text(row), details.text(row)
                );
            }
        }
    }
}
