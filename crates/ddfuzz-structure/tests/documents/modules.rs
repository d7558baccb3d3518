//! WebAssembly modules: functions go with their calls and exports, and get the least body where only
//! that they exist matters.

use crate::searches::reduce;

const HEAD: &[u8] = b"\0asm\x01\0\0\0";

fn counted(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8], bytes].concat()
}

fn section(kind: u8, items: &[Vec<u8>]) -> Vec<u8> {
    let content = [vec![items.len() as u8], items.concat()].concat();
    [vec![kind], counted(&content)].concat()
}

/// The body of a function that drops a number and makes calls.
fn body(constant: u8, calls: &[u8]) -> Vec<u8> {
    let calls = calls.iter().flat_map(|index| [0x10, *index]);
    let instructions = [&[0, 0x41, constant, 0x1a][..], &calls.collect::<Vec<u8>>()].concat();
    counted(&[&instructions[..], &[0x0b]].concat())
}

/// A module with an import and six functions, from 1: the second calls the third and the fifth, the
/// fifth the sixth; a table has the fourth.
pub fn module() -> Vec<u8> {
    let types = [
        b"\x60\0\0".to_vec(),
        b"\x60\x01\x7f\0".to_vec(),
        b"\x60\0\0".to_vec(),
    ];
    let imports = [[counted(b"env"), counted(b"print"), vec![0, 1]].concat()];
    let exports = [
        [counted(b"memory"), vec![2, 0]].concat(),
        [counted(b"other"), vec![0, 1]].concat(),
        [counted(b"run"), vec![0, 2]].concat(),
    ];
    let bodies = [
        body(1, &[]),
        body(2, &[3, 5]),
        body(3, &[1]),
        body(4, &[1, 3]),
        body(5, &[6]),
        body(42, &[]),
    ];
    let elements = [b"\0\x41\0\x0b\x03\x01\x04\x03".to_vec()];
    let data = [
        b"\0\x41\0\x0b\x05hello".to_vec(),
        b"\0\x41\x08\x0b\x05world".to_vec(),
    ];
    let functions = [0, 0, 2, 2, 0, 0].map(|of| vec![of]);
    [
        HEAD.to_vec(),
        section(1, &types),
        section(2, &imports),
        section(3, &functions),
        section(4, &[b"\x70\0\x09".to_vec()]),
        section(5, &[b"\0\x01".to_vec()]),
        section(7, &exports),
        section(9, &elements),
        section(12, &[])[..2].iter().copied().chain([2]).collect(),
        section(10, &bodies),
        section(11, &data),
    ]
    .concat()
}

/// A function: its type, and constants and calls of its body.
type Function = (usize, Vec<u8>, Vec<usize>);

/// What is read of a module: how many types and imports it has, its functions, the function that is
/// exported as `run`, and those of its table.
struct Read {
    types: usize,
    imports: usize,
    functions: Vec<Function>,
    run: usize,
    table: Vec<usize>,
}

impl Read {
    /// The function of an index that counts imports, too.
    fn function(&self, index: usize) -> Option<&Function> {
        self.functions.get(index.checked_sub(self.imports)?)
    }
}

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn byte(&mut self) -> Option<usize> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        // All numbers are small.
        (*first < 0x80).then_some(usize::from(*first))
    }

    fn counted(&mut self) -> Option<Bytes<'a>> {
        let size = self.byte()?;
        let (bytes, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(Bytes(bytes))
    }

    fn expression(&mut self) -> Option<()> {
        (self.byte()? == 0x41).then_some(())?;
        self.byte()?;
        (self.byte()? == 0x0b).then_some(())
    }
}

/// Reads the instructions of a body; `None` for one that is not valid.
fn instructions(mut body: Bytes<'_>) -> Option<(Vec<u8>, Vec<usize>)> {
    let (mut constants, mut calls) = (Vec::new(), Vec::new());
    (body.byte()? == 0).then_some(())?;
    loop {
        match body.byte()? {
            0x41 => {
                constants.push(body.byte()? as u8);
                (body.byte()? == 0x1a).then_some(())?;
            }
            0x10 => calls.push(body.byte()?),
            0x00 => {}
            0x0b => return body.0.is_empty().then_some((constants, calls)),
            _ => return None,
        }
    }
}

