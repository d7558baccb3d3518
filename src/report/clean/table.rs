//! The result of `clean` as text.

use super::{CleanResult, Kept};
use crate::report::size;
use crate::report::table::render;
use crate::report::text::printable;

/// So many files are named of the slowest, the largest, and those that hold the most alone.
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
            "the target tells no coverage: of inputs that it treats alike one was kept".to_owned(),
        );
    };
    let ranges = match (result.features_before, result.features_after) {
        (Some(before), Some(after)) => format!(
            "; with the ranges of their counts {} before, {} after",
            size::grouped(before),
            size::grouped(after)
        ),
        _ => String::new(),
    };
    Some(format!(
        "edges: {} before, {} after{ranges}",
        size::grouped(before),
        size::grouped(after)
    ))
}

fn cover(result: &CleanResult) -> Option<String> {
    let cover = result.cover?;
    Some(match cover.optimal {
        true => "subset: none that reaches as much weighs less".to_owned(),
        false => format!(
            "subset: at most {:.1} % heavier than the lightest that reaches as much",
            cover.gap_percent()
        ),
    })
}

fn flaky(result: &CleanResult) -> Option<String> {
    (result.flaky_features > 0).then(|| {
        format!(
            "flaky: {} of edges and counts did not come each time, and did not count",
            size::counted(result.flaky_features, "pair")
        )
    })
}

fn missing(result: &CleanResult) -> Option<String> {
    let first = result.missing.first()?;
    let of = (first.file.as_ref()).map_or_else(String::new, |file| {
        format!(", held by {}", printable(&file.0.to_string_lossy()))
    });
    Some(format!(
        "NOT EQUAL: {} of edges and counts are not reached by what was kept; the first is edge \
         {} passed {} to {} times{of}",
        size::counted(result.missing.len() as u64, "pair"),
        first.edge,
        first.counts.0,
        first.counts.1,
    ))
}

fn gained(result: &CleanResult) -> Option<String> {
    (!result.gained.is_empty()).then(|| {
        format!(
            "more than before: what was kept reaches {} of edges and counts that no run of the \
             corpus did",
            size::counted(result.gained.len() as u64, "pair")
        )
    })
}

/// The kept files that stand out, each with what makes it so.
fn outstanding(result: &CleanResult) -> String {
    type Key = fn(&Kept) -> u64;
    type Said = fn(u64) -> String;
    let kinds: [(&str, Key, Said); 3] = [
        ("slowest", |kept| kept.us, |us| format!("{us} us")),
        ("largest", |kept| kept.size, size::bytes),
        (
            "only here",
            |kept| kept.only_here,
            |count| size::counted(count, "pair"),
        ),
    ];
    let mut text = String::new();
    for (name, key, said) in kinds {
        let mut files: Vec<&Kept> = result.kept.iter().filter(|kept| key(kept) > 0).collect();
        files.sort_by_key(|kept| std::cmp::Reverse(key(kept)));
        for kept in files.iter().take(NAMED) {
            let file = printable(&kept.from.0.to_string_lossy());
            text.push_str(&format!("{name}: {file} ({})\n", said(key(kept))));
        }
    }
    text
}
