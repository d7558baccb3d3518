//! The formulas that name groups: ours, and those of other fuzzers on the same frames.
//!
//! - **LibAFL** 0.15/0.16 without the feature `casr`, `collect_backtrace` of its
//!   `BacktraceObserver`: the exclusive or of the program counters of all frames but the first,
//!   which is that of the function itself, called in the handler. Our frames have no such frame,
//!   so that none is left out.
//! - **honggfuzz** 2.x, `arch_hashCallstack` of `linux/trace.c`: of the innermost 7 frames the
//!   last three hexadecimal digits of the program counter, hashed by `util_hash` (Jenkins'
//!   one-at-a-time without its end), combined by exclusive or. A crash with a single frame is not
//!   counted as unique but always kept: a group of its own. The instruction, the address and the
//!   program counter that its file names also hold would only make more groups, and are left out.
//! - **ClusterFuzz**: the names of the first three frames that none of its
//!   `STACK_FRAME_IGNORE_REGEXES` matches (those of them that C and Rust programs on Linux can
//!   meet), beside the kind of death. Where a program has no names: the module and the offset,
//!   and then frames of the C library count.
//! - **whole stack**: all frames.
//!
//! Program counters of callers are return addresses there and one less here, which changes no
//! partition but by chance. Addresses are those without randomization, which is the best case of
//! the first.

use ddfuzz::triage::{Crash, Frame};

use crate::runs::Seen;

/// A way to name the group of a crash.
pub struct Formula {
    /// Its name in tables.
    pub name: &'static str,
    /// The group of this crash, which is the so-many-th of its set.
    pub group: fn(&Crash, usize) -> String,
}

/// Our major key.
pub const MAJOR: Formula = Formula {
    name: "ddfuzz major",
    group: |crash, _| crash.keys.major.short(),
};
/// Our minor key.
pub const MINOR: Formula = Formula {
    name: "ddfuzz minor",
    group: |crash, _| crash.keys.minor.short(),
};
/// What our keys could take in of the object that a report of AddressSanitizer is about: nothing;
/// its function; of overflows alone the object itself, near or far. (They take in the object itself
/// whatever is done to it, if that is near.)
pub const OF_OBJECTS: [Formula; 6] = [
    Formula {
        name: "major, nothing",
        group: |crash, _| ours(crash, 1, None),
    },
    Formula {
        name: "major, function",
        group: |crash, _| ours(crash, 1, function(crash)),
    },
    Formula {
        name: "major, overflow",
        group: |crash, _| ours(crash, 1, overflown(crash)),
    },
    Formula {
        name: "minor, nothing",
        group: |crash, _| ours(crash, 2, None),
    },
    Formula {
        name: "minor, function",
        group: |crash, _| ours(crash, 2, function(crash)),
    },
    Formula {
        name: "minor, overflow",
        group: |crash, _| ours(crash, 2, overflown(crash)),
    },
];
/// Those of others.
pub const OTHERS: [Formula; 4] = [
    Formula {
        name: "LibAFL",
        group: |crash, _| libafl(crash),
    },
    Formula {
        name: "honggfuzz",
        group: honggfuzz,
    },
    Formula {
        name: "ClusterFuzz",
        group: |crash, _| clusterfuzz(crash),
    },
    Formula {
        name: "whole stack",
        group: |crash, _| whole_stack(crash),
    },
];

/// The group of an input by a formula. What has no record of a crash is one group.
pub fn group(formula: &Formula, seen: &Seen, at: usize) -> String {
    let group = match &seen.crash {
        Some(crash) => (formula.group)(crash, at),
        None => "no crash".to_owned(),
    };
    // Groups of different programs are different.
    format!("{}/{group}", seen.program)
}

/// Our key of `depth` frames, with this of the object in place of what it takes in.
fn ours(crash: &Crash, depth: usize, of_object: Option<String>) -> String {
    let minor = depth > 1;
    if crash.details.object.is_none() {
        return match minor {
            true => crash.keys.minor.short(),
            false => crash.keys.major.short(),
        };
    }
    let own = crash.frames.iter().filter(|frame| frame.own);
    let own: Vec<_> = own.map(|frame| (&frame.module, frame.offset)).collect();
    let via = crash.details.via.as_deref().filter(|_| minor);
    let frames = &own[..own.len().min(depth)];
    format!("{} {via:?} {frames:?} {of_object:?}", crash.class)
}

fn function(crash: &Crash) -> Option<String> {
    crash.details.object.as_ref()?.function.clone()
}

