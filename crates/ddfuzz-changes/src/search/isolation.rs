//! Isolates the difference between a set of changes that passes and one that fails.

use ddfuzz_delta::{Config, Dd, Mode, Outcome, Search};

use super::facts::{Facts, config};
use super::{Minimal, Prober};

/// The result of isolating a difference: a set of changes that passes, and a larger one that fails.
/// The search knows no such pair of sets with a smaller difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// The smaller of the two sets of changes: the version with these changes passes.
    pub passing: Config,
    /// The larger of the two sets of changes: the version with these changes fails. It includes all
    /// changes of `passing`.
    pub failing: Config,
}

impl Isolation {
    /// Returns the changes that the failing set has and the passing set lacks: they cause the
    /// failure.
    pub fn difference(&self) -> Config {
        self.failing.minus(&self.passing)
    }
}

/// Isolates a minimal difference between a set of changes that passes and a larger one that fails.
/// The search begins with no changes, which pass, and with the changes of `minimal` (`None`: all
/// changes), which fail. It runs `dd` (*Why Programs Fail*, A.1.6) over groups of changes, from
/// large to small ones (the levels of `facts`), and then over single changes. Sets that do not
/// build are UNRESOLVED.
///
/// # Errors
/// Those of `prober`.
pub fn isolate<P: Prober>(
    facts: &Facts,
    minimal: Option<&Minimal>,
    prober: &mut P,
) -> Result<Isolation, P::Error> {
    let failing = minimal.map_or_else(
        || Config::all(facts.units()),
        |minimal| minimal.kept.clone(),
    );
    let mut found = Isolation {
        passing: Config::empty(),
        failing,
    };
    for level in 0..facts.levels() {
        let groups = facts.groups(level, &found.difference());
        if groups.len() > 1 {
            found = narrowed(found, &groups, prober)?;
        }
    }
    let units: Vec<Config> = (found.difference().ranges().flatten())
        .map(|unit| config(&[unit]))
        .collect();
    match units.len() {
        0 | 1 => Ok(found),
        _ => narrowed(found, &units, prober),
    }
}

/// Narrows the difference between the passing and the failing set of changes in `found` by `dd`,
/// which moves whole `groups` of the changes in the difference. Ends when no group can be moved
/// from one set to the other, or when the budget is used up. Returns the two narrowed sets.
fn narrowed<P: Prober>(
    found: Isolation,
    groups: &[Config],
    prober: &mut P,
) -> Result<Isolation, P::Error> {
    let mut machine = Dd::new(groups.len(), Mode::Isolate);
    let whole = |kept: &Config| {
        let chosen = kept.ranges().flatten().map(|group| &groups[group]);
        Config::union_of(chosen.chain([&found.passing]))
    };
    while let Some(asked) = machine.next().filter(|_| !prober.is_spent()) {
        let Some(kept) = asked.edit.apply(machine.best()) else {
            break;
        };
        let probed = prober.probe(&whole(&kept), "isolate", &[])?;
        machine.tell(probed.outcome.unwrap_or(Outcome::Unresolved));
    }
    Ok(Isolation {
        passing: whole(machine.pass()),
        failing: whole(machine.fail()),
    })
}
