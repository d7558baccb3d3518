//! What is read of the group that is looked at: its crash, its reproducer, and its log as far as it has
//! come.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::model::Tab;
use crate::minimize::log::{Line, Source, TestLine};
use crate::report::text::printable;
use crate::report::{Extent, MinimizationHistory, Reduction, Trace, TraceLine, size};
use crate::store::{EntryId, Reader};
use crate::triage::Crash;

/// Bytes of a reproducer that can be looked at.
const SHOWN: usize = 64 << 10;
/// Bytes in a row of the dump where there is room, and where there is not.
pub(super) const ROW: (usize, usize) = (16, 8);

/// What was read of one group's files.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    entry: Option<EntryId>,
    /// What the crash said, its stacks and the source; `None` before they were read.
    pub(super) trace: Option<Vec<TraceLine>>,
    /// The first bytes of the reproducer as it is now.
    pub(super) bytes: Vec<u8>,
    /// All its bytes.
    pub(super) size: u64,
    /// The log as far as it has come.
    pub(super) log: Log,
    /// What could not be read.
    pub(super) trouble: Option<String>,
}

impl Detail {
    /// Reads what is new of an entry.
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

    /// Takes the record of the crash, which lies in `folder`, and reads the source.
    pub fn crash(&mut self, crash: &Crash, folder: Option<&Path>) {
        let trace = Trace::of(crash, folder);
        let mut lines: Vec<TraceLine> = Vec::new();
        // One of a single line stands above.
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

    /// Takes the first bytes of the reproducer, which has `size` of them.
    pub fn reproducer(&mut self, bytes: &[u8], size: u64) {
        self.bytes = bytes[..bytes.len().min(SHOWN)].to_vec();
        self.size = size;
    }

    /// The log.
    pub fn log(&mut self) -> &mut Log {
        &mut self.log
    }

    /// The number of the last line of a part of the page, from 0, at least.
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

/// Lines of the log that are kept.
const KEPT: usize = 500;
/// Bytes that are read at once, about: the campaign waits meanwhile.
const AT_ONCE: usize = 1 << 20;

/// What has been read of a log: the curve, and its last lines for people.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Length of what was read, in bytes: whole lines.
    read: u64,
    /// How the input shrank; `None` before the first line.
    pub(super) shrinking: Option<MinimizationHistory>,
    /// The last lines, the oldest first.
    pub(super) lines: VecDeque<String>,
}

impl Log {
    /// Reads what was written since. A log that is shorter than what was read of it is another
    /// one, and read from the beginning.
    ///
    /// # Errors
    /// When the file cannot be read. A file that is not there is no error: its time will come.
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
            // One without its end is being written.
            if !line.ends_with(b"\n") {
                break;
            }
            self.line(&line);
        }
        Ok(())
    }

    /// Takes a whole line.
    pub fn line(&mut self, json: &[u8]) {
        self.read += json.len() as u64;
        let text = match serde_json::from_slice::<Line>(json) {
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

    fn count(&mut self, line: &Line) {
        if let Line::Start(start) = line {
            self.shrinking = Some(MinimizationHistory::of(start, []));
        }
        let Some(shrinking) = &mut self.shrinking else {
            return;
        };
        match line {
            Line::Test(test) => {
                shrinking.tests += 1;
                shrinking.executed += u64::from(test.source == Source::Run);
            }
            Line::Reduce(step) => {
                shrinking.size_after = step.size;
                shrinking.steps.push(Reduction {
                    i: step.i,
                    executed: shrinking.executed,
                    rule: step.rule.clone(),
                    size: step.size,
                });
            }
            Line::End(end) => {
                shrinking.size_after = end.size;
                shrinking.claim = Some(end.claim);
            }
            Line::Start(_) | Line::Check(_) => {}
        }
    }
}

/// A line for people.
fn said(line: &Line) -> String {
    match line {
        Line::Start(start) => {
            format!("start  {} by {}", size::bytes(start.size), start.search)
        }
        Line::Test(test) => said_of_test(test),
        Line::Check(check) => {
            let what = format!("{:?}", check.what).to_lowercase();
            let outcome = format!("{:?}", check.outcome).to_uppercase();
            format!("check  {what}  {outcome}  {}", time(check.us))
        }
        Line::Reduce(step) => {
            format!("reduce to {} by {}", size::bytes(step.size), step.rule)
        }
        Line::End(end) => format!(
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
