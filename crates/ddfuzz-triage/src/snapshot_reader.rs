//! Reads the snapshot of a stopped thread, or of a thread of which a dying process left a copy:
//! registers, faulting access, and stack, also where a wild call or a smashed stack led control
//! flow out of the code.

use std::time::Instant;

use nix::unistd::Pid;

use crate::called_functions::{
    exported_names, is_at_exit, mark_giving_up, may_give_up, recover_tail_call,
};
use crate::fault::{Access, Address, AddressClass, Fault, address_class, is_canonical};
use crate::instruction::{
    LONGEST, MemoryAccess, accesses, goes_nowhere, is_return, jumps_by_pointer, popped_return,
    pushed_return,
};
use crate::memory::{Maps, Memory, ProcessMemory};
use crate::modules::{Layout, ModuleCache, Region, Source};
use crate::registers::Registers;
use crate::runtime_modules::calls_entry;
use crate::snapshot::{Control, End, Event, RawFrame, Snapshot, Trust};
use crate::unwind::{Step, Walk, WalkStart, is_return_address, walk};

/// The reason why a traced thread stopped: the event, and the fault address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cause {
    /// The event at which the thread stopped: a signal, an exit or an exceeded limit.
    pub event: Event,
    /// Address of the faulting memory access; `None` where the kernel reports none: for a signal
    /// that was sent, and for an access to a non-canonical address.
    pub address: Option<u64>,
}

/// The signal code (`si_code`) of a signal that the kernel raised without telling an address.
pub(crate) const SI_KERNEL: i32 = 0x80;

/// Checks whether the address (`si_addr`) that comes with a signal is a fault address: true if the
/// processor raised the signal, and nobody sent it.
pub(crate) fn has_address(signal: i32, code: i32) -> bool {
    let faults = matches!(
        signal,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP
    );
    faults && code > 0 && code != SI_KERNEL
}

/// A stopped thread whose snapshot is to be read, of a live process or of one that left a copy of
/// itself: its registers, its memory map, and where to read its modules.
pub(crate) struct Stopped<'a> {
    /// Registers of the stopped thread.
    pub registers: Registers,
    /// Memory map of the process to which the stopped thread belongs.
    pub maps: &'a Maps,
    /// The process to which the stopped thread belongs, and from which its modules are read.
    pub source: &'a Source,
}

/// Reads the snapshot of the stopped thread `tid`: registers, faulting access, stack and more.
/// `cause` is the event that stopped it.
pub(crate) fn read(tid: Pid, cause: Cause, cache: &mut ModuleCache) -> Snapshot {
    match Registers::of(tid) {
        Ok(registers) => read_with(tid, registers, cause, cache),
        Err(_) => Snapshot::bare(cause.event),
    }
}

/// Reads the snapshot of the code that a signal has interrupted, from the thread `tid`, which is
/// stopped in the target's handler of that signal. `cause`: the signal; `registers`: those of the
/// interrupted code, kept since the signal.
pub(crate) fn read_at(
    tid: Pid,
    registers: &Registers,
    cause: Cause,
    cache: &mut ModuleCache,
) -> Snapshot {
    let snapshot = read_with(tid, registers.clone(), cause, cache);
    Snapshot {
        // The handler has overwritten what lay below the stack pointer.
        torn: snapshot.torn || snapshot.control == Control::Smashed,
        ..snapshot
    }
}

fn read_with(tid: Pid, registers: Registers, cause: Cause, cache: &mut ModuleCache) -> Snapshot {
    let began = Instant::now();
    let maps = Maps::of(tid);
    let mut memory = ProcessMemory::new(tid, registers.sp);
    let stopped = Stopped {
        registers,
        maps: &maps,
        source: &Source::Live(tid),
    };
    let snapshot = interpret(cause, stopped, &mut memory, cache);
    Snapshot {
        took: began.elapsed(),
        ..snapshot
    }
}

