//! The command line of `ddfuzz-runner`, for its help, its man page, and whoever asks.

use clap::{Arg, Command};

const ABOUT: &str =
    "A Cargo runner that groups and minimizes the crashes that libFuzzer programs find";

const MORE: &str = "\
`cargo ddfuzz install-runner` makes cargo start programs through it. A program that is not a \
libFuzzer program called to fuzz is run as it is. After `cargo fuzz run`, ddfuzz-out contains the \
groups of crashes and their reproducers. With -max_total_time or -runs, libFuzzer is restarted \
after each crash until these are used up. Exit status, messages and artifacts are those of the \
program.

Environment:
  DDFUZZ_RUNNER=off   run the program without ddfuzz
  DDFUZZ_OUT=DIR      output directory [default: ddfuzz-out]";

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
                .help("Program to run")
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
