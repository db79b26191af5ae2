//! One thing that happened: a small value that is copied into the log.

use core::fmt;

use careof_base::{Duration, Instant};

use crate::Detail;

/// Index of a node in [`Names::nodes`](crate::Names::nodes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

/// Index of a one-way link in [`Names::links`](crate::Names::links).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u16);

/// Index of a flow in [`Names::flows`](crate::Names::flows).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u16);

/// What kind of thing happened; [`KINDS`](crate::KINDS) says what each means and which columns it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// A TCP endpoint handed a segment to IP.
    SegmentSent,
    /// A segment reached a TCP endpoint.
    SegmentReceived,
    /// Congestion control or the RTO estimator of an endpoint changed.
    TcpState,
    /// A retransmission timer ran out.
    Timeout,
    /// Data reached the application in order.
    DataDelivered,
    /// A link took a packet into its queue.
    PacketEnqueued,
    /// A packet came out of the far end of a link.
    PacketDelivered,
    /// A packet ended before its destination.
    PacketDropped,
    /// A signalling message was sent.
    MessageSent,
    /// A signalling message was received.
    MessageReceived,
    /// A mobility binding changed.
    Binding,
    /// A proxy or gratuitous ARP decision.
    Arp,
    /// A phase of a handover.
    Handover,
    /// An application opened a flow.
    FlowStart,
    /// A flow carried everything it had to, or was stopped.
    FlowEnd,
    /// An assist acted on a flow.
    Assist,
    /// A node made a packet of another one.
    PacketDerived,
    /// A host route of micro-mobility changed.
    HostRoute,
}

impl EventKind {
    /// Every kind, in the order of the column's dictionary.
    pub const ALL: [Self; 18] = [
        Self::SegmentSent,
        Self::SegmentReceived,
        Self::TcpState,
        Self::Timeout,
        Self::DataDelivered,
        Self::PacketEnqueued,
        Self::PacketDelivered,
        Self::PacketDropped,
        Self::MessageSent,
        Self::MessageReceived,
        Self::Binding,
        Self::Arp,
        Self::Handover,
        Self::FlowStart,
        Self::FlowEnd,
        Self::Assist,
        Self::PacketDerived,
        Self::HostRoute,
    ];

    /// The name in the `kind` column.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SegmentSent => "segment-sent",
            Self::SegmentReceived => "segment-received",
            Self::TcpState => "tcp-state",
            Self::Timeout => "timeout",
            Self::DataDelivered => "data-delivered",
            Self::PacketEnqueued => "packet-enqueued",
            Self::PacketDelivered => "packet-delivered",
            Self::PacketDropped => "packet-dropped",
            Self::MessageSent => "message-sent",
            Self::MessageReceived => "message-received",
            Self::Binding => "binding",
            Self::Arp => "arp",
            Self::Handover => "handover",
            Self::FlowStart => "flow-start",
            Self::FlowEnd => "flow-end",
            Self::Assist => "assist",
            Self::PacketDerived => "packet-derived",
            Self::HostRoute => "host-route",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A TCP segment as an endpoint sent or received it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentRecord {
    /// The datagram that carries it, unique in the run.
    pub packet: u64,
    /// Bytes of the IP datagram.
    pub size_bytes: u32,
    /// First sequence number, relative to its sender's initial one: the SYN is 0, the first byte of data 1.
    pub seq: i64,
    /// Acknowledgement, relative to the peer's initial sequence number; of no meaning without the ACK bit.
    pub ack: i64,
    /// Bytes of data.
    pub len_bytes: u32,
    /// Advertised window in bytes, scaling applied.
    pub window_bytes: u32,
    /// Control bits in the order of the TCP header (RFC 9293 section 3.1): FIN = 1 ... CWR = 128.
    pub flags: u8,
    /// Whether the sender had sent any of it before.
    pub retransmission: bool,
}

/// What an endpoint's congestion control and RTO estimator hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpState {
    /// Congestion window in bytes.
    pub cwnd_bytes: u32,
    /// Slow start threshold in bytes; `None` while it is still "arbitrarily high" (RFC 5681 section 3.1).
    pub ssthresh_bytes: Option<u32>,
    /// Bytes sent and not acknowledged.
    pub flight_bytes: u32,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Round-trip time variation; `None` before the first sample.
    pub rttvar: Option<Duration>,
    /// Retransmission timeout, back-off included; `None` where the world cannot tell.
    pub rto: Option<Duration>,
}

