//! Prints packets of dual stack Mobile IPv6 (RFC 5555), one `name hex` a line, to be read by decoders other people wrote.

#[path = "../tests/samples/dual_stack.rs"]
mod dual_stack;

fn main() {
    for (name, packet) in dual_stack::samples() {
        let hex: String = packet.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{name} {hex}");
    }
}
