//! The keys of `[assist]` and of the assists' parameters, beside what the daemon's configuration has of them.

use careof_assist_file::sections;
pub(crate) use careof_assist_file::sections::{FAST_RETRANSMIT, HOLD_LAST, LCD_KICK};
use careof_document::section::{Section, joined, key};

/// Parameters that the daemon's configuration has, too, and `at`: a scenario says where an assist runs.
macro_rules! placed {
    ($name:ident, $default:literal, $places:literal) => {
        pub(crate) static $name: Section = Section {
            keys: &joined::<_, { sections::$name.keys.len() + 1 }>(
                key("at", "array of words, or text", $default, $places),
                sections::$name.keys,
            ),
            elsewhere: &joined::<_, { sections::$name.elsewhere.len() + 1 }>(
                ("place", "write `at`"),
                sections::$name.elsewhere,
            ),
            ..sections::$name
        };
    };
}

pub(crate) static ASSIST: Section = Section {
    heading: "`[assist]`",
    noun: "the assist",
    intro: "What helps TCP across handovers; needs `[mobility]`. A run that asks for an assist that its world does not have ends \
with an error that names it.\n\n\
`use` names the assists, in any order: `use = [\"replay\", \"window-clamp\"]`. In text a `+` stands between them, which suits a \
sweep: `--vary assist=none,default,replay+lcd-kick`. Each assist with parameters has a table of its name here, whose \
keys are listed below: `replay = { age = \"10 s\" }`, or `--set assist.replay.age=\"10 s\"`.\n\n\
| assist | what it does | where |\n|---|---|---|\n\
| `replay` | Keeps copies of what is unacknowledged and, when a path is back, sends in order what the lost one owes. | home agent, mobile node |\n\
| `hold-last` | The same with the last packets of a flow. | home agent, mobile node |\n\
| `lcd-kick` | Takes back the sender's timer by ICMP host unreachable (RFC 6069). | home agent, mobile node |\n\
| `freeze` | Closes the window before an announced handover and opens it after it (Freeze-TCP). | mobile node |\n\
| `fast-retransmit` | Repeats the last acknowledgement on the new path (Caceres and Iftode). | mobile node |\n\
| `ack-hold` | Keeps back the last bytes' acknowledgement, to wake the sender with it on the new path. | mobile node |\n\
| `window-clamp` | Lowers the advertised window to what keeps the new path busy: what a replay has measured, or the path's bandwidth-delay product. | home agent, mobile node |\n\
| `path-queue` | Has the path's queue in the agent, short, and takes it along. | agents, mobile node |\n\
| `buffer-forward` | Buffers packets while there is no path and then sends them all. | agents |\n\
| `bicast` | Sends by the old path and the new one; of two copies the mobile node drops one. | home agent, mobile node |\n\
| `snoop` | Repeats lost packets from the base station and hides the loss (RFC 3135). | foreign agent |\n\
| `ebsn` | Has the sender start its timer anew by an ICMP message for each packet its link lost, and every 100 ms, for up to 5 s, while that is down \
and data is unacknowledged (RFC 2757). | foreign agent, over IPv6 access router; sender |\n\
| `split` | Makes two connections of one, joined at a relay (I-TCP). | home agent |\n\
| `m-tcp` | Keeps back the last byte's acknowledgement and closes the window with it (RFC 2757). Behind another foreign agent the sender's next \
probe opens it. | foreign agent |\n\
| `rto-reset` | The sender forgets the old path's round trip. | sender |\n\
| `tcp-cm` | The sender is told by the mobility protocol when a handover begins and ends (Le, Fu and Hogrefe 2008). | sender |\n\
| `mobile-tcp` | The same, told in a TCP option of the next three segments from the mobile node, the first at once. | sender |\n\
| `tcp-ho` | Two acknowledgements tell the rate of the new link; what is outstanding is sent again, and the next four round trips set the slow start threshold (Wu, Chan and Ananda 2007, by its abstract). | sender |\n\
| `demo-vegas` | A sender with Vegas measures its least round trip anew (Ho, Chan and Chen 2005, by its abstract). | sender |\n\
| `rto-fast-decrease` | The sender's RTO follows a round trip that has become shorter at once. | sender |\n\
| `mss-clamp` | Lowers the segment size in SYNs to what fits the tunnel. | home agent, mobile node |\n\
| `black-hole` | Finds a tunnel that swallows large packets where ICMP is filtered, and crosses it in fragments; the summary names every one that was met. | home agent |\n\n\
`ebsn`, `rto-reset`, `tcp-cm`, `mobile-tcp`, `tcp-ho`, `demo-vegas` and `rto-fast-decrease` need a sender whose TCP knows of them; all others work with any. On Linux hosts `tcp-cm` alone of these can be used, in part (see below). Of `replay`, `hold-last`, `path-queue`, \
`buffer-forward`, `bicast` and `snoop`, of `freeze`, `ack-hold` and `m-tcp`, of `snoop`, `split` and `m-tcp`, and of `rto-reset`, `tcp-cm`, `mobile-tcp`, `tcp-ho` and `demo-vegas` \
one can be used at a time. Nor does `split` go with `ebsn` or any of these: the sender that they advise sends to the relay. With `route_optimization` packets pass \
the home agent by, and `split` is refused; the others that advise a sender work there, too; over IPv6 a correspondent that sends straight \
is told by `tcp-cm` in the Binding Update to it, and by options when it has acknowledged that, which is also when `freeze` and `fast-retransmit` act.",
    keys: &[
        key(
            "use",
            "array of words, or text",
            "`\"none\"`",
            "The assists. `\"default\"` stands for `replay`, `lcd-kick` and `window-clamp`, which are safe with ends that know nothing of \
them, and `\"none\"` for none.",
        ),
        key("except", "array of tables", "none", "Flows that are left alone; see `[[assist.except]]`."),
        key("replay", "table", "see below", "Parameters of `replay`."),
        key("hold-last", "table", "see below", "Parameters of `hold-last`."),
        key("lcd-kick", "table", "see below", "Parameters of `lcd-kick`."),
        key("freeze", "table", "see below", "Parameters of `freeze`."),
        key("fast-retransmit", "table", "see below", "Parameters of `fast-retransmit`."),
        key("ack-hold", "table", "see below", "Parameters of `ack-hold`."),
        key("window-clamp", "table", "see below", "Parameters of `window-clamp`."),
        key("path-queue", "table", "see below", "Parameters of `path-queue`."),
        key("buffer-forward", "table", "see below", "Parameters of `buffer-forward`."),
        key("snoop", "table", "see below", "Parameters of `snoop`."),
        key("split", "table", "see below", "Parameters of `split`."),
        key("rto-reset", "table", "see below", "Parameters of `rto-reset`."),
        key("tcp-cm", "table", "see below", "Parameters of `tcp-cm`."),
        key("rto-fast-decrease", "table", "see below", "Parameters of `rto-fast-decrease`."),
        key("mss-clamp", "table", "see below", "Parameters of `mss-clamp`."),
        key("black-hole", "table", "see below", "Parameters of `black-hole`."),
    ],
    elsewhere: &[
        ("name", "write `use`"),
        ("names", "write `use`"),
        ("off", "write `except`"),
        ("exclude", "write `except`"),
        ("tcp_lcd", "write `lcd-kick`"),
        ("freeze_tcp", "write `freeze`"),
        ("re_route", "write `path-queue`"),
        ("rto_option", "write `rto-reset = { by = \"option\" }`"),
        ("bicast", "\"bicast\" has no parameters; name it in `use`"),
        ("ebsn", "\"ebsn\" has no parameters; name it in `use`"),
        ("i_tcp", "write `split`"),
        ("m_tcp", "\"m-tcp\" has no parameters; name it in `use`"),
        ("mobile_tcp", "\"mobile-tcp\" has no parameters; name it in `use`"),
    ],
};

