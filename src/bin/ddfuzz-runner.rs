//! The program `ddfuzz-runner`: cargo starts fuzz targets through it, and it groups and minimizes
//! the crashes that a `cargo fuzz run` finds.

fn main() -> std::process::ExitCode {
    ddfuzz::cli::runner::main()
}
