//! The kernel's congestion control that can be told of handovers.

use std::io::{Read, Write};
use std::time::Duration;

use crate::ipv6::{LEFT, RIGHT, pair};
use crate::support::realm_or_skip;
use careof_base::Instant;
use careof_lab::told_congestion::{Base, Deed, Did, Estimator, News};
use careof_lab::{
    BpfLack, Clock, Error, Host, SockDiag, ToldCongestion, congestion_controls, ensure_congestion_control,
};

#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
type Stream = std::net::TcpStream;
#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
type Listener = std::net::TcpListener;

/// One that is told; `None` where this machine does not give it.
fn told_or_skip(base: Base, estimator: Estimator, resend: bool) -> Option<ToldCongestion> {
    match ToldCongestion::register(base, estimator, resend) {
        Ok(told) => Some(told),
        Err(error @ Error::NoToldCongestion { lack: BpfLack::Refused { .. }, .. }) => panic!("{error}"),
        Err(error) => {
            careof_testbed::skip_for(&error);
            None
        }
    }
}

fn names() -> Vec<String> {
    let all = congestion_controls().unwrap().available;
    all.iter().map(|one| one.as_str().to_owned()).collect()
}

/// A connection from the left host to the right one, whose sender has the congestion control `name`.
fn connect(left: &Host, right: &Host, name: &str) -> (Stream, Stream) {
    let listener = right.run(|| Listener::bind((RIGHT, 0))).unwrap().unwrap();
    let to = listener.local_addr().unwrap();
    let name = name.to_owned();
    let client = left.run(move || {
        let client = Stream::connect(to).unwrap();
        ensure_congestion_control(&name)?.choose_for(&client)?;
        Ok::<_, Error>(client)
    });
    let client = client.unwrap().unwrap();
    (client, listener.accept().unwrap().0)
}

/// Sends 1 MiB, which arrives as it was sent; much of it waits for its turn.
fn send(from: &mut Stream, to: &mut Stream) {
    let sent: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
    let mut arrived = vec![0; sent.len()];
    std::thread::scope(|threads| {
        threads.spawn(|| from.write_all(&sent).unwrap());
        to.read_exact(&mut arrived).unwrap();
    });
    assert!(arrived == sent);
}

/// Sends until the sender has done something else than hear.
fn next_deed(
    told: &ToldCongestion,
    clock: Clock,
    ends: &mut (Stream, Stream),
    heard: &mut Vec<News>,
) -> Deed {
    loop {
        send(&mut ends.0, &mut ends.1);
        for deed in told.take_deeds(clock).unwrap() {
            match deed.did {
                Did::Heard(news) => heard.push(news),
                _ => return deed,
            }
        }
    }
}

#[test]
fn it_is_there_under_a_name_of_its_own_as_long_as_it_is_held() {
    let Some(first) = told_or_skip(Base::Cubic, Estimator::Westwood, true) else { return };
    let Some(second) = told_or_skip(Base::Cubic, Estimator::DeliveryRate, false) else { return };
    assert_ne!(first.name(), second.name());
    let all = names();
    assert!(all.contains(&first.name().to_owned()) && all.contains(&second.name().to_owned()), "{all:?}");
    let gone = first.name().to_owned();
    drop(first);
    // The kernel takes it out of its list when it comes to it, after the last descriptor has gone.
    let clock = Clock::start();
    while names().contains(&gone) {
        assert!(clock.now().since_start() < Duration::from_secs(60), "{:?}", names());
        std::thread::yield_now();
    }
    assert!(names().contains(&second.name().to_owned()), "{:?}", names());
}

