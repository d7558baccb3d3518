//! Page of one group: reads the files of the group (crash record, reproducer, minimization log) and
//! draws them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use ratatui_core::text::{Line, Span};

use crate::cli::ui::campaign::draw::{clock, keys, plain, rule, size_bar, span, spread};
use crate::cli::ui::campaign::model::{Group, ScreenModel, Tab, kind};
use crate::minimize::log::{Line as LogLine, Source, TestLine};
use crate::report::text::{self, cut, printable};
use crate::report::{Extent, MinimizationHistory, Reduction, Trace, TraceLine, curve, size};
use crate::store::{EntryId, Reader};
use crate::triage::Crash;

/// Minimum terminal width in columns for a hex dump with 16 bytes per row; narrower terminals get
/// 8.
const WIDE: usize = 78;
/// Width in columns of the labels at the left of the page of a crash group.
const LABEL_WIDTH: usize = 8;
/// Width in columns of the bar that shows how large the minimized input is compared with the
/// original.
const BAR_WIDTH: usize = 12;

/// Draws the page of one crash group as lines of text: title, facts, and the content of one tab.
pub(super) fn lines(
    model: &ScreenModel,
    group: &Group,
    tab: Tab,
    scroll: usize,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let mut lines = vec![title(model, group, width)];
    lines.extend(facts(model, group, width));
    lines.push(rule(model, "", width));
    lines.push(tabs(model, tab));
    let room = height.saturating_sub(lines.len() + 1);
    let mut content = content(model, tab, scroll, width, room);
    content.resize(room, Line::default());
    lines.extend(content);
    lines.truncate(height.saturating_sub(1));
    let all = [
        ("q", "back"),
        ("tab", "next part"),
        ("↑↓", "scroll"),
        ("ctrl-c", "quit"),
    ];
    lines.push(keys(model, &all, width));
    lines
}

fn title(model: &ScreenModel, group: &Group, width: usize) -> Line<'static> {
    let time = span(clock(model.elapsed), model.palette.strong());
    let mut left = vec![
        span("ddfuzz ", model.palette.accent()),
        span(
            format!("{} {}", kind(group.kind), group.key),
            model.palette.strong(),
        ),
        plain(": "),
        span(group.class.clone(), model.palette.bad()),
    ];
    let used: usize = left.iter().map(Span::width).sum();
    // Where there is no room for both, the reason is cut and not the time.
    let room = width.saturating_sub(used + time.width() + 2);
    left.push(plain(cut(&format!(", {}", group.severity), room)));
    spread(left, time, width)
}

fn facts(model: &ScreenModel, group: &Group, width: usize) -> Vec<Line<'static>> {
    let reduced = size::reduction(group.size_before, group.size);
    let sizes = format!(
        "{reduced}  {}{}",
        size_bar(group.size_before, group.size, BAR_WIDTH),
        match group.tests {
            Some(tests) => format!("  in {}", size::counted(tests, "test")),
            None => String::new(),
        }
    );
    let facts = [
        ("message", group.message.clone()),
        ("where", Some(group.place.clone())),
        ("size", Some(sizes)),
        ("claim", Some(group.sentence.clone())),
        ("seen", Some(size::counted(group.seen, "run"))),
        ("file", Some(group.file.clone())),
    ];
    let line = |(name, value): (&str, Option<String>)| {
        Some(Line::from(vec![
            span(format!("{name:<LABEL_WIDTH$}"), model.palette.faint()),
            plain(cut(&value?, width.saturating_sub(LABEL_WIDTH))),
        ]))
    };
    facts.into_iter().filter_map(line).collect()
}

fn tabs(model: &ScreenModel, shown: Tab) -> Line<'static> {
    let names = Tab::ALL.map(|tab| match tab == shown {
        true => span(format!("[{}]", tab.name()), model.palette.accent()),
        false => plain(format!(" {} ", tab.name())),
    });
    Line::from(names.to_vec())
}

