//! [`Comparer`] changes an input where its run compares two values, so that they may become equal;
//! [`ComparisonValues`] are the compared values.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libafl::corpus::{CorpusId, HasCurrentCorpusId};
use libafl::inputs::BytesInput;
use libafl::mutators::{MutationResult, Mutator, Tokens};
use libafl::observers::cmp::{CmpValues, CmpValuesMetadata, CmplogBytes};
use libafl::state::HasCurrentTestcase;
use libafl::{Error, HasMetadata};
use libafl_bolts::Named;

use super::solve::{ComparisonSolver, SolvableComparisons};
use super::structure::StructureMutator;
use super::worker::State;
use ddfuzz_delta::Comparison;
use ddfuzz_exec::observe::{self, Observer};
use ddfuzz_exec::{Ended, Freshness, Target, Way};

/// Part of a worker's time that observing comparisons of corpus entries may take: one in this
/// number. Repairing checksums in mutants may take the same part in addition.
const SHARE_DIVISOR: u32 = 8;
/// Number of corpus entries whose comparisons a worker observes, and number of mutants that it
/// repairs, before the time for each activity is limited to a part of the worker's time. To observe
/// an entry takes tens of milliseconds with an unmodified program, and some 0.1 ms in the way
/// `harness`, the only one in which mutants are repaired.
const FREE: (u32, u32) = (16, 256);
/// Greatest number of corpus entries whose comparisons are cached; when there are more, the cache
/// is emptied.
const MAX_CACHED: usize = 4096;
/// Greatest number of words that observed comparisons add to the dictionary.
const MAX_WORDS: usize = 2048;
/// How many mutants with repaired checksums are made each time a corpus entry is mutated. The first
/// number applies while fewer mutants of the entry than this number were tried. Then the second
/// number applies if at least a quarter of the tried mutants could be repaired; otherwise none are
/// made.
const REPAIRS: (usize, usize) = (16, 64);
/// Greatest number of values that are replaced in one mutant to repair it; the mutant is run before
/// each replacement.
const MAX_REPAIRED: usize = 4;
/// Two limits on the mutants of a corpus entry in which compared values are made equal. The first
/// is the number of mutants for each solvable comparison when the entry is mutated for the first
/// time (later, it is 1). The second is the greatest number of them each time the entry is mutated.
const MUTANTS: (usize, usize) = (4, 512);

/// How often an activity was carried out (observing comparisons of corpus entries, or repairing
/// mutants), and the time that it has taken.
#[derive(Default)]
struct Spent {
    times: u32,
    time: Duration,
}

impl Spent {
    /// Returns true if the activity (observing comparisons, or repairing mutants) may be carried
    /// out once more: always the first `free` times, and later while it has taken less than its
    /// share ([`SHARE_DIVISOR`]) of the time since the worker began at `began`.
    fn has_time(&self, began: Instant, free: u32) -> bool {
        self.times < free || self.time < began.elapsed() / SHARE_DIVISOR
    }

    /// Records that the activity (observing comparisons, or repairing mutants) was carried out once
    /// more, and took the time `time`.
    fn add(&mut self, time: Duration) {
        self.times = self.times.saturating_add(1);
        self.time += time;
    }
}

/// Observes, once for each corpus entry, which values a run on it compares, and mutates the entry
/// so that two compared values may become equal.
pub(super) struct Comparer {
    target: Target,
    way: Way,
    /// The executor that reports comparisons; `None` before the first observation, for a target
    /// whose comparisons cannot be observed, and after an observation has failed.
    observer: Option<Box<dyn Observer>>,
    observer_started: bool,
    cache: HashMap<CorpusId, Arc<SolvableComparisons>>,
    /// For each corpus entry: how many of its mutants the comparer has tried to repair, and how
    /// many of these it could repair.
    repairs: HashMap<CorpusId, (usize, usize)>,
    words: usize,
    began: Instant,
    /// How often comparisons of corpus entries were observed, and how long that took.
    on_entries: Spent,
    /// How often mutants were repaired, and how long that took.
    on_repairs: Spent,
    /// The mutator that changes the corpus entry being mutated so that two compared values become
    /// equal.
    pub(super) solve: ComparisonSolver,
}

impl Comparer {
    /// Creates a comparer for `target`, which is executed in the way `way`; the executor that
    /// reports comparisons is started later.
    pub(super) fn new(target: &Target, way: Way) -> Comparer {
        Comparer {
            target: target.clone(),
            way,
            observer: None,
            observer_started: false,
            cache: HashMap::new(),
            repairs: HashMap::new(),
            words: 0,
            began: Instant::now(),
            on_entries: Spent::default(),
            on_repairs: Spent::default(),
            solve: ComparisonSolver::default(),
        }
    }

