//! `--generator`: what makes the inputs of a campaign.

use clap::ValueEnum;

use super::{Exit, Failure};
use crate::campaign::Generator;
use crate::exec::Started;

/// What makes the inputs, on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GeneratorArg {
    /// What fits the target
    Auto,
    /// The random characters of the fuzz studies
    Classic,
    /// Mutations of inputs that have reached something new, by the target's coverage
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
                    "by {} the target tells no coverage, which --generator guided needs",
                    started.executor.way()
                );
                Err(Failure::new(Exit::Baseline, "no-coverage", message).hint(
                    "build it with afl-clang-fast, or as a libFuzzer harness with clang \
                     -fsanitize=fuzzer, or take --generator classic",
                ))
            }
        }
    }
}
