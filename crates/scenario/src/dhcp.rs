//! `[mobility.dhcp]` as the file gives it.

use careof_base::Duration;

use crate::decode::{Field, Reader};
use crate::error::Problems;
use crate::model::{CareOf, ClientCheck, Dhcp, StartDelay};
use crate::reference::dhcp::DHCP;
use crate::tree::Value;
use crate::words::ReadWord as _;

/// The table of `mobility`, where care-of addresses come by DHCP; `None` where they do not.
pub(crate) fn dhcp(mobility: &Reader<'_>, care_of: CareOf, problems: &mut Problems) -> Option<Dhcp> {
    let field = mobility.get("dhcp");
    if care_of != CareOf::Dhcp {
        if let Some(field) = field {
            let hint = "write care_of = \"dhcp\" in [mobility], or leave the table out".to_owned();
            problems.add(
                field.place(),
                field.node.value.describe(),
                "no address is asked for with another `care_of`",
                Some(hint),
            );
        }
        return None;
    }
    let reader = field.and_then(|field| field.reader(&DHCP, problems));
    Some(reader.map_or(Dhcp::default(), |reader| table(&reader, problems)))
}

fn table(reader: &Reader<'_>, problems: &mut Problems) -> Dhcp {
    let default = Dhcp::default();
    let client_check = reader.get("client_check").and_then(|field| field.word(problems)).unwrap_or_default();
    if client_check == ClientCheck::None {
        reader.refuse(&["probes"], "a client that does not check sends no probes", problems);
    }
    let probes = reader.get("probes").and_then(|field| field.integer(1, 20, problems));
    Dhcp {
        client_check,
        probes: probes.and_then(|probes| u32::try_from(probes).ok()).unwrap_or(default.probes),
        server_check: match reader.get("server_check") {
            Some(field) if is_text(&field, "none") => None,
            Some(field) => field.positive_duration(problems).or(default.server_check),
            None => default.server_check,
        },
        start_delay: match reader.get("start_delay") {
            Some(field) if is_text(&field, "rfc-2131") => StartDelay::Rfc2131,
            Some(field) => field.duration(problems).map_or(default.start_delay, StartDelay::Fixed),
            None => default.start_delay,
        },
        lease: match reader.get("lease") {
            Some(field) if is_text(&field, "infinity") => None,
            Some(field) => lease(&field, problems).or(default.lease),
            None => default.lease,
        },
        processing: reader
            .get("processing")
            .and_then(|field| field.duration(problems))
            .unwrap_or(default.processing),
    }
}

fn is_text(field: &Field<'_>, word: &str) -> bool {
    matches!(&field.node.value, Value::Text(text) if text == word)
}

fn lease(field: &Field<'_>, problems: &mut Problems) -> Option<Duration> {
    let lease = field.positive_duration(problems)?;
    if lease.subsec_nanos() != 0 {
        let hint = format!("write \"{} s\"", lease.as_secs() + 1);
        field.wrong("leases are whole seconds", Some(hint), problems);
    }
    Some(lease)
}
