//! The variable in which a write begins, and other variables into which it reaches: told by the
//! objects of a memory graph and the types of their parts. Pure.

use std::ops::Range;

use crate::graph::{Graph, LeafKind, Object, ObjectId, Origin, Place};
use crate::types::{Shape, TypeId, Types};

/// Largest number of variables that are named because a write reaches into them.
const NAMES: usize = 3;
/// Number of bytes before a heap block in which the allocator keeps its size.
const HEADER: u64 = 8;
/// Largest number of records and arrays nested within each other that are followed.
const DEEPEST: usize = 64;

/// The kind of evidence from which it is known in which array a write should have stayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The write is to an element of an array. This is the largest array around `base`; but if a
    /// variable points to a record around `array`, it is the largest array in that record.
    Element {
        /// The address from which the element's address was computed: usually that of the array.
        base: u64,
        /// The pointer to which the index of the element was added last; `None` if that is not
        /// known.
        array: Option<u64>,
    },
    /// The write fills an array of numbers or characters from this address on, one element after
    /// another.
    Filled(u64),
    /// The write is a text, which has to fit into the smallest part of an object at this address.
    Text(u64),
    /// The write has to fit into the largest part of an object that begins at this address.
    Largest(u64),
}

/// A part of an object: the whole, a field, or an element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Offsets of its first byte in the object, and of the byte after its last one.
    pub range: Range<u64>,
    /// Type of the part.
    pub of: TypeId,
    /// Operations that lead from the object to the part.
    pub path: String,
}

/// A write that begins in one variable, or is to an element of it, and reaches into others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Crossing {
    /// Name of the variable in which the write should have stayed, as C would write it.
    pub object: String,
    /// The addresses of the variable in which the write should have stayed.
    pub has: Range<u64>,
    /// Size of an element of the variable in which the write should have stayed, in bytes; 1 if the
    /// variable is not an array.
    pub element: u64,
    /// The written addresses outside of the variable in which the write should have stayed.
    pub beyond: Range<u64>,
    /// Names of the variables at the addresses `beyond`, three at most; empty if there are none.
    pub into: Vec<String>,
    /// The first of the addresses `beyond` at which there is another variable; the first of all if
    /// there is none.
    pub reached: u64,
}

/// Returns the parts of an object of `size` bytes that have the byte at `offset`, the whole first,
/// and the smallest one last. Members of unions are no parts.
pub(crate) fn parts_at(types: &Types, (of, size): (TypeId, u64), offset: u64) -> Vec<Part> {
    let mut found = vec![Part {
        range: 0..size,
        of,
        path: String::new(),
    }];
    while let Some(last) = found.last().filter(|_| found.len() < DEEPEST) {
        let start = last.range.start;
        let inner = match &types.get(last.of).shape {
            Shape::Array(element, Some(_)) => {
                let size = types.get(*element).size.max(1);
                let index = (offset - start) / size;
                let at = start + index * size;
                Some((at..at + size, *element, format!("[{index}]")))
            }
            Shape::Record(fields) => fields.iter().find_map(|field| {
                let at = start.checked_add(field.offset)?;
                let range = at..at.checked_add(types.get(field.of).size)?;
                let is_it = field.bits.is_none() && range.contains(&offset);
                let name = match field.name.is_empty() {
                    true => String::new(),
                    false => format!(".{}", field.name),
                };
                is_it.then_some((range, field.of, name))
            }),
            _ => None,
        };
        let Some((range, of, step)) = inner.filter(|it| it.0.end <= last.range.end) else {
            break;
        };
        let path = format!("{}{step}", last.path);
        found.push(Part { range, of, path });
    }
    found
}

/// Returns true for an array whose length is known, and is no stand-in for an unknown one.
pub(crate) fn is_array(types: &Types, part: &Part) -> bool {
    matches!(types.get(part.of).shape, Shape::Array(_, Some(count)) if count > 1)
}

/// Returns true for a record or a union, whose parts are of different kinds.
pub(crate) fn is_record(types: &Types, part: &Part) -> bool {
    matches!(types.get(part.of).shape, Shape::Record(_) | Shape::Union(_))
}

