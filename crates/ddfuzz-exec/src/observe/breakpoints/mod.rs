//! Breakpoints on the compare instructions of the main executable (x86-64), and on callbacks that
//! no jump can be written over.
//!
//! A breakpoint is the one byte `int3` at the beginning of an instruction. The thread that runs
//! into it stops; its operands are read, the flags are set as the instruction would have, and the
//! thread goes on behind it: one stop each, and no moment in which another thread could slip
//! through. Places that are hit often lose their breakpoint.
//!
//! Localized here: `iced-x86`.

mod flags;
mod operand;
mod plan;
mod tracer;

pub(crate) use plan::Plan;
pub(crate) use tracer::Tracer;
