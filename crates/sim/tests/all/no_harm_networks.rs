//! A survey of networks drawn by chance, of six families, in which assists must not leave flows worse off than none.
//!
//! A run counts by the bytes that all its flows deliver in the 10 s after each handover and in all, and by how long they stand still. What a
//! sender makes of one loss more or less is chance: a draw is run with its handovers shifted by [`FIRST_MS`], and where that looks harmed by
//! [`AGAIN_MS`], which alone decide. It is harmed if the sum over these shifts is below [`LEAST`], or the mean silence longer by
//! [`LONGER_S`], and if that is so in [`OF_SIX`] of the six as well.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::common::balanced;
use crate::no_harm::{AFTER_MS, LEAST, number_of};
use crate::random_worlds::pick;
use careof_base::{Instant, RandomStream};
use careof_scenario::{NamedIn, Scenario};
use careof_sim::{Observation, Simulation};
use careof_trace::EventKind;

/// Shifts of all handovers with which a draw is looked at, ms.
const FIRST_MS: [u64; 3] = [0, 113, 533];
/// Those that decide, ms.
const AGAIN_MS: [u64; 6] = [37, 71, 191, 291, 397, 619];
/// In so many of them.
const OF_SIX: usize = 4;
/// So much longer a flow may stand still, in all or at the longest.
const LONGER_S: f64 = 0.5;

/// How long a run goes on behind its last handover.
const TAIL_MS: u64 = 20_000;

/// Draws a network.
type Family = fn(&mut RandomStream) -> Network;

/// The families, by the names that `FAMILY` takes.
const FAMILIES: [(&str, Family); 6] = [
    ("row", row),
    ("several", several),
    ("triangle", triangle),
    ("foreign", foreign),
    ("trace", trace),
    ("soft", soft),
];

/// A scenario without `duration`, whose handovers have no `at`.
struct Network {
    text: String,
    /// Files that it names.
    files: Vec<(String, String)>,
    handovers_ms: Vec<u64>,
}

/// What becomes of the flows of one run.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    /// Bytes delivered in the time that counts after handovers.
    after: u64,
    /// Bytes delivered in all.
    whole: u64,
    /// The longest silence of a flow, s.
    longest: f64,
    /// Stalls of all flows together, s.
    stalled: f64,
}

/// What assists make of it.
#[derive(Clone, Copy, Debug, Default)]
struct Difference {
    after: f64,
    whole: f64,
    longest_s: f64,
    stalled_s: f64,
}

impl Difference {
    fn of(with: &[Outcome], without: &[Outcome]) -> Self {
        let sum = |of: &[Outcome], what: fn(&Outcome) -> f64| of.iter().map(what).sum::<f64>();
        let share = |what| sum(with, what) / sum(without, what).max(1.0);
        let more = |what| (sum(with, what) - sum(without, what)) / with.len() as f64;
        Self {
            after: share(|outcome| outcome.after as f64),
            whole: share(|outcome| outcome.whole as f64),
            longest_s: more(|outcome| outcome.longest),
            stalled_s: more(|outcome| outcome.stalled),
        }
    }

    fn is_fewer_bytes(&self) -> [bool; 2] {
        [self.after < LEAST, self.whole < LEAST]
    }

    fn is_silent_longer(&self) -> [bool; 2] {
        [self.longest_s > LONGER_S, self.stalled_s > LONGER_S]
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { after, whole, longest_s, stalled_s } = self;
        write!(f, "after {after:.3}, whole {whole:.3}, longest {longest_s:+.1} s, stalled {stalled_s:+.1} s")
    }
}

/// A rate between 64 kbit/s and 8 Mbit/s, every octave as likely.
fn rate(random: &mut RandomStream) -> u64 {
    let octave = random.below(7);
    (64_000 << octave) + random.below(64_000 << octave)
}

/// `key = value`, with `of` ten draws none.
fn maybe(random: &mut RandomStream, none: u64, key: &str, values: &[&str]) -> String {
    if random.below(10) < none { String::new() } else { format!(", {key} = {}", pick(random, values)) }
}

/// What a link has beside a rate and losses.
fn line(random: &mut RandomStream) -> String {
    let delay = pick(random, &["2 ms", "20 ms", "50 ms", "150 ms"]);
    let queue = pick(random, &["8", "20", "50", "100", "300"]);
    format!("delay = \"{delay}\", queue = \"{queue} packets\"")
}

