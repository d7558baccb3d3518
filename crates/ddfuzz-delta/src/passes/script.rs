//! The searches [`Subset`] and [`Full`]: which passes they run, in which order, and until when.

use std::sync::Arc;

use crate::document::Structure;
use crate::passes::binary::{LARGEST, binary, delete_blocks, unchecked_records};
use crate::passes::by_structure::{
    Found, may_be_framed, reduce_brackets, reduce_by_structure, reduce_lines, reduce_words,
};
use crate::passes::container::delete_parts_again;
use crate::passes::coroutine::{Coroutine, is_search};
use crate::passes::current_best::CurrentBest;
use crate::passes::deletions::{VainRuns, pairs, runs, singles, stretches};
use crate::passes::framed::{LARGEST_FRAME, framed_text};
use crate::passes::list::ListSearch;
use crate::passes::multiples::multiples;
use crate::passes::mutations::Mutations;
use crate::passes::normalize::{LEAST, MOST_TESTS, SMALL, last_form, normalize, shortlex};
use crate::passes::refine::refine;
use crate::passes::strides::strides;
use crate::passes::units::{Bytes, Lines};

/// A search that minimizes by deletions alone, in an order that needs few tests. The result is a
/// subsequence of the input. It is 1-minimal if the last round of tests found each single unit to
/// be needed.
#[derive(Clone)]
pub struct Subset(Coroutine);

impl Subset {
    /// Name of the search by deletions alone on command lines and in logs.
    pub const NAME: &'static str = "subset";

    /// Creates a search over the bytes of `text`, which must have given FAIL. The appearance of the
    /// text (lines, brackets, sequences of equal bytes) decides which passes run.
    pub fn new(text: &[u8]) -> Subset {
        let text: Arc<[u8]> = text.into();
        Subset(Coroutine::new(text.len(), move |asker| {
            let work = CurrentBest::new(asker, text.clone());
            Box::pin(script(work, Plan::Delete, Structure::Unknown, plain))
        }))
    }

    /// Creates a search over `units` units of any kind, which together must have given FAIL.
    ///
    /// ```
    /// use ddfuzz_delta::{Outcome, Subset, minimize};
    ///
    /// let events: Vec<u32> = (0..1000).collect();
    /// let fails = |kept: &[u32]| match kept.contains(&95) && kept.contains(&896) {
    ///     true => Outcome::Fail,
    ///     false => Outcome::Pass,
    /// };
    /// assert_eq!(minimize(&events, Subset::of_units, fails), Ok(vec![95, 896]));
    /// ```
    pub fn of_units(units: usize) -> Subset {
        Subset(Coroutine::new(units, move |asker| {
            Box::pin(reduce_units(CurrentBest::of_units(asker, units)))
        }))
    }
}

is_search!(Subset);

/// A search that minimizes bytes by all passes: it deletes bytes, replaces bytes by `0`, and keeps
/// numbers of binary formats correct. The result is never longer than the input.
///
/// The result is 1-minimal if the last round of tests found each single byte to be needed. In a
/// result of at most [`Full::SMALL`] bytes, no single byte can become `0`, unless the tests for
/// that were used up: among results of one size, the search prefers the least in *shortlex* order.
#[derive(Clone)]
pub struct Full(Coroutine);

impl Full {
    /// Name of the search by deletions and replacements on command lines and in logs.
    pub const NAME: &'static str = "full";

    /// Maximum size, in bytes, of results in which `0` is tried in place of every byte.
    pub const SMALL: usize = SMALL;

    /// Maximum size, in bytes, of binary data of an unknown format that is searched for records,
    /// and for numbers (such as lengths and checksums) that only the comparisons of a run show.
    pub const LARGEST_RECORDS: usize = LARGEST;

    /// Maximum size, in bytes, of binary data of an unknown format that is searched for a length or
    /// a checksum of the whole data.
    pub const LARGEST_FRAME: usize = LARGEST_FRAME;

    /// The byte that replaces bytes whose values do not matter: the digit `0` (0x30).
    pub const LEAST: u8 = LEAST;

