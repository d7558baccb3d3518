//! What dying programs say.

mod diagnostics;
mod go_panics;
mod hostile;
mod libraries;
mod rust_panics;
mod rust_programs;
mod sanitized_programs;
mod sanitizers;
