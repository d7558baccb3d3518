//! Runs a search in the caller's process, one test after another.

use crate::{Cache, Caching, Config, Hit, Outcome, Predictor, Search, Seen, TextId};

/// How a test of a configuration (set of kept units) got its outcome: by a run, from the cache, or
/// by a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answered {
    /// The outcome comes from a run of the test.
    Run,
    /// The outcome comes from an earlier test of the same configuration (set of kept units).
    Repeated,
    /// The outcome comes from an earlier test of another configuration (set of kept units) that
    /// builds the same input.
    Cached,
    /// The outcome comes from a [`Predictor`], without a run.
    Predicted,
}

impl From<Hit> for Answered {
    fn from(hit: Hit) -> Answered {
        match hit {
            Hit::Repeated(_) => Answered::Repeated,
            Hit::Cached(_) => Answered::Cached,
        }
    }
}

/// Counts of the tests that searches asked for, by how they got their outcomes: by runs, from the
/// cache, by predictions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    /// Number of tests that were answered by running them.
    pub executed: u64,
    /// Number of tests answered because another configuration (set of kept units) that builds the
    /// same input was tested before.
    pub cached: u64,
    /// Number of tests answered because the same configuration (set of kept units) was tested
    /// before.
    pub repeated: u64,
    /// Number of tests answered by a [`Predictor`].
    pub predicted: u64,
}

/// Answers the tests that searches ask for: from a cache, by predictors, or by calling the test, a
/// closure of the caller.
///
/// ```
/// use ddfuzz_delta::{DdPlus, Order, Outcome, Search, Tester};
///
/// // Each of eight changes implies all earlier ones; the seventh makes the program fail.
/// let mut tester = Tester::new(|kept| match kept.len() {
///     0..=6 => Outcome::Pass,
///     _ => Outcome::Fail,
/// });
/// tester.predict_by(Order);
/// let mut search = DdPlus::new(8);
/// tester.run(&mut search);
/// assert_eq!(search.result().map(|found| found.ranges().collect()), Some(vec![6..7]));
/// assert_eq!((tester.tally().executed, tester.tally().predicted), (3, 3));
/// ```
pub struct Tester<'a> {
    test: Box<dyn FnMut(&Config) -> Outcome + 'a>,
    name: Box<dyn Fn(&Config) -> TextId + 'a>,
    cache: Cache,
    predictors: Vec<Box<dyn Predictor + 'a>>,
    tally: Tally,
}

impl<'a> Tester<'a> {
    /// Creates a tester that runs a configuration (set of kept units) by calling `test`. No
    /// configuration is run twice.
    pub fn new(test: impl FnMut(&Config) -> Outcome + 'a) -> Tester<'a> {
        Tester {
            test: Box::new(test),
            name: Box::new(|config| TextId(config.id().to_bytes())),
            cache: Cache::new(Caching::Text),
            predictors: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Makes the cache recognize configurations (sets of kept units) that build the same input, so
    /// that no input is run twice. `name` must return equal ids for equal inputs, and different ids
    /// for different ones.
    pub fn name_inputs_by(&mut self, name: impl Fn(&Config) -> TextId + 'a) {
        self.name = Box::new(name);
    }

    /// Sets which earlier tests answer for a new one without a run (`caching`), and forgets the
    /// outcomes of all tests so far.
    pub fn answer_by(&mut self, caching: Caching) {
        self.cache = Cache::new(caching);
    }

    /// Adds a predictor. Predictors are asked in the order in which they were added, before a test
    /// is run.
    pub fn predict_by(&mut self, predictor: impl Predictor + 'a) {
        self.predictors.push(Box::new(predictor));
    }

    /// Returns how many tests have been answered so far by runs, from the cache, and by
    /// predictions.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the outcome of a configuration (set of kept units), and where it comes from: the
    /// cache, a predictor, or a run of the test. They are tried in this order.
    pub fn answer(&mut self, config: &Config) -> (Outcome, Answered) {
        let text = (self.name)(config);
        let (outcome, answered) = match self.cache.lookup(Some(config.id()), text) {
            Some(hit) => (hit.outcome(), Answered::from(hit)),
            None => self.find_out(config),
        };
        *match answered {
            Answered::Run => &mut self.tally.executed,
            Answered::Repeated => &mut self.tally.repeated,
            Answered::Cached => &mut self.tally.cached,
            Answered::Predicted => &mut self.tally.predicted,
        } += 1;
        let seen = Seen {
            outcome,
            test: None,
        };
        self.cache.record(Some(config.id()), text, seen);
        (outcome, answered)
    }

    /// Runs `search` to its end, by answering each test that it asks for. A candidate that replaces
    /// bytes ([`Edit::Set`](crate::Edit::Set)) cannot be run here, because it is not a
    /// configuration (set of kept units); its outcome is UNRESOLVED.
    pub fn run(&mut self, search: &mut dyn Search) {
        while let Some(asked) = search.next() {
            let outcome = match asked.edit.apply(search.best()) {
                Some(config) => self.answer(&config).0,
                None => Outcome::Unresolved,
            };
            search.tell(outcome);
        }
    }

    fn find_out(&mut self, config: &Config) -> (Outcome, Answered) {
        let mut predictors = self.predictors.iter();
        if let Some(outcome) = predictors.find_map(|predictor| predictor.predict(config)) {
            return (outcome, Answered::Predicted);
        }
        let outcome = (self.test)(config);
        for predictor in &mut self.predictors {
            predictor.learn(config, outcome);
        }
        (outcome, Answered::Run)
    }
}
