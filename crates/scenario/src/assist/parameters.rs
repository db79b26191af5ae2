//! The parameters of each assist.

use careof_assist::{AckHold, BufferForward, PathQueue, QueueAtHandover, Snoop};
use careof_assist_file::Parameters;
use careof_assist_file::parameters::{
    black_hole, count, fast_retransmit, hold_last, lcd_kick, mss_clamp, packets, replay, window_clamp,
};
use careof_base::Probability;
use careof_link::{Discipline, RedConfig};

use crate::decode::Field;
use crate::error::{Origin, Problems};
use crate::model::{Assist, AssistPlace, Freeze, Placed, RtoFastDecrease, RtoReset, Split, TcpCm};
use crate::reference::assist::section_of;
use crate::tcp::{TcpDraft, tcp};
use crate::tree::Value;
use crate::units;
use crate::words::{DisciplineKind, ReadWord as _, Word as _};

/// Where an `at` is written, if it is.
type At = Option<(Origin, String)>;

/// An assist as its table gives it.
pub(super) struct Read {
    pub(super) assist: Assist,
    pub(super) at: At,
    /// TCP of its own, whose segment size depends on the links.
    pub(super) tcp: Option<TcpDraft>,
}

/// The assist called `name` with what `table` says of it; `None` if something in it is wrong.
pub(super) fn with_parameters(
    name: &'static str,
    table: Option<&Field<'_>>,
    problems: &mut Problems,
) -> Option<Read> {
    use AssistPlace::{HomeAgent, Mobile};
    let before = problems.count();
    let mut given = Parameters::new(table, section_of(name), problems)?;
    let (mut at, mut tcp) = (None, None);
    let assist = match name {
        "replay" => {
            Assist::Replay(placed(&mut given, AssistPlace::WORDS, &[HomeAgent, Mobile], &mut at, replay))
        }
        "hold-last" => Assist::HoldLast(hold_last(&mut given)),
        "lcd-kick" => Assist::LcdKick(lcd_kick(&mut given)),
        "freeze" => Assist::Freeze(freeze(&mut given)),
        "fast-retransmit" => Assist::FastRetransmit(fast_retransmit(&mut given)),
        "ack-hold" => Assist::AckHold(ack_hold(&mut given)),
        "window-clamp" => Assist::WindowClamp(placed(
            &mut given,
            &[HomeAgent, Mobile],
            &[HomeAgent, Mobile],
            &mut at,
            window_clamp,
        )),
        "path-queue" => Assist::PathQueue(path_queue(&mut given)),
        "buffer-forward" => Assist::BufferForward(buffer_forward(&mut given)),
        "bicast" => Assist::Bicast,
        "snoop" => Assist::Snoop(snoop(&mut given)),
        "ebsn" => Assist::Ebsn,
        "split" => {
            let (split, draft) = split(&mut given)?;
            at = given.get("at").map(|field| (field.node.origin, field.path));
            tcp = draft;
            Assist::Split(split)
        }
        "m-tcp" => Assist::MTcp,
        "rto-reset" => Assist::RtoReset(rto_reset(&mut given)),
        "tcp-cm" => Assist::TcpCm(tcp_cm(&mut given)),
        "mobile-tcp" => Assist::MobileTcp,
        "tcp-ho" => Assist::TcpHo,
        "demo-vegas" => Assist::DemoVegas,
        "rto-fast-decrease" => Assist::RtoFastDecrease(rto_fast_decrease(&mut given)),
        "mss-clamp" => {
            Assist::MssClamp(placed(&mut given, AssistPlace::WORDS, &[HomeAgent, Mobile], &mut at, mss_clamp))
        }
        "black-hole" => {
            Assist::BlackHole(placed(&mut given, AssistPlace::WORDS, &[HomeAgent], &mut at, black_hole))
        }
        _ => return None,
    };
    (problems.count() == before).then_some(Read { assist, at, tcp })
}

/// What `read` reads, where `at` of the same table says or else at the `usual` places; and where `at` is written.
fn placed<T>(
    given: &mut Parameters<'_, '_>,
    allowed: &[AssistPlace],
    usual: &[AssistPlace],
    at: &mut At,
    read: impl FnOnce(&mut Parameters<'_, '_>) -> T,
) -> Placed<T> {
    let mut places = usual.to_vec();
    *at = read_places(given, allowed, &mut places);
    Placed { at: places, parameters: read(given) }
}

fn freeze(given: &mut Parameters<'_, '_>) -> Freeze {
    let mut freeze = Freeze::default();
    given.set("warning", &mut freeze.warning, |field, problems| field.positive_duration(problems).map(Some));
    given.set("acks", &mut freeze.acks, |field, problems| count(field, 1, problems));
    given.set("patience", &mut freeze.patience, Field::duration);
    freeze
}

fn ack_hold(given: &mut Parameters<'_, '_>) -> AckHold {
    let mut hold = AckHold::DEFAULT;
    given.set("bytes", &mut hold.bytes, |field, problems| {
        field.packet_size(1, u16::MAX, problems).map(u32::from)
    });
    given.word("from", &mut hold.always, &[("notice", false), ("always", true)]);
    given.set("longest", &mut hold.longest, Field::positive_duration);
    hold
}

