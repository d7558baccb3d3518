//! Parses Go panics and fatal errors, and the stack that follows them.

use crate::messages::{cut, lines};

/// A panic or fatal error of a Go program, as its runtime printed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoPanic {
    /// First line of the message of the Go panic or fatal error.
    pub message: String,
    /// Function of the first stack frame of the panic that is outside Go's runtime and standard
    /// library, else of the first one outside the runtime; `None` if there is no such frame.
    pub function: Option<String>,
    /// Source line `FILE:LINE` of the stack frame whose function is `function`; `None` if there is
    /// no such frame.
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
    let stack: Vec<String> = lines.take_while(|line| !line.trim().is_empty()).collect();
    let frames = frames(&stack);
    let library = frames.iter().find_map(|(_, place)| library_of(place));
    let mut own = frames
        .iter()
        .filter(|(function, place)| !is_runtime(function) && !is_runtime_file(place));
    let first = own.clone().next();
    let users = own.find(|(function, place)| {
        library.is_none_or(|library| !is_in_library(function, place, library))
    });
    if let Some((function, place)) = users.or(first) {
        panic.function = Some(cut(function, LONGEST).to_owned());
        panic.line = Some(cut(place, LONGEST).to_owned());
    }
    Some(panic)
}

/// Returns function and source line of each frame in the lines of a goroutine's stack.
fn frames(stack: &[String]) -> Vec<(&str, &str)> {
    let mut function = None;
    let mut frames = Vec::new();
    for line in stack {
        match line.strip_prefix('\t') {
            Some(place) => {
                // `/path/file.go:12 +0x1d`
                let place = place.split(" +0x").next().unwrap_or(place).trim();
                frames.extend(function.take().map(|name| (name, place)));
            }
            None => function = Some(without_arguments(line)),
        }
    }
    frames
}

/// Returns the directory of the sources of Go's standard library, `/usr/local/go/src/`, from the
/// source line of a frame of Go's runtime; `None` for other frames.
fn library_of(place: &str) -> Option<&str> {
    let at = place.find("/src/runtime/")?;
    Some(&place[..at + "/src/".len()])
}

/// Checks whether a stack frame is in Go's standard library, whose sources are in the directory
/// `library`: its source line `place` must be there, in the folder that the import path of
/// `function` names.
fn is_in_library(function: &str, place: &str, library: &str) -> bool {
    let file = place.strip_prefix(library);
    let behind_folders = function.rfind('/').map_or(0, |at| at + 1);
    let package = function[behind_folders..].find('.');
    let path = package.map(|at| &function[..behind_folders + at]);
    file.zip(path).is_some_and(|(file, path)| {
        let file = file.strip_prefix(path);
        file.is_some_and(|file| file.starts_with('/'))
    })
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