    /// Starts the executor that reports comparisons, unless a start was tried before. A target
    /// whose comparisons cannot be observed is fuzzed without them.
    fn start_observer(&mut self) {
        if !self.observer_started {
            self.observer_started = true;
            // Runs share a process where they can: a new one takes a hundred times as long.
            let observer = observe::start(&self.target, self.way, Freshness::Shared);
            self.observer = observer.ok().flatten();
        }
    }

    /// Runs the target on `input`, and returns how the run ended and which values it compared;
    /// `None` if the target's comparisons cannot be observed.
    fn observe(&mut self, input: &[u8]) -> Option<(Ended, ComparisonValues)> {
        match self.observer.as_mut()?.observe(input) {
            Ok((run, comparisons)) => Some((run.ended, ComparisonValues::of(&comparisons, input))),
            Err(_) => {
                self.observer = None;
                None
            }
        }
    }

    /// Returns the comparisons of a run on the scheduled input, from the cache or by a new run;
    /// empty if there is no time for a run, or the target's comparisons cannot be observed. A new
    /// run also adds compared byte strings to the dictionary.
    fn comparisons(&mut self, state: &mut State) -> Result<Arc<SolvableComparisons>, Error> {
        let Some(id) = state.current_corpus_id()? else {
            return Ok(Arc::default());
        };
        if let Some(known) = self.cache.get(&id) {
            return Ok(known.clone());
        }
        let input = state.current_input_cloned()?;
        if !self.on_entries.has_time(self.began, FREE.0) {
            return Ok(Arc::default());
        }
        self.start_observer();
        let began = Instant::now();
        let observed = self.observe(input.as_ref());
        self.on_entries.add(began.elapsed());
        let Some((_, compared)) = observed else {
            return Ok(Arc::default());
        };
        if self.words < MAX_WORDS {
            let tokens = state.metadata_or_insert_with(Tokens::new);
            for word in &compared.words {
                self.words += usize::from(tokens.add_token(word));
            }
        }
        if self.cache.len() >= MAX_CACHED {
            self.cache.clear();
        }
        let solvable = SolvableComparisons::of(compared.values.list, input.as_ref());
        let solvable = Arc::new(solvable);
        self.cache.insert(id, solvable.clone());
        Ok(solvable)
    }

    /// Prepares [`Comparer::solve`], the mutator of compared operands, for the scheduled input,
    /// and returns how many mutants it is to make: 0 if no comparisons are known.
    pub(super) fn begin(&mut self, state: &mut State) -> Result<usize, Error> {
        let solvable = self.comparisons(state)?;
        let times = match state.current_testcase()?.scheduled_count() {
            0 => MUTANTS.0,
            _ => 1,
        };
        let count = (solvable.weight() * times).min(MUTANTS.1);
        self.solve = ComparisonSolver(solvable);
        Ok(count)
    }

    /// Repairs values such as checksums in `input`, a mutant of the scheduled input, in at most
    /// [`MAX_REPAIRED`] steps. Each step runs the mutant, and looks for a failed comparison that a
    /// run on the scheduled input does not make. If one of the two compared values occurs in the
    /// mutant, it is replaced with the other one. Returns true if a value was replaced or a run did
    /// not end normally, and false if nothing was replaced.
    fn repair(&mut self, input: &mut Vec<u8>) -> bool {
        for done in 0..MAX_REPAIRED {
            let Some((ended, compared)) = self.observe(input) else {
                return done > 0;
            };
            if !ended.is_exit() {
                return true;
            }
            let Some((place, new)) = self.solve.0.repairing_edit(&compared.values.list, input)
            else {
                return done > 0;
            };
            input.splice(place, new);
        }
        true
    }

    /// Returns how many mutants of the scheduled input are to be made with repaired checksums
    /// ([`REPAIRS`]). 0 if 16 or more were tried before and fewer than a quarter of them could be
    /// repaired, or if repairing has taken its share of the time. Also 0 for all ways but
    /// `harness`, since in these a run takes much longer when its comparisons are observed.
    pub(super) fn repairs(&self, state: &State) -> Result<usize, Error> {
        if self.way != Way::Harness || !self.on_repairs.has_time(self.began, FREE.1) {
            return Ok(0);
        }
        let tried = state
            .current_corpus_id()?
            .and_then(|id| self.repairs.get(&id));
        Ok(match tried {
            Some((tries, repaired)) if *tries >= REPAIRS.0 && *repaired * 4 < *tries => 0,
            Some((tries, _)) if *tries >= REPAIRS.0 => REPAIRS.1,
            _ => REPAIRS.0,
        })
    }
}

/// A LibAFL mutator that makes a mutant with `havoc`, and then repairs checksums and similar values
/// in the mutant that no longer fit ([`Comparer::repair`]). It skips mutants in which there is
/// nothing to repair.
pub(super) struct Repairing<'a> {
    pub(super) comparer: &'a mut Comparer,
    pub(super) havoc: &'a mut StructureMutator,
}

impl Named for Repairing<'_> {
    fn name(&self) -> &Cow<'static, str> {
        &Cow::Borrowed("Repairing")
    }
}

