//! What the target `assist` does with its bytes: a connection, an assistant in between, and a watch over what leaves it.
//!
//! One connection is kept by a reference: two ends that send and acknowledge by the rules, over a network that loses, repeats and
//! overtakes. Other flows are noise without any rule. Every acknowledgement that leaves towards an end of the connection is
//! compared with what the other end really has. The test of `careof-assist` runs this very function with a stable compiler.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use std::collections::BTreeMap;

use careof_assist::{
    AckHold, Action, Assistant, BlackHole, BufferForward, Config, Edit, FastRetransmit, Fate, Freeze,
    HoldLast, Input, LcdKick, Limits, MssClamp, PacketView, PathId, PathQueue, Place, QueueAtHandover,
    Replay, Sack, Snoop, Token, Towards, WindowClamp,
};
use careof_base::{DataRate, Instant};
use careof_link::{Discipline, QueueConfig, QueueLimit, RedConfig};
use careof_mobility::{HandoverEvent, HandoverReason, HandoverStyle, InterfaceId, Notice, PathProperties};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::Ipv6Header;
use careof_wire::{Flags, IpHeader, ReceivedData, ReceivedFlow, Segment, SeqNumber, Timestamps, protocol};

/// Who there is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Names {
    mobile: IpAddr,
    /// A mobile node of which only noise is heard.
    other: IpAddr,
    peer: IpAddr,
    /// What a tunnel adds, bytes.
    overhead: u16,
}

impl Names {
    const IPV4: Self = Self {
        mobile: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
        other: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
        peer: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        overhead: 20,
    };
    const IPV6: Self = Self {
        mobile: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1)),
        other: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2)),
        peer: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 1)),
        overhead: 40,
    };

    /// Source and destination of what goes `towards` an end of a flow of `mobile`.
    fn addresses(self, towards: Towards, mobile: IpAddr) -> (IpAddr, IpAddr) {
        match towards {
            Towards::Mobile => (self.peer, mobile),
            Towards::Peer => (mobile, self.peer),
        }
    }
}

const MOBILE_PORT: u16 = 40_000;
const PEER_PORT: u16 = 80;
/// More actions than this at once, or wakes at one instant, and something goes in circles.
const MANY: usize = 100_000;

/// The bytes, which run out.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn byte(&mut self) -> u8 {
        self.next().unwrap_or_default()
    }

    fn word(&mut self) -> u32 {
        u32::from_be_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }
}

/// One end of the connection.
struct End {
    /// SND.NXT, at its highest.
    next: SeqNumber,
    /// RCV.NXT.
    received: SeqNumber,
    /// What has arrived beyond it.
    beyond: Vec<(SeqNumber, SeqNumber)>,
    has_received_syn: bool,
    /// Right edge of the window it advertised, which never moves to the left.
    edge: SeqNumber,
    scale: u8,
    room: u32,
    /// Its highest timestamp.
    stamp: u32,
    /// Acknowledgements it has sent, any of which may come again.
    said: Vec<Segment>,
    is_finished: bool,
    /// Right edge, and number, of what has left the assistant in its name: the highest.
    edge_left: Option<SeqNumber>,
    ack_left: Option<SeqNumber>,
    /// A segment of it was seen that did not go on: it waits for the path, or found no room.
    was_kept_back: bool,
}

impl End {
    fn new(first: SeqNumber, scale: u8, room: u32) -> Self {
        Self {
            next: first,
            received: SeqNumber(0),
            beyond: Vec::new(),
            has_received_syn: false,
            edge: SeqNumber(0),
            scale,
            room: room.min(65_534 << scale),
            stamp: 0,
            said: Vec::new(),
            is_finished: false,
            edge_left: None,
            ack_left: None,
            was_kept_back: false,
        }
    }

