//! `dd` and `dd+` as first published (Zeller, *Yesterday, my program worked. Today, it does not.
//! Why?*, ESEC 1999): divide, search both halves, unite the results.

use crate::{Candidate, Config, Outcome, Rule, Search};

/// One recursive call `dd2(c, r)` of the algorithm `dd` of ESEC 1999: the search for the units in
/// `c` that cause the failure while those of `r` stay applied.
#[derive(Clone, Debug)]
struct Dd2Call {
    /// `c`: the units among which the recursive call searches for those that cause the failure.
    units: Config,
    /// `r`: the units that every test of the recursive call keeps, besides some of `c`.
    rest: Config,
}

/// `dd` of ESEC 1999, algorithm 1, for failures that are monotone, unambiguous and consistent.
///
/// `dd2(c, r)` tests the two halves of `c`, each together with `r`, and continues with the first
/// half that fails. If neither half fails, both are needed (*interference*): each half is searched
/// while the other half stays applied, and the two results are united.
///
/// The paper does not test the united result. This search tests it last ([`Rule::Result`]), unless
/// its outcome is known. [`best`](Search::best) is the smallest failing configuration that was
/// tested. Under the three conditions above it is the result, and minimal (ESEC 1999, section 3);
/// otherwise only its failure is guaranteed. UNRESOLVED is treated like PASS.
#[derive(Clone, Debug)]
pub struct Dd1999 {
    call: Option<Dd2Call>,
    /// Index, 0 or 1, of the half of the searched units whose test is asked for now.
    half: usize,
    /// Recursive calls of `dd` that have not begun; the last of the list begins next.
    waiting: Vec<Dd2Call>,
    findings: Findings,
}

impl Dd1999 {
    /// Name of the search by `dd` of ESEC 1999 on command lines and in logs.
    pub const NAME: &'static str = "dd-1999";

    /// Creates a search over all `units`, which together must have given FAIL.
    pub fn new(units: usize) -> Dd1999 {
        let mut machine = Dd1999 {
            call: None,
            half: 0,
            waiting: Vec::new(),
            findings: Findings::new(units),
        };
        machine.begin(Config::all(units), Config::empty());
        machine
    }

    /// Returns the configuration (set of kept units) that the algorithm finds, whether its test
    /// fails or not; `None` before the end of the search.
    pub fn result(&self) -> Option<&Config> {
        self.findings.result()
    }

    fn begin(&mut self, units: Config, rest: Config) {
        self.half = 0;
        self.call = Some(Dd2Call { units, rest });
        while let Some(found) = self.call.take_if(|call| call.units.len() <= 1) {
            self.findings.add(found.units);
            self.call = self.waiting.pop();
        }
        if self.call.is_none() {
            self.findings.conclude();
        }
    }
}

impl Dd2Call {
    fn half(&self, index: usize) -> Config {
        self.units.part(2, index)
    }

    fn config(&self, half: usize) -> Config {
        self.half(half).union(&self.rest)
    }

    /// Returns the recursive call `dd2` that searches the half with index `half` (0 or 1) of the
    /// units, and keeps the other half in all of its tests.
    fn beside(&self, half: usize) -> Dd2Call {
        Dd2Call {
            units: self.half(half),
            rest: self.half(1 - half).union(&self.rest),
        }
    }
}

impl Search for Dd1999 {
    fn next(&mut self) -> Option<Candidate> {
        match &self.call {
            Some(call) => Some(Candidate::keep(Rule::Subset, call.config(self.half))),
            None => self.findings.last_test(),
        }
    }

    fn tell(&mut self, outcome: Outcome) {
        let Some(call) = self.call.take() else {
            return self.findings.tell_last(outcome);
        };
        if outcome == Outcome::Fail {
            self.findings.failed(call.config(self.half));
            self.begin(call.half(self.half), call.rest);
        } else if self.half == 0 {
            self.half = 1;
            self.call = Some(call);
        } else {
            let (first, second) = (call.beside(0), call.beside(1));
            self.waiting.push(second);
            self.begin(first.units, first.rest);
        }
    }

