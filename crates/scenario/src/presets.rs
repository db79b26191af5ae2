//! Ready links, each with where its numbers come from.
//!
//! They are written in `presets.toml`, in the language of the scenario file, and read by the same code.

use std::sync::LazyLock;

use careof_link::Config;
use serde_json::json;

use crate::decode::Reader;
use crate::error::{Origin, Problems};
use crate::json::direction;
use crate::link::directions;
use crate::reference::DIALECT;
use crate::reference::link::LINK;
use crate::tree::{self, Entry, Value};

/// A ready link.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// As a scenario names it.
    pub name: String,
    /// What it is, in a few words.
    pub summary: String,
    /// Towards the second end of the link: the mobile node.
    pub down: Config,
    /// From the second end.
    pub up: Config,
    /// Where the numbers come from.
    pub source: String,
    /// What the source does not say.
    pub assumptions: Vec<String>,
}

static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    // The text is part of the program: a test reads it, so that nothing here goes wrong for a user.
    let mut problems = Problems::new(&DIALECT);
    let tree = tree::parse(include_str!("presets.toml"), &mut problems).unwrap_or_default();
    let presets = tree.entries.iter().filter_map(|entry| read(entry, &mut problems)).collect();
    debug_assert_eq!(problems.count(), 0, "{problems:?}");
    presets
});

/// All presets, in the order in which people are shown them.
#[must_use]
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// The preset called `name`.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    presets().iter().find(|preset| preset.name == name)
}

/// All presets as a JSON array, with units in the names.
#[must_use]
pub fn presets_json() -> String {
    let presets: Vec<_> = presets()
        .iter()
        .map(|preset| {
            json!({
                "name": preset.name,
                "summary": preset.summary,
                "down": direction(&preset.down),
                "up": direction(&preset.up),
                "source": preset.source,
                "assumptions": preset.assumptions,
            })
        })
        .collect();
    serde_json::Value::from(presets).to_string()
}

fn read(entry: &Entry, problems: &mut Problems) -> Option<Preset> {
    let Value::Table(table) = &entry.node.value else { return None };
    let text = |key: &str| match table.get(key).map(|node| &node.value) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let assumptions = match table.get("assumptions").map(|node| &node.value) {
        Some(Value::List(items)) => items
            .iter()
            .filter_map(|item| if let Value::Text(text) = &item.value { Some(text.clone()) } else { None })
            .collect(),
        _ => Vec::new(),
    };
    let (summary, source) = (text("summary")?, text("source")?);
    let mut link = table.clone();
    link.entries.retain(|entry| !["summary", "source", "assumptions"].contains(&entry.key.as_str()));
    let reader = Reader::new(&link, &LINK, (Origin::File(0), &entry.key), problems);
    let no_files = |_: &str, _| Err("a preset has no files".to_owned());
    let [down, up] = directions(&reader, None, false, &no_files, problems)?.configs;
    Some(Preset { name: entry.key.clone(), summary, down, up, source, assumptions })
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::{DataRate, Duration};
    use careof_link::Framing;

    #[test]
    fn every_preset_is_a_link_with_a_source() {
        let mut problems = Problems::new(&DIALECT);
        let tree = tree::parse(include_str!("presets.toml"), &mut problems).unwrap();
        assert_eq!(
            tree.entries.iter().filter_map(|entry| read(entry, &mut problems)).count(),
            tree.entries.len()
        );
        assert_eq!(problems.count(), 0, "{problems:?}");
        for preset in presets() {
            assert_eq!(preset.down.check(), Ok(()), "{}", preset.name);
            assert_eq!(preset.up.check(), Ok(()), "{}", preset.name);
            assert!(preset.source.len() > 15 && !preset.summary.is_empty(), "{}", preset.name);
            assert!(
                preset.assumptions.iter().any(|text| text.contains("queue"))
                    || preset.source.contains("queue")
            );
        }
    }

    #[test]
    fn the_links_of_the_thesis_have_its_capacities() {
        let capacity = |name: &str, ethernet: Duration| {
            let preset = preset(name).unwrap();
            preset.down.rate.bits_in(preset.down.delay + preset.up.delay + ethernet)
        };
        let ethernet = Duration::from_micros(500);
        assert_eq!(capacity("ethernet-10m", Duration::ZERO), 5_000);
        assert_eq!(capacity("wavelan", ethernet), 7_000);
        assert_eq!(capacity("gsm-csd", ethernet), 6_720);
    }

    #[test]
    fn gsm_carries_960_bytes_a_second() {
        let gsm = preset("gsm-csd").unwrap();
        assert_eq!(gsm.down.rate, DataRate::from_bits_per_second(9_600));
        assert_eq!(gsm.down.framing, Framing::ASYNC_PPP);
        assert_eq!(gsm.down.rate.bits_per_second() / u64::from(gsm.down.framing.bits_per_byte), 960);
    }

    #[test]
    fn the_json_names_its_units() {
        let json: serde_json::Value = serde_json::from_str(&presets_json()).unwrap();
        let gsm = json.as_array().unwrap().iter().find(|preset| preset["name"] == "gsm-csd").unwrap();
        assert_eq!(gsm["down"]["rate_bps"], 9_600);
        assert_eq!(gsm["down"]["delay_ns"], 349_750_000_u64);
        assert_eq!(gsm["down"]["queue"]["limit_packets"], 100);
        assert_eq!(json.as_array().unwrap().len(), presets().len());
    }
}