pub(crate) static EXCEPT: Section = Section {
    keys: &[
        key(
            "prefix",
            "node name or prefix",
            "everybody",
            "The end that is not the mobile node, such as `\"correspondent\"` or `\"10.0.0.0/8\"`.",
        ),
        sections::EXCEPT.keys[1],
    ],
    ..sections::EXCEPT
};

placed!(
    REPLAY,
    "`[\"home-agent\", \"mobile\"]`",
    "Where it runs: `\"home-agent\"` and `\"foreign-agent\"` for downloads, `\"mobile\"` for uploads."
);
placed!(
    WINDOW_CLAMP,
    "`[\"home-agent\", \"mobile\"]`",
    "Where it runs: `\"home-agent\"` for downloads whose acknowledgements pass there, `\"mobile\"`."
);
placed!(
    MSS_CLAMP,
    "`[\"home-agent\", \"mobile\"]`",
    "Where it runs: `\"home-agent\"`, `\"foreign-agent\"`, `\"mobile\"`."
);
placed!(
    BLACK_HOLE,
    "`[\"home-agent\"]`",
    "Where it runs: `\"home-agent\"` for downloads, `\"foreign-agent\"` or `\"mobile\"` for uploads with a reverse tunnel."
);

pub(crate) static FREEZE: Section = Section {
    heading: "`[assist.freeze]`",
    noun: "a freeze",
    intro: "Needs a handover with `notice`. Every acknowledgement closes the window from the warning on; on the new path some open it.",
    keys: &[
        key(
            "warning",
            "duration",
            "the handover's `notice`",
            "How long before the announced end of the path the window closes; not before the handover is announced.",
        ),
        key("acks", "whole number", "`3`", "Acknowledgements that open the window."),
        key(
            "patience",
            "duration",
            "`\"200 ms\"`",
            "How long after the announced end the window opens if there was no handover.",
        ),
    ],
    elsewhere: &[(
        "notice",
        "write `notice` in a [[handover]], and `warning` here to freeze later than that",
    )],
};

