//! The command `careof-agent`: data on stdout, talk on stderr; exit status 0 done, 1 failed, 2 asked for wrongly.

mod generated;
mod line;
mod paths;
mod status;
mod trial;

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use careof_document::words::nearest;

use crate::config::Configuration;
use crate::daemon;
use crate::{AnySetup, Ipv6Setup, Setup};
use line::Command;

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

/// Carries out what the command line asks for.
#[must_use]
pub fn main() -> ExitCode {
    match line::parse(std::env::args_os().skip(1)).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Where this cannot be written, the status is what is left.
            let _ = writeln!(io::stderr(), "{}", failure.text);
            ExitCode::from(failure.status)
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Tell(text) => write(&text),
        Command::Try => trial::run(),
        Command::Completions(shell) => write_bytes(&generated::completions(shell)),
        Command::Manual(directory) => generated::manual(&directory),
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
    let names = line::names();
    let meant = file.to_str().filter(|_| !file.exists()).and_then(|word| {
        let bare = !word.contains(['/', '.']);
        nearest(word, names.iter().map(String::as_str)).filter(|_| bare)
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
                let interfaces = count(setup.devices.len(), "interface");
                format!("the mobile node {} with {interfaces}", setup.config.home_address)
            }
        },
        AnySetup::Relay(setup) => {
            let clients = count(setup.config.clients, "mobile node");
            format!("a relay that lends {} to {clients} at a time", setup.link)
        }
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
    write_bytes(text.as_bytes())
}

fn write_bytes(data: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout();
    match out.write_all(data).and_then(|()| out.flush()) {
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

    #[test]
    fn a_misspelt_command_is_recognised() {
        assert!(misspelt(Path::new("stauts")).unwrap_err().text.contains("careof-agent status"));
        assert!(misspelt(Path::new("nowhere.toml")).is_ok());
        assert!(misspelt(Path::new("/run/status")).is_ok());
    }
}
