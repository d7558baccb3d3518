//! The input in base64.

use ddfuzz_model::files::Base64;

/// Characters of a line, as `base64` of coreutils has them.
const WIDTH: usize = 76;

/// The bytes in base64 with padding, in lines of 76 characters, as `base64 -d` reads them.
pub fn base64(input: &[u8]) -> String {
    let text = Base64(input.to_vec()).text();
    let mut lines = String::with_capacity(text.len() + text.len() / WIDTH + 1);
    for (at, character) in text.chars().enumerate() {
        if at > 0 && at % WIDTH == 0 {
            lines.push('\n');
        }
        lines.push(character);
    }
    lines.push('\n');
    lines
}
