//! Memory graphs without a process: the published figures, and properties of random graphs.

use std::collections::BTreeMap;

use ddfuzz_explain::delta::{Change, Delta, Differences};
use ddfuzz_explain::graph::{Graph, Leaf, Origin, Place};
use ddfuzz_explain::plan::{Content, Plan, Spot};
use ddfuzz_explain::types::{Encoding, Field, Shape, Type, TypeId, Types};
use ddfuzz_explain::unfold::{Area, State, Variable, unfold};
use ddfuzz_triage::memory::Memory;
use proptest::prelude::*;

/// A program state that is a table of bytes, with a heap of blocks.
#[derive(Clone, Default)]
struct Simulated {
    bytes: BTreeMap<u64, u8>,
    blocks: Vec<Area>,
    library: Vec<Area>,
    next: u64,
}

impl Simulated {
    fn set(&mut self, address: u64, bytes: &[u8]) {
        for (at, byte) in (address..).zip(bytes) {
            self.bytes.insert(at, *byte);
        }
    }

    fn allocate(&mut self, size: u64) -> u64 {
        let start = 0x10_0000 + self.next;
        self.next += size.next_multiple_of(16) + 16;
        self.blocks.push(Area {
            start,
            end: start + size,
            is_block: true,
        });
        self.set(start, &vec![0; size as usize]);
        start
    }

    /// Applies a plan as the engine does in a process.
    fn apply(&mut self, plan: &Plan) {
        let new: Vec<u64> = plan
            .allocations
            .iter()
            .map(|size| self.allocate(*size))
            .collect();
        let address = |spot: Spot| match spot {
            Spot::At(Place::Memory(address), offset) => address + offset,
            Spot::New(index, offset) => new[index] + offset,
            Spot::At(Place::Register(_), _) => unreachable!("these states have no registers"),
        };
        for write in &plan.writes {
            let to = address(write.to);
            match &write.content {
                Content::Bytes(bytes) => self.set(to, bytes),
                Content::Address(spot) => self.set(to, &address(*spot).to_le_bytes()),
                Content::Masked(bytes, mask) => {
                    for (at, (byte, mask)) in (to..).zip(bytes.iter().zip(mask)) {
                        let old = self.bytes[&at];
                        self.bytes.insert(at, old & !mask | byte & mask);
                    }
                }
            }
        }
    }
}

impl Memory for Simulated {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        for (index, place) in buffer.iter_mut().enumerate() {
            match self.bytes.get(&(address + index as u64)) {
                Some(byte) => *place = *byte,
                None => return index,
            }
        }
        buffer.len()
    }
}

impl State for Simulated {
    fn area(&self, address: u64) -> Option<Area> {
        let blocks = self.blocks.iter();
        blocks
            .copied()
            .find(|block| (block.start..block.end).contains(&address))
    }

    fn blocks(&self) -> Vec<Area> {
        self.blocks.clone()
    }

    fn library_data(&self) -> Vec<Area> {
        self.library.clone()
    }

    fn register(&self, _: u16) -> Option<u64> {
        None
    }
}

/// `struct list { int value; struct list *next; }`, with a second pointer for other graphs.
fn list_types() -> (Types, TypeId, TypeId) {
    let mut types = Types::default();
    let int = types.add("int", 4, Shape::Base(Encoding::Signed));
    let record = types.add("struct list", 24, Shape::Void);
    let pointer = types.add("struct list *", 8, Shape::Pointer(record));
    let field = |name: &str, offset, of| Field {
        name: name.to_owned(),
        offset,
        of,
        bits: None,
    };
    let fields = vec![
        field("value", 0, int),
        field("next", 8, pointer),
        field("other", 16, pointer),
    ];
    types.set(
        record,
        Type {
            name: "struct list".to_owned(),
            size: 24,
            shape: Shape::Record(fields),
        },
    );
    (types, record, pointer)
}

const LIST: u64 = 0x1000;

fn roots(pointer: TypeId, count: u64) -> Vec<Variable> {
    (0..count)
        .map(|index| Variable {
            origin: Origin::Global(index),
            name: if index == 0 {
                "list".to_owned()
            } else {
                format!("root{index}")
            },
            function: String::new(),
            place: Place::Memory(LIST + 8 * index),
            of: pointer,
        })
        .collect()
}

