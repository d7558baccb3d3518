//! Reads types from debug information.

use std::collections::HashMap;

use gimli::{AttributeValue, Dwarf, Unit, UnitOffset, UnitSectionOffset};

use super::{Bytes, Entry};
use crate::types::{Bits, Encoding, Field, Shape, Type, TypeId, Types};

/// Number of nested types from which the target of a pointer type is not read together with the
/// pointer, but later.
const DEEP: usize = 64;
/// Largest number of nested types that are read. In damaged debug information, a type may contain
/// itself.
const DEEPEST: usize = 128;
/// Largest number of types without a name of their own (pointers, arrays) and typedefs that are
/// followed, one after another, to find the name of a type.
const MOST_NAMED: usize = 16;

/// Reads types from the debug information, each only once.
#[derive(Default)]
pub(super) struct TypeReader {
    pub types: Types,
    /// For each structure that a compilation unit only declares, the unit and offset of its
    /// definition in another unit.
    pub definitions: HashMap<(usize, UnitOffset), (usize, UnitOffset)>,
    known: HashMap<(usize, UnitOffset), TypeId>,
    /// Structures that were read, by name, size and fields: compilation units that include the same
    /// header each describe the type, which is kept only once.
    records: HashMap<String, TypeId>,
    /// Number of nested types that are being read, including the current one.
    depth: usize,
    /// Pointer types whose targets are still to be read, each with the unit and offset of the
    /// target.
    pending: Vec<(TypeId, usize, UnitOffset)>,
}

/// Finds the entry to which an attribute of the debug information refers: returns the index of its
/// compilation unit, and its offset in the unit; `None` if the attribute refers to none.
pub(super) fn reference(
    units: &[Unit<Bytes>],
    unit: usize,
    value: &AttributeValue<Bytes>,
) -> Option<(usize, UnitOffset)> {
    match value {
        AttributeValue::UnitRef(at) => Some((unit, *at)),
        AttributeValue::DebugInfoRef(at) => {
            let whole = UnitSectionOffset(at.0);
            let found = units.iter().enumerate();
            let mut found =
                found.filter_map(|(index, unit)| Some((index, whole.to_unit_offset(unit)?)));
            found.next()
        }
        _ => None,
    }
}

impl TypeReader {
    pub fn read(
        &mut self,
        dwarf: &Dwarf<Bytes>,
        units: &[Unit<Bytes>],
        unit: usize,
        at: UnitOffset,
    ) -> Result<TypeId, gimli::Error> {
        let id = self.read_below(dwarf, units, unit, at)?;
        while let Some((id, unit, at)) = self.pending.pop() {
            let to = self.read_below(dwarf, units, unit, at)?;
            let described = self.types.get(id).clone();
            let name = self.pointer_name(to, "*");
            let shape = Shape::Pointer(to);
            self.types.set(
                id,
                Type {
                    name,
                    shape,
                    ..described
                },
            );
        }
        Ok(id)
    }

    /// Reads a type as [`read`](TypeReader::read) does. The targets of pointers that are nested
    /// more than [`DEEP`] types deep are not read yet, but put into `pending`. For a type that is
    /// nested more than [`DEEPEST`] types deep, which happens only in damaged debug information,
    /// returns the type `void`.
    fn read_below(
        &mut self,
        dwarf: &Dwarf<Bytes>,
        units: &[Unit<Bytes>],
        unit: usize,
        at: UnitOffset,
    ) -> Result<TypeId, gimli::Error> {
        if let Some(known) = self.known.get(&(unit, at)) {
            return Ok(*known);
        }
        if self.depth >= DEEPEST {
            return Ok(Types::VOID);
        }
        self.depth += 1;
        let read = match self.definitions.get(&(unit, at)).copied() {
            Some((unit, at)) => self.read_below(dwarf, units, unit, at),
            None => self.read_new(dwarf, units, unit, at),
        };
        self.depth -= 1;
        read
    }

