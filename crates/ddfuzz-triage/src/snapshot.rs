//! The state of a dying process, from which class and keys are computed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Entry;
use crate::fault::Fault;
use crate::messages::ObjectKind;
use crate::registers::Registers;

/// The signal, exit or exceeded limit that stopped a process for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A signal was about to be delivered.
    Signal {
        /// Linux signal number.
        number: i32,
        /// Source of the signal (`si_code`).
        code: i32,
    },
    /// The process was about to exit with this status.
    Exit(i32),
    /// The watchdog interrupted the run because its time was over.
    OutOfTime,
    /// The watchdog interrupted the run because it exceeded its memory limit, or the process
    /// crashed while it used more memory than that.
    OutOfMemory,
}

/// Evidence that a frame is real and not a stale value on the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// The frame is at the thread's program counter.
    #[default]
    Pc,
    /// A call instruction precedes the frame's return address.
    Call,
    /// The kernel pushed the frame when it delivered a signal.
    Signal,
    /// A caller called the function, which then ended in a tail call.
    Tail,
    /// The frame's return address was found in the dead stack below the stack pointer.
    Scan,
}

/// Why the stack walk ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The walk reached the first frame of the thread.
    Clean,
    /// The next return address does not follow a call.
    Untrusted,
    /// The stack or its unwind information could not be read.
    Unreadable,
    /// The walk stopped after 256 frames; in a hang, after 4096.
    Cap,
    /// The stack below the first user frame is destroyed.
    Smashed,
    /// The stack was not walked.
    #[default]
    None,
}

/// How control came to the program counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// Control flow is normal.
    #[default]
    Sound,
    /// A call or jump went to an invalid address.
    WildCall,
    /// A return went to an invalid address: the stack was overwritten.
    Smashed,
}

/// One frame as it was read from the process, without symbols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawFrame {
    /// Base name of the program or library that contains the code; `exe` for the main executable.
    pub module: Arc<str>,
    /// Offset of the code from the module's load bias, in bytes; for a caller, of the return
    /// address − 1.
    pub offset: u64,
    /// Start of the function that contains the code, in bytes from the module's load bias; `None`
    /// where it is unknown.
    pub function_start: Option<u64>,
    /// Evidence that the frame is real and not a stale value on the stack.
    pub trust: Trust,
    /// Whether the code belongs to a runtime (C library, sanitizer, standard library), by its
    /// module, or by its symbol where the runtime is linked into the program.
    pub runtime: bool,
    /// Kind of entry function that the code is in: `main`, or that of a fuzzing harness; `None` for
    /// other functions.
    pub entry: Option<Entry>,
    /// Whether the function only ends the program (`die`, `fatal`).
    pub gives_up: bool,
    /// Exported name of the function; set only for runtime frames (C library …) at the top of the
    /// stack.
    pub exported: Option<Arc<str>>,
    /// GNU build id of the module, as hex digits; `None` if it has none.
    pub build_id: Option<Arc<str>>,
    /// Path at which the module's file can be read; `None` where no path is known.
    pub path: Option<Arc<Path>>,
}

/// What the object in a sanitizer's report belongs to: the function of a variable, or the stack
/// that allocated a heap block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Whether the object is a stack variable, a heap block or a global variable.
    pub kind: ObjectKind,
    /// For a stack variable, a frame of its function; for a heap block, the stack of its
    /// allocation, innermost first; empty for a global variable.
    pub frames: Vec<RawFrame>,
    /// Text that identifies the variable: its position in the stack frame, or name and file of a
    /// global variable; empty for a heap block.
    pub variable: String,
    /// Whether the access begins in the object or close to it, so that the object certainly is the
    /// misused one.
    pub near: bool,
}

/// The endless loop of a hang. Its addresses are offsets in the module of the function that
/// contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endless {
    /// Address at which the loop is entered, as an offset in its module.
    pub head: u64,
    /// Start addresses of the loop's basic blocks, as offsets in its module, ascending.
    pub pieces: Vec<u64>,
}

/// State of a dying process, read when it stopped: registers, fault, stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The signal, exit or exceeded limit that stopped the process.
    pub event: Event,
    /// Registers of the stopped thread.
    pub registers: Registers,
    /// Up to 16 bytes of code at the program counter.
    pub code: Vec<u8>,
    /// The memory access that faulted: address, kind, what is mapped there.
    pub fault: Fault,
    /// How control came to the program counter.
    pub control: Control,
    /// All frames of the stack, innermost first.
    pub frames: Vec<RawFrame>,
    /// Why the stack walk ended.
    pub end: End,
    /// Program counters of code that signals interrupted, as found on the stack.
    pub interrupted: Vec<u64>,
    /// Abort message that was read from the C library's memory; `None` where there is none.
    pub abort_message: Option<String>,
    /// Whether the program is static and stripped, so that its C library cannot be distinguished
    /// from user code.
    pub opaque_runtime: bool,
    /// Whether the snapshot comes from an incomplete copy, from the copy of a process that may have
    /// survived the signal, or from a process that hides its memory.
    pub torn: bool,
    /// What the object in a sanitizer's report belongs to (function or allocation); `None` without
    /// one.
    pub owner: Option<Owner>,
    /// For a hang or memory blow-up: the calls inside the one that does not return, innermost
    /// first, at most 32. They differ from run to run.
    pub inside: Vec<RawFrame>,
    /// Endless loop of a hang, in the function of the first frame; `None` where none was found.
    pub endless: Option<Endless>,
    /// Time that reading the snapshot took.
    pub took: Duration,
}

impl Snapshot {
    /// Creates a snapshot that contains only the event, without registers and frames.
    pub fn bare(event: Event) -> Snapshot {
        Snapshot {
            event,
            registers: Registers::default(),
            code: Vec::new(),
            fault: Fault::default(),
            control: Control::Sound,
            frames: Vec::new(),
            end: End::None,
            interrupted: Vec::new(),
            abort_message: None,
            opaque_runtime: false,
            torn: false,
            owner: None,
            inside: Vec::new(),
            endless: None,
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
