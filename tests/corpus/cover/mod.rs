//! The choice of inputs that reach everything.

mod brute;
mod hard;
mod held;
mod instances;
mod order;
mod peers;
mod rivals;
mod scale;
mod small;
mod weight;
