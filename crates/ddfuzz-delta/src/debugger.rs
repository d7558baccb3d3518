//! Delta debugging of a function call: [`DeltaDebugger`], and what the function may return.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::arguments::name;
use crate::{
    Arguments, Config, Dd, Difference, Mode, NotFailing, NotPassing, Outcome, Tally, Tester,
};

/// Simplifies one failing function call: which part of its arguments makes it fail? (*The Debugging
/// Book*, `DeltaDebugger`.)
///
/// The function takes its argument by reference; several arguments are a tuple. It fails by
/// panicking, by returning [`Outcome::Fail`], or by returning `Err`. Strings are reduced by
/// characters, vectors by items; other arguments are not changed (see
/// [`Argument`](super::Argument)).
///
/// ```
/// use ddfuzz_delta::DeltaDebugger;
///
/// fn mystery(input: &str) {
///     if let Some(open) = input.find('(') {
///         assert!(!input[open..].contains(')'), "invalid input");
///     }
/// }
///
/// let failing = "V\"/+!aF-(V4EOz*+s/Q,7)2@0_".to_owned();
/// let mut debugger = DeltaDebugger::new(failing, |input| mystery(input))?;
/// assert_eq!(debugger.min_args(), "()");
/// assert_eq!(debugger.max_args()?, "V\"/+!aF-V4EOz*+s/Q,7)2@0_");
///
/// let isolated = debugger.min_arg_diff()?;
/// assert_eq!(isolated.pass, "z*+s/Q,7)2@0_");
/// assert_eq!(isolated.fail, "(z*+s/Q,7)2@0_");
/// assert_eq!(isolated.difference, "(");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Which failure
/// FAIL is the failure of the first call: a panic with the same message, in which numbers and
/// quoted text may differ. Another panic is UNRESOLVED. If this is not precise enough, catch the
/// panics that matter and return an [`Outcome`].
///
/// A caught panic is still printed by the panic hook of the process, which this type does not
/// change. `std::panic::set_hook(Box::new(|_| {}))` silences it.
///
/// # Several arguments
/// [`Dd`] processes one argument after another, while the others stay, until none changes any more.
/// The three methods share a cache, so no input is run twice.
pub struct DeltaDebugger<'a, A> {
    arguments: A,
    /// For each argument, the range of its unit numbers; the units of all arguments are numbered
    /// consecutively.
    places: Vec<Range<usize>>,
    tester: Tester<'a>,
}

