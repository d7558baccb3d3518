//! The bundled target `crtplot` as a libFuzzer harness: it draws plot commands on a screen; the
//! letter t crashes it.
#![no_main]

ddfuzz_fuzz::bundled!();
