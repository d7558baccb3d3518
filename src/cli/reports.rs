//! Reports for CI servers: writes the groups as Markdown (`--markdown`), SARIF (`--sarif`) and
//! JUnit (`--junit`).

use std::cmp::Reverse;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::output::print_bytes;
use super::results::{is_same_path, is_standard};
use super::{Exit, Failure, Output};
use crate::exec::{Program, Target};
use crate::files::{FileError, atomic, regular};
use crate::report::cause;
use crate::report::ci::{Finding, Findings, junit, markdown, sarif};

/// Options for reports that CI servers read: Markdown, SARIF and JUnit.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Reports for CI")]
pub struct ReportArgs {
    /// Write a summary of the groups as Markdown to FILE. A file that ddfuzz has written is
    /// overwritten, any other is not; the same holds for --sarif and --junit
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the groups as SARIF 2.1.0 to FILE, for code scanning
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write the groups as a JUnit report to FILE: each is a failed test, known ones are skipped
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// A text in the reports of a kind that ddfuzz writes, and the number of bytes at the beginning of
/// a file within which the text must occur: ddfuzz then takes the file for its own report, and may
/// overwrite it.
pub type Mark = (&'static str, usize);

/// Text at the beginning of a Markdown report by which ddfuzz recognizes its own report.
pub const MARKDOWN: Mark = ("<!-- ddfuzz -->", 16);
/// Text at the beginning of an HTML page by which ddfuzz recognizes its own page.
pub const HTML: Mark = ("<!-- ddfuzz -->", 64);
/// Text that a SARIF report of ddfuzz contains. It may be anywhere in the file: JSON members are
/// sorted by name, so the tool's name comes after all results. Since files of other programs may
/// contain the text, too, [`is_own_sarif`] checks that it is the name of the tool.
const SARIF: Mark = ("\"name\": \"ddfuzz\"", usize::MAX);
/// Text at the beginning of a JUnit report by which ddfuzz recognizes its own report.
const JUNIT: Mark = ("<testsuites name=\"ddfuzz\"", 128);

impl ReportArgs {
    pub fn is_empty(&self) -> bool {
        self.markdown.is_none() && self.sarif.is_none() && self.junit.is_none()
    }

    /// Checks, before the target is run, that the file of each requested report does not exist, is
    /// empty, or was written by ddfuzz. Returns the output settings with which messages go to
    /// stderr if a report goes to stdout.
    pub fn check(&self, output: &Output) -> Result<Output, Failure> {
        let all = [
            (&self.markdown, MARKDOWN),
            (&self.sarif, SARIF),
            (&self.junit, JUNIT),
        ];
        check_reports(&all, output)
    }

    /// Fails if `file`, into which the same call writes a report of another kind, is also the file
    /// of one of the requested Markdown, SARIF and JUnit reports.
    pub fn check_other(&self, file: &Path) -> Result<(), Failure> {
        let all = [&self.markdown, &self.sarif, &self.junit];
        let mut all = all.into_iter().flatten();
        match all.any(|report| is_same_path(report, file)) {
            true => Err(written_twice(file)),
            false => Ok(()),
        }
    }

    /// Writes the reports that the options request (Markdown, SARIF, JUnit) on the crash groups in
    /// `findings`.
    pub fn write(&self, findings: &Findings) -> Result<(), Failure> {
        write_report(&self.markdown, || markdown(findings))?;
        write_report(&self.sarif, || sarif(findings))?;
        write_report(&self.junit, || junit(findings))
    }
}

/// Maximum number of crash groups that a result describes in full, with message, stacks and source.
const TOLD: usize = 3;

/// Describes up to three crash groups in full, with message, stacks and source: crashes before
/// other failures, the most severe first. Groups without a stack trace are left out; empty if no
/// group is left.
pub fn causes<'a>(findings: impl Iterator<Item = &'a Finding>) -> String {
    let told = findings.filter(|finding| !finding.trace.is_empty());
    let mut worst: Vec<&Finding> = told.collect();
    worst.sort_by_key(|finding| (finding.kind, Reverse(finding.severity)));
    worst.truncate(TOLD);
    let blocks = worst.iter().map(|finding| cause(finding) + "\n");
    blocks.collect()
}

/// Writes the report that `text` returns to `file` (`-` is stdout); does nothing if `file` is
/// `None`.
///
/// # Errors
/// When the file cannot be written; it is then unchanged.
pub fn write_report(file: &Option<PathBuf>, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(file) = file else {
        return Ok(());
    };
    let text = text();
    if is_standard(file) {
        print_bytes(text.as_bytes());
        return Ok(());
    }
    // A link stays, and so do the permissions of a report that is replaced.
    let place = file.canonicalize().unwrap_or_else(|_| file.clone());
    atomic::rewrite(&place, text.as_bytes()).map_err(|error| unwritten_report(file, error))
}

/// Creates a failure for a report that cannot be written to `file`. If the file's directory is the
/// reason, a hint says what to do.
pub fn unwritten_report(file: &Path, error: FileError) -> Failure {
    match error.io().kind() {
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
            let failure = Failure::new(Exit::Usage, "read-only", error).path(file);
            failure.hint("give a file in a directory that you may write to; `-` is stdout")
        }
        _ => Failure::unwritten(file, error),
    }
}

