//! `quic` of a flow.

use careof_quic::{Congestion, MAX_MTU, MIN_MTU};

use crate::decode::{Field, Reader};
use crate::error::{Origin, Problems};
use crate::model::{IpVersion, Quic};
use crate::reference::quic::QUIC;
use crate::tree::Value;
use crate::words::ReadWord as _;

/// QUIC of a flow as the file gives it: whether its datagrams fit the links is not known.
#[derive(Clone, Debug)]
pub(crate) struct QuicDraft {
    quic: Quic,
    /// Where an error of the size of datagrams belongs.
    mtu: (Origin, String),
}

/// Bytes of the IP and UDP headers of a datagram.
const fn headers(version: IpVersion) -> u16 {
    match version {
        IpVersion::V4 => 20 + 8,
        IpVersion::V6 => 40 + 8,
    }
}

impl QuicDraft {
    /// QUIC over links of at least `mtu` at the flow's ends.
    pub(crate) fn resolve(self, mtu: u16, version: IpVersion, problems: &mut Problems) -> Option<Quic> {
        let (headers, payload) = (headers(version), self.quic.config.initial_mtu);
        let most = mtu.saturating_sub(headers);
        if payload <= most {
            return Some(self.quic);
        }
        let expected = format!(
            "{most} is the most that fits the MTU of {mtu} at the flow's ends (less {headers} of headers), and QUIC needs {MIN_MTU}"
        );
        problems.add((self.mtu.0, &self.mtu.1), payload.to_string(), expected, None);
        None
    }
}

/// Reads the value of `quic`; `None` if something in it is wrong.
pub(crate) fn quic(field: &Field<'_>, problems: &mut Problems) -> Option<QuicDraft> {
    let quic = read(field, problems)?;
    Some(QuicDraft { quic, mtu: (field.node.origin, format!("{}.initial_mtu", field.path)) })
}

fn read(field: &Field<'_>, problems: &mut Problems) -> Option<Quic> {
    // What no scenario asks for stays where it is: with Mobile IP the address does.
    let usual = careof_quic::Config { migration: false, ..careof_quic::Config::default() };
    let mut quic = Quic { config: usual, given: Vec::new() };
    match &field.node.value {
        Value::Text(_) => {
            quic.config.congestion = field.word::<Congestion>(problems)?;
            quic.given.push("congestion");
            Some(quic)
        }
        Value::Table(_) => {
            let before = problems.count();
            let reader = field.reader(&QUIC, problems)?;
            table(&reader, &mut quic, problems);
            (problems.count() == before).then_some(quic)
        }
        _ => {
            let expected = "it must be the name of a congestion control, such as \"cubic\", or a table, such as { migration = true }";
            field.wrong(expected, None, problems);
            None
        }
    }
}

fn table(reader: &Reader<'_>, quic: &mut Quic, problems: &mut Problems) {
    quic.given = QUIC.keys.iter().map(|key| key.name).filter(|key| reader.get(key).is_some()).collect();
    let config = &mut quic.config;
    if let Some(congestion) = reader.get("congestion").and_then(|field| field.word(problems)) {
        config.congestion = congestion;
    }
    if let Some(migration) = reader.get("migration").and_then(|field| field.boolean(problems)) {
        config.migration = migration;
    }
    if let Some(mtu) =
        reader.get("initial_mtu").and_then(|field| field.packet_size(MIN_MTU, MAX_MTU, problems))
    {
        config.initial_mtu = mtu;
    }
    if let Some(discovery) = reader.get("mtu_discovery").and_then(|field| field.boolean(problems)) {
        config.mtu_discovery = discovery;
    }
    if let Some(field) = reader.get("window")
        && let Some(window) = field.size(problems)
    {
        if window < 1 << 62 {
            config.window = window;
        } else {
            field.wrong("the largest window of a stream is 2^62 - 1 B", None, problems);
        }
    }
    if let Some(timeout) = reader.get("idle_timeout").and_then(|field| field.positive_duration(problems)) {
        config.idle_timeout = Some(timeout);
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    fn flow(lines: &str) -> Result<Scenario, String> {
        let text = format!(
            "duration = \"9 s\"\n[links]\nleft = {{ preset = \"lte\", between = [\"a\", \"b\"] }}\n[[flow]]\nfrom = \"a\"\nto = \"b\"\n{lines}\n"
        );
        Scenario::parse("x.toml", &text, &[]).map_err(|errors| errors.to_string())
    }

    #[test]
    fn a_flow_is_carried_by_quic_where_it_says_so() {
        assert!(flow("").unwrap().flows[0].quic.is_none());
        let short = flow("quic = \"new-reno\"").unwrap().flows[0].quic.clone().unwrap();
        let long = flow("quic = { congestion = \"new-reno\" }").unwrap().flows[0].quic.clone().unwrap();
        assert_eq!(short, long);
        assert!(!short.config.migration, "what nobody asks for is left to Mobile IP");
    }

    #[test]
    fn what_does_not_go_together_is_said_with_its_place() {
        for (lines, what) in [
            ("tcp = \"reno\"\nquic = \"cubic\"", "leave `tcp` or `quic` out"),
            ("command = \"true\"\nquic = \"cubic\"", "programs bring their own transport"),
            ("kind = \"probe\"\nquic = \"cubic\"", "a probe sends packets of its own"),
            ("quic = \"westwood\"", "new-reno"),
            ("quic = 3", "the name of a congestion control"),
            ("quic = { initial_mtu = 1100 }", "1200"),
            ("quic = { initial_mtu = 1473 }", "1472 is the most that fits"),
            ("quic = { mss = 1400 }", "write `initial_mtu`"),
        ] {
            let message = flow(lines).map(drop).expect_err(lines);
            assert!(message.contains(what), "{lines}: {message}");
        }
    }
}
