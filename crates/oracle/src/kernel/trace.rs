//! Reading a trace: header comments `# name=`, `# cmd=`, `# sysctl`, `# link`, then comma-separated rows whose
//! columns are named by a header row. Fields are never quoted.
//!
//! Columns that are not known are ignored, and their order does not matter.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use careof_tcp::KernelEdition;
use careof_wire::{Flags, SackBlocks, SeqNumber};

use super::error::{Error, Problem};

/// The most a trace may unpack to: sixty times the longest known.
const LIMIT: u64 = 1 << 30;

/// The latest time of a row, microseconds: eleven days.
pub(super) const LATEST_US: u64 = 1_000_000_000_000;

/// What a row tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `S`: the sender put this segment on the link.
    Sent,
    /// `R`: this acknowledgement was given to the sender.
    Received,
    /// `A`: an acknowledgement that the link lost.
    AckLost,
    /// `H`: a segment that the link held back is let go.
    Released,
}

/// The sender's own account of itself (`TCP_INFO`), read right after the event of its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderState {
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow start threshold, segments; `None` is none yet.
    pub ssthresh: Option<u32>,
    /// Segments in flight, as the kernel counts: `unacked - sacked - lost + retrans`.
    pub flight: u32,
    /// `ca`: 0 Open, 1 Disorder, 2 CWR, 3 Recovery, 4 Loss.
    pub ca: u8,
    /// Smoothed round-trip time, microseconds.
    pub srtt_us: u64,
    /// Retransmission timeout, microseconds.
    pub rto_us: u64,
    /// BBR's own account (`cc`, as `tcp_bbr_info`), where the file has it.
    pub bbr: Option<BbrState>,
}

/// What BBR tells of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BbrState {
    /// The least round trip, microseconds.
    pub min_rtt_us: u64,
    /// Pacing rate to bandwidth, in 1/256.
    pub pacing_gain: u32,
    /// Window to bandwidth times round trip, in 1/256.
    pub cwnd_gain: u32,
}

/// One row. Sequence numbers are relative: the SYN is 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its line in the file, counted from 1.
    pub line: usize,
    /// Microseconds since `connect()`.
    pub at_us: u64,
    /// What happened.
    pub event: Event,
    /// Control bits.
    pub flags: Flags,
    /// Sequence number.
    pub seq: u32,
    /// Bytes of data.
    pub len: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Advertised window, bytes.
    pub window: u32,
    /// SACK blocks, relative.
    pub sack: SackBlocks,
    /// `tsval` and `tsecr`, ms, each relative to that side's first `tsval`.
    pub timestamps: Option<(u32, u32)>,
    /// Data segment number (sent), ACK ordinal (received or lost).
    pub ordinal: Option<u32>,
    /// The how-manieth transmission of this sequence number.
    pub transmission: Option<u32>,
    /// The sender looks whether the peer's window is still closed: an empty segment just below what is acknowledged.
    pub probe: bool,
    /// The sender's state, where the row has it.
    pub state: Option<SenderState>,
}

impl Row {
    /// Whether the sender put data on the link.
    #[must_use]
    pub fn is_data(&self) -> bool {
        self.event == Event::Sent && self.len > 0
    }

    /// Whether the sender did something by itself that a model does as well: a SYN, data, a probe of a closed window.
    #[must_use]
    pub fn is_deed(&self) -> bool {
        self.event == Event::Sent && (self.len > 0 || self.flags.contains(Flags::SYN) || self.probe)
    }
}

/// A trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The file, as it was named.
    pub file: String,
    /// `# name=`.
    pub name: String,
    /// `# kernel=`: the release that the sender is of, where the file says it.
    pub kernel: Option<KernelEdition>,
    /// `# end ... late_max_us=`: how late the program between the kernels was at most, microseconds.
    pub late_max_us: u64,
    /// `# cmd=`, flags and their values in order.
    pub command: Vec<(String, String)>,
    /// The line of `# cmd=`.
    pub command_line: usize,
    /// `# sysctl`.
    pub sysctls: BTreeMap<String, String>,
    /// The path's MTU, bytes: from `# link`.
    pub mtu: u16,
    /// Bytes of data in a full-sized segment: from `# link`.
    pub mss: u16,
    /// The rows, in order of time.
    pub rows: Vec<Row>,
}

