//! Tests of `ddfuzz::files`.
#![cfg(feature = "engine")]

mod appender;
mod atomic;
mod folder;
mod lock;
mod os_text;
mod regular;
mod swap;
