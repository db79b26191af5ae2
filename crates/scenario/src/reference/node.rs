//! The keys of `[nodes]`.

use careof_document::section::{Section, key};

pub(crate) static NODE: Section = Section {
    heading: "`[nodes]`",
    noun: "a node",
    intro: "What a node does. A file needs this table only where its names do not say it already: without it `correspondent`, \
`home-agent`, `mobile` and `foreign-agent-NAME` are what they are called, and every other node forwards packets and ends flows.\n\n\
Each key is the name of a node (letters, digits, `-`, `_`). Its value is a role, or a table:\n\n\
```\n\
[nodes]\n\
core = \"router\"\n\
ha-sea = \"home-agent\"\n\
ha-land = \"home-agent\"\n\
server = \"correspondent\"\n\
vessel = { role = \"mobile\", home_agent = \"ha-sea\", start = \"lte\" }\n\
```\n\n\
There can be several of each role. A table that gives a home agent, a mobile node or a correspondent takes the place of the one \
that is understood without it. Every node stands at the end of a link; with several mobile nodes or home agents every link names \
its two by `between`, and none is understood. The links whose second node is a mobile node are its access links, on which \
`[[handover]]` moves it; each mobile node moves in its own time. What `[mobility]` says holds for all of them.\n\n\
A node with `role = \"map\"` is a mobility anchor point of Hierarchical Mobile IPv6 (RFC 5380), and forwards packets as a router does. \
Where there is one, mobile nodes with `protocol = \"mobile-ipv6\"` register a regional care-of address with their home agent, which is an \
address of the mobility anchor point, and there the address of the link that they visit. A move between access routers of one `domain` is \
then told to the mobility anchor point alone. The routers advertise it with its distance in hops. Assists of the home agent run at mobility \
anchor points, too.\n\n\
```\n\
[nodes]\n\
map-west = { role = \"map\", domain = [\"router-a\", \"router-b\"], preference = 10 }\n\
```\n\n\
Mobile nodes do not report paths then, and `path_monitor`, `order`, networks of IPv4 and `nodes` of `[mobility]` are refused.\n\n\
A node with `role = \"relay\"` lends the mobile node its link, with `[multipath]` (Koyama et al. 2004, sections 2.1 to 2.3). It is the second end of \
one link, which it lends, and the first end of another one, whose second end is the mobile node: the cluster. It advertises its link there every \
two seconds. The mobile node asks it for an alliance, registers the relay's care-of address with its home agent, and has one path more. The \
relay passes the mobile node's packets on and nobody else's.\n\n\
```\n\
[nodes]\n\
neighbour = { role = \"relay\", client_rate = \"2 Mbit/s\" }\n\n\
[links]\n\
own = \"lte\"\n\
lent = { preset = \"lte\", between = [\"home-agent\", \"neighbour\"] }\n\
cluster = { preset = \"ethernet-100m\", between = [\"neighbour\", \"mobile\"] }\n\
```",
    keys: &[
        key(
            "role",
            "word",
            "required",
            "`\"correspondent\"`, `\"home-agent\"`, `\"foreign-agent\"`, `\"mobile\"`, `\"map\"`, `\"relay\"`; `\"router\"`, `\"access-router\"` or `\"host\"`, which are one: such \
a node forwards packets and ends flows.",
        ),
        key(
            "home_agent",
            "node",
            "the only one",
            "Of a mobile node: its home agent. The home addresses of a home agent's mobile nodes are one network, which has no link.",
        ),
        key(
            "domain",
            "array of access routers",
            "those behind it",
            "Of a mobility anchor point: the access routers that advertise it (RFC 5380), by their names. Without it they are those that have no \
other way to a home agent than through this node: what mobile nodes there exchange passes it anyhow.",
        ),
        key(
            "preference",
            "whole number",
            "`10`",
            "Of a mobility anchor point: the preference that is advertised, 0 to 15. With 0 nobody registers there anew.",
        ),
        key(
            "prefix",
            "prefix",
            "planned",
            "Of a mobility anchor point: the network of its address and of the regional care-of addresses, as `prefix` of a link. Of a home agent: its home network, as `prefix` of a link; its mobile nodes have the addresses from 2 on there unless their `address` says otherwise. With `home` of `[mobility]` it is that \
link's.",
        ),
        key(
            "address",
            "address or array of addresses",
            "planned",
            "The node's address in a network whose `prefix` the file gives: on a link that it is an end of, or of a home agent or its mobile node on the \
home network (that is the home address). Several are of several networks. Over IPv4 hosts are 1 to 253 of a network. A mobile node forms its addresses on the \
links that it visits over IPv6 itself, and is lent them over IPv4 unless `care_of` is `\"co-located\"`.",
        ),
        key(
            "cost",
            "whole number",
            "`0`",
            "Of a relay: what it says that its link costs; see `cost` of `paths` of `[multipath]`.",
        ),
        key(
            "claims",
            "rate",
            "the truth",
            "Of a relay: what it says that its link carries in either direction. The truth is what `known_rate` of the link says.",
        ),
        key(
            "client_rate",
            "rate",
            "no limit",
            "Of a relay: what the mobile node may have in either direction.",
        ),
        key(
            "client_bytes",
            "size",
            "no limit",
            "Of a relay: bytes that the mobile node may have, in one alliance or several, both directions together; then the alliance ends, and the next one is granted a minute later at the soonest.",
        ),
        key(
            "longest",
            "duration",
            "`\"60 s\"`",
            "Of a relay: the longest that it grants at once, whole seconds.",
        ),
        key(
            "drops",
            "probability",
            "`0`",
            "Of a relay: how many of the packets that it is to pass on it drops instead. Its messages are as honest as ever.",
        ),
        key(
            "vanishes",
            "duration",
            "never",
            "Of a relay: when it vanishes. Nothing passes it from then on, and nothing comes from it.",
        ),
        key("returns", "duration", "never", "Of a relay: when it is back."),
        key(
            "start",
            "link",
            "its first handover's `from`, else its first",
            "Of a mobile node: the access link in use when the run begins.",
        ),
    ],
    elsewhere: &[(
        "home",
        "a mobile node that is at home on a link is the only one: write home = \"LINK\" in [mobility]",
    )],
};