    fn receive(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::SYN) {
            if !self.has_received_syn {
                self.has_received_syn = true;
                self.received = segment.seq.plus(1);
                self.edge = self.received;
            }
            return;
        }
        if !self.has_received_syn || segment.seq_len() == 0 {
            return;
        }
        self.beyond.push((segment.seq, segment.end_seq()));
        while let Some(at) = self.beyond.iter().position(|(seq, _)| seq.is_at_or_before(self.received)) {
            let (_, end) = self.beyond.swap_remove(at);
            self.received = self.received.later(end);
        }
    }

    /// The window, as it stands in the header.
    fn window(&mut self) -> u16 {
        self.edge = self.edge.later(self.received.plus(self.room));
        let units = self.edge.bytes_since(self.received).div_ceil(1 << self.scale);
        let units = u16::try_from(units).expect("it fits by its room");
        self.edge = self.received.plus(u32::from(units) << self.scale);
        units
    }
}

struct World {
    assistant: Assistant,
    names: Names,
    now: Instant,
    /// The mobile node, and the peer.
    ends: [End; 2],
    is_scaled: bool,
    is_opaque: bool,
    with_timestamps: bool,
    /// Only the clamp changes acknowledgements.
    clamps_alone: bool,
    /// What passes may be dropped for lack of room, SYNs as well.
    has_queue: bool,
    /// How often the connection began anew.
    incarnation: u32,
    stored: BTreeMap<Token, (u32, Towards, Option<Segment>)>,
}

/// Runs a connection through an assistant as the bytes say.
pub fn assist(data: &[u8]) {
    let mut bytes = Bytes(data);
    // A bit that nothing else is chosen by.
    let is_ipv6 = data.first().is_some_and(|first| first & 16 != 0);
    let names = if is_ipv6 { Names::IPV6 } else { Names::IPV4 };
    let config = config(&mut bytes);
    let place = config.place;
    let clamps_alone = config.freeze.is_none() && config.ack_hold.is_none() && !config.m_tcp;
    let has_queue = config.path_queue.is_some() || config.buffer_forward.is_some();
    let limits = config.limits;
    let is_sound = config.check().is_ok();
    let assistant = Assistant::new(config);
    assert_eq!(assistant.is_ok(), is_sound);
    let Ok(assistant) = assistant else { return };
    let mut world = World {
        assistant,
        names,
        now: Instant::ZERO,
        ends: [End::new(SeqNumber(0), 0, 0), End::new(SeqNumber(0), 0, 0)],
        is_scaled: false,
        is_opaque: false,
        with_timestamps: true,
        clamps_alone,
        has_queue,
        incarnation: 0,
        stored: BTreeMap::new(),
    };
    world.connect(&mut bytes);
    while let Some(what) = bytes.next() {
        world.step(what, place, &mut bytes);
        world.drain();
        let (packets, size) = world.assistant.load();
        assert!(packets <= limits.packets && size <= limits.bytes, "{packets} packets of {size} bytes");
        assert_eq!(world.stored.len(), packets, "tokens stored here and there");
        assert!(world.assistant.flows().count() <= limits.flows);
    }
    // In the end everything is forgotten.
    world.wait(limits.idle + Duration::from_secs(3_600));
    world.drain();
    assert_eq!((world.assistant.load(), world.stored.len()), ((0, 0), 0));
    assert_eq!(world.assistant.flows().count(), 0);
}

