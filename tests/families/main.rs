//! The families of inputs that the searches `subset` and `full` are measured by.

mod binary;
mod bytes;
mod count;
mod json;
mod random;
mod structured;
mod table;
