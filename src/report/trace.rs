//! What a crash said and where it happened, as all reports show it: its message, its stacks with
//! the frames of runtimes folded, and the source around its place.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::size;
use super::source::{Excerpt, Place};
use super::text::{cut, printable};
use crate::triage::said::{Tool, is_std_file};
use crate::triage::{Crash, Frame};

/// Most frames of a recursion's cycle that are recognised.
const CYCLE: usize = 10;
/// A cycle is folded from so many repetitions on.
const REPEATED: usize = 3;
/// Characters of a frame that are shown: templates have names without end.
const WIDEST: usize = 240;
/// Own frames, from the innermost on, in whose files the place of a crash is looked for.
const NEAR: usize = 4;

/// What a crash said and where it happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// What the program, its runtime or a sanitizer said, harmless; `None` where nobody did.
    pub message: Option<String>,
    /// The stack of the crash; behind it, where the memory that it is about was allocated and freed.
    pub stacks: Vec<Stack>,
    /// Where it happened in the source, the likeliest first.
    places: Vec<Place>,
    /// Folders in which relative paths of the source may lie.
    folders: Vec<PathBuf>,
    /// When it was seen.
    seen: Option<SystemTime>,
}

/// One stack of a crash.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// What it is, in one word.
    pub title: &'static str,
    /// Its frames, innermost first.
    pub frames: Vec<Frame>,
}

/// A line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceLine {
    /// What begins there; empty where it goes on.
    pub title: &'static str,
    /// What it says, cleaned for a terminal.
    pub text: String,
    /// Whether it is the user's code, or what the crash is about.
    pub own: bool,
}

/// How much of a trace is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Lines of each stack.
    pub stack: usize,
    /// Lines of the source before and behind the place.
    pub around: u64,
}

impl Extent {
    /// For one group that somebody looks at.
    pub const WHOLE: Extent = Extent {
        stack: 32,
        around: 3,
    };
    /// For one of several groups.
    pub const SHORT: Extent = Extent {
        stack: 8,
        around: 2,
    };
}

impl Trace {
    /// The trace of a crash whose record lies in `folder`. Relative paths of its source are looked
    /// for below the working directory and the folders above that one.
    pub fn of(crash: &Crash, folder: Option<&Path>) -> Trace {
        let details = &crash.details;
        let of_msan = (details.report.as_ref()).is_some_and(|report| report.tool == Tool::Msan);
        let allocated = if of_msan { "origin" } else { "alloc" };
        let stacks = [
            ("stack", &crash.frames),
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
            message: details.message.clone(),
            stacks: stacks
                .map(|(title, frames)| Stack {
                    title,
                    frames: frames.clone(),
                })
                .collect(),
            places: places(crash),
            folders: std::iter::once(PathBuf::new()).chain(above).collect(),
            seen: (!seen.is_zero()).then(|| UNIX_EPOCH + seen),
        }
    }

    /// A trace of which nothing but the message is known.
    pub fn of_message(message: Option<String>) -> Trace {
        Trace {
            message,
            ..Trace::default()
        }
    }

    /// The message in one line: its first one.
    pub fn headline(&self) -> Option<&str> {
        self.message.as_deref()?.lines().next()
    }

    /// The source around the place, read now; `None` where its file is not found.
    pub fn excerpt(&self, around: u64) -> Option<Excerpt> {
        let mut places = self.places.iter();
        places.find_map(|place| Excerpt::read(place, &self.folders, around, self.seen))
    }