pub(crate) static ACK_HOLD: Section = Section {
    heading: "`[assist.ack-hold]`",
    noun: "a hold of acknowledgements",
    intro: "The last bytes stay unacknowledged until a path is back: their acknowledgement is then new, and wakes the sender.",
    keys: &[
        key("bytes", "size or bytes", "`1`", "That stay unacknowledged."),
        key(
            "from",
            "word",
            "`\"notice\"`",
            "`\"notice\"` (from the announcement of a handover on; needs one with `notice`) or `\"always\"`.",
        ),
        key("longest", "duration", "`\"200 ms\"`", "Longest time for which an acknowledgement is kept back."),
    ],
    elsewhere: &[("patience", "write `longest`")],
};

pub(crate) static PATH_QUEUE: Section = Section {
    heading: "`[assist.path-queue]`",
    noun: "a path's queue",
    intro: "The agent sends a little slower than the path, so that packets queue in the agent and not in front of the radio.",
    keys: &[
        key("limit", "packets or size", "`\"50 packets\"`", "Room in it."),
        key(
            "discipline",
            "word",
            "`\"codel\"`",
            "`\"codel\"`, `\"red\"` or `\"drop-tail\"`, with the constants of `queue`.",
        ),
        key("margin", "probability", "`\"3 %\"`", "How far below the path's rate it sends, as a part of it."),
        key(
            "at_handover",
            "word",
            "`\"re-route\"`",
            "What becomes of the queue: `\"re-route\"` (takes the new path), `\"drop\"` or `\"drain-late\"` (leaves by the old one).",
        ),
    ],
    elsewhere: &[("queue", "write `limit`"), ("queued", "write `at_handover`")],
};

pub(crate) static BUFFER_FORWARD: Section = Section {
    heading: "`[assist.buffer-forward]`",
    noun: "a buffer",
    intro: "Packets for a mobile node without a path wait in the agent and are sent in one go when there is one.",
    keys: &[
        key("limit", "packets or whole number", "`\"64 packets\"`", "For a mobile node; more are dropped."),
        key(
            "begin",
            "word",
            "`\"notice\"`",
            "`\"notice\"` (when a handover is announced, or else the link goes down) or `\"link-down\"`.",
        ),
    ],
    elsewhere: &[("packets", "write `limit`"), ("from", "write `begin`")],
};

pub(crate) static SNOOP: Section = Section {
    heading: "`[assist.snoop]`",
    noun: "a snoop",
    intro: "The base station keeps what the mobile node has not acknowledged, repeats what is lost and hides the duplicate acknowledgements. \
The defaults are ns-2's.",
    keys: &[
        key("packets", "packets or whole number", "`100`", "Kept of a flow."),
        key(
            "least_timeout",
            "duration",
            "`\"100 ms\"`",
            "Least time after which an unacknowledged packet is sent again.",
        ),
    ],
    elsewhere: &[("timeout", "write `least_timeout`"), ("limit", "write `packets`")],
};

pub(crate) static SPLIT: Section = Section {
    heading: "`[assist.split]`",
    noun: "a split",
    intro: "A relay answers each end in the other's name and joins two connections: what it reads from one it writes to the other, and a FIN, a \
reset or a connection that is refused follows in its place. The sender never sees the wireless path, but an acknowledgement no longer says \
that the receiver has the data: what the relay holds is lost with it (RFC 3135, sections 2.4 and 4.1.3). At the home agent, where a relay stays when the \
mobile node moves, both directions must pass: `routing = \"reverse-tunnel\"`.\n\n\
In a summary the figures of the sender and its segments are those of its connection to the relay; delivered is what the receiver got.\n\n\
In the Linux world both connections are a kernel's own. The switches of its TCP are one host's, so `tcp` can differ from the flow's in what is a \
socket's, congestion control first. What is held lies in two sockets, which have half of `buffer` each, from 16 KiB to 2 GiB in all, the kernel's \
bookkeeping included. A flow whose ports are not known before, as a `command`, has to be left alone by `except`.",
    keys: &[
        key(
            "at",
            "word",
            "`\"home-agent\"`",
            "Where the relay is: `\"home-agent\"` or `\"foreign-agent\"`, which has to hand its connections on at a handover.",
        ),
        key(
            "buffer",
            "size",
            "`\"256 KiB\"`",
            "Held of a flow and direction, acknowledged to the one side and not yet by the other; a full relay closes the sender's window.",
        ),
        key(
            "tcp",
            "profile or table",
            "the flow's",
            "TCP of the relay towards the mobile node; see `tcp`. Towards the other end it has the flow's.",
        ),
    ],
    elsewhere: &[
        ("place", "write `at`"),
        ("limit", "write `buffer`"),
        ("bytes", "write `buffer`"),
        ("profile", "write it in `tcp`"),
        ("window", "write it in the table of `tcp`: `tcp = { window = \"16 KiB\" }`"),
    ],
};

