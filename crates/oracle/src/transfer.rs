//! One transfer over one link that is disturbed by the clock: what stands beside ns-2 in `careof oracle ns2`.
//!
//! Sender - link - receiver, both directions alike: a drop-tail queue, a serialiser, a delay. Segments are lost by
//! their number, everything is lost during outages, and the link may become another at an instant. Losses
//! happen on entry, so that they take no time of the link.
//!
//! Packets are as long as ns-2 makes them - 40 bytes of header, and 8 for each SACK block - and the handshake is ns-2's,
//! a SYN and its answer: the empty acknowledgement behind them is not sent, the first data segment does its work.
//! So both sides keep the same time, as far as ns-2 prints its own (microseconds).

use core::time::Duration;

use careof_base::{DataRate, Instant, RandomStream};
use careof_link::{Config as LinkConfig, Link, Output, QueueConfig, QueueLimit};
use careof_tcp::{Config, ConfigError, Connection, DelayedAck, InitialWindow, Profile, Role};
use careof_wire::{Flags, Segment, SeqNumber};
use serde_json::{Value, json};

/// IP and TCP headers, and a SACK block, in bytes, as ns-2 has them.
const HEADERS: u32 = 40;
const SACK_BLOCK: u32 = 8;
const ISS: SeqNumber = SeqNumber(0);
const SENDER: usize = 0;
const RECEIVER: usize = 1;

/// What is to happen.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Both ends of the connection.
    pub config: Config,
    /// Full-sized segments to send.
    pub segments: u32,
    /// What a SYN takes of the link, bytes.
    pub syn: u32,
    /// The link at the beginning.
    pub path: Path,
    /// Packets that may wait for the link in either direction.
    pub queue: u32,
    /// Segments by number, from 1, and how many of their first transmissions are lost.
    pub drops: Vec<(u32, u32)>,
    /// Nothing passes from the first instant up to the second.
    pub outages: Vec<(Instant, Instant)>,
    /// The link becomes another.
    pub changes: Vec<(Instant, Path)>,
    /// The end.
    pub until: Instant,
}

/// What a link is like at one time, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Of the serialiser.
    pub rate: DataRate,
    /// One way.
    pub delay: Duration,
}

/// A data segment that the sender handed to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// Its number, from 1.
    pub segment: u32,
    /// The how-manieth time it was sent, from 1.
    pub transmission: u32,
    /// It was lost on entry, or the queue was full.
    pub lost: bool,
    /// The congestion window after it, bytes.
    pub cwnd: u32,
    /// The slow start threshold after it, bytes.
    pub ssthresh: u32,
}

/// Why a description is no scene.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SceneError {
    /// The description is no JSON.
    #[error("the scene is no JSON: {0}")]
    NotJson(String),
    /// A field is missing or of another kind.
    #[error("the scene's `{field}` is {found}; it must be {wanted}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What stands there.
        found: String,
        /// What would be right.
        wanted: &'static str,
    },
    /// The connection cannot be made.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl Scene {
    /// Carries the transfer out.
    ///
    /// # Errors
    /// What [`Config::check`] finds.
    pub fn carry_out(&self) -> Result<Vec<Sent>, ConfigError> {
        let mut world = World::new(self)?;
        world.run();
        Ok(world.sent)
    }

    /// When the change with this index is due.
    fn change(&self, index: usize) -> Option<(Instant, usize)> {
        self.changes.get(index).map(|&(at, _)| (at, index))
    }

    fn link(&self, path: Path) -> LinkConfig {
        let queue = QueueConfig { limit: QueueLimit::Packets(self.queue), ..QueueConfig::default() };
        LinkConfig { rate: path.rate, delay: path.delay, queue, mtu: u16::MAX, ..LinkConfig::default() }
    }
}

struct World<'a> {
    scene: &'a Scene,
    ends: [Connection; 2],
    /// Towards the receiver, towards the sender.
    ways: [Link<Segment>; 2],
    now: Instant,
    /// The next change of each way: when, and which.
    next_change: [Option<(Instant, usize)>; 2],
    transmissions: Vec<u32>,
    sent: Vec<Sent>,
}

