//! What the environment says.

use std::ffi::{OsStr, OsString};

use crate::{SEARCHES, TrimSearch};

/// How entries are trimmed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Which search trims.
    pub search: TrimSearch,
    /// The steps that an entry may take, each an execution of the target; 0 trims nothing. `None`:
    /// by its length ([`default_steps`](crate::default_steps)).
    pub steps: Option<u32>,
}

impl Settings {
    /// The variable that names the search: one of [`SEARCHES`].
    pub const SEARCH: &str = "DDFUZZ_AFL_SEARCH";
    /// The variable that holds the number of steps for each entry.
    pub const STEPS: &str = "DDFUZZ_AFL_STEPS";

    /// The settings in an environment (`get` gives the value of a variable), and a line for each
    /// value that cannot be used: its default holds instead.
    pub fn from_env(get: impl Fn(&str) -> Option<OsString>) -> (Settings, Vec<String>) {
        let mut settings = Settings::default();
        let mut problems = Vec::new();
        // A variable that is set to nothing is not set.
        let value = |name| get(name).filter(|value| !value.is_empty());
        if let Some(name) = value(Settings::SEARCH) {
            match name.to_str().and_then(TrimSearch::by_name) {
                Some(search) => settings.search = search,
                None => problems.push(unknown_search(&name)),
            }
        }
        if let Some(count) = value(Settings::STEPS) {
            match count.to_str().and_then(|count| count.parse().ok()) {
                Some(steps) => settings.steps = Some(steps),
                None => problems.push(no_count(&count)),
            }
        }
        (settings, problems)
    }
}

fn unknown_search(name: &OsStr) -> String {
    format!(
        "{}={}: no search of this name trims; set one of {}. Going on with {}",
        Settings::SEARCH,
        name.display(),
        SEARCHES.join(", "),
        SEARCHES[0]
    )
}

fn no_count(count: &OsStr) -> String {
    format!(
        "{}={}: not a number of steps; set a whole number up to {}, or 0 to trim nothing. Going on \
         with the default, by the length of each entry",
        Settings::STEPS,
        count.display(),
        u32::MAX
    )
}
