//! Settings from environment variables, and the default number of steps of an entry.

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

/// AFL's own trimming begins with blocks of a sixteenth of the length, ends with those of a 1024th,
/// and deletes no less than four bytes at once (`TRIM_START_STEPS`, `TRIM_END_STEPS` and
/// `TRIM_MIN_BYTES` of its `config.h`).
const FIRST: usize = 16;
const LAST: usize = 1024;
const LEAST: usize = 4;

/// How many times the steps of AFL's own trimming an entry may cost.
const TIMES: u32 = 2;
/// What an entry may cost besides: AFL's own trimming leaves the smallest ones alone.
const BESIDES: u32 = 16;

/// The sizes of the blocks that AFL's own trimming deletes of an entry of `len` bytes, in its order.
pub(crate) fn blocks(len: usize) -> impl Iterator<Item = usize> {
    let rounded = len.next_power_of_two();
    let first = (rounded / FIRST).max(LEAST);
    let last = (rounded / LAST).max(LEAST);
    std::iter::successors(Some(first), |block| Some(block / 2))
        .take_while(move |&block| block >= last)
}

/// Executions of AFL's own trimming of an entry of `len` bytes of which nothing can go: the most
/// that it ever spends on one. At most about 2000.
pub fn afl_steps(len: usize) -> u32 {
    // It begins behind the first block of the entry, which it never deletes.
    let steps: usize = blocks(len)
        .map(|block| len.div_ceil(block).saturating_sub(1))
        .sum();
    u32::try_from(steps).unwrap_or(u32::MAX)
}

/// The steps that an entry of `len` bytes gets where nobody says otherwise: twice those of AFL's own
/// trimming at worst, and a few.
pub fn default_steps(len: usize) -> u32 {
    afl_steps(len).saturating_mul(TIMES).saturating_add(BESIDES)
}
