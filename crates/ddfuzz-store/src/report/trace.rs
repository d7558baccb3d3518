//! Why and where a program crashed, as all reports show it: the message, the stacks (with
//! consecutive frames of runtimes folded into one line), and the source lines around the crash.

use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::size;
use super::text::{cut, printable};
use ddfuzz_model::files::regular;
use ddfuzz_triage::messages::{Tool, message};
use ddfuzz_triage::snapshot::End;
use ddfuzz_triage::{Crash, Frame, Site, without_detours};

/// Maximum length, in frames, of a recursion's cycle that is recognized in a stack.
const MAX_CYCLE: usize = 10;
/// Minimum number of repetitions of a recursion's cycle in a stack for which the cycle is shown
/// once, with a count.
const REPEATED: usize = 3;
/// Maximum number of characters of a stack frame that are shown; template names can be very long.
const FRAME_WIDTH: usize = 240;
/// Number of innermost user functions on the stack whose source files are tried, one after the
/// other, for the source lines to show.
const MAX_OWN_PLACES: usize = 4;

/// Title, in reports, of the stack at the crash, as opposed to the stacks where the memory
/// concerned was allocated and freed.
const STACK: &str = "stack";

/// Message, stacks and source locations of a crash, ready for reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Cleaned error message of the program, its runtime or a sanitizer; `None` if there was none.
    pub message: Option<String>,
    /// The stack of the crash, then the stacks where the memory concerned was allocated and freed.
    pub stacks: Vec<Stack>,
    /// Source locations of the crash and of the user functions that led to it, likeliest first,
    /// each with the index of its stack frame (`None` for the innermost one, and for locations
    /// taken from the crash message).
    places: Vec<(Place, Option<usize>)>,
    /// Directories in which source files with relative paths are searched.
    folders: Vec<PathBuf>,
    /// Wall-clock time at which the crash was first seen; `None` if unknown.
    seen: Option<SystemTime>,
}

/// One stack of a crash: the stack at the crash itself, or the stack where the memory concerned was
/// allocated or freed.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// Title of the stack: `stack` (the crash), `alloc` or `origin` (allocation of the memory
    /// concerned) or `freed`.
    pub title: &'static str,
    /// Frames of the stack, innermost first.
    pub frames: Vec<Frame>,
    /// Whether the unwinder stopped at its frame limit, so that outer frames are missing.
    pub is_cut: bool,
}

/// One line of a crash's stacks or source lines, as shown in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLine {
    /// Title of the section of lines (`stack`, `source`, …) that begins with this line; empty on
    /// other lines.
    pub title: &'static str,
    /// Text of this line of a stack or of source code, without control characters.
    pub text: String,
    /// Whether the line is user code or the crashing source line, to be highlighted.
    pub own: bool,
}

/// Limits on the number of stack lines and source lines of a crash that a report shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Maximum number of lines that are shown of each stack.
    pub stack: usize,
    /// Number of source lines that are shown before and after the crash location.
    pub around: u64,
}

impl Extent {
    /// Limits for a report on one group: 32 lines of each stack, 3 source lines before and after
    /// the crash.
    pub const WHOLE: Extent = Extent {
        stack: 32,
        around: 3,
    };
    /// Limits for a report on several groups: 8 lines of each stack, 2 source lines before and
    /// after the crash.
    pub const SHORT: Extent = Extent {
        stack: 8,
        around: 2,
    };
}