    fn read_new(
        &mut self,
        dwarf: &Dwarf<Bytes>,
        units: &[Unit<Bytes>],
        unit: usize,
        at: UnitOffset,
    ) -> Result<TypeId, gimli::Error> {
        let reader = Reader { dwarf, units, unit };
        let entry = units[unit].entry(at)?;
        let name = reader.name(&entry).unwrap_or_default();
        let size = entry
            .attr_value(gimli::DW_AT_byte_size)
            .and_then(|it| it.udata_value());
        let inner = entry.attr_value(gimli::DW_AT_type);
        let inner = inner.and_then(|it| reference(units, unit, &it));
        // Typedefs and qualifiers are resolved before they get a number, other types after it.
        match entry.tag() {
            gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type => {
                let of = self.inner(&reader, inner)?;
                self.known.insert((unit, at), of);
                return Ok(of);
            }
            gimli::DW_TAG_typedef => return self.typedef(&reader, at, name, inner),
            _ => {}
        }
        let prefix = match entry.tag() {
            gimli::DW_TAG_structure_type => "struct ",
            gimli::DW_TAG_union_type => "union ",
            gimli::DW_TAG_enumeration_type => "enum ",
            _ => "",
        };
        let name = format!("{prefix}{name}");
        let is_record = matches!(
            entry.tag(),
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type
        );
        if is_record && let Some(known) = self.same_record(&reader, at, &name, size)? {
            self.known.insert((unit, at), known);
            return Ok(known);
        }
        let id = self.types.add(name.clone(), size.unwrap_or(0), Shape::Void);
        self.known.insert((unit, at), id);
        if entry.tag() == gimli::DW_TAG_pointer_type
            && self.depth > DEEP
            && let Some(target) = inner
        {
            self.leave_pending(id, size, target);
            return Ok(id);
        }
        if is_record {
            let key = reader.signature(at, &name, size)?;
            self.records.insert(key, id);
        }
        let (name, size, shape) = self.described(&reader, &entry, (name, size), inner)?;
        self.types.set(id, Type { name, size, shape });
        Ok(id)
    }

    /// Makes the type `id` a `void *` of `size` bytes (8 by default) for the time being, and notes
    /// that it is a pointer to the type at `target`, which is read later.
    fn leave_pending(&mut self, id: TypeId, size: Option<u64>, target: (usize, UnitOffset)) {
        let (name, size) = ("void *".to_owned(), size.unwrap_or(8));
        let shape = Shape::Pointer(Types::VOID);
        self.types.set(id, Type { name, size, shape });
        self.pending.push((id, target.0, target.1));
    }

    fn inner(
        &mut self,
        reader: &Reader<'_>,
        inner: Option<(usize, UnitOffset)>,
    ) -> Result<TypeId, gimli::Error> {
        match inner {
            Some((unit, at)) => self.read_below(reader.dwarf, reader.units, unit, at),
            None => Ok(Types::VOID),
        }
    }

    /// Returns the name of a pointer or reference to a type; `mark` is `*` or `&`.
    fn pointer_name(&self, to: TypeId, mark: &str) -> String {
        match self.types.get(to).name.as_str() {
            to if to.ends_with(['*', '&']) => format!("{to}{mark}"),
            to => format!("{to} {mark}"),
        }
    }

    fn typedef(
        &mut self,
        reader: &Reader<'_>,
        at: UnitOffset,
        name: String,
        inner: Option<(usize, UnitOffset)>,
    ) -> Result<TypeId, gimli::Error> {
        let of = self.inner(reader, inner)?;
        let described = self.types.get(of).clone();
        let id = match described.shape {
            // One type, however it is called: blocks are matched by it.
            Shape::Record(_) | Shape::Union(_) | Shape::Enum(_) | Shape::Void => {
                let bare = ["struct ", "union ", "enum "].contains(&described.name.as_str());
                if bare {
                    self.types.set(of, Type { name, ..described });
                }
                of
            }
            Shape::Base(_) => self.types.add(name, described.size, described.shape),
            _ => of,
        };
        self.known.insert((reader.unit, at), id);
        Ok(id)
    }

