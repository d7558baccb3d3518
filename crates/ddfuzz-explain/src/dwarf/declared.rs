//! Structures that a compilation unit only declares and another unit defines.

use std::collections::HashMap;

use gimli::{Dwarf, Reader as _, Unit, UnitOffset};

use super::{Bytes, Entry};

/// Place of an entry of the debug information: the index of its compilation unit, and its offset.
type Place = (usize, UnitOffset);

/// Returns, for each structure that a compilation unit only declares outside of all namespaces and
/// functions, the place of its definition. A structure whose name has definitions of different
/// sizes is left out.
pub(super) fn definitions(
    dwarf: &Dwarf<Bytes>,
    units: &[Unit<Bytes>],
) -> Result<HashMap<Place, Place>, gimli::Error> {
    // The first definition of a name, and its size; `None` for a name with several.
    let mut defined: HashMap<(bool, String), Option<(Place, u64)>> = HashMap::new();
    let mut declared: Vec<(Place, (bool, String))> = Vec::new();
    for (index, unit) in units.iter().enumerate() {
        let mut entries = unit.header.entries(&unit.abbreviations);
        while let Some(entry) = entries.next_dfs()? {
            let Some(key) = key_of(dwarf, unit, entry) else {
                continue;
            };
            let place = (index, entry.offset());
            if entry.attr(gimli::DW_AT_declaration).is_some() {
                declared.push((place, key));
                continue;
            }
            let size = entry.attr_value(gimli::DW_AT_byte_size);
            let size = size.and_then(|it| it.udata_value()).unwrap_or_default();
            let known = defined.entry(key).or_insert(Some((place, size)));
            *known = known.filter(|it| it.1 == size);
        }
    }
    let definition = |(place, key)| {
        let (definition, _) = defined.get(&key).copied().flatten()?;
        Some((place, definition))
    };
    Ok(declared.into_iter().filter_map(definition).collect())
}

/// Returns the name of a structure, class or union that is directly in a compilation unit, and
/// whether it is a union; `None` for all other entries.
fn key_of(dwarf: &Dwarf<Bytes>, unit: &Unit<Bytes>, entry: &Entry) -> Option<(bool, String)> {
    let is_union = entry.tag() == gimli::DW_TAG_union_type;
    let is_record = matches!(
        entry.tag(),
        gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type
    );
    if entry.depth() != 1 || !is_union && !is_record {
        return None;
    }
    let name = entry.attr_value(gimli::DW_AT_name)?;
    let name = dwarf.attr_string(unit, name).ok()?;
    let name = name.to_string_lossy().ok()?.into_owned();
    Some((is_union, name))
}
