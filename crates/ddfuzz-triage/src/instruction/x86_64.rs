//! Instructions of x86-64.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};

use super::{Branch, CallTarget, Goes, MainArgument, MemoryAccess};
use crate::fault::{Access, is_canonical};
use crate::memory::Memory;
use crate::registers::Registers;

/// `mov rax, 15; syscall`: the code to which a signal handler returns.
const SIGRETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
/// Where the kernel puts `rbp` in the frame of a signal, above the trampoline's return address.
const SIGNAL_FRAME_RBP: u64 = 40 + 10 * 8;
const SIGNAL_FRAME_RSP: u64 = 40 + 15 * 8;
const SIGNAL_FRAME_RIP: u64 = 40 + 16 * 8;

/// The instruction at the beginning of `code`.
fn decode(code: &[u8], address: u64) -> Option<Instruction> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let instruction = decoder.decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// Whether `before`, the bytes before a return address, end in a call.
///
/// Instructions cannot be decoded backwards, so every length that a call can have is tried.
pub(crate) fn ends_in_call(before: &[u8]) -> bool {
    let from_end = |length: usize| {
        before
            .len()
            .checked_sub(length)
            .map(|start| &before[start..])
    };
    if from_end(5).is_some_and(|code| code[0] == 0xe8) {
        return true;
    }
    (2..=7).any(|length| {
        from_end(length).is_some_and(|code| {
            code[0] == 0xff
                && code[1] >> 3 & 7 == 2
                && decode(code, 0).is_some_and(|instruction| instruction.len() == length)
        })
    })
}

/// Whether a signal handler returns to code that begins so.
pub(crate) fn is_signal_trampoline(code: &[u8]) -> bool {
    code.starts_with(&SIGRETURN)
}

/// The (pc, sp, fp) that a signal interrupted, read off the frame that the kernel pushed; `sp` is
/// the stack pointer in the trampoline.
pub(crate) fn interrupted(sp: u64, memory: &mut dyn Memory) -> Option<(u64, u64, u64)> {
    let mut word = |offset: u64| memory.word(sp.checked_add(offset)?);
    Some((
        word(SIGNAL_FRAME_RIP)?,
        word(SIGNAL_FRAME_RSP)?,
        word(SIGNAL_FRAME_RBP)?,
    ))
}

/// The return address of a call that has just been made and the stack pointer without it.
pub(crate) fn pushed_return(registers: &Registers, memory: &mut dyn Memory) -> Option<(u64, u64)> {
    Some((memory.word(registers.sp)?, registers.sp.checked_add(8)?))
}

/// Whether `code` begins with a return.
pub(crate) fn is_return(code: &[u8]) -> bool {
    decode(code, 0).is_some_and(|instruction| instruction.flow_control() == FlowControl::Return)
}