fn config(bytes: &mut Bytes<'_>) -> Config {
    let (what, which) = (bytes.byte(), bytes.byte());
    let place =
        [Place::HomeAgent, Place::ForeignAgent, Place::MobileNode, Place::HomeAgent][usize::from(what & 3)];
    let span = |byte: u8| Duration::from_millis(u64::from(byte) * 4);
    // These hold packets, whatever they are, and stand alone.
    let (which, at_path) = if what & 0xc0 == 0 { (which, 0) } else { (which & 0x7c, what >> 6) };
    let queue = QueueConfig {
        limit: if which & 32 == 0 { QueueLimit::Packets(20) } else { QueueLimit::Bytes(3_000) },
        discipline: match which >> 3 & 3 {
            0 => Discipline::DropTail,
            1 => Discipline::Red(RedConfig::default()),
            _ => Discipline::CODEL,
        },
        ecn: false,
    };
    Config {
        path_queue: (at_path == 1).then(|| PathQueue {
            queue,
            margin: f64::from(bytes.byte()) / 255.0,
            at_handover: [QueueAtHandover::ReRoute, QueueAtHandover::Drop, QueueAtHandover::DrainLate]
                [usize::from(which >> 2) % 3],
        }),
        buffer_forward: (at_path == 2)
            .then(|| BufferForward { packets: usize::from(bytes.byte()), from_notice: which & 4 == 0 }),
        bicast: at_path == 3,
        replay: (which & 0x83 == 1 || which & 0x83 == 3).then_some(Replay::DEFAULT),
        hold_last: (which & 3 == 2).then_some(HoldLast::DEFAULT),
        lcd_kick: (which & 4 != 0).then_some(LcdKick { interval: span(bytes.byte()), ..LcdKick::DEFAULT }),
        freeze: (which & 0x88 == 8).then(|| Freeze {
            warning: span(bytes.byte()),
            acks: u32::from(bytes.byte() & 7),
            patience: span(bytes.byte()),
        }),
        fast_retransmit: (which & 16 != 0).then_some(FastRetransmit {
            sack: if what & 4 == 0 { Sack::AsLast } else { Sack::None },
            longest_outage: (what & 8 == 0).then_some(Duration::from_millis(200)),
            ..FastRetransmit::DEFAULT
        }),
        ack_hold: (which & 32 != 0 && which & 8 == 0).then(|| AckHold {
            bytes: u32::from(bytes.byte()) * 8,
            always: what & 16 == 0,
            longest: span(bytes.byte()),
        }),
        window_clamp: (which & 64 != 0).then(|| WindowClamp {
            factor: f64::from(bytes.byte()) / 64.0,
            segments: 1,
            always: true,
        }),
        snoop: (which & 0x83 == 0x83)
            .then_some(Snoop { packets: 20, least_timeout: Duration::from_millis(50) }),
        m_tcp: which & 0x88 == 0x88,
        mss_clamp: (what & 4 != 0).then(|| MssClamp { mtu: u16::from(bytes.byte()) * 8 }),
        black_hole: (what & 8 != 0)
            .then(|| BlackHole { repeats: u32::from(bytes.byte() & 3), ..BlackHole::DEFAULT }),
        limits: if what & 32 == 0 {
            Limits::DEFAULT
        } else {
            Limits { flows: 3, packets: 6, bytes: 6_000, ..Limits::DEFAULT }
        },
        ..Config::none(place)
    }
}

const fn at(end: Towards) -> usize {
    match end {
        Towards::Mobile => 0,
        Towards::Peer => 1,
    }
}

impl World {
    /// The end that what goes `towards` the other one comes from.
    fn sender(&mut self, towards: Towards) -> &mut End {
        &mut self.ends[at(towards.back())]
    }

