//! Pointers as text: by what they lead to. Pure.

use crate::crossing::parts_at;
use crate::graph::{Graph, Leaf, Object, ObjectId};
use crate::types::{Shape, TypeId, Types, integer};

/// Longest name, in characters, by which a block is told.
const NAME: usize = 48;

/// Returns the name of a type with its article in front, such as `a struct node`.
fn one(name: &str) -> String {
    let is_vowel = name.starts_with(['a', 'e', 'i', 'o']);
    match is_vowel || name.starts_with("un") && !name.starts_with("uni") {
        true => format!("an {name}"),
        false => format!("a {name}"),
    }
}

/// Formats a pointer to the type `to` by what it leads to: `NULL`, `&x`, `table + 2`, `a struct
/// node`, `&list->head`, `element 3 of a block of 8 struct node`. `pointer` has its bytes, and the
/// object that holds it with its offset there. A block in which it leads to an element has the name
/// of the pointer by which the block was found first, if that is another one. With `None` for the
/// object, blocks have no such names, which differ between the points of a run.
pub(crate) fn show_pointer(
    types: &Types,
    graph: &Graph,
    to: TypeId,
    (bytes, held): (&[u8], Option<(ObjectId, u64)>),
) -> String {
    let address = integer(bytes, None, false) as u64;
    if address == 0 {
        return "NULL".to_owned();
    }
    let Some((id, offset)) = graph.resolve(address) else {
        return format!("{address:#x}");
    };
    let object = &graph.objects[id];
    let mut leaves = object.leaves.iter();
    let inside = leaves.find(|leaf| leaf.offset == offset && leaf.of == to);
    if let Some(leaf) = inside.filter(|_| !object.is_variable() || offset > 0) {
        return format!("&{}", graph.name(id, &leaf.path));
    }
    if object.is_variable() {
        return in_variable(types, object, to, offset);
    }
    let is_own = match (object.reached, held) {
        (Some((from, leaf, _)), Some((holder, at))) => {
            from == holder && graph.objects[from].leaves[leaf].offset == at
        }
        _ => true,
    };
    let named = elements(types, object).filter(|(size, count)| {
        let is_element = offset % size == 0 && offset / size < *count;
        is_element && !is_own
    });
    let name = named.map(|(size, _)| graph.name(id, &format!("[{}]", offset / size)));
    match name.filter(|it| it.chars().count() <= NAME) {
        Some(name) => match name.strip_prefix('*') {
            Some(pointer) => pointer.to_owned(),
            None => format!("&{name}"),
        },
        None => in_block(types, object, offset),
    }
}

/// Returns the size in bytes and the number of the elements of `object`, if it is an array of more
/// than one element; `None` for others.
fn elements(types: &Types, object: &Object) -> Option<(u64, u64)> {
    match types.get(object.of).shape {
        Shape::Array(element, Some(count)) if count > 1 => {
            let size = types.get(element).size;
            (size > 0).then_some((size, count))
        }
        _ => None,
    }
}

/// Formats a pointer to the type `to` that leads into the variable `object`, `offset` bytes behind
/// its beginning, as C would write it.
fn in_variable(types: &Types, object: &Object, to: TypeId, offset: u64) -> String {
    let name = &object.name;
    if let Some((size, count)) = elements(types, object)
        && offset == size * count
    {
        return format!("{name} + {count}");
    }
    let size = object.bytes.len() as u64;
    let parts = parts_at(types, (object.of, size), offset);
    let begins = || parts.iter().filter(|it| it.range.start == offset);
    let Some(part) = begins().find(|it| it.of == to).or(begins().next()) else {
        return format!("(char *)&{name} + {offset}");
    };
    // Characters are counted from the beginning of their array.
    let index = part
        .path
        .strip_suffix(']')
        .and_then(|it| it.rsplit_once('['));
    match index {
        Some((path, "0")) => format!("{name}{path}"),
        Some((path, index)) if types.is_char(part.of) => format!("{name}{path} + {index}"),
        _ => format!("&{name}{}", part.path),
    }
}

