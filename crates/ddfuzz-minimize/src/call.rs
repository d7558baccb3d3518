//! Minimizes how a target is called: a part of its arguments or environment as a text, and the
//! oracle that tests one input with many calls.

use ddfuzz_delta::Outcome;
use ddfuzz_exec::{Target, TimeLimit};
use ddfuzz_triage::Crash;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::log::{CallRecord, Part};
use crate::{Answer, Kind, Oracle, OracleError, Slip};

/// Maximum number of units (arguments, characters, or environment variables) in one text. A unit is
/// one byte of the text, and a byte has 256 values.
const MAX_UNITS: usize = 256;

/// A part of a target's call (its arguments, one argument, or its environment) as a text in which
/// each byte stands for a unit (an argument, a character, or a variable). To minimize the text is
/// to minimize the part.
#[derive(Clone, Debug)]
pub struct Call {
    target: Target,
    part: Part,
    at: usize,
    /// The distinct characters of the argument that is minimized, if the part of the call is one
    /// argument: the byte that stands for a character is its index in this list. Empty if whole
    /// arguments or variables are deleted.
    alphabet: Vec<Vec<u8>>,
    text: Vec<u8>,
}

impl Call {
    /// Encodes one part of the call of `target` as a text: the part that `record`, from a log,
    /// names. If `target` has no such part, the text is empty.
    pub fn of_record(target: Target, record: &CallRecord) -> Call {
        let at = usize::try_from(record.at).unwrap_or(usize::MAX);
        Call::new(target, record.part, at)
    }

    /// Encodes a part of `target`'s call (its arguments, one argument, or its environment) as a
    /// text of one byte per unit. For [`Part::Argument`], `at` is the index of the argument; the
    /// text is empty if there is no such argument, or if it contains `@@`. For other parts, `at` is
    /// the index of the first of at most 256 arguments or variables.
    pub fn new(target: Target, part: Part, at: usize) -> Call {
        let mut alphabet = Vec::new();
        let text = match part {
            Part::Args => unit_codes(deletable(&target.args).count(), at),
            Part::Env => unit_codes(target.env.len(), at),
            Part::Argument => match target.args.get(at).filter(|arg| !is_fixed(arg)) {
                Some(arg) => encode_argument(arg, &mut alphabet),
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

    /// Lists the parts of a target's call that are minimized, in order: whole arguments, the
    /// characters of each argument, environment variables. Each comes with the index `at` that
    /// [`Call::new`] takes. `args` and `env`: whether arguments and environment variables are
    /// wanted.
    pub fn places(target: &Target, args: bool, env: bool) -> Vec<(Part, usize)> {
        let windows = |count: usize| (0..count).step_by(MAX_UNITS);
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

    /// Returns the part of the call as it was before minimization, as a text of one byte for each
    /// unit.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Decodes a candidate: returns the target with only some units (arguments, characters of one
    /// argument, or environment variables) of the part that is minimized, those that `text`
    /// contains. `None` if `text` is invalid, or if the target would receive its input in another
    /// way.
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
                remove_indices(&mut target.args, &gone);
            }
            Part::Env => remove_indices(&mut target.env, &self.gone(text)),
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

    /// Returns the indices of the units of the part (arguments or variables) whose bytes `text`
    /// does not contain, so that they are deleted.
    fn gone(&self, text: &[u8]) -> Vec<usize> {
        let all = self.text.iter().filter(|code| !text.contains(code));
        all.map(|code| self.at + usize::from(*code)).collect()
    }
}

/// Returns the codes 0, 1, 2, … of the units from index `at` on, in a part that has `count` units:
/// one byte for each unit, at most 256.
fn unit_codes(count: usize, at: usize) -> Vec<u8> {
    let units = count.saturating_sub(at).min(MAX_UNITS);
    (0..=u8::MAX).take(units).collect()
}

/// Checks whether an argument contains `@@`, the path of the input; such an argument is never
/// changed.
fn is_fixed(arg: &OsStr) -> bool {
    arg.to_string_lossy().contains("@@")
}

/// Returns the indices of the arguments that may be deleted: those without `@@`.
fn deletable(args: &[OsString]) -> impl Iterator<Item = usize> + '_ {
    let all = args.iter().enumerate();
    all.filter(|(_, arg)| !is_fixed(arg)).map(|(at, _)| at)
}

fn remove_indices<T>(items: &mut Vec<T>, gone: &[usize]) {
    let mut at = 0;
    items.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
}

/// Encodes an argument: the code of each character is its index in `alphabet`. Bytes take the place
/// of characters if the argument is not UTF-8 or has more than 256 different characters.
fn encode_argument(arg: &OsStr, alphabet: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let letters = arg.to_str().and_then(|text| {
        let letters = text.chars().map(|letter| letter.to_string().into_bytes());
        encode(letters, alphabet)
    });
    letters
        .or_else(|| {
            alphabet.clear();
            encode(arg.as_bytes().iter().map(|byte| vec![*byte]), alphabet)
        })
        .unwrap_or_default()
}

/// Encodes each of `letters` as a byte, its index in `alphabet`, to which new letters are added;
/// `None` if there are more than 256 different letters.
fn encode(letters: impl Iterator<Item = Vec<u8>>, alphabet: &mut Vec<Vec<u8>>) -> Option<Vec<u8>> {
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

/// Function that makes the oracle for a target whose arguments or environment were changed.
pub type OracleOfCall =
    Box<dyn FnMut(Target) -> Result<Box<dyn Oracle + Send>, OracleError> + Send>;

/// Tests candidates that are parts of a call ([`Call`]): each candidate makes another target. The
/// oracle of the last target is reused if the next candidate makes the same target. A candidate
/// that is not a valid call is UNRESOLVED and is not run. The `input` of a slip (a crash of another
/// bug) is the candidate, which determines the call.
pub struct CallOracle {
    call: Call,
    input: Vec<u8>,
    make: OracleOfCall,
    /// The last candidate's target and its oracle, which is kept because classifying a crash is
    /// expensive the first time; `None` before the first candidate.
    last: Option<(Target, Box<dyn Oracle + Send>)>,
    /// Time limit learned from runs of the input, for oracles that are made from now on; `None` if
    /// none is learned.
    learned: Option<TimeLimit>,
}

impl CallOracle {
    /// Makes an oracle that runs `input` with the changed calls that candidates of `call` describe;
    /// `make` makes the oracle for each changed target.
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

    /// Returns the oracle for the target `target`, and the input with which it is run. The oracle
    /// is made anew unless the last candidate had the same target.
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
