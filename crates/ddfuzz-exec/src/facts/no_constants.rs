//! Stands in for `constants.rs` on machines whose instructions are not decoded.

use std::collections::BTreeSet;

use crate::facts::words::Ranges;
use crate::observe::image::Image;

/// Nothing is read of code.
#[derive(Debug, Default)]
pub(super) struct CodeWords {
    pub(super) references: BTreeSet<u64>,
    pub(super) constants: Vec<Vec<u8>>,
}

impl CodeWords {
    pub(super) fn of(_: &Image, _: &Ranges) -> CodeWords {
        CodeWords::default()
    }
}
