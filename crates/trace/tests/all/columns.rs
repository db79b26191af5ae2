//! Events become columns: every kind, nulls, order, batches.

use careof_base::{Duration, Instant};
use careof_trace::{
    AssistRecord, COLUMNS, ColumnName, ColumnType, Columns, Detail, Event, EventKind, EventLog, FlowId,
    KINDS, LinkId, MessageRecord, Names, NodeId, PacketRecord, SegmentRecord, TcpState,
};
use proptest::prelude::*;

const MOBILE: NodeId = NodeId(1);
const DOWN: LinkId = LinkId(0);
const FLOW: FlowId = FlowId(0);

fn names() -> Names {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Names {
        nodes: list(&["correspondent", "mobile"]),
        links: list(&["gsm.down", "gsm.up"]),
        flows: list(&["download"]),
    }
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn segment() -> SegmentRecord {
    SegmentRecord {
        packet: 1 << 40,
        size_bytes: 1500,
        seq: 5_000_000_001,
        ack: 1,
        len_bytes: 1460,
        window_bytes: 16_384,
        flags: 0x18,
        retransmission: true,
    }
}

fn state() -> TcpState {
    TcpState {
        cwnd_bytes: 2920,
        ssthresh_bytes: Some(8760),
        flight_bytes: 1460,
        srtt: Some(Duration::from_millis(700)),
        rttvar: Some(Duration::from_micros(1)),
        rto: Some(Duration::from_secs(3)),
    }
}

fn packet() -> PacketRecord {
    PacketRecord { packet: 7, size_bytes: 40, queue_packets: 3, queue_bytes: 4500 }
}

/// One event of each kind with everything it can have; drops once for each place.
fn one_of_each(log: &mut EventLog) -> Vec<Event> {
    let detail = log.detail(format_args!("code {}", 0));
    let message = MessageRecord { message: "RegistrationRequest", packet: Some(9), size_bytes: 82, detail };
    vec![
        Event::segment_sent(at(1), MOBILE, FLOW, segment()),
        Event::segment_received(at(2), MOBILE, FLOW, segment()),
        Event::tcp_state(at(3), MOBILE, FLOW, state()),
        Event::timeout(at(4), MOBILE, FLOW, 1461, state()),
        Event::data_delivered(at(5), MOBILE, FLOW, 1 << 33),
        Event::packet_enqueued(at(6), DOWN, Some(FLOW), packet()),
        Event::packet_delivered(at(7), DOWN, Some(FLOW), packet()),
        Event::packet_dropped(at(8), DOWN, Some(FLOW), packet(), "queue-full"),
        Event::packet_dropped_at_node(at(8), MOBILE, Some(FLOW), 8, 576, "no-binding"),
        Event::message_sent(at(9), MOBILE, Some(DOWN), message),
        Event::message_received(at(10), MOBILE, Some(DOWN), message),
        Event::binding(at(11), MOBILE, "created", detail),
        Event::arp(at(12), MOBILE, Some(DOWN), "gratuitous", detail),
        Event::handover(at(13), MOBILE, Some(DOWN), "initiated", detail),
        Event::flow_start(at(14), MOBILE, FLOW, detail),
        Event::flow_end(at(15), MOBILE, FLOW, detail),
        Event::assist(
            at(16),
            MOBILE,
            FLOW,
            AssistRecord { assist: "replay", what: "replay", packets: 14, bytes: 21_000 },
        ),
        Event::packet_derived(at(17), NodeId(0), Some(FLOW), 78, 40, 77, "fragment"),
        Event::host_route(at(18), MOBILE, "created", detail),
    ]
}

fn number(columns: &Columns, column: ColumnName, row: usize) -> Option<i128> {
    columns.column(column).number(row)
}

fn text(columns: &Columns, column: ColumnName, row: usize) -> Option<&str> {
    columns.column(column).text(row)
}

#[test]
fn each_kind_fills_the_columns_the_schema_says() {
    let mut log = EventLog::new(names());
    let events = one_of_each(&mut log);
    events.iter().for_each(|event| log.push(*event));
    let columns = log.take_columns();
    assert_eq!(columns.rows(), events.len());
    for spec in KINDS {
        let rows: Vec<usize> = (0..events.len()).filter(|row| events[*row].kind() == spec.kind).collect();
        assert!(!rows.is_empty(), "no example of {}", spec.kind);
        for column in &columns {
            let filled = rows.iter().any(|row| column.is_valid(*row));
            let stated = spec.columns.contains(&column.column())
                || [ColumnName::TimeNs, ColumnName::Kind].contains(&column.column());
            assert_eq!(filled, stated, "{} in {}", column.name(), spec.kind);
        }
    }
}

#[test]
fn columns_have_the_types_and_lengths_of_the_schema() {
    let mut log = EventLog::new(names());
    let events = one_of_each(&mut log);
    events.iter().for_each(|event| log.push(*event));
    let columns = log.take_columns();
    assert_eq!(columns.iter().count(), COLUMNS.len());
    for (column, spec) in columns.iter().zip(COLUMNS) {
        assert_eq!((column.name(), column.column_type()), (spec.name, spec.column_type));
        assert_eq!(column.len(), events.len());
        assert_eq!(column.validity().is_some(), spec.nullable);
        let bytes = match spec.column_type {
            ColumnType::Int64 | ColumnType::UInt64 => events.len() * 8,
            ColumnType::UInt32 | ColumnType::Dictionary => events.len() * 4,
            ColumnType::Boolean => events.len().div_ceil(8),
        };
        assert_eq!((column.buffer_len(), column.buffer().len()), (bytes, bytes));
        let nulls = (0..events.len()).filter(|row| !column.is_valid(*row)).count();
        assert_eq!(column.null_count(), nulls);
        assert_eq!(column.dictionary().is_some(), spec.column_type == ColumnType::Dictionary);
        assert_eq!(columns.by_name(spec.name), Some(column));
    }
    assert!(columns.by_name("colour").is_none());
}

#[test]
fn values_arrive_unchanged() {
    let mut log = EventLog::new(names());
    for event in one_of_each(&mut log) {
        log.push(event);
    }
    let columns = log.take_columns();
    assert_eq!(text(&columns, ColumnName::Kind, 0), Some("segment-sent"));
    assert_eq!(text(&columns, ColumnName::Node, 0), Some("mobile"));
    assert_eq!(text(&columns, ColumnName::Flow, 0), Some("download"));
    assert_eq!(text(&columns, ColumnName::Flags, 0), Some("P."));
    assert_eq!(number(&columns, ColumnName::Packet, 0), Some(1 << 40));
    assert_eq!(number(&columns, ColumnName::Seq, 0), Some(5_000_000_001));
    assert_eq!(number(&columns, ColumnName::WindowBytes, 0), Some(16_384));
    assert_eq!(columns.column(ColumnName::Retransmission).boolean(0), Some(true));
    assert_eq!(number(&columns, ColumnName::RtoNs, 3), Some(3_000_000_000));
    assert_eq!(number(&columns, ColumnName::Seq, 3), Some(1461));
    assert_eq!(number(&columns, ColumnName::DeliveredBytes, 4), Some(1 << 33));
    assert_eq!(text(&columns, ColumnName::Link, 5), Some("gsm.down"));
    assert_eq!(number(&columns, ColumnName::QueueBytes, 5), Some(4500));
    assert_eq!(text(&columns, ColumnName::Cause, 7), Some("queue-full"));
    assert_eq!(text(&columns, ColumnName::Cause, 8), Some("no-binding"));
    assert_eq!(text(&columns, ColumnName::Message, 9), Some("RegistrationRequest"));
    assert_eq!(text(&columns, ColumnName::Detail, 9), Some("code 0"));
    assert_eq!(text(&columns, ColumnName::Cause, 13), Some("initiated"));
}

#[test]
fn buffers_are_little_endian_and_bitmaps_begin_with_the_lowest_bit() {
    let mut log = EventLog::new(names());
    for time in 0..10 {
        let retransmission = time % 3 == 0;
        let segment = SegmentRecord { retransmission, seq: -2, ..segment() };
        log.push(Event::segment_sent(at(time), MOBILE, FLOW, segment));
    }
    log.push(Event::flow_end(at(10), MOBILE, FLOW, Detail::NONE));
    let columns = log.take_columns();
    let retransmission = columns.column(ColumnName::Retransmission);
    assert_eq!(retransmission.buffer(), [0b0100_1001, 0b0000_0010]);
    assert_eq!(retransmission.validity(), Some(&[0b1111_1111, 0b0000_0011][..]));
    assert_eq!(columns.column(ColumnName::Seq).buffer()[..8], (-2_i64).to_le_bytes());
    let node = columns.column(ColumnName::Node);
    assert_eq!(node.buffer()[..8], [1, 0, 0, 0, 1, 0, 0, 0]);
    let dictionary = node.dictionary().unwrap();
    assert_eq!(dictionary.bytes(), b"correspondentmobile");
    assert_eq!(dictionary.offsets(), [0, 13, 19]);
    assert_eq!(dictionary.offsets_buffer(), [0, 0, 0, 0, 13, 0, 0, 0, 19, 0, 0, 0]);
}

#[test]
fn what_does_not_exist_is_null() {
    let mut log = EventLog::new(names());
    log.push(Event::segment_sent(at(0), MOBILE, FLOW, SegmentRecord { flags: 0x02, ..segment() }));
    let unknown = TcpState { ssthresh_bytes: None, srtt: None, rttvar: None, rto: None, ..state() };
    log.push(Event::tcp_state(at(1), MOBILE, FLOW, unknown));
    log.push(Event::packet_enqueued(at(2), LinkId(77), None, packet()));
    let message =
        MessageRecord { message: "RouterSolicitation", packet: None, size_bytes: 28, detail: Detail::NONE };
    log.push(Event::message_sent(at(3), NodeId(9), None, message));
    let columns = log.take_columns();
    assert_eq!(number(&columns, ColumnName::Ack, 0), None);
    assert_eq!(text(&columns, ColumnName::Flags, 0), Some("S"));
    for column in [ColumnName::SsthreshBytes, ColumnName::SrttNs, ColumnName::RttvarNs, ColumnName::RtoNs] {
        assert_eq!(number(&columns, column, 1), None);
    }
    assert_eq!(number(&columns, ColumnName::CwndBytes, 1), Some(2920));
    assert_eq!(text(&columns, ColumnName::Link, 2), None, "an index without a name");
    assert_eq!(text(&columns, ColumnName::Flow, 2), None);
    assert_eq!(text(&columns, ColumnName::Node, 3), None);
    assert_eq!(number(&columns, ColumnName::Packet, 3), None);
    assert_eq!(text(&columns, ColumnName::Detail, 3), None);
}

#[test]
fn a_log_that_is_off_stores_and_formats_nothing() {
    struct Untouchable;
    impl std::fmt::Display for Untouchable {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("formatted while tracing is off")
        }
    }
    let mut log = EventLog::off();
    assert!(!log.is_on());
    assert_eq!(log.detail(format_args!("{Untouchable}")), Detail::NONE);
    log.push(Event::data_delivered(at(0), MOBILE, FLOW, 1));
    assert!(log.is_empty());
    assert_eq!(log.take_columns().rows(), 0);
}

