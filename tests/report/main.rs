//! Tests of `ddfuzz::report`.
#![cfg(feature = "engine")]

mod block;
mod check;
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
