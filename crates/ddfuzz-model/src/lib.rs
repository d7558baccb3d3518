//! How ddfuzz writes files: atomically, under locks, or append-only; and JSON forms of bytes and of
//! names that need not be UTF-8 ([`files`]). The pool of worker threads that all parts use
//! ([`pool`]).

pub mod files;
pub mod pool;
