//! Tests of `ddfuzz::store`.
#![cfg(feature = "engine")]

mod builds;
mod campaign;
#[path = "../compiled/mod.rs"]
mod compiled;
mod filing;
mod foreign;
mod killed;
mod known;
mod layout;
mod merge;
mod merge_killed;
mod merge_laws;
mod merged_builds;
mod minimized;
mod mounts;
#[path = "../needs/mod.rs"]
mod needs;
mod open;
mod read_only;
mod reproduce;
mod reproduce_channels;
mod reproduce_gdb;
mod reproduce_shows;
mod sample;
mod study;
mod survey;
mod timestamp;
mod tree;
mod triaged;
