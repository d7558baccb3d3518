//! The starts of basic blocks in the code of an unmodified program (x86-64).
//!
//! A breakpoint inside an instruction or in data would change what the program does. Each function
//! is decoded from its first byte to its last (linear sweep). It gets breakpoints at its blocks
//! only if all of these hold:
//!
//! - every byte belongs to a valid instruction, and the last one ends where the function ends
//! - no direct jump or call of the whole program leads into one of its instructions
//! - no instruction of the whole program refers to an address inside the function, other than its
//!   start, except by a direct jump or call: data could be at that address
//!
//! Any other function gets a breakpoint at its first instruction only. Code outside of the
//! functions that the unwind table or symbols describe gets none.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use std::collections::BTreeSet;

use crate::observe::image::{Image, Segment};

/// The one-byte instruction `int3`: a breakpoint of ddfuzz, or the program's own.
pub(super) const BREAKPOINT: u8 = 0xcc;

/// A function of the program: its address range before loading, and the basic blocks found in it.
struct Function {
    start: u64,
    end: u64,
    /// Whether breakpoints may be set at all blocks of the function; false if only at its first
    /// instruction, because the rest may be data or was not decoded correctly.
    is_whole: bool,
    /// Addresses of the starts of the function's basic blocks that were found so far.
    blocks: BTreeSet<u64>,
}

/// The state of decoding a program's code: the functions of the program, and what was found in them
/// so far.
struct Sweep<'a> {
    image: &'a Image,
    functions: Vec<Function>,
    /// Each executable segment of the program and, for each of its bytes, whether an instruction
    /// starts there.
    starts: Vec<(&'a Segment, Vec<bool>)>,
    /// Addresses of the targets of direct jumps and calls in the program's code.
    targets: BTreeSet<u64>,
    /// Addresses that instructions of the program refer to by anything but a direct jump or call.
    references: BTreeSet<u64>,
    /// Whether the program is loaded at the addresses in its file, so that constants in its code
    /// may be addresses.
    is_fixed: bool,
}

/// Returns the addresses, before loading, of the starts of basic blocks at which breakpoints can be
/// set, ascending.
pub(crate) fn block_starts(image: &Image) -> Vec<u64> {
    let segments = image.segments.iter();
    let executable: Vec<&Segment> = segments.filter(|segment| segment.executable).collect();
    let mut sweep = Sweep {
        image,
        functions: Vec::new(),
        starts: executable
            .iter()
            .map(|segment| (*segment, vec![false; segment.bytes.len()]))
            .collect(),
        targets: BTreeSet::new(),
        references: BTreeSet::new(),
        is_fixed: image.segments.iter().all(|segment| segment.address != 0),
    };
    for (start, end) in image.functions.iter() {
        sweep.decode(start, end);
    }
    sweep.apply_targets();
    sweep.apply_references();
    sweep.finish()
}

impl Sweep<'_> {
    /// Decodes the function from `start` to `end` and adds it to the known functions; an address
    /// range that does not begin with a valid instruction is left out.
    fn decode(&mut self, start: u64, end: u64) {
        let length = usize::try_from(end - start).unwrap_or(usize::MAX);
        let found = self.starts.iter_mut().find_map(|(segment, starts)| {
            let place = segment.place(start, length)?;
            Some((&segment.bytes[place.clone()], &mut starts[place]))
        });
        let Some((bytes, starts)) = found else {
            return; // not code
        };
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        let (mut blocks, mut is_whole) = (BTreeSet::new(), true);
        let mut begins_block = true;
        while decoder.can_decode() {
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                is_whole = false;
                break;
            }
            starts[(instruction.ip() - start) as usize] = true;
            let is_padding = matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
            if begins_block && (!is_padding || instruction.ip() == start) {
                blocks.insert(instruction.ip());
                begins_block = false;
            }
            begins_block |= ends_block(&instruction);
            note_targets(&instruction, &mut self.targets);
            note_references(&instruction, self.is_fixed, &mut self.references);
        }
        // A function that begins with no valid instruction is none.
        if blocks.contains(&start) {
            self.functions.push(Function {
                start,
                end,
                is_whole: is_whole && decoder.ip() == end,
                blocks,
            });
        }
    }

    /// Returns the function whose address range contains `address`; `None` if there is none.
    fn function(&mut self, address: u64) -> Option<&mut Function> {
        let next = self
            .functions
            .partition_point(|function| function.start <= address);
        let function = self.functions.get_mut(next.checked_sub(1)?)?;
        (address < function.end).then_some(function)
    }

    fn is_start(&self, address: u64) -> bool {
        self.starts.iter().any(|(segment, starts)| {
            segment
                .place(address, 1)
                .is_some_and(|place| starts[place.start])
        })
    }

    /// Marks the collected targets of jumps and calls as starts of blocks. If a target is inside of
    /// an instruction, its function was not decoded correctly, and may only have a breakpoint at
    /// its first instruction from now on.
    fn apply_targets(&mut self) {
        for target in std::mem::take(&mut self.targets) {
            let is_start = self.is_start(target);
            if let Some(function) = self.function(target) {
                function.is_whole &= is_start;
                if is_start {
                    function.blocks.insert(target);
                }
            }
        }
    }

    /// Restricts the breakpoints of each function into which an instruction refers, other than by a
    /// direct jump or call, to an address that is not its start: data may be there, so only the
    /// function's first instruction may have a breakpoint.
    fn apply_references(&mut self) {
        for reference in std::mem::take(&mut self.references) {
            if let Some(function) = self.function(reference) {
                function.is_whole &= reference == function.start;
            }
        }
    }

    fn finish(self) -> Vec<u64> {
        let mut all = Vec::new();
        for function in self.functions {
            match function.is_whole {
                true => all.extend(function.blocks),
                false => all.push(function.start),
            }
        }
        // The program's own `int3` stays one.
        all.retain(|start| {
            let byte = self.image.at(*start, 1);
            byte.is_some_and(|byte| byte[0] != BREAKPOINT)
        });
        all
    }
}

