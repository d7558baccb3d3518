//! Tests of `ddfuzz::report`.
#![cfg(feature = "engine")]

mod block;
mod check;
#[cfg(feature = "cli")]
mod ci;
mod clean;
mod export;
mod hexdump;
mod json;
mod narrowing;
mod sample;
mod shrinking;
mod size;
mod study;
mod table;
mod text;
mod triage;
mod view;
