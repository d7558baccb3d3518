//! A Cargo runner that shrinks what `cargo fuzz run` finds.

fn main() -> std::process::ExitCode {
    ddfuzz::cli::runner::main()
}
