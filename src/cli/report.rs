//! `ddfuzz report`: the campaign of an output directory as one HTML page, as JSON, or one group as
//! the text of an issue; and `--html`, with which other commands keep the page current.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::export;
use super::reports::{HTML, MARKDOWN, ReportArgs, check_reports, write_report};
use super::results::{absolute, is_standard};
use super::show::{markdown_of, warn_of_incomplete};
use super::{Exit, Failure, Output};
use crate::report::page::{
    PAGE, TargetKnowledge, campaign_page, campaign_report, group_report, issue,
};
use crate::store::{Entry, Reader};

/// Show the campaign of an output directory as one HTML page
///
/// The page loads nothing and needs no script: overview, all groups, and for each group message,
/// stack, source, the minimized input beside the one found, and how to reproduce it.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  ddfuzz report ddfuzz-out\n  ddfuzz report ddfuzz-out -o page.html\n  \
                  ddfuzz report ddfuzz-out --markdown 3fa4 > issue.md\n  \
                  ddfuzz report ddfuzz-out --markdown > summary.md\n  \
                  ddfuzz report ddfuzz-out --json"
)]
pub struct PageArgs {
    /// Output directory
    #[arg(default_value = "ddfuzz-out")]
    out: PathBuf,
    /// Write the page to FILE; - is stdout. A file that ddfuzz has written is overwritten, any
    /// other is not [default: OUT/report.html]
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write the text of an issue on one group instead, in Markdown: to stdout, or to the file of
    /// -o. GROUP is 4 or more hex digits of its major key, or a path to its folder; without it, a
    /// summary of all groups
    #[arg(long, value_name = "GROUP", num_args = 0..=1, conflicts_with = "json")]
    markdown: Option<Option<PathBuf>>,
    /// Print the JSON schema of --json
    #[arg(long, conflicts_with_all = ["file", "markdown"])]
    schema: bool,
}

pub fn run(args: PageArgs, output: &Output) -> Result<Exit, Failure> {
    let out = &args.out;
    if args.schema {
        output.print(include_str!("../../docs/report.schema.json").trim_end());
        return Ok(Exit::Done);
    }
    if let Some(group) = &args.markdown {
        return markdown(&args, group.as_deref(), output);
    }
    let reader = Reader::open(out)?;
    warn_of_incomplete(&reader, "shown", output)?;
    let report = || campaign_report(&reader, &OfTargets(&reader));
    if output.json && args.file.is_none() {
        output.result("", &report()?);
        return Ok(Exit::Done);
    }
    let file = args.file.clone().unwrap_or_else(|| out.join(PAGE));
    let output = &check_reports(&[(&Some(file.clone()), HTML)], output)?;
    let text = page_text(&reader, &file)?;
    write_report(&Some(file.clone()), || text)?;
    if output.json {
        output.result("", &report()?);
    }
    if !is_standard(&file) {
        output.say(&format!("wrote {}", file.display()));
    }
    Ok(Exit::Done)
}

/// Writes the text of an issue on one group, or a summary of all groups without `group`, in
/// Markdown, to stdout or to the file of `-o`.
fn markdown(args: &PageArgs, group: Option<&Path>, output: &Output) -> Result<Exit, Failure> {
    let out = &args.out;
    let file = args.file.clone().unwrap_or_else(|| PathBuf::from("-"));
    check_reports(&[(&Some(file.clone()), MARKDOWN)], output)?;
    let text = match group {
        Some(group) => issue_of(group, out)?,
        None => {
            let reader = Reader::open(out)?;
            warn_of_incomplete(&reader, "shown", output)?;
            markdown_of(&reader, out)?
        }
    };
    write_report(&Some(file), || text)?;
    Ok(Exit::Done)
}

/// Returns the text of an issue on one group of the output directory `out`.
fn issue_of(group: &Path, out: &Path) -> Result<String, Failure> {
    let (reader, chosen) = export::group::find(group, out)?;
    let id = &chosen.entry().id;
    let Some(report) = group_report(&reader, id, &OfTargets(&reader))? else {
        let message = format!("the group {} is no longer there", id.major());
        return Err(Failure::usage(message).path(out));
    };
    let reproducer = chosen.reproducer()?.input;
    Ok(issue(&report, &reproducer))
}

/// Answers two questions about a stored crash of the output directory, for a report: which
/// cargo-fuzz command runs the crash's reproducer, and what the text of a regression test for the
/// crash is.
struct OfTargets<'a>(&'a Reader);

impl TargetKnowledge for OfTargets<'_> {
    fn cargo(&self, entry: &Entry) -> Option<String> {
        export::cargo_command(self.0, entry)
    }

    fn test(&self, entry: &Entry) -> Option<(String, String)> {
        export::regression_test(self.0, entry)
    }
}

/// Generates the HTML page of an output directory. Its links are relative to the place `file` at
/// which the page is to be stored.
fn page_text(reader: &Reader, file: &Path) -> Result<String, Failure> {
    let whole = match is_standard(file) {
        true => absolute(Path::new(PAGE)),
        false => absolute(file),
    };
    let folder = whole.parent().unwrap_or(Path::new("/"));
    Ok(campaign_page(reader, folder, &OfTargets(reader))?)
}