/// Whether `code` begins with an indirect call or jump whose target is no address at all, so that
/// the processor faults on the instruction itself.
pub(crate) fn goes_nowhere(code: &[u8], registers: &Registers, memory: &mut dyn Memory) -> bool {
    let Some(instruction) = decode(code, registers.pc) else {
        return false;
    };
    if !matches!(
        instruction.flow_control(),
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

/// All accesses to memory of the instruction at the beginning of `code`.
pub(crate) fn accesses(code: &[u8], registers: &Registers) -> Vec<MemoryAccess> {
    let Some(instruction) = decode(code, registers.pc) else {
        return Vec::new();
    };
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(&instruction);
    info.used_memory()
        .iter()
        .filter_map(|used| {
            let access = match used.access() {
                OpAccess::None | OpAccess::NoMemAccess => return None,
                OpAccess::Read | OpAccess::CondRead => Access::Read,
                _ => Access::Write,
            };
            let address =
                used.virtual_address(0, |register, _, _| value_of(register, registers))?;
            Some(MemoryAccess {
                address,
                size: used.memory_size().size() as u64,
                access,
            })
        })
        .collect()
}

/// Where the call goes that ends in the bytes `before`; `end` is the address behind it.
pub(crate) fn call_target(before: &[u8], end: u64) -> Option<CallTarget> {
    let tail = |length: usize| {
        before
            .len()
            .checked_sub(length)
            .map(|start| &before[start..])
    };
    let five = tail(5)?;
    if five[0] == 0xe8 {
        let call = decode(five, end.wrapping_sub(5))?;
        return Some(CallTarget::Address(call.near_branch_target()));
    }
    let six = tail(6)?;
    (six[..2] == [0xff, 0x15])
        .then(|| decode(six, end.wrapping_sub(6)))?
        .map(|call| CallTarget::Slot(call.ip_rel_memory_address()))
}

/// The slot through which the linkage stub at `address` jumps, when `code` is one.
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

/// Whether the function with this code, at this address, can only give up: it says so by a call,
/// and goes straight on to another that does not come back. It has no return, no jump out of it,
/// none through a pointer, and, unless `loops` are allowed, none back.
///
/// With one call alone it would be what a compiler leaves of a function whose beginning it has
/// inlined into all callers.
pub(crate) fn only_gives_up(code: &[u8], address: u64, loops: bool) -> bool {
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
            FlowControl::Call | FlowControl::IndirectCall => calls += 1,
            // `ud2` and `int3` give up as well as a call.
            FlowControl::Exception | FlowControl::Interrupt => calls += 1,
            FlowControl::Next | FlowControl::XbeginXabortXend => {}
        }
        if instruction.is_invalid() {
            return false;
        }
    }
    calls >= 2
}

/// The branches in the code of a function, by address, up to the first instruction that is none.
pub(crate) fn branches(code: &[u8], address: u64) -> Vec<Branch> {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut branches = Vec::new();
    for instruction in &mut decoder {
        let goes = match instruction.flow_control() {
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => continue,
            FlowControl::UnconditionalBranch => Goes::To(instruction.near_branch_target()),
            FlowControl::ConditionalBranch => Goes::Either(instruction.near_branch_target()),
            FlowControl::IndirectBranch => Goes::Anywhere,
            FlowControl::XbeginXabortXend | FlowControl::Interrupt => continue,
            FlowControl::Return | FlowControl::Exception => Goes::Nowhere,
        };
        branches.push(Branch {
            at: instruction.ip(),
            next: instruction.next_ip(),
            goes,
        });
        if instruction.is_invalid() {
            break;
        }
    }
    branches
}

/// Whether `code`, at the thread's program counter, begins with a jump through a pointer: what it
/// leaves on the stack is what the function that jumps was called with.
pub(crate) fn jumps_by_pointer(code: &[u8]) -> bool {
    decode(code, 0)
        .is_some_and(|instruction| instruction.flow_control() == FlowControl::IndirectBranch)
}

/// What the start-up code at `entry` loads into the first argument before its call to the C
/// library: the program's `main`.
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

/// The value of a register, in the form that address computation wants.
fn value_of(register: Register, registers: &Registers) -> Option<u64> {
    // In 64-bit mode only FS and GS have a base.
    match register {
        Register::FS => return registers.all.get("fs_base").copied(),
        Register::GS => return registers.all.get("gs_base").copied(),
        Register::ES | Register::CS | Register::SS | Register::DS => return Some(0),
        _ => {}
    }
    let name = match register.full_register() {
        Register::RAX => "rax",
        Register::RBX => "rbx",
        Register::RCX => "rcx",
        Register::RDX => "rdx",
        Register::RSI => "rsi",
        Register::RDI => "rdi",
        Register::RBP => "rbp",
        Register::RSP => "rsp",
        Register::R8 => "r8",
        Register::R9 => "r9",
        Register::R10 => "r10",
        Register::R11 => "r11",
        Register::R12 => "r12",
        Register::R13 => "r13",
        Register::R14 => "r14",
        Register::R15 => "r15",
        _ => return None,
    };
    let value = registers.all.get(name).copied()?;
    Some(if register.size() == 4 {
        value & 0xffff_ffff
    } else {
        value
    })
}
