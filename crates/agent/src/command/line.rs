//! What can be asked for on the command line, defined once: reading it, its help, completions of shells and manual pages follow from it.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, ValueHint, value_parser};
use clap_complete::Shell;

use super::Failure;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Run(PathBuf),
    Check(PathBuf),
    Status {
        json: bool,
        socket: Option<PathBuf>,
    },
    Paths {
        socket: Option<PathBuf>,
    },
    Switch {
        interface: String,
        socket: Option<PathBuf>,
    },
    Drop {
        address: IpAddr,
        socket: Option<PathBuf>,
    },
    Try,
    Completions(Shell),
    Manual(PathBuf),
    /// A text that was asked for, such as the help.
    Tell(String),
}

/// The command line.
pub(super) fn definition() -> clap::Command {
    let file = || Arg::new("FILE").value_parser(value_parser!(PathBuf)).value_hint(ValueHint::FilePath);
    let directory = Arg::new("DIR").value_parser(value_parser!(PathBuf)).value_hint(ValueHint::DirPath);
    let shell = PossibleValuesParser::new(["bash", "fish", "zsh"]).try_map(|name| name.parse::<Shell>());
    command("careof-agent", "A mobility agent of Mobile IPv4 or Mobile IPv6: home agent, foreign agent, mobile node or correspondent node")
        .version(env!("CARGO_PKG_VERSION"))
        .override_usage("careof-agent FILE\n       careof-agent COMMAND")
        .subcommand_value_name("COMMAND")
        .disable_help_subcommand(true)
        .after_help("An agent reads FILE again on SIGHUP. Exit status: 0 done, 1 failed, 2 asked for wrongly.")
        .arg(file().help("Run the agent that FILE describes, until SIGTERM or SIGINT"))
        .subcommands([
            command("check", "Say what is wrong with a configuration, and start nothing")
                .arg(file().required(true).help("The configuration of an agent, a TOML file")),
            asking("status", "Say what a running agent is doing")
                .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Write JSON")),
            asking("paths", "Show the paths of an agent with [multipath], anew each second on a terminal"),
            asking("switch", "Let a mobile node move to another interface")
                .arg(Arg::new("INTERFACE").required(true).help("Where it moves to").value_hint(ValueHint::Other)),
            asking("drop", "Let a home agent end the bindings of a mobile node, or a foreign agent forget it as a visitor").arg(
                Arg::new("ADDRESS")
                    .required(true)
                    .value_parser(value_parser!(IpAddr))
                    .help("The mobile node's home address")
                    .value_hint(ValueHint::Other),
            ),
            command("try", "Try a home agent and a mobile node on hosts inside this machine: a download across a handover"),
            command("completions", "Write what lets a shell complete commands and options")
                .arg(Arg::new("SHELL").required(true).value_parser(shell).help("Which shell")),
            command("man", "Write the manual pages")
                .arg(directory.required(true).help("Where to; made if it is not there")),
        ])
}

fn command(name: &'static str, about: &'static str) -> clap::Command {
    clap::Command::new(name).about(about)
}

/// A command that asks a running agent.
fn asking(name: &'static str, about: &'static str) -> clap::Command {
    command(name, about).arg(
        Arg::new("socket")
            .long("socket")
            .value_name("PATH")
            .value_parser(value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath)
            .help("The control socket of the agent that is asked [default: the one in /run/careof]"),
    )
}

/// The names of all commands.
pub(super) fn names() -> Vec<String> {
    definition().get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

/// What `arguments` ask for, without the name of the program.
pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, Failure> {
    let words = std::iter::once("careof-agent".into()).chain(arguments);
    let matches = match definition().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(told) if matches!(told.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            return Ok(Command::Tell(told.to_string()));
        }
        Err(error) => return Err(refused(&error)),
    };
    let nothing = || Failure::usage("nothing was asked for: give a configuration file or a command");
    let Some((name, given)) = matches.subcommand() else {
        return path(&matches, "FILE").map(Command::Run).ok_or_else(nothing);
    };
    if matches.contains_id("FILE") {
        return Err(Failure::usage(&format!("unexpected argument '{name}': a file or a command, not both")));
    }
    let command = match name {
        "check" => path(given, "FILE").map(Command::Check),
        "status" => Some(Command::Status { json: given.get_flag("json"), socket: path(given, "socket") }),
        "paths" => Some(Command::Paths { socket: path(given, "socket") }),
        "switch" => given
            .get_one::<String>("INTERFACE")
            .map(|interface| Command::Switch { interface: interface.clone(), socket: path(given, "socket") }),
        "drop" => given
            .get_one::<IpAddr>("ADDRESS")
            .map(|address| Command::Drop { address: *address, socket: path(given, "socket") }),
        "try" => Some(Command::Try),
        "completions" => given.get_one::<Shell>("SHELL").copied().map(Command::Completions),
        "man" => path(given, "DIR").map(Command::Manual),
        _ => None,
    };
    command.ok_or_else(nothing)
}