/// Checks that each requested report file does not exist, is empty, or was written by ddfuzz, and
/// that its directory exists. Returns the output settings with which messages go to stderr if a
/// report goes to stdout. Fails if more than one would go to stdout.
pub fn check_reports(
    reports: &[(&Option<PathBuf>, Mark)],
    output: &Output,
) -> Result<Output, Failure> {
    let mut to_stdout = 0;
    for (at, (file, mark)) in reports.iter().enumerate() {
        let is_same = |earlier: &Option<PathBuf>| match (earlier, file) {
            (Some(earlier), Some(file)) => is_same_path(earlier, file),
            _ => false,
        };
        let earlier = reports[..at].iter().find(|(earlier, _)| is_same(earlier));
        match file {
            Some(file) if earlier.is_some() && !is_standard(file) => {
                return Err(written_twice(file));
            }
            Some(file) if is_standard(file) => to_stdout += 1,
            Some(file) => may_be_written(file, *mark)?,
            None => {}
        }
    }
    match to_stdout {
        0 => Ok(output.clone()),
        1 => output.beside_bytes(),
        _ => Err(Failure::usage("more than one report would go to stdout")
            .hint("write all but one of them to files")),
    }
}

/// Creates a failure for a file into which two reports would be written.
fn written_twice(file: &Path) -> Failure {
    let message = format!("two reports would be written to {}", file.display());
    let failure = Failure::usage(message).path(file);
    failure.hint("give each its own file")
}

/// Returns true if ddfuzz has written the file `report`: if the text `mark`, which all reports of a
/// kind have at their beginning, occurs in its first `within` bytes. Else false.
pub fn begins_with(report: &[u8], (mark, within): Mark) -> bool {
    let begin = &report[..report.len().min(within)];
    String::from_utf8_lossy(begin).contains(mark)
}

/// Returns true if ddfuzz has written this SARIF report: each run in the report names it as its
/// tool. Else false.
fn is_own_sarif(report: &[u8]) -> bool {
    let Ok(report) = serde_json::from_slice::<serde_json::Value>(report) else {
        return false;
    };
    let is_own = |run: &serde_json::Value| run["tool"]["driver"]["name"] == "ddfuzz";
    let runs = report["runs"].as_array();
    runs.is_some_and(|runs| !runs.is_empty() && runs.iter().all(is_own))
}

/// Checks that the file of a report may be written, and fails if not. It may be written if it is
/// empty, if it is a report that ddfuzz has written (recognized by `mark`), or if it does not exist
/// but its directory exists.
fn may_be_written(file: &Path, mark: Mark) -> Result<(), Failure> {
    if let Some(what) = (file.metadata().ok()).and_then(|facts| regular::special(facts.file_type()))
    {
        let message = format!("{} is {what}, not a file", file.display());
        return Err(Failure::usage(message)
            .path(file)
            .hint("give another file; `-` writes the report to stdout"));
    }
    let mut begin = Vec::new();
    let read = File::open(file).and_then(|file| file.take(mark.1 as u64).read_to_end(&mut begin));
    match read {
        Ok(_) if begin.is_empty() || mark == SARIF && is_own_sarif(&begin) => Ok(()),
        Ok(_) if mark != SARIF && begins_with(&begin, mark) => Ok(()),
        Ok(_) => {
            let message = format!("{} exists, and was not written by ddfuzz", file.display());
            Err(Failure::new(Exit::Usage, "exists", message)
                .path(file)
                .hint("give another file, or remove this one"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = file.parent().filter(|folder| *folder != Path::new(""));
            match folder.filter(|folder| !folder.is_dir()) {
                None => Ok(()),
                Some(folder) => {
                    let message = format!("there is no directory {}", folder.display());
                    Err(Failure::usage(message).path(folder).hint("create it first"))
                }
            }
        }
        Err(error) => Err(Failure::file(file, "reading", &error)),
    }
}

/// Returns the file name of the target's program, followed by its arguments, as shown in reports.
pub fn target_name(target: &Target) -> String {
    let mut name = match &target.program {
        Program::Bundled(name) => name.clone(),
        Program::Path(path) => {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        }
    };
    for arg in &target.args {
        name.push(' ');
        name.push_str(&arg.to_string_lossy());
    }
    name
}
