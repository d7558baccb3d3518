//! The result of a corpus cleanup as an HTML page.

use std::path::Path;

use maud::{Markup, html};

use super::{CleanGroup, CleanResult, Distribution, KeptFile, findings, outstanding};
use crate::report::chart::Histogram;
use crate::report::html::{Cell, facts, fixed_table, page, table, text};
use crate::report::size;
use ddfuzz_model::files::OsText;

/// Text that explains the columns in the table of the files that a cleanup kept.
const LEGEND: &str = "A feature is an edge of the program together with a range of how often a \
    run passes it (1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more). Unique features are those \
    that no other file of the corpus reaches. \u{201c}Bytes before\u{201d} is the size before \
    trimming; the last column says what trimming has proved of the file (1-minimal: no part of it \
    can be deleted alone), and is empty where the file was not trimmed.";
/// Maximum number of kept files that the page on a cleanup lists.
const LISTED: usize = 5000;
/// Maximum number of files that could not be read, or were left out, that the page on a cleanup
/// lists.
const UNREAD: usize = 20;

/// Formats the result of a cleanup as an HTML page: what was kept and what it reaches, the steps,
/// failures met on the way, histograms of sizes and run times, and a sortable table of the kept
/// files (at most 5,000).
pub fn clean_html(result: &CleanResult) -> String {
    let body = html! {
        header {
            h1 {
                "Corpus cleanup: " (size::grouped(result.before.files)) " → "
                (size::counted(result.after.files, "file"))
            }
            p class="lead" { (text(&lead(result))) }
            @for line in findings(result).filter(|line| is_loss(line)) {
                p class="lead high" { (text(&line)) }
            }
        }
        main {
            section id="result" {
                (facts(findings(result).filter(|line| !is_loss(line)).chain(circumstances(result))))
            }
            section id="steps" { h2 { "Steps" } (steps(result)) }
            (failures(&result.groups))
            (unread(result))
            (spread(result))
            section id="kept" {
                h2 { "Kept files" }
                (facts(outstanding(result).lines().map(str::to_owned)))
                p { (LEGEND) }
                (kept(&result.kept, &result.corpus))
                @if result.kept.len() > LISTED {
                    p { "and " (size::grouped((result.kept.len() - LISTED) as u64)) " more, in clean.json" }
                }
            }
        }
    };
    page("Corpus cleanup", &body)
}

/// Returns whether a line on the result of a cleanup says that coverage is lost; the head of the
/// page shows such lines.
fn is_loss(finding: &str) -> bool {
    finding.starts_with("COVERAGE LOST")
}

/// Formats a sentence on the result of a cleanup: whether the kept files reach all the code that
/// the corpus reached, and how much smaller they are.
fn lead(result: &CleanResult) -> String {
    let kept = size::reduction(result.before.bytes, result.after.bytes);
    let reaches = match (result.features_before, result.missing.len()) {
        (None, _) => {
            "The target reports no coverage: of inputs with the same behaviour one is kept"
        }
        (Some(_), 0) => "The kept files reach all that the whole corpus reached in every run",
        (Some(_), _) => "The kept files reach less than the corpus did",
    };
    format!("{reaches}; {kept}.")
}

/// Lists facts on the cleanup as lines `name: text`: the corpus, the directories with the kept
/// files and the old corpus, the numbers of runs, the time, and the longest input.
fn circumstances(result: &CleanResult) -> impl Iterator<Item = String> {
    let path = |path: &OsText| path.0.to_string_lossy().into_owned();
    let corpus: Vec<String> = result.corpus.iter().map(path).collect();
    let known = match result.known {
        0 => String::new(),
        known => format!(
            "; {} known from an earlier cleanup",
            size::counted(known, "input")
        ),
    };
    let trimming = match result.trim_runs {
        0 => String::new(),
        runs => format!(", {} while trimming", size::grouped(runs)),
    };
    let way = (result.exec).map_or_else(String::new, |way| format!(", executed by {way}"));
    let time = size::duration(std::time::Duration::from_millis(result.wall_ms));
    let lines = [
        Some(format!("corpus: {}", corpus.join(", "))),
        Some(format!("kept files: {}", path(&result.out))),
        result
            .onto
            .as_ref()
            .map(|onto| format!("added to: {}", path(onto))),
        result
            .old
            .as_ref()
            .map(|old| format!("old corpus: {}", path(old))),
        Some(format!(
            "runs: {} of inputs of the corpus{trimming}{known}{way}; {time} in all",
            size::grouped(result.runs)
        )),
        Some(format!("longest input: {}", size::limit(result.max_len))),
    ];
    lines.into_iter().flatten()
}

