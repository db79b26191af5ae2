//! A language for scripts, so that a test reads like the diagram of what it tests.
//!
//! ```text
//!     0  syn                          both SYNs pass: segments of 1000 bytes, scale 7, SACK, timestamps
//!     0  syn-from mobile              a SYN alone, with `mss 1460` for another segment size; `syn-answer` is the peer's
//!    10  for mobile 0+1000            -> pass keep
//!    60  from mobile ack 1000         -> pass
//!   100  for mobile 1000+1000 again   -> pass keep
//!   900  path 2 rate 10000 rtt 100    packets go by path 2 now: kbit/s, ms; `lost`: the old one's are lost, `has 2000`:
//!                                     the mobile node says that it has so much, with `echo` its timestamp
//!   900  path 1 rate 10000 beside 2    packets go by both, the newest last; `terminated 1 2` ends that at the mobile node
//!   900  handed-over 2 rate 10000     path 2 leads to the former access router; `registered 1 2`: the home agent knows it
//!   900  > release 1000+1000          what the assistant does, in order
//!        = kept 1
//! ```
//!
//! Times are milliseconds. Sequence numbers are relative to the first byte. Whatever the assistant does must stand in
//! the script at its time (`>`), but for copies that it forgets. What is sent `for` an end is data, what comes `from` one is an
//! acknowledgement without data; `again` says that the data were sent before, with a younger timestamp. `flow 2` is another
//! connection, `by 1` the path that a packet takes, `stamp` and `echo` its timestamps; `syn plain` permits no SACK,
//! `other mobile 500` is a datagram of 500 bytes for it that is none of TCP, and `before 1000` is a segment without data of the number in front of that, like a keep-alive.
//!
//! A script holds over IPv4 and over IPv6, where headers are 20 bytes longer, the tunnel's too: [`Script::new`] runs it over both. Where
//! that makes a difference, `1006/1492` is a number for each; and [`Script::over`] runs a script over one of them only.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use alloc::boxed::Box;
use careof_base::{DataRate, Instant};
use careof_mobility::{HandoverEvent, HandoverReason, HandoverStyle, InterfaceId, Notice, PathProperties};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::Ipv6Header;
use careof_wire::{Flags, IpHeader, ReceivedData, ReceivedFlow, Segment, SeqNumber, Timestamps, protocol};

use crate::{Action, Assistant, Config, Edit, Fate, Input, PacketView, PathId, Token, Towards, Verdict};

/// Over which version of IP the ends speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Ipv4,
    Ipv6,
}

impl Over {
    pub(super) const BOTH: [Self; 2] = [Self::Ipv4, Self::Ipv6];

    pub(super) const fn mobile(self) -> IpAddr {
        match self {
            Self::Ipv4 => IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
            Self::Ipv6 => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1)),
        }
    }

    pub(super) const fn peer(self) -> IpAddr {
        match self {
            Self::Ipv4 => IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
            Self::Ipv6 => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 99, 0, 0, 0, 0, 1)),
        }
    }

    /// Source and destination of what goes `towards` an end.
    pub(super) const fn addresses(self, towards: Towards) -> (IpAddr, IpAddr) {
        match towards {
            Towards::Mobile => (self.peer(), self.mobile()),
            Towards::Peer => (self.mobile(), self.peer()),
        }
    }

    /// A line as it stands over this version: of `1006/1492` one.
    fn read(self, line: &str) -> String {
        let one = |word: &'_ str| match (word.split_once('/'), self) {
            (Some((over_ipv4, _)), Self::Ipv4) => over_ipv4.to_string(),
            (Some((_, over_ipv6)), Self::Ipv6) => over_ipv6.to_string(),
            (None, _) => word.to_string(),
        };
        line.split_whitespace().map(one).collect::<Vec<_>>().join(" ")
    }

    /// What a tunnel adds, bytes.
    pub(super) const fn overhead(self) -> u16 {
        match self {
            Self::Ipv4 => 20,
            Self::Ipv6 => 40,
        }
    }
}

/// The mobile node over IPv4.
pub(super) const MOBILE: IpAddr = Over::Ipv4.mobile();
const MOBILE_PORT: u16 = 40_000;
const PEER_PORT: u16 = 80;
/// The first byte of each end; near the wrap, so that every script of some length crosses it.
pub(super) const FIRST: SeqNumber = SeqNumber(u32::MAX - 2_500);

