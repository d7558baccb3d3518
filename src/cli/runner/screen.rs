//! What a runner shows beside what libFuzzer says.

use crate::campaign::{Progress, Screen};
use crate::cli::output::tell;
use crate::report::{GroupView, block};

/// The block of each group, between the lines of libFuzzer.
pub struct Blocks;

impl Screen for Blocks {
    fn progress(&mut self, _: &Progress) {}

    fn minimized(&mut self, group: &GroupView) {
        tell(&block(group));
    }

    fn note(&mut self, text: &str) {
        tell(&format!("ddfuzz: {text}"));
    }
}
