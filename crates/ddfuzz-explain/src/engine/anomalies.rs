//! What is odd in a recorded failing run: the program changes the field by which a record is filed
//! in a table, uses memory that was freed, or has chosen a wrong address for a write. Pure.

use std::collections::{HashMap, HashSet, VecDeque};

use iced_x86::OpKind;

use super::backward::Reached;
use super::dependence::{Dependence, Dependences, is_copy};
use super::instructions::{ARGUMENTS, Executed, RESULT, general};
use super::library::LibraryCall;
use super::recorded::Recorded;
use crate::dwarf::frames::STACK_POINTER;

/// Largest number of instructions through which the computation of an address is followed back.
const FOLLOWED: usize = 400;
/// Maximum distance from the failure, as a cost of dependences, of the instructions at which the
/// search for a changed key begins. A key is a field of a record by which a pointer to the record
/// was stored, and which was changed later.
const CLOSE: u32 = 8;
/// Maximum size, in bytes, of a record for which it is checked whether a pointer to it was stored
/// at a place that was computed from one of its fields, and whether that field was changed later.
const RECORD: u64 = 512;
/// Smallest number that can be the address of a record; smaller numbers are taken for other values.
const LOWEST: u64 = 0x1_0000;
/// Smallest number of bytes by which the stack pointer rises when a function returns.
const RETURNED: u64 = 16;
/// Distance in bytes from the stack pointer within which memory is taken for part of the stack.
const STACK: u64 = 8 << 20;

/// A reason to suspect an instruction of a failing run: it changes the key of a filed record,
/// writes to a freed heap block, or has helped to choose the address of the failing value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// The instruction changes a field by which its record was filed in a table, and by which the
    /// program looks for the record later.
    ChangesKey,
    /// The instruction writes to a heap block that was freed.
    WritesFreed,
    /// The instruction has helped to choose the address to which the value that made the run fail
    /// was written: it decides on that address, or computes a part of it.
    ChoosesPlace,
}

/// An instruction of a recorded run that does something odd, such as writing to freed memory, and
/// may so be the cause of the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Index of the instruction in the recording.
    pub at: usize,
    /// What is odd about the instruction.
    pub oddity: Oddity,
}

/// A write of an instruction to memory that is not on the stack.
struct Store {
    at: usize,
    address: u64,
    size: u64,
}

/// A recorded run of the program, with the dependences between its instructions and the writes that
/// they make outside of the stack.
pub struct Observed<'a> {
    recorded: &'a Recorded,
    dependences: &'a Dependences,
    stores: Vec<Store>,
    /// Whether the code at an address is the program's own.
    is_user: &'a dyn Fn(u64) -> bool,
}

/// Returns true if an address is on the stack: within [`STACK`] bytes of the stack pointer.
fn is_on_stack(executed: &Executed, address: u64) -> bool {
    let stack = executed.registers[usize::from(STACK_POINTER)];
    (stack.saturating_sub(STACK)..stack.saturating_add(STACK)).contains(&address)
}

/// Returns the value that a store instruction writes: the one in its source register, or its
/// constant; `None` for other instructions.
fn stored(executed: &Executed) -> Option<u64> {
    let it = &executed.instruction;
    match it.op1_kind() {
        OpKind::Register => Some(executed.registers[general(it.op1_register())?]),
        _ => it.try_immediate(1).ok(),
    }
}

