//! Walks the stack of another process with framehop, up to the first return address that is not
//! preceded by a call.

use std::sync::Arc;

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind,
    UnwindRegsNative, Unwinder as _, UnwinderNative,
};

use crate::instruction::{
    CallTarget, LONGEST, call_target, ends_in_call, interrupted, is_signal_trampoline,
};
use crate::memory::Memory;
use crate::module::Module;
use crate::modules::{Layout, Region};
use crate::registers::Registers;
use crate::snapshot::{End, Trust};

/// Maximum number of frames that a walk over the stack of a crash reads (docs/src/keys.md).
pub(crate) const CAP: usize = 256;

/// A stack unwinder (of the crate framehop) for the modules that are mapped in one process.
pub(crate) struct Unwinder {
    framehop: UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>,
    /// Cache of the unwind rules by code address, valid as long as the mapped modules are the same.
    cache: CacheNative<MayAllocateDuringUnwind>,
}

impl Unwinder {
    /// Creates an unwinder for the executable mappings `regions` of one process.
    pub(crate) fn new(regions: &[Region]) -> Unwinder {
        let mut framehop = UnwinderNative::new();
        for region in regions {
            framehop.add_module(framehop_module(region));
        }
        Unwinder {
            framehop,
            cache: CacheNative::new(),
        }
    }
}

fn framehop_module(region: &Region) -> framehop::Module<Arc<[u8]>> {
    // framehop counts from the base with 32 bits and takes no table that begins below it, so the
    // base is the first executable segment and not 0.
    let segments = region.module.executable.iter();
    let first = segments.map(|segment| segment.address & !0xfff).min();
    let base_svma = first.unwrap_or(region.range.start.wrapping_sub(region.bias));
    let sections = ExplicitModuleSectionInfo {
        base_svma,
        ..sections(&region.module)
    };
    let base_avma = base_svma.wrapping_add(region.bias);
    framehop::Module::new(
        region.name.to_string(),
        region.range.clone(),
        base_avma,
        sections,
    )
}

fn sections(module: &Module) -> ExplicitModuleSectionInfo<Arc<[u8]>> {
    let Some(tables) = &module.unwind else {
        return ExplicitModuleSectionInfo::default();
    };
    let index = tables.eh_frame_hdr.as_ref();
    let point = |address: u64| address..address.saturating_add(1);
    ExplicitModuleSectionInfo {
        text_svma: Some(point(tables.text)),
        got_svma: Some(point(tables.got)),
        eh_frame_svma: Some(point(tables.eh_frame.address)),
        eh_frame: Some(tables.eh_frame.data.clone()),
        eh_frame_hdr_svma: index.map(|section| point(section.address)),
        eh_frame_hdr: index.map(|section| section.data.clone()),
        ..ExplicitModuleSectionInfo::default()
    }
}

/// The program counter and registers of the frame at which a stack walk starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkStart {
    /// Address of the code at which the stack walk starts: a program counter, or a return address.
    pub address: u64,
    /// What kind of address `address` is: `Pc` for a program counter, `Call` for a return address.
    pub trust: Trust,
    /// Stack pointer of the frame at which the stack walk starts.
    pub sp: u64,
    /// Frame pointer of the frame at which the stack walk starts.
    pub fp: u64,
    /// Link register of the frame at which the stack walk starts, on processors that have one.
    pub lr: u64,
}

impl WalkStart {
    /// Returns the start of a stack walk at the innermost frame of a thread with these registers.
    pub fn registers(registers: &Registers) -> WalkStart {
        WalkStart {
            address: registers.pc,
            trust: Trust::Pc,
            sp: registers.sp,
            fp: registers.fp,
            lr: registers.lr,
        }
    }
}

/// One frame that a stack walk found: the address of its code, and the evidence for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Address of the frame's code: the program counter; for a caller, the return address − 1.
    pub address: u64,
    /// Evidence that the frame is real, and not a stale value that was found on the stack.
    pub trust: Trust,
}

/// The result of a stack walk: the frames that it found, and why it ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    /// The frames that the stack walk found, innermost first.
    pub steps: Vec<Step>,
    /// Why the stack walk ended: at the first frame of the thread, or too early.
    pub end: End,
    /// Stack pointer at which the walk ended: the one of the outermost frame or, if the walk ended
    /// at a return address that leads to no further frame, the one after the return to that
    /// address.
    pub end_sp: u64,
    /// Program counters of the code that signals interrupted, as found in signal frames on the
    /// stack.
    pub interrupted: Vec<u64>,
    /// For each frame in `steps`, the program counter and the stack pointer with which its function
    /// continues after the call that it made.
    pub places: Vec<Place>,
}

/// Where a function on the stack continues after the call that it has made: program counter and
/// stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Program counter at which the function continues: for the innermost frame the current one,
    /// for a caller the exact return address.
    pub pc: u64,
    /// Stack pointer with which the function continues after the call that it has made.
    pub sp: u64,
}

