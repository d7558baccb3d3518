//! The types of a program, as its debug information describes them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Index of a type in [`Types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub u32);

/// How the bytes of a basic type are read as a value: as a truth value, integer, character or
/// floating-point number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// A truth value.
    Bool,
    /// A signed integer.
    Signed,
    /// An unsigned integer.
    Unsigned,
    /// A character of one byte.
    Char,
    /// A floating-point number of 4, 8 or 16 bytes (x87 extended precision in 16).
    Float,
    /// Any other encoding; the value is shown in hex digits.
    Other,
}

/// The bits that a bit-field takes, counted from the least significant bit of its storage unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Position of the bit-field's lowest bit in its storage unit.
    pub shift: u8,
    /// Number of bits of the bit-field, 1…64.
    pub width: u8,
}

/// A field of a record or union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the field; empty for an anonymous record or union.
    pub name: String,
    /// Offset of the field, or of the storage unit of a bit-field, in bytes.
    pub offset: u64,
    /// Type of the field.
    pub of: TypeId,
    /// The bits of a bit-field; `None` for other fields.
    pub bits: Option<Bits>,
}

/// The structure of a type: what kind of value it describes, with the types of its parts.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// `void`, or a type without a description.
    Void,
    /// A number, character or truth value.
    Base(Encoding),
    /// An enumeration, with its values and their names.
    Enum(Vec<(i64, String)>),
    /// A pointer or reference, with the type of the value that it leads to.
    Pointer(TypeId),
    /// The type of a function.
    Function,
    /// A structure or class with these fields.
    Record(Vec<Field>),
    /// A union with its members, which overlap; also the variants of a Rust enumeration, after its
    /// discriminant.
    Union(Vec<Field>),
    /// An array: the type of its elements, and their number, which is `None` if it is unknown.
    Array(TypeId, Option<u64>),
}

/// A type of the program, with its name, size and structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    /// Name of the type as in the source, such as `struct node` or `char *`.
    pub name: String,
    /// Size of a value of the type in bytes; 0 where it is unknown.
    pub size: u64,
    /// Structure of the type: whether it is a number, a pointer, a record and so on.
    pub shape: Shape,
}

/// All types of a program, each with an index.
#[derive(Clone, Debug)]
pub struct Types {
    all: Vec<Type>,
    arrays: HashMap<(TypeId, u64), TypeId>,
}

impl Default for Types {
    fn default() -> Types {
        let void = Type {
            name: "void".to_owned(),
            size: 0,
            shape: Shape::Void,
        };
        let byte = Type {
            name: "unsigned char".to_owned(),
            size: 1,
            shape: Shape::Base(Encoding::Char),
        };
        let word = Type {
            name: "machine word".to_owned(),
            size: 8,
            shape: Shape::Base(Encoding::Other),
        };
        let header = Type {
            name: "size of a heap block".to_owned(),
            size: 8,
            shape: Shape::Base(Encoding::Other),
        };
        Types {
            all: vec![void, byte, word, header],
            arrays: HashMap::new(),
        }
    }
}

impl Types {
    /// Index of the type `void`.
    pub const VOID: TypeId = TypeId(0);
    /// Index of the type of one raw byte.
    pub const BYTE: TypeId = TypeId(1);
    /// Index of the type of eight raw bytes.
    pub const WORD: TypeId = TypeId(2);
    /// Index of the type of the word in which the heap allocator keeps the size of a block.
    pub const HEADER: TypeId = TypeId(3);

    /// Adds a type and returns its index.
    pub fn add(&mut self, name: impl Into<String>, size: u64, shape: Shape) -> TypeId {
        let id = TypeId(self.all.len() as u32);
        self.all.push(Type {
            name: name.into(),
            size,
            shape,
        });
        id
    }

    /// Replaces a type that was added, as a placeholder, before its parts were known.
    pub fn set(&mut self, id: TypeId, of: Type) {
        self.all[id.0 as usize] = of;
    }

    /// Returns the type that has the index `id`.
    pub fn get(&self, id: TypeId) -> &Type {
        &self.all[id.0 as usize]
    }

    /// Returns all types, in the order of their numbers ([`TypeId`]).
    pub fn iter(&self) -> impl Iterator<Item = &Type> {
        self.all.iter()
    }

    /// Returns the type of an array of `count` elements of type `of`.
    pub fn array(&mut self, of: TypeId, count: u64) -> TypeId {
        if let Some(known) = self.arrays.get(&(of, count)) {
            return *known;
        }
        let element = self.get(of);
        let (name, size) = (format!("{}[{count}]", element.name), element.size);
        let id = self.add(
            name,
            size.saturating_mul(count),
            Shape::Array(of, Some(count)),
        );
        self.arrays.insert((of, count), id);
        id
    }

    /// Returns true for `void`, functions, and types of at most one byte: a pointer to such a type
    /// says nothing about the structure of what it points to.
    pub fn is_untyped(&self, id: TypeId) -> bool {
        let of = self.get(id);
        match of.shape {
            Shape::Void | Shape::Function => true,
            Shape::Base(_) => of.size <= 1,
            _ => of.size == 0,
        }
    }