/// Types of functions, and their bodies.
type Parts = (Vec<usize>, Vec<(Vec<u8>, Vec<usize>)>);

/// Reads an item of a section, and adds it to the module or to the parts of its functions.
fn item(kind: usize, bytes: &mut Bytes<'_>, module: &mut Read, parts: &mut Parts) -> Option<()> {
    match kind {
        1 => {
            (bytes.byte()? == 0x60).then_some(())?;
            bytes.counted()?;
            bytes.counted()?;
            module.types += 1;
        }
        2 => {
            bytes.counted()?;
            bytes.counted()?;
            bytes.byte()?;
            (bytes.byte()? < module.types).then_some(())?;
            module.imports += 1;
        }
        3 => parts.0.push(bytes.byte()?),
        7 => {
            let name = bytes.counted()?.0;
            let (kind, index) = (bytes.byte()?, bytes.byte()?);
            if (name, kind) == (b"run", 0) {
                module.run = index;
            }
        }
        9 => {
            bytes.byte()?;
            bytes.expression()?;
            let mut indices = bytes.counted()?;
            while !indices.0.is_empty() {
                module.table.push(indices.byte()?);
            }
        }
        10 => parts.1.push(instructions(bytes.counted()?)?),
        11 => {
            bytes.byte()?;
            bytes.expression()?;
            bytes.counted()?;
        }
        // Tables and memories.
        _ => bytes.0 = &[],
    }
    Some(())
}

fn read(text: &[u8]) -> Option<Read> {
    let mut file = Bytes(text.strip_prefix(HEAD)?);
    let mut module = Read {
        types: 0,
        imports: 0,
        functions: Vec::new(),
        run: usize::MAX,
        table: Vec::new(),
    };
    let mut parts = (Vec::new(), Vec::new());
    while !file.0.is_empty() {
        let kind = file.byte()?;
        let mut content = file.counted()?;
        let count = content.byte()?;
        for _ in 0..if kind == 12 { 0 } else { count } {
            item(kind, &mut content, &mut module, &mut parts)?;
            if matches!(kind, 4 | 5) {
                break;
            }
        }
        content.0.is_empty().then_some(())?;
    }
    let (kinds, bodies) = parts;
    (kinds.len() == bodies.len()).then_some(())?;
    let functions = kinds.into_iter().zip(bodies);
    module.functions = functions
        .map(|(kind, (constants, calls))| (kind, constants, calls))
        .collect();
    let total = module.imports + module.functions.len();
    let is_valid = module
        .functions
        .iter()
        .all(|(kind, _, calls)| *kind < module.types && calls.iter().all(|call| *call < total));
    (is_valid && module.table.iter().all(|index| *index < total)).then_some(module)
}

/// Checks whether `run` comes over another function to the one with 42, and the table has one more.
fn fails(text: &[u8]) -> bool {
    let found = || {
        let module = read(text)?;
        let (_, _, calls) = module.function(module.run)?;
        let chain = calls.iter().find_map(|second| {
            let (_, _, calls) = module.function(*second)?;
            let is_last = |index: &&usize| {
                let last = module.function(**index);
                last.is_some_and(|(_, constants, _)| constants.contains(&42))
            };
            Some([module.run, *second, *calls.iter().find(is_last)?])
        })?;
        let is_other = |index: &usize| !chain.contains(index) && module.function(*index).is_some();
        (chain[0] != chain[1] && chain[1] != chain[2] && module.table.iter().any(is_other))
            .then_some(())
    };
    found().is_some()
}

#[test]
fn functions_go_with_their_calls() {
    let module = module();
    let reduced = reduce(&module, &fails, true);
    let left = read(&reduced.text).expect("a module");
    assert_eq!((left.types, left.imports, left.functions.len()), (1, 0, 4));
    assert_eq!(left.table.len(), 1);
    let other = left.function(left.table[0]).expect("a function");
    assert_eq!(other.1, [0; 0], "a function without instructions");
    // Types, functions, exports, elements, and code.
    let sections = [3 + 3, 3 + 4, 3 + 6, 3 + 6, 3 + 4 + 5 + 5 + 6];
    let most = HEAD.len() + sections.iter().sum::<usize>() + 1;
    assert!(reduced.text.len() <= most, "{} {most}", reduced.text.len());
    assert!(reduced.tests < 300, "{} tests", reduced.tests);
}