fn content(
    model: &ScreenModel,
    tab: Tab,
    scroll: usize,
    width: usize,
    room: usize,
) -> Vec<Line<'static>> {
    let detail = &model.detail;
    if let Some(trouble) = &detail.trouble {
        return vec![Line::from(span(trouble.clone(), model.palette.bad()))];
    }
    let nothing = |text: &str| vec![Line::from(span(text.to_owned(), model.palette.faint()))];
    match tab {
        Tab::Stack => match &detail.trace {
            None => nothing("reading"),
            Some(trace) if trace.is_empty() => nothing("no stack frame is known"),
            Some(_) => trace(model, scroll, width, room),
        },
        Tab::Input => dump(detail, scroll, width, room),
        Tab::Curve => match &detail.log.shrinking {
            Some(shrinking) if shrinking.executed > 0 => {
                let text = curve(shrinking, Some(width));
                text.lines()
                    .map(|line| Line::from(line.to_owned()))
                    .collect()
            }
            _ => nothing("no test has been run yet"),
        },
        Tab::Log if detail.log.lines.is_empty() => nothing("there is no log yet"),
        Tab::Log => log(detail, scroll, width, room),
    }
}

/// Draws the stacks and source lines of the group's crash, from line `scroll` on, as at most `room`
/// lines. Frames outside the user's code are faint.
fn trace(model: &ScreenModel, scroll: usize, width: usize, room: usize) -> Vec<Line<'static>> {
    let all = model.detail.trace.iter().flatten();
    let line = |line: &TraceLine| {
        let text = cut(&line.text, width.saturating_sub(LABEL_WIDTH));
        Line::from(vec![
            span(
                format!("{:<LABEL_WIDTH$}", line.title),
                model.palette.faint(),
            ),
            match line.own {
                true => plain(text),
                false => span(text, model.palette.faint()),
            },
        ])
    };
    all.skip(scroll).take(room).map(line).collect()
}

/// Draws the hex dump of the reproducer from row `scroll` on, in at most `room` lines.
fn dump(detail: &Detail, scroll: usize, width: usize, room: usize) -> Vec<Line<'static>> {
    let columns = if width >= WIDE { ROW.0 } else { ROW.1 };
    let bytes = &detail.bytes;
    let all = bytes.len().div_ceil(columns);
    let first = scroll.min(all.saturating_sub(1));
    let mut lines: Vec<Line<'static>> = bytes
        .chunks(columns)
        .enumerate()
        .skip(first)
        .take(room)
        .map(|(row, bytes)| {
            let (hex, text) = split(text::hex_line(bytes, columns));
            let wide = columns * 3;
            Line::from(format!("{:08x}  {hex:<wide$} {text}", row * columns))
        })
        .collect();
    if bytes.is_empty() {
        lines.push(Line::from("(empty)"));
    }
    let hidden = detail.size.saturating_sub(bytes.len() as u64);
    if hidden > 0 && lines.len() < room {
        let text = format!("and {} more", size::bytes(hidden));
        lines.push(Line::from(text));
    }
    lines
}

/// Returns the two columns of a row of the hex dump: the bytes in hex, and the same bytes as text.
fn split(line: String) -> (String, String) {
    match line.split_once('|') {
        Some((hex, text)) => (hex.trim_end().to_owned(), format!("|{text}")),
        None => (line, String::new()),
    }
}

/// Draws the end of the minimization log, as many lines as fit into `room`. `scroll`: how many of
/// the last lines are left out, because the user has scrolled up.
fn log(detail: &Detail, scroll: usize, width: usize, room: usize) -> Vec<Line<'static>> {
    let lines = &detail.log.lines;
    let end = lines
        .len()
        .saturating_sub(scroll)
        .max(room.min(lines.len()));
    let first = end.saturating_sub(room);
    lines
        .range(first..end)
        .map(|line| Line::from(cut(line, width)))
        .collect()
}

/// Maximum number of bytes of a reproducer that the hex dump shows.
const SHOWN: usize = 64 << 10;
/// Numbers of bytes per row of the hex dump: on wide terminals, and on narrow ones.
pub(super) const ROW: (usize, usize) = (16, 8);

