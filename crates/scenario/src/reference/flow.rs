//! `[[flow]]`.

use careof_document::section::{Section, key};

pub(crate) static FLOW: Section = Section {
    heading: "`[[flow]]`",
    noun: "a flow",
    intro: "One table for each connection, of TCP, Multipath TCP or QUIC, and what it carries, or for packets of voice over UDP. A table whose `from` or `to` is a pattern stands for one \
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
            "Opens the connection; sends (bulk, paced, on-off, voice) or asks (request-response, video).",
        ),
        key("to", "node name", "required", "The other end."),
        key(
            "kind",
            "word",
            "`\"bulk\"`; `\"command\"` with `command`",
            "`\"bulk\"`, `\"request-response\"`, `\"paced\"`, `\"on-off\"`, `\"voice\"` or `\"video\"`; on Linux hosts also `\"command\"` (programs) and `\"probe\"` \
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
        key(
            "request",
            "size",
            "required for request-response; video: `\"400 B\"`",
            "request-response, video: of each request.",
        ),
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
        key("segment", "duration", "`\"4 s\"`", "video: length of a segment of the film."),
        key(
            "rates",
            "list of rates",
            "235 kbit/s to 5.8 Mbit/s",
            "video: at which each segment is there, from the lowest on, 16 at most. The default are the ten of Netflix's ladder before it \
encoded by title: 235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800 kbit/s. The first segment is the lowest.",
        ),
        key(
            "buffer",
            "duration",
            "`\"30 s\"`",
            "video: how much the player fetches ahead at most; at least `startup` and a segment.",
        ),
        key(
            "startup",
            "duration",
            "a segment",
            "video: how much has to be there before it is played, in the beginning and each time the buffer ran empty.",
        ),
        key(
            "adaptation",
            "word",
            "`\"throughput\"`",
            "video: how the player chooses rates. `\"throughput\"`: the highest rate that is at most 0.9 times the mean rate at which the last four \
segments came, as dash.js does by default. `\"buffer\"`: by how full the buffer is, BBA-0 of Huang et al. (SIGCOMM 2014): the lowest up to 3/8, the highest from \
9/10 on, and between them the line that joins both, followed where it passes the next rate.",
        ),
        key("length", "duration", "without end", "video: of the film, in whole segments."),
        key(
            "codec",
            "word",
            "`\"g711\"`, without `payload` and `interval`",
            "voice: `\"g711\"` (160 B each 20 ms), `\"g729\"` (20 B each 20 ms) or `\"opus\"` (80 B each 20 ms), behind an RTP header of 12 B. \
A call has two flows, one each way.",
        ),
        key(
            "payload",
            "size",
            "the codec's",
            "voice: bytes of a packet behind its RTP header, in the place of `codec`: a constant bit rate of your own.",
        ),
        key("interval", "duration", "the codec's", "voice: from packet to packet; with `payload`."),
        key(
            "jitter_buffer",
            "duration",
            "`\"60 ms\"`",
            "voice: how long the receiver keeps the first packet. The others are played at the sender's intervals from then on; one that comes \
after its time is not heard.",
        ),
        key(
            "ie",
            "number",
            "the codec's",
            "voice: equipment impairment factor *Ie* of the E-model (ITU-T G.113): 0 of G.711, 11 of G.729. There is none for Opus.",
        ),
        key(
            "bpl",
            "number",
            "the codec's",
            "voice: packet-loss robustness factor *Bpl*: 25.1 of G.711, 19 of G.729.",
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
