//! Several links at once, under hostile packets and messages. The fuzz targets run the same models.

mod alliance_model;
mod bond_model;
mod resequencer_model;

use careof_base::RandomStream;

fn noise(seed: u64, len: u64) -> Vec<u8> {
    let mut random = RandomStream::new(seed, 0, "multipath.noise");
    (0..len).map(|_| random.next_u64() as u8).collect()
}

#[test]
fn whatever_numbers_packets_have_a_resequencer_keeps_its_bounds_and_its_books() {
    for seed in 0..200 {
        resequencer_model::run(&noise(seed, 20_000));
    }
}

#[test]
fn whatever_a_neighbour_says_an_alliance_holds_and_only_allies_packets_are_relayed() {
    for seed in 0..100 {
        alliance_model::run(&noise(seed, 8_000));
    }
}

#[test]
fn whatever_the_other_end_says_a_bond_keeps_its_bounds_and_its_books() {
    for seed in 0..200 {
        bond_model::run(&noise(seed, 20_000));
    }
}
