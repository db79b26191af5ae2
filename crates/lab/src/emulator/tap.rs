//! What passes the ends of links, handed to whoever looks on without keeping the emulator waiting.
//!
//! The emulator's thread writes what it sees into memory of its own. At the end of a turn it moves that, if nobody
//! holds the lock just then, to the memory it shares with the [`Tap`], whose owner takes all of it with one exchange
//! of buffers. All memory is there from the beginning; when it is full, sightings are counted instead of kept.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use careof_base::Instant;
use careof_link::DropCause;

use super::{Direction, LinkId};

/// What happened to a packet at an end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// The link took it in.
    Entered,
    /// It came out at the far end and was handed to the device there.
    Left,
    /// It was not taken in.
    Refused(DropCause),
    /// It had been taken in and was dropped after all.
    Lost(DropCause),
    /// It was not taken in because the emulator held as many packets as it can.
    NoBuffer,
    /// It came out at the far end, whose interface is down or gone.
    Undeliverable,
    /// It was taken out of the queue by a change of the link, and is put on another one next.
    TakenBack,
    /// It was dropped from the queue by a change of the link.
    Discarded,
}

/// A packet at an end of a link.
#[derive(Clone, Copy, Debug)]
pub struct Sighting<'a> {
    /// When, by the emulator's clock.
    pub at: Instant,
    /// The link.
    pub link: LinkId,
    /// Which way it goes.
    pub direction: Direction,
    /// What happened to it.
    pub passage: Passage,
    /// Which packet: two sightings have the same number when they are of one packet on one link, and only then.
    pub number: u64,
    /// Packets in the link's queue after the event.
    pub queue_packets: u32,
    /// Bytes in the link's queue after the event.
    pub queue_bytes: u64,
    /// Length of the packet in bytes.
    pub length: u32,
    /// Its bytes, as many as the tap keeps.
    pub bytes: &'a [u8],
}

/// Bytes of a record in front of the packet's own.
const HEADER: usize = 48;
/// What the emulator can see before it finds the lock free.
const OWN_BYTES: usize = 1 << 20;

/// How a tap works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TapConfig {
    /// Bytes kept of each packet.
    pub snap_length: usize,
    /// Bytes kept between two calls of [`Tap::take`].
    pub capacity: usize,
}

impl Default for TapConfig {
    /// Whole packets, 128 MiB: five seconds of 100 Mbit/s in both directions, for a busy machine leaves whoever looks on behind for as long.
    /// Of this memory no more is taken from the system than was once needed.
    fn default() -> Self {
        Self { snap_length: 1 << 16, capacity: 128 << 20 }
    }
}

#[derive(Debug)]
struct Shared {
    records: Mutex<Vec<u8>>,
    missed: AtomicU64,
}

/// The end of a tap that is looked at.
#[derive(Debug)]
pub struct Tap {
    shared: Arc<Shared>,
    capacity: usize,
}

/// Sightings taken from a tap. Its memory is used again by the next [`Tap::take`].
#[derive(Debug, Default)]
pub struct Sightings {
    records: Vec<u8>,
}

impl Tap {
    /// Takes what was seen since the last call, in the order in which it happened on each link. What `into` held is
    /// forgotten.
    pub fn take(&self, into: &mut Sightings) {
        into.records.clear();
        let short = self.capacity.saturating_sub(into.records.capacity());
        into.records.reserve(short);
        let mut records = self.shared.records.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *records, &mut into.records);
    }

    /// Sightings that found no room so far.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.shared.missed.load(Ordering::Relaxed)
    }
}

impl Sightings {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = Sighting<'_>> {
        let mut rest = self.records.as_slice();
        std::iter::from_fn(move || {
            let (header, behind) = rest.split_first_chunk::<HEADER>()?;
            let (sighting, kept) = decode(header)?;
            let (bytes, behind) = behind.split_at_checked(kept)?;
            rest = behind;
            Some(Sighting { bytes, ..sighting })
        })
    }
}

/// The end of a tap that is written to. Everything in it is done by the emulator's thread.
#[derive(Debug)]
pub(super) struct TapWriter {
    shared: Arc<Shared>,
    own: Vec<u8>,
    config: TapConfig,
}