fn list_of(values: &[i32]) -> Simulated {
    let mut state = Simulated::default();
    let mut at = LIST;
    state.set(LIST, &[0; 8]);
    for value in values {
        let node = state.allocate(24);
        state.set(node, &value.to_le_bytes());
        state.set(at, &node.to_le_bytes());
        at = node + 8;
    }
    state
}

fn values_of(state: &mut Simulated) -> Vec<i32> {
    let mut values = Vec::new();
    let mut at = state.word(LIST).unwrap();
    while at != 0 && values.len() < 100 {
        values.push(state.word(at).unwrap() as i32);
        at = state.word(at + 8).unwrap();
    }
    values
}

fn graph(types: &mut Types, pointer: TypeId, roots_count: u64, state: &Simulated) -> Graph {
    unfold(types, &roots(pointer, roots_count), &mut state.clone())
}

/// Compares two lists, and gives the list that each difference alone makes of the first.
fn each_alone(passing: &[i32], failing: &[i32]) -> Vec<(String, Vec<i32>)> {
    let (mut types, _, pointer) = list_types();
    let (before, after) = (list_of(passing), list_of(failing));
    let (one, other) = (
        graph(&mut types, pointer, 1, &before),
        graph(&mut types, pointer, 1, &after),
    );
    let all = Differences::new(&types, &one, &other);
    let apply = |is_kept: &dyn Fn(usize) -> bool| {
        let mut state = before.clone();
        state.apply(&all.plan(is_kept));
        values_of(&mut state)
    };
    assert_eq!(apply(&|_| false), passing);
    assert_eq!(apply(&|_| true), failing);
    let deltas = all.deltas.iter().enumerate();
    deltas
        .map(|(index, delta)| (delta.name.clone(), apply(&|it| it == index)))
        .collect()
}

/// What the block behind a pointer to a class with virtual functions is read as: the path of each
/// value. The block has these words.
fn values_behind_a_class(vtable_pointer: &str, words: &[u64]) -> Vec<String> {
    let mut types = Types::default();
    let functions = types.add("int (**)(void)", 8, Shape::Pointer(Types::VOID));
    let field = |name: &str, of| Field {
        name: name.to_owned(),
        offset: 0,
        of,
        bits: None,
    };
    let fields = vec![field(vtable_pointer, functions)];
    let base = types.add("struct Shape", 8, Shape::Record(fields));
    // It inherits the vtable pointer.
    let class = types.add("struct Flat", 8, Shape::Record(vec![field("", base)]));
    let pointer = types.add("struct Flat *", 8, Shape::Pointer(class));
    let mut state = Simulated::default();
    let block = state.allocate(8 * words.len() as u64);
    for (at, word) in (block..).step_by(8).zip(words) {
        state.set(at, &word.to_le_bytes());
    }
    state.set(LIST, &block.to_le_bytes());
    let graph = graph(&mut types, pointer, 1, &state);
    let found = graph.objects.iter().find(|it| it.origin == Origin::Block);
    let leaves = found.unwrap().leaves.iter();
    leaves.map(|leaf| leaf.path.clone()).collect()
}

#[test]
fn an_object_of_a_derived_class_is_no_array_of_its_base_class() {
    for name in ["_vptr.Shape", "_vptr$Shape"] {
        let one = [format!(".{name}"), "{8…}".to_owned()];
        assert_eq!(values_behind_a_class(name, &[0x5000, 1, 0]), one);
        assert_eq!(values_behind_a_class(name, &[0, 0, 0]), one);
        let two = [format!("[0].{name}"), format!("[1].{name}")];
        assert_eq!(values_behind_a_class(name, &[0x5000, 0x5000]), two);
    }
}

