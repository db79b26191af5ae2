//! What goes in and what comes out.

use core::net::IpAddr;
use core::time::Duration;

use careof_mobility::{HandoverPhase, InterfaceId, PathProperties};
use careof_wire::{IpHeader, PathReport, ReceivedData, Segment, SeqNumber};

use crate::{FlowKey, Towards};

/// A packet that the world stores for the assistant. Tokens are small numbers, for an index into a table; there are never
/// more of them at a time than [`crate::Limits::packets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u32);

/// A way to the mobile node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathId {
    /// By an interface of the foreign agent, or of the mobile node itself.
    Interface(InterfaceId),
    /// Through a tunnel to a care-of address, at the home agent or at a foreign agent that the mobile node has left.
    CareOf(IpAddr),
}

/// What is to be done with a packet that was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it goes on.
    pub fate: Fate,
    /// Store a copy of it, as it goes on, under this token. Never together with [`Fate::Hold`].
    pub keep: Option<Token>,
    /// Changes to make before it goes on.
    pub edit: Option<Edit>,
    /// It goes on in fragments of the tunnel's outer datagram of at most so many bytes each, whatever its DF bit or its version say; the
    /// datagram inside stays whole.
    pub fragments: Option<u16>,
}

impl Verdict {
    /// On its way, unchanged.
    pub const PASS: Self = Self { fate: Fate::Pass, keep: None, edit: None, fragments: None };
}

/// Whether a packet goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It does.
    Pass,
    /// The world stores it under this token; [`Action::Release`] or [`Action::Discard`] follows in time.
    Hold(Token),
    /// It is dropped and counted.
    Drop(DropReason),
}

/// Why an assistant drops a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The same bytes wait here already, in front of it.
    HeldAlready,
    /// The same bytes were sent on so recently that they cannot have been acknowledged yet.
    OnItsWay,
    /// The receiver has these bytes: a copy that came late over the path that was left.
    DeliveredAlready,
    /// A duplicate acknowledgement that answers a loss that is repaired here.
    LocalRepair,
    /// The assistant's queue is full.
    QueueFull,
    /// The queue discipline's choice.
    QueueManagement,
    /// It waited longer than it may.
    TooOld,
    /// The handover drops what is queued.
    Handover,
    /// It does not fit the path, and its sender sends the same bytes in smaller segments.
    TooLarge,
}

impl DropReason {
    /// Whether a repetition is swallowed for what is here, or on its way from here.
    #[must_use]
    pub const fn swallows_repetition(self) -> bool {
        matches!(self, Self::HeldAlready | Self::OnItsWay)
    }

    /// The name in traces and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HeldAlready => "held-already",
            Self::OnItsWay => "on-its-way",
            Self::DeliveredAlready => "delivered-already",
            Self::LocalRepair => "local-repair",
            Self::QueueFull => "queue-full",
            Self::QueueManagement => "queue-management",
            Self::TooOld => "too-old",
            Self::Handover => "handover",
            Self::TooLarge => "too-large",
        }
    }
}

/// Changes to the TCP header of a packet that passes. The world mends the checksum (RFC 1624) and changes nothing else:
/// options that are not known stay byte for byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The window field, as it stands in the header.
    pub window: Option<u16>,
    /// The acknowledgement number.
    pub ack: Option<SeqNumber>,
    /// Overwrite the SACK option by no-operations.
    pub without_sack: bool,
    /// The maximum segment size in a SYN that has one.
    pub mss: Option<u16>,
}

