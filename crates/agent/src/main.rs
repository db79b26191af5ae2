//! The daemon `careof-agent`.

fn main() -> std::process::ExitCode {
    careof_agent::command::main()
}
