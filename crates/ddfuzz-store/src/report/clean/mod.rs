//! The result of a corpus cleanup (`ddfuzz clean`): as JSON (`clean.json`), as tables for a
//! terminal, and as an HTML page.

mod html;

use serde::{Deserialize, Serialize};

use super::groups::{DROPPABLE, render_columns};
use super::size;
use super::text::printable;
use ddfuzz_exec::Way;
use ddfuzz_model::files::OsText;

pub use html::clean_html;

/// Result of `ddfuzz clean`: the corpus before and after, what each step removed, the kept files,
/// and their coverage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CleanResult {
    /// Number and total size of the files found in the corpus. A directory in it that could not be
    /// listed counts as one file.
    pub before: Amount,
    /// Number and total size of the kept files, as written.
    pub after: Amount,
    /// Number of edges (for an unmodified program, of blocks) that the corpus covers in every run;
    /// null if the target reports no coverage.
    pub edges_before: Option<u64>,
    /// Number of edges (for an unmodified program, of blocks) that the kept files cover in every
    /// run, measured after writing them; null if the target reports no coverage.
    pub edges_after: Option<u64>,
    /// Number of features (an edge with a range of hit counts) that the corpus covers in every run;
    /// null if the target reports no coverage.
    pub features_before: Option<u64>,
    /// Number of features (an edge with a range of hit counts) that the kept files cover in every
    /// run, measured after writing them; null if the target reports no coverage.
    pub features_after: Option<u64>,
    /// Number of coverage features (an edge with a range of hit counts) that the corpus covers in
    /// some runs only; they are not in the other counts of features.
    pub flaky_features: u64,
    /// Number of files that are kept because they are among those that most often cover flaky
    /// features (features covered in some runs only).
    #[serde(default)]
    pub flaky_files: u64,
    /// Coverage as counted by the target's libFuzzer; null if the target has no libFuzzer or the
    /// user did not ask for the count.
    #[serde(default)]
    pub libfuzzer: Option<LibFuzzerCounts>,
    /// Numbers of files and bytes that each step of the cleanup removed, in order.
    pub steps: Vec<Step>,
    /// Number of files in the corpus with the same content as another file of the corpus.
    pub duplicates: u64,
    /// Number of different inputs of the corpus that crashed, including those that crash in some
    /// runs only.
    pub crashes: u64,
    /// Number of different inputs of the corpus that exceeded the time limit.
    pub hangs: u64,
    /// Number of different inputs of the corpus that exceeded the memory limit.
    pub ooms: u64,
    /// Number of different failing inputs that are not stored in the output directory, because
    /// another input that fails in the same way is stored; they exist only in the corpus.
    #[serde(default)]
    pub unstored: u64,
    /// Number of bytes that trimming removed from the kept files.
    pub trimmed_bytes: u64,
    /// The kept files, sorted by size and hash of their content.
    pub kept: Vec<KeptFile>,
    /// Groups of the crashes, hangs and out-of-memory failures met during the cleanup.
    pub groups: Vec<CleanGroup>,
    /// Weight (a number that grows with bytes and slow runs) of the subset of the corpus that was
    /// chosen, and a lower bound on the weight of any subset with the same coverage; null if no
    /// subset was chosen.
    pub cover: Option<Cover>,
    /// Coverage features that the kept files should cover, but did not when they were run again.
    pub missing: Vec<LostFeature>,
    /// Coverage features that the kept files cover in every run, but that no run of the corpus
    /// covered.
    #[serde(default)]
    pub gained: Vec<GainedFeature>,
    /// Examples of the files and directories that could not be read, and of files that were too
    /// long, each with the reason.
    pub unread: Vec<UnreadFile>,
    /// Number of entries of the corpus's directories that are not inputs, such as fifos, dangling
    /// links, and a fuzzer's own files; they are not counted in any other field.
    #[serde(default)]
    pub not_inputs: u64,
    /// Up to 16 examples of the entries of the corpus's directories that are not inputs, each with
    /// the reason.
    #[serde(default)]
    pub not_input_files: Vec<UnreadFile>,
    /// Distributions of the sizes and run times of all inputs that ended normally, and of the kept
    /// files; null if not recorded.
    pub spread: Option<Distributions>,
    /// Number of runs of the target on inputs of the corpus.
    pub runs: u64,
    /// Number of runs of the target on candidates for trimming (kept files with some bytes
    /// removed).
    pub trim_runs: u64,
    /// Number of inputs whose coverage was known from the journal of an earlier cleanup, without a
    /// run.
    pub known: u64,
    /// Maximum size of an input, in bytes; longer files were left out.
    pub max_len: u64,
    /// Way in which the target was run: fork server, `execve` and so on; null if not recorded.
    pub exec: Option<Way>,
    /// Paths of the corpus as given: files and directories.
    pub corpus: Vec<OsText>,
    /// Directory to which the cleanup wrote the kept files.
    pub out: OsText,
    /// Existing corpus to which the kept files add coverage (option `--onto`); null without this
    /// option.
    #[serde(default)]
    pub onto: Option<OsText>,
    /// File name of the journal that stores the coverage of each input.
    #[serde(default)]
    pub journal: String,
    /// Whether the kept files also replaced the corpus (`--in-place`).
    #[serde(default)]
    pub in_place: bool,
    /// Path to which the old corpus was moved when the kept files replaced it; null if it was not
    /// replaced, or was deleted.
    pub old: Option<OsText>,
    /// Wall time of the cleanup, in ms.
    pub wall_ms: u64,
}