/// What the owner is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a stored packet on, as if it went on now.
    Release {
        /// Which.
        token: Token,
        /// By this path; `None`: by the present route.
        via: Option<PathId>,
        /// Go on storing it under its token, too.
        keep: bool,
    },
    /// A stored packet is not needed any longer. `dropped` is the reason if the packet was held and never sent on; `None` when
    /// it was a copy.
    Discard {
        /// Which.
        token: Token,
        /// Why a held packet is lost.
        dropped: Option<DropReason>,
    },
    /// Send an acknowledgement in the name of the end it does not go to.
    Inject {
        /// Its IP header, between home addresses as in [`crate::PacketView`].
        header: IpHeader,
        /// Its TCP header, without data.
        segment: Segment,
        /// The end it goes to.
        towards: Towards,
    },
    /// Send an ICMP destination unreachable, code 1 (host), or over IPv6 code 0 (no route), to the source of `quoted`, quoting this header
    /// and the first eight bytes behind it: the ports and the sequence number (RFC 792, RFC 6069 section 3). Who has the packet quotes
    /// more of it (RFC 4443 section 2.4 (c)).
    Unreachable {
        /// The header of the datagram that could not be delivered.
        quoted: IpHeader,
        /// Its ports, source first.
        ports: (u16, u16),
        /// Its sequence number.
        seq: SeqNumber,
    },
    /// Send an ICMP destination unreachable, code 4 (fragmentation needed), or over IPv6 a Packet Too Big, to the source of `quoted`,
    /// quoting as with [`Self::Unreachable`] (RFC 1191 section 4, RFC 4443 section 3.2).
    TooBig {
        /// The header of the datagram that is too large.
        quoted: IpHeader,
        /// Its ports, source first.
        ports: (u16, u16),
        /// Its sequence number.
        seq: SeqNumber,
        /// What would fit, bytes of the datagram as its sender makes it.
        mtu: u16,
    },
}

/// What an assistant is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A phase of a handover of the node this runs on ([`careof_mobility::HandoverEvent::phase`]).
    Handover {
        /// The node's home address.
        mobile: IpAddr,
        /// The phase.
        event: &'a HandoverPhase,
    },
    /// Mobile node: these peers send straight to a care-of address that it has left, and to no other until [`Input::Updated`] (route
    /// optimisation, RFC 6275 section 5.2). Said ahead of the registration of the new address, whether there are any or not.
    Outdated {
        /// The node's home address.
        mobile: IpAddr,
        /// Which peers.
        peers: &'a [IpAddr],
    },
    /// Mobile node: this peer sends to where the node is now, or through its home agent again.
    Updated {
        /// The node's home address.
        mobile: IpAddr,
        /// Which peer.
        peer: IpAddr,
    },
    /// Mobile node: on a new link, before its home agent knows of it, what it sends by `path` gets through, and what is for it comes there:
    /// its former access router has a tunnel to it (fast handovers, RFC 5568). Said ahead of the registration there.
    HandedOver {
        /// The node's home address.
        mobile: IpAddr,
        /// The way by the new link.
        path: PathId,
        /// What is known of it.
        new: PathProperties,
    },
    /// Somebody - the link layer, a timetable, an operator - says that the path in use ends within some time. It may be wrong.
    Announced {
        /// The mobile node's home address.
        mobile: IpAddr,
        /// Time until the path in use ends.
        within: Duration,
        /// The path to be used then, as far as known.
        new: PathProperties,
    },
    /// Home agent, foreign agent: from now on the packets of a mobile node go by these paths (several with simultaneous
    /// bindings, the newest last, each with a copy of everything; none when it is at home or gone). Said at every registration, also when nothing
    /// changed.
    Paths {
        /// The mobile node's home address.
        mobile: IpAddr,
        /// The paths and what is known of them.
        paths: &'a [(PathId, PathProperties)],
        /// Whether what was sent by the path used before is lost, if the mobile node said so.
        old_lost: Option<bool>,
        /// How far the mobile node has received its flows, if it said so.
        received: ReceivedData,
    },
    /// The interface of this path went down.
    LinkDown {
        /// Which.
        path: PathId,
    },
    /// The interface of this path works again.
    LinkUp {
        /// Which.
        path: PathId,
    },
    /// An error came back from the network: nothing reaches the mobile node by this path at present.
    Unreachable {
        /// Which.
        path: PathId,
    },
    /// The world could not do what [`Action::Release`] asked for; the packet is gone, if it was not kept.
    NotSent {
        /// Its token.
        token: Token,
    },
}

/// What a registration tells of a mobile node, collected until all that it changes is known: of the binding that goes an agent tells
/// before the one that comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Whether what was sent by the path used before is lost.
    pub old_lost: Option<bool>,
    /// How far the mobile node has received its flows.
    pub received: ReceivedData,
}

impl Told {
    /// Takes in what came with a change of a binding or visitor.
    pub fn take_in(&mut self, path: Option<PathReport>, received: ReceivedData) {
        self.old_lost = path.and_then(|path| path.old_path_lost).or(self.old_lost);
        if !received.is_empty() {
            self.received = received;
        }
    }
}

