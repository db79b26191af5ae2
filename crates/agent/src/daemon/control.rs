//! What the control socket speaks: one line of JSON asks, one answers.
//!
//! `{"command": "status"}`, `{"command": "status", "from": "10.0.0.7"}`, `{"command": "switch", "interface": "wlan0"}`, `{"command": "drop", "address": "10.0.0.7"}`;
//! `{"ok": ...}` or `{"error": "...", "hint": "..."}`.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::server::{Parsed, Protocol};

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Request {
    /// What the agent is doing, with the bindings or visitors of so many mobile nodes as are told at a time.
    Status {
        /// The first of their home addresses; `None`: those with the smallest.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<IpAddr>,
    },
    /// Mobile node: go to this interface.
    Switch {
        /// Its name.
        interface: String,
    },
    /// Home and foreign agent: end the bindings of a mobile node, or forget it as a visitor.
    Drop {
        /// Its home address.
        address: IpAddr,
    },
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    /// What was asked for.
    Done {
        /// The answer proper.
        ok: Value,
    },
    /// It could not be done.
    Failed {
        /// Why.
        error: String,
        /// What would help.
        hint: Option<String>,
    },
}

impl Answer {
    pub(crate) fn failed(error: impl Into<String>, hint: Option<&str>) -> Self {
        Self::Failed { error: error.into(), hint: hint.map(str::to_owned) }
    }

    /// The line of [`Answer::Done`] with something large, which is written as it is read.
    pub(crate) fn done_line(ok: &impl Serialize) -> Vec<u8> {
        #[derive(Serialize)]
        struct Done<'a, T> {
            ok: &'a T,
        }
        // Plain values have no way to fail.
        let mut line = serde_json::to_vec(&Done { ok }).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// As a line.
    pub(crate) fn line(&self) -> Vec<u8> {
        // Plain values have no way to fail.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

/// The protocol of the control socket.
#[derive(Debug)]
pub(crate) struct Control;

impl Protocol for Control {
    type Request = Request;

    const LONGEST_REQUEST: usize = 4096;

    fn parse(input: &[u8]) -> Parsed<Request> {
        let Some(end) = input.iter().position(|&byte| byte == b'\n') else { return Parsed::Partial };
        match serde_json::from_slice(input.get(..end).unwrap_or_default()) {
            Ok(request) => Parsed::Request(request),
            Err(error) => {
                let hint = "ask with a line such as {\"command\":\"status\"}";
                Parsed::Nonsense(Answer::failed(format!("this is no request: {error}"), Some(hint)).line())
            }
        }
    }

    fn too_long() -> Vec<u8> {
        Answer::failed("this is no request: it has no end", None).line()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_are_lines() {
        assert_eq!(Control::parse(b"{\"command\":\"sta"), Parsed::Partial);
        assert_eq!(
            Control::parse(b"{\"command\":\"status\"}\n"),
            Parsed::Request(Request::Status { from: None })
        );
        assert_eq!(
            Control::parse(b"{\"command\":\"status\",\"from\":\"10.0.0.7\"}\n"),
            Parsed::Request(Request::Status { from: Some(IpAddr::from([10, 0, 0, 7])) })
        );
        assert_eq!(
            Control::parse(b"{\"command\":\"switch\",\"interface\":\"wlan0\"}\nmore"),
            Parsed::Request(Request::Switch { interface: "wlan0".to_owned() })
        );
        assert_eq!(
            Control::parse(b"{\"command\":\"drop\",\"address\":\"2001:db8:1::7\"}\n"),
            Parsed::Request(Request::Drop { address: "2001:db8:1::7".parse().unwrap() })
        );
        for nonsense in
            ["\n", "{}\n", "{\"command\":\"stop\"}\n", "[1]\n", "{\"command\":\"status\",\"x\":1}\n"]
        {
            let Parsed::Nonsense(answer) = Control::parse(nonsense.as_bytes()) else { panic!("{nonsense}") };
            let answer: Answer = serde_json::from_slice(&answer).unwrap();
            assert!(matches!(answer, Answer::Failed { .. }));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Control::parse(&bytes);
        }
    }
}
