//! Tests of `exec`: every way of execution on real programs.
#![cfg(feature = "engine")]

mod hostile;
mod programs;
mod target_record;
mod ways;
