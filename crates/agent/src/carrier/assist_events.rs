//! What assists did, one thing after the other, for whoever wants to enter it somewhere.

use std::collections::VecDeque;
use std::net::SocketAddr;

use careof_assist::{FlowKey, HoleNews, PathId, Report, Towards};
use careof_base::{Duration, Instant};

/// What became of one packet, or was said in somebody's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDeed {
    /// A packet of which a copy was kept was sent again.
    Replayed,
    /// A packet was held back.
    Held,
    /// A repetition was not let through.
    Swallowed,
    /// Data was acknowledged in its receiver's name.
    AckInjected,
    /// The data's sender was told that its receiver cannot be reached.
    UnreachableInjected,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssistNews {
    /// An assist took a measure.
    Did {
        /// Which assist.
        assist: &'static str,
        /// What it did: `replay`, `close-window`, `unreachable`, ...
        what: &'static str,
        /// Packets it concerned.
        packets: u32,
        /// Bytes of these, whole datagrams.
        bytes: u64,
    },
    /// Something happened to one packet.
    Packet {
        /// Whether it is about data for the mobile node, and not from it.
        to_mobile: bool,
        /// What.
        deed: PacketDeed,
    },
    /// A tunnel swallows large packets.
    Hole {
        /// Its path.
        path: PathId,
        /// What shows of it, or is done about it.
        news: HoleNews,
    },
    /// Data is acknowledged again after a handover.
    Stalled {
        /// From the new path's being usable to that.
        after_path: Duration,
    },
}

/// Something that happened to a connection that assists follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssistEvent {
    /// The mobile node's end.
    pub mobile: SocketAddr,
    /// Its correspondent's.
    pub peer: SocketAddr,
    /// What happened.
    pub news: AssistNews,
}

/// More events than this wait for nobody.
const MOST: usize = 65_536;

/// Events that wait to be fetched, where somebody said to fetch them.
#[derive(Debug, Default)]
pub(super) struct AssistEvents {
    waiting: Option<VecDeque<(Instant, AssistEvent)>>,
    /// Events that nobody fetched in time.
    pub(super) lost: u64,
}

impl AssistEvents {
    /// From now on somebody fetches them.
    pub(super) fn watch(&mut self) {
        self.waiting.get_or_insert_default();
    }

    /// Whether somebody does.
    pub(super) const fn are_watched(&self) -> bool {
        self.waiting.is_some()
    }

    pub(super) fn pop(&mut self) -> Option<(Instant, AssistEvent)> {
        self.waiting.as_mut()?.pop_front()
    }

    /// Something happened to a packet of data that goes `towards` an end, or to its sender.
    pub(super) fn note(&mut self, now: Instant, flow: FlowKey, towards: Towards, deed: PacketDeed) {
        self.push(now, flow, AssistNews::Packet { to_mobile: towards == Towards::Mobile, deed });
    }

    pub(super) fn note_report(&mut self, now: Instant, report: &Report) {
        match *report {
            Report::Did { flow, assist, what, packets, bytes } => {
                self.push(now, flow, AssistNews::Did { assist: assist.name(), what, packets, bytes });
            }
            Report::Stalled { flow, after_path, .. } => {
                self.push(now, flow, AssistNews::Stalled { after_path });
            }
            Report::Hole { flow, path, news } => self.push(now, flow, AssistNews::Hole { path, news }),
            Report::Forgotten { .. } => {}
        }
    }

    fn push(&mut self, now: Instant, flow: FlowKey, news: AssistNews) {
        let Some(waiting) = &mut self.waiting else { return };
        if waiting.len() >= MOST {
            self.lost += 1;
            return;
        }
        let event = AssistEvent {
            mobile: SocketAddr::new(flow.mobile, flow.mobile_port),
            peer: SocketAddr::new(flow.peer, flow.peer_port),
            news,
        };
        waiting.push_back((now, event));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    const FLOW: FlowKey = FlowKey {
        mobile: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7)),
        peer: IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2)),
        mobile_port: 4000,
        peer_port: 80,
    };

    #[test]
    fn events_are_kept_for_who_fetches_them_and_no_more_than_there_is_room_for() {
        let mut events = AssistEvents::default();
        let now = Instant::from_secs(3);
        events.note(now, FLOW, Towards::Mobile, PacketDeed::Replayed);
        assert_eq!(events.pop(), None);
        events.watch();
        events.note(now, FLOW, Towards::Peer, PacketDeed::Held);
        let (at, event) = events.pop().unwrap();
        assert_eq!((at, event.mobile.to_string()), (now, "10.0.0.7:4000".to_owned()));
        assert_eq!(event.news, AssistNews::Packet { to_mobile: false, deed: PacketDeed::Held });
        assert_eq!(events.pop(), None);
        for _ in 0..MOST + 2 {
            events.note(now, FLOW, Towards::Mobile, PacketDeed::Swallowed);
        }
        assert_eq!(events.lost, 2);
        assert_eq!(std::iter::from_fn(|| events.pop()).count(), MOST);
    }
}
