//! Places in the program (frames, points, source lines) as records of the result, and the reasons
//! for which an explanation is refused.

use std::path::{Path, PathBuf};

use ddfuzz_model::files::regular;

use crate::alignment::Matched;
use crate::dwarf::is_library_file;
use crate::engine::writer::Writer;
use crate::engine::{Ending, Engine, Unsupported};
use crate::report::{CrashRecord, FrameRecord, PointRecord, Refusal};

/// Returns the record of a point that both runs share: statement, source line, and number of
/// arrivals in the passing run.
pub(crate) fn point_record(engine: &Engine, at: &Matched) -> PointRecord {
    let place = frame_record(engine, at.in_passing.pc);
    PointRecord {
        function: Some(place.function),
        file: place.file,
        line: place.line,
        nth: at.in_passing.nth,
        address: at.in_passing.pc,
    }
}

/// Returns the record of a code address in the process: function, file and line.
pub(crate) fn frame_record(engine: &Engine, pc: u64) -> FrameRecord {
    let place = engine.place(pc);
    FrameRecord {
        function: engine.function(pc).unwrap_or_default().to_owned(),
        file: place.map(|(file, _)| file.to_owned()),
        line: place.map(|(_, line)| line),
    }
}

/// Returns the records of code addresses of nested calls in the process, innermost first, with the
/// functions that are inlined there.
pub(crate) fn frame_records(engine: &Engine, calls: &[u64]) -> Vec<FrameRecord> {
    let of_call = |pc: &u64| {
        let inlined = engine.calls_inlined_at(*pc).into_iter();
        let inlined = inlined.map(|it| FrameRecord {
            function: it.function.to_owned(),
            file: Some(it.file.to_owned()),
            line: Some(it.line),
        });
        std::iter::once(frame_record(engine, *pc)).chain(inlined)
    };
    calls.iter().flat_map(of_call).collect()
}

/// Returns the records (function, file, line) of the calls that led to the statement `writer`,
/// innermost first, including calls of inlined functions.
pub(crate) fn callers_of(engine: &Engine, writer: &Writer) -> Vec<FrameRecord> {
    let outer = writer.calls.get(1..).unwrap_or_default().iter().copied();
    let calls: Vec<u64> = std::iter::once(writer.pc).chain(outer).collect();
    frame_records(engine, &calls).split_off(1)
}

/// Returns the record of how and where a failing run ended: crash class, source line and stack.
pub(crate) fn crash_record(engine: &Engine, failing: &Ending) -> CrashRecord {
    let own = failing
        .stack
        .iter()
        .filter(|pc| engine.function(**pc).is_some());
    let stack: Vec<FrameRecord> = own.map(|pc| frame_record(engine, *pc)).collect();
    let first = stack.first();
    let (file, line) = (
        first.and_then(|it| it.file.clone()),
        first.and_then(|it| it.line),
    );
    CrashRecord {
        program: engine
            .program
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        class: failing.crash.as_ref().map(|crash| crash.class.0.clone()),
        ended: failing.ended.to_string(),
        function: first.map(|it| it.function.clone()),
        source: file
            .as_ref()
            .zip(line)
            .filter(|(file, _)| !is_newer(Path::new(file), &engine.program))
            .and_then(|(file, line)| statement_text(file, line)),
        file,
        line,
        stack: stack.into_iter().take(64).collect(),
        message: None,
        library: failed_library(engine, failing),
        wrong: None,
        replays: 0,
    }
}

/// Directories of the system's libraries. After a failure in one of them, the failing statement is
/// looked for in the code that called the library.
const OF_SYSTEM: [&str; 5] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/nix/store"];

/// Returns the file name of the library in whose code a run has failed; `None` for the program's
/// own code and for a library of the system.
fn failed_library(engine: &Engine, failing: &Ending) -> Option<String> {
    let mut inner = failing
        .stack
        .iter()
        .take_while(|pc| engine.function(**pc).is_none());
    let is_own = |path: &&PathBuf| !OF_SYSTEM.iter().any(|it| path.starts_with(it));
    let path = inner.find_map(|pc| engine.modules.path(*pc).filter(is_own))?;
    let name = path.file_name().filter(|_| path.is_file())?;
    (path.file_name() != engine.program.file_name()).then(|| name.to_string_lossy().into_owned())
}

/// Returns true if the file `file` was modified after the file `than`; false also if one is
/// missing.
fn is_newer(file: &Path, than: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|facts| facts.modified()).ok();
    matches!((changed(file), changed(than)), (Some(file), Some(than)) if file > than)
}

