//! `fast_handover` of `[mobility]` as the file gives it, and what cannot go with it.

use careof_base::Duration;

use crate::decode::{Field, Reader};
use crate::error::Problems;
use crate::model::{FastHandover, MovementDetection};
use crate::reference::fast_handover::FAST_HANDOVER;
use crate::tree::Value;

/// As many as a buffer can be asked to keep.
const MOST_PACKETS: u64 = 100_000;
/// Lifetimes of bindings are in units of 4 s, of which a message can count so many (RFC 6275 section 6.1.7).
const LIFETIME_UNIT: u64 = 4;
const LONGEST_LIFETIME: u64 = LIFETIME_UNIT * 0xffff;
/// The longest that an access router waits for a mobile node.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Reads it from the table of `mobility`, whose mobile nodes notice by `detection` that they moved.
pub(crate) fn fast_handover(
    mobility: &Reader<'_>,
    detection: MovementDetection,
    problems: &mut Problems,
) -> Option<FastHandover> {
    let field = mobility.get("fast_handover")?;
    let wanted = match &field.node.value {
        Value::Boolean(on) => on.then(FastHandover::default),
        Value::Table(_) => field.reader(&FAST_HANDOVER, problems).map(|reader| table(&reader, problems)),
        _ => {
            let hint = "write fast_handover = true, or fast_handover = { buffer_packets = 256 }".to_owned();
            field.wrong("it must be true, false or a table", Some(hint), problems);
            None
        }
    }?;
    refuse_what_does_not_go_with_it(mobility, detection, problems);
    Some(wanted)
}

fn refuse_what_does_not_go_with_it(
    mobility: &Reader<'_>,
    detection: MovementDetection,
    problems: &mut Problems,
) {
    mobility.refuse(
        &["nodes"],
        "fast handovers are for mobile nodes with access links of their own: leave `fast_handover` or `nodes` out",
        problems,
    );
    mobility.refuse(
        &["home"],
        "fast handovers lead from one care-of address to another, and at home there is none: leave `fast_handover` or `home` out",
        problems,
    );
    mobility.refuse(
        &["order"],
        "fast handovers are those of [[handover]], and with `order` all links are up at once: leave `fast_handover` or `order` out",
        problems,
    );
    if let Some(field) =
        mobility.get("movement_detection").filter(|_| detection != MovementDetection::LinkTrigger)
    {
        let hint = "leave `movement_detection` or `fast_handover` out".to_owned();
        field.wrong("fast handovers act on what the link layer tells", Some(hint), problems);
    }
}

fn table(reader: &Reader<'_>, problems: &mut Problems) -> FastHandover {
    let default = FastHandover::default();
    let packets = reader.get("buffer_packets").and_then(|field| field.integer(0, MOST_PACKETS, problems));
    let percent = reader.get("release_percent").and_then(|field| field.integer(1, 10_000, problems));
    let narrow = |given: Option<u64>, default: u32| {
        given.and_then(|given| u32::try_from(given).ok()).unwrap_or(default)
    };
    FastHandover {
        buffer_packets: narrow(packets, default.buffer_packets),
        buffer_bytes: reader
            .get("buffer_bytes")
            .and_then(|field| field.size(problems))
            .unwrap_or(default.buffer_bytes),
        release_percent: narrow(percent, default.release_percent),
        copies: reader.get("copies").and_then(|field| field.boolean(problems)).unwrap_or(default.copies),
        prepare_ahead: reader
            .get("prepare_ahead")
            .and_then(|field| field.positive_duration(problems))
            .unwrap_or(default.prepare_ahead),
        proxy_lifetime: reader
            .get("proxy_lifetime")
            .and_then(|field| wait(&field, problems))
            .unwrap_or(default.proxy_lifetime),
        lifetime: reader
            .get("lifetime")
            .and_then(|field| lifetime(&field, problems))
            .unwrap_or(default.lifetime),
    }
}

fn wait(field: &Field<'_>, problems: &mut Problems) -> Option<Duration> {
    let wait = field.positive_duration(problems)?;
    if wait > LONGEST_WAIT || wait.subsec_nanos() % 1_000_000 != 0 {
        field.wrong("it must be at most 10 min, in whole milliseconds", None, problems);
        return None;
    }
    Some(wait)
}

fn lifetime(field: &Field<'_>, problems: &mut Problems) -> Option<Duration> {
    let lifetime = field.positive_duration(problems)?;
    let is_of_units = lifetime.subsec_nanos() == 0 && lifetime.as_secs().is_multiple_of(LIFETIME_UNIT);
    if !is_of_units || lifetime.as_secs() > LONGEST_LIFETIME {
        let expected = format!("bindings last a multiple of {LIFETIME_UNIT} s, at most {LONGEST_LIFETIME} s");
        field.wrong(expected, None, problems);
        return None;
    }
    Some(lifetime)
}