fn path(given: &ArgMatches, name: &str) -> Option<PathBuf> {
    given.get_one::<PathBuf>(name).cloned()
}

/// A refusal in the form of all others: what is wrong, and a hint.
fn refused(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let mut paragraphs = text.split("\n\n");
    let lines = paragraphs.next().unwrap_or_default().lines().map(str::trim);
    let what = lines.collect::<Vec<_>>().join(" ");
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    match paragraphs.find_map(|paragraph| paragraph.trim().strip_prefix("tip: ")) {
        Some(tip) => Failure::new(2, what, Some(tip)),
        None => Failure::usage(what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        let words = line.split_whitespace().map(OsString::from);
        parse(words).map_err(|failure| failure.text)
    }

    #[test]
    fn the_definition_contradicts_itself_nowhere() {
        definition().debug_assert();
    }

    #[test]
    fn the_command_line_is_read() {
        assert_eq!(parsed("home.toml"), Ok(Command::Run("home.toml".into())));
        assert_eq!(parsed("check home.toml"), Ok(Command::Check("home.toml".into())));
        assert_eq!(parsed("status"), Ok(Command::Status { json: false, socket: None }));
        let all = Command::Status { json: true, socket: Some("/x".into()) };
        assert_eq!(parsed("status --json --socket=/x"), Ok(all.clone()));
        assert_eq!(parsed("status --socket /x --json"), Ok(all));
        assert_eq!(parsed("paths"), Ok(Command::Paths { socket: None }));
        let switch = Command::Switch { interface: "wlan0".to_owned(), socket: None };
        assert_eq!(parsed("switch wlan0"), Ok(switch));
        let drop = Command::Drop { address: IpAddr::from([10, 0, 0, 7]), socket: None };
        assert_eq!(parsed("drop 10.0.0.7"), Ok(drop));
        assert_eq!(parsed("completions zsh"), Ok(Command::Completions(Shell::Zsh)));
        assert_eq!(parsed("try"), Ok(Command::Try));
        assert_eq!(parsed("man out"), Ok(Command::Manual("out".into())));
        let version = format!("careof-agent {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(parsed("-V"), Ok(Command::Tell(version)));
    }

    #[test]
    fn help_names_every_command() {
        let Ok(Command::Tell(help)) = parsed("--help") else { panic!("no help") };
        for name in names() {
            assert!(help.lines().any(|line| line.trim_start().starts_with(&name)), "{name}: {help}");
        }
        assert!(matches!(parsed("status --help"), Ok(Command::Tell(help)) if help.contains("--socket")));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (line, complaint) in [
            ("", "nothing was asked for"),
            ("check", "arguments were not provided: <FILE>"),
            ("switch", "<INTERFACE>"),
            ("drop", "<ADDRESS>"),
            ("drop wlan0", "invalid value 'wlan0' for '<ADDRESS>'"),
            ("a.toml b.toml", "unexpected argument 'b.toml'"),
            ("a.toml status", "unexpected argument 'status'"),
            ("--fast", "'--fast'"),
            ("status --socket", "a value is required for '--socket <PATH>'"),
            ("--socket /x a.toml", "unexpected argument '--socket'"),
            ("switch wlan0 --json", "unexpected argument '--json'"),
            ("completions tcsh", "invalid value 'tcsh'"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.starts_with("error: ") && error.contains(complaint), "{line}: {error}");
            assert_eq!(error.matches("\n  hint: ").count(), 1, "{line}: {error}");
        }
        assert!(parsed("status --jsom").unwrap_err().contains("hint: a similar argument exists: '--json'"));
    }
}
