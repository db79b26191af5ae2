//! `[assist]`: what is done for TCP connections at handovers. The words are those of the scenarios.

use std::net::IpAddr;

use careof_assist::{Config, Exception, Place};
use careof_assist_file::AssistFile;
use careof_assist_file::parameters::{
    Parameters, black_hole, fast_retransmit, hold_last, lcd_kick, mss_clamp, replay, window_clamp,
};
use careof_document::decode::{Field, Reader};
use careof_document::error::Problems;
use careof_document::tree::Value;
use careof_mobility::{v4, v6};

use super::fields::prefix;
use super::reference::{ASSIST, assists};

/// The assists of a mobile node.
const OF_MOBILE_NODES: [&str; 7] =
    ["replay", "hold-last", "lcd-kick", "fast-retransmit", "window-clamp", "mss-clamp", "black-hole"];

static MOBILE_NODE: AssistFile = AssistFile {
    section: &ASSIST,
    except: &assists::EXCEPT,
    known: &OF_MOBILE_NODES,
    refusal: Some(refusal),
};

static AGENT: AssistFile = AssistFile {
    known: &["replay", "hold-last", "lcd-kick", "window-clamp", "mss-clamp", "black-hole"],
    ..MOBILE_NODE
};

/// The assists that `assist` asks for; `None`: none.
pub(super) fn assist(reader: &Reader<'_>, place: Place, problems: &mut Problems) -> Option<Config> {
    let field = reader.get("assist")?;
    let file = if place == Place::MobileNode { MOBILE_NODE } else { AGENT };
    let mut config = Config::none(place);
    // What is entered of an assist that is not in use does no harm: that it has parameters is an error.
    let take = |name: &str, table: Option<&Field<'_>>, problems: &mut Problems| {
        enter(name, table, &mut config, problems)
    };
    let table = file.read(&field, take, any_prefix, problems);
    config.except = table.except.iter().map(|one| Exception { prefix: one.peer, port: one.port }).collect();
    (!table.uses.is_empty()).then_some(config)
}

/// Why a daemon does not have `name`, or not here.
fn refusal(name: &str) -> (String, &'static str) {
    if OF_MOBILE_NODES.contains(&name) {
        return (format!("\"{name}\" runs on a mobile node"), "configure it there");
    }
    let expected = format!("\"{name}\" needs what a daemon on its own does not have");
    (expected, "use \"default\"; the simulator has it")
}

/// Enters an assist with its parameters; `None` if something in them is wrong.
fn enter(name: &str, table: Option<&Field<'_>>, config: &mut Config, problems: &mut Problems) -> Option<()> {
    let before = problems.count();
    let section = assists::section_of(name);
    let mut given = Parameters::new(table, section, problems)?;
    match name {
        "replay" => replay(&mut given).enter(config),
        "hold-last" => config.hold_last = Some(hold_last(&mut given)),
        "lcd-kick" => lcd_kick(&mut given).enter(config),
        "fast-retransmit" => config.fast_retransmit = Some(fast_retransmit(&mut given)),
        "window-clamp" => config.window_clamp = Some(window_clamp(&mut given)),
        "mss-clamp" => config.mss_clamp = Some(mss_clamp(&mut given)),
        "black-hole" => config.black_hole = Some(black_hole(&mut given)),
        _ => return None,
    }
    (problems.count() == before).then_some(())
}

/// A prefix of either version.
fn any_prefix(field: &Field<'_>, problems: &mut Problems) -> Option<(IpAddr, u8)> {
    if matches!(&field.node.value, Value::Text(text) if text.contains(':')) {
        let prefix: v6::Prefix = prefix(field, problems)?;
        return Some((prefix.address().into(), prefix.length()));
    }
    let prefix: v4::Prefix = prefix(field, problems)?;
    Some((prefix.address().into(), prefix.length()))
}
