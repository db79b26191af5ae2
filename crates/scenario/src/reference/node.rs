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
`[[handover]]` moves it; each mobile node moves in its own time. What `[mobility]` says holds for all of them.",
    keys: &[
        key(
            "role",
            "word",
            "required",
            "`\"correspondent\"`, `\"home-agent\"`, `\"foreign-agent\"`, `\"mobile\"`; `\"router\"`, `\"access-router\"` or `\"host\"`, which are one: such \
a node forwards packets and ends flows.",
        ),
        key(
            "home_agent",
            "node",
            "the only one",
            "Of a mobile node: its home agent. The home addresses of a home agent's mobile nodes are one network, which has no link.",
        ),
        key(
            "prefix",
            "prefix",
            "planned",
            "Of a home agent: its home network, as `prefix` of a link; its mobile nodes have the addresses from 2 on there unless their `address` says otherwise. With `home` of `[mobility]` it is that \
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