/// A packet at a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketRecord {
    /// The datagram, unique in the run.
    pub packet: u64,
    /// Bytes of the IP datagram.
    pub size_bytes: u32,
    /// Packets waiting in the link's queue after the event, without the one being serialised.
    pub queue_packets: u32,
    /// Bytes waiting in the link's queue after the event.
    pub queue_bytes: u64,
}

/// A signalling message: Mobile IP, DHCP or ICMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// The RFC's name of it: `RegistrationRequest`, `DHCPOFFER`, `AgentAdvertisement`, `DestinationUnreachable`.
    pub message: &'static str,
    /// The datagram that carries it, if it travels in one of its own.
    pub packet: Option<u64>,
    /// Bytes of the IP datagram.
    pub size_bytes: u32,
    /// The message in one line.
    pub detail: Detail,
}

/// Something an assist did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssistRecord {
    /// Its name: `replay`.
    pub assist: &'static str,
    /// What it did, or what happened to it: `replay`, `close-window`, ...
    pub what: &'static str,
    /// Packets it concerned.
    pub packets: u32,
    /// Bytes of these, whole IP datagrams; of a relay that splits connections, the data that it holds or has passed on.
    pub bytes: u64,
}

/// The identifiers that no real one takes: the column stays empty.
pub(crate) const NO_ID: u16 = u16::MAX;
pub(crate) const NO_PACKET: u64 = u64::MAX;
pub(crate) const NO_SEQ: i64 = i64::MIN;
/// No measurement.
pub(crate) const NO_TIME: i64 = -1;
/// A slow start threshold that is still infinite.
pub(crate) const INFINITE: u32 = u32::MAX;

/// What an event holds besides time, place and kind. Flat, so that an event fits a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Segment(SegmentRecord),
    State { seq: i64, cwnd: u32, ssthresh: u32, flight: u32, srtt: i64, rttvar: i64, rto: i64 },
    Delivered { bytes: u64 },
    Packet(PacketRecord),
    Dropped { packet: PacketRecord, cause: &'static str },
    DroppedAtNode { packet: u64, size_bytes: u32, cause: &'static str },
    Message(MessageBody),
    Cause { cause: &'static str, detail: Detail },
    Flow { detail: Detail },
    Assist { assist: &'static str, what: &'static str, packets: u32, bytes: u64 },
    Derived { packet: u64, size_bytes: u32, of_packet: u64, cause: &'static str },
}

/// A [`MessageRecord`] with the missing packet as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageBody {
    pub(crate) message: &'static str,
    pub(crate) packet: u64,
    pub(crate) size_bytes: u32,
    pub(crate) detail: Detail,
}

/// One thing that happened at one instant: 64 bytes, made by the constructor of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub(crate) time: Instant,
    pub(crate) kind: EventKind,
    pub(crate) node: u16,
    pub(crate) link: u16,
    pub(crate) flow: u16,
    pub(crate) body: Body,
}

fn nanos(span: Option<Duration>) -> i64 {
    span.map_or(NO_TIME, |span| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX))
}

fn link_or_none(link: Option<LinkId>) -> u16 {
    link.map_or(NO_ID, |link| link.0)
}

fn flow_or_none(flow: Option<FlowId>) -> u16 {
    flow.map_or(NO_ID, |flow| flow.0)
}

impl Event {
    fn at_flow(time: Instant, kind: EventKind, node: NodeId, flow: FlowId, body: Body) -> Self {
        Self { time, kind, node: node.0, link: NO_ID, flow: flow.0, body }
    }

    fn at_link(time: Instant, kind: EventKind, link: LinkId, flow: Option<FlowId>, body: Body) -> Self {
        Self { time, kind, node: NO_ID, link: link.0, flow: flow_or_none(flow), body }
    }

    fn at_node(time: Instant, kind: EventKind, node: NodeId, link: Option<LinkId>, body: Body) -> Self {
        Self { time, kind, node: node.0, link: link_or_none(link), flow: NO_ID, body }
    }