impl Trace {
    /// Makes the trace (message, stacks, source locations) of a crash whose record is in `folder`.
    /// Relative source paths are searched in the working directory and in the parents of `folder`.
    pub fn of(crash: &Crash, folder: Option<&Path>) -> Trace {
        let details = &crash.details;
        let of_msan = (details.report.as_ref()).is_some_and(|report| report.tool == Tool::Msan);
        let allocated = if of_msan { "origin" } else { "alloc" };
        let stacks = [
            (STACK, &crash.frames),
            (allocated, &details.allocated),
            ("freed", &details.freed),
        ];
        let stacks = stacks.into_iter().filter(|(_, frames)| !frames.is_empty());
        let above = folder.map_or_else(Vec::new, |folder| {
            let absolute = std::path::absolute(folder).unwrap_or_default();
            absolute.ancestors().skip(1).map(Path::to_owned).collect()
        });
        let seen = Duration::from_millis(details.times.at_unix_ms);
        Trace {
            // Cleaned again, because the record may come from another machine.
            message: details.message.as_deref().and_then(message),
            stacks: stacks
                .map(|(title, frames)| Stack {
                    title,
                    frames: frames.clone(),
                    is_cut: title == STACK && details.end == End::Cap,
                })
                .collect(),
            places: places(crash),
            folders: std::iter::once(PathBuf::new()).chain(above).collect(),
            seen: (!seen.is_zero()).then(|| UNIX_EPOCH + seen),
        }
    }

    /// Makes a trace that has a message, but no stacks and no source locations.
    pub fn of_message(message: Option<String>) -> Trace {
        Trace {
            message,
            ..Trace::default()
        }
    }

    /// Makes `source` (`FILE:LINE`) the only source location of the trace: that of the crash with
    /// the last build of the program. Does nothing if `source` has another form.
    pub(super) fn move_to(&mut self, source: &str) {
        if let Some(place) = Place::parse(source) {
            self.places = vec![(place, None)];
        }
    }

    /// Returns whether the trace has neither a message nor stacks nor source locations.
    pub fn is_empty(&self) -> bool {
        self.message.is_none() && self.stacks.is_empty() && self.places.is_empty()
    }

    /// Returns the first line of the crash's message; `None` if there is no message.
    pub fn headline(&self) -> Option<&str> {
        self.message.as_deref()?.lines().next()
    }

    /// Reads the source lines around the crash, `around` lines before and after it; `None` if no
    /// source file is found.
    pub fn excerpt(&self, around: u64) -> Option<Excerpt> {
        Some(self.excerpt_of(around)?.0)
    }

    /// Reads the source lines around the crash, `around` lines before and after it, and returns
    /// them with the index of the stack frame that they belong to (`None` for the innermost frame,
    /// and for a location taken from the crash message); `None` if no source file is found.
    fn excerpt_of(&self, around: u64) -> Option<(Excerpt, Option<usize>)> {
        let mut places = self.places.iter();
        places.find_map(|(place, frame)| {
            let excerpt = Excerpt::read(place, &self.folders, around, self.seen)?;
            Some((excerpt, *frame))
        })
    }

    /// Reads the source lines around at most `most` locations of the crash, likeliest first,
    /// `around` lines before and after each. Each excerpt comes with the index of its stack frame
    /// (`None` for the innermost one, and for a location taken from the crash message).
    pub(super) fn excerpts(&self, around: u64, most: usize) -> Vec<(Excerpt, Option<usize>)> {
        let found = self.places.iter().filter_map(|(place, frame)| {
            let excerpt = Excerpt::read(place, &self.folders, around, self.seen)?;
            Some((excerpt, *frame))
        });
        found.take(most).collect()
    }

    /// Formats the stacks of the crash and the source lines around it as lines, no more than
    /// `extent` allows; reads the source file.
    pub fn lines(&self, extent: Extent) -> Vec<TraceLine> {
        let stacks = self.stacks.iter();
        let mut lines: Vec<TraceLine> = stacks.flat_map(|one| one.lines(extent.stack)).collect();
        if let Some((excerpt, frame)) = self.excerpt_of(extent.around) {
            let of = frame.map_or_else(String::new, |frame| format!(" (#{frame})"));
            lines.push(TraceLine {
                title: "source",
                text: excerpt.title() + &of,
                own: false,
            });
            lines.extend(excerpt.lines().map(|(text, own)| TraceLine {
                title: "",
                text,
                own,
            }));
        }
        lines
    }

    /// Formats the stacks of the crash and the source lines around it as text, indented under
    /// section titles; reads the source file.
    pub fn text(&self, extent: Extent) -> String {
        let mut text = String::new();
        for line in self.lines(extent) {
            text.push_str(format!("  {:<7} {}", line.title, line.text).trim_end());
            text.push('\n');
        }
        text
    }
}

