//! Assists: what a handover does for the TCP connections whose packets are carried.
//!
//! The assistant says what becomes of packets by their headers; here are the packets themselves, and the ways they go.

use std::collections::BTreeMap;
use std::net::IpAddr;

use careof_assist::{
    Action, Assistant, Config, ConfigError, DropReason, Edit, Fate, FlowKey, Input, PathId, Place,
    ReadPacket, Report, Token, Towards,
};
use careof_base::Instant;
use careof_wire::ipv4::Ipv4Header;
use careof_wire::protocol;
use careof_wire::tcp_edit::{self, ChecksumField};
use careof_wire::{IpHeader, ReceivedData, Segment, SeqNumber};

use super::assist_events::{AssistEvents, PacketDeed};
use super::error_reports::SegmentReport;
use super::segment_errors::{SegmentError, about_segment};
use super::status::AssistOverview;
use super::{AssistDeed, AssistFlowStatus, AssistStatus};

/// Turns of the wheel for an assistant that wants to be woken at once; it is woken again in the next turn.
const WAKES_A_TURN: usize = 64;

/// The way of a packet through this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heading {
    /// From the host into a tunnel.
    Out,
    /// From a tunnel to the host.
    In,
}

/// What becomes of a packet that was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// It goes on.
    Passes,
    /// It goes on in fragments of the tunnel's datagram of so many bytes at most.
    PassesInFragments(u16),
    /// It does not go on.
    Stays,
}

/// A packet that is stored for the assistant.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) datagram: Box<[u8]>,
    pub(super) heading: Heading,
    /// The packet itself, which waits, and not a copy of one that went on.
    is_held: bool,
}

/// An assistant, and what it has stored.
#[derive(Debug)]
pub(super) struct Assists {
    assistant: Assistant,
    /// By token.
    stored: Vec<Option<Stored>>,
    /// The address to speak with.
    own: IpAddr,
    /// The longest datagram that the tunnel device takes.
    pub(super) mtu: u16,
    /// What was done for the flows that are followed.
    deeds: BTreeMap<FlowKey, Vec<AssistDeed>>,
    /// Packets that were not let through, by reason.
    dropped: BTreeMap<&'static str, u64>,
    /// Packets that were to be sent on and could not be.
    not_sent: u64,
    pub(super) events: AssistEvents,
}

impl Assists {
    /// # Errors
    /// A configuration that contradicts itself.
    pub(super) fn new(config: Config, own: IpAddr, mtu: u16) -> Result<Self, ConfigError> {
        Ok(Self {
            assistant: Assistant::new(config)?,
            stored: Vec::new(),
            own,
            mtu,
            deeds: BTreeMap::new(),
            dropped: BTreeMap::new(),
            not_sent: 0,
            events: AssistEvents::default(),
        })
    }

    pub(super) const fn config(&self) -> &Config {
        self.assistant.config()
    }

    /// Where a packet goes that takes this way.
    const fn towards(&self, heading: Heading) -> Towards {
        let out = match self.config().place {
            // A foreign agent's tunnels lead to the home agents.
            Place::MobileNode | Place::ForeignAgent => Towards::Peer,
            Place::HomeAgent => Towards::Mobile,
        };
        match heading {
            Heading::Out => out,
            Heading::In => out.back(),
        }
    }

    /// The way that leads there.
    fn heading(&self, towards: Towards) -> Heading {
        if self.towards(Heading::Out) == towards { Heading::Out } else { Heading::In }
    }

    /// Whether packets with this header are shown to the assistant.
    pub(super) const fn wants(&self, header: &Ipv4Header) -> bool {
        is_segment(header) || self.config().is_for_all_packets()
    }