    /// Creates a search over the bytes of `text`, which must have given FAIL and of whose structure
    /// nothing is known.
    pub fn new(text: &[u8]) -> Full {
        Full::structured(text, Structure::Unknown)
    }

    /// Creates a search over the bytes of `text`, which must have given FAIL and whose structure is
    /// known. If the structure does not fit, it costs a few tests.
    pub fn structured(text: &[u8], structure: Structure) -> Full {
        Full::nested(text, structure, plain)
    }

    /// Creates a search like [`Full::structured`] that also reduces a text inside of a binary frame
    /// by the structure that `inner` returns for this text: for example, a JSON document behind its
    /// length and its checksum. `inner` must return the same structure each time for the same text.
    pub fn nested(text: &[u8], structure: Structure, inner: fn(&[u8]) -> Structure) -> Full {
        let text: Arc<[u8]> = text.into();
        Full(Coroutine::new(text.len(), move |asker| {
            let work = CurrentBest::new(asker, text.clone());
            Box::pin(script(work, Plan::Rewrite, structure.clone(), inner))
        }))
    }

    /// Creates a search like [`Full::structured`] for failures whose tests take much longer than
    /// others, such as hangs: before all other passes it deletes large parts, the halves of the
    /// text first, so that few failing tests make the text much smaller.
    pub fn in_large_parts(text: &[u8], structure: Structure) -> Full {
        let text: Arc<[u8]> = text.into();
        Full(Coroutine::new(text.len(), move |asker| {
            let mut work = CurrentBest::new(asker, text.clone());
            let structure = structure.clone();
            Box::pin(async move {
                delete_large_parts(&mut work).await;
                script(work, Plan::Rewrite, structure, plain).await;
            })
        }))
    }
}

is_search!(Full);

/// Minimum size, in bytes, of texts in which it is tested whether the values of bytes matter.
const NORMALIZED: usize = 4;
/// Maximum size, in bytes, of texts in which `0` is written over bytes before the sweep (the
/// deletion of bytes from the end to the front), if bytes at the front were not needed. In larger
/// texts, the sweep comes first and leaves fewer bytes.
const MEDIUM: usize = 4096;
/// Number of UNRESOLVED tests after which the deletion of single bytes is interrupted, and groups
/// of bytes are deleted first.
const UNRESOLVED_LIMIT: usize = 2;
/// Number of successive needed bytes after which the first deletion of single bytes of binary data
/// ends: the data probably consist of records, which are deleted first, in far fewer tests.
const DENSE: usize = 32;
/// Number of successive needed groups of two bytes after which their deletion ends in binary data:
/// where so many are needed, it is not the parity of the size that matters.
const MANY_GROUPS: usize = 1024;
/// Number of tests of the search up to which the extra passes (deleting pairs of bytes, writing `0`
/// over bytes) get no tests.
const CHEAP: usize = 24;
/// Number of tests of the search, after the first [`CHEAP`], for which an extra pass gets one test.
const TESTS_PER_EXTRA: usize = 32;
/// Maximum number of tests without success that an extra pass (pairs of bytes, values of bytes)
/// gets in one round.
const MOST: usize = 2;
/// Maximum size, in bytes, of results in which it is tested whether single bytes can become `0`,
/// before the proof of 1-minimality.
const SHORT: usize = 16;
/// Maximum number of pairs of bytes in a result for the deletion of all pairs to be tried, however
/// few tests the search took.
const CHEAP_PAIRS: usize = 6;
/// Maximum size, in bytes, of a minimized text in which deleting two single bytes at once is tried.
const FEW: usize = 32;

/// Maximum size, in bytes, of plain texts (without control characters) in which the deletion of
/// sequences of bytes is tried.
const SHORT_TEXT: usize = 32;

/// Minimum size, in bytes, of the parts that are deleted before all other passes if failing tests
/// take long.
const LEAST_PART: usize = 16;

