//! Breakpoints on compare instructions of the main executable (x86-64), and on comparison callbacks
//! that are too short to be replaced by a jump.
//!
//! A breakpoint is the one-byte instruction `int3` at the start of an instruction. It stops a
//! thread; the tracer reads the operands, sets the flags as the instruction would have, and resumes
//! the thread after the instruction. There is one stop per hit, and other threads cannot miss the
//! breakpoint meanwhile. Breakpoints that are hit often are removed.
//!
//! The breakpoints by which runs report the blocks that they reach are in `blocks/`.

mod operand;
mod tracer;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::observe::image::{Hook, HookKind, Image, Segment};

pub(crate) use tracer::Tracer;

const BREAKPOINT: u8 = 0xcc;
/// Maximum number of breakpoints in one program.
const MOST_SITES: usize = 1 << 18;

/// An instruction of the program at which a breakpoint is set to observe comparisons: a compare
/// instruction, or the first one of a comparison callback.
#[derive(Clone, Copy, Debug)]
pub(super) enum Site {
    /// A breakpoint at a compare instruction; holds the instruction and the width of its operands
    /// in bytes.
    Compare(Instruction, usize),
    /// A breakpoint at the first instruction of a comparison callback (of
    /// `-fsanitize-coverage=trace-cmp`); holds the kind of the callback.
    Hook(HookKind),
}

/// The code of one executable segment of a program, as it is in the file and with breakpoints set.
struct PatchedCode {
    pub(super) address: u64,
    pub(super) original: Vec<u8>,
    pub(super) changed: Vec<u8>,
}

/// The breakpoints to set in a program to observe its comparisons, by address before loading.
pub(crate) struct BreakpointPlan {
    pub(super) entry: u64,
    code: Vec<PatchedCode>,
    pub(super) sites: BTreeMap<u64, Site>,
}

impl BreakpointPlan {
    /// Returns a plan of breakpoints on all compare instructions and on the callbacks `hooks`. Only
    /// functions that decode completely get breakpoints: a breakpoint in data would change the
    /// program's behaviour.
    pub(crate) fn of(image: Image, hooks: &[Hook]) -> BreakpointPlan {
        let mut sites = BTreeMap::new();
        let is_hook = |start| image.hooks.iter().any(|hook| hook.address == start);
        for (start, end) in image.functions.iter().filter(|(start, _)| !is_hook(*start)) {
            let found = compares(&image.segments, start..end).unwrap_or_default();
            if sites.len() + found.len() > MOST_SITES {
                break;
            }
            sites.extend(found);
        }
        sites.extend(
            hooks
                .iter()
                .map(|hook| (hook.address, Site::Hook(hook.kind))),
        );
        let segments = image.segments.into_iter();
        let executable = segments.filter(|segment| segment.executable);
        let code = executable.map(|segment| changed(segment, &sites)).collect();
        BreakpointPlan {
            entry: image.entry,
            code,
            sites,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.sites.len()
    }

    /// Returns the byte that the program's file has at `address` of its code, without breakpoints;
    /// `None` if no code is there.
    pub(super) fn original(&self, address: u64) -> Option<u8> {
        self.code.iter().find_map(|code| {
            let index = usize::try_from(address.checked_sub(code.address)?).ok()?;
            code.original.get(index).copied()
        })
    }
}

fn changed(segment: Segment, sites: &BTreeMap<u64, Site>) -> PatchedCode {
    let mut changed = segment.bytes.clone();
    for address in sites.keys() {
        if let Some(place) = segment.place(*address, 1) {
            changed[place.start] = BREAKPOINT;
        }
    }
    PatchedCode {
        address: segment.address,
        original: segment.bytes,
        changed,
    }
}

/// Finds the compare instructions of a function. `None` unless the whole range is code: every
/// instruction is known, the last one ends at the end of the function, and no jump leads into an
/// instruction.
fn compares(segments: &[Segment], function: Range<u64>) -> Option<Vec<(u64, Site)>> {
    let length = usize::try_from(function.end - function.start).ok()?;
    let bytes = segments.iter().find_map(|segment| {
        let place = segment.place(function.start, length)?;
        segment.executable.then(|| &segment.bytes[place])
    })?;
    let mut decoder = Decoder::with_ip(64, bytes, function.start, DecoderOptions::NONE);
    let (mut found, mut starts, mut targets) = (Vec::new(), BTreeSet::new(), Vec::new());
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        starts.insert(instruction.ip());
        let jumps = matches!(
            instruction.flow_control(),
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
        );
        if jumps && is_near(instruction.op0_kind()) {
            targets.push(instruction.near_branch_target());
        }
        if instruction.mnemonic() == Mnemonic::Cmp
            && let Some(width) = operand::width(&instruction)
        {
            found.push((instruction.ip(), Site::Compare(instruction, width)));
        }
    }
    let leads_between = |target: &u64| function.contains(target) && !starts.contains(target);
    (decoder.ip() == function.end && !targets.iter().any(leads_between)).then_some(found)
}

fn is_near(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites_of(code: &[u8]) -> Option<Vec<u64>> {
        let segment = Segment {
            address: 0x1000,
            bytes: code.to_vec(),
            executable: true,
        };
        let found = compares(&[segment], 0x1000..0x1000 + code.len() as u64)?;
        Some(found.into_iter().map(|(address, _)| address).collect())
    }

    #[test]
    fn comparisons_are_found_and_tests_are_not() {
        // test eax, eax; cmp eax, ebx; cmp word [rdi+2], 5; cmp rax, fs:[0x28]; ret
        let code = [
            0x85, 0xc0, 0x39, 0xd8, 0x66, 0x83, 0x7f, 0x02, 0x05, 0x64, 0x48, 0x3b, 0x04, 0x25,
            0x28, 0, 0, 0, 0xc3,
        ];
        assert_eq!(sites_of(&code), Some(vec![0x1002, 0x1004, 0x1009]));
    }

    #[test]
    fn what_is_not_code_throughout_is_left_alone() {
        let compare_and_return = [0x39, 0xd8, 0xc3];
        assert!(sites_of(&compare_and_return).is_some());
        let no_instruction = [0x39, 0xd8, 0x06, 0xc3];
        assert_eq!(sites_of(&no_instruction), None);
        let cut_off = [0x39, 0xd8, 0xe8, 0, 0];
        assert_eq!(sites_of(&cut_off), None);
        let jumps_into_the_compare = [0xeb, 0x01, 0x39, 0xd8, 0xc3];
        assert_eq!(sites_of(&jumps_into_the_compare), None);
    }
}