impl Trace {
    /// Reads a trace from a file; one whose name ends in `.gz` is unpacked.
    ///
    /// # Errors
    /// The file cannot be read or is no trace.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let fail = |problem| Error { file: name.clone(), line: None, problem };
        let file = File::open(path).map_err(|error| fail(Problem::Unreadable(error.to_string())))?;
        let packed = path.extension().is_some_and(|extension| extension == "gz");
        let mut bytes = Vec::new();
        let read = if packed {
            flate2::read::MultiGzDecoder::new(file).take(LIMIT + 1).read_to_end(&mut bytes)
        } else {
            file.take(LIMIT + 1).read_to_end(&mut bytes)
        };
        read.map_err(|error| fail(read_problem(&error, packed)))?;
        if bytes.len() as u64 > LIMIT {
            return Err(fail(Problem::TooLarge { limit: LIMIT }));
        }
        let text = String::from_utf8(bytes).map_err(|_| fail(Problem::NotText))?;
        Self::parse(&name, &text)
    }

    /// Reads a trace from text; `file` is what errors call it.
    ///
    /// # Errors
    /// It is no trace.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let fail = |line, problem| Error { file: file.to_owned(), line, problem };
        let mut header = Header::default();
        let mut columns: Option<Columns> = None;
        let mut rows: Vec<Row> = Vec::new();
        let mut acknowledged = 0;
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let here = |problem| fail(Some(number), problem);
            if let Some(comment) = line.strip_prefix('#') {
                header.take(number, comment.trim()).map_err(here)?;
            } else if line.trim().is_empty() {
                continue;
            } else if let Some(columns) = &columns {
                let mut row = columns.row(number, line).map_err(here)?;
                if row.event == Event::Received {
                    acknowledged = acknowledged.max(row.ack);
                }
                row.probe = row.event == Event::Sent
                    && row.len == 0
                    && row.flags == Flags::ACK
                    && row.seq < acknowledged;
                if let Some(before) = rows.last().map(|row| row.at_us)
                    && row.at_us < before
                {
                    return Err(here(Problem::TimeGoesBack { found: row.at_us, before }));
                }
                rows.push(row);
            } else {
                columns = Some(Columns::named_by(line).map_err(here)?);
            }
        }
        if columns.is_none() {
            return Err(fail(None, Problem::NoColumns));
        }
        let missing = |what| fail(None, Problem::MissingHeader(what));
        let (command_line, command) = header.command.ok_or_else(|| missing("cmd="))?;
        Ok(Self {
            file: file.to_owned(),
            name: header.name.ok_or_else(|| missing("name="))?,
            kernel: header.kernel,
            late_max_us: header.late_max_us,
            command,
            command_line,
            sysctls: header.sysctls.ok_or_else(|| missing("sysctl"))?,
            mtu: header.mtu.ok_or_else(|| missing("link ... mtu="))?,
            mss: header.mss.ok_or_else(|| missing("link ... mss="))?,
            rows,
        })
    }

    /// The value of a flag of the command line, the last one where it stands several times.
    #[must_use]
    pub fn flag(&self, name: &str) -> Option<&str> {
        self.command.iter().rev().find(|(flag, _)| flag == name).map(|(_, value)| value.as_str())
    }

    /// Whether rows were left out (the `sawtooth` files keep those where the state changed, and losses): then the
    /// acknowledgements cannot be fed to a model.
    #[must_use]
    pub fn is_thinned(&self) -> bool {
        let mut acks: Vec<u32> = self
            .rows
            .iter()
            .filter(|row| matches!(row.event, Event::Received | Event::AckLost))
            .filter_map(|row| row.ordinal)
            .collect();
        acks.sort_unstable();
        acks.dedup();
        acks.iter().zip(1..).any(|(&ordinal, expected)| ordinal != expected)
    }

    /// Data rows: what the sender put on the link.
    pub fn data(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_data())
    }
}

fn read_problem(error: &io::Error, packed: bool) -> Problem {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData if packed => {
            Problem::Compressed(error.to_string())
        }
        _ => Problem::Unreadable(error.to_string()),
    }
}