/// Size, in bytes, above which large sequences of lines of a text are deleted before all other
/// passes.
const HUGE: usize = 1 << 20;
/// Number of sequences of lines, of about the same size, into which a text of more than [`HUGE`]
/// bytes is divided.
const RUNS: usize = 64;
/// Number of successive sequences of lines that turn out to be needed for the failure, after which
/// no further ones are deleted.
const FRUITLESS_RUNS: usize = 4;

/// The kinds of changes that a search may make to its input: deletions only, or also replacements
/// of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// The search may delete bytes only.
    Delete,
    /// The search may delete and replace bytes.
    Rewrite,
}

/// Runs a whole search on `work`: all passes (kinds of deletions and replacements) in order, and
/// then rounds of passes until a round changes nothing. `plan`: which changes are allowed; `known`:
/// the structure of the input, as far as it is known; `inner`: returns the structure of a text
/// inside of the input.
pub(super) async fn script(
    mut work: CurrentBest,
    plan: Plan,
    mut known: Structure,
    inner: fn(&[u8]) -> Structure,
) {
    begin(&mut work, &known).await;
    let mut found = reduce_by_structure(&mut work, &mut known).await;
    let is_framed = plan == Plan::Rewrite
        && !found.contained
        && may_be_framed(&mut work, &known)
        && framed_text(&mut work, inner).await;
    // Searches that are replayed from logs without a structure do not know newer rules.
    let is_replayable = matches!(known, Structure::Unknown);
    found.structured |= is_framed || reduce_brackets(&mut work, &found).await;
    let was_large = plan == Plan::Rewrite && !is_replayable && work.len() > LARGEST;
    // A binary frame may contain a text.
    found.structured |=
        !found.structured && plan == Plan::Rewrite && binary(&mut work, is_replayable).await;
    reduce_words(&mut work, &found).await;
    let Found {
        contained,
        by_words,
        structured,
        ..
    } = found;
    // Literals of a text whose syntax is known are as short as can be, and zeros over others are
    // errors.
    let bytes_plan = match known {
        Structure::Syntax(_) if contained => Plan::Delete,
        _ => plan,
    };
    let with_runs = plan == Plan::Rewrite && !contained;
    let is_dense = with_runs && !is_replayable && !work.is_text();
    let rounds = Rounds {
        plan,
        bytes: SingleBytes {
            plan: bytes_plan,
            structured,
            most_needed: if is_dense { DENSE } else { usize::MAX },
            most_groups: if is_dense { MANY_GROUPS } else { usize::MAX },
            cut_short: false,
        },
        with_runs,
        by_words,
        vain: VainRuns::default(),
        was_large: was_large && !structured && !by_words,
    };
    rounds.run(&mut work, &known).await;
}

/// The rounds of passes that follow those for the structure of the input, with what is known of the
/// text.
struct Rounds {
    /// Kinds of changes that the search may make to its input.
    plan: Plan,
    /// The pass that deletes single bytes.
    bytes: SingleBytes,
    /// Whether sequences of bytes, and records of one size, are deleted.
    with_runs: bool,
    /// Whether the text was reduced word by word.
    by_words: bool,
    /// The text in which no sequence of bytes could be deleted, so that its sequences are not tried
    /// again.
    vain: VainRuns,
    /// Whether the binary data was too large to be searched for records, and is to be searched as
    /// soon as it is small enough.
    was_large: bool,
}