/// Builds the snapshot of a stopped thread (of a live process, or of one that left a copy) from its
/// registers, memory map and `memory`: walks and converts the stack, and finds the faulting access.
pub(crate) fn interpret(
    cause: Cause,
    stopped: Stopped<'_>,
    memory: &mut dyn Memory,
    cache: &mut ModuleCache,
) -> Snapshot {
    let mut snapshot = Snapshot::bare(cause.event);
    let Stopped {
        registers,
        maps,
        source,
    } = stopped;
    if maps.is_empty() {
        // The process does not let itself be read (`PR_SET_DUMPABLE`): there is the header alone.
        let fault = fault(cause, Control::Sound, &registers, &[], maps);
        return Snapshot {
            fault: Fault {
                class: fault.class.filter(|class| *class == AddressClass::Null),
                ..fault
            },
            registers,
            torn: true,
            ..snapshot
        };
    }
    let layout = cache.layout(source, maps, memory);
    snapshot.code = memory.bytes(registers.pc, LONGEST);
    let (control, mut walk) = walk_back(cause, &registers, &snapshot.code, maps, layout, memory);
    snapshot.control = control;
    // Code made at run time lies outside all modules and has no stable name.
    walk.steps
        .retain(|step| layout.region(step.address).is_some());
    snapshot.frames = walk
        .steps
        .iter()
        .filter_map(|step| frame(*step, layout))
        .collect();
    snapshot.end = walk.end;
    snapshot.wrong_returns = wrong_returns(cause, &registers, maps, layout, memory);
    snapshot.interrupted = walk.interrupted;
    let names = exported_names(&walk.steps, &snapshot.frames, layout, memory);
    for (frame, name) in snapshot.frames.iter_mut().zip(names) {
        frame.exported = name;
    }
    snapshot.fault = fault(cause, control, &registers, &snapshot.code, maps);
    snapshot.abort_message = abort_message(cause.event, layout, memory);
    snapshot.opaque_runtime = layout.has_opaque_runtime();
    let frames = &mut snapshot.frames;
    recover_tail_call(frames, &mut walk.steps, control, layout, memory);
    if may_give_up(cause.event) {
        mark_giving_up(frames, &walk.steps, snapshot.opaque_runtime, layout, memory);
    }
    snapshot.registers = registers;
    snapshot
}

/// Returns how control flow reached the program counter of a crashed thread, and the walk over the
/// thread's stack. Normally the walk starts at the program counter. If a call or jump to an invalid
/// address, or a return on a smashed stack, has led out of the code, the walk starts at the frame
/// of the caller, or of the function whose stack frame was overwritten.
fn walk_back(
    cause: Cause,
    registers: &Registers,
    code: &[u8],
    maps: &Maps,
    layout: &mut Layout,
    memory: &mut dyn Memory,
) -> (Control, Walk) {
    let here = WalkStart::registers(registers);
    let Event::Signal { number, code: 1.. } = cause.event else {
        return (Control::Sound, walk(here, layout, memory));
    };
    if returned_astray(registers, layout, memory) {
        return (
            Control::Smashed,
            walk_from_victim(registers, layout, memory),
        );
    }
    if !matches!(number, libc::SIGSEGV | libc::SIGBUS) {
        return (Control::Sound, walk(here, layout, memory));
    }
    if !maps.is_executable(registers.pc) {
        return walk_from_nowhere(registers, layout, memory);
    }
    let control = if is_return(code) {
        Control::Smashed
    } else if goes_nowhere(code, registers, memory) {
        // A function that ends by a jump through a pointer (a tail call) has left no frame, whether
        // the processor faults at the target of the jump or on the jump itself. The walk therefore
        // begins at the caller.
        let from = jumps_by_pointer(code)
            .then(|| caller(registers, layout, memory))
            .flatten();
        return (
            Control::WildCall,
            walk(from.unwrap_or(here), layout, memory),
        );
    } else {
        Control::Sound
    };
    (control, walk(here, layout, memory))
}

