//! An index that is one too large: a panic.

use std::io::Read;

const NAMES: [u32; 3] = [4, 9, 16];

#[inline(never)]
fn pick(at: usize) -> u32 {
    NAMES[at]
}

fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let letters = text.trim();
    let at = letters.len();
    println!("{}", pick(at));
}