    /// Shows a datagram, whose checksum is complete, before it goes on; it may be changed. The tunnel of its mobile node adds
    /// `overhead` bytes.
    pub(super) fn show(
        &mut self,
        now: Instant,
        heading: Heading,
        path: Option<PathId>,
        overhead: u16,
        datagram: &mut [u8],
    ) -> Shown {
        let Some(read) = ReadPacket::of(datagram) else { return Shown::Passes };
        if read.segment.is_none() && !self.config().is_for_all_packets() {
            return Shown::Passes;
        }
        let towards = self.towards(heading);
        let verdict = self.assistant.handle_packet(now, towards, path, &read.view(overhead));
        if let Some(edit) = verdict.edit {
            apply(&edit, datagram.get_mut(read.payload_offset..).unwrap_or_default());
        }
        let (header, segment) = (read.header, read.segment);
        if let Some(token) = verdict.keep {
            self.store(token, Stored { datagram: (*datagram).into(), heading, is_held: false });
        }
        match verdict.fate {
            Fate::Pass => verdict.fragments.map_or(Shown::Passes, Shown::PassesInFragments),
            Fate::Hold(token) => {
                self.store(token, Stored { datagram: (*datagram).into(), heading, is_held: true });
                if let Some(segment) = &segment {
                    self.events.note(now, FlowKey::of(towards, &header, segment), towards, PacketDeed::Held);
                }
                Shown::Stays
            }
            Fate::Drop(reason) => {
                self.note_dropped(reason);
                if let Some(segment) = segment.as_ref().filter(|_| reason.swallows_repetition()) {
                    let flow = FlowKey::of(towards, &header, segment);
                    self.events.note(now, flow, towards, PacketDeed::Swallowed);
                }
                Shown::Stays
            }
        }
    }

    fn store(&mut self, token: Token, stored: Stored) {
        let at = token.0 as usize;
        if self.stored.len() <= at {
            self.stored.resize_with(at + 1, || None);
        }
        if let Some(place) = self.stored.get_mut(at) {
            *place = Some(stored);
        }
    }

    /// A packet went no further than this.
    pub(super) fn note_dropped(&mut self, reason: DropReason) {
        *self.dropped.entry(reason.name()).or_default() += 1;
    }

    /// Takes a stored packet, to be sent: where it is a copy of one that went on, it is sent again.
    pub(super) fn release(&mut self, now: Instant, token: Token) -> Option<Stored> {
        let stored = self.take(token)?;
        if !stored.is_held
            && self.events.are_watched()
            && let Some(ReadPacket { header, segment: Some(segment), .. }) = ReadPacket::of(&stored.datagram)
        {
            let towards = self.towards(stored.heading);
            let flow = FlowKey::of(towards, &header, &segment);
            self.events.note(now, flow, towards, PacketDeed::Replayed);
        }
        Some(stored)
    }

    /// Takes a stored packet.
    pub(super) fn take(&mut self, token: Token) -> Option<Stored> {
        self.stored.get_mut(token.0 as usize)?.take()
    }

    /// Stores a packet again that was [released](Self::release).
    pub(super) fn put_back(&mut self, token: Token, stored: Stored) {
        let stored = Stored { is_held: false, ..stored };
        if let Some(place) = self.stored.get_mut(token.0 as usize) {
            *place = Some(stored);
        }
    }

    /// A packet could not be sent on.
    pub(super) fn note_not_sent(&mut self, now: Instant, token: Token) {
        self.not_sent += 1;
        self.assistant.handle_event(now, &Input::NotSent { token });
    }

    /// The next thing to do.
    pub(super) fn poll_action(&mut self) -> Option<Action> {
        self.assistant.poll_action()
    }

    /// The datagram of an acknowledgement that the assistant has made, and its way.
    pub(super) fn acknowledgement(
        &mut self,
        now: Instant,
        header: &IpHeader,
        segment: &Segment,
        towards: Towards,
    ) -> (Vec<u8>, Heading) {
        let mut datagram = Vec::new();
        match header {
            IpHeader::V4(header) => {
                Ipv4Header { payload_len: segment.header_len(), protocol: protocol::TCP, ..*header }
                    .emit(&mut datagram);
                segment.emit(header.source, header.destination, &[], &mut datagram);
            }
            IpHeader::V6(header) => {
                header.emit(&mut datagram);
                segment.emit(header.source, header.destination, &[], &mut datagram);
            }
        }
        // It is about data that goes the other way.
        let flow = FlowKey::of(towards, header, segment);
        self.events.note(now, flow, towards.back(), PacketDeed::AckInjected);
        (datagram, self.heading(towards))
    }

