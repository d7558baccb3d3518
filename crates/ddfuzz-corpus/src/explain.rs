//! Explains why a cleanup kept a file or left it out (`ddfuzz clean --explain`).

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::Path;

use super::journal::JournalView;
use super::measure::{JOURNAL_OF_FRESH, NotRead, read_input};
use super::{CleanError, CleanPaths, ContentId, Features};
use ddfuzz_minimize::log::ContentHash;
use ddfuzz_model::files::OsText;
use ddfuzz_store::report::clean::{CleanResult, KeptFile};
use ddfuzz_store::{CrashLine, EntryId, Reader, hash_of};

/// Whether a cleanup kept a file, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// Whether the file was kept, in its original or trimmed form.
    pub kept: bool,
    /// Whether the file was part of the cleaned corpus, as far as the cleanup's result and journal
    /// tell.
    pub in_corpus: bool,
    /// Why the cleanup kept the file or left it out, as a sentence for the user.
    pub why: String,
}

impl Fate {
    fn new(kept: bool, in_corpus: bool, why: String) -> Fate {
        Fate {
            kept,
            in_corpus,
            why,
        }
    }
}

/// Maximum number of kept files that an explanation why a file was left out names as those that
/// reach the file's features.
const NAMED: usize = 3;

/// Explains to the user why a cleanup kept a file or left it out. Reads each file of the output
/// directory at most once, when an explanation first needs it.
pub struct Explainer<'a> {
    place: &'a CleanPaths,
    result: &'a CleanResult,
    /// The journal of the cleanup's runs, once it was read; `None` if its file no longer exists or
    /// is not a journal.
    journal: OnceCell<Option<JournalView>>,
    /// The kept files, each with the features that it reaches.
    reached: OnceCell<Vec<(&'a KeptFile, Features)>>,
    failing: OnceCell<FailingInputs>,
}

/// What is known of a corpus's failing inputs: those stored in the output directory, and those that
/// triage has run.
struct FailingInputs {
    /// Ids of the stored inputs, by the hash of their content (16 hex digits).
    stored: HashMap<String, EntryId>,
    /// The last crash of each content that triage has run.
    triaged: HashMap<ContentHash, CrashLine>,
}

/// Returns the value that `cell` holds. If it is empty, first stores the value that `make` returns;
/// fails if `make` does.
fn made<T>(
    cell: &OnceCell<T>,
    make: impl FnOnce() -> Result<T, CleanError>,
) -> Result<&T, CleanError> {
    if cell.get().is_none() {
        let value = make()?;
        return Ok(cell.get_or_init(|| value));
    }
    cell.get().ok_or(CleanError::Interrupted)
}

