//! One end of a tunnel over several paths whose other end, and whoever is between, does what bytes say.

use std::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_mobility::multipath::alliance::ClusterKey;
use careof_mobility::multipath::{
    Bond, BondConfig, DispersionConfig, FlowFields, PathConfig, PathId, ReplayConfig, ResequencerConfig,
    Scheduler,
};
use careof_wire::mip4::Spi;
use careof_wire::shake::{PathEcho, PathFeedback, ShakeKey, ShakeMessage};
use careof_wire::tunnel::{MultipathHeader, MultipathPayload};

const KEY: &[u8] = b"sixteen bytes ok";

/// Runs the steps in `data`.
///
/// # Panics
/// When the bond keeps more than it may, or its books do not balance.
pub(crate) fn run(data: &[u8]) {
    let replay = ReplayConfig { packets: 32, bytes: 20_000 };
    let resequencer =
        ResequencerConfig { packets: 64, bytes: 50_000, flows: 8, ..ResequencerConfig::default() };
    let schedulers = [Scheduler::Auto, Scheduler::Duplicate, Scheduler::EarliestArrival, Scheduler::PerFlow];
    let scheduler = schedulers[usize::from(data.first().copied().unwrap_or_default() % 4)];
    let config = BondConfig {
        dispersion: DispersionConfig { scheduler, flows: 8 },
        replay,
        resequencer,
        ..BondConfig::new(ClusterKey { spi: Spi(256), key: KEY.to_vec() })
    };
    let mut bond: Bond<u32> = Bond::new(config, RandomStream::new(1, 0, "bond"));
    let mut now = Instant::from_secs(1);
    // What the other end has heard of this one's incarnation.
    let (mut own, mut packets) = (0, 0_u32);
    let (steps, _) = data.as_chunks::<16>();
    for step in steps {
        let word = |at: usize| u32::from_be_bytes([step[at], step[at + 1], step[at + 2], step[at + 3]]);
        now += Duration::from_micros(u64::from(step[1]) * 200);
        let path = PathId::new(step[2] % 8);
        match (step[0] % 16, path) {
            (0, Some(path)) => bond.set_path(now, path, PathConfig::default()),
            (1, Some(path)) if step[3] % 8 == 0 => bond.remove_path(now, path),
            (2, Some(path)) => bond.path_is_out(now, path),
            (3, _) => {
                // Garbage.
                let _ = bond.handle_message(now, path, step);
            }
            (4..=7, _) => {
                // A liar who has the key.
                let feedback = PathFeedback {
                    path: step[2] % 10,
                    answer: step[3] & 1 != 0,
                    sent_at: word(4),
                    sent_at_high: u16::from(step[3] >> 6),
                    echo: (step[3] & 2 != 0).then(|| PathEcho {
                        sent_at: word(8),
                        held: word(12) >> 16,
                        transit: word(4),
                        variation: word(12),
                    }),
                    highest: (step[3] & 4 != 0).then(|| word(12)),
                    packets: word(8),
                    bytes: u64::from(word(12)),
                    late: word(4),
                    sender: u32::from(step[15] % 16),
                    receiver: if step[3] & 8 != 0 { own } else { word(8) },
                };
                let key = ShakeKey { spi: Spi(256), key: KEY };
                let bytes = ShakeMessage::Feedback(feedback).emit(Some(key));
                let by = path.filter(|_| step[3] & 16 != 0);
                let _ = bond.handle_message(now, by, &bytes);
            }
            (8..=11, _) => {
                let fields = FlowFields {
                    remote: [198, 51, 100, step[4] % 4].into(),
                    remote_port: Some(443),
                    local: [10, 0, 0, 7].into(),
                    local_port: Some(u16::from(step[5] % 4)),
                    protocol: 6,
                    dscp: 0,
                };
                packets += 1;
                let len = word(4) % 1500;
                let sent = bond.send(now, &fields, len, MultipathPayload::Ipv4, packets);
                assert!(sent.is_ok() || sent == Err(packets), "another packet came back");
            }
            (12..=14, _) => {
                let header = MultipathHeader {
                    flow: u32::from(step[3] % 16),
                    sequence: if step[4] % 4 == 0 { word(4) } else { u32::from(step[5]) },
                    split: step[6] & 1 != 0,
                    path: step[2] % 10,
                    path_sequence: word(8),
                    sent_at: word(12),
                    payload: MultipathPayload::Ipv4,
                };
                bond.receive(now, &header, u32::from(step[7]) * 6, packets);
            }
            _ => bond.handle_timeout(now),
        }
        while bond.poll_transmit().is_some() {}
        while bond.poll_delivery().is_some() {}
        while bond.poll_event().is_some() {}
        let mut messages = 0;
        while let Some((_, bytes)) = bond.poll_message(now) {
            messages += 1;
            assert!(messages <= 16, "messages without end");
            if let Ok(read) = ShakeMessage::parse(&bytes)
                && let ShakeMessage::Feedback(feedback) = read.message
            {
                own = feedback.sender;
            }
        }
        let _ = bond.next_timeout(now);
        let (kept, bytes) = bond.owes();
        assert!(kept <= replay.packets && bytes <= replay.bytes, "keeps {kept} packets of {bytes} bytes");
        let counters = bond.counters();
        let first = counters.transmitted - counters.copies - counters.replayed;
        assert_eq!(counters.offered, counters.no_path + first);
        let came = bond.resequencer().counters();
        let (held, held_bytes) = bond.resequencer().holds();
        assert!(held <= 64 && held_bytes <= 50_000, "holds {held} packets of {held_bytes} bytes");
        assert_eq!(came.arrived, came.released + came.duplicates + held as u64);
    }
}
