//! A small trace, made up for these tests: four segments that fit into the first window.

use careof_tcp::{Config, DelayedAck, HyStart, InitialWindow, KernelEdition, RtoEstimator, Variant};

use super::{Kind, Setup, Trace, compare_with};

pub(super) const HEADER: &str = "\
# name=small.reno.default.sack1.ts1
# cmd=--name small.reno.default.sack1.ts1 --cc reno --sack 1 --ts 1 --spin 0 --segs 4 --rate 10000000 --owd 25000 --queue 1000 --maxtime 60000000
# sysctl tcp_sack=1 tcp_dsack=1 tcp_timestamps=1 tcp_recovery=1 tcp_early_retrans=3 tcp_frto=2 tcp_reordering=3
# link rate=10000000 bit/s owd=25000 us queue=1000 pkts fifo=1 both directions alike; mss=1448 mtu=1500
";

const ROWS: &str = "\
t_us,ev,flags,seq,len,ack,wnd,sack,tsval,tsecr,k,tx,fate,t_arr_us,cwnd,ssthresh,srtt_us,rttvar_us,rto_us,ca,backoff,unacked,sacked,lost,retrans
1,S,S,0,0,0,64240,,0,0,,,ok,25049,10,-1,0,250000,1000000,0,0,0,0,0,0
50150,R,S.,0,0,1,65535,,0,0,,,,,10,-1,50149,25074,251000,0,0,0,0,0,0
50151,S,.,1,0,1,65536,,50,0,,,ok,75193,10,-1,50149,25074,251000,0,0,0,0,0,0
50154,S,.,1,1448,1,65536,,50,0,1,1,ok,76393,10,-1,50149,25074,251000,0,0,4,0,0,0
50154,S,P.,1449,1448,1,65536,,50,0,2,1,ok,77593,10,-1,50149,25074,251000,0,0,4,0,0,0
50154,S,.,2897,1448,1,65536,,50,0,3,1,ok,78793,10,-1,50149,25074,251000,0,0,4,0,0,0
50154,S,P.,4345,1448,1,65536,,50,0,4,1,ok,79993,10,-1,50149,25074,251000,0,0,4,0,0,0
101452,R,.,1,0,1449,8387328,,51,50,1,1,,,10,-1,50293,19094,251000,0,0,3,0,0,0
102639,R,.,1,0,2897,8387328,,52,50,2,1,,,10,-1,50567,14869,251000,0,0,2,0,0,0
103839,R,.,1,0,4345,8387328,,53,50,3,1,,,10,-1,50957,11932,251000,0,0,1,0,0,0
105041,R,.,1,0,5793,8387328,,55,50,4,1,,,10,-1,51449,9932,252000,0,0,0,0,0,0
";

pub(super) fn small() -> String {
    format!("{HEADER}{ROWS}")
}

fn compared(text: &str) -> super::Comparison {
    let trace = Trace::parse("small.csv", text).unwrap();
    let mut setup = Setup::of(&trace).unwrap();
    // An old and simple sender: these tests are about the comparison.
    let simple = Config {
        variant: Variant::Sack,
        sack: true,
        timestamps: true,
        window_scaling: true,
        rto: RtoEstimator::Linux,
        initial_window: InitialWindow::Segments(10),
        delayed_ack: DelayedAck::Off,
        ..Config::default()
    };
    setup.receiver = Config { receive_window: setup.receiver.receive_window, ..simple.clone() };
    setup.sender = simple;
    compare_with(&trace, &setup).unwrap()
}

#[test]
fn a_model_that_does_the_same_is_found_to_agree() {
    let found = compared(&small());
    assert_eq!(found.error, None);
    for found in [found.open.as_ref().unwrap(), found.closed.as_ref().unwrap()] {
        assert!(found.same_segments && found.same_order, "{found:?}");
        assert_eq!((found.window.agree, found.window.of), (4, 4), "{found:?}");
        assert_eq!((found.times.agree, found.times.of), (5, 5), "{found:?}");
        assert!(found.failed().is_empty());
        assert_eq!(found.first_difference(), None);
    }
    assert!(found.agrees());
    let row = found.json("small.csv");
    assert_eq!(row["cwnd_agreement"], 1.0);
    assert_eq!(row["first_difference"], serde_json::Value::Null);
}

