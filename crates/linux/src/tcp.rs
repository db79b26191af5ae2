//! The kernel's TCP that a flow asks for, or that comes nearest to the model it asks for.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use careof_base::Duration;
use careof_lab::{Error, TcpOption, ensure_congestion_control};
use careof_metrics::TcpSummary;
use careof_plan::{NodeId, Topology};
use careof_scenario::{Flow, KernelProfile, Scenario, Split, Tcp, Workload};
use careof_tcp::{IdleRestart, Profile, RtoEstimator, Variant};

use crate::error::WorldError;
use crate::relay::HalfTcp;

/// Keys of a model's mechanisms for which a kernel has no switch.
const NOT_SWITCHED: [&str; 18] = [
    "eifel",
    "hystart",
    "prr",
    "reduction_bound",
    "icmp_unreachable",
    "rto_initial",
    "clock_granularity",
    "careful",
    "partial_ack_timer",
    "burst_guard",
    "rescue_retransmission",
    "linux20_fast_retransmit",
    "delayed_ack",
    "initial_window",
    "initial_ssthresh",
    "max_cwnd",
    "ack_counting",
    "limited_transmit_counts",
];

/// Keys that only the program which opens a connection can set.
const SOCKETS_OWN: [&str; 4] = ["mss", "nagle", "pacing", "user_timeout"];

/// Those of them that sockets of Multipath TCP do not have.
const NOT_MULTIPATHS: [&str; 3] = ["mss", "pacing", "user_timeout"];

/// What a kernel takes for the longest retransmission timeout (`tcp_rto_max_ms`).
const RTO_MAX: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(120);

/// What a kernel takes for `TCP_USER_TIMEOUT`: whole milliseconds in a signed number.
const USER_TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(24 * 86_400);

/// Where the scenario says which TCP a relay has towards the mobile node.
const RELAYS_KEY: &str = "assist.split.tcp";

/// Bytes that an endless flow has written and not sent, at most: so much is still sent after its stop.
const AHEAD: u32 = 16 * 1024;

/// The TCP of a flow on this kernel.
#[derive(Clone, Debug)]
pub(crate) struct KernelChoice {
    profile: &'static str,
    pub(crate) congestion: String,
    /// The one that stands before it where senders are told of handovers: what sockets choose then.
    pub(crate) registered: Option<String>,
    /// Of both hosts, for all their connections.
    sysctls: BTreeMap<&'static str, String>,
    /// Of both sockets.
    pub(crate) options: Vec<TcpOption>,
    /// What is to be said when something else runs than the scenario's words say.
    pub(crate) remark: Option<String>,
}

impl KernelChoice {
    /// The sockets of a relay that holds up to `buffer` bytes of a flow and direction: half of that before it has taken
    /// them over, and half behind, the kernel's bookkeeping included.
    pub(crate) fn of_relay(&self, buffer: u32) -> HalfTcp {
        let mut options = vec![TcpOption::ReceiveBuffer(buffer / 2), TcpOption::SendBuffer(buffer / 2)];
        options.extend(self.options.iter().copied().filter(|option| match option {
            TcpOption::ReceiveBuffer(_) | TcpOption::SendBuffer(_) => false,
            // The relay has nothing of its own to say, so nothing waits in it that could be left unsaid.
            TcpOption::NotSentLowWater(_) | TcpOption::PathMtuDiscovery(_) => false,
            _ => true,
        }));
        // A router's message about too large a packet would go to the end in whose name it was sent.
        options.push(TcpOption::PathMtuDiscovery(false));
        HalfTcp { options, congestion: self.congestion.clone() }
    }

    /// The congestion control that a flow's sockets choose.
    pub(crate) fn of_sockets(&self) -> &str {
        self.registered.as_deref().unwrap_or(&self.congestion)
    }

    /// What a summary says of it.
    pub(crate) fn summary(&self) -> TcpSummary {
        TcpSummary {
            profile: Some(self.profile.to_owned()),
            variant: format!("kernel-{}", self.congestion),
            rto: "linux".to_owned(),
        }
    }
}

/// The kernel's TCP for the `index`th flow.
///
/// # Errors
/// [`WorldError::Unsupported`] naming a key that asks for what no kernel does.
pub(crate) fn choose(index: usize, flow: &Flow) -> Result<KernelChoice, WorldError> {
    choose_as(&format!("flow.{index}.tcp"), flow)
}

