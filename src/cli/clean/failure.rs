//! Why a corpus could not be cleaned, as users see it.

use crate::cli::{Exit, Failure};
use crate::corpus::CleanError;
use crate::corpus::trim::TrimError;

impl From<CleanError> for Failure {
    fn from(error: CleanError) -> Failure {
        match error {
            CleanError::Exec(error) => error.into(),
            CleanError::Store(error) => error.into(),
            CleanError::Campaign(error) => error.into(),
            CleanError::Trim(error) => of_trimming(error),
            CleanError::NotListed(ref not_listed) => {
                let path = not_listed.path.clone();
                Failure::new(Exit::Usage, "file", &error)
                    .path(&path)
                    .hint_where_missing(&path)
            }
            CleanError::Journal { .. } => {
                Failure::new(Exit::Usage, "journal", &error).hint("continue with the same command")
            }
            CleanError::Empty { .. } => Failure::new(Exit::Found, "empty", &error)
                .hint("the corpus is unchanged; -v shows how its inputs are run"),
            CleanError::Changed { ref path } => {
                let path = path.clone();
                Failure::new(Exit::Usage, "changed", &error)
                    .path(&path)
                    .hint("run the same command again")
            }
            CleanError::Occupied { ref path } => {
                let path = path.clone();
                Failure::new(Exit::Usage, "exists", &error)
                    .path(&path)
                    .hint("give another output directory with -o")
            }
            CleanError::Interrupted => {
                Failure::new(Exit::Interrupted, "interrupted", "interrupted")
                    .hint("continue with the same command")
            }
        }
    }
}

fn of_trimming(error: TrimError) -> Failure {
    match error {
        TrimError::Exec(error) => error.into(),
        TrimError::Minimize(error) => error.into(),
        TrimError::File(error) => error.into(),
        TrimError::NoCoverage { .. } => {
            Failure::new(Exit::Baseline, "no-coverage", &error).hint("use --trim off")
        }
        TrimError::Interrupted => Failure::new(Exit::Interrupted, "interrupted", &error)
            .hint("continue with the same command"),
        TrimError::Callback(_) => Failure::new(Exit::Usage, "output", &error)
            .hint("free some space, and run the same command again"),
    }
}