impl<'a> Explainer<'a> {
    /// Makes an explainer for the cleanup that has the output directory `place` and the result
    /// `result`.
    pub fn new(place: &'a CleanPaths, result: &'a CleanResult) -> Explainer<'a> {
        Explainer {
            place,
            result,
            journal: OnceCell::new(),
            reached: OnceCell::new(),
            failing: OnceCell::new(),
        }
    }

    fn journal(&self) -> Result<Option<&JournalView>, CleanError> {
        let journal = match self.result.journal == JOURNAL_OF_FRESH {
            true => self.place.fresh_journal(),
            false => self.place.journal(),
        };
        let view = made(&self.journal, || Ok(JournalView::open(&journal)?))?;
        Ok(view.as_ref())
    }

    /// Explains whether and why a cleanup kept `file` or left it out. Reads the file and what the
    /// cleanup has stored, and runs nothing.
    ///
    /// # Errors
    /// If the output directory or the journal cannot be read. A `file` that cannot be read is not
    /// an error.
    pub fn explain(&self, file: &Path) -> Result<Fate, CleanError> {
        let result = self.result;
        let out = |why: String| Ok(Fate::new(false, true, why));
        let mut bytes = Vec::new();
        match read_input(file, result.max_len, &mut bytes) {
            Ok(()) => {}
            Err(why @ NotRead::Oversized { .. }) => return out(why.to_string()),
            Err(NotRead::Vanished) => return Ok(gone(result, file)),
            Err(why) => return out(format!("it cannot be read: {why}")),
        }
        let id = ContentId::of(&bytes);
        let content = id.to_string();
        if let Some(kept) = written_as(result, file) {
            return Ok(Fate::new(
                true,
                true,
                format!(
                    "it is the kept copy of {}: {}",
                    shown(&kept.from),
                    said(kept)
                ),
            ));
        }
        if let Some(kept) = result.kept.iter().find(|kept| kept.content == content) {
            return match is_same(&kept.from, file) {
                true => Ok(Fate::new(true, true, said(kept))),
                false => out(format!(
                    "it is a duplicate of {}, which is kept",
                    shown(&kept.from)
                )),
            };
        }
        if let Some(group) = self.group_of(&bytes)? {
            return out(group);
        }
        let Some(view) = self.journal()? else {
            return out("the journal of the cleanup is gone: clean the corpus again".to_owned());
        };
        out(match view.first_run(&id)? {
            None => {
                let why = "no file of its content was run".to_owned();
                return Ok(Fate::new(false, false, why));
            }
            Some(seen) if seen.suspicious => format!("it ended by {}", seen.ended),
            Some(seen) => match seen.features {
                None if result.edges_before.is_some() => {
                    let ended = seen.ended;
                    format!("its run reported no coverage: it ended by {ended}")
                }
                None => "a smaller input has the same behaviour".to_owned(),
                Some(features) => self.covered(view, &features)?,
            },
        })
    }

    /// Returns an explanation why a cleanup left out a file: kept files reach all of its
    /// `features`. Names up to three of them, and says how many more there are.
    fn covered(&self, view: &JournalView, features: &Features) -> Result<String, CleanError> {
        let mut left = features.clone();
        let others = made(&self.reached, || reached_by_kept(view, self.result))?;
        let mut named = Vec::new();
        // Greedily, the kept file that reaches most of the remaining features.
        while !left.is_empty() {
            let best = others
                .iter()
                .map(|(kept, reached)| (left.and(reached), kept));
            let Some((both, kept)) = best.reduce(|a, b| if b.0.len() > a.0.len() { b } else { a })
            else {
                break;
            };
            if both.is_empty() {
                break;
            }
            named.push(format!("{} ({})", shown(&kept.from), both.len()));
            left = left.less(&both);
        }
        let more = named.len().saturating_sub(NAMED);
        named.truncate(NAMED);
        let mut by = named.join(", ");
        if more > 0 {
            by += &format!(" and {more} more");
        }
        let onto = self.result.onto.as_ref().map(shown);
        Ok(reached(features.len(), left.len(), &by, onto.as_deref()))
    }

    /// Explains what a cleanup did with a failing file that has the content `bytes`: names its
    /// crash group. `None` if the content is in no group.
    fn group_of(&self, bytes: &[u8]) -> Result<Option<String>, CleanError> {
        let hash = hash_of(bytes);
        let failing = made(&self.failing, || FailingInputs::read(self.place))?;
        if let Some(id) = failing.stored.get(&hash) {
            let (folder, major, minor) = (id.kind().folder(), id.major(), id.minor());
            let why = format!("it fails, and is stored in {folder}/{major}/{minor}/{hash}");
            return Ok(Some(why));
        }
        // Of inputs with the same crash only one is stored.
        let crash = failing.triaged.get(&ContentHash::of(bytes));
        Ok(crash.map(|crash| {
            let (folder, major) = (crash.kind.folder(), crash.major.short());
            format!("it fails like the inputs in {folder}/{major}")
        }))
    }
}

impl FailingInputs {
    fn read(place: &CleanPaths) -> Result<FailingInputs, CleanError> {
        let reader = Reader::open(place.root())?;
        let mut stored = HashMap::new();
        for id in reader.originals()? {
            stored.entry(id.hash().to_owned()).or_insert(id);
        }
        let lines = reader.triaged()?.into_iter();
        let crashes = lines.filter_map(|line| Some((line.input, line.crash?)));
        Ok(FailingInputs {
            stored,
            triaged: crashes.collect(),
        })
    }
}

