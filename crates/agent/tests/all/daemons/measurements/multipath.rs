//! One flow over several links: what it gets beside the best of them and the kernel's Multipath TCP, and how long it stands still while
//! links die and return.

use std::process::{Child, Command, Stdio};

use careof_base::{DataRate, Duration, Probability, RandomStream};
use careof_lab::{Host, set_congestion_control};
use careof_link::{Config, Jitter, Loss};

use super::transfer::{Transfer, Way};
use super::{median, number, say, verdict};
use crate::daemons::support::{CORRESPONDENT, Network, law, pause, realm_or_skip, wait_until};

/// One path of a pair: Mbit/s, and one way milliseconds of delay, the standard deviation of their jitter, and packets lost of a
/// thousand.
type PathOf = (u64, u64, u64, u32);

/// Pairs of paths that a bonding VPN has published figures for (mp0rta/mqvpn, docs/report/2026-06-18-reorder-only-datagram-multipath-
/// connect-ip-en.md, commit 81dc060), the same as those of the study `shake`.
const PROFILES: [(&str, [PathOf; 2]); 16] = [
    ("baseline", [(50, 20, 0, 0), (50, 20, 0, 0)]),
    ("rtt_40", [(50, 20, 0, 0), (50, 40, 0, 0)]),
    ("rtt_70", [(50, 20, 0, 0), (50, 70, 0, 0)]),
    ("rtt_120", [(50, 20, 0, 0), (50, 120, 0, 0)]),
    ("rtt_320", [(50, 20, 0, 0), (50, 320, 0, 0)]),
    ("jit_5", [(50, 20, 5, 0), (50, 20, 5, 0)]),
    ("jit_20", [(50, 20, 20, 0), (50, 20, 20, 0)]),
    ("loss_05", [(50, 20, 0, 5), (50, 20, 0, 5)]),
    ("loss_2", [(50, 20, 0, 20), (50, 20, 0, 20)]),
    ("bw_4to1", [(50, 20, 0, 0), (12, 20, 0, 0)]),
    ("bw_10to1", [(100, 20, 0, 0), (10, 20, 0, 0)]),
    ("dual_lte", [(40, 30, 5, 5), (25, 45, 8, 5)]),
    ("fiber_lte", [(300, 8, 0, 0), (30, 40, 8, 5)]),
    ("lte_starlink", [(40, 35, 8, 0), (100, 50, 25, 10)]),
    ("lte_geo", [(40, 35, 0, 0), (20, 320, 20, 5)]),
    ("congested", [(20, 50, 20, 20), (15, 60, 25, 20)]),
];
/// Packets, as in the study.
const QUEUE: u32 = 1000;
/// At least this part of the best path, and where the paths are alike of the sum: delays less than 50 ms apart, rates less than fourfold.
const OF_BEST: f64 = 0.97;
const OF_SUM: f64 = 0.9;
const ALIKE_MS: u64 = 50;
const ALIKE_RATES: u64 = 4;

const PORT: u16 = 5001;
/// IPPROTO_MPTCP of Linux.
const MPTCP: u32 = 262;
const TCP: u32 = 6;
/// Of the agents' tables and of anything else here.
const MPTCP_TABLE: u32 = 4_000;

/// A path as the emulator has it; `REORDER=1` has each packet delayed for itself, as netem does, where otherwise a path keeps its order.
fn path((rate, delay, jitter, loss): PathOf, reorder: bool) -> Config {
    let plain = law(DataRate::from_megabits_per_second(rate), Duration::from_millis(delay), QUEUE);
    let jitter = match jitter {
        0 => Jitter::None,
        jitter => Jitter::Normal { deviation: Duration::from_millis(jitter), reorder },
    };
    let loss = match loss {
        0 => Loss::None,
        loss => Loss::Bernoulli { p: Probability::new(f64::from(loss) / 1000.0).unwrap() },
    };
    Config { jitter, loss, ..plain }
}

/// By what a flow goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// The first link alone, or the second one.
    One(usize),
    /// Both, by `auto`.
    Both,
    /// Both, by the kernel's Multipath TCP and without agents.
    MultipathTcp,
}

