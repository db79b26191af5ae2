//! What a tap sees of real packets.

use crate::support::{Pair, next, realm_or_skip};
use careof_base::{DataRate, Duration, Probability};
use careof_lab::{Change, Direction, Passage, Sightings, TapConfig};
use careof_link::{Config, DropCause, Loss, QueueConfig, QueueLimit};

#[test]
fn a_packet_is_seen_at_both_ends_with_its_bytes_and_the_time_between() {
    let Some(realm) = realm_or_skip() else { return };
    let delay = Duration::from_millis(10);
    let pair = Pair::new(realm, &Config { delay, ..Config::default() });
    let tap = pair.emulator.tap(TapConfig::default()).unwrap();
    let (left, right) = pair.sockets();
    left.send(b"seen twice").unwrap();
    assert!(next(&right).is_some());
    // Reporting hands over what is still the emulator's own.
    pair.report();
    let mut taken = Sightings::default();
    tap.take(&mut taken);
    let seen: Vec<_> = taken.iter().collect();
    let [entered, left_it] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((entered.passage, left_it.passage), (Passage::Entered, Passage::Left));
    assert_eq!((entered.number, entered.link), (left_it.number, pair.link));
    assert_eq!(entered.direction, Direction::Forward);
    assert!(left_it.at - entered.at >= delay);
    assert_eq!(entered.bytes, left_it.bytes);
    assert!(entered.bytes.ends_with(b"seen twice") && entered.length == 28 + 10);
    assert_eq!(tap.missed(), 0);
}

#[test]
fn drops_are_seen_with_their_cause_early_and_late() {
    let Some(realm) = realm_or_skip() else { return };
    let queue = QueueConfig { limit: QueueLimit::Packets(2), ..QueueConfig::default() };
    let pair = Pair::new(realm, &Config { rate: DataRate::ZERO, queue, ..Config::default() });
    let tap = pair.emulator.tap(TapConfig::default()).unwrap();
    let (sender, _receiver) = pair.sockets();
    for _ in 0..4 {
        sender.send(&[0; 100]).unwrap();
    }
    pair.report_after(4);
    let change = Change::DropQueue { link: pair.link, direction: Direction::Forward };
    pair.emulator.apply(vec![change]).unwrap();
    let loss = Loss::Bernoulli { p: Probability::new(1.0).unwrap() };
    pair.reconfigure(&Config { loss, delay: Duration::ZERO, ..Config::default() });
    sender.send(&[0; 100]).unwrap();
    let report = pair.report_when(|report| report.forward.link.dropped_by(DropCause::Loss) > 0).forward;
    assert!(report.is_conserved());
    assert_eq!((report.dropped_from_queue, report.link.drained, report.queued), (2, 2, 0));
    assert_eq!(report.longest_queue.0, 2);
    let mut taken = Sightings::default();
    tap.take(&mut taken);
    let passages: Vec<_> = taken.iter().map(|seen| seen.passage).collect();
    let refused = Passage::Refused(DropCause::QueueFull);
    let lost = Passage::Lost(DropCause::Loss);
    let (entered, discarded) = (Passage::Entered, Passage::Discarded);
    assert_eq!(passages, [entered, entered, refused, refused, discarded, discarded, entered, lost]);
}

#[test]
fn the_last_report_and_the_tap_end_together() {
    let Some(realm) = realm_or_skip() else { return };
    let pair = Pair::new(realm, &Config { delay: Duration::from_millis(1), ..Config::default() });
    let tap = pair.emulator.tap(TapConfig::default()).unwrap();
    let (sender, _receiver) = pair.sockets();
    let report = pair.emulator.report_at(pair.emulator.clock().now() + Duration::from_millis(50)).unwrap();
    let last = loop {
        sender.send(&[0; 100]).unwrap();
        match report.try_recv() {
            Ok(reports) => break reports[0].forward,
            Err(_) => std::thread::yield_now(),
        }
    };
    sender.send(&[0; 100]).unwrap();
    pair.report_after(last.received + 1);
    let mut taken = Sightings::default();
    tap.take(&mut taken);
    let count = |passage| taken.iter().filter(|seen| seen.passage == passage).count() as u64;
    assert_eq!(tap.missed(), 0);
    assert_eq!(count(Passage::Left), last.written);
    assert_eq!(count(Passage::Entered), last.link.offered - last.link.dropped.iter().sum::<u64>());
}
