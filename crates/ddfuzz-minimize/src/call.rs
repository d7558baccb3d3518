//! Minimizes the call of a target: its arguments, environment and other parts as texts, and the
//! oracle that runs one input by many calls.

use ddfuzz_delta::Outcome;
use ddfuzz_exec::{Target, TimeLimit};
use ddfuzz_triage::Crash;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::log::{CallRecord, Part};
use crate::{Answer, Kind, Oracle, OracleError, Slip};

/// Units at most: each is represented by one byte.
const MOST: usize = 256;

/// A part of a target's call as a text, in which each byte represents a unit. Minimizing the text
/// minimizes the part.
#[derive(Clone, Debug)]
pub struct Call {
    target: Target,
    part: Part,
    at: usize,
    /// Of one argument, its different characters; else nothing.
    alphabet: Vec<Vec<u8>>,
    text: Vec<u8>,
}

impl Call {
    /// The part of `target` that a record names; where it has no such part, the text is empty.
    pub fn of_record(target: Target, record: &CallRecord) -> Call {
        let at = usize::try_from(record.at).unwrap_or(usize::MAX);
        Call::new(target, record.part, at)
    }

    /// A part of `target`. `at` is the index of the one argument, else that of the first of the
    /// units, of which up to 256 are taken together.
    pub fn new(target: Target, part: Part, at: usize) -> Call {
        let mut alphabet = Vec::new();
        let text = match part {
            Part::Args => window(deletable(&target.args).count(), at),
            Part::Env => window(target.env.len(), at),
            Part::Argument => match target.args.get(at).filter(|arg| !is_fixed(arg)) {
                Some(arg) => spell(arg, &mut alphabet),
                None => Vec::new(),
            },
        };
        Call {
            target,
            part,
            at,
            alphabet,
            text,
        }
    }

    /// The places of all parts of these kinds, in the order in which they are minimized: whole
    /// arguments, the characters of each argument that is left, variables.
    pub fn places(target: &Target, args: bool, env: bool) -> Vec<(Part, usize)> {
        let windows = |count: usize| (0..count).step_by(MOST);
        let mut places = Vec::new();
        if args {
            let whole = windows(deletable(&target.args).count());
            places.extend(whole.map(|at| (Part::Args, at)));
            places.extend(deletable(&target.args).map(|at| (Part::Argument, at)));
        }
        if env {
            places.extend(windows(target.env.len()).map(|at| (Part::Env, at)));
        }
        places
    }

    /// The part as it is.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The target with what `text` keeps of the part; `None` where that is no call any more that
    /// gets its input in the same way.
    pub fn target(&self, text: &[u8]) -> Option<Target> {
        let mut target = self.target.clone();
        match self.part {
            Part::Args => {
                let gone = self.gone(text);
                let gone: Vec<usize> = deletable(&self.target.args)
                    .enumerate()
                    .filter(|(unit, _)| gone.contains(unit))
                    .map(|(_, at)| at)
                    .collect();
                keep_but(&mut target.args, &gone);
            }
            Part::Env => keep_but(&mut target.env, &self.gone(text)),
            Part::Argument => {
                let arg = target.args.get_mut(self.at)?;
                let letters = text
                    .iter()
                    .map(|code| self.alphabet.get(usize::from(*code)));
                let letters = letters.collect::<Option<Vec<_>>>()?;
                *arg = OsString::from_vec(letters.into_iter().flatten().copied().collect());
            }
        }
        (target.takes_file() == self.target.takes_file()).then_some(target)
    }

    /// The units of the part, counted from its first, that `text` does not keep.
    fn gone(&self, text: &[u8]) -> Vec<usize> {
        let all = self.text.iter().filter(|code| !text.contains(code));
        all.map(|code| self.at + usize::from(*code)).collect()
    }
}

/// The texts' codes of up to 256 of `count` units, from the one at `at`.
fn window(count: usize, at: usize) -> Vec<u8> {
    let units = count.saturating_sub(at).min(MOST);
    (0..=u8::MAX).take(units).collect()
}

/// An argument that says where the input goes stays as it is.
fn is_fixed(arg: &OsStr) -> bool {
    arg.to_string_lossy().contains("@@")
}

/// The indices of the arguments that may go.
fn deletable(args: &[OsString]) -> impl Iterator<Item = usize> + '_ {
    let all = args.iter().enumerate();
    all.filter(|(_, arg)| !is_fixed(arg)).map(|(at, _)| at)
}

