//! Parses reports of AddressSanitizer, HWAddressSanitizer, UndefinedBehaviorSanitizer,
//! MemorySanitizer, ThreadSanitizer and LeakSanitizer, as the runtimes of gcc and clang print them.

use serde::{Deserialize, Serialize};

use crate::fault::Address;
use crate::messages::{cut, lines, number};
use crate::reported_object::{ObjectKind, ObjectLine, ReportObject, parse_object_line};
use header::{Header, header, word};

mod header;

pub use ddfuzz_exec::Sanitizer as Tool;
use ddfuzz_exec::facts::DEBUG_ASSERTIONS;

/// Checks whether a program that was compiled with `-fsanitize=FLAG` may print reports of the
/// sanitizer `tool`: true for the sanitizer that `flag` names; for LeakSanitizer also if `flag` is
/// `address` or `hwaddress`; for UndefinedBehaviorSanitizer if `flag` names any sanitizer, since
/// all sanitizers' runtimes contain it.
pub(crate) fn comes_with(tool: Tool, flag: &str) -> bool {
    match tool {
        Tool::Ubsan => flag != DEBUG_ASSERTIONS,
        Tool::Lsan => matches!(flag, "leak" | "address" | "hwaddress"),
        _ => flag == tool.flag(),
    }
}

/// Kind of the faulty memory access that a sanitizer reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportAccess {
    /// The faulty access that the sanitizer reports read memory.
    Read,
    /// The faulty access that the sanitizer reports wrote memory.
    Write,
}

/// A report of a sanitizer (AddressSanitizer, UndefinedBehaviorSanitizer …), parsed from a
/// program's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The sanitizer that wrote the report.
    pub tool: Tool,
    /// Kind of the error in the sanitizer's words: `heap-buffer-overflow`, `SEGV`; for
    /// UndefinedBehaviorSanitizer the check as in `-fsanitize=CHECK`.
    pub kind: String,
    /// Whether the faulty access that the sanitizer reports read or wrote memory; `None` where the
    /// report is not about a memory access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<ReportAccess>,
    /// First line of the report without process id, addresses and registers: `AddressSanitizer:
    /// heap-buffer-overflow`, `runtime error: signed integer overflow: …`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub headline: String,
    /// Number of bytes that were accessed, allocated or leaked, depending on the kind of error in
    /// the report; `None` where the report does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Source location `FILE:LINE:COLUMN` of the error, where the report begins with one; else
    /// `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// First stack in the report, innermost frame first: where the error happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<ReportFrame>,
    /// Stack of the allocation of the memory that the report is about (of an uninitialized value,
    /// the stack of its creation), innermost frame first; empty if the report has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocated: Vec<ReportFrame>,
    /// Stack of the `free` of the memory that the report is about, innermost frame first; empty if
    /// the report has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub freed: Vec<ReportFrame>,
    /// The object (variable or heap block) that was accessed; `None` if the report names none.
    /// Crash records store it outside the report.
    #[serde(skip)]
    pub object: Option<ReportObject>,
}

/// Kinds of errors in sanitizer reports about deadly signals, each with the class that the crash
/// would have in a program without the sanitizer.
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
    /// Checks whether the report is about a single allocation that exceeded the memory limit of the
    /// run, but not the maximum that the sanitizer supports. libFuzzer reports such an allocation
    /// as out of memory.
    pub fn is_over_limit(&self) -> bool {
        let most: u64 = match self.tool {
            Tool::Msan => 8 << 30,
            _ => 1 << 40,
        };
        self.kind == "allocation-size-too-big" && self.size.is_some_and(|size| size <= most)
    }

    /// For a report about a deadly signal, returns the class that the crash would have without the
    /// sanitizer, such as `segv`; `None` for other reports.
    pub fn signal_class(&self) -> Option<&'static str> {
        // ThreadSanitizer's kind ends with the address: `ABRT-on-unknown-address-0xfffe000058cf`.
        let kind = self.kind.split("-on-unknown-address").next();
        let found = SIGNALS.iter().find(|(signal, _)| kind == Some(*signal));
        found.map(|(_, class)| *class)
    }
}

/// Maximum number of frames that are kept of one stack in a sanitizer's report.
const MOST_FRAMES: usize = 256;