#[test]
fn once_told_that_the_path_is_another_it_sets_window_and_threshold_by_estimate_and_round_trip() {
    for base in Base::ALL {
        for (estimator, resend) in [(Estimator::Westwood, true), (Estimator::DeliveryRate, false)] {
            let Some(told) = told_or_skip(base, estimator, resend) else { return };
            let Some(realm) = realm_or_skip() else { return };
            let (left, right) = pair(realm);
            let clock = Clock::start();
            let mut ends = connect(&left, &right, told.name());
            let (own, peer) = (ends.0.local_addr().unwrap(), ends.0.peer_addr().unwrap());
            let used = left.run(move || SockDiag::open()?.tcp_socket(own, peer)).unwrap().unwrap().unwrap();
            assert_eq!(used.congestion_control.unwrap().as_str(), told.name());
            // Westwood+ measures over 50 ms at least.
            let begun = clock.now();
            while clock.now() < begun + Duration::from_millis(200) {
                send(&mut ends.0, &mut ends.1);
            }
            assert_eq!(told.take_deeds(clock).unwrap(), [], "nothing was told");
            // A kernel that a busy machine starves has no estimate of a connection yet, or keeps the last rate until it samples one that is
            // larger or that the application did not limit. So there are handovers until it had two, or one of a rate that it may keep.
            let wanted = if estimator == Estimator::Westwood { 2 } else { 1 };
            let (mut heard, mut handovers, mut measured) = (Vec::new(), 0, 0);
            while handovers < 2 || measured < wanted {
                assert!(
                    clock.now() < begun + Duration::from_secs(60),
                    "{measured} of {handovers} were measured"
                );
                handovers += 1;
                let since = clock.now();
                // News for others, and news for this one.
                told.tell(RIGHT, LEFT, News::PathReplaced, since, clock).unwrap();
                told.tell(LEFT, RIGHT, News::PathReplaced, since, clock).unwrap();
                let deed = next_deed(&told, clock, &mut ends, &mut heard);
                assert_eq!(heard, vec![News::PathReplaced; handovers], "once each time");
                assert_eq!((deed.local, deed.remote), (own, peer));
                let Did::Measured { bandwidth, round_trip } = deed.did else { panic!("{deed:?}") };
                // To the microsecond, by which the clocks are compared.
                assert!(deed.at + Duration::from_micros(2) >= since + round_trip, "{deed:?} since {since:?}");
                if let Some(rate) = bandwidth {
                    measured += 1;
                    let bytes = rate.bits_per_second() / 8 * round_trip.as_micros() as u64 / 1_000_000;
                    let window = (bytes / u64::from(deed.mss)).max(2);
                    assert_eq!(u64::from(deed.cwnd_segments), window, "{deed:?}");
                    assert_eq!(deed.ssthresh_segments.map(u64::from), Some(window), "{deed:?}");
                }
                // The estimate has begun anew.
                let begun = clock.now();
                while clock.now() < begun + Duration::from_millis(200) {
                    send(&mut ends.0, &mut ends.1);
                }
            }
            assert_eq!(told.faults().unwrap(), 0);
        }
    }
}

#[test]
fn what_was_told_before_a_connection_was_opened_is_not_for_it() {
    let Some(told) = told_or_skip(Base::Reno, Estimator::Westwood, true) else { return };
    let Some(realm) = realm_or_skip() else { return };
    let (left, right) = pair(realm);
    let clock = Clock::start();
    told.tell(LEFT, RIGHT, News::PathReplaced, Instant::ZERO, clock).unwrap();
    let mut ends = connect(&left, &right, told.name());
    send(&mut ends.0, &mut ends.1);
    assert_eq!(told.take_deeds(clock).unwrap(), []);
    // A path that was lost and is there again has taken nothing where no timer ran out meanwhile.
    told.tell(LEFT, RIGHT, News::PathLost, clock.now(), clock).unwrap();
    send(&mut ends.0, &mut ends.1);
    told.tell(LEFT, RIGHT, News::PathBack, clock.now(), clock).unwrap();
    send(&mut ends.0, &mut ends.1);
    let heard: Vec<Did> = told.take_deeds(clock).unwrap().into_iter().map(|deed| deed.did).collect();
    assert_eq!(heard, [Did::Heard(News::PathLost), Did::Heard(News::PathBack)]);
}
