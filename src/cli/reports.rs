//! `--markdown`, `--sarif`, `--junit`: the groups in files for CI servers.

use std::cmp::Reverse;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{Exit, Failure};
use crate::exec::{Program, Target};
use crate::files::atomic;
use crate::report::cause;
use crate::report::ci::{Finding, Findings, junit, markdown, sarif};

/// Files for CI servers.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Files for CI")]
pub struct ReportArgs {
    /// Write a summary of the groups in Markdown here; a file of ddfuzz's is replaced, as are those
    /// of --sarif and --junit
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the groups in SARIF 2.1.0 here, for code scanning
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write the groups as a JUnit report here: a failure each, those known before skipped
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// One of the formats.
struct Format {
    /// By what a file is known to be ddfuzz's.
    mark: &'static str,
    /// In how many bytes from the beginning that stands.
    within: usize,
    text: fn(&Findings) -> String,
}

impl Format {
    fn made(&self, bytes: &[u8]) -> bool {
        let begin = &bytes[..bytes.len().min(self.within)];
        String::from_utf8_lossy(begin).contains(self.mark)
    }
}

const MARKDOWN: Format = Format {
    mark: "<!-- ddfuzz -->",
    within: 16,
    text: markdown,
};
const SARIF: Format = Format {
    // Its members are in the order of their names, so that the tool stands behind the results.
    mark: "\"name\": \"ddfuzz\"",
    within: usize::MAX,
    text: sarif,
};
const JUNIT: Format = Format {
    mark: "<testsuites name=\"ddfuzz\"",
    within: 128,
    text: junit,
};

impl ReportArgs {
    fn files(&self) -> impl Iterator<Item = (&Path, Format)> {
        let all = [
            (&self.markdown, MARKDOWN),
            (&self.sarif, SARIF),
            (&self.junit, JUNIT),
        ];
        all.into_iter()
            .filter_map(|(file, format)| Some((file.as_deref()?, format)))
    }

    /// Whether any is asked for.
    pub fn is_empty(&self) -> bool {
        self.files().next().is_none()
    }

    /// Makes sure, before anything is run, that each file may be written: it is not there yet, is
    /// empty, or is ddfuzz's own.
    pub fn check(&self) -> Result<(), Failure> {
        for (file, format) in self.files() {
            may_be_written(file, |bytes| format.made(bytes))?;
        }
        Ok(())
    }

    /// Writes the files.
    pub fn write(&self, findings: &Findings) -> Result<(), Failure> {
        for (file, format) in self.files() {
            let text = (format.text)(findings);
            atomic::write(file, text.as_bytes())
                .map_err(|error| Failure::new(Exit::Usage, "output", error).path(file))?;
        }
        Ok(())
    }
}

/// Groups of which a result says more than a line.
const TOLD: usize = 3;

/// What the worst of these groups crash of, each with its message, its stacks and the source, for
/// the beginning of a result; empty where there are none.
pub fn causes<'a>(findings: impl Iterator<Item = &'a Finding>) -> String {
    let told = findings.filter(|finding| !finding.trace.is_empty());
    let mut worst: Vec<&Finding> = told.collect();
    worst.sort_by_key(|finding| (finding.kind, Reverse(finding.severity)));
    worst.truncate(TOLD);
    let blocks = worst.iter().map(|finding| cause(&finding.cause()) + "\n");
    blocks.collect()
}

/// Makes sure that a file may be written: it is not there yet, is empty, or is `made` by ddfuzz.
pub fn may_be_written(file: &Path, made: impl Fn(&[u8]) -> bool) -> Result<(), Failure> {
    match std::fs::read(file) {
        Ok(bytes) if bytes.is_empty() || made(&bytes) => Ok(()),
        Ok(_) => {
            let message = format!("{} exists, and is no result of ddfuzz", file.display());
            Err(Failure::new(Exit::Usage, "exists", message)
                .path(file)
                .hint("name another file, or remove it"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = file.parent().filter(|folder| *folder != Path::new(""));
            match folder.filter(|folder| !folder.is_dir()) {
                None => Ok(()),
                Some(folder) => {
                    let message = format!("there is no directory {}", folder.display());
                    Err(Failure::usage(message).path(folder).hint("make it first"))
                }
            }
        }
        Err(error) => Err(Failure::file(file, "reading", &error)),
    }
}

/// A target as people know it: the name of its program, and its arguments.
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
