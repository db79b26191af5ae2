//! `cargo run -p careof-oracle --example analytic -- FILE`: what became of each prediction.

use std::path::Path;

use careof_oracle::analytic::{Outcome, evaluate, read};

fn main() {
    let Some(file) = std::env::args().nth(1) else { return eprintln!("give the table") };
    match read(Path::new(&file)) {
        Ok(rows) => {
            let mut counts = [0; 3];
            for row in &rows {
                let (index, words) = match evaluate(row) {
                    Outcome::Holds => (0, "holds".to_owned()),
                    Outcome::Differs(why) => (1, format!("DIFFERS: {why}")),
                    Outcome::NotRun(why) => (2, format!("not run: {why}")),
                };
                counts[index] += 1;
                println!("{:24} {words}", row.id);
            }
            println!("{} rows: {} hold, {} differ, {} not run", rows.len(), counts[0], counts[1], counts[2]);
        }
        Err(error) => eprintln!("{error}"),
    }
}
