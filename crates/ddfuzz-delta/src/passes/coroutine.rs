//! Turns a search that is written as straight-line code into a step machine.
//!
//! A pass is an `async` function that awaits the outcome of each test, so the compiler builds the
//! table of states. Nothing runs concurrently: the function is polled when an outcome arrives, and
//! stops at its next question.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::{Candidate, Config, ExtraTests, Hints, Outcome};

/// A search function that has been started: the future that its `async` code makes.
pub(super) type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A closure that starts the search function from its beginning. If it is started again and given
/// the same outcomes and hints (facts that runs report besides outcomes), the search function must
/// ask for the same tests.
type Begin = Arc<dyn Fn(Asker) -> Running + Send + Sync>;

/// The state that a step machine and its `async` search function share to pass candidates and
/// outcomes to each other; only one of them uses it at a time.
struct Shared {
    asked: Option<Candidate>,
    told: Option<Outcome>,
    hints: Hints,
    extra: ExtraTests,
    predicted: Option<Outcome>,
    best: Config,
}

/// The handle by which a search function asks for tests and reports its best configuration (set of
/// kept units).
#[derive(Clone)]
pub(super) struct Asker(Arc<Mutex<Shared>>);

impl Asker {
    fn new(units: usize) -> Asker {
        Asker(Arc::new(Mutex::new(Shared {
            asked: None,
            told: None,
            hints: Hints::default(),
            extra: ExtraTests::default(),
            predicted: None,
            best: Config::all(units),
        })))
    }

    fn exchange(&self) -> MutexGuard<'_, Shared> {
        // No holder panics, and the state would be consistent even then.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the step machine for the test of `candidate`; awaiting the result gives the outcome.
    /// `predicted` is the outcome that the search function predicts for the test, `None` without a
    /// prediction.
    pub fn ask(&self, candidate: Candidate, predicted: Option<Outcome>) -> AwaitedOutcome {
        let mut exchange = self.exchange();
        exchange.asked = Some(candidate);
        exchange.predicted = predicted;
        AwaitedOutcome(self.clone())
    }

    /// Returns the hints of the last test run (facts that a run reports besides its outcome, such
    /// as compared operands); before the first test, those of the run of the whole input.
    pub fn hints(&self) -> Hints {
        self.exchange().hints.clone()
    }

    /// Returns how many tests the passes of the search may take after the proof that the result is
    /// 1-minimal.
    pub fn extra_tests(&self) -> ExtraTests {
        self.exchange().extra
    }

    /// Reports the smallest failing configuration (set of kept units) so far to the step machine.
    pub fn set_best(&self, best: &Config) {
        self.exchange().best = best.clone();
    }
}

/// A future for the outcome of the test that was asked for; it is ready when the step machine has
/// received the outcome.
pub(super) struct AwaitedOutcome(Asker);

impl Future for AwaitedOutcome {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Outcome> {
        let told = self.0.exchange().told.take();
        told.map_or(Poll::Pending, Poll::Ready)
    }
}

/// What a step machine has received from its caller: an outcome, hints (facts that runs report
/// besides outcomes), or how many extra tests are allowed. A list of all of these, in order, serves
/// to rebuild the machine in a clone.
#[derive(Clone)]
enum Received {
    Hints(Hints),
    ExtraTests(ExtraTests),
    Outcome(Outcome),
}

/// A step machine that is driven by an `async` search function.
///
/// A future cannot be copied. A clone therefore starts a new search function and gives it the same
/// hints (facts that runs report besides outcomes) and outcomes. Cloning takes as long as the
/// search so far, without its tests.
pub(super) struct Coroutine {
    units: usize,
    begin: Begin,
    asker: Asker,
    script: Option<Running>,
    past: Vec<Received>,
    asked: Option<Candidate>,
    predicted: Option<Outcome>,
    best: Config,
}

impl Coroutine {
    /// Creates a step machine for an input of `units` units. `begin` starts its search function,
    /// and does so again for each clone.
    pub fn new(
        units: usize,
        begin: impl Fn(Asker) -> Running + Send + Sync + 'static,
    ) -> Coroutine {
        Coroutine::begun(units, Arc::new(begin))
    }

