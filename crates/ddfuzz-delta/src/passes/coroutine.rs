//! A search written as straight-line code, run as a step machine.
//!
//! Bisections inside sweeps inside passes make hard reading as tables of states. Here a pass is an
//! `async` function that awaits outcomes, and the compiler makes the table. Nothing runs at the
//! same time: the script is polled when an outcome is told, and stops at its next question.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::{Candidate, Config, Hints, Outcome};

/// A script between two questions.
pub(super) type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Begins a script anew. It must ask the same questions whenever it is told the same outcomes.
type Begin = Arc<dyn Fn(Asker) -> Running + Send + Sync>;

/// What passes between the machine and its script. One of the two holds it at a time.
struct Exchange {
    asked: Option<Candidate>,
    told: Option<Outcome>,
    hints: Hints,
    best: Config,
}

/// The script's end of the exchange.
#[derive(Clone)]
pub(super) struct Asker(Arc<Mutex<Exchange>>);

impl Asker {
    fn new(units: usize) -> Asker {
        Asker(Arc::new(Mutex::new(Exchange {
            asked: None,
            told: None,
            hints: Hints::default(),
            best: Config::all(units),
        })))
    }

    fn exchange(&self) -> MutexGuard<'_, Exchange> {
        // Nobody panics while holding it; if somebody did, it would be whole nevertheless.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outcome of a candidate.
    pub fn ask(&self, candidate: Candidate) -> Question {
        self.exchange().asked = Some(candidate);
        Question(self.clone())
    }

    /// What the last run told; before the first question, what the run of the input told.
    pub fn hints(&self) -> Hints {
        self.exchange().hints.clone()
    }

    /// Says what is best now.
    pub fn set_best(&self, best: &Config) {
        self.exchange().best = best.clone();
    }
}

/// A question that waits for its outcome.
pub(super) struct Question(Asker);

impl Future for Question {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Outcome> {
        let told = self.0.exchange().told.take();
        told.map_or(Poll::Pending, Poll::Ready)
    }
}

/// What the machine was given, in order.
#[derive(Clone)]
enum Given {
    Hints(Hints),
    Outcome(Outcome),
}

/// A step machine over a script.
///
/// A script that waits cannot be copied: a copy of the machine begins anew and is given the same
/// hints and outcomes. It takes as long as the search took so far, its tests aside.
pub(super) struct Coroutine {
    units: usize,
    begin: Begin,
    asker: Asker,
    script: Option<Running>,
    past: Vec<Given>,
    asked: Option<Candidate>,
    best: Config,
}

impl Coroutine {
    /// A machine over this many units.
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
            best: Config::all(units),
        }
    }

    /// Lets the script go on to its next question, or to its end.
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
        self.best = exchange.best.clone();
    }

    /// What to test now, as [`Search::next`](crate::Search::next).
    pub fn next(&mut self) -> Option<Candidate> {
        if self.asked.is_none() {
            self.go_on();
        }
        self.asked.clone()
    }

    /// Takes the outcome, as [`Search::tell`](crate::Search::tell).
    pub fn tell(&mut self, outcome: Outcome) {
        if self.asked.take().is_none() {
            return;
        }
        self.past.push(Given::Outcome(outcome));
        self.asker.exchange().told = Some(outcome);
        self.go_on();
    }

    /// Takes hints, as [`Search::hint`](crate::Search::hint).
    pub fn hint(&mut self, hints: &Hints) {
        self.past.push(Given::Hints(hints.clone()));
        self.asker.exchange().hints = hints.clone();
    }

    /// The best so far, as [`Search::best`](crate::Search::best).
    pub fn best(&self) -> &Config {
        &self.best
    }
}

impl Clone for Coroutine {
    fn clone(&self) -> Coroutine {
        let mut copy = Coroutine::begun(self.units, self.begin.clone());
        for given in &self.past {
            match given {
                Given::Hints(hints) => copy.hint(hints),
                Given::Outcome(outcome) => {
                    copy.next();
                    copy.tell(*outcome);
                }
            }
        }
        copy
    }
}

/// A search that is a dialogue is one by its machine.
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