/// Describes the place `offset` bytes behind the beginning of the memory block `object`.
pub(crate) fn in_block(types: &Types, object: &Object, offset: u64) -> String {
    let described = types.get(object.of);
    let (size, count, block) = match described.shape {
        Shape::Void => {
            let bytes = object.bytes.len() as u64;
            (1, bytes, format!("a block of {bytes} bytes"))
        }
        Shape::Array(element, Some(count)) if count > 1 => {
            let name = match types.is_char(element) {
                true => "bytes",
                false => &types.get(element).name,
            };
            let block = format!("a block of {count} {name}");
            (types.get(element).size.max(1), count, block)
        }
        _ => (1, described.size.max(1), one(&described.name)),
    };
    let is_bytes = size == 1;
    match (offset / size, offset % size) {
        (0, 0) => block,
        (at, 0) if at == count => format!("the end of {block}"),
        (at, 0) if !is_bytes => format!("element {at} of {block}"),
        _ => format!("byte {offset} of {block}"),
    }
}

/// Path of fields from a `Vec` of Rust to the pointer to its elements.
const RUST_ELEMENTS: &str = ".buf.inner.ptr.pointer.pointer";

/// Returns how many elements a vector has, as a `std::vector` of libstdc++ or a `Vec` of Rust holds
/// it: `object` holds the vector, with the pointer `leaf` to its elements of `size` bytes. `None`
/// for other pointers.
pub(crate) fn vector_size(object: &Object, leaf: &Leaf, size: u64) -> Option<u64> {
    let beside = |stem: &str, field: &str| {
        let is_it = |it: &&Leaf| it.path.strip_prefix(stem) == Some(field);
        object.leaves.iter().find(is_it)
    };
    if let Some(stem) = leaf.path.strip_suffix(RUST_ELEMENTS) {
        return Some(object.address(beside(stem, ".len")?));
    }
    let stem = leaf.path.strip_suffix("._M_start")?;
    let end = object.address(beside(stem, "._M_finish")?);
    let bytes = end.checked_sub(object.address(leaf))?;
    (bytes.checked_rem(size)? == 0).then(|| bytes / size)
}