/// Makes the table of the cleanup's steps that removed files or bytes, between a row for the corpus
/// and a row for the kept files.
fn steps(result: &CleanResult) -> Markup {
    let line = |name: &str, sign: &str, files: u64, bytes: u64| {
        let signed = |count: u64| match count {
            0 => Cell::number(0),
            _ => Cell::value(format!("{sign}{}", size::grouped(count)), count.to_string()),
        };
        vec![Cell::text(name), signed(files), signed(bytes)]
    };
    let first = line("corpus", "", result.before.files, result.before.bytes);
    let last = line("kept", "", result.after.files, result.after.bytes);
    // Minus signs, not hyphens.
    let removed = (result.steps.iter())
        .filter(|step| step.files > 0 || step.bytes > 0)
        .map(|step| line(step.step.text(), "−", step.files, step.bytes));
    fixed_table(
        "step, files, bytes",
        std::iter::once(first).chain(removed).chain([last]),
    )
}

/// Makes the HTML section on the groups of failures (crashes, hangs, …) that the cleanup met, with
/// the folder of each group in the output directory; empty if there are none.
fn failures(groups: &[CleanGroup]) -> Markup {
    let lines = groups.iter().map(|group| {
        vec![
            Cell::text(&group.class),
            Cell::number(group.count),
            Cell::text(&format!("{}/{}", group.folder, group.major)),
        ]
    });
    html! {
        @if !groups.is_empty() {
            section id="failures" {
                h2 { "Failures that the cleanup met" }
                p {
                    "Failing inputs are not kept, but stored in groups in the output directory; "
                    code { "ddfuzz report ." } " makes their page there."
                }
                (table("class, inputs of the corpus, folder", lines))
            }
        }
    }
}

fn unread(result: &CleanResult) -> Markup {
    let files = result.unread.iter().chain(&result.not_input_files);
    let lines = files.take(UNREAD);
    let lines = lines.map(|one| {
        vec![
            Cell::text(&one.file.0.to_string_lossy()),
            Cell::text(&one.why),
        ]
    });
    html! {
        @if !result.unread.is_empty() || !result.not_input_files.is_empty() {
            section id="unread" { h2 { "Files that were left out" } (table("file, why", lines)) }
        }
    }
}

fn spread(result: &CleanResult) -> Markup {
    html! {
        @if let Some(spread) = &result.spread {
            section id="spread" {
                h2 { "Sizes and times" }
                p class="legend" {
                    span { i class="before" {} "all different files of the corpus that neither crash nor hang" } " "
                    span { i class="after" {} "the kept files" }
                }
                div class="charts" {
                    (histogram("files by their size in bytes", &spread.sizes_before, &spread.sizes_after))
                    (histogram("files by the time of a run in µs", &spread.times_before, &spread.times_after))
                }
                p class="faint" {
                    "Both axes are logarithmic. A pair of columns counts the files from the value below \
                     it up to the next one."
                }
            }
        }
    }
}

/// Draws the distributions of sizes or times before and after the cleanup as a histogram; ranges
/// below the first one that is not empty are left out.
fn histogram(title: &str, before: &Distribution, after: &Distribution) -> Markup {
    let count =
        |spread: &Distribution, range: usize| spread.counts().get(range).copied().unwrap_or(0);
    let ranges = 0..before.counts().len().max(after.counts().len());
    let ranges = ranges.map(|range| {
        let name = short(Distribution::least(range));
        (name, count(before, range), count(after, range))
    });
    let ranges = ranges
        .skip_while(|(_, before, after)| before + after == 0)
        .collect();
    Histogram { title, ranges }.markup()
}

/// Formats a power of two in at most four characters, with K, M, … for powers of 1024.
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

fn kept(files: &[KeptFile], corpus: &[OsText]) -> Markup {
    let heads = "file, bytes, bytes before, µs a run, features, unique features, why it is \
                 kept, trimming";
    let rows = files.iter().take(LISTED).map(|kept| {
        vec![
            Cell::text(&name(&kept.from, corpus)),
            Cell::number(kept.size),
            Cell::number(kept.size_before),
            Cell::number(kept.us),
            Cell::number(kept.features),
            Cell::number(kept.only_here),
            Cell::text(&kept.why),
            Cell::text(kept.claim.as_deref().unwrap_or_default()),
        ]
    });
    table(heads, rows)
}

/// Returns the name by which the page shows a file of the corpus: its path below the corpus, if the
/// corpus is a single directory, else its whole path.
fn name(file: &OsText, corpus: &[OsText]) -> String {
    let path = Path::new(&file.0);
    let below = match corpus {
        [only] => path.strip_prefix(&only.0).ok(),
        _ => None,
    };
    let below = below.filter(|below| !below.as_os_str().is_empty());
    below.unwrap_or(path).to_string_lossy().into_owned()
}
