//! Nothing that arrives, and no order of losses, may break a connection: properties over chance.

use core::time::Duration;

use careof_base::{Instant, Probability, RandomStream};
use careof_wire::{Flags, SackBlocks, Segment, SeqNumber, Timestamps};
use proptest::prelude::*;

use super::advice::any_advice;
use super::world::{SERVER, World};
use crate::{
    Config, CongestionControl, Connection, DelayedAck, HyStart, IdleRestart, InitialWindow, PartialAckTimer,
    ReductionBound, Role, RtoEstimator, State, Variant,
};

pub(super) fn any_config() -> impl Strategy<Value = Config> {
    let delayed = prop_oneof![
        Just(DelayedAck::Off),
        Just(DelayedAck::RFC1122),
        Just(DelayedAck::Linux20),
        Just(DelayedAck::Linux)
    ];
    (
        prop::sample::select(Variant::ALL),
        prop::sample::select(RtoEstimator::ALL),
        prop::sample::select(PartialAckTimer::ALL),
        prop::sample::select(IdleRestart::ALL),
        delayed,
        any::<[bool; 8]>(),
        (any::<[bool; 8]>(), prop::sample::select(ReductionBound::ALL)),
        (88_u16..3_000, 1_u32..100_000, 1_u32..12),
        (
            prop::sample::select(CongestionControl::ALL),
            prop::sample::select(HyStart::ALL),
            any::<bool>(),
            any::<bool>(),
        ),
    )
        .prop_map(
            |(
                variant,
                rto,
                partial_ack_timer,
                idle_restart,
                delayed_ack,
                flags,
                (switches, bound),
                numbers,
                (congestion, hystart, pacing, rescue_retransmission),
            )| {
                let [timestamps, sack, limited_transmit, careful, scaling, nagle, validation, quirk] = flags;
                let sack = sack || variant == Variant::Sack;
                let old = matches!(variant, Variant::Linux20 | Variant::Vegas);
                let dsack = switches[0] && sack;
                let frto = switches[1] && !old;
                Config {
                    variant,
                    dsack,
                    sack_compression: sack && numbers.1 % 2 == 0,
                    frto,
                    eifel: switches[2] && !old && (timestamps || frto || dsack),
                    prr: switches[3] && matches!(variant, Variant::NewReno | Variant::Sack | Variant::Linux),
                    reduction_bound: bound,
                    icmp_unreachable: switches[4],
                    rack: switches[6] && sack && matches!(variant, Variant::Sack | Variant::Linux),
                    tail_loss_probe: switches[7] && sack && matches!(variant, Variant::Sack | Variant::Linux),
                    ecn: switches[5] && variant != Variant::Linux20,
                    congestion: variant.own_congestion().unwrap_or(congestion),
                    hystart,
                    pacing,
                    rescue_retransmission,
                    rto,
                    partial_ack_timer,
                    idle_restart,
                    delayed_ack,
                    timestamps,
                    sack,
                    limited_transmit,
                    careful,
                    nagle,
                    window_scaling: scaling,
                    window_validation: validation,
                    mtu_probing: numbers.2 % 2 == 1,
                    linux20_fast_retransmit: quirk,
                    mss: numbers.0,
                    receive_window: if scaling { numbers.1 } else { numbers.1.min(65_535) },
                    initial_window: InitialWindow::Segments(numbers.2),
                    ..Config::default()
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_byte_arrives_exactly_once_and_the_connection_closes(
        client in any_config(),
        server in any_config(),
        loss in 0.0..0.25_f64,
        seed in any::<u64>(),
        bytes in 1_u64..120_000,
        jump in 0_u64..3_000,
        jitter in prop_oneof![Just(0_u64), 1_u64..200],
        duplication in prop_oneof![Just(0.0_f64), 0.0..0.2_f64],
    ) {
        // Tiny windows with delayed acknowledgements take long, and losses take timeouts of up to 120 s.
        let bytes = bytes.min(u64::from(server.receive_window) * 60).min(u64::from(client.mss) * 150);
        let mut world = World::new(client, server, Duration::from_millis(30));
        world.traced = false;
        world.chance = RandomStream::new(seed, 0, "robustness");
        world.loss = Probability::new(loss).unwrap();
        world.duplication = Probability::new(duplication).unwrap();
        for way in &mut world.ways {
            way.jitter = Duration::from_millis(jitter);
        }
        world.run_until(Instant::from_millis(jump));
        world.ways[0].delay = Duration::from_millis(300);
        world.transfer(bytes, Instant::from_secs(200_000));
        let received = world.ends[SERVER].received();
        let [client, server] = &world.ends;
        // Giving up is an answer, too, but only after fifteen timeouts in a row.
        let gave_up = world.events.iter().flatten().any(|event| *event == crate::Event::GivenUp);
        prop_assert!(!gave_up || loss > 0.1, "gave up at a loss of {loss}");
        if !gave_up {
            prop_assert_eq!(received, bytes);
            prop_assert!(server.is_closed() && client.is_closed(),
                "{:?} {:?}", client.snapshot(), server.snapshot());
        }
        prop_assert!(received <= bytes);
        for end in &world.ends {
            if end.is_closed() {
                prop_assert_eq!(end.next_timeout(), None);
            }
        }
    }

    #[test]
    fn garbage_breaks_nothing(config in any_config(), role in any::<bool>(), seed in any::<u64>()) {
        let role = if role { Role::Active } else { Role::Passive };
        let mut chance = RandomStream::new(seed, 0, "garbage");
        let mut end = Connection::new(config, role, 1, 2, SeqNumber(chance.next_u64() as u32)).unwrap();
        let mut now = Instant::ZERO;
        end.open(now);
        for _ in 0..400 {
            match chance.below(13) {
                0 => end.write(chance.below(20_000)),
                1 => { end.read(chance.below(5_000)); }
                2 => end.set_auto_read(chance.below(2) == 0),
                6 if chance.below(4) == 0 => {
                    let una = end.snapshot().snd_una;
                    end.icmp_unreachable(now, una.plus(chance.below(2) as u32));
                }
                3 => end.path_mtu_changed(now, chance.below(3_000) as u16),
                4 if chance.below(20) == 0 => end.close(),
                7 if chance.below(4) == 0 => end.advise(now, &any_advice(&mut chance)),
                5 => {
                    if let Some((at, _)) = end.next_timeout() {
                        now = now.max(at);
                    }
                    end.handle_timeout(now);
                }
                _ => {
                    let segment = garbage(&mut chance, &end);
                    end.handle_packet(now, &segment, chance.below(8) == 0);
                }
            }
            now += chance.duration_up_to(Duration::from_millis(400));
            let mut sent = 0;
            while let Some(out) = end.poll_transmit(now) {
                sent += 1;
                prop_assert!(sent < 10_000);
                prop_assert!(out.segment.payload_len <= end.config().mss);
            }
            while end.poll_event().is_some() {}
            end.sender.check();
            let state = end.snapshot();
            prop_assert!(state.snd_una.is_at_or_before(state.snd_nxt));
            prop_assert!(state.cwnd >= state.mss, "{:?}", state);
            prop_assert_eq!(end.is_live(), Ok(()), "{:?}", state);
        }
    }
}

/// A segment near enough to what is expected to get far, wrong enough to hurt.
fn garbage(chance: &mut RandomStream, end: &Connection) -> Segment {
    let state = end.snapshot();
    let mut near = |seq: SeqNumber, span: u64| {
        if chance.below(30) == 0 {
            SeqNumber(chance.next_u64() as u32)
        } else {
            SeqNumber(seq.0.wrapping_add(chance.below(span) as u32).wrapping_sub(span as u32 / 4))
        }
    };
    let seq = near(end.rcv_nxt(), 4_000);
    let ack = near(state.snd_una, 6_000);
    let mut sack = SackBlocks::EMPTY;
    for _ in 0..4 {
        let left = near(state.snd_una, 8_000);
        let right = near(left, 4_000);
        sack.push(left, right);
    }
    let (seq, ack) = match chance.below(4) {
        0 => (end.rcv_nxt(), state.snd_una),
        1 => (end.rcv_nxt(), ack),
        2 => (seq, state.snd_nxt),
        _ => (seq, ack),
    };
    let mut flags = Flags::ACK;
    if chance.below(8) == 0 {
        flags = Flags((chance.next_u64() & 0xff) as u8);
    }
    if chance.below(10) != 0 {
        flags = Flags(flags.0 & !(Flags::RST.0 | Flags::FIN.0));
    }
    if matches!(state.state, State::Listen) {
        flags = Flags::SYN;
    }
    Segment {
        seq,
        ack,
        flags,
        window: (chance.below(65_536) >> chance.below(17)) as u16,
        mss: Some(chance.below(65_536) as u16),
        window_scale: Some(chance.below(256) as u8),
        sack_permitted: true,
        timestamps: (chance.below(2) == 0)
            .then(|| Timestamps { value: chance.below(1 << 20) as u32, echo: chance.below(1 << 20) as u32 }),
        sack: if chance.below(2) == 0 { sack } else { SackBlocks::EMPTY },
        payload_len: (chance.below(2_000) as u16) * u16::from(chance.below(3) > 0),
        ..Segment::default()
    }
}