    fn begun(units: usize, begin: Begin) -> Coroutine {
        let asker = Asker::new(units);
        Coroutine {
            units,
            script: Some(begin(asker.clone())),
            begin,
            asker,
            past: Vec::new(),
            asked: None,
            predicted: None,
            best: Config::all(units),
        }
    }

    /// Continues the `async` search function until it asks for its next test, or to its end.
    fn go_on(&mut self) {
        let Some(script) = &mut self.script else {
            return;
        };
        let mut context = Context::from_waker(Waker::noop());
        if script.as_mut().poll(&mut context).is_ready() {
            self.script = None;
        }
        let mut exchange = self.asker.exchange();
        self.asked = exchange.asked.take();
        self.predicted = exchange.predicted.take();
        self.best = exchange.best.clone();
    }

    /// Returns the candidate to test now; `None` after the end. Implements
    /// [`Search::next`](crate::Search::next).
    pub fn next(&mut self) -> Option<Candidate> {
        if self.asked.is_none() {
            self.go_on();
        }
        self.asked.clone()
    }

    /// Passes the outcome of the candidate to the search function. Implements
    /// [`Search::tell`](crate::Search::tell).
    pub fn tell(&mut self, outcome: Outcome) {
        if self.asked.take().is_none() {
            return;
        }
        self.past.push(Received::Outcome(outcome));
        self.asker.exchange().told = Some(outcome);
        self.go_on();
    }

    /// Passes the hints of a run (facts that it reported besides its outcome) to the search
    /// function. Implements [`Search::hint`](crate::Search::hint).
    pub fn hint(&mut self, hints: &Hints) {
        self.past.push(Received::Hints(hints.clone()));
        self.asker.exchange().hints = hints.clone();
    }

    /// Sets how many tests the passes of the search may take after the proof that the result is
    /// 1-minimal. Implements [`Search::allow_extra_tests`](crate::Search::allow_extra_tests).
    pub fn allow_extra_tests(&mut self, extra: ExtraTests) {
        self.past.push(Received::ExtraTests(extra));
        self.asker.exchange().extra = extra;
    }

    /// Returns the outcome predicted for the candidate, so that its test need not be run; `None`
    /// without a prediction. Implements [`Search::predicted`](crate::Search::predicted).
    pub fn predicted(&self) -> Option<Outcome> {
        self.predicted
    }

    /// Returns the smallest failing configuration (set of kept units) so far. Implements
    /// [`Search::best`](crate::Search::best).
    pub fn best(&self) -> &Config {
        &self.best
    }
}

impl Clone for Coroutine {
    fn clone(&self) -> Coroutine {
        let mut copy = Coroutine::begun(self.units, self.begin.clone());
        for given in &self.past {
            match given {
                Received::Hints(hints) => copy.hint(hints),
                Received::ExtraTests(extra) => copy.allow_extra_tests(*extra),
                Received::Outcome(outcome) => {
                    copy.next();
                    copy.tell(*outcome);
                }
            }
        }
        copy
    }
}

/// Implements the trait [`Search`](crate::Search) for a type that wraps a [`Coroutine`].
macro_rules! is_search {
    ($search:ty) => {
        impl $crate::Search for $search {
            fn next(&mut self) -> Option<$crate::Candidate> {
                self.0.next()
            }

            fn tell(&mut self, outcome: $crate::Outcome) {
                self.0.tell(outcome);
            }

            fn hint(&mut self, hints: &$crate::Hints) {
                self.0.hint(hints);
            }

            fn allow_extra_tests(&mut self, extra: $crate::ExtraTests) {
                self.0.allow_extra_tests(extra);
            }

            fn predicted(&self) -> Option<$crate::Outcome> {
                self.0.predicted()
            }

            fn best(&self) -> &$crate::Config {
                self.0.best()
            }

            fn boxed(&self) -> Box<dyn $crate::Search> {
                Box::new(self.clone())
            }
        }
    };
}

pub(super) use is_search;