/// The kernel's TCP for a relay's connection towards the mobile node, of a flow that is split.
///
/// # Errors
/// As [`choose`].
pub(crate) fn choose_for_relay(index: usize, flow: &Flow, split: &Split) -> Result<KernelChoice, WorldError> {
    match &split.tcp {
        Some(tcp) => choose_as(RELAYS_KEY, &Flow { tcp: (**tcp).clone(), ..flow.clone() }),
        None => choose(index, flow),
    }
}

/// The kernel's TCP for a flow whose `tcp` is at `key` in the scenario.
fn choose_as(key: &str, flow: &Flow) -> Result<KernelChoice, WorldError> {
    let tcp = &flow.tcp;
    refuse(key, flow)?;
    let (profile, congestion, remark) = match &tcp.kernel {
        Some(kernel) => {
            let profile = kernel.profile.map_or_else(|| stand_in(tcp.profile), Into::into);
            let usual = if profile == Settings::MODERN { "cubic" } else { "reno" };
            (profile, kernel.congestion.clone().unwrap_or_else(|| usual.to_owned()), None)
        }
        None => {
            let profile = stand_in(tcp.profile);
            let congestion = tcp.config.congestion.name();
            let remark = format!(
                "{}: the model \"{}\" is not what runs here, but the kernel's TCP that comes nearest: {congestion} with the profile \"{}\"",
                if key == RELAYS_KEY { key.to_owned() } else { format!("flow {}", flow.name) },
                tcp.profile.name(),
                profile.name
            );
            (profile, congestion.to_owned(), (profile != Settings::MODERN).then_some(remark))
        }
    };
    let remark = remark.filter(|_| !matches!(flow.workload, Workload::Probe { .. } | Workload::Voice(_)));
    Ok(KernelChoice {
        sysctls: sysctls(tcp, profile, has_own_sockets(flow)),
        options: options(flow),
        profile: if flow.mptcp.is_some() { "mptcp" } else { profile.name },
        congestion,
        registered: None,
        remark,
    })
}

/// Whether the host is told what is a socket's matter: where programs have their own sockets, and where those of Multipath TCP do not take it.
const fn has_own_sockets(flow: &Flow) -> bool {
    matches!(flow.workload, Workload::Command) || flow.mptcp.is_some()
}

/// Refuses congestion controls that this kernel does not have, before anything starts. Whether it gives them shows in the
/// hosts, where an ordinary user has rights.
///
/// # Errors
/// [`WorldError::Missing`], naming the key.
pub(crate) fn refuse_missing_congestion(choices: &[KernelChoice]) -> Result<(), WorldError> {
    for (index, choice) in choices.iter().enumerate() {
        if let Err(error @ Error::NoCongestionControl { .. }) = ensure_congestion_control(&choice.congestion)
        {
            return Err(WorldError::Missing { key: format!("flow.{index}.tcp.congestion"), error });
        }
    }
    Ok(())
}

/// The same for the TCP of a relay.
///
/// # Errors
/// [`WorldError::Missing`], naming the key.
pub(crate) fn refuse_missing_of_relay(of_relay: Option<&RelayChoices>) -> Result<(), WorldError> {
    for choice in of_relay.iter().flat_map(|of_relay| of_relay.choices.values()) {
        if let Err(error @ Error::NoCongestionControl { .. }) = ensure_congestion_control(&choice.congestion)
        {
            return Err(WorldError::Missing { key: format!("{RELAYS_KEY}.congestion"), error });
        }
    }
    Ok(())
}

/// How much of the kernel's TCP is on where the file does not say so mechanism by mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Settings {
    name: &'static str,
    /// F-RTO, RACK, tail loss probes, D-SACK.
    modern: bool,
    sack: bool,
    timestamps: bool,
}

impl Settings {
    const MODERN: Self = Self { name: "modern", modern: true, sack: true, timestamps: true };
    const LEGACY: Self = Self { name: "legacy", modern: false, sack: false, timestamps: false };
    const LEGACY_SACK: Self = Self { name: "legacy-sack", sack: true, ..Self::LEGACY };
}

impl From<KernelProfile> for Settings {
    fn from(profile: KernelProfile) -> Self {
        match profile {
            KernelProfile::Modern => Self::MODERN,
            KernelProfile::Legacy => Self::LEGACY,
        }
    }
}