/// A link of a constant rate; in some cases slower upwards.
fn link(random: &mut RandomStream) -> String {
    let rate = rate(random);
    let up = match random.below(3) {
        0 => format!(", rate_up = \"{} bit/s\"", (rate / (1 << random.below(5))).max(32_000)),
        _ => String::new(),
    };
    format!("rate = \"{rate} bit/s\"{up}, {}", line(random))
}

/// What a link loses and how its delays vary.
fn faults(random: &mut RandomStream) -> String {
    let loss = maybe(
        random,
        5,
        "loss",
        &[
            "\"0.1 %\"",
            "\"1 %\"",
            "\"3 %\"",
            "{ kind = \"gilbert-elliott\", good_to_bad = 0.002, bad_to_good = 0.2 }",
            "{ kind = \"gilbert-elliott\", good_to_bad = 0.005, bad_to_good = 0.05, loss_in_bad = 0.3 }",
        ],
    );
    let jitter = maybe(
        random,
        6,
        "jitter",
        &[
            "\"2 ms\"",
            "{ kind = \"pareto\", scale = \"3 ms\", shape = 2.5 }",
            "{ spread = \"2 ms\", reorder = true }",
        ],
    );
    format!("{loss}{jitter}")
}

/// What is known of a link's rate.
fn known(random: &mut RandomStream) -> String {
    match random.below(3) {
        0 => String::new(),
        1 => ", known_rate = \"none\"".to_owned(),
        _ => format!(", known_rate = \"{} bit/s\"", rate(random)),
    }
}

/// A scenario of these access links, the first of which is in use at first, as many handovers as fit in between, and flows.
fn network(
    random: &mut RandomStream,
    links: &[String],
    mobility: &str,
    handovers: u64,
    flows: &str,
    style: fn(&mut RandomStream) -> String,
) -> Network {
    let mut text = "stall_threshold = \"1 s\"\n[links]\n".to_owned();
    let delay = pick(random, &["2 ms", "10 ms", "40 ms", "100 ms"]);
    if mobility.contains("foreign-agent") {
        for link in 0..links.len() {
            let _ = writeln!(text, "l{link}-backhaul = {{ rate = \"100 Mbit/s\", delay = \"{delay}\" }}");
        }
    }
    let _ = writeln!(text, "ethernet = {{ rate = \"1 Gbit/s\", delay = \"{delay}\" }}");
    for (number, link) in links.iter().enumerate() {
        let _ = writeln!(text, "l{number} = {{ {link} }}");
    }
    let _ = writeln!(text, "[mobility]\n{mobility}");
    let mut handovers_ms = Vec::new();
    let (mut at, mut current) = (8_000 + random.below(8_000), 0);
    for _ in 0..handovers {
        let to = (current + 1 + random.below(links.len() as u64 - 1)) % links.len() as u64;
        let style = style(random);
        let _ = writeln!(text, "[[handover]]\nat = \"0 s\"\nfrom = \"l{current}\"\nto = \"l{to}\"\n{style}");
        handovers_ms.push(at);
        at += 6_000 + random.below(10_000);
        current = to;
    }
    text.push_str(flows);
    Network { text, files: Vec::new(), handovers_ms }
}

/// How a handover goes.
fn either_style(random: &mut RandomStream) -> String {
    if random.below(2) == 0 { soft_style(random) } else { hard_style(random) }
}

fn soft_style(random: &mut RandomStream) -> String {
    let overlap = pick(random, &["", "overlap = \"300 ms\"\n", "overlap = \"2 s\"\n"]);
    format!("style = \"make-before-break\"\n{overlap}queued = \"drain-late\"")
}

fn hard_style(random: &mut RandomStream) -> String {
    let outage = 50 << random.below(7);
    let queued = pick(random, &["drop", "drain-late"]);
    format!("style = \"break-before-make\"\ninterruption = \"{outage} ms\"\nqueued = \"{queued}\"")
}

/// A flow without an end.
fn bulk(random: &mut RandomStream, number: u64) -> String {
    let ends = ["correspondent", "mobile"];
    let from = usize::from(random.below(3) == 0);
    let congestion = pick(random, &["cubic", "cubic", "reno", "bbr"]);
    format!(
        "[[flow]]\nname = \"f{number}\"\nfrom = \"{}\"\nto = \"{}\"\nkind = \"bulk\"\ntcp = {{ congestion = \"{congestion}\" }}\n",
        ends[from],
        ends[1 - from]
    )
}