    /// Returns true for a C++ class with virtual functions: its objects, also those of its derived
    /// classes, begin with a vtable pointer.
    pub fn is_polymorphic(&self, id: TypeId) -> bool {
        // Damaged debug information may let a class contain itself.
        let (mut left, mut seen) = (vec![id], HashSet::new());
        while let Some(id) = left.pop() {
            let Shape::Record(fields) = &self.get(id).shape else {
                continue;
            };
            if !seen.insert(id) {
                continue;
            }
            for field in fields.iter().filter(|field| field.offset == 0) {
                match field.name.as_str() {
                    // A base class.
                    "" => left.push(field.of),
                    // As GCC and Clang name it.
                    name if name.starts_with("_vptr.") || name.starts_with("_vptr$") => {
                        return true;
                    }
                    _ => {}
                }
            }
        }
        false
    }

    /// Returns the class `id` and all its direct and indirect base classes, each with its offset in
    /// bytes in an object of the class `id`.
    pub fn bases(&self, id: TypeId) -> Vec<(u64, TypeId)> {
        let mut found: Vec<(u64, TypeId)> = vec![(0, id)];
        let mut at = 0;
        while at < found.len() {
            let (offset, id) = found[at];
            at += 1;
            if let Shape::Record(fields) = &self.get(id).shape {
                let bases = fields.iter().filter(|field| field.name.is_empty());
                let bases = bases.map(|base| (offset.saturating_add(base.offset), base.of));
                // Damaged debug information may let a class contain itself.
                let new: Vec<_> = bases.filter(|base| !found.contains(base)).collect();
                found.extend(new);
            }
        }
        found
    }

    /// Returns true if a type is a character of one byte.
    pub fn is_char(&self, id: TypeId) -> bool {
        let of = self.get(id);
        of.size == 1 && matches!(of.shape, Shape::Base(Encoding::Char | Encoding::Unsigned))
    }

    /// Returns the range of byte offsets of the innermost record that contains the byte at `offset`
    /// in an object of type `id`, which may also be an array of values of the type; `None` if no
    /// record contains the byte.
    pub fn record_at(&self, id: TypeId, offset: u64) -> Option<Range<u64>> {
        let of = self.get(id);
        let start = offset - offset.checked_rem(of.size)?;
        let inner = |part: TypeId, from: u64| {
            let found = self.record_at(part, offset - from)?;
            Some(found.start + from..found.end + from)
        };
        match &of.shape {
            Shape::Array(element, _) => inner(*element, start),
            Shape::Record(fields) | Shape::Union(fields) => {
                let has = |it: &&Field| {
                    let from = start + it.offset;
                    (from..from + self.get(it.of).size).contains(&offset)
                };
                let field = fields.iter().find(has);
                let found = field.and_then(|it| inner(it.of, start + it.offset));
                found.or(Some(start..start + of.size))
            }
            _ => None,
        }
    }

    /// Formats the bytes of a value as C would write it. `bits` selects the bits of a bit-field.
    pub fn show(&self, id: TypeId, bytes: &[u8], bits: Option<Bits>) -> String {
        let of = self.get(id);
        match &of.shape {
            Shape::Base(Encoding::Float) => show_float(bytes),
            Shape::Base(encoding) => show_integer(*encoding, bytes, bits),
            Shape::Enum(values) => {
                let value = integer(bytes, bits, true) as i64;
                let short = integer(bytes, bits, false) as i64;
                let named = values.iter().find(|(it, _)| *it == value || *it == short);
                named.map_or_else(|| value.to_string(), |(_, name)| name.clone())
            }
            Shape::Pointer(_) => match integer(bytes, None, false) {
                0 => "NULL".to_owned(),
                address => format!("{address:#x}"),
            },
            _ => show_bytes(bytes),
        }
    }
}

/// Reads a little-endian integer of up to 16 bytes; further bytes are ignored. With `bits`, only
/// these bits of the integer are read; if `signed`, the highest bit is the sign. An unsigned
/// integer of 16 bytes above `i128::MAX` becomes negative.
pub fn integer(bytes: &[u8], bits: Option<Bits>, signed: bool) -> i128 {
    let mut word = [0; 16];
    let length = bytes.len().min(16);
    word[..length].copy_from_slice(&bytes[..length]);
    let value = u128::from_le_bytes(word);
    let (shift, width) = match bits {
        Some(bits) => (u32::from(bits.shift), u32::from(bits.width)),
        None => (0, length as u32 * 8),
    };
    if width == 0 || width >= 128 {
        return value as i128;
    }
    let value = (value >> shift) & ((1 << width) - 1);
    match signed && value >> (width - 1) & 1 == 1 {
        true => value as i128 - (1 << width),
        false => value as i128,
    }
}