pub(super) struct Script {
    pub(super) assistant: Assistant,
    over: Over,
    /// The same over the other version.
    twin: Option<Box<Self>>,
    now: Instant,
    /// What is stored, by token: how it reads.
    stored: BTreeMap<Token, String>,
    done: VecDeque<(Instant, String)>,
    /// The window in segments with data, as it stands in the header.
    pub(super) data_window: u16,
    /// Without the timestamps option.
    pub(super) timestamps: bool,
    /// The next segments carry options that cannot be read.
    pub(super) opaque: bool,
    /// The care-of address by which packets go that are said to go by no path.
    pub(super) care_of: Option<IpAddr>,
    line: String,
    /// Which connection the line is about, and the path that its packet takes.
    flow: u16,
    path: Option<PathId>,
}

fn ms(instant: Instant) -> u128 {
    instant.since_start().as_millis()
}

/// A path, by its number.
pub(super) const fn path(number: u16) -> PathId {
    PathId::Interface(InterfaceId(number))
}

impl Script {
    /// A script that holds over both versions. What is looked at from outside is that over IPv4.
    pub(super) fn new(config: Config) -> Self {
        let twin = Some(Box::new(Self::over(Over::Ipv6, config.clone())));
        Self { twin, ..Self::over(Over::Ipv4, config) }
    }

    /// A script over one version.
    pub(super) fn over(over: Over, config: Config) -> Self {
        Self {
            assistant: Assistant::new(config).expect("the script's configuration holds together"),
            over,
            twin: None,
            now: Instant::ZERO,
            stored: BTreeMap::new(),
            done: VecDeque::new(),
            data_window: 1_000,
            timestamps: true,
            opaque: false,
            care_of: None,
            line: String::new(),
            flow: 1,
            path: None,
        }
    }

    /// Runs the script and checks that nothing else was done.
    pub(super) fn run(&mut self, script: &str) {
        for line in script.lines() {
            let line = self.over.read(line);
            if !line.is_empty() {
                self.line.clone_from(&line);
                self.step(&line);
            }
        }
        assert!(self.done.is_empty(), "not in the script: {:?}", self.done);
        if let Some(twin) = self.twin() {
            twin.run(script);
        }
    }

    /// The twin, set up likewise.
    fn twin(&mut self) -> Option<&mut Self> {
        let twin = self.twin.as_deref_mut()?;
        (twin.data_window, twin.timestamps, twin.opaque) = (self.data_window, self.timestamps, self.opaque);
        Some(twin)
    }

    /// Runs the script, and tells what was done instead of checking it.
    pub(super) fn run_and_tell(&mut self, script: &str) -> Vec<String> {
        script.lines().for_each(|line| {
            let line = self.over.read(line);
            self.line.clone_from(&line);
            self.step(&line);
        });
        let told = self.done.drain(..).map(|(_, what)| what).collect();
        if let Some(twin) = self.twin() {
            assert_eq!(twin.run_and_tell(script), told, "over IPv6 as over IPv4");
        }
        told
    }