/// What the comments say.
#[derive(Default)]
struct Header {
    name: Option<String>,
    kernel: Option<KernelEdition>,
    late_max_us: u64,
    command: Option<(usize, Vec<(String, String)>)>,
    sysctls: Option<BTreeMap<String, String>>,
    mtu: Option<u16>,
    mss: Option<u16>,
}

impl Header {
    fn take(&mut self, line: usize, comment: &str) -> Result<(), Problem> {
        if let Some(name) = comment.strip_prefix("name=") {
            self.name = Some(name.trim().to_owned());
        } else if let Some(kernel) = comment.strip_prefix("kernel=") {
            self.kernel = KernelEdition::of_kernel(kernel);
        } else if let Some(end) = comment.strip_prefix("end ") {
            let late = end.split_whitespace().find_map(|word| word.strip_prefix("late_max_us="));
            self.late_max_us = late.map_or(Ok(0), |value| number("late_max_us", value))?;
        } else if let Some(command) = comment.strip_prefix("cmd=") {
            self.command = Some((line, flags(command)));
        } else if let Some(list) = comment.strip_prefix("sysctl") {
            let pairs = list.split_whitespace().filter_map(|pair| pair.split_once('='));
            self.sysctls = Some(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect());
        } else if let Some(list) = comment.strip_prefix("link") {
            for word in list.split([' ', ';']) {
                if let Some((key @ ("mtu" | "mss"), value)) = word.split_once('=') {
                    let (column, slot) =
                        if key == "mtu" { ("mtu", &mut self.mtu) } else { ("mss", &mut self.mss) };
                    *slot = Some(number(column, value)?);
                }
            }
        }
        Ok(())
    }
}

/// `--flag value` pairs; a flag that another follows has no value.
fn flags(command: &str) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for word in command.split_whitespace() {
        match (word.strip_prefix("--"), pairs.last_mut()) {
            (Some(flag), _) => match flag.split_once('=') {
                Some((flag, value)) => pairs.push((flag.to_owned(), value.to_owned())),
                None => pairs.push((flag.to_owned(), String::new())),
            },
            (None, Some((_, value))) if value.is_empty() => word.clone_into(value),
            (None, Some((_, value))) => {
                value.push(' ');
                value.push_str(word);
            }
            // A word before any flag is a flag nobody knows.
            (None, None) => pairs.push((word.to_owned(), String::new())),
        }
    }
    pairs
}

/// Where each column stands.
struct Columns {
    count: usize,
    at: [usize; NAMES.len()],
    /// `cc`: what the congestion control tells of itself; older files have no such column.
    control: Option<usize>,
}

const NAMES: [&str; 21] = [
    "t_us", "ev", "flags", "seq", "len", "ack", "wnd", "sack", "tsval", "tsecr", "k", "tx", "cwnd",
    "ssthresh", "srtt_us", "rto_us", "ca", "unacked", "sacked", "lost", "retrans",
];

impl Columns {
    fn named_by(line: &str) -> Result<Self, Problem> {
        let names: Vec<&str> = line.split(',').map(str::trim).collect();
        if names.first() != Some(&"t_us") {
            return Err(Problem::NoColumns);
        }
        let mut at = [0; NAMES.len()];
        for (slot, name) in at.iter_mut().zip(NAMES) {
            *slot = names.iter().position(|&n| n == name).ok_or(Problem::MissingColumn(name))?;
        }
        let control = names.iter().position(|&name| name == "cc");
        Ok(Self { count: names.len(), at, control })
    }

