//! Critical slices (AADEBUG 2000, the tool STRIPE): minimal sets of statement executions that
//! reproduce a failure alone. Pure: the dynamic call tree, and the search over it.

use ddfuzz_delta::{Config, Ddmin, Outcome, Search, Tester};

/// One execution of a statement in a traced run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Address of the statement's first instruction.
    pub pc: u64,
    /// Index in [`CallTree::frames`] of the frame that executes the statement.
    pub frame: usize,
    /// Whether the event (statement execution) must stay in every slice: it is the last event of
    /// its frame, or a `return`.
    pub stays: bool,
}

/// A call of a function in the traced run, with the events (statement executions) of its frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Index of the caller's event that makes the call; `None` for the outermost frame.
    pub called_by: Option<usize>,
    /// Indices of the frame's events in [`CallTree::events`], without those of the functions that
    /// it calls, in the order of their execution.
    pub events: Vec<usize>,
    /// Number of frames around this one, which are its callers; 0 for the outermost.
    pub depth: usize,
}

/// The executions of statements (events) in a run of the program, and the frames that made them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTree {
    /// All executions of statements in the run, in the order of time.
    pub events: Vec<Event>,
    /// All frames, a caller before the frames that it calls.
    pub frames: Vec<Frame>,
}

/// A stop of a run at a statement or at the entry of a function; a [`CallTree`] is built from the
/// stops of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Address of the code at which the run stopped.
    pub pc: u64,
    /// Canonical frame address of the innermost frame.
    pub cfa: u64,
    /// Whether the run stopped at the entry of a function, and not at a statement.
    pub is_entry: bool,
}

impl CallTree {
    /// Builds the call tree of a run from its stops. The last event (statement execution) of each
    /// frame must stay in every slice, and so must all events for whose address `stays` returns
    /// true: `return` statements.
    pub fn new(stops: &[Stopped], stays: impl Fn(u64) -> bool) -> CallTree {
        let mut tree = CallTree::default();
        // Open frames with their addresses, outermost first.
        let mut open: Vec<(u64, usize)> = Vec::new();
        for stop in stops {
            while open.last().is_some_and(|(cfa, _)| *cfa < stop.cfa) {
                open.pop();
            }
            if stop.is_entry && open.last().is_some_and(|(cfa, _)| *cfa == stop.cfa) {
                open.pop();
            }
            let frame = match open.last() {
                Some((cfa, frame)) if *cfa == stop.cfa => *frame,
                around => {
                    let called_by =
                        around.and_then(|(_, frame)| tree.frames[*frame].events.last().copied());
                    tree.frames.push(Frame {
                        called_by,
                        events: Vec::new(),
                        depth: open.len(),
                    });
                    open.push((stop.cfa, tree.frames.len() - 1));
                    tree.frames.len() - 1
                }
            };
            if !stop.is_entry {
                tree.frames[frame].events.push(tree.events.len());
                tree.events.push(Event {
                    pc: stop.pc,
                    frame,
                    stays: stays(stop.pc),
                });
            }
        }
        for frame in &tree.frames {
            if let Some(last) = frame.events.last() {
                tree.events[*last].stays = true;
            }
        }
        tree
    }

    /// Returns the number of events (statement executions of the run) that a slice may leave out;
    /// all others stay in every slice.
    pub fn removable(&self) -> usize {
        self.events.iter().filter(|event| !event.stays).count()
    }

    /// Returns the indices of the frames of the functions that the event (statement execution)
    /// `event` calls, in order.
    pub fn calls(&self, event: usize) -> impl Iterator<Item = usize> + '_ {
        let frames = self.frames.iter().enumerate();
        frames
            .filter(move |(_, frame)| frame.called_by == Some(event))
            .map(|(index, _)| index)
    }

    /// Returns true if `kept` is true for all events (statement executions) of a frame and of the
    /// frames that it calls.
    pub fn is_whole(&self, frame: usize, kept: &[bool]) -> bool {
        let events = &self.frames[frame].events;
        events.iter().all(|event| {
            (kept[*event] || self.events[*event].stays)
                && self.calls(*event).all(|below| self.is_whole(below, kept))
        })
    }
}

/// Result of the search for a critical slice: the statement executions that it keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// For each event of the run, in the order of time, whether it belongs to the slice.
    pub kept: Vec<bool>,
    /// Number of tests that the search for the slice has run.
    pub tests: u64,
}