    fn step(&mut self, line: &str) {
        if let Some(state) = line.strip_prefix("= ") {
            return self.check(state);
        }
        let (at, rest) = line.split_once(char::is_whitespace).unwrap_or_else(|| panic!("no time: {line}"));
        let at: u64 = at.parse().unwrap_or_else(|_| panic!("`{at}` is not a time in ms: {line}"));
        self.run_until(Instant::from_millis(at).max(self.now.min(Instant::from_millis(at + 1))));
        let rest = rest.trim();
        if let Some(expected) = rest.strip_prefix("> ") {
            // Within its millisecond.
            while self.done.is_empty()
                && let Some((due, _)) = self.assistant.next_timeout()
                && ms(due) == u128::from(at)
            {
                self.run_until(due);
            }
            let (when, what) = self.done.pop_front().unwrap_or_else(|| panic!("nothing was done: {line}"));
            assert_eq!(
                (ms(when), what.as_str()),
                (u128::from(at), words(expected).join(" ").as_str()),
                "{line}"
            );
            return;
        }
        let (input, expected) = match rest.split_once("->") {
            Some((input, expected)) => (input, Some(words(expected).join(" "))),
            None => (rest, None),
        };
        let input = words(input);
        self.flow = number(&input, "flow").map_or(1, |flow| flow as u16);
        self.path = number(&input, "by").map(|number| path(number as u16));
        self.path = self.path.or(self.care_of.map(PathId::CareOf));
        match input.as_slice() {
            ["syn", rest @ ..] => {
                for (towards, is_answer) in [(Towards::Peer, false), (Towards::Mobile, true)] {
                    let found = self.syn(towards, is_answer, !rest.contains(&"plain"), 1_000);
                    assert_eq!(found, "pass", "a SYN passes");
                }
            }
            ["syn-from", end, rest @ ..] => {
                let mss = number(rest, "mss").map_or(1_000, |mss| mss as u16);
                let found = self.syn(towards(end).back(), rest.contains(&"answers"), true, mss);
                assert_eq!(found, expected.as_deref().unwrap_or("pass"), "{line}");
            }
            ["syn-answer"] => {
                assert_eq!(self.syn(Towards::Mobile, true, true, 1_000), "pass", "a SYN passes")
            }
            ["other", end, size] => {
                // Of its version's header and so much in it that it is of that size.
                let size = size.parse::<u16>().expect("a length");
                let header = match self.over.addresses(towards(end)) {
                    (IpAddr::V4(source), IpAddr::V4(destination)) => {
                        let payload_len = size - Ipv4Header::LEN;
                        Ipv4Header { source, destination, payload_len, ..Ipv4Header::default() }.into()
                    }
                    (IpAddr::V6(source), IpAddr::V6(destination)) => {
                        let payload_len = size - Ipv6Header::LEN;
                        Ipv6Header { source, destination, payload_len, ..Ipv6Header::default() }.into()
                    }
                    _ => unreachable!("the ends are of one version"),
                };
                let overhead = self.over.overhead();
                let view = PacketView { header, segment: None, is_opaque: false, overhead };
                let found = self.show(towards(end), &view, "other");
                assert_eq!(Some(found), expected, "{line}");
            }
            ["for", end, what, rest @ ..] => {
                let found = self.data(towards(end), what, rest);
                assert_eq!(Some(found), expected, "{line}");
            }
            ["from", end, rest @ ..] => {
                let found = self.acknowledgement(towards(end).back(), rest);
                assert_eq!(Some(found), expected, "{line}");
            }
            ["path", rest @ ..] => {
                // Newest last, `beside` between them.
                let one = |words: &[&str]| {
                    let (number, rest) = words.split_first().expect("a number");
                    (path(number.parse().expect("a number")), properties(rest))
                };
                let paths: Vec<_> = input[1..].split(|word| *word == "beside").map(one).collect();
                let old_lost = if rest.contains(&"lost") {
                    Some(true)
                } else if rest.contains(&"alive") {
                    Some(false)
                } else {
                    None
                };
                let received = self.told(rest);
                let mobile = self.over.mobile();
                self.hand_in(&Input::Paths { mobile, paths: &paths, old_lost, received });
            }
            ["down", number] => {
                self.hand_in(&Input::LinkDown { path: path(number.parse().expect("a number")) });
            }
            ["up", number] => {
                self.hand_in(&Input::LinkUp { path: path(number.parse().expect("a number")) });
            }
            ["initiated", from, to] => {
                let interface = |number: &str| InterfaceId(number.parse().expect("a number"));
                let event = HandoverEvent::Initiated {
                    from: Some(interface(from)),
                    to: interface(to),
                    notice: Notice::None,
                    reason: HandoverReason::NotWorking,
                    style: HandoverStyle::BreakBeforeMake,
                    old: PathProperties::default(),
                    new: PathProperties::default(),
                };
                self.hand_in(&Input::Handover { mobile: self.over.mobile(), event: &event });
            }
            ["link-up", number] => {
                let interface = InterfaceId(number.parse().expect("a number"));
                let (mobile, event) = (self.over.mobile(), HandoverEvent::LinkUp { interface });
                self.hand_in(&Input::Handover { mobile, event: &event });
            }
            ["announced", within, rest @ ..] => {
                let within = Duration::from_millis(within.parse().expect("a time in ms"));
                let (mobile, new) = (self.over.mobile(), properties(rest));
                self.hand_in(&Input::Announced { mobile, within, new });
            }
            ["handed-over", number, rest @ ..] => {
                let path = path(number.parse().expect("a number"));
                let (mobile, new) = (self.over.mobile(), properties(rest));
                self.hand_in(&Input::HandedOver { mobile, path, new });
            }
            ["registered", from, to, rest @ ..] => {
                // Behind `beside` stands what the old path is, where its binding is kept.
                let mut parts = rest.split(|word| *word == "beside");
                let (new, old) = (parts.next().unwrap_or_default(), parts.next());
                let interface = |number: &str| InterfaceId(number.parse().expect("a number"));
                let event = HandoverEvent::Registered {
                    from: Some(interface(from)),
                    to: interface(to),
                    care_of: Some(()),
                    attempts: 1,
                    latency: Duration::ZERO,
                    round_trip: Duration::ZERO,
                    old: properties(old.unwrap_or_default()),
                    new: properties(new),
                    keeps_old: old.is_some(),
                };
                self.hand_in(&Input::Handover { mobile: self.over.mobile(), event: &event });
            }
            ["terminated", from, to] => {
                let interface = |number: &str| InterfaceId(number.parse().expect("a number"));
                let (from, to) = (Some(interface(from)), interface(to));
                let event = HandoverEvent::Terminated { from, to, duration: Duration::ZERO };
                self.hand_in(&Input::Handover { mobile: self.over.mobile(), event: &event });
            }
            ["outdated"] => {
                let (mobile, peer) = (self.over.mobile(), self.over.peer());
                self.hand_in(&Input::Outdated { mobile, peers: &[peer] });
            }
            ["updated"] => {
                let (mobile, peer) = (self.over.mobile(), self.over.peer());
                self.hand_in(&Input::Updated { mobile, peer });
            }
            ["wait"] => {}
            _ => panic!("not a line of the language: {line}"),
        }
    }

