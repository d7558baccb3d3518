//! The bundled programs: real little tools that die of the historic bugs, and surely.
#![cfg(feature = "engine")]

mod bugs;
mod bundled;
mod examples;
mod fixed;
mod random;
mod reentry;
mod reproducers;
mod running;
#[path = "../stream/mod.rs"]
mod stream;
mod usage;