    fn best(&self) -> &Config {
        self.findings.best()
    }

    fn boxed(&self) -> Box<dyn Search> {
        Box::new(self.clone())
    }
}

/// One recursive call `dd3(c, r, n)` of the algorithm `dd+` of ESEC 1999, with the outcomes of its
/// tests so far.
#[derive(Clone, Debug)]
struct Dd3Call {
    /// `c`: the units among which the recursive call searches for those that cause the failure.
    units: Config,
    /// `r`: the units that every test of the recursive call keeps, besides some of `c`.
    rest: Config,
    /// `n`: the number of parts into which the searched units `c` are split.
    parts: usize,
    /// `ti`: the outcomes of testing `ci ∪ r`, each part of the searched units with the applied
    /// units, in the order of the parts.
    subsets: Vec<Outcome>,
    /// `t̄i`: the outcomes of testing `c̄i ∪ r`, the complement of each part with the applied
    /// units, in the order of the parts.
    complements: Vec<Outcome>,
}

/// `dd+` of ESEC 1999, algorithm 2: `dd` that treats UNRESOLVED differently from PASS.
///
/// `dd3(c, r, n)` tests the `n` parts `ci` of `c`, each together with `r`, until one fails. Then it
/// tests the complements `c̄i = c \ (ci ∪ r)` together with `r`, until it finds an interference.
/// The first case that applies decides:
/// - *found*: `|c| ≤ 1`; the result is `c`
/// - *found in* `ci`: `ci` fails; continue with `dd3(ci, r, 2)`
/// - *interference*: `ci` and `c̄i` pass; search each with the other applied, and unite the results
/// - *preference*: `ci` is unresolved and `c̄i` passes; continue with `dd3(ci, c̄i ∪ r, 2)` for the
///   lowest `i`
/// - *try again*: `n < |c|`; keep only the units of all failing complements, apply the parts that
///   passed, and double `n`
/// - otherwise the result is what remains of `c`.
///
/// The result is tested last ([`Rule::Result`]), unless its outcome is known. It may not fail if
/// changes are ambiguous, or if it fails only together with applied units. [`best`](Search::best)
/// is the smallest failing configuration that was tested.
///
/// At `n = 2` each complement is the other part, so the search asks for it twice. Callers answer
/// the second test from a cache.
#[derive(Clone, Debug)]
pub struct DdPlus {
    call: Option<Dd3Call>,
    /// Recursive calls of `dd+` that have not begun; the last of the list begins next.
    waiting: Vec<Dd3Call>,
    findings: Findings,
}

impl DdPlus {
    /// Name of the search by `dd+` of ESEC 1999 on command lines and in logs.
    pub const NAME: &'static str = "dd-plus";

    /// Creates a search over all `units`, which together must have given FAIL.
    pub fn new(units: usize) -> DdPlus {
        let mut machine = DdPlus {
            call: None,
            waiting: Vec::new(),
            findings: Findings::new(units),
        };
        machine.begin(Dd3Call::new(Config::all(units), Config::empty(), 2));
        machine
    }

    /// Returns the configuration (set of kept units) that the algorithm finds, whether its test
    /// fails or not; `None` before the end of the search.
    pub fn result(&self) -> Option<&Config> {
        self.findings.result()
    }

    /// Begins a recursive call, or ends it at once if it has fewer than two units to search.
    fn begin(&mut self, call: Dd3Call) {
        match call.units.len() {
            0 | 1 => self.end(call.units),
            _ => self.call = Some(call),
        }
    }

    /// Records `units` as the result of a recursive call, and begins the next waiting call that has
    /// at least two units to search.
    fn end(&mut self, units: Config) {
        self.findings.add(units);
        while let Some(next) = self.waiting.pop() {
            if next.units.len() > 1 {
                self.call = Some(next);
                return;
            }
            self.findings.add(next.units);
        }
        self.findings.conclude();
    }