/// The settings that stand for a model.
const fn stand_in(profile: Profile) -> Settings {
    match profile {
        Profile::Linux => Settings::MODERN,
        Profile::Sack => Settings::LEGACY_SACK,
        Profile::Tahoe | Profile::Reno | Profile::NewReno | Profile::Vegas | Profile::Linux20 => {
            Settings::LEGACY
        }
    }
}

/// Refuses what no kernel does, by its key.
fn refuse(table: &str, flow: &Flow) -> Result<(), WorldError> {
    let tcp = &flow.tcp;
    let unsupported = |key: &str, found: &str, remedy: &str| {
        Err(WorldError::Unsupported {
            key: format!("{table}.{key}"),
            found: found.to_owned(),
            remedy: remedy.to_owned(),
        })
    };
    let config = &tcp.config;
    for key in &tcp.given {
        if NOT_SWITCHED.contains(key) {
            return unsupported(key, "choosing this", "a kernel's TCP has no switch for it: leave it out");
        }
        if flow.workload == Workload::Command && SOCKETS_OWN.contains(key) {
            let remedy = "it belongs to a socket, and the program's are its own: tell the program, if it has an option";
            return unsupported(key, "choosing this", remedy);
        }
        if flow.mptcp.is_some() && NOT_MULTIPATHS.contains(key) {
            let remedy = "sockets of Multipath TCP do not have it: leave it out, or leave `mptcp` out";
            return unsupported(key, "choosing this", remedy);
        }
        match *key {
            "rto" if config.rto != RtoEstimator::Linux => {
                let found = format!("\"{}\"", config.rto.name());
                return unsupported(key, &found, "a Linux kernel estimates by \"linux\"");
            }
            "limited_transmit" if !config.limited_transmit => {
                return unsupported(key, "false", "a Linux kernel always does it");
            }
            "window_validation" if !config.window_validation => {
                return unsupported(key, "false", "a Linux kernel always does it");
            }
            "rto_min" if config.effective_rto_min() < Duration::from_micros(1) => {
                let found = format!("{:?}", config.effective_rto_min());
                return unsupported(key, &found, "a Linux kernel counts microseconds: at least 1 us");
            }
            "rto_max" if !RTO_MAX.contains(&config.effective_rto_max()) => {
                let found = format!("{:?}", config.effective_rto_max());
                return unsupported(key, &found, "a Linux kernel takes 1 s to 120 s");
            }
            "user_timeout" if config.user_timeout.is_some_and(|timeout| !USER_TIMEOUT.contains(&timeout)) => {
                let found = format!("{:?}", config.user_timeout.unwrap_or_default());
                return unsupported(key, &found, "a Linux kernel takes 1 ms to 24 days");
            }
            "max_retransmissions" if config.max_retransmissions > u32::from(u8::MAX) => {
                let found = config.max_retransmissions.to_string();
                return unsupported(key, &found, "a Linux kernel counts to 255");
            }
            "idle_restart" if config.idle_restart == IdleRestart::InitialWindow => {
                let found = format!("\"{}\"", config.idle_restart.name());
                return unsupported(key, &found, "a Linux kernel has \"decay\" and \"off\"");
            }
            "variant" if tcp.kernel.is_none() && config.variant != variant_of(tcp.profile) => {
                let found = format!("\"{}\"", config.variant.name());
                let remedy =
                    "a profile stands for a kernel's settings here; a variant of another one does not";
                return unsupported(key, &found, remedy);
            }
            _ => {}
        }
    }
    Ok(())
}

const fn variant_of(profile: Profile) -> Variant {
    match profile {
        Profile::Tahoe => Variant::Tahoe,
        Profile::Reno => Variant::Reno,
        Profile::NewReno => Variant::NewReno,
        Profile::Sack => Variant::Sack,
        Profile::Vegas => Variant::Vegas,
        Profile::Linux20 => Variant::Linux20,
        Profile::Linux => Variant::Linux,
    }
}

