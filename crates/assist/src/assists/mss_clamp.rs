//! Segments that fit the tunnel from the start: the maximum segment size in SYNs is lowered (MSS clamping).
//!
//! - **Where.** At both ends of a tunnel. What a receiver says in its SYN is about the segments that are sent to it: the SYN of a
//!   mobile node passes itself and its foreign agent, the home agent only with a reverse tunnel.
//! - **What it needs.** A SYN that passes, and the MTU of the tunnel's path: [`crate::MssClamp::mtu`], or less where a
//!   black hole was met.
//! - **What it does.** The option is lowered to what fits the path beside the tunnel's header, and 40 bytes of IP and TCP, 60 over
//!   IPv6 (RFC 9293 section 3.7.1); it is never raised, and none is added: who says nothing gets 536 bytes, 1220 over IPv6.
//! - **Late, missing or wrong.** Connections that were open before keep their segments. An MTU that is too large leaves things
//!   as they were, one that is too small costs headers.
//! - **Risks.** A SYN whose options are authenticated (TCP-AO, TCP MD5) is left alone.

use core::ops::ControlFlow;

use careof_wire::{Flags, IpHeader};

use crate::assist::Assist;
use crate::context::{Context, Passing};
use crate::flow::Flow;
use crate::{Kind, Verdict};

/// TCP header without options.
const TCP_HEADER: u16 = 20;
/// What every tunnel of IPv4 carries: the datagram that every node passes on whole (RFC 791 section 3.2), less its headers.
const LEAST_MSS: u16 = 28;
/// What every tunnel of IPv6 carries in one piece: the least MTU of a link (RFC 8200 section 5), less the outer header (RFC 2473) and those
/// of IPv6 and TCP.
const LEAST_MSS_OVER_IPV6: u16 = 1_280 - 40 - 40 - 20;

/// Lowers the maximum segment size in SYNs.
#[derive(Debug, Default)]
pub(crate) struct MssClampAssist;

impl Assist for MssClampAssist {
    type State = ();

    fn on_packet(
        &mut self,
        cx: &mut Context<'_>,
        flow: &mut Flow,
        _state: &mut (),
        passing: &Passing<'_>,
        verdict: &mut Verdict,
    ) -> ControlFlow<()> {
        let Some(config) = cx.config.mss_clamp else { return ControlFlow::Continue(()) };
        let segment = passing.segment;
        if !segment.flags.contains(Flags::SYN) || flow.is_opaque {
            return ControlFlow::Continue(());
        }
        let Some(mss) = segment.mss else { return ControlFlow::Continue(()) };
        let path = passing.path.or_else(|| cx.paths.present(flow.key.mobile));
        let assumed =
            path.and_then(|path| cx.tunnels.assumed(cx.now, cx.config.place, flow.key.mobile, path));
        let mtu = assumed.map_or(config.mtu, |assumed| assumed.min(config.mtu));
        let least = match passing.header {
            IpHeader::V4(_) => LEAST_MSS,
            IpHeader::V6(_) => LEAST_MSS_OVER_IPV6,
        };
        let headers = passing.header.header_len() + TCP_HEADER;
        let fits = mtu.saturating_sub(passing.overhead).saturating_sub(headers).max(least);
        if mss > fits {
            verdict.edit.get_or_insert_default().mss = Some(fits);
            // What the sender will go by.
            flow.stream_mut(passing.towards.back()).mss = Some(fits);
            cx.outbox.did(flow.key, Kind::MssClamp, "lower-mss", 1, u64::from(passing.header.total_len()));
        }
        ControlFlow::Continue(())
    }
}