/// Returns the kept files, each with the features that its first run reached before it was trimmed.
fn reached_by_kept<'a>(
    view: &JournalView,
    result: &'a CleanResult,
) -> Result<Vec<(&'a KeptFile, Features)>, CleanError> {
    let mut all = Vec::new();
    for kept in &result.kept {
        let Some(id) = ContentId::parse(kept.size_before, &kept.content) else {
            continue;
        };
        let reached = view.first_run(&id)?.and_then(|seen| seen.features);
        all.push((kept, reached.unwrap_or_default()));
    }
    Ok(all)
}

/// Explains what a cleanup did with `file`, which no longer exists. Only kept files, and examples
/// of unreadable ones, are recorded by name; for any other file the explanation says that nothing
/// is known.
fn gone(result: &CleanResult, file: &Path) -> Fate {
    if let Some(kept) = result.kept.iter().find(|kept| is_same(&kept.from, file)) {
        return Fate::new(
            true,
            true,
            format!(
                "as {}; the file itself no longer exists: {}",
                shown(&kept.file),
                said(kept)
            ),
        );
    }
    let unread = result.unread.iter().find(|one| is_same(&one.file, file));
    match unread {
        Some(unread) => Fate::new(false, true, format!("it could not be read: {}", unread.why)),
        None => {
            let why = "there is no such file, and none of this name was kept (of files that were \
                       removed since, only the kept ones are on record)";
            Fate::new(false, false, why.to_owned())
        }
    }
}

/// Returns the kept file that the cleanup has written to the path `file`, in the output directory
/// or in a corpus that was cleaned in place; `None` if it has written no file to this path.
fn written_as<'a>(result: &'a CleanResult, file: &Path) -> Option<&'a KeptFile> {
    let file = file.canonicalize().ok()?;
    let out = Path::new(&result.out.0);
    let corpus = result.corpus.first().filter(|_| result.in_place);
    let roots = [Some(out), corpus.map(|corpus| Path::new(&corpus.0))];
    let mut below = roots.into_iter().flatten().filter_map(|root| {
        let root = root.canonicalize().ok()?;
        Some(out.join(file.strip_prefix(root).ok()?))
    });
    let path = OsText::from(&below.next()?);
    result.kept.iter().find(|kept| kept.file == path)
}

/// Returns true if both paths lead to the same file.
fn is_same(one: &OsText, other: &Path) -> bool {
    let one = Path::new(&one.0);
    let absolute = std::path::absolute(other);
    absolute.is_ok_and(|other| one == other)
        || (other.canonicalize())
            .is_ok_and(|other| one.canonicalize().is_ok_and(|one| one == other))
}

fn said(kept: &KeptFile) -> String {
    let trimmed = match kept.size < kept.size_before {
        true => format!("; trimmed from {} to {} bytes", kept.size_before, kept.size),
        false => String::new(),
    };
    format!("{}{trimmed}", kept.why)
}

/// Returns a text for the user that says why a file was left out although it reaches `all`
/// features. Kept files with the names `by` reach all of these but `left`, which need no kept file:
/// some runs do not reach them, or only one run per process does, or the corpus of `--onto` reaches
/// them. The name of that corpus is `onto` (`None` without the option).
fn reached(all: usize, left: usize, by: &str, onto: Option<&str>) -> String {
    if all == 0 {
        return "it reaches no coverage".to_owned();
    }
    let features = ddfuzz_store::report::size::counted(all as u64, "feature");
    let rest = match onto {
        Some(onto) => format!("by {onto}, not in every run, or once per process"),
        None => "not in every run, or once per process".to_owned(),
    };
    match left {
        0 => format!("redundant: its {features} are reached by {by}"),
        left if left == all => format!("redundant: its {features} are reached {rest}"),
        left => format!("redundant: its {features} are reached by {by}; {left} of them {rest}"),
    }
}

fn shown(path: &OsText) -> String {
    path.0.to_string_lossy().into_owned()
}
