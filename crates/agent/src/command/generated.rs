//! What is made of the definition of the command line for shells and for `man`.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use clap_complete::Shell;

use super::Failure;
use super::line::definition;

/// A script by which `shell` completes commands and options.
pub(super) fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut definition(), "careof-agent", &mut script);
    script
}

/// Writes a manual page of the whole and one of each command to `directory`.
pub(super) fn manual(directory: &Path) -> Result<(), Failure> {
    let written =
        fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(definition(), directory));
    written.map_err(|error: io::Error| {
        let hint = (error.kind() == ErrorKind::PermissionDenied).then_some("name a directory of your own");
        Failure::new(1, &format!("cannot write manual pages to {}: {error}", directory.display()), hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::line::names;

    #[test]
    fn every_shell_completes_every_command_and_the_socket() {
        for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
            let script = String::from_utf8(completions(shell)).unwrap();
            for name in names() {
                assert!(script.contains(&name), "{shell} does not know {name}");
            }
            assert!(script.contains("socket") && script.contains("json"), "{shell}");
        }
    }

    #[test]
    fn every_command_has_a_manual_page() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("man1");
        manual(&inner).unwrap();
        for name in names() {
            let page = fs::read_to_string(inner.join(format!("careof-agent-{name}.1"))).unwrap();
            assert!(page.contains(".SH NAME"), "{name}");
        }
        assert!(fs::read_to_string(inner.join("careof-agent.1")).unwrap().contains("SIGHUP"));
    }
}
