//! Where functions begin and end: only what surely is code may be changed.
//!
//! The unwind table (`.eh_frame_hdr`, Linux Standard Base, "Exception Frames") tells both, in
//! stripped programs too; symbols tell of programs that have none.

use std::collections::BTreeMap;

use super::image::Image;

/// Functions that are looked at, at most.
const MOST: u32 = 1 << 20;
/// The encodings that every linker writes: a count of four bytes, and a table of pairs of four
/// bytes, relative to its own beginning.
const COUNT: u8 = 0x03;
const TABLE: u8 = 0x3b;
const POINTER: u8 = 0x1b;

/// Ranges of addresses before loading, none of which overlap.
#[derive(Debug, Default)]
pub(crate) struct Functions(BTreeMap<u64, u64>);

impl Functions {
    /// Adds the function from `start` up to `end`, unless one is known there.
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        let before = self.0.range(..end).next_back();
        if start < end && before.is_none_or(|(_, known_end)| *known_end <= start) {
            self.0.insert(start, end);
        }
    }

    /// Leaves out the one that begins at `start`.
    pub(crate) fn remove(&mut self, start: u64) {
        self.0.remove(&start);
    }

    /// All of them, by address.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(start, end)| (*start, *end))
    }
}

/// The functions in the unwind table whose header is at `header`, before loading. One whose entry
/// is not in the usual form is left out.
pub(crate) fn ranges_of_unwind_table(image: &Image, header: u64) -> Vec<(u64, u64)> {
    let usual = image.at(header, 12).is_some_and(|bytes| {
        let forms: [u8; 4] = [bytes[0], bytes[1], bytes[2], bytes[3]];
        forms == [1, POINTER, COUNT, TABLE]
    });
    let Some(count) = word(image, header.wrapping_add(8)).filter(|_| usual) else {
        return Vec::new();
    };
    let entries =
        (0..u64::from(count.min(MOST))).map_while(|index| header.checked_add(12 + 8 * index));
    entries.filter_map(|at| range(image, header, at)).collect()
}

/// The function of the table's entry at `at`.
fn range(image: &Image, header: u64, at: u64) -> Option<(u64, u64)> {
    let start = relative(image, header, at)?;
    let description = relative(image, header, at.checked_add(4)?)?;
    // Length, pointer to what several have in common, start, length of the function.
    let length = word(image, description)?;
    let start_at = description.checked_add(8)?;
    let told = relative(image, start_at, start_at)?;
    if length == 0 || length == u32::MAX || told != start {
        return None;
    }
    let size = word(image, start_at.checked_add(4)?)?;
    Some((start, start.checked_add(u64::from(size))?))
}

/// `base` and the signed distance that stands at `at`.
fn relative(image: &Image, base: u64, at: u64) -> Option<u64> {
    let distance = word(image, at)?.cast_signed();
    base.checked_add_signed(i64::from(distance))
}

fn word(image: &Image, at: u64) -> Option<u32> {
    let bytes = image.at(at, 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_to_claim_a_place_keeps_it() {
        let mut functions = Functions::default();
        for (start, end) in [
            (10, 20),
            (15, 25),
            (5, 11),
            (20, 30),
            (3, 3),
            (0, 10),
            (9, 8),
        ] {
            functions.add(start, end);
        }
        let all: Vec<_> = functions.iter().collect();
        assert_eq!(all, [(0, 10), (10, 20), (20, 30)]);
    }

    #[test]
    fn the_functions_of_a_real_program_are_found() {
        let image = Image::read(&std::env::current_exe().unwrap()).unwrap();
        let all: Vec<_> = image.functions.iter().collect();
        assert!(all.len() > 1000, "{}", all.len());
        assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    }
}
