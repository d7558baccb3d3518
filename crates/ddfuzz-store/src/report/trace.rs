//! What a crash said and where it happened, as all reports show it: its message, its stacks with
//! the frames of runtimes folded, and the source around its place.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::size;
use super::source::{Excerpt, Place};
use super::text::{cut, printable};
use ddfuzz_triage::messages::{Tool, message};
use ddfuzz_triage::snapshot::End;
use ddfuzz_triage::{Crash, Frame, Site};

/// Most frames of a recursion's cycle that are recognised.
const CYCLE: usize = 10;
/// A cycle is folded from so many repetitions on.
const REPEATED: usize = 3;
/// Characters of a frame that are shown: templates have names without end.
const WIDEST: usize = 240;
/// Functions of the user's own, from the innermost on, in whose files the place of a crash is
/// looked for.
const NEAR: usize = 4;

/// The title of the stack of the crash itself.
const STACK: &str = "stack";

/// What a crash said and where it happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// What the program, its runtime or a sanitizer said, harmless; `None` where nobody did.
    pub message: Option<String>,
    /// The stack of the crash; behind it, where the memory that it is about was allocated and
    /// freed.
    pub stacks: Vec<Stack>,
    /// Where it happened in the source, the likeliest first; of what is not the innermost frame of
    /// the user's code, which frame it is.
    places: Vec<(Place, Option<usize>)>,
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
    /// Whether there were more, which were not read.
    pub is_cut: bool,
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
            // Cleaned again: a record may come from elsewhere.
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

    /// A trace of which nothing but the message is known.
    pub fn of_message(message: Option<String>) -> Trace {
        Trace {
            message,
            ..Trace::default()
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.message.is_none() && self.stacks.is_empty() && self.places.is_empty()
    }

    /// The message in one line: its first one.
    pub fn headline(&self) -> Option<&str> {
        self.message.as_deref()?.lines().next()
    }

    /// The source around the place, read now; `None` where its file is not found.
    pub fn excerpt(&self, around: u64) -> Option<Excerpt> {
        Some(self.excerpt_of(around)?.0)
    }

    /// The same, with the number of its frame, where that is not the innermost one of the user's
    /// code.
    fn excerpt_of(&self, around: u64) -> Option<(Excerpt, Option<usize>)> {
        let mut places = self.places.iter();
        places.find_map(|(place, frame)| {
            let excerpt = Excerpt::read(place, &self.folders, around, self.seen)?;
            Some((excerpt, *frame))
        })
    }

    /// The stacks and the source, line by line. The source is read now.
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

/// Where a crash happened in the source, the likeliest first: where it says so itself, where it is
/// shown to be, then the innermost functions of the user's own.
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
        .take(NEAR)
        .collect();
    let said = asserted(crash);
    let is_said = said.is_some();
    let shown = || Place::parse(crash.site()?.source.as_deref()?);
    if let Some(said) = said.or_else(shown) {
        // A frame there knows the whole path.
        let known = places.iter().position(|(place, _)| place.is_at(&said));
        let (place, frame) = known.map_or((said, None), |at| places.remove(at));
        places.insert(0, (place, frame.filter(|_| !is_said)));
    }
    let report = crash.details.report.as_ref();
    let reported = report.and_then(|report| Place::parse(report.location.as_deref()?));
    places.extend(reported.map(|place| (place, None)));
    places
}

/// Where a failed assertion of C says that it is.
fn asserted(crash: &Crash) -> Option<Place> {
    // PROGRAM: FILE:LINE: FUNCTION: Assertion `...' failed.
    let said = crash.details.abort_message.as_deref()?;
    let (before, _) = said.split_once(": Assertion `")?;
    Place::parse(before.split(": ").nth(1)?)
}

/// What stands in a line of a stack: frames by their index.
enum Shown<'a> {
    /// A function in a frame; those of runtimes are shown only where there is nothing else.
    Function {
        frame: usize,
        site: Site,
        inlined: bool,
    },
    /// So many frames of these runtimes.
    Folded(usize, Vec<&'a str>),
    /// The lines before it, so many times more.
    Again { lines: usize, times: usize },
}

impl Stack {
    /// The frames in at most so many lines: the user's own first, each in a line, runs of the
    /// runtimes' folded to one line, and cycles of a recursion shown once.
    fn lines(&self, most: usize) -> Vec<TraceLine> {
        let mut shown = self.without_cycles(self.folded());
        // Own frames come first: what a runtime did on top of them stands behind them.
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
                    text: cut(&printable(&text), WIDEST) + inlined,
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

    /// The user's own functions, with each run of the runtimes' frames folded; all frames where no
    /// function is the user's.
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

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => "a runtime linked into the program".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Whose code a frame of a runtime is, by its module and, of one that is linked into the program,
/// by its function; `None` where that does not tell.
fn runtime_of(frame: &Frame) -> Option<&str> {
    const LINKED: [(&str, &[&str]); 3] = [
        (
            "libFuzzer",
            &[
                "fuzzer::",
                "libfuzzer_sys::",
                "rust_fuzzer_test_input",
                "test_input_wrap",
            ],
        ),
        (
            "Rust's library",
            &[
                "std::",
                "core::",
                "alloc::",
                "__rust",
                "rust_begin_unwind",
                "rust_panic",
                "rust_eh_personality",
                "<std::",
                "<core::",
                "<alloc::",
            ],
        ),
        (
            "the sanitizer",
            &[
                "__asan",
                "__hwasan",
                "__lsan",
                "__msan",
                "__sanitizer",
                "__tsan",
                "__ubsan",
                "__interceptor",
                "___interceptor",
                "__interception",
                "__sancov",
            ],
        ),
    ];
    let module = frame.module.split(".so").next().unwrap_or_default();
    let name = frame.name.as_deref().unwrap_or_default();
    Some(match module {
        "exe" => {
            let begins = |names: &&[&str]| names.iter().any(|begin| name.starts_with(begin));
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