impl<'a, A: Arguments + 'a> DeltaDebugger<'a, A> {
    /// Creates a debugger of one failing call: calls `function` with `arguments` once to record its
    /// failure.
    ///
    /// # Errors
    /// [`NotFailing`] if the call does not fail.
    pub fn new<V: Verdict>(
        arguments: A,
        mut function: impl FnMut(&A) -> V + 'a,
    ) -> Result<DeltaDebugger<'a, A>, NotFailing> {
        let failure = match call(|| function(&arguments)) {
            Ok(outcome) => return Err(NotFailing { outcome }),
            Err(failure) => failure,
        };
        let places = places(&arguments.units());
        let whole = Config::all(places.last().map_or(0, |last| last.end));
        let build = {
            let (arguments, places) = (arguments.clone(), places.clone());
            move |config: &Config| arguments.keep(&split(config, &places))
        };
        let name_of = {
            let build = build.clone();
            move |config: &Config| name(&build(config))
        };
        let mut first = Some(failure.clone());
        let mut tester = Tester::new(move |config| {
            // The first call has been made already.
            let known = first.take().map(Err);
            match known.unwrap_or_else(|| call(|| function(&build(config)))) {
                Ok(outcome) => outcome,
                Err(other) => same(&failure, &other),
            }
        });
        tester.name_inputs_by(name_of);
        tester.answer(&whole);
        Ok(DeltaDebugger {
            arguments,
            places,
            tester,
        })
    }

    /// Returns a part of the arguments that still fails and cannot become smaller: leaving out any
    /// one more unit makes the failure disappear (1-minimal, A.11).
    pub fn min_args(&mut self) -> A {
        let mut fail = self.whole();
        self.in_turn(|debugger, place| {
            let pass = fail.minus(&place);
            let before = fail.len();
            fail = match debugger.outcome(&pass) {
                Outcome::Fail => pass,
                _ => {
                    let sides = debugger.search(pass, fail.clone(), Mode::Minimize);
                    sides.fail().clone()
                }
            };
            fail.len() < before
        });
        self.build(&fail)
    }

    /// Returns a part of the arguments that passes and cannot become larger: adding any one more
    /// unit of the failing call makes it not pass (1-maximal).
    ///
    /// # Errors
    /// [`NotPassing`] if the call without any units fails.
    pub fn max_args(&mut self) -> Result<A, NotPassing> {
        let mut pass = self.nothing()?;
        let whole = self.whole();
        self.in_turn(|debugger, place| {
            let fail = pass.union(&whole.intersection(&place));
            let before = pass.len();
            pass = match debugger.outcome(&fail) {
                Outcome::Pass => fail,
                _ => {
                    let sides = debugger.search(pass.clone(), fail, Mode::Maximize);
                    sides.pass().clone()
                }
            };
            pass.len() > before
        });
        Ok(self.build(&pass))
    }

    /// Returns a passing and a failing call that differ as little as possible: no single unit of
    /// the difference can be added to the passing call without losing PASS, or removed from the
    /// failing call without losing FAIL (1-minimal difference, A.15).
    ///
    /// # Errors
    /// [`NotPassing`] if the call without any units fails.
    pub fn min_arg_diff(&mut self) -> Result<Difference<A>, NotPassing> {
        let mut pass = self.nothing()?;
        let mut fail = self.whole();
        self.in_turn(|debugger, place| {
            // The failing call, with this argument from the passing call.
            let other = fail.minus(&place.minus(&pass));
            if other == fail || other == pass {
                return false;
            }
            match debugger.outcome(&other) {
                Outcome::Fail => fail = other,
                Outcome::Pass => pass = other,
                Outcome::Unresolved => return false,
            }
            true
        });
        // At most one argument still differs, unless calls that mix both sides are UNRESOLVED.
        let sides = self.search(pass, fail, Mode::Isolate);
        Ok(Difference {
            pass: self.build(sides.pass()),
            fail: self.build(sides.fail()),
            difference: self.build(sides.difference()),
        })
    }

    /// Returns how many calls the search has asked for so far, by how each was answered: by calling
    /// the function, from the cache, or by a prediction.
    pub fn tally(&self) -> Tally {
        self.tester.tally()
    }

    /// Calls `change` for one argument after another, with the units of the argument, round after
    /// round. `change` returns true if it has simplified the argument. Ends after a round without a
    /// change.
    fn in_turn(&mut self, mut change: impl FnMut(&mut Self, Config) -> bool) {
        let places: Vec<Config> = self.places.iter().map(units_of).collect();
        let mut unchanged = 0;
        for place in places.iter().cycle() {
            if unchanged == places.len() {
                return;
            }
            let changed = !place.is_empty() && change(self, place.clone());
            unchanged = if changed { 1 } else { unchanged + 1 };
        }
    }

    fn search(&mut self, pass: Config, fail: Config, mode: Mode) -> Dd {
        let mut search = Dd::between(pass, fail, mode);
        self.tester.run(&mut search);
        search
    }

    fn outcome(&mut self, config: &Config) -> Outcome {
        self.tester.answer(config).0
    }

    fn whole(&self) -> Config {
        Config::all(self.places.last().map_or(0, |last| last.end))
    }

    fn nothing(&mut self) -> Result<Config, NotPassing> {
        match self.outcome(&Config::empty()) {
            Outcome::Fail => Err(NotPassing),
            _ => Ok(Config::empty()),
        }
    }

    fn build(&self, config: &Config) -> A {
        self.arguments.keep(&split(config, &self.places))
    }
}

