//! Returns to something that is no code: the stack was overwritten.

use super::instruction::is_return;
use super::memory::Memory;
use super::modules::Layout;
use super::registers::Registers;
use super::trust::is_return_address;

/// How far below the stack pointer the dead stack is searched, in bytes.
const DEAD_STACK: u64 = 64 << 10;

/// Whether the thread stands on a return that cannot be done.
pub(crate) fn stands_on_return(code: &[u8]) -> bool {
    is_return(code)
}

/// The first return address into the user's code just below the stack pointer. The function that
/// returned to nowhere left it there when it made its last call, so it names the victim.
pub(crate) fn victim(
    registers: &Registers,
    layout: &Layout,
    memory: &mut dyn Memory,
) -> Option<u64> {
    let top = registers.sp & !7;
    (1..=DEAD_STACK / 8).find_map(|words| {
        let address = memory.word(top.checked_sub(words * 8)?)?;
        let own = layout
            .region(address)
            .is_some_and(|region| !region.is_runtime(address - 1));
        (own && is_return_address(address, layout, memory)).then_some(address)
    })
}
