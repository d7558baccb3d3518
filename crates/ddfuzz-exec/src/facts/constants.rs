//! Finds the constants that a program's code compares with, and the addresses that it refers to.

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use std::collections::BTreeSet;

use crate::facts::words::{Ranges, within};
use crate::observe::image::Image;

/// Maximum number of bytes of a program's code that are read for constants. A function whose code
/// would exceed this number is left out.
const MOST_CODE: u64 = 32 << 20;
/// Maximum number of constants that are collected from a program; each is listed in two byte
/// orders.
const MOST_CONSTANTS: usize = 512;
const MOST_REFERENCES: usize = 1 << 20;

/// Constants that a program's code compares with, and addresses of texts in read-only data that the
/// code refers to.
#[derive(Debug, Default)]
pub(super) struct CodeWords {
    /// Addresses in the program's read-only data that the code refers to.
    pub(super) references: BTreeSet<u64>,
    /// Constants of 2, 4 and 8 bytes, in the order of the code, in both byte orders.
    pub(super) constants: Vec<Vec<u8>>,
}

impl CodeWords {
    /// Reads the code of the program `image` for constants and references: all functions except
    /// those of runtimes (such as sanitizers), or all code if no functions are known. `texts`: the
    /// address ranges of the program's read-only data.
    pub(super) fn of(image: &Image, texts: &Ranges) -> CodeWords {
        let loaded = image.segments.iter();
        let loaded = loaded.map(|segment| {
            let length = segment.bytes.len() as u64;
            (segment.address, segment.address.saturating_add(length))
        });
        let mut loaded: Ranges = loaded.collect();
        loaded.sort_unstable();
        let mut reader = CodeReader {
            texts,
            loaded,
            seen: BTreeSet::new(),
            read: CodeWords::default(),
        };
        let mut functions: Ranges = image.functions.iter().collect();
        if functions.is_empty() {
            let code = image.segments.iter().filter(|segment| segment.executable);
            functions.extend(code.map(|segment| {
                (
                    segment.address,
                    segment.address.saturating_add(segment.bytes.len() as u64),
                )
            }));
        }
        let mut room = MOST_CODE;
        for (start, end) in functions {
            let length = end.saturating_sub(start);
            let bytes = usize::try_from(length)
                .ok()
                .and_then(|length| image.at(start, length));
            if let (true, Some(bytes)) = (length <= room, bytes) {
                room -= length;
                reader.function(start, bytes);
            }
        }
        reader.read
    }
}

struct CodeReader<'a> {
    texts: &'a Ranges,
    /// Address ranges of the program's loaded segments, sorted. A constant inside of them is taken
    /// as an address.
    loaded: Ranges,
    seen: BTreeSet<(u64, usize)>,
    read: CodeWords,
}

impl CodeReader<'_> {
    fn function(&mut self, start: u64, bytes: &[u8]) {
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            self.refer(&instruction);
            if let Some((value, width)) = compared(&instruction) {
                self.constant(value, width);
            }
        }
    }

    /// Adds the addresses in the program's read-only data that an instruction refers to: relative
    /// to its own address, or as absolute addresses if the program is loaded at fixed ones.
    fn refer(&mut self, instruction: &Instruction) {
        if instruction.is_ip_rel_memory_operand() {
            self.reference(instruction.ip_rel_memory_address());
        }
        for operand in 0..instruction.op_count() {
            match instruction.op_kind(operand) {
                OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64 => {
                    self.reference(instruction.immediate(operand));
                }
                OpKind::Memory => self.reference(instruction.memory_displacement64()),
                _ => {}
            }
        }
    }

    fn reference(&mut self, address: u64) {
        if within(self.texts, address) && self.read.references.len() < MOST_REFERENCES {
            self.read.references.insert(address);
        }
    }

    fn constant(&mut self, value: u64, width: usize) {
        let little = &value.to_le_bytes()[..width];
        let many = self.seen.len() >= MOST_CONSTANTS;
        if many
            || !is_significant(little)
            || within(&self.loaded, value)
            || !self.seen.insert((value, width))
        {
            return;
        }
        let big: Vec<u8> = little.iter().rev().copied().collect();
        self.read.constants.extend([little.to_vec(), big]);
    }
}

