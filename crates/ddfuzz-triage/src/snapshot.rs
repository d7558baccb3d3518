//! The state of a dying process, from which class and keys are computed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Entry;
use crate::fault::Fault;
use crate::messages::ObjectKind;
use crate::registers::Registers;

/// The event at which the state of a process was read: a crash signal, an exit, or an exceeded
/// limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The process stopped because a signal, such as `SIGSEGV`, was about to be delivered to it.
    Signal {
        /// Number of the signal that was about to be delivered, as on Linux.
        number: i32,
        /// The kernel's `si_code` of the signal that was about to be delivered, which tells who
        /// raised it.
        code: i32,
    },
    /// The process stopped because it was about to exit with this status.
    Exit(i32),
    /// The watchdog interrupted the run because it exceeded its time limit.
    OutOfTime,
    /// The watchdog interrupted the run because it exceeded its memory limit, or the process
    /// crashed while it used more memory than the limit.
    OutOfMemory,
}

/// Evidence that a stack frame is real, and not a stale value that was found on the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// The frame is real because it is at the program counter of the thread.
    #[default]
    Pc,
    /// The frame is real because a call instruction precedes its return address.
    Call,
    /// The frame is real because the kernel pushed it when it delivered a signal to the thread.
    Signal,
    /// The frame was inserted after the walk: a caller called its function, which then ended in a
    /// tail call and left no frame.
    Tail,
    /// The frame is a guess: its return address was found in the dead stack below the stack
    /// pointer.
    Scan,
}

/// Why the walk over a thread's stack ended: at the first frame of the thread, or too early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The stack walk was complete: it reached the first frame of the thread.
    Clean,
    /// The stack walk ended at a return address that no call instruction precedes.
    Untrusted,
    /// The stack walk ended because the stack or its unwind information could not be read.
    Unreadable,
    /// The stack walk stopped at its limit: 256 frames; in a hang, 4096.
    Cap,
    /// The stack walk stopped at the first user frame, because the stack below it is destroyed.
    Smashed,
    /// The stack was not walked at all, so that no frames are known.
    #[default]
    None,
}

/// How control flow reached the program counter of a crashed thread: normally, by a call or jump to
/// an invalid address, or by a return on a smashed stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// Control flow reached the program counter normally, without an invalid call, jump or return.
    #[default]
    Sound,
    /// Control flow left the code by a call or jump to an invalid address.
    WildCall,
    /// Control flow left the code when a function returned to an invalid address, because the stack
    /// was overwritten.
    Smashed,
}

/// One stack frame as it was read from the process, without names from symbols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawFrame {
    /// Base name of the program or library that contains the frame's code; `exe` for the main
    /// executable.
    pub module: Arc<str>,
    /// Address of the frame's code as an offset from the load bias of its module, in bytes; for a
    /// caller, that of the return address − 1.
    pub offset: u64,
    /// Start of the function that contains the frame's code, in bytes from the module's load bias;
    /// `None` where it is unknown.
    pub function_start: Option<u64>,
    /// Evidence that the frame is real, and not a stale value that was found on the stack.
    pub trust: Trust,
    /// Whether the frame's code belongs to a runtime (C library, sanitizer, standard library): by
    /// its module, or by its symbol where the runtime is linked into the program.
    pub runtime: bool,
    /// Kind of entry function that the frame's code is in: `main`, or that of a fuzzing harness;
    /// `None` for other functions.
    pub entry: Option<Entry>,
    /// Whether the frame's function only ends the program (`die`, `fatal`), so that its caller
    /// identifies the bug better.
    pub gives_up: bool,
    /// Exported name of the frame's function; set only for runtime frames (C library …) at the top
    /// of the stack.
    pub exported: Option<Arc<str>>,
    /// GNU build id of the frame's module, as hex digits; `None` if it has none.
    pub build_id: Option<Arc<str>>,
    /// Path at which the file of the frame's module can be read; `None` where no path is known.
    pub path: Option<Arc<Path>>,
}

/// The owner of the object that a sanitizer's report is about: the function that declares a
/// variable, or the stack that allocated a heap block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Kind of the object that the sanitizer's report is about: stack variable, heap block or
    /// global variable.
    pub kind: ObjectKind,
    /// For a stack variable, a stack frame of its function; for a heap block, the stack of its
    /// allocation, innermost frame first; empty for a global variable.
    pub frames: Vec<RawFrame>,
    /// Text that identifies the variable: the position of a stack variable in its stack frame, or
    /// name and file of a global variable; empty for a heap block.
    pub variable: String,
    /// Whether the faulty access begins in the object or close to it, so that the object certainly
    /// is the misused one.
    pub near: bool,
}