impl<'a> World<'a> {
    fn new(scene: &'a Scene) -> Result<Self, ConfigError> {
        let end = |role, iss| Connection::new(scene.config.clone(), role, 1, 2, iss);
        let way = || {
            let stream = || RandomStream::new(0, 0, "nothing here is random");
            Link::new(scene.link(scene.path), stream(), stream(), stream())
        };
        let mut ends = [end(Role::Active, ISS)?, end(Role::Passive, SeqNumber(0))?];
        ends[RECEIVER].open(Instant::ZERO);
        ends[SENDER].open(Instant::ZERO);
        ends[SENDER].write(u64::from(scene.segments) * u64::from(scene.config.mss));
        Ok(Self {
            scene,
            ends,
            ways: [way(), way()],
            now: Instant::ZERO,
            next_change: [scene.change(0); 2],
            transmissions: vec![0; scene.segments as usize],
            sent: Vec::new(),
        })
    }

    fn run(&mut self) {
        self.transmit();
        while let Some(next) = self.next()
            && next <= self.scene.until
        {
            self.now = next;
            self.change();
            for way in 0..2 {
                while let Some(output) = self.ways[way].poll(next) {
                    if let Output::Delivered { packet, .. } = output {
                        self.ends[1 - way].handle_segment(next, &packet);
                        self.transmit();
                    }
                }
            }
            for end in &mut self.ends {
                end.handle_timeout(next);
            }
            self.transmit();
        }
    }

    fn next(&self) -> Option<Instant> {
        let changes = self.next_change.iter().map(|change| change.map(|(at, _)| at));
        let ways = self.ways.iter().map(Link::next_timeout);
        let ends = self.ends.iter().map(|end| end.next_timeout().map(|(at, _)| at));
        ways.chain(ends).chain(changes).flatten().min()
    }

    /// Makes the changes that are due. As in ns-2, a packet that is being sent is sent as it began: the change waits
    /// for its end.
    fn change(&mut self) {
        for (way, next) in self.ways.iter_mut().zip(&mut self.next_change) {
            while let Some((at, index)) = *next
                && at <= self.now
                && let Some(&(asked, path)) = self.scene.changes.get(index)
            {
                way.advance(self.now);
                match way.sending_until() {
                    Some(end) if at == asked && end > self.now => *next = Some((end, index)),
                    _ => {
                        way.reconfigure(self.now, self.scene.link(path));
                        *next = self.scene.change(index + 1);
                    }
                }
            }
        }
    }

    /// Puts everything on the link that the ends want to send.
    fn transmit(&mut self) {
        for from in [SENDER, RECEIVER] {
            while let Some(sent) = self.ends[from].poll_transmit(self.now) {
                let segment = &sent.segment;
                let handshake_ends = from == SENDER && segment.seq_len() == 0;
                if !handshake_ends && !self.is_lost(from, segment) {
                    let blocks = segment.sack.as_slice().len() as u32;
                    let opens = from == SENDER && segment.flags.contains(Flags::SYN);
                    let size = HEADERS + SACK_BLOCK * blocks + u32::from(segment.payload_len);
                    let size = if opens { self.scene.syn } else { size };
                    let refused = self.ways[from].enqueue(self.now, sent.segment, size).is_err();
                    if from == SENDER
                        && sent.segment.payload_len > 0
                        && let Some(last) = self.sent.last_mut()
                    {
                        last.lost = refused;
                    }
                }
            }
            while self.ends[from].poll_event().is_some() {}
        }
    }

    fn is_lost(&mut self, from: usize, segment: &Segment) -> bool {
        let dark = self.scene.outages.iter().any(|outage| outage.0 <= self.now && self.now < outage.1);
        if from != SENDER || segment.payload_len == 0 {
            return dark;
        }
        let index = segment.seq.bytes_since(ISS.plus(1)) / u32::from(self.scene.config.mss);
        let Some(transmission) = self.transmissions.get_mut(index as usize) else { return dark };
        *transmission += 1;
        let (segment, transmission) = (index + 1, *transmission);
        let listed = self.scene.drops.iter().any(|drop| drop.0 == segment && transmission <= drop.1);
        let lost = dark || listed;
        let state = self.ends[from].snapshot();
        let (cwnd, ssthresh) = (state.cwnd, state.ssthresh);
        self.sent.push(Sent { at: self.now, segment, transmission, lost, cwnd, ssthresh });
        lost
    }
}

