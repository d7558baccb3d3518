//! `--generator`: what makes the inputs of a campaign.

use clap::ValueEnum;

use super::{Exit, Failure};
use crate::campaign::Generator;
use crate::exec::Started;

/// What makes the inputs, on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GeneratorArg {
    /// Coverage-guided where the target reports coverage, else classic
    Auto,
    /// Random characters, as in the fuzz studies, and mutations of the seeds
    Classic,
    /// Mutations of inputs that reached new coverage
    Guided,
}

impl GeneratorArg {
    /// The generator for a target that was started. The coverage of one that is not there cannot
    /// guide.
    pub fn settle(self, started: &Started) -> Result<Generator, Failure> {
        match (self, started.executor.places()) {
            (GeneratorArg::Classic, _) | (GeneratorArg::Auto, None) => Ok(Generator::Classic),
            (GeneratorArg::Auto | GeneratorArg::Guided, Some(_)) => Ok(Generator::Guided),
            (GeneratorArg::Guided, None) => {
                let message = format!(
                    "--generator guided needs coverage, but run by {} the target reports none",
                    started.executor.way()
                );
                Err(Failure::new(Exit::Baseline, "no-coverage", message).hint(
                    "build it with afl-clang-fast, or as a libFuzzer harness with clang \
                     -fsanitize=fuzzer, or use --generator classic",
                ))
            }
        }
    }
}
