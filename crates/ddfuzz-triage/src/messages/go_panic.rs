//! Parses Go panics and fatal errors, and the stack that follows them.

use crate::messages::{cut, lines};

/// A panic or fatal error of a Go program, as its runtime printed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoPanic {
    /// First line of the message of the Go panic or fatal error.
    pub message: String,
    /// Function of the first stack frame of the panic that is outside Go's runtime; `None` if there
    /// is no such frame.
    pub function: Option<String>,
    /// Source line `FILE:LINE` of the first stack frame of the panic that is outside Go's runtime;
    /// `None` if there is no such frame.
    pub line: Option<String>,
}

/// Maximum number of bytes that are kept of the message, function name and source line of a Go
/// panic.
const LONGEST: usize = 1024;

/// Returns the first Go panic in stderr; `None` where there is none. The stack of a goroutine must
/// follow, because any program may print `panic:`.
pub fn go_panic(stderr: &[u8]) -> Option<GoPanic> {
    const BEGINS: [&str; 3] = ["panic: ", "fatal error: ", "unexpected fault address "];
    let mut lines = lines(stderr);
    let message = lines.find_map(|line| {
        let begin = BEGINS.iter().find(|begin| line.starts_with(**begin))?;
        let message = line[begin.len()..].trim_end();
        let message = message.strip_suffix(" [recovered]").unwrap_or(message);
        Some(cut(message, LONGEST).to_owned())
    })?;
    lines.find(|line| is_goroutine(line))?;
    let mut panic = GoPanic {
        message,
        function: None,
        line: None,
    };
    let mut function: Option<String> = None;
    for line in lines {
        if line.trim().is_empty() {
            break;
        }
        if let Some(place) = line.strip_prefix('\t') {
            // `/path/file.go:12 +0x1d`
            let place = place.split(" +0x").next().unwrap_or(place).trim();
            if let Some(name) = function.take().filter(|_| !is_runtime_file(place)) {
                panic.function = Some(name);
                panic.line = Some(cut(place, LONGEST).to_owned());
                break;
            }
        } else {
            let name = without_arguments(&line);
            function = (!is_runtime(name)).then(|| cut(name, LONGEST).to_owned());
        }
    }
    Some(panic)
}

/// Checks whether a line of Go's panic output begins the stack of a goroutine: `goroutine 1
/// [running]:`.
fn is_goroutine(line: &str) -> bool {
    line.strip_prefix("goroutine ").is_some_and(|rest| {
        rest.starts_with(|digit: char| digit.is_ascii_digit()) && rest.contains('[')
    })
}

/// Returns the name of the function in a line of Go's panic output, without the argument list in
/// the last parentheses: `main.(*T).f` for `main.(*T).f(0x1)`.
fn without_arguments(line: &str) -> &str {
    match line.trim_end().strip_suffix(')') {
        Some(inner) => inner.rfind('(').map_or(line, |at| &line[..at]),
        None => line.trim_end(),
    }
}

fn is_runtime(function: &str) -> bool {
    const BEGINS: [&str; 5] = ["runtime.", "runtime/", "internal/", "syscall.", "reflect."];
    function == "panic" || BEGINS.iter().any(|begin| function.starts_with(begin))
}

fn is_runtime_file(place: &str) -> bool {
    place.contains("/src/runtime/") || place.contains("/src/internal/")
}