    /// The connection begins, for the first time or anew. The first SYNs are seen, or not.
    fn connect(&mut self, bytes: &mut Bytes<'_>) {
        let (how, scale) = (bytes.byte(), bytes.byte());
        if self.incarnation > 0 && (self.has_queue || how & 16 != 0) {
            // Who begins anew has ended the one before; else a SYN is not believed until it is answered.
            let mut reset =
                Segment { flags: Flags::RST, seq: self.sender(Towards::Peer).next, ..Segment::default() };
            self.finish(Towards::Peer, &mut reset);
            self.show(Towards::Peer, &reset, None, false);
            self.drain();
        }
        self.incarnation += 1;
        self.is_scaled = how & 1 == 0;
        self.with_timestamps = how & 2 == 0;
        self.is_opaque = how & 0xf0 == 0xf0;
        // The numbers are always others: a SYN with the same would be a repetition.
        let first = SeqNumber(bytes.word() << 8 | self.incarnation & 0xff);
        let scales = if self.is_scaled { [scale % 15, scale / 16 % 15] } else { [0, 0] };
        let rooms = [1_000 << (bytes.byte() % 16), 1_000 << (bytes.byte() % 16)];
        self.ends = [End::new(first, scales[0], rooms[0]), End::new(first.plus(77), scales[1], rooms[1])];
        let opener = if how & 4 == 0 { Towards::Peer } else { Towards::Mobile };
        for (towards, is_answer) in [(opener, false), (opener.back(), true)] {
            let is_scaled = self.is_scaled;
            let end = self.sender(towards);
            let mut segment = Segment {
                flags: if is_answer { Flags::SYN.with(Flags::ACK) } else { Flags::SYN },
                seq: end.next,
                ack: if is_answer { end.received } else { SeqNumber(0) },
                mss: Some(1_000),
                window_scale: is_scaled.then_some(end.scale),
                sack_permitted: true,
                window: u16::try_from(end.room).unwrap_or(u16::MAX),
                ..Segment::default()
            };
            end.next = end.next.plus(1);
            if is_answer {
                end.edge = end.edge.later(end.received.plus(u32::from(segment.window)));
            }
            let promised = segment.window;
            self.finish(towards, &mut segment);
            if how & 8 == 0 || self.incarnation > 1 {
                let edit = self.show(towards, &segment, None, true);
                let only_size = |edit: Edit| edit == Edit { mss: edit.mss, ..Edit::default() };
                assert!(edit.is_none_or(only_size), "SYNs are not changed but for their segment size");
            } else {
                self.ends[at(towards)].receive(&segment);
            }
            if is_answer {
                // Now the first SYN's window has a place to begin, too.
                let first_window = self.ends[at(opener.back())].room.min(65_535);
                let opening = &mut self.ends[at(opener.back())];
                opening.edge = opening.edge.later(opening.received.plus(first_window));
                opening.edge_left = Some(opening.edge);
                let answering = self.sender(towards);
                answering.edge_left = Some(answering.received.plus(u32::from(promised)));
            }
        }
    }

    fn step(&mut self, what: u8, place: Place, bytes: &mut Bytes<'_>) {
        let towards = if what & 1 == 0 { Towards::Mobile } else { Towards::Peer };
        match what >> 1 & 15 {
            0..=3 => self.send(towards, what & 32 != 0, what & 0xc0 != 0xc0, bytes),
            4..=6 => self.acknowledge(towards, None),
            7 => self.acknowledge(towards, Some(bytes.byte())),
            8 => self.wait(Duration::from_millis(u64::from(bytes.byte()))),
            9 => self.wait(Duration::from_millis(20 * u64::from(bytes.byte()))),
            10..=12 => self.tell(place, bytes),
            13 => self.noise(towards, bytes),
            14 if what & 0xc0 == 0 => self.connect(bytes),
            14 => {
                let path = PathId::Interface(InterfaceId(u16::from(bytes.byte() & 3)));
                let input = if what & 32 == 0 { Input::LinkDown { path } } else { Input::LinkUp { path } };
                self.assistant.handle_event(self.now, &input);
            }
            _ => {
                let mut segment = Segment { flags: Flags::RST, ..Segment::default() };
                self.finish(towards, &mut segment);
                if what & 0xe0 == 0xe0 {
                    self.show(towards, &segment, None, false);
                } else {
                    let Names { mobile, overhead, .. } = self.names;
                    let header = match header(self.names.addresses(towards, mobile), &segment) {
                        IpHeader::V4(header) => Ipv4Header { more_fragments: true, ..header }.into(),
                        // Its fragment header is not shown.
                        header => header,
                    };
                    let view = PacketView { header, segment: None, is_opaque: false, overhead };
                    let verdict = self.assistant.handle_packet(self.now, towards, None, &view);
                    assert_eq!((verdict.keep, verdict.edit), (None, None));
                    if let Fate::Hold(token) = verdict.fate {
                        let before = self.stored.insert(token, (self.incarnation, towards, None));
                        assert_eq!(before, None, "{token:?} stands for one packet");
                    }
                }
            }
        }
    }