/// Finds and parses the first sanitizer report in a program's output; `None` where there is none.
pub fn report(text: &[u8]) -> Option<Report> {
    let mut reading: Option<Reading> = None;
    for line in lines(text) {
        let Some(reading) = &mut reading else {
            reading = header(&line).map(Reading::of);
            continue;
        };
        match frame_line(&line) {
            Some((is_first, frame)) => reading.frame(is_first, frame),
            // Of the second report nothing is asked.
            None if reading.is_over() && header(&line).is_some() => break,
            None => reading.line(&line),
        }
    }
    reading.map(Reading::finish)
}

/// The stack in a sanitizer's report to which the frames that are parsed next belong: that of the
/// error, of the allocation, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    First,
    Allocated,
    Freed,
    /// The frames are of the one-frame stack that names the function which declares the accessed
    /// stack variable.
    Holder,
    Other,
}

/// State of the parser that reads a sanitizer's report line by line.
struct Reading {
    report: Report,
    part: Part,
    /// Stack frame, in the report, of the function that declares the accessed stack variable;
    /// `None` if it was not read yet.
    holder: Option<ReportFrame>,
    /// Whether the last line of the report that was parsed is a stack frame.
    in_stack: bool,
    /// Whether the kind of error is a guess so far, because the report's first line has unknown
    /// words.
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

    /// Checks whether the first stack of the report has been read, so that a further first line of
    /// a report begins a second report. Some sanitizers print their first line twice before the
    /// first stack.
    fn is_over(&self) -> bool {
        !self.report.stack.is_empty()
    }

