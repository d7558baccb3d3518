//! The name of memory that a bad access has reached: an element or a field of the object beside
//! which it lies, or in which it lay before it was freed. Pure.

use std::ops::Range;

use crate::crossing::{is_array, parts_at};
use crate::graph::{Graph, Leaf, LeafKind, Origin, Place, Target};
use crate::types::{Encoding, Shape, TypeId, Types};

/// Memory that a bad access has reached, as the program would name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Accessed {
    /// The name of the memory, such as `t->values[3]`; of an object without elements, that of the
    /// object.
    pub name: String,
    /// The number of the element, which the object may not have; `None` where the object has no
    /// elements.
    pub element: Option<i64>,
    /// Number of elements of the object; 1 if it is not an array.
    pub elements: u64,
}

/// Returns how the program names the memory at `address`, which was accessed by the address of the
/// object at `object`, in the state `graph`; `None` where no variable and no pointer leads to the
/// object. `used` are the places with the values from which the address was computed.
pub(crate) fn accessed(
    graph: &Graph,
    types: &Types,
    (object, address): (&Range<u64>, u64),
    used: &[Place],
) -> Option<Accessed> {
    let distance = address.wrapping_sub(object.start) as i64;
    if let Some((id, 0)) = graph.containing(object.start) {
        let it = &graph.objects[id];
        let name = |path: &str| graph.name(id, path);
        return Some(within(types, it.of, object, distance, &name));
    }
    // No pointer is followed to a freed block: one that was used has led there.
    let (id, leaf, of) = used.iter().find_map(|place| {
        let (id, offset) = at(graph, *place)?;
        let it = &graph.objects[id];
        let mut pointers = it.pointers().map(|(_, leaf)| leaf);
        let is_it = |leaf: &&Leaf| leaf.offset == offset && it.address(leaf) == object.start;
        let leaf = pointers.find(is_it)?;
        match leaf.kind {
            LeafKind::Pointer(of) => Some((id, leaf, of)),
            _ => None,
        }
    })?;
    let pointer = graph.name(id, &leaf.path);
    let name = |path: &str| match path.as_bytes().first() {
        None => format!("*{pointer}"),
        Some(b'.') => format!("{pointer}->{}", &path[1..]),
        Some(_) => format!("{pointer}{path}"),
    };
    Some(within(types, of, object, distance, &name))
}

/// Returns the name of what is `distance` bytes behind the beginning of an object of the type `of`,
/// as [`accessed`] does; `name` adds operations to the name of the object.
fn within(
    types: &Types,
    of: TypeId,
    object: &Range<u64>,
    distance: i64,
    name: &dyn Fn(&str) -> String,
) -> Accessed {
    let size = object.end - object.start;
    let of = match &types.get(of).shape {
        Shape::Array(element, _) => *element,
        // Of what a pointer leads to, a block may have several.
        _ => of,
    };
    let element = types.get(of).size.max(1);
    let is_inside = (0..size as i64).contains(&distance);
    if size < 2 * element {
        let parts = parts_at(types, (of, size), distance.max(0) as u64);
        let path = parts
            .last()
            .filter(|_| is_inside)
            .map(|it| it.path.as_str());
        // An array at the end of a record is told by its own elements.
        let last = || parts_at(types, (of, size), size.saturating_sub(1));
        let array = last().into_iter().find(|it| is_array(types, it));
        if let Some(array) = array.filter(|_| !is_inside && distance > 0)
            && let Shape::Array(inner, Some(elements)) = types.get(array.of).shape
        {
            let from = distance - array.range.start as i64;
            let number = from.div_euclid(types.get(inner).size.max(1) as i64);
            return Accessed {
                name: name(&format!("{}[{number}]", array.path)),
                element: Some(number),
                elements,
            };
        }
        return Accessed {
            name: name(path.unwrap_or_default()),
            element: None,
            elements: 1,
        };
    }
    let number = distance.div_euclid(element as i64);
    Accessed {
        name: name(&format!("[{number}]")),
        element: Some(number),
        elements: size / element,
    }
}

/// Returns the object at `place` in the state `graph`, with the offset of the place in it; `None`
/// where there is none.
fn at(graph: &Graph, place: Place) -> Option<Target> {
    match place {
        Place::Memory(address) => graph.containing(address),
        Place::Register(_) => {
            let mut objects = graph.objects.iter();
            Some((objects.position(|it| it.place == place)?, 0))
        }
    }
}

/// Largest number of variables whose values are shown for one statement.
const VALUES: usize = 2;

/// Returns the values of those integer variables of the innermost frame in the state `graph` whose
/// names are in the source text `text`: one text for each, such as `n is 30`, in the order of the
/// names in `text`, at most [`VALUES`].
pub(crate) fn integers_in(graph: &Graph, types: &Types, text: &str) -> Vec<String> {
    let local = |object: &crate::graph::Object| match object.origin {
        Origin::Local { frame, .. } => Some(frame),
        _ => None,
    };
    let innermost = graph.objects.iter().filter_map(local).max();
    let is_of_name = |it: char| it.is_alphanumeric() || it == '_';
    let mut found: Vec<String> = Vec::new();
    for word in text.split(|it| !is_of_name(it)).filter(|it| !it.is_empty()) {
        let mut objects = graph.objects.iter();
        let object = objects.find(|it| it.name == word && local(it) == innermost);
        let Some(object) = object.filter(|_| innermost.is_some() && found.len() < VALUES) else {
            continue;
        };
        let [leaf] = &object.leaves[..] else {
            continue;
        };
        let is_integer =
            matches!(types.get(leaf.of).shape, Shape::Base(it) if it != Encoding::Float);
        if leaf.kind == LeafKind::Scalar && leaf.path.is_empty() && is_integer {
            let value = types.show(leaf.of, object.value(leaf), leaf.bits);
            let told = format!("{word} is {value}");
            if !found.contains(&told) {
                found.push(told);
            }
        }
    }
    found
}

/// Returns the name of the variable at `place` that is an integer with the value `value`; `None`
/// where there is none.
pub(crate) fn integer_at(graph: &Graph, types: &Types, place: Place, value: i64) -> Option<String> {
    let (id, offset) = at(graph, place)?;
    let object = &graph.objects[id];
    let mut leaves = object.leaves.iter();
    let leaf = leaves.find(|it| it.offset == offset && it.kind == LeafKind::Scalar)?;
    let is_number = matches!(types.get(leaf.of).shape, Shape::Base(_) | Shape::Enum(_));
    let bytes = object.value(leaf);
    let is_it = |signed| crate::types::integer(bytes, leaf.bits, signed) == i128::from(value);
    let is_named = object.is_variable() || object.reached.is_some();
    (is_number && is_named && (is_it(true) || is_it(false))).then(|| graph.name(id, &leaf.path))
}
