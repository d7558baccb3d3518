//! The bundled target `ul` as a libFuzzer harness: 516 printable characters before a newline
//! crash it.
#![no_main]

ddfuzz_fuzz::bundled!();
