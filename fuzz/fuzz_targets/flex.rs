//! The bundled target `flex` as a libFuzzer harness: it generates scanners; 2121 characters without
//! a newline or NUL crash it.
#![no_main]

ddfuzz_fuzz::bundled!();