    fn same_record(
        &self,
        reader: &Reader<'_>,
        at: UnitOffset,
        name: &str,
        size: Option<u64>,
    ) -> Result<Option<TypeId>, gimli::Error> {
        // A nameless one is another one each time.
        if name.ends_with(' ') || name.is_empty() {
            return Ok(None);
        }
        let key = reader.signature(at, name, size)?;
        let known = self.records.get(&key).copied();
        // No record contains itself: one that is still being read only looks the same.
        Ok(known.filter(|known| self.types.get(*known).shape != Shape::Void))
    }

    fn described(
        &mut self,
        reader: &Reader<'_>,
        entry: &Entry,
        (name, size): (String, Option<u64>),
        inner: Option<(usize, UnitOffset)>,
    ) -> Result<(String, u64, Shape), gimli::Error> {
        Ok(match entry.tag() {
            gimli::DW_TAG_base_type => {
                (name, size.unwrap_or(0), Shape::Base(encoding(entry, size)))
            }
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => {
                let mark = match entry.tag() == gimli::DW_TAG_pointer_type {
                    true => "*",
                    false => "&",
                };
                let to = self.inner(reader, inner)?;
                let name = self.pointer_name(to, mark);
                (name, size.unwrap_or(8), Shape::Pointer(to))
            }
            gimli::DW_TAG_subroutine_type => ("function".to_owned(), 0, Shape::Function),
            gimli::DW_TAG_enumeration_type => {
                let values = reader.enumerators(entry.offset())?;
                (name, size.unwrap_or(4), Shape::Enum(values))
            }
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
                let size = size.unwrap_or(0);
                let fields = self.fields_of_record(reader, entry.offset(), &name, size)?;
                (name, size, Shape::Record(fields))
            }
            gimli::DW_TAG_union_type => (
                name,
                size.unwrap_or(0),
                Shape::Union(self.fields(reader, entry.offset(), size.unwrap_or(0))?),
            ),
            gimli::DW_TAG_array_type => {
                let mut of = self.inner(reader, inner)?;
                let mut counts = reader.counts(entry.offset())?;
                let first = counts.drain(..1.min(counts.len())).next().flatten();
                for count in counts.into_iter().rev() {
                    of = self.types.array(of, count.unwrap_or(0));
                }
                let element = self.types.get(of).clone();
                let count = first.map(|count| count.to_string()).unwrap_or_default();
                let size = element.size.saturating_mul(first.unwrap_or(0));
                (
                    format!("{}[{count}]", element.name),
                    size,
                    Shape::Array(of, first),
                )
            }
            _ => (name, size.unwrap_or(0), Shape::Void),
        })
    }

    fn fields_of_record(
        &mut self,
        reader: &Reader<'_>,
        at: UnitOffset,
        name: &str,
        size: u64,
    ) -> Result<Vec<Field>, gimli::Error> {
        let mut fields = self.fields(reader, at, size)?;
        if name.starts_with("struct RawVec<") {
            self.name_elements(reader, at, &mut fields)?;
        }
        Ok(fields)
    }

    fn fields(
        &mut self,
        reader: &Reader<'_>,
        at: UnitOffset,
        size: u64,
    ) -> Result<Vec<Field>, gimli::Error> {
        let mut fields = Vec::new();
        for entry in reader.children(at)? {
            if entry.tag() == gimli::DW_TAG_variant_part {
                self.variants(reader, &entry, size, &mut fields)?;
            }
            if !matches!(
                entry.tag(),
                gimli::DW_TAG_member | gimli::DW_TAG_inheritance
            ) || entry.attr(gimli::DW_AT_external).is_some()
            {
                continue;
            }
            let of = self.member_type(reader, &entry)?;
            let offset = number(&entry, gimli::DW_AT_data_member_location).unwrap_or(0);
            let unit = self.types.get(of).size.max(1);
            let (offset, bits) = match number(&entry, gimli::DW_AT_bit_size) {
                None => (offset, None),
                Some(width) => match bit_field(&entry, offset, width, unit, size) {
                    Some((start, bits)) => (start, Some(bits)),
                    None => continue,
                },
            };
            let name = reader.name(&entry).unwrap_or_default();
            fields.push(Field {
                name,
                offset,
                of,
                bits,
            });
        }
        Ok(fields)
    }

    /// Gives the elements of a Rust vector their type: pointers to bytes in `fields`, the fields of
    /// the vector, become pointers to elements. The type of the elements is the first type
    /// parameter in the debug entry of the vector's type, at the offset `at`.
    fn name_elements(
        &mut self,
        reader: &Reader<'_>,
        at: UnitOffset,
        fields: &mut [Field],
    ) -> Result<(), gimli::Error> {
        let parameters = reader.children(at)?.into_iter();
        let mut parameters =
            parameters.filter(|entry| entry.tag() == gimli::DW_TAG_template_type_parameter);
        let Some(first) = parameters.next() else {
            return Ok(());
        };
        let element = self.member_type(reader, &first)?;
        if self.types.get(element).size == 0 {
            return Ok(());
        }
        for field in fields {
            field.of = self.pointing_to(field.of, element);
        }
        Ok(())
    }

    /// Returns a type like `of` in which pointers to untyped bytes point to `element`. In a record,
    /// only the pointers in its fields `inner`, `ptr` and `pointer` are changed, and in those of
    /// records inside of these. Adds the changed type to the list of types; returns `of` if nothing
    /// changes.
    fn pointing_to(&mut self, of: TypeId, element: TypeId) -> TypeId {
        let mut described = self.types.get(of).clone();
        match &mut described.shape {
            Shape::Pointer(to) if self.types.is_untyped(*to) => {
                *to = element;
                described.name = format!("{} *", self.types.get(element).name);
            }
            Shape::Record(fields) => {
                let mut changed = false;
                for field in fields {
                    let before = field.of;
                    if ["inner", "ptr", "pointer"].contains(&field.name.as_str()) {
                        field.of = self.pointing_to(before, element);
                    }
                    changed |= field.of != before;
                }
                if !changed {
                    return of;
                }
            }
            _ => return of,
        }
        self.types
            .add(described.name, described.size, described.shape)
    }

    /// Adds the fields of a Rust enumeration of `size` bytes to `fields`: its discriminant, whose
    /// values have the names of the variants, and a union of the contents of the variants. If the
    /// enumeration has no discriminant, but marks one variant by a value that is invalid in the
    /// other variants, only the contents are added.
    fn variants(
        &mut self,
        reader: &Reader<'_>,
        part: &Entry,
        size: u64,
        fields: &mut Vec<Field>,
    ) -> Result<(), gimli::Error> {
        let (mut values, mut members, mut discriminant) = (Vec::new(), Vec::new(), None);
        for entry in reader.children(part.offset())? {
            if entry.tag() == gimli::DW_TAG_member {
                let at = number(&entry, gimli::DW_AT_data_member_location).unwrap_or(0);
                let of = self.member_type(reader, &entry)?;
                discriminant = Some((at, self.types.get(of).size));
            }
            if entry.tag() != gimli::DW_TAG_variant {
                continue;
            }
            let value = number(&entry, gimli::DW_AT_discr_value);
            for member in reader.children(entry.offset())? {
                let name = reader.name(&member).unwrap_or_default();
                values.extend(value.map(|value| (value as i64, name.clone())));
                members.push(Field {
                    name,
                    offset: number(&member, gimli::DW_AT_data_member_location).unwrap_or(0),
                    of: self.member_type(reader, &member)?,
                    bits: None,
                });
            }
        }
        let tag = discriminant.filter(|(_, width)| values.len() == members.len() && *width > 0);
        match tag {
            Some((at, width)) => {
                let of = self.types.add("discriminant", width, Shape::Enum(values));
                fields.push(plain_field("discriminant", at, of));
                self.contents(members, at + width, size, fields);
            }
            None => self.only_content(members, size, fields),
        }
        Ok(())
    }

    /// Adds to `fields` what the variants of an enumeration contain: a union of `members`, the
    /// variants, if all of them begin after the discriminant, which ends at offset `start`; else
    /// the raw bytes after the discriminant. `size` is the enumeration's size in bytes.
    fn contents(&mut self, members: Vec<Field>, start: u64, size: u64, fields: &mut Vec<Field>) {
        let is_behind = |field: &Field| match &self.types.get(field.of).shape {
            Shape::Record(inner) => inner.iter().all(|inner| inner.offset >= start),
            _ => false,
        };
        if start >= size {
            return;
        }
        let (at, of) = match members.iter().all(is_behind) {
            true => (0, self.types.add("variants", size, Shape::Union(members))),
            false => (start, self.types.array(Types::BYTE, size - start)),
        };
        fields.push(plain_field("", at, of));
    }

    /// Adds the content of an enumeration without a discriminant to `fields`: the only variant with
    /// a content or, if several variants have a content, all bytes of the enumeration as raw bytes.
    fn only_content(&mut self, members: Vec<Field>, size: u64, fields: &mut Vec<Field>) {
        let is_content = |field: &Field| match &self.types.get(field.of).shape {
            Shape::Record(inner) => !inner.is_empty(),
            _ => true,
        };
        let mut contents = members.into_iter().filter(is_content);
        match (contents.next(), contents.next()) {
            (Some(only), None) => fields.push(only),
            (Some(_), Some(_)) => {
                drop(contents);
                let of = self.types.array(Types::BYTE, size);
                fields.push(plain_field("", 0, of));
            }
            (None, _) => {}
        }
    }

    fn member_type(&mut self, reader: &Reader<'_>, member: &Entry) -> Result<TypeId, gimli::Error> {
        let inner = member.attr_value(gimli::DW_AT_type);
        let inner = inner.and_then(|it| reference(reader.units, reader.unit, &it));
        self.inner(reader, inner)
    }
}

