//! `cargo run -p careof-oracle --example kernel -- DIR|FILE...`: what the model and the kernel have in common, a line
//! a trace and its first differences.

use std::path::{Path, PathBuf};

use careof_oracle::kernel::{Loop, Share, compare_file};

fn main() {
    let mut files: Vec<PathBuf> = Vec::new();
    for argument in std::env::args().skip(1) {
        let path = Path::new(&argument);
        if path.is_dir() {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            files.extend(entries.map(|entry| entry.path()).filter(|path| {
                let name = path.to_string_lossy();
                name.ends_with(".csv") || name.ends_with(".csv.gz")
            }));
        } else {
            files.push(path.to_owned());
        }
    }
    files.sort();
    let mut agree = 0;
    for file in &files {
        match compare_file(file) {
            Ok(found) => {
                println!("{}", found.name);
                for (name, found) in [("open", &found.open), ("closed", &found.closed)] {
                    if let Some(found) = found {
                        tell(name, found);
                    }
                }
                if let Some(error) = &found.error {
                    println!("  {error}");
                }
                agree += usize::from(found.agrees());
            }
            Err(error) => println!("{error}"),
        }
    }
    println!("{} traces, {agree} agree in segments, order, windows and times", files.len());
}

fn share(found: Share) -> String {
    found.ratio().map_or("-".to_owned(), |ratio| format!("{:.1} %", 100.0 * ratio))
}

fn tell(name: &str, found: &Loop) {
    println!(
        "  {name:6} {} segments {} order {} retransmissions {}/{} cwnd {} moment {} time {}",
        if found.failed().is_empty() { "agrees" } else { "FAILS" },
        if found.same_segments { "same" } else { "DIFFER" },
        if found.same_order { "same" } else { "DIFFERS" },
        found.retransmissions.0,
        found.retransmissions.1,
        share(found.window),
        share(found.moments),
        share(found.times),
    );
    for difference in &found.differences {
        println!("         {}: {difference}", difference.kind.name());
    }
}
