//! The words of a program: what it may look for in its inputs, read off its file.
//!
//! These are the texts of its read-only data, those first that its code refers to, and the
//! constants that its code compares with, in both byte orders. Both are guesses, bounded in number,
//! and the same each time; the file is hostile input.

#[cfg(target_arch = "x86_64")]
mod code;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_code.rs"]
mod code;
mod noise;
mod texts;

use std::collections::HashSet;

use self::code::Read;
use super::super::elf;
use crate::observe::image::Image;
use crate::private_dir::PrivateDir;
use crate::{ExecError, Target, resolve};
use texts::Texts;

/// Words of one program, at most.
const MOST: usize = 512;
/// Of these, those that are constants, while there are texts enough.
const MOST_CONSTANTS: usize = 192;

/// Addresses before loading, each range from its first up to behind its last.
type Ranges = Vec<(u64, u64)>;

/// The words of a target's program, not of its libraries, at most 512: texts of 3 to 32 bytes,
/// constants of 2, 4 and 8. None of a program that is no ELF file of this machine.
///
/// # Errors
/// When there is no such program, or it cannot be executed.
pub fn program_words(target: &Target) -> Result<Vec<Vec<u8>>, ExecError> {
    let private = PrivateDir::get()?;
    let path = resolve::locate(&target.program, &private)?;
    let bytes = elf::read(&path).unwrap_or_default();
    let (Some(file), Some(image)) = (elf::parse(&bytes), Image::read(&path)) else {
        return Ok(Vec::new());
    };
    let texts = Texts::of(&file);
    let facts = elf::Facts::of(&file);
    let read = Read::of(&image, texts.ranges());
    // What is linked in says more than the program, and its code refers to it from elsewhere.
    let has_runtime = facts.interpreter.is_none() || facts.sanitized || facts.is_fuzzer;
    Ok(chosen(
        texts.words(&read.references, has_runtime),
        read.constants,
    ))
}

/// As many as there may be, of both kinds, each once.
fn chosen(texts: Vec<Vec<u8>>, constants: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let some = constants.len().min(MOST_CONSTANTS);
    let room = (MOST - some).min(texts.len());
    let (first, rest) = texts.split_at(room);
    let (constants, more) = constants.split_at(some);
    let mut known = HashSet::new();
    let all = first.iter().chain(constants).chain(rest).chain(more);
    let mut words: Vec<Vec<u8>> = all.filter(|word| known.insert(*word)).cloned().collect();
    words.truncate(MOST);
    words
}

/// Whether an address lies in one of the ranges, which are sorted.
fn within(ranges: &Ranges, address: u64) -> bool {
    let behind = ranges.partition_point(|(start, _)| *start <= address);
    behind > 0 && address < ranges[behind - 1].1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(prefix: &str, count: usize) -> Vec<Vec<u8>> {
        (0..count)
            .map(|at| format!("{prefix}{at}").into_bytes())
            .collect()
    }

    #[test]
    fn neither_kind_drives_out_the_other() {
        let all = chosen(words("text", 1000), words("constant", 1000));
        assert_eq!(all.len(), MOST);
        assert_eq!(
            all.iter().filter(|word| word.starts_with(b"c")).count(),
            MOST_CONSTANTS
        );
        assert_eq!(
            chosen(words("text", 5), words("constant", 1000)).len(),
            MOST
        );
        assert_eq!(chosen(words("text", 1000), Vec::new()).len(), MOST);
        assert_eq!(chosen(words("a", 3), words("a", 3)).len(), 3);
    }

    #[test]
    fn addresses_are_found_in_their_ranges_only() {
        let ranges = vec![(10, 20), (30, 31)];
        let inside: Vec<u64> = (0..40).filter(|at| within(&ranges, *at)).collect();
        assert_eq!(inside, [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 30]);
        assert!(!within(&Vec::new(), 0));
    }
}
