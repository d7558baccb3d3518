//! The bundled target `units` as a libFuzzer harness: it converts between units; 77 8-bit
//! characters in a line crash it.
#![no_main]

ddfuzz_fuzz::bundled!();
