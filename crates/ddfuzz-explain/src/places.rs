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
            .and_then(|(file, line)| source_line(file, line)),
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
    let text = text.trim_end_matches(';');
    let printable = !text.is_empty() && text.len() <= 120 && !text.chars().any(char::is_control);
    printable.then(|| text.to_owned())
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
