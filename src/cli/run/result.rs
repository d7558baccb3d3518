//! What a campaign came to, for people and scripts.

use crate::campaign::Summary;
use crate::cli::{Exit, Failure, Output, config, show, ui};
use crate::exec::Way;
use crate::report::{EndedBy, GroupView, RunGroup, RunResult, groups_table, size};
use crate::store::{Kind, Store};

/// Shows the result, whose runs are told as `unit`, and gives the exit code that it stands for.
pub fn report(
    summary: &Summary,
    unit: &str,
    store: &Store,
    way: Way,
    resumed: bool,
    output: &Output,
) -> Result<Exit, Failure> {
    let mut views: Vec<GroupView> = Vec::new();
    let mut counts = Vec::new();
    for kind in [Kind::Crash, Kind::Hang, Kind::Oom, Kind::Flaky] {
        let of_kind = show::views(store.reader(), kind)?;
        counts.push(of_kind.len() as u64);
        views.extend(of_kind);
    }
    let seconds = summary.fuzzed.as_secs_f64();
    let crashes = views.iter().filter(|view| view.kind == Kind::Crash);
    let result = RunResult {
        runs: summary.runs,
        runs_per_s: summary.runs_per_s(),
        seconds,
        groups: crashes.map(RunGroup::from).collect(),
        new_groups: summary.new_groups,
        hangs: counts[1],
        ooms: counts[2],
        flaky: counts[3],
        exec: way,
        resumed,
        ended_by: summary.ended_by,
        rebuilt: summary.rebuilt,
        settings: config::settings().cloned(),
    };
    let table = match views.is_empty() {
        true => String::new(),
        false => groups_table(&views, ui::stdout_width()) + "\n",
    };
    let text = format!(
        "{table}{} in {seconds:.1} s ({}/s by {way}){}: {} of crashes, {} new{}; all in {}",
        size::counted(summary.runs, unit),
        ui::rate(result.runs_per_s),
        ended(summary),
        size::counted(counts[0], "group"),
        size::grouped(summary.new_groups),
        besides(&counts[1..]),
        store.reader().root().display(),
    );
    output.result(&text, &result);
    Ok(match summary {
        Summary {
            interrupted: true, ..
        } => Exit::Interrupted,
        Summary {
            new_groups: 1.., ..
        } => Exit::Found,
        Summary {
            known_crashes: 1.., ..
        } => Exit::Known,
        _ => Exit::Done,
    })
}

/// What else was found: `counts` of groups of hangs, blow-ups, and of what does not come again.
fn besides(counts: &[u64]) -> String {
    let kinds = ["hangs", "memory blow-ups", "flaky crashes"];
    (counts.iter().zip(kinds))
        .filter(|(count, _)| **count > 0)
        .map(|(count, kind)| format!(", {} of {kind}", size::grouped(*count)))
        .collect()
}

/// What ended the campaign, where that is not just what was asked for.
fn ended(summary: &Summary) -> String {
    let by = match (summary.ended_by, summary.until) {
        (EndedBy::Until, Some(until)) => format!(", ended by --until '{until}'"),
        (EndedBy::Interrupted, _) => ", interrupted".to_owned(),
        _ => String::new(),
    };
    match summary.rebuilt {
        true => format!("{by}, on more than one build"),
        false => by,
    }
}
