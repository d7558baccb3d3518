//! How many steps an entry is worth.

/// AFL's own trimming begins with blocks of a sixteenth of the length, ends with those of a 1024th,
/// and deletes no less than four bytes at once (`TRIM_START_STEPS`, `TRIM_END_STEPS` and
/// `TRIM_MIN_BYTES` of its `config.h`).
const FIRST: usize = 16;
const LAST: usize = 1024;
const LEAST: usize = 4;

/// How many times the steps of AFL's own trimming an entry may cost: with as many `subset` trims to
/// fewer bytes already, with twice as many it comes to all that it would with any number.
const TIMES: u32 = 2;
/// What AFL's own trimming leaves alone costs little.
const MINIMUM: u32 = 16;

/// Executions of AFL's own trimming of an entry of `len` bytes of which nothing can go: the most
/// that it ever spends on one. At most about 2000.
pub fn afl_steps(len: usize) -> u32 {
    let rounded = len.next_power_of_two();
    let last = (rounded / LAST).max(LEAST);
    let mut block = (rounded / FIRST).max(LEAST);
    let mut steps = 0;
    while block >= last {
        // It begins behind the first block of the entry, which it never deletes.
        steps += len.div_ceil(block).saturating_sub(1);
        block /= 2;
    }
    u32::try_from(steps).unwrap_or(u32::MAX)
}

/// The steps that an entry of `len` bytes gets where nobody says otherwise.
pub fn default_steps(len: usize) -> u32 {
    afl_steps(len).saturating_mul(TIMES).saturating_add(MINIMUM)
}
