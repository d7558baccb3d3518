//! Mutants in which a function sets a place in addition on some of its paths only: before one of
//! the last statements of its calls, such as the `return` of an error.

use std::collections::{BTreeMap, HashSet};

use super::added::{Base, Place, Settable, Uses, Value, When, mutant, passed, places};
use super::mutants::Mutant;
use super::{Engine, Point};
use crate::dwarf::Function;

/// Number of statements at the end of a call before which places are set: the last one may be the
/// closing bracket of the function, which all paths execute.
const LAST: usize = 2;
/// Largest number of statements at the ends of a function's calls before which mutants set places.
const ENDS: usize = 6;
/// Largest number of places that mutants of one function set.
const PLACES: usize = 12;
/// Largest number of constants to which mutants set one place.
const CONSTANTS: usize = 3;
/// Largest number of mutants of all functions.
const MUTANTS: usize = 1_200;

/// A call that has not returned yet: the hash of the return addresses on its stack, and its last
/// statements, the latest first.
struct OpenCall {
    stack: u64,
    last: Vec<u64>,
}

/// Returns the last statements, at most [`LAST`], of each call that returns in a run with these
/// points, by their addresses, each once, in ascending order.
fn ends_of_calls(points: &[Point]) -> Vec<u64> {
    let mut open: Vec<OpenCall> = Vec::new();
    let mut ends = HashSet::new();
    for point in points {
        let known = open.iter().rposition(|it| it.stack == point.stack);
        let returned = known.map_or(open.len(), |at| at + 1);
        for call in open.drain(returned..) {
            ends.extend(call.last);
        }
        if known.is_none() {
            let (stack, last) = (point.stack, Vec::new());
            open.push(OpenCall { stack, last });
        }
        if let Some(call) = open.last_mut()
            && call.last.first() != Some(&point.pc)
        {
            call.last.insert(0, point.pc);
            call.last.truncate(LAST);
        }
    }
    let mut ends: Vec<u64> = ends.into_iter().collect();
    ends.sort_unstable();
    ends
}

/// Returns the values to which mutants set `place`, where the field or variable `field` is: one more
/// and one less if `counted` contains the place; and constants to which the code with the uses `own`
/// sets it.
fn values(field: &Settable, place: Place, counted: &HashSet<Place>, own: &Uses) -> Vec<Value> {
    let mut values = Vec::new();
    if field.is_number && counted.contains(&place) {
        values.extend([Value::Changed(-1), Value::Changed(1)]);
    }
    let constants = own.constants.get(&place).into_iter().flatten();
    values.extend(constants.take(CONSTANTS).map(|it| Value::Constant(*it)));
    values
}

impl Engine {
    /// Returns mutants of the functions `executed` by the failing run, given with the places that
    /// their code uses. Each sets a place in addition before one of the last statements of the
    /// function's calls in the run with the points `points`: a global variable that any of the
    /// functions counts (makes larger or smaller by one), or what is passed to the function by a
    /// pointer and counted by it, becomes one larger or smaller; a place that the function sets to
    /// a constant elsewhere is set to that constant.
    pub(super) fn additions_on_paths(
        &self,
        executed: &[(&Function, Uses)],
        points: &[Point],
    ) -> Vec<Mutant> {
        let mut ends: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for statement in ends_of_calls(points) {
            let function = self.info.function(statement.wrapping_sub(self.bias));
            if let Some(start) = function.and_then(|it| it.ranges.first()) {
                ends.entry(start.start).or_default().push(statement);
            }
        }
        let counted: HashSet<Place> = executed
            .iter()
            .flat_map(|it| &it.1.counted)
            .copied()
            .collect();
        let mut found = Vec::new();
        for (function, own) in executed {
            let Some(start) = function.ranges.first().map(|it| it.start) else {
                continue;
            };
            let statements = ends.get(&start).into_iter().flatten().take(ENDS);
            let set = self.set_on_paths(function, own, &counted);
            let entry = start.wrapping_add(self.bias);
            for statement in statements {
                let when = When::Before(*statement);
                let all = set.iter();
                found.extend(
                    all.map(|(base, field, value)| mutant(entry, (*base, field), (when, *value))),
                );
            }
        }
        found.truncate(MUTANTS);
        found
    }

    /// Returns the places that mutants of `function` set on some of its paths, and to which values,
    /// as [`additions_on_paths`](Self::additions_on_paths) describes. `counted` are the places that
    /// any executed function counts, `own` the uses of `function`.
    fn set_on_paths(
        &self,
        function: &Function,
        own: &Uses,
        counted: &HashSet<Place>,
    ) -> Vec<(Base, Settable, Value)> {
        let types = &self.info.types;
        let mut set = Vec::new();
        for (base, of, parameter) in passed(&self.info, function) {
            let name = &parameter.name;
            for field in places(types, of, &format!("*{name}"), &format!("{name}->")) {
                let place = Place::Behind(field.offset as i64, field.size);
                let values = values(&field, place, &own.counted, own);
                set.push((base, field, values));
            }
        }
        for (address, field) in self.settable_globals() {
            let place = Place::At(address + field.offset, field.size);
            let values = values(&field, place, counted, own);
            set.push((Base::Fixed(address), field, values));
        }
        set.retain(|it| !it.2.is_empty());
        set.truncate(PLACES);
        let each = set.into_iter().flat_map(|(base, field, values)| {
            let all = values.into_iter();
            all.map(move |value| (base, field.clone(), value))
                .collect::<Vec<_>>()
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_statements_of_calls_that_return_are_found() {
        let at = |pc: u64, stack: u64| Point { pc, nth: 1, stack };
        let run = [
            at(0x10, 1),
            at(0x50, 2), // a call
            at(0x51, 2),
            at(0x52, 2),
            at(0x90, 3), // a call in it, which returns
            at(0x91, 3),
            at(0x53, 2),
            at(0x11, 1), // both have returned
            at(0x50, 4), // does not return
            at(0x51, 4),
        ];
        assert_eq!(ends_of_calls(&run), [0x52, 0x53, 0x90, 0x91]);
        assert!(ends_of_calls(&run[..6]).is_empty());
    }
}
