//! The tables as a page of the book.

use crate::families::{Set, family};
use crate::options::Options;
use crate::row::{Measured, Minimality, Row, keeps_promise};
use crate::table::time;

/// The page's head.
const HEAD: &str = "\
# Minimizers side by side

Written by `cargo bench --bench minimizers -- --markdown docs/src/minimizers.md`; [Benchmarks](benchmarks.md) says what is
measured, and what the words mean. Cells are tests → bytes of the result.

";

/// The tables of all sets.
pub fn page(sets: &[(Set, Vec<Measured>)], options: &Options) -> String {
    let mut text = HEAD.to_owned();
    text.push_str(&format!(
        "A tool was ended after {} s of CPU time, or ten times that of wall time, on a case.\n\n",
        options.limit.as_secs()
    ));
    for (set, all) in sets {
        text.push_str(&format!("## The {} cases\n\n", set.name()));
        text.push_str(&tests(all));
        text.push_str(&format!(
            "\n### Wall / CPU time of the {} cases\n\n",
            set.name()
        ));
        text.push_str(&times(all));
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// The names of all tools, in the order they ran in.
fn tools(all: &[Measured]) -> Vec<String> {
    let first = all.first();
    first.map_or(Vec::new(), |measured| {
        let rows = measured.rows.iter();
        rows.map(|row| row.tool.clone()).collect()
    })
}

fn header(first: &[&str], tools: &[String]) -> String {
    let names: Vec<&str> = first
        .iter()
        .copied()
        .chain(tools.iter().map(String::as_str))
        .collect();
    format!(
        "| {} |\n|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    )
}

/// Tests and sizes, a row a case.
fn tests(all: &[Measured]) -> String {
    let first = [
        "case",
        "bytes",
        "minimum",
        "at least",
        "target full / subset",
    ];
    let mut text = header(&first, &tools(all));
    for measured in all {
        let case = &measured.case;
        let bounds = measured.bounds();
        let figure = |search| {
            let promised = family(case.family).and_then(|family| family.promised(search));
            promised.map_or("–".to_owned(), |tests| tests.to_string())
        };
        let promised = format!("{} / {}", figure("full"), figure("subset"));
        let is_known = !case.minimum.is_empty();
        let known = |figure| if is_known { figure } else { "–".to_owned() };
        let mut cells = vec![
            case.name(),
            case.input.len().to_string(),
            known(case.minimum.len().to_string()),
            known(format!("{} + {}", bounds.locate, bounds.proof)),
            promised,
        ];
        cells.extend(measured.rows.iter().map(|row| cell(measured, row)));
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

/// `tests → size`, what is known of the result, and for ddfuzz the ratio to the best other tool.
fn cell(measured: &Measured, row: &Row) -> String {
    let Some((size, standing)) = &row.result else {
        return match row.timed_out {
            true => format!("{}, timed out", row.tests),
            false => "–".to_owned(),
        };
    };
    if !measured.counts(row) {
        return "failed".to_owned();
    }
    let standing = match standing {
        Minimality::Minimal { proved: true } => " proved",
        Minimality::Minimal { proved: false } => " minimal",
        Minimality::Reducible(_) => "",
        Minimality::OtherBug => " *other bug*",
    };
    let late = match (row.timed_out, &row.note) {
        (true, _) => ", timed out",
        (false, Some(_)) => ", then failed",
        (false, None) => "",
    };
    let ratio = match (row.search, measured.ratio(row)) {
        (Some(_), Some(ratio)) => format!(" ({ratio:.2})"),
        _ => String::new(),
    };
    let verdict = match keeps_promise(&measured.case, row) {
        Some(true) => ", met",
        Some(false) => ", **missed**",
        None => "",
    };
    format!("{} → {size}{standing}{ratio}{late}{verdict}", row.tests)
}

/// Wall / CPU time, a row a case.
fn times(all: &[Measured]) -> String {
    let mut text = header(&["case"], &tools(all));
    for measured in all {
        let cells = measured.rows.iter().map(|row| match row.tests {
            0 => "–".to_owned(),
            _ => format!("{} / {}", time(row.cost.wall), time(row.cost.cpu)),
        });
        let cells: Vec<String> = [measured.case.name()].into_iter().chain(cells).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}
