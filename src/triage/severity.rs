//! An estimate of how bad a crash is (crash-keys.md, "Record").

use super::fault::{Access, AddressClass, Fault};
use super::{Class, Severity};

/// Beginnings of what glibc says when it finds the heap damaged.
const HEAP_MESSAGES: [&str; 10] = [
    "double free",
    "free():",
    "malloc():",
    "malloc_consolidate():",
    "realloc():",
    "munmap_chunk():",
    "mremap_chunk():",
    "corrupted ",
    "munmap_chunk",
    "break adjusted to free malloc space",
];

/// Functions of the heap: an abort on the way through one of them is the heap's.
const HEAP_FUNCTIONS: [&str; 12] = [
    "free",
    "cfree",
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
];

/// The estimate and the reason for it. `via` is the runtime function on top, `said` what the C
/// library said.
pub fn severity(
    class: &Class,
    fault: &Fault,
    via: Option<&str>,
    said: Option<&str>,
) -> (Severity, String) {
    let (severity, reason) = match class.0.as_str() {
        "wildcall" => (Severity::High, "control went to something that is no code"),
        "smash" => (Severity::High, "the stack was overwritten"),
        "segv" | "bus" => of_access(fault),
        "abrt" if is_heap_abort(via, said) => (Severity::Medium, "the heap was found damaged"),
        "abrt" => (Severity::Low, "the program aborts itself"),
        "stackoverflow" => (Severity::Low, "the stack is used up"),
        "fpe" => (Severity::Low, "an arithmetic exception"),
        "ill" => (Severity::Low, "an illegal instruction"),
        "trap" => (Severity::Low, "a trap"),
        "sys" => (Severity::Low, "a forbidden system call"),
        class if class.starts_with("exit:") => (Severity::Low, "an exit that counts as a crash"),
        _ => (Severity::Low, "nothing known makes it worse"),
    };
    (severity, reason.to_owned())
}

fn of_access(fault: &Fault) -> (Severity, &'static str) {
    match (fault.class, fault.access) {
        (Some(AddressClass::Null), _) => (Severity::Low, "a null dereference"),
        (_, Some(Access::Write)) => (Severity::High, "a write to a wild address"),
        (_, Some(Access::Execute)) => (Severity::High, "an execution of a wild address"),
        (_, Some(Access::Read)) => (Severity::Medium, "a read of a wild address"),
        (Some(_), None) => (Severity::Medium, "an access to a wild address"),
        (None, None) => (Severity::Low, "the signal was sent, no access is known"),
    }
}

fn is_heap_abort(via: Option<&str>, said: Option<&str>) -> bool {
    via.is_some_and(|via| HEAP_FUNCTIONS.contains(&via))
        || said.is_some_and(|said| HEAP_MESSAGES.iter().any(|begin| said.starts_with(begin)))
}