/// A tap with memory that is there already.
pub(super) fn tap(config: TapConfig) -> (TapWriter, Tap) {
    let mut records = vec![0_u8; config.capacity];
    records.clear();
    let shared = Arc::new(Shared { records: Mutex::new(records), missed: AtomicU64::new(0) });
    let mut own = vec![0_u8; OWN_BYTES];
    own.clear();
    (TapWriter { shared: Arc::clone(&shared), own, config }, Tap { shared, capacity: config.capacity })
}

impl TapWriter {
    /// Notes a sighting; `sighting.bytes` is the whole packet.
    #[inline]
    pub(super) fn note(&mut self, sighting: &Sighting<'_>) {
        let kept = sighting.bytes.get(..self.config.snap_length).unwrap_or(sighting.bytes);
        let needed = HEADER + kept.len();
        if self.own.len() + needed > OWN_BYTES {
            self.hand_over();
        }
        if self.own.len() + needed > OWN_BYTES {
            self.shared.missed.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.own.extend_from_slice(&encode(sighting, kept.len()));
        self.own.extend_from_slice(kept);
    }

    /// Moves what was noted to where it can be taken; `false` when something had to stay because the lock was
    /// taken.
    #[inline]
    pub(super) fn hand_over(&mut self) -> bool {
        if self.own.is_empty() {
            return true;
        }
        let shared = Arc::clone(&self.shared);
        match shared.records.try_lock() {
            Ok(mut records) => self.append_to(&mut records),
            Err(TryLockError::Poisoned(records)) => self.append_to(&mut records.into_inner()),
            Err(TryLockError::WouldBlock) => return false,
        }
        // A full memory empties at its owner's leisure; trying again soon is of no use.
        true
    }

    /// The same, waiting for the lock: nothing may stay behind.
    pub(super) fn hand_over_now(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut records = shared.records.lock().unwrap_or_else(PoisonError::into_inner);
        self.append_to(&mut records);
    }

    fn append_to(&mut self, records: &mut Vec<u8>) {
        if records.len() + self.own.len() <= self.config.capacity {
            records.extend_from_slice(&self.own);
            self.own.clear();
        }
    }
}

impl Drop for TapWriter {
    /// What is still here then nobody gets to see.
    fn drop(&mut self) {
        let left = Sightings { records: std::mem::take(&mut self.own) };
        self.shared.missed.fetch_add(left.iter().count() as u64, Ordering::Relaxed);
    }
}

fn encode(sighting: &Sighting<'_>, kept: usize) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let mut place = 0;
    let mut put = |bytes: &[u8]| {
        if let Some(room) = header.get_mut(place..place + bytes.len()) {
            room.copy_from_slice(bytes);
        }
        place += bytes.len();
    };
    let (passage, cause) = match sighting.passage {
        Passage::Entered => (0, 0),
        Passage::Left => (1, 0),
        Passage::Refused(cause) => (2, cause.index()),
        Passage::Lost(cause) => (3, cause.index()),
        Passage::NoBuffer => (4, 0),
        Passage::Undeliverable => (5, 0),
        Passage::TakenBack => (6, 0),
        Passage::Discarded => (7, 0),
    };
    put(&sighting.at.as_nanos().to_le_bytes());
    put(&sighting.number.to_le_bytes());
    put(&sighting.queue_bytes.to_le_bytes());
    put(&sighting.queue_packets.to_le_bytes());
    put(&sighting.link.0.to_le_bytes());
    put(&sighting.length.to_le_bytes());
    put(&u32::try_from(kept).unwrap_or(u32::MAX).to_le_bytes());
    put(&[u8::from(sighting.direction == Direction::Backward), passage, cause as u8]);
    header
}

/// A record's fixed part, and how many bytes of the packet follow.
fn decode(header: &[u8; HEADER]) -> Option<(Sighting<'static>, usize)> {
    let long = |place: usize| Some(u64::from_le_bytes(*header.get(place..)?.first_chunk()?));
    let short = |place: usize| Some(u32::from_le_bytes(*header.get(place..)?.first_chunk()?));
    let byte = |place: usize| header.get(place).copied();
    let cause = DropCause::ALL.get(usize::from(byte(42)?)).copied()?;
    let passage = match byte(41)? {
        0 => Passage::Entered,
        1 => Passage::Left,
        2 => Passage::Refused(cause),
        3 => Passage::Lost(cause),
        4 => Passage::NoBuffer,
        5 => Passage::Undeliverable,
        6 => Passage::TakenBack,
        _ => Passage::Discarded,
    };
    let sighting = Sighting {
        at: Instant::from_nanos(long(0)?),
        number: long(8)?,
        queue_bytes: long(16)?,
        queue_packets: short(24)?,
        link: LinkId(short(28)?),
        length: short(32)?,
        direction: if byte(40)? == 1 { Direction::Backward } else { Direction::Forward },
        passage,
        bytes: &[],
    };
    Some((sighting, short(36)? as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sighting(number: u64, passage: Passage, bytes: &[u8]) -> Sighting<'_> {
        Sighting {
            at: Instant::from_nanos(123_456_789 + number),
            link: LinkId(7),
            direction: Direction::Backward,
            passage,
            number,
            queue_packets: 3,
            queue_bytes: 4500,
            length: bytes.len() as u32,
            bytes,
        }
    }

    #[test]
    fn what_is_noted_is_what_is_taken() {
        let (mut writer, tap) = tap(TapConfig { snap_length: 4, capacity: 1 << 16 });
        let passages = [
            Passage::Entered,
            Passage::Left,
            Passage::Refused(DropCause::QueueFull),
            Passage::Lost(DropCause::MtuExceeded),
            Passage::NoBuffer,
            Passage::Undeliverable,
            Passage::TakenBack,
            Passage::Discarded,
        ];
        for (number, passage) in passages.into_iter().enumerate() {
            writer.note(&sighting(number as u64, passage, b"packet"));
        }
        assert!(writer.hand_over());
        let mut taken = Sightings::default();
        tap.take(&mut taken);
        let seen: Vec<_> = taken.iter().collect();
        assert_eq!(seen.len(), passages.len());
        for (number, (seen, passage)) in seen.iter().zip(passages).enumerate() {
            let expected = sighting(number as u64, passage, b"packet");
            assert_eq!(seen.bytes, b"pack", "as much as the tap keeps");
            assert_eq!(format!("{:?}", Sighting { bytes: expected.bytes, ..*seen }), format!("{expected:?}"));
        }
        tap.take(&mut taken);
        assert!(taken.is_empty());
    }

    #[test]
    fn what_finds_no_room_is_counted_and_memory_does_not_grow() {
        let (mut writer, tap) = tap(TapConfig { snap_length: 1500, capacity: 1 << 20 });
        let packet = [0; 1500];
        let notes = 3000;
        for number in 0..notes {
            writer.note(&sighting(number, Passage::Entered, &packet));
        }
        let mut taken = Sightings::default();
        let mut kept = 0;
        for _ in 0..2 {
            tap.take(&mut taken);
            kept += taken.iter().count() as u64;
            writer.hand_over();
        }
        assert!(tap.missed() > 1000);
        assert_eq!(kept + tap.missed(), notes);
        assert!(writer.own.capacity() <= OWN_BYTES);
    }

    #[test]
    fn what_finds_no_room_at_the_end_is_counted_too() {
        let (mut writer, tap) = tap(TapConfig { snap_length: 1500, capacity: 1 << 16 });
        for number in 0..100 {
            writer.note(&sighting(number, Passage::Entered, &[0; 1500]));
        }
        writer.hand_over_now();
        drop(writer);
        let mut taken = Sightings::default();
        tap.take(&mut taken);
        assert_eq!(taken.iter().count() as u64 + tap.missed(), 100);
    }

    #[test]
    fn a_taken_lock_delays_nobody() {
        let (mut writer, tap) = tap(TapConfig::default());
        writer.note(&sighting(1, Passage::Entered, b"x"));
        let held = tap.shared.records.lock().unwrap();
        assert!(!writer.hand_over());
        drop(held);
        assert!(writer.hand_over());
    }
}
