//! What is printed while it is measured.

use std::time::Duration;

use crate::families::{Case, Set, family};
use crate::row::{Measured, Minimality, Row, keeps_promise};

/// The lines above a case.
pub fn head(case: &Case) -> String {
    let (title, before) =
        family(case.family).map_or(("", ""), |family| (family.title, family.best_before));
    let measured = Measured::new(case.clone()).bounds();
    format!(
        "\n{}: {title}; before: {before}\n  {} bytes, known minimum {}; lower bounds: {} tests of a \
         proof, log2 C(N, m) = {} that locate\n",
        case.name(),
        case.input.len(),
        case.minimum.len(),
        measured.proof,
        measured.locate,
    )
}

/// The line of a tool.
pub fn line(case: &Case, row: &Row) -> String {
    let checks = match row.checks {
        0 => String::new(),
        checks => format!(" +{checks}"),
    };
    let (size, standing) = match &row.result {
        None => ("-".to_owned(), String::new()),
        Some((size, standing)) => (size.to_string(), name(standing)),
    };
    let mut notes = Vec::new();
    if row.timed_out {
        notes.push(format!("timed out with {size} bytes"));
    }
    notes.extend(row.note.clone());
    notes.extend(promise(case, row));
    format!(
        "  {:<14}{:>10}{:<5} tests {:>9} bytes  {:<12} wall {:>9}  CPU {:>9}  {}",
        row.tool,
        row.tests,
        checks,
        size,
        standing,
        time(row.cost.wall),
        time(row.cost.cpu),
        notes.join("; ")
    )
}

/// Whether a promise is kept, in words.
fn promise(case: &Case, row: &Row) -> Option<String> {
    let promised = family(case.family)?.promised(row.search?)?;
    let verdict = if keeps_promise(case, row)? {
        "met"
    } else {
        "missed"
    };
    let minimum = case.minimum.len();
    Some(format!(
        "target {promised} tests, {minimum} bytes: {verdict}"
    ))
}

/// The line below a case: ratios to the best other tool.
pub fn foot(measured: &Measured) -> String {
    let Some(best) = measured.best_peer() else {
        return String::new();
    };
    let ratios: Vec<String> = measured
        .rows
        .iter()
        .filter(|row| row.search.is_some())
        .filter_map(|row| Some(format!("{} {:.2}", row.tool, measured.ratio(row)?)))
        .collect();
    format!(
        "  best other tool: {} with {} bytes in {} tests; tests in relation to it: {}\n",
        best.tool,
        best.size().unwrap_or_default(),
        best.tests,
        ratios.join(", ")
    )
}

/// How many promises a set keeps, by search.
pub fn summary(set: Set, all: &[Measured]) -> String {
    let mut lines = Vec::new();
    for search in ["full", "subset"] {
        let verdicts: Vec<(String, bool)> = all
            .iter()
            .flat_map(|measured| {
                let rows = measured
                    .rows
                    .iter()
                    .filter(|row| row.search == Some(search));
                rows.filter_map(|row| {
                    Some((measured.case.name(), keeps_promise(&measured.case, row)?))
                })
            })
            .collect();
        let missed: Vec<&str> = verdicts
            .iter()
            .filter(|(_, met)| !met)
            .map(|(name, _)| name.as_str())
            .collect();
        if !verdicts.is_empty() {
            lines.push(format!(
                "{} cases, {search}: {} of {} targets met{}{}",
                set.name(),
                verdicts.len() - missed.len(),
                verdicts.len(),
                if missed.is_empty() { "" } else { "; missed: " },
                missed.join(", ")
            ));
        }
    }
    lines.join("\n")
}

fn name(standing: &Minimality) -> String {
    match standing {
        Minimality::Minimal { proved: true } => "proved".to_owned(),
        Minimality::Minimal { proved: false } => "1-minimal".to_owned(),
        Minimality::Reducible(_) => "reducible".to_owned(),
        Minimality::OtherBug => "other bug".to_owned(),
    }
}

/// A duration in a unit that suits it.
pub fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds => format!("{seconds:.1} s"),
    }
}