    /// The stacks and the source, line by line. The source is read now.
    pub fn lines(&self, extent: Extent) -> Vec<TraceLine> {
        let stacks = self.stacks.iter();
        let mut lines: Vec<TraceLine> = stacks.flat_map(|one| one.lines(extent.stack)).collect();
        if let Some(excerpt) = self.excerpt(extent.around) {
            lines.push(TraceLine {
                title: "source",
                text: excerpt.title(),
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

    /// The same as text, indented under their titles.
    pub fn text(&self, extent: Extent) -> String {
        let mut text = String::new();
        for line in self.lines(extent) {
            text.push_str(format!("  {:<7} {}", line.title, line.text).trim_end());
            text.push('\n');
        }
        text
    }
}

/// Where a crash happened in the source, the likeliest first: where it panicked, then the innermost
/// frames of the user's code that have lines, then the line that a report begins with.
fn places(crash: &Crash) -> Vec<Place> {
    let own = crash.frames.iter().filter(|frame| frame.own);
    let mut places: Vec<Place> = own
        .filter_map(|frame| Place::parse(frame.line.as_deref()?))
        .take(NEAR)
        .collect();
    let panic = crash.details.panic.as_ref();
    let panicked = panic
        .and_then(|panic| panic.location.as_deref())
        .filter(|location| !is_std_file(location))
        .and_then(Place::parse);
    if let Some(panicked) = panicked {
        // A frame there knows the whole path.
        let known = places.iter().position(|place| place.is_at(&panicked));
        let first = known.map_or(panicked, |at| places.remove(at));
        places.insert(0, first);
    }
    let report = crash.details.report.as_ref();
    places.extend(report.and_then(|report| Place::parse(report.location.as_deref()?)));
    places
}

/// What stands in a line of a stack: frames by their index.
enum Shown<'a> {
    /// One frame, of which the runtime's are shown only where there is nothing else.
    Frame(usize),
    /// So many frames of these runtimes.
    Folded(usize, Vec<&'a str>),
    /// The lines before it, so many times more.
    Again { lines: usize, times: usize },
}

impl Stack {
    /// The frames, innermost first and at most so many lines: own ones each in a line, runs of the
    /// runtimes' folded to one line, and cycles of a recursion shown once.
    fn lines(&self, most: usize) -> Vec<TraceLine> {
        let shown = self.without_cycles(self.folded());
        let all = shown.len();
        let kept = if all > most { most.max(2) - 1 } else { all };
        let hidden: usize = shown[kept..].iter().map(frames_in).sum();
        let mut lines: Vec<TraceLine> = shown[..kept].iter().map(|one| self.line(one)).collect();
        if hidden > 0 {
            let more = size::counted(hidden as u64, "more frame");
            lines.push(faint(format!("… {more}")));
        }
        if let Some(first) = lines.first_mut() {
            first.title = self.title;
        }
        lines
    }

    fn line(&self, shown: &Shown<'_>) -> TraceLine {
        match shown {
            Shown::Frame(index) => {
                let frame = &self.frames[*index];
                let text = format!("#{index:<3} {}", described(frame));
                TraceLine {
                    title: "",
                    text: cut(&printable(&text), WIDEST),
                    own: frame.own,
                }
            }
            Shown::Folded(count, runtimes) => {
                let frames = size::counted(*count as u64, "frame");
                faint(printable(&format!("… {frames} of {}", listed(runtimes))))
            }
            Shown::Again { lines: 1, times } => faint(format!(
                "… the same {} more",
                size::counted(*times as u64, "time")
            )),
            Shown::Again { lines, times } => faint(format!(
                "… these {lines} lines {} more",
                size::counted(*times as u64, "time")
            )),
        }
    }

    /// The frames with each run of the runtimes' folded; as they are where no other is known.
    fn folded(&self) -> Vec<Shown<'_>> {
        if !self.frames.iter().any(|frame| frame.own) {
            return (0..self.frames.len()).map(Shown::Frame).collect();
        }
        let mut shown: Vec<Shown<'_>> = Vec::new();
        for (index, frame) in self.frames.iter().enumerate() {
            match (frame.own, shown.last_mut()) {
                (true, _) => shown.push(Shown::Frame(index)),
                (false, Some(Shown::Folded(count, runtimes))) => {
                    *count += 1;
                    runtimes.push(runtime_of(frame));
                }
                (false, _) => shown.push(Shown::Folded(1, vec![runtime_of(frame)])),
            }
        }
        for one in &mut shown {
            if let Shown::Folded(_, runtimes) = one {
                let mut seen = Vec::new();
                runtimes.retain(|name| {
                    !seen.contains(name) && {
                        seen.push(*name);
                        true
                    }
                });
            }
        }
        shown
    }

    /// The same with repeated cycles shown once.
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
            let cycle = (1..=CYCLE).find(|cycle| repetitions(at, *cycle) >= REPEATED);
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

    /// What tells one line from another: functions, not where in them.
    fn identity(&self, shown: &Shown<'_>) -> String {
        match shown {
            Shown::Frame(index) => {
                let frame = &self.frames[*index];
                let start = frame.function_start.unwrap_or(frame.offset);
                format!("{} {start:x} {:?}", frame.module, frame.name)
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
        Shown::Frame(_) => 1,
        Shown::Folded(count, _) => *count,
        Shown::Again { lines, times } => lines * times,
    }
}

/// A frame by function and line; where the function was inlined, into which one.
fn described(frame: &Frame) -> String {
    match &frame.name {
        Some(name) if !frame.inlined.is_empty() => {
            format!("{} (inlined into {name})", frame.place())
        }
        _ => frame.place(),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Whose code a frame of a runtime is, by its module and, of one that is linked into the program,
/// by its function.
fn runtime_of(frame: &Frame) -> &str {
    const LINKED: [(&str, &[&str]); 3] = [
        ("libFuzzer", &["fuzzer::"]),
        (
            "Rust's library",
            &[
                "std::", "core::", "alloc::", "__rust", "rust_", "<std::", "<core::", "<alloc::",
            ],
        ),
        (
            "the sanitizer",
            &["__", "___interceptor", "operator new", "operator delete"],
        ),
    ];
    let module = frame.module.split(".so").next().unwrap_or_default();
    let name = frame.name.as_deref().unwrap_or_default();
    match module {
        "exe" if name == "_start" => "the start of the program",
        "exe" => {
            let linked = LINKED
                .iter()
                .find(|(_, begins)| begins.iter().any(|begin| name.starts_with(begin)));
            linked.map_or("a runtime in the program", |(runtime, _)| runtime)
        }
        "ddfuzz-runtime" | "ddfuzz-copy" => "ddfuzz",
        module if module.starts_with("ld-") => "the loader",
        // `libc-2.31`, `libstd-8389830094602f5a`
        module if module.starts_with("libc-") => "libc",
        module if module.starts_with("libstd-") => "Rust's library",
        module => module,
    }
}
