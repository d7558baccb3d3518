//! Tests of `ddfuzz::report`.
#![cfg(feature = "engine")]

mod block;
mod check;
#[cfg(feature = "cli")]
mod ci;
mod export;
mod hexdump;
mod json;
mod narrowing;
mod sample;
mod shrinking;
mod size;
mod table;
mod text;
mod triage;
mod view;
