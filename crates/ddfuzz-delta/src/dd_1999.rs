//! `dd` and `dd+` as first published in 1999 (ESEC): divide, search both halves, unite.

use crate::{Candidate, Config, Outcome, Rule, Search};

/// One call of `dd2(c, r)`.
#[derive(Clone, Debug)]
struct Dd2Call {
    /// What is searched.
    units: Config,
    /// What stays applied.
    rest: Config,
}

/// `dd` of ESEC, algorithm 1, for monotone, unambiguous and consistent configurations.
///
/// `dd2(c, r)` tests the two halves of `c`, each together with `r`, and goes on in the first that
/// fails. Where neither does, both are needed (interference): each half is searched while the
/// other stays applied, and what they find is united.
///
/// The paper leaves the united result untested; here it is tested last ([`Rule::Result`]), unless
/// its outcome is known, so that [`best`](Search::best), the smallest failing configuration
/// seen, is the result wherever the result fails. Under the three conditions it does and is
/// minimal (ESEC, section 3); without them nothing is guaranteed but that the best fails.
/// UNRESOLVED is taken like PASS.
#[derive(Clone, Debug)]
pub struct Dd1999 {
    call: Option<Dd2Call>,
    /// Number of the half being tested, from 0.
    half: usize,
    /// Calls that wait, the next one last.
    waiting: Vec<Dd2Call>,
    findings: Findings,
}

impl Dd1999 {
    /// The name of this search on the command line and in logs.
    pub const NAME: &'static str = "dd-1999";

    /// Begins with `c✗` of this many units, whose test must have been FAIL.
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

    /// What the algorithm returns, whether it fails or not; `None` before it has ended.
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

    /// The call for one half, the other half applied.
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

/// One call of `dd3(c, r, n)`, and the outcomes of its tests so far.
#[derive(Clone, Debug)]
struct Dd3Call {
    /// `c`: what is searched.
    units: Config,
    /// `r`: what stays applied.
    rest: Config,
    /// `n`: number of parts.
    parts: usize,
    /// `ti`, the outcomes of `ci ∪ r`.
    subsets: Vec<Outcome>,
    /// `t̄i`, the outcomes of `c̄i ∪ r`.
    complements: Vec<Outcome>,
}

/// `dd+` of ESEC, algorithm 2: as `dd`, with UNRESOLVED told apart from PASS.
///
/// `dd3(c, r, n)` tests the `n` parts `ci` of `c`, each together with `r`, ending at the first
/// FAIL, then the complements `c̄i = c \ (ci ∪ r)` likewise, ending at the first interference. In
/// this order:
/// - *found*: `|c| ≤ 1`, `c` is the result
/// - *found in* `ci`: it fails, `dd3(ci, r, 2)`
/// - *interference*: `ci` and `c̄i` pass; each is searched with the other applied, and what they
///   find is united
/// - *preference*: `ci` is unresolved and `c̄i` passes, for the lowest `i`: `dd3(ci, c̄i ∪ r, 2)`
/// - *try again*, `n < |c|`: complements that failed bound the search, parts that passed stay
///   applied, `n` doubles
/// - else what is left of `c` is the result.
///
/// The result is tested last ([`Rule::Result`]), unless its outcome is known: where changes are
/// ambiguous or unsafe, or where the result only fails together with what was applied, it need not
/// fail. [`best`](Search::best) is the smallest failing configuration seen.
///
/// At `n = 2` each complement is the other part, and is asked for again: callers answer it from
/// their cache.
#[derive(Clone, Debug)]
pub struct DdPlus {
    call: Option<Dd3Call>,
    /// Calls that wait, the next one last.
    waiting: Vec<Dd3Call>,
    findings: Findings,
}

impl DdPlus {
    /// The name of this search on the command line and in logs.
    pub const NAME: &'static str = "dd-plus";

    /// Begins with `c✗` of this many units, whose test must have been FAIL.
    pub fn new(units: usize) -> DdPlus {
        let mut machine = DdPlus {
            call: None,
            waiting: Vec::new(),
            findings: Findings::new(units),
        };
        machine.begin(Dd3Call::new(Config::all(units), Config::empty(), 2));
        machine
    }

