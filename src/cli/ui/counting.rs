//! The progress line of a job that is counted.

use std::time::Instant;

use indicatif::ProgressBar;

use super::{bar, rate};
use crate::cli::output::Output;
use crate::report::size;

/// One line on stderr that is drawn again and again, if stderr is a terminal.
pub struct Counting {
    bar: ProgressBar,
    unit: &'static str,
    all: u64,
    began: Instant,
}

impl Counting {
    /// A line of `all` things, as loud as `output` says.
    pub fn new(output: &Output, unit: &'static str, all: u64) -> Counting {
        Counting {
            bar: bar(output),
            unit,
            all,
            began: Instant::now(),
        }
    }

    /// It is of so many things.
    pub fn set_all(&mut self, all: u64) {
        self.all = all;
    }

    /// So many are done, and this is what they came to.
    pub fn show(&self, done: u64, found: &str) {
        let per_second = done as f64 / self.began.elapsed().as_secs_f64().max(0.001);
        self.bar.set_message(format!(
            "{} of {}, {}/s, {found}",
            size::grouped(done),
            size::counted(self.all, self.unit),
            rate(per_second),
        ));
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