/// Returns FAIL if the failure `other` of a call is the same as `first`, that of the first call
/// with all arguments; else UNRESOLVED.
fn same(first: &Failure, other: &Failure) -> Outcome {
    match first == other {
        true => Outcome::Fail,
        false => Outcome::Unresolved,
    }
}

/// Returns, for each argument, the range of the numbers of its units, given the number of units of
/// each argument. The units of all arguments are numbered consecutively.
fn places(units: &[usize]) -> Vec<Range<usize>> {
    let ends = units.iter().scan(0, |end, units| {
        *end += units;
        Some(*end - units..*end)
    });
    ends.collect()
}

fn units_of(place: &Range<usize>) -> Config {
    Config::from_ascending([place.clone()])
}

/// Splits `config`, a set of units of all arguments, into one set for each argument, whose units
/// are numbered from 0; `places` are the ranges of unit numbers of the arguments.
fn split(config: &Config, places: &[Range<usize>]) -> Vec<Config> {
    let within = |place: &Range<usize>| {
        let kept = config.intersection(&units_of(place));
        let ranges: Vec<Range<usize>> = kept
            .ranges()
            .map(|range| range.start - place.start..range.end - place.start)
            .collect();
        Config::from_ascending(ranges)
    };
    places.iter().map(within).collect()
}

/// The return value of a function under test, which says whether the call passed. A function that
/// returns `()` passes unless it panics.
pub trait Verdict {
    /// Returns the outcome that a return value of the function under test stands for.
    fn outcome(self) -> Outcome;
}

impl Verdict for () {
    fn outcome(self) -> Outcome {
        Outcome::Pass
    }
}

impl Verdict for Outcome {
    fn outcome(self) -> Outcome {
        self
    }
}

/// For a `Result` that the function under test returns: `Ok` has the outcome of its content; `Err`
/// is FAIL.
impl<V: Verdict, E> Verdict for Result<V, E> {
    fn outcome(self) -> Outcome {
        self.map_or(Outcome::Fail, V::outcome)
    }
}

/// How a call of the function under test failed: by its result or by a panic. Equal values stand
/// for the same failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The function under test returned FAIL or `Err`; it did not panic.
    Returned,
    /// The function under test panicked with this message, from which numbers and quoted text were
    /// removed, because both vary with the arguments.
    Panicked(String),
}

/// Calls the function under test and catches its panics. `Ok` holds PASS or UNRESOLVED; `Err`
/// describes a FAIL or a panic.
pub(super) fn call<V: Verdict>(function: impl FnOnce() -> V) -> Result<Outcome, Failure> {
    match catch_unwind(AssertUnwindSafe(|| function().outcome())) {
        Ok(Outcome::Fail) => Err(Failure::Returned),
        Ok(outcome) => Ok(outcome),
        Err(payload) => Err(Failure::Panicked(lasting(message(payload.as_ref())))),
    }
}

/// Returns the message of a panic; empty if its payload is not a string.
fn message(payload: &(dyn Any + Send)) -> &str {
    let owned = payload.downcast_ref::<String>().map(String::as_str);
    let text = owned.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or_default()
}

/// Returns the part of a panic message that does not vary with the arguments: each number is
/// replaced by `#`, and quoted text is removed.
fn lasting(message: &str) -> String {
    let mut letters = message.chars().peekable();
    let mut lasting = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            '0'..='9' => {
                while letters.next_if(char::is_ascii_digit).is_some() {}
                lasting.push('#');
            }
            '"' => {
                while let Some(quoted) = letters.next().filter(|quoted| *quoted != '"') {
                    // An escaped quote does not end the quotation.
                    letters.next_if(|_| quoted == '\\');
                }
                lasting.push('"');
            }
            other => lasting.push(other),
        }
    }
    lasting
}
