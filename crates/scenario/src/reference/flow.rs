//! `[[flow]]`.

use careof_document::section::{Section, key};

pub(crate) static FLOW: Section = Section {
    heading: "`[[flow]]`",
    noun: "a flow",
    intro: "One table for each connection, of TCP, Multipath TCP or QUIC, and what it carries. A table whose `from` or `to` is a pattern stands for one \
connection for each node of it, called `NAME-1`, `NAME-2`, …: `from = \"correspondent\", to = \"mobile-*\"`. Two patterns are \
joined node by node: `from = \"sender-*\", to = \"receiver-*\"`. With `count` it stands for as many connections between the same two nodes, \
each with a port of its own.",
    keys: &[
        key(
            "name",
            "text",
            "`\"flow-1\"`, `\"flow-2\"`, …",
            "Letters, digits, `-`, `_`; no two flows share one.",
        ),
        key(
            "from",
            "node name",
            "required",
            "Opens the connection; sends (bulk, paced, on-off) or asks (request-response).",
        ),
        key("to", "node name", "required", "The other end."),
        key(
            "kind",
            "word",
            "`\"bulk\"`; `\"command\"` with `command`",
            "`\"bulk\"`, `\"request-response\"`, `\"paced\"` or `\"on-off\"`; on Linux hosts also `\"command\"` (programs) and `\"probe\"` \
(measures the delay and the rate of a link that joins the two nodes).",
        ),
        key(
            "command",
            "text or array of words",
            "none",
            "On Linux hosts: the program to run at `from`, with its arguments: `\"iperf3 -c {correspondent}\"`. `{node}` \
stands for a node's address. It runs with the rights of whoever runs the scenario, and sees all of that user's files: `careof check` \
lists the programs of a scenario.",
        ),
        key(
            "server",
            "text or array of words",
            "none",
            "On Linux hosts: the program that runs at `to` meanwhile: `\"iperf3 -s\"`.",
        ),
        key("link", "link name", "the first that joins the two nodes", "probe: the link to measure."),
        key("size", "size", "without end", "bulk, paced, on-off: bytes to send in all."),
        key("start", "duration", "`\"0 s\"`", "When the connection is opened."),
        key("stop", "duration", "the end of the run", "When the application stops writing and closes."),
        key("request", "size", "required for request-response", "Of each request."),
        key("response", "size", "required for request-response", "Of each response."),
        key(
            "think",
            "duration",
            "`\"0 s\"`",
            "request-response: from a response's last byte to the next request.",
        ),
        key(
            "requests",
            "whole number or `\"endless\"`",
            "without end",
            "request-response: requests in all. With `count` it has to be given.",
        ),
        key(
            "count",
            "whole number",
            "one connection",
            "Makes connections `NAME-1`, `NAME-2`, …, all alike; not of programs and probes.",
        ),
        key(
            "rate",
            "rate",
            "required for paced, and for on-off with `on`",
            "Of the application's bytes, in a burst where there are such.",
        ),
        key("message", "size", "required for paced, and for on-off with `on`", "Bytes written at a time."),
        key(
            "burst",
            "size",
            "required for on-off, or `on`",
            "on-off: bytes of a burst in the mean, written at once. The pause begins when they have arrived.",
        ),
        key(
            "on",
            "duration",
            "required for on-off, or `burst`",
            "on-off: how long a burst lasts in the mean, in which messages are written at `rate`. The pause begins when it is over, \
whatever has arrived.",
        ),
        key("pause", "duration", "required for on-off", "on-off: between two bursts, in the mean."),
        key(
            "burst_law",
            "word",
            "`\"fixed\"`",
            "on-off: how bursts are spread around their mean: `\"fixed\"`, `\"exponential\"` or `\"pareto\"`. What is drawn follows from \
the seed, alike in both worlds.",
        ),
        key("pause_law", "word", "`\"fixed\"`", "on-off: the same of pauses."),
        key(
            "shape",
            "number above 1",
            "`1.5`",
            "on-off: tail index of the laws that are `\"pareto\"`; below 2 their variance is infinite. The default is that of ns-2.",
        ),
        key(
            "tcp",
            "profile or table",
            "`\"linux\"`; of programs `\"modern\"`",
            "TCP of both ends; see `tcp`.",
        ),
        key("quic", "word or table", "none", "In the place of TCP: QUIC of both ends; see `quic`."),
        key(
            "mptcp",
            "true, false or table",
            "`false`",
            "On Linux hosts: TCP over several paths, as `tcp` says; see `mptcp`.",
        ),
    ],
    elsewhere: &[
        ("source", "write `from`"),
        ("destination", "write `to`"),
        ("sender", "write `from`"),
        ("receiver", "write `to`"),
        ("type", "write `kind`"),
        ("workload", "write `kind`"),
        ("bytes", "write `size`"),
        ("parallel", "write `count`"),
        ("connections", "write `count`"),
        ("end", "write `stop`"),
        ("window", "write it in the table of `tcp`: `tcp = { window = \"16 KiB\" }`"),
    ],
};
