//! Parses, dispatches, and ends with an exit code.

fn main() -> std::process::ExitCode {
    ddfuzz::cli::main()
}
