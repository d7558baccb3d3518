//! What a runner shows beside what libFuzzer says.

use crate::campaign::{Progress, Screen};
use crate::cli::output::tell;
use crate::report::{GroupView, block};

/// The block of each group: between the lines of libFuzzer, or with the result.
pub struct Blocks {
    /// The texts that come with the result; `None` where they are printed at once, because
    /// libFuzzer goes on after each finding.
    pub held: Option<Vec<String>>,
}

impl Blocks {
    fn print(&mut self, text: String) {
        match &mut self.held {
            Some(held) => held.push(text),
            None => tell(&text),
        }
    }
}

impl Screen for Blocks {
    fn progress(&mut self, _: &Progress) {}

    fn minimized(&mut self, group: &GroupView) {
        self.print(block(group));
    }

    fn note(&mut self, text: &str) {
        self.print(format!("ddfuzz: {text}"));
    }
}
