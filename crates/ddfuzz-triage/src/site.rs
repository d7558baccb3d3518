//! The crash site that tables show: the first function of the program or its libraries, without
//! standard libraries and fuzzing harness code.

use crate::messages::{is_std_file, is_std_function, short_location};
use crate::{Crash, Frame, Level, PanicRecord};

/// The place in the user's code where a crash happened: function and source line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// Name of the function in which the crash happened; if neither name nor line is known, module
    /// and offset (`exe+0x1189`). `None` if only the line is known.
    pub function: Option<String>,
    /// Source location of the crash, `file:line` or `file:line:column`, as in the debug
    /// information; `None` without debug information.
    pub source: Option<String>,
}

impl std::fmt::Display for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let source = self.source.as_deref().map(short_source);
        match (self.function.as_deref().map(short_function), source) {
            (Some(function), Some(source)) => write!(f, "{function} at {source}"),
            (function, source) => f.write_str(&function.or(source).unwrap_or_default()),
        }
    }
}

impl Crash {
    /// Returns the crash site that tables show: the innermost function of the program or its
    /// libraries, with its source line; `None` without a frame of user code. For a panic, it is the
    /// location in the panic message, because the innermost frames belong to the panic handler or
    /// the stack is gone.
    pub fn site(&self) -> Option<Site> {
        if let Some(panic) = &self.details.panic {
            return Some(self.site_of_panic(panic));
        }
        site_of_frames(&self.frames)
    }

    /// Returns the crash site of a panic: the source location in the panic message, and the
    /// function that panicked, if it is known.
    fn site_of_panic(&self, panic: &PanicRecord) -> Site {
        let location = panic.location.as_deref();
        let source = location.filter(|it| short_location(it) == panic.place);
        Site {
            function: self.panicking_function(panic),
            source: Some(source.unwrap_or(&panic.place).to_owned()),
        }
    }

    /// Returns the name of the function that panicked, among the stack frames that called Rust's
    /// panic handler: the function at the source line that the panic message names; else the first
    /// function of the user's code; else the first with a name. `None` if the handler is not on the
    /// stack.
    fn panicking_function(&self, panic: &PanicRecord) -> Option<String> {
        let is_handler = |frame: &Frame| {
            let name = frame.name.as_deref().unwrap_or_default();
            name.ends_with("rust_begin_unwind")
        };
        let handler = self.frames.iter().rposition(is_handler)?;
        let behind = || self.frames[handler..].iter().filter(|frame| frame.own);
        let is_there = |level: &Level<'_>| {
            let line = level.line.map(|line| format!("{}:", short_location(line)));
            line.is_some_and(|line| panic.place.starts_with(&line))
        };
        let levels = || behind().flat_map(Frame::levels);
        let named = || levels().filter(|it| it.name.is_some());
        let there = named().find(is_there);
        let first = || named().find(is_the_users).or_else(|| named().next());
        there.or_else(first)?.name.map(str::to_owned)
    }
}

/// Returns the crash site in a stack (innermost frame first): the innermost function of the user's
/// code that does more than end the program, else the innermost user frame; `None` if there is no
/// user frame.
pub(crate) fn site_of_frames(frames: &[Frame]) -> Option<Site> {
    let own = || frames.iter().filter(|frame| frame.own);
    let telling = || own().filter(|frame| !frame.gives_up);
    let first = telling().find_map(Frame::site_of_the_users);
    first.or_else(|| telling().chain(own()).next().map(Frame::site))
}

impl Frame {
    /// Returns the innermost function of the stack frame and its source line; where neither is
    /// known, module and offset.
    pub fn site(&self) -> Site {
        self.levels().find_map(Level::site).unwrap_or_else(|| Site {
            function: Some(format!("{}+{:#x}", self.module, self.offset)),
            source: None,
        })
    }

    /// Returns, of the functions at the stack frame's code, the innermost that belongs neither to a
    /// standard library nor to code that runs fuzzing harnesses, with its source line; `None` if
    /// there is no such function. If no function at all is known, returns module and offset.
    fn site_of_the_users(&self) -> Option<Site> {
        if self.levels().find_map(Level::site).is_none() {
            return Some(self.site());
        }
        self.levels().filter(is_the_users).find_map(Level::site)
    }

    /// Returns the functions of the stack frame that are the user's code, inlined ones included,
    /// with their source lines, innermost first; module and offset if no function is known; nothing
    /// for a frame of a runtime (C library, sanitizer).
    pub fn own_sites(&self) -> Vec<Site> {
        let levels = self.levels();
        let own = levels.filter(|level| self.own && is_the_users(level));
        let sites: Vec<Site> = own.filter_map(Level::site).collect();
        match sites.is_empty() && self.own && self.levels().find_map(Level::site).is_none() {
            true => vec![self.site()],
            false => sites,
        }
    }
}

impl Level<'_> {
    fn site(self) -> Option<Site> {
        let known = self.name.is_some() || self.line.is_some();
        known.then(|| Site {
            function: self.name.map(str::to_owned),
            source: self.line.map(str::to_owned),
        })
    }
}

/// Checks whether a function belongs to the user's program or one of its libraries (and not to a
/// standard library or fuzzing harness runner), by name and source file.
fn is_the_users(level: &Level<'_>) -> bool {
    let file = level.line.unwrap_or_default();
    let name = level.name.unwrap_or_default();
    let header = SYSTEM_HEADERS.iter().any(|part| file.contains(part));
    let runner = RUNNERS.iter().any(|part| file.contains(part)) || RUNS.contains(&name);
    // A function of the user's may have any name, so that the source file decides where it is
    // known; elsewhere the name decides.
    let std = match file.is_empty() {
        true => is_std_function(name),
        false => is_std_file(file),
    };
    !header && !runner && !std
}

