//! What a target does with its input, as two runs show it: for `doctor`, and for campaigns that
//! would be in vain.

use serde::Serialize;

use crate::campaign::Summary;
use crate::exec::facts::TargetFacts;
use crate::exec::{Channel, Ended, Executor, Target, Way};
use crate::report::size;

/// A text that looks like something to most programs that read text.
const TEXT: &[u8] = b"1 2 3\nname = value\n";
/// Fewest runs that show whether a target uses its input at all.
const ENOUGH: u64 = 200;

/// What was seen when it ran on nothing and on a short text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Behaviour {
    /// How it ended on an empty input.
    pub on_nothing: Option<String>,
    /// How it ended on a short text.
    pub on_text: Option<String>,
    /// How many bytes of that text it read; `None` where that is unknown.
    pub read: Option<u64>,
    /// Whether it was stopped at a limit on the empty input.
    pub waits: bool,
    /// Whether it crashed on both.
    pub crashes: bool,
}

/// A reason why fuzzing this command line would find little, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetWarning {
    /// What was seen.
    pub seen: String,
    /// What would help.
    pub fix: String,
}

/// Runs the target twice.
pub fn observe(executor: &mut dyn Executor, target: &Target) -> Behaviour {
    let nothing = executor.run(b"").ok();
    let text = executor.run(TEXT).ok();
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

impl Behaviour {
    /// That the target reads nothing of its input, if it does not.
    pub fn ignored_stdin(&self, target: &Target) -> Option<TargetWarning> {
        let on_stdin = !target.takes_file() && !matches!(target.channel, Channel::Terminal(_));
        (on_stdin && self.read == Some(0)).then(|| TargetWarning {
            seen: "the target does not read stdin".to_owned(),
            fix:
                "if it reads a file, write @@ for the path of the file; otherwise find the options \
                  that make it read stdin"
                    .to_owned(),
        })
    }

    /// That the target crashes with any input, if it seems to.
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

    /// All reasons why fuzzing this command line would find little.
    pub fn target_warnings(&self, target: &Target) -> Vec<TargetWarning> {
        self.ignored_stdin(target)
            .into_iter()
            .chain(self.constant_crash())
            .collect()
    }
}

/// That a libFuzzer binary is called as a program that reads a file, which costs its coverage and
/// most of its speed.
pub fn unused_entry(target: &Target, way: Way) -> Option<TargetWarning> {
    let is_called = target.takes_file() && way != Way::Harness;
    let facts = is_called.then(|| TargetFacts::of(target).ok()).flatten()?;
    facts.libfuzzer.then(|| TargetWarning {
        seen: format!("the target is a libFuzzer binary; executed by {way} it reports no coverage"),
        fix: "omit @@ to fuzz it in process, guided by coverage".to_owned(),
    })
}

/// What is to be done where a target crashes with any input.
const CHECK_BY_HAND: &str = "run it by hand, and check its arguments, its libraries and the files that it \
                        needs: a crash on any input hides all other bugs";

/// What the runs of a campaign tell of its target besides what is known already: that all of them
/// crashed, or that none reached anything that the first had not.
pub fn campaign_warning(summary: &Summary, corpus: Option<usize>) -> Option<TargetWarning> {
    if summary.runs < ENOUGH {
        return None;
    }
    let runs = size::grouped(summary.runs);
    if summary.crashes >= summary.runs {
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

impl std::fmt::Display for TargetWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", self.seen, self.fix)
    }
}
