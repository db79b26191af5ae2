//! A language for packet scripts, so that a test reads like the diagram of what it tests.
//!
//! ```text
//!     0  write 3000            the application writes
//!     0  > 0+1000              the connection sends 1000 bytes from sequence number 0
//!   100  < ack 1000            an acknowledgement arrives
//!        = cwnd 3              the window is three segments now
//!   300  > 1000+1000 again     a retransmission
//! ```
//!
//! Times are milliseconds after the handshake; each line happens no earlier than the one before. Sequence numbers
//! are relative to the first byte. Whatever the connection sends must stand in the script, at its time:
//! a segment that does not, or one that is missing, fails the test. The peer's bytes are written the same way:
//! `< 0+1000 ack 0` is data, `> ack 1000 sack 2000-3000` what the connection answers.

use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::{Flags, SackBlocks, Segment, SeqNumber, Timestamps};

use crate::{Advice, Config, Connection, Event, NewPath, Role, Transmission};

pub(super) const ISS: SeqNumber = SeqNumber(u32::MAX - 7_000);
pub(super) const PEER_ISS: SeqNumber = SeqNumber(900_000);
/// When the handshake is complete: script time 0.
pub(super) const BASE: Instant = Instant::from_secs(10);

/// What the peer offers in its SYN.
pub(super) struct Peer {
    pub(super) mss: u16,
    pub(super) window: u16,
    pub(super) shift: Option<u8>,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    /// Takes part in congestion notification.
    pub(super) ecn: bool,
    /// Round trip of the handshake.
    pub(super) rtt: Duration,
}

impl Default for Peer {
    fn default() -> Self {
        Self {
            mss: 1_000,
            window: 65_535,
            shift: None,
            sack: false,
            timestamps: false,
            ecn: false,
            rtt: Duration::from_millis(100),
        }
    }
}

pub(super) struct Script {
    pub(super) connection: Connection,
    now: Instant,
    sent: VecDeque<(Instant, Transmission)>,
    pub(super) events: Vec<Event>,
    window: u16,
    timestamps: bool,
    last_value: u32,
    /// The segment to be delivered has met congestion.
    marked: bool,
    line: String,
}

/// A configuration for scripts: segments of 1000 bytes, no delayed acknowledgements, one-segment first window,
/// an RTO floor out of the way.
pub(super) fn plain() -> Config {
    Config {
        mss: 1_000,
        rto_min: Some(Duration::from_millis(1)),
        delayed_ack: crate::DelayedAck::Off,
        initial_window: crate::InitialWindow::Segments(1),
        window_validation: false,
        nagle: false,
        ..Config::default()
    }
}

/// Connects with `config` to `peer` and plays `text`.
pub(super) fn play(config: Config, peer: &Peer, text: &str) -> Script {
    let mut script = Script::connected(config, peer);
    script.play(text);
    script
}

impl Script {
    /// Like [`Script::connected`], but the SYN is repeated once before the answer comes.
    pub(super) fn late(config: Config, peer: &Peer) -> Self {
        Self::connect(config, peer, 1)
    }

    pub(super) fn connected(config: Config, peer: &Peer) -> Self {
        Self::connect(config, peer, 0)
    }

    fn connect(config: Config, peer: &Peer, repetitions: usize) -> Self {
        let connection = Connection::new(config, Role::Active, 1_000, 2_000, ISS).unwrap();
        let mut script = Self {
            connection,
            now: BASE.saturating_sub(peer.rtt),
            sent: VecDeque::new(),
            events: Vec::new(),
            window: peer.window,
            timestamps: false,
            last_value: 0,
            marked: false,
            line: "handshake".to_string(),
        };
        script.connection.open(script.now);
        script.drain();
        let (_, syn) = script.sent.pop_front().expect("a SYN");
        let offer =
            if script.connection.config().ecn { Flags::ECE.with(Flags::CWR) } else { Flags::default() };
        assert_eq!(syn.segment.flags, Flags::SYN.with(offer));
        script.timestamps = peer.timestamps && syn.segment.timestamps.is_some();
        script.advance(BASE);
        assert_eq!(script.sent.drain(..).filter(|sent| sent.1.retransmission).count(), repetitions);
        let mut reply = script.segment();
        reply.seq = PEER_ISS;
        reply.ack = ISS.plus(1);
        reply.flags = Flags::SYN.with(Flags::ACK);
        if peer.ecn {
            reply.flags = reply.flags.with(Flags::ECE);
        }
        reply.mss = Some(peer.mss);
        reply.window_scale = peer.shift;
        reply.sack_permitted = peer.sack;
        if script.timestamps {
            let echo = syn.segment.timestamps.unwrap().value;
            reply.timestamps = Some(Timestamps { value: script.clock(), echo });
        }
        script.deliver(&reply);
        let (_, ack) = script.sent.pop_front().expect("an acknowledgement of the SYN");
        assert_eq!((ack.segment.flags, ack.segment.ack), (Flags::ACK, PEER_ISS.plus(1)));
        script.remember(&ack);
        script
    }