/// What was read from the files of the crash group whose page is shown. While the campaign runs,
/// new data in the files is read again and again.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    entry: Option<EntryId>,
    /// Lines of text with message, stacks and source of the crash; `None` before the crash's file
    /// was read.
    pub(super) trace: Option<Vec<TraceLine>>,
    /// First bytes of the current reproducer of the group whose page is shown, up to 64 KiB.
    pub(super) bytes: Vec<u8>,
    /// Size in bytes of the current reproducer of the group whose page is shown.
    pub(super) size: u64,
    /// Minimization log of the crash whose page is shown, as far as it was read.
    pub(super) log: Log,
    /// Error of the last attempt to read the files of the group whose page is shown; `None` if it
    /// succeeded.
    pub(super) trouble: Option<String>,
}

impl Detail {
    /// Reads data that was added to the files of the stored crash `id`; if another crash was read
    /// before, discards its data first.
    pub fn read(&mut self, reader: &Reader, id: &EntryId) {
        if self.entry.as_ref() != Some(id) {
            *self = Detail {
                entry: Some(id.clone()),
                ..Detail::default()
            };
        }
        self.trouble = match self.read_files(reader, id) {
            Ok(()) => None,
            Err(error) => Some(printable(&error.to_string())),
        };
    }

    fn read_files(
        &mut self,
        reader: &Reader,
        id: &EntryId,
    ) -> Result<(), Box<dyn std::error::Error>> {
        // While the campaign runs, a file may be replaced at any moment, and none is torn.
        let Some(entry) = reader.entry(id)? else {
            return Err("the entry no longer exists".into());
        };
        if self.trace.is_none() {
            self.crash(&entry.crash, Some(&entry.folder));
        }
        let mut file = File::open(entry.reproducer())?;
        let size = file.metadata()?.len();
        self.reproducer(&first(&mut file)?, size);
        self.log.read(&entry.log())?;
        Ok(())
    }

    /// Sets the message, stacks and source lines to show from a crash record; `folder` is the
    /// directory in which the record is stored.
    pub fn crash(&mut self, crash: &Crash, folder: Option<&Path>) {
        let trace = Trace::of(crash, folder);
        let mut lines: Vec<TraceLine> = Vec::new();
        // A message of a single line is shown at the top of the page already.
        if let Some(message) = trace.message.as_deref().filter(|it| it.contains('\n')) {
            lines.extend(message.lines().map(|line| TraceLine {
                title: "",
                text: line.to_owned(),
                own: true,
            }));
            lines[0].title = "message";
        }
        lines.extend(trace.lines(Extent::WHOLE));
        self.trace = Some(lines);
    }

    /// Sets the reproducer that the hex dump shows; `bytes` are its first bytes, `size` its size in
    /// bytes.
    pub fn reproducer(&mut self, bytes: &[u8], size: u64) {
        self.bytes = bytes[..bytes.len().min(SHOWN)].to_vec();
        self.size = size;
    }

    /// Returns the minimization log of the crash group whose page is shown, so that lines can be
    /// added.
    pub fn log(&mut self) -> &mut Log {
        &mut self.log
    }

    /// Returns the index of the last line of the content of `tab`; scrolling ends there.
    pub(super) fn last_line(&self, tab: Tab) -> usize {
        let lines = match tab {
            Tab::Stack => self.trace.as_ref().map_or(0, Vec::len),
            Tab::Input => self.bytes.len().div_ceil(ROW.1),
            Tab::Curve => 0,
            Tab::Log => self.log.lines.len(),
        };
        lines.saturating_sub(1)
    }
}

