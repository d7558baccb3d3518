//! Restricts mutants that make a function set a place in addition: they set the place only in the
//! calls from one place of the program.

use std::collections::HashSet;

use ddfuzz_triage::memory::Memory;

use super::added::{Added, When};
use super::evidence::Averting;
use super::mutants::{Mutant, Patch};
use super::mutated::MutantEnd;
use super::run::Pace;
use super::tests_at_point::Stand;
use super::{Engine, EngineError};

/// Largest number of calls of a function that are looked at for the places that call it.
const CALLS: usize = 400;
/// Largest number of callers (places that call a function) for each of which a mutant is made.
const CALLERS: usize = 8;

impl Engine {
    /// Restricts each of the mutants `found` that make a function set a place at its beginning:
    /// replaces it by the mutants that set the place in the calls from one place only and also
    /// avert the failure, if there are any. They are run in forks of the failing run, which is
    /// stopped in `stand`; `averts` tells from a fork's end whether it did not fail.
    pub(super) fn narrow(
        &mut self,
        stand: &mut Stand,
        found: &mut Vec<Averting>,
        averts: impl Fn(&MutantEnd) -> bool,
    ) -> Result<(), EngineError> {
        let mut narrowed = Vec::new();
        for it in std::mem::take(found) {
            let added = it
                .mutant
                .patch
                .added()
                .filter(|it| it.when == When::Begins)
                .cloned();
            let own = match added.filter(|_| !self.facts_until.is_over()) {
                Some(added) => self.narrowed(stand, &it.mutant, &added, &averts)?,
                None => Vec::new(),
            };
            match own.is_empty() {
                true => narrowed.push(it),
                false => {
                    narrowed.extend(own.into_iter().map(|(mutant, end)| it.with(mutant, &end)))
                }
            }
        }
        *found = narrowed;
        Ok(())
    }

    /// Returns the mutants that do what `mutant` does, but only in the calls from one place, and
    /// that avert the failure, with the ends of their runs.
    fn narrowed(
        &mut self,
        stand: &mut Stand,
        mutant: &Mutant,
        added: &Added,
        averts: impl Fn(&MutantEnd) -> bool,
    ) -> Result<Vec<(Mutant, MutantEnd)>, EngineError> {
        let mut found = Vec::new();
        for caller in self.callers(stand, added.entry)? {
            let caller = Some(caller);
            let added = Added {
                caller,
                ..added.clone()
            };
            let patch = Patch::Addition(Box::new(added));
            let end = self.run_mutant(stand, Some(&patch), Pace::Free)?;
            if let Some(end) = end.filter(|end| averts(end)) {
                let mutant = Mutant {
                    patch,
                    ..mutant.clone()
                };
                found.push((mutant, end));
            }
        }
        Ok(found)
    }

    /// Returns the return addresses, in the program's own code, of the calls of the function that
    /// begins at `entry`. A fork of the stopped run goes on to its end and shows the calls.
    fn callers(&mut self, stand: &mut Stand, entry: u64) -> Result<Vec<u64>, EngineError> {
        let (mut known, mut found, mut calls) = (HashSet::new(), Vec::new(), 0);
        self.stopped_at(stand, &HashSet::from([entry]), |process, registers| {
            calls += 1;
            if let Some(back) = process.word(registers.rsp)
                && known.insert(back)
            {
                found.push(back);
            }
            match calls >= CALLS {
                true => process.remove_breakpoint(entry)?,
                false => drop(process.step_over(entry)?),
            }
            Ok(())
        })?;
        found.retain(|back| self.is_user(back - 1));
        found.truncate(CALLERS);
        Ok(found)
    }
}
