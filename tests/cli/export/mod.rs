//! `ddfuzz export`.

mod c_tests;
mod classes;
mod forms;
mod fuzz_projects;
mod into;
mod packages;
mod reducers;
mod rust_tests;
