//! `tcp` of a flow.

use careof_base::Duration;
use careof_tcp::{
    AckCounting, Config, CongestionControl, DelayedAck, InitialWindow, MAX_WINDOW, MIN_MSS, Profile, Variant,
};

use crate::decode::{Field, Reader};
use crate::error::{Origin, Problems};
use crate::model::{KernelProfile, KernelTcp, Tcp};
use crate::reference::TCP;
use crate::tree::Value;
use crate::units;
use crate::words::{ReadWord as _, Word as _, one_of};

/// IP and TCP headers without options, bytes.
pub(crate) const HEADERS: u16 = 40;

/// What a flow has that names neither profile nor variant: what Linux hosts send today.
const USUAL: Profile = Profile::Linux;

/// TCP of a flow as the file gives it; its segment size may depend on the links.
#[derive(Clone, Debug)]
pub(crate) struct TcpDraft {
    pub(crate) tcp: Tcp,
    /// The segment size the file asks for, and where.
    pub(crate) mss: Option<(u16, Origin, String)>,
    /// Where an error of TCP as a whole belongs.
    pub(crate) origin: Origin,
    pub(crate) path: String,
}

/// A profile: of a model, or of a kernel.
#[derive(Clone, Copy, Debug)]
enum AnyProfile {
    Model(Profile),
    Kernel(KernelProfile),
}

/// A variant: of a model, or whatever the kernel does.
#[derive(Clone, Copy, Debug)]
enum AnyVariant {
    Model(Variant),
    Kernel,
}

/// One of `choices`; a congestion control in its place is told where it belongs.
fn choice<T: Copy>(field: &Field<'_>, choices: &[(&'static str, T)], problems: &mut Problems) -> Option<T> {
    if let Value::Text(text) = &field.node.value
        && !choices.iter().any(|(word, _)| word == text)
        && CongestionControl::from_name(text).is_some()
    {
        let known: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let expected = format!("known are {}", one_of(&known).replace(" or ", " and "));
        field.wrong(expected, Some(format!("write congestion = \"{text}\"")), problems);
        return None;
    }
    field.choice(choices, &[], problems)
}

fn profile(field: &Field<'_>, problems: &mut Problems) -> Option<AnyProfile> {
    let models = Profile::WORDS.iter().map(|profile| (profile.word(), AnyProfile::Model(*profile)));
    let kernels = KernelProfile::WORDS.iter().map(|profile| (profile.word(), AnyProfile::Kernel(*profile)));
    let choices: Vec<_> = models.chain(kernels).collect();
    choice(field, &choices, problems)
}

fn variant(field: &Field<'_>, problems: &mut Problems) -> Option<AnyVariant> {
    let models = Variant::WORDS.iter().map(|variant| (variant.word(), AnyVariant::Model(*variant)));
    let choices: Vec<_> = models.chain([("kernel", AnyVariant::Kernel)]).collect();
    choice(field, &choices, problems)
}

fn draft(profile: AnyProfile, given: Vec<&'static str>, origin: Origin, path: String) -> TcpDraft {
    let (profile, kernel) = match profile {
        AnyProfile::Model(profile) => (profile, None),
        AnyProfile::Kernel(profile) => (
            USUAL,
            Some(KernelTcp {
                congestion: None,
                profile: Some(profile),
                asked_by: ("profile", profile.name().to_owned()),
            }),
        ),
    };
    let config = Config::from(profile);
    let tcp = Tcp { profile, config, pmtu_discovery: true, kernel, given };
    TcpDraft { tcp, mss: None, origin, path }
}

/// Reads `congestion`: the word of a model, or any name that a kernel may know.
fn congestion(reader: &Reader<'_>, problems: &mut Problems) -> Option<String> {
    let field = reader.get("congestion")?;
    let name = field.text(problems)?;
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
    if (1..=15).contains(&name.len()) && name.bytes().all(fits) {
        return Some(name.to_owned());
    }
    let known = CongestionControl::WORDS.iter().map(|word| word.word()).collect::<Vec<_>>();
    let expected = format!("it must be {}, or the name of a Linux kernel's own", one_of(&known));
    field.wrong(expected, None, problems);
    None
}

