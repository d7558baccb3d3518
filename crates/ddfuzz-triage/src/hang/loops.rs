//! The loops of a function, read from its machine code, with or without symbols.
//!
//! An optimizing compiler inlines much into one function, up to a whole parser. Hangs in such a
//! function are distinguished by which of its loops does not end.

use std::collections::{BTreeMap, BTreeSet};

use nix::unistd::Pid;

use crate::capture::Tracer;
use crate::hang::stack::ActiveCall;
use crate::instruction::{Continuation, branches};
use crate::memory::Memory;

/// Maximum length in bytes of a function in whose machine code loops are searched for.
const LONGEST: u64 = 256 << 10;
/// Maximum nesting depth of the loops that are found in a function's machine code.
const DEEPEST: usize = 32;

/// A loop in the machine code of a function: a strongly connected set of the function's basic
/// blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    /// Address at which execution enters the loop; the lowest one if there are several.
    pub head: u64,
    /// Start addresses of the basic blocks of which the loop consists.
    pub blocks: BTreeSet<u64>,
    /// Addresses, in the function but outside the loop, at which execution continues when it leaves
    /// the loop by a jump or by falling through.
    pub exits: Vec<u64>,
}

/// The loops in the machine code of one function, and the control flow graph in which they were
/// found.
#[derive(Clone, Debug, Default)]
pub(super) struct Loops {
    /// The control flow graph of the function: for each basic block, by its start address, the
    /// start addresses of its successors.
    after: BTreeMap<u64, Vec<u64>>,
    /// The loops of the function; an outer loop precedes the loops that it contains.
    loops: Vec<Loop>,
    end: u64,
}

impl Tracer<'_> {
    /// Returns the loops of the function that the stack frame `level` of the stopped thread `tid`
    /// is in. Empty for runtime functions (C library …), for functions over 256 KiB, and for
    /// unreadable code.
    pub(super) fn loops_of(&mut self, tid: Pid, level: &ActiveCall) -> Loops {
        let code = self.code_of(tid, level);
        code.map_or_else(Loops::default, |(start, code)| Loops::of(&code, start))
    }

    fn code_of(&mut self, tid: Pid, level: &ActiveCall) -> Option<(u64, Vec<u8>)> {
        let frame = level.frame.as_ref().filter(|_| level.is_own())?;
        let (mut memory, layout) = self.cache.live(tid, level.place.sp);
        let region = layout.region(level.address())?;
        let function = region.module.function(frame.offset)?;
        let length = function.end.checked_sub(function.start)?;
        let start = function.start.wrapping_add(region.bias);
        let code = (length <= LONGEST).then(|| memory.bytes(start, length as usize))?;
        (code.len() as u64 == length).then_some((start, code))
    }
}

impl Loops {
    /// Finds the loops in `code`, the machine code of a function that begins at the address
    /// `start`.
    pub fn of(code: &[u8], start: u64) -> Loops {
        let end = start + code.len() as u64;
        let mut loops = Loops {
            after: basic_blocks(code, start),
            loops: Vec::new(),
            end,
        };
        let all: BTreeSet<u64> = loops.after.keys().copied().collect();
        let mut todo = vec![(all, BTreeSet::new(), 0)];
        while let Some((within, without, depth)) = todo.pop() {
            for circle in components(&loops.after, &within, &without) {
                let heads = loops.entries(&circle, start);
                let Some(head) = heads.first().or(circle.first()).copied() else {
                    continue;
                };
                loops.loops.push(Loop {
                    head,
                    exits: loops.exits(&circle),
                    blocks: circle.clone(),
                });
                if depth < DEEPEST {
                    todo.push((circle, heads, depth + 1));
                }
            }
        }
        loops
    }

    /// Returns those loops of the function that contain the code address `address`, innermost
    /// first.
    pub fn around(&self, address: u64) -> Vec<&Loop> {
        let piece = self.after.range(..=address).next_back();
        let Some((piece, _)) = piece.filter(|_| address < self.end) else {
            return Vec::new();
        };
        let holds = |it: &&Loop| it.blocks.contains(piece);
        let mut around: Vec<&Loop> = self.loops.iter().filter(holds).collect();
        around.sort_by_key(|it| it.blocks.len());
        around
    }