/// Returns the smallest of `parts` that is an array of numbers, characters or pointers, or an array
/// of such arrays.
fn plain_array<'a>(types: &Types, parts: &'a [Part]) -> Option<&'a Part> {
    let records = parts.iter().rposition(|it| is_record(types, it));
    let inner = &parts[records.map_or(0, |at| at + 1)..];
    inner.iter().find(|it| is_array(types, it))
}

/// Returns true if the bounds of an object are known: it is a variable, or a live heap block.
fn is_bounded(graph: &Graph, object: &Object) -> bool {
    match (object.origin, object.place) {
        (Origin::Local { .. } | Origin::Global(_), _) => true,
        (Origin::Block | Origin::Raw, Place::Memory(start)) => {
            graph.header(start.wrapping_sub(HEADER)).is_some()
        }
        _ => false,
    }
}

/// Returns true if a write of `length` bytes from `offset` on probably sets whole records of an
/// object: it begins with a record and is as long as one or several of them, or ends with a record.
fn is_whole(types: &Types, parts: &[Part], offset: u64, length: u64) -> bool {
    parts.iter().any(|part| {
        let size = part.range.end - part.range.start;
        let begins = part.range.start == offset && length.is_multiple_of(size.max(1));
        let ends = part.range.end == offset + length;
        (begins || ends) && is_record(types, part)
    })
}

/// Returns the one of `parts`, the parts of an object that have the byte at `offset`, in which a
/// write of `length` bytes has to stay; `None` where that is not known.
fn bounding<'a>(
    types: &Types,
    parts: &'a [Part],
    bound: Bound,
    (offset, length): (u64, u64),
) -> Option<&'a Part> {
    match bound {
        Bound::Element { .. } => {
            let array = parts.iter().find(|it| is_array(types, it));
            array.or(parts.first().filter(|it| types.is_untyped(it.of)))
        }
        Bound::Filled(_) if is_whole(types, parts, offset, length) => None,
        Bound::Filled(_) | Bound::Text(_) => {
            let untyped = parts.first().filter(|it| types.is_untyped(it.of));
            plain_array(types, parts).or(untyped)
        }
        Bound::Largest(_) => parts
            .iter()
            .find(|it| it.range.start == offset && is_record(types, it))
            .or(plain_array(types, parts)),
    }
}

/// Whether a write has stayed in the variable in which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    /// The write has stayed in the variable.
    Inside,
    /// The write has reached into other variables.
    Crosses(Crossing),
}

/// Returns whether a write of the addresses `written` has stayed in its variable, which `bound`
/// tells; `None` if that variable, or its end, is not known. `graph` is the memory graph of a state
/// in which the variable exists.
pub(crate) fn stay(
    graph: &Graph,
    types: &Types,
    bound: Bound,
    written: &Range<u64>,
) -> Option<Stay> {
    if let Bound::Element {
        array: Some(array), ..
    } = bound
        && let Some((id, part)) = in_record(graph, types, array, true)
    {
        return match is_wider(types, &part, written) {
            true => None,
            false => stay_in(graph, types, (id, part), written),
        };
    }
    let (Bound::Element { base: at, .. }
    | Bound::Filled(at)
    | Bound::Text(at)
    | Bound::Largest(at)) = bound;
    let (id, offset) = graph.containing(at)?;
    let object = &graph.objects[id];
    let whole = (object.of, object.bytes.len() as u64);
    let parts = parts_at(types, whole, offset);
    let length = written.end - written.start;
    let part = bounding(types, &parts, bound, (offset, length))?;
    let is_one = matches!(bound, Bound::Element { .. });
    // What a library keeps in a block of its own, such as a buffer, it changes as it likes.
    let is_any = matches!(bound, Bound::Largest(_)) && part.path.is_empty();
    if is_one && is_wider(types, part, written) || is_any && !object.is_variable() {
        return None;
    }
    stay_in(graph, types, (id, part.clone()), written)
}

/// Returns true if a write has more bytes than an element of the array `part`, as when a compiler
/// sets several elements, or fields, at once.
fn is_wider(types: &Types, part: &Part, written: &Range<u64>) -> bool {
    let mut of = part.of;
    for _ in 0..DEEPEST {
        match types.get(of).shape {
            Shape::Array(element, _) => of = element,
            _ => break,
        }
    }
    written.end - written.start > types.get(of).size.max(1)
}

