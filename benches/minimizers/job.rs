//! One tool on one case.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::cost::Cost;
use crate::families::Case;
use crate::measure::{Finished, run};
use crate::peers::Peer;
use crate::programs::{Driver, compile};
use crate::row::{Minimality, Row};

/// A folder of its own with the input and the programs.
pub struct Job<'a> {
    /// The case.
    pub case: &'a Case,
    /// The folder, in which the tool runs.
    pub folder: &'a Path,
    /// The failing input; tools that change it may.
    pub input: PathBuf,
    /// The case as an interestingness test.
    pub judge: PathBuf,
    /// Longest CPU time.
    pub limit: Duration,
}

impl Job<'_> {
    /// The case, compiled for this driver.
    ///
    /// # Errors
    /// What the compiler says.
    pub fn program(&self, driver: Driver) -> Result<PathBuf, String> {
        compile(self.case, driver, self.folder)
    }

    /// A file of the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file of the folder.
    ///
    /// # Errors
    /// When that is impossible.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, String> {
        let file = self.file(name);
        fs::write(&file, content).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(file)
    }

    /// How many calls of the target were counted.
    fn calls(&self) -> u64 {
        fs::metadata(self.file("calls")).map_or(0, |about| about.len())
    }

    /// Whether a text is 1-minimal, or not even a failure.
    fn standing(&self, text: &[u8]) -> Result<Minimality, String> {
        let file = self.write("checked", text)?;
        let ask = |options: &[&str]| {
            let mut judge = Command::new(&self.judge);
            judge
                .args(options)
                .arg(&file)
                .env("BENCH_BUG", self.case.bug);
            judge
                .output()
                .map_err(|error| format!("the judge: {error}"))
        };
        if !ask(&[])?.status.success() {
            return Ok(Minimality::OtherBug);
        }
        let output = ask(&["--deletions"])?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let removable = text
            .split_whitespace()
            .nth(1)
            .and_then(|at| at.parse::<i64>().ok());
        let removable = removable.ok_or("the judge says nothing of deletions")?;
        Ok(match usize::try_from(removable) {
            Ok(at) => Minimality::Reducible(at),
            Err(_) => Minimality::Minimal { proved: false },
        })
    }
}

/// Lets a tool minimize a case.
///
/// # Errors
/// What stands in the way of measuring at all.
pub fn measure(case: &Case, tool: &dyn Peer, limit: Duration) -> Result<Row, String> {
    let mut row = Row::new(tool);
    if let Err(why) = tool.reads(case) {
        row.note = Some(why.to_owned());
        return Ok(row);
    }
    let folder = tempfile::tempdir().map_err(|error| format!("a temporary folder: {error}"))?;
    let input = folder.path().join(case.file_name("input"));
    fs::write(&input, &case.input).map_err(|error| format!("{}: {error}", input.display()))?;
    let job = Job {
        case,
        folder: folder.path(),
        input,
        judge: compile(case, Driver::Judge, folder.path())?,
        limit,
    };
    run_commands(&job, tool, &mut row)?;
    row.tests = job.calls();
    let text = match row.timed_out {
        // What a tool that was ended has written may be what it was about to test.
        true => smallest_seen(&job).or_else(|| tool.result(&job)),
        false => tool.result(&job),
    };
    if let Some(text) = text {
        row.result = Some((text.len(), job.standing(&text)?));
    }
    tool.refine(&job, &mut row)?;
    if row.result.is_none() && row.note.is_none() {
        row.note = Some("no result".to_owned());
    }
    Ok(row)
}

/// Runs the tool's commands one after another within one limit.
fn run_commands(job: &Job<'_>, tool: &dyn Peer, row: &mut Row) -> Result<(), String> {
    for mut command in tool.commands(job)? {
        let open = |name| fs::File::create(job.file(name)).map_err(|error| error.to_string());
        if tool.search().is_none() {
            command
                .env("BENCH_CALLS", job.file("calls"))
                .env("BENCH_BEST", job.file("best"))
                .env("BENCH_BUG", job.case.bug);
        }
        command
            .current_dir(job.folder)
            .env("TMPDIR", job.folder)
            .stdout(open("stdout")?)
            .stderr(open("stderr")?);
        let left = job.limit.saturating_sub(row.cost.cpu);
        let (finished, Cost { wall, cpu }) = run(&mut command, left)?;
        row.cost.wall += wall;
        row.cost.cpu += cpu;
        match finished {
            Finished::Ended(status) if !status.success() && !tool.may_end_with(status) => {
                row.note = Some(last_line(job).unwrap_or(status.to_string()));
                return Ok(());
            }
            Finished::Ended(_) => {}
            Finished::TimedOut => {
                row.timed_out = true;
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The smallest interesting input that the judge saw.
fn smallest_seen(job: &Job<'_>) -> Option<Vec<u8>> {
    fs::read(job.file("best")).ok()
}

/// The last line that the tool said.
fn last_line(job: &Job<'_>) -> Option<String> {
    ["stderr", "stdout"].iter().find_map(|name| {
        let text = fs::read(job.file(name)).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(line.trim().chars().take(100).collect())
    })
}