/// Reads what asks for a kernel's TCP: `profile` and `variant` by their words, `congestion` by one no model has.
fn kernel(
    reader: &Reader<'_>,
    variant: Option<AnyVariant>,
    kernel: Option<KernelTcp>,
    congestion: Option<String>,
    problems: &mut Problems,
) -> Option<KernelTcp> {
    let only_a_kernels = congestion
        .as_deref()
        .filter(|name| CongestionControl::from_name(name).is_none())
        .map(ToOwned::to_owned);
    if let (Some(name), Some(AnyVariant::Model(model))) = (&only_a_kernels, variant) {
        let hint = format!("leave variant = \"{}\" out, or write variant = \"kernel\"", model.word());
        if let Some(field) = reader.get("congestion") {
            field.wrong(
                format!("no model has \"{name}\": it belongs to a kernel's TCP"),
                Some(hint),
                problems,
            );
        }
    }
    let asked = |key, value: &str| KernelTcp {
        congestion: None,
        // Without a profile the kernel's TCP is as it comes.
        profile: reader.get("profile").is_none().then_some(KernelProfile::Modern),
        asked_by: (key, value.to_owned()),
    };
    let kernel = match (kernel, variant, &only_a_kernels) {
        (Some(kernel), ..) => Some(kernel),
        (None, Some(AnyVariant::Kernel), _) => Some(asked("variant", "kernel")),
        (None, _, Some(name)) => Some(asked("congestion", name)),
        (None, ..) => None,
    };
    kernel.map(|kernel| KernelTcp { congestion, ..kernel })
}

/// Reads the value of `tcp` of a flow at `origin`; `None` if something in it is wrong. A flow that says nothing has
/// the profile [`USUAL`]; one of programs, which only a kernel runs, has the kernel's TCP as it comes.
pub(crate) fn tcp(
    field: Option<Field<'_>>,
    of_programs: bool,
    (origin, path): (Origin, &str),
    problems: &mut Problems,
) -> Option<TcpDraft> {
    let usual =
        if of_programs { AnyProfile::Kernel(KernelProfile::Modern) } else { AnyProfile::Model(USUAL) };
    let Some(field) = field else {
        return Some(draft(usual, Vec::new(), origin, path.to_owned()));
    };
    match &field.node.value {
        Value::Text(_) => {
            let profile = profile(&field, problems)?;
            Some(draft(profile, vec!["profile"], field.node.origin, field.path.clone()))
        }
        Value::Table(_) => {
            let before = problems.count();
            let reader = field.reader(&TCP, problems)?;
            let given = reader.get("profile").map(|field| profile(&field, problems));
            let variant = reader.get("variant").and_then(|field| variant(&field, problems));
            let like_variant = match variant {
                Some(AnyVariant::Model(variant)) => Profile::from_name(variant.name()).map(AnyProfile::Model),
                Some(AnyVariant::Kernel) | None => None,
            };
            let congestion = congestion(&reader, problems);
            let base = given.flatten().or(like_variant).unwrap_or(AnyProfile::Model(USUAL));
            let keys = TCP.keys.iter().map(|key| key.name).filter(|key| reader.get(key).is_some()).collect();
            let mut draft = draft(base, keys, field.node.origin, field.path.clone());
            let config = &mut draft.tcp.config;
            if let Some(model) = congestion.as_deref().and_then(CongestionControl::from_name) {
                config.congestion = model;
            }
            draft.tcp.kernel = kernel(&reader, variant, draft.tcp.kernel.take(), congestion, problems);
            let config = &mut draft.tcp.config;
            if let Some(AnyVariant::Model(variant)) = variant {
                config.variant = variant;
                config.sack |= variant == Variant::Sack;
                if let (Some(own), None) = (variant.own_congestion(), reader.get("congestion")) {
                    config.congestion = own;
                }
            }
            timers(&reader, config, problems);
            window(&reader, config, problems);
            parts(&reader, config, problems);
            if let Some(value) = boolean(&reader, "pmtu_discovery", problems) {
                draft.tcp.pmtu_discovery = value;
            }
            if let Some(field) = reader.get("mss")
                && let Some(mss) = field.packet_size(MIN_MSS, u16::MAX - HEADERS, problems)
            {
                draft.mss = Some((mss, field.node.origin, field.path.clone()));
            }
            (problems.count() == before).then_some(draft)
        }
        _ => {
            let expected = "it must be the name of a profile, such as \"reno\", or a table, such as \
                            { profile = \"reno\", window = \"16 KiB\" }";
            field.wrong(expected, None, problems);
            None
        }
    }
}

fn boolean(reader: &Reader<'_>, key: &str, problems: &mut Problems) -> Option<bool> {
    reader.get(key)?.boolean(problems)
}