/// Reads a scene, carries it out and returns the segments sent, each as
/// `[seconds, segment, transmission, lost, cwnd, ssthresh]`, windows in segments.
///
/// # Errors
/// The field that is wrong, or the contradiction in the configuration.
pub fn from_json(description: &str) -> Result<String, SceneError> {
    let value = serde_json::from_str(description).map_err(|error| SceneError::NotJson(error.to_string()))?;
    let scene = scene(&Fields(value))?;
    let mss = f64::from(scene.config.mss);
    let rows = scene.carry_out()?.into_iter().map(|sent| {
        let (cwnd, ssthresh) = (f64::from(sent.cwnd) / mss, f64::from(sent.ssthresh) / mss);
        json!([sent.at.as_secs_f64(), sent.segment, sent.transmission, sent.lost, cwnd, ssthresh])
    });
    Ok(Value::Array(rows.collect()).to_string())
}

/// The scene `from_json` is given: times in nanoseconds, windows in segments.
fn scene(fields: &Fields) -> Result<Scene, SceneError> {
    let mss = fields.whole("mss", u64::from(u16::MAX))? as u16;
    let in_bytes = |segments: u64| u32::try_from(segments * u64::from(mss)).unwrap_or(u32::MAX);
    let window = in_bytes(fields.whole("window", 1 << 20)?);
    let config = Config {
        mss,
        receive_window: window,
        window_scaling: window > u32::from(u16::MAX),
        initial_window: InitialWindow::Segments(fields.whole("initial_window", 1_000)? as u32),
        initial_ssthresh: window,
        delayed_ack: DelayedAck::Off,
        limited_transmit: fields.flag("limited_transmit")?,
        careful: fields.flag("careful")?,
        ..Config::from(fields.profile()?)
    };
    Ok(Scene {
        config,
        segments: fields.whole("segments", 1_000_000)? as u32,
        syn: fields.whole("syn", u64::from(u16::MAX))? as u32,
        path: Path {
            rate: DataRate::from_bits_per_second(fields.whole("rate", u64::MAX)?),
            delay: Duration::from_nanos(fields.whole("delay", u64::MAX)?),
        },
        queue: fields.whole("queue", u64::from(u32::MAX))? as u32,
        drops: fields.rows("drops")?.into_iter().map(|[at, n]| (at as u32, n as u32)).collect(),
        outages: fields
            .rows("outages")?
            .into_iter()
            .map(|[from, until]| (Instant::from_nanos(from), Instant::from_nanos(until)))
            .collect(),
        changes: fields
            .rows("changes")?
            .into_iter()
            .map(|[at, rate, delay]| {
                let rate = DataRate::from_bits_per_second(rate);
                (Instant::from_nanos(at), Path { rate, delay: Duration::from_nanos(delay) })
            })
            .collect(),
        until: Instant::from_nanos(fields.whole("until", u64::MAX)?),
    })
}

/// A JSON object whose fields are asked for one by one.
struct Fields(Value);

impl Fields {
    fn wrong(&self, field: &'static str, wanted: &'static str) -> SceneError {
        let found = self.0.get(field).map_or_else(|| "missing".to_owned(), ToString::to_string);
        SceneError::Field { field, found, wanted }
    }

    fn whole(&self, field: &'static str, most: u64) -> Result<u64, SceneError> {
        let found = self.0.get(field).and_then(Value::as_u64).filter(|number| *number <= most);
        found.ok_or_else(|| self.wrong(field, "a whole number within its bounds"))
    }

    fn flag(&self, field: &'static str) -> Result<bool, SceneError> {
        self.0.get(field).and_then(Value::as_bool).ok_or_else(|| self.wrong(field, "true or false"))
    }

    fn profile(&self) -> Result<Profile, SceneError> {
        let name = self.0.get("profile").and_then(Value::as_str);
        name.and_then(Profile::from_name).ok_or_else(|| self.wrong("profile", "the name of a profile"))
    }

