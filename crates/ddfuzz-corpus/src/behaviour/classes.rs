//! The classes of a corpus.

use std::collections::{BTreeSet, HashMap};

use super::record::{Aspect, Behaviour, ClassId};
use ddfuzz_minimize::log::ContentHash;

/// The least input of one class, and how many there are.
struct Least {
    content: ContentHash,
    size: u64,
    files: u64,
}

/// The classes of a corpus, and the least input of each: the shortest, and of several of one
/// length the one of the least hash. Memory grows with classes, not with inputs.
#[derive(Default)]
pub struct Classes {
    classes: HashMap<ClassId, Least>,
    varies: BTreeSet<Aspect>,
    lacks: BTreeSet<Aspect>,
}

impl Classes {
    /// Takes one content, of so many bytes, and how the target behaves on it. Contents may come in
    /// any order, each once.
    pub fn take(&mut self, content: ContentHash, size: u64, behaviour: &Behaviour) {
        self.varies.extend(&behaviour.varies);
        self.lacks.extend(&behaviour.lacks);
        let least = self.classes.entry(behaviour.class()).or_insert(Least {
            content,
            size,
            files: 0,
        });
        least.files += 1;
        let rank = |content: ContentHash, size: u64| (size, content.to_string());
        if rank(content, size) < rank(least.content, least.size) {
            (least.content, least.size) = (content, size);
        }
    }

    /// The input that stands for a class, and how many inputs are in it.
    pub fn of(&self, class: ClassId) -> Option<(ContentHash, u64)> {
        let least = self.classes.get(&class)?;
        Some((least.content, least.files))
    }

    /// How many classes there are.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// The inputs that stand for the classes, the shortest first.
    pub fn kept(&self) -> Vec<ContentHash> {
        let mut kept: Vec<&Least> = self.classes.values().collect();
        kept.sort_by_cached_key(|least| (least.size, least.content.to_string()));
        kept.into_iter().map(|least| least.content).collect()
    }

    /// What varied for at least one input, and so did not count for it.
    pub fn varies(&self) -> &BTreeSet<Aspect> {
        &self.varies
    }

    /// What could not be had of the target, and so counted for none.
    pub fn lacks(&self) -> &BTreeSet<Aspect> {
        &self.lacks
    }
}