    /// Data go `towards` an end, new or once more.
    fn send(&mut self, towards: Towards, again: bool, arrives: bool, bytes: &mut Bytes<'_>) {
        let how = bytes.byte();
        let len = 1 + u16::from(how) * 5;
        let other = self.ends[at(towards)].received;
        let end = self.sender(towards);
        if !end.has_received_syn || end.is_finished && !again {
            return;
        }
        let window = end.window();
        let back = u32::from(bytes.byte()) * 16;
        // Nothing before what the other end has not acknowledged by half the numbers there are.
        let seq = if again { end.next.minus(back.min(end.next.bytes_since(other))) } else { end.next };
        let mut segment = Segment {
            flags: Flags::ACK,
            seq,
            ack: end.received,
            window,
            payload_len: if again { (end.next.bytes_since(seq) as u16).min(len) } else { len },
            ..Segment::default()
        };
        if how == 0xff && !again {
            segment.flags = segment.flags.with(Flags::FIN);
            end.is_finished = true;
        }
        end.next = end.next.later(segment.end_seq());
        self.finish(towards, &mut segment);
        self.show(towards, &segment, None, arrives);
    }

    /// An acknowledgement without data goes `towards` an end; an old one, or what there is to say.
    fn acknowledge(&mut self, towards: Towards, old: Option<u8>) {
        let end = self.sender(towards);
        if !end.has_received_syn {
            return;
        }
        let mut segment = Segment {
            flags: Flags::ACK,
            seq: end.next,
            ack: end.received,
            window: end.window(),
            ..Segment::default()
        };
        for (left, right) in &end.beyond {
            segment.sack.push(*left, *right);
        }
        match old {
            Some(which) if !end.said.is_empty() => segment = end.said[usize::from(which) % end.said.len()],
            _ => {
                self.finish(towards, &mut segment);
                self.sender(towards).said.push(segment);
            }
        }
        self.show(towards, &segment, None, true);
    }

    /// Ports, and a timestamp.
    fn finish(&mut self, towards: Towards, segment: &mut Segment) {
        (segment.source_port, segment.destination_port) = match towards {
            Towards::Mobile => (PEER_PORT, MOBILE_PORT),
            Towards::Peer => (MOBILE_PORT, PEER_PORT),
        };
        if self.with_timestamps {
            let value = self.now.since_start().as_millis() as u32 / 4;
            let echo = self.ends[at(towards)].stamp;
            self.sender(towards).stamp = value;
            segment.timestamps = Some(Timestamps { value, echo });
        }
    }

    /// Shows a segment of the connection to the assistant, and carries out what it says.
    fn show(
        &mut self,
        towards: Towards,
        segment: &Segment,
        path: Option<PathId>,
        arrives: bool,
    ) -> Option<Edit> {
        let Names { mobile, overhead, .. } = self.names;
        let header = header(self.names.addresses(towards, mobile), segment);
        let view = PacketView { header, segment: Some(segment), is_opaque: self.is_opaque, overhead };
        if !self.assistant.flows().any(|flow| flow.key.mobile_port == MOBILE_PORT) {
            // It was forgotten, or never seen: then what left before is not known.
            self.ends.iter_mut().for_each(|end| end.ack_left = None);
        }
        let verdict = self.assistant.handle_packet(self.now, towards, path, &view);
        let least = if mobile.is_ipv6() { 1_280 } else { 68 };
        assert!(verdict.fragments.is_none_or(|longest| longest >= least && verdict.fate == Fate::Pass));
        let mut changed = *segment;
        if let Some(edit) = verdict.edit {
            assert!(!self.is_opaque, "what cannot be read is not changed");
            let of_syn =
                edit == Edit { mss: edit.mss, ..Edit::default() } && segment.flags.contains(Flags::SYN);
            assert!(segment.flags.are_of_a_stream() || of_syn);
            changed.window = edit.window.unwrap_or(segment.window);
            changed.ack = edit.ack.unwrap_or(segment.ack);
            assert!(
                edit.mss.is_none_or(|mss| segment.mss.is_some_and(|said| mss < said)),
                "never raised, nor added"
            );
            changed.mss = edit.mss.or(segment.mss);
        }
        let key = (self.incarnation, towards, Some(changed));
        if let Some(token) = verdict.keep {
            assert!(!matches!(verdict.fate, Fate::Hold(_)), "kept or held");
            assert_eq!(self.stored.insert(token, key), None, "{token:?} stands for one packet");
        }
        match verdict.fate {
            Fate::Pass => {
                self.leave(towards, &changed, Some(segment));
                if arrives {
                    self.ends[at(towards)].receive(&changed);
                }
            }
            Fate::Hold(token) => {
                assert_eq!(self.stored.insert(token, key), None, "{token:?} stands for one packet");
                if segment.flags.contains(Flags::SYN) {
                    // What follows is made as if it had arrived.
                    self.ends[at(towards)].receive(&changed);
                }
            }
            Fate::Drop(_) => {}
        }
        self.sender(towards).was_kept_back |= verdict.fate != Fate::Pass;
        verdict.edit
    }