#[test]
fn a_block_is_a_buffer_of_a_library_only_where_its_data_leads_there() {
    let (mut types, _, pointer) = list_types();
    let mut state = list_of(&[1]);
    let [file, buffer, other] = [64, 32, 32].map(|size| state.allocate(size));
    // The library has the file, and the file its buffer.
    state.library = vec![Area {
        start: 0x8000,
        end: 0x8010,
        is_block: false,
    }];
    state.set(0x8000, &[0; 8]);
    state.set(0x8008, &file.to_le_bytes());
    state.set(file + 24, &(buffer + 3).to_le_bytes());
    let graph = graph(&mut types, pointer, 1, &state);
    let name = |address| {
        let (id, _) = graph.containing(address).expect("an object");
        graph.objects[id].name.clone()
    };
    let names = [file, buffer, other].map(name);
    assert_eq!(names, ["library buffer", "library buffer", "heap block"]);
}

#[test]
fn figure_a4_has_two_differences_and_each_alone_gives_the_published_graph() {
    let alone = each_alone(&[14, 18, 20, 22], &[14, 15, 18, 22]);
    let expected = [
        ("list->next".to_owned(), vec![14, 15, 18, 20, 22]),
        ("list->next->next".to_owned(), vec![14, 18, 22]),
    ];
    assert_eq!(alone, expected);
    // The same figure with both elements inserted.
    let alone = each_alone(&[14, 18, 22], &[14, 15, 18, 20, 22]);
    let lists: Vec<Vec<i32>> = alone.into_iter().map(|(_, list)| list).collect();
    assert_eq!(lists, [vec![14, 15, 18, 22], vec![14, 18, 20, 22]]);
}

#[test]
fn neighbours_are_created_and_deleted_one_by_one() {
    let lists = |alone: Vec<(String, Vec<i32>)>| -> Vec<Vec<i32>> {
        alone.into_iter().map(|(_, list)| list).collect()
    };
    let created = lists(each_alone(&[1, 4], &[1, 2, 3, 4]));
    assert_eq!(created, [vec![1, 2, 4], vec![1, 3, 4]]);
    let deleted = lists(each_alone(&[1, 2, 3, 4], &[1, 4]));
    assert_eq!(deleted, [vec![1, 3, 4], vec![1, 2, 4]]);
    // The same element with another value is a value, and not a new element.
    let changed = lists(each_alone(&[1, 2, 4], &[1, 3, 4]));
    assert_eq!(changed, [vec![1, 3, 4]]);
    assert_eq!(lists(each_alone(&[], &[7])), [vec![7]]);
    assert_eq!(lists(each_alone(&[7], &[])), [Vec::<i32>::new()]);
}

/// A random graph: for each node its value and where its two pointers lead, as an index into the
/// nodes; for each root the same. An index beyond the nodes is a null or a wild pointer.
#[derive(Clone, Debug)]
struct Random {
    nodes: Vec<(i32, usize, usize)>,
    roots: Vec<usize>,
    gap: u64,
}

const ROOTS: usize = 3;

fn random() -> impl Strategy<Value = Random> {
    let nodes = proptest::collection::vec((0..4i32, 0..10usize, 0..10usize), 0..8);
    let roots = proptest::collection::vec(0..10usize, ROOTS);
    (nodes, roots, 0..3u64).prop_map(|(nodes, roots, gap)| Random { nodes, roots, gap })
}

fn state_of(random: &Random) -> Simulated {
    let mut state = Simulated {
        next: random.gap * 32,
        ..Simulated::default()
    };
    let places: Vec<u64> = random.nodes.iter().map(|_| state.allocate(24)).collect();
    let place = |index: usize| match places.get(index) {
        Some(place) if index % 4 == 3 => place + 8,
        Some(place) => *place,
        None if index == 9 => 0xdead_0000,
        None => 0,
    };
    for (node, (value, next, other)) in places.iter().zip(&random.nodes) {
        state.set(*node, &value.to_le_bytes());
        state.set(node + 8, &place(*next).to_le_bytes());
        state.set(node + 16, &place(*other).to_le_bytes());
    }
    for (index, root) in (0..).zip(&random.roots) {
        state.set(LIST + 8 * index, &place(*root).to_le_bytes());
    }
    state
}

/// A variable of the type `of` at `address`.
fn variable(index: u64, address: u64, of: TypeId) -> Variable {
    Variable {
        origin: Origin::Global(index),
        name: format!("global{index}"),
        function: String::new(),
        place: Place::Memory(address),
        of,
    }
}

