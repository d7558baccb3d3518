//! Parses Rust panics, and the backtraces that follow them.

use crate::messages::{cut, lines};

/// A panic of a Rust program, as its panic hook printed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RustPanic {
    /// Source location of the panic, `FILE:LINE:COLUMN`, with the path that the compiler was given.
    pub location: String,
    /// The message of the Rust panic, up to 16 lines.
    pub message: String,
}

/// Maximum number of bytes that are kept of the source location of a Rust panic.
const LONGEST: usize = 1024;
/// Maximum number of bytes that are kept of the message of a Rust panic.
const LONGEST_MESSAGE: usize = 4096;
/// Maximum number of lines that are kept of the message of a Rust panic.
const MESSAGE_LINES: usize = 16;

const SAID: &str = " panicked at ";

/// Returns the Rust panic in stderr that ended the program; `None` where there is none. It is a
/// panic of the thread that panicked first, the last one before the first panic of another thread:
/// a thread that panics again has survived its earlier panics. Panics that only follow from another
/// one do not count: one in a destructor during unwinding, one at a function that cannot unwind,
/// and one of a thread that joins a panicked thread.
pub fn rust_panic(stderr: &[u8]) -> Option<RustPanic> {
    let mut lines = lines(stderr);
    let mut ended: Option<(String, RustPanic)> = None;
    // The panic before the last one, which may have caused the last one.
    let mut before: Option<RustPanic> = None;
    while let Some(line) = lines.next() {
        if line.starts_with("thread panicked while panicking") {
            ended = ended.map(|(thread, last)| (thread, before.take().unwrap_or(last)));
            continue;
        }
        let Some((thread, rest)) = begin(&line) else {
            continue;
        };
        let Some(panic) = panic_at(rest, lines.clone()) else {
            continue;
        };
        match &mut ended {
            None => ended = Some((thread.to_owned(), panic)),
            Some((first, _)) if first != thread || !is_one_thread(thread) => break,
            Some((_, last)) if panic.message.starts_with(IN_DESTRUCTOR) => {
                *last = before.take().unwrap_or_else(|| last.clone());
            }
            Some(_) if panic.message.starts_with(CANNOT_UNWIND) || joins(&panic) => {}
            Some((_, last)) => before = Some(std::mem::replace(last, panic)),
        }
    }
    ended.map(|(_, panic)| panic)
}

/// Message of the panic that follows one in a destructor during unwinding.
const IN_DESTRUCTOR: &str = "panic in a destructor during cleanup";
/// Message of the second panic that Rust reports when a first panic would leave a function that
/// cannot unwind.
const CANNOT_UNWIND: &str = "panic in a function that cannot unwind";

/// Returns true if `thread`, the name of a thread in a panic message, stands for one thread only:
/// it is the main thread, or the thread's id is given. Otherwise several threads may have this
/// name.
fn is_one_thread(thread: &str) -> bool {
    thread.starts_with("'main'") || thread.ends_with(')')
}

/// Checks whether a panic says only that there was an earlier panic, for example in a thread that
/// was joined or that held a lock.
fn joins(panic: &RustPanic) -> bool {
    const FOLLOW: [&str; 3] = ["Any { .. }", "PoisonError", "a scoped thread panicked"];
    FOLLOW.iter().any(|text| panic.message.contains(text))
}

/// Parses a Rust panic: `rest` is the text after `panicked at ` in its first line, `lines` are the
/// lines that follow. `None` if the text does not have the form of a panic.
fn panic_at(rest: &str, lines: impl Iterator<Item = String>) -> Option<RustPanic> {
    // Since Rust 1.73: the location, and the message in the lines behind it.
    if let Some(location) = rest.strip_suffix(':').filter(|it| is_location(it)) {
        return Some(RustPanic {
            location: cut(location, LONGEST).to_owned(),
            message: message("", lines),
        });
    }
    // Before: `'message', location`, where the message may have several lines.
    old_form(rest, lines)
}

/// Returns the thread (`'NAME' (ID)`) and the text after `panicked at ` in a line of stderr that
/// begins with `thread 'NAME' (ID) panicked at `; `None` if the line does not contain that.
fn begin(line: &str) -> Option<(&str, &str)> {
    let at = line.find("thread '")?;
    let behind = at + line[at..].find(SAID)?;
    let thread = &line[at + "thread ".len()..behind];
    Some((thread, line[behind + SAID.len()..].trim_end()))
}

