//! Reports of AddressSanitizer, HWAddressSanitizer, UndefinedBehaviorSanitizer, MemorySanitizer,
//! ThreadSanitizer and LeakSanitizer, as gcc's and clang's runtimes print them.

mod frame;
mod header;
mod kinds;
mod object;

use serde::{Deserialize, Serialize};

use super::lines::lines;
pub use ddfuzz_exec::Sanitizer as Tool;
pub use frame::ReportFrame;
use header::{Header, header};
pub use object::{ObjectKind, ReportObject};

/// The access that a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportAccess {
    /// Memory was read.
    Read,
    /// Memory was written.
    Write,
}

/// A sanitizer's report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Who reports.
    pub tool: Tool,
    /// What, in the sanitizer's own words: `heap-buffer-overflow`, `SEGV`; of
    /// UndefinedBehaviorSanitizer the check as in `-fsanitize=CHECK`.
    pub kind: String,
    /// The access, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<ReportAccess>,
    /// Its first line without process id, addresses and registers: `AddressSanitizer:
    /// heap-buffer-overflow`, `runtime error: signed integer overflow: …`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub headline: String,
    /// Bytes accessed, asked for, or leaked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// `FILE:LINE:COLUMN`, where the report begins with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The first stack, innermost frame first: where it happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<ReportFrame>,
    /// Where the memory was allocated (or, of an uninitialized value, created).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocated: Vec<ReportFrame>,
    /// Where the memory was freed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub freed: Vec<ReportFrame>,
    /// The object that the access is about; in records it stands beside the report.
    #[serde(skip)]
    pub object: Option<ReportObject>,
}

/// The kinds that are deadly signals: what a program without the sanitizer would have died of.
const SIGNALS: [(&str, &str); 7] = [
    ("SEGV", "segv"),
    ("BUS", "bus"),
    ("FPE", "fpe"),
    ("ILL", "ill"),
    ("ABRT", "abrt"),
    ("TRAP", "trap"),
    ("stack-overflow", "stackoverflow"),
];

impl Report {
    /// Whether more memory was asked for at once than the user allows, and not more than any
    /// sanitizer can give: libFuzzer calls that out of memory.
    pub fn is_over_limit(&self) -> bool {
        let most: u64 = match self.tool {
            Tool::Msan => 8 << 30,
            _ => 1 << 40,
        };
        self.kind == "allocation-size-too-big" && self.size.is_some_and(|size| size <= most)
    }

    /// The class of a plain program that dies like this, where the report is about a signal.
    pub fn signal_class(&self) -> Option<&'static str> {
        let found = SIGNALS.iter().find(|(kind, _)| *kind == self.kind);
        found.map(|(_, class)| *class)
    }
}

/// Frames of one stack that are kept.
const MOST_FRAMES: usize = 256;

/// The first report in what a program wrote; `None` where there is none.
pub fn report(text: &[u8]) -> Option<Report> {
    let mut reading: Option<Reading> = None;
    for line in lines(text) {
        match (&mut reading, header(&line)) {
            (None, Some(header)) => reading = Some(Reading::of(header)),
            (None, None) => {}
            // Of the second report nothing is asked.
            (Some(reading), Some(_)) if reading.is_over() => break,
            (Some(reading), _) => reading.line(&line),
        }
    }
    reading.map(Reading::finish)
}

/// Which of a report's stacks is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    First,
    Allocated,
    Freed,
    /// The frame that holds the object.
    Holder,
    Other,
}

/// A report that is being read.
struct Reading {
    report: Report,
    part: Part,
    /// The function whose variable the access is about.
    holder: Option<ReportFrame>,
    /// Frames of the current part have been seen, and nothing else since.
    in_stack: bool,
    /// The kind was not among the known phrases.
    guessed: bool,
}

impl Reading {
    fn of(header: Header) -> Reading {
        Reading {
            report: Report {
                tool: header.tool,
                kind: header.kind,
                headline: header.headline,
                access: None,
                size: header.size,
                location: header.location,
                stack: Vec::new(),
                allocated: Vec::new(),
                freed: Vec::new(),
                object: None,
            },
            part: Part::First,
            holder: None,
            in_stack: false,
            guessed: header.guessed,
        }
    }

