//! `mptcp` of a flow.

use crate::decode::{Field, Reader};
use crate::error::Problems;
use crate::mobility::Reference;
use crate::model::Mptcp;
use crate::reference::mptcp::MPTCP;
use crate::tree::Value;

/// Multipath TCP of a flow as the file gives it, its links not yet looked up.
#[derive(Debug)]
pub(crate) struct MptcpDraft<'a> {
    /// Without its [`Mptcp::backup`].
    pub(crate) mptcp: Mptcp,
    pub(crate) backup: Vec<Reference<'a>>,
}

/// Reads the value of `mptcp`; the outer `None` if something in it is wrong, the inner one where it is off.
pub(crate) fn mptcp<'a>(field: &Field<'a>, problems: &mut Problems) -> Option<Option<MptcpDraft<'a>>> {
    let usual = MptcpDraft { mptcp: Mptcp::default(), backup: Vec::new() };
    match &field.node.value {
        Value::Boolean(on) => Some(on.then_some(usual)),
        Value::Table(_) => {
            let before = problems.count();
            let reader = field.reader(&MPTCP, problems)?;
            let draft = table(&reader, usual, problems);
            (problems.count() == before).then_some(draft)
        }
        _ => {
            let expected = "it must be true, false or a table, such as { backup = [\"lte\"] }";
            field.wrong(expected, None, problems);
            None
        }
    }
}

fn table<'a>(
    reader: &Reader<'a>,
    mut draft: MptcpDraft<'a>,
    problems: &mut Problems,
) -> Option<MptcpDraft<'a>> {
    let mptcp = &mut draft.mptcp;
    if let Some(scheduler) = reader.get("scheduler").and_then(|field| scheduler(&field, problems)) {
        mptcp.scheduler = scheduler;
    }
    let mut number = |key: &str, least: u8, most: u8| {
        let number = reader.get(key)?.integer(least.into(), most.into(), problems)?;
        u8::try_from(number).ok()
    };
    if let Some(subflows) = number("subflows", 0, Mptcp::MOST_SUBFLOWS) {
        mptcp.subflows = subflows;
    }
    if let Some(count) = number("stale_loss_count", 1, u8::MAX) {
        mptcp.stale_loss_count = count;
    }
    if let Some(fullmesh) = reader.get("fullmesh").and_then(|field| field.boolean(problems)) {
        mptcp.fullmesh = fullmesh;
    }
    if let Some(field) = reader.get("backup") {
        let named = match field.node.value {
            Value::List(_) => field.list("", problems),
            _ => vec![field],
        };
        draft.backup = named.iter().filter_map(|one| Reference::read(one, problems)).collect();
    }
    let enabled = reader.get("enabled").and_then(|field| field.boolean(problems));
    enabled.unwrap_or(true).then_some(draft)
}

/// The name of a scheduler: what can be written into the kernel's parameter as one word.
fn scheduler(field: &Field<'_>, problems: &mut Problems) -> Option<String> {
    /// With the zero behind it (`MPTCP_SCHED_NAME_MAX`).
    const ROOM: usize = 16;
    let name = field.text(problems)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() >= ROOM || !name.bytes().all(fits) {
        field.wrong("a scheduler's name is 1 to 15 letters, digits, '-' and '_'", None, problems);
        return None;
    }
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use crate::{Flow, Mptcp, Scenario};

    fn flow(lines: &str) -> Result<Flow, String> {
        let text = format!(
            "duration = \"9 s\"\n[links]\nwifi = \"wifi-good\"\nlte = \"lte\"\n\
             left = {{ preset = \"lte\", between = [\"a\", \"b\"] }}\n[mobility]\n\
             [[handover]]\nat = \"4 s\"\nfrom = \"wifi\"\nto = \"lte\"\n[[flow]]\nfrom = \"correspondent\"\nto = \"mobile\"\n{lines}\n"
        );
        let scenario = Scenario::parse("x.toml", &text, &[]).map_err(|errors| errors.to_string())?;
        Ok(scenario.flows[0].clone())
    }

    #[test]
    fn a_flow_has_multipath_tcp_where_it_says_so() {
        assert_eq!(flow("").unwrap().mptcp, None);
        for off in ["mptcp = false", "mptcp = { enabled = false, backup = \"lte\" }"] {
            assert_eq!(flow(off).unwrap().mptcp, None, "{off}");
        }
        for on in ["mptcp = true", "mptcp = {}", "mptcp = { enabled = true }"] {
            assert_eq!(flow(on).unwrap().mptcp, Some(Mptcp::default()), "{on}");
        }
    }

    #[test]
    fn backup_links_are_named_one_or_several() {
        let of = |lines| flow(lines).unwrap().mptcp.unwrap();
        let one = of("mptcp = { backup = \"lte\" }");
        assert_eq!(one.backup, of("mptcp = { backup = [\"lte\"] }").backup);
        assert_eq!(one.backup.len(), 1);
        let tcp = flow("tcp = { profile = \"modern\" }\nmptcp = true").unwrap().tcp;
        assert!(tcp.kernel.is_some(), "subflows are TCP as `tcp` says");
    }

    #[test]
    fn what_does_not_go_together_is_said_with_its_place() {
        for (lines, what) in [
            ("quic = \"cubic\"\nmptcp = true", "leave `mptcp` or `quic` out"),
            ("command = \"true\"\nmptcp = true", "programs open their own sockets"),
            ("kind = \"probe\"\nmptcp = true", "a probe sends packets of its own"),
            ("mptcp = 3", "true, false or a table"),
            ("mptcp = { subflows = 9 }", "between 0 and 8"),
            ("mptcp = { stale_loss_count = 0 }", "between 1 and 255"),
            ("mptcp = { scheduler = \"two words\" }", "1 to 15 letters"),
            ("mptcp = { backup = [\"lan\"] }", "the mobile node's links are \"wifi\" and \"lte\""),
            ("mptcp = { backup = [\"left\"] }", "which joins a and b"),
            ("mptcp = { congestion = \"reno\" }", "write it in the table of `tcp`"),
        ] {
            let message = flow(lines).map(drop).expect_err(lines);
            assert!(message.contains(what), "{lines}: {message}");
        }
    }
}
