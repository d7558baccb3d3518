//! The bytes of an input as text: hex dump, C array and C string literal.

use std::fmt::Write;

use super::Reproducer;

const HEXDUMP_WIDTH: usize = 16;

/// Formats all bytes of an input as a hex dump, 16 a line: offset, hex in two columns, ASCII; the
/// last line is the size. `xxd -r` cannot read it back.
pub fn hexdump(input: &[u8]) -> String {
    let mut text = String::new();
    for (line, bytes) in input.chunks(HEXDUMP_WIDTH).enumerate() {
        // Writing to a string never fails.
        let _ = write!(text, "{:08x} ", line * HEXDUMP_WIDTH);
        for at in 0..HEXDUMP_WIDTH {
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

/// Generates C source text with an array of the input's bytes and a constant with its size, both
/// named after the group.
pub fn c_array(of: &Reproducer) -> String {
    let name = of.identifier();
    format!(
        "// {}\n\
         static const unsigned char {name}[] = {{\n{}}};\n\
         static const unsigned long {name}_size = {};\n",
        of.title(),
        elements(&of.input),
        of.input.len(),
    )
}

const ARRAY_WIDTH: usize = 12;

/// Generates the elements of a C array with these bytes; a single 0 for no bytes, because C has no
/// empty arrays.
pub(super) fn elements(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "    0x00, // none of the input: its size is 0\n".to_owned();
    }
    let lines = bytes.chunks(ARRAY_WIDTH).map(|line| {
        let all: Vec<String> = line.iter().map(|byte| format!("0x{byte:02x},")).collect();
        format!("    {}\n", all.join(" "))
    });
    lines.collect()
}

/// Quotes bytes as a C string, with octal escapes: a hex escape would include digits that follow.
pub(super) fn string(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            // Two question marks may start a trigraph.
            b'"' | b'\\' | b'?' => text.extend(['\\', byte as char]),
            b' '..=b'~' => text.push(byte as char),
            _ => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text.push('"');
    text
}
