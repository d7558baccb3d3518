//! The input as an array of C.

use super::Reproducer;
use super::c_literal::elements;

/// An array of the bytes and its size, named by the group.
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
