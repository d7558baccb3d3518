//! The result of `max` and `diff` for people.

use crate::cli::results::shown;
use crate::minimize::isolate::{DifferenceResult, Differing, Isolated};
use crate::minimize::log::{Goal, Units};
use crate::report::{hexdump, size};

/// Places of a difference that are shown.
const PLACES: usize = 8;

pub(super) fn text(record: &DifferenceResult, isolated: &Isolated) -> String {
    let unit = match record.units {
        Some(Units::Edits) => "edit",
        _ => "byte",
    };
    let sizes = size::reduction(record.size_failing, record.size_passing);
    let deltas = size::counted(record.deltas, unit);
    let mut lines = vec![match record.goal {
        Some(Goal::Maximize) => format!("{sizes} that pass; {deltas} left out; {}", tests(record)),
        _ => {
            let make = match record.deltas {
                1 => "makes",
                _ => "make",
            };
            format!("{deltas} {make} the difference, {}", tests(record))
        }
    }];
    // The bytes of the failing input are what is added to the passing one.
    let is_of_edits = matches!(record.units, Some(Units::Edits | Units::EditBytes));
    let is_of_failing = record.goal != Some(Goal::Maximize) && !is_of_edits;
    for differing in isolated.difference.iter().take(PLACES) {
        lines.push(place(differing, is_of_failing));
    }
    if let Some(more) = isolated.difference.len().checked_sub(PLACES + 1) {
        lines.push(format!(
            "… and {} more",
            size::counted(more as u64 + 1, "place")
        ));
    }
    lines.push(format!("passing  {}", shown(&record.passing)));
    lines.push(format!("failing  {}", shown(&record.failing)));
    lines.push(format!("log      {}", shown(&record.log)));
    lines.join("\n")
}

fn tests(record: &DifferenceResult) -> String {
    let tests = size::counted(record.tests.executed, "test");
    let (done, of) = (record.proved.done, record.proved.of);
    match done == of && of > 0 {
        true => format!(
            "in {tests}: {}, proved by {}",
            record.claim,
            size::counted(of, "outcome")
        ),
        false => format!(
            "in {tests}: {}, {done} of {of} outcomes proved",
            record.claim
        ),
    }
}

/// One place: `-` are bytes of the passing input, `+` those of the failing one.
fn place(differing: &Differing, is_of_failing: bool) -> String {
    let at = differing.at.start;
    let (passing, failing) = match is_of_failing {
        true => (&differing.inserted, &differing.removed),
        false => (&differing.removed, &differing.inserted),
    };
    let line = |bytes: &[u8]| hexdump::line(bytes, 16);
    match (passing.is_empty(), failing.is_empty()) {
        (false, true) => format!("at {at}  - {}", line(passing)),
        (true, _) => format!("at {at}  + {}", line(failing)),
        (false, false) => format!("at {at}  - {}  + {}", line(passing), line(failing)),
    }
}
