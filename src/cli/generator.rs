//! `--generator`: what makes the inputs of a campaign.

use clap::ValueEnum;

use super::{Exit, Failure};
use crate::campaign::Generator;
use crate::exec::{Started, Telling};

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

impl From<GeneratorArg> for Generator {
    fn from(arg: GeneratorArg) -> Generator {
        match arg {
            GeneratorArg::Auto => Generator::Auto,
            GeneratorArg::Classic => Generator::Classic,
            GeneratorArg::Guided => Generator::Guided,
        }
    }
}

impl GeneratorArg {
    /// Fails where the generator that is asked for cannot be had with this target.
    pub fn check(self, started: &mut Started) -> Result<(), Failure> {
        if self != GeneratorArg::Guided {
            return Ok(());
        }
        let way = started.executor.way();
        started.executor.tell_coverage(Telling::Every);
        started.executor.run(b"")?;
        let told = started.executor.coverage().is_some();
        started.executor.tell_coverage(Telling::Nothing);
        let refused = |message: String| Failure::new(Exit::Baseline, "no-coverage", message);
        Err(match told {
            false => refused(format!(
                "by {way} the target tells no coverage, which --generator guided needs"
            ))
            .hint(
                "build it with afl-clang-fast, or as a libFuzzer harness with clang \
                 -fsanitize=fuzzer, or take --generator classic",
            ),
            true => refused(
                "the target tells its coverage, but no campaign of this version uses it".to_owned(),
            )
            .hint("take --generator classic"),
        })
    }
}