impl CleanResult {
    /// Returns whether coverage is counted in blocks of an unmodified program, not in edges.
    fn has_blocks(&self) -> bool {
        matches!(self.exec, Some(Way::Inject | Way::Snapshot))
    }
}

/// Number of files and bytes that one step of a corpus cleanup removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Name of the cleanup step that removed the files or bytes.
    pub step: StepName,
    /// Number of files that the step of the cleanup removed.
    pub files: u64,
    /// Number of bytes that the step of the cleanup removed.
    pub bytes: u64,
}

/// Name of a step of a corpus cleanup, in which files or bytes are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepName {
    /// The step removes files with the same content as another file of the corpus.
    Duplicates,
    /// The step removes files of the corpus that cannot be read. A directory that cannot be listed
    /// counts as one file.
    Unreadable,
    /// The step removes files longer than the maximum size of an input (`max_len`).
    Oversized,
    /// The step removes crashing inputs from the files to keep; they are stored in groups in the
    /// output directory.
    Crashes,
    /// The step removes inputs over the time limit from the files to keep; they are stored in
    /// groups in the output directory.
    Hangs,
    /// The step removes inputs over the memory limit from the files to keep; they are stored in
    /// groups in the output directory.
    Ooms,
    /// The step removes files whose coverage features (edges with hit counts) other kept files
    /// cover.
    Subset,
    /// The step removes files whose coverage features (edges with hit counts) the corpus of the
    /// option `--onto` covers.
    Onto,
    /// The step removes bytes that a kept file does not need to cover its features (edges with hit
    /// counts).
    Trimming,
}

impl StepName {
    /// Returns the label of the cleanup step in the table of steps for people.
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

/// A file of the corpus that the cleanup kept: paths, sizes, run time, and the reason for keeping
/// it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptFile {
    /// Path to which the kept file was written by the cleanup.
    pub file: OsText,
    /// Path, in the corpus, of the original of the kept file.
    pub from: OsText,
    /// The blake3 hash of the content of the kept file's original in the corpus, in hex digits.
    pub content: String,
    /// Reason why the cleanup kept the file.
    pub why: String,
    /// Size of the kept file as written by the cleanup, in bytes.
    pub size: u64,
    /// Size of the kept file before trimming (removal of bytes that its coverage does not need), in
    /// bytes.
    pub size_before: u64,
    /// Time of a run on the kept file, in µs: CPU time, or the share of the wall time if many runs
    /// share a process.
    pub us: u64,
    /// Number of features (an edge with a range of hit counts) that the kept file covers.
    pub features: u64,
    /// Number of features (an edge with a range of hit counts) that the kept file covers, but no
    /// other file of the whole corpus does.
    pub only_here: u64,
    /// Minimality that trimming has proved, such as `1-minimal`; null if the file was not trimmed.
    pub claim: Option<String>,
}

