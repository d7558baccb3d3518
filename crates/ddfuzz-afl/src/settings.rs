//! Settings of the trimming library from environment variables, and the default number of steps
//! (executions) for an entry.

use std::ffi::{OsStr, OsString};

use crate::{SEARCHES, TrimSearch};

/// Settings of the trimming library: the search algorithm, and the maximum number of executions of
/// the target for each queue entry.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// The search algorithm that trims queue entries.
    pub search: TrimSearch,
    /// Largest number of steps for each entry; each step is an execution of the target, and 0 trims
    /// nothing. `None`: the number depends on the length of the entry
    /// ([`default_steps`](crate::default_steps)).
    pub steps: Option<u32>,
}

impl Settings {
    /// Name of the environment variable that selects the search algorithm, one of [`SEARCHES`].
    pub const SEARCH: &str = "DDFUZZ_AFL_SEARCH";
    /// Name of the environment variable that limits the number of steps (executions of the target)
    /// for each queue entry.
    pub const STEPS: &str = "DDFUZZ_AFL_STEPS";

    /// Reads settings from environment variables; `get` returns the value of a variable. The second
    /// result has a message for each invalid value, in place of which the default is used.
    pub fn from_env(get: impl Fn(&str) -> Option<OsString>) -> (Settings, Vec<String>) {
        let mut settings = Settings::default();
        let mut problems = Vec::new();
        // An empty variable counts as unset.
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

/// Divisor for the size of the first ranges of bytes that AFL's own trimming deletes: the size of
/// the entry, rounded up to a power of two, divided by this number (`TRIM_START_STEPS` in AFL's
/// `config.h`).
const FIRST_DIVISOR: usize = 16;
/// Divisor for the size of the last ranges of bytes that AFL's own trimming deletes: the size of
/// the entry, rounded up to a power of two, divided by this number (`TRIM_END_STEPS`), but at least
/// [`MIN_BLOCK`] bytes.
const LAST_DIVISOR: usize = 1024;
/// Size of the smallest range of bytes that AFL's own trimming deletes (`TRIM_MIN_BYTES`).
const MIN_BLOCK: usize = 4;

/// Factor in the default number of steps (executions), which is this number times the number of
/// AFL's own trimming, plus [`EXTRA_STEPS`].
const FACTOR: u32 = 2;
/// Number that is added to the default number of steps of each entry, because AFL's own trimming
/// makes none for the smallest entries.
const EXTRA_STEPS: u32 = 16;

/// Returns the sizes, in bytes, of the ranges of bytes that AFL's own trimming deletes from an
/// entry of `len` bytes, in the order in which they are deleted.
pub(crate) fn blocks(len: usize) -> impl Iterator<Item = usize> {
    let rounded = len.next_power_of_two();
    let first = (rounded / FIRST_DIVISOR).max(MIN_BLOCK);
    let last = (rounded / LAST_DIVISOR).max(MIN_BLOCK);
    std::iter::successors(Some(first), |block| Some(block / 2))
        .take_while(move |&block| block >= last)
}

/// Returns how many executions AFL's own trimming of an entry of `len` bytes takes at most, that
/// is, if nothing can be deleted. The result is never above about 2000.
pub fn afl_steps(len: usize) -> u32 {
    // AFL never deletes the first block of an entry.
    let steps: usize = blocks(len)
        .map(|block| len.div_ceil(block).saturating_sub(1))
        .sum();
    u32::try_from(steps).unwrap_or(u32::MAX)
}

/// Returns the default number of steps (executions) for an entry of `len` bytes: twice the maximum
/// of AFL's own trimming, plus 16.
pub fn default_steps(len: usize) -> u32 {
    afl_steps(len)
        .saturating_mul(FACTOR)
        .saturating_add(EXTRA_STEPS)
}
