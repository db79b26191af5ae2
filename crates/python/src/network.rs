//! The network of a scenario as JSON.

use careof_plan::{Direction, LinkOverview, Network, Overview};
use careof_scenario::Scenario;
use serde_json::{Value, json};

/// Rates in bit/s, delays in ns, addresses as text.
pub(crate) fn json(overview: &Overview<'_>) -> Value {
    let nodes = overview.nodes.iter().map(|(name, role)| json!({ "name": name, "role": role.name() }));
    let homes = overview.home_networks.iter().map(|home| {
        json!({
            "network": network(&home.network), "home_agent": home.home_agent, "address": home.address.to_string(),
            "link": home.link,
        })
    });
    let anchor_points = overview.anchor_points.iter().map(|one| {
        json!({
            "node": one.node, "address": one.address.to_string(), "network": network(&one.network),
            "domain": one.domain, "preference": one.preference,
        })
    });
    let mobiles = overview.mobiles.iter().map(|mobile| {
        json!({
            "name": mobile.name, "home_address": mobile.home_address.to_string(), "home_agent": mobile.home_agent,
            "starts_on": mobile.starts_on,
        })
    });
    json!({
        "nodes": nodes.collect::<Vec<_>>(),
        "links": overview.links.iter().map(link).collect::<Vec<_>>(),
        "home_networks": homes.collect::<Vec<_>>(),
        "anchor_points": anchor_points.collect::<Vec<_>>(),
        "mobiles": mobiles.collect::<Vec<_>>(),
    })
}

/// When the handovers of a run are, whose instants are drawn, in the order of time: in ns.
pub(crate) fn drawn_handovers(scenario: &Scenario) -> Value {
    let mut handovers: Vec<_> = scenario.handovers.iter().collect();
    handovers.sort_by_key(|one| one.at);
    let name = |link| scenario.link(link).name.as_str();
    let drawn = handovers.into_iter().map(|one| {
        let at = u64::try_from(one.at.as_nanos()).unwrap_or(u64::MAX);
        let [interruption, notice] =
            [one.interruption, one.notice].map(|span| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        json!({
            "at_ns": at, "from": name(one.from), "to": name(one.to), "style": one.style.name(),
            "interruption_ns": interruption, "notice_ns": notice,
        })
    });
    drawn.collect()
}

fn link(link: &LinkOverview<'_>) -> Value {
    let [down, up] = link.directions.each_ref().map(direction);
    let copy = link.copy.map(|copy| json!({ "number": copy.number, "of": copy.of }));
    json!({
        "name": link.name,
        "between": link.ends.each_ref().map(|end| end.node),
        "addresses": link.ends.each_ref().map(|end| end.address.map(|address| address.to_string())),
        "network": link.network.as_ref().map(network),
        "down": down, "up": up, "access": link.is_access, "home": link.is_home,
        "care_of": link.care_of.map(|address| address.to_string()),
        "medium": link.medium, "copy": copy,
    })
}

fn direction(direction: &Direction<'_>) -> Value {
    json!({
        "rate_bps": direction.rate.map(|rate| rate.bits_per_second()),
        "delay_ns": u64::try_from(direction.delay.as_nanos()).unwrap_or(u64::MAX),
        "trace": direction.trace,
    })
}

fn network(network: &Network) -> String {
    format!("{}/{}", network.address, network.prefix_len)
}
