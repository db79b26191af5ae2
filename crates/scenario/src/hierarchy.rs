//! Mobility anchor points as the file gives them: keys of `[nodes]` and `[mobility]`.

use careof_base::Duration;

use crate::decode::{Field, Reader};
use crate::error::{Origin, Problems};
use crate::mobility::Reference;
use crate::model::{MapSelection, Protocol};
use crate::tree::Value;
use crate::words::ReadWord as _;

/// Preference of a mobility anchor point where the file says none, of 0 to 15.
const USUAL_PREFERENCE: u8 = 10;
/// The largest value of a field of 4 bits (RFC 5380 section 5).
const MOST_PREFERENCE: u64 = 15;
/// For how long one that was left sends packets on if nothing else is said.
const USUAL_FORWARDING: Duration = Duration::from_secs(60);
/// What a lifetime of Mobile IPv6 can say: units of 4 s, 65,534 of them (RFC 6275 section 6.1.7).
const FORWARDING: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(4 * 65_534)];

/// What a table of `[nodes]` says of a mobility anchor point.
#[derive(Debug)]
pub(crate) struct AnchorPointDraft<'a> {
    /// The access routers that advertise it; `None`: those behind it.
    pub(crate) domain: Option<Vec<Reference<'a>>>,
    pub(crate) preference: u8,
}

impl AnchorPointDraft<'_> {
    /// One of which nothing is said.
    pub(crate) const USUAL: Self = Self { domain: None, preference: USUAL_PREFERENCE };
}

/// What `[mobility]` says of the use of mobility anchor points.
#[derive(Debug)]
pub(crate) struct HierarchyDraft {
    pub(crate) selection: MapSelection,
    pub(crate) forwarding: Option<Duration>,
    /// The first of its keys, with what is written there.
    pub(crate) first: Option<(Origin, String, String)>,
}

/// Reads the keys of a node that is a mobility anchor point.
pub(crate) fn anchor_point<'a>(reader: &Reader<'a>, problems: &mut Problems) -> AnchorPointDraft<'a> {
    const EXPECTED: &str = "the domain is an array of access routers, such as [\"router-a\", \"router-b\"]";
    let domain = reader.get("domain").map(|field| {
        let routers = field.list(EXPECTED, problems);
        if routers.is_empty() {
            field.wrong(EXPECTED, Some("leave it out for all routers behind it".to_owned()), problems);
        }
        routers.iter().filter_map(|router| Reference::read(router, problems)).collect()
    });
    let preference = reader.get("preference").and_then(|field| field.integer(0, MOST_PREFERENCE, problems));
    let preference = preference.and_then(|number| u8::try_from(number).ok());
    AnchorPointDraft { domain, preference: preference.unwrap_or(USUAL_PREFERENCE) }
}

/// Reads the keys of `[mobility]`.
pub(crate) fn hierarchy(reader: &Reader<'_>, problems: &mut Problems) -> HierarchyDraft {
    let fields = ["map_selection", "map_forwarding"].map(|key| reader.get(key));
    let first = fields.iter().flatten().next();
    let first = first.map(|field| (field.node.origin, field.path.clone(), field.node.value.describe()));
    let [selection, forwarding] = &fields;
    HierarchyDraft {
        selection: selection.as_ref().and_then(|field| field.word(problems)).unwrap_or_default(),
        forwarding: forwarding
            .as_ref()
            .map_or(Some(USUAL_FORWARDING), |field| map_forwarding(field, problems)),
        first,
    }
}

/// `None` is off.
fn map_forwarding(field: &Field<'_>, problems: &mut Problems) -> Option<Duration> {
    if let Value::Text(text) = &field.node.value
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        if text != "off" {
            field.wrong("it must be a duration, such as \"60 s\", or \"off\"", None, problems);
        }
        return None;
    }
    let forwarding = field.positive_duration(problems)?;
    let [least, most] = FORWARDING;
    if !(least..=most).contains(&forwarding)
        || forwarding.subsec_nanos() != 0
        || forwarding.as_secs() % 4 != 0
    {
        let hint = "write \"off\" if they are to send nothing on".to_owned();
        field.wrong("Binding Updates carry units of 4 s, 1 to 65534 of them", Some(hint), problems);
    }
    Some(forwarding)
}

/// A protocol by the name that Hierarchical Mobile IPv6 would have as one: it is reported with what to write.
pub(crate) fn refuse_as_protocol(field: &Field<'_>, problems: &mut Problems) -> bool {
    let is_it = matches!(&field.node.value, Value::Text(text) if text == "hierarchical-mobile-ipv6");
    if is_it {
        let hint = "write protocol = \"mobile-ipv6\", and a node with role = \"map\" in [nodes]".to_owned();
        let expected = "Hierarchical Mobile IPv6 is Mobile IPv6 with mobility anchor points";
        field.wrong(expected, Some(hint), problems);
    }
    is_it
}

/// Says of keys that they need a mobility anchor point.
pub(crate) fn refuse_without_anchor_point(
    draft: &HierarchyDraft,
    protocol: Protocol,
    problems: &mut Problems,
) {
    let Some((origin, path, found)) = &draft.first else { return };
    let hint = match protocol {
        Protocol::MobileIpv6 => "add a node with role = \"map\" to [nodes]",
        Protocol::MobileIpv4 => {
            "write protocol = \"mobile-ipv6\", and add a node with role = \"map\" to [nodes]"
        }
    };
    let expected = "it is about mobility anchor points, and there is none";
    problems.add((*origin, path), found.clone(), expected, Some(hint.to_owned()));
}