/// Returns true if a write of the addresses `written`, to an element of an array at the address
/// `array`, leaves this array of the innermost record around `array`.
pub(crate) fn leaves_record(
    graph: &Graph,
    types: &Types,
    array: u64,
    written: &Range<u64>,
) -> bool {
    let found = in_record(graph, types, array, false);
    found.is_some_and(|(id, part)| {
        !is_wider(types, &part, written)
            && stay_in(graph, types, (id, part), written) != Some(Stay::Inside)
    })
}

/// Finds an array that is a field of a struct: of the arrays that begin at the address `array` and
/// lie in the smallest struct that contains this address, the largest. That struct must itself be
/// an element of an array, and not its first one; if `is_named`, a variable must also point to the
/// struct. `None` if there is no such array.
fn in_record(graph: &Graph, types: &Types, array: u64, is_named: bool) -> Option<(ObjectId, Part)> {
    let (id, offset) = graph.containing(array)?;
    let object = &graph.objects[id];
    let Place::Memory(start) = object.place else {
        return None;
    };
    let parts = parts_at(types, (object.of, object.bytes.len() as u64), offset);
    let outer = parts.iter().find(|it| is_array(types, it))?;
    let has_name = |part: &Part| {
        let variables = graph.objects.iter().filter(|it| it.is_variable());
        let mut pointers = variables.flat_map(|it| it.pointers().map(move |leaf| (it, leaf.1)));
        pointers.any(|(it, leaf)| {
            leaf.kind == LeafKind::Pointer(part.of) && it.address(leaf) == start + part.range.start
        })
    };
    let record = parts.iter().rposition(|it| {
        is_record(types, it) && it.range.start > outer.range.start && (!is_named || has_name(it))
    })?;
    let inner = parts[record..].iter().find(|it| is_array(types, it))?;
    Some((id, inner.clone()))
}

/// Returns whether a write of the addresses `written` has stayed in `part` of the object `id`, as
/// [`stay`] does.
fn stay_in(
    graph: &Graph,
    types: &Types,
    (id, part): (ObjectId, Part),
    written: &Range<u64>,
) -> Option<Stay> {
    let object = &graph.objects[id];
    let Place::Memory(start) = object.place else {
        return None;
    };
    let whole = object.bytes.len() as u64;
    if part.path.is_empty() && !is_bounded(graph, object) {
        return None;
    }
    let has = start + part.range.start..start + part.range.end;
    let beyond = match (written.start < has.start, written.end > has.end) {
        (false, false) => return Some(Stay::Inside),
        (false, true) => written.start.max(has.end)..written.end,
        (true, false) => written.start..written.end.min(has.start),
        (true, true) => return None,
    };
    // A last member without a length of its own may go on to the end of the block.
    let is_open = !part.path.is_empty() && has.end == start + types.get(object.of).size;
    if is_open && beyond.start >= has.end && beyond.end <= start + whole {
        return None;
    }
    let element = match &types.get(part.of).shape {
        Shape::Array(element, _) => types.get(*element).size.max(1),
        _ => 1,
    };
    let others = names(graph, &beyond);
    Some(Stay::Crosses(Crossing {
        object: graph.name(id, &part.path),
        reached: others.first().map_or(beyond.start, |it| it.0),
        into: others.into_iter().map(|it| it.1).collect(),
        has,
        element,
        beyond,
    }))
}