/// The assists, by the names of the scenario file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Keep what the lost path owes and send it in order when a path is back.
    Replay,
    /// The same with the last packets of a flow only.
    HoldLast,
    /// ICMP unreachable for the sender's back-off (RFC 6069).
    LcdKick,
    /// Zero window ahead of a handover (Freeze-TCP).
    Freeze,
    /// Three duplicate acknowledgements on reconnection.
    FastRetransmit,
    /// Keep back the acknowledgement of the last bytes.
    AckHold,
    /// The advertised window follows the path.
    WindowClamp,
    /// The queue of the path is in the agent.
    PathQueue,
    /// A large buffer in the agent while there is no path.
    BufferForward,
    /// Copies by all paths.
    Bicast,
    /// Local retransmission at the base station.
    Snoop,
    /// The last byte's acknowledgement as a lever on the sender's window.
    MTcp,
    /// The maximum segment size in SYNs fits the tunnel.
    MssClamp,
    /// Tunnels that swallow large packets are found and crossed.
    BlackHole,
}

impl Kind {
    /// The name in scenarios, traces and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::HoldLast => "hold-last",
            Self::LcdKick => "lcd-kick",
            Self::Freeze => "freeze",
            Self::FastRetransmit => "fast-retransmit",
            Self::AckHold => "ack-hold",
            Self::WindowClamp => "window-clamp",
            Self::PathQueue => "path-queue",
            Self::BufferForward => "buffer-forward",
            Self::Bicast => "bicast",
            Self::Snoop => "snoop",
            Self::MTcp => "m-tcp",
            Self::MssClamp => "mss-clamp",
            Self::BlackHole => "black-hole",
        }
    }
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A SYN was seen, but not yet a segment of the stream.
    Opening,
    /// Data may flow.
    Open,
    /// Both sides have sent a FIN.
    Closing,
}

/// What is told for traces, metrics and status; nothing depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// An assist did something for a flow.
    Did {
        /// The flow.
        flow: FlowKey,
        /// Which assist.
        assist: Kind,
        /// What, as a word: `replay`, `release`, `close-window`, `open-window`, `unreachable`, `duplicate-acks`, ...
        what: &'static str,
        /// Packets it concerned.
        packets: u32,
        /// Their bytes, whole datagrams.
        bytes: u64,
    },
    /// Data of the flow is acknowledged again after a handover.
    Stalled {
        /// The flow.
        flow: FlowKey,
        /// Time from the last progress seen before the path was lost to the first after it.
        lasted: Duration,
        /// Time from the new path's being usable to that progress.
        after_path: Duration,
    },
    /// Something about a tunnel that swallows large packets.
    Hole {
        /// The flow by which it showed.
        flow: FlowKey,
        /// The path of the tunnel.
        path: PathId,
        /// What.
        news: HoleNews,
    },
    /// The flow is not followed any longer.
    Forgotten {
        /// The flow.
        flow: FlowKey,
        /// How far it had come.
        phase: Phase,
    },
}

/// What is told of a tunnel that swallows large packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoleNews {
    /// Its path is taken to have this MTU from now on, for what was larger got through in fragments only.
    Assumed {
        /// Bytes of the outer datagram.
        mtu: u16,
        /// The size that failed, likewise.
        failed: u16,
    },
    /// A sender was told what fits.
    Told {
        /// What it was told: bytes of the datagram as it makes it.
        mtu: u16,
    },
    /// A packet went on in fragments.
    InFragments,
}

/// Why an assistant wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wake {
    /// The next packet of a replay.
    Release,
    /// A path is taken for lost, or had its last chance.
    Patience,
    /// What its sender repeated in vain should have arrived.
    Swallowed,
    /// The next ICMP message of a burst.
    Kick,
    /// The window closes.
    Freeze,
    /// The window opens again.
    Thaw,
    /// An acknowledgement was kept back long enough.
    AckHold,
    /// A local retransmission.
    LocalRepair,
    /// An announced handover did not happen.
    FalseAlarm,
    /// Something stored or a flow is old.
    Age,
    /// A queue sends.
    Queue,
}