fn first(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(SHOWN as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Maximum number of last lines of a minimization log that are kept as text.
const KEPT: usize = 500;
/// About the greatest number of bytes of a minimization log that are read at once, since the
/// campaign waits meanwhile.
const AT_ONCE: usize = 1 << 20;

/// A minimization log as far as it was read: the curve of sizes, and its last lines as text for
/// people.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Number of bytes of the minimization log's file that were read so far; always whole lines.
    read: u64,
    /// Sizes of the input over the tests of the minimization; `None` before the log's first line
    /// was read.
    pub(super) shrinking: Option<MinimizationHistory>,
    /// Up to 500 last lines of the minimization log as text for people, the oldest first.
    pub(super) lines: VecDeque<String>,
}

impl Log {
    /// Reads the lines added to the log file at `path` since the last call, at most about 1 MiB at
    /// once. A file that has become shorter is read again from the beginning.
    ///
    /// # Errors
    /// When the file cannot be read; a missing file is not an error.
    pub fn read(&mut self, path: &Path) -> io::Result<()> {
        let mut file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            opened => opened?,
        };
        if file.metadata()?.len() < self.read {
            *self = Log::default();
        }
        file.seek(SeekFrom::Start(self.read))?;
        let mut file = BufReader::new(file);
        let (mut line, mut taken) = (Vec::new(), 0);
        while taken < AT_ONCE {
            line.clear();
            taken += file.read_until(b'\n', &mut line)?;
            // A line without a line feed is still being written.
            if !line.ends_with(b"\n") {
                break;
            }
            self.line(&line);
        }
        Ok(())
    }

    /// Parses one line of the minimization log, and adds it to the curve of sizes and to the lines
    /// of text.
    pub fn line(&mut self, json: &[u8]) {
        self.read += json.len() as u64;
        let text = match serde_json::from_slice::<LogLine>(json) {
            Ok(line) => {
                self.count(&line);
                said(&line)
            }
            Err(error) => format!("not understood: {error}"),
        };
        self.lines.push_back(printable(&text));
        if self.lines.len() > KEPT {
            self.lines.pop_front();
        }
    }

    fn count(&mut self, line: &LogLine) {
        if let LogLine::Start(start) = line {
            self.shrinking = Some(MinimizationHistory::of(start, []));
        }
        let Some(shrinking) = &mut self.shrinking else {
            return;
        };
        match line {
            LogLine::Test(test) => {
                shrinking.tests += 1;
                shrinking.executed += u64::from(test.source == Source::Run);
            }
            LogLine::Reduce(step) => {
                shrinking.size_after = step.size;
                shrinking.steps.push(Reduction {
                    i: step.i,
                    executed: shrinking.executed,
                    rule: step.rule.clone(),
                    size: step.size,
                });
            }
            LogLine::End(end) => {
                shrinking.size_after = end.size;
                shrinking.claim = Some(end.claim);
            }
            LogLine::Start(_) | LogLine::Check(_) => {}
        }
    }
}

/// Formats a line of the minimization log as text for people.
fn said(line: &LogLine) -> String {
    match line {
        LogLine::Start(start) => {
            format!("start  {} by {}", size::bytes(start.size), start.search)
        }
        LogLine::Test(test) => said_of_test(test),
        LogLine::Check(check) => {
            let what = format!("{:?}", check.what).to_lowercase();
            let outcome = format!("{:?}", check.outcome).to_uppercase();
            format!("check  {what}  {outcome}  {}", time(check.us))
        }
        LogLine::Reduce(step) => {
            format!("reduce to {} by {}", size::bytes(step.size), step.rule)
        }
        LogLine::End(end) => format!(
            "end    {}: {}, {} of {} proved",
            size::bytes(end.size),
            end.claim,
            size::grouped(end.proved.done),
            size::grouped(end.proved.of)
        ),
    }
}

fn said_of_test(test: &TestLine) -> String {
    let how = match test.source {
        Source::Run => time(test.us),
        Source::Cache => "known".to_owned(),
        Source::Predicted => "predicted".to_owned(),
    };
    let outcome = format!("{:?}", test.outcome).to_uppercase();
    let mut text = format!(
        "test   {}  {outcome}  {}  {how}",
        size::grouped(test.i),
        size::bytes(test.size)
    );
    if test.phase.is_some() {
        text.push_str("  proof");
    } else if let Some(pass) = &test.pass {
        text.push_str("  ");
        text.push_str(pass);
    }
    if test.slip.is_some() {
        text.push_str("  another bug");
    }
    text
}

fn time(us: u64) -> String {
    format!("{}.{} ms", size::grouped(us / 1000), us % 1000 / 100)
}
