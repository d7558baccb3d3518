//! What a fuzzer of this package is asked for on its command line, in this order: the seed of its
//! random numbers, how many runs to make, the longest input in bytes, the folder of seeds, the
//! folder to work in; and of a fork server, whether it is persistent (0 or 1) and the program.

use std::path::PathBuf;

use libafl::Error;

/// What is asked for.
pub struct Order {
    /// Of the random numbers.
    pub seed: u64,
    /// After so many runs it ends, unless a crash ended it.
    pub runs: u64,
    /// Bytes.
    pub longest: usize,
    /// The folder of seeds.
    pub seeds: PathBuf,
    /// The folder for corpus and crashes.
    pub work: PathBuf,
    /// What follows.
    #[allow(dead_code, reason = "only a fork server is told more")]
    pub rest: Vec<String>,
}

impl Order {
    /// Reads the command line.
    ///
    /// # Errors
    /// Where something is missing, or not a number.
    pub fn of_command_line() -> Result<Order, Error> {
        let mut args = std::env::args().skip(1);
        let mut next = |what: &str| {
            args.next()
                .ok_or_else(|| Error::illegal_argument(format!("no {what}")))
        };
        let number = |text: String| {
            text.parse::<u64>()
                .map_err(|_| Error::illegal_argument(format!("{text}: not a number")))
        };
        Ok(Order {
            seed: number(next("seed")?)?,
            runs: number(next("runs")?)?,
            longest: usize::try_from(number(next("longest input")?)?)
                .map_err(|error| Error::illegal_argument(error.to_string()))?,
            seeds: next("folder of seeds")?.into(),
            work: next("folder to work in")?.into(),
            rest: args.collect(),
        })
    }
}