    /// Chooses what follows after the tests of all parts and of one or more complements, by the
    /// rules of `dd3`: the next test, new recursive calls, or the end of the recursive call `call`.
    fn decide(&mut self, call: Dd3Call) {
        let of = |subset: Outcome| {
            let outcomes = call.subsets.iter().zip(&call.complements);
            let mut pairs = outcomes.map(|(one, other)| (*one, *other));
            pairs.position(|pair| pair == (subset, Outcome::Pass))
        };
        if let Some(index) = of(Outcome::Pass) {
            self.waiting.push(call.beside_complement(index));
            self.begin(call.beside_part(index));
        } else if call.complements.len() < call.parts {
            self.call = Some(call);
        } else if let Some(index) = of(Outcome::Unresolved) {
            self.begin(call.beside_part(index));
        } else if call.parts < call.units.len() {
            self.begin(call.again());
        } else {
            self.end(call.bounded());
        }
    }
}

impl Dd3Call {
    fn new(units: Config, rest: Config, parts: usize) -> Dd3Call {
        Dd3Call {
            units,
            rest,
            parts,
            subsets: Vec::new(),
            complements: Vec::new(),
        }
    }

    /// Returns the part `ci` of the searched units whose index is `index`, from 0.
    fn part(&self, index: usize) -> Config {
        self.units.part(self.parts, index)
    }

    /// Returns the complement `c̄i` of the part with the index `index` (from 0): the searched units
    /// without that part, and without the units that every test keeps.
    fn complement(&self, index: usize) -> Config {
        self.units.minus(&self.part(index)).minus(&self.rest)
    }

    /// Returns the configuration (set of kept units) that is being tested, and the rule that says
    /// whether it is a part or a complement.
    fn config(&self) -> (Rule, Config) {
        let (rule, units) = match self.subsets.len() {
            index if index < self.parts => (Rule::Subset, self.part(index)),
            _ => (Rule::Complement, self.complement(self.complements.len())),
        };
        (rule, units.union(&self.rest))
    }

    /// Returns the recursive call `dd3(ci, c̄i ∪ r, 2)`: it searches the part with the index
    /// `index`, and keeps the complement of that part in all of its tests.
    fn beside_part(&self, index: usize) -> Dd3Call {
        let rest = self.complement(index).union(&self.rest);
        Dd3Call::new(self.part(index), rest, 2)
    }

    /// Returns the recursive call `dd3(c̄i, ci ∪ r, 2)`: it searches the complement of the part
    /// with the index `index`, and keeps that part in all of its tests.
    fn beside_complement(&self, index: usize) -> Dd3Call {
        let rest = self.part(index).union(&self.rest);
        Dd3Call::new(self.complement(index), rest, 2)
    }

    /// Returns `c'`, the units among which the rule *try again* continues to search: those units of
    /// `c` that are in every complement whose test gave FAIL; all units of `c` if no complement
    /// failed.
    fn bounded(&self) -> Config {
        let failed = |(index, outcome): (usize, &Outcome)| {
            (*outcome == Outcome::Fail).then(|| self.complement(index))
        };
        let bounds = self.complements.iter().enumerate().filter_map(failed);
        bounds.fold(self.units.clone(), |left, bound| left.intersection(&bound))
    }

    /// Returns the recursive call `dd3(c', r', n')` of the rule *try again*: it searches only the
    /// units in all failing complements (`c'`), keeps the parts that passed in all of its tests
    /// (`r'`), and splits `c'` into twice as many parts (`n'`), at most one for each unit.
    fn again(&self) -> Dd3Call {
        let passed = |(index, outcome): (usize, &Outcome)| {
            (*outcome == Outcome::Pass).then(|| self.part(index))
        };
        let parts = self.subsets.iter().enumerate().filter_map(passed);
        let applied: Vec<Config> = parts.chain([self.rest.clone()]).collect();
        let units = self.bounded();
        let parts = units.len().min(2 * self.parts);
        Dd3Call::new(units, Config::union_of(&applied), parts)
    }
}

