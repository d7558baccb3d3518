//! Names of functions as the source has them. Mangled names are hostile text: a short one can stand
//! for a name of many megabytes, because it can refer to earlier types by number.

use std::fmt::{self, Write};

use crate::messages::cut;

/// Maximum length in bytes of the name of a function.
const LONGEST: usize = 16 << 10;

/// Demangles the symbol name of a function, of any language (Rust, C++ …). A name that is not
/// mangled, or is over 16 KiB when demangled, is returned as it is, cut to 16 KiB.
pub fn demangle(symbol: &str) -> String {
    let mut name = Bounded::default();
    let is_whole = match rustc_demangle::try_demangle(symbol) {
        Ok(rust) => write!(name, "{rust:#}").is_ok(),
        // Without the prefix, names of C would be read as types: `f` as `float`.
        Err(_) if !symbol.starts_with("_Z") && !symbol.starts_with("__Z") => false,
        Err(_) => cpp_demangle::Symbol::new(symbol)
            .is_ok_and(|cpp| (cpp.structured_demangle(&mut name, &Default::default())).is_ok()),
    };
    match is_whole {
        true => name.0,
        false => cut(symbol, LONGEST).to_owned(),
    }
}

/// A text to which pieces are written one after the other; writing fails once the text is longer
/// than [`LONGEST`].
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.0.push_str(piece);
        match self.0.len() > LONGEST {
            true => Err(fmt::Error),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_rust_and_cpp_are_demangled_and_others_stay() {
        let rust = "_ZN4core6option13unwrap_failed17h0123456789abcdefE";
        assert_eq!(demangle(rust), "core::option::unwrap_failed");
        assert_eq!(demangle("_ZN5space3fooEibc"), "space::foo(int, bool, char)");
        for of_c in ["parse_line", "f", "i", "St", "Pc"] {
            assert_eq!(demangle(of_c), of_c);
        }
    }

    /// Tests that a symbol is returned as it is if its demangled name would be enormous. The symbol
    /// names a function in which each parameter has the type `A<T, T>`, where `T` is the type of
    /// the parameter before. So each demangled type is twice as long as the one before it.
    #[test]
    fn a_short_symbol_of_an_enormous_name_stays_mangled() {
        let types = [
            "2", "3", "4", "5", "6", "7", "8", "9", "A", "B", "C", "D", "E", "F", "G",
        ];
        let doubled = types.map(|last| format!("S0_IS{last}_S{last}_E")).concat();
        let symbol = format!("_Z1f1B1AIS_S_ES0_IS1_S1_E{doubled}");
        assert!(cpp_demangle::Symbol::new(&symbol).is_ok());
        assert_eq!(demangle(&symbol), symbol);
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(demangle(&long), long[..LONGEST]);
    }
}
