//! The command line of `ddfuzz-runner`, for its help, its man page, and whoever asks.

use clap::{Arg, Command};

const ABOUT: &str =
    "Runs what cargo runs, and shrinks what a libFuzzer program finds that is called to fuzz";

const MORE: &str = "\
`cargo ddfuzz install-runner` has cargo call it. `cargo fuzz run` then ends with groups and \
reproducers in ddfuzz-out; with -max_total_time or -runs, libFuzzer is started again after each \
crash until these are used up. Exit status, messages and artifacts are those of the program.

Environment:
  DDFUZZ_RUNNER=off   run the program alone
  DDFUZZ_OUT=DIR      the output directory [default: ddfuzz-out]";

/// The command line. It is not parsed by this: what stands behind the program is the program's.
pub fn command() -> Command {
    Command::new("ddfuzz-runner")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .max_term_width(100)
        .after_help(MORE)
        .arg(
            Arg::new("program")
                .value_name("PROGRAM")
                .help("What cargo runs")
                .required(true),
        )
        .arg(
            Arg::new("arguments")
                .value_name("ARGUMENT")
                .help("Its arguments")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true),
        )
}