impl Search for DdPlus {
    fn next(&mut self) -> Option<Candidate> {
        match self.call.as_ref().map(Dd3Call::config) {
            Some((rule, config)) => Some(Candidate::keep(rule, config)),
            None => self.findings.last_test(),
        }
    }

    fn tell(&mut self, outcome: Outcome) {
        let Some(mut call) = self.call.take() else {
            return self.findings.tell_last(outcome);
        };
        let (rule, config) = call.config();
        if outcome == Outcome::Fail {
            self.findings.failed(config);
        }
        match (rule, outcome) {
            (Rule::Subset, Outcome::Fail) => {
                let part = call.part(call.subsets.len());
                self.begin(Dd3Call::new(part, call.rest, 2));
            }
            (Rule::Subset, _) => {
                call.subsets.push(outcome);
                self.call = Some(call);
            }
            _ => {
                call.complements.push(outcome);
                self.decide(call);
            }
        }
    }

    fn best(&self) -> &Config {
        self.findings.best()
    }

    fn boxed(&self) -> Box<dyn Search> {
        Box::new(self.clone())
    }
}

/// What `dd` or `dd+` has found so far: the results of finished recursive calls, the smallest
/// failing configuration that was tested, and the union of all results.
///
/// The union is tested last. It may not fail if the changes are ambiguous, that is, if several sets
/// of them fail independently of each other.
#[derive(Clone, Debug)]
pub(super) struct Findings {
    best: Config,
    found: Vec<Config>,
    result: Option<Config>,
    in_doubt: bool,
}

impl Findings {
    /// Creates the record of what a search by `dd+` has found: no results yet, and the
    /// configuration (set of kept units) of all `units` as the smallest one known to fail.
    pub fn new(units: usize) -> Findings {
        Findings {
            best: Config::all(units),
            found: Vec::new(),
            result: None,
            in_doubt: false,
        }
    }

    /// Records that the test of `config` gave FAIL, in case it is the smallest failing
    /// configuration (set of kept units).
    pub fn failed(&mut self, config: Config) {
        if config.len() < self.best.len() {
            self.best = config;
        }
    }

    /// Adds `units`, the result of one recursive call of the algorithm, to the results: changes
    /// that together cause the failure.
    pub fn add(&mut self, units: Config) {
        self.found.push(units);
    }

    /// Computes the result of the search, the union of the results of all recursive calls of `dd+`,
    /// after the last of them.
    pub fn conclude(&mut self) {
        let result = Config::union_of(&self.found);
        // The empty configuration and the best were tested already.
        self.in_doubt = !result.is_empty() && result != self.best;
        self.result = Some(result);
    }

    /// Returns the smallest failing configuration (set of kept units) that was tested.
    pub fn best(&self) -> &Config {
        &self.best
    }

    /// Returns the union of the results of all recursive calls; `None` before
    /// [`conclude`](Findings::conclude).
    pub fn result(&self) -> Option<&Config> {
        self.result.as_ref()
    }

    /// Returns the last candidate to test: the union of all results, if it is not known yet whether
    /// the union fails; `None` if this is known, or the union is not computed yet.
    pub fn last_test(&self) -> Option<Candidate> {
        let result = self.result.as_ref().filter(|_| self.in_doubt)?;
        Some(Candidate::keep(Rule::Result, result.clone()))
    }

    /// Records the outcome of testing the union of the results of all recursive calls.
    pub fn tell_last(&mut self, outcome: Outcome) {
        if let Some(result) = self.result.clone().filter(|_| self.in_doubt) {
            self.in_doubt = false;
            if outcome == Outcome::Fail {
                self.failed(result);
            }
        }
    }
}