fn overflown(crash: &Crash) -> Option<String> {
    let object = crash.details.object.as_ref();
    let object = object.filter(|_| crash.class.0.ends_with("flow"))?;
    let (address, variable) = (object.address, &object.variable);
    Some(format!("{:?} {address:?} {variable:?}", object.module))
}

/// Frames that honggfuzz looks at.
const MAJOR_FRAMES: usize = 7;
/// Frames that make up ClusterFuzz's state.
const STATE_FRAMES: usize = 3;

/// The address of a frame in a process without randomization: modules lie wherever they do, at
/// the beginning of a page.
fn address(frame: &Frame) -> u64 {
    let base = match frame.module.as_str() {
        "exe" => 0x5555_5555_4000,
        library => 0x7fff_0000_0000 | jenkins(library.as_bytes()) & 0xffff_f000,
    };
    frame.offset.wrapping_add(base)
}

fn libafl(crash: &Crash) -> String {
    let hash = crash
        .frames
        .iter()
        .fold(0, |hash, frame| hash ^ address(frame));
    format!("{hash:x}")
}

fn honggfuzz(crash: &Crash, at: usize) -> String {
    if crash.frames.len() == 1 {
        return format!("single {at}");
    }
    let hash = crash.frames.iter().take(MAJOR_FRAMES).fold(0, |hash, one| {
        let digits = format!("{:03x}", one.offset & 0xfff);
        hash ^ jenkins(digits.as_bytes())
    });
    format!("{hash:x}")
}

fn jenkins(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0u64, |hash, byte| {
        let hash = hash.wrapping_add(u64::from(*byte));
        let hash = hash.wrapping_add(hash << 10);
        hash ^ (hash >> 6)
    })
}

/// Names that ClusterFuzz passes over: exactly these,
const IGNORED: [&str; 8] = [
    "abort",
    "exit",
    "pthread_create",
    "pthread_kill",
    "raise",
    "tgkill",
    "__chk_fail",
    "__fortify_fail",
];
/// what begins so,
const IGNORED_BEGINNINGS: &[&str] = &[
    "memcmp",
    "__memcmp",
    "memcpy",
    "__memcpy",
    "memmove",
    "__memmove",
    "memset",
    "__memset",
    "strcmp",
    "__strcmp",
    "strcpy",
    "__strcpy",
    "strdup",
    "__strdup",
    "strlen",
    "__strlen",
    "strncpy",
    "__strncpy",
    "LLVMFuzzerTestOneInput",
    "__GI_",
    "__asan",
    "__assert_",
    "__cxa_atexit",
    "__interceptor_",
    "__libc_",
    "__lsan",
    "__pthread_kill",
    "__run_exit_handlers",
    "__rust_try",
    "__rust_start_panic",
    "__sanitizer",
    "__ubsan",
    "_start",
    "abort",
    "alloc::",
    "calloc",
    "core::fmt::write",
    "free",
    "gsignal",
    "main",
    "malloc",
    "realloc",
    "rust_begin_unwind",
    "rust_oom",
    "rust_panic",
    "scanf",
    "std::io::Write::write_fmt",
    "std::panic",
    "std::process::abort",
    "std::sys::unix::abort",
    "std::sys_common::backtrace",
];
/// and what holds this.
const IGNORED_PARTS: [&str; 3] = ["assert", "libpthread", "logger"];

fn is_ignored(name: &str) -> bool {
    IGNORED.contains(&name)
        || IGNORED_BEGINNINGS.iter().any(|one| name.starts_with(one))
        || IGNORED_PARTS.iter().any(|one| name.contains(one))
}

fn clusterfuzz(crash: &Crash) -> String {
    let named = |frame: &Frame| frame.module == "exe" && frame.name.is_some();
    let symbolized = crash.frames.iter().any(named);
    let state = crash.frames.iter().filter_map(|frame| {
        let in_libc = frame.module.starts_with("libc.so") || frame.module.starts_with("libstdc++");
        match frame.inlined.first().or(frame.name.as_ref()) {
            Some(name) => {
                let dropped = is_ignored(name) || symbolized && in_libc;
                (!dropped).then(|| name.clone())
            }
            None => Some(format!("{}+{:#x}", frame.module, frame.offset)),
        }
    });
    let state: Vec<String> = state.take(STATE_FRAMES).collect();
    format!("{:?} {}", crash.details.signal, state.join(" < "))
}

fn whole_stack(crash: &Crash) -> String {
    let mut text = String::new();
    for frame in &crash.frames {
        text += &format!("{}+{:x} ", frame.module, frame.offset);
    }
    format!("{}-{:x}", crash.frames.len(), jenkins(text.as_bytes()))
}