/// A group of failing inputs found during the cleanup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CleanGroup {
    /// Folder of the group's kind: `crashes`, `hangs`, `oom` or `flaky`.
    pub folder: String,
    /// Major key, which identifies the bug; its first 12 hex digits.
    pub major: String,
    /// Class of the group's crashes, such as `segv`.
    pub class: String,
    /// Number of inputs of the corpus in the group; 0 if only candidates that trimming tried fail
    /// in this way.
    pub count: u64,
}

/// Weight of the subset of the corpus that a cleanup chose, and a lower bound that shows how far it
/// is at most from the least possible weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cover {
    /// Total weight of the chosen files. A file weighs (its bytes + a fixed price) × a factor for
    /// slow runs.
    pub weight: u64,
    /// Lower bound on the weight: every subset of the corpus with the same coverage has at least
    /// this total weight.
    pub lower_bound: u64,
    /// Whether the chosen subset is proved to have the least weight of all subsets of the corpus
    /// with the same coverage.
    pub optimal: bool,
}

impl Cover {
    /// Returns by how many percent the weight of the chosen subset is above the lower bound on the
    /// weight of any subset of the corpus with the same coverage; 0 if it equals the bound, or the
    /// bound is 0.
    pub fn gap_percent(&self) -> f64 {
        match self.lower_bound {
            0 => 0.0,
            bound => (self.weight.saturating_sub(bound)) as f64 * 100.0 / bound as f64,
        }
    }
}

/// Coverage of the corpus as the libFuzzer linked into the target counts it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibFuzzerCounts {
    /// Coverage, as counted by libFuzzer, of all inputs of the corpus that end normally together
    /// with the files that the cleanup kept; null if libFuzzer could not count it. The kept files
    /// alone reach the same coverage, thanks to those that were added (`added`).
    #[serde(alias = "before")]
    pub all: Option<LibFuzzerCoverage>,
    /// Number of files that were added to the kept files so that their coverage, as libFuzzer
    /// counts it, is not less than that of the corpus.
    pub added: u64,
    /// Reason why libFuzzer could not count the coverage or merge the files; null if it could.
    pub why_not: Option<String>,
}

/// Coverage of a set of inputs as libFuzzer counts it: edges and features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibFuzzerCoverage {
    /// Number of covered edges, which libFuzzer prints as `cov`.
    pub cov: u64,
    /// Number of features (edges with ranges of hit counts and others), which libFuzzer prints as
    /// `ft`.
    pub ft: u64,
}

/// A feature (an edge with a range of hit counts) that the corpus covers and the files kept by the
/// cleanup do not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LostFeature {
    /// Number that identifies, in the target's coverage map, the edge of the lost feature.
    pub edge: u32,
    /// Smallest and largest hit count of the edge in a run that has the lost feature.
    pub counts: (u8, u8),
    /// Path of a kept file that covered the lost feature in earlier runs, and so should cover it;
    /// null if unknown.
    pub file: Option<OsText>,
}

/// A file of the corpus that the cleanup could not read, or left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnreadFile {
    /// Path of the file that the cleanup could not read, or left out.
    pub file: OsText,
    /// Reason why the file could not be read, or was left out.
    pub why: String,
}

/// A feature (an edge with a range of hit counts) that the files kept by the cleanup cover, but no
/// run of the corpus did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GainedFeature {
    /// Number that identifies, in the target's coverage map, the edge of the gained feature.
    pub edge: u32,
    /// Smallest and largest hit count of the edge in a run that has the gained feature.
    pub counts: (u8, u8),
}