fn show_integer(encoding: Encoding, bytes: &[u8], bits: Option<Bits>) -> String {
    match (encoding, bytes) {
        (Encoding::Char, [byte]) => show_char(*byte),
        (Encoding::Bool, _) => match integer(bytes, bits, false) {
            0 => "false".to_owned(),
            1 => "true".to_owned(),
            other => other.to_string(),
        },
        (Encoding::Other, [..]) if bytes.len() == 8 => {
            format!("{:#x}", integer(bytes, None, false))
        }
        (Encoding::Signed, _) => integer(bytes, bits, true).to_string(),
        (Encoding::Unsigned | Encoding::Char, _) => integer(bytes, bits, false).to_string(),
        _ => show_bytes(bytes),
    }
}

fn show_char(byte: u8) -> String {
    match byte {
        b'\'' | b'\\' => format!("'\\{}'", byte as char),
        b'\n' => "'\\n'".to_owned(),
        b'\t' => "'\\t'".to_owned(),
        0x20..=0x7e => format!("'{}'", byte as char),
        _ => byte.to_string(),
    }
}

fn show_float(bytes: &[u8]) -> String {
    match bytes.len() {
        4 => f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]).to_string(),
        8 => {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            f64::from_le_bytes(word).to_string()
        }
        10..=16 => extended(bytes).to_string(),
        _ => show_bytes(bytes),
    }
}

/// Reads an x87 extended-precision number as the nearest `f64`.
fn extended(bytes: &[u8]) -> f64 {
    let mantissa = integer(&bytes[..8], None, false) as u64;
    let top = integer(&bytes[8..10], None, false) as i32;
    let sign = if top & 0x8000 == 0 { 1.0 } else { -1.0 };
    match top & 0x7fff {
        0 if mantissa == 0 => 0.0 * sign,
        0x7fff if mantissa << 1 == 0 => f64::INFINITY * sign,
        0x7fff => f64::NAN,
        exponent => sign * mantissa as f64 * 2f64.powi(exponent - 16383 - 63),
    }
}

/// Largest number of bytes of a text or raw value that are shown.
const SHOWN: usize = 24;

/// Formats bytes as a quoted text up to the first zero, if that is printable, else in hex digits:
/// one byte as a number, several as `bytes` in the order of their addresses.
pub fn show_bytes(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(SHOWN)];
    let more = if bytes.len() > SHOWN { "…" } else { "" };
    let end = shown.iter().position(|byte| *byte == 0);
    let text = &shown[..end.unwrap_or(shown.len())];
    let printable = |byte: &u8| matches!(byte, 0x20..=0x7e | b'\n' | b'\t' | b'\r');
    if !text.is_empty() && text.iter().all(printable) {
        let more = if end.is_some() { "" } else { more };
        return format!("\"{}\"{more}", text.escape_ascii());
    }
    let digits: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    match &digits[..] {
        [one] => format!("0x{one}"),
        all => format!("bytes {}{more}", all.join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_record_of_a_byte_is_found() {
        let mut types = Types::default();
        let int = types.add("int", 4, Shape::Base(Encoding::Signed));
        let field = |offset, of| Field {
            name: String::new(),
            offset,
            of,
            bits: None,
        };
        let pair = Shape::Record(vec![field(0, int), field(4, int)]);
        let pair = types.add("struct pair", 8, pair);
        let pairs = types.array(pair, 3);
        let all = Shape::Record(vec![field(0, int), field(8, pairs)]);
        let all = types.add("struct all", 32, all);
        assert_eq!(types.record_at(all, 2), Some(0..32));
        assert_eq!(types.record_at(all, 20), Some(16..24));
        // A block of two.
        assert_eq!(types.record_at(all, 32 + 20), Some(48..56));
        assert_eq!(types.record_at(int, 2), None);
        assert_eq!(types.record_at(Types::VOID, 0), None);
    }

    #[test]
    fn values_are_shown_as_c_writes_them() {
        let mut types = Types::default();
        let int = types.add("int", 4, Shape::Base(Encoding::Signed));
        let double = types.add("double", 8, Shape::Base(Encoding::Float));
        let long_double = types.add("long double", 16, Shape::Base(Encoding::Float));
        let color = vec![(0, "RED".to_owned()), (1, "BLUE".to_owned())];
        let color = types.add("enum color", 4, Shape::Enum(color));
        assert_eq!(types.show(int, &(-3i32).to_le_bytes(), None), "-3");
        let bits = Some(Bits { shift: 3, width: 2 });
        assert_eq!(types.show(int, &[0b11000, 0, 0, 0], bits), "-1");
        assert_eq!(types.show(double, &1.5f64.to_le_bytes(), None), "1.5");
        let mut two = [0; 16];
        two[7] = 0x80;
        two[8..10].copy_from_slice(&0x4000u16.to_le_bytes());
        assert_eq!(types.show(long_double, &two, None), "2");
        assert_eq!(types.show(color, &1u32.to_le_bytes(), None), "BLUE");
        assert_eq!(types.show(Types::BYTE, b"b", None), "'b'");
        assert_eq!(show_bytes(b"ab\0cd"), "\"ab\"");
        assert_eq!(show_bytes(&[1, 2]), "bytes 01 02");
        assert_eq!(show_bytes(&[1]), "0x01");
    }
}
