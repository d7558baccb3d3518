//! Which signals only follow from one before.

use super::reading::SI_KERNEL;
use super::snapshot::{Event, Snapshot};

/// Whether what stopped a thread later only follows from what stopped it before: the target's own
/// handler runs for that one and raises, aborts or crashes; or the handler has raised it again and
/// returned; or the kernel could not deliver that one (the stack is used up) and kills without
/// saying where.
pub(crate) fn is_aftermath(earlier: &Snapshot, later: &Snapshot) -> bool {
    let in_handler = later.interrupted.contains(&earlier.registers.pc);
    let again = earlier.registers.pc == later.registers.pc
        && earlier.registers.sp == later.registers.sp
        && matches!(later.event, Event::Signal { code, .. } if code <= 0 || code == SI_KERNEL);
    in_handler || again
}
