//! The cases that minimizers are measured on: their inputs fail, and what is said to be the
//! smallest failing input is one.

#[path = "../../benches/minimizers/families/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the benches use more of it")]
mod families;
mod known_minimum;
#[path = "../needs/mod.rs"]
mod needs;
#[path = "../../benches/minimizers/programs.rs"]
#[allow(dead_code, reason = "the benches use more of it")]
mod programs;