fn number(entry: &Entry, name: gimli::DwAt) -> Option<u64> {
    let value = entry.attr_value(name);
    value.and_then(|it: AttributeValue<Bytes>| it.udata_value())
}

fn plain_field(name: &str, offset: u64, of: TypeId) -> Field {
    Field {
        name: name.to_owned(),
        offset,
        of,
        bits: None,
    }
}

/// Returns the offset of a bit-field's storage unit in its record, in bytes, and the bits in the
/// unit; `None` where no unit fits. `width` is the field's number of bits, `unit` the size of its
/// type and `size` the size of the record, in bytes; `offset` is the field's offset in bytes as the
/// debug information says it.
fn bit_field(entry: &Entry, offset: u64, width: u64, unit: u64, size: u64) -> Option<(u64, Bits)> {
    let from = match number(entry, gimli::DW_AT_data_bit_offset) {
        Some(from) => from,
        // DWARF 3 counts from the most significant bit of the storage unit.
        None => {
            let storage = number(entry, gimli::DW_AT_byte_size).unwrap_or(unit);
            // Negative where a packed field goes beyond it.
            let from = number(entry, gimli::DW_AT_bit_offset).unwrap_or(0) as i64;
            let behind = ((offset + storage) * 8).saturating_sub(width);
            behind.saturating_add_signed(from.saturating_neg())
        }
    };
    if width > 64 || from >= size.saturating_mul(8) {
        return None;
    }
    let aligned = from / 8 / unit * unit;
    let fits = from + width <= (aligned + unit) * 8 && aligned + unit <= size;
    // In a packed record the storage unit ends with the field.
    let start = match fits {
        true => aligned,
        false => (from + width).div_ceil(8).saturating_sub(unit),
    };
    let shift = (from - start * 8) as u8;
    let width = width as u8;
    (from + u64::from(width) <= (start + unit) * 8).then_some((start, Bits { shift, width }))
}

