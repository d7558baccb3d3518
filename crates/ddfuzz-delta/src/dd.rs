//! `dd`: general delta debugging, which minimizes, maximizes or isolates.

use crate::{Candidate, Config, Outcome, Rule, Search};

/// What general delta debugging works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// `-`: makes the failing side smaller.
    Minimize,
    /// `+`: makes the passing side larger.
    Maximize,
    /// `+-`: both at once, until their difference is minimal.
    Isolate,
}

impl Mode {
    /// Whether the failing side shrinks.
    fn minimizes(self) -> bool {
        self != Mode::Maximize
    }

    /// Whether the passing side grows.
    fn maximizes(self) -> bool {
        self != Mode::Minimize
    }
}

/// One of the two tests that a part `Δi` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    /// `c_pass ∪ Δi`.
    Add,
    /// `c_fail \ Δi`.
    Remove,
}

/// General delta debugging (DB, `DeltaDebugger.dd`; *Why Programs Fail*, A.1.6 and A.1.7) between
/// a passing and a failing configuration `c_pass ⊂ c_fail`.
///
/// Each round splits `Δ = c_fail \ c_pass` into `n` parts and goes over them in a ring, beginning
/// at the part where the last round ended. The first of these that applies ends the round:
/// 1. minimizing, `n = 2`, `c_pass ∪ Δi` fails: it is the failing side (reduce to subset)
/// 2. maximizing, `n = 2`, `c_fail \ Δi` passes: it is the passing side (increase to subset)
/// 3. minimizing, `c_fail \ Δi` fails: it is the failing side, `max(n − 1, 2)` (reduce to
///    complement)
/// 4. maximizing, `c_pass ∪ Δi` passes: it is the passing side, `max(n − 1, 2)` (increase to
///    complement)
///
/// Where none applies, `n` doubles, up to `|Δ|`, or the search ends. [`best`](Search::best) is the
/// failing side.
///
/// Minimizing from `∅`, the failing side ends 1-minimal (A.11); maximizing, no unit can be added to
/// the passing side keeping PASS; isolating, the difference ends 1-minimal (A.15, A.17), after at
/// most `|Δ|² + 7|Δ|` tests (A.18), `2⌈log2 |Δ|⌉` where every outcome is resolved (A.19), and then
/// `|Δ| = 1` (A.20). UNRESOLVED is neither of the other outcomes.
///
/// A configuration may be asked for again in a later round: callers answer repeated inputs from
/// their cache, and the bounds count what is run.
#[derive(Clone, Debug)]
pub struct Dd {
    mode: Mode,
    pass: Config,
    fail: Config,
    /// `c_fail \ c_pass`.
    delta: Config,
    parts: usize,
    /// Number of the part at which a round begins.
    offset: usize,
    /// Parts that this round is done with.
    tried: usize,
    probe: Probe,
    /// Outcome of `c_pass ∪ Δi`, where it is known when `c_fail \ Δi` is tested.
    added: Option<Outcome>,
    done: bool,
}

impl Dd {
    /// The name of this search on the command line and in logs.
    pub const NAME: &'static str = "dd";

    /// Begins with `c✓ = ∅` and `c✗` of this many units, whose test must have been FAIL.
    pub fn new(units: usize, mode: Mode) -> Dd {
        Dd::between(Config::empty(), Config::all(units), mode)
    }

    /// Begins with any `c✓ ⊆ c✗`. Their outcomes must be known: what is minimized has to fail,
    /// what is maximized has to pass.
    pub fn between(pass: Config, fail: Config, mode: Mode) -> Dd {
        let mut machine = Dd {
            mode,
            delta: fail.minus(&pass),
            pass,
            fail,
            parts: 2,
            offset: 0,
            tried: 0,
            probe: Probe::Add,
            added: None,
            done: false,
        };
        machine.begin_round(2);
        machine
    }

    /// The passing side; at the end, of [`Mode::Maximize`] and [`Mode::Isolate`] the result.
    pub fn pass(&self) -> &Config {
        &self.pass
    }

    /// The failing side; at the end, of [`Mode::Minimize`] and [`Mode::Isolate`] the result.
    pub fn fail(&self) -> &Config {
        &self.fail
    }

    /// What the failing side keeps and the passing side does not.
    pub fn difference(&self) -> &Config {
        &self.delta
    }

    /// The granularity `n`.
    pub fn granularity(&self) -> usize {
        self.parts
    }