#[test]
fn a_planted_window_is_found_and_named() {
    let found = compared(&small().replace("10,-1,50567", "11,7,50567"));
    let open = found.open.as_ref().unwrap();
    assert_eq!((open.window.agree, open.window.of), (3, 4));
    let first = open.first_difference().unwrap();
    assert_eq!((first.kind, first.line, first.at_us), (Kind::Window, 14, 102_639));
    assert!(first.kernel.contains("cwnd 11, ssthresh 7") && first.model.contains("cwnd 10, ssthresh none"));
    assert!(open.same_order && found.closed.as_ref().unwrap().same_order);
    assert_eq!(found.json("f")["first_difference"]["row"], 14);
}

#[test]
fn a_planted_retransmission_is_found_and_named() {
    let again =
        "102700,S,.,4345,1448,1,65536,,102,52,4,2,ok,130000,10,-1,50567,14869,251000,0,0,2,0,0,0\n103839,R";
    let found = compared(&small().replace("103839,R", again));
    for found in [found.open.as_ref().unwrap(), found.closed.as_ref().unwrap()] {
        assert!(!found.same_segments && !found.same_order);
        assert_eq!(found.retransmissions, (1, 0));
        let first = found.differences.iter().find(|difference| difference.kind == Kind::Segment).unwrap();
        assert_eq!((first.line, first.at_us), (15, 102_700));
        assert!(first.kernel.contains("segment 4 again"), "{first}");
        assert!(first.model.contains("nothing more"), "{first}");
    }
    assert!(!found.agrees());
}

#[test]
fn another_order_is_found_and_named() {
    let good = small();
    let mut lines: Vec<&str> = good.lines().collect();
    lines.swap(10, 11);
    let found = compared(&(lines.join("\n") + "\n"));
    for found in [found.open.as_ref().unwrap(), found.closed.as_ref().unwrap()] {
        let first = found.differences.iter().find(|difference| difference.kind == Kind::Segment).unwrap();
        assert_eq!(first.line, 11);
        assert!(first.kernel.contains("segment 4") && first.model.contains("segment 3"), "{first}");
        assert!(found.same_segments && !found.same_order);
    }
}

#[test]
fn a_shifted_time_is_found_by_the_closed_loop() {
    let mut text = small();
    for row in ["50151,S", "50154,S", "50150,R"] {
        text = text.replace(row, &row.replacen("50", "53", 1));
    }
    let found = compared(&text);
    let closed = found.closed.as_ref().unwrap();
    // The SYN alone left when it should.
    assert_eq!(closed.times.agree, 1);
    assert_eq!(closed.failed(), ["times"]);
    assert!(!found.agrees());
    assert_eq!(closed.first_difference().map(|d| d.kind), Some(Kind::Time));
    assert!(closed.same_order);
}

/// The small trace of a connection whose first SYN is lost: the second leaves after `after_us`.
fn with_a_lost_syn(after_us: u64) -> String {
    let header = HEADER.replace("--segs 4", "--segs 4 --syndrop 1");
    let mut text = header;
    for line in ROWS.lines() {
        match line.split_once(',') {
            Some(("1", rest)) => {
                text += &format!(
                    "{line}\n{},{}\n",
                    after_us + 1,
                    rest.replacen(",0,0,,,", &format!(",{},0,,,", after_us / 1_000), 1)
                );
            }
            Some((at, rest)) if at != "t_us" => {
                text += &format!("{},{rest}\n", at.parse::<u64>().unwrap() + after_us);
            }
            _ => text += &format!("{line}\n"),
        }
    }
    text
}

fn has_other_times(found: &super::Loop) -> bool {
    found.differences.iter().any(|difference| difference.kind == Kind::Time)
}

#[test]
fn a_timer_may_be_an_eighth_and_a_tick_late_and_no_more() {
    // The model's timeout is a second.
    for (after_us, allowed) in [
        (990_000, false),
        (1_000_000, true),
        (1_060_000, true),
        (1_126_000, true),
        (1_130_000, false),
        (1_400_000, false),
    ] {
        let found = compared(&with_a_lost_syn(after_us));
        for found in [found.open.unwrap(), found.closed.unwrap()] {
            let second_syn = found.differences.iter().find(|difference| difference.line == 7);
            assert_eq!(second_syn.is_none(), allowed, "{after_us}: {second_syn:?}");
        }
    }
}