fn old_form(first: &str, rest: impl Iterator<Item = String>) -> Option<RustPanic> {
    let first = first.strip_prefix('\'')?;
    let mut text = String::new();
    for line in std::iter::once(first.to_owned()).chain(rest.take(MESSAGE_LINES)) {
        text.push_str(&line);
        if let Some((message, location)) = text.rsplit_once("', ")
            && is_location(location)
        {
            return Some(RustPanic {
                location: cut(location, LONGEST).to_owned(),
                message: cut(message, LONGEST_MESSAGE).to_owned(),
            });
        }
        text.push('\n');
    }
    None
}

fn message(first: &str, rest: impl Iterator<Item = String>) -> String {
    let mut text = first.to_owned();
    for line in rest.take(MESSAGE_LINES) {
        let ends = line.starts_with("stack backtrace:")
            || line.starts_with("note: run with `RUST_BACKTRACE")
            || line.contains(SAID);
        if ends {
            break;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line);
    }
    cut(text.trim_end(), LONGEST_MESSAGE).to_owned()
}

/// Checks whether a text is a source location `FILE:LINE:COLUMN`.
fn is_location(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    let number = |part: Option<&str>| part.is_some_and(is_number);
    let mut parts = text.rsplitn(3, ':');
    number(parts.next()) && number(parts.next()) && parts.next().is_some_and(|it| !it.is_empty())
}

/// Checks by its path whether a source file belongs to Rust's standard library.
pub fn is_std_file(file: &str) -> bool {
    const PARTS: [&str; 4] = [
        "library/core/",
        "library/alloc/",
        "library/std/",
        "library/panic_unwind/",
    ];
    file.starts_with("/rustc/")
        || PARTS.iter().any(|part| {
            let at = file.find(part);
            at.is_some_and(|at| at == 0 || file[..at].ends_with('/'))
        })
}

/// Shortens the path of a source location to its last three parts, which do not depend on where the
/// program was built.
pub fn short_location(location: &str) -> String {
    let mut parts: Vec<&str> = location.rsplitn(4, '/').take(3).collect();
    parts.reverse();
    parts.join("/").trim_start_matches("./").to_owned()
}

/// Returns the place of the first frame outside the standard library in the Rust backtrace on
/// `stderr`: its source location `FILE:LINE:COLUMN`, else its function; `None` if there is no
/// backtrace or no such frame.
pub fn backtrace_place(stderr: &[u8]) -> Option<String> {
    let mut lines = lines(stderr).skip_while(|line| !line.starts_with("stack backtrace:"));
    lines.next()?;
    let mut function: Option<String> = None;
    for line in lines {
        let line = line.trim();
        if let Some(file) = line.strip_prefix("at ") {
            let is_own = function.take_if(|_| !is_std_file(file)).is_some();
            if is_own && is_location(file) {
                return Some(cut(file, LONGEST).to_owned());
            }
            function = None;
            continue;
        }
        // The frame before had no location.
        if let Some(name) = function.take() {
            return Some(name);
        }
        let Some((number, name)) = line.split_once(": ") else {
            break;
        };
        if number.parse::<u32>().is_err() {
            break;
        }
        let name = name.trim_start();
        function =
            (!is_std_function(name) && name != "<unknown>").then(|| cut(name, LONGEST).to_owned());
    }
    function
}

/// Returns the part of `stderr` from the last message of a panic at the location of `panic` on; all
/// of `stderr` if there is no such message.
pub(crate) fn from_panic<'a>(stderr: &'a [u8], panic: &RustPanic) -> &'a [u8] {
    let begin = format!("{SAID}{}:", panic.location);
    let mut windows = stderr.windows(begin.len());
    let last = windows.rposition(|window| window == begin.as_bytes());
    &stderr[last.unwrap_or(0)..]
}

/// Checks by its demangled name whether a function belongs to Rust's standard library.
pub(crate) fn is_std_function(name: &str) -> bool {
    let Some(inner) = name.strip_prefix('<') else {
        return is_std_path(name);
    };
    // `<TYPE as TRAIT>::function`: whose code it is, either of both can tell.
    match inner.split_once(" as ") {
        Some((of, of_trait)) => is_std_path(of_trait) && (is_std_path(of) || !of.contains("::")),
        None => is_std_path(inner),
    }
}

fn is_std_path(path: &str) -> bool {
    const CRATES: [&str; 6] = [
        "std::",
        "core::",
        "alloc::",
        "__rustc::",
        "rust_",
        "__rust_",
    ];
    // With hashes shown: `core[c1f1a4ba060b9bfa]::fmt`.
    let path = path.trim_start_matches(['<', '&', '*', '[']);
    let plain = match (path.find('['), path.find("]::")) {
        (Some(open), Some(close)) if open < close => {
            format!("{}{}", &path[..open], &path[close + 1..])
        }
        _ => path.to_owned(),
    };
    CRATES.iter().any(|begin| plain.starts_with(begin))
}