/// A field without bits.
fn field(name: &str, offset: u64, of: TypeId) -> Field {
    Field {
        name: name.to_owned(),
        offset,
        of,
        bits: None,
    }
}

#[test]
fn unions_of_unions_do_not_take_exponential_time() {
    let mut types = Types::default();
    let mut of = types.add("int", 4, Shape::Base(Encoding::Signed));
    for _ in 0..24 {
        let members = vec![field("a", 0, of), field("b", 0, of)];
        of = types.add("union", 4, Shape::Union(members));
    }
    let mut state = Simulated::default();
    state.set(LIST, &7_u32.to_le_bytes());
    let graph = unfold(&mut types, &[variable(0, LIST, of)], &mut state);
    assert!(graph.is_cut);
    assert_eq!(graph.objects[0].bytes, [7, 0, 0, 0]);
}

#[test]
fn offsets_of_damaged_debug_information_are_no_places_of_values() {
    let mut types = Types::default();
    let int = types.add("int", 4, Shape::Base(Encoding::Signed));
    let pointer = types.add("int *", 8, Shape::Pointer(int));
    let far = u64::MAX - 3;
    let pair = vec![field("pointer", far, pointer), field("near", 0, int)];
    let record = types.add("struct pair", 8, Shape::Record(pair.clone()));
    let choice = types.add("union", 8, Shape::Union(pair));
    let outer = vec![
        field("far", far, record),
        field("choice", far, choice),
        field("near", 4, int),
    ];
    let outer = types.add("struct outer", 8, Shape::Record(outer));
    for of in [record, choice, outer] {
        let graph = unfold(&mut types, &[variable(0, LIST, of)], &mut Zeros);
        let object = &graph.objects[0];
        let inside = |leaf: &Leaf| leaf.offset + leaf.size <= 8 && !object.value(leaf).is_empty();
        assert!(object.leaves.iter().all(inside), "{:?}", object.leaves);
    }
}

/// A program state whose memory has zeros everywhere.
struct Zeros;

impl Memory for Zeros {
    fn read(&mut self, _: u64, buffer: &mut [u8]) -> usize {
        buffer.fill(0);
        buffer.len()
    }
}

impl State for Zeros {
    fn area(&self, _: u64) -> Option<Area> {
        None
    }

    fn blocks(&self) -> Vec<Area> {
        Vec::new()
    }

    fn register(&self, _: u16) -> Option<u64> {
        None
    }
}

#[test]
fn objects_take_a_bounded_amount_of_memory() {
    let mut types = Types::default();
    let array = types.array(Types::BYTE, 4 << 20);
    let all: Vec<Variable> = (0..40)
        .map(|index| variable(index, 0x1_0000_0000 + (index << 23), array))
        .collect();
    let graph = unfold(&mut types, &all, &mut Zeros);
    let sizes = graph.objects.iter().map(|object| object.bytes.len());
    assert_eq!((sizes.sum::<usize>(), graph.is_cut), (64 << 20, true));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// A.2.5: all differences together lead from the passing to the failing state.
    #[test]
    fn applying_all_differences_gives_a_matching_graph(passing in random(), failing in random()) {
        let (mut types, _, pointer) = list_types();
        let (mut before, after) = (state_of(&passing), state_of(&failing));
        let roots = ROOTS as u64;
        let (one, other) = (graph(&mut types, pointer, roots, &before), graph(&mut types, pointer, roots, &after));
        let all = Differences::new(&types, &one, &other);
        before.apply(&all.plan(&|_| true));
        let made = graph(&mut types, pointer, roots, &before);
        let left = Differences::new(&types, &made, &other);
        // What no pointer leads to any more is no part of a memory graph.
        let is_leaked = |delta: &&Delta| match delta.change {
            Change::Value { passing, .. } => made.objects[passing].origin == Origin::Raw,
            _ => false,
        };
        let left: Vec<&Delta> = left.deltas.iter().filter(|delta| !is_leaked(delta)).collect();
        prop_assert!(left.is_empty(), "{left:?}");
        let none = all.plan(&|_| false);
        prop_assert!(none.writes.is_empty() && none.allocations.is_empty());
    }
}
