//! Oracles and minimizations by script.

use ddfuzz::delta::{Caching, Outcome};
use ddfuzz::exec::{Limits, Program, Target, Way};
use ddfuzz::minimize::log::{Log, StartLine, TargetRecord};
use ddfuzz::minimize::{
    Answer, Journal, Kind, MinimizeError, Minimized, Options, Oracle, OracleError, minimize,
};

use crate::memory::Memory;

/// An oracle whose answers are computed by a closure, which is told whether the process is fresh.
pub struct Scripted<F> {
    script: F,
    /// What was asked, in order.
    pub asked: Vec<Vec<u8>>,
    /// What was asked of fresh processes.
    pub asked_fresh: Vec<Vec<u8>>,
}

/// An oracle that answers by outcomes alone.
pub fn outcomes(
    test: impl Fn(&[u8]) -> Outcome,
) -> Scripted<impl FnMut(&[u8], bool) -> Result<Answer, OracleError>> {
    answers(move |text, _| Ok(Answer::of(test(text))))
}

/// An oracle that answers by any script.
pub fn answers<F: FnMut(&[u8], bool) -> Result<Answer, OracleError>>(script: F) -> Scripted<F> {
    Scripted {
        script,
        asked: Vec::new(),
        asked_fresh: Vec::new(),
    }
}

impl<F: FnMut(&[u8], bool) -> Result<Answer, OracleError>> Oracle for Scripted<F> {
    fn ask(&mut self, candidate: &[u8], _: Kind) -> Result<Answer, OracleError> {
        self.asked.push(candidate.to_vec());
        (self.script)(candidate, false)
    }

    fn ask_fresh(&mut self, candidate: &[u8], _: Kind) -> Result<Answer, OracleError> {
        self.asked_fresh.push(candidate.to_vec());
        (self.script)(candidate, true)
    }
}

/// The start of minimizing `input` by ddmin.
pub fn start(input: &[u8]) -> StartLine {
    let target = Target::new(Program::Bundled("ul".to_owned()));
    let target = TargetRecord::new(&target, Way::Mock);
    StartLine::new(input, "ddmin", target, None, Limits::default())
}

/// The start of minimizing `input` by the search of this name.
pub fn start_by(input: &[u8], search: &str) -> StartLine {
    StartLine {
        search: search.to_owned(),
        ..start(input)
    }
}

/// The start with another rule of caching.
pub fn start_caching(input: &[u8], cache: Caching) -> StartLine {
    StartLine {
        cache,
        ..start(input)
    }
}

/// Minimizes with default options; gives the result and the log.
pub fn run(input: &[u8], oracle: &mut dyn Oracle) -> (Result<Minimized, MinimizeError>, Vec<u8>) {
    run_with(input, start(input), oracle, &mut Options::default())
}

/// Minimizes; gives the result and the log.
pub fn run_with(
    input: &[u8],
    start: StartLine,
    oracle: &mut dyn Oracle,
    options: &mut Options<'_>,
) -> (Result<Minimized, MinimizeError>, Vec<u8>) {
    resume_with(input, start, &[], oracle, options)
}

/// Goes on with what is left of a log; gives the result and the whole log.
pub fn resume_with(
    input: &[u8],
    start: StartLine,
    left: &[u8],
    oracle: &mut dyn Oracle,
    options: &mut Options<'_>,
) -> (Result<Minimized, MinimizeError>, Vec<u8>) {
    let parsed = Log::parse(left).expect("a log that was only cut off");
    let memory = Memory::new(&left[..parsed.whole as usize]);
    let mut journal = Journal::go_on(parsed, start, memory.writer()).expect("the same log");
    let result = minimize(input, oracle, &mut journal, options);
    (result, memory.bytes())
}
