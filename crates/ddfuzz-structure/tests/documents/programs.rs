//! Programs and objects of macOS and Windows: Mach-O and PE.

use crate::open;
use crate::searches::reduce;

/// Writes little-endian words of 32 bits.
fn longs(longs: &[usize]) -> Vec<u8> {
    let longs = longs.iter().map(|long| (*long as u32).to_le_bytes());
    longs.flatten().collect()
}

/// Reads the little-endian number of `width` bytes at offset `at`.
fn number(text: &[u8], at: usize, width: usize) -> Option<usize> {
    let bytes = text.get(at..at.checked_add(width)?)?.iter().rev();
    Some(bytes.fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

/// Returns the string at offset `at`, up to a NUL.
fn string(text: &[u8], at: usize) -> Option<&[u8]> {
    let rest = text.get(at..)?;
    rest.split(|byte| *byte == 0).next()
}

/// A Mach-O object of 64 bits with a section of two relocations, three symbols, and a range that is
/// not read.
pub fn macho() -> Vec<u8> {
    let (commands, head) = (152 + 24 + 16, 32);
    let bytes = head + commands;
    let (relocations, symbols) = (bytes + 20, bytes + 20 + 16);
    let names = b"\0_one\0_another\0_third\0";
    let strings = symbols + 3 * 16;
    let section = [
        b"__text\0\0\0\0\0\0\0\0\0\0__TEXT\0\0\0\0\0\0\0\0\0\0".to_vec(),
        longs(&[0, 0, 20, 0, bytes, 0, relocations, 2, 0, 0, 0, 0]),
    ];
    let segment = [
        longs(&[0x19, 152]),
        vec![0; 16],
        longs(&[0, 0, 20, 0, bytes, 0, 20, 0]),
    ];
    let symbol = |name: usize| [longs(&[name]), vec![1, 1, 0, 0], vec![0; 8]].concat();
    [
        b"\xcf\xfa\xed\xfe\x07\0\0\x01".to_vec(),
        longs(&[3, 1, 3, commands, 0, 0]),
        segment.concat(),
        longs(&[7, 7, 1, 0]),
        section.concat(),
        longs(&[2, 24, symbols, 3, strings, names.len()]),
        longs(&[0x26, 16, strings + names.len(), 5]),
        b"some machine code\0\0\0".to_vec(),
        longs(&[4, 5, 6, 7]),
        [symbol(1), symbol(6), symbol(15)].concat(),
        names.to_vec(),
        b"other".to_vec(),
    ]
    .concat()
}

/// The names of the symbols of a Mach-O object whose commands end where its head says.
fn symbols(text: &[u8]) -> Option<Vec<&[u8]>> {
    text.starts_with(b"\xcf\xfa\xed\xfe").then_some(())?;
    let (mut at, mut names) = (32, Vec::new());
    for _ in 0..number(text, 16, 4)?.min(1000) {
        if number(text, at, 4)? == 2 {
            let field = |index: usize| number(text, at + 8 + 4 * index, 4);
            let (symbols, count, strings, size) = (field(0)?, field(1)?, field(2)?, field(3)?);
            text.get(strings..strings + size)?;
            for symbol in 0..count.min(1000) {
                let name = number(text, symbols + 16 * symbol, 4)?;
                names.push(string(text, strings + name).filter(|_| name < size)?);
            }
        }
        at += number(text, at + 4, 4).filter(|size| *size >= 8)?;
    }
    (at == 32 + number(text, 20, 4)?).then_some(names)
}

#[test]
fn an_object_is_reduced_to_one_symbol() {
    assert_eq!(symbols(&macho()).map(|names| names.len()), Some(3));
    let fails = |text: &[u8]| symbols(text).is_some_and(|names| names.contains(&&b"_another"[..]));
    let reduced = reduce(&macho(), &fails, false);
    assert!(
        reduced.text.len() <= 32 + 24 + 16 + 9,
        "{} bytes",
        reduced.text.len()
    );
    assert!(reduced.tests <= 150, "{} tests", reduced.tests);
}

/// A Mach-O object of these load commands, and bytes after them.
fn macho_of(commands: &[Vec<u8>], bytes: &[u8]) -> Vec<u8> {
    let size = commands.iter().map(Vec::len).sum();
    let head = [
        &b"\xcf\xfa\xed\xfe\x07\0\0\x01"[..],
        &longs(&[3, 1, commands.len(), size, 0, 0]),
    ];
    [&head.concat(), &commands.concat(), bytes].concat()
}

#[test]
fn segments_in_one_another_stay_within_the_stack() {
    let count = 4_000;
    let middle = 32 + 72 * count + count;
    let commands: Vec<Vec<u8>> = (0..count)
        .map(|number| {
            let place = longs(&[0, 0, 0, 0, middle - number, 0, 2 * number + 2, 0]);
            [longs(&[0x19, 72]), vec![0; 16], place, longs(&[0; 4])].concat()
        })
        .collect();
    let file = macho_of(&commands, &vec![0xaa; 2 * count + 2]);
    let read = move || open(&file).is_some_and(|document| document.text() == file);
    let thread = std::thread::Builder::new().stack_size(1 << 18);
    let thread = thread.spawn(read).expect("a thread");
    assert!(thread.join().expect("no panic"));
}

#[test]
fn symbols_are_bounded_in_all_tables_together() {
    let (count, size) = (4_000, 4_000 * 16);
    let commands: Vec<Vec<u8>> = (0..10)
        .map(|number| longs(&[2, 24, 32 + 240 + number * size, count, 0, 0]))
        .collect();
    let file = macho_of(&commands, &vec![0; 10 * size]);
    let document = open(&file).expect("an object");
    assert_eq!(document.text(), file);
    let parts = document.parts().len();
    assert!((24_000..=1 << 15).contains(&parts), "{parts} parts");
}

/// A 32-bit Windows program: code, and a section with the functions imported from two libraries;
/// each library has two lists of them.
pub fn pe() -> Vec<u8> {
    let (head, address, start) = (64 + 16, 0x2000, 512);
    let rva = |at: usize| address + at;
    let lists = |at: usize, names: &[usize]| {
        let names: Vec<usize> = names.iter().map(|name| rva(*name)).collect();
        (rva(at), longs(&[&names[..], &[0]].concat()))
    };
    // Two entries and the last one; lists of two and one functions; names of them.
    let names = 60 + 2 * (12 + 8);
    let texts: [&[u8]; 5] = [
        b"\0\0Open\0",
        b"\0\0Exit\0",
        b"\0\0Puts\0",
        b"k.dll\0",
        b"m.dll\0",
    ];
    let places: Vec<usize> = (0..5)
        .map(|index| names + texts[..index].iter().map(|text| text.len()).sum::<usize>())
        .collect();
    let first = [lists(60, &places[..2]), lists(72, &places[..2])];
    let second = [lists(84, &places[2..3]), lists(92, &places[2..3])];
    let imports = [
        longs(&[first[0].0, 0, 0, rva(places[3]), first[1].0]),
        longs(&[second[0].0, 0, 0, rva(places[4]), second[1].0]),
        longs(&[0; 5]),
        [&first[0].1[..], &first[1].1, &second[0].1, &second[1].1].concat(),
        texts.concat(),
    ]
    .concat();
    let section = |name: &[u8; 8], address: usize, size: usize, at: usize| {
        [name.to_vec(), longs(&[size, address, size, at, 0, 0, 0, 0])].concat()
    };
    let mut file = [
        [&b"MZ"[..], &[0; 58], &longs(&[head])].concat(),
        b"not for DOS at all".to_vec(),
    ]
    .concat();
    file.truncate(head);
    file.extend([&b"PE\0\0\x4c\x01\x02\0"[..], &[0; 12], b"\x70\0\x02\x01"].concat());
    file.extend([&b"\x0b\x01"[..], &[7; 90], &longs(&[2, 0, 0, rva(0), 60])].concat());
    file.extend(section(b".text\0\0\0", 0x1000, 40, start - 100));
    file.extend(section(b".idata\0\0", address, imports.len(), start));
    file.resize(start - 100, 0);
    file.extend([0xc3; 40]);
    file.resize(start, 0);
    [file, imports].concat()
}

/// A 32-bit Windows program that imports from libraries without names: `lists` lists of `count`
/// functions, whose names are all at the same place, `name` bytes and a zero.
fn importing(lists: usize, count: usize, name: usize) -> Vec<u8> {
    let (head, address, start) = (64, 0x1000, 64 + 24 + 112 + 40);
    let table = 20 * (lists + 1);
    let list = |number: usize| table + 4 * (count + 1) * number;
    let names = list(lists);
    let libraries: Vec<Vec<u8>> = (0..lists)
        .map(|number| longs(&[address + list(number), 0, 0, 0, 0]))
        .collect();
    let functions = [longs(&vec![address + names; count]), longs(&[0])].concat();
    let imports = [
        libraries.concat(),
        longs(&[0; 5]),
        functions.repeat(lists),
        vec![0; 2],
        vec![b'A'; name],
        vec![0],
    ]
    .concat();
    let mut file = [&b"MZ"[..], &[0; 58], &longs(&[head])].concat();
    file.extend([&b"PE\0\0\x4c\x01\x01\0"[..], &[0; 12], b"\x70\0\x02\x01"].concat());
    file.extend(
        [
            &b"\x0b\x01"[..],
            &[7; 90],
            &longs(&[2, 0, 0, address, table]),
        ]
        .concat(),
    );
    let place = longs(&[imports.len(), address, imports.len(), start, 0, 0, 0, 0]);
    [file, b".idata\0\0".to_vec(), place, imports].concat()
}

#[test]
fn imported_functions_and_their_names_are_bounded() {
    let program = importing(9, 4_000, 4);
    let document = open(&program).expect("a program");
    assert_eq!(document.text(), program);
    let parts = document.parts().len();
    assert!((32_000..=1 << 15).contains(&parts), "{parts} parts");
    // A name is a payload if it is not longer than 4,096 bytes.
    for (size, expected) in [(4_096, true), (4_097, false)] {
        let payloads = open(&importing(1, 1, size)).expect("a program").payloads();
        let is_found = payloads.iter().any(|payload| payload.len() == size);
        assert_eq!(is_found, expected, "{size} bytes");
    }
}

/// The libraries and functions that a program imports, if both lists of each library are the same.
fn imports(text: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let head = number(text, 60, 4).filter(|_| text.starts_with(b"MZ"))?;
    text.get(head..)?.strip_prefix(b"PE\0\0")?;
    let table = head + 24 + number(text, head + 20, 2)?;
    let sections: Vec<usize> = (0..number(text, head + 6, 2)?)
        .map(|section| table + 40 * section)
        .collect();
    let locate = |address: usize| {
        sections.iter().find_map(|at| {
            let inside = address.checked_sub(number(text, at + 12, 4)?)?;
            (inside < number(text, at + 16, 4)?).then_some(number(text, at + 20, 4)? + inside)
        })
    };
    let mut functions = Vec::new();
    let mut at = locate(number(text, head + 24 + 104, 4)?)?;
    while number(text, at + 12, 4)? > 0 {
        let library = string(text, locate(number(text, at + 12, 4)?)?)?;
        let (mut one, mut other) = (
            locate(number(text, at, 4)?)?,
            locate(number(text, at + 16, 4)?)?,
        );
        while number(text, one, 4)? > 0 {
            (number(text, one, 4) == number(text, other, 4)).then_some(())?;
            functions.push((library, string(text, locate(number(text, one, 4)?)? + 2)?));
            (one, other) = (one + 4, other + 4);
        }
        (number(text, other, 4)? == 0).then_some(())?;
        at += 20;
    }
    Some(functions)
}

#[test]
fn a_program_is_reduced_to_one_import() {
    let program = pe();
    let names = imports(&program).expect("a program");
    assert_eq!(names.iter().map(|(_, name)| name.len()).sum::<usize>(), 12);
    let fails =
        |text: &[u8]| imports(text).is_some_and(|names| names.contains(&(b"k.dll", b"Exit")));
    let reduced = reduce(&pe(), &fails, false);
    // Heads, the entry of the section, an entry for the library and the last one, two lists, names.
    let least = 64 + 24 + 112 + 40 + 2 * 20 + 2 * 8 + 7 + 6;
    assert!(
        reduced.text.len() <= least + 8,
        "{} bytes",
        reduced.text.len()
    );
    assert!(reduced.tests <= 400, "{} tests", reduced.tests);
}