/// What an application asks for, or sends now and then.
fn application(random: &mut RandomStream, number: u64) -> String {
    let (from, to, kind) = match random.below(4) {
        0 => (
            "mobile",
            "correspondent",
            "kind = \"request-response\"\nrequest = \"500 B\"\nresponse = \"30 kB\"\nthink = \"1 s\"",
        ),
        1 => (
            "mobile",
            "correspondent",
            "kind = \"request-response\"\nrequest = \"200 B\"\nresponse = \"1 kB\"\nthink = \"200 ms\"",
        ),
        2 => (
            "correspondent",
            "mobile",
            "kind = \"on-off\"\nburst = \"60 kB\"\npause = \"2 s\"\nburst_law = \"pareto\"\npause_law = \"exponential\"",
        ),
        _ => (
            "mobile",
            "correspondent",
            "kind = \"on-off\"\nburst = \"20 kB\"\npause = \"1 s\"\nburst_law = \"pareto\"\npause_law = \"exponential\"",
        ),
    };
    let start = random.below(5_000);
    format!(
        "[[flow]]\nname = \"f{number}\"\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"{start} ms\"\n{kind}\n"
    )
}

/// A number below `most`, small ones rather than large ones.
fn few(random: &mut RandomStream, most: u64) -> u64 {
    let below = 1 + random.below(most);
    random.below(below)
}

/// One to `most` flows.
fn mixed(random: &mut RandomStream, most: u64) -> String {
    let count = 1 + few(random, most);
    let mut flows = String::new();
    for number in 0..count {
        let flow = if random.below(2) == 0 { bulk(random, number) } else { application(random, number) };
        flows.push_str(&flow);
    }
    flows
}

/// A row of handovers of one flow over links that lose and vary.
fn row(random: &mut RandomStream) -> Network {
    let links: Vec<String> = (0..2 + random.below(2))
        .map(|_| format!("{}{}{}", link(random), faults(random), known(random)))
        .collect();
    let (flows, handovers) = (bulk(random, 0), 2 + random.below(4));
    network(random, &links, "routing = \"reverse-tunnel\"", handovers, &flows, either_style)
}

/// Several flows, both ways.
fn several(random: &mut RandomStream) -> Network {
    let links = [0, 1].map(|_| format!("{}{}", link(random), known(random)));
    let mut flows = format!("{}{}", bulk(random, 0), bulk(random, 1));
    for number in 2..2 + few(random, 19) {
        let flow = if random.below(3) == 0 { bulk(random, number) } else { application(random, number) };
        flows.push_str(&flow);
    }
    let handovers = 1 + random.below(3);
    network(random, &links, "routing = \"reverse-tunnel\"", handovers, &flows, either_style)
}

/// What the mobile node sends does not pass its home agent.
fn triangle(random: &mut RandomStream) -> Network {
    let links = [0, 1].map(|_| format!("{}{}{}", link(random), faults(random), known(random)));
    let (flows, handovers) = (mixed(random, 4), 1 + random.below(3));
    network(random, &links, "routing = \"triangle\"", handovers, &flows, either_style)
}

/// The mobile node has the address of its foreign agent.
fn foreign(random: &mut RandomStream) -> Network {
    let links: Vec<String> = (0..2 + random.below(2))
        .map(|_| format!("{}{}{}", link(random), faults(random), known(random)))
        .collect();
    let (flows, handovers) = (mixed(random, 4), 1 + random.below(4));
    let routing = pick(random, &["triangle", "reverse-tunnel"]);
    let mobility = format!("care_of = \"foreign-agent\"\nrouting = \"{routing}\"");
    network(random, &links, &mobility, handovers, &flows, either_style)
}

/// A rate that changes every so often: a walk, or steps between a high and a low one.
fn series(random: &mut RandomStream) -> String {
    let mut text = "time_s,rate_mbit_s\n".to_owned();
    let mean = rate(random) as f64 / 1e6;
    let every = [0.2, 1.0, 3.0][random.below(3) as usize];
    let swing = 1.0 + 3.0 * random.unit();
    let walks = random.below(2) == 0;
    let mut now = mean;
    for row in 0..(60.0 / every) as u32 {
        let _ = writeln!(text, "{:.1},{now:.4}", f64::from(row) * every);
        let step = swing.powf(2.0 * random.unit() - 1.0);
        now = match (walks, row % 2) {
            (true, _) => (now * step).clamp(mean / 8.0, mean * 8.0),
            (false, 0) => mean * swing,
            (false, _) => mean / swing,
        };
    }
    text
}

