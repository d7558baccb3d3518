//! The program `cargo-ddfuzz`, which cargo starts for `cargo ddfuzz`: the commands of ddfuzz on a
//! cargo-fuzz project.

fn main() -> std::process::ExitCode {
    ddfuzz::cli::cargo::main()
}
