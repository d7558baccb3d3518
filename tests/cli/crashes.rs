//! Inputs that crash the bundled targets.
#![allow(
    dead_code,
    reason = "each test program that includes this uses a part of it"
)]

/// 600 printable characters and a line end: `ul` dies of 516 before a line end.
pub fn for_ul() -> Vec<u8> {
    let mut input: Vec<u8> = (0..600).map(|at| 33 + (at * 31 % 89) as u8).collect();
    input.push(b'\n');
    input
}

/// 3000 printable characters: `flex` dies of 2121 without a line end or NUL.
pub fn for_flex() -> Vec<u8> {
    (0..3000).map(|at| 33 + (at * 7 % 94) as u8).collect()
}