/// Lists the source locations that may be shown for a crash, likeliest first: that of the failed
/// assertion or, without an assertion, of the crash site; then up to four innermost user functions;
/// then the location in the sanitizer's report. Each comes with the index of its stack frame
/// (`None` for the innermost user frame, and for a location taken from a message).
fn places(crash: &Crash) -> Vec<(Place, Option<usize>)> {
    let own = crash.frames.iter().enumerate();
    let sites = own.flat_map(|(index, frame)| {
        let sites = frame.own_sites().into_iter();
        sites.map(move |site| (index, site))
    });
    let mut sites = sites.peekable();
    let innermost = sites.peek().map(|(index, _)| *index);
    let mut places: Vec<(Place, Option<usize>)> = sites
        .filter_map(|(index, site)| {
            let place = Place::parse(site.source.as_deref()?)?;
            Some((place, (Some(index) != innermost).then_some(index)))
        })
        .take(MAX_OWN_PLACES)
        .collect();
    let asserted = assertion_place(crash);
    let is_asserted = asserted.is_some();
    let shown = || Place::parse(crash.site()?.source.as_deref()?);
    if let Some(likeliest) = asserted.or_else(shown) {
        // A frame at this place has the complete path.
        let known = places.iter().position(|(place, _)| place.is_at(&likeliest));
        let (place, frame) = known.map_or((likeliest, None), |at| places.remove(at));
        places.insert(0, (place, frame.filter(|_| !is_asserted)));
    }
    let report = crash.details.report.as_ref();
    let reported = report.and_then(|report| Place::parse(report.location.as_deref()?));
    places.extend(reported.map(|place| (place, None)));
    places
}

/// Parses the source location in the message of a failed C assertion; `None` for other messages.
fn assertion_place(crash: &Crash) -> Option<Place> {
    // PROGRAM: FILE:LINE: FUNCTION: Assertion `...' failed.
    let message = crash.details.abort_message.as_deref()?;
    let (before, _) = message.split_once(": Assertion `")?;
    Place::parse(before.split(": ").nth(1)?)
}

/// A line of a stack as it is formatted for a report; frames are given by their index in the stack.
enum Shown<'a> {
    /// A function of a stack frame, inlined or not. Functions of runtimes are shown only if the
    /// stack has no other functions.
    Function {
        frame: usize,
        site: Site,
        inlined: bool,
    },
    /// Consecutive stack frames of runtimes (libc, sanitizer, …), folded into one line: the number
    /// of these frames, and the names of the runtimes.
    Folded(usize, Vec<&'a str>),
    /// A note in place of a recursion's repetitions: the cycle that the `lines` lines before the
    /// note show occurs `times` times more in the stack.
    Again { lines: usize, times: usize },
}

impl Stack {
    /// Formats the stack in at most `most` lines: user frames first, consecutive runtime frames
    /// folded, and recursion shown once.
    pub(super) fn lines(&self, most: usize) -> Vec<TraceLine> {
        let mut shown = self.without_cycles(self.folded());
        // User frames come first; the runtime frames inside them are shown last.
        let above = match shown.first() {
            Some(Shown::Folded(..)) => Some(shown.remove(0)),
            _ => None,
        };
        let most = most.saturating_sub(usize::from(above.is_some())).max(2);
        let kept = if shown.len() > most {
            most - 1
        } else {
            shown.len()
        };
        let hidden: usize = shown[kept..].iter().map(frames_in).sum();
        let mut lines: Vec<TraceLine> = shown[..kept].iter().map(|one| self.line(one)).collect();
        if hidden > 0 {
            let more = size::counted(hidden as u64, "more frame");
            lines.push(faint(format!("… {more}")));
        }
        if self.is_cut {
            lines.push(faint(
                "… the rest of the stack could not be read".to_owned(),
            ));
        }
        if let Some(above) = above {
            let numbers = match frames_in(&above) {
                1 => " (#0)".to_owned(),
                count => format!(" (#0 to #{})", count - 1),
            };
            let line = self.line(&above);
            lines.push(faint(line.text + &numbers));
        }
        if let Some(first) = lines.first_mut() {
            first.title = self.title;
        }
        lines
    }