pub(crate) static RTO_RESET: Section = Section {
    heading: "`[assist.rto-reset]`",
    noun: "a reset of the RTO",
    intro: "After a handover the sender's estimate of the round trip begins anew. A sender on the mobile node is told by its own host.",
    keys: &[
        key("slow_start", "true or false", "`false`", "Whether the congestion window begins anew, too."),
        key(
            "by",
            "word",
            "`\"signal\"`",
            "How the sender at the other end is told: `\"signal\"` (at once, as if both ends shared a host: the best there could be) or `\"option\"` (in a \
TCP option of the next three segments from the mobile node, the first at once: a timeout of three times the registration's round trip).",
        ),
    ],
    elsewhere: &[("told", "write `by`")],
};

pub(crate) static TCP_CM: Section = Section {
    heading: "`[assist.tcp-cm]`",
    noun: "a connection manager",
    intro: "As in \"A Cross-Layer Approach for Improving TCP Performance in Mobile Environments\". A sender on the mobile node is told by its own host: \
its timer stands still while there is no path, then goes on with what was left of it, and where the usable window is zero one segment more leaves. \
One at the other end is told that the handover has ended: it sends what is outstanding again at once, takes its round trip from the first \
acknowledgement of the new path alone, and sets congestion window and slow start threshold to the bandwidth times that. It is told by a bit \
in the Binding Update to it, where it knows another care-of address, and else by a datagram over the new path, which may be lost.\n\n\
On Linux hosts careof registers a congestion control of BPF programs with the kernel for the time of the run; this takes root. It sends by the kernel's CUBIC or Reno, \
and by the first acknowledgement of the new path it sets what a program may set:\n\n\
- at a correspondent congestion window and slow start threshold, to the bandwidth times the round trip of that acknowledgement;\n\
- on the mobile node, with `suspend`, both as they were when the path was lost, where timeouts have lowered them since.\n\n\
The kernel keeps the rest. Its timer runs while there is no path and stays backed off, and SRTT and RTO do not begin anew. It sends what is outstanding again when \
its timer or acknowledgements say that it is lost; with `resend` that is no sign of congestion, and from the first acknowledgement of the new path on the window stays open for it. A correspondent is told by the Binding Update alone, so that this needs Mobile IPv6 with `route_optimization`, and \
`estimator = \"link\"` and flows that are programs are errors there.",
    keys: &[
        key(
            "estimator",
            "word",
            "`\"westwood\"`",
            "From where the bandwidth is: `\"westwood\"` or `\"delivery-rate\"` (the sender's own estimate when the handover ends, which is the old path's; the summary \
says how far off that is), or `\"link\"`: senders at either end are told the rate of the mobile node's link and the round trip of its registration, \
to the home agent, and take both at once.",
        ),
        key("resend", "true or false", "`true`", "Whether what is outstanding is sent again at once."),
        key(
            "suspend",
            "true or false",
            "`true`",
            "Whether a sender on the mobile node stands still while there is no path.",
        ),
    ],
    elsewhere: &[("retransmit", "write `resend`"), ("bandwidth", "write `estimator`")],
};

pub(crate) static RTO_FAST_DECREASE: Section = Section {
    heading: "`[assist.rto-fast-decrease]`",
    noun: "a fast decrease",
    intro: "RFC 6298's estimator for every flow's sender, within the bounds of the one it had; but samples in a row far below the estimate, each of another \
round trip, make it begin anew with the largest of them.",
    keys: &[key("samples", "whole number", "`4`", "How many in a row.")],
    elsewhere: &[("count", "write `samples`")],
};

/// The parameters of the assist `name`, if it has any.
pub(crate) fn section_of(name: &str) -> Option<&'static Section> {
    Some(match name {
        "replay" => &REPLAY,
        "freeze" => &FREEZE,
        "ack-hold" => &ACK_HOLD,
        "window-clamp" => &WINDOW_CLAMP,
        "path-queue" => &PATH_QUEUE,
        "buffer-forward" => &BUFFER_FORWARD,
        "snoop" => &SNOOP,
        "split" => &SPLIT,
        "rto-reset" => &RTO_RESET,
        "tcp-cm" => &TCP_CM,
        "rto-fast-decrease" => &RTO_FAST_DECREASE,
        "mss-clamp" => &MSS_CLAMP,
        "black-hole" => &BLACK_HOLE,
        _ => return sections::section_of(name),
    })
}
