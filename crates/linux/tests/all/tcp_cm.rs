//! TCP-CM on real hosts: what of it a kernel's TCP takes from a congestion control that is told of handovers.

use careof_linux::{LinuxRun, Observation, WorldError};
use careof_metrics::summary_json;
use careof_trace::Columns;

use crate::common::{Ran, did, flow, paced, parsed, slower};

const OUTAGE: &str = r#"
duration = "12 s"
[links]
first = { rate = "4 Mbit/s", delay = "20 ms" }
second = { rate = "4 Mbit/s", delay = "40 ms" }
[mobility]
protocol = "mobile-ipv6"
route_optimization = true
[[handover]]
at = "5 s"
from = "first"
to = "second"
style = "break-before-make"
interruption = "2000 ms"
queued = "drop"
[[flow]]
name = "download"
from = "correspondent"
to = "mobile"
[[flow]]
name = "upload"
from = "mobile"
to = "correspondent"
tcp = { variant = "kernel", congestion = "reno" }
[assist]
use = "tcp-cm"
"#;

/// Runs it until the handover is over in time for all senders to go on, and for what is to be seen of it; `None` where this machine cannot.
fn after_an_outage(more: &str, is_as_planned: impl Fn(&Ran) -> bool) -> Option<Ran> {
    let times = [("duration", 12, "s"), ("at", 5, "s"), ("interruption", 2000, "ms")];
    paced(
        |pace| format!("{}{more}", slower(OUTAGE, pace, &times)),
        |ran| ran.resumes_after(1) && is_as_planned(ran),
    )
}

/// Rows of what an assist said on `node`.
fn rows(events: &Columns, node: &str, what: &str) -> Vec<usize> {
    let [kinds, causes, nodes] = ["kind", "cause", "node"].map(|name| events.by_name(name).unwrap());
    let is_it = |row: &usize| {
        kinds.text(*row) == Some("assist")
            && causes.text(*row) == Some(what)
            && nodes.text(*row) == Some(node)
    };
    (0..events.rows()).filter(is_it).collect()
}

/// Window and threshold of the sender in this row, bytes; `None` in a row of another kind.
fn control(events: &Columns, row: usize) -> Option<[i128; 2]> {
    let number = |name| events.by_name(name).unwrap().number(row);
    let is_state = events.by_name("kind").unwrap().text(row) == Some("tcp-state");
    Some([number("cwnd_bytes")?, number("ssthresh_bytes")?]).filter(|_| is_state)
}

/// Window and threshold that a sender set when it said so in this row.
fn set_in(events: &Columns, row: usize) -> [i128; 2] {
    let times = events.by_name("time_ns").unwrap();
    assert_eq!(times.number(row), times.number(row + 1));
    control(events, row + 1).unwrap()
}

#[test]
fn a_correspondents_sender_sets_window_and_threshold_once_by_the_new_path() {
    for estimator in ["westwood", "delivery-rate"] {
        let more = format!("tcp-cm = {{ estimator = \"{estimator}\" }}\n");
        let ran =
            after_an_outage(&more, |Ran { events, .. }| rows(events, "correspondent", "measured").len() == 1);
        let Some(Ran { summary, events, remarks, .. }) = ran else { return };
        assert!(
            remarks.iter().any(|remark| remark.contains("tcp-cm")),
            "what is the kernel's is said: {remarks:?}"
        );
        assert!(did(&events, "correspondent", "replaced") > 0, "{}", summary_json(&summary));
        let [cwnd, ssthresh] = set_in(&events, rows(&events, "correspondent", "measured")[0]);
        assert_eq!(cwnd, ssthresh);
        assert!(cwnd > 0, "{}", summary_json(&summary));
        let [handover] = &summary.handovers[..] else { panic!("{} handovers", summary.handovers.len()) };
        let of = |name: &str| handover.flows.iter().find(|flow| flow.name == name).unwrap();
        assert!(of("download").bandwidth_estimate_bps.unwrap() > 0.0, "{}", summary_json(&summary));
        assert_eq!(of("upload").bandwidth_estimate_bps, None, "it sets no window by an estimate");
        assert_eq!(flow(&summary, "download").advice_taken, 1, "{}", summary_json(&summary));
        for name in ["download", "upload"] {
            assert!(of(name).bytes_delivered > 0, "by the second link: {}", summary_json(&summary));
        }
    }
}

/// What its timer has taken while there was no path: the upload runs into it, as nothing is acknowledged for 2 s.
#[test]
fn a_mobile_nodes_sender_gets_back_what_timeouts_took_while_there_was_no_path() {
    let ran = after_an_outage("", |ran| did(&ran.events, "mobile", "resume") > 0);
    let Some(Ran { summary, events, .. }) = ran else { return };
    assert_eq!(rows(&events, "mobile", "measured"), [0; 0], "{}", summary_json(&summary));
    let [away, restored] = ["away", "restored"].map(|what| rows(&events, "mobile", what));
    let ready = summary.handovers[0].ready_at.unwrap();
    let times = events.by_name("time_ns").unwrap();
    for row in &restored {
        assert!(away.iter().any(|other| other < row), "{}", summary_json(&summary));
        assert!(times.number(*row).unwrap() >= i128::from(ready.as_nanos()), "by the new path alone");
        let [cwnd, ssthresh] = set_in(&events, *row);
        assert!(cwnd > 0 && ssthresh > 0, "{}", summary_json(&summary));
    }
    assert_eq!(restored.len(), usize::from(!away.is_empty()), "{}", summary_json(&summary));
    // Told not to stand still, it goes on as it was.
    let ran = after_an_outage("tcp-cm = { suspend = false }\n", |_| true);
    let Some(Ran { events, .. }) = ran else { return };
    for what in ["away", "resume", "restored"] {
        assert_eq!(did(&events, "mobile", what), 0, "{what}");
    }
}

#[test]
fn flows_that_are_excepted_keep_the_kernels_own_congestion_control() {
    let except = "except = [{ prefix = \"correspondent\" }]\n";
    let Some(Ran { events, .. }) = after_an_outage(except, |_| true) else { return };
    for node in ["mobile", "correspondent"] {
        for what in ["replaced", "measured", "away", "resume", "restored"] {
            assert_eq!(did(&events, node, what), 0, "{what}");
        }
    }
}

#[test]
fn what_no_binding_update_tells_is_refused_before_anything_starts() {
    let text = OUTAGE.replace("route_optimization = true\n", "");
    let refused = LinuxRun::new(parsed(&text), "test.toml", 0, Observation::default()).err().unwrap();
    assert!(matches!(&refused, WorldError::Unsupported { key, .. } if key == "assist.use"), "{refused}");
}