/// Parts of paths of system headers, whose inline functions belong to the C or C++ library.
const SYSTEM_HEADERS: [&str; 4] = [
    "/usr/include/",
    "/include/c++/",
    "/usr/lib/gcc/",
    "/usr/lib/llvm",
];

/// Parts of paths of the source files of crates that run fuzzing harnesses, such as
/// `libfuzzer-sys`.
const RUNNERS: [&str; 4] = [
    "/libfuzzer-sys-",
    "/libfuzzer-sys/",
    "/afl-0.",
    "/honggfuzz-0.",
];

/// Names of the functions by which crates for fuzzing in Rust call the user's harness. In programs
/// without line information, these functions are recognized by their names.
const RUNS: [&str; 2] = ["rust_fuzzer_test_input", "test_input_wrap"];

/// Name of the function that the macro `fuzz_target!` of cargo-fuzz defines.
const FUZZ_TARGET: &str = "__libfuzzer_sys_run";

/// Returns true if every fuzzing harness has a function with the name `name`, so that the name does
/// not tell programs apart.
pub(crate) fn is_in_each_harness(name: &str) -> bool {
    RUNS.contains(&name) || [FUZZ_TARGET, "LLVMFuzzerTestOneInput", "target_main"].contains(&name)
}

/// Shortens the name of a function for display: generic arguments become `decode<…>`, and the
/// function that `fuzz_target!` defines is shown by the name of the macro.
pub fn short_function(name: &str) -> String {
    let last = name.rsplit("::").next().unwrap_or(name);
    if last == FUZZ_TARGET {
        return "fuzz_target!".to_owned();
    }
    folded(name)
}

/// Returns the name of a function with `<…>` in place of its generic arguments. A leading type
/// (`<A<B> as C>::f`) and C++ operators that contain `<` or `>` are kept.
fn folded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(letter) = rest.chars().next() {
        let begins_arguments = letter == '<'
            && out.ends_with(|before: char| before.is_alphanumeric() || "_:]})".contains(before))
            && !is_operator(&out);
        if let Some(operator) = operator(rest).filter(|_| is_operator(&out)) {
            out.push_str(operator);
            rest = &rest[operator.len()..];
        } else if let Some(behind) = behind_arguments(rest).filter(|_| begins_arguments) {
            out.push_str("<…>");
            rest = behind;
        } else {
            out.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
    }
    out
}

/// Checks whether a part of a C++ function's name ends with the keyword `operator`, so that a `<`
/// after it does not begin generic arguments.
fn is_operator(name: &str) -> bool {
    let before = name.strip_suffix("operator");
    before.is_some_and(|it| !it.ends_with(|last: char| last.is_alphanumeric() || last == '_'))
}

/// Returns the C++ operator with `<` or `>` at the beginning of a text, such as `<<=`; `None` if
/// there is none.
fn operator(text: &str) -> Option<&str> {
    let all = [
        "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">",
    ];
    all.into_iter().find(|it| text.starts_with(it))
}

/// Returns the part of `text` after the generic arguments (`<…>`) with which it begins; `None` if
/// their closing bracket is missing.
fn behind_arguments(text: &str) -> Option<&str> {
    let mut depth = 0usize;
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            // The arrow of a function's type.
            '>' if before == '-' => {}
            '>' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[at + letter.len_utf8()..]);
        }
        before = letter;
    }
    None
}

/// Maximum length in characters of a source location (path, line and column) that is shown whole;
/// locations in crates and in Rust's libraries are always shortened.
const LONGEST_PATH: usize = 60;

/// Shortens a source location for display: the path of a file in a crate begins at the crate's
/// folder (`gif-0.11.1/src/reader/mod.rs:212`), in Rust's libraries at the library's
/// (`core/src/slice/mod.rs:9`); other paths over 60 characters keep their last three parts
/// (`…/parser/lib/tlv.c:19`). `build/../parser.c:3` becomes `parser.c:3`.
pub fn short_source(source: &str) -> String {
    let source = &without_detours(source);
    let inside = of_crate(source).or_else(|| of_checkout(source));
    let library = source
        .split_once("/library/")
        .filter(|_| is_std_file(source));
    match inside.or_else(|| Some(library?.1.to_owned())) {
        Some(inside) => inside,
        None if source.chars().count() <= LONGEST_PATH => source.to_owned(),
        None => format!("…/{}", short_location(source)),
    }
}

/// Returns the path without `.` parts and without `..` parts: each `..` is removed together with
/// the part before it, except at the beginning of the path. Compilers keep such parts of paths that
/// they were given. The file system is not read, so links to folders are not followed.
pub fn without_detours(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match (part, parts.last()) {
            (".", Some(_)) => {}
            ("..", Some(last)) if !matches!(*last, "" | "..") => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the part of a source file's path that begins at the crate's folder, for a file in
/// cargo's registry; `None` for other files.
fn of_crate(source: &str) -> Option<String> {
    let (_, inside) = source.rsplit_once("/registry/src/")?;
    Some(inside.split_once('/')?.1.to_owned())
}

/// Returns repository name and path in the repository of a source file, for a git dependency of
/// cargo (`goblin-HASH/COMMIT/src/lib.rs`); `None` for other files.
fn of_checkout(source: &str) -> Option<String> {
    let (_, inside) = source.rsplit_once("/git/checkouts/")?;
    let mut parts = inside.splitn(3, '/');
    let (repository, _, file) = (parts.next()?, parts.next()?, parts.next()?);
    let name = repository.rsplit_once('-');
    let name = name.map_or(repository, |(name, _)| name);
    Some(format!("{name}/{file}"))
}