/// The debug information, with the compilation unit that is being read.
struct Reader<'a> {
    dwarf: &'a Dwarf<Bytes>,
    units: &'a [Unit<Bytes>],
    unit: usize,
}

impl Reader<'_> {
    fn name(&self, entry: &Entry) -> Option<String> {
        let name = entry.attr_value(gimli::DW_AT_name)?;
        let text = self.dwarf.attr_string(&self.units[self.unit], name).ok()?;
        Some(String::from_utf8_lossy(text.bytes()).into_owned())
    }

    fn children(&self, at: UnitOffset) -> Result<Vec<Entry>, gimli::Error> {
        let unit = &self.units[self.unit];
        let mut entries = unit.header.entries_at_offset(&unit.abbreviations, at)?;
        let mut found = Vec::new();
        let mut depth = None;
        while let Some(entry) = entries.next_dfs()? {
            let parent = *depth.get_or_insert(entry.depth());
            if entry.offset() == at {
                continue;
            }
            match entry.depth() - parent {
                ..=0 => break,
                1 => found.push(entry.clone()),
                _ => {}
            }
        }
        Ok(found)
    }

    fn enumerators(&self, at: UnitOffset) -> Result<Vec<(i64, String)>, gimli::Error> {
        let all = self.children(at)?.into_iter();
        let values = all.filter_map(|entry| {
            let value = entry.attr_value(gimli::DW_AT_const_value)?;
            let value = value
                .sdata_value()
                .or_else(|| value.udata_value().map(|it| it as i64))?;
            Some((value, self.name(&entry)?))
        });
        Ok(values.collect())
    }

    /// Returns the number of elements of each dimension of an array; `None` for an unknown number.
    fn counts(&self, at: UnitOffset) -> Result<Vec<Option<u64>>, gimli::Error> {
        let all = self.children(at)?.into_iter();
        let dimensions = all.filter(|entry| entry.tag() == gimli::DW_TAG_subrange_type);
        Ok(dimensions
            .map(|entry| {
                let number = |name| {
                    entry
                        .attr_value(name)
                        .and_then(|it: AttributeValue<Bytes>| it.udata_value())
                };
                let bound = number(gimli::DW_AT_upper_bound).map(|last| last.wrapping_add(1));
                number(gimli::DW_AT_count).or(bound)
            })
            .collect())
    }

    /// Returns a text that tells two records apart: name, size and source line of the record, and
    /// name, offset and type name of each field. The name alone does not suffice, since records of
    /// two modules, or inside of two instances of a C++ template, may share it.
    fn signature(
        &self,
        at: UnitOffset,
        name: &str,
        size: Option<u64>,
    ) -> Result<String, gimli::Error> {
        let record = self.units[self.unit].entry(at)?;
        let line = number(&record, gimli::DW_AT_decl_line);
        let mut text = format!("{name}:{size:?}:{line:?}");
        for entry in self.children(at)? {
            let offset = entry.attr_value(gimli::DW_AT_data_member_location);
            let offset = offset.and_then(|it| it.udata_value());
            let name = self.name(&entry).unwrap_or_default();
            text += &format!(",{name}@{offset:?}{}", self.name_of_type(&entry)?);
        }
        Ok(text)
    }

    /// Returns a text for the type of `entry`: its name, after the names of all typedefs and a `*`
    /// for each nameless type (pointer or array) that lead to it; at most `MOST_NAMED` of these
    /// are followed. Names of typedefs alone do not suffice: `pointer` has another meaning in each
    /// instance of a template.
    fn name_of_type(&self, entry: &Entry) -> Result<String, gimli::Error> {
        let unit = &self.units[self.unit];
        let (mut entry, mut text) = (entry.clone(), String::new());
        for _ in 0..MOST_NAMED {
            let Some(AttributeValue::UnitRef(at)) = entry.attr_value(gimli::DW_AT_type) else {
                break;
            };
            entry = unit.entry(at)?;
            match self.name(&entry) {
                Some(name) if entry.tag() == gimli::DW_TAG_typedef => text += &format!(":{name}"),
                Some(name) => return Ok(format!("{text}:{name}")),
                None => text.push('*'),
            }
        }
        Ok(text)
    }
}

fn encoding(entry: &Entry, size: Option<u64>) -> Encoding {
    let Some(AttributeValue::Encoding(encoding)) = entry.attr_value(gimli::DW_AT_encoding) else {
        return Encoding::Other;
    };
    match encoding {
        gimli::DW_ATE_boolean => Encoding::Bool,
        gimli::DW_ATE_signed_char | gimli::DW_ATE_unsigned_char if size == Some(1) => {
            Encoding::Char
        }
        gimli::DW_ATE_signed | gimli::DW_ATE_signed_char => Encoding::Signed,
        gimli::DW_ATE_unsigned | gimli::DW_ATE_unsigned_char | gimli::DW_ATE_UTF => {
            Encoding::Unsigned
        }
        gimli::DW_ATE_float => Encoding::Float,
        _ => Encoding::Other,
    }
}