    fn check(&self, state: &str) {
        let (packets, bytes) = self.assistant.load();
        let found = match state.split_whitespace().next() {
            Some("kept") => format!("kept {packets}"),
            Some("bytes") => format!("bytes {bytes}"),
            Some("flows") => format!("flows {}", self.assistant.flows().count()),
            _ => panic!("not a state: {state}"),
        };
        assert_eq!(found, state.trim(), "at {} ms", ms(self.now));
        assert_eq!(self.stored.len(), packets, "tokens stored here and there");
    }

    fn run_until(&mut self, until: Instant) {
        assert!(until >= self.now, "time goes back: {}", self.line);
        while let Some((at, _)) = self.assistant.next_timeout().filter(|(at, _)| *at <= until) {
            self.now = self.now.max(at);
            self.assistant.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
    }

    /// Gives the assistant an event about [`MOBILE`], and one over the other version the same about its mobile node.
    pub(super) fn event(&mut self, input: &Input<'_>) {
        self.hand_in(input);
        if let Some(twin) = self.twin() {
            let mobile = twin.over.mobile();
            twin.hand_in(&match *input {
                Input::Paths { mobile: _, paths, old_lost, received } => {
                    Input::Paths { mobile, paths, old_lost, received }
                }
                Input::Announced { mobile: _, within, new } => Input::Announced { mobile, within, new },
                Input::Handover { mobile: _, event } => Input::Handover { mobile, event },
                Input::HandedOver { mobile: _, path, new } => Input::HandedOver { mobile, path, new },
                other => other,
            });
        }
    }

    fn hand_in(&mut self, input: &Input<'_>) {
        self.assistant.handle_event(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(action) = self.assistant.poll_action() {
            let text = match action {
                Action::Release { token, via, keep } => {
                    let what = match keep {
                        true => self.stored.get(&token).cloned(),
                        false => self.stored.remove(&token),
                    };
                    let what = what.unwrap_or_else(|| panic!("{token:?} is not stored: {}", self.line));
                    match via {
                        None => format!("release {what}"),
                        Some(PathId::Interface(InterfaceId(number))) => format!("release {what} by {number}"),
                        Some(PathId::CareOf(care_of)) => format!("release {what} by {care_of}"),
                    }
                }
                Action::Discard { token, dropped } => {
                    let what = self.stored.remove(&token);
                    let what = what.unwrap_or_else(|| panic!("{token:?} is not stored: {}", self.line));
                    let Some(reason) = dropped else { continue };
                    format!("drop {what} {}", reason.name())
                }
                Action::Inject { header, segment, towards } => {
                    let addresses = self.over.addresses(towards);
                    assert_eq!((header.source(), header.destination()), addresses, "{}", self.line);
                    let len = header.header_len() + segment.header_len();
                    assert_eq!(header.total_len(), len, "an acknowledgement has no data");
                    let end = if towards == Towards::Mobile { "mobile" } else { "peer" };
                    let mut text =
                        format!("ack {} win {} for {end}", segment.ack.bytes_since(FIRST), segment.window);
                    for (left, right) in segment.sack.as_slice() {
                        text += &format!(" sack {}-{}", left.bytes_since(FIRST), right.bytes_since(FIRST));
                    }
                    text
                }
                Action::Unreachable { quoted, seq, .. } => {
                    let to = if quoted.source() == self.over.peer() { "peer" } else { "mobile" };
                    format!("unreachable {} for {to}", seq.bytes_since(FIRST))
                }
                Action::TooBig { quoted, seq, mtu, .. } => {
                    let to = if quoted.source() == self.over.peer() { "peer" } else { "mobile" };
                    format!("too-large {} mtu {mtu} for {to}", seq.bytes_since(FIRST))
                }
            };
            self.done.push_back((self.now, text));
        }
        while self.assistant.poll_report().is_some() {}
    }

    fn syn(&mut self, towards: Towards, is_answer: bool, sack_permitted: bool, mss: u16) -> String {
        let flags = if is_answer { Flags::SYN.with(Flags::ACK) } else { Flags::SYN };
        let segment = Segment {
            flags,
            seq: FIRST.minus(1),
            ack: if is_answer { FIRST } else { SeqNumber(0) },
            mss: Some(mss),
            window_scale: Some(7),
            sack_permitted,
            window: 65_535,
            ..Segment::default()
        };
        self.packet(towards, segment, "syn", &[])
    }

    fn data(&mut self, towards: Towards, what: &str, rest: &[&str]) -> String {
        let (seq, len) = what.split_once('+').expect("data are SEQ+LENGTH");
        let mut flags = Flags::ACK;
        if rest.contains(&"fin") {
            flags = flags.with(Flags::FIN);
        }
        let segment = Segment {
            flags,
            seq: FIRST.plus(seq.parse().expect("a sequence number")),
            ack: FIRST,
            window: self.data_window,
            payload_len: len.parse().expect("a length"),
            ..Segment::default()
        };
        let again = if rest.contains(&"again") { " again" } else { "" };
        let flow = if self.flow == 1 { String::new() } else { format!(" flow {}", self.flow) };
        self.packet(towards, segment, &format!("{what}{again}{flow}"), rest)
    }

    fn acknowledgement(&mut self, towards: Towards, rest: &[&str]) -> String {
        let value = |word: &str| number(rest, word);
        let mut segment = Segment {
            flags: Flags::ACK,
            seq: FIRST,
            ack: FIRST.plus(value("ack").expect("ack NUMBER")),
            window: value("win").map_or(1_000, |window| window as u16),
            ..Segment::default()
        };
        if let Some(at) = rest.iter().position(|found| *found == "sack") {
            for (left, right) in rest[at + 1..].iter().map_while(|block| block.split_once('-')) {
                let edge = |text: &str| FIRST.plus(text.parse().expect("a sequence number"));
                segment.sack.push(edge(left), edge(right));
            }
        }
        if let Some(before) = value("before") {
            segment.seq = FIRST.plus(before).minus(1);
        }
        self.packet(towards, segment, "ack", rest)
    }

    /// What the mobile node says that it has: `has NUMBER`, and `echo STAMP` with it.
    fn told(&self, rest: &[&str]) -> ReceivedData {
        let flow = |ack| ReceivedFlow {
            peer: self.over.peer(),
            peer_port: PEER_PORT,
            mobile_port: MOBILE_PORT + self.flow - 1,
            ack: FIRST.plus(ack),
            echo: number(rest, "echo"),
        };
        number(rest, "has").map(flow).into_iter().collect()
    }

    fn packet(&mut self, towards: Towards, mut segment: Segment, what: &str, rest: &[&str]) -> String {
        if self.timestamps {
            let value = number(rest, "stamp").unwrap_or(ms(self.now) as u32);
            segment.timestamps = Some(Timestamps { value, echo: number(rest, "echo").unwrap_or(0) });
        }
        let mobile_port = MOBILE_PORT + self.flow - 1;
        (segment.source_port, segment.destination_port) = match towards {
            Towards::Mobile => (PEER_PORT, mobile_port),
            Towards::Peer => (mobile_port, PEER_PORT),
        };
        let header = header_of(self.over.addresses(towards), &segment);
        let overhead = self.over.overhead();
        let view = PacketView { header, segment: Some(&segment), is_opaque: self.opaque, overhead };
        self.show(towards, &view, what)
    }

    fn show(&mut self, towards: Towards, view: &PacketView<'_>, what: &str) -> String {
        let verdict = self.assistant.handle_packet(self.now, towards, self.path, view);
        let Verdict { fate, keep, edit, fragments } = verdict;
        let mut text = match fate {
            Fate::Pass => "pass".to_string(),
            Fate::Hold(token) => {
                self.stored.insert(token, what.to_string());
                "hold".to_string()
            }
            Fate::Drop(reason) => format!("drop {}", reason.name()),
        };
        if let Some(token) = keep {
            self.stored.insert(token, what.to_string());
            text += " keep";
        }
        if let Some(Edit { window, ack, without_sack, mss }) = edit {
            if let Some(mss) = mss {
                text += &format!(" mss {mss}");
            }
            if let Some(window) = window {
                text += &format!(" win {window}");
            }
            if let Some(ack) = ack {
                text += &format!(" ack {}", ack.bytes_since(FIRST));
            }
            if without_sack {
                text += " without sack";
            }
        }
        if let Some(longest) = fragments {
            text += &format!(" fragments {longest}");
        }
        self.drain();
        text
    }
}

/// The IP header of a segment.
pub(super) fn header_of(addresses: (IpAddr, IpAddr), segment: &Segment) -> IpHeader {
    let payload_len = segment.header_len() + segment.payload_len;
    match addresses {
        (IpAddr::V4(source), IpAddr::V4(destination)) => IpHeader::V4(Ipv4Header {
            source,
            destination,
            protocol: protocol::TCP,
            ttl: 63,
            dont_fragment: true,
            payload_len,
            ..Ipv4Header::default()
        }),
        (IpAddr::V6(source), IpAddr::V6(destination)) => IpHeader::V6(Ipv6Header {
            source,
            destination,
            next_header: protocol::TCP,
            hop_limit: 63,
            payload_len,
            ..Ipv6Header::default()
        }),
        _ => unreachable!("both ends are of one version"),
    }
}

fn towards(end: &str) -> Towards {
    match end {
        "mobile" => Towards::Mobile,
        "peer" => Towards::Peer,
        _ => panic!("`{end}` is neither mobile nor peer"),
    }
}

/// The number behind a word.
fn number(words: &[&str], word: &str) -> Option<u32> {
    let at = words.iter().position(|found| *found == word)?;
    words.get(at + 1).map(|value| value.parse().expect("a number"))
}

/// The words of a line, up to a comment behind two blanks and a `#`.
fn words(text: &str) -> Vec<&str> {
    text.split('#').next().unwrap_or_default().split_whitespace().collect()
}

fn properties(words: &[&str]) -> PathProperties {
    let value = |word: &str| {
        let at = words.iter().position(|found| *found == word)?;
        words.get(at + 1).map(|value| value.parse::<u64>().expect("a number"))
    };
    PathProperties {
        downlink: value("rate").map(DataRate::from_kilobits_per_second),
        uplink: value("rate").map(DataRate::from_kilobits_per_second),
        round_trip: value("rtt").map(Duration::from_millis),
    }
}
