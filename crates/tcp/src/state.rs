//! The states of a connection, and how they follow each other.

use core::fmt;

/// A state of RFC 9293 section 3.3.2.
///
/// ```text
///   CLOSED --open--> LISTEN --SYN--> SYN-RECEIVED --ACK--> ESTABLISHED
///     |                                  ^                      |
///     +--open, SYN sent--> SYN-SENT --SYN+                      |
///                              +------SYN,ACK-------------------+
///
///   ESTABLISHED --close--> FIN-WAIT-1 --ACK of FIN--> FIN-WAIT-2 --FIN--> TIME-WAIT --2 MSL--> CLOSED
///        |                     +--FIN--> CLOSING --ACK of FIN---------------^
///        +--FIN--> CLOSE-WAIT --close--> LAST-ACK --ACK of FIN--> CLOSED
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum State {
    /// There is no connection.
    #[default]
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// A SYN was sent.
    SynSent,
    /// A SYN arrived and one was sent.
    SynReceived,
    /// Data flows both ways.
    Established,
    /// A FIN was sent.
    FinWait1,
    /// The FIN was acknowledged; the peer may still send.
    FinWait2,
    /// The peer's FIN arrived; this end may still send.
    CloseWait,
    /// Both sent a FIN, neither acknowledged this end's.
    Closing,
    /// The peer's FIN arrived, then a FIN was sent.
    LastAck,
    /// Both FINs are acknowledged; late segments are still answered.
    TimeWait,
}

impl State {
    /// Whether both sequence numbers are known to both sides.
    #[must_use]
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::Closed | Self::Listen | Self::SynSent | Self::SynReceived)
    }

    /// The state after this end's FIN was sent.
    pub(crate) const fn after_fin_sent(self) -> Self {
        match self {
            Self::Established | Self::SynReceived => Self::FinWait1,
            Self::CloseWait => Self::LastAck,
            other => other,
        }
    }

    /// The state after this end's FIN was acknowledged.
    pub(crate) const fn after_fin_acknowledged(self) -> Self {
        match self {
            Self::FinWait1 => Self::FinWait2,
            Self::Closing => Self::TimeWait,
            Self::LastAck => Self::Closed,
            other => other,
        }
    }

    /// The state after the peer's FIN arrived in order.
    pub(crate) const fn after_fin_received(self) -> Self {
        match self {
            Self::Established | Self::SynReceived => Self::CloseWait,
            Self::FinWait1 => Self::Closing,
            Self::FinWait2 => Self::TimeWait,
            other => other,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "CLOSED",
            Self::Listen => "LISTEN",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
        })
    }
}