/// Returns the variables at the addresses `range`, at most [`NAMES`]: for each, the first of these
/// addresses that it has, and its name.
fn names(graph: &Graph, range: &Range<u64>) -> Vec<(u64, String)> {
    let mut found: Vec<(u64, String)> = Vec::new();
    let mut at = range.start;
    while at < range.end && found.len() < NAMES {
        let known = graph.containing(at);
        let known = known.filter(|it| graph.objects[it.0].origin != Origin::Undescribed);
        let leaf = known.and_then(|(id, offset)| {
            let mut leaves = graph.objects[id].leaves.iter();
            let leaf = leaves.find(|it| (it.offset..it.offset + it.size).contains(&offset))?;
            Some((id, offset, leaf))
        });
        let Some((id, offset, leaf)) = leaf else {
            at += 1;
            continue;
        };
        let name = graph.name(id, &leaf.path);
        if !found.iter().any(|it| it.1 == name) {
            found.push((at, name));
        }
        at += leaf.offset + leaf.size - offset;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Encoding, Field};

    /// Test helper: returns the types, a graph with a variable `r` at 0x1000 (a record of the field
    /// `name`, 8 characters, the number `id`, and the table `sums` of three numbers), and a graph
    /// with four such records.
    fn graphs() -> (Types, Graph, Graph) {
        let mut types = Types::default();
        let char = types.add("char", 1, Shape::Base(Encoding::Char));
        let int = types.add("int", 4, Shape::Base(Encoding::Signed));
        let (name, sums) = (types.array(char, 8), types.array(int, 3));
        let field = |name: &str, offset, of| Field {
            name: name.to_owned(),
            offset,
            of,
            bits: None,
        };
        let fields = vec![
            field("name", 0, name),
            field("id", 8, int),
            field("sums", 12, sums),
        ];
        let record = types.add("struct r", 24, Shape::Record(fields));
        let records = types.array(record, 4);
        let of = |of, size| {
            let mut graph = Graph::default();
            let leaf = |offset, size, path: &str| crate::graph::Leaf {
                offset,
                size,
                bits: None,
                kind: LeafKind::Scalar,
                of: int,
                path: path.to_owned(),
            };
            graph.add(Object {
                origin: Origin::Global(1),
                place: Place::Memory(0x1000),
                of,
                bytes: vec![0; size],
                leaves: vec![
                    leaf(0, 8, ".name"),
                    leaf(8, 4, ".id"),
                    leaf(12, 12, ".sums"),
                ],
                name: "r".to_owned(),
                function: String::new(),
                reached: None,
                alias: None,
            });
            graph
        };
        let (one, all) = (of(record, 24), of(records, 96));
        (types, one, all)
    }

    fn crossing(stay: Option<Stay>) -> Option<(String, u64, Vec<String>)> {
        match stay? {
            Stay::Inside => None,
            Stay::Crosses(it) => Some((it.object, it.beyond.end - it.beyond.start, it.into)),
        }
    }

    #[test]
    fn a_text_has_to_fit_into_its_field_and_a_record_may_be_written_as_a_whole() {
        let (types, graph, _) = graphs();
        let of = |bound, range| stay(&graph, &types, bound, &range);
        assert_eq!(of(Bound::Text(0x1000), 0x1000..0x1008), Some(Stay::Inside));
        let id = vec!["r.id".to_owned()];
        let long = crossing(of(Bound::Text(0x1000), 0x1000..0x100a));
        assert_eq!(long, Some(("r.name".to_owned(), 2, id.clone())));
        let filled = |end| crossing(of(Bound::Filled(0x1000), 0x1000..end));
        assert_eq!(filled(0x100c), Some(("r.name".to_owned(), 4, id)));
        // The whole record, or its last fields.
        assert_eq!(filled(0x1018), None);
        assert_eq!(crossing(of(Bound::Filled(0x1008), 0x1008..0x1018)), None);
        assert_eq!(crossing(of(Bound::Largest(0x1000), 0x1000..0x100c)), None);
    }

    #[test]
    fn an_element_has_to_be_one_of_the_largest_array() {
        let (types, one, all) = graphs();
        let base = |base| Bound::Element { base, array: None };
        let at = |graph, start, at| crossing(stay(graph, &types, base(start), &(at..at + 4)));
        // What is before the table is the number.
        let before = at(&one, 0x100c, 0x1008);
        let id = vec!["r.id".to_owned()];
        assert_eq!(before, Some(("r.sums".to_owned(), 4, id)));
        assert_eq!(at(&one, 0x100c, 0x1014), None);
        // The table of any record of an array.
        assert_eq!(at(&all, 0x100c, 0x1008), None);
        assert!(at(&all, 0x100c, 0x1060).is_some());
        // Several elements at once.
        let wide = stay(&one, &types, base(0x1000), &(0x1000..0x1010));
        assert_eq!(wide, None);
        // In a record to which a variable would point.
        assert!(leaves_record(&all, &types, 0x1018 + 12, &(0x1020..0x1024)));
        assert!(!leaves_record(&all, &types, 0x1018 + 12, &(0x1024..0x1028)));
    }
}