    fn row(&self, line: usize, text: &str) -> Result<Row, Problem> {
        let fields: Vec<&str> = text.split(',').collect();
        if fields.len() < self.count {
            return Err(Problem::ShortRow { found: fields.len(), expected: self.count });
        }
        let field = |index: usize| fields[self.at[index]].trim();
        let event = match field(1) {
            "S" => Event::Sent,
            "R" => Event::Received,
            "A" => Event::AckLost,
            "H" => Event::Released,
            found => return Err(bad("ev", found, "S, R, A or H")),
        };
        let timestamps = match (field(8), field(9)) {
            ("", "") => None,
            (value, echo) => Some((number("tsval", value)?, number("tsecr", echo)?)),
        };
        let state = if field(12).is_empty() {
            None
        } else {
            Some(SenderState {
                cwnd: number("cwnd", field(12))?,
                ssthresh: match field(13) {
                    "-1" => None,
                    value => Some(number("ssthresh", value)?),
                },
                srtt_us: number("srtt_us", field(14))?,
                rto_us: number("rto_us", field(15))?,
                ca: number("ca", field(16))?,
                flight: {
                    let unacked: u32 = number("unacked", field(17))?;
                    let (sacked, lost): (u32, u32) =
                        (number("sacked", field(18))?, number("lost", field(19))?);
                    let again: u32 = number("retrans", field(20))?;
                    unacked.saturating_add(again).saturating_sub(sacked.saturating_add(lost))
                },
                bbr: self.control.and_then(|index| bbr_state(fields[index].trim())),
            })
        };
        Ok(Row {
            line,
            at_us: match number("t_us", field(0))? {
                at_us if at_us <= LATEST_US => at_us,
                _ => return Err(bad("t_us", field(0), "at most eleven days")),
            },
            event,
            flags: control_bits(field(2))?,
            seq: number("seq", field(3))?,
            len: number("len", field(4))?,
            ack: number("ack", field(5))?,
            window: number("wnd", field(6))?,
            sack: sack_blocks(field(7))?,
            timestamps,
            ordinal: optional("k", field(10))?,
            transmission: optional("tx", field(11))?,
            probe: false,
            state,
        })
    }
}

/// `bw=..;minrtt=..;pg=..;cg=..`; another congestion control tells other things, which are not used.
fn bbr_state(text: &str) -> Option<BbrState> {
    let value = |name: &str| {
        let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).find_map(|(_, value)| value.parse::<u64>().ok())
    };
    Some(BbrState {
        min_rtt_us: value("minrtt")?,
        pacing_gain: u32::try_from(value("pg")?).ok()?,
        cwnd_gain: u32::try_from(value("cg")?).ok()?,
    })
}

fn bad(column: &'static str, found: &str, expected: &'static str) -> Problem {
    Problem::BadField { column, found: found.to_owned(), expected }
}

fn number<T: TryFrom<u64>>(column: &'static str, text: &str) -> Result<T, Problem> {
    let value = text.parse::<u64>().ok().and_then(|value| T::try_from(value).ok());
    value.ok_or_else(|| bad(column, text, "a whole number that fits"))
}

fn optional(column: &'static str, text: &str) -> Result<Option<u32>, Problem> {
    if text.is_empty() { Ok(None) } else { number(column, text).map(Some) }
}

fn control_bits(text: &str) -> Result<Flags, Problem> {
    text.chars().try_fold(Flags::default(), |flags, letter| {
        let bit = match letter {
            'S' => Flags::SYN,
            'F' => Flags::FIN,
            'R' => Flags::RST,
            'P' => Flags::PSH,
            'U' => Flags::URG,
            'E' => Flags::ECE,
            'W' => Flags::CWR,
            '.' => Flags::ACK,
            _ => return Err(bad("flags", text, "letters of S F R P U E W and a dot for ACK")),
        };
        Ok(flags.with(bit))
    })
}