/// Distributions of file sizes and run times before and after a corpus cleanup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distributions {
    /// Distribution of the sizes of all inputs of the corpus that end normally, in bytes.
    pub sizes_before: Distribution,
    /// Distribution of the sizes of the files that the cleanup kept, in bytes.
    pub sizes_after: Distribution,
    /// Distribution of the run times of all inputs of the corpus that end normally, in µs.
    pub times_before: Distribution,
    /// Distribution of the run times of the files that the cleanup kept, in µs.
    pub times_after: Distribution,
}

/// Size of a set of files: their number and their total size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// Number of files in the set.
    pub files: u64,
    /// Total size of the files in the set, in bytes.
    pub bytes: u64,
}

impl Amount {
    /// Adds a file of `bytes` bytes to the number of files and to their total size.
    pub fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }

    /// Subtracts a file of `bytes` bytes from the number of files and from their total size.
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

/// Histogram with logarithmic ranges: counts of the values 0, 1, 2 to 3, 4 to 7, and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution(Vec<u64>);

impl Distribution {
    /// Counts `value` in the histogram: adds one to the count of the range that contains it.
    pub fn add(&mut self, value: u64) {
        let range = (u64::BITS - value.leading_zeros()) as usize;
        if self.0.len() <= range {
            self.0.resize(range + 1, 0);
        }
        self.0[range] += 1;
    }

    /// Returns the histogram's counts: the number of values in each range, from the lowest range to
    /// the last one that is not empty.
    pub fn counts(&self) -> &[u64] {
        &self.0
    }

    /// Returns the smallest value in the histogram's range with the index `range`: 0, 1, 2, 4 and
    /// so on.
    pub fn least(range: usize) -> u64 {
        match range {
            0 => 0,
            range => 1 << (range - 1).min(63),
        }
    }
}

/// Number of files in each list of notable files: the slowest, the largest, and those with the most
/// features that no other file has.
const NAMED: usize = 3;