fn timers(reader: &Reader<'_>, config: &mut Config, problems: &mut Problems) {
    if let Some(field) = reader.get("rto")
        && let Some(rto) = field.word(problems)
    {
        config.rto = rto;
    }
    let mut bound = |key: &str| reader.get(key).and_then(|field| field.positive_duration(problems));
    let (initial, least, greatest) = (bound("rto_initial"), bound("rto_min"), bound("rto_max"));
    config.rto_initial = initial.or(config.rto_initial);
    config.rto_min = least.or(config.rto_min);
    config.rto_max = greatest.or(config.rto_max);
    if let Some(grain) = bound("clock_granularity") {
        config.clock_granularity = grain;
    }
    let (min, max) = (config.effective_rto_min(), config.effective_rto_max());
    if min > max
        && let Some(field) = reader.get("rto_min").or_else(|| reader.get("rto_max"))
    {
        let found =
            format!("a least RTO of {} and a greatest of {}", units::duration(min), units::duration(max));
        problems.add(field.place(), found, "rto_min must not be above rto_max", None);
    }
    if let Some(field) = reader.get("delayed_ack") {
        delayed_ack(&field, config, problems);
    }
}

fn delayed_ack(field: &Field<'_>, config: &mut Config, problems: &mut Problems) {
    const MOST: Duration = Duration::from_millis(500);
    match &field.node.value {
        Value::Text(text) if text == "off" => config.delayed_ack = DelayedAck::Off,
        Value::Text(text) if text == "linux-2.0" => config.delayed_ack = DelayedAck::Linux20,
        Value::Text(text) if text == "linux" => config.delayed_ack = DelayedAck::Linux,
        Value::Text(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
            match field.positive_duration(problems) {
                Some(timeout) if timeout <= MOST => config.delayed_ack = DelayedAck::Every2 { timeout },
                Some(_) => field.wrong("RFC 1122 allows at most 500 ms", None, problems),
                None => {}
            }
        }
        _ => field.wrong(
            "it must be a duration, such as \"200 ms\", or \"off\", \"linux\" or \"linux-2.0\"",
            None,
            problems,
        ),
    }
}

fn window(reader: &Reader<'_>, config: &mut Config, problems: &mut Problems) {
    if let Some(value) = boolean(reader, "window_scaling", problems) {
        config.window_scaling = value;
    }
    if let Some(field) = reader.get("window")
        && let Some(bytes) = field.size(problems)
    {
        let most = if config.window_scaling { MAX_WINDOW } else { 65_535 };
        match u32::try_from(bytes) {
            Ok(bytes) if bytes <= most => config.receive_window = bytes,
            _ if config.window_scaling => {
                field.wrong(
                    format!("the largest window that can be advertised is {MAX_WINDOW} B"),
                    None,
                    problems,
                );
            }
            _ => field.wrong(
                "without window scaling the largest window is 65535 B",
                Some("add `window_scaling = true` or write a smaller window".to_owned()),
                problems,
            ),
        }
    }
    let mut limit = |key: &str| {
        let bytes = reader.get(key)?.size(problems)?;
        Some(u32::try_from(bytes).unwrap_or(u32::MAX))
    };
    let (ssthresh, cwnd) = (limit("initial_ssthresh"), limit("max_cwnd"));
    config.initial_ssthresh = ssthresh.unwrap_or(config.initial_ssthresh);
    config.max_cwnd = cwnd.unwrap_or(config.max_cwnd);
    if let Some(field) = reader.get("initial_window") {
        match &field.node.value {
            Value::Text(text) if text == "rfc5681" => config.initial_window = InitialWindow::Rfc5681,
            Value::Text(text) if text == "rfc6928" => config.initial_window = InitialWindow::Rfc6928,
            _ => {
                if let Some(count) = segments(&field, "\"rfc5681\", \"rfc6928\"", problems) {
                    config.initial_window = InitialWindow::Segments(count);
                }
            }
        }
    }
    if let Some(field) = reader.get("ack_counting") {
        match &field.node.value {
            Value::Text(text) if text == "per-ack" => config.ack_counting = AckCounting::PerAck,
            _ => {
                if let Some(limit) = segments(&field, "\"per-ack\"", problems) {
                    config.ack_counting = AckCounting::Bytes { limit };
                }
            }
        }
    }
}

/// A number of segments above zero, beside the words named by `words`.
fn segments(field: &Field<'_>, words: &str, problems: &mut Problems) -> Option<u32> {
    let expected = format!("it must be {words} or a number of segments above zero, such as \"4 segments\"");
    let (count, hint) = match &field.node.value {
        Value::Text(text) => match units::parse_segments(text) {
            Ok(count) => (Some(count), None),
            Err(error) => (None, error.hint),
        },
        Value::Integer(text) => (text.parse().ok(), None),
        _ => (None, None),
    };
    let count = count.filter(|count| *count > 0);
    if count.is_none() {
        field.wrong(expected, hint, problems);
    }
    count
}

