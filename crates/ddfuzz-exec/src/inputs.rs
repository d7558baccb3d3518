//! How many inputs at once reach a loop: one behind the other in a memory file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::input::read_only_file;
use super::mapping::{Mapping, keep_length};
use super::page::MOST_INPUTS;

/// So much of the file is mapped, on both sides (`MAPPED_INPUT` of `runtime/loop.c`).
const MAPPED: usize = 4 << 20;

/// The file of inputs.
pub(crate) struct Inputs {
    writer: File,
    /// Its opening for the server, which cannot write to it.
    reader: File,
    mapping: Mapping,
    /// Offsets and lengths of those that are in place, in bytes.
    places: Vec<(u64, u64)>,
}

impl Inputs {
    /// Makes the file.
    pub(crate) fn create() -> io::Result<Inputs> {
        let (writer, reader) = read_only_file(c"ddfuzz-inputs")?;
        writer.set_len(MAPPED as u64)?;
        keep_length(&writer)?;
        let mapping = Mapping::shared(&writer, MAPPED)?;
        Ok(Inputs {
            writer,
            reader,
            mapping,
            places: Vec::new(),
        })
    }

    /// Puts the first of `inputs` in place, as many as one request takes; at least one. A single
    /// one that the mapping does not hold stands behind it.
    pub(crate) fn write(&mut self, inputs: &[&[u8]]) -> io::Result<()> {
        self.places.clear();
        let mut at = 0;
        for input in inputs.iter().take(MOST_INPUTS) {
            if input.len() > MAPPED - at {
                break;
            }
            self.mapping.write(at, input);
            self.places.push((at as u64, input.len() as u64));
            at += input.len();
        }
        if let (true, Some(input)) = (self.places.is_empty(), inputs.first()) {
            self.writer.write_all_at(input, MAPPED as u64)?;
            self.places.push((MAPPED as u64, input.len() as u64));
        }
        Ok(())
    }

    /// Offsets and lengths of those in place.
    pub(crate) fn places(&self) -> &[(u64, u64)] {
        &self.places
    }

    /// What the server reads.
    pub(crate) fn reader(&self) -> &File {
        &self.reader
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(inputs: &Inputs, number: usize) -> Vec<u8> {
        let (offset, length) = inputs.places[number];
        let mut bytes = vec![0; length as usize];
        inputs.reader.read_exact_at(&mut bytes, offset).unwrap();
        bytes
    }

    #[test]
    fn as_many_inputs_as_fit_stand_one_behind_the_other() {
        let mut inputs = Inputs::create().unwrap();
        inputs.write(&[b"one", b"", b"three"]).unwrap();
        assert_eq!(inputs.places(), [(0, 3), (3, 0), (3, 5)]);
        assert_eq!(written(&inputs, 2), b"three");
        let half = vec![7; MAPPED / 2 + 1];
        inputs.write(&[&half, &half]).unwrap();
        assert_eq!(inputs.places().len(), 1);
        let many = vec![&b"x"[..]; MOST_INPUTS + 1];
        inputs.write(&many).unwrap();
        assert_eq!(inputs.places().len(), MOST_INPUTS);
    }

    #[test]
    fn an_input_larger_than_the_mapping_stands_behind_it() {
        let mut inputs = Inputs::create().unwrap();
        let large = vec![9; MAPPED + 1];
        inputs.write(&[&large, b"other"]).unwrap();
        assert_eq!(inputs.places(), [(MAPPED as u64, MAPPED as u64 + 1)]);
        assert_eq!(written(&inputs, 0), large);
    }
}