fn keep_but<T>(items: &mut Vec<T>, gone: &[usize]) {
    let mut at = 0;
    items.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
}

/// An argument as codes of its characters, which are collected in `alphabet`.
fn spell(arg: &OsStr, alphabet: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let letters = arg.to_str().and_then(|text| {
        let letters = text.chars().map(|letter| letter.to_string().into_bytes());
        code(letters, alphabet)
    });
    letters
        .or_else(|| {
            alphabet.clear();
            code(arg.as_bytes().iter().map(|byte| vec![*byte]), alphabet)
        })
        .unwrap_or_default()
}

/// The letters as codes; `None` where more than 256 of them differ.
fn code(letters: impl Iterator<Item = Vec<u8>>, alphabet: &mut Vec<Vec<u8>>) -> Option<Vec<u8>> {
    let code_of = |letter: Vec<u8>| {
        let known = alphabet.iter().position(|one| *one == letter);
        let at = known.unwrap_or_else(|| {
            alphabet.push(letter);
            alphabet.len() - 1
        });
        u8::try_from(at).ok()
    };
    letters.map(code_of).collect()
}

/// Makes an oracle for the target as a candidate calls it.
pub type OracleOfCall =
    Box<dyn FnMut(Target) -> Result<Box<dyn Oracle + Send>, OracleError> + Send>;

/// Maps candidates that are parts of a call ([`Call`]) to outcomes. Each is another target, with an
/// oracle that is kept while the same candidate is asked again. A candidate that is no call is
/// UNRESOLVED, and is not run. The `input` of a slip is the candidate, which determines the call.
pub struct CallOracle {
    call: Call,
    input: Vec<u8>,
    make: OracleOfCall,
    /// The call that was made last. What it costs to name a crash is mostly the first.
    last: Option<(Target, Box<dyn Oracle + Send>)>,
    /// The limit on time that was learned, for those that are made from here on.
    learned: Option<TimeLimit>,
}

impl CallOracle {
    /// An oracle that runs `input` by the candidates of `call`.
    pub fn new(call: Call, input: Vec<u8>, make: OracleOfCall) -> CallOracle {
        CallOracle {
            call,
            input,
            make,
            last: None,
            learned: None,
        }
    }

    fn run(
        &mut self,
        candidate: &[u8],
        ask: impl FnOnce(&mut dyn Oracle, &[u8]) -> Result<Answer, OracleError>,
    ) -> Result<Answer, OracleError> {
        let Some(target) = self.call.target(candidate) else {
            return Ok(Answer::of(Outcome::Unresolved));
        };
        let (oracle, input) = self.called(target)?;
        let mut answer = ask(oracle, input)?;
        if let Some(slip) = &mut answer.slip {
            slip.input = candidate.to_vec();
        }
        Ok(answer)
    }

    /// The oracle of a target, and what it is asked.
    fn called(&mut self, target: Target) -> Result<(&mut dyn Oracle, &[u8]), OracleError> {
        let (_, oracle) = match self.last.take().filter(|(last, _)| *last == target) {
            Some(same) => self.last.insert(same),
            None => {
                let mut oracle = (self.make)(target.clone())?;
                if let Some(learned) = self.learned {
                    oracle.limit_time(learned);
                }
                self.last.insert((target, oracle))
            }
        };
        Ok((&mut **oracle, &self.input))
    }
}

impl Oracle for CallOracle {
    fn ask(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        self.run(candidate, |oracle, input| oracle.ask(input, kind))
    }

    fn ask_fresh(&mut self, candidate: &[u8], kind: Kind) -> Result<Answer, OracleError> {
        self.run(candidate, |oracle, input| oracle.ask_fresh(input, kind))
    }

    fn limit_time(&mut self, learned: TimeLimit) {
        self.learned = Some(learned);
        if let Some((_, oracle)) = &mut self.last {
            oracle.limit_time(learned);
        }
    }
    fn record(&mut self, slip: &Slip) -> Result<Option<Box<Crash>>, OracleError> {
        let Some(target) = self.call.target(&slip.input) else {
            return Ok(None);
        };
        let (oracle, input) = self.called(target)?;
        let called = Slip {
            class: slip.class.clone(),
            keys: slip.keys,
            input: input.to_vec(),
            crash: None,
        };
        oracle.record(&called)
    }
}