#[test]
fn a_log_of_some_kinds_stores_no_others() {
    let mut log = EventLog::new(names()).only(&[EventKind::Binding, EventKind::HostRoute]);
    assert!(log.is_on());
    for time in 0..3 {
        log.push(Event::data_delivered(at(time), MOBILE, FLOW, 1));
        let detail = log.detail(format_args!("message {time}"));
        log.push(Event::binding(at(time), MOBILE, "updated", detail));
        log.push(Event::host_route(at(time), MOBILE, "created", Detail::NONE));
    }
    assert_eq!(log.len(), 6);
    let columns = log.take_columns();
    let kinds: Vec<_> =
        (0..columns.rows()).map(|row| text(&columns, ColumnName::Kind, row).unwrap().to_owned()).collect();
    assert_eq!(kinds, ["binding", "host-route"].repeat(3));
    assert_eq!(text(&columns, ColumnName::Detail, 4), Some("message 2"));
}

#[test]
fn batches_up_to_a_watermark_keep_their_texts() {
    let mut log = EventLog::new(names());
    for time in 0..10 {
        let detail = log.detail(format_args!("message {time}"));
        log.push(Event::binding(at(time), MOBILE, "updated", detail));
    }
    let mut texts = Vec::new();
    for watermark in [4, 4, 7] {
        let columns = log.take_columns_before(at(watermark));
        texts.extend(
            (0..columns.rows()).map(|row| text(&columns, ColumnName::Detail, row).unwrap().to_owned()),
        );
    }
    assert_eq!(log.len(), 3);
    let detail = log.detail(format_args!("message 10"));
    log.push(Event::binding(at(10), MOBILE, "updated", detail));
    let columns = log.take_columns();
    texts.extend((0..columns.rows()).map(|row| text(&columns, ColumnName::Detail, row).unwrap().to_owned()));
    assert_eq!(texts, (0..=10).map(|time| format!("message {time}")).collect::<Vec<_>>());
}