impl Rounds {
    /// Runs all passes in rounds, until one round changes nothing.
    async fn run(mut self, work: &mut CurrentBest, known: &Structure) {
        let (mut by_groups, mut values) = (self.bytes.structured, MOST_TESTS);
        let mut mutations = Mutations::new();
        let mut refined = None;
        loop {
            let repeats = self.delete(work, known).await;
            if self.was_large && work.len() <= LARGEST {
                self.was_large = false;
                if binary(work, false).await {
                    continue;
                }
            }
            if repeats {
                continue;
            }
            extras(work, self.plan).await;
            let clean = work.reductions();
            let unresolved = singles(work).await;
            if work.reductions() == clean && unresolved && !by_groups {
                // Most bytes are needed only because another bug occurs without them.
                by_groups = true;
                reduce_groups(work, self.bytes.most_groups).await;
            }
            if work.reductions() > clean {
                continue;
            }
            if self.plan == Plan::Rewrite && last_form(work, &mut values).await {
                continue;
            }
            let is_replayable = matches!(known, Structure::Unknown);
            if self.plan == Plan::Rewrite && !is_replayable && stretches(work).await {
                continue;
            }
            if self.plan == Plan::Rewrite && refine(work, known, &mut refined).await {
                continue;
            }
            if !mutations.run(work, known).await {
                return;
            }
            delete_parts_again(work, known).await;
        }
    }

    /// Deletes single bytes, records and sequences of bytes. Returns true if this has to be
    /// repeated, because records were deleted or not all single bytes were tried.
    async fn delete(&mut self, work: &mut CurrentBest, known: &Structure) -> bool {
        self.bytes.reduce(work).await;
        if self.bytes.cut_short && unchecked_records(work, DENSE).await {
            return true;
        }
        if multiples(work, known).await || self.with_runs && strides(work).await {
            return true;
        }
        // Runs come before single bytes, because they may delete many bytes at once.
        while self.with_runs
            && may_have_runs(work, self.by_words)
            && runs(work, &mut self.vain).await
        {
            self.bytes.reduce(work).await;
        }
        if matches!(known, Structure::Unknown) {
            // Searches that are replayed from logs without a structure try all runs again.
            self.vain = VainRuns::default();
        }
        if self.bytes.cut_short {
            self.bytes.most_needed = usize::MAX;
            return true;
        }
        false
    }
}

/// Makes the first deletions of a search, which take few tests: of the bytes that the run of the
/// whole input did not read, and of large sequences of lines. If the caller said what structure the
/// input has (`known`), also allows passes to guess from deleted bytes which others are not needed.
async fn begin(work: &mut CurrentBest, known: &Structure) {
    // Searches that are replayed from logs without a structure do not know these deletions.
    if !matches!(known, Structure::Unknown) {
        work.repeat_deletions();
    }
    cut_unread(work).await;
    delete_runs_of_lines(work, known).await;
}

/// Deletes parts of the text, from its end to its front: halves of the text first, then parts of
/// half that size, and so on.
async fn delete_large_parts(work: &mut CurrentBest) {
    let mut part = work.len() / 2;
    while part >= LEAST_PART {
        let mut end = work.len();
        while end > 0 {
            let start = end.saturating_sub(part);
            if end - start < work.len() {
                work.cut("halves", start..end).await;
            }
            end = start;
        }
        part = part.min(work.len()) / 2;
    }
}

/// Deletes large sequences of lines of a text of more than [`HUGE`] bytes, for which other passes
/// would take long, as long as each round halves the text. Does nothing to a file of a known
/// format.
async fn delete_runs_of_lines(work: &mut CurrentBest, known: &Structure) {
    let is_file = matches!(known, Structure::Format(_));
    while !is_file && work.len() > HUGE && work.is_text() {
        let before = work.len();
        let mut units = Lines::in_runs(work, before / RUNS);
        let mut list = ListSearch::new(work, &mut units).stop_after(FRUITLESS_RUNS);
        list.reduce().await;
        if work.len() > before / 2 {
            return;
        }
    }
}

/// Returns [`Structure::Text`] for each text inside of the input, since nothing is known of its
/// structure.
fn plain(_: &[u8]) -> Structure {
    Structure::Text
}

/// Returns true if it is worth testing the deletion of sequences of bytes. Returns false for a text
/// of more than [`SHORT_TEXT`] bytes without control characters that was reduced word by word
/// (`by_words`): such a text has no length bytes.
fn may_have_runs(work: &mut CurrentBest, by_words: bool) -> bool {
    !by_words || work.len() <= SHORT_TEXT || !has_no_control(&work.text())
}

