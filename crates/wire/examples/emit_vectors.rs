//! Prints a datagram of every kind, one `name hex` a line, to be read by decoders other people wrote.

#[path = "../tests/samples/mod.rs"]
mod samples;

fn main() {
    for (name, datagram) in samples::samples() {
        let hex: String = datagram.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{name} {hex}");
    }
}
