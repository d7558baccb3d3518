//! Warnings about a target that crashes on every input or does not read its input: from two trial
//! runs (`doctor`, `run`), and from the runs of a finished campaign.

use std::path::Path;

use serde::Serialize;

use crate::campaign::Summary;
use crate::exec::facts::TargetFacts;
use crate::exec::{Channel, CoverageReporting, Ended, ExecError, Executor, Target, Way};
use crate::report::EndedBy;
use crate::report::size;
use crate::report::text::shell_word;

/// Input of a trial run: a short text that most programs that read text accept.
const TRIAL_TEXT: &[u8] = b"1 2 3\nname = value\n";
/// Minimum number of runs of a campaign from which a warning about the target is derived.
const MIN_RUNS: u64 = 200;

/// How the target behaved in two trial runs, one on an empty input and one on a short text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Behaviour {
    pub on_nothing: Option<String>,
    pub on_text: Option<String>,
    /// Number of bytes that the target read of the short text in its trial run; `None` if that
    /// cannot be found out.
    pub read: Option<u64>,
    /// Whether the target exceeded a time limit in its trial run on the empty input.
    pub waits: bool,
    /// Whether the target crashed on both trial inputs.
    pub crashes: bool,
}

/// A warning to the user that fuzzing the target with this command line would find little: what was
/// observed, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetWarning {
    /// What the warning says was observed of the target, for example "the target does not read
    /// stdin".
    pub seen: String,
    pub fix: String,
}

/// Makes two trial runs of the target, on an empty input and on a short text, and returns how the
/// target behaved. If a run cannot be made, the fields about it are `None` or false.
pub fn observe(executor: &mut dyn Executor, target: &Target) -> Behaviour {
    let nothing = executor.run(b"").ok();
    let text = executor.run(TRIAL_TEXT).ok();
    let crashed = |ended: Ended| ended.is_crash(target.crash_exit);
    let both = nothing.iter().chain(&text);
    Behaviour {
        on_nothing: nothing.map(|run| run.ended.to_string()),
        on_text: text.map(|run| run.ended.to_string()),
        read: text.and_then(|run| run.read),
        waits: nothing.is_some_and(|run| run.ended == Ended::Timeout),
        crashes: both.filter(|run| crashed(run.ended)).count() == 2,
    }
}

/// Returns advice on a run that ended by `ended` without a crash; `None` if there is none. After
/// SIGKILL, the program may have killed itself. After an error status of a program that reads its
/// input from a file (`@@`), the program may have refused the file because the file's name, unlike
/// that of the input at `path`, has no ending.
pub fn advice_on_end(target: &Target, path: Option<&Path>, ended: Ended) -> Option<String> {
    let status = match ended {
        Ended::Exit(status) => status,
        Ended::Signal(libc::SIGKILL) => {
            return Some(
                "SIGKILL is no crash: so ends a program that kills itself, its parent process or its \
                 process group (kill, killpg), or that the system kills; leave such calls out of \
                 the build to see what follows them"
                    .to_owned(),
            );
        }
        _ => return None,
    };
    let name = path?.file_name().map(Path::new)?;
    let is_nameless = target.takes_file() && target.channel == Channel::Plain;
    (status != 0 && is_nameless && name.extension().is_some()).then(|| {
        format!(
            "if the program looks at the name of its file, which has no ending, add --file-name {}",
            shell_word(name)
        )
    })
}

/// Returns true if breakpoints change how runs of the target end: a trial run with breakpoints ends
/// differently from runs without, or had to be repeated without. The covered blocks of an
/// unmodified program are found by breakpoints; a program is disturbed by them if it handles or
/// blocks SIGTRAP, or reads its own code. Returns false if they change nothing, if coverage is not
/// measured by breakpoints, or if runs without them also differ from each other.
pub fn is_disturbed(executor: &mut dyn Executor) -> Result<bool, ExecError> {
    if executor.code().is_none() {
        return Ok(false);
    }
    let mut disturbed = false;
    for input in [&b""[..], TRIAL_TEXT] {
        let ended = |executor: &mut dyn Executor, reporting| {
            executor.report_coverage(reporting);
            executor.run(input).map(|run| run.ended)
        };
        let without = ended(executor, CoverageReporting::Nothing)?;
        let with = ended(executor, CoverageReporting::Every)?;
        // A run that had to be made again without breakpoints reports no blocks.
        let is_made_again = with.is_exit() && executor.covered().is_empty();
        disturbed |= is_made_again
            || with != without && ended(executor, CoverageReporting::Nothing)? == without;
    }
    executor.report_coverage(CoverageReporting::Nothing);
    Ok(disturbed)
}

impl Behaviour {
    /// Returns a warning if the target gets its input on stdin, but read no byte of the short text
    /// in its trial run. Returns `None` if it read some bytes, or if their number is unknown. Also
    /// returns `None` if the target may have got the input in another way: the run on the text
    /// ended otherwise than the run on the empty input (a program may map stdin into memory), or an
    /// argument names stdin as a file.
    pub fn ignored_stdin(&self, target: &Target) -> Option<TargetWarning> {
        let on_stdin = !target.takes_file() && !matches!(target.channel, Channel::Terminal(_));
        let is_ignored = self.read == Some(0) && self.on_nothing == self.on_text;
        (on_stdin && is_ignored && !opens_stdin(target)).then(|| TargetWarning {
            seen: "the target does not read stdin".to_owned(),
            fix:
                "if it reads a file, write @@ for the path of the file; otherwise find the options \
                  that make it read stdin"
                    .to_owned(),
        })
    }

