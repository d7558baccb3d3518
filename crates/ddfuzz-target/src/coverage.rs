//! What code calls that was compiled with SanitizerCoverage, where no sanitizer is linked that
//! would answer. Nothing is done: the counters count by themselves, and whoever runs the program
//! finds them by their section, `__sancov_cntrs`.
//!
//! Build with these flags (stable Rust takes them; they are LLVM's and may change with it):
//!
//! ```text
//! RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3
//!   -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
//!   -Cllvm-args=-sanitizer-coverage-pc-table
//!   -Cllvm-args=-sanitizer-coverage-trace-compares" cargo build --release --target TRIPLE
//! ```
//!
//! `--target`, even where it is the machine's own, keeps the flags away from build scripts. Do not
//! use this feature together with a sanitizer, whose runtime defines the same functions.

/// Defines callbacks that do nothing.
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
    /// Tells where a module's counters begin and end.
    __sanitizer_cov_8bit_counters_init(*mut u8, *mut u8);
    /// Tells where the table of their addresses begins and ends.
    __sanitizer_cov_pcs_init(*const usize, *const usize);
    /// Tells where a module's guards begin and end.
    __sanitizer_cov_trace_pc_guard_init(*mut u32, *mut u32);
    /// An edge with this guard was passed.
    __sanitizer_cov_trace_pc_guard(*mut u32);
    /// An indirect call.
    __sanitizer_cov_trace_pc_indir(usize);
    /// A comparison of bytes.
    __sanitizer_cov_trace_cmp1(u8, u8);
    /// A comparison of 16-bit numbers.
    __sanitizer_cov_trace_cmp2(u16, u16);
    /// A comparison of 32-bit numbers.
    __sanitizer_cov_trace_cmp4(u32, u32);
    /// A comparison of 64-bit numbers.
    __sanitizer_cov_trace_cmp8(u64, u64);
    /// A comparison with a constant byte.
    __sanitizer_cov_trace_const_cmp1(u8, u8);
    /// A comparison with a constant of 16 bits.
    __sanitizer_cov_trace_const_cmp2(u16, u16);
    /// A comparison with a constant of 32 bits.
    __sanitizer_cov_trace_const_cmp4(u32, u32);
    /// A comparison with a constant of 64 bits.
    __sanitizer_cov_trace_const_cmp8(u64, u64);
    /// A `match` on a number: the value, and the table of its cases.
    __sanitizer_cov_trace_switch(u64, *mut u64);
    /// A division by a 32-bit number.
    __sanitizer_cov_trace_div4(u32);
    /// A division by a 64-bit number.
    __sanitizer_cov_trace_div8(u64);
    /// An index into an array.
    __sanitizer_cov_trace_gep(usize);
}
