//! The result of `clean` as text.

use super::{CleanResult, Counted, Kept};
use crate::report::groups::render;
use crate::report::size;
use crate::report::text::printable;

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
    let counted = |of: Counted| {
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
    type Key = fn(&Kept) -> u64;
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
        let mut files: Vec<&Kept> = result.kept.iter().filter(|kept| key(kept) > 0).collect();
        files.sort_by_key(|kept| std::cmp::Reverse(key(kept)));
        for kept in files.iter().take(NAMED) {
            let file = printable(&kept.from.0.to_string_lossy());
            text.push_str(&format!("{name}: {file} ({})\n", said(key(kept))));
        }
    }
    text
}