fn sysctls(tcp: &Tcp, settings: Settings, programs: bool) -> BTreeMap<&'static str, String> {
    let modern = settings.modern;
    let config = &tcp.config;
    let given = |key| tcp.given.contains(&key);
    let bit = |on: bool| if on { "1" } else { "0" }.to_owned();
    let sack = if given("sack") { config.sack } else { settings.sack };
    let switched = |key, value| if given(key) { value } else { modern };
    let timestamps = if given("timestamps") { config.timestamps } else { settings.timestamps };
    let window = given("window").then_some(config.receive_window);
    // Windows of more than 64 KiB need scaling; today's default windows too.
    let scaling = if given("window_scaling") {
        config.window_scaling
    } else {
        modern && window.is_none_or(|window| window > 65_535)
    };
    let mut sysctls = BTreeMap::from([
        ("tcp_sack", bit(sack)),
        ("tcp_dsack", bit(sack && switched("dsack", config.dsack))),
        ("tcp_timestamps", bit(timestamps)),
        ("tcp_window_scaling", bit(scaling)),
        ("tcp_frto", if switched("frto", config.frto) { "2" } else { "0" }.to_owned()),
        ("tcp_recovery", bit(switched("rack", config.rack))),
        (
            "tcp_early_retrans",
            if switched("tail_loss_probe", config.tail_loss_probe) { "3" } else { "0" }.to_owned(),
        ),
        ("tcp_ecn", bit(config.ecn)),
        ("tcp_mtu_probing", bit(config.mtu_probing)),
        // What one connection learnt must not help the next, nor one run another.
        ("tcp_no_metrics_save", "1".to_owned()),
    ]);
    if given("duplicate_ack_threshold") {
        sysctls.insert("tcp_reordering", config.duplicate_ack_threshold.to_string());
    }
    if given("sack_compression") {
        sysctls.insert("tcp_comp_sack_nr", if config.sack_compression { "44" } else { "0" }.to_owned());
    }
    if given("idle_restart") {
        sysctls.insert("tcp_slow_start_after_idle", bit(config.idle_restart == IdleRestart::Decay));
    }
    if given("max_retransmissions") {
        sysctls.insert("tcp_retries2", config.max_retransmissions.to_string());
    }
    if given("rto_min") {
        sysctls.insert("tcp_rto_min_us", config.effective_rto_min().as_micros().to_string());
    }
    if given("rto_max") {
        sysctls.insert("tcp_rto_max_ms", config.effective_rto_max().as_millis().to_string());
    }
    if let (true, Some(window)) = (programs, window) {
        // Half of a buffer is for bookkeeping, as the kernel reckons before it has seen packets.
        let buffer = u64::from(window) * 2;
        sysctls.insert("tcp_rmem", format!("{buffer} {buffer} {buffer}"));
    }
    if programs && !tcp.pmtu_discovery {
        sysctls.insert("ip_no_pmtu_disc", "1".to_owned());
    }
    sysctls
}

fn options(flow: &Flow) -> Vec<TcpOption> {
    let (tcp, config) = (&flow.tcp, &flow.tcp.config);
    let given = |key| tcp.given.contains(&key);
    let mut options = Vec::new();
    if flow.mptcp.is_some() {
        // The other ones are set for the host.
        options.extend(given("nagle").then_some(TcpOption::NoDelay(!config.nagle)));
        options.extend(flow.stop.map(|_| TcpOption::NotSentLowWater(AHEAD)));
        return options;
    }
    if given("window") || tcp.kernel.is_none() {
        // The kernel accounts for more than the data; the clamp is what counts.
        let window = config.receive_window;
        options.push(TcpOption::ReceiveBuffer(window.saturating_mul(4).max(64 * 1024)));
        options.push(TcpOption::WindowClamp(window));
    }
    if given("mss") || tcp.kernel.is_none() {
        options.push(TcpOption::MaxSegment(config.mss));
    }
    if given("nagle") {
        options.push(TcpOption::NoDelay(!config.nagle));
    }
    if let Some(timeout) = config.user_timeout {
        options.push(TcpOption::UserTimeout(timeout));
    }
    if config.pacing {
        options.push(TcpOption::Paced);
    }
    options.push(TcpOption::PathMtuDiscovery(tcp.pmtu_discovery));
    if flow.stop.is_some() {
        options.push(TcpOption::NotSentLowWater(AHEAD));
    }
    options
}

/// The TCP of a relay towards the mobile node.
#[derive(Clone, Debug)]
pub(crate) struct RelayChoices {
    /// Where the relay is.
    pub(crate) node: NodeId,
    /// By flow that is split.
    pub(crate) choices: BTreeMap<usize, KernelChoice>,
}