/// Returns the program's own source files that are newer than the program.
pub(crate) fn newer_sources(engine: &Engine) -> Vec<String> {
    let mut all: Vec<String> = engine.info.lines.files.clone();
    all.sort_unstable();
    all.dedup();
    all.retain(|it| !is_library_file(it) && is_newer(Path::new(it), &engine.program));
    all
}

/// Largest source file that is read for the text of a line, in bytes.
const LARGEST_SOURCE: u64 = 16 << 20;

/// Returns the text of a source file that debug information names; `None` if it is not a regular
/// file, is larger than 16 MiB, or cannot be read.
pub fn source_text(file: &str) -> Option<String> {
    let text = regular::read(Path::new(file), LARGEST_SOURCE).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the text of a line of a source file; `None` where it cannot be shown.
pub(crate) fn source_line(file: &str, line: u64) -> Option<String> {
    let text = source_text(file)?;
    let text = text.lines().nth(line.checked_sub(1)? as usize)?.trim();
    let text = text.trim_end_matches(';').replace('\t', " ");
    let printable = !text.is_empty() && text.len() <= 120 && !text.chars().any(char::is_control);
    printable.then_some(text)
}

/// Largest number of source lines of a statement that are shown as one.
const STATEMENT: usize = 3;
/// Largest number of characters of a statement that are shown.
const SHOWN: usize = 120;

/// Returns the text of the statement with the line `line` of a source file: the line, with those
/// before and after it that belong to the statement, at most three in all. A text of more than 120
/// characters is cut in the middle. `None` where it cannot be shown.
fn statement_text(file: &str, line: u64) -> Option<String> {
    let text = source_text(file)?;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let at = line.checked_sub(1)? as usize;
    lines.get(at)?;
    let statement = joined(&lines, at);
    let statement = statement.trim_end_matches(';');
    let is_shown = !statement.is_empty() && !statement.chars().any(char::is_control);
    is_shown.then(|| cut_in_the_middle(statement))
}

/// Returns the line with the index `at`, joined with the lines of the same statement before and
/// after it, at most [`STATEMENT`] in all.
fn joined(lines: &[&str], at: usize) -> String {
    let (mut first, mut last) = (at, at);
    let is_full = |first: usize, last: usize| last + 1 - first >= STATEMENT;
    while first > 0 && !is_full(first, last) {
        let (above, below) = (lines[first - 1], lines[first..=last].join(" "));
        let is_begun = is_open_at_end(above) && is_code(above);
        if !is_begun && depth(&below).1 == 0 && !continues(&below) {
            break;
        }
        first -= 1;
    }
    while last + 1 < lines.len() && !is_full(first, last) {
        let text = lines[first..=last].join(" ");
        if depth(&text).0 == 0 && !is_open_at_end(&text) && !continues(lines[last + 1]) {
            break;
        }
        last += 1;
    }
    lines[first..=last].join(" ")
}

/// Returns false for a line of a comment, of the preprocessor, or without any text.
fn is_code(line: &str) -> bool {
    !line.is_empty() && !["//", "/*", "*", "#"].iter().any(|it| line.starts_with(it))
}

/// Returns true if a line begins inside of an expression.
fn continues(line: &str) -> bool {
    let starts = ["&&", "||", "? ", "."];
    starts.iter().any(|it| line.starts_with(it)) && !line.starts_with("..")
}

/// Returns true if a statement goes on after the text `text`: it ends with an operator or a comma,
/// or a parenthesis is open.
fn is_open_at_end(text: &str) -> bool {
    let is_step = text.ends_with("++") || text.ends_with("--") || text.ends_with("*/");
    let ends = ['=', '+', '-', '*', '/', '%', '&', '|', ',', '(', '?'];
    text.ends_with(ends) && !is_step || depth(text).0 > 0
}

/// Returns how many parentheses are open at the end of `text`, and how many are closed that were
/// open at its beginning. Those in texts and characters do not count, nor does what follows `//`.
fn depth(text: &str) -> (usize, usize) {
    let (mut open, mut closed) = (0usize, 0usize);
    let mut quoted = None;
    let mut all = text.char_indices();
    while let Some((at, it)) = all.next() {
        match (quoted, it) {
            (Some(_), '\\') => {
                all.next();
            }
            (Some(quote), _) if it == quote => quoted = None,
            (Some(_), _) => {}
            (None, '"') => quoted = Some('"'),
            // A lifetime of Rust is no character.
            (None, '\'') if text[at + 1..].chars().take(4).any(|it| it == '\'') => {
                quoted = Some('\'');
            }
            (None, '/') if text[at..].starts_with("//") => break,
            (None, '(') => open += 1,
            (None, ')') if open > 0 => open -= 1,
            (None, ')') => closed += 1,
            _ => {}
        }
    }
    (open, closed)
}

/// Returns `text`, of more than [`SHOWN`] characters only the beginning and the end, with `…`
/// between them.
fn cut_in_the_middle(text: &str) -> String {
    let all: Vec<char> = text.chars().collect();
    if all.len() <= SHOWN {
        return text.to_owned();
    }
    let half = SHOWN / 2 - 2;
    let (begins, ends) = (&all[..half], &all[all.len() - half..]);
    let [begins, ends]: [String; 2] = [begins, ends].map(|it| it.iter().collect());
    // Words stay whole.
    let begins = begins.rsplit_once(' ').map_or(&*begins, |it| it.0);
    let ends = ends.split_once(' ').map_or(&*ends, |it| it.1);
    format!("{} … {}", begins.trim_end(), ends.trim_start())
}

/// Returns one round of a recursion, from the function names of a stack, innermost first: the names
/// from one call of a function up to its next call.
pub(crate) fn cycle(names: &[String]) -> Vec<&str> {
    // What is called at the very top may be no part of it.
    let start = names.len().min(8) / 2;
    let Some(first) = names.get(start) else {
        return vec!["a function"];
    };
    let next = names[start + 1..].iter().position(|name| name == first);
    let end = start + 1 + next.unwrap_or(0);
    names[start..end.min(names.len())]
        .iter()
        .map(String::as_str)
        .collect()
}

/// Returns the refusal (reason and hint for the user) of an explanation whose time is over.
pub(crate) fn out_of_time() -> Refusal {
    Refusal {
        reason: "the time for the explanation is over".to_owned(),
        hint: "give it more by --budget-time, or a smaller input".to_owned(),
    }
}

/// Returns the refusal to explain a program that does what the engine cannot follow: the reason
/// `why`, and advice to the user.
pub(crate) fn refusal_of(why: Unsupported) -> Refusal {
    let hint = match why {
        Unsupported::Threads => "run it with one thread, if an option allows that",
        Unsupported::Children | Unsupported::Executes => {
            "explain the program that fails by itself, with the input that it gets"
        }
        Unsupported::SharedMemory => {
            "map memory privately (MAP_PRIVATE): what a test writes there stays for the next one"
        }
        Unsupported::Sockets => "give it its input in a file or on stdin",
        Unsupported::Unwatchable(_) => "look at where the address comes from",
        Unsupported::Unsteady => {
            "remove what differs between runs: times, random numbers, process ids"
        }
    };
    Refusal {
        reason: why.to_string(),
        hint: hint.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_of_several_lines_is_shown_as_one() {
        let lines = [
            "printf(\"%s)\\n\", it->name,",
            "it->at + 1, (unsigned long)strlen(it->text));",
            "i++;",
            "total = first +",
            "second;",
            "if (a",
            "&& b)",
            "return f('(');",
            "}",
        ];
        let call = "printf(\"%s)\\n\", it->name, it->at + 1, (unsigned long)strlen(it->text));";
        assert_eq!(joined(&lines, 0), call);
        assert_eq!(joined(&lines, 1), call);
        assert_eq!(joined(&lines, 2), "i++;");
        assert_eq!(joined(&lines, 4), "total = first + second;");
        assert_eq!(joined(&lines, 5), "if (a && b)");
        assert_eq!(joined(&lines, 6), "if (a && b)");
        assert_eq!(joined(&lines, 7), "return f('(');");
        let long = format!("{}{}", "a".repeat(100), "b".repeat(100));
        let cut = format!("{} … {}", "a".repeat(58), "b".repeat(58));
        assert_eq!(cut_in_the_middle(&long), cut);
        let words = format!("{} b{}", "a".repeat(50), " c".repeat(80));
        assert!(cut_in_the_middle(&words).starts_with(&format!("{} b c c … c c", "a".repeat(50))));
    }

    #[test]
    fn parentheses_in_texts_do_not_count() {
        assert_eq!(depth("f(\")\", '(', g(1)"), (1, 0));
        assert_eq!(depth("a), b) // ("), (0, 2));
    }
}