    /// Returns a warning if the target crashed on both trial inputs; else `None`.
    pub fn constant_crash(&self) -> Option<TargetWarning> {
        let (on_nothing, on_text) = (self.on_nothing.as_ref()?, self.on_text.as_ref()?);
        let how = match on_nothing == on_text {
            true => on_text.clone(),
            false => format!("{on_nothing}; {on_text}"),
        };
        self.crashes.then(|| TargetWarning {
            seen: format!(
                "the target crashes on the empty input and on a short text alike ({how})"
            ),
            fix: CHECK_BY_HAND.to_owned(),
        })
    }

    pub fn target_warnings(&self, target: &Target) -> Vec<TargetWarning> {
        self.ignored_stdin(target)
            .into_iter()
            .chain(self.constant_crash())
            .collect()
    }
}

/// Makes trial runs of the target on an empty input, on a short text and on `inputs`, which crashed
/// the target in the past. Returns a warning if all of these runs end with the same exit status
/// other than 0: the target may refuse every input, because it lacks something. Else returns
/// `None`.
pub fn constant_refusal(executor: &mut dyn Executor, inputs: &[Vec<u8>]) -> Option<TargetWarning> {
    let trials = [&b""[..], TRIAL_TEXT].into_iter();
    let mut ends = trials
        .chain(inputs.iter().map(Vec::as_slice))
        .map(|input| executor.run(input).ok().map(|run| run.ended));
    let first = ends.next()??;
    let refuses = matches!(first, Ended::Exit(status) if status != 0);
    (refuses && ends.all(|end| end == Some(first))).then(|| TargetWarning {
        seen: format!(
            "on an empty input, on a short text and on inputs of fixed groups alike the target ends \
             with {first}"
        ),
        fix: "if it does so on any input, because it lacks an option, a file or a variable, nothing \
              is fixed: run it by hand"
            .to_owned(),
    })
}

/// Returns true if an argument names stdin as a file, such as `/dev/stdin`; else false. The target
/// then opens that file, and what it reads there is not counted as read from stdin.
fn opens_stdin(target: &Target) -> bool {
    const NAMES: [&str; 3] = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
    let mut args = target.args.iter().map(|arg| arg.to_string_lossy());
    args.any(|arg| NAMES.iter().any(|name| arg.ends_with(name)))
}

/// Returns a warning if `target` is a libFuzzer binary that reads its input from a file, and `way`
/// does not call its entry function, so that it reports no coverage and is much slower. Else
/// returns `None`.
pub fn unused_entry(target: &Target, way: Way) -> Option<TargetWarning> {
    let is_called = target.takes_file() && way != Way::Harness;
    let facts = is_called.then(|| TargetFacts::of(target).ok()).flatten()?;
    facts.libfuzzer.then(|| TargetWarning {
        seen: format!("the target is a libFuzzer binary; executed by {way} it reports no coverage"),
        fix: "omit @@ to fuzz it in process, guided by coverage".to_owned(),
    })
}

/// Advice in the warning about a target that crashes on any input.
const CHECK_BY_HAND: &str = "run it by hand, and check its arguments, its libraries and the files that it \
                        needs: a crash on any input hides all other bugs";

/// Returns a warning about the target after a campaign of at least 200 runs, in two cases: every
/// run has crashed; or no run has crashed, and none has reached coverage that the first run had not
/// reached, so that the corpus has at most one input. Else returns `None`. `corpus`: number of
/// inputs in the corpus; `None` if coverage is unknown.
pub fn campaign_warning(summary: &Summary, corpus: Option<usize>) -> Option<TargetWarning> {
    if summary.runs_of_campaign < MIN_RUNS {
        return None;
    }
    let runs = size::grouped(summary.runs_of_campaign);
    if summary.crashes >= summary.runs_of_campaign {
        return Some(TargetWarning {
            seen: format!("each of {runs} runs crashed, with different inputs"),
            fix: CHECK_BY_HAND.to_owned(),
        });
    }
    let alike = summary.crashes == 0 && corpus.is_some_and(|inputs| inputs <= 1);
    alike.then(|| TargetWarning {
        seen: format!("none of {runs} runs reached coverage that the first run had not reached"),
        fix: "does it read its input? `ddfuzz doctor` shows how it gets its input".to_owned(),
    })
}

/// Returns a warning after a campaign if its time was over before its first run, or if at least half
/// of its runs, in all calls of ddfuzz together, exceeded the time limit; else `None`.
pub fn time_warning(summary: &Summary, target: &Target) -> Option<TargetWarning> {
    if summary.runs_of_campaign == 0 && summary.ended_by == EndedBy::Time {
        return Some(TargetWarning {
            seen: "the time was over before the first run, so nothing was tested".to_owned(),
            fix: "a longer --time leaves some after the start-up".to_owned(),
        });
    }
    let is_usual = summary.hung > 0 && summary.hung * 2 >= summary.runs_of_campaign;
    is_usual.then(|| TargetWarning {
        seen: format!(
            "{} of {} exceeded the time limit, {} of CPU time",
            size::grouped(summary.hung),
            size::counted(summary.runs_of_campaign, "run"),
            size::duration(target.limits.cpu),
        ),
        fix: "a shorter --timeout, or shorter inputs by --max-len, make more runs".to_owned(),
    })
}

impl std::fmt::Display for TargetWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", self.seen, self.fix)
    }
}
