//! Tests of `exec`: every way of execution on real programs.

mod hostile;
mod programs;
mod target_record;
mod ways;
