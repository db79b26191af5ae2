//! What is kept of a run: a row for each of its flows.
//!
//! The columns are those of a flow's summary, then what the run's handovers came to, then the run's own. They are what
//! [`careof_metrics`] defines; here they are only put side by side.

use std::sync::LazyLock;

use careof_base::{Duration, Instant};
use careof_metrics::{DEFINITIONS, FlowMetrics, FlowSummary, Section, TcpSummary};
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

/// The rows of a run that went well, from its summary as JSON, in whichever world it was made. A run without flows has
/// one row, in which nothing is said of a flow. What a summary does not have is null.
#[must_use]
pub fn rows(summary: &Value) -> Vec<Value> {
    let dropped: u64 = parts(&summary["packets"]["dropped"]).filter_map(Value::as_u64).sum();
    let row = |flow: &Value| {
        let of_flow = DEFINITIONS
            .iter()
            .filter(|one| one.section == Section::Flow)
            .map(|one| flat(flow.get(one.key).unwrap_or(&Value::Null)));
        let own = handovers(&summary["handovers"], &flow["name"])
            .into_iter()
            .chain([json!(dropped), flat(&summary["digest"])]);
        Value::Array(of_flow.chain(own).collect())
    };
    let rows: Vec<Value> = parts(&summary["flows"]).map(row).collect();
    if rows.is_empty() { vec![row(&Value::Null)] } else { rows }
}

/// What a list or an object holds; nothing where it is neither.
fn parts(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(parts) => Box::new(parts.iter()),
        Value::Object(parts) => Box::new(parts.values()),
        _ => Box::new(std::iter::empty()),
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

fn handovers(handovers: &Value, flow: &Value) -> [Value; 8] {
    let all: Vec<&Value> = parts(handovers).collect();
    let mine: Vec<&Value> =
        all.iter().flat_map(|one| parts(&one["flows"])).filter(|one| &one["name"] == flow).collect();
    let stall = worst(&mine, "stall", &["never", "not-ready", "resumed", "idle"]);
    let recovery = worst(&all, "recovery", &["never", "not-ready", "reached", "not-measured"]);
    let longest =
        |of: &[&Value], key: &str| of.iter().filter_map(|one| one[key].as_f64()).max_by(f64::total_cmp);
    // Whole nanoseconds, whose sum does not depend on their order.
    let interruption: u64 = all
        .iter()
        .filter_map(|one| one["interruption_s"].as_f64())
        .map(|span| (span * 1e9).round() as u64)
        .sum();
    let stall_after = (stall == "resumed").then(|| longest(&mine, "stall_after_s")).flatten();
    let recovery_90 = (recovery == "reached").then(|| longest(&all, "recovery_90_s")).flatten();
    let share = all.iter().filter_map(|one| one["goodput_after_share"].as_f64()).min_by(f64::total_cmp);
    [
        json!(all.len()),
        json!(longest(&mine, "longest_silence_s")),
        json!(interruption as f64 / 1e9),
        stall,
        json!(stall_after),
        recovery,
        json!(recovery_90),
        json!(share),
    ]
}

/// The first of `words`, which are in their order from the worst on, that any of them has under `key`.
fn worst(of: &[&Value], key: &str, words: &[&str]) -> Value {
    words.iter().find(|word| of.iter().any(|one| one[key] == **word)).map_or(Value::Null, |word| json!(word))
}

#[cfg(test)]
mod tests {
    use careof_metrics::{FlowHandoverSummary, HandoverSummary, Recovery, Resumption};

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

    /// What handovers come to for a flow, from their JSON.
    fn of(all: &[HandoverSummary], flow: &str) -> [Value; 8] {
        handovers(&serde_json::to_value(all).unwrap(), &json!(flow))
    }

    #[test]
    fn the_worst_word_of_handovers_is_known_whatever_it_is() {
        for stall in [Resumption::Never, Resumption::NotReady, Resumption::Resumed, Resumption::Idle] {
            let one = [handover(flow(stall, None), Recovery::NotMeasured, None)];
            assert_eq!(of(&one, "x")[3], serde_json::to_value(stall).unwrap());
        }
        for recovery in [Recovery::Never, Recovery::NotReady, Recovery::Reached, Recovery::NotMeasured] {
            let one = [handover(flow(Resumption::Idle, None), recovery, None)];
            assert_eq!(of(&one, "x")[5], serde_json::to_value(recovery).unwrap());
        }
    }

    #[test]
    fn a_summary_that_says_nothing_has_one_row_of_nulls() {
        let row = rows(&json!({}));
        assert_eq!(row.len(), 1);
        let known: Vec<&Value> = parts(&row[0]).filter(|one| !one.is_null()).collect();
        assert_eq!(
            known,
            [&json!(0), &json!(0.0), &json!(0)],
            "handovers, interruption_s and packets_dropped"
        );
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
        assert_eq!(of(&both, "x"), expected);
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
        assert_eq!(of(&stuck, "x"), expected);
    }

    #[test]
    fn a_flow_that_no_handover_touches_has_no_stall() {
        let one = [handover(flow(Resumption::Resumed, Some(3)), Recovery::Reached, Some(4))];
        assert_eq!(of(&one, "y")[1], Value::Null);
        assert_eq!(of(&one, "y")[3..5], [Value::Null, Value::Null]);
        let none = [&[json!(0), Value::Null, json!(0.0)][..], &vec![Value::Null; 5]].concat();
        assert_eq!(of(&[], "x").to_vec(), none);
    }
}
