//! The schema as data: what columns there are, what each kind of event fills, and the words for it.

use std::fmt::Write as _;

use crate::event::EventKind;

/// How a column is stored, in Arrow's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Signed 64 bit.
    Int64,
    /// Unsigned 64 bit.
    UInt64,
    /// Unsigned 32 bit.
    UInt32,
    /// One bit a value.
    Boolean,
    /// Indices (signed 32 bit) into a list of UTF-8 strings.
    Dictionary,
}

impl ColumnType {
    /// The name Arrow has for it.
    #[must_use]
    pub const fn arrow_name(self) -> &'static str {
        match self {
            Self::Int64 => "int64",
            Self::UInt64 => "uint64",
            Self::UInt32 => "uint32",
            Self::Boolean => "bool",
            Self::Dictionary => "dictionary<int32, string>",
        }
    }
}

macro_rules! columns {
    ($($variant:ident $name:literal $kind:ident $nullable:literal $unit:literal $doc:literal)*) => {
        /// A column of the trace.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ColumnName {
            $(#[doc = $doc] $variant,)*
        }

        /// Every column, in order; [`ColumnName`] is the index.
        pub const COLUMNS: &[ColumnSpec] = &[$(
            ColumnSpec {
                column: ColumnName::$variant,
                name: $name,
                column_type: ColumnType::$kind,
                nullable: $nullable,
                unit: $unit,
                doc: $doc,
            },
        )*];
    };
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Which column.
    pub column: ColumnName,
    /// Its name, with the unit in it.
    pub name: &'static str,
    /// How it is stored.
    pub column_type: ColumnType,
    /// Whether a row may lack it.
    pub nullable: bool,
    /// The unit; empty for names and truth values.
    pub unit: &'static str,
    /// What it means.
    pub doc: &'static str,
}

columns! {
    TimeNs "time_ns" Int64 false "ns"
        "When it happened, since the run began."
    Kind "kind" Dictionary false ""
        "What kind of event it is; the kinds are listed below."
    Node "node" Dictionary true ""
        "The node it happened on."
    Link "link" Dictionary true ""
        "The one-way link it concerns: `gsm.down` towards the mobile node, `gsm.up` away from it."
    Flow "flow" Dictionary true ""
        "The flow it belongs to; signalling has none."
    Message "message" Dictionary true ""
        "Which signalling message, by the name its RFC gives it."
    Cause "cause" Dictionary true ""
        "Why: the reason of a drop, the change of a binding, the ARP decision, the phase of a handover, what an assist did."
    Packet "packet" UInt64 true ""
        "Number of the datagram, unique in the run. A tunnelled datagram keeps its number, a fragment has one of its \
         own. The capture carries the same number as `epb_packetid`."
    SizeBytes "size_bytes" UInt32 true "byte"
        "Size of the IP datagram with its headers, without link framing."
    Seq "seq" Int64 true "byte"
        "Sequence number relative to its sender's initial one, without wrap: the SYN is 0, the first byte of data is 1."
    Ack "ack" Int64 true "byte"
        "Acknowledgement number relative to the peer's initial sequence number, without wrap; absent without the ACK bit."
    LenBytes "len_bytes" UInt32 true "byte"
        "Data in the segment."
    WindowBytes "window_bytes" UInt32 true "byte"
        "Advertised receive window, scaling applied."
    Flags "flags" Dictionary true ""
        "TCP control bits as tcpdump writes them: `S` SYN, `F` FIN, `R` RST, `P` PSH, `U` URG, `E` ECE, `W` CWR, `.` ACK."
    Retransmission "retransmission" Boolean true ""
        "Whether the sender had sent any byte of the segment before."
    CwndBytes "cwnd_bytes" UInt32 true "byte"
        "Congestion window."
    SsthreshBytes "ssthresh_bytes" UInt32 true "byte"
        "Slow start threshold; absent while it is infinite."
    FlightBytes "flight_bytes" UInt32 true "byte"
        "Data sent and not yet acknowledged."
    SrttNs "srtt_ns" Int64 true "ns"
        "Smoothed round-trip time; absent before the first sample."
    RttvarNs "rttvar_ns" Int64 true "ns"
        "Round-trip time variation; absent before the first sample."
    RtoNs "rto_ns" Int64 true "ns"
        "Retransmission timeout with its back-off."
    QueuePackets "queue_packets" UInt32 true ""
        "Packets in the link's queue after the event, without the one being serialised."
    QueueBytes "queue_bytes" UInt64 true "byte"
        "Bytes in the link's queue after the event, without the packet being serialised."
    DeliveredBytes "delivered_bytes" UInt64 true "byte"
        "Data the receiving application has got in order since the flow began."
    Assist "assist" Dictionary true ""
        "Which assist, by the name scenarios have for it."
    AssistPackets "assist_packets" UInt32 true ""
        "Packets that what the assist did is about."
    AssistBytes "assist_bytes" UInt64 true "byte"
        "Bytes of these packets, whole IP datagrams; of a relay (`split`) bytes of data."
    OfPacket "of_packet" UInt64 true ""
        "Number of the datagram that a packet was made of."
    Detail "detail" Dictionary true ""
        "The event in one line, for people."
}

