//! The paths of an agent with `[multipath]`, as a table that is written anew each second.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::{Failure, status, write};

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Clears the screen of a terminal, and goes to its first place (ECMA-48: ED, CUP).
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

/// Writes the paths of the agent at `socket`: once, or on a terminal until somebody ends it.
pub(super) fn watch(socket: Option<&Path>) -> Result<(), Failure> {
    let socket = status::find(socket)?;
    let mut before = None;
    loop {
        let now = status::read(&socket)?;
        let table = described(&now, before.as_ref());
        if !io::stdout().is_terminal() {
            return write(&table);
        }
        write(&format!("{CLEAR}{table}"))?;
        before = Some(now);
        pause();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a command that waits for the next second has nothing else to do"
)]
fn pause() {
    std::thread::sleep(INTERVAL);
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

/// A rate, with the unit that fits.
fn rate(bits: f64) -> String {
    match bits {
        bits if bits >= 1e9 => format!("{:.2} Gbit/s", bits / 1e9),
        bits if bits >= 1e6 => format!("{:.2} Mbit/s", bits / 1e6),
        bits => format!("{:.1} kbit/s", bits / 1e3),
    }
}

fn optional(value: &Value, describe: impl Fn(f64) -> String) -> String {
    value.as_f64().map_or_else(|| "-".to_owned(), describe)
}

/// The same path at an earlier look.
fn earlier<'a>(before: Option<&'a Value>, home_address: &Value, path: &Value) -> Option<&'a Value> {
    let several = before?["multipath"].as_array()?;
    let several = several.iter().find(|several| several["home_address"] == *home_address)?;
    several["paths"].as_array()?.iter().find(|known| known["path"] == path["path"])
}

/// A table for each mobile node.
fn described(status: &Value, before: Option<&Value>) -> String {
    let mut text = String::new();
    let all = status["multipath"].as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        return "no paths: the agent has no [multipath], or no mobile node that uses several\n".to_owned();
    }
    let seconds = before.map(|before| number(&status["uptime_s"]) - number(&before["uptime_s"]));
    for several in all {
        let home_address = several["home_address"].as_str().unwrap_or_default();
        // Writing to a text has no way to fail.
        let _ = writeln!(
            text,
            "{home_address}: {} packets sent, {} again, {} without a path; {} came, {} waited, {} late, {} twice",
            several["offered"],
            several["replayed"],
            several["no_path"],
            several["arrived"],
            several["waited"],
            several["late"],
            several["duplicates"],
        );
        let _ = writeln!(
            text,
            "  {:<4} {:<15} {:<10} {:<8} {:>9} {:>7} {:>14} {:>14} {:>14} {:>6}",
            "path", "care-of", "by", "state", "rtt", "loss", "carries", "out", "in", "share"
        );
        for path in several["paths"].as_array().map_or(&[][..], Vec::as_slice) {
            let now = |name: &str| {
                let earlier = earlier(before, &several["home_address"], path)?;
                let span = seconds.filter(|span| *span > 0.0)?;
                Some(rate((number(&path[name]) - number(&earlier[name])).max(0.0) * 8.0 / span))
            };
            let _ = writeln!(
                text,
                "  {:<4} {:<15} {:<10} {:<8} {:>9} {:>7} {:>14} {:>14} {:>14} {:>6}",
                path["path"].to_string(),
                path["care_of"].as_str().unwrap_or_default(),
                path["relay"].as_str().or_else(|| path["interface"].as_str()).unwrap_or("-"),
                path["state"].as_str().unwrap_or_default(),
                optional(&path["round_trip_ms"], |ms| format!("{ms:.1} ms")),
                optional(&path["loss"], |loss| format!("{:.1} %", loss * 100.0)),
                optional(&path["rate"], rate),
                now("sent_bytes").unwrap_or_else(|| "-".to_owned()),
                now("received_bytes").unwrap_or_else(|| "-".to_owned()),
                optional(&path["share"], |share| format!("{:.0} %", share * 100.0)),
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(uptime: f64, bytes: u64) -> Value {
        json!({ "uptime_s": uptime, "multipath": [{
            "home_address": "10.0.0.7", "offered": 9, "replayed": 1, "no_path": 0, "arrived": 8, "waited": 2,
            "late": 0, "duplicates": 3, "paths": [{
                "path": 1, "care_of": "198.51.100.7", "interface": "wwan0", "state": "alive",
                "round_trip_ms": 40.25, "loss": 0.004, "rate": 20_000_000, "sent_bytes": bytes,
                "received_bytes": 0, "share": 0.25,
            }],
        }]})
    }

    #[test]
    fn a_path_is_told_with_what_has_passed_since_the_last_look() {
        let table = described(&status(12.0, 1_250_000), Some(&status(10.0, 0)));
        let line = table.lines().last().unwrap();
        for word in
            ["198.51.100.7", "wwan0", "alive", "40.2 ms", "0.4 %", "20.00 Mbit/s", "5.00 Mbit/s", "25 %"]
        {
            assert!(line.contains(word), "{word} in {line}");
        }
        let first = described(&status(12.0, 1), None);
        assert!(first.lines().last().unwrap().contains(" - "), "nothing to compare with yet: {first}");
        assert!(described(&json!({ "multipath": [] }), None).starts_with("no paths"));
    }
}
