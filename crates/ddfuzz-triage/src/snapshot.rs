//! What was read off a dying process: all that keys are computed from.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Entry;
use super::fault::Fault;
use super::registers::Registers;
use super::said::ObjectKind;

/// What stopped the process for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A signal was about to be delivered.
    Signal {
        /// The Linux signal number.
        number: i32,
        /// Where the signal came from (`si_code`).
        code: i32,
    },
    /// It was about to exit with this status.
    Exit(i32),
    /// It was interrupted because its time was up.
    OutOfTime,
    /// It was interrupted because it used more memory than it may.
    OutOfMemory,
}

/// Why a frame is believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// It is where the thread stood.
    #[default]
    Pc,
    /// A call stands before its return address.
    Call,
    /// The kernel put it there when it delivered a signal.
    Signal,
    /// Its caller has called it, and it has made a call in the place of its return.
    Tail,
    /// Its return address was found in the dead stack below the stack pointer.
    Scan,
}

/// Why the walk of the stack ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// It came to the first frame of the thread.
    Clean,
    /// The next return address is not one.
    Untrusted,
    /// The stack could not be read on.
    Unreadable,
    /// 256 frames were read.
    Cap,
    /// The stack below the first own frame is destroyed.
    Smashed,
    /// The stack was not read.
    #[default]
    None,
}

/// How control came to where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// As programs do.
    #[default]
    Sound,
    /// By a call or jump to something that is no code.
    WildCall,
    /// By a return to something that is no code.
    Smashed,
}

/// One frame as it was read off the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawFrame {
    /// Base name of the module's mapping; `exe` for the main executable.
    pub module: Arc<str>,
    /// Offset from the module's load bias, in bytes; of a caller, that of its return address − 1.
    pub offset: u64,
    /// Start of the function that covers it, same origin as `offset`.
    pub function_start: Option<u64>,
    /// Why it is believed.
    pub trust: Trust,
    /// Whether it is the runtime's: by its module, or by its symbol where the runtime is linked
    /// in.
    pub runtime: bool,
    /// Which entry function it is in.
    pub entry: Option<Entry>,
    /// Whether it only stands between the place that gives up and the abort (`die`, `fatal`).
    pub gives_up: bool,
    /// Exported name; looked up for the runtime frames on top only.
    pub exported: Option<Arc<str>>,
    /// The module's GNU build id, as hex digits.
    pub build_id: Option<Arc<str>>,
    /// Where the module's file can be read.
    pub path: Option<Arc<Path>>,
}

/// Whose the object is that a sanitizer's report is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// What kind of object.
    pub kind: ObjectKind,
    /// Of a variable a frame of its function; of a block of the heap the calls that allocated it,
    /// innermost first.
    pub frames: Vec<RawFrame>,
    /// What tells variables apart: of one in a frame where it begins there, of a global one its
    /// name and file.
    pub variable: String,
    /// Whether the access begins in the object or close to it, so that it is surely this one that
    /// is used wrongly.
    pub near: bool,
}

/// A loop that is not left, by offsets in the module of its function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endless {
    /// Where it is entered.
    pub head: u64,
    /// Where straight pieces of its code begin, ascending.
    pub pieces: Vec<u64>,
}

/// What was read off a dying process.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// What stopped it.
    pub event: Event,
    /// The registers of the thread.
    pub registers: Registers,
    /// Up to 16 bytes of code from the program counter on.
    pub code: Vec<u8>,
    /// The access that faulted.
    pub fault: Fault,
    /// How control came to where it stands.
    pub control: Control,
    /// All frames, innermost first.
    pub frames: Vec<RawFrame>,
    /// Why there are no more.
    pub end: End,
    /// Program counters that signals interrupted, as the stack tells.
    pub interrupted: Vec<u64>,
    /// What the C library says it aborts for.
    pub abort_message: Option<String>,
    /// Whether the program is static and stripped, so that its runtime cannot be told from it.
    pub opaque_runtime: bool,
    /// Whether it was read off a copy that is not whole, or a process that hides its memory.
    pub torn: bool,
    /// Whose object a sanitizer's report is about.
    pub owner: Option<Owner>,
    /// Of a run that was cut off the calls inside the one that names it, innermost first, as they
    /// were under way just then: they come and go.
    pub inside: Vec<RawFrame>,
    /// The loop that is not left, of the function of the first frame.
    pub endless: Option<Endless>,
    /// How long the reading took.
    pub took: Duration,
}

impl Snapshot {
    /// A snapshot of which nothing but the event is known.
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

    /// The runtime frames on top of the first own frame.
    pub fn runtime_on_top(&self) -> &[RawFrame] {
        let count = self.frames.iter().take_while(|frame| frame.runtime).count();
        &self.frames[..count]
    }

    /// The signal, if it is one that stopped it.
    pub fn signal(&self) -> Option<i32> {
        match self.event {
            Event::Signal { number, .. } => Some(number),
            Event::Exit(_) | Event::OutOfTime | Event::OutOfMemory => None,
        }
    }
}