impl Mutator<BytesInput, State> for Repairing<'_> {
    fn mutate(
        &mut self,
        state: &mut State,
        input: &mut BytesInput,
    ) -> Result<MutationResult, Error> {
        let id = state.current_corpus_id()?;
        if self.havoc.mutate(state, input)? == MutationResult::Skipped {
            return Ok(MutationResult::Skipped);
        }
        self.comparer.start_observer();
        let began = Instant::now();
        let is_repaired = self.comparer.repair(input.as_mut());
        self.comparer.on_repairs.add(began.elapsed());
        if let Some(id) = id {
            let (tries, repaired) = self.comparer.repairs.entry(id).or_default();
            *tries += 1;
            *repaired += usize::from(is_repaired);
        }
        Ok(match is_repaired {
            true => MutationResult::Mutated,
            false => MutationResult::Skipped,
        })
    }

    fn post_exec(&mut self, state: &mut State, new: Option<CorpusId>) -> Result<(), Error> {
        self.havoc.post_exec(state, new)
    }
}

/// Greatest length of an operand of a comparison, in bytes (LibAFL's `CmplogBytes`); longer ones
/// are cut.
const MAX_OPERAND: usize = 32;

/// The values that one run of a target has compared with each other.
#[derive(Debug, Default)]
pub struct ComparisonValues {
    /// Pairs of values that the target has compared with each other in one run, each pair once.
    pub values: CmpValuesMetadata,
    /// Byte strings of at least two bytes (no integers) that the target has compared and that the
    /// input does not contain. They become words of the dictionary, in full length. In `values`
    /// (the compared pairs), in contrast, both operands are cut to the length of the shorter one.
    pub words: Vec<Vec<u8>>,
}

impl ComparisonValues {
    /// Converts the comparisons that a run on `input` has made, in their order.
    ///
    /// Two operands of 1, 2, 4 or 8 bytes each are integers. They are recorded in their own width
    /// and also in the least width that holds both, since programs compare a character as an `int`.
    /// Other operands are byte strings, which are cut to the length of the shorter one and to 32
    /// bytes.
    pub fn of(comparisons: &[Comparison], input: &[u8]) -> ComparisonValues {
        let mut compared = ComparisonValues::default();
        for Comparison { left, right } in comparisons {
            match (left.len() == right.len(), left.len()) {
                (true, 1 | 2 | 4 | 8) => compared.integers(left, right),
                _ => compared.bytes(left, right, input),
            }
        }
        compared
    }

    fn integers(&mut self, left: &[u8], right: &[u8]) {
        let fits = |width: &usize| holds(left, *width) && holds(right, *width);
        let least = [1, 2, 4, 8].into_iter().find(fits).unwrap_or(left.len());
        self.push(&left[..least], &right[..least]);
        if least < left.len() {
            self.push(left, right);
        }
    }

    fn push(&mut self, left: &[u8], right: &[u8]) {
        let (one, other) = (number(left), number(right));
        let value = match left.len() {
            1 => CmpValues::U8((one as u8, other as u8, false)),
            2 => CmpValues::U16((one as u16, other as u16, false)),
            4 => CmpValues::U32((one as u32, other as u32, false)),
            _ => CmpValues::U64((one, other, false)),
        };
        self.add(value);
    }

    fn bytes(&mut self, left: &[u8], right: &[u8], input: &[u8]) {
        for operand in [left, right] {
            let word = operand.to_vec();
            if operand.len() > 1 && !is_part_of(operand, input) && !self.words.contains(&word) {
                self.words.push(word);
            }
        }
        let length = left.len().min(right.len()).min(MAX_OPERAND);
        if length > 0 && left[..length] != right[..length] {
            self.add(CmpValues::Bytes((
                cut(&left[..length]),
                cut(&right[..length]),
            )));
        }
    }

    fn add(&mut self, value: CmpValues) {
        if !self.values.list.contains(&value) {
            self.values.list.push(value);
        }
    }
}

/// Returns true if the first `width` bytes of the little-endian integer `bytes` suffice for its
/// value, read as an unsigned or as a signed number: all further bytes are 0, or only extend the
/// sign.
fn holds(bytes: &[u8], width: usize) -> bool {
    let Some((low, high)) = bytes.split_at_checked(width) else {
        return true;
    };
    let negative = low[width - 1] & 0x80 != 0;
    let all = |filler: u8| high.iter().all(|byte| *byte == filler);
    all(0) || negative && all(0xff)
}

/// Returns the integer that `bytes`, at most eight of them, encode in little-endian order.
fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

fn cut(bytes: &[u8]) -> CmplogBytes {
    let mut buffer = [0; MAX_OPERAND];
    buffer[..bytes.len()].copy_from_slice(bytes);
    CmplogBytes::from_buf_and_len(buffer, bytes.len() as u8)
}

fn is_part_of(part: &[u8], whole: &[u8]) -> bool {
    whole.windows(part.len()).any(|window| window == part)
}
