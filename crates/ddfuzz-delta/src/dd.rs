//! `dd`: general delta debugging, which minimizes, maximizes or isolates.

use crate::{Candidate, Config, Outcome, Rule, Search};

/// The goal of general delta debugging: to make the failing configuration (set of kept units)
/// smaller, the passing one larger, or their difference minimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Minimize (`-`): make the failing configuration (set of kept units) smaller.
    Minimize,
    /// Maximize (`+`): make the passing configuration (set of kept units) larger.
    Maximize,
    /// Isolate (`+-`): change both configurations (sets of kept units) until their difference is
    /// minimal.
    Isolate,
}

impl Mode {
    /// Returns true if this mode makes the failing configuration (set of kept units) smaller.
    fn minimizes(self) -> bool {
        self != Mode::Maximize
    }

    /// Returns true if this mode makes the passing configuration (set of kept units) larger.
    fn maximizes(self) -> bool {
        self != Mode::Minimize
    }
}

/// One of the two tests of a part `Δi` of the difference between the failing and the passing
/// configuration (set of kept units): the part is added to the passing one, or removed from the
/// failing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    /// Tests `c_pass ∪ Δi`: the part `Δi` of the difference is added to the passing configuration.
    Add,
    /// Tests `c_fail \ Δi`: the part `Δi` of the difference is removed from the failing
    /// configuration.
    Remove,
}

/// General delta debugging between a passing and a failing configuration `c_pass ⊂ c_fail` (*The
/// Debugging Book*, `DeltaDebugger.dd`; *Why Programs Fail*, A.1.6 and A.1.7).
///
/// Each round splits `Δ = c_fail \ c_pass` into `n` parts and tests them in turn. It begins with
/// the part at which the previous round ended; part `n` is followed by part 1. The first rule that
/// applies ends the round:
/// 1. minimizing, `n = 2`, `c_pass ∪ Δi` fails: it becomes `c_fail` (reduce to subset)
/// 2. maximizing, `n = 2`, `c_fail \ Δi` passes: it becomes `c_pass` (increase to subset)
/// 3. minimizing, `c_fail \ Δi` fails: it becomes `c_fail`, and `n` becomes `max(n − 1, 2)` (reduce
///    to complement)
/// 4. maximizing, `c_pass ∪ Δi` passes: it becomes `c_pass`, and `n` becomes `max(n − 1, 2)`
///    (increase to complement)
///
/// If no rule applies, `n` doubles, up to `|Δ|`; at `n = |Δ|` the search ends.
/// [`best`](Search::best) is `c_fail`.
///
/// Guarantees: minimizing from `∅` ends with a 1-minimal `c_fail` (A.11). Maximizing ends when no
/// single unit can be added to `c_pass` without losing PASS. Isolating ends with a 1-minimal
/// difference (A.15, A.17) after at most `|Δ|² + 7|Δ|` tests (A.18); if every outcome is resolved,
/// it takes `2⌈log2 |Δ|⌉` tests (A.19) and ends with `|Δ| = 1` (A.20). UNRESOLVED counts neither as
/// PASS nor as FAIL.
///
/// A later round may ask for a configuration again. Callers answer such tests from a cache; the
/// bounds count only tests that are run.
#[derive(Clone, Debug)]
pub struct Dd {
    mode: Mode,
    pass: Config,
    fail: Config,
    /// The difference `c_fail \ c_pass` between the failing and the passing configuration.
    delta: Config,
    parts: usize,
    /// Index of the part of the difference with which the present round of tests began.
    offset: usize,
    /// Number of parts of the difference that have been tested in the present round.
    tried: usize,
    probe: Probe,
    /// Outcome of testing `c_pass ∪ Δi`, the passing configuration with a part added; `Some` if it
    /// was tested before `c_fail \ Δi` in the present round.
    added: Option<Outcome>,
    done: bool,
}

impl Dd {
    /// Name of general delta debugging on command lines and in logs.
    pub const NAME: &'static str = "dd";

    /// Creates a search that starts with `c_pass = ∅` and `c_fail` = all `units`. The caller must
    /// have tested both: all units gave FAIL and, unless `mode` is [`Mode::Minimize`], the empty
    /// configuration did not.
    pub fn new(units: usize, mode: Mode) -> Dd {
        Dd::between(Config::empty(), Config::all(units), mode)
    }