#[test]
fn a_model_whose_timer_is_400_ms_late_does_not_agree() {
    let trace = Trace::parse("late.csv", &with_a_lost_syn(1_000_000)).unwrap();
    let late = |by_ms: u64| {
        let mut setup = Setup::of(&trace).unwrap();
        setup.sender.rto_initial = Some(std::time::Duration::from_millis(1_000 + by_ms));
        compare_with(&trace, &setup).unwrap()
    };
    assert!(!has_other_times(late(0).closed.as_ref().unwrap()));
    let found = late(400);
    assert!(found.closed.as_ref().unwrap().failed().contains(&"times"), "{found:?}");
    // Fed with the answer to a SYN that it has not repeated yet, it never does.
    assert!(found.open.as_ref().unwrap().failed().contains(&"order"), "{found:?}");
    assert!(!late(400).agrees());
}

/// Each of the first ten acknowledgements lets two segments leave, at the instant at which the queue's front does; the last of
/// the twenty finds the queue full. One row of them is left.
#[test]
fn what_a_queue_drops_does_not_hang_on_which_rows_a_thinned_trace_has() {
    for noticed_us in [112_230, 112_260] {
        let header = HEADER.replace("--segs 4", "--segs 30").replace("--queue 1000", "--queue 11");
        let rows: Vec<&str> = ROWS.lines().filter(|line| !line.contains(",R,.")).collect();
        let row = "R,.,1,0,14481,8387328,,62,50,10,1,,,20,-1,55000,3000,254000,0,0,20,0,0,0";
        let found = compared(&format!("{header}{}\n{noticed_us},{row}\n", rows.join("\n")));
        assert_eq!(found.closed.unwrap().retransmissions, (0, 1), "noticed at {noticed_us} us");
    }
}

#[test]
fn the_application_writes_when_the_header_says() {
    let text = small().replace("--segs 4", "--segs 1 --app -1:1448,30000:4344");
    let setup = Setup::of(&Trace::parse("x", &text).unwrap()).unwrap();
    assert_eq!(
        setup.writes.iter().map(|w| (w.after_us, w.bytes)).collect::<Vec<_>>(),
        [(0, 1_448), (30_000, 4_344)]
    );
    assert_eq!(setup.bytes, 5_792);
    // The trace's application wrote all at once: the model's later segments leave later.
    let found = compared(&text);
    for found in [found.open.unwrap(), found.closed.unwrap()] {
        assert!(has_other_times(&found), "{found:?}");
    }
    for wrong in ["", "5", "x:5", "-2:5", "7:5,6:5", "0:x"] {
        let text = small().replace("--segs 4", &format!("--segs 4 --app {wrong}"));
        let error = Setup::of(&Trace::parse("x", &text).unwrap()).unwrap_err();
        assert!(error.to_string().contains("--app"), "{wrong}: {error}");
    }
}

#[test]
fn an_unknown_flag_costs_only_the_closed_loop() {
    let found = compared(&small().replace("--segs 4", "--segs 4 --wobble 3"));
    assert!(found.open.is_some() && found.closed.is_none());
    let error = found.error.as_ref().unwrap();
    assert_eq!(error.line, Some(2));
    assert!(error.to_string().contains("--wobble") && error.to_string().contains("small.csv:2"), "{error}");
    assert!(!found.agrees());
}

#[test]
fn a_trace_in_which_nothing_is_compared_is_no_agreement() {
    // The sender's state is not told after any acknowledgement.
    let rows = small().replace(",,,10,-1,50", ",,,,-1,50").replace(",,,10,-1,51", ",,,,-1,51");
    let found = compared(&rows);
    let error = found.error.as_ref().unwrap();
    assert!(error.to_string().contains("the open loop compared nothing"), "{error}");
    assert!(!found.agrees());
    let row = found.json("f");
    assert_eq!(row["cwnd_agreement"], serde_json::Value::Null);
    assert_eq!(row["closed"]["cwnd_agreement"], serde_json::Value::Null);
    // A trace that leaves rows out has no open loop; with a script that cannot be read it has none at all.
    let neither = super::Comparison { open: None, closed: None, ..found };
    assert!(!neither.same_segments() && !neither.same_order());
}

