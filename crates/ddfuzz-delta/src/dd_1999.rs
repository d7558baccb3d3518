//! Delta debugging as first published.

use super::findings::Findings;
use super::{Candidate, Config, Outcome, Rule, Search};

/// One call of `dd2(c, r)`.
#[derive(Clone, Debug)]
struct Call {
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
    call: Option<Call>,
    /// Number of the half being tested, from 0.
    half: usize,
    /// Calls that wait, the next one last.
    waiting: Vec<Call>,
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
        self.call = Some(Call { units, rest });
        while let Some(found) = self.call.take_if(|call| call.units.len() <= 1) {
            self.findings.add(found.units);
            self.call = self.waiting.pop();
        }
        if self.call.is_none() {
            self.findings.conclude();
        }
    }
}

impl Call {
    fn half(&self, index: usize) -> Config {
        self.units.part(2, index)
    }

    fn config(&self, half: usize) -> Config {
        self.half(half).union(&self.rest)
    }

    /// The call for one half, the other half applied.
    fn beside(&self, half: usize) -> Call {
        Call {
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