fn parts(reader: &Reader<'_>, config: &mut Config, problems: &mut Problems) {
    for (key, switch) in [
        ("timestamps", &mut config.timestamps),
        ("sack", &mut config.sack),
        ("dsack", &mut config.dsack),
        ("sack_compression", &mut config.sack_compression),
        ("pacing", &mut config.pacing),
        ("prr", &mut config.prr),
        ("rack", &mut config.rack),
        ("tail_loss_probe", &mut config.tail_loss_probe),
        ("frto", &mut config.frto),
        ("eifel", &mut config.eifel),
        ("ecn", &mut config.ecn),
        ("icmp_unreachable", &mut config.icmp_unreachable),
        ("limited_transmit", &mut config.limited_transmit),
        ("limited_transmit_counts", &mut config.limited_transmit_counts),
        ("careful", &mut config.careful),
        ("burst_guard", &mut config.burst_guard),
        ("rescue_retransmission", &mut config.rescue_retransmission),
        ("linux20_fast_retransmit", &mut config.linux20_fast_retransmit),
        ("window_validation", &mut config.window_validation),
        ("mtu_probing", &mut config.mtu_probing),
        ("nagle", &mut config.nagle),
    ] {
        if let Some(value) = boolean(reader, key, problems) {
            *switch = value;
        }
    }
    if !config.sack {
        // Without SACK these do nothing: those that a profile brings go with it, those that are asked for are errors.
        for (key, switch) in [
            ("dsack", &mut config.dsack),
            ("sack_compression", &mut config.sack_compression),
            ("rack", &mut config.rack),
            ("tail_loss_probe", &mut config.tail_loss_probe),
        ] {
            match reader.get(key) {
                Some(field) if *switch && config.variant == Variant::Linux => {
                    let hint = format!("leave `{key}` out, or write sack = true");
                    field.wrong("it needs SACK, and sack is off", Some(hint), problems);
                    *switch = false;
                }
                Some(_) => {}
                None => *switch = false,
            }
        }
    }
    if let Some(field) = reader.get("sack")
        && config.variant == Variant::Sack
        && !config.sack
    {
        let hint = "leave `sack` out, or choose variant = \"newreno\"".to_owned();
        field.wrong("the variant \"sack\" needs the option of that name", Some(hint), problems);
    }
    if let Some(count) =
        reader.get("duplicate_ack_threshold").and_then(|field| field.integer(1, 255, problems))
    {
        config.duplicate_ack_threshold = u8::try_from(count).unwrap_or(u8::MAX);
    }
    if let Some(count) = reader.get("max_retransmissions").and_then(|field| field.integer(1, 1_000, problems))
    {
        config.max_retransmissions = u32::try_from(count).unwrap_or(u32::MAX);
    }
    if let Some(hystart) = reader.get("hystart").and_then(|field| field.word(problems)) {
        config.hystart = hystart;
    }
    if let Some(bound) = reader.get("reduction_bound").and_then(|field| field.word(problems)) {
        config.reduction_bound = bound;
    }
    if let Some(timeout) = reader.get("user_timeout").and_then(|field| field.positive_duration(problems)) {
        config.user_timeout = Some(timeout);
    }
    if let Some(timer) = reader.get("partial_ack_timer").and_then(|field| field.word(problems)) {
        config.partial_ack_timer = timer;
    }
    if let Some(restart) = reader.get("idle_restart").and_then(|field| field.word(problems)) {
        config.idle_restart = restart;
    }
    if let Some(kernel) = reader.get("kernel").and_then(|field| field.word(problems)) {
        config.kernel = kernel;
    }
    if let Some(hz) = reader.get("timer_hz").and_then(|field| field.integer(100, 1_000, problems)) {
        config.timer_hz = u16::try_from(hz).ok();
    }
}

impl TcpDraft {
    /// TCP over links of at least `mtu` at the flow's ends.
    pub(crate) fn resolve(mut self, mtu: u16, problems: &mut Problems) -> Option<Tcp> {
        let most = mtu.saturating_sub(HEADERS);
        let config = &mut self.tcp.config;
        match &self.mss {
            Some((mss, origin, path)) if *mss > most => {
                let expected = format!(
                    "{most} is the most that fits the MTU of {mtu} at the flow's ends (less {HEADERS} of headers)"
                );
                problems.add(
                    (*origin, path),
                    mss.to_string(),
                    expected,
                    Some(format!("write {most} or less")),
                );
                return None;
            }
            Some((mss, ..)) => config.mss = *mss,
            None if most < MIN_MSS => {
                let least = MIN_MSS + HEADERS;
                let expected = format!("TCP needs {least} bytes on the links at a flow's ends");
                problems.add((self.origin, &self.path), format!("an MTU of {mtu}"), expected, None);
                return None;
            }
            None => config.mss = most,
        }
        // What is left is between values: thresholds below one segment.
        if let Err(error) = config.check() {
            problems.add(
                (self.origin, &self.path),
                "values that do not go together",
                error.to_string(),
                None,
            );
            return None;
        }
        Some(self.tcp)
    }
}
