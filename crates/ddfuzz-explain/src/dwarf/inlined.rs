//! Inlined functions: the function, file and line of the source to which a code address belongs.

use std::ops::Range;

use ddfuzz_triage::messages::is_std_file;

use super::{DebugInfo, Function};

/// A function that is inlined in another one, with the addresses of its code, and its call.
#[derive(Clone, Debug)]
pub struct Inlined {
    /// Ranges of addresses of the inlined code, in the file.
    pub ranges: Vec<Range<u64>>,
    /// Name of the inlined function in the source.
    pub name: String,
    /// Index of the source file in [`Lines::files`](super::Lines::files) and line of the call;
    /// `None` where they are unknown.
    pub call: Option<(usize, u64)>,
}

/// The place in the source to which a code address belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// Name of the function that contains the code; if the code is inlined, of the inlined
    /// function.
    pub function: &'a str,
    /// Source file of the code.
    pub file: &'a str,
    /// Source line of the code.
    pub line: u64,
}

/// Returns true if a source file belongs to the standard library of C++ or Rust, to the system, or
/// to libFuzzer, which cargo-fuzz compiles with debug information. The behavior of libFuzzer
/// depends on the values that the program compares, and says nothing about the program.
pub fn is_library_file(file: &str) -> bool {
    let is_of_system = ["/usr/include/", "/usr/lib/gcc/", "/rust/deps/"];
    let is_inside = ["/include/c++/", "/libfuzzer-sys-", "/lib/fuzzer/Fuzzer"];
    is_std_file(file)
        || is_inside.iter().any(|part| file.contains(part))
        || is_of_system.iter().any(|start| file.starts_with(start))
}

/// Returns true if a compilation unit is a part of a sanitizer's runtime, which is a library even
/// where it is linked into the program with debug information, as by Rust.
pub(super) fn is_runtime<R: gimli::Reader>(unit: &gimli::Unit<R>) -> bool {
    let name = unit.name.as_ref().and_then(|it| it.to_string_lossy().ok());
    name.is_some_and(|it| it.contains("/compiler-rt/lib/"))
}

impl Function {
    /// Returns the functions that are inlined at an address in the file, outer ones first.
    fn inlined_at(&self, pc: u64) -> impl DoubleEndedIterator<Item = &Inlined> {
        let contains = move |it: &&Inlined| it.ranges.iter().any(|range| range.contains(&pc));
        self.inlined.iter().filter(contains)
    }
}

impl DebugInfo {
    /// Returns the name of the function whose code is at `pc`, an address in the file: that of an
    /// inlined function, if the code comes from one. `None` if no function is known there.
    pub fn name_at(&self, pc: u64) -> Option<&str> {
        let Some(function) = self.function(pc) else {
            let after = self.code_symbols.partition_point(|it| it.0.start <= pc);
            let (range, name) = self.code_symbols.get(after.checked_sub(1)?)?;
            return (self.is_empty() && range.contains(&pc)).then_some(name);
        };
        let inlined = function.inlined_at(pc).next_back();
        Some(inlined.map_or(&function.name, |it| &it.name))
    }

    /// Returns the place in the source of the code at `pc`, an address in the file; `None` where no
    /// line is known. Inlined code of a standard library belongs to the statement of the program
    /// that calls it, if there is one.
    pub fn place(&self, pc: u64) -> Option<Place<'_>> {
        let (file, line) = self.lines.place(pc)?;
        let function = self.name_at(pc).unwrap_or_default();
        let innermost = Place {
            function,
            file,
            line,
        };
        if !is_library_file(file) {
            return Some(innermost);
        }
        let calls = self.inlined_calls(pc);
        let own = calls.into_iter().find(|it| !is_library_file(it.file));
        Some(own.unwrap_or(innermost))
    }

    /// Returns the calls of inlined functions that lead to the code at `pc`, an address in the
    /// file, innermost first, without calls in the code of libraries. If the code at `pc` belongs
    /// to a library, the innermost of the remaining calls is left out, too: it is shown as the
    /// place of `pc`.
    pub fn calls_inlined_at(&self, pc: u64) -> Vec<Place<'_>> {
        let mut calls = self.inlined_calls(pc);
        calls.retain(|it| !is_library_file(it.file));
        // The place of inlined code of a library is its call.
        if (self.lines.place(pc)).is_some_and(|(file, _)| is_library_file(file)) {
            calls.drain(..calls.len().min(1));
        }
        calls
    }

    /// Returns the calls of inlined functions that lead to the code at `pc`, an address in the
    /// file, innermost first.
    fn inlined_calls(&self, pc: u64) -> Vec<Place<'_>> {
        let Some(around) = self.function(pc) else {
            return Vec::new();
        };
        let inlined: Vec<&Inlined> = around.inlined_at(pc).collect();
        let names =
            std::iter::once(around.name.as_str()).chain(inlined.iter().map(|it| it.name.as_str()));
        let calls = names.zip(inlined.iter().map(|it| it.call));
        let mut calls: Vec<Place<'_>> = calls
            .filter_map(|(function, call)| {
                let (file, line) = call?;
                let file = self.lines.files.get(file)?;
                Some(Place {
                    function,
                    file,
                    line,
                })
            })
            .collect();
        calls.reverse();
        calls
    }
}