    /// What the algorithm returns, whether it fails or not; `None` before it has ended.
    pub fn result(&self) -> Option<&Config> {
        self.findings.result()
    }

    /// Begins a call, or ends it at once where there is nothing to divide.
    fn begin(&mut self, call: Dd3Call) {
        match call.units.len() {
            0 | 1 => self.end(call.units),
            _ => self.call = Some(call),
        }
    }

    /// A call returned these units: the next one that waits begins.
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

    /// Goes on with a call whose test of number `index` among the complements was the last.
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

    /// `ci`.
    fn part(&self, index: usize) -> Config {
        self.units.part(self.parts, index)
    }

    /// `c̄i`.
    fn complement(&self, index: usize) -> Config {
        self.units.minus(&self.part(index)).minus(&self.rest)
    }

    /// What is tested now, by which rule.
    fn config(&self) -> (Rule, Config) {
        let (rule, units) = match self.subsets.len() {
            index if index < self.parts => (Rule::Subset, self.part(index)),
            _ => (Rule::Complement, self.complement(self.complements.len())),
        };
        (rule, units.union(&self.rest))
    }

    /// `dd3(ci, c̄i ∪ r, 2)`.
    fn beside_part(&self, index: usize) -> Dd3Call {
        let rest = self.complement(index).union(&self.rest);
        Dd3Call::new(self.part(index), rest, 2)
    }

    /// `dd3(c̄i, ci ∪ r, 2)`.
    fn beside_complement(&self, index: usize) -> Dd3Call {
        let rest = self.part(index).union(&self.rest);
        Dd3Call::new(self.complement(index), rest, 2)
    }

    /// `c'`: what is left of `c` in all complements that failed.
    fn bounded(&self) -> Config {
        let failed = |(index, outcome): (usize, &Outcome)| {
            (*outcome == Outcome::Fail).then(|| self.complement(index))
        };
        let bounds = self.complements.iter().enumerate().filter_map(failed);
        bounds.fold(self.units.clone(), |left, bound| left.intersection(&bound))
    }

    /// `dd3(c', r', n')`.
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

/// The units found in each branch of an interference, the smallest failing configuration seen, and
/// the result, which is the union of what was found.
///
/// The union need not fail where changes are ambiguous or unsafe, and is tested last.
#[derive(Clone, Debug)]
pub(super) struct Findings {
    best: Config,
    found: Vec<Config>,
    result: Option<Config>,
    in_doubt: bool,
}

impl Findings {
    /// Nothing found yet; `c✗` of this many units fails.
    pub fn new(units: usize) -> Findings {
        Findings {
            best: Config::all(units),
            found: Vec::new(),
            result: None,
            in_doubt: false,
        }
    }

    /// A test of the search failed.
    pub fn failed(&mut self, config: Config) {
        if config.len() < self.best.len() {
            self.best = config;
        }
    }

    /// One branch found these units.
    pub fn add(&mut self, units: Config) {
        self.found.push(units);
    }

    /// No branch is left.
    pub fn conclude(&mut self) {
        let result = Config::union_of(&self.found);
        // The axiom and the search have tested these two.
        self.in_doubt = !result.is_empty() && result != self.best;
        self.result = Some(result);
    }

    /// The smallest failing configuration seen.
    pub fn best(&self) -> &Config {
        &self.best
    }

    /// The union of what was found; `None` before the search has ended.
    pub fn result(&self) -> Option<&Config> {
        self.result.as_ref()
    }

    /// The test of the result, unless its outcome is known.
    pub fn last_test(&self) -> Option<Candidate> {
        let result = self.result.as_ref().filter(|_| self.in_doubt)?;
        Some(Candidate::keep(Rule::Result, result.clone()))
    }

    /// The outcome of the last test.
    pub fn tell_last(&mut self, outcome: Outcome) {
        if let Some(result) = self.result.clone().filter(|_| self.in_doubt) {
            self.in_doubt = false;
            if outcome == Outcome::Fail {
                self.failed(result);
            }
        }
    }
}
