//! `cargo ddfuzz`: ddfuzz on a cargo-fuzz project.

fn main() -> std::process::ExitCode {
    ddfuzz::cli::cargo::main()
}
