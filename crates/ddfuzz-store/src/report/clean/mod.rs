//! The result of a corpus cleanup, for scripts and as it stands in `clean.json`; its page and its
//! tables.

mod page;
mod table;

use serde::{Deserialize, Serialize};

use ddfuzz_exec::Way;
use ddfuzz_model::files::OsText;

pub use page::clean_html;
pub use table::clean_table;

/// The result of `clean`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CleanResult {
    /// Every file of the corpus that was found.
    pub before: Amount,
    /// What was kept, as it was written.
    pub after: Amount,
    /// Instrumented places that the corpus reaches, those aside that it does not reach each time;
    /// null where the target tells no coverage.
    pub edges_before: Option<u64>,
    /// The same of what was written, by runs of that alone.
    pub edges_after: Option<u64>,
    /// The same of places together with ranges of how often they were passed.
    pub features_before: Option<u64>,
    /// The same of what was written.
    pub features_after: Option<u64>,
    /// Features that no content of the corpus reaches each time, left out of the numbers above.
    pub flaky_features: u64,
    /// Files that are kept because they reach some of these most often.
    #[serde(default)]
    pub flaky_files: u64,
    /// What the libFuzzer that is linked into the target counts; null where it has none, or was
    /// not asked.
    #[serde(default)]
    pub libfuzzer: Option<OwnCount>,
    /// What each step did, in their order.
    pub steps: Vec<Step>,
    /// Files whose content another one has, too.
    pub duplicates: u64,
    /// Contents that crashed, flaky ones with them.
    pub crashes: u64,
    /// Contents over their limit on time.
    pub hangs: u64,
    /// Contents over their limit on memory.
    pub ooms: u64,
    /// Bytes that trimming has taken off the kept files.
    pub trimmed_bytes: u64,
    /// The kept files, in the order of their content's size and name.
    pub kept: Vec<Kept>,
    /// Groups that crashes, hangs and oom went to, and those that trimming has run into.
    pub groups: Vec<CleanGroup>,
    /// How good the subset is.
    pub cover: Option<Cover>,
    /// Features that what was written should have reached, and did not.
    pub missing: Vec<Missing>,
    /// Features that what was written reached each time, and no run of the corpus had.
    #[serde(default)]
    pub gained: Vec<Gained>,
    /// Examples of files that could not be read.
    pub unread: Vec<Unread>,
    /// Sizes and times of all contents that ended well, and of those that were kept.
    pub spread: Option<Spread>,
    /// Runs of the target: on contents of the corpus.
    pub runs: u64,
    /// Runs of it by trimming.
    pub trim_runs: u64,
    /// Contents whose coverage the journal knew from an earlier call.
    pub known: u64,
    /// Longer files were left out, in bytes.
    pub max_len: u64,
    /// The way of execution.
    pub exec: Option<Way>,
    /// The corpus.
    pub corpus: Vec<OsText>,
    /// Where the kept files are.
    pub out: OsText,
    /// The corpus that the kept files were to be added to.
    #[serde(default)]
    pub onto: Option<OsText>,
    /// The name of the journal that knows what the contents reach.
    #[serde(default)]
    pub journal: String,
    /// Whether the kept files stand in the place of the corpus, too.
    #[serde(default)]
    pub in_place: bool,
    /// The old corpus, where it was replaced in place and kept.
    pub old: Option<OsText>,
    /// Wall time, in milliseconds.
    pub wall_ms: u64,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Which.
    pub step: StepName,
    /// Files that it took out.
    pub files: u64,
    /// Bytes that it took out.
    pub bytes: u64,
}

/// Which step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepName {
    /// Files whose content another one has.
    Duplicates,
    /// What cannot be read.
    Unreadable,
    /// What is longer than it may be.
    Oversized,
    /// Crashes, which went to their groups.
    Crashes,
    /// Runs over the limit on time, likewise.
    Hangs,
    /// Runs over the limit on memory, likewise.
    Ooms,
    /// Files whose features other kept files reach.
    Subset,
    /// Files whose features the corpus that is added to reaches.
    Onto,
    /// Bytes that kept files do not need for what they are kept for.
    Trimming,
}

impl StepName {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            StepName::Duplicates => "duplicates",
            StepName::Unreadable => "unreadable",
            StepName::Oversized => "oversized",
            StepName::Crashes => "crashes",
            StepName::Hangs => "hangs",
            StepName::Ooms => "out of memory",
            StepName::Subset => "redundant",
            StepName::Onto => "redundant with --onto",
            StepName::Trimming => "trimming",
        }
    }
}

