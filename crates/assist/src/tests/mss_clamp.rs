//! The segment size in SYNs.

use super::script::{Over, Script};
use crate::{BlackHole, Config, MssClamp, Place};

fn clamping(mtu: u16) -> Config {
    Config { mss_clamp: Some(MssClamp { mtu }), ..Config::none(Place::HomeAgent) }
}

#[test]
fn what_does_not_fit_the_tunnel_is_lowered_in_both_syns() {
    // 1500 bytes less 20 of the tunnel and 40 of IP and TCP, over IPv6 40 and 60.
    Script::new(clamping(1_500)).run(
        "    0  syn-from mobile mss 1460           -> pass mss 1440/1400
             0  syn-from peer mss 8960 answers     -> pass mss 1440/1400",
    );
}

#[test]
fn what_fits_stays() {
    Script::new(clamping(1_500)).run(
        "    0  syn-from mobile mss 1440/1400      -> pass
             0  syn-from peer mss 536 answers      -> pass",
    );
}

#[test]
fn a_syn_that_cannot_be_read_in_full_is_left_alone() {
    let mut script = Script::new(clamping(1_500));
    script.opaque = true;
    script.run("0  syn-from mobile mss 1460  -> pass");
}

#[test]
fn where_a_black_hole_was_met_new_connections_fit_what_is_assumed() {
    let black_hole = Some(BlackHole::DEFAULT);
    Script::new(Config { black_hole, ..clamping(1_500) }).run(
        "    0  path 1
             0  syn
            10  for mobile 0+1400 by 1             -> pass
           310  for mobile 0+1400 by 1             -> pass
           910  for mobile 0+1400 by 1             -> pass
          2110  for mobile 0+1400 by 1             -> pass fragments 1006/1492
          2200  for mobile 1400+1400 by 1          -> pass
          2600  for mobile 1400+1400 by 1          -> pass fragments 1006/1492
          3300  for mobile 2800+1400 by 1          -> pass fragments 1006/1492
          3300  > too-large 2800 mtu 986/1452 for peer
          4000  syn-from mobile flow 2 mss 1460 by 1 -> pass mss 946/1392",
    );
}

/// A path of IPv6 carries 1280 bytes (RFC 8200 section 5), and an MTU below that is none.
#[test]
fn no_segment_is_made_smaller_than_what_every_tunnel_of_ipv6_carries() {
    let clamped = |over, mtu| {
        Script::over(over, clamping(mtu)).run("0  syn-from mobile mss 1460  -> pass mss 28/1180");
    };
    clamped(Over::Ipv4, 80);
    clamped(Over::Ipv6, 80);
    clamped(Over::Ipv6, 1_280);
}