impl<'a> Observed<'a> {
    /// Prepares a recorded run for the search for odd instructions. `dependences` says which
    /// instructions depend on which, `is_user` whether an address is in the program's own code.
    pub fn new(
        recorded: &'a Recorded,
        dependences: &'a Dependences,
        is_user: &'a dyn Fn(u64) -> bool,
    ) -> Observed<'a> {
        let all = recorded.executed.iter().enumerate();
        let written = all.filter(|(_, it)| !it.is_library_call());
        let stores = written.filter_map(|(at, it)| {
            let (address, size) = it.written_elsewhere()?;
            (!is_on_stack(it, address)).then_some(Store { at, address, size })
        });
        Observed {
            recorded,
            dependences,
            stores: stores.collect(),
            is_user,
        }
    }

    /// Returns what is odd in the recording, the most telling first. `order` has the instructions
    /// on which the failure depends, the nearest ones first.
    pub fn anomalies(&self, order: &[Reached]) -> Vec<Anomaly> {
        let mut found = Vec::new();
        found.extend(self.changed_key(order));
        found.extend(self.freed_write());
        found.extend(self.chosen_place(order));
        found
    }

    /// Finds why the failing value was written to the place where it was written: the nearest
    /// instruction that computed a part of the address, in a function that had returned before the
    /// write, and the conditional jump that led to this instruction. Empty if there is none, if the
    /// written value was 0, or if the failing value was computed from it and not just copied.
    fn chosen_place(&self, order: &[Reached]) -> Vec<Anomaly> {
        let nearest = order.iter().take_while(|it| it.cost == 0);
        let values = nearest.filter(|it| it.how == Dependence::Value);
        let mut stores = values.filter_map(|it| self.store_of(it.at));
        let last = stores.next();
        let Some(store) = last.filter(|it| stored(self.executed(it.at)) != Some(0)) else {
            return Vec::new();
        };
        let level = |at: usize| self.executed(at).registers[usize::from(STACK_POINTER)];
        // Those that are still being executed have a higher stack pointer than all that is executed since.
        let has_returned =
            |at: usize| (at..store.at).any(|later| level(later) > level(at) + RETURNED);
        let makers = self.makers(self.direct(store.at, Dependence::Address));
        let computes = |at: &usize| {
            let it = self.executed(*at);
            self.is_own(*at) && !it.is_library_call() && !is_copy(it) && has_returned(*at)
        };
        let Some(computing) = makers.into_iter().find(computes) else {
            return Vec::new();
        };
        let decided = self.direct(computing, Dependence::Control).into_iter();
        let decided = decided.filter(|at| self.executed(*at).is_condition() && self.is_own(*at));
        let all = decided.chain([computing]);
        let oddity = Oddity::ChoosesPlace;
        all.map(|at| Anomaly { at, oddity }).collect()
    }

    fn executed(&self, at: usize) -> &Executed {
        &self.recorded.executed[at]
    }

    fn is_own(&self, at: usize) -> bool {
        (self.is_user)(self.executed(at).pc())
    }

    fn store_of(&self, at: usize) -> Option<&Store> {
        let found = self.stores.binary_search_by_key(&at, |it| it.at).ok()?;
        Some(&self.stores[found])
    }

    /// Returns the instructions `first`, the instructions that made the values that these use, and
    /// so on, nearest first; at most [`FOLLOWED`].
    fn makers(&self, first: Vec<usize>) -> Vec<usize> {
        let mut rest = VecDeque::from(first);
        let (mut known, mut found) = (HashSet::new(), Vec::new());
        while let Some(next) = rest.pop_front() {
            if !known.insert(next) || found.len() >= FOLLOWED {
                continue;
            }
            found.push(next);
            let all = self.dependences.from(next).iter();
            let values = all.filter(|it| it.1 == Dependence::Value);
            rest.extend(values.map(|it| it.0 as usize));
        }
        found
    }

    /// Returns the instructions on which the instruction `at` depends directly, by the kind `how`
    /// of dependence.
    fn direct(&self, at: usize, how: Dependence) -> Vec<usize> {
        let all = self.dependences.from(at).iter();
        all.filter(|it| it.1 == how)
            .map(|it| it.0 as usize)
            .collect()
    }

    /// Finds an instruction that changes the key of a record after the record was filed by it. A
    /// record counts as filed if a pointer to it, on which the failure depends, was written to an
    /// address that was computed from a field of the record (the key). `None` if no instruction
    /// later changes such a field.
    fn changed_key(&self, order: &[Reached]) -> Option<Anomaly> {
        let close = order.iter().take_while(|it| it.cost <= CLOSE);
        for filed in close.filter_map(|it| self.store_of(it.at)) {
            let Some(record) = stored(self.executed(filed.at)).filter(|it| *it > LOWEST) else {
                continue;
            };
            let inside = record..record.saturating_add(RECORD);
            let makers = self.makers(self.direct(filed.at, Dependence::Address));
            // Pointers in the record change when its neighbours do.
            let is_number =
                |it: &Store| stored(self.executed(it.at)).is_some_and(|value| value >> 32 == 0);
            let fields = self.stores.iter().filter(|it| {
                makers.contains(&it.at)
                    && inside.contains(&it.address)
                    && it.address != filed.address
                    && is_number(it)
            });
            for field in fields {
                let is_change = |it: &&Store| {
                    it.at > filed.at
                        && it.address < field.address + field.size
                        && field.address < it.address + it.size
                        && self.is_own(it.at)
                        && stored(self.executed(it.at)) != stored(self.executed(field.at))
                };
                let changed = self.stores.iter().find(is_change);
                if let Some(change) = changed {
                    return Some(Anomaly {
                        at: change.at,
                        oddity: Oddity::ChangesKey,
                    });
                }
            }
        }
        None
    }

    /// Finds the first instruction of the program that writes to a heap block after the block was
    /// freed and before it is allocated again; `None` if there is none.
    fn freed_write(&self) -> Option<Anomaly> {
        let mut live: HashMap<u64, u64> = HashMap::new();
        let mut freed: Vec<(u64, u64)> = Vec::new();
        let mut stores = self.stores.iter().peekable();
        for (at, it) in self.recorded.executed.iter().enumerate() {
            match it.library {
                Some(LibraryCall::Allocate) => {
                    let size = it.registers[ARGUMENTS[0]];
                    let start = self.recorded.executed.get(at + 1)?.registers[RESULT];
                    freed.retain(|block| block.1 <= start || start + size <= block.0);
                    live.insert(start, size);
                }
                Some(LibraryCall::Free) => {
                    let start = it.registers[ARGUMENTS[0]];
                    freed.extend(live.remove(&start).map(|size| (start, start + size)));
                }
                // What else allocates memory may give it out again.
                Some(LibraryCall::Other) => freed.clear(),
                _ => {}
            }
            let Some(store) = stores.next_if(|it| it.at == at) else {
                continue;
            };
            let is_inside = |block: &(u64, u64)| (block.0..block.1).contains(&store.address);
            if self.is_own(at) && freed.iter().any(is_inside) {
                return Some(Anomaly {
                    at,
                    oddity: Oddity::WritesFreed,
                });
            }
        }
        None
    }
}

/// Returns the indices of the calls that led to the recorded instruction `at`, innermost first, at
/// most `most`.
pub fn callers(recorded: &Recorded, at: usize, most: usize) -> Vec<usize> {
    let stack = |at: usize| recorded.executed[at].registers[usize::from(STACK_POINTER)];
    let mut highest = stack(at);
    let mut found = Vec::new();
    for before in (0..at).rev() {
        let it = &recorded.executed[before];
        if stack(before) > highest && it.is_call() && !it.is_library_call() {
            found.push(before);
            if found.len() >= most {
                break;
            }
        }
        highest = highest.max(stack(before));
    }
    found
}