    fn state(time: Instant, kind: EventKind, node: NodeId, flow: FlowId, seq: i64, state: TcpState) -> Self {
        let body = Body::State {
            seq,
            cwnd: state.cwnd_bytes,
            ssthresh: state.ssthresh_bytes.unwrap_or(INFINITE),
            flight: state.flight_bytes,
            srtt: nanos(state.srtt),
            rttvar: nanos(state.rttvar),
            rto: nanos(state.rto),
        };
        Self::at_flow(time, kind, node, flow, body)
    }

    /// The endpoint of `flow` on `node` handed a segment to IP.
    #[must_use]
    pub fn segment_sent(time: Instant, node: NodeId, flow: FlowId, segment: SegmentRecord) -> Self {
        Self::at_flow(time, EventKind::SegmentSent, node, flow, Body::Segment(segment))
    }

    /// A segment reached the endpoint of `flow` on `node`.
    #[must_use]
    pub fn segment_received(time: Instant, node: NodeId, flow: FlowId, segment: SegmentRecord) -> Self {
        Self::at_flow(time, EventKind::SegmentReceived, node, flow, Body::Segment(segment))
    }

    /// What the endpoint of `flow` on `node` holds after a change.
    #[must_use]
    pub fn tcp_state(time: Instant, node: NodeId, flow: FlowId, state: TcpState) -> Self {
        Self::state(time, EventKind::TcpState, node, flow, NO_SEQ, state)
    }

    /// The retransmission timer of the endpoint of `flow` on `node` ran out with `seq` the first sequence
    /// number not acknowledged; `state` is what the endpoint holds after reacting to it.
    #[must_use]
    pub fn timeout(time: Instant, node: NodeId, flow: FlowId, seq: i64, state: TcpState) -> Self {
        Self::state(time, EventKind::Timeout, node, flow, seq, state)
    }

    /// The application on `node` has received `delivered_bytes` of `flow` in order so far.
    #[must_use]
    pub fn data_delivered(time: Instant, node: NodeId, flow: FlowId, delivered_bytes: u64) -> Self {
        let body = Body::Delivered { bytes: delivered_bytes };
        Self::at_flow(time, EventKind::DataDelivered, node, flow, body)
    }

    /// `link` took a packet into its queue (or straight into its serialiser).
    #[must_use]
    pub fn packet_enqueued(time: Instant, link: LinkId, flow: Option<FlowId>, packet: PacketRecord) -> Self {
        Self::at_link(time, EventKind::PacketEnqueued, link, flow, Body::Packet(packet))
    }

    /// A packet came out of the far end of `link`.
    #[must_use]
    pub fn packet_delivered(time: Instant, link: LinkId, flow: Option<FlowId>, packet: PacketRecord) -> Self {
        Self::at_link(time, EventKind::PacketDelivered, link, flow, Body::Packet(packet))
    }

    /// `link` dropped a packet for the reason `cause`.
    #[must_use]
    pub fn packet_dropped(
        time: Instant,
        link: LinkId,
        flow: Option<FlowId>,
        packet: PacketRecord,
        cause: &'static str,
    ) -> Self {
        Self::at_link(time, EventKind::PacketDropped, link, flow, Body::Dropped { packet, cause })
    }

    /// `node` dropped a packet for the reason `cause`: no route, no binding, time to live.
    #[must_use]
    pub fn packet_dropped_at_node(
        time: Instant,
        node: NodeId,
        flow: Option<FlowId>,
        packet: u64,
        size_bytes: u32,
        cause: &'static str,
    ) -> Self {
        let body = Body::DroppedAtNode { packet, size_bytes, cause };
        let event = Self::at_node(time, EventKind::PacketDropped, node, None, body);
        Self { flow: flow_or_none(flow), ..event }
    }

    fn message(
        time: Instant,
        kind: EventKind,
        node: NodeId,
        link: Option<LinkId>,
        record: MessageRecord,
    ) -> Self {
        let MessageRecord { message, packet, size_bytes, detail } = record;
        let body =
            Body::Message(MessageBody { message, packet: packet.unwrap_or(NO_PACKET), size_bytes, detail });
        Self::at_node(time, kind, node, link, body)
    }

