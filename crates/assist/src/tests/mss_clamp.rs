//! The segment size in SYNs.

use super::script::Script;
use crate::{BlackHole, Config, MssClamp, Place};

fn clamping(mtu: u16) -> Config {
    Config { mss_clamp: Some(MssClamp { mtu }), ..Config::none(Place::HomeAgent) }
}

#[test]
fn what_does_not_fit_the_tunnel_is_lowered_in_both_syns() {
    // 1500 bytes less 20 of the tunnel and 40 of IP and TCP.
    Script::new(clamping(1_500)).run(
        "    0  syn-from mobile mss 1460           -> pass mss 1440
             0  syn-from peer mss 8960 answers     -> pass mss 1440",
    );
}

#[test]
fn what_fits_stays() {
    Script::new(clamping(1_500)).run(
        "    0  syn-from mobile mss 1440           -> pass
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
          2110  for mobile 0+1400 by 1             -> pass fragments 1006
          2200  for mobile 1400+1400 by 1          -> pass
          2600  for mobile 1400+1400 by 1          -> pass fragments 1006
          3300  for mobile 2800+1400 by 1          -> pass fragments 1006
          3300  > too-large 2800 mtu 986 for peer
          4000  syn-from mobile flow 2 mss 1460 by 1 -> pass mss 946",
    );
}
