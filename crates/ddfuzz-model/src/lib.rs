//! How ddfuzz writes files: atomically, under locks, or append-only; and JSON forms of bytes and of
//! names that need not be UTF-8. Everything is in the module [`files`].

pub mod files;
