//! The searches that trim, by name, and the search `blocks`.

use ddfuzz_delta::{Candidate, Config, Ddmin, Ddmin2002, Full, Outcome, Rule, Search, Subset};

use crate::settings::blocks;

/// Begins a search over the bytes of an entry.
type Begin = fn(&[u8]) -> Box<dyn Search>;

const SUBSET: Begin = |entry| Box::new(Subset::new(entry));

/// The searches there are, the default first: each by its stages.
///
/// All of them take each FAIL as their new best. AFL++ stores the last candidate that kept the
/// coverage, so a search that also sees larger ones fail could make an entry grow again.
const BY_NAME: [(&str, [Option<Begin>; 2]); 5] = [
    (
        Blocks::NAME,
        [
            Some(|entry| Box::new(Blocks::new(entry.len()))),
            Some(SUBSET),
        ],
    ),
    (Subset::NAME, [Some(SUBSET), None]),
    (Full::NAME, [Some(|entry| Box::new(Full::new(entry))), None]),
    (
        Ddmin::NAME,
        [Some(|entry| Box::new(Ddmin::new(entry.len()))), None],
    ),
    (
        Ddmin2002::NAME,
        [Some(|entry| Box::new(Ddmin2002::new(entry.len()))), None],
    ),
];

/// The names of the searches that trim, the default first.
pub const SEARCHES: [&str; BY_NAME.len()] = {
    let mut names = [""; BY_NAME.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = BY_NAME[at].0;
        at += 1;
    }
    names
};

/// Which search trims. It has stages: the second one begins with what the first one has come to
/// (coarse units first, then finer ones inside what is left).
#[derive(Clone, Copy, Debug)]
pub struct TrimSearch([Option<Begin>; 2]);

impl TrimSearch {
    /// The search of this name; `None` where none that trims has it.
    pub fn by_name(name: &str) -> Option<TrimSearch> {
        let found = BY_NAME.iter().find(|(known, _)| *known == name);
        found.map(|(_, stages)| TrimSearch(*stages))
    }

    /// A search of one's own, in one stage. It must take each FAIL as its new best.
    pub fn from_fn(begin: fn(&[u8]) -> Box<dyn Search>) -> TrimSearch {
        TrimSearch([Some(begin), None])
    }

    /// The machine of a stage, counted from 0, before its first step; `None` behind the last.
    /// `entry`: the bytes to begin with, whose test was FAIL.
    pub fn stage(self, number: usize, entry: &[u8]) -> Option<Box<dyn Search>> {
        let begin = self.0.get(number).copied().flatten()?;
        Some(begin(entry))
    }
}

impl Default for TrimSearch {
    /// `blocks`: as AFL++'s own trimming it deletes blocks of ever smaller size; then [`Subset`].
    fn default() -> TrimSearch {
        TrimSearch(BY_NAME[0].1)
    }
}

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
