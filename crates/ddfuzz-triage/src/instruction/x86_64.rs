//! Decodes x86-64 instructions.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};

use super::{Branch, CallTarget, Continuation, MainArgument, MemoryAccess};
use crate::fault::{Access, is_canonical};
use crate::memory::Memory;
use crate::registers::Registers;

/// Machine code to which the kernel makes a signal handler return: `mov rax, 15; syscall`.
const SIGRETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
/// Offset of the saved register `rbp` in the frame that the kernel pushes for a signal, in bytes.
const SIGNAL_FRAME_RBP: u64 = 40 + 10 * 8;
/// Offset of the saved register `rsp` in the frame that the kernel pushes for a signal, in bytes.
const SIGNAL_FRAME_RSP: u64 = 40 + 15 * 8;
/// Offset of the saved register `rip` in the frame that the kernel pushes for a signal, in bytes.
const SIGNAL_FRAME_RIP: u64 = 40 + 16 * 8;

/// Decodes the first instruction of the machine code `code`, which lies at the address `address`;
/// `None` where it is invalid.
fn decode(code: &[u8], address: u64) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let instruction = decoder.decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// Returns the last `length` bytes of the machine code `code`; `None` where there are fewer.
fn tail(code: &[u8], length: usize) -> Option<&[u8]> {
    Some(&code[code.len().checked_sub(length)?..])
}

/// Checks whether `before`, the bytes of machine code before a return address, end in a call
/// instruction. Instructions cannot be decoded backwards, so every possible length of a call is
/// tried.
pub(crate) fn ends_in_call(before: &[u8]) -> bool {
    if tail(before, 5).is_some_and(|code| code[0] == 0xe8) {
        return true;
    }
    (2..=7).any(|length| {
        tail(before, length).is_some_and(|code| {
            code[0] == 0xff
                && code[1] >> 3 & 7 == 2
                && decode(code, 0).is_some_and(|instruction| instruction.len() == length)
        })
    })
}

/// Checks whether `code` begins with the machine code to which the kernel makes a signal handler
/// return.
pub(crate) fn is_signal_trampoline(code: &[u8]) -> bool {
    code.starts_with(&SIGRETURN)
}

/// Returns program counter, stack pointer and frame pointer of the code that a signal interrupted,
/// from the frame that the kernel pushed for the signal. `sp` is the stack pointer in the code to
/// which the signal handler returns. `None` where the frame cannot be read.
pub(crate) fn interrupted(sp: u64, memory: &mut dyn Memory) -> Option<(u64, u64, u64)> {
    let mut word = |offset: u64| memory.word(sp.checked_add(offset)?);
    Some((
        word(SIGNAL_FRAME_RIP)?,
        word(SIGNAL_FRAME_RSP)?,
        word(SIGNAL_FRAME_RBP)?,
    ))
}

/// Returns (return address, stack pointer after its removal) of the call that the thread with these
/// registers has just made; the return address is on top of the thread's stack. `None` where the
/// stack cannot be read.
pub(crate) fn pushed_return(registers: &Registers, memory: &mut dyn Memory) -> Option<(u64, u64)> {
    Some((memory.word(registers.sp)?, registers.sp.checked_add(8)?))
}

/// Returns the address that a return instruction has just taken from the top of the thread's stack,
/// if the thread with these registers has not used its stack since; `None` where the stack cannot
/// be read.
pub(crate) fn popped_return(registers: &Registers, memory: &mut dyn Memory) -> Option<u64> {
    memory.word(registers.sp.checked_sub(8)?)
}

/// Checks whether the machine code `code` begins with a return instruction.
pub(crate) fn is_return(code: &[u8]) -> bool {
    decode(code, 0).is_some_and(|instruction| instruction.flow_control() == FlowControl::Return)
}

/// Checks whether the instruction at the program counter, with which `code` begins, is an indirect
/// call or jump to a non-canonical address; the processor faults on such an instruction itself,
/// before control arrives at the address. False where the target is unknown.
pub(crate) fn goes_nowhere(code: &[u8], registers: &Registers, memory: &mut dyn Memory) -> bool {
    let Some(instruction) = decode(code, registers.pc) else {
        return false;
    };
    let flow = instruction.flow_control();
    if !matches!(
        flow,
        FlowControl::IndirectCall | FlowControl::IndirectBranch
    ) {
        return false;
    }
    let target = match instruction.op0_kind() {
        OpKind::Register => value_of(instruction.op0_register(), registers),
        _ => instruction
            .virtual_address(0, 0, |register, _, _| value_of(register, registers))
            .and_then(|slot| memory.word(slot)),
    };
    target.is_some_and(|target| !is_canonical(target))
}

/// Returns the memory accesses of the instruction at the program counter, with which `code` begins;
/// their addresses are computed from `registers`. An access that reads and writes is a write.
/// Accesses whose address is unknown are left out; an invalid instruction has none.
pub(crate) fn accesses(code: &[u8], registers: &Registers) -> Vec<MemoryAccess> {
    let Some(instruction) = decode(code, registers.pc) else {
        return Vec::new();
    };
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(&instruction);
    let accesses = info.used_memory().iter().filter_map(|used| {
        let access = match used.access() {
            OpAccess::None | OpAccess::NoMemAccess => return None,
            OpAccess::Read | OpAccess::CondRead => Access::Read,
            _ => Access::Write,
        };
        Some(MemoryAccess {
            address: used.virtual_address(0, |register, _, _| value_of(register, registers))?,
            size: used.memory_size().size() as u64,
            access,
        })
    });
    accesses.collect()
}

