//! How ddfuzz writes its files, and what JSON has no form for.
//!
//! [`files`] writes files whole or not at all, locks directories, appends to journals, and encodes
//! what JSON has no form for (bytes, and names that need not be UTF-8).

pub mod files;
