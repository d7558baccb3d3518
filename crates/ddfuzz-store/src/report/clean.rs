//! The result of a corpus cleanup: as JSON (`clean.json`), as tables for a terminal, and as an HTML
//! page.

use serde::{Deserialize, Serialize};

use super::groups::render;
use super::html::{Cell, END, escaped, head, table};
use super::size;
use super::text::printable;
use ddfuzz_exec::Way;
use ddfuzz_model::files::OsText;

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
    pub libfuzzer: Option<LibFuzzerCounts>,
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
    pub kept: Vec<KeptFile>,
    /// Groups that crashes, hangs and oom went to, and those that trimming has run into.
    pub groups: Vec<CleanGroup>,
    /// How good the subset is.
    pub cover: Option<Cover>,
    /// Features that what was written should have reached, and did not.
    pub missing: Vec<LostFeature>,
    /// Features that what was written reached each time, and no run of the corpus had.
    #[serde(default)]
    pub gained: Vec<GainedFeature>,
    /// Examples of files that could not be read.
    pub unread: Vec<UnreadFile>,
    /// Sizes and times of all contents that ended well, and of those that were kept.
    pub spread: Option<Distributions>,
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
pub struct KeptFile {
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
pub struct LibFuzzerCounts {
    /// The count of all contents that end well; null where it could not count.
    pub before: Option<LibFuzzerCoverage>,
    /// The count of what was written.
    pub after: Option<LibFuzzerCoverage>,
    /// How many files its own merge has added, so that what was written counts no less.
    pub added: u64,
    /// Why it could not count and merge.
    pub why_not: Option<String>,
}

impl LibFuzzerCounts {
    /// Whether it counts less of what was written than of the corpus.
    pub fn is_less(&self) -> bool {
        let both = self.before.zip(self.after);
        both.is_some_and(|(before, after)| after.cov < before.cov || after.ft < before.ft)
    }
}

/// The coverage that libFuzzer counts in a run over a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibFuzzerCoverage {
    /// Places in the code: its `cov`.
    pub cov: u64,
    /// Features: its `ft`.
    pub ft: u64,
}

/// A feature that got lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LostFeature {
    /// The number of the place.
    pub edge: u32,
    /// The least and the greatest count of the range.
    pub counts: (u8, u8),
    /// The kept file that should have reached it, where one is known.
    pub file: Option<OsText>,
}

/// A file that was not read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnreadFile {
    /// Which.
    pub file: OsText,
    /// Why.
    pub why: String,
}

/// A feature that was not there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GainedFeature {
    /// The place.
    pub edge: u32,
    /// How often it was passed: the least and the greatest count of the range.
    pub counts: (u8, u8),
}

/// Distributions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distributions {
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

/// So many files are named of the slowest, the largest, and those with the most features of their
/// own.
const NAMED: usize = 3;