#[test]
fn a_name_added_later_does_not_move_the_others() {
    let mut log = EventLog::new(names());
    log.names_mut().flows.push("upload".to_owned());
    log.push(Event::data_delivered(at(0), MOBILE, FlowId(1), 1));
    log.push(Event::data_delivered(at(0), MOBILE, FlowId(0), 1));
    let columns = log.take_columns();
    assert_eq!(text(&columns, ColumnName::Flow, 0), Some("upload"));
    assert_eq!(text(&columns, ColumnName::Flow, 1), Some("download"));
    assert_eq!(columns.column(ColumnName::Kind).dictionary().unwrap().len(), EventKind::ALL.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Late events move to their time, and events of one instant stay in the order they were pushed, however the
    /// batches are cut.
    #[test]
    fn batches_together_are_sorted_and_stable(times in prop::collection::vec(0_u64..50, 0..200), cut in 0_u64..60) {
        let mut log = EventLog::new(names());
        let mut expected: Vec<(u64, u64)> = Vec::new();
        for (index, time) in (0..).zip(times) {
            log.push(Event::data_delivered(at(time), MOBILE, FLOW, index));
            expected.push((time, index));
        }
        expected.sort();
        let mut found = Vec::new();
        for columns in [log.take_columns_before(at(cut)), log.take_columns()] {
            for row in 0..columns.rows() {
                let time = number(&columns, ColumnName::TimeNs, row).unwrap() as u64;
                found.push((time, number(&columns, ColumnName::DeliveredBytes, row).unwrap() as u64));
            }
        }
        prop_assert_eq!(found, expected);
    }
}
