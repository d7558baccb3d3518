//! The fork server that AFL++'s compilers put into a program, spoken to as `afl-fuzz` does: its
//! greeting, the memory shared with it, its runs, and what they leave behind.
//!
//! Source: AFL++'s `instrumentation/afl-compiler-rt.o.c` (the program's side), `include/types.h`
//! and `docs/fuzzing_in_depth.md`; read, not copied.

mod coverage;
mod executor;
mod family;
mod greeting;
mod marks;
mod segment;
mod server;

pub(crate) use executor::Forkserver;
