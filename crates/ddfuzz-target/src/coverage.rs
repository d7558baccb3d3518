//! Empty callbacks for code that was compiled with SanitizerCoverage but is linked without a
//! sanitizer. The counters need no callbacks: the code increments them, and ddfuzz finds them by
//! their section, `__sancov_cntrs`.
//!
//! Build with these flags (stable Rust accepts them; they belong to LLVM and may change):
//!
//! ```text
//! RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3
//!   -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
//!   -Cllvm-args=-sanitizer-coverage-pc-table
//!   -Cllvm-args=-sanitizer-coverage-trace-compares" cargo build --release --target TRIPLE
//! ```
//!
//! `--target`, even for the machine's own target, keeps the flags away from build scripts. Do not
//! use this feature together with a sanitizer, whose runtime defines the same functions.

/// Defines C functions that do nothing, for the calls that the compiler inserts with
/// SanitizerCoverage.
macro_rules! callbacks {
    ($($(#[$doc:meta])* $name:ident($($argument:ty),*);)*) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($(_: $argument),*) {}
        )*
    };
}

callbacks! {
    /// Does nothing. Called at the start with the start and the end of a module's counters.
    __sanitizer_cov_8bit_counters_init(*mut u8, *mut u8);
    /// Does nothing. Called at the start with the start and the end of a module's table of code
    /// addresses.
    __sanitizer_cov_pcs_init(*const usize, *const usize);
    /// Does nothing. Called at the start with the start and the end of a module's guards.
    __sanitizer_cov_trace_pc_guard_init(*mut u32, *mut u32);
    /// Does nothing. Called with the guard of a control-flow edge when that edge is executed.
    __sanitizer_cov_trace_pc_guard(*mut u32);
    /// Does nothing. Called before an indirect call.
    __sanitizer_cov_trace_pc_indir(usize);
    /// Does nothing. Called before a comparison of 8-bit numbers.
    __sanitizer_cov_trace_cmp1(u8, u8);
    /// Does nothing. Called before a comparison of 16-bit numbers.
    __sanitizer_cov_trace_cmp2(u16, u16);
    /// Does nothing. Called before a comparison of 32-bit numbers.
    __sanitizer_cov_trace_cmp4(u32, u32);
    /// Does nothing. Called before a comparison of 64-bit numbers.
    __sanitizer_cov_trace_cmp8(u64, u64);
    /// Does nothing. Called before a comparison with an 8-bit constant.
    __sanitizer_cov_trace_const_cmp1(u8, u8);
    /// Does nothing. Called before a comparison with a 16-bit constant.
    __sanitizer_cov_trace_const_cmp2(u16, u16);
    /// Does nothing. Called before a comparison with a 32-bit constant.
    __sanitizer_cov_trace_const_cmp4(u32, u32);
    /// Does nothing. Called before a comparison with a 64-bit constant.
    __sanitizer_cov_trace_const_cmp8(u64, u64);
    /// Does nothing. Called before a `match` on a number, with the number and the table of its
    /// cases.
    __sanitizer_cov_trace_switch(u64, *mut u64);
    /// Does nothing. Called before a division by a 32-bit number.
    __sanitizer_cov_trace_div4(u32);
    /// Does nothing. Called before a division by a 64-bit number.
    __sanitizer_cov_trace_div8(u64);
    /// Does nothing. Called before an array is indexed.
    __sanitizer_cov_trace_gep(usize);
}