/// The table of steps, with files and bytes; what is reached before and after; and the kept files
/// that stand out. No line is longer than `width` characters (`None`: as long as need be).
pub fn clean_table(result: &CleanResult, width: Option<usize>) -> String {
    let mut text = steps(result, width);
    text.push('\n');
    for line in [
        reached(result),
        cover(result),
        flaky(result),
        libfuzzer(result),
        missing(result),
        gained(result),
    ]
    .into_iter()
    .flatten()
    {
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str(&outstanding(result));
    text
}

fn steps(result: &CleanResult, width: Option<usize>) -> String {
    let row = |name: &str, sign: &str, files: u64, bytes: u64| {
        let signed = |count: u64| match count {
            0 => "0".to_owned(),
            _ => format!("{sign}{}", size::grouped(count)),
        };
        [
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
    render(header, rows, width)
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
    Some(format!(
        "coverage: {} edges before, {} after{features}",
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
    let (Some(before), Some(after)) = (own.before, own.after) else {
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
    let less = match own.is_less() {
        true => "; LESS than before, though all that its merge adds is kept",
        false => "",
    };
    Some(format!(
        "libFuzzer (-merge=1): {} before, {} after{added}{less}",
        counted(before),
        counted(after)
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

/// The kept files that stand out, each with what makes it so.
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

/// The drawings, in pixels.
const WIDTH: usize = 640;
const HEIGHT: usize = 220;
/// Room below the columns for their names, and above them for the title.
const BELOW: usize = 30;
const ABOVE: usize = 24;
/// What the columns of the table are.
const LEGEND: &str = "<p>A feature is an edge of the program together with a range of how often a \
    run passes it (1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more). Unique features are those \
    that no other file of the corpus reaches. \u{201c}Bytes before\u{201d} is the size before \
    trimming; the last column says what trimming has proved of the file (1-minimal: no part of it \
    can be deleted alone), and is empty where the file was not trimmed.</p>\n";
/// So many kept files are listed.
const LISTED: usize = 5000;

/// The page: the table of steps, how sizes and times spread before and after, and the kept files
/// (at most 5,000), a table that sorts by a click on a column.
pub fn clean_html(result: &CleanResult) -> String {
    let mut page = head("Corpus cleanup");
    page += &format!("<pre>{}</pre>\n", lines(&clean_table(result, None)));
    if let Some(spread) = &result.spread {
        let sizes = (&spread.sizes_before, &spread.sizes_after);
        let times = (&spread.times_before, &spread.times_after);
        page += "<h2>Sizes and times</h2>\n<p>Grey: all different files of the corpus that neither \
                 crash nor hang. Blue: the kept files. Both axes are logarithmic.</p>\n";
        page += &histogram("size of a file, in bytes", sizes.0, sizes.1);
        page += &histogram("time of a run, in µs", times.0, times.1);
    }
    page += "<h2>KeptFile files</h2>\n";
    page += LEGEND;
    page += &kept(&result.kept);
    if result.kept.len() > LISTED {
        let more = size::grouped((result.kept.len() - LISTED) as u64);
        page += &format!("<p>and {more} more, in clean.json</p>\n");
    }
    page + END
}

/// Text of several lines.
fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escaped).collect();
    lines.join("\n")
}

fn kept(files: &[KeptFile]) -> String {
    let heads = [
        "file",
        "bytes",
        "bytes before",
        "µs a run",
        "features",
        "unique features",
        "why it is kept",
        "trimming",
    ];
    let rows = files.iter().take(LISTED).map(|kept| {
        vec![
            Cell::text(&kept.from.0.to_string_lossy()),
            Cell::number(kept.size),
            Cell::number(kept.size_before),
            Cell::number(kept.us),
            Cell::number(kept.features),
            Cell::number(kept.only_here),
            Cell::text(&kept.why),
            Cell::text(kept.claim.as_deref().unwrap_or_default()),
        ]
    });
    table(&heads, rows)
}

/// Two distributions as columns beside each other.
fn histogram(title: &str, before: &Distribution, after: &Distribution) -> String {
    let ranges = before.counts().len().max(after.counts().len()).max(1);
    let most = before.counts().iter().chain(after.counts()).max();
    let most = most.copied().unwrap_or(0);
    let room = (HEIGHT - BELOW - ABOVE) as f64;
    let high = |count: u64| room * (count as f64 + 1.0).ln() / (most as f64 + 1.0).ln().max(1.0);
    let step = WIDTH / ranges;
    let mut svg = format!(
        "<svg width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <text x=\"0\" y=\"14\">{}</text>\n",
        escaped(title)
    );
    let column = |class: &str, range: usize, shift: usize, count: u64| {
        let tall = high(count);
        let (x, y) = (range * step + shift, (HEIGHT - BELOW) as f64 - tall);
        let wide = (step / 2).saturating_sub(1).max(1);
        let count = size::grouped(count);
        format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y:.1}\" width=\"{wide}\" height=\"{tall:.1}\">\
             <title>{count}</title></rect>\n"
        )
    };
    for range in 0..ranges {
        let of = |spread: &Distribution| spread.counts().get(range).copied().unwrap_or(0);
        svg += &column("before", range, 0, of(before));
        svg += &column("after", range, step / 2, of(after));
        svg += &format!(
            "<text x=\"{}\" y=\"{}\">{}</text>\n",
            range * step,
            HEIGHT - BELOW + 16,
            short(Distribution::least(range))
        );
    }
    svg + "</svg>\n"
}

/// A power of two in at most four characters.
fn short(value: u64) -> String {
    match value {
        0..1024 => value.to_string(),
        value => {
            let units = ["K", "M", "G", "T", "P", "E"];
            let power = (value.ilog2() / 10).min(6) as usize;
            format!("{}{}", value >> (10 * power), units[power - 1])
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
