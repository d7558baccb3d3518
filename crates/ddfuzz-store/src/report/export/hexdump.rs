//! The input as hex and text, as `hexdump -C` prints it.

use std::fmt::Write;

/// Bytes of a line.
const WIDTH: usize = 16;

/// All bytes, 16 a line: the offset, two columns of eight in hex, the printable ASCII; the size in
/// the last line. `xxd -r` does not read it; base64 is for machines.
pub fn hexdump(input: &[u8]) -> String {
    let mut text = String::new();
    for (line, bytes) in input.chunks(WIDTH).enumerate() {
        // Writing to a string never fails.
        let _ = write!(text, "{:08x} ", line * WIDTH);
        for at in 0..WIDTH {
            if at % 8 == 0 {
                text.push(' ');
            }
            match bytes.get(at) {
                Some(byte) => drop(write!(text, "{byte:02x} ")),
                None => text.push_str("   "),
            }
        }
        text.push_str(" |");
        text.extend(bytes.iter().map(|&byte| match byte {
            b' '..=b'~' => byte as char,
            _ => '.',
        }));
        text.push_str("|\n");
    }
    let _ = writeln!(text, "{:08x}", input.len());
    text
}
