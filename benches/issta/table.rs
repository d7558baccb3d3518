//! The table of the book.

use ddfuzz::campaign::generator::Characters;

use crate::study::{Minimized, Row, TARGETS};

/// Sizes that the papers have published, in characters (the papers' figures are of the historic
/// programs, ours of targets that were written after them).
const PUBLISHED: [(&str, &str); 4] = [
    ("flex", "2121"),
    ("crtplot", "1 (in 24 tests)"),
    ("ul", "516"),
    ("units", "77"),
];

const INTRODUCTION: &str = "# The fuzz study of ISSTA 2000, again

Hildebrandt and Zeller (*Simplifying Failure-Inducing Input*, ISSTA 2000, section 5) ran six Unix utilities on sixteen random
inputs each (printable or all characters, with or without NUL, of 10³ to 10⁶ characters) and minimized those that failed. Here
the six [bundled targets](getting-started.md), which were written after those utilities, are run on sixteen such inputs
(`ddfuzz gen --preset issta --seed 2000 -o DIR/`), and each failing one is minimized by `ddmin`, the algorithm of the paper, and by
`full`, ddfuzz's own search. The result was run again each time, and has the class and the major key of the failure it was made of.
";

/// The whole page.
pub fn page(rows: &[Row], seconds: u64) -> String {
    let mut text = format!(
        "{INTRODUCTION}\nWritten by `cargo bench --bench issta -- --markdown docs/src/issta.md`. Tests \
         are executed ones, the proof included; sizes are in bytes. A search that took more than \
         {seconds} s was ended, and its smallest result so far is marked with *; all others are proven \
         1-minimal.\n\n## In short\n\n{}",
        summary(rows)
    );
    for target in TARGETS {
        text.push_str(&format!("\n## `{target}`\n\n"));
        text.push_str(
            "| characters | NUL | size | outcome | major key | `ddmin`: size | tests | `full`: size | tests |\n\
             |---|---|---|---|---|---|---|---|---|\n",
        );
        for row in rows.iter().filter(|row| row.target == target) {
            text.push_str(&line(row));
            text.push('\n');
        }
    }
    text
}

/// A line of a target's table.
pub fn line(row: &Row) -> String {
    let kind = row.input.kind;
    let characters = match kind.characters {
        Characters::Printable => "printable",
        Characters::All | Characters::Bytes => "all",
    };
    let nul = if kind.nul { "yes" } else { "no" };
    let start = format!("| {characters} | {nul} | {} |", row.input.length);
    let Some(failure) = &row.failure else {
        return format!("{start} passes | | | | | |");
    };
    let [ddmin, full] = failure.minimized.each_ref().map(cells);
    format!(
        "{start} {} | `{:.12}` | {ddmin} | {full} |",
        failure.class, failure.major
    )
}

fn cells(result: &Minimized) -> String {
    format!("{} | {}", size(result), result.tests)
}

/// Marked where more could be left out.
fn size(result: &Minimized) -> String {
    format!("{}{}", result.size, if result.proven { "" } else { "*" })
}

fn summary(rows: &[Row]) -> String {
    let mut text = String::from(
        "| target | failing inputs | smallest by `ddmin` | by `full` | tests by `ddmin` | by `full` | published size |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for target in TARGETS {
        let of_target: Vec<&Row> = rows.iter().filter(|row| row.target == target).collect();
        let failures: Vec<_> = of_target
            .iter()
            .filter_map(|row| row.failure.as_ref())
            .collect();
        let smallest = |search: usize| {
            let results = failures.iter().map(|failure| &failure.minimized[search]);
            results
                .min_by_key(|result| result.size)
                .map_or("–".to_owned(), size)
        };
        let tests = |search: usize| {
            let tests = failures
                .iter()
                .map(|failure| failure.minimized[search].tests);
            match (tests.clone().min(), tests.max()) {
                (Some(least), Some(most)) => format!("{least} to {most}"),
                _ => "–".to_owned(),
            }
        };
        let published = PUBLISHED.iter().find(|(name, _)| *name == target);
        text.push_str(&format!(
            "| `{target}` | {} of {} | {} | {} | {} | {} | {} |\n",
            failures.len(),
            of_target.len(),
            smallest(0),
            smallest(1),
            tests(0),
            tests(1),
            published.map_or("", |(_, size)| size)
        ));
    }
    text
}