    /// A segment of the connection leaves `towards` an end; `original` as its sender sent it, if it did.
    fn leave(&mut self, towards: Towards, segment: &Segment, original: Option<&Segment>) {
        if !segment.flags.are_of_a_stream() {
            return;
        }
        let (clamps_alone, is_scaled) = (self.clamps_alone, self.is_scaled);
        let end = self.sender(towards);
        assert!(
            segment.ack.is_at_or_before(end.received),
            "acknowledges {}, but the receiver has {}",
            segment.ack,
            end.received
        );
        if let Some(original) = original {
            assert!(segment.ack.is_at_or_before(original.ack), "an edit never acknowledges more");
            assert!(segment.window <= original.window, "nor opens a window");
            if let Some(left) = end.ack_left
                && original.ack.is_at_or_after(left)
            {
                assert!(
                    segment.ack.is_at_or_after(left),
                    "what was acknowledged stays so: {left}, now {} for {}, towards {towards:?}",
                    segment.ack,
                    original.ack
                );
            }
        }
        end.ack_left = Some(end.ack_left.map_or(segment.ack, |left| left.later(segment.ack)));
        let scale = if is_scaled { end.scale } else { 0 };
        let edge = segment.ack.plus(u32::from(segment.window) << scale);
        let is_cut = original.is_some_and(|original| segment.window < original.window);
        if let (true, true, Some(left)) = (clamps_alone, is_cut, end.edge_left) {
            assert!(edge.is_at_or_after(left), "the right edge moved from {left} to {edge}");
        }
        end.edge_left = Some(end.edge_left.map_or(edge, |left| left.later(edge)));
    }

    fn wait(&mut self, span: Duration) {
        let until = self.now + span;
        let mut wakes = 0;
        while let Some((at, _)) = self.assistant.next_timeout().filter(|(at, _)| *at <= until) {
            let is_later = at > self.now;
            self.now = self.now.max(at);
            self.assistant.handle_timeout(self.now);
            self.drain();
            let next = self.assistant.next_timeout();
            assert!(next.is_none_or(|(next, _)| next > self.now), "{next:?} is due still at {:?}", self.now);
            wakes = if is_later { 0 } else { wakes + 1 };
            assert!(wakes < MANY, "no end of wakes at {:?}", self.now);
        }
        self.now = until;
    }