    /// Creates a search that starts with any `pass ⊆ fail`. The caller must have tested both: for
    /// minimizing, `fail` must have given FAIL; for maximizing, `pass` must have given PASS.
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

    /// Returns the passing configuration (set of kept units). At the end of the search it is the
    /// result of [`Mode::Maximize`], and one of the two results of [`Mode::Isolate`].
    pub fn pass(&self) -> &Config {
        &self.pass
    }

    /// Returns the failing configuration (set of kept units). At the end of the search it is the
    /// result of [`Mode::Minimize`], and one of the two results of [`Mode::Isolate`].
    pub fn fail(&self) -> &Config {
        &self.fail
    }

    /// Returns the units that the failing configuration (set of kept units) has and the passing one
    /// does not.
    pub fn difference(&self) -> &Config {
        &self.delta
    }

    /// Returns the granularity `n`: the number of parts into which the search now splits the
    /// difference.
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

    /// Returns the index of the part of the difference whose test is asked for now.
    fn index(&self) -> usize {
        (self.tried + self.offset) % self.parts
    }

    /// Returns the configuration (set of kept units) whose test is asked for now.
    fn config(&self) -> Config {
        let part = self.delta.part(self.parts, self.index());
        match self.probe {
            Probe::Add => self.pass.union(&part),
            Probe::Remove => self.fail.minus(&part),
        }
    }

    /// Returns the kind of step that the log names if the candidate of the present test becomes the
    /// new failing or passing configuration (set of kept units). For a part that is added to the
    /// passing one, it is "reduce to subset" if the mode minimizes and there are two parts, else
    /// "increase to complement". For a part that is removed from the failing one, it is "reduce to
    /// complement" if the mode minimizes, else "increase to subset".
    fn rule(&self) -> Rule {
        match self.probe {
            Probe::Add if self.mode.minimizes() && self.parts == 2 => Rule::Subset,
            Probe::Add => Rule::IncreaseToComplement,
            Probe::Remove if self.mode.minimizes() => Rule::Complement,
            Probe::Remove => Rule::IncreaseToSubset,
        }
    }

    /// Sets the passing configuration (set of kept units) to `pass` or the failing one to `fail`
    /// (`None` leaves it as it is), and begins a new round of tests, which splits their difference
    /// into `parts` parts.
    fn take(&mut self, pass: Option<Config>, fail: Option<Config>, parts: usize) {
        self.offset = self.index();
        self.pass = pass.unwrap_or_else(|| self.pass.clone());
        self.fail = fail.unwrap_or_else(|| self.fail.clone());
        self.delta = self.fail.minus(&self.pass);
        self.begin_round(parts);
    }

    /// Receives the outcome of testing `c_pass ∪ Δi`, the passing configuration with one part of
    /// the difference added, and takes the step that the first applicable rule of delta debugging
    /// prescribes.
    fn tell_added(&mut self, outcome: Outcome) {
        let two = self.parts == 2;
        if self.mode.minimizes() && two && outcome == Outcome::Fail {
            let subset = self.config();
            return self.take(None, Some(subset), 2);
        }
        // With two parts, `c_fail \ Δi` is tested before rule 4 may apply.
        if self.mode.minimizes() && two {
            self.added = Some(outcome);
            self.probe = Probe::Remove;
            return;
        }
        self.end_part(Some(outcome));
    }

    /// Receives the outcome of testing `c_fail \ Δi`, the failing configuration without one part of
    /// the difference, and takes the step that the first applicable rule of delta debugging
    /// prescribes.
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

    /// Continues the search after the tests of one part `Δi` of the difference, which have made the
    /// difference no smaller. `added` is the outcome of testing `c_pass ∪ Δi`; `None` if that was
    /// not tested. If it is PASS and this mode maximizes, `c_pass ∪ Δi` becomes the passing
    /// configuration. Otherwise, whatever `added` is, the next part is tested; after the last part,
    /// a new round begins with twice as many parts or, if each part has one unit, the search ends.
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

/// The result of general delta debugging: a passing configuration (set of kept units), a failing
/// one, and their difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference<S> {
    /// The passing side of the result, a subset of the failing one. It may be empty even if the
    /// test of the empty input is UNRESOLVED.
    pub pass: S,
    /// The failing side of the result; it contains all units of the passing side.
    pub fail: S,
    /// The units that the failing side has and the passing side does not.
    pub difference: S,
}
