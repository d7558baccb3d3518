//! The functions of program texts, by their lines.

use std::ops::Range;

use ddfuzz_structure::{Function, functions};

use crate::change_set::Hunk;

/// The functions in a source text, each with its name and its range of lines.
pub struct Outline {
    /// The name of each function in the source text, and the range of its lines, counted from 0.
    functions: Vec<(String, Range<usize>)>,
}

impl Outline {
    /// Finds the functions in a source text by a grammar of its programming language, which is
    /// recognized by the ending of `file_name`. `None` if no grammar of the language is known, or
    /// the text is too large.
    pub fn of(file_name: &[u8], text: &[u8]) -> Option<Outline> {
        let line_at = |offset: usize| {
            let before = &text[..offset.min(text.len())];
            before.iter().filter(|byte| **byte == b'\n').count()
        };
        let lines = |function: Function| {
            let end = line_at(function.place.end.saturating_sub(1)) + 1;
            (function.name, line_at(function.place.start)..end)
        };
        let found = functions(file_name, text)?;
        Some(Outline {
            functions: found.into_iter().map(lines).collect(),
        })
    }

    /// Returns the name of the function that contains the line `line` (counted from 0) of the
    /// source text; empty if no function does.
    pub fn function_at(&self, line: usize) -> String {
        let found = self
            .functions
            .iter()
            .find(|(_, lines)| lines.contains(&line));
        found.map_or_else(String::new, |(name, _)| name.clone())
    }

    /// Returns the name of the function that contains the first line that a hunk adds (if the hunk
    /// only deletes lines, the first that it deletes); empty if no function does. `old` and `new`
    /// are the functions in the file's two versions.
    pub fn function_of([old, new]: &[Outline; 2], hunk: &Hunk) -> String {
        match hunk.new.is_empty() {
            true => old.function_at(hunk.old.start),
            false => new.function_at(hunk.new.start),
        }
    }
}