/// Option `--html` of commands that fill an output directory: keep an HTML page of the results
/// current.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct HtmlArgs {
    /// Keep an HTML page of the results current while the command runs: at FILE, or report.html in
    /// the output directory. It is always whole, and takes at most 1 % of the time
    #[arg(
        help_heading = "Reports for people", hide_short_help = true, long, value_name = "FILE",
        num_args = 0..=1, require_equals = true
    )]
    html: Option<Option<PathBuf>>,
}

impl HtmlArgs {
    pub fn is_asked(&self) -> bool {
        self.html.is_some()
    }

    /// Returns the path of the HTML page that `--html` requests for the output directory `out`;
    /// `None` without that option.
    fn file(&self, out: &Path) -> Option<PathBuf> {
        let file = self.html.as_ref()?;
        Some(file.clone().unwrap_or_else(|| out.join(PAGE)))
    }

    /// Checks, before anything is run, that the HTML page of `--html` would not overwrite another
    /// file, nor one of the `reports` that the same call writes.
    ///
    /// # Errors
    /// When the file exists and was not written by ddfuzz, its directory is missing, or one of the
    /// `reports` is written to the same file.
    pub fn check(&self, out: &Path, reports: &ReportArgs, output: &Output) -> Result<(), Failure> {
        let Some(file) = self.file(out) else {
            return Ok(());
        };
        if is_standard(&file) {
            return Err(
                Failure::usage("a page that is kept current cannot go to stdout")
                    .hint("give a file, or use `ddfuzz report OUT -o -` afterwards"),
            );
        }
        reports.check_other(&file)?;
        // The output directory may not be there yet.
        if matches!(self.html, Some(None)) && !out.exists() {
            return Ok(());
        }
        check_reports(&[(&Some(file), HTML)], output).map(drop)
    }

    /// Starts a thread that keeps the HTML page of the output directory `out` current; `None` if
    /// `--html` is not given.
    pub fn start_page(&self, out: &Path) -> Option<LivePage> {
        Some(LivePage::begin(&self.file(out)?, out))
    }
}

/// Least wall time before the HTML page is written for the first time, and before the next attempt
/// if writing it failed (for example, because the output directory did not exist yet).
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Minimum wall time between two versions of the HTML page.
const MIN_PAUSE: Duration = Duration::from_secs(5);
/// After a version of the HTML page is written, the next one is written after a pause that is this
/// many times as long as the writing took, so that writing takes at most a hundredth of the time.
const PAUSE_FACTOR: u32 = 99;

/// An HTML page of an output directory that a thread writes again at intervals until it is stopped.
pub struct LivePage {
    file: PathBuf,
    out: PathBuf,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl LivePage {
    fn begin(file: &Path, out: &Path) -> LivePage {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (told, place, root) = (Arc::clone(&stop), file.to_owned(), out.to_owned());
        let thread = std::thread::Builder::new().name("page".to_owned());
        let thread = thread.spawn(move || {
            let mut pause = FIRST_PAUSE;
            while !is_stopped(&told, pause) {
                let began = Instant::now();
                // A page that cannot be written now is tried again; only for the last version is
                // there a warning.
                let least = write_page(&place, &root).map_or(FIRST_PAUSE, |()| MIN_PAUSE);
                pause = least.max(began.elapsed() * PAUSE_FACTOR);
            }
        });
        LivePage {
            file: file.to_owned(),
            out: out.to_owned(),
            stop,
            // If the thread cannot be started, only the last version is written.
            thread: thread.ok(),
        }
    }

    /// Stops the thread that keeps the HTML page current, writes the last version of the page, and
    /// prints its path. If the page cannot be written, only prints a warning, so that the result of
    /// the command is not lost.
    pub fn finish(mut self, output: &Output) {
        self.stop();
        match write_page(&self.file, &self.out) {
            Ok(()) => output.say(&format!("page: {}", self.file.display())),
            Err(failure) => output.say(&format!("warning: {}", failure.message())),
        }
    }

    fn stop(&mut self) {
        let (stop, changed) = &*self.stop;
        *stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported.
            let _ = thread.join();
        }
    }
}

impl Drop for LivePage {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits until the time `pause` is over, or until the flag in `stop` is set, which ends the thread
/// that writes the HTML page. Returns true if the flag is set, and false if the time is over.
fn is_stopped(stop: &(Mutex<bool>, Condvar), pause: Duration) -> bool {
    let (stop, changed) = stop;
    let stopped = stop.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = changed.wait_timeout_while(stopped, pause, |stopped| !*stopped);
    *waited.unwrap_or_else(PoisonError::into_inner).0
}

fn write_page(file: &Path, out: &Path) -> Result<(), Failure> {
    let text = page_text(&Reader::open(out)?, file)?;
    write_report(&Some(file.to_owned()), || text)
}
