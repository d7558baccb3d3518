//! Abort messages of C and C++ libraries.

use crate::messages::{cut, lines};

/// The message with which a C or C++ library aborted a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abort {
    /// The line of stderr that is the abort message, up to 1 KiB.
    pub message: String,
    /// Type of the uncaught C++ exception that ended the program; `None` where the message names
    /// none.
    pub exception: Option<String>,
    /// The text of the uncaught C++ exception (its `what()`); `None` where none was printed.
    pub what: Option<String>,
}

/// Prefixes of the messages with which glibc aborts because of a corrupted heap.
#[rustfmt::skip]
pub(crate) const HEAP: [&str; 10] = [
    "double free", "free():", "malloc():", "malloc_consolidate():", "realloc():",
    "munmap_chunk():", "mremap_chunk():", "corrupted ", "munmap_chunk",
    "break adjusted to free malloc space",
];

/// Prefixes of the messages with which the C++ libraries of GNU and LLVM abort because of an
/// uncaught exception.
const EXCEPTIONS: [&str; 4] = [
    "terminate called after throwing an instance of ",
    "terminate called",
    "libc++abi: terminating",
    "terminating due to uncaught exception of type ",
];

/// Maximum number of bytes that are kept of an abort message.
const LONGEST: usize = 1024;

/// Finds and parses the last abort message of a C or C++ library in `stderr`; `None` where there is
/// none.
pub fn abort(stderr: &[u8]) -> Option<Abort> {
    let mut found: Option<Abort> = None;
    for line in lines(stderr) {
        let line = line.trim();
        match (line.strip_prefix("what():"), &mut found) {
            (Some(what), Some(abort)) if abort.exception.is_some() && abort.what.is_none() => {
                abort.what = Some(cut(what.trim(), LONGEST).to_owned());
            }
            _ => found = read(line).or(found),
        }
    }
    found
}

fn read(line: &str) -> Option<Abort> {
    let plain = |message: &str| Abort {
        message: cut(message, LONGEST).to_owned(),
        ..Abort::default()
    };
    // *** stack smashing detected ***: terminated, *** buffer overflow detected ***: …
    if line.starts_with("*** ") && line.contains(" ***") {
        return Some(plain(line));
    }
    if EXCEPTIONS.iter().any(|begin| line.starts_with(begin)) {
        return Some(Abort {
            exception: exception(line),
            ..plain(line)
        });
    }
    // glibc since 2.26 says these alone in their line; before, `*** Error in …` above.
    if HEAP.iter().any(|begin| line.starts_with(begin)) && line.len() < 128 {
        return Some(plain(line));
    }
    // prog: file.c:3: function: Assertion `…' failed.   musl: Assertion failed: … (file.c: f: 3)
    let assertion = line.contains("Assertion `") || line.starts_with("Assertion failed: ");
    assertion.then(|| plain(line))
}

/// Returns the type of the uncaught C++ exception that a line of an abort message names, such as `…
/// an instance of 'std::out_of_range'` or `… of type std::out_of_range: message`; `None` if it
/// names none.
fn exception(line: &str) -> Option<String> {
    let instance = line.split_once("instance of '");
    let quoted = instance.and_then(|(_, rest)| Some(rest.rsplit_once('\'')?.0));
    let named = || {
        let (_, rest) = line.split_once("exception of type ")?;
        let end = rest.find(": ").unwrap_or(rest.len());
        Some(&rest[..end])
    };
    let name = quoted.or_else(named)?.trim();
    (!name.is_empty()).then(|| cut(name, LONGEST).to_owned())
}