/// A file that was kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The file as it was written.
    pub file: OsText,
    /// The file of the corpus that it was made of.
    pub from: OsText,
    /// The hex digits of that file's blake3.
    pub content: String,
    /// Why it was kept.
    pub why: String,
    /// Its size, in bytes.
    pub size: u64,
    /// The size before trimming, in bytes.
    pub size_before: u64,
    /// Time of a run, in microseconds: CPU time, or its share of the wall time where runs share a
    /// process.
    pub us: u64,
    /// Features that it reaches.
    pub features: u64,
    /// Features that no other file of the whole corpus reaches.
    pub only_here: u64,
    /// What trimming claims of it; null where it was not trimmed.
    pub claim: Option<String>,
}

/// A group that an input of the corpus belongs to, or that trimming has run into.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CleanGroup {
    /// The folder of its kind: `crashes`, `hangs`, `oom`, `flaky`.
    pub folder: String,
    /// The first 12 hex digits of the major key.
    pub major: String,
    /// What kind of death.
    pub class: String,
    /// Contents of the corpus in it; none where candidates of trimming or minimizing alone have run
    /// into it.
    pub count: u64,
}

/// How good the subset is, by its own measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cover {
    /// Weight of what was chosen (docs: "The subset").
    pub weight: u64,
    /// No subset that reaches as much weighs less than this.
    pub lower_bound: u64,
    /// Whether none weighs less than the one chosen.
    pub optimal: bool,
}

impl Cover {
    /// How much heavier than the bound, in percent.
    pub fn gap_percent(&self) -> f64 {
        match self.lower_bound {
            0 => 0.0,
            bound => (self.weight.saturating_sub(bound)) as f64 * 100.0 / bound as f64,
        }
    }
}

/// The target's own fuzzer's counts, in one run over the corpus and what was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCount {
    /// The count of all contents that end well; null where it could not count.
    pub before: Option<Counted>,
    /// The count of what was written.
    pub after: Option<Counted>,
    /// How many files its own merge has added, so that what was written counts no less.
    pub added: u64,
    /// Why it could not count and merge.
    pub why_not: Option<String>,
}

impl OwnCount {
    /// Whether it counts less of what was written than of the corpus.
    pub fn is_less(&self) -> bool {
        let both = self.before.zip(self.after);
        both.is_some_and(|(before, after)| after.cov < before.cov || after.ft < before.ft)
    }
}

/// The coverage that libFuzzer counts in a run over a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Places in the code: its `cov`.
    pub cov: u64,
    /// Features: its `ft`.
    pub ft: u64,
}

/// A feature that got lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Missing {
    /// The number of the place.
    pub edge: u32,
    /// The least and the greatest count of the range.
    pub counts: (u8, u8),
    /// The kept file that should have reached it, where one is known.
    pub file: Option<OsText>,
}

/// A file that was not read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unread {
    /// Which.
    pub file: OsText,
    /// Why.
    pub why: String,
}

/// A feature that was not there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gained {
    /// The place.
    pub edge: u32,
    /// How often it was passed: the least and the greatest count of the range.
    pub counts: (u8, u8),
}

/// Distributions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Bytes of all contents that ended well.
    pub sizes_before: Distribution,
    /// Bytes of what was kept.
    pub sizes_after: Distribution,
    /// Microseconds of a run with each content that ended well.
    pub times_before: Distribution,
    /// The same of what was kept.
    pub times_after: Distribution,
}

/// Files, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// How many files.
    pub files: u64,
    /// How many bytes they have together.
    pub bytes: u64,
}

impl Amount {
    /// Adds one file of so many bytes.
    pub fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }

    /// Removes one file of so many bytes, which was added.
    pub fn remove(&mut self, bytes: u64) {
        self.files -= 1;
        self.bytes -= bytes;
    }
}

impl std::ops::Add for Amount {
    type Output = Amount;

    fn add(self, other: Amount) -> Amount {
        Amount {
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl std::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Amount>>(all: I) -> Amount {
        all.fold(Amount::default(), |sum, one| sum + one)
    }
}

/// How many values lie in each range: 0, 1, 2 to 3, 4 to 7, 8 to 15, and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution(Vec<u64>);

impl Distribution {
    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        let range = (u64::BITS - value.leading_zeros()) as usize;
        if self.0.len() <= range {
            self.0.resize(range + 1, 0);
        }
        self.0[range] += 1;
    }

    /// The counts, from the least range on; behind the last there is none.
    pub fn counts(&self) -> &[u64] {
        &self.0
    }

    /// The least value of a range.
    pub fn least(range: usize) -> u64 {
        match range {
            0 => 0,
            range => 1 << (range - 1).min(63),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_in_its_range() {
        let mut spread = Distribution::default();
        for value in [0, 1, 2, 3, 4, 7, 8, u64::MAX] {
            spread.add(value);
        }
        assert_eq!(spread.counts()[..5], [1, 1, 2, 2, 1]);
        assert_eq!(spread.counts().len(), 65);
        assert_eq!([0, 1, 2, 3, 4].map(Distribution::least), [0, 1, 2, 4, 8]);
    }
}