/// Walks the stack of a crashed thread whose program counter is not in code. Returns whether a call
/// to an invalid address led there, or a return on a smashed stack, and the walk.
fn walk_from_nowhere(
    registers: &Registers,
    layout: &mut Layout,
    memory: &mut dyn Memory,
) -> (Control, Walk) {
    let calls = caller(registers, layout, memory).map(|caller| walk(caller, layout, memory));
    match calls {
        // If the return address on the stack is that of the entry function, the entry function has
        // returned to a wrong address, and nothing has been called.
        Some(walk) if !is_behind_entry(&walk, layout) => return (Control::WildCall, walk),
        _ => {}
    }
    let walk = walk_from_victim(registers, layout, memory);
    match walk.steps.is_empty() {
        false => (Control::Smashed, walk),
        true => (Control::WildCall, walk),
    }
}

/// Returns the walk of a smashed stack, which has one frame at most: that of the function which
/// returned to an invalid address ([`victim`]).
fn walk_from_victim(registers: &Registers, layout: &Layout, memory: &mut dyn Memory) -> Walk {
    let found = victim(registers, layout, memory).map(|found| Step {
        address: found - 1,
        trust: Trust::Scan,
    });
    Walk {
        end: match found {
            Some(_) => End::Smashed,
            None => End::Untrusted,
        },
        steps: found.into_iter().collect(),
        ..Walk::default()
    }
}

/// Returns true if the first thread's stack has only runtime frames, and the outermost one is in
/// the program's file, while the program is not at its end (`exit`). Then the target's entry
/// function (`main` or that of a harness) has already returned.
fn is_behind_entry(walk: &Walk, layout: &Layout) -> bool {
    let frames = || walk.steps.iter().map(|step| frame(*step, layout));
    let starts = frames()
        .next_back()
        .flatten()
        .is_some_and(|last| last.runtime && &*last.module == "exe");
    starts
        && walk.end == End::Clean
        && frames().all(|frame| frame.is_some_and(|frame| frame.runtime))
        && !is_at_exit(&walk.steps, layout)
}

/// Distance in bytes at which a return to a wrong address in the target's code is no longer
/// recognized: the crash that followed must lie less than this behind the wrong address.
const ASTRAY: u64 = 64;

/// Returns true if a function has just returned to a wrong address, most likely because a part of
/// its return address was overwritten. The return address, which still lies just below the stack
/// pointer, must meet four conditions. It is in the code of the target, or in that of ddfuzz that
/// calls the target's entry function. It is in a function, but not at its beginning. It follows no
/// call instruction. The program counter is in the same function, at this address or less than
/// [`ASTRAY`] bytes after it.
fn returned_astray(registers: &Registers, layout: &Layout, memory: &mut dyn Memory) -> bool {
    let Some(address) = popped_return(registers, memory) else {
        return false;
    };
    let Some(region) = layout.region(address) else {
        return false;
    };
    let function = |at: u64| region.module.function_start(at.wrapping_sub(region.bias));
    let start = function(address);
    registers.pc.wrapping_sub(address) < ASTRAY
        && (!region.is_runtime(address) || calls_entry(&region.name))
        && region.range.contains(&registers.pc)
        && start.is_some_and(|start| start != address.wrapping_sub(region.bias))
        && start == function(registers.pc)
        && !is_return_address(address, layout, memory)
}

/// Limit of the distance in bytes from a wrong return address up to the program counter of the
/// crash, if the program counter is in no function: only below this limit, the return is
/// recognized. The distance is not 0 because zeros behind a program's last function are executed as
/// instructions.
const PADDING: u64 = 4096;

/// Number of words that are searched below the slot of the last wrong return for the slot of a
/// wrong return before it.
const EARLIER: u64 = 3;

