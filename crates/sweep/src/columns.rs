//! What is kept of a run: a row for each of its flows.
//!
//! The columns are those of a flow's summary, then what the run's handovers came to, then the run's own. They are what
//! [`careof_metrics`] defines; here they are only put side by side.

use std::sync::LazyLock;

use careof_base::{Duration, Instant};
use careof_metrics::{
    DEFINITIONS, FlowHandoverSummary, FlowMetrics, FlowSummary, HandoverSummary, Recovery, Resumption,
    Section, Summary, TcpSummary,
};
use serde_json::{Map, Value, json};

/// A column of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, with the unit in it.
    pub name: String,
    /// The name of its Arrow type.
    pub arrow: &'static str,
    /// What it means.
    pub meaning: String,
}

/// The columns in their order.
#[must_use]
pub fn columns() -> &'static [Column] {
    static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
        let example = example();
        let flow = DEFINITIONS.iter().filter(|one| one.section == Section::Flow).map(|one| {
            let name = if one.key == "name" { "flow" } else { one.key };
            let arrow = match example.get(one.key) {
                Some(Value::Bool(_)) => "bool",
                Some(Value::Number(number)) if number.is_f64() => "float64",
                Some(Value::Number(_)) => "int64",
                _ => "string",
            };
            Column { name: name.to_owned(), arrow, meaning: one.definition.to_owned() }
        });
        let own = OWN.iter().map(|&(name, arrow, meaning)| Column {
            name: name.to_owned(),
            arrow,
            meaning: meaning.to_owned(),
        });
        flow.chain(own).collect()
    });
    &COLUMNS
}

/// What a row has besides its flow's summary.
const OWN: [(&str, &str, &str); 10] = [
    ("handovers", "int64", "Handovers of the run."),
    (
        "longest_silence_after_s",
        "float64",
        "The flow's longest `longest_silence_s` from a handover on. Null for a flow that no handover touches or that was \
         not waited for.",
    ),
    ("interruption_s", "float64", "The sum of `interruption_s` over the run's handovers."),
    (
        "stall",
        "string",
        "What the flow's stalls after handovers came to, the worst of them: never, not-ready, resumed, idle. Null for a \
         flow that no handover touches.",
    ),
    (
        "stall_after_s",
        "float64",
        "The flow's longest `stall_after_s` after a handover. Null unless `stall` is resumed.",
    ),
    (
        "recovery",
        "string",
        "What the run's recoveries came to, the worst of them: never, not-ready, reached, not-measured. Null without a \
         handover.",
    ),
    ("recovery_90_s", "float64", "The run's longest `recovery_90_s`. Null unless `recovery` is reached."),
    (
        "goodput_after_share",
        "float64",
        "The run's smallest `goodput_after_share` after a handover. Null if none was measured.",
    ),
    ("packets_dropped", "int64", "Packets that links and nodes of the run dropped, whatever the cause."),
    ("digest", "string", "The run's fingerprint, the same as in the summary of a run made alone."),
];

/// A flow's summary with a value everywhere: it shows what the values are.
fn example() -> Map<String, Value> {
    let mut metrics = FlowMetrics::new();
    metrics.on_start(Instant::ZERO);
    metrics.on_wanted(Instant::ZERO, 1);
    metrics.on_delivered(Instant::from_secs(1), 1);
    metrics.on_rtt_sample(Duration::from_millis(1));
    metrics.on_assist_stall(Duration::from_millis(1));
    let tcp = TcpSummary { profile: Some(String::new()), ..TcpSummary::default() };
    fields(&FlowSummary::new("", ["", ""], "", tcp, &metrics, Instant::from_secs(1)))
}

fn fields(flow: &FlowSummary) -> Map<String, Value> {
    match serde_json::to_value(flow) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// The rows of a run that went well. A run without flows has one row, in which nothing is said of a flow.
pub(crate) fn rows(summary: &Summary) -> Vec<Value> {
    let dropped: u64 = summary.packets.dropped.values().sum();
    let row = |flow: Option<&FlowSummary>| {
        let known = flow.map(fields).unwrap_or_default();
        let of_flow = DEFINITIONS
            .iter()
            .filter(|one| one.section == Section::Flow)
            .map(|one| flat(known.get(one.key).unwrap_or(&Value::Null)));
        let own = handovers(&summary.handovers, flow.map(|flow| flow.name.as_str()))
            .into_iter()
            .chain([json!(dropped), json!(summary.digest)]);
        Value::Array(of_flow.chain(own).collect())
    };
    if summary.flows.is_empty() {
        vec![row(None)]
    } else {
        summary.flows.iter().map(|flow| row(Some(flow))).collect()
    }
}

/// A value for one place of a table: what has parts becomes text.
fn flat(value: &Value) -> Value {
    match value {
        Value::Array(parts) => {
            let words: Vec<String> = parts
                .iter()
                .map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned))
                .collect();
            Value::String(words.join(", "))
        }
        Value::Object(_) => Value::String(value.to_string()),
        single => single.clone(),
    }
}

