//! The command `careof-agent`: data on stdout, talk on stderr; exit status 0 done, 1 failed, 2 asked for wrongly.

mod paths;
mod status;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use careof_document::words::nearest;
use lexopt::Arg;

use crate::config::Configuration;
use crate::daemon;
use crate::{AnySetup, Ipv6Setup, Setup};

const HELP: &str = "\
A mobility agent of Mobile IPv4 or Mobile IPv6: home agent, foreign agent, mobile node or correspondent node.

usage: careof-agent FILE                    run the agent that FILE describes, until SIGTERM or SIGINT
       careof-agent check FILE              say what is wrong with FILE, and start nothing
       careof-agent status [--json]         what a running agent is doing
       careof-agent paths                   the paths of an agent with [multipath], anew each second on a terminal
       careof-agent switch INTERFACE        let a mobile node move to INTERFACE
       careof-agent drop ADDRESS            let a home agent end the bindings of a mobile node, or a foreign agent
                                            forget it as a visitor; ADDRESS is its home address

options:
  --socket PATH    the control socket of the agent that is asked; without it the one in /run/careof
  --json           write JSON
  -h, --help       write this
  -V, --version    write the version

An agent reads FILE again on SIGHUP. Exit status: 0 done, 1 failed, 2 asked for wrongly.
";

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Command {
    Run(PathBuf),
    Check(PathBuf),
    Status { json: bool, socket: Option<PathBuf> },
    Paths { socket: Option<PathBuf> },
    Switch { interface: String, socket: Option<PathBuf> },
    Drop { address: IpAddr, socket: Option<PathBuf> },
    Help,
    Version,
}

const COMMANDS: [&str; 5] = ["check", "drop", "paths", "status", "switch"];

/// Why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Failure {
    /// The whole text, its hints included, without the end of the line.
    text: String,
    status: u8,
}

impl Failure {
    fn new(status: u8, error: &str, hint: Option<&str>) -> Self {
        let hint = hint.map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
        Self { text: format!("error: {error}{hint}"), status }
    }

    fn usage(error: &str) -> Self {
        Self::new(2, error, Some("careof-agent --help lists what there is"))
    }
}

impl From<lexopt::Error> for Failure {
    fn from(error: lexopt::Error) -> Self {
        Self::usage(&error.to_string())
    }
}

/// Carries out what the command line asks for.
#[must_use]
pub fn main() -> ExitCode {
    match parse(std::env::args_os().skip(1)).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Where this cannot be written, the status is what is left.
            let _ = writeln!(io::stderr(), "{}", failure.text);
            ExitCode::from(failure.status)
        }
    }
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, Failure> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut words, mut json, mut socket) = (Vec::<OsString>::new(), false, None::<PathBuf>);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Help),
            Arg::Short('V') | Arg::Long("version") => return Ok(Command::Version),
            Arg::Long("json") => json = true,
            Arg::Long("socket") => socket = Some(parser.value()?.into()),
            Arg::Value(word) => words.push(word),
            Arg::Short(_) | Arg::Long(_) => return Err(argument.unexpected().into()),
        }
    }
    let mut words = words.into_iter();
    let Some(first) = words.next() else {
        return Err(Failure::usage("nothing was asked for: give a configuration file or a command"));
    };
    let command = match first.to_str() {
        Some("check") => Command::Check(operand(&mut words, "check", "a configuration file")?.into()),
        Some("status") => Command::Status { json, socket: socket.clone() },
        Some("paths") => Command::Paths { socket: socket.clone() },
        Some("switch") => {
            let interface = operand(&mut words, "switch", "an interface")?;
            let interface = interface.to_string_lossy().into_owned();
            Command::Switch { interface, socket: socket.clone() }
        }
        Some("drop") => {
            let word = operand(&mut words, "drop", "a home address")?;
            let word = word.to_string_lossy();
            let address = word
                .parse()
                .map_err(|_| Failure::usage(&format!("{word:?} is no address: drop needs a home address")))?;
            Command::Drop { address, socket: socket.clone() }
        }
        _ => Command::Run(first.into()),
    };
    if let Some(extra) = words.next() {
        return Err(Failure::usage(&format!("unexpected argument {:?}", extra.to_string_lossy())));
    }
    let asks = matches!(
        command,
        Command::Status { .. } | Command::Paths { .. } | Command::Switch { .. } | Command::Drop { .. }
    );
    if socket.is_some() && !asks {
        return Err(Failure::usage(
            "--socket is for commands that ask a running agent: status, paths, switch, drop",
        ));
    }
    if json && !matches!(command, Command::Status { .. }) {
        return Err(Failure::usage("--json is for status"));
    }
    Ok(command)
}

fn operand(
    words: &mut impl Iterator<Item = OsString>,
    command: &str,
    what: &str,
) -> Result<OsString, Failure> {
    words.next().ok_or_else(|| Failure::usage(&format!("{command} needs {what}")))
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Help => write(HELP),
        Command::Version => write(&format!("careof-agent {}\n", env!("CARGO_PKG_VERSION"))),
        Command::Check(file) => {
            let configuration = Configuration::load(&file)
                .map_err(|errors| Failure { text: errors.to_string(), status: 2 })?;
            write(&format!("{}: {}\n", file.display(), summary(&configuration)))?;
            // Where this cannot be written, nothing is left to do about it.
            let _ = write!(io::stderr(), "{}", missing(&configuration));
            Ok(())
        }
        Command::Status { json, socket } => write(&status::status(json, socket.as_deref())?),
        Command::Paths { socket } => paths::watch(socket.as_deref()),
        Command::Switch { interface, socket } => status::switch(&interface, socket.as_deref()),
        Command::Drop { address, socket } => status::drop_mobile_node(address, socket.as_deref()),
        Command::Run(file) => {
            misspelt(&file)?;
            daemon::run(&file).map_err(|error| {
                let status = if error.is_lasting() { 2 } else { 1 };
                match error {
                    daemon::DaemonError::Configuration(errors) => {
                        Failure { text: errors.to_string(), status }
                    }
                    error => Failure::new(status, &error.to_string(), error.remedy().as_deref()),
                }
            })
        }
    }
}