/// Links whose rate follows a trace.
fn trace(random: &mut RandomStream) -> Network {
    let files = ["t0.csv", "t1.csv"].map(|name| (name.to_owned(), series(random))).to_vec();
    let links =
        ["t0.csv", "t1.csv"].map(|name| format!("trace = \"{name}\", {}{}", line(random), known(random)));
    let (flows, handovers) = (mixed(random, 3), 1 + random.below(3));
    let network = network(random, &links, "routing = \"reverse-tunnel\"", handovers, &flows, either_style);
    Network { files, ..network }
}

/// Soft handovers, while which copies may come by both links.
fn soft(random: &mut RandomStream) -> Network {
    let links = [0, 1].map(|_| format!("{}{}{}", link(random), faults(random), known(random)));
    let (flows, handovers) = (mixed(random, 4), 1 + random.below(4));
    let bindings = pick(random, &["true", "true", "false"]);
    let mobility = format!("routing = \"reverse-tunnel\"\nsimultaneous_bindings = {bindings}");
    network(random, &links, &mobility, handovers, &flows, soft_style)
}

/// The `number`th network of a family.
fn draw(family: usize, number: u64) -> Network {
    let (name, network) = FAMILIES[family];
    network(&mut RandomStream::new(number, 0, &format!("no-harm {name}")))
}

impl Network {
    /// A run with all handovers so much later.
    fn run(&self, assist: &str, shift_ms: u64) -> Outcome {
        let at: Vec<u64> = self.handovers_ms.iter().map(|at| at + shift_ms).collect();
        let last = at.last().copied().unwrap_or(0);
        let mut overrides = vec![format!("assist={assist}"), format!("duration={} ms", last + TAIL_MS)];
        for (index, at) in at.iter().enumerate() {
            overrides.push(format!("handover.{index}.at={at} ms"));
        }
        let read = |name: &str, _: NamedIn| {
            let found = self.files.iter().find(|(file, _)| file == name);
            found.map(|(_, text)| text.clone()).ok_or_else(|| "there is no such file".to_owned())
        };
        let scenario = Scenario::parse_with("no-harm.toml", &self.text, &overrides, &read)
            .unwrap_or_else(|errors| panic!("{errors}\n{}", self.text));
        let kinds = Some(vec![EventKind::DataDelivered]);
        let observation = Observation { trace: true, kinds, ..Observation::default() };
        let mut simulation = Simulation::new(scenario, "no-harm.toml", 0, observation).expect("a world");
        let mut delivered = BTreeMap::new();
        let mut until = |simulation: &mut Simulation, ms| {
            simulation.advance(Instant::from_millis(ms)).expect("a sound run");
            let events = simulation.take_events();
            let [bytes, flows, nodes] =
                ["delivered_bytes", "flow", "node"].map(|name| events.by_name(name).expect("a column"));
            for row in 0..events.rows() {
                if let Some(bytes) = bytes.number(row) {
                    let end = (flows.text(row), nodes.text(row));
                    delivered.insert((end.0.map(str::to_owned), end.1.map(str::to_owned)), bytes);
                }
            }
            u64::try_from(delivered.values().sum::<i128>()).expect("a count")
        };
        let mut after = 0;
        for (index, &begin) in at.iter().enumerate() {
            let end = at.get(index + 1).map_or(begin + AFTER_MS, |next| (*next).min(begin + AFTER_MS));
            let before = until(&mut simulation, begin);
            after += until(&mut simulation, end) - before;
        }
        let whole = until(&mut simulation, last + TAIL_MS);
        let flows = balanced(simulation.finish().expect("a sound run")).flows;
        let longest = flows.iter().filter_map(|flow| flow.longest_silence).max().unwrap_or_default();
        let stalled = flows.iter().map(|flow| flow.stalled.as_secs_f64()).sum();
        Outcome { after, whole, longest: longest.as_secs_f64(), stalled }
    }

