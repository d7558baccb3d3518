//! `--compare`: studies side by side.

use std::path::PathBuf;

use super::reports::Studied;
use crate::cli::{Exit, Failure, output::Output, ui};
use crate::report::study::{Comparison, StudyIn, compare, comparison_text};
use crate::store::Reader;

/// What is compared.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct CompareArgs {
    /// Run nothing, but compare the studies in two or more output directories, the earliest first:
    /// which groups are new or gone, and whether the failure rates differ
    #[arg(long, value_name = "OUT", num_args = 2..)]
    pub compare: Vec<PathBuf>,
}

impl CompareArgs {
    /// Whether it is asked for.
    pub fn is_asked(&self) -> bool {
        !self.compare.is_empty()
    }

    /// Shows the comparison; the directories are only read.
    ///
    /// # Errors
    /// When one of them cannot be read, or holds no study.
    pub fn run(&self, output: &Output) -> Result<Exit, Failure> {
        let comparison = self.compared()?;
        let text = comparison_text(&comparison, ui::stdout_width());
        output.result(&text, &comparison);
        Ok(Exit::Done)
    }

    /// The comparison.
    ///
    /// # Errors
    /// Those of [`CompareArgs::run`].
    pub fn compared(&self) -> Result<Comparison, Failure> {
        if let [only] = &self.compare[..] {
            let message = format!("only {} is given to compare", only.display());
            return Err(Failure::usage(message)
                .path(only)
                .hint("--compare takes two or more output directories"));
        }
        let studies = self.compare.iter().map(|out| {
            let studied = Studied::read(&Reader::open(out)?)?;
            match studied.is_empty() {
                true => Err(Studied::none(out)),
                false => Ok(StudyIn {
                    name: out.to_string_lossy().into_owned(),
                    rows: studied.rows,
                }),
            }
        });
        Ok(compare(&studies.collect::<Result<Vec<_>, Failure>>()?))
    }
}
