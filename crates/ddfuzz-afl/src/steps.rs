//! How many steps an entry is worth.

/// AFL's own trimming begins with blocks of a sixteenth of the length, ends with those of a 1024th,
/// and deletes no less than four bytes at once (`TRIM_START_STEPS`, `TRIM_END_STEPS` and
/// `TRIM_MIN_BYTES` of its `config.h`).
const FIRST: usize = 16;
const LAST: usize = 1024;
const LEAST: usize = 4;

/// How many times the steps of AFL's own trimming an entry may cost.
const TIMES: u32 = 2;
/// What an entry may cost besides: AFL's own trimming leaves the smallest ones alone.
const BESIDES: u32 = 16;

/// The sizes of the blocks that AFL's own trimming deletes of an entry of `len` bytes, in its order.
pub(crate) fn blocks(len: usize) -> impl Iterator<Item = usize> {
    let rounded = len.next_power_of_two();
    let first = (rounded / FIRST).max(LEAST);
    let last = (rounded / LAST).max(LEAST);
    std::iter::successors(Some(first), |block| Some(block / 2))
        .take_while(move |&block| block >= last)
}

/// Executions of AFL's own trimming of an entry of `len` bytes of which nothing can go: the most
/// that it ever spends on one. At most about 2000.
pub fn afl_steps(len: usize) -> u32 {
    // It begins behind the first block of the entry, which it never deletes.
    let steps: usize = blocks(len)
        .map(|block| len.div_ceil(block).saturating_sub(1))
        .sum();
    u32::try_from(steps).unwrap_or(u32::MAX)
}

/// The steps that an entry of `len` bytes gets where nobody says otherwise: twice those of AFL's own
/// trimming at worst, and a few.
pub fn default_steps(len: usize) -> u32 {
    afl_steps(len).saturating_mul(TIMES).saturating_add(BESIDES)
}