/// Formats the result of a cleanup for a terminal: the table of steps, coverage before and after,
/// and notable files. Lines have at most `width` characters (`None`: no limit).
pub fn clean_table(result: &CleanResult, width: Option<usize>) -> String {
    let mut text = steps(result, width);
    text.push('\n');
    for line in findings(result) {
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str(&outstanding(result));
    text
}

/// Formats what the cleanup reached, one line for each finding (coverage, subset, lost features,
/// …): a name, a colon, and a sentence.
fn findings(result: &CleanResult) -> impl Iterator<Item = String> {
    [
        reached(result),
        cover(result),
        flaky(result),
        libfuzzer(result),
        missing(result),
        gained(result),
        not_inputs(result),
    ]
    .into_iter()
    .flatten()
}

fn steps(result: &CleanResult, width: Option<usize>) -> String {
    let row = |name: &str, sign: &str, files: u64, bytes: u64| {
        let signed = |count: u64| match count {
            0 => "0".to_owned(),
            _ => format!("{sign}{}", size::grouped(count)),
        };
        vec![
            name.to_owned(),
            format!("{:>9}", signed(files)),
            format!("{:>13}", signed(bytes)),
        ]
    };
    let mut rows = vec![row("corpus", "", result.before.files, result.before.bytes)];
    for step in &result.steps {
        rows.push(row(step.step.text(), "-", step.files, step.bytes));
    }
    rows.push(row("kept", "", result.after.files, result.after.bytes));
    let header = [
        "STEP",
        &format!("{:>9}", "FILES"),
        &format!("{:>13}", "BYTES"),
    ];
    render_columns(&header, rows, width, &DROPPABLE)
}

fn reached(result: &CleanResult) -> Option<String> {
    let (Some(before), Some(after)) = (result.edges_before, result.edges_after) else {
        return Some(
            "coverage: not reported by the target; of inputs with the same behaviour one is kept"
                .to_owned(),
        );
    };
    let features = match (result.features_before, result.features_after) {
        (Some(before), Some(after)) => format!(
            "; {} features before, {} after",
            size::grouped(before),
            size::grouped(after)
        ),
        _ => String::new(),
    };
    // Each block is one feature.
    let (unit, features) = match result.has_blocks() {
        true => ("blocks", String::new()),
        false => ("edges", features),
    };
    Some(format!(
        "coverage: {} {unit} before, {} after{features}",
        size::grouped(before),
        size::grouped(after)
    ))
}

fn cover(result: &CleanResult) -> Option<String> {
    let cover = result.cover?;
    Some(match cover.optimal {
        true => "subset: a minimal subset of the corpus with the same coverage".to_owned(),
        false => format!(
            "subset: at most {:.1} % larger than a minimal subset with the same coverage",
            cover.gap_percent()
        ),
    })
}

fn flaky(result: &CleanResult) -> Option<String> {
    let verb = match result.flaky_features {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    let features = size::counted(result.flaky_features, "feature");
    let kept = match result.flaky_files {
        0 => String::new(),
        1 => "; the file that reaches them most often is kept".to_owned(),
        files => format!(
            "; the {} that reach them most often are kept",
            size::counted(files, "file")
        ),
    };
    Some(format!(
        "flaky: {features} {verb} not reached in every run{kept}"
    ))
}

fn libfuzzer(result: &CleanResult) -> Option<String> {
    let own = result.libfuzzer.as_ref()?;
    let counted = |of: LibFuzzerCoverage| {
        format!(
            "cov: {} ft: {}",
            size::grouped(of.cov),
            size::grouped(of.ft)
        )
    };
    let Some(all) = own.all else {
        let why = own.why_not.as_deref().unwrap_or_default();
        return Some(format!(
            "libFuzzer (-merge=1): no count: {}",
            printable(why)
        ));
    };
    let added = match own.added {
        0 => String::new(),
        added => format!("; {} added for it", size::counted(added, "file")),
    };
    Some(format!(
        "libFuzzer (-merge=1): {} by all files, and as much by the kept ones{added}",
        counted(all)
    ))
}

fn missing(result: &CleanResult) -> Option<String> {
    let first = result.missing.first()?;
    let of = (first.file.as_ref()).map_or_else(String::new, |file| {
        format!(
            ", which {} reached before",
            printable(&file.0.to_string_lossy())
        )
    });
    Some(format!(
        "COVERAGE LOST: the kept files do not reach {} of the corpus; the first is edge {} with {} \
         to {} hits{of}",
        size::counted(result.missing.len() as u64, "feature"),
        first.edge,
        first.counts.0,
        first.counts.1,
    ))
}

fn gained(result: &CleanResult) -> Option<String> {
    (!result.gained.is_empty()).then(|| {
        format!(
            "more than before: the kept files reach {} that no run of the corpus reached",
            size::counted(result.gained.len() as u64, "feature")
        )
    })
}

fn not_inputs(result: &CleanResult) -> Option<String> {
    let example = result.not_input_files.first()?;
    Some(format!(
        "not inputs: {} of the corpus's directories, such as {} ({})",
        match result.not_inputs {
            1 => "1 entry".to_owned(),
            count => format!("{} entries", size::grouped(count)),
        },
        printable(&example.file.0.to_string_lossy()),
        example.why
    ))
}

/// Formats the notable kept files, one line each: the three slowest, the three largest, and the
/// three with the most features that no other file has.
fn outstanding(result: &CleanResult) -> String {
    type Key = fn(&KeptFile) -> u64;
    type Said = fn(u64) -> String;
    let kinds: [(&str, Key, Said); 3] = [
        ("slowest", |kept| kept.us, |us| format!("{us} us a run")),
        ("largest", |kept| kept.size, size::bytes),
        (
            "unique",
            |kept| kept.only_here,
            |count| format!("the only file with {}", size::counted(count, "feature")),
        ),
    ];
    let mut text = String::new();
    for (name, key, said) in kinds {
        let mut files: Vec<&KeptFile> = result.kept.iter().filter(|kept| key(kept) > 0).collect();
        files.sort_by_key(|kept| std::cmp::Reverse(key(kept)));
        for kept in files.iter().take(NAMED) {
            let file = printable(&kept.from.0.to_string_lossy());
            text.push_str(&format!("{name}: {file} ({})\n", said(key(kept))));
        }
    }
    text
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
