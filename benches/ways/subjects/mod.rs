//! What is measured: one file a subject. A new peer gets a file here and a line in
//! `benches/ways/sheets.rs`.

pub mod afl_fuzz;
pub mod floor;
pub mod test;
pub mod way;

use crate::cost::Cost;

/// Something that runs a program on an input again and again.
pub trait Subject {
    /// What the tables call it.
    fn name(&self) -> &str;

    /// Runs it `runs` times, and says what one run cost.
    fn measure(&mut self, runs: u32) -> Cost;
}