    /// The message that the sender of a segment is told that it cannot be delivered with, if it may be told.
    pub(super) fn unreachable(
        &mut self,
        now: Instant,
        quoted: &IpHeader,
        ports: (u16, u16),
        seq: SeqNumber,
    ) -> Option<SegmentReport> {
        // What cannot be delivered comes from the host.
        let towards = self.towards(Heading::Out);
        let flow = flow_of(towards, quoted, ports);
        let report = self.report(SegmentError::Unreachable, quoted, ports, seq)?;
        self.events.note(now, flow, towards, PacketDeed::UnreachableInjected);
        Some(report)
    }

    /// The message that the sender of a segment is told with what fits the tunnel, if it may be told.
    pub(super) fn too_big(
        &self,
        quoted: &IpHeader,
        ports: (u16, u16),
        seq: SeqNumber,
        mtu: u16,
    ) -> Option<SegmentReport> {
        self.report(SegmentError::TooBig { mtu }, quoted, ports, seq)
    }

    fn report(
        &self,
        error: SegmentError,
        quoted: &IpHeader,
        ports: (u16, u16),
        seq: SeqNumber,
    ) -> Option<SegmentReport> {
        about_segment(error, self.own, quoted, ports, seq, self.stored_segment(quoted, ports, seq))
    }

    /// The stored packet with this segment from the host, if there is one.
    pub(super) fn stored_segment(
        &self,
        header: &IpHeader,
        ports: (u16, u16),
        seq: SeqNumber,
    ) -> Option<&[u8]> {
        let towards = self.towards(Heading::Out);
        let token = self.assistant.stored(&flow_of(towards, header, ports), towards, seq)?;
        self.stored.get(token.0 as usize)?.as_ref().map(|stored| &*stored.datagram)
    }

    /// As [`Assistant::longest_fragments`].
    pub(super) fn longest_fragments(
        &self,
        now: Instant,
        header: &IpHeader,
        path: PathId,
        overhead: u16,
    ) -> Option<u16> {
        self.assistant.longest_fragments(now, header, path, overhead)
    }

    /// Ends: what is held back is to be sent on.
    pub(super) fn close(&mut self) {
        self.assistant.close();
    }

    /// See [`Assistant::received_data`].
    pub(super) fn received_data(&self, now: Instant, mobile: IpAddr) -> ReceivedData {
        self.assistant.received_data(now, mobile)
    }

    pub(super) fn handle_event(&mut self, now: Instant, input: &Input<'_>) {
        self.assistant.handle_event(now, input);
    }

