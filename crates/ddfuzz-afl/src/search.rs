//! The search algorithms that trim queue entries, by name, and the search `blocks`.

use ddfuzz_delta::{Candidate, Config, Ddmin, Ddmin2002, Full, Outcome, Rule, Search, Subset};

use crate::settings::blocks;

/// Function that starts a search over the bytes of a queue entry.
type Begin = fn(&[u8]) -> Box<dyn Search>;

const SUBSET: Begin = |entry| Box::new(Subset::new(entry));

/// All search algorithms for trimming, by name, the default first; each consists of one or two
/// searches that run one after the other.
///
/// Each search takes every failing candidate (same coverage) as its new best. AFL++ stores the last
/// candidate that kept the coverage; a search that also tested candidates larger than its best
/// could therefore make an entry grow again.
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

/// Names of the search algorithms that can trim queue entries, the default first.
pub const SEARCHES: [&str; BY_NAME.len()] = {
    let mut names = [""; BY_NAME.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = BY_NAME[at].0;
        at += 1;
    }
    names
};

/// A search algorithm for trimming, which has one or two stages. The second stage starts with the
/// result of the first one, and tries smaller deletions.
#[derive(Clone, Copy, Debug)]
pub struct TrimSearch([Option<Begin>; 2]);

impl TrimSearch {
    /// Returns the search algorithm for trimming called `name`; `None` if there is none.
    pub fn by_name(name: &str) -> Option<TrimSearch> {
        let found = BY_NAME.iter().find(|(known, _)| *known == name);
        found.map(|(_, stages)| TrimSearch(*stages))
    }

    /// Makes a user-defined search algorithm with one stage, which `begin` starts on the bytes of a
    /// queue entry. The search must take each failing candidate as its new best.
    pub fn from_fn(begin: fn(&[u8]) -> Box<dyn Search>) -> TrimSearch {
        TrimSearch([Some(begin), None])
    }

    /// Starts the search with the number `number`, counted from 0, on the text `entry`, whose test
    /// gave FAIL. `None` if there is no search with this number.
    pub fn stage(self, number: usize, entry: &[u8]) -> Option<Box<dyn Search>> {
        let begin = self.0.get(number).copied().flatten()?;
        Some(begin(entry))
    }
}

impl Default for TrimSearch {
    /// Returns the search algorithm `blocks`, which deletes ranges of bytes of decreasing size like
    /// AFL's own trimming, followed by [`Subset`].
    fn default() -> TrimSearch {
        TrimSearch(BY_NAME[0].1)
    }
}

/// A search that deletes blocks from the front to the end: first blocks of 1/16 of the entry, then
/// blocks of half that size, and so on, in the order of AFL's own trimming.
///
/// The coverage of a run counts how often code is executed, in ranges of counts. Repeated data can
/// be deleted as long as the count stays in its range. Large blocks use this allowance better than
/// single bytes would.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    best: Config,
    /// Sizes in bytes of the blocks that the search still has to delete, largest first; the first
    /// one is the current size.
    sizes: Vec<usize>,
    /// Offset in bytes of the next block to delete, in the shortest text so far that kept the
    /// coverage.
    at: usize,
}

impl Blocks {
    /// Name of this search algorithm in messages and in the environment variable that selects it.
    pub const NAME: &'static str = "blocks";

    /// Starts the search that deletes ranges of bytes, the largest first, over a queue entry of
    /// `len` bytes.
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
            // A block as long as the best would leave nothing.
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