    fn line(&self, shown: &Shown<'_>) -> TraceLine {
        match shown {
            Shown::Function {
                frame,
                site,
                inlined,
            } => {
                let inlined = if *inlined { " (inlined)" } else { "" };
                let text = format!("#{frame:<3} {site}");
                TraceLine {
                    title: "",
                    text: cut(&printable(&text), FRAME_WIDTH) + inlined,
                    own: self.frames[*frame].own,
                }
            }
            Shown::Folded(count, runtimes) => {
                let frames = size::counted(*count as u64, "frame");
                faint(printable(&format!("… {frames} of {}", listed(runtimes))))
            }
            Shown::Again { lines: 1, times } => faint(format!(
                "… the line above, repeated {} more",
                size::counted(*times as u64, "time")
            )),
            Shown::Again { lines, times } => faint(format!(
                "… the {lines} lines above, repeated {} more",
                size::counted(*times as u64, "time")
            )),
        }
    }

    /// Returns the lines in which the stack is shown, with consecutive frames of runtimes (libc,
    /// sanitizer, …) folded into one line each. If the stack has no user functions, nothing is
    /// folded.
    fn folded(&self) -> Vec<Shown<'_>> {
        let mut shown: Vec<Shown<'_>> = Vec::new();
        for (index, frame) in self.frames.iter().enumerate() {
            let sites = frame.own_sites();
            let outermost = sites.len().saturating_sub(1);
            match shown.last_mut() {
                _ if !sites.is_empty() => {
                    let sites = sites.into_iter().enumerate();
                    shown.extend(sites.map(|(at, site)| Shown::Function {
                        frame: index,
                        site,
                        inlined: at < outermost,
                    }));
                }
                Some(Shown::Folded(count, runtimes)) => {
                    *count += 1;
                    let named = runtime_of(frame).filter(|name| !runtimes.contains(name));
                    runtimes.extend(named);
                }
                _ => {
                    let runtime = runtime_of(frame).into_iter().collect();
                    shown.push(Shown::Folded(1, runtime));
                }
            }
        }
        match shown.iter().all(|one| matches!(one, Shown::Folded(..))) {
            true => self.as_they_are(),
            false => shown,
        }
    }

    fn as_they_are(&self) -> Vec<Shown<'_>> {
        let frames = self.frames.iter().enumerate();
        let frames = frames.map(|(index, frame)| Shown::Function {
            frame: index,
            site: frame.site(),
            inlined: false,
        });
        frames.collect()
    }

    /// Returns the lines `shown` of a formatted stack, in which the repeated cycles of a recursion
    /// are replaced by one cycle and a count.
    fn without_cycles<'a>(&self, shown: Vec<Shown<'a>>) -> Vec<Shown<'a>> {
        let names: Vec<String> = shown.iter().map(|one| self.identity(one)).collect();
        let repetitions = |at: usize, cycle: usize| {
            let first = names.get(at..at + cycle);
            let cycles = names[at..].chunks_exact(cycle);
            cycles.take_while(|next| Some(*next) == first).count()
        };
        let mut result = Vec::new();
        let mut rest = shown.into_iter();
        let mut at = 0;
        while at < names.len() {
            let cycle = (1..=MAX_CYCLE).find(|cycle| repetitions(at, *cycle) >= REPEATED);
            let Some(lines) = cycle else {
                result.extend(rest.next());
                at += 1;
                continue;
            };
            let all = repetitions(at, lines);
            result.extend(rest.by_ref().take(lines));
            rest.by_ref().take(lines * (all - 1)).for_each(drop);
            at += lines * all;
            let times = all - 1;
            result.push(Shown::Again { lines, times });
        }
        result
    }

    /// Returns the text by which two lines of a stack are compared to find a recursion: the
    /// function's name, without the position in the function.
    fn identity(&self, shown: &Shown<'_>) -> String {
        match shown {
            Shown::Function { frame, site, .. } => {
                let frame = &self.frames[*frame];
                let start = frame.function_start.unwrap_or(frame.offset);
                format!("{} {start:x} {:?}", frame.module, site.function)
            }
            Shown::Folded(count, runtimes) => format!("{count} {runtimes:?}"),
            Shown::Again { .. } => String::new(),
        }
    }
}

