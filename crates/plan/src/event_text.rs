//! What agents tell, in the words of traces.

use careof_base::Duration;
use careof_mobility::dhcp::Lease;
use careof_mobility::v4::{ArpEvent, BindingChanged, VisitorChanged};
use careof_mobility::{HandoverEvent, HandoverFailure, HandoverReason, HandoverStyle, InterfaceId};
use std::fmt;

/// A changed binding.
#[must_use]
pub fn binding_text(change: &BindingChanged) -> String {
    format!("{} at {} for {}", change.home_address, change.care_of, change.lifetime)
}

/// A changed visitor.
#[must_use]
pub fn visitor_text(change: &VisitorChanged) -> String {
    format!("visitor {} by way of {} for {}", change.home_address, change.care_of, change.lifetime)
}

/// A decision about ARP: its word, where it applies, and what it is.
#[must_use]
pub fn arp_text(event: &ArpEvent) -> (&'static str, Option<InterfaceId>, String) {
    match event {
        ArpEvent::Proxy { home_address, interface, on } => (
            if *on { "proxy-on" } else { "proxy-off" },
            Some(*interface),
            format!("answer for {home_address}: {on}"),
        ),
        ArpEvent::Answer { home_address, on } => {
            (if *on { "answer-on" } else { "answer-off" }, None, format!("answer for {home_address}: {on}"))
        }
        ArpEvent::Gratuitous { home_address, interface, .. } => {
            ("gratuitous", Some(*interface), format!("{home_address} is here"))
        }
    }
}

/// An address obtained by DHCP: which, from whom, in what time.
#[must_use]
pub fn acquired_text(lease: &Lease, took: Duration) -> String {
    format!("{} from {} for {} after {} ms", lease.address, lease.server, lease.lease_time, took.as_millis())
}

/// A phase of a handover: where, and what there is to say beyond its name.
#[must_use]
pub fn handover_text<A: fmt::Display, C: fmt::Display>(event: &HandoverEvent<A, C>) -> (InterfaceId, String) {
    match event {
        HandoverEvent::Initiated { from: None, to, .. } => (*to, "first attachment".to_owned()),
        HandoverEvent::Initiated { to, style, reason, .. } => {
            let style = match style {
                HandoverStyle::MakeBeforeBreak => "make-before-break",
                HandoverStyle::BreakBeforeMake => "break-before-make",
            };
            // What the script or the link layer wants needs no reason.
            let why = match reason {
                HandoverReason::PathBad(_) | HandoverReason::PathGood | HandoverReason::NotBetter => {
                    format!(" ({reason})")
                }
                _ => String::new(),
            };
            (*to, format!("{style}, as the mobile node sees it{why}"))
        }
        HandoverEvent::LinkDown { interface }
        | HandoverEvent::LinkUp { interface }
        | HandoverEvent::PathAnswers { interface } => (*interface, String::new()),
        HandoverEvent::PathSilent { interface, silence } => {
            (*interface, format!("nothing has come for {} ms", silence.as_millis()))
        }
        HandoverEvent::Registered { to, care_of, attempts, latency, .. } => {
            let care_of = care_of.as_ref().map_or("home".to_owned(), |care_of| care_of.to_string());
            (*to, format!("at {care_of} after {attempts} request(s) and {} ms", latency.as_millis()))
        }
        HandoverEvent::Terminated { to, .. } => (*to, String::new()),
        HandoverEvent::Failed { to, reason, .. } => (*to, failure_text(reason)),
    }
}

fn failure_text<C: fmt::Display>(reason: &HandoverFailure<C>) -> String {
    match reason {
        HandoverFailure::Denied(code) => format!("denied with code {code}"),
        HandoverFailure::NoReply => "no reply".to_owned(),
        HandoverFailure::Superseded => "superseded by another handover".to_owned(),
        HandoverFailure::LinkLost => "the new link went away".to_owned(),
    }
}

/// A phase of a handover of `node` to `link`, as captures have it; `text` may be empty.
#[must_use]
pub fn handover_comment(node: &str, phase: &str, link: Option<&str>, text: impl fmt::Display) -> String {
    let to = link.map_or_else(String::new, |link| format!(" on {link}"));
    let text = text.to_string();
    let more = if text.is_empty() { text } else { format!(": {text}") };
    format!("{node}: handover {phase}{to}{more}")
}
