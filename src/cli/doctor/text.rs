//! What doctor says to people.

use super::{Report, WayReport};
use crate::cli::ui;
use crate::exec::machine::{About, Check};
use crate::report::text::printable;

/// The report as text.
pub(super) fn text(report: &Report) -> String {
    let mut text = String::from("This machine\n");
    let width = report.checks.iter().map(|check| check.name.len()).max();
    let width = width.unwrap_or_default();
    let of = |about| {
        report
            .checks
            .iter()
            .filter(move |check| check.about == about)
    };
    of(About::Machine).for_each(|check| text.push_str(&line(check, width)));
    let Some(facts) = &report.target else {
        text.push_str(
            "\nTo check a program, too, give it after `--`, or a target that comes with ddfuzz by \
             --target.\n",
        );
        return text;
    };
    let program = match &facts.bundled {
        Some(name) => format!("The bundled target {name}"),
        None => printable(&facts.program.to_string_lossy()),
    };
    text.push_str(&format!("\n{program}\n"));
    of(About::Target).for_each(|check| text.push_str(&line(check, width)));
    text.push_str("\nWays of execution (--exec), by a short campaign\n");
    for way in &report.ways {
        text.push_str(&way_line(way));
    }
    match (&report.chosen, &report.why) {
        (Some(way), Some(why)) => text.push_str(&format!("\nchosen: {way} ({})\n", printable(why))),
        _ => text.push_str("\nno way of execution works\n"),
    }
    text
}

fn line(check: &Check, width: usize) -> String {
    let mark = if check.ok { "ok" } else { "--" };
    let (name, detail) = (check.name, printable(&check.detail));
    let mut line = format!("  {mark}  {name:<width$}  {detail}\n");
    if let Some(fix) = &check.fix {
        line.push_str(&format!("      {:<width$}  fix: {}\n", "", printable(fix)));
    }
    line
}

fn way_line(way: &WayReport) -> String {
    let name = way.way.name();
    if let Some(rate) = way.runs_per_s {
        return format!("  ok  {name:<10}  {:>9} runs/s\n", ui::rate(rate));
    }
    let why = printable(way.why_not.as_deref().unwrap_or_default());
    let mut line = format!("  --  {name:<10}  {why}\n");
    if let Some(fix) = &way.fix {
        line.push_str(&format!("      {:<10}  fix: {}\n", "", printable(fix)));
    }
    line
}
