//! C++ classes with virtual functions, and their vtables, which tell the class of an object.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use ddfuzz_triage::demangle;
use object::{Object, ObjectSymbol};

use super::{Around, Entry, Reading};
use crate::types::{TypeId, Types};

/// Number of bytes between the beginning of a vtable and the address to which vtable pointers
/// point: the offset of the part in the whole object, and the address of the type information.
const VTABLE_HEAD: u64 = 16;

/// The C++ classes with virtual functions that the debug information describes.
#[derive(Default)]
pub(super) struct Classes {
    /// The classes by qualified name; `None` where different classes have the name.
    by_name: HashMap<String, Option<TypeId>>,
    /// Classes with virtual base classes: only the running program knows where a virtual base is in
    /// an object.
    with_virtual_bases: HashSet<TypeId>,
}

impl Classes {
    pub fn add(&mut self, name: String, of: TypeId) {
        let known = self.by_name.entry(name).or_insert(Some(of));
        *known = known.filter(|known| *known == of);
    }

    /// Records that the class with this qualified name has a virtual base.
    pub fn add_virtual_base(&mut self, name: &str) {
        let of = self.by_name.get(name).copied().flatten();
        self.with_virtual_bases.extend(of);
    }

    /// Returns the vtables in the symbol table of `file`, each with the class of the objects that
    /// point to it.
    pub fn vtables(&self, file: &object::File<'_>, types: &Types) -> Vtables {
        let is_known = |of: &TypeId| {
            let mut bases = types.bases(*of).into_iter();
            !bases.any(|(_, base)| self.with_virtual_bases.contains(&base))
        };
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let mut found: Vec<(Range<u64>, TypeId)> = symbols
            .filter(|symbol| symbol.is_definition() && symbol.size() > VTABLE_HEAD)
            .filter_map(|symbol| {
                let name = symbol.name().ok().filter(|name| name.starts_with("_ZTV"))?;
                let of = self.by_name.get(class_of_vtable(&demangle(name))?)?;
                let start = symbol.address();
                Some((
                    start..start.checked_add(symbol.size())?,
                    (*of).filter(is_known)?,
                ))
            })
            .collect();
        found.sort_by_key(|(range, _)| range.start);
        Vtables(found)
    }
}

/// Returns the class's qualified name from the demangled name of its vtable; `None` if `name` is
/// not the name of a vtable.
fn class_of_vtable(name: &str) -> Option<&str> {
    let of_demangler = name.strip_prefix("{vtable(");
    let of_demangler = of_demangler.and_then(|name| name.strip_suffix(")}"));
    of_demangler.or_else(|| name.strip_prefix("vtable for "))
}

/// The vtables of a program: their addresses in the file, and the class of each.
#[derive(Clone, Debug, Default)]
pub struct Vtables(Vec<(Range<u64>, TypeId)>);

impl Vtables {
    /// Returns the class of an object whose vtable pointer has the value `address`, as an address
    /// in the file; `None` where this is not in a known vtable.
    pub fn class(&self, address: u64) -> Option<TypeId> {
        let behind = self.0.partition_point(|(range, _)| range.start <= address);
        let (range, of) = self.0.get(behind.checked_sub(1)?)?;
        (range.start + VTABLE_HEAD..range.end)
            .contains(&address)
            .then_some(*of)
    }
}

impl Reading<'_> {
    /// Enters a namespace or class of the debug information, the entry `entry` of the unit `unit`:
    /// appends its name to the qualified name in `around`, and records the class if it has virtual
    /// functions. Does nothing inside functions.
    pub(super) fn class(
        &mut self,
        unit: usize,
        entry: &Entry,
        around: &mut Around,
    ) -> Result<(), gimli::Error> {
        if !around.name.is_empty() {
            return Ok(());
        }
        let name = match self.name(unit, entry)? {
            Some(name) => name,
            None if entry.tag() == gimli::DW_TAG_namespace => "(anonymous namespace)".to_owned(),
            None => return Ok(()),
        };
        if !around.class.is_empty() {
            around.class.push_str("::");
        }
        around.class.push_str(&name);
        let has_vtable = entry.attr(gimli::DW_AT_containing_type).is_some();
        if has_vtable && entry.attr(gimli::DW_AT_declaration).is_none() {
            let of = self
                .types
                .read(self.dwarf, &self.units, unit, entry.offset())?;
            self.classes.add(around.class.clone(), of);
        }
        Ok(())
    }
}