/// Returns true if a text has no control characters other than white space.
fn has_no_control(text: &[u8]) -> bool {
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    !text.iter().any(is_control)
}

/// Runs a whole search over units of unknown kind: deletes units until a whole round changes
/// nothing.
pub(super) async fn reduce_units(mut work: CurrentBest) {
    loop {
        let mut all = Bytes::all(&work, "units", 1, 0);
        ListSearch::new(&mut work, &mut all).reduce().await;
        let clean = work.reductions();
        singles(&mut work).await;
        if work.reductions() == clean {
            return;
        }
    }
}

/// Tests deletions of pairs of bytes, and single bytes replaced by `0`. The number of these tests
/// is a small share of the tests that the search has made so far.
async fn extras(work: &mut CurrentBest, plan: Plan) {
    let budget = (work.asked().saturating_sub(CHEAP) / TESTS_PER_EXTRA).min(MOST);
    if work.len() <= FEW {
        let all = work.len() * work.len().saturating_sub(1) / 2;
        pairs(work, if all <= CHEAP_PAIRS { all } else { budget / 2 }).await;
    }
    // After a replaced value, all single deletions must be tried again.
    if plan == Plan::Rewrite && work.len() <= SHORT {
        shortlex(work, budget).await;
    }
}

/// Deletes the bytes that the run of the whole input did not read, in one test.
async fn cut_unread(work: &mut CurrentBest) {
    if let Some(read) = work
        .hints()
        .read
        .filter(|read| (1..work.len()).contains(read))
    {
        let len = work.len();
        work.cut("unread", read..len).await;
    }
}

/// The pass that deletes single bytes of the text, with what is known of the text.
struct SingleBytes {
    /// Whether `0` may be written over bytes.
    plan: Plan,
    /// True for a text with brackets or with known numbers, in which UNRESOLVED tests are due to
    /// these and not counted.
    structured: bool,
    /// Number of successive needed bytes after which the deletion of single bytes ends.
    most_needed: usize,
    /// Number of successive needed groups of two bytes after which the deletion of groups ends.
    most_groups: usize,
    /// True if the last deletion of single bytes ended before all bytes were tried.
    cut_short: bool,
}

impl SingleBytes {
    /// Deletes single bytes of the text. If too many tests are UNRESOLVED, deletes blocks and groups
    /// of two bytes first, and then single bytes again.
    async fn reduce(&mut self, work: &mut CurrentBest) {
        loop {
            self.cut_short = false;
            if self.reduce_plain(work).await {
                return;
            }
            // Most programs that fail in another way do so because of a wrong length.
            let is_first = self.most_needed < usize::MAX;
            if !is_first || !delete_blocks(work, self.most_needed).await {
                break;
            }
        }
        reduce_groups(work, self.most_groups).await;
        let mut units = Bytes::all(work, "bytes", 1, 0);
        let mut list = ListSearch::new(work, &mut units).stop_after(self.most_needed);
        list.reduce().await;
        self.cut_short = list.has_stopped();
    }

    /// Deletes lines, then bytes at both ends and in the middle of the text, writes `0` over bytes
    /// if the plan allows it, and then deletes the remaining unneeded bytes. Returns false if it
    /// gave up because of UNRESOLVED tests.
    async fn reduce_plain(&mut self, work: &mut CurrentBest) -> bool {
        let patience = match self.structured {
            true => usize::MAX,
            false => UNRESOLVED_LIMIT,
        };
        reduce_lines(work).await;
        let mut units = Bytes::all(work, "bytes", 1, 0);
        let mut list = ListSearch::new(work, &mut units)
            .give_up_after(patience)
            .stop_after(self.most_needed);
        let ends = list.ends().await;
        if list.middle(ends).await {
            return true;
        }
        // If needed bytes are far apart, values are tested after the sweep has left few bytes.
        let apart = ends.front == 0 && list.len() > MEDIUM;
        if apart {
            list.sweep(ends).await;
            self.cut_short = list.has_stopped();
        }
        if list.has_given_up() {
            return false;
        }
        if self.plan == Plan::Rewrite && work.len() >= NORMALIZED {
            normalize(work).await;
        }
        if apart {
            return true;
        }
        let mut units = Bytes::all(work, "bytes", 1, 0);
        let mut list = ListSearch::new(work, &mut units)
            .give_up_after(patience)
            .stop_after(self.most_needed);
        list.sweep(ends).await;
        self.cut_short = list.has_stopped();
        !list.has_given_up()
    }
}