    /// Does what is due.
    pub(super) fn wake(&mut self, now: Instant) {
        for _ in 0..WAKES_A_TURN {
            if self.next_timeout().is_none_or(|at| at > now) {
                break;
            }
            self.assistant.handle_timeout(now);
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.assistant.next_timeout().map(|(at, _)| at)
    }

    /// Notes what the assistant has to tell.
    pub(super) fn take_reports(&mut self, now: Instant) {
        while let Some(report) = self.assistant.poll_report() {
            self.events.note_report(now, &report);
            match report {
                Report::Did { flow, assist, what, packets, bytes } => {
                    let deeds = self.deeds.entry(flow).or_default();
                    let known = |deed: &&mut AssistDeed| deed.assist == assist.name() && deed.what == what;
                    match deeds.iter_mut().find(known) {
                        Some(deed) => {
                            deed.times += 1;
                            deed.packets += u64::from(packets);
                            deed.bytes += bytes;
                        }
                        None => deeds.push(AssistDeed {
                            assist: assist.name(),
                            what,
                            times: 1,
                            packets: packets.into(),
                            bytes,
                        }),
                    }
                }
                Report::Forgotten { flow, .. } => {
                    self.deeds.remove(&flow);
                }
                // The last one is kept with the flow; what there is to a black hole is among the deeds.
                Report::Stalled { .. } | Report::Hole { .. } => {}
            }
        }
    }

    /// What it is doing.
    pub(super) fn status(&self, now: Instant) -> AssistStatus {
        let (stored_packets, stored_bytes) = self.assistant.load();
        let milliseconds = |span: std::time::Duration| span.as_secs_f64() * 1e3;
        let flows = self.assistant.flows().map(|flow| AssistFlowStatus {
            home_address: flow.key.mobile,
            port: flow.key.mobile_port,
            peer: flow.key.peer,
            peer_port: flow.key.peer_port,
            idle_s: now.saturating_duration_since(flow.last_seen).as_secs_f64(),
            packets: flow.packets,
            bytes: flow.bytes,
            stall_ms: flow.last_stall.map(|(lasted, _)| milliseconds(lasted)),
            stall_after_path_ms: flow.last_stall.map(|(_, after)| milliseconds(after)),
            done: self.deeds.get(&flow.key).cloned().unwrap_or_default(),
        });
        AssistStatus { flows: flows.collect(), stored_packets, stored_bytes }
    }

    pub(super) fn overview(&self) -> AssistOverview {
        let (stored_packets, stored_bytes) = self.assistant.load();
        AssistOverview { flows: self.assistant.flows().count(), stored_packets, stored_bytes }
    }

    /// What was counted, by name.
    pub(super) fn counters(&self) -> Vec<(String, u64)> {
        let counters = self.assistant.counters();
        let named = [
            ("flows", counters.flows),
            ("flows-evicted", counters.flows_evicted),
            ("flows-refused", counters.flows_refused),
            ("implausible", counters.implausible),
            ("kept", counters.kept),
            ("held", counters.held),
            ("not-kept", counters.not_kept),
            ("acknowledged", counters.acknowledged),
            ("aged", counters.aged),
            ("evicted", counters.evicted),
            ("given-up", counters.given_up),
            ("replayed", counters.replayed),
            ("replayed-bytes", counters.replayed_bytes),
            ("retransmissions-swallowed", counters.retransmissions_swallowed),
            ("duplicates-dropped", counters.duplicates_dropped),
            ("acks-injected", counters.acks_injected),
            ("edits", counters.edits),
            ("unreachables", counters.unreachables),
            ("fragmented", counters.fragmented),
            ("black-holes", counters.black_holes),
            ("limited", counters.limited),
            ("false-alarms", counters.false_alarms),
            ("not-sent", self.not_sent),
            ("events-lost", self.events.lost),
        ];
        let named = named.into_iter().map(|(name, count)| (name.to_owned(), count));
        named.chain(self.dropped.iter().map(|(name, count)| (format!("dropped-{name}"), *count))).collect()
    }
}

/// Whether this is the header of a whole segment of TCP.
const fn is_segment(header: &Ipv4Header) -> bool {
    header.protocol == protocol::TCP && !header.is_fragment()
}

/// The flow of a segment with this header and these ports, which goes `towards`.
fn flow_of(towards: Towards, header: &IpHeader, (source_port, destination_port): (u16, u16)) -> FlowKey {
    FlowKey::of(towards, header, &Segment { source_port, destination_port, ..Segment::default() })
}

/// Changes a TCP header.
fn apply(edit: &Edit, segment: &mut [u8]) {
    if let Some(window) = edit.window {
        tcp_edit::set_window(segment, window, ChecksumField::Complete);
    }
    if let Some(ack) = edit.ack {
        tcp_edit::set_ack(segment, ack, ChecksumField::Complete);
    }
    if let Some(mss) = edit.mss {
        tcp_edit::set_mss(segment, mss, ChecksumField::Complete);
    }
    if edit.without_sack {
        tcp_edit::remove_sack(segment, ChecksumField::Complete);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use careof_assist::Replay;
    use careof_wire::Flags;
    use careof_wire::icmp::{IcmpMessage, UnreachableCode};
    use careof_wire::icmpv6::{self, Icmpv6Message};
    use careof_wire::ipv6::Ipv6Header;

    use super::*;

    const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
    const PEER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

    fn assists() -> Assists {
        let config = Config { replay: Some(Replay::DEFAULT), ..Config::none(Place::HomeAgent) };
        Assists::new(config, PEER.into(), 1480).unwrap()
    }

    /// A segment for the mobile node, with options that nobody knows in both headers.
    fn opaque() -> Vec<u8> {
        let segment = Segment { flags: Flags::ACK, seq: SeqNumber(7), payload_len: 3, ..Segment::default() };
        let mut tcp = Vec::new();
        segment.emit(PEER, MOBILE, b"abc", &mut tcp);
        tcp.splice(20..20, [254, 4, 1, 2]);
        tcp[12] = 6 << 4;
        let mut datagram = Vec::new();
        let (source, destination) = (PEER, MOBILE);
        let payload_len = tcp.len() as u16;
        Ipv4Header { source, destination, protocol: protocol::TCP, payload_len, ..Ipv4Header::default() }
            .emit(&mut datagram);
        datagram.extend(tcp);
        datagram
    }

    #[test]
    fn what_is_not_understood_is_stored_and_goes_on_as_it_is() {
        let mut assists = assists();
        let before = opaque();
        let mut datagram = before.clone();
        let shown = assists.show(Instant::from_secs(1), Heading::Out, None, 20, &mut datagram);
        assert_eq!(shown, Shown::Passes);
        assert_eq!(datagram, before);
        assert_eq!(assists.take(Token(0)).map(|stored| stored.datagram), Some(before.into()));
    }

    #[test]
    fn nonsense_goes_on() {
        let mut assists = assists();
        let whole = opaque();
        for len in 0..whole.len() {
            let mut cut = whole[..len].to_vec();
            let shown = assists.show(Instant::from_secs(1), Heading::In, None, 20, &mut cut);
            assert_eq!(shown, Shown::Passes);
        }
        assert_eq!(assists.status(Instant::from_secs(1)).stored_packets, 0);
    }

    #[test]
    fn a_message_of_unreachability_quotes_the_segment() {
        let quoted = Ipv4Header {
            source: PEER,
            destination: MOBILE,
            protocol: protocol::TCP,
            ..Ipv4Header::default()
        };
        let now = Instant::from_secs(1);
        let told = assists().unreachable(now, &quoted.into(), (80, 40_000), SeqNumber(0x0102_0304));
        let Some(SegmentReport::V4(report)) = told else { panic!("{told:?}") };
        assert_eq!(report.destination, PEER);
        let IcmpMessage::DestinationUnreachable(message) = report.message else { panic!() };
        assert_eq!(message.code, UnreachableCode::Host);
        assert_eq!(message.quoted[20..], [0, 80, 0x9c, 0x40, 1, 2, 3, 4]);
        let nobody = Ipv4Header { source: Ipv4Addr::UNSPECIFIED, ..quoted };
        assert_eq!(assists().unreachable(now, &nobody.into(), (80, 40_000), SeqNumber(0)), None);
    }

    const MOBILE_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);
    const PEER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 2);
    const AGENT_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);

    #[test]
    fn over_ipv6_a_message_of_unreachability_quotes_all_that_fits_of_a_packet_that_is_stored() {
        let config = Config { replay: Some(Replay::DEFAULT), ..Config::none(Place::HomeAgent) };
        let mut assists = Assists::new(config, AGENT_V6.into(), 1460).unwrap();
        let segment = Segment {
            source_port: 80,
            destination_port: 40_000,
            flags: Flags::ACK,
            seq: SeqNumber(0x0102_0304),
            payload_len: 1400,
            ..Segment::default()
        };
        let header = Ipv6Header {
            source: PEER_V6,
            destination: MOBILE_V6,
            next_header: protocol::TCP,
            payload_len: segment.header_len() + segment.payload_len,
            ..Ipv6Header::default()
        };
        let mut datagram = Vec::new();
        header.emit(&mut datagram);
        segment.emit(PEER_V6, MOBILE_V6, &[7; 1400], &mut datagram);
        let now = Instant::from_secs(1);
        let before = datagram.clone();
        assert_eq!(assists.show(now, Heading::Out, None, 40, &mut datagram), Shown::Passes);
        let mut quoted = |seq| {
            let told = assists.unreachable(now, &header.into(), (80, 40_000), SeqNumber(seq));
            let Some(SegmentReport::V6(report)) = told else { panic!("{told:?}") };
            assert_eq!((report.source, report.destination), (AGENT_V6, PEER_V6));
            let Icmpv6Message::DestinationUnreachable(error) = report.message else { panic!() };
            assert_eq!(error.code, icmpv6::UnreachableCode::NoRoute);
            error.quoted
        };
        assert_eq!(quoted(0x0102_0304), before[..1232]);
        assert_eq!(quoted(5)[40..], [0, 80, 0x9c, 0x40, 0, 0, 0, 5]);
    }
}
