//! What a comparison leaves in the processor's flags (Intel SDM, volume 2, CMP and volume 1,
//! 3.4.3.1): with that the instruction need not run any more.

use super::operand::mask;

const CARRY: u64 = 1;
const PARITY: u64 = 1 << 2;
const ADJUST: u64 = 1 << 4;
const ZERO: u64 = 1 << 6;
const SIGN: u64 = 1 << 7;
const OVERFLOW: u64 = 1 << 11;
const ALL: u64 = CARRY | PARITY | ADJUST | ZERO | SIGN | OVERFLOW;

/// `flags` after `left` was compared with `right`, two numbers of `width` bytes.
pub(super) fn after_compare(flags: u64, left: u64, right: u64, width: usize) -> u64 {
    let result = left.wrapping_sub(right) & mask(width);
    let top = 1 << (8 * width - 1);
    let set = |flag: u64, holds: bool| if holds { flag } else { 0 };
    (flags & !ALL)
        | set(CARRY, left < right)
        | set(PARITY, (result as u8).count_ones().is_multiple_of(2))
        | set(ADJUST, (left ^ right ^ result) & 0x10 != 0)
        | set(ZERO, result == 0)
        | set(SIGN, result & top != 0)
        | set(OVERFLOW, (left ^ right) & (left ^ result) & top != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::arch::asm;

    /// What this processor says.
    fn compared(left: u64, right: u64, width: usize) -> u64 {
        let flags: u64;
        // SAFETY: the code changes nothing but the register it gives back, the flags, and what
        // lies below the stack pointer's red zone by pushing, which is undone by popping.
        unsafe {
            match width {
                1 => {
                    asm!("cmp {l}, {r}", "pushfq", "pop {f}", l = in(reg_byte) left as u8, r = in(reg_byte) right as u8, f = out(reg) flags)
                }
                2 => {
                    asm!("cmp {l:x}, {r:x}", "pushfq", "pop {f}", l = in(reg) left, r = in(reg) right, f = out(reg) flags)
                }
                4 => {
                    asm!("cmp {l:e}, {r:e}", "pushfq", "pop {f}", l = in(reg) left, r = in(reg) right, f = out(reg) flags)
                }
                _ => {
                    asm!("cmp {l}, {r}", "pushfq", "pop {f}", l = in(reg) left, r = in(reg) right, f = out(reg) flags)
                }
            }
        }
        flags & ALL
    }

    #[test]
    fn the_flags_are_those_of_the_processor() {
        let edges = [0, 1, 2, 0xf, 0x10, 0x7f, 0x80, 0xff];
        let mut values: Vec<u64> = edges.to_vec();
        for shift in [8, 24, 56] {
            values.extend(edges.map(|edge: u64| edge << shift));
            values.extend(edges.map(|edge: u64| (edge << shift).wrapping_sub(1)));
        }
        for width in [1, 2, 4, 8] {
            for left in values.iter().map(|value| value & mask(width)) {
                for right in values.iter().map(|value| value & mask(width)) {
                    let ours = after_compare(ALL | 1 << 9, left, right, width);
                    let theirs = compared(left, right, width) | 1 << 9;
                    assert_eq!(ours, theirs, "{left:x} and {right:x}, {width} bytes");
                }
            }
        }
    }
}