/// What a kind of event means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindSpec {
    /// Which kind.
    pub kind: EventKind,
    /// What happened.
    pub doc: &'static str,
    /// Columns it fills besides `time_ns` and `kind`. One that is marked nullable may still be absent in a row,
    /// for the reason its own text gives.
    pub columns: &'static [ColumnName],
}

use ColumnName as C;

const SEGMENT: &[ColumnName] = &[
    C::Node,
    C::Flow,
    C::Packet,
    C::SizeBytes,
    C::Seq,
    C::Ack,
    C::LenBytes,
    C::WindowBytes,
    C::Flags,
    C::Retransmission,
];
const AT_LINK: &[ColumnName] = &[C::Link, C::Flow, C::Packet, C::SizeBytes, C::QueuePackets, C::QueueBytes];
const MESSAGE: &[ColumnName] = &[C::Node, C::Link, C::Message, C::Packet, C::SizeBytes, C::Detail];

/// Every kind of event, in the order of [`EventKind::ALL`].
pub const KINDS: &[KindSpec] = &[
    KindSpec {
        kind: EventKind::SegmentSent,
        doc: "A TCP endpoint handed a segment to IP. Nothing has been queued yet.",
        columns: SEGMENT,
    },
    KindSpec {
        kind: EventKind::SegmentReceived,
        doc: "A segment reached a TCP endpoint, whatever the endpoint then made of it.",
        columns: SEGMENT,
    },
    KindSpec {
        kind: EventKind::TcpState,
        doc: "What an endpoint's congestion control and RTO estimator hold, after it changed.",
        columns: &[
            C::Node,
            C::Flow,
            C::CwndBytes,
            C::SsthreshBytes,
            C::FlightBytes,
            C::SrttNs,
            C::RttvarNs,
            C::RtoNs,
        ],
    },
    KindSpec {
        kind: EventKind::Timeout,
        doc: "A retransmission timer ran out. `seq` is the first sequence number not acknowledged; the state is the \
              endpoint's after its reaction, so `rto_ns` is the next wait.",
        columns: &[
            C::Node,
            C::Flow,
            C::Seq,
            C::CwndBytes,
            C::SsthreshBytes,
            C::FlightBytes,
            C::SrttNs,
            C::RttvarNs,
            C::RtoNs,
        ],
    },
    KindSpec {
        kind: EventKind::DataDelivered,
        doc: "New data reached the receiving application in order.",
        columns: &[C::Node, C::Flow, C::DeliveredBytes],
    },
    KindSpec {
        kind: EventKind::PacketEnqueued,
        doc: "A one-way link took a packet into its queue, or straight into its serialiser.",
        columns: AT_LINK,
    },
    KindSpec {
        kind: EventKind::PacketDelivered,
        doc: "A packet came out of the far end of a one-way link.",
        columns: AT_LINK,
    },
    KindSpec {
        kind: EventKind::PacketDropped,
        doc: "A packet ended before its destination; `cause` says why. Dropped by a link it has `link` and the queue, \
              dropped by a node (no route, no binding, time to live) it has `node`.",
        columns: &[
            C::Node,
            C::Link,
            C::Flow,
            C::Cause,
            C::Packet,
            C::SizeBytes,
            C::QueuePackets,
            C::QueueBytes,
        ],
    },
    KindSpec {
        kind: EventKind::MessageSent,
        doc: "A node sent a signalling message: Mobile IP or ICMP.",
        columns: MESSAGE,
    },
    KindSpec {
        kind: EventKind::MessageReceived,
        doc: "A node received a signalling message, whatever it then made of it.",
        columns: MESSAGE,
    },
    KindSpec {
        kind: EventKind::Binding,
        doc: "A mobility binding (or visitor entry) changed on an agent. `cause` is `created`, `updated`, `removed` or \
              `expired`.",
        columns: &[C::Node, C::Cause, C::Detail],
    },
    KindSpec {
        kind: EventKind::Arp,
        doc: "A home agent or mobile node decided about ARP: answer for the mobile node, stop doing so, or announce it \
              with a gratuitous ARP; a mobile node that asks for its address probes it (`probe`), announces it \
              (`announcement`) or finds it in use (`conflict`); over IPv6 also that a neighbor does not answer (`unreachable`).",
        columns: &[C::Node, C::Link, C::Cause, C::Detail],
    },
    KindSpec {
        kind: EventKind::Handover,
        doc: "A phase of a handover of `node` to `link`. `cause` is `announced`, `initiated`, `link-down`, `link-up`, \
              `registered`, `terminated` or `failed`; with `path_monitor` also `path-silent` and `path-answers`, and with \
              `leave_bad_paths` the `detail` of `initiated` says what was wrong; with `care_of = \"dhcp\"` also `address-acquired` and `address-lost`. \
              In a domain of micro-mobility `announced`, `initiated`, `confirmed` (by the base station), `active` and `idle` are of mobile nodes, \
              `expected`, `arrived`, `moved` and `paged` of routers. With `[multipath]`, `path-out` and `path-back` are of the home agent and of the mobile node; with relays so is `path-proven`, when something was first answered through one, `relay-gained` and `relay-lost` are of the mobile node, `relay-allied` and `relay-ended` of the relay.",
        columns: &[C::Node, C::Link, C::Cause, C::Detail],
    },
    KindSpec {
        kind: EventKind::FlowStart,
        doc: "An application opened a flow.",
        columns: &[C::Node, C::Flow, C::Detail],
    },
    KindSpec {
        kind: EventKind::FlowEnd,
        doc: "A flow delivered all it had to carry, or was stopped.",
        columns: &[C::Node, C::Flow, C::Detail],
    },
    KindSpec {
        kind: EventKind::Assist,
        doc: "An assist on a node did something for a flow; `cause` says what: `replay`, `unreachable`, `close-window` and \
              the like; on the mobile node and base stations `tell` and `bad-state`; at a sender that is told, what it does: \
              `reset-rto`, `set-rto`, `rearm`, `away`, `back`, `moved`, with `tcp-cm` also `resume`, `replaced`, `measured` and, on Linux hosts, `restored`; of a relay `open`, `hold` (what it holds of a direction \
              now, in steps of an eighth of its buffer), `reset` (with what it held) and `close` (with what it passed on). \
              Segments, state and timeouts of its own connection to the mobile node are rows of its node.",
        columns: &[C::Node, C::Flow, C::Cause, C::Assist, C::AssistPackets, C::AssistBytes],
    },
    KindSpec {
        kind: EventKind::PacketDerived,
        doc: "A node made a packet of another one, which has a number of its own: `cause` is `fragment`, `copy` (a home \
              agent's for a further care-of address, or a router's in a domain of micro-mobility) or `replay` (an assist's, of what it had kept). Put together again, \
              fragments go on under the number of the one that came last. In the simulator only: of real hosts a copy keeps \
              its number, and whose a fragment is stays unknown.",
        columns: &[C::Node, C::Flow, C::Cause, C::Packet, C::SizeBytes, C::OfPacket],
    },
    KindSpec {
        kind: EventKind::HostRoute,
        doc: "The host route of a mobile node on a router of a domain of micro-mobility changed. `cause` is `created`, `updated`, \
              `removed` or `expired`; `detail` has the mobile node and the neighbors to which its packets go now.",
        columns: &[C::Node, C::Cause, C::Detail],
    },
];