fn faint(text: String) -> TraceLine {
    TraceLine {
        title: "",
        text,
        own: false,
    }
}

fn frames_in(shown: &Shown<'_>) -> usize {
    match shown {
        Shown::Function { inlined, .. } => usize::from(!inlined),
        Shown::Folded(count, _) => *count,
        Shown::Again { lines, times } => lines * times,
    }
}

/// Formats names of runtimes as an enumeration: `a`, `a and b`, `a, b and c`; without names, `a
/// runtime linked into the program`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => "a runtime linked into the program".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns the name of the runtime (libc, sanitizer, …) that a frame belongs to, found by the
/// frame's module or, for a runtime linked into the program, by its function; `None` if unknown.
fn runtime_of(frame: &Frame) -> Option<&str> {
    // Prefixes of function names.
    const LINKED: [(&str, &str); 3] = [
        (
            "libFuzzer",
            "fuzzer:: libfuzzer_sys:: rust_fuzzer_test_input test_input_wrap",
        ),
        (
            "Rust's library",
            "std:: core:: alloc:: __rust rust_begin_unwind rust_panic rust_eh_personality \
             <std:: <core:: <alloc::",
        ),
        (
            "the sanitizer",
            "__asan __hwasan __lsan __msan __sanitizer __tsan __ubsan __interceptor \
             ___interceptor __interception __sancov",
        ),
    ];
    let module = frame.module.split(".so").next().unwrap_or_default();
    let name = frame.name.as_deref().unwrap_or_default();
    Some(match module {
        "exe" => {
            let begins = |names: &str| names.split(' ').any(|begin| name.starts_with(begin));
            LINKED.iter().find(|(_, names)| begins(names))?.0
        }
        "ddfuzz-runtime" | "ddfuzz-copy" => "ddfuzz",
        module if module.starts_with("ld-") => "the loader",
        // `libc-2.31`, `libstd-8389830094602f5a`
        module if module.starts_with("libc-") => "libc",
        module if module.starts_with("libstd-") => "Rust's library",
        module => module,
    })
}

/// File extensions by which source files are recognized. Other files are never shown, because a
/// target's output could name any file of the user.
const ENDINGS: [&str; 36] = [
    "c", "cc", "cpp", "cxx", "c++", "cu", "h", "hh", "hpp", "hxx", "h++", "inc", "inl", "ipp",
    "tcc", "y", "l", "rl", "s", "asm", "rs", "go", "zig", "d", "swift", "m", "mm", "f", "f90",
    "f95", "ml", "nim", "cr", "v", "pas", "adb",
];
/// Maximum size of a source file that is read, in bytes.
const LARGEST: u64 = 16 << 20;
/// Maximum number of characters of a source line that are shown.
const SOURCE_WIDTH: usize = 1000;
/// Text by which a tab in a source line is replaced.
const TAB: &str = "    ";

/// A source location: file and line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Path of the source file, as in the debug information.
    pub file: String,
    /// Number of the line in the source file, from 1.
    pub line: u64,
}

impl Place {
    /// Parses `FILE:LINE` or `FILE:LINE:COLUMN`; `None` if the text has neither form.
    pub fn parse(text: &str) -> Option<Place> {
        let (rest, last) = text.rsplit_once(':')?;
        let last: u64 = last.parse().ok()?;
        let (file, line) = match rest.rsplit_once(':') {
            Some((file, line)) => match line.parse() {
                Ok(line) => (file, line),
                Err(_) => (rest, last),
            },
            None => (rest, last),
        };
        (!file.is_empty() && line > 0).then(|| Place {
            file: file.to_owned(),
            line,
        })
    }

