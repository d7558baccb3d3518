//! A coarse search: blocks, ever smaller ones.

use ddfuzz_delta::{Candidate, Config, Outcome, Rule, Search};

use crate::steps::blocks;

/// Deletes one block after the other, from the front to the end; then blocks of half that size, and
/// so on, from a sixteenth of the entry down. It is the order of AFL's own trimming.
///
/// The coverage of a run has classes of counts: of what a program does again and again, so much can
/// go until the class below begins. Who deletes a few bytes here and there uses that up on little.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    best: Config,
    /// The sizes still to come, the present one first.
    sizes: Vec<usize>,
    /// Where the block begins that is tested, in the best.
    at: usize,
}

impl Blocks {
    /// The name that stands in messages and in the environment.
    pub const NAME: &'static str = "blocks";

    /// Begins with an entry of so many bytes.
    pub fn new(len: usize) -> Blocks {
        Blocks {
            best: Config::all(len),
            sizes: blocks(len).collect(),
            at: 0,
        }
    }
}

impl Search for Blocks {
    fn next(&mut self) -> Option<Candidate> {
        let len = self.best.len();
        loop {
            let size = *self.sizes.first()?;
            // A block that is all there is would leave nothing.
            if size < len && self.at < len {
                let cut = self.at..len.min(self.at + size);
                let cuts = std::iter::once(cut).collect();
                return Some(Candidate::cut(Rule::Pass(Blocks::NAME), &self.best, cuts));
            }
            self.sizes.remove(0);
            self.at = 0;
        }
    }

    fn tell(&mut self, outcome: Outcome) {
        let Some(asked) = self.next() else {
            return;
        };
        match asked.edit.apply(&self.best) {
            Some(less) if outcome == Outcome::Fail => self.best = less,
            _ => self.at += self.sizes[0],
        }
    }

    fn best(&self) -> &Config {
        &self.best
    }

    fn boxed(&self) -> Box<dyn Search> {
        Box::new(self.clone())
    }
}