/// Finds a critical slice by ddmin over the events (statement executions) of each frame, the
/// outermost first: removing a call removes the events of the called frames. `test` returns true if
/// the kept events reproduce the failure or output. `None` if not even all events do.
///
/// # Errors
/// Those of `test`.
pub fn find_slice<E>(
    tree: &CallTree,
    mut test: impl FnMut(&[bool]) -> Result<bool, E>,
) -> Result<Option<Slice>, E> {
    let mut kept = vec![true; tree.events.len()];
    let mut tests = 1;
    if !test(&kept)? {
        return Ok(None);
    }
    let mut order: Vec<usize> = (0..tree.frames.len()).collect();
    order.sort_by_key(|frame| tree.frames[*frame].depth);
    for frame in order {
        let is_there = |event: &usize| kept[*event];
        if tree.frames[frame].called_by.is_some_and(|by| !kept[by]) {
            remove(tree, frame, &mut kept);
            continue;
        }
        let events = tree.frames[frame].events.iter().copied();
        let units: Vec<usize> = events
            .filter(|event| !tree.events[*event].stays && is_there(event))
            .collect();
        if units.is_empty() {
            continue;
        }
        let with = |config: &Config| {
            let mut candidate = kept.clone();
            for (unit, event) in units.iter().enumerate() {
                candidate[*event] = config.contains(unit);
            }
            close(tree, &mut candidate);
            candidate
        };
        let mut failed = None;
        let mut outcome_of = |config: &Config| match test(&with(config)) {
            Ok(true) => Outcome::Fail,
            Ok(false) => Outcome::Pass,
            Err(error) => {
                failed.get_or_insert(error);
                Outcome::Unresolved
            }
        };
        let mut best = Config::empty();
        tests += 1;
        if outcome_of(&best) != Outcome::Fail {
            let mut tester = Tester::new(&mut outcome_of);
            let mut search = Ddmin::new(units.len());
            tester.run(&mut search);
            tests += tester.tally().executed;
            drop(tester);
            best = search.best().clone();
        }
        if let Some(error) = failed {
            return Err(error);
        }
        kept = with(&best);
    }
    Ok(Some(Slice { kept, tests }))
}

/// Sets `kept` to false for the events (statement executions) of all frames whose calling event is
/// not kept.
fn close(tree: &CallTree, kept: &mut [bool]) {
    for frame in 0..tree.frames.len() {
        if tree.frames[frame].called_by.is_some_and(|by| !kept[by]) {
            remove(tree, frame, kept);
        }
    }
}

fn remove(tree: &CallTree, frame: usize, kept: &mut [bool]) {
    for event in &tree.frames[frame].events {
        kept[*event] = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(pc: u64, cfa: u64) -> Stopped {
        Stopped {
            pc,
            cfa,
            is_entry: false,
        }
    }

    #[test]
    fn calls_make_a_tree() {
        let entry = |pc, cfa| Stopped {
            pc,
            cfa,
            is_entry: true,
        };
        // main: 1, 2 (calls f twice: 10, 11), 3
        let stops = [
            entry(0, 100),
            stop(1, 100),
            stop(2, 100),
            entry(9, 80),
            stop(10, 80),
            stop(11, 80),
            entry(9, 80),
            stop(10, 80),
            stop(11, 80),
            stop(3, 100),
        ];
        let tree = CallTree::new(&stops, |_| false);
        assert_eq!(tree.frames.len(), 3);
        assert_eq!(tree.frames[0].events, [0, 1, 6]);
        assert_eq!(tree.calls(1).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(tree.frames[2].events, [4, 5]);
        assert_eq!(tree.removable(), 4);
    }

    /// Tests the search for a critical slice on the published program: `a`, `b`, `sum` and `mul`
    /// are set, then a loop runs, then `sum` and `mul` are printed. An assignment of zero may be
    /// left out, as memory is zero at the start.
    #[test]
    fn a_loop_without_its_conditions_remains() {
        // a = 0; b = 5; sum = 0; mul = 1; 6 × (while; sum += a; mul *= a; a = a + 1); while; print × 2
        let mut stops = vec![stop(0, 9), stop(1, 9), stop(2, 9), stop(3, 9)];
        for _ in 0..6 {
            stops.extend([stop(10, 9), stop(11, 9), stop(12, 9), stop(13, 9)]);
        }
        stops.extend([stop(10, 9), stop(20, 9), stop(21, 9), stop(99, 9)]);
        let tree = CallTree::new(&stops, |_| false);
        assert_eq!(tree.removable(), 31);
        let run = |kept: &[bool]| {
            let (mut a, mut sum, mut mul) = (0i64, 0i64, 0i64);
            let mut output = Vec::new();
            for (event, kept) in tree.events.iter().zip(kept) {
                match (kept, event.pc) {
                    (true, 0) => a = 0,
                    (true, 2) => sum = 0,
                    (true, 3) => mul = 1,
                    (true, 11) => sum += a,
                    (true, 12) => mul *= a,
                    (true, 13) => a += 1,
                    (true, 20) => output.push(("sum", sum)),
                    (true, 21) => output.push(("mul", mul)),
                    _ => {}
                }
            }
            output
        };
        let all = run(&vec![true; tree.events.len()]);
        assert_eq!(all, [("sum", 15), ("mul", 0)]);
        type Output<'a> = [(&'a str, i64)];
        let slice = |wanted: &dyn Fn(&Output<'_>) -> bool| {
            let found = find_slice(&tree, |kept| Ok::<bool, ()>(wanted(&run(kept))));
            let found = found.unwrap().unwrap();
            let removable = tree
                .events
                .iter()
                .zip(&found.kept)
                .filter(|(event, _)| !event.stays);
            (removable.filter(|(_, kept)| **kept).count(), found.tests)
        };
        let whole = slice(&|output| output == all);
        let sum = slice(&|output| output.contains(&("sum", 15)));
        let mul = slice(&|output| output.contains(&("mul", 0)));
        assert_eq!((whole.0, sum.0, mul.0), (12, 11, 1));
        assert!(
            whole.1 <= 163 && sum.1 <= 173 && mul.1 <= 10,
            "{whole:?} {sum:?} {mul:?}"
        );
    }
}
