//! The bundled target `nroff` as a libFuzzer harness: it formats text for a typewriter;
//! malformed numbers, lone 8-bit characters and stray arguments crash it.
#![no_main]

ddfuzz_fuzz::bundled!();