fn sack_blocks(text: &str) -> Result<SackBlocks, Problem> {
    let mut blocks = SackBlocks::EMPTY;
    for block in text.split(';').filter(|block| !block.is_empty()) {
        let wrong = || bad("sack", text, "up to four blocks a-b;c-d");
        let (left, right) = block.split_once('-').ok_or_else(wrong)?;
        if !blocks.push(SeqNumber(number("sack", left)?), SeqNumber(number("sack", right)?)) {
            return Err(wrong());
        }
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::kernel::tests::{HEADER, small};

    fn problem(text: &str) -> Error {
        Trace::parse("x.csv", text).unwrap_err()
    }

    #[test]
    fn header_and_rows_are_read() {
        let trace = Trace::parse("x.csv", &small()).unwrap();
        assert_eq!((trace.name.as_str(), trace.mss, trace.mtu), ("small.reno.default.sack1.ts1", 1448, 1500));
        assert_eq!((trace.flag("cc"), trace.flag("nonsense")), (Some("reno"), None));
        assert_eq!(trace.sysctls["tcp_recovery"], "1");
        assert_eq!(trace.rows.len(), 11);
        let ack = &trace.rows[7];
        assert_eq!((ack.event, ack.at_us, ack.ack, ack.window), (Event::Received, 101_452, 1_449, 8_387_328));
        assert_eq!((ack.timestamps, ack.ordinal), (Some((51, 50)), Some(1)));
        assert_eq!(
            ack.state.as_ref().map(|state| (state.cwnd, state.ssthresh, state.ca)),
            Some((10, None, 0))
        );
        assert_eq!(trace.data().count(), 4);
        assert!(!trace.is_thinned());
    }

    #[test]
    fn columns_are_found_by_name() {
        let text = small().lines().map(turned_round).collect::<Vec<_>>().join("\n");
        let turned = Trace::parse("x.csv", &text).unwrap();
        assert_eq!(turned.rows, Trace::parse("x.csv", &small()).unwrap().rows);
    }

    /// Every column but the first, last first.
    fn turned_round(line: &str) -> String {
        if line.starts_with('#') {
            return line.to_owned();
        }
        let mut fields: Vec<&str> = line.split(',').collect();
        fields[1..].reverse();
        fields.join(",")
    }

    #[test]
    fn blocks_and_flags_are_read() {
        let blocks = sack_blocks("57921-59369;1-2").unwrap();
        assert_eq!(blocks.as_slice(), [(SeqNumber(57_921), SeqNumber(59_369)), (SeqNumber(1), SeqNumber(2))]);
        assert_eq!(control_bits("S.").unwrap(), Flags::SYN.with(Flags::ACK));
        assert!(sack_blocks("1-2;3-4;5-6;7-8;9-10").is_err());
        assert!(sack_blocks("1").is_err());
        assert!(control_bits("Q").is_err());
    }

    #[test]
    fn a_thinned_trace_is_known_by_missing_acknowledgements() {
        let text: String =
            small().lines().filter(|line| !line.starts_with("102639,R")).map(|l| format!("{l}\n")).collect();
        assert!(Trace::parse("x.csv", &text).unwrap().is_thinned());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let good = small();
        let line = |needle: &str| good.lines().position(|line| line.contains(needle)).unwrap() + 1;
        for (from, to, at, expected) in [
            ("50154,S,.,1,1448", "50154,S,.,x,1448", "50154,S,.,1,1448", "seq is \"x\""),
            ("102639,R", "102639,Q", "102639,R", "ev is \"Q\""),
            ("102639,R", "2639,R", "102639,R", "before the row above"),
            ("102639,R,.,1,", "102639,R,.,", "102639,R", "fields where"),
        ] {
            let error = problem(&good.replacen(from, to, 1));
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(error.line, Some(line(at)), "{error}");
        }
        assert_eq!(problem("").problem, Problem::NoColumns);
        assert_eq!(problem("1,S,S,0\n").problem, Problem::NoColumns);
        assert_eq!(problem(&good.replace(",ack,", ",")).problem, Problem::MissingColumn("ack"));
        assert_eq!(problem(&good.replace("# cmd=", "# ")).problem, Problem::MissingHeader("cmd="));
        assert!(good.starts_with(HEADER));
    }

    #[test]
    fn packed_files_are_unpacked_and_cut_ones_named() {
        let directory = tempfile::tempdir().unwrap();
        let whole = directory.path().join("a.csv.gz");
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(small().as_bytes()).unwrap();
        let bytes = packer.finish().unwrap();
        std::fs::write(&whole, &bytes).unwrap();
        assert_eq!(Trace::read(&whole).unwrap().rows.len(), 11);
        for (name, bytes) in
            [("cut.csv.gz", &bytes[..bytes.len() / 2]), ("text.csv.gz", b"t_us,ev"), ("empty.csv.gz", b"")]
        {
            let path = directory.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let error = Trace::read(&path).unwrap_err();
            assert!(matches!(error.problem, Problem::Compressed(_) | Problem::NoColumns), "{error}");
            assert!(error.to_string().contains(name) && error.hint().is_some(), "{error}");
        }
        let nowhere = Trace::read(&directory.path().join("none.csv")).unwrap_err();
        assert!(matches!(nowhere.problem, Problem::Unreadable(_)));
    }
}