    /// Records what `line` says, a line of the report that is no stack frame.
    fn line(&mut self, line: &str) {
        if self.in_stack {
            self.in_stack = false;
            self.part = Part::Other;
        }
        let trimmed = line.trim_start();
        if let Some(said) = parse_object_line(trimmed) {
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

    /// Adds `frame` to the stack of the report to which it belongs; that stack is known from the
    /// lines before. `is_first` says that the frame has the number 0: after another frame, it
    /// begins a stack that is not recorded.
    fn frame(&mut self, is_first: bool, frame: ReportFrame) {
        if self.in_stack && is_first {
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

    /// Records the accessed object that a line of the report names. If several lines name an object
    /// each, such as adjacent global variables, the object nearest to the access is kept.
    fn object(&mut self, said: ObjectLine) {
        let object = match said {
            ObjectLine::InFrame => return self.part = Part::Holder,
            ObjectLine::Object(object) => *object,
        };
        let known = self.report.object.as_ref();
        if known.is_none_or(|known| object.distance() < known.distance()) {
            self.report.object = Some(object);
        }
    }

    /// Returns the kind of error that `line`, the summary at the end of a sanitizer's report,
    /// names. `None` if the line is not a summary, or if the first line of the report has already
    /// told the kind.
    fn summary(&self, line: &str) -> Option<String> {
        let rest = line.strip_prefix("SUMMARY: ").filter(|_| self.guessed)?;
        let (_, rest) = rest.split_once("Sanitizer: ")?;
        word(rest)
    }

    /// Records the leak that a line of a LeakSanitizer report tells of: `Direct leak of 10 byte(s)
    /// in 1 object(s) allocated from:`. The first direct leak is kept, else the first indirect one,
    /// which may be part of a cycle.
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
            self.report.size = number(rest);
            self.part = Part::First;
        }
    }

    /// Records from a line of a sanitizer's report whether memory was read or written, and how many
    /// bytes: `READ of size 4 at …`, or `The signal is caused by a WRITE memory access.`, which has
    /// no size. Ignores other lines.
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
        self.report.size = self.report.size.or(size.and_then(number));
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

/// One stack frame in a sanitizer's report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportFrame {
    /// Address of the frame's code in the process; for a caller, the return address − 1; `None`
    /// where the report has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// Path or base name of the frame's module (program or library), as in the report; `None` where
    /// the report has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Address of the frame's code as an offset from its module's load bias, in bytes; `None` where
    /// the report has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<Address>,
    /// Name of the frame's function; `None` where the report is not symbolized.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Source location `file:line:column` of the frame; `None` where the report is not symbolized.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

impl ReportFrame {
    /// Returns the base name of the frame's module; `None` where the report names no module.
    pub fn base_name(&self) -> Option<&str> {
        let module = self.module.as_deref()?;
        Some(module.rsplit('/').next().unwrap_or(module))
    }
}

/// Maximum number of bytes that are kept of a function name or path in a sanitizer's report.
const LONGEST: usize = 1024;

/// Parses `line`, a line of a sanitizer's report, as a stack frame. Returns whether the frame
/// begins with the number 0, and the frame; `None` if `line` is no stack frame. A frame without a
/// number never counts as having the number 0.
///
/// ```text
/// #1 0x55d0 in function(int) /path/file.c:3:4       by default: a number before the frame
/// 0x55d0 /path/module0x1234                         as ddfuzz has AddressSanitizer print it
/// 0x55d0 <null>0x0                                  the same, of code outside all modules
/// ```
fn frame_line(line: &str) -> Option<(bool, ReportFrame)> {
    if line.starts_with("0x") {
        return Some((false, brief_frame(line)?));
    }
    let rest = line.trim_start().strip_prefix('#')?;
    let end = rest.find(' ')?;
    let number: u64 = rest[..end].parse().ok()?;
    Some((number == 0, parse_frame(rest[end..].trim())))
}

/// Name given to the function of a stack frame whose address is outside all modules, as in the
/// default format of sanitizers.
const NO_MODULE: &str = "(<unknown module>)";

/// Parses a stack frame in the format that ddfuzz has AddressSanitizer print: `line` has the
/// address, the module, and the offset in the module, without a number before them. `None` if
/// `line` has another format.
fn brief_frame(line: &str) -> Option<ReportFrame> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (address, place) = line.strip_prefix("0x")?.split_once(' ')?;
    let (module, offset) = place.rsplit_once("0x")?;
    let (address, offset) = (hex(address)?, hex(offset)?);
    let is_known = module != "<null>";
    Some(ReportFrame {
        address: Some(Address(address)),
        module: is_known.then(|| cut(module, LONGEST).to_owned()),
        offset: is_known.then_some(Address(offset)),
        function: (!is_known).then(|| NO_MODULE.to_owned()),
        line: None,
    })
}

/// Parses a stack frame of a sanitizer's report, after its number:
///
/// ```text
/// 0x55d0  (/path/module+0x1234) (BuildId: 00ff)     not symbolized
/// 0x55d0 in function(int) /path/file.c:3:4          symbolized
/// 0x55d0 in function (/path/module+0x1234)          symbolized without debug information
/// function /path/file.c:3:4 (module+0x1234)         ThreadSanitizer; `<null>` if unknown
/// ```
fn parse_frame(text: &str) -> ReportFrame {
    let mut frame = ReportFrame::default();
    let mut rest = text;
    if let Some(hex) = rest.strip_prefix("0x") {
        let end = hex.find(' ').unwrap_or(hex.len());
        if let Ok(address) = u64::from_str_radix(&hex[..end], 16) {
            frame.address = Some(Address(address));
            rest = hex[end..].trim_start();
        }
    }
    if let Some(at) = rest.rfind(" (BuildId: ") {
        rest = rest[..at].trim_end();
    }
    if let Some((before, module, offset)) = parse_module(rest) {
        frame.module = Some(cut(module, LONGEST).to_owned());
        frame.offset = Some(Address(offset));
        rest = before.trim_end();
    }
    let rest = rest.strip_prefix("in ").unwrap_or(rest).trim();
    let (function, line) = match rest.rsplit_once(' ') {
        Some((function, line)) if is_place(line) => (function.trim(), Some(line)),
        // A location that is missing is `<null>`, too.
        Some((function, "<null>")) => (function.trim(), None),
        _ => (rest, None),
    };
    let known = |text: &str| !text.is_empty() && text != "<null>";
    frame.function = known(function).then(|| cut(function, LONGEST).to_owned());
    frame.line = line.map(|line| cut(line, LONGEST).to_owned());
    frame
}

/// Parses the module at the end of a stack frame in a sanitizer's report, `… (MODULE+0xOFFSET)`:
/// returns the text before it, module and offset; `None` for other text. A path may contain spaces
/// and parentheses: it begins at the first ` (/`, else at the last `(`.
fn parse_module(text: &str) -> Option<(&str, &str, u64)> {
    let inner = text.strip_suffix(')')?;
    let (head, offset) = inner.rsplit_once("+0x")?;
    let offset = u64::from_str_radix(offset, 16).ok()?;
    let begin = match head.find("(/") {
        Some(at) if at == 0 || head[..at].ends_with(' ') => at,
        _ => head.rfind('(')?,
    };
    Some((&head[..begin], &head[begin + 1..], offset))
}

/// Checks whether a word is a source location, `FILE:LINE` or `FILE:LINE:COLUMN`.
fn is_place(word: &str) -> bool {
    word.rsplit_once(':').is_some_and(|(file, number)| {
        !file.is_empty() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}