#[test]
fn switches_follow_the_header() {
    let setup = |text: &str| Setup::of(&Trace::parse("x", text).unwrap()).unwrap();
    let sender = setup(&small()).sender;
    assert!(
        sender.sack
            && sender.timestamps
            && sender.rack
            && sender.tail_loss_probe
            && sender.frto
            && sender.dsack
    );
    assert_eq!((sender.mss, sender.duplicate_ack_threshold), (1460, 3));
    let classic = setup(
        &small()
            .replace("tcp_recovery=1", "tcp_recovery=0")
            .replace("tcp_early_retrans=3", "tcp_early_retrans=0")
            .replace("tcp_frto=2", "tcp_frto=0"),
    );
    let sender = classic.sender;
    assert!(!sender.rack && !sender.tail_loss_probe && !sender.frto && sender.sack);
    let cubic = setup(&small().replace("--cc reno", "--cc cubic"));
    assert_eq!(cubic.sender.hystart, HyStart::Linux);
    for without in [
        small().replace("small.reno", "small.cubic-nohs").replace("--cc reno", "--cc cubic"),
        small().replace("--cc reno", "--cc cubic --hystart 0"),
    ] {
        assert_eq!(setup(&without).sender.hystart, HyStart::Off);
    }
    let two = setup(&small().replace("--segs 4", "--segs 4 --initcwnd 2 --nodelay 1"));
    assert_eq!((two.sender.initial_window, two.sender.nagle), (InitialWindow::Segments(2), false));
    assert!(setup(&small()).sender.nagle);
    // Nothing could tell a spurious repetition.
    let bare = small()
        .replace("--sack 1 --ts 1", "--sack 0 --ts 0")
        .replace("tcp_dsack=1", "tcp_dsack=0")
        .replace("tcp_frto=2", "tcp_frto=0");
    assert!(!setup(&bare).sender.eifel && setup(&small()).sender.eifel);
    assert_eq!(setup(&bare).sender.check(), Ok(()));
    let error =
        Setup::of(&Trace::parse("x", &small().replace("--cc reno", "--cc illinois")).unwrap()).unwrap_err();
    assert!(error.to_string().contains("illinois"), "{error}");
}

#[test]
fn the_kernel_and_its_clock_are_read() {
    let trace = Trace::parse("x", &small()).unwrap();
    assert_eq!((trace.kernel, trace.late_max_us), (None, 0));
    assert_eq!(Setup::of(&trace).unwrap().tick_us, 1_000);
    let text = small()
        .replace(
            "# cmd=",
            "# kernel=Linux 6.18.44-fc-v657 x86_64\n# end t_us=5 rc=0 late_max_us=536 of 576\n# cmd=",
        )
        .replace("251000", "252000");
    let trace = Trace::parse("x", &text).unwrap();
    assert_eq!((trace.kernel, trace.late_max_us), (Some(KernelEdition::V6_18), 536));
    // All its timeouts are multiples of 4 ms.
    assert_eq!(Setup::of(&trace).unwrap().tick_us, 4_000);
}

#[test]
fn a_receiver_that_does_not_read_has_the_traces_windows() {
    let text =
        small().replace("--segs 4", "--segs 4 --zerowin 300000,65536").replace("5793,8387328", "5793,0");
    let found = compared(&text);
    assert!(found.closed.as_ref().unwrap().same_order, "{found:?}");
    let error = Setup::of(&Trace::parse("x", &small()).unwrap())
        .and_then(|_| super::Script::of(&Trace::parse("x", &text.replace("300000,65536", "300000")).unwrap()))
        .unwrap_err();
    assert!(error.to_string().contains("--zerowin"), "{error}");
}

#[test]
fn figures_that_would_run_for_ever_are_refused() {
    for (from, to, words) in [
        ("--maxtime 60000000", "--maxtime 3600000001", "--maxtime"),
        ("--segs 4", "--segs 10000001", "--segs"),
        ("--owd 25000", "--owd 18446744073709551615", "--owd"),
        ("--segs 4", "--segs 4 --spike seg:1,18446744073709551615", "--spike"),
        ("mss=1448", "mss=0", "mss"),
    ] {
        let trace = Trace::parse("x", &small().replacen(from, to, 1)).unwrap();
        let error = Setup::of(&trace).and_then(|_| super::Script::of(&trace)).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    let late = small().replace("105041,R", "18446744073709551615,R");
    assert!(Trace::parse("x", &late).unwrap_err().to_string().contains("t_us"));
}
