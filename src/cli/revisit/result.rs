//! What a study came to.

use super::Args;
use super::reports::Studied;
use crate::campaign::study::StudySummary;
use crate::cli::{Exit, Failure, Output, config, next, ui};
use crate::report::study::{StudyCall, StudyResult, table};
use crate::report::{EndedBy, size};
use crate::store::{Kind, Store};

/// Shows the result, and gives the exit code that it stands for.
pub(super) fn report(
    summary: &StudySummary,
    store: &Store,
    resumed: bool,
    args: &Args,
    output: &Output,
) -> Result<Exit, Failure> {
    let studied = Studied::read(store.reader())?;
    let call = StudyCall {
        runs: summary.runs,
        runs_per_s: summary.runs_per_s(),
        seconds: summary.fuzzed.as_secs_f64(),
        new_groups: summary.new_groups,
        ways: summary.ways.clone(),
        resumed,
        ended_by: match (summary.interrupted, args.time) {
            (true, _) => EndedBy::Interrupted,
            (false, Some(_)) => EndedBy::Time,
            (false, None) if summary.out_of_time => EndedBy::Time,
            (false, None) => EndedBy::Runs,
        },
        settings: config::settings().cloned(),
    };
    // Before the result: where one of them cannot be written, the one answer is an error.
    args.reports.write(&studied.rows)?;
    if summary.out_of_room {
        output.say(&format!("warning: {}", crate::cli::run::OUT_OF_ROOM));
    }
    let text = format!(
        "{}\n{} in {:.1} s ({}/s): {}; results in {}",
        table(&studied.rows, ui::stdout_width()),
        size::counted(summary.runs, "run"),
        summary.fuzzed.as_secs_f64(),
        ui::rate(summary.runs_per_s()),
        match summary.new_groups {
            0 => "no new crash group".to_owned(),
            new => size::counted(new, "new crash group"),
        },
        store.reader().root().display(),
    );
    let result = StudyResult::new(call, &studied.rows, &studied.groups);
    output.result(&text, &result);
    let of_crash = |group: &&crate::report::study::StudyGroup| group.view.kind == Kind::Crash;
    if let Some(group) = studied.groups.iter().find(of_crash) {
        next::after_groups(output, &args.out, &group.view.major.short(), None);
    }
    Ok(exit(summary))
}

fn exit(summary: &StudySummary) -> Exit {
    match summary {
        StudySummary {
            interrupted: true, ..
        } => Exit::Interrupted,
        StudySummary {
            new_groups: 1.., ..
        } => Exit::Found,
        StudySummary {
            known_crashes: 1.., ..
        } => Exit::Known,
        _ => Exit::Done,
    }
}