/// The endless loop in which a hang runs, as addresses in its module (offsets from the load bias).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endless {
    /// Address at which the endless loop is entered, as an offset in its module.
    pub head: u64,
    /// Start addresses of the basic blocks of the endless loop, as offsets in its module,
    /// ascending.
    pub pieces: Vec<u64>,
}

/// The state of a dying process, read when it stopped: registers, faulting access, stack and more.
/// Class and keys of a crash are computed from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The event at which the process was stopped and its state was read: a signal, an exit, or an
    /// exceeded limit.
    pub event: Event,
    /// Registers of the thread that crashed, or that was stopped at an exit or limit.
    pub registers: Registers,
    /// Up to 16 bytes of machine code at the program counter of the crashed thread.
    pub code: Vec<u8>,
    /// The memory access at which the process crashed: address, read or write, what is mapped
    /// there.
    pub fault: Fault,
    /// How control flow reached the program counter: normally, by an invalid call, or by a return
    /// on a smashed stack.
    pub control: Control,
    /// All frames of the crashed thread's stack, innermost first.
    pub frames: Vec<RawFrame>,
    /// Why the walk over the crashed thread's stack ended.
    pub end: End,
    /// Stack slots from each of which a function may have returned to a wrong address, in the order
    /// of the returns; each is given as its address minus the stack pointer at the program's entry
    /// (which counts as 0 in a process forked from the running target). Empty if there was no such
    /// return, or if `frames` has been corrected and names the function.
    pub wrong_returns: Vec<u64>,
    /// Program counters of the code that signals interrupted, as found in signal frames on the
    /// stack.
    pub interrupted: Vec<u64>,
    /// Abort message that was read from the C library's memory; `None` where there is none.
    pub abort_message: Option<String>,
    /// Whether the program is static and stripped, so that its C library cannot be distinguished
    /// from user code.
    pub opaque_runtime: bool,
    /// Whether parts of the state may be missing or wrong: it comes from an incomplete copy, from
    /// the copy of a process that may have survived the signal, or from a process that hides its
    /// memory.
    pub torn: bool,
    /// The owner of the object that a sanitizer's report is about (the function that declares a
    /// variable, or the stack that allocated a heap block); `None` if no report names an object.
    pub owner: Option<Owner>,
    /// For a hang or memory blow-up: the calls inside the call that does not return, innermost
    /// first, at most 32. They differ from run to run.
    pub inside: Vec<RawFrame>,
    /// The endless loop of a hang, in the function of the first frame; `None` where none was found.
    pub endless: Option<Endless>,
    /// Whether the crashed process is one that the program has started, while the program itself
    /// ended without a crash.
    pub of_descendant: bool,
    /// Time that reading this state from the process took.
    pub took: Duration,
}

impl Snapshot {
    /// Creates a snapshot of which only the event is known, without registers and stack frames.
    pub fn bare(event: Event) -> Snapshot {
        Snapshot {
            event,
            registers: Registers::default(),
            code: Vec::new(),
            fault: Fault::default(),
            control: Control::Sound,
            frames: Vec::new(),
            end: End::None,
            wrong_returns: Vec::new(),
            interrupted: Vec::new(),
            abort_message: None,
            opaque_runtime: false,
            torn: false,
            owner: None,
            inside: Vec::new(),
            endless: None,
            of_descendant: false,
            took: Duration::ZERO,
        }
    }

    /// Returns the runtime frames (C library, sanitizer) at the top of the stack, up to the first
    /// user frame, innermost first.
    pub fn runtime_on_top(&self) -> &[RawFrame] {
        let count = self.frames.iter().take_while(|frame| frame.runtime).count();
        &self.frames[..count]
    }

    /// Returns the signal at which the snapshot was taken; `None` for an exit or an exceeded limit.
    pub fn signal(&self) -> Option<i32> {
        match self.event {
            Event::Signal { number, .. } => Some(number),
            Event::Exit(_) | Event::OutOfTime | Event::OutOfMemory => None,
        }
    }
}