/// Returns the addresses of the stack slots from which functions have probably returned to a wrong
/// address just before the crash, in the order of the returns; empty if there was no such return
/// ([`is_wrong_return`]). The slot of the last return is the word just below the stack pointer. A
/// slot of an earlier return, which led to code that made the last one, comes before it: the
/// nearest of the [`EARLIER`] words below with an address in the target's code that no call
/// instruction precedes.
fn wrong_returns(
    cause: Cause,
    registers: &Registers,
    maps: &Maps,
    layout: &Layout,
    memory: &mut dyn Memory,
) -> Vec<u64> {
    let slot = registers.sp.wrapping_sub(8);
    if !is_wrong_return(cause, registers, maps, layout, memory) {
        return Vec::new();
    }
    let mut earlier = (1..=EARLIER).map(|words| slot.wrapping_sub(words * 8));
    let earlier = earlier.find(|slot| {
        memory.word(*slot).is_some_and(|address| {
            let region = layout.region(address);
            region.is_some_and(|region| !region.is_runtime(address))
                && !is_return_address(address, layout, memory)
        })
    });
    earlier.into_iter().chain([slot]).collect()
}

/// Checks whether the crash that `cause` describes came right after a function returned to a wrong
/// address.
fn is_wrong_return(
    cause: Cause,
    registers: &Registers,
    maps: &Maps,
    layout: &Layout,
    memory: &mut dyn Memory,
) -> bool {
    let Event::Signal { code: 1.., .. } = cause.event else {
        return false;
    };
    let Some(address) = popped_return(registers, memory) else {
        return false;
    };
    match maps.is_executable(registers.pc) {
        false => address == registers.pc,
        true => {
            is_in_padding(registers.pc, address, layout)
                && !is_return_address(address, layout, memory)
                || returned_astray(registers, layout, memory)
        }
    }
}

/// Checks whether `pc` is in a module but in none of its functions, such as in the zeros behind the
/// last function, and less than [`PADDING`] bytes above `address`, which is in the same mapped
/// region.
fn is_in_padding(pc: u64, address: u64, layout: &Layout) -> bool {
    layout.region(pc).is_some_and(|region| {
        let in_function = region.module.function_start(pc.wrapping_sub(region.bias));
        region.range.contains(&address)
            && in_function.is_none()
            && pc.wrapping_sub(address) < PADDING
    })
}

/// Converts an address that a stack walk found to a stack frame with module and function; `None` if
/// the address is in no module.
pub(crate) fn frame(step: Step, layout: &Layout) -> Option<RawFrame> {
    let region: &Region = layout.region(step.address)?;
    let module = &region.module;
    let offset = step.address.wrapping_sub(region.bias);
    let function_start = module.function_start(offset);
    let starts =
        step.trust == Trust::Call && function_start.is_some_and(|it| module.start == Some(it));
    Some(RawFrame {
        module: region.name.clone(),
        offset,
        function_start,
        trust: step.trust,
        runtime: starts || region.is_runtime(step.address),
        entry: function_start.and_then(|start| module.entry(start)),
        gives_up: false,
        exported: None,
        build_id: module.build_id.clone(),
        path: region.path.clone(),
    })
}

fn fault(cause: Cause, control: Control, registers: &Registers, code: &[u8], maps: &Maps) -> Fault {
    let Event::Signal {
        number: libc::SIGSEGV | libc::SIGBUS,
        code: origin,
    } = cause.event
    else {
        let address = cause.address.map(Address);
        return Fault {
            address,
            ..Fault::default()
        };
    };
    if origin <= 0 {
        return Fault::default();
    }
    let touched = accesses(code, registers);
    if origin == SI_KERNEL {
        return fault_without_address(control, &touched);
    }
    let Some(address) = cause.address else {
        return Fault::default();
    };
    let access = if address == registers.pc {
        Some(Access::Execute)
    } else {
        access_to(address, &touched)
    };
    let class = address_class(address, registers.sp, maps);
    Fault {
        address: Some(Address(address)),
        class: Some(class),
        access,
    }
}

/// Returns the faulting memory access of a crash for which the kernel tells no address. `touched`:
/// the memory accesses of the instruction. After a call or return to an invalid address, the access
/// is the fetch of code at that address; otherwise it is the first one in `touched` to a
/// non-canonical address. If there is none, as for a misaligned access, all parts of the result are
/// unknown.
fn fault_without_address(control: Control, touched: &[MemoryAccess]) -> Fault {
    let invalid = |address: Option<u64>, access| Fault {
        address: address.map(Address),
        class: Some(AddressClass::NonCanonical),
        access: Some(access),
    };
    if control != Control::Sound {
        return invalid(None, Access::Execute);
    }
    let found = touched.iter().find(|it| !is_canonical(it.address));
    found.map_or_else(Fault::default, |it| invalid(Some(it.address), it.access))
}