/// Deletes groups of two neighboring bytes, first those that begin at even and then those at odd
/// offsets, for inputs in which the parity of a size or position matters. Each ends when
/// `most_needed` groups in a row were needed.
async fn reduce_groups(work: &mut CurrentBest, most_needed: usize) {
    for skipped in [0, 1] {
        let mut units = Bytes::all(work, "groups", 2, skipped);
        let mut list = ListSearch::new(work, &mut units).stop_after(most_needed);
        list.reduce().await;
    }
    if work.len() <= FEW {
        pairs(work, FEW * FEW / 2).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::interruption::{Interruption, interruptible};
    use crate::passes::plain::{PlainText, has_semicolons};
    use crate::passes::tree::parse;
    use crate::passes::words::tokens;
    use crate::{Grammar, Outcome, Search};

    #[test]
    fn halves_are_deleted_first_where_failing_tests_take_long() {
        let mut text = vec![b'.'; 300];
        text[200] = b'!';
        text[299] = b'\n';
        let mut search = Full::in_large_parts(&text, Structure::Text);
        let (mut best, mut failing) = (text.clone(), 0);
        while best.len() > 20 {
            let candidate = search.next().expect("a candidate");
            let mut shorter = Vec::new();
            candidate.write_into(&text, &best, &mut shorter);
            let fails = shorter.contains(&b'!');
            failing += usize::from(fails);
            search.tell(match fails {
                true => Outcome::Fail,
                false => Outcome::Pass,
            });
            best = if fails { shorter } else { best };
        }
        assert_eq!(failing, 5, "nearly each failing test halves the text");
    }

    #[test]
    fn a_text_larger_than_a_mebibyte_first_loses_large_runs_of_lines() {
        let mut text = "a line of (words); others\n".repeat(120_000).into_bytes();
        let needle = text.len() / 3;
        text[needle..needle + 6].copy_from_slice(b"needle");
        let fails = |text: &[u8]| text.windows(6).any(|six| six == b"needle");
        let mut search = Full::structured(&text, Structure::Text);
        let (mut best, mut tests) = (text.clone(), 0);
        while let Some(candidate) = search.next().filter(|_| best.len() > HUGE) {
            assert_eq!(candidate.rule.name(), "lines");
            tests += 1;
            let mut shorter = Vec::new();
            candidate.write_into(&text, &best, &mut shorter);
            let outcome = if fails(&shorter) {
                Outcome::Fail
            } else {
                Outcome::Pass
            };
            best = if fails(&shorter) { shorter } else { best };
            search.tell(outcome);
        }
        assert!(
            best.len() <= HUGE && tests < 16,
            "{} bytes, {tests} tests",
            best.len()
        );
    }

    #[test]
    fn steps_on_texts_can_be_interrupted() {
        let text = b"f(\"a\") { b; } // c\n".repeat(1 << 10);
        let [up, down]: [Interruption; 2] = [Arc::new(|| true), Arc::new(|| false)];
        let mut search = Full::structured(&text, Structure::Text);
        assert!(interruptible(Some(&down), || search.next()).is_some());
        let step = || search.tell(Outcome::Pass);
        assert_eq!(interruptible(Some(&up), step), None);
        let readers: [&dyn Fn(); 4] = [
            &|| drop(tokens(&text)),
            &|| drop(parse(&text)),
            &|| drop(PlainText.parse(&text)),
            &|| {
                has_semicolons(&text);
            },
        ];
        for read in readers {
            assert_eq!(interruptible(Some(&up), read), None);
        }
    }
}
