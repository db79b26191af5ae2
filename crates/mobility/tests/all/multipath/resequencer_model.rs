//! A resequencer that is handed packets as bytes say, and what must hold whatever they say.

use std::time::Duration;

use careof_base::Instant;
use careof_mobility::multipath::{PathId, Resequencer, ResequencerConfig, micros};
use careof_wire::tunnel::{MultipathHeader, MultipathPayload};

/// One thing that happens.
type Step = [u8; 8];

/// Runs the steps in `data`.
///
/// # Panics
/// When the resequencer holds more than it may, loses, doubles or invents a packet, or waits in vain.
pub(crate) fn run(data: &[u8]) {
    let config = ResequencerConfig {
        packets: 64,
        bytes: 50_000,
        share: 2,
        flows: 8,
        longest_wait: Duration::from_millis(200),
    };
    let mut resequencer = Resequencer::new(config);
    let mut now = Instant::from_secs(1);
    let mut next = [0_u32; 16];
    // For each packet whether it has come out.
    let mut handed: Vec<bool> = Vec::new();
    let (steps, _) = data.as_chunks::<8>();
    for &[what, flow, ahead, path, wait, back, high, low] in steps {
        let step: Step = [what, flow, ahead, path, wait, back, high, low];
        now += Duration::from_micros(u64::from(wait) * 50);
        let sent_at = micros(now).wrapping_sub(u32::from(back) * 300);
        let index = usize::from(flow % 16);
        match what % 16 {
            0 => {
                if let Some(path) = PathId::new(path) {
                    resequencer.path_is_out(now, path);
                }
            }
            1 => {
                if let Some(path) = PathId::new(path) {
                    resequencer.handle_message(now, path, sent_at);
                }
            }
            2 => resequencer.handle_timeout(now),
            kind => {
                let sequence = match kind {
                    // Anywhere.
                    3 => u32::from_be_bytes([high, low, ahead, back]),
                    // A leap.
                    4 => next[index].wrapping_add(u32::from(high) << 8),
                    // Again, or late.
                    5..=7 => next[index].wrapping_sub(u32::from(ahead % 32)),
                    _ => next[index].wrapping_add(u32::from(ahead % 8)),
                };
                if kind >= 8 {
                    next[index] = sequence.wrapping_add(1);
                }
                let header = MultipathHeader {
                    flow: u32::from(flow % 16) | u32::from(what & 0x80) << 16,
                    sequence,
                    split: what & 0x40 == 0,
                    path: path % 10,
                    path_sequence: u32::from(low),
                    sent_at: if kind == 3 {
                        u32::from_be_bytes(step[..4].try_into().unwrap())
                    } else {
                        sent_at
                    },
                    payload: MultipathPayload::Ipv4,
                };
                resequencer.handle_packet(now, &header, u32::from(high) * 6, handed.len());
                handed.push(false);
            }
        }
        check(&mut resequencer, &mut handed, now);
    }
    while let Some(due) = resequencer.next_timeout() {
        assert!(due <= now + config.longest_wait, "it waits until {due}, now {now}");
        resequencer.handle_timeout(due);
    }
    check(&mut resequencer, &mut handed, now);
    assert_eq!(resequencer.holds(), (0, 0));
}

fn check(resequencer: &mut Resequencer<usize>, handed: &mut [bool], _now: Instant) {
    while let Some(packet) = resequencer.poll() {
        assert!(!std::mem::replace(&mut handed[packet], true), "{packet} came out twice");
    }
    let (packets, bytes) = resequencer.holds();
    assert!(packets <= 64 && bytes <= 50_000, "{packets} packets, {bytes} bytes");
    let counters = resequencer.counters();
    assert_eq!(counters.arrived, handed.len() as u64);
    assert_eq!(counters.arrived, counters.released + counters.duplicates + packets as u64);
    let out = handed.iter().filter(|out| **out).count() as u64;
    assert_eq!(out, counters.released);
}