/// Sends to whoever connects until that goes away.
const SENDER: &str = "import socket, sys
kind, host, port = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, kind)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((host, port))
listener.listen()
print('listening', flush=True)
peer, _ = listener.accept()
block = bytes(65536)
try:
    while True:
        peer.sendall(block)
except OSError:
    pass
";

/// Says how many bytes came in so many seconds, from connecting on.
const RECEIVER: &str = "import socket, sys, time
kind, host, port, span = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
begun = time.monotonic()
peer = socket.socket(socket.AF_INET, socket.SOCK_STREAM, kind)
count = 0
try:
    peer.settimeout(span)
    peer.connect((host, port))
    while (left := begun + span - time.monotonic()) > 0:
        peer.settimeout(left)
        got = len(peer.recv(1 << 16))
        if not got:
            sys.exit('the sender went away')
        count += got
except TimeoutError:
    pass
print(count)
";

/// A process that is gone when nobody has it any more.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn python(host: &Host, program: &str, arguments: &[String]) -> Child {
    let mut command = Command::new("python3");
    command.args(["-c", program]).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped());
    host.spawn(command).unwrap()
}

/// Mbit/s of what comes to the mobile node in so many seconds; `None` if nothing does.
fn transfer(network: &Network, kind: u32, seconds: u32) -> Option<f64> {
    let ends = [kind.to_string(), CORRESPONDENT.to_string(), PORT.to_string()];
    let mut sender = python(&network.correspondent, SENDER, &ends);
    let mut said = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(sender.stdout.take().unwrap()), &mut said)
        .unwrap();
    let _sender = Ended(sender);
    assert_eq!(said, "listening\n");
    let arguments: Vec<String> = ends.into_iter().chain([seconds.to_string()]).collect();
    let mut receiver = Ended(python(&network.mobile, RECEIVER, &arguments));
    let mut told = String::new();
    std::io::Read::read_to_string(&mut receiver.0.stdout.take().unwrap(), &mut told).unwrap();
    let count: u64 = told.trim().parse().unwrap_or_else(|_| panic!("the receiver said {told:?}"));
    (count > 0).then(|| count as f64 * 8.0 / f64::from(seconds) / 1e6)
}

/// Carries out `ip` in the mobile node's host; whether it could.
fn ip(network: &Network, words: &str) -> bool {
    let mut command = Command::new("ip");
    command.args(words.split(' ')).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    network.mobile.spawn(command).is_ok_and(|mut child| child.wait().is_ok_and(|status| status.success()))
}

/// Has the kernel's Multipath TCP use both links of the mobile node: an endpoint for the second, and routes by source for both.
fn have_multipath_tcp(network: &Network) -> bool {
    let links = [&network.wlan, &network.gsm];
    let routes = (MPTCP_TABLE..).zip(links).all(|(table, link)| {
        let [a, b, c, _] = link.address.octets();
        ip(network, &format!("route add default via {a}.{b}.{c}.1 dev {} table {table}", link.name))
            && ip(network, &format!("rule add from {} table {table}", link.address))
    });
    let second = &network.gsm;
    routes
        && ip(network, "mptcp limits set subflow 2 add_addr_accepted 2")
        && ip(network, &format!("mptcp endpoint add {} dev {} subflow", second.address, second.name))
}

/// Mbit/s of one flow; `None` where nothing came, or the machine does not give what it takes.
fn goodput(paths: [PathOf; 2], control: &'static str, by: By, run: u32, seconds: u32) -> Option<f64> {
    let realm = realm_or_skip(&["python3"])?;
    let reorder = std::env::var("REORDER").is_ok_and(|value| value == "1");
    let network = Network::between(realm, u64::from(run), paths.map(|of| path(of, reorder)));
    for host in [&network.correspondent, &network.mobile] {
        host.run(move || set_congestion_control(control).map(drop)).unwrap().unwrap();
    }
    if by == By::MultipathTcp {
        return have_multipath_tcp(&network).then(|| transfer(&network, MPTCP, seconds)).flatten();
    }
    let _home = network.start_home_agent_with("max_bindings_per_node = 8\n[multipath]\n");
    let interface = |name: &str| format!("[[interface]]\nname = \"{name}\"\n");
    let links = [network.wlan.name, network.gsm.name];
    let mobile = match by {
        By::One(link) => {
            let mobile = network.start_mobile_node_with(&interface(links[link]));
            mobile.wait_for_registration(links[link]);
            mobile
        }
        _ => {
            let tables = links.map(interface).concat();
            let mobile = network.start_mobile_node_with(&format!("[multipath]\n{tables}"));
            mobile.wait_for_working_paths(2);
            mobile
        }
    };
    let rate = transfer(&network, TCP, seconds);
    drop(mobile);
    rate
}

