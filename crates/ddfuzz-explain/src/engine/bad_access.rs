//! What the program's variables say of the bad access that AddressSanitizer reports: the name of the
//! memory, the index by which it was reached, and the allocation of the heap block.

use super::History;
use super::instructions::{ARGUMENTS, Value};
use super::overflow::Allocated;
use super::recorded::Recorded;
use super::sources::Source;
use super::{Ending, Engine, EngineError, Side, Trace, if_supported};
use crate::accessed::{Accessed, accessed, integer_at};
use crate::graph::{Graph, Place};

/// Largest number of values from which the address of the access was computed that are looked at in
/// the search for its index.
const VALUES: usize = 24;
/// Largest number of calls that are told for the access.
const CALLERS: usize = 4;

/// The bad access of a failing run, as the program's variables tell it.
#[derive(Default)]
pub(crate) struct BadAccess {
    /// The name of the memory; `None` where no variable leads there.
    pub accessed: Option<Accessed>,
    /// Name of the variable with the number of the element; `None` where none is known.
    pub index: Option<String>,
    /// The allocation of the heap block that the access belongs to; `None` where it is none.
    pub allocated: Option<Allocated>,
}

impl Engine {
    /// Returns the addresses in the program's own code of the statement by which a run has failed,
    /// and of the calls that led there, innermost first.
    pub(crate) fn failing_calls(&self, failing: &Ending) -> Vec<u64> {
        let own = failing.stack.iter().copied().filter(|pc| self.is_user(*pc));
        own.take(CALLERS).collect()
    }

    /// Returns what the program's variables say of the bad access that AddressSanitizer reports in
    /// the failing run `failing`; nothing where it reports none. `history` says where the values of
    /// the failure came from.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn bad_access(
        &mut self,
        failing: &Trace,
        history: Option<&History>,
    ) -> Result<BadAccess, EngineError> {
        let Some(reported) = self.reported.clone() else {
            return Ok(BadAccess::default());
        };
        let Some(object) = reported.object else {
            return Ok(BadAccess::default());
        };
        let allocated = match object.region == "heap" {
            true => if_supported(self.allocation(&object.range))?,
            false => None,
        };
        let mut found = BadAccess {
            allocated,
            ..BadAccess::default()
        };
        let Some(graph) = if_supported(self.last_graph(failing).map(Some))?.flatten() else {
            return Ok(found);
        };
        let recorded = history.and_then(|it| it.moments.first());
        let used = recorded.map_or_else(Vec::new, |it| self.address_values(&it.0));
        let types = &self.info.types;
        found.accessed = accessed(&graph, types, (&object.range, reported.address), &used);
        let element = found.accessed.as_ref().and_then(|it| it.element);
        found.index = element.and_then(|element| {
            let mut used = used.iter();
            used.find_map(|place| integer_at(&graph, types, *place, element))
        });
        Ok(found)
    }

    /// Returns the memory graph at the last point of a failing run; `None` where it has no point.
    fn last_graph(&mut self, failing: &Trace) -> Result<Option<Graph>, EngineError> {
        let Some(last) = failing.points.last().filter(|_| !self.is_raw) else {
            return Ok(None);
        };
        let mut run = self.start(Side::Failing)?;
        self.run_to(&mut run, *last)?;
        Ok(Some(self.capture(&mut run)?.graph))
    }

    /// Returns the places (registers and memory) with the values from which the address was computed
    /// that the last recorded instruction passes on as a bad one, the latest ones first.
    fn address_values(&self, recorded: &Recorded) -> Vec<Place> {
        let mut found = Vec::new();
        let Some(last) = recorded.executed.len().checked_sub(1) else {
            return found;
        };
        let mut rest = vec![(last, Value::Register(ARGUMENTS[0]))];
        while let Some((at, value)) = rest.pop().filter(|_| found.len() < VALUES) {
            if let Value::Register(number) = value {
                found.push(Place::Register(number as u16));
            }
            match recorded.source(at, value) {
                Some(Source::Read { address, .. }) => found.push(Place::Memory(address)),
                Some(Source::Computed(by)) if !recorded.executed[by].is_library_call() => {
                    let terms = recorded.executed[by].terms().into_iter();
                    rest.extend(terms.map(|value| (by, value)));
                }
                _ => {}
            }
        }
        found
    }
}
