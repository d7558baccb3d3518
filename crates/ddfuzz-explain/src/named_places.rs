//! Places in the program as the text of an explanation names them. Pure.

use crate::report::{Explanation, FrameRecord};
use crate::story::base;

/// Largest number of statements that are named as the nearest ones of their functions.
const DEPENDS: usize = 8;

/// Describes a place in the code: its file and line, or its function where they are unknown.
pub(crate) fn shown_place(place: &FrameRecord) -> String {
    match place.line {
        Some(_) => format!("at {}", plain_place(place)),
        None => format!("in {}", plain_place(place)),
    }
}

/// Writes the file and line of a place in the code, or its function where they are unknown.
pub(crate) fn plain_place(place: &FrameRecord) -> String {
    match (&place.file, place.line) {
        (Some(file), Some(line)) => format!("{}:{line}", base(file)),
        _ => place.function.clone(),
    }
}

/// Writes the functions and places of nested calls in one line, innermost first.
pub(crate) fn calls(places: &[FrameRecord]) -> String {
    let named = places
        .iter()
        .map(|it| format!("{} {}", it.function, shown_place(it)));
    named.collect::<Vec<_>>().join(" < ")
}

/// Names the nearest statements of each function on which the failure depends, those that the text
/// does not name yet (`told`); `None` where there are none.
pub(crate) fn depends(it: &Explanation, told: &[String]) -> Option<String> {
    let is_new = |place: &&FrameRecord| {
        let named = plain_place(place);
        let ends = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_digit());
        let mut lines = told.iter();
        !lines.any(|line| {
            line.match_indices(&named)
                .any(|(at, _)| ends(&line[at + named.len()..]))
        })
    };
    let new = it.depends.iter().filter(is_new).take(DEPENDS);
    let new: Vec<String> = new
        .map(|it| format!("{} {}", it.function, shown_place(it)))
        .collect();
    (!new.is_empty()).then(|| {
        format!(
            "By values, addresses and conditions the failure depends also on {}.",
            new.join(", ")
        )
    })
}
