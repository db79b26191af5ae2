//! What an acknowledgement that is made looks like. That none says what the receiver did not is held by `tests/arbitrary.rs`.

use core::time::Duration;

use alloc::vec::Vec;
use careof_base::Instant;
use careof_mobility::PathProperties;
use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::Ipv6Header;
use careof_wire::{Flags, IpHeader, ReceivedData, Segment, SeqNumber, Timestamps};

use super::script::{Over, Script, header_of, path};
use crate::{
    Action, Assistant, Config, FastRetransmit, Freeze, Input, PacketView, Place, Towards, WindowClamp,
};

const UNKNOWN: PathProperties = PathProperties { downlink: None, uplink: None, round_trip: None };

fn show(assistant: &mut Assistant, (over, at): (Over, u64), towards: Towards, tos: u8, segment: Segment) {
    let (source_port, destination_port) = match towards {
        Towards::Mobile => (80, 40_000),
        Towards::Peer => (40_000, 80),
    };
    let segment = Segment { source_port, destination_port, ..segment };
    let header = match header_of(over.addresses(towards), &segment) {
        IpHeader::V4(header) => {
            let (identification, dont_fragment) = (99, false);
            IpHeader::V4(Ipv4Header { tos, identification, dont_fragment, ..header })
        }
        IpHeader::V6(header) => {
            IpHeader::V6(Ipv6Header { traffic_class: tos, flow_label: 0xabcde, ..header })
        }
    };
    let overhead = over.overhead();
    let view = PacketView { header, segment: Some(&segment), is_opaque: false, overhead };
    assistant.handle_packet(Instant::from_millis(at), towards, None, &view);
}

#[test]
fn it_is_one_that_the_receiver_could_send_now() {
    Over::BOTH.into_iter().for_each(made_over);
}

fn made_over(over: Over) {
    let any = FastRetransmit { acks: 1, longest_outage: None, ..FastRetransmit::DEFAULT };
    let config = Config { fast_retransmit: Some(any), ..Config::none(Place::MobileNode) };
    let mut assistant = Assistant::new(config).unwrap();
    let news = Input::Paths {
        mobile: over.mobile(),
        paths: &[(path(1), UNKNOWN)],
        old_lost: None,
        received: ReceivedData::EMPTY,
    };
    assistant.handle_event(Instant::ZERO, &news);
    let stamps = |value, echo| Some(Timestamps { value, echo });
    let data = Segment { flags: Flags::ACK, window: 500, ..Segment::default() };
    let from_peer = Segment { seq: SeqNumber(7_000), ack: SeqNumber(u32::MAX - 99), ..data };
    show(
        &mut assistant,
        (over, 1),
        Towards::Mobile,
        0,
        Segment { payload_len: 100, timestamps: stamps(8, 3), ..from_peer },
    );
    // The acknowledgement comes with data, ECN-capable, and with congestion to tell of.
    let flags = Flags::ACK.with(Flags::PSH).with(Flags::ECE);
    let answer = Segment { flags, seq: SeqNumber(u32::MAX - 99), ack: SeqNumber(7_100), ..data };
    show(
        &mut assistant,
        (over, 2),
        Towards::Peer,
        0xba,
        Segment { payload_len: 50, timestamps: stamps(40, 8), ..answer },
    );
    // Later data go further, with a younger timestamp; the acknowledgement in them is overtaken and old.
    let more = Segment { flags: Flags::ACK, seq: SeqNumber(u32::MAX - 49), ack: SeqNumber(7_000), ..data };
    show(
        &mut assistant,
        (over, 3),
        Towards::Peer,
        0xba,
        Segment { payload_len: 60, timestamps: stamps(50, 7), ..more },
    );

    assistant.handle_event(Instant::from_millis(10), &Input::LinkDown { path: path(1) });
    assistant.handle_event(Instant::from_millis(20), &Input::LinkUp { path: path(1) });
    let actions: Vec<Action> = core::iter::from_fn(|| assistant.poll_action()).collect();
    // The mobile node's own data are owed, too.
    let [
        Action::Inject { towards: Towards::Mobile, .. },
        Action::Inject { header, segment, towards: Towards::Peer },
    ] = actions[..]
    else {
        panic!("{actions:?}");
    };
    let expected = Segment {
        source_port: 40_000,
        destination_port: 80,
        flags: Flags::ACK,
        seq: SeqNumber(10),
        ack: SeqNumber(7_100),
        window: 500,
        timestamps: stamps(50, 8),
        ..Segment::default()
    };
    assert_eq!(segment, expected);
    assert_eq!((header.source(), header.destination()), (over.mobile(), over.peer()));
    assert_eq!(header.traffic_class(), 0xb8);
    assert_eq!(header.total_len(), header.header_len() + segment.header_len());
    match header {
        IpHeader::V4(header) => assert_eq!((header.identification, header.dont_fragment), (0, true)),
        // The way that the flow's packets take.
        IpHeader::V6(header) => assert_eq!(header.flow_label, 0xabcde),
    }
}

#[test]
fn several_assists_share_one_limit_and_one_window() {
    let freeze =
        Freeze { warning: Duration::from_millis(100), acks: 3, patience: Duration::from_millis(200) };
    let config = Config {
        freeze: Some(freeze),
        fast_retransmit: Some(FastRetransmit { longest_outage: None, ..FastRetransmit::DEFAULT }),
        window_clamp: Some(WindowClamp { always: true, ..WindowClamp::DEFAULT }),
        ..Config::none(Place::MobileNode)
    };
    let mut script = Script::new(config);
    script.data_window = 100;
    script.run(
        "    0  path 1 rate 80 rtt 1500
             0  syn
            10  for mobile 0+65000               -> pass
            20  from mobile ack 65000 win 5000   -> pass win 125
            30  announced 100
            30  > ack 65000 win 0 for peer
            40  from mobile ack 65000 win 5000   -> pass win 0
           130  down 1
           500  path 2 rate 10000 rtt 100
           500  > ack 65000 win 985 for peer
           500  > ack 65000 win 985 for peer
           500  > ack 65000 win 985 for peer
           500  > ack 65000 win 985 for peer",
    );
    assert_eq!(script.assistant.counters().limited, 2);
}