    fn tell(&mut self, place: Place, bytes: &mut Bytes<'_>) {
        let (what, value) = (bytes.byte(), bytes.byte());
        let properties = |value: u8| PathProperties {
            downlink: (value & 1 != 0).then_some(DataRate::from_kilobits_per_second(4 << (value >> 3 & 15))),
            uplink: (value & 4 != 0).then_some(DataRate::from_kilobits_per_second(4 << (value >> 5 & 15))),
            round_trip: (value & 2 != 0).then_some(Duration::from_millis(1 << (value & 7))),
        };
        let (old, new) = (properties(what), properties(value));
        let interface = InterfaceId(u16::from(value >> 6));
        let (from, to) = (Some(InterfaceId(u16::from(what >> 4 & 3))), interface);
        let path = PathId::Interface(interface);
        let style =
            if value & 4 == 0 { HandoverStyle::BreakBeforeMake } else { HandoverStyle::MakeBeforeBreak };
        let within = Duration::from_millis(u64::from(value) * 4);
        let latency = Duration::from_millis(300);
        // Copies by two paths, or one path.
        let beside = (PathId::Interface(InterfaceId(u16::from(what >> 4 & 3))), old);
        let both = [beside, (path, new)];
        let paths = if value & 8 == 0 { &both[1..] } else { &both[..] };
        let mobile = self.names.mobile;
        let handover = |event| Input::Handover { mobile, event };
        let event;
        let input = match what % 10 {
            0 | 1 => Input::Announced { mobile, within, new },
            2 => Input::LinkDown { path },
            3 => Input::LinkUp { path },
            4 => Input::Unreachable { path },
            5..=9 if place != Place::MobileNode => Input::Paths {
                mobile,
                paths: if what & 0x80 == 0 { paths } else { &[] },
                old_lost: [None, Some(true), Some(false)][usize::from(what >> 4) % 3],
                received: told_to_have(self.names.peer, self.ends[at(Towards::Mobile)].received, value),
            },
            5 => {
                let (notice, reason) = (Notice::Ahead(within), HandoverReason::Chosen);
                event = HandoverEvent::Initiated { from, to, notice, reason, style, old, new };
                handover(&event)
            }
            6 => {
                event = HandoverEvent::LinkDown { interface };
                handover(&event)
            }
            7 => {
                event = HandoverEvent::LinkUp { interface };
                handover(&event)
            }
            8 => {
                event = HandoverEvent::Terminated { from, to, duration: latency };
                handover(&event)
            }
            _ => {
                event = HandoverEvent::Registered {
                    from,
                    to,
                    care_of: None,
                    attempts: 1,
                    latency,
                    round_trip: latency,
                    old,
                    new,
                    keeps_old: value & 8 != 0,
                };
                handover(&event)
            }
        };
        self.assistant.handle_event(self.now, &input);
    }

    /// A segment of another flow, maybe of another mobile node, with whatever stands in it.
    fn noise(&mut self, towards: Towards, bytes: &mut Bytes<'_>) {
        let (how, flags) = (bytes.byte(), bytes.byte());
        let mut segment = Segment {
            seq: SeqNumber(bytes.word()),
            ack: SeqNumber(bytes.word()),
            flags: Flags(flags),
            window: u16::from(bytes.byte()) << 8,
            mss: (how & 4 != 0).then_some(u16::from(bytes.byte())),
            window_scale: (how & 8 != 0).then_some(bytes.byte()),
            timestamps: (how & 16 != 0).then_some(Timestamps { value: bytes.word(), echo: 0 }),
            payload_len: u16::from(bytes.byte()),
            ..Segment::default()
        };
        let port = MOBILE_PORT + 1 + u16::from(how & 3);
        (segment.source_port, segment.destination_port) = match towards {
            Towards::Mobile => (PEER_PORT, port),
            Towards::Peer => (port, PEER_PORT),
        };
        let Names { mobile, other, overhead, .. } = self.names;
        let mobile = if how & 32 == 0 { mobile } else { other };
        let header = header(self.names.addresses(towards, mobile), &segment);
        let view = PacketView { header, segment: Some(&segment), is_opaque: how & 0xc0 == 0xc0, overhead };
        let verdict = self.assistant.handle_packet(self.now, towards, None, &view);
        assert!(
            verdict.edit.is_none() || segment.flags.are_of_a_stream() || segment.flags.contains(Flags::SYN),
            "only acknowledgements and SYNs are changed"
        );
        let held = match verdict.fate {
            Fate::Hold(token) => Some(token),
            _ => verdict.keep,
        };
        if let Some(token) = held {
            let before = self.stored.insert(token, (self.incarnation, towards, None));
            assert_eq!(before, None, "{token:?} stands for one packet");
        }
    }

