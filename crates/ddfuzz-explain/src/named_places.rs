//! Places in the program as the text of an explanation names them. Pure.

use ddfuzz_triage::short_function;

use crate::report::{Explanation, FrameRecord, OriginRecord};
use crate::story::base;

/// Largest number of statements on which the failure depends that a text names.
const DEPENDS: usize = 8;

/// Describes a place in the code: `at` and its file and line, or `in` and its function where the
/// line is unknown.
pub(crate) fn shown_place(place: &FrameRecord) -> String {
    match place.line {
        Some(_) => format!("at {}", plain_place(place)),
        None => format!("in {}", plain_place(place)),
    }
}

/// Returns the file name and line of a place in the code, such as `list.c:12`, or its function
/// where they are unknown.
pub(crate) fn plain_place(place: &FrameRecord) -> String {
    match (&place.file, place.line) {
        (Some(file), Some(line)) => format!("{}:{line}", base(file)),
        _ => short_function(&place.function),
    }
}

/// Returns the function of a place in the code, without generic arguments, and its file and line,
/// such as `drop at list.c:12`.
pub(crate) fn function_at(place: &FrameRecord) -> String {
    format!("{} {}", short_function(&place.function), shown_place(place))
}

/// Returns the functions and places of nested calls in one line, innermost first.
pub(crate) fn calls(places: &[FrameRecord]) -> String {
    let named: Vec<String> = places.iter().map(function_at).collect();
    named.join(" < ")
}

/// Returns, as text, the names of the statement that wrote a value and, if its caller is in another
/// function, of the caller.
pub(crate) fn with_caller(origin: &OriginRecord) -> String {
    let is_called = |it: &[FrameRecord]| it.len() > 1 && it[0].function != it[1].function;
    let count = if is_called(&origin.written) { 2 } else { 1 };
    calls(&origin.written[..count.min(origin.written.len())])
}

/// Returns a sentence that names the statements on which the failure depends, each once, without
/// those that the lines `told` of the text already name; `None` if there are no others.
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
    let mut new: Vec<String> = Vec::new();
    for place in it.depends.iter().filter(is_new) {
        let named = function_at(place);
        // Two instructions of a statement have the same place.
        if !new.contains(&named) && new.len() < DEPENDS {
            new.push(named);
        }
    }
    (!new.is_empty()).then(|| {
        format!(
            "By values, addresses and conditions the failure depends also on {}.",
            new.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_on_which_the_failure_depends_twice_is_named_once() {
        let at = |line: u64| FrameRecord {
            function: "atom".to_owned(),
            file: Some("ini.c".to_owned()),
            line: Some(line),
        };
        let it = Explanation {
            depends: vec![at(14), at(14), at(20), at(9)],
            ..Explanation::default()
        };
        let told = ["at ini.c:9 here".to_owned()];
        let text = depends(&it, &told).unwrap();
        assert!(
            text.ends_with("also on atom at ini.c:14, atom at ini.c:20."),
            "{text}"
        );
    }
}
