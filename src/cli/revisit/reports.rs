//! Reports of a study (`--markdown`, `--csv`, `--html`), and the comparison of studies
//! (`--compare`).

use std::path::{Path, PathBuf};

use crate::cli::reports::{HTML, MARKDOWN, Mark, check_reports, write_report};
use crate::cli::results::absolute;
use crate::cli::{Exit, Failure, Output, ui};
use crate::report::study::{
    CSV_HEADER, Comparison, NamedStudy, Row, StudyGroup, compare, comparison_text, csv, html,
    markdown, rows, study_groups,
};
use crate::store::{Reader, StoreError};

/// The results of all fuzz studies (`ddfuzz revisit`) in an output directory: the table of
/// utilities (the fuzzed system programs), and the groups of failures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Studied {
    /// The rows of the result table of the studies, one for each utility (fuzzed system program).
    pub rows: Vec<Row>,
    pub groups: Vec<StudyGroup>,
}

impl Studied {
    /// Reads the results of all studies in an output directory; empty if it contains no study.
    pub fn read(reader: &Reader) -> Result<Studied, StoreError> {
        let studies = reader.studies()?;
        if studies.is_empty() {
            return Ok(Studied::default());
        }
        let groups = study_groups(reader)?;
        Ok(Studied {
            rows: rows(&studies, &groups),
            groups,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.groups.is_empty()
    }

    /// Builds the failure for an output directory that contains no fuzz study (`ddfuzz revisit`).
    pub fn none(out: &Path) -> Failure {
        let message = format!("{} contains no study of utilities", out.display());
        Failure::usage(message)
            .path(out)
            .hint("`ddfuzz revisit -o DIR` writes one")
    }
}

/// Options for reports of a fuzz study of utilities (system programs) as CSV and HTML.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Reports of a study (ddfuzz revisit)")]
pub struct SheetArgs {
    /// Write the table of utilities of a study as CSV to FILE. A file that ddfuzz has written is
    /// overwritten, any other is not; the same holds for --html
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the table of utilities of a study and its groups as one HTML page to FILE. Its links
    /// lead into the output directory: move them together
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Options for reports of a fuzz study of utilities (system programs), as Markdown, CSV and HTML.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Reports of a study (ddfuzz revisit)")]
pub struct StudyReportArgs {
    /// Write the table of utilities as Markdown to FILE. A file that ddfuzz has written is
    /// overwritten, any other is not
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Options for the reports of a study as CSV and HTML.
    #[command(flatten)]
    pub sheets: SheetArgs,
}

/// How ddfuzz recognizes a CSV report of its own: by its header line, which must occur within the
/// given number of bytes at the beginning of the file.
const CSV: Mark = (CSV_HEADER, CSV_HEADER.len());

impl SheetArgs {
    pub fn is_empty(&self) -> bool {
        self.csv.is_none() && self.html.is_none()
    }
}

impl StudyReportArgs {
    /// Checks, before a utility (system program to fuzz) is run, that the file of each requested
    /// report does not exist, is empty, or was written by ddfuzz. Returns the output settings, with
    /// messages on stderr if a report goes to stdout.
    pub fn check(&self, output: &Output) -> Result<Output, Failure> {
        let all = [
            (&self.markdown, MARKDOWN),
            (&self.sheets.csv, CSV),
            (&self.sheets.html, HTML),
        ];
        check_reports(&all, output)
    }

    /// Writes the requested reports of a study (Markdown, CSV, HTML); `rows` is the result table.
    ///
    /// # Errors
    /// When a file cannot be written; it is then unchanged.
    pub fn write(&self, rows: &[Row]) -> Result<(), Failure> {
        write_report(&self.markdown, || markdown(rows))?;
        write_report(&self.sheets.csv, || csv(rows))?;
        write_report(&self.sheets.html, || {
            let whole = self.sheets.html.as_deref().map(absolute);
            let folder = whole.as_deref().and_then(Path::parent);
            html(rows, folder.unwrap_or(Path::new("/")))
        })
    }
}

/// Option `--compare` of `ddfuzz revisit`, which compares studies instead of running one.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct CompareArgs {
    /// Run nothing, but compare the studies in two or more output directories, the earliest first:
    /// which groups are new or gone, and whether the failure rates differ
    #[arg(long, value_name = "OUT", num_args = 2..)]
    pub compare: Vec<PathBuf>,
}

impl CompareArgs {
    /// Returns true if `--compare` is given.
    pub fn is_asked(&self) -> bool {
        !self.compare.is_empty()
    }

    /// Prints a comparison of the studies in the directories of `--compare`, which are only read.
    pub fn run(&self, output: &Output) -> Result<Exit, Failure> {
        let comparison = self.compared()?;
        let text = comparison_text(&comparison, ui::stdout_width());
        output.result(&text, &comparison);
        Ok(Exit::Done)
    }

    /// Compares the studies in the directories of `--compare`, and returns which groups are new or
    /// gone and whether the failure rates differ.
    pub fn compared(&self) -> Result<Comparison, Failure> {
        if let [only] = &self.compare[..] {
            let message = format!("only {} is given to compare", only.display());
            return Err(Failure::usage(message)
                .path(only)
                .hint("--compare takes two or more output directories"));
        }
        let studies = self.compare.iter().map(|out| {
            let studied = Studied::read(&Reader::open(out)?)?;
            match studied.is_empty() {
                true => Err(Studied::none(out)),
                false => Ok(NamedStudy {
                    name: out.to_string_lossy().into_owned(),
                    rows: studied.rows,
                }),
            }
        });
        Ok(compare(&studies.collect::<Result<Vec<_>, Failure>>()?))
    }
}
