//! One copy, as `struct copy_slot` of `crates/ddfuzz-exec/runtime/copy.h` has it. It is hostile input: the target
//! can write there what it likes.

use std::ops::Range;

use crate::registers::Registers;
use ddfuzz_exec::{Copies, Ended};

/// Where in a slot things stand, in bytes.
const REGISTERS: usize = 64;
const MAPS: usize = 224;
const WINDOWS: usize = 240;
const WINDOW: usize = 24;
const MOST_WINDOWS: u64 = 48;
const HEAD: usize = WINDOWS + 8 + MOST_WINDOWS as usize * WINDOW;
/// The longest map that is read, in bytes.
const LONGEST_MAPS: u64 = 1 << 20;

/// A range of memory and where in the slot it stands.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// The addresses.
    pub(super) range: Range<u64>,
    /// From the slot's beginning, in bytes.
    pub(super) at: u64,
}

/// One copy.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// Where it stands.
    pub(super) index: u64,
    /// Which copy of the run it is, from 1.
    pub(super) number: u64,
    /// Process and thread; 0 where the process died before it could say.
    pub(super) process: i32,
    pub(super) thread: i32,
    pub(super) signal: i32,
    pub(super) code: i32,
    pub(super) address: u64,
    /// Address of the program's entry point.
    pub(super) entry: u64,
    /// Device and inode of the program.
    pub(super) executable: (u64, u64),
    /// The signal that the process dies of, where that is certain.
    pub(super) deadly: Option<i32>,
    /// Whether all was copied.
    pub(super) whole: bool,
    pub(super) registers: Registers,
    /// The text of `/proc/PID/maps`.
    pub(super) maps: Vec<u8>,
    pub(super) windows: Vec<Window>,
}

impl Slot {
    /// The copy in the slot of this index; `None` where there is none.
    pub(super) fn read(copies: &Copies, index: u64) -> Option<Slot> {
        let mut head = [0; HEAD];
        if copies.read(index, 0, &mut head) != HEAD || word(&head, 0) == 0 {
            return None;
        }
        let registers: [u64; 20] = std::array::from_fn(|at| word(&head, REGISTERS + 8 * at));
        let length = word(&head, MAPS + 8).min(LONGEST_MAPS);
        let mut maps = vec![0; usize::try_from(length).unwrap_or(0)];
        let read = copies.read(index, word(&head, MAPS), &mut maps);
        maps.truncate(read);
        let count = word(&head, WINDOWS).min(MOST_WINDOWS) as usize;
        let windows = (0..count).filter_map(|number| {
            let at = WINDOWS + 8 + number * WINDOW;
            let start = word(&head, at);
            let end = start.checked_add(word(&head, at + 8))?;
            Some(Window {
                range: start..end,
                at: word(&head, at + 16),
            })
        });
        Some(Slot {
            index,
            number: word(&head, 0),
            process: half(&head, 8),
            thread: half(&head, 12),
            signal: half(&head, 16),
            code: half(&head, 20),
            address: word(&head, 24),
            entry: word(&head, 32),
            executable: (word(&head, 40), word(&head, 48)),
            deadly: Some(half(&head, 56)).filter(|it| Ended::Signal(*it).is_crash(None)),
            whole: half(&head, 60) != 0,
            registers: Registers::from_copy(&registers),
            maps,
            windows: windows.collect(),
        })
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

fn half(bytes: &[u8], at: usize) -> i32 {
    i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