/// The median of the runs in which something came; `None` if in half of them nothing did.
fn middle(runs: u32, carry_out: impl Fn(u32) -> Option<f64>) -> Option<f64> {
    // In bit/s, which can be put in order.
    let rates: Vec<u64> = (0..runs).map(|run| carry_out(run).map_or(0, |rate| (rate * 1e6) as u64)).collect();
    Some(median(&rates)).filter(|rate| *rate > 0).map(|rate| rate as f64 / 1e6)
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Ticks of all cores since the machine began, and of these what other virtual machines took while something here was to run (proc_stat(5)).
fn ticks() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let all: Vec<u64> =
        text.lines().next().unwrap_or_default().split(' ').filter_map(|word| word.parse().ok()).collect();
    // User, nice, system, idle, waiting, interrupts, soft ones, stolen; guests are in user's.
    (all.iter().take(8).sum(), all.get(7).copied().unwrap_or_default())
}

/// `PROFILES` and `CONTROLS` name some of them, with spaces between.
fn chosen(variable: &str, name: &str) -> bool {
    std::env::var(variable).map_or(true, |names| names.split(' ').any(|one| one == name))
}

#[test]
#[ignore = "takes two hours: make bench-multipath"]
fn profiles() {
    if realm_or_skip(&["python3", "ip"]).is_none() {
        return;
    }
    let (runs, seconds) = (number("RUNS", 3), number("SPAN", 15));
    say(&format!("{runs} runs of {seconds} s each, Mbit/s; load before: {}", load()));
    say(&format!(
        "{:14} {:6} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6} {:>8} {:>8}",
        "profile", "control", "A", "B", "auto", "MPTCP", "/best", "/sum", "/MPTCP", "stolen"
    ));
    let (mut rows, mut held, mut compared, mut ahead) = (0, 0, 0, 0);
    for (name, paths) in PROFILES.into_iter().filter(|(name, _)| chosen("PROFILES", name)) {
        for control in ["cubic", "bbr"].into_iter().filter(|control| chosen("CONTROLS", control)) {
            let (all_before, stolen_before) = ticks();
            let measured = [By::One(0), By::One(1), By::Both, By::MultipathTcp]
                .map(|by| middle(runs, |run| goodput(paths, control, by, run, seconds)));
            let (all, stolen) = ticks();
            // The kernel's counts can go back a little (proc_stat(5)).
            let stolen = stolen.saturating_sub(stolen_before) * 100 / all.saturating_sub(all_before).max(1);
            let [a, b, auto, rival] = measured.map(|rate| rate.unwrap_or_default());
            let (best, sum) = (a.max(b), a + b);
            let [(rate_a, delay_a, ..), (rate_b, delay_b, ..)] = paths;
            let are_alike =
                delay_a.abs_diff(delay_b) < ALIKE_MS && rate_a.max(rate_b) < ALIKE_RATES * rate_a.min(rate_b);
            let row_holds = auto >= OF_BEST * best && (!are_alike || auto >= OF_SUM * sum);
            rows += 1;
            held += u32::from(row_holds);
            if measured[3].is_some() {
                compared += 1;
                ahead += u32::from(auto >= rival);
            }
            let rate = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2}"));
            let [a, b, both, rival] = measured.map(rate);
            let of_rival = measured[3].map_or_else(|| "-".to_owned(), |rival| format!("{:.2}", auto / rival));
            say(&format!(
                "{name:14} {control:6} {a:>8} {b:>8} {both:>8} {rival:>8} {:>6.2} {:>6.2} {of_rival:>8} {stolen:>6} %  {}",
                auto / best,
                auto / sum,
                verdict(row_holds)
            ));
        }
    }
    say(&format!(
        "{held} of {rows} held, ahead of Multipath TCP in {ahead} of {compared}; load after: {}",
        load()
    ));
    assert_eq!(held, rows, "the promise is not held everywhere");
}

