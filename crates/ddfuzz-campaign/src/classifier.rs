//! The reports of workers ([`Finding`]), and the classification of runs that did not pass.

use std::collections::{HashMap, HashSet};

use ddfuzz_exec::{Ended, ExecError, Executor, Target, Way};
use ddfuzz_model::files::Base64;
use ddfuzz_store::Kind;
use ddfuzz_triage::{Crash, Key, Quick, Triager, Verdict};

/// Classifies runs of one target.
pub(crate) struct RunClassifier {
    triager: Triager,
    crash_exit: Option<i32>,
    /// Minor keys that were reported in full. The runs of a worker come in ascending order, so
    /// a reader of its reports in order knows them too.
    reported: HashSet<Key>,
    /// Size of the smallest input that was reported in full, by major key, of crashes.
    least: HashMap<Key, u64>,
    /// Hangs are reported in full each time.
    hangs_in_full: bool,
}

impl RunClassifier {
    /// A classifier for `target`, which is run by `way`.
    pub(crate) fn of_target(target: &Target, way: Way) -> Result<RunClassifier, ExecError> {
        Ok(RunClassifier {
            triager: Triager::of_target(target, way)?,
            crash_exit: target.crash_exit,
            reported: HashSet::new(),
            least: HashMap::new(),
            hangs_in_full: false,
        })
    }

    /// The same, for a caller that decides of each run over its time whether it is a hang: none of
    /// them is reported as known.
    pub(crate) fn with_hangs_in_full(self) -> RunClassifier {
        RunClassifier {
            hangs_in_full: true,
            ..self
        }
    }

    /// What the last run of `executor` found, which ended so on `input`; `None` where it passed.
    pub(crate) fn judge(
        &mut self,
        ended: Ended,
        input: &[u8],
        executor: &dyn Executor,
    ) -> Result<Option<Classified>, ExecError> {
        match ended {
            // Its keys alone would be of no use, and take as long.
            Ended::Timeout if self.hangs_in_full => self.examine(ended, input, executor).map(Some),
            Ended::Timeout | Ended::OutOfMemory => self.name(ended, input, executor),
            _ if !self.triager.suspects(ended) => Ok(None),
            _ => self.name(ended, input, executor),
        }
    }

    fn name(
        &mut self,
        ended: Ended,
        input: &[u8],
        executor: &dyn Executor,
    ) -> Result<Option<Classified>, ExecError> {
        match self.triager.key(input)? {
            Quick::Crash {
                class,
                major,
                minor,
            } if self.reported.contains(&minor) && !self.is_smaller(major, input) => {
                let kind = Kind::of_class(&class);
                return Ok(Some(Classified::Known { kind, major }));
            }
            // Only suspected, and no crash by what it said.
            Quick::Ended(_) if ended.is_exit() && !ended.is_crash(self.crash_exit) => {
                return Ok(None);
            }
            _ => {}
        }
        self.examine(ended, input, executor).map(Some)
    }

    /// Whether an input is smaller than all of its group that were reported in full: it may have to
    /// be stored.
    fn is_smaller(&self, major: Key, input: &[u8]) -> bool {
        let least = self.least.get(&major);
        least.is_some_and(|least| (input.len() as u64) < *least)
    }

    fn examine(
        &mut self,
        ended: Ended,
        input: &[u8],
        executor: &dyn Executor,
    ) -> Result<Classified, ExecError> {
        Ok(match self.triager.examine(input)? {
            Verdict::Crash(crash) => {
                if !self.hangs_in_full || Kind::of_class(&crash.class) != Kind::Hang {
                    self.reported.insert(crash.keys.minor);
                }
                if Kind::of_class(&crash.class) == Kind::Crash {
                    let size = input.len() as u64;
                    let least = self.least.entry(crash.keys.major).or_insert(size);
                    *least = size.min(*least);
                }
                Classified::Crash(crash)
            }
            Verdict::Flaky { .. } => Classified::Flaky(Box::new(Crash {
                // What a shared process remembers of them may be why it died.
                preceding: executor.preceding().into_iter().map(Base64).collect(),
                ..self
                    .triager
                    .record_from_copies(ended, executor.copies().as_deref())
            })),
        })
    }
}

/// The class of a run that did not pass.
pub(crate) enum Classified {
    /// A crash, hang or memory blow-up whose minor key this worker reports for the first time, or
    /// a crash by a smaller input than those that it has reported of the group.
    Crash(Box<Crash>),
    /// One of a minor key that this worker has reported before.
    Known {
        /// What it is.
        kind: Kind,
        /// Which bug.
        major: Key,
    },
    /// One that did not happen again.
    Flaky(Box<Crash>),
}

impl Classified {
    /// Whether the input may have to be stored.
    pub(crate) fn is_new(&self) -> bool {
        !matches!(self, Classified::Known { .. })
    }
}

/// A run that did not pass.
pub(crate) struct Finding {
    pub(crate) run: u64,
    /// What rebuilds or names its input.
    pub(crate) name: String,
    /// Empty where the finding is known.
    pub(crate) input: Vec<u8>,
    pub(crate) what: Classified,
}
