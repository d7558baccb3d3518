//! The revisit of the fuzz studies.

mod deny;
mod installed;
mod issta;
mod list;
mod list_of_debian;