/// A file that does not exist and is called almost like a command was meant to be one.
fn misspelt(file: &Path) -> Result<(), Failure> {
    let meant = file.to_str().filter(|_| !file.exists()).and_then(|word| {
        let bare = !word.contains(['/', '.']);
        nearest(word, COMMANDS).filter(|_| bare)
    });
    match meant {
        None => Ok(()),
        Some(meant) => {
            let error = format!("there is no file {:?}", file.display().to_string());
            Err(Failure::new(2, &error, Some(&format!("did you mean `careof-agent {meant}`?"))))
        }
    }
}

/// Which interfaces the host lacks: no fault of the file, as the agent waits for them.
fn missing(configuration: &Configuration) -> String {
    match configuration.setup.missing_interfaces() {
        Ok(names) if names.is_empty() => String::new(),
        Ok(names) => format!(
            "note: this host has no interface {}\n  hint: `ip link` lists what it has; the agent waits until it is there\n",
            names.join(", ")
        ),
        Err(error) => format!("note: whether the host has the interfaces is not known: {error}\n"),
    }
}

/// What a configuration is for, in a few words.
fn summary(configuration: &Configuration) -> String {
    let count = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    match &configuration.setup {
        AnySetup::V4(setup) => match &**setup {
            Setup::Home(setup) => {
                format!("a home agent for {}", count(setup.config.mobile_nodes.len(), "mobile node"))
            }
            Setup::Foreign(setup) => {
                format!("a foreign agent on {}", count(setup.config.links.len(), "link"))
            }
            Setup::Mobile(setup) => {
                let interfaces = count(setup.config.interfaces.len(), "interface");
                format!("the mobile node {} with {interfaces}", setup.config.home_address)
            }
        },
        AnySetup::V6(setup) => match &**setup {
            Ipv6Setup::Home(setup) => {
                let nodes = count(setup.config.mobile_nodes.len(), "mobile node");
                format!("a home agent of Mobile IPv6 for {nodes}")
            }
            Ipv6Setup::AnchorPoint(setup) => {
                let nodes = count(setup.config.mobile_nodes.len(), "mobile node");
                format!("a mobility anchor point for {nodes}")
            }
            Ipv6Setup::Mobile(setup) => {
                let interfaces = count(setup.config.interfaces.len(), "interface");
                format!("the mobile node {} with {interfaces}", setup.config.home_address)
            }
            Ipv6Setup::HierarchicalMobile(setup) => {
                let config = &setup.mobile.config;
                let interfaces = count(config.interfaces.len(), "interface");
                let maps = count(setup.maps.len(), "mobility anchor point");
                format!("the mobile node {} with {interfaces} and {maps}", config.home_address)
            }
            Ipv6Setup::AccessRouter(setup) => {
                format!("an access router with {}", count(setup.config.links.len(), "link"))
            }
            Ipv6Setup::Correspondent(setup) => format!("the correspondent node {}", setup.config.address),
        },
    }
}

/// Writes data.
fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads has had enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::new(1, &format!("cannot write the output: {error}"), None)),
        Ok(()) => Ok(()),
    }
}

/// As people write it.
fn shown(path: &OsStr) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        let words = line.split_whitespace().map(OsString::from);
        parse(words).map_err(|failure| failure.text)
    }

    #[test]
    fn the_command_line_is_read() {
        assert_eq!(parsed("home.toml"), Ok(Command::Run("home.toml".into())));
        assert_eq!(parsed("check home.toml"), Ok(Command::Check("home.toml".into())));
        assert_eq!(parsed("status"), Ok(Command::Status { json: false, socket: None }));
        let all = Command::Status { json: true, socket: Some("/x".into()) };
        assert_eq!(parsed("--json status --socket=/x"), Ok(all.clone()));
        assert_eq!(parsed("status --socket /x --json"), Ok(all));
        assert_eq!(parsed("paths"), Ok(Command::Paths { socket: None }));
        let switch = Command::Switch { interface: "wlan0".to_owned(), socket: None };
        assert_eq!(parsed("switch wlan0"), Ok(switch));
        let drop = Command::Drop { address: IpAddr::from([10, 0, 0, 7]), socket: None };
        assert_eq!(parsed("drop 10.0.0.7"), Ok(drop));
        assert_eq!(parsed("status --help"), Ok(Command::Help));
        assert_eq!(parsed("-V"), Ok(Command::Version));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (line, complaint) in [
            ("", "nothing was asked for"),
            ("check", "check needs a configuration file"),
            ("switch", "switch needs an interface"),
            ("drop", "drop needs a home address"),
            ("drop wlan0", "\"wlan0\" is no address"),
            ("a.toml b.toml", "unexpected argument \"b.toml\""),
            ("--fast", "'--fast'"),
            ("--socket", "missing argument"),
            ("--socket /x a.toml", "--socket is for commands that ask"),
            ("switch wlan0 --json", "--json is for status"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(
                error.contains(complaint) && error.contains("hint: careof-agent --help"),
                "{line}: {error}"
            );
        }
    }

    #[test]
    fn a_misspelt_command_is_recognised() {
        assert!(misspelt(Path::new("stauts")).unwrap_err().text.contains("careof-agent status"));
        assert!(misspelt(Path::new("nowhere.toml")).is_ok());
        assert!(misspelt(Path::new("/run/status")).is_ok());
    }
}