    /// Returns true if `other` is the same line of the same file as this location; the path of
    /// `other` may lack leading directories.
    pub(super) fn is_at(&self, other: &Place) -> bool {
        self.line == other.line && Path::new(&self.file).ends_with(&other.file)
    }

    /// Returns the path of the source file: an absolute path as it is, without a check; a relative
    /// path as found in one of `folders`. `None` if a relative path is not found or leaves the
    /// folders, or if the extension is not that of a source file.
    fn found(&self, folders: &[PathBuf]) -> Option<PathBuf> {
        let file = Path::new(&self.file);
        let ending = file.extension()?.to_str()?.to_ascii_lowercase();
        if !ENDINGS.contains(&ending.as_str()) {
            return None;
        }
        if file.is_absolute() {
            return Some(file.to_owned());
        }
        // A path must not leave the folders.
        let stays = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !file.components().all(stays) {
            return None;
        }
        let file: PathBuf = file
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect();
        let mut candidates = folders.iter().map(|folder| folder.join(&file));
        candidates.find(|candidate| candidate.is_file())
    }
}

/// Source lines around a location in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Absolute path of the source file.
    pub file: PathBuf,
    /// Number of the line that the excerpt is about (the crash location), from 1.
    pub line: u64,
    /// Number of the first line in the excerpt, from 1.
    pub first: u64,
    /// The source lines of the excerpt, without control characters.
    pub text: Vec<String>,
    /// Whether the source file was modified after the crash, so that its lines may differ from
    /// those of the crashed program.
    pub is_newer: bool,
}

impl Excerpt {
    /// Reads a source line with `around` lines before and after it; `None` if the file cannot be
    /// read, is not a source file, or does not have the line. `seen` is the time of the crash: a
    /// file that was modified later is marked, because its lines may differ.
    pub(super) fn read(
        place: &Place,
        folders: &[PathBuf],
        around: u64,
        seen: Option<SystemTime>,
    ) -> Option<Excerpt> {
        let file = place.found(folders)?;
        let bytes = regular::read(&file, LARGEST).ok()?;
        let first = place.line.saturating_sub(around).max(1);
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().skip(usize::try_from(first - 1).ok()?);
        let count = usize::try_from(place.line - first + 1 + around).ok()?;
        let text: Vec<String> = lines.take(count).map(cleaned).collect();
        // A line beyond the end of the file belongs to another version of it.
        let reaches = text.len() as u64 > place.line - first;
        let modified = file.metadata().and_then(|facts| facts.modified()).ok();
        reaches.then(|| Excerpt {
            file: std::path::absolute(&file).unwrap_or(file),
            line: place.line,
            first,
            text,
            is_newer: seen.zip(modified).is_some_and(|(seen, then)| then > seen),
        })
    }

    /// Formats file and line of the excerpt, with a note if the file was modified after the crash.
    pub(super) fn title(&self) -> String {
        let newer = match self.is_newer {
            true => ", written after the crash was seen",
            false => "",
        };
        let file = without_detours(&self.file.to_string_lossy());
        printable(&format!("{file}:{}{newer}", self.line))
    }

    /// Formats the source lines of the excerpt with their numbers, each with a bool that is true
    /// for the line that the excerpt is about (the crash location).
    pub(super) fn lines(&self) -> impl Iterator<Item = (String, bool)> {
        let last = self.first + self.text.len().saturating_sub(1) as u64;
        let wide = last.to_string().len();
        (self.first..).zip(&self.text).map(move |(number, text)| {
            let is_it = number == self.line;
            let mark = if is_it { '>' } else { ' ' };
            let line = format!("{mark} {number:>wide$} | {text}");
            (line.trim_end().to_owned(), is_it)
        })
    }
}

fn cleaned(line: &str) -> String {
    cut(
        &printable(line.trim_end().replace('\t', TAB).as_str()),
        SOURCE_WIDTH,
    )
}