    fn rows<const N: usize>(&self, field: &'static str) -> Result<Vec<[u64; N]>, SceneError> {
        let wrong = || self.wrong(field, "a list of rows of whole numbers");
        let row = |row: &Value| -> Option<[u64; N]> {
            let numbers: Option<Vec<u64>> = row.as_array()?.iter().map(Value::as_u64).collect();
            numbers?.try_into().ok()
        };
        let rows = self.0.get(field).and_then(Value::as_array).ok_or_else(wrong)?;
        rows.iter().map(|value| row(value).ok_or_else(wrong)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scene of a sack sender over 10 Mbit/s and 50 ms, with `more` in place of what stands there.
    fn scene(more: &Value) -> Value {
        let mut scene = json!({
            "profile": "sack", "mss": 1_000, "window": 20, "initial_window": 1, "limited_transmit": true,
            "careful": true, "segments": 100, "syn": 40, "rate": 10_000_000, "delay": 50_000_000, "queue": 1_000,
            "drops": [], "outages": [], "changes": [], "until": 60_000_000_000_u64,
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            scene[key] = value.clone();
        }
        scene
    }

    fn sent(more: &Value) -> Vec<(f64, u64, u64)> {
        let rows: Value = serde_json::from_str(&from_json(&scene(more).to_string()).unwrap()).unwrap();
        let row = |row: &Value| Some((row[0].as_f64()?, row[1].as_u64()?, row[2].as_u64()?));
        rows.as_array().unwrap().iter().map(|value| row(value).unwrap()).collect()
    }

    fn again(sent: &[(f64, u64, u64)]) -> Vec<u64> {
        sent.iter().filter(|row| row.2 > 1).map(|row| row.1).collect()
    }

    #[test]
    fn nothing_lost_is_nothing_repeated_and_times_are_those_of_the_link() {
        let sent = sent(&json!({}));
        assert_eq!(sent.len(), 100);
        assert!(again(&sent).is_empty());
        // A SYN and its answer take 32 us each and 50 ms; then a segment of 832 us and its acknowledgement.
        assert_eq!(sent[0].0, 0.100_064);
        assert_eq!(sent[1].0, 0.100_064 + 0.100_864);
    }

    #[test]
    fn listed_transmissions_are_lost_and_no_others() {
        assert_eq!(again(&sent(&json!({ "drops": [[40, 1], [42, 1]] }))), [40, 42]);
        let twice = sent(&json!({ "drops": [[40, 2]] }));
        assert_eq!(again(&twice), [40, 40]);
        assert!(twice.windows(2).any(|pair| pair[1].0 - pair[0].0 > 0.8), "no timeout");
    }

    #[test]
    fn what_a_full_queue_drops_is_lost_and_sent_again() {
        let scene =
            scene(&json!({ "queue": 4, "window": 40, "profile": "tahoe", "limited_transmit": false }));
        let rows: Value = serde_json::from_str(&from_json(&scene.to_string()).unwrap()).unwrap();
        let lost: Vec<u64> = rows
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row[3] == true)
            .map(|row| row[1].as_u64().unwrap())
            .collect();
        assert!(!lost.is_empty());
        let again =
            again(&sent(&json!({ "queue": 4, "window": 40, "profile": "tahoe", "limited_transmit": false })));
        assert!(lost.iter().all(|segment| again.contains(segment)), "{lost:?} {again:?}");
    }

    #[test]
    fn in_an_outage_nothing_passes_in_either_direction() {
        let sent = sent(&json!({ "outages": [[400_000_000, 3_000_000_000_u64]] }));
        // What was under way when it began has arrived 50 ms later.
        let in_vain = sent.iter().filter(|row| (0.455..3.0).contains(&row.0));
        assert!(in_vain.clone().all(|row| row.2 > 1) && in_vain.count() == 1, "{sent:?}");
        assert_eq!(sent.iter().filter(|row| row.2 == 1).count(), 100);
    }

    #[test]
    fn a_change_waits_for_the_packet_that_is_being_sent() {
        // Sixteen packets stand in a row at 0.7 s; from then on one takes 8.32 ms.
        let sent = sent(&json!({ "changes": [[703_000_000, 1_000_000, 50_000_000]], "segments": 200 }));
        let last = sent.last().unwrap();
        assert_eq!(last.1, 200);
        let slow: Vec<f64> = sent.windows(2).map(|pair| pair[1].0 - pair[0].0).rev().take(10).collect();
        assert!(slow.iter().all(|gap| (gap - 0.008_32).abs() < 1e-9), "{slow:?}");
    }

    #[test]
    fn what_is_wrong_with_a_scene_is_named() {
        let error = |more: &Value| from_json(&scene(more).to_string()).unwrap_err().to_string();
        assert_eq!(
            error(&json!({ "profile": "fast" })),
            "the scene's `profile` is \"fast\"; it must be the name of a profile"
        );
        assert_eq!(
            error(&json!({ "drops": [[1]] })),
            "the scene's `drops` is [[1]]; it must be a list of rows of whole numbers"
        );
        assert!(error(&json!({ "mss": 10 })).contains("mss is 10 bytes"));
        assert!(from_json("no").unwrap_err().to_string().contains("no JSON"));
    }
}
