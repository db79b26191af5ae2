//! The network of a scenario as JSON.

use careof_plan::{Direction, LinkOverview, Network, Overview};
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
