//! Which comparisons a run makes, with both operands, in the order of the program.
//!
//! A run that is observed ends as any other does, only slower: it is for the few questions that
//! are worth it. There are three sources, and all that a target offers are combined:
//!
//! 1. **Functions.** A library that is preloaded into observed runs only (`runtime/observe.c`)
//!    takes the place of `memcmp`, `strcmp` and their like.
//! 2. **Callbacks** of `-fsanitize-coverage=trace-cmp`. The same library has them; where the
//!    program defines its own, it writes a jump over their entries.
//! 3. **Instructions** of unmodified programs, on x86-64: breakpoints on each `cmp` of the main
//!    executable, which is what static programs, too, can be asked by.
//!
//! Everything is bounded by counts, never by the clock, so that a target that does the same each
//! time is seen to do the same.

#[cfg(target_arch = "x86_64")]
mod breakpoints;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_breakpoints.rs"]
mod breakpoints;
mod functions;
mod history;
mod hook;
pub(crate) mod image;
mod in_loop;
mod runtimes;
mod told;
mod watching;

use super::{ExecError, Run, Target, Way};
use ddfuzz_delta::Comparison;
pub(crate) use in_loop::InLoop;
use watching::Watching;

/// A started target whose runs tell what they compare.
pub trait Observer: Send {
    /// Runs the target once on `input`, in a process of its own. Beside the run: the last
    /// comparisons (at most 256, each pair of operands once) whose operands differed, oldest
    /// first, each operand of at most 64 bytes.
    ///
    /// # Errors
    /// When the target, or the server that runs it, cannot be started or answers nonsense.
    fn observe(&mut self, input: &[u8]) -> Result<(Run, Vec<Comparison>), ExecError>;

    /// What the comparisons come from.
    fn sources(&self) -> Sources;
}

/// What the comparisons of a target can be had from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Functions that compare bytes, and callbacks that are not the program's own.
    pub functions: bool,
    /// How many callbacks of its own the program has that can be listened to.
    pub callbacks: usize,
    /// How many of its instructions can be.
    pub instructions: usize,
}

impl Sources {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Sources::default()
    }
}

/// Prepares `target` to be observed as the way `way` runs it; `None` where nothing of it can be
/// observed (a script, for one, or a static program on a machine that is not an x86-64).
///
/// # Errors
/// When the program is missing or cannot be executed.
pub fn start(target: &Target, way: Way) -> Result<Option<Box<dyn Observer>>, ExecError> {
    let watching = Watching::new(target, way)?;
    Ok(match watching.sources().is_empty() {
        true => None,
        false => Some(Box::new(watching)),
    })
}
