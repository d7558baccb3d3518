//! What a run said of its end, as far as its name depends on that.

use super::Class;
use super::said::{
    Abort, GoPanic, Report, RustPanic, Tool, abort, go_panic, last_words, message, of_report,
    report, rust_panic,
};
use ddfuzz_exec::{CrashMessages, Ended, RUST_PANIC};

/// Who said why the program dies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Words {
    /// A sanitizer.
    Report(Box<Report>),
    /// Rust's panic hook.
    RustPanic(RustPanic),
    /// Go's runtime.
    GoPanic(GoPanic),
}

/// What a run said of its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Who said why, where somebody did.
    pub words: Option<Words>,
    /// What a C or C++ library aborts for.
    pub abort: Option<Abort>,
    /// All that was kept of stderr.
    pub stderr: Vec<u8>,
    /// The report came by its own file, so that the program did not make it up by chance.
    filed: bool,
}

impl Told {
    /// Reads what a run that ended so said.
    pub fn of(ended: Ended, said: CrashMessages) -> Told {
        let aborted = ended == Ended::Signal(libc::SIGABRT);
        let filed = report(&said.report);
        let mut told = Told {
            filed: filed.is_some(),
            ..Told::default()
        };
        let written = || report(&said.stderr).filter(|_| aborted).filter(is_sure);
        told.words = filed
            .or_else(written)
            .map(|report| Words::Report(Box::new(report)));
        let panicked = aborted || ended == Ended::Exit(RUST_PANIC);
        if told.words.is_none() && panicked {
            told.words = rust_panic(&said.stderr).map(Words::RustPanic);
        }
        if told.words.is_none() && aborted {
            told.words = go_panic(&said.stderr).map(Words::GoPanic);
        }
        told.abort = abort(&said.stderr).filter(|_| aborted);
        told.stderr = said.stderr;
        told
    }

    /// Whether a run that ended so and said this crashed (crash-keys.md, "What a crash is");
    /// `crash_exit` is the exit status that counts as a crash.
    pub fn is_crash(&self, ended: Ended, crash_exit: Option<i32>) -> bool {
        let said = match (&self.words, ended) {
            (Some(Words::Report(_)), Ended::Exit(_)) => self.filed,
            (Some(Words::RustPanic(_)), Ended::Exit(_)) => true,
            _ => false,
        };
        said || ended.is_crash(crash_exit)
    }

    /// What a run of this class says of its end, for people: the message of a panic, the first line
    /// of a sanitizer's report, a failed assertion, why a library or the program aborts. `aborts` is
    /// what the C library itself keeps of that. `None` where nobody said anything.
    pub fn message(&self, ended: Ended, class: &Class, aborts: Option<&str>) -> Option<String> {
        let gives_up = ended == Ended::Signal(libc::SIGABRT)
            || matches!(class.0.as_str(), "trap" | "ill")
            || class.0.starts_with("exit:");
        let text = match &self.words {
            Some(Words::RustPanic(panic)) => panic.message.clone(),
            Some(Words::GoPanic(panic)) => panic.message.clone(),
            Some(Words::Report(report)) if report.signal_class() != Some("abrt") => {
                of_report(report)
            }
            _ => {
                let what = self.abort.as_ref().and_then(|abort| abort.what.as_deref());
                match (aborts, what) {
                    (Some(aborts), Some(what)) => format!("{}: {what}", aborts.trim()),
                    (Some(aborts), None) => aborts.to_owned(),
                    (None, _) if gives_up => last_words(&self.stderr)?,
                    (None, _) => return None,
                }
            }
        };
        message(&text)
    }

    /// The sanitizer's report, if there is one.
    pub fn report(&self) -> Option<&Report> {
        match &self.words {
            Some(Words::Report(report)) => Some(report),
            _ => None,
        }
    }
}

/// Whether a text on stderr is a report for sure: other programs speak of runtime errors, too.
fn is_sure(report: &Report) -> bool {
    report.tool != Tool::Ubsan || !report.stack.is_empty()
}