    fn begin_round(&mut self, parts: usize) {
        self.parts = parts;
        self.tried = 0;
        self.begin_part();
        self.done = self.delta.len() < parts;
    }

    fn begin_part(&mut self) {
        self.added = None;
        self.probe = match self.mode {
            Mode::Minimize | Mode::Isolate if self.parts == 2 => Probe::Add,
            Mode::Minimize | Mode::Isolate => Probe::Remove,
            Mode::Maximize if self.parts == 2 => Probe::Remove,
            Mode::Maximize => Probe::Add,
        };
    }

    /// Number of the part being tested.
    fn index(&self) -> usize {
        (self.tried + self.offset) % self.parts
    }

    /// The configuration being tested.
    fn config(&self) -> Config {
        let part = self.delta.part(self.parts, self.index());
        match self.probe {
            Probe::Add => self.pass.union(&part),
            Probe::Remove => self.fail.minus(&part),
        }
    }

    /// The rule that FAIL would apply where the failing side shrinks, else the one that PASS would.
    fn rule(&self) -> Rule {
        match self.probe {
            Probe::Add if self.mode.minimizes() && self.parts == 2 => Rule::Subset,
            Probe::Add => Rule::IncreaseToComplement,
            Probe::Remove if self.mode.minimizes() => Rule::Complement,
            Probe::Remove => Rule::IncreaseToSubset,
        }
    }

    /// Takes a smaller failing or a larger passing side.
    fn take(&mut self, pass: Option<Config>, fail: Option<Config>, parts: usize) {
        self.offset = self.index();
        self.pass = pass.unwrap_or_else(|| self.pass.clone());
        self.fail = fail.unwrap_or_else(|| self.fail.clone());
        self.delta = self.fail.minus(&self.pass);
        self.begin_round(parts);
    }

    /// `c_pass ∪ Δi` had this outcome.
    fn tell_added(&mut self, outcome: Outcome) {
        let two = self.parts == 2;
        if self.mode.minimizes() && two && outcome == Outcome::Fail {
            let subset = self.config();
            return self.take(None, Some(subset), 2);
        }
        // At two parts the other test comes first, where it is due.
        if self.mode.minimizes() && two {
            self.added = Some(outcome);
            self.probe = Probe::Remove;
            return;
        }
        self.end_part(Some(outcome));
    }

    /// `c_fail \ Δi` had this outcome.
    fn tell_removed(&mut self, outcome: Outcome) {
        let two = self.parts == 2;
        if self.mode.maximizes() && two && outcome == Outcome::Pass {
            let subset = self.config();
            return self.take(Some(subset), None, 2);
        }
        if self.mode.minimizes() && outcome == Outcome::Fail {
            let complement = self.config();
            return self.take(None, Some(complement), (self.parts - 1).max(2));
        }
        if self.mode.maximizes() && self.added.is_none() {
            self.probe = Probe::Add;
            return;
        }
        self.end_part(self.added);
    }

    /// Increases to complement where the outcome of `c_pass ∪ Δi` allows it, else goes on to the
    /// next part.
    fn end_part(&mut self, added: Option<Outcome>) {
        if self.mode.maximizes() && added == Some(Outcome::Pass) {
            self.probe = Probe::Add;
            let complement = self.config();
            return self.take(Some(complement), None, (self.parts - 1).max(2));
        }
        self.tried += 1;
        if self.tried < self.parts {
            self.begin_part();
        } else if self.parts < self.delta.len() {
            self.begin_round(self.delta.len().min(2 * self.parts));
        } else {
            self.done = true;
        }
    }
}

impl Search for Dd {
    fn next(&mut self) -> Option<Candidate> {
        (!self.done).then(|| Candidate::keep(self.rule(), self.config()))
    }

    fn tell(&mut self, outcome: Outcome) {
        match self.probe {
            _ if self.done => {}
            Probe::Add => self.tell_added(outcome),
            Probe::Remove => self.tell_removed(outcome),
        }
    }

    fn best(&self) -> &Config {
        &self.fail
    }

    fn boxed(&self) -> Box<dyn Search> {
        Box::new(self.clone())
    }
}

/// A passing and a failing side, and what makes them differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference<S> {
    /// The passing side. Where the test of nothing is UNRESOLVED, it may be nothing.
    pub pass: S,
    /// The failing side, which holds the passing one.
    pub fail: S,
    /// The units that only the failing side has.
    pub difference: S,
}