    /// `node` sent a signalling message, over `link` if one was chosen.
    #[must_use]
    pub fn message_sent(time: Instant, node: NodeId, link: Option<LinkId>, message: MessageRecord) -> Self {
        Self::message(time, EventKind::MessageSent, node, link, message)
    }

    /// `node` received a signalling message, from `link` if it is known.
    #[must_use]
    pub fn message_received(
        time: Instant,
        node: NodeId,
        link: Option<LinkId>,
        message: MessageRecord,
    ) -> Self {
        Self::message(time, EventKind::MessageReceived, node, link, message)
    }

    /// A binding of the agent on `node` was `created`, `updated`, `removed` or has `expired`.
    #[must_use]
    pub fn binding(time: Instant, node: NodeId, cause: &'static str, detail: Detail) -> Self {
        Self::at_node(time, EventKind::Binding, node, None, Body::Cause { cause, detail })
    }

    /// `node` decided about ARP on `link`: `proxy-on`, `proxy-off`, `gratuitous`, `probe`, and others.
    #[must_use]
    pub fn arp(
        time: Instant,
        node: NodeId,
        link: Option<LinkId>,
        cause: &'static str,
        detail: Detail,
    ) -> Self {
        Self::at_node(time, EventKind::Arp, node, link, Body::Cause { cause, detail })
    }

    /// A handover of `node` to `link` reached the phase `cause`: `initiated`, `link-down`, `link-up`, `address-acquired`,
    /// `registered`, `terminated`, and others.
    #[must_use]
    pub fn handover(
        time: Instant,
        node: NodeId,
        link: Option<LinkId>,
        cause: &'static str,
        detail: Detail,
    ) -> Self {
        Self::at_node(time, EventKind::Handover, node, link, Body::Cause { cause, detail })
    }

    /// The host route of a mobile node on the router `node` was `created`, `updated`, `removed` or `expired`.
    #[must_use]
    pub fn host_route(time: Instant, node: NodeId, cause: &'static str, detail: Detail) -> Self {
        Self::at_node(time, EventKind::HostRoute, node, None, Body::Cause { cause, detail })
    }

    /// The application on `node` opened `flow`.
    #[must_use]
    pub fn flow_start(time: Instant, node: NodeId, flow: FlowId, detail: Detail) -> Self {
        Self::at_flow(time, EventKind::FlowStart, node, flow, Body::Flow { detail })
    }

    /// `flow` delivered all it had to carry, or was stopped; told by the application on `node`.
    #[must_use]
    pub fn flow_end(time: Instant, node: NodeId, flow: FlowId, detail: Detail) -> Self {
        Self::at_flow(time, EventKind::FlowEnd, node, flow, Body::Flow { detail })
    }

    /// An assist on `node` did something for `flow`.
    #[must_use]
    pub fn assist(time: Instant, node: NodeId, flow: FlowId, record: AssistRecord) -> Self {
        let AssistRecord { assist, what, packets, bytes } = record;
        let body = Body::Assist { assist, what, packets, bytes };
        Self::at_flow(time, EventKind::Assist, node, flow, body)
    }

    /// `node` made a packet of `of_packet`: a `fragment` of it, a `copy`, or again what was kept of it (`replay`).
    #[must_use]
    pub fn packet_derived(
        time: Instant,
        node: NodeId,
        flow: Option<FlowId>,
        packet: u64,
        size_bytes: u32,
        of_packet: u64,
        cause: &'static str,
    ) -> Self {
        let body = Body::Derived { packet, size_bytes, of_packet, cause };
        let event = Self::at_node(time, EventKind::PacketDerived, node, None, body);
        Self { flow: flow_or_none(flow), ..event }
    }

    /// When it happened.
    #[must_use]
    pub const fn time(&self) -> Instant {
        self.time
    }

    /// What kind of thing happened.
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        self.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_fits_a_cache_line() {
        assert_eq!(size_of::<Event>(), 64);
    }

    #[test]
    fn kinds_are_numbered_in_the_order_of_their_list() {
        for (index, kind) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
        }
    }
}
