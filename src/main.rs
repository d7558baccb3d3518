//! The program `ddfuzz`: parses the command line, runs the subcommand, and ends with its exit code.

fn main() -> std::process::ExitCode {
    ddfuzz::cli::main()
}
