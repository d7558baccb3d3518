//! A minimization log, read as far as it has come.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use crate::minimize::log::{Line, Source, TestLine};
use crate::report::text::printable;
use crate::report::{Shrinking, Step, size};

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
    pub(super) shrinking: Option<Shrinking>,
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
            self.shrinking = Some(Shrinking::of(start, []));
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
                shrinking.steps.push(Step {
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