/// How long one may stand still.
const LONGEST_STALL: Duration = Duration::from_secs(1);
/// There and back by the slowest of the three links.
const ROUND_TRIP: Duration = Duration::from_millis(100);

#[test]
#[ignore = "takes two minutes: make bench-path-deaths"]
fn path_deaths() {
    let Some(realm) = realm_or_skip(&[]) else { return };
    let link =
        |rate, one_way| law(DataRate::from_megabits_per_second(rate), Duration::from_millis(one_way), 100);
    let network = Network::between(realm, 0, [link(4, 20), link(3, 35)]);
    let lte = network.attach_third(link(2, 50));
    let mut home = network.start_home_agent_with("max_bindings_per_node = 8\n[multipath]\n");
    let mobile = network.start_mobile_node_with(
        "[multipath]\n[[interface]]\nname = \"wlan0\"\n[[interface]]\nname = \"gsm0\"\n[[interface]]\nname = \"lte0\"\n",
    );
    mobile.wait_for_working_paths(3);
    home.wait_for_working_paths(3);
    let transfer = Transfer::start(&network, Way::Download);
    say(&format!("load before: {}", load()));
    pause(Duration::from_secs(5));
    let seed = u64::from(number("SEED", 1));
    let mut random = RandomStream::new(seed, 0, "path deaths");
    let mut between =
        |least: u64, most: u64| Duration::from_millis(least + random.next_u64() % (most - least));
    let links = [&network.wlan, &network.gsm, &lte];
    let (begun, deaths) = (transfer.now(), number("DEATHS", 10));
    let mut stalls = Vec::new();
    say(&format!("{:>6} {:6} {:>8} {:>10} {:>10}", "at, s", "link", "out, s", "at death", "at return"));
    for death in 0..deaths {
        let dying = links[usize::try_from(between(0, 3000).as_millis()).unwrap() % links.len()];
        let (out, up) = (between(1500, 5000), between(2000, 4000));
        let died = transfer.now();
        network.set_silent(dying, true);
        if death == deaths / 2 {
            home.kill();
            home.start_again(&network.home);
        }
        pause(out);
        let back = transfer.now();
        network.set_silent(dying, false);
        wait_until("the path is back", || mobile.working_paths() == 3);
        pause(up);
        let [after_death, after_return] = [(died, back), (back, transfer.now())]
            .map(|(from, to)| transfer.longest_silence(from, to).unwrap_or_default());
        let of_agent = if death == deaths / 2 { "  and the home agent" } else { "" };
        say(&format!(
            "{:>6.1} {:6} {:>8.1} {:>7} ms {:>7} ms{of_agent}",
            (died - begun).as_secs_f64(),
            dying.name,
            (back - died).as_secs_f64(),
            after_death.as_millis(),
            after_return.as_millis()
        ));
        stalls.extend([after_death, after_return]);
    }
    stalls.sort_unstable();
    let quantile = |of_ten: usize| stalls[(stalls.len() - 1) * of_ten / 10].as_millis();
    let longest = stalls[stalls.len() - 1];
    let middle = median(&stalls);
    say(&format!(
        "longest silences around {} deaths and returns, ms: least {}, median {}, nine of ten below {}, longest {}; load after: {}",
        stalls.len(),
        quantile(0),
        middle.as_millis(),
        quantile(9),
        longest.as_millis(),
        load()
    ));
    let is_held = longest <= LONGEST_STALL && middle <= ROUND_TRIP;
    say(verdict(is_held));
    assert!(is_held, "a stall of more than 1 s, or a median of more than a round trip");
}
