//! The bundled target `troff` as a libFuzzer harness: it formats text for a typesetter; open
//! arguments, unknown fonts and lone 8-bit characters crash it.
#![no_main]

ddfuzz_fuzz::bundled!();
