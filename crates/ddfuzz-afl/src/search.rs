//! The searches that trim.

use ddfuzz::delta::{Ddmin, Ddmin2002, Full, Search, Subset};

/// Begins a search over the bytes of an entry.
type Begin = fn(&[u8]) -> Box<dyn Search>;

/// The searches there are, the default first.
///
/// All of them take each FAIL as their new best. AFL++ stores the last candidate that kept the
/// coverage, so a search that also sees larger ones fail could make an entry grow again.
const BY_NAME: [(&str, Begin); 4] = [
    (Subset::NAME, |entry| Box::new(Subset::new(entry))),
    (Full::NAME, |entry| Box::new(Full::new(entry))),
    (Ddmin::NAME, |entry| Box::new(Ddmin::new(entry.len()))),
    (Ddmin2002::NAME, |entry| {
        Box::new(Ddmin2002::new(entry.len()))
    }),
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

/// Which search trims.
#[derive(Clone, Copy, Debug)]
pub struct TrimSearch(Begin);

impl TrimSearch {
    /// The search of this name; `None` where none that trims has it.
    pub fn by_name(name: &str) -> Option<TrimSearch> {
        let found = BY_NAME.iter().find(|(known, _)| *known == name);
        found.map(|(_, begin)| TrimSearch(*begin))
    }

    /// A search of one's own. It must take each FAIL as its new best.
    pub fn from_fn(begin: fn(&[u8]) -> Box<dyn Search>) -> TrimSearch {
        TrimSearch(begin)
    }

    /// The machine before its first step, for an entry whose own test was FAIL.
    pub fn begin(self, entry: &[u8]) -> Box<dyn Search> {
        self.0(entry)
    }
}

impl Default for TrimSearch {
    /// [`Subset`]: it only deletes, as AFL++'s own trimming does, and needs the fewest steps.
    fn default() -> TrimSearch {
        TrimSearch(BY_NAME[0].1)
    }
}
