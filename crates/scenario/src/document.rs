//! `docs/scenario.md`, written from the table of keys and the presets.

use std::fmt::Write as _;

use crate::presets::presets;
use crate::reference::SECTIONS;
use crate::units;

const INTRODUCTION: &str = "# The scenario file

<!-- Generated from the parser's own table of keys: crates/scenario/src/reference.rs. Do not edit. -->

A scenario is a TOML file. Words are written with hyphens, keys with underscores, and a key that is not listed here is
an error. Values with a unit are text:

| kind | written as | units |
|---|---|---|
| rate | `\"9.6 kbit/s\"` | bit/s, kbit/s, Mbit/s, Gbit/s (powers of 1000) |
| duration | `\"700 ms\"` | ns, us, ms, s, min, h |
| size | `\"16 KiB\"` | B, kB, MB, GB (powers of 1000), KiB, MiB, GiB (powers of 1024) |
| packets, segments | `\"50 packets\"`, `\"4 segments\"` | |
| size or bytes | as a size, or `1460` | a plain number counts bytes |
| probability | `0.01` or `\"1 %\"` | |

Numbers are exact: `\"9.6 kbit/s\"` is 9600 bit/s, and what is finer than 1 bit/s, 1 ns or 1 byte is an error.

A run can override any key: `--set links.gsm.queue=\"5 packets\" --set flow.0.tcp.mss=536`. An element of an array is
named by its index or its `name`; a key that names none, such as `flow.tcp.mss`, is set in every element. A value that is
not TOML is taken as text.
";

/// The reference of the scenario file, as in `docs/scenario.md`.
#[must_use]
pub fn reference_markdown() -> String {
    let mut out = String::from(INTRODUCTION);
    out.push_str(&careof_document::section::reference_markdown(&SECTIONS));
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "\n## Presets\n\n\
Links to begin with, each with where its numbers come from. Where a source gives round-trip times, half of one is the\n\
delay of each direction. What the source does not give is an assumption and is named as one.\n\n\
| preset | rate down / up | delay, one way | jitter | loss | queue | what it is |\n|---|---|---|---|---|---|---|\n"
    );
    for preset in presets() {
        let both = |down: String, up: String| if down == up { down } else { format!("{down} / {up}") };
        let (down, up) = (&preset.down, &preset.up);
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} | {} |",
            preset.name,
            both(units::rate(down.rate), units::rate(up.rate)),
            both(units::duration(down.delay), units::duration(up.delay)),
            both(jitter(down), jitter(up)),
            both(loss(down), loss(up)),
            both(units::queue_limit(down.queue.limit), units::queue_limit(up.queue.limit)),
            preset.summary,
        );
    }
    for preset in presets() {
        let _ = write!(out, "\n**`{}`**: {}", preset.name, preset.source);
        for assumption in &preset.assumptions {
            let _ = write!(out, " *Assumed:* {assumption}");
        }
        out.push('\n');
    }
    out
}

fn jitter(direction: &careof_link::Config) -> String {
    match direction.jitter {
        careof_link::Jitter::None => "none".to_owned(),
        careof_link::Jitter::Uniform { spread, .. } => format!("±{}", units::duration(spread)),
        careof_link::Jitter::Normal { deviation, .. } => format!("σ = {}", units::duration(deviation)),
        careof_link::Jitter::Pareto { scale, .. } => format!("Pareto, {}", units::duration(scale)),
    }
}

fn loss(direction: &careof_link::Config) -> String {
    match direction.loss {
        careof_link::Loss::None => "0".to_owned(),
        careof_link::Loss::Bernoulli { p } => units::probability(p),
        careof_link::Loss::GilbertElliott { .. } => "bursts".to_owned(),
    }
}