    /// Whether another header belongs to another report: some print their name twice.
    fn is_over(&self) -> bool {
        !self.report.stack.is_empty()
    }

    fn line(&mut self, line: &str) {
        if let Some((number, frame)) = frame::numbered(line) {
            return self.frame(number, frame);
        }
        if self.in_stack {
            self.in_stack = false;
            self.part = Part::Other;
        }
        let trimmed = line.trim_start();
        if let Some(said) = object::said(trimmed) {
            self.object(said);
        } else if trimmed.starts_with("freed by thread") {
            self.part = Part::Freed;
        } else if trimmed.starts_with("allocated by thread")
            || trimmed.starts_with("previously allocated by thread")
            || trimmed.starts_with("Uninitialized value was created by")
        {
            self.part = Part::Allocated;
        } else if let Some(kind) = self.summary(trimmed) {
            self.report.kind = kind;
            self.guessed = false;
        } else if self.report.tool == Tool::Lsan {
            self.leak(trimmed);
        } else if self.report.access.is_none() && self.report.stack.is_empty() {
            self.access(trimmed);
        }
    }

    fn frame(&mut self, number: u64, frame: ReportFrame) {
        if self.in_stack && number == 0 {
            self.part = Part::Other; // two stacks without a word between them
        }
        self.in_stack = true;
        let stack = match self.part {
            Part::First => &mut self.report.stack,
            Part::Allocated => &mut self.report.allocated,
            Part::Freed => &mut self.report.freed,
            Part::Holder => return self.holder = self.holder.take().or(Some(frame)),
            Part::Other => return,
        };
        if stack.len() < MOST_FRAMES {
            stack.push(frame);
        }
    }

    /// Of several objects, as global variables side by side, the nearest is taken.
    fn object(&mut self, said: object::Said) {
        let object = match said {
            object::Said::InFrame => return self.part = Part::Holder,
            object::Said::Object(object) => *object,
        };
        let known = self.report.object.as_ref();
        if known.is_none_or(|known| object.distance() < known.distance()) {
            self.report.object = Some(object);
        }
    }

    /// The kind as the last line names it, where the first one had words that are not known.
    fn summary(&self, line: &str) -> Option<String> {
        let rest = line.strip_prefix("SUMMARY: ").filter(|_| self.guessed)?;
        let (_, rest) = rest.split_once("Sanitizer: ")?;
        kinds::word(rest)
    }

    /// `Direct leak of 10 byte(s) in 1 object(s) allocated from:`. The first direct leak is taken,
    /// and the first indirect one where there is none: it may hang in a circle.
    fn leak(&mut self, line: &str) {
        let (kind, rest) = match line.split_once(" leak of ") {
            Some(("Direct", rest)) => ("direct-leak", rest),
            Some(("Indirect", rest)) => ("indirect-leak", rest),
            _ => return,
        };
        let first = self.report.stack.is_empty() && self.report.size.is_none();
        let better = kind == "direct-leak" && self.report.kind == "indirect-leak";
        if first || better {
            self.report.stack.clear();
            self.report.kind = kind.to_owned();
            self.report.size = kinds::number(rest);
            self.part = Part::First;
        }
    }

    /// `READ of size 4 at …`, `The signal is caused by a WRITE memory access.`
    fn access(&mut self, line: &str) {
        let words = || line.split_whitespace();
        let signal = line
            .split_once("The signal is caused by a ")
            .map(|(_, rest)| rest);
        let size = line.split_once(" of size ").map(|(_, rest)| rest);
        if signal.is_none() && size.is_none() {
            return;
        }
        let named = signal.map_or_else(
            || words().take(3).collect::<Vec<_>>(),
            |signal| signal.split_whitespace().take(1).collect(),
        );
        let is = |name: &str| named.iter().any(|word| word.eq_ignore_ascii_case(name));
        if is("write") {
            self.report.access = Some(ReportAccess::Write);
        } else if is("read") {
            self.report.access = Some(ReportAccess::Read);
        }
        self.report.size = self.report.size.or(size.and_then(kinds::number));
    }

    fn finish(mut self) -> Report {
        if let Some(object) = &mut self.report.object
            && object.kind == ObjectKind::Stack
        {
            object.frame = self.holder;
        }
        self.report
    }
}