/// Returns the target of the call instruction at the end of the machine code `before`; `end` is the
/// address after the call. `None` for a call through a register or a computed address.
pub(crate) fn call_target(before: &[u8], end: u64) -> Option<CallTarget> {
    let five = tail(before, 5)?;
    if five[0] == 0xe8 {
        let call = decode(five, end.wrapping_sub(5))?;
        return Some(CallTarget::Address(call.near_branch_target()));
    }
    let six = tail(before, 6)?;
    (six[..2] == [0xff, 0x15])
        .then(|| decode(six, end.wrapping_sub(6)))?
        .map(|call| CallTarget::Slot(call.ip_rel_memory_address()))
}

/// Returns the address of the memory slot through which the linkage stub (PLT entry) at `address`
/// jumps; `None` if there is no such stub at `address`.
pub(crate) fn stub_slot(code: &[u8], address: u64) -> Option<u64> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    decoder
        .iter()
        .take(2)
        .find(|instruction| instruction.code() != Code::Endbr64)
        .filter(|jump| {
            jump.flow_control() == FlowControl::IndirectBranch && jump.is_ip_rel_memory_operand()
        })
        .map(|jump| jump.ip_rel_memory_address())
}

/// Checks by its machine code whether a function can only end the program (`die`): it makes a call
/// (to print the message) and a second one that does not return. It has no return, no jump out of
/// the function or through a pointer, and, unless `loops` is set, no backward jump. A function with
/// a single call does not count: it could be the remainder of a function whose rest the compiler
/// inlined into its callers.
pub(crate) fn only_ends_program(code: &[u8], address: u64, loops: bool) -> bool {
    let end = address.wrapping_add(code.len() as u64);
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut calls = 0;
    for instruction in &mut decoder {
        match instruction.flow_control() {
            FlowControl::Return | FlowControl::IndirectBranch => return false,
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => {
                let target = instruction.near_branch_target();
                let first = if loops {
                    address
                } else {
                    instruction.next_ip()
                };
                if !(first..end).contains(&target) {
                    return false;
                }
            }
            // `ud2` and `int3` end the program as well as a call does.
            FlowControl::Call
            | FlowControl::IndirectCall
            | FlowControl::Exception
            | FlowControl::Interrupt => calls += 1,
            FlowControl::Next | FlowControl::XbeginXabortXend => {}
        }
        if instruction.is_invalid() {
            return false;
        }
    }
    calls >= 2
}

/// Returns the branch and return instructions in the machine code of the function at `address`,
/// ascending by address, up to the first invalid instruction.
pub(crate) fn branches(code: &[u8], address: u64) -> Vec<Branch> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut branches = Vec::new();
    for instruction in &mut decoder {
        let goes = match instruction.flow_control() {
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => continue,
            FlowControl::UnconditionalBranch => Continuation::To(instruction.near_branch_target()),
            FlowControl::ConditionalBranch => {
                Continuation::Either(instruction.near_branch_target())
            }
            FlowControl::IndirectBranch => Continuation::Anywhere,
            FlowControl::XbeginXabortXend | FlowControl::Interrupt => continue,
            FlowControl::Return | FlowControl::Exception => Continuation::Nowhere,
        };
        branches.push(Branch {
            at: instruction.ip(),
            next: instruction.next_ip(),
            continuation: goes,
        });
        if instruction.is_invalid() {
            break;
        }
    }
    branches
}

/// Checks whether the machine code `code` begins with a jump (not a call) through a pointer. A jump
/// pushes no return address, so the return address on top of the stack is that of the function that
/// jumps.
pub(crate) fn jumps_by_pointer(code: &[u8]) -> bool {
    decode(code, 0)
        .is_some_and(|instruction| instruction.flow_control() == FlowControl::IndirectBranch)
}

/// Returns the `main` that the start-up code at `entry` passes as first argument to the C library;
/// `None` where it is not recognized.
pub(crate) fn main_argument(code: &[u8], entry: u64) -> Option<MainArgument> {
    let mut decoder = Decoder::with_ip(64, code, entry, DecoderOptions::NONE);
    let mut found = None;
    for instruction in &mut decoder {
        match instruction.flow_control() {
            FlowControl::Next => {}
            FlowControl::Call | FlowControl::IndirectCall => return found,
            _ => return None,
        }
        let into_first = instruction.op_count() == 2
            && instruction.op0_kind() == OpKind::Register
            && instruction.op0_register().full_register() == Register::RDI;
        if !into_first {
            continue;
        }
        found = match (instruction.mnemonic(), instruction.op1_kind()) {
            (Mnemonic::Lea, OpKind::Memory) if instruction.is_ip_rel_memory_operand() => {
                Some(MainArgument::Address(instruction.ip_rel_memory_address()))
            }
            (Mnemonic::Mov, OpKind::Memory) if instruction.is_ip_rel_memory_operand() => {
                Some(MainArgument::Slot(instruction.ip_rel_memory_address()))
            }
            (Mnemonic::Mov, OpKind::Immediate32 | OpKind::Immediate32to64) => {
                Some(MainArgument::Address(instruction.immediate(1)))
            }
            _ => None,
        };
    }
    None
}

/// Returns the value of a register as a part of an address: of a segment register its base, which
/// in 64-bit mode is 0 for all but FS and GS. `None` for registers that are not recorded.
fn value_of(register: Register, registers: &Registers) -> Option<u64> {
    let name = match register {
        Register::FS => "fs_base".to_owned(),
        Register::GS => "gs_base".to_owned(),
        Register::ES | Register::CS | Register::SS | Register::DS => return Some(0),
        _ => format!("{:?}", register.full_register()).to_lowercase(),
    };
    let value = registers.all.get(name.as_str()).copied()?;
    Some(match register.size() {
        4 => value & 0xffff_ffff,
        _ => value,
    })
}