    pub(super) fn play(&mut self, text: &str) {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            self.line = line.to_string();
            let words: Vec<&str> = line.split_whitespace().collect();
            let words = match words[0].parse::<f64>() {
                Ok(millis) => {
                    self.advance(BASE + Duration::from_nanos((millis * 1e6) as u64));
                    &words[1..]
                }
                Err(_) => &words[..],
            };
            self.perform(words);
        }
        assert!(self.sent.is_empty(), "after the script: {:?}", self.describe_all());
    }

    fn perform(&mut self, words: &[&str]) {
        match words[0] {
            ">" => return self.expect(words),
            "=" => return self.check(&words[1..]),
            _ => {}
        }
        assert!(self.sent.is_empty(), "before `{}`: unexpected {:?}", self.line, self.describe_all());
        match words[0] {
            "<" => {
                let segment = self.parse(&words[1..]);
                self.deliver(&segment);
            }
            "write" => self.connection.write(words[1].parse().unwrap()),
            "read" => {
                self.connection.read(words[1].parse().unwrap());
            }
            "auto-read" => self.connection.set_auto_read(words[1] == "on"),
            "close" => self.connection.close(),
            "abort" => self.connection.abort(),
            "unreachable" => {
                self.connection.icmp_unreachable(self.now, ISS.plus(1).plus(words[1].parse().unwrap()))
            }
            "away" => self.connection.advise(self.now, &Advice::Away),
            "resume" => self.connection.advise(self.now, &Advice::Resume),
            "replaced" => self.connection.advise(self.now, &Advice::Replaced { repeat: true }),
            "moved" => self.connection.advise(self.now, &Advice::Moved(NewPath::default())),
            "mtu" => self.connection.path_mtu_changed(self.now, words[1].parse().unwrap()),
            "silence" => {}
            other => panic!("`{}`: unknown word {other}", self.line),
        }
        self.drain();
    }

    fn expect(&mut self, words: &[&str]) {
        let wanted = words[1..].join(" ");
        let Some((at, sent)) = self.sent.pop_front() else {
            panic!("`{}`: nothing was sent; {:?}", self.line, self.connection.snapshot())
        };
        let sent_text = self.describe(&sent, &wanted);
        assert_eq!(sent_text, wanted, "`{}`", self.line);
        assert_eq!(at, self.now, "`{}`: sent at {:?} ms", self.line, (at - BASE).as_secs_f64() * 1e3);
    }

    fn check(&self, words: &[&str]) {
        let state = self.connection.snapshot();
        let segments = |bytes: u32| f64::from(bytes) / f64::from(state.mss);
        for pair in words.chunks(2) {
            let number = || pair[1].parse::<f64>().unwrap();
            let (found, wanted) = match pair[0] {
                "cwnd" => (segments(state.cwnd), number()),
                "ssthresh" => (segments(state.ssthresh), number()),
                "flight" => (segments(state.flight), number()),
                "mss" => (f64::from(state.mss), number()),
                "rttvar" => (state.rttvar.unwrap().as_secs_f64() * 1e3, number()),
                "rto" => (state.rto.as_secs_f64() * 1e3, number()),
                "srtt" => (state.srtt.unwrap().as_secs_f64() * 1e3, number()),
                "backoff" => (f64::from(state.backoff), number()),
                "received" => (self.connection.received() as f64, number()),
                "phase" => {
                    assert_eq!(state.phase.to_string(), pair[1], "`{}`", self.line);
                    continue;
                }
                "state" => {
                    assert_eq!(state.state.to_string(), pair[1], "`{}`", self.line);
                    continue;
                }
                other => panic!("`{}`: unknown value {other}", self.line),
            };
            assert!((found - wanted).abs() < 2e-3, "`{}`: {} is {found}", self.line, pair[0]);
        }
    }

    fn clock(&self) -> u32 {
        (self.now.as_nanos() / 1_000_000) as u32
    }

    fn segment(&self) -> Segment {
        Segment {
            source_port: 2_000,
            destination_port: 1_000,
            seq: PEER_ISS.plus(1),
            flags: Flags::ACK,
            window: self.window,
            ..Segment::default()
        }
    }

    /// `[SEQ+LEN] [fin] [rst] [syn] [push] [ece] [cwr] [ce] [ack N] [win N] [sack A-B,C-D] [tsval N] [tsecr N]`; `ce` is the
    /// mark in the IP header.
    fn parse(&mut self, words: &[&str]) -> Segment {
        let mut segment = self.segment();
        segment.ack = self.connection.snapshot().snd_una;
        segment.seq = self.connection.rcv_nxt();
        if self.timestamps {
            segment.timestamps = Some(Timestamps { value: self.clock(), echo: self.last_value });
        }
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let mut number = || words.next().unwrap().parse::<u32>().unwrap();
            match word {
                "ack" => segment.ack = ISS.plus(1).plus(number()),
                "win" => {
                    segment.window = number() as u16;
                    self.window = segment.window;
                }
                "tsval" => segment.timestamps.as_mut().unwrap().value = number(),
                "tsecr" => segment.timestamps.as_mut().unwrap().echo = number(),
                "fin" => segment.flags = segment.flags.with(Flags::FIN),
                "rst" => segment.flags = segment.flags.with(Flags::RST),
                "syn" => segment.flags = segment.flags.with(Flags::SYN),
                "push" => segment.flags = segment.flags.with(Flags::PSH),
                "ece" => segment.flags = segment.flags.with(Flags::ECE),
                "cwr" => segment.flags = segment.flags.with(Flags::CWR),
                "ce" => self.marked = true,
                "sack" => {
                    let mut blocks = SackBlocks::EMPTY;
                    for block in words.next().unwrap().split(',') {
                        let (left, right) = block.split_once('-').unwrap();
                        let seq = |text: &str| ISS.plus(1).plus(text.parse().unwrap());
                        blocks.push(seq(left), seq(right));
                    }
                    segment.sack = blocks;
                }
                span => {
                    let (seq, len) = span.split_once('+').unwrap_or_else(|| panic!("`{}`", self.line));
                    segment.seq = PEER_ISS.plus(1).plus(seq.parse().unwrap());
                    segment.payload_len = len.parse().unwrap();
                }
            }
        }
        segment
    }

    /// The segment in the words of the script; window and acknowledgement only where `wanted` names them.
    fn describe(&self, sent: &Transmission, wanted: &str) -> String {
        let segment = &sent.segment;
        let relative = |seq: SeqNumber, base: SeqNumber| seq.0.wrapping_sub(base.plus(1).0) as i32;
        let mut text = String::new();
        let mut word = |piece: String| {
            let _ = write!(text, "{}{piece}", if text.is_empty() { "" } else { " " });
        };
        let stream = segment.payload_len > 0 || sent.probe || segment.flags.contains(Flags::FIN);
        if stream || wanted.contains('+') {
            word(alloc::format!("{}+{}", relative(segment.seq, ISS), segment.payload_len));
        }
        if wanted.contains("ect") && sent.ecn_capable {
            word("ect".to_string());
        }
        for (flag, name) in [
            (Flags::SYN, "syn"),
            (Flags::FIN, "fin"),
            (Flags::RST, "rst"),
            (Flags::ECE, "ece"),
            (Flags::CWR, "cwr"),
        ] {
            if segment.flags.contains(flag) {
                word(name.to_string());
            }
        }
        if sent.retransmission {
            word("again".to_string());
        }
        if sent.probe {
            word("probe".to_string());
        }
        let names_ack = wanted.contains(" ack ") || wanted.starts_with("ack ");
        if names_ack || (!stream && !segment.flags.contains(Flags::RST)) {
            word(alloc::format!("ack {}", relative(segment.ack, PEER_ISS)));
        }
        if wanted.contains("win ") {
            word(alloc::format!("win {}", segment.window));
        }
        if !segment.sack.is_empty() {
            let blocks: Vec<String> = segment
                .sack
                .as_slice()
                .iter()
                .map(|b| alloc::format!("{}-{}", relative(b.0, PEER_ISS), relative(b.1, PEER_ISS)))
                .collect();
            word(alloc::format!("sack {}", blocks.join(",")));
        }
        if wanted.contains("tsecr ") {
            word(alloc::format!("tsecr {}", segment.timestamps.unwrap().echo));
        }
        text
    }

    fn describe_all(&self) -> Vec<String> {
        let describe = |(at, sent): &(Instant, Transmission)| {
            alloc::format!("{} {}", (*at - BASE).as_secs_f64() * 1e3, self.describe(sent, ""))
        };
        self.sent.iter().map(describe).collect()
    }

    /// Timers run out on the way to `until`, and what they cause must be in the script as well.
    fn advance(&mut self, until: Instant) {
        assert!(until >= self.now, "`{}`: time goes back", self.line);
        while let Some((at, _)) = self.connection.next_timeout() {
            if at > until {
                break;
            }
            self.now = at;
            self.connection.handle_timeout(at);
            self.drain();
        }
        self.now = until;
    }

    pub(super) fn deliver(&mut self, segment: &Segment) {
        let marked = core::mem::take(&mut self.marked);
        self.connection.handle_packet(self.now, segment, marked);
        self.drain();
    }

    fn remember(&mut self, sent: &Transmission) {
        if let Some(timestamps) = sent.segment.timestamps {
            self.last_value = timestamps.value;
        }
    }

    fn drain(&mut self) {
        while let Some(sent) = self.connection.poll_transmit(self.now) {
            self.remember(&sent);
            self.sent.push_back((self.now, sent));
            assert!(self.sent.len() < 10_000, "`{}`: sends without end", self.line);
        }
        while let Some(event) = self.connection.poll_event() {
            self.events.push(event);
        }
        self.connection.sender.check();
    }
}