    /// Returns the start addresses of those basic blocks of the loop `circle` at which it is
    /// entered from outside; `start` is the address of the function.
    fn entries(&self, circle: &BTreeSet<u64>, start: u64) -> BTreeSet<u64> {
        let outside = self.after.iter().filter(|(at, _)| !circle.contains(at));
        let entered = outside.flat_map(|(_, next)| next).chain([&start]);
        entered.copied().filter(|at| circle.contains(at)).collect()
    }

    fn exits(&self, circle: &BTreeSet<u64>) -> Vec<u64> {
        let next = circle.iter().flat_map(|at| &self.after[at]);
        let exits: BTreeSet<u64> = next.copied().filter(|at| !circle.contains(at)).collect();
        exits.into_iter().collect()
    }
}

/// Splits the machine code of a function, which begins at the address `start`, into basic blocks.
/// Returns, for each block by its start address, the start addresses of its successors. A jump
/// through a table is taken to lead to each block that has no other predecessor.
fn basic_blocks(code: &[u8], start: u64) -> BTreeMap<u64, Vec<u64>> {
    let end = start + code.len() as u64;
    let inside = |at: &u64| (start..end).contains(at);
    let branches = branches(code, start);
    let targets = branches
        .iter()
        .filter_map(|branch| branch.continuation.target());
    let behind = branches.iter().map(|branch| branch.next);
    let begins: BTreeSet<u64> = targets
        .chain(behind)
        .filter(inside)
        .chain([start])
        .collect();
    let mut after: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut anywhere = Vec::new();
    for begin in &begins {
        let next_begin = begins.range(begin + 1..).next().copied();
        let stop = next_begin.unwrap_or(end);
        let last = branches.partition_point(|branch| branch.at < stop);
        let last = last.checked_sub(1).map(|last| branches[last]);
        let last = last.filter(|branch| branch.at >= *begin);
        let next = match last.map(|branch| branch.continuation) {
            None => vec![next_begin],
            Some(Continuation::To(target)) => vec![Some(target)],
            Some(Continuation::Either(target)) => vec![Some(target), next_begin],
            Some(Continuation::Anywhere) => {
                anywhere.push(*begin);
                Vec::new()
            }
            Some(Continuation::Nowhere) => Vec::new(),
        };
        let next = next.into_iter().flatten().filter(inside);
        after.insert(*begin, next.collect());
    }
    let reached: BTreeSet<u64> = after.values().flatten().copied().chain([start]).collect();
    let unknown: Vec<u64> = begins.difference(&reached).copied().collect();
    for begin in anywhere {
        after.insert(begin, unknown.clone());
    }
    after
}

/// Returns the loops in the control flow graph `after`, as strongly connected components: only
/// among the basic blocks `within`, and without the edges that lead to the blocks `without`. A
/// single block is a loop if it jumps to itself.
fn components(
    after: &BTreeMap<u64, Vec<u64>>,
    within: &BTreeSet<u64>,
    without: &BTreeSet<u64>,
) -> Vec<BTreeSet<u64>> {
    let goes = |from: &u64, to: &u64| {
        within.contains(from) && within.contains(to) && !without.contains(to)
    };
    let next = |at: u64| after[&at].iter().copied().filter(move |to| goes(&at, to));
    let mut before: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for at in within {
        next(*at).for_each(|to| before.entry(to).or_default().push(*at));
    }
    let mut seen = BTreeSet::new();
    let mut order = Vec::new();
    for root in within {
        walk(*root, &mut seen, &mut order, |at| next(at).collect());
    }
    let mut seen = BTreeSet::new();
    let mut components = Vec::new();
    for root in order.into_iter().rev() {
        let mut circle = Vec::new();
        let back = |at: u64| before.get(&at).cloned().unwrap_or_default();
        walk(root, &mut seen, &mut circle, back);
        let turns = circle.len() > 1 || circle.iter().any(|at| next(*at).any(|to| to == *at));
        if turns {
            components.push(circle.into_iter().collect());
        }
    }
    components
}