/// If the pointer `leaf` is the end of the elements of a `std::vector` (libstdc++) of elements of
/// the type `to`, returns the path of the vector, and its numbers of elements in both of `objects`,
/// which hold it. `None` for other pointers, and if both numbers are the same.
pub(crate) fn vector_sizes<'a>(
    types: &Types,
    to: TypeId,
    leaf: &'a Leaf,
    objects: [&Object; 2],
) -> Option<(&'a str, [u64; 2])> {
    let stem = leaf.path.strip_suffix("._M_finish")?;
    let size = types.get(to).size;
    let count = |object: &Object| {
        let begins = |it: &&Leaf| it.path.strip_suffix("._M_start") == Some(stem);
        vector_size(object, object.leaves.iter().find(begins)?, size)
    };
    let sizes = [count(objects[0])?, count(objects[1])?];
    let stem = stem.strip_suffix("._M_impl").unwrap_or(stem);
    (sizes[0] != sizes[1]).then_some((stem, sizes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{LeafKind, Origin, Place};
    use crate::types::Encoding;

    fn object(of: TypeId, at: u64, size: usize, name: &str) -> Object {
        Object {
            origin: match name.is_empty() {
                true => Origin::Block,
                false => Origin::Global(at),
            },
            place: Place::Memory(at),
            of,
            bytes: vec![0; size],
            leaves: Vec::new(),
            name: name.to_owned(),
            function: String::new(),
            reached: None,
            alias: None,
        }
    }

    #[test]
    fn pointers_into_arrays_name_their_elements() {
        let mut types = Types::default();
        let number = types.add("int", 4, Shape::Base(Encoding::Signed));
        let fields = vec![crate::types::Field {
            name: "left".to_owned(),
            offset: 0,
            of: number,
            bits: None,
        }];
        let kind = types.add("struct kind", 24, Shape::Record(fields));
        let kinds = types.array(kind, 3);
        let line = types.array(Types::BYTE, 256);
        let block = types.array(kind, 8);
        let mut graph = Graph::default();
        graph.add(object(kinds, 0x1000, 72, "kinds"));
        graph.add(object(line, 0x2000, 256, "line"));
        graph.add(object(Types::VOID, 0x3000, 40, ""));
        graph.add(object(block, 0x4000, 192, ""));
        graph.add(object(kind, 0x5000, 24, ""));
        let shown =
            |to, address: u64| show_pointer(&types, &graph, to, (&address.to_le_bytes(), None));
        assert_eq!(shown(kind, 0x1030), "&kinds[2]");
        assert_eq!(shown(kind, 0x1000), "kinds");
        assert_eq!(shown(kind, 0x1048), "kinds + 3");
        assert_eq!(shown(kind, 0x1001), "(char *)&kinds + 1");
        assert_eq!(shown(Types::BYTE, 0x2002), "line + 2");
        assert_eq!(shown(Types::VOID, 0x3000), "a block of 40 bytes");
        assert_eq!(shown(kind, 0x4000), "a block of 8 struct kind");
        assert_eq!(shown(kind, 0x4048), "element 3 of a block of 8 struct kind");
        assert_eq!(shown(kind, 0x40c0), "the end of a block of 8 struct kind");
        assert_eq!(shown(kind, 0x5000), "a struct kind");
        assert_eq!(shown(kind, 0), "NULL");
    }

    #[test]
    fn a_block_that_another_pointer_has_a_name_for_has_that_name() {
        let mut types = Types::default();
        let number = types.add("int", 4, Shape::Base(Encoding::Signed));
        let pair = types.array(number, 2);
        let row = types.array(pair, 5);
        let pointer = types.add("pair *", 8, Shape::Pointer(pair));
        let leaf = |offset, path: &str, kind, of| Leaf {
            offset,
            size: 8,
            bits: None,
            kind,
            of,
            path: path.to_owned(),
        };
        let mut graph = Graph::default();
        let mut holder = object(pointer, 0x1000, 8, "p");
        holder.leaves = vec![leaf(0, "", LeafKind::Pointer(pair), pointer)];
        let from = graph.add(holder);
        let mut block = object(row, 0x2000, 40, "");
        block.leaves = (0..5)
            .map(|at| leaf(8 * at, &format!("[{at}].x"), LeafKind::Scalar, number))
            .collect();
        block.reached = Some((from, 0, 16));
        let id = graph.add(block);
        assert_eq!(graph.name(id, "[2].x"), "p->x");
        assert_eq!(graph.name(id, "[2]"), "*p");
        assert_eq!(graph.name(id, "[4].x"), "p[2].x");
        assert_eq!(graph.name(id, "[0].x"), "p[-2].x");
        let address = 0x2018u64.to_le_bytes();
        let shown = |held| show_pointer(&types, &graph, pair, (&address, Some(held)));
        assert_eq!(shown((from, 0)), "element 3 of a block of 5 int[2]");
        assert_eq!(shown((from + 7, 0)), "&p[1]");
        let address = 0x2010u64.to_le_bytes();
        let shown = |held| show_pointer(&types, &graph, pair, (&address, Some(held)));
        assert_eq!(shown((from + 7, 0)), "p");
    }

    #[test]
    fn the_end_of_a_vector_is_its_size() {
        let mut types = Types::default();
        let node = types.add("struct Node", 72, Shape::Void);
        let leaf = |offset, path: &str| Leaf {
            offset,
            size: 8,
            bits: None,
            kind: LeafKind::Pointer(node),
            of: node,
            path: path.to_owned(),
        };
        let end = leaf(8, ".nodes._M_impl._M_finish");
        let vector = |size: u64| {
            let mut it = object(node, 0x1000, 16, "out");
            it.leaves = vec![leaf(0, ".nodes._M_impl._M_start"), end.clone()];
            it.leaves.extend([
                leaf(0, ".v.buf.inner.ptr.pointer.pointer"),
                leaf(8, ".v.len"),
            ]);
            it.bytes = [0x5000u64, 0x5000 + 72 * size]
                .map(u64::to_le_bytes)
                .concat();
            it
        };
        let sizes = |one, other| vector_sizes(&types, node, &end, [&vector(one), &vector(other)]);
        assert_eq!(sizes(2, 4), Some((".nodes", [2, 4])));
        assert_eq!(sizes(2, 2), None);
        let it = vector(3);
        assert_eq!(vector_size(&it, &it.leaves[0], 72), Some(3));
        assert_eq!(vector_size(&it, &it.leaves[2], 72), Some(0x5000 + 72 * 3));
        assert_eq!(vector_size(&it, &end, 72), None);
    }
}