/// The tables of `docs/trace.md`: columns, then kinds.
#[must_use]
pub fn schema_markdown() -> String {
    let mut text = String::from("| column | type | unit | meaning |\n|---|---|---|---|\n");
    for column in COLUMNS {
        let null = if column.nullable { "" } else { ", never absent" };
        let unit = if column.unit.is_empty() { "-" } else { column.unit };
        let kind = column.column_type.arrow_name();
        let _ = writeln!(text, "| `{}` | `{kind}`{null} | {unit} | {} |", column.name, column.doc);
    }
    text.push_str("\n| kind | what happened | columns besides `time_ns` and `kind` |\n|---|---|---|\n");
    for kind in KINDS {
        let columns: Vec<String> = kind.columns.iter().map(|column| format!("`{}`", column.name())).collect();
        let _ = writeln!(text, "| `{}` | {} | {} |", kind.kind, kind.doc, columns.join(", "));
    }
    text
}

impl ColumnName {
    /// What it holds.
    #[must_use]
    pub fn spec(self) -> &'static ColumnSpec {
        // The macro writes the enum and the list from the same lines, so the index is always there.
        &COLUMNS[self as usize]
    }

    /// Its name in the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spec().name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_described_once_and_in_order() {
        let described: Vec<EventKind> = KINDS.iter().map(|spec| spec.kind).collect();
        assert_eq!(described, EventKind::ALL);
    }

    #[test]
    fn names_are_unique_and_carry_their_unit() {
        for (index, column) in COLUMNS.iter().enumerate() {
            assert_eq!(column.column as usize, index);
            assert!(COLUMNS.iter().filter(|other| other.name == column.name).count() == 1);
            match column.unit {
                "ns" => assert!(column.name.ends_with("_ns")),
                "byte" => {
                    assert!(column.name.ends_with("_bytes") || ["seq", "ack"].contains(&column.name));
                }
                _ => assert!(column.unit.is_empty(), "{}", column.name),
            }
        }
    }

    #[test]
    fn every_column_is_filled_by_some_kind() {
        for column in &COLUMNS[2..] {
            assert!(KINDS.iter().any(|kind| kind.columns.contains(&column.column)), "{}", column.name);
        }
    }
}