/// Returns true if a basic block ends with `instruction`: a jump, return or the like, but not a
/// call. The code after it then begins a new block, even if `instruction` never leads there, since
/// a jump table may.
fn ends_block(instruction: &Instruction) -> bool {
    match instruction.flow_control() {
        FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => false,
        FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch
        | FlowControl::ConditionalBranch
        | FlowControl::Return
        | FlowControl::Interrupt
        | FlowControl::XbeginXabortXend
        | FlowControl::Exception => true,
    }
}

fn note_targets(instruction: &Instruction, targets: &mut BTreeSet<u64>) {
    let kinds = (0..instruction.op_count()).map(|operand| instruction.op_kind(operand));
    for kind in kinds {
        if matches!(
            kind,
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        ) {
            targets.insert(instruction.near_branch_target());
        }
    }
}

fn note_references(instruction: &Instruction, is_fixed: bool, references: &mut BTreeSet<u64>) {
    if instruction.is_ip_rel_memory_operand() {
        references.insert(instruction.ip_rel_memory_address());
    }
    if !is_fixed {
        return;
    }
    for operand in 0..instruction.op_count() {
        match instruction.op_kind(operand) {
            OpKind::Memory => {
                references.insert(instruction.memory_displacement64());
            }
            OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
                references.insert(instruction.immediate(operand));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the addresses at which blocks start in `functions`, each given by its machine code.
    /// The first function is at the address 0x1000, each other one directly behind the one before.
    fn starts_of(functions: &[&[u8]]) -> Vec<u64> {
        let mut image = Image {
            entry: 0,
            segments: vec![Segment {
                address: 0x1000,
                bytes: functions.concat(),
                executable: true,
            }],
            functions: Default::default(),
            hooks: Vec::new(),
        };
        let mut at = 0x1000;
        for function in functions {
            image.functions.add(at, at + function.len() as u64);
            at += function.len() as u64;
        }
        block_starts(&image)
    }

    #[test]
    fn blocks_begin_at_targets_and_behind_jumps() {
        // test eax,eax; je +2; inc ecx; jmp -2... ; nop padding; ret
        let code = [
            0x85, 0xc0, 0x74, 0x02, 0xff, 0xc1, 0xeb, 0x03, 0x0f, 0x1f, 0x00, 0xc3,
        ];
        assert_eq!(starts_of(&[&code]), [0x1000, 0x1004, 0x1006, 0x100b]);
    }

    #[test]
    fn a_function_that_does_not_decode_keeps_its_entry_only() {
        let invalid = [0xff, 0xc1, 0xc3, 0x06, 0xc3];
        let cut_off = [0xff, 0xc1, 0xc3, 0xe8, 0];
        let is_jumped_into = [0x74, 0x01, 0xb8, 1, 0, 0, 0, 0xc3];
        for code in [&invalid[..], &cut_off, &is_jumped_into] {
            assert_eq!(starts_of(&[code]), [0x1000], "{code:x?}");
        }
    }

    #[test]
    fn a_jump_of_another_function_counts() {
        // inc ecx; ret / jmp into the second byte of the first function
        assert_eq!(
            starts_of(&[&[0xff, 0xc1, 0xc3], &[0xeb, 0xfc]]),
            [0x1000, 0x1003]
        );
        // ... and to its second instruction, which is a block then
        assert_eq!(
            starts_of(&[&[0xff, 0xc1, 0xc3], &[0xeb, 0xfd]]),
            [0x1000, 0x1002, 0x1003]
        );
    }

    #[test]
    fn data_in_a_function_is_left_alone() {
        // lea rax,[rip+1]; ret; data that looks like `jne; ret`
        let table = [0x48, 0x8d, 0x05, 1, 0, 0, 0, 0xc3, 0x75, 0x00, 0xc3];
        assert_eq!(starts_of(&[&table]), [0x1000]);
        // mov rax,[rdi*8+0x1009], in a program at fixed addresses
        let fixed = [
            0x48, 0x8b, 0x04, 0xfd, 0x09, 0x10, 0, 0, 0xc3, 0x75, 0x00, 0xc3,
        ];
        assert_eq!(starts_of(&[&fixed]), [0x1000]);
    }

    #[test]
    fn the_address_of_a_function_is_no_data() {
        // lea rax,[rip+1]; ret / test eax,eax; je +0; ret
        let pointer = [0x48, 0x8d, 0x05, 1, 0, 0, 0, 0xc3];
        let other = [0x85, 0xc0, 0x74, 0x00, 0xc3];
        assert_eq!(starts_of(&[&pointer, &other]), [0x1000, 0x1008, 0x100c]);
    }

    #[test]
    fn a_breakpoint_of_the_program_is_none_of_ours() {
        assert_eq!(starts_of(&[&[0xcc, 0xc3], &[0xc3]]), [0x1001, 0x1002]);
    }
}
