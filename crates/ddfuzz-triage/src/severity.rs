//! Estimates how dangerous a crash is (docs/src/keys.md).

use crate::fault::{Access, AddressClass, Fault};
use crate::messages::{HEAP, Report, ReportAccess, Tool};
use crate::{Class, Severity};

/// Heap functions of the C library: an abort in one of them means a corrupted heap.
#[rustfmt::skip]
const HEAP_FUNCTIONS: [&str; 12] = [
    "free", "cfree", "malloc", "calloc", "realloc", "reallocarray", "memalign", "aligned_alloc",
    "posix_memalign", "valloc", "pvalloc", "malloc_usable_size",
];

/// Returns an estimate of how dangerous the bug behind a crash of the class `class` is, and the
/// reason for the estimate as a phrase. `fault` is the faulting access, `via` the runtime function
/// in which the crash happened (`free`), `said` the abort message of the C library, `report` a
/// sanitizer's report.
pub fn severity(
    class: &Class,
    fault: &Fault,
    via: Option<&str>,
    said: Option<&str>,
    report: Option<&Report>,
) -> (Severity, String) {
    let (severity, reason) = match class.0.as_str() {
        name if let Some(report) = report.filter(|_| name.contains(':')) => of_report(report),
        "wildcall" => (Severity::High, "a jump to an address without code"),
        "smash" => (Severity::High, "a corrupted stack"),
        "segv" | "bus" => of_access(fault),
        "abrt" if is_heap_abort(via, said) => {
            (Severity::Medium, "a corrupted heap, found by the allocator")
        }
        "abrt" => (Severity::Low, "the program calls abort"),
        "stackoverflow" => (Severity::Low, "a stack overflow"),
        "fpe" => (Severity::Low, "an arithmetic exception"),
        "ill" => (Severity::Low, "an illegal instruction"),
        "trap" => (Severity::Low, "a trap instruction"),
        "rustpanic" | "gopanic" => (Severity::Low, "a panic"),
        "sys" => (Severity::Low, "a forbidden system call"),
        "hang" => (Severity::Low, "the program exceeds its time limit"),
        "oom" => (Severity::Low, "the program exceeds its memory limit"),
        class if class.starts_with("exit:") => (
            Severity::Low,
            "an exit status that counts as a crash (--crash-exit)",
        ),
        _ => (Severity::Low, "no sign of anything worse"),
    };
    (severity, reason.to_owned())
}

fn of_access(fault: &Fault) -> (Severity, &'static str) {
    match (fault.class, fault.access) {
        (Some(AddressClass::Null), _) => (Severity::Low, "a null dereference"),
        (_, Some(Access::Write)) => (Severity::High, "a write to an invalid address"),
        (_, Some(Access::Execute)) => (Severity::High, "an execution of an invalid address"),
        (_, Some(Access::Read)) => (Severity::Medium, "a read of an invalid address"),
        (Some(_), None) => (Severity::Medium, "an access to an invalid address"),
        (None, None) => (
            Severity::Low,
            "a signal that was sent; no memory access is known",
        ),
    }
}

/// Returns an estimate of how dangerous the bug in a sanitizer's report is, and the reason for it
/// as a phrase. `report` must be about an error that the sanitizer detected itself, not about a
/// deadly signal.
fn of_report(report: &Report) -> (Severity, &'static str) {
    let kind = report.kind.as_str();
    let of_allocation = kind.contains("alloc") && kind != "alloc-dealloc-mismatch"
        || kind == "out-of-memory"
        || kind.ends_with("-overflow");
    match report.tool {
        Tool::Asan | Tool::Hwasan => match report.access {
            _ if kind.contains("use-after") => (Severity::High, "a use of freed memory"),
            _ if kind == "double-free" => (Severity::High, "memory freed twice"),
            Some(ReportAccess::Write) => (Severity::High, "a write out of bounds"),
            Some(ReportAccess::Read) => (Severity::Medium, "a read out of bounds"),
            None if of_allocation => (Severity::Low, "an impossible allocation"),
            None => (Severity::Medium, "a wrong use of memory"),
        },
        Tool::Msan if of_allocation => (Severity::Low, "an impossible allocation"),
        Tool::Msan => (Severity::Medium, "a use of uninitialized memory"),
        Tool::Tsan => (Severity::Medium, "a data race or another threading error"),
        Tool::Ubsan if matches!(kind, "bounds" | "object-size" | "vptr" | "function") => (
            Severity::Medium,
            "an access out of bounds, or through a wrong type",
        ),
        Tool::Ubsan => (Severity::Low, "undefined behaviour"),
        Tool::Lsan => (Severity::Low, "a memory leak"),
    }
}

fn is_heap_abort(via: Option<&str>, said: Option<&str>) -> bool {
    via.is_some_and(|via| HEAP_FUNCTIONS.contains(&via))
        || said.is_some_and(|said| HEAP.iter().any(|begin| said.starts_with(begin)))
}