#[cfg(target_arch = "x86_64")]
fn unwind_registers(pc: u64, sp: u64, fp: u64, _lr: u64) -> UnwindRegsNative {
    UnwindRegsNative::new(pc, sp, fp)
}

#[cfg(target_arch = "aarch64")]
fn unwind_registers(_pc: u64, sp: u64, fp: u64, lr: u64) -> UnwindRegsNative {
    UnwindRegsNative::new(lr, sp, fp)
}

/// Walks the stack of a thread from the frame `from` outwards, up to the first return address that
/// no call instruction precedes, at most 256 frames.
pub(crate) fn walk(from: WalkStart, layout: &mut Layout, memory: &mut dyn Memory) -> Walk {
    walk_up_to(CAP, from, layout, memory)
}

/// Walks the stack of a thread from the frame `from` outwards, up to the first return address that
/// no call instruction precedes, at most `cap` frames.
pub(crate) fn walk_up_to(
    cap: usize,
    from: WalkStart,
    layout: &mut Layout,
    memory: &mut dyn Memory,
) -> Walk {
    let mut walk = Walk::default();
    let mut registers = unwind_registers(from.address, from.sp, from.fp, from.lr);
    let mut at = match from.trust {
        Trust::Call => FrameAddress::from_return_address(from.address),
        _ => Some(FrameAddress::from_instruction_pointer(from.address)),
    };
    let mut trust = from.trust;
    while let Some(address) = at {
        walk.steps.push(Step {
            address: address.address_for_lookup(),
            trust,
        });
        walk.places.push(Place {
            pc: address.address(),
            sp: registers.sp(),
        });
        if walk.steps.len() == cap {
            walk.end = End::Cap;
            break;
        }
        match next(address, &mut registers, layout, memory) {
            Next::Frame(address, why) => {
                if let FrameAddress::InstructionPointer(pc) = address {
                    walk.interrupted.push(pc);
                }
                (at, trust) = (Some(address), why);
            }
            Next::End(end) => {
                walk.end = end;
                break;
            }
        }
    }
    walk.end_sp = registers.sp();
    walk
}

enum Next {
    Frame(FrameAddress, Trust),
    End(End),
}

/// Unwinds one stack frame: returns the caller of the frame at `address`, and changes `registers`
/// to the caller's, or returns why the stack walk ends there.
fn next(
    address: FrameAddress,
    registers: &mut UnwindRegsNative,
    layout: &mut Layout,
    memory: &mut dyn Memory,
) -> Next {
    if is_trampoline(address.address(), layout, memory) {
        // framehop cannot read the frame of a signal: its rules are expressions over memory.
        let Some((pc, sp, fp)) = interrupted(registers.sp(), memory) else {
            return Next::End(End::Unreadable);
        };
        *registers = unwind_registers(pc, sp, fp, 0);
        return match layout.region(pc) {
            Some(_) => Next::Frame(FrameAddress::from_instruction_pointer(pc), Trust::Signal),
            None => Next::End(End::Untrusted),
        };
    }
    let Unwinder { framehop, cache } = &mut layout.unwinder;
    let mut read = |address| memory.word(address).ok_or(());
    let caller = match framehop.unwind_frame(address, registers, cache, &mut read) {
        Ok(Some(caller)) => caller,
        Ok(None) => return Next::End(End::Clean),
        Err(_) => return Next::End(End::Unreadable),
    };
    let trust = if is_return_address(caller, layout, memory) {
        Trust::Call
    } else if is_trampoline(caller, layout, memory) {
        Trust::Signal
    } else {
        return Next::End(End::Untrusted);
    };
    match FrameAddress::from_return_address(caller) {
        Some(address) => Next::Frame(address, trust),
        None => Next::End(End::Untrusted),
    }
}

/// Checks whether `address` is in the code of a module and follows a call instruction.
pub(crate) fn is_return_address(address: u64, layout: &Layout, memory: &mut dyn Memory) -> bool {
    code_before(address, layout, memory).is_some_and(|before| ends_in_call(&before))
}

/// Returns the target of the call instruction directly before the return address `address`; `None`
/// if the instruction does not show the target.
pub(crate) fn called_before(
    address: u64,
    layout: &Layout,
    memory: &mut dyn Memory,
) -> Option<CallTarget> {
    call_target(&code_before(address, layout, memory)?, address)
}

/// Reads the machine code directly before `address`, up to the maximum length of one instruction;
/// `None` where it cannot be read.
fn code_before(address: u64, layout: &Layout, memory: &mut dyn Memory) -> Option<Vec<u8>> {
    let region = layout.region(address.checked_sub(1)?)?;
    // What lies before the region may not be readable.
    let length = (LONGEST as u64).min(address - region.range.start);
    let before = memory.bytes(address - length, length as usize);
    (before.len() as u64 == length).then_some(before)
}

/// Checks whether `address` is that of the code to which the kernel makes a signal handler return;
/// no call precedes such a return address.
pub(crate) fn is_trampoline(address: u64, layout: &Layout, memory: &mut dyn Memory) -> bool {
    layout.region(address).is_some() && is_signal_trampoline(&memory.bytes(address, LONGEST))
}