    /// Runs with these shifts, with and without.
    fn pairs(&self, assist: &str, shifts_ms: &[u64]) -> (Vec<Outcome>, Vec<Outcome>) {
        let runs = |assist| shifts_ms.iter().map(|shift| self.run(assist, *shift)).collect();
        (runs(assist), runs("none"))
    }
}

/// What a draw came to.
#[derive(Clone, Copy, Debug)]
struct Verdict {
    difference: Difference,
    in_bytes: bool,
    in_silence: bool,
}

/// Looks at a network, and says what it finds where assists do harm.
fn judge(network: &Network, assist: &str) -> (Verdict, String) {
    let (with, without) = network.pairs(assist, &FIRST_MS);
    let difference = Difference::of(&with, &without);
    let looks_harmed =
        difference.is_fewer_bytes().into_iter().chain(difference.is_silent_longer()).any(|is| is);
    if !looks_harmed {
        return (Verdict { difference, in_bytes: false, in_silence: false }, String::new());
    }
    let (with, without) = network.pairs(assist, &AGAIN_MS);
    let difference = Difference::of(&with, &without);
    let each: Vec<Difference> = with
        .iter()
        .zip(&without)
        .map(|(with, without)| Difference::of(std::slice::from_ref(with), std::slice::from_ref(without)))
        .collect();
    let is_so = |is: fn(&Difference) -> [bool; 2]| {
        (0..2).any(|what| is(&difference)[what] && each.iter().filter(|one| is(one)[what]).count() >= OF_SIX)
    };
    let verdict = Verdict {
        difference,
        in_bytes: is_so(Difference::is_fewer_bytes),
        in_silence: is_so(Difference::is_silent_longer),
    };
    let mut text = String::new();
    if verdict.in_bytes || verdict.in_silence {
        for one in each {
            let _ = writeln!(text, "    {one}");
        }
    }
    (verdict, text)
}

/// Judges networks `FROM` and the `COUNT` from it on of each family, or of `FAMILY` alone, with the assists `ASSIST`; with `TEXT` it prints the
/// scenarios of those that are harmed.
#[test]
#[ignore = "takes minutes: make bench"]
fn survey() {
    let named = |name: &str, otherwise: &str| std::env::var(name).unwrap_or_else(|_| otherwise.to_owned());
    let (from, count) = (number_of("FROM", 0), number_of("COUNT", 16));
    let (only, assist, texts) = (named("FAMILY", ""), named("ASSIST", "default"), named("TEXT", ""));
    assert!(count > 0, "COUNT = 0 judges nothing");
    assert!(only.is_empty() || FAMILIES.iter().any(|(name, _)| *name == only), "there is no family {only}");
    let mut table =
        "family     drawn  bytes  silence  median  least after  whole  longest  stalled\n".to_owned();
    for (family, (name, _)) in FAMILIES.into_iter().enumerate() {
        if !only.is_empty() && only != name {
            continue;
        }
        let mut verdicts = Vec::new();
        for number in from..from + count {
            let network = draw(family, number);
            let (verdict, text) = judge(&network, &assist);
            let kinds = [(verdict.in_bytes, " BYTES"), (verdict.in_silence, " SILENCE")];
            let kinds: String = kinds.iter().filter(|(is, _)| *is).map(|(_, kind)| *kind).collect();
            println!("{name} {number}: {}{kinds}", verdict.difference);
            print!("{text}");
            if !texts.is_empty() && !kinds.is_empty() {
                println!("handovers at {:?} ms\n{}", network.handovers_ms, network.text);
            }
            verdicts.push(verdict);
        }
        let harmed = |is: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| is(verdict)).count();
        let sorted = |what: fn(&Difference) -> f64| {
            let mut all: Vec<f64> = verdicts.iter().map(|verdict| what(&verdict.difference)).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let after = sorted(|difference| difference.after);
        let last = verdicts.len() - 1;
        let _ = writeln!(
            table,
            "{name:<10} {:>5}  {:>5}  {:>7}  {:>6.3}  {:>11.3}  {:>5.3}  {:>+7.1}  {:>+7.1}",
            verdicts.len(),
            harmed(|verdict| verdict.in_bytes),
            harmed(|verdict| verdict.in_silence),
            after[last / 2],
            after[0],
            sorted(|difference| difference.whole)[0],
            sorted(|difference| difference.longest_s)[last],
            sorted(|difference| difference.stalled_s)[last],
        );
    }
    println!("{table}");
}
