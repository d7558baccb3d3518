//! What dying programs say.

mod go_panics;
mod hostile;
mod libraries;
mod messages;
mod rust_panics;
mod rust_programs;
mod sanitized_programs;
mod sanitizers;
