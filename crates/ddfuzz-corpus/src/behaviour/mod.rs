//! What inputs make a target do that tells no coverage: classes of equal behaviour.
//!
//! Two inputs behave equally where the target ends in the same way, writes the same to its
//! standard output and its standard error, reads as much of its input, and reads it from the same
//! places in the same order. Of each class one input is enough.
//!
//! Each input is run three times, the first time with its addresses randomized; what is not the
//! same each time (a process id, a time, an address) does not count for that input, and its
//! [`Behaviour`] says so. What cannot be had of a target counts for none of its inputs, and that
//! is said, too.

mod journal;
mod measure;
mod record;

pub use journal::BehaviourJournal;
pub use measure::{BehaviourSettings, CorpusInput, Measured, measure};
pub use record::{Aspect, Behaviour, ClassId, Classes, Output};
