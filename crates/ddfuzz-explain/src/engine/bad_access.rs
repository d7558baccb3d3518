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
        let graph = if_supported(self.last_graph(failing).map(Some))?.flatten();
        let named = graph
            .as_ref()
            .and_then(|graph| accessed(graph, &self.info.types, &object.range, reported.address));
        let element = named.as_ref().and_then(|it| it.element);
        let index = match (element, graph, history.and_then(|it| it.moments.first())) {
            (Some(element), Some(graph), Some((recorded, _))) => {
                self.index_in(recorded, &graph, element)
            }
            _ => None,
        };
        Ok(BadAccess {
            accessed: named,
            index,
            allocated,
        })
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

    /// Returns the name of a variable, in the state `graph`, from which the address was computed
    /// that the last recorded instruction passes on as a bad one, and which has the number
    /// `element`; `None` where there is none.
    fn index_in(&self, recorded: &Recorded, graph: &Graph, element: i64) -> Option<String> {
        let last = recorded.executed.len().checked_sub(1)?;
        let (mut rest, mut looked) = (vec![(last, Value::Register(ARGUMENTS[0]))], 0);
        while let Some((at, value)) = rest.pop().filter(|_| looked < VALUES) {
            looked += 1;
            let name = |place| integer_at(graph, &self.info.types, place, element);
            let in_register = match value {
                Value::Register(number) => name(Place::Register(number as u16)),
                _ => None,
            };
            if let Some(found) = in_register {
                return Some(found);
            }
            match recorded.source(at, value) {
                Some(Source::Read { address, .. }) => {
                    if let Some(found) = name(Place::Memory(address)) {
                        return Some(found);
                    }
                }
                Some(Source::Computed(by)) if !recorded.executed[by].is_library_call() => {
                    let terms = recorded.executed[by].terms().into_iter();
                    rest.extend(terms.map(|value| (by, value)));
                }
                _ => {}
            }
        }
        None
    }
}