/// Traverses a control flow graph from the basic block `root`, and appends the start addresses of
/// the reachable blocks that are not yet in `seen` to `order`, in post-order. `next` returns the
/// successors of a block.
fn walk(root: u64, seen: &mut BTreeSet<u64>, order: &mut Vec<u64>, next: impl Fn(u64) -> Vec<u64>) {
    if !seen.insert(root) {
        return;
    }
    let mut path = vec![(root, next(root))];
    while let Some((at, left)) = path.last_mut() {
        match left.pop() {
            Some(to) if seen.insert(to) => path.push((to, next(to))),
            Some(_) => {}
            None => {
                order.push(*at);
                path.pop();
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// Finds the loops in the machine code `code`, taken to begin at address 0x1000. Returns, for
    /// each loop, the address of its head, the start addresses of its basic blocks, and the
    /// addresses to which it exits; loops with lower heads come first.
    fn loops(code: &[u8]) -> Vec<(u64, Vec<u64>, Vec<u64>)> {
        let mut loops = Loops::of(code, 0x1000).loops;
        loops.sort_by_key(|it| it.head);
        let shown = |it: Loop| (it.head, it.blocks.into_iter().collect(), it.exits);
        loops.into_iter().map(shown).collect()
    }

    #[test]
    fn straight_code_has_no_loop() {
        // jne 1003; nop; ret
        assert_eq!(loops(&[0x75, 0x01, 0x90, 0xc3]), []);
    }

    #[test]
    fn a_loop_has_a_head_and_exits() {
        // nop; 1001: jne 1001; ret
        let one = (0x1001, vec![0x1001], vec![0x1003]);
        assert_eq!(loops(&[0x90, 0x75, 0xfe, 0xc3]), [one]);
    }

    #[test]
    fn a_loop_in_a_loop_is_told_from_it() {
        // 1000: nop; 1001: nop; 1002: jne 1001; 1004: jne 1000; ret
        let code = [0x90, 0x90, 0x75, 0xfd, 0x75, 0xfa, 0xc3];
        let outer = (0x1000, vec![0x1000, 0x1001, 0x1004], vec![0x1006]);
        let inner = (0x1001, vec![0x1001], vec![0x1004]);
        assert_eq!(loops(&code), [outer, inner]);
        let found = Loops::of(&code, 0x1000);
        let heads = |at| -> Vec<u64> { found.around(at).iter().map(|it| it.head).collect() };
        assert_eq!(heads(0x1002), [0x1001, 0x1000]);
        assert_eq!(heads(0x1004), [0x1000]);
        assert_eq!(heads(0x1006), [] as [u64; 0]);
        assert_eq!(heads(0x2000), [] as [u64; 0]);
    }

    #[test]
    fn loops_side_by_side_are_two() {
        // 1000: jne 1000; 1002: jne 1002; ret
        let first = (0x1000, vec![0x1000], vec![0x1002]);
        let second = (0x1002, vec![0x1002], vec![0x1004]);
        assert_eq!(loops(&[0x75, 0xfe, 0x75, 0xfe, 0xc3]), [first, second]);
    }

    #[test]
    fn a_jump_by_a_table_may_go_to_what_nothing_else_leads_to() {
        // 1000: jmp *rax; 1002: jmp 1000; 1004: ret
        let code = [0xff, 0xe0, 0xeb, 0xfc, 0xc3];
        let one = (0x1000, vec![0x1000, 0x1002], vec![0x1004]);
        assert_eq!(loops(&code), [one]);
    }

    #[test]
    fn bytes_that_are_no_code_have_no_loop() {
        let mut noise = 1u32;
        let mut byte = || {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 24) as u8
        };
        for _ in 0..200 {
            let code: Vec<u8> = (0..512).map(|_| byte()).collect();
            // It ends, and what it says is of the code.
            for (head, pieces, _) in loops(&code) {
                assert!(pieces.contains(&head) && pieces.iter().all(|at| *at < 0x1000 + 512));
            }
        }
    }
}
