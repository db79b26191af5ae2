//! What the threads of a run tell the one that keeps its books.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use careof_agent::{AssistEvent, ClusterEvent};
use careof_base::{Duration, Instant};
use careof_lab::TcpInfo;
use careof_metrics::{ProbeSummary, Summary};
use careof_mobility::multipath::BondEvent;
use careof_mobility::{v4, v6};
use careof_plan::{NodeId, Player, Side};
use careof_quic::StreamRange;
use careof_trace::Columns;

use crate::domain::DomainEvent;
use crate::error::WorldError;
use crate::live::Live;
use crate::programs::ProgramOutput;

/// Something that happened, or that is wanted.
#[derive(Debug)]
pub(crate) enum Report {
    /// An agent tells something.
    Agent {
        node: NodeId,
        at: Instant,
        event: Box<AgentEvent>,
        /// Mobile node: whether packets to it arrive.
        registered: bool,
    },
    /// A router or a mobile node of a domain of micro-mobility tells something.
    Domain { node: NodeId, at: Instant, event: DomainEvent },
    /// An agent's assists did something for a connection.
    Assist { node: NodeId, at: Instant, event: AssistEvent },
    /// Something happened to an agent's tunnel over several paths.
    Multipath { node: NodeId, at: Instant, event: BondEvent },
    /// Something happened in a cluster, to the relay or to the mobile node.
    Cluster { node: NodeId, at: Instant, event: ClusterEvent },
    /// A datagram came out of such a tunnel in its turn.
    PassedOn { node: NodeId, at: Instant, datagram: Arc<[u8]> },
    /// Packets go both ways by an interface of a mobile node, and no registration says so: it was told to go where it is, or access routers
    /// have handed it over.
    PathReady { node: NodeId, at: Instant, interface: usize },
    /// An application, or the programs of a flow, tell something.
    Application { flow: usize, at: Instant, event: ApplicationEvent },
    /// The relay did something for a flow, with so many bytes of data.
    Relay { flow: usize, at: Instant, what: &'static str, bytes: u64 },
    /// What a connection's TCP holds.
    Sample { connection: usize, side: Side, at: Instant, info: Box<TcpInfo> },
    /// A connection's retransmission timer ran out `count` times, between two looks at it.
    Timeouts { connection: usize, side: Side, after: Instant, until: Instant, count: u32, info: Box<TcpInfo> },
    /// A program has ended.
    Output(ProgramOutput),
    /// A measurement of a link. It counts whenever it comes: a probe measures until the end of the run.
    Probed(Box<ProbeSummary>),
    /// The run cannot go on as it should.
    Failed(WorldError),
    /// The owner wants the events so far.
    TakeEvents(Sender<Columns>),
    /// The owner wants to see how it goes.
    TakeLive(Sender<Live>),
    /// The owner wants the run to end.
    Finish(Sender<std::io::Result<Summary>>),
    /// The owner is gone.
    Quit,
}

/// What an agent tells.
#[derive(Clone, Debug)]
pub(crate) enum AgentEvent {
    /// One of Mobile IPv4.
    V4(v4::Event),
    /// One of Mobile IPv6.
    V6(v6::Event),
}

/// What an application tells.
#[derive(Clone, Debug)]
pub(crate) enum ApplicationEvent {
    /// It opens the connection, or starts the programs.
    Opening { ends: Option<[SocketAddr; 2]>, text: String },
    /// It wants so many bytes delivered in all, by the side that sends them.
    Wanted { totals: [u64; 2] },
    /// `side` has got `total` bytes in order.
    Delivered { side: Side, total: u64 },
    /// The peer of `side` will send no more: it has sent everything, unless it was cut short.
    PeerClosed { side: Side, cut_short: bool },
    /// The scenario stopped it.
    Stopped,
    /// The connection is over for `side`.
    Ended { side: Side, how: String },
    /// A program has ended.
    ProgramEnded { which: &'static str, how: String },
    /// An endpoint of QUIC did something.
    Quic(QuicEvent),
    /// The player of a film did something.
    Watched(Box<Player>),
    /// A packet of voice was sent or came.
    Voice(VoiceEvent),
}

/// What happens to packets of a voice flow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum VoiceEvent {
    /// The next one leaves its sender.
    Sent,
    /// One reached the other host.
    Arrived { number: u64, payload: u16 },
}

/// What an endpoint of QUIC does, as far as it is measured.
#[derive(Clone, Debug)]
pub(crate) enum QuicEvent {
    /// The packet `number` left `sender` with so much of the stream, of which the first `left` bytes had left before.
    Sent { sender: Side, number: u32, data: Vec<StreamRange>, left: u64 },
    /// The packet `number` of `sender` reached the other host.
    Arrived { sender: Side, number: u32, data: Vec<StreamRange> },
    /// The round trip was measured.
    RoundTrip { sender: Side, rtt: Duration },
}
