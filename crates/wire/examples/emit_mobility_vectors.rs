//! Prints an IPv6 packet with a Mobility Header of every kind, one `name hex` a line, to be read by decoders other people wrote.

#[path = "../tests/samples/mobility.rs"]
mod mobility;

fn main() {
    for (name, packet) in mobility::samples() {
        let hex: String = packet.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{name} {hex}");
    }
}
