//! `ddfuzz clean`: the smallest corpus that keeps everything it is worth.

mod afl;
mod args;
mod explain;
mod failure;
mod in_place;
mod job;
mod libfuzzer;
mod place;
mod screen;

pub use args::Args;
use job::Job;

use super::{Exit, Failure, Output, signals};

/// Makes sure that what is asked for can be done, before anything is built or run.
///
/// # Errors
/// When files that the user has would be in the way.
pub fn check(args: &Args) -> Result<(), Failure> {
    if args.in_place {
        in_place::Old::of(args)?;
    }
    place::check(args)
}

/// Runs the command.
pub fn run(mut args: Args, output: &Output) -> Result<Exit, Failure> {
    if !args.explain.is_empty() {
        return explain::run(args.out(), &args.explain, output);
    }
    if args.corpus.is_empty() {
        return Err(Failure::usage("no corpus is given")
            .hint("give its directory: ddfuzz clean CORPUS -o OUT -- PROGRAM"));
    }
    if !args.target.is_named()
        && let [corpus] = &args.corpus[..]
        && let Some(program) = afl::target_of(corpus)
    {
        let words: Vec<_> = program.iter().map(|word| word.to_string_lossy()).collect();
        output.say(&format!(
            "the target, by its fuzzer_stats: {}",
            words.join(" ")
        ));
        args.target.program = program;
    }
    let stop = signals::stop_flag()?;
    Job { args, stop }.run(output)
}