/// Somebody at a host who needs the switches of `choice` there.
struct Claim<'a> {
    key: String,
    of: String,
    node: NodeId,
    choice: &'a KernelChoice,
}

/// The sysctls of every host, one list a place.
///
/// # Errors
/// [`WorldError::Unsupported`] when two flows that share a host need different ones.
pub(crate) fn sysctls_of_hosts(
    scenario: &Scenario,
    topology: &Topology,
    choices: &[KernelChoice],
    relay: Option<&RelayChoices>,
) -> Result<Vec<Vec<(String, String)>>, WorldError> {
    let mut claims = Vec::new();
    for (index, (flow, choice)) in scenario.flows.iter().zip(choices).enumerate() {
        if matches!(flow.workload, Workload::Probe { .. } | Workload::Voice(_)) {
            continue;
        }
        let ends = [flow.from, flow.to].map(|node| topology.find(&scenario.node(node).name));
        let claim = |node| Claim {
            key: format!("flow.{index}.tcp"),
            of: format!("flow {}", flow.name),
            node,
            choice,
        };
        claims.extend(ends.into_iter().map(|node| claim(node.unwrap_or(NodeId(0)))));
        // A relay has a connection with either end.
        if let Some((node, choice)) = relay.and_then(|relay| Some((relay.node, relay.choices.get(&index)?))) {
            claims.push(claim(node));
            let (key, of) = (RELAYS_KEY.to_owned(), "the relay".to_owned());
            claims.push(Claim { key, of, node, choice });
        }
    }
    let mut hosts: Vec<BTreeMap<&'static str, (String, String)>> =
        vec![BTreeMap::new(); topology.places.len()];
    for Claim { key, of, node, choice } in claims {
        let Some(host) = hosts.get_mut(usize::from(node.0)) else { continue };
        for (name, value) in &choice.sysctls {
            let (set, by) = host.entry(*name).or_insert_with(|| (value.clone(), of.clone()));
            if set != value {
                return Err(WorldError::Unsupported {
                    key,
                    found: format!("net.ipv4.{name} = {value:?} at {}", topology.place(node).name),
                    remedy: format!(
                        "all connections of a host share it, and {by} needs {set:?}: give both the same tcp"
                    ),
                });
            }
        }
    }
    let named = |(name, (value, _))| (format!("net.ipv4.{name}"), value);
    Ok(hosts.into_iter().map(|host| host.into_iter().map(named).collect()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(flows: &[&str]) -> Scenario {
        let mut text = String::from(
            "duration = \"1 s\"\n[links]\nwire = { rate = \"1 Mbit/s\", delay = \"1 ms\", between = [\"a\", \"b\"] }\n",
        );
        for tcp in flows {
            text += &format!("[[flow]]\nfrom = \"a\"\nto = \"b\"\n{tcp}\n");
        }
        Scenario::parse("x.toml", &text, &[]).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn chosen(tcp: &str) -> KernelChoice {
        choose(0, &scenario(&[tcp]).flows[0]).unwrap_or_else(|error| panic!("{error}"))
    }

    fn says(choice: &KernelChoice) -> (String, String, bool) {
        let TcpSummary { profile, variant, .. } = choice.summary();
        (profile.unwrap_or_default(), variant, choice.remark.is_some())
    }

    fn words(profile: &str, variant: &str, remark: bool) -> (String, String, bool) {
        (profile.to_owned(), variant.to_owned(), remark)
    }

    #[test]
    fn models_stand_for_the_nearest_settings_and_that_is_said() {
        for model in ["tahoe", "reno", "newreno", "linux-2.0"] {
            let choice = chosen(&format!("tcp = \"{model}\""));
            assert_eq!(says(&choice), words("legacy", "kernel-reno", true), "{model}");
            for off in ["tcp_sack", "tcp_timestamps", "tcp_frto", "tcp_recovery", "tcp_early_retrans"] {
                assert_eq!(choice.sysctls[off], "0", "{model} {off}");
            }
        }
        let sack = chosen("tcp = \"sack\"");
        assert_eq!(says(&sack), words("legacy-sack", "kernel-reno", true));
        assert_eq!((sack.sysctls["tcp_sack"].as_str(), sack.sysctls["tcp_recovery"].as_str()), ("1", "0"));
    }

    #[test]
    fn a_kernels_tcp_is_what_was_asked_for() {
        let modern = chosen("tcp = { variant = \"kernel\" }");
        assert_eq!(says(&modern), words("modern", "kernel-cubic", false));
        assert_eq!(
            (modern.sysctls["tcp_frto"].as_str(), modern.sysctls["tcp_early_retrans"].as_str()),
            ("2", "3")
        );
        assert_eq!(says(&chosen("tcp = \"legacy\"")), words("legacy", "kernel-reno", false));
        let choice = chosen("tcp = { profile = \"legacy\", congestion = \"bbr\", timestamps = true }");
        assert_eq!(says(&choice), words("legacy", "kernel-bbr", false));
        assert_eq!(choice.sysctls["tcp_timestamps"], "1", "switch by switch");
        let model = chosen("tcp = { profile = \"reno\", congestion = \"cubic\" }");
        assert_eq!(says(&model), words("legacy", "kernel-cubic", true));
        assert_eq!(says(&chosen("tcp = \"linux\"")), words("modern", "kernel-cubic", false));
        assert_eq!(says(&chosen("")), words("modern", "kernel-cubic", false), "what Linux hosts send today");
        assert_eq!(says(&chosen("tcp = { congestion = \"bbr\" }")), words("modern", "kernel-bbr", false));
    }

    #[test]
    fn a_window_is_a_clamp_with_room_behind_it() {
        let choice = chosen("tcp = { profile = \"legacy\", window = \"16 KiB\" }");
        assert!(choice.options.contains(&TcpOption::WindowClamp(16_384)), "{:?}", choice.options);
        assert_eq!(choice.sysctls["tcp_window_scaling"], "0");
        let wide = chosen("tcp = { variant = \"kernel\", window = \"60 KiB\", window_scaling = true }");
        assert_eq!(wide.sysctls["tcp_window_scaling"], "1");
        let modern = chosen("tcp = \"modern\"");
        let clamped = modern.options.iter().any(|option| matches!(option, TcpOption::WindowClamp(_)));
        assert!(!clamped, "as it comes");
        let program = chosen("command = \"true\"\ntcp = { profile = \"legacy\", window = \"16 KiB\" }");
        assert_eq!(program.sysctls["tcp_rmem"], "32768 32768 32768");
    }

    #[test]
    fn flows_that_share_a_host_share_its_parameters() {
        let check = |flows: &[&str]| {
            let scenario = scenario(flows);
            let choices: Vec<_> =
                scenario.flows.iter().enumerate().map(|(n, flow)| choose(n, flow).unwrap()).collect();
            sysctls_of_hosts(&scenario, &careof_plan::lay_out(&scenario), &choices, None)
        };
        let hosts =
            check(&["tcp = \"reno\"", "tcp = { profile = \"legacy\", congestion = \"cubic\" }"]).unwrap();
        assert!(hosts.iter().all(|host| host.contains(&("net.ipv4.tcp_sack".to_owned(), "0".to_owned()))));
        let error = check(&["tcp = \"reno\"", "tcp = \"modern\""]).unwrap_err().to_string();
        assert!(error.contains("flow.1.tcp") && error.contains("flow flow-1 needs"), "{error}");
    }

    #[test]
    fn what_a_kernel_does_not_take_is_refused_by_its_key() {
        for (key, value) in [
            ("rto_min", "\"1 ns\""),
            ("rto_max", "\"999 ms\", rto_min = \"1 ms\""),
            ("rto_max", "\"10 min\""),
            ("max_retransmissions", "256"),
        ] {
            let flow = scenario(&[&format!("tcp = {{ profile = \"legacy\", {key} = {value} }}")]);
            let error = choose(0, &flow.flows[0]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("flow.0.tcp.{key}:")), "{error}");
        }
        chosen(
            "tcp = { profile = \"legacy\", rto_min = \"1 us\", rto_max = \"120 s\", max_retransmissions = 255 }",
        );
    }

    #[test]
    fn what_belongs_to_a_socket_cannot_be_chosen_for_a_program() {
        let flow = scenario(&["command = \"true\"\ntcp = { profile = \"legacy\", mss = 536 }"]);
        let error = choose(0, &flow.flows[0]).unwrap_err().to_string();
        assert!(error.starts_with("flow.0.tcp.mss:"), "{error}");
    }
}
