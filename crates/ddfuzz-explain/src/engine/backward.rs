//! The executed instructions on which a failure depends, the nearest ones first. Pure.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::dependence::{Dependence, Dependences, is_copy};
use super::recorded::Recorded;

/// Cost of a step back from a computed number to the numbers from which it was computed. The
/// instructions with the smallest sums of costs count as the nearest to the failure.
const COMPUTED: u32 = 2;
/// Cost of a step back from a value to the instruction that made the address from which the value
/// was read; the costs of all steps add up to the distance from the failure.
const ADDRESSED: u32 = 4;
/// Cost of a step back from an instruction to the conditional jump or call that led to it. The
/// instructions with the smallest sums of costs count as the nearest to the failure.
const DECIDED: u32 = 6;
/// Largest number of instructions that are collected as those on which a failure depends.
const VISITED: usize = 60_000;

/// An instruction on which a failure depends, with its distance from the failure and the step that
/// leads from it towards the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Index of the instruction in the recording.
    pub at: usize,
    /// Distance of the instruction from the failure: the sum of the costs of the steps that lead
    /// back from the failure to the instruction.
    pub cost: u32,
    /// Index of the instruction, one step nearer to the failure, that depends on it directly.
    pub from: usize,
    /// How the instruction `from` depends on this one: by a value, an address, or a condition.
    pub how: Dependence,
}

/// Returns the instructions on which the instructions with the indices `seeds` depend, directly and
/// indirectly, by the dependences `found`. They are in the order of their costs, that is, their
/// distances from the seeds, the nearest first. The jumps and calls that led to the seeds
/// themselves are left out.
pub fn backward(recorded: &Recorded, found: &Dependences, seeds: &[usize]) -> Vec<Reached> {
    let mut heap = BinaryHeap::new();
    let mut costs: HashMap<usize, u32> = HashMap::new();
    let mut order = Vec::new();
    for seed in seeds {
        for (to, how) in found.from(*seed) {
            if *how != Dependence::Control {
                heap.push((Reverse(0), *to, *seed as u32, *how as u8));
            }
        }
    }
    while let Some((Reverse(cost), at, from, how)) = heap.pop() {
        let at = at as usize;
        if costs.contains_key(&at) {
            continue;
        }
        costs.insert(at, cost);
        let how = match how {
            0 => Dependence::Value,
            1 => Dependence::Address,
            _ => Dependence::Control,
        };
        order.push(Reached {
            at,
            cost,
            from: from as usize,
            how,
        });
        if order.len() >= VISITED {
            break;
        }
        let by_copy = is_copy(&recorded.executed[at]);
        for (to, how) in found.from(at) {
            let step = match how {
                Dependence::Value if by_copy => 0,
                Dependence::Value => COMPUTED,
                Dependence::Address => ADDRESSED,
                Dependence::Control => DECIDED,
            };
            if !costs.contains_key(&(*to as usize)) {
                heap.push((Reverse(cost + step), *to, at as u32, *how as u8));
            }
        }
    }
    order
}