fn handovers(handovers: &[HandoverSummary], flow: Option<&str>) -> [Value; 8] {
    let interruption: Duration = handovers.iter().map(|one| one.interruption).sum();
    let mine =
        handovers.iter().filter_map(|one| one.flows.iter().find(|other| Some(other.name.as_str()) == flow));
    let mine: Vec<&FlowHandoverSummary> = mine.collect();
    let stall = [Resumption::Never, Resumption::NotReady, Resumption::Resumed, Resumption::Idle]
        .into_iter()
        .find(|&word| mine.iter().any(|one| one.stall == word));
    let silence = mine.iter().filter_map(|one| one.longest_silence).max();
    let recovery = [Recovery::Never, Recovery::NotReady, Recovery::Reached, Recovery::NotMeasured]
        .into_iter()
        .find(|&word| handovers.iter().any(|one| one.recovery == word));
    let stall_after = (stall == Some(Resumption::Resumed))
        .then(|| mine.iter().filter_map(|one| one.stall_after).max())
        .flatten();
    let recovery_90 = (recovery == Some(Recovery::Reached))
        .then(|| handovers.iter().filter_map(|one| one.recovery_90).max())
        .flatten();
    let share = handovers.iter().filter_map(|one| one.goodput_after_share).min_by(f64::total_cmp);
    let seconds = |span: Option<Duration>| span.map(|span| span.as_nanos() as f64 / 1e9);
    [
        json!(handovers.len()),
        json!(seconds(silence)),
        json!(seconds(Some(interruption))),
        json!(stall),
        json!(seconds(stall_after)),
        json!(recovery),
        json!(seconds(recovery_90)),
        json!(share),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(stall: Resumption, after: Option<u64>) -> FlowHandoverSummary {
        FlowHandoverSummary {
            name: "x".to_owned(),
            longest_silence: after.map(|after| Duration::from_secs(after + 10)),
            longest_silence_at: None,
            waiting: Duration::ZERO,
            stalls: 0,
            stalled: Duration::ZERO,
            stall_after: after.map(Duration::from_secs),
            stall,
            bytes_delivered: 0,
            timeouts: 0,
            spurious_timeouts: 0,
            segments_retransmitted: 0,
            unnecessary_retransmissions: 0,
            duplicate_acks: 0,
            out_of_order_arrivals: 0,
            packets_replayed: 0,
            retransmissions_swallowed: 0,
            goodput_after_bps: None,
            bandwidth_estimate_bps: None,
            bandwidth_error: None,
        }
    }

    fn handover(flow: FlowHandoverSummary, recovery: Recovery, after: Option<u64>) -> HandoverSummary {
        HandoverSummary {
            at: Instant::ZERO,
            until: Instant::from_secs(9),
            from: "a".to_owned(),
            to: "b".to_owned(),
            style: "make-before-break".to_owned(),
            node: None,
            address_at: None,
            ready_at: None,
            longest_silence: None,
            longest_silence_flow: None,
            interruption: Duration::from_millis(1500),
            stall_after: None,
            stall: flow.stall,
            recovery_90: after.map(Duration::from_secs),
            recovery,
            recovery_window: None,
            goodput_after_bps: None,
            goodput_after_share: after.map(|after| 0.1 * after as f64),
            flows: vec![flow],
        }
    }

    #[test]
    fn every_value_of_a_flow_has_a_column_and_a_type() {
        let example = example();
        for (name, value) in &example {
            let column = if name == "name" { "flow" } else { name };
            assert!(columns().iter().any(|one| one.name == column), "{name} has no definition");
            assert!(!value.is_null(), "nothing shows what {name} is");
        }
        let arrow = |name: &str| columns().iter().find(|one| one.name == name).unwrap().arrow;
        assert_eq!(
            ["flow", "profile", "complete", "timeouts", "goodput_bps", "rtt_mean_s", "start_s"].map(arrow),
            ["string", "string", "bool", "int64", "float64", "float64", "float64"]
        );
    }

    #[test]
    fn no_two_columns_share_a_name() {
        let mut names: Vec<_> = columns().iter().map(|one| &one.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), columns().len());
    }

    #[test]
    fn several_handovers_count_by_the_longest_or_the_worst() {
        let both = [
            handover(flow(Resumption::Resumed, Some(3)), Recovery::Reached, Some(4)),
            handover(flow(Resumption::Resumed, Some(2)), Recovery::NotMeasured, None),
            handover(flow(Resumption::Resumed, Some(1)), Recovery::Reached, Some(2)),
        ];
        let expected = [
            json!(3),
            json!(13.0),
            json!(4.5),
            json!("resumed"),
            json!(3.0),
            json!("reached"),
            json!(4.0),
            json!(0.2),
        ];
        assert_eq!(handovers(&both, Some("x")), expected);
        let stuck = [both[0].clone(), handover(flow(Resumption::Never, None), Recovery::Never, None)];
        let expected = [
            json!(2),
            json!(13.0),
            json!(3.0),
            json!("never"),
            Value::Null,
            json!("never"),
            Value::Null,
            json!(0.4),
        ];
        assert_eq!(handovers(&stuck, Some("x")), expected);
    }

    #[test]
    fn a_flow_that_no_handover_touches_has_no_stall() {
        let one = [handover(flow(Resumption::Resumed, Some(3)), Recovery::Reached, Some(4))];
        assert_eq!(handovers(&one, Some("y"))[1], Value::Null);
        assert_eq!(handovers(&one, Some("y"))[3..5], [Value::Null, Value::Null]);
        let none = [&[json!(0), Value::Null, json!(0.0)][..], &vec![Value::Null; 5]].concat();
        assert_eq!(handovers(&[], Some("x")).to_vec(), none);
    }
}