    fn drain(&mut self) {
        let mut done = 0;
        while let Some(action) = self.assistant.poll_action() {
            self.carry_out(&action);
            done += 1;
            assert!(done < MANY, "no end of actions");
        }
        while self.assistant.poll_report().is_some() {}
    }

    fn carry_out(&mut self, action: &Action) {
        match *action {
            Action::Release { token, keep, .. } => {
                let stored = if keep { self.stored.get(&token).copied() } else { self.stored.remove(&token) };
                let (incarnation, towards, segment) = stored.expect("what is released is stored");
                if let Some(segment) = segment.filter(|_| incarnation == self.incarnation) {
                    self.ends[at(towards)].receive(&segment);
                }
            }
            Action::Discard { token, .. } => {
                self.stored.remove(&token).expect("what is discarded is stored");
            }
            Action::Inject { header, segment, towards } => {
                let len = header.header_len() + segment.header_len();
                assert_eq!(header.total_len(), len, "an acknowledgement has no data");
                assert_eq!((segment.flags, segment.payload_len), (Flags::ACK, 0));
                assert_eq!(self.names.mobile.is_ipv6(), matches!(header, IpHeader::V6(_)));
                let follows = match header {
                    IpHeader::V4(header) => header.protocol,
                    IpHeader::V6(header) => header.next_header,
                };
                assert_eq!(follows, protocol::TCP);
                if ![segment.source_port, segment.destination_port].contains(&MOBILE_PORT) {
                    return;
                }
                assert!(!self.is_opaque, "nothing is made up for what cannot be read");
                let end = self.sender(towards);
                assert!(segment.seq.is_at_or_before(end.next), "in the name of who has not sent that much");
                if let Some(stamps) = segment.timestamps {
                    assert!(stamps.value <= end.stamp, "a timestamp that its clock has not reached");
                }
                let is_said = end.said.iter().any(|said| said.ack == segment.ack);
                assert!(is_said || end.ack_left.is_some() || end.was_kept_back);
                self.leave(towards, &segment, None);
            }
            Action::Unreachable { quoted, ports, seq } | Action::TooBig { quoted, ports, seq, .. } => {
                let Names { mobile, other, peer, .. } = self.names;
                let source = quoted.source();
                assert!([mobile, other, peer].contains(&source), "{source} sends nothing");
                let towards = if source == peer { Towards::Mobile } else { Towards::Peer };
                if ports.0 == MOBILE_PORT || ports.1 == MOBILE_PORT {
                    assert!(seq.is_before(self.sender(towards).next), "quotes what was not sent");
                }
            }
        }
    }
}

/// What the mobile node says that it has received: the truth, less, or more.
fn told_to_have(peer: IpAddr, received: SeqNumber, value: u8) -> ReceivedData {
    let off = i32::from(value as i8 / 4) * 500;
    let ack = SeqNumber(received.0.wrapping_add_signed(off));
    let (peer_port, mobile_port) = (PEER_PORT, MOBILE_PORT);
    let echo = (value & 1 != 0).then_some(u32::from(value) << 4);
    let flow = ReceivedFlow { peer, peer_port, mobile_port, ack, echo };
    (value & 2 != 0).then_some(flow).into_iter().collect()
}

fn header(addresses: (IpAddr, IpAddr), segment: &Segment) -> IpHeader {
    let payload_len = segment.header_len() + segment.payload_len;
    match addresses {
        (IpAddr::V4(source), IpAddr::V4(destination)) => IpHeader::V4(Ipv4Header {
            source,
            destination,
            protocol: protocol::TCP,
            ttl: 60,
            payload_len,
            ..Ipv4Header::default()
        }),
        (IpAddr::V6(source), IpAddr::V6(destination)) => IpHeader::V6(Ipv6Header {
            source,
            destination,
            next_header: protocol::TCP,
            hop_limit: 60,
            payload_len,
            ..Ipv6Header::default()
        }),
        _ => panic!("both ends are of one version"),
    }
}