fn path_queue(given: &mut Parameters<'_, '_>) -> PathQueue {
    let mut path = PathQueue::DEFAULT;
    given.set("limit", &mut path.queue.limit, units::read_queue_limit);
    given.set("discipline", &mut path.queue.discipline, |field, problems| {
        Some(match field.word(problems)? {
            DisciplineKind::DropTail => Discipline::DropTail,
            DisciplineKind::Red => Discipline::Red(RedConfig::default()),
            DisciplineKind::CoDel => Discipline::CODEL,
        })
    });
    given.set("margin", &mut path.margin, margin);
    given.word("at_handover", &mut path.at_handover, &QueueAtHandover::ALL.map(|fate| (fate.name(), fate)));
    if let (careof_link::QueueLimit::Packets(limit), Discipline::Red(red)) =
        (path.queue.limit, path.queue.discipline)
        && red.max_threshold > limit
    {
        let least = red.max_threshold;
        let hint = format!("raise `limit` to \"{least} packets\", or choose another discipline");
        given.wrong(&["limit"], format!("RED needs room for {least} packets"), &hint);
    }
    path
}

fn buffer_forward(given: &mut Parameters<'_, '_>) -> BufferForward {
    let mut buffer = BufferForward::DEFAULT;
    given.set("limit", &mut buffer.packets, packets);
    given.word("begin", &mut buffer.from_notice, &[("notice", true), ("link-down", false)]);
    buffer
}

fn snoop(given: &mut Parameters<'_, '_>) -> Snoop {
    let mut snoop = Snoop::DEFAULT;
    given.set("packets", &mut snoop.packets, packets);
    given.set("least_timeout", &mut snoop.least_timeout, Field::positive_duration);
    snoop
}

fn split(given: &mut Parameters<'_, '_>) -> Option<(Split, Option<TcpDraft>)> {
    const PLACES: [(&str, AssistPlace); 2] =
        [("home-agent", AssistPlace::HomeAgent), ("foreign-agent", AssistPlace::ForeignAgent)];
    let mut place = AssistPlace::HomeAgent;
    given.word("at", &mut place, &PLACES);
    let mut buffer = Split::BUFFER;
    given.set("buffer", &mut buffer, Field::size);
    let draft = match given.get("tcp") {
        None => None,
        Some(field) => {
            let (origin, path) = (field.node.origin, field.path.clone());
            Some(tcp(Some(field), false, (origin, &path), given.problems)?)
        }
    };
    let split = Split { at: place, buffer, tcp: draft.as_ref().map(|draft| Box::new(draft.tcp.clone())) };
    Some((split, draft))
}

fn rto_reset(given: &mut Parameters<'_, '_>) -> RtoReset {
    let mut reset = RtoReset::default();
    given.set("slow_start", &mut reset.slow_start, Field::boolean);
    given.set("by", &mut reset.by, |field, problems| field.word(problems));
    reset
}

fn tcp_cm(given: &mut Parameters<'_, '_>) -> TcpCm {
    let mut manager = TcpCm::default();
    given.set("resend", &mut manager.resend, Field::boolean);
    given.set("suspend", &mut manager.suspend, Field::boolean);
    given.set("estimator", &mut manager.estimator, |field, problems| field.word(problems));
    manager
}

fn rto_fast_decrease(given: &mut Parameters<'_, '_>) -> RtoFastDecrease {
    let mut decrease = RtoFastDecrease::default();
    given.set("samples", &mut decrease.samples, |field, problems| count(field, 1, problems));
    decrease
}

/// Puts into `places` those of `allowed` that `at` names, in the order of the type: an array of words, or text in which `+` stands between them.
fn read_places(given: &mut Parameters<'_, '_>, allowed: &[AssistPlace], places: &mut Vec<AssistPlace>) -> At {
    let at = given.get("at")?;
    let known: Vec<&str> = allowed.iter().map(|place| place.name()).collect();
    let expected = format!("it is an array of places: {}", crate::words::one_of(&known));
    let fields = match &at.node.value {
        Value::Text(_) => vec![at.clone()],
        _ => at.list(&expected, given.problems),
    };
    let mut found = Vec::new();
    for field in &fields {
        for word in field.text(given.problems).into_iter().flat_map(|text| text.split('+')) {
            let word = word.trim();
            let place = allowed.iter().find(|place| place.name() == word);
            let expected = match place {
                Some(place) if found.contains(place) => "a place is named once".to_owned(),
                Some(place) => {
                    found.push(*place);
                    continue;
                }
                None => format!("known are {}", crate::words::one_of(&known).replace(" or ", " and ")),
            };
            let near = || crate::words::nearest(word, known.iter().copied());
            let hint = place.is_none().then(near).flatten().map(|near| format!("did you mean \"{near}\"?"));
            given.problems.add(field.place(), crate::tree::quote(word), expected, hint);
        }
    }
    if matches!(&at.node.value, Value::List(items) if items.is_empty()) {
        at.wrong(expected, Some("leave `at` out for the usual places".to_owned()), given.problems);
    }
    found.sort_unstable();
    *places = found;
    Some((at.node.origin, at.path))
}

fn margin(field: &Field<'_>, problems: &mut Problems) -> Option<f64> {
    let margin = field.probability(problems)?;
    if margin == Probability::ONE {
        field.wrong(
            "nothing would be left of the path's rate",
            Some("write \"3 %\", for example".into()),
            problems,
        );
        return None;
    }
    Some(margin.get())
}
