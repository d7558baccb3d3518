//! Which modules and functions belong to the runtime and not to the user's code.

use crate::symbols::demangled::demangle;

/// Base names, without `.so` and what follows, of runtime modules: C library, loader, runtimes of
/// compilers and sanitizers.
#[rustfmt::skip]
const MODULES: &[&str] = &[
    "libc", "libm", "libmvec", "libdl", "librt", "libpthread", "ld", "ld-linux", "ld-linux-x86-64",
    "ld-linux-aarch64", "ld-musl-x86_64", "ld-musl-aarch64", "libc.musl-x86_64",
    "libc.musl-aarch64", "libgcc_s", "libstdc++", "libc++", "libc++abi", "libunwind", "libasan",
    "libubsan", "liblsan", "libtsan", "libmsan", "libhwasan", "ddfuzz-copy", "ddfuzz-runtime",
    "linux-vdso", "[vdso]",
];

/// Returns true if a module with the base name `base_name` is one of ddfuzz (`ddfuzz-copy` or
/// `ddfuzz-runtime`) that calls the target's entry function (`main`), as the C library otherwise
/// does.
pub fn calls_entry(base_name: &str) -> bool {
    let stem = base_name.split(".so").next().unwrap_or(base_name);
    matches!(stem, "ddfuzz-copy" | "ddfuzz-runtime")
}

/// Checks whether a module with the base name `base_name` belongs to a runtime (C library,
/// compiler, sanitizer) and not to the user's code.
pub fn is_runtime_module(base_name: &str) -> bool {
    let stem = base_name.split(".so").next().unwrap_or(base_name);
    if MODULES.contains(&stem) {
        return true;
    }
    let Some((name, suffix)) = stem.rsplit_once('-') else {
        return stem.starts_with("libclang_rt.");
    };
    // `libc-2.31.so` of an older glibc, `libstd-8389830094602f5a.so` of Rust.
    let mut bytes = suffix.bytes();
    let version = bytes.all(|byte| byte.is_ascii_digit() || byte == b'.');
    let hash = suffix.len() == 16 && suffix.bytes().all(|byte| byte.is_ascii_hexdigit());
    version && MODULES.contains(&name)
        || hash && name == "libstd"
        || name.starts_with("libclang_rt.")
}

/// Names of functions on the abort paths of glibc and musl, which are linked into static programs.
/// Only exact names count: a pattern would match a user's `my_abort` too.
#[rustfmt::skip]
const ABORT_PATH: &[&str] = &[
    "abort", "raise", "gsignal", "kill", "tkill", "pthread_kill", "__pthread_kill",
    "__pthread_kill_internal", "__pthread_kill_implementation", "__assert", "__assert_fail",
    "__assert_fail_base", "__assert_perror_fail", "__libc_fatal", "__libc_message",
    "__libc_message_impl", "__libc_assert_fail", "__stack_chk_fail", "__stack_chk_fail_local",
    "__fortify_fail", "__fortify_fail_abort", "__chk_fail", "malloc_printerr",
    "malloc_consolidate", "unlink_chunk", "_int_free", "_int_free_chunk", "_int_free_merge_chunk",
    "_int_malloc", "_int_realloc", "_int_memalign", "sysmalloc", "free", "cfree", "__libc_free",
    "malloc", "__libc_malloc", "realloc", "__libc_realloc", "calloc", "__libc_calloc",
    "munmap_chunk", "a_crash",
];

/// Prefixes of the names of runtime functions that are linked into programs: clang's sanitizers,
/// libFuzzer, Rust's standard library, the harness macro of ddfuzz-target.
#[rustfmt::skip]
const LINKED: &[&str] = &[
    "__asan_", "__hwasan_", "__lsan_", "__msan_", "__tsan_", "__ubsan_", "__sanitizer_",
    "__interceptor_", "___interceptor_", "__interception::", "__sancov_", "fuzzer::", "std::",
    "core::", "alloc::", "__rust_", "__rustc::", "ddfuzz_target::",
];

/// Namespaces of C++ runtimes, as they occur in the mangled names of their functions.
#[rustfmt::skip]
const LINKED_MANGLED: &[&str] = &[
    "_ZN6fuzzer", "_ZNK6fuzzer", "_ZN6__asan", "_ZN7__ubsan", "_ZN6__lsan", "_ZN6__msan",
    "_ZN6__tsan", "_ZN11__sanitizer", "_ZN14__interception", "_ZN8__hwasan",
];

/// Checks by its symbol name whether a function in a program belongs to a runtime (C library,
/// sanitizer, standard library) that is linked into the program.
pub fn is_runtime_symbol(symbol: &str) -> bool {
    // The compiler names the parts and copies that it makes `free.cold`, `raise.constprop.0`.
    let source_name = symbol.split('.').next().unwrap_or(symbol);
    if ABORT_PATH.contains(&source_name) || starts_with_any(symbol, LINKED_MANGLED) {
        return true;
    }
    if !symbol.starts_with("_ZN") && !symbol.starts_with("_R") {
        return starts_with_any(symbol, LINKED);
    }
    // C++ names demangle to nothing here; only Rust's own are meant.
    rustc_demangle::try_demangle(symbol).is_ok_and(|_| {
        // `<core::time::Duration>::from_secs`, `<alloc::vec::Vec<T> as Index>::index`: the type
        // says whose it is, and not the trait.
        let name = demangle(symbol);
        starts_with_any(name.trim_start_matches(['<', '&', '[']), LINKED)
    })
}

/// Functions that a program calls to abort itself, such as `abort`. Whether it calls them does not
/// depend on the layout of its memory, unlike an abort by a check of the heap or the stack.
const ABORTING: [&str; 6] = [
    "abort",
    "raise",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "_ZSt9terminatev",
];

/// Functions by which programs end themselves in another way than by an abort of their own: exits,
/// and what compilers call where a check of the stack or of a buffer has failed.
const ENDING: [&str; 5] = [
    "exit",
    "_exit",
    "__stack_chk_fail",
    "__fortify_fail",
    "__chk_fail",
];

/// Returns true if the function with the name `symbol` is one by which programs abort themselves,
/// such as `abort` or `__assert_fail`.
pub fn is_abort(symbol: &str) -> bool {
    ABORTING.contains(&symbol)
}

/// Checks by the name of a function whether a call of it ends the program or throws an exception on
/// purpose. A signal inside of it then comes from the caller's decision, not from a fault in the
/// function.
pub fn ends_program(symbol: &str) -> bool {
    is_abort(symbol) || ENDING.contains(&symbol) || symbol.contains("throw")
}

fn starts_with_any(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}
