//! How far a cleanup is.

use indicatif::ProgressBar;

use crate::cli::{Output, ui};
use crate::corpus::{Doing, Watcher};
use crate::report::size;

/// One line on stderr that is drawn again and again, if stderr is a terminal.
pub struct Screen {
    bar: ProgressBar,
    output: Output,
}

impl Screen {
    /// A line as loud as `output` says.
    pub fn new(output: &Output) -> Screen {
        Screen {
            bar: ui::bar(output),
            output: output.clone(),
        }
    }
}

impl Watcher for Screen {
    fn doing(&mut self, doing: Doing) {
        let text = match doing {
            Doing::Reading { files, runs } => format!(
                "reading and running: {}, {}",
                size::counted(files, "file"),
                size::counted(runs, "run")
            ),
            Doing::Filing { inputs } => format!(
                "triaging and minimizing {} that crash, hang or run out of memory",
                size::counted(inputs, "input")
            ),
            Doing::Choosing { contents } => {
                format!("choosing a subset of {}", size::counted(contents, "file"))
            }
            Doing::Repeating { contents } => {
                format!("running {} again", size::counted(contents, "file"))
            }
            Doing::Trimming { round, done, of } => format!(
                "trimming, round {round}: {} of {}",
                size::grouped(done),
                size::counted(of, "file")
            ),
            Doing::Checking { files } => {
                format!("checking the coverage of {}", size::counted(files, "file"))
            }
            Doing::Counting { files } => format!(
                "comparing by libFuzzer's own count: {}",
                size::counted(files, "file")
            ),
        };
        self.bar.set_message(text);
    }

    fn say(&mut self, text: &str) {
        self.bar.suspend(|| self.output.say(text));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
