//! What is not well in a corpus: inputs that crash, hang, or use up their memory.
//!
//! They are triaged and filed into the groups of the output directory, as `ddfuzz watch --once`
//! does, and each new group is minimized. The cleaned corpus goes without them; where they came
//! from they stay, for the input directory is only read.

mod ill;
mod quarantine;
mod slip;

pub use ill::Ill;
pub use quarantine::{Held, Quarantine, Quarantining, quarantine};
pub use slip::file_slip;
