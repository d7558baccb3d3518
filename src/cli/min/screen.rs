//! The result for people.

use crate::campaign::Finished;
use crate::cli::results::shown;
use crate::minimize::{Claim, MinRecord};
use crate::report::{claim, hexdump, size};

/// What people see of a result.
pub(super) fn text(record: &MinRecord, finished: &Finished) -> String {
    let claim = match record.claim {
        _ if record.call.is_none() => claim(&finished.outcome()),
        Claim::BestSoFar => format!(
            "{}, {} of {} removals proved",
            record.claim,
            size::grouped(record.proved.done),
            size::grouped(record.proved.of)
        ),
        of_all => format!(
            "{of_all}, proved by {}",
            size::counted(record.proved.of, "test")
        ),
    };
    let mut text = format!(
        "{} in {}: {claim}\n",
        size::reduction(record.size_before, record.size_after),
        size::counted(record.tests.executed, "test"),
    );
    let mut row = |name: &str, value: String| text.push_str(&format!("{name:<7}{value}\n"));
    if record.output.is_some() {
        row("input", hexdump::line(&finished.minimized.text, 16));
    }
    if let Some(call) = &record.call {
        row("args", count(call.args_before, call.args.len() - 1));
        if finished.start.target.env_only {
            row("env", count(call.env_before, call.env.len()));
        }
        row("call", call.command.clone());
        row("script", shown(&call.script));
    }
    if record.output.is_some() {
        row("file", shown(&record.output));
    }
    row("log", shown(&record.log));
    text
}

/// How many there were, and are.
fn count(before: u64, after: usize) -> String {
    format!(
        "{} → {}",
        size::grouped(before),
        size::grouped(after as u64)
    )
}