/// Returns whether the access to `address` was a read or a write. `touched` are the memory accesses
/// of the instruction: the one that includes the address decides; if none does, but there is only
/// one access, that one. Otherwise returns `None`.
fn access_to(address: u64, touched: &[MemoryAccess]) -> Option<Access> {
    let holds = |it: &&MemoryAccess| address.wrapping_sub(it.address) < it.size.max(1);
    match (touched.iter().find(holds), touched) {
        (Some(exact), _) => Some(exact.access),
        (None, [single]) => Some(single.access),
        _ => None,
    }
}

/// Maximum length in bytes of the abort message that is read from the C library's memory.
const LONGEST_MESSAGE: usize = 1024;

/// Reads glibc's abort message from the memory of an aborted process (`__abort_msg` points to a
/// length and a text); `None` if the process did not abort or there is no message.
fn abort_message(event: Event, layout: &Layout, memory: &mut dyn Memory) -> Option<String> {
    let Event::Signal {
        number: libc::SIGABRT,
        ..
    } = event
    else {
        return None;
    };
    let mut regions = layout.regions().iter();
    let pointer = regions.find_map(|it| Some(it.module.abort_message?.wrapping_add(it.bias)))?;
    let message = memory.word(pointer).filter(|message| *message != 0)?;
    let bytes = memory.bytes(message.checked_add(4)?, LONGEST_MESSAGE);
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Some(String::from_utf8_lossy(text).trim_end().to_owned())
}

/// Returns true if the stop `later` of a thread is only a consequence of its stop `earlier`. There
/// are two cases. Either the thread is in the handler of the earlier signal. Or it is at the same
/// instruction as before, with a signal that was sent or that the kernel raised: the handler has
/// sent the signal and returned, or the kernel could not deliver the first signal (no stack left)
/// and kills the process.
pub(crate) fn is_aftermath(earlier: &Snapshot, later: &Snapshot) -> bool {
    let in_handler = later.interrupted.contains(&earlier.registers.pc);
    let again = earlier.registers.pc == later.registers.pc
        && earlier.registers.sp == later.registers.sp
        && matches!(later.event, Event::Signal { code, .. } if code <= 0 || code == SI_KERNEL);
    in_handler || again
}

/// Returns the caller's frame, at which a stack walk starts if the program counter is not in code:
/// that of the return address at the top of the stack; `None` if there is no return address.
pub(crate) fn caller(
    registers: &Registers,
    layout: &Layout,
    memory: &mut dyn Memory,
) -> Option<WalkStart> {
    let (address, sp) = pushed_return(registers, memory)?;
    is_return_address(address, layout, memory).then_some(WalkStart {
        address,
        trust: Trust::Call,
        sp,
        fp: registers.fp,
        lr: 0,
    })
}

/// Number of bytes below the stack pointer of a smashed stack that are searched for return
/// addresses.
const DEAD_STACK: u64 = 64 << 10;

/// Returns the first return address into user code below the stack pointer of a smashed stack;
/// `None` if there is none. It stayed there after the last call made by the function that then
/// returned to an invalid address. So it lies in the function whose stack frame was overwritten.
pub(crate) fn victim(
    registers: &Registers,
    layout: &Layout,
    memory: &mut dyn Memory,
) -> Option<u64> {
    let top = registers.sp & !7;
    (1..=DEAD_STACK / 8).find_map(|words| {
        let address = memory.word(top.checked_sub(words * 8)?)?;
        let own = layout
            .region(address)
            .is_some_and(|region| !region.is_runtime(address - 1));
        (own && is_return_address(address, layout, memory)).then_some(address)
    })
}