/// Returns the constant that an instruction compares with, and its width in bytes; `None` for other
/// instructions. An instruction that prepares a comparison also counts: the subtraction of the
/// first case of a `switch`, and a load of an eight-byte constant, which no compare instruction can
/// have as an operand.
fn compared(instruction: &Instruction) -> Option<(u64, usize)> {
    let last = instruction.op_count().checked_sub(1)?;
    let kind = instruction.op_kind(last);
    let value = match instruction.mnemonic() {
        Mnemonic::Lea => return first_case(instruction),
        Mnemonic::Mov if kind == OpKind::Immediate64 => {
            return Some((instruction.immediate(last), 8));
        }
        Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Sub | Mnemonic::Xor => match kind {
            OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate32to64 => instruction.immediate(last),
            _ => return None,
        },
        // The compiler subtracts a large number by adding its complement.
        Mnemonic::Add if matches!(kind, OpKind::Immediate32 | OpKind::Immediate32to64) => {
            instruction.immediate(last).wrapping_neg()
        }
        _ => return None,
    };
    let width = match instruction.op0_kind() {
        OpKind::Register if is_stack(instruction.op0_register()) => return None,
        OpKind::Register => instruction.op0_register().size(),
        _ => instruction.memory_size().size(),
    };
    // A value that fits into four bytes is used as a four-byte word.
    let narrow = width == 8 && value <= u64::from(u32::MAX);
    let width = if narrow { 4 } else { width };
    matches!(width, 2 | 4 | 8).then(|| (value & (u64::MAX >> (64 - 8 * width)), width))
}

fn first_case(instruction: &Instruction) -> Option<(u64, usize)> {
    let base = instruction.memory_base();
    let alone = instruction.memory_index() == Register::None && base.is_gpr();
    let distance = instruction.memory_displacement64().cast_signed();
    let first = u32::try_from(distance.checked_neg()?).ok()?;
    (alone && !is_stack(base)).then_some((u64::from(first), 4))
}

fn is_stack(register: Register) -> bool {
    matches!(register.full_register(), Register::RSP | Register::RBP)
}

/// Returns true if the constant `bytes` may be a word that a program looks for, not a small number,
/// size, mask or divisor. Only byte values other than 0 and 255 count: at least two of them, and at
/// least half as many as there are bytes, must be different. A constant of four bytes must have
/// three such bytes, or two that are letters or digits.
fn is_significant(bytes: &[u8]) -> bool {
    let mut telling: Vec<u8> = bytes.to_vec();
    telling.retain(|byte| !matches!(byte, 0 | 0xff));
    let letters = telling.iter().filter(|byte| byte.is_ascii_alphanumeric());
    let few = bytes.len() == 4 && telling.len() < 3 && letters.count() < 2;
    telling.sort_unstable();
    telling.dedup();
    !few && telling.len() >= (bytes.len() / 2).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &[u8]) -> Option<(u64, usize)> {
        compared(&Decoder::with_ip(64, code, 0, DecoderOptions::NONE).decode())
    }

    #[test]
    fn the_constants_of_comparisons_are_read_by_their_width() {
        assert_eq!(
            of(&[0x81, 0xf9, 0xbe, 0xba, 0xfe, 0xca]),
            Some((0xcafe_babe, 4))
        ); // cmp ecx
        assert_eq!(of(&[0x66, 0x81, 0x3f, 0x42, 0x4d]), Some((0x4d42, 2))); // cmp word [rdi]
        let movabs = [0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(of(&movabs), Some((0x0807_0605_0403_0201, 8)));
        assert_eq!(of(&[0x48, 0x81, 0xec, 0x88, 0x13, 0, 0]), None); // sub rsp
        assert_eq!(
            of(&[0x8d, 0x87, 0xc0, 0xbd, 0xf0, 0xff]),
            Some((0x000f_4240, 4))
        ); // lea -1000000
        assert_eq!(of(&[0x3c, 0x41]), None); // cmp al
        assert_eq!(of(&[0xc3]), None);
    }

    #[test]
    fn small_numbers_and_masks_tell_nothing() {
        for bytes in [
            &[0x12, 0][..],
            &[0, 0x10, 0, 0],
            &[0xff; 4],
            &[7; 8],
            &[1, 2, 0, 0, 0, 0, 0, 0],
        ] {
            assert!(!is_significant(bytes), "{bytes:?}");
        }
        for bytes in [
            &b"BM"[..],
            b"\x7fELF",
            &[0xbe, 0xba, 0xfe, 0xca],
            b"password",
        ] {
            assert!(is_significant(bytes), "{bytes:?}");
        }
    }
}
