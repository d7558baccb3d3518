//! Archives of `ar`: static libraries with their tables, and packages of other archives.

use std::cell::Cell;
use std::io::Read;

use flate2::read::GzDecoder;

use crate::open;
use crate::samples::{gzip, png, tar, zip};
use crate::searches::{members as contents, reduce};

/// A member of an archive: its head, and its content with a newline after an odd size.
fn member(name: &str, content: &[u8]) -> Vec<u8> {
    let size = content.len();
    let head = format!("{name:<16}0           0     0     100644  {size:<10}`\n");
    let pad = &b"\n"[..size % 2];
    [head.as_bytes(), content, pad].concat()
}

/// A static library: symbols, a long name, and three members.
pub fn library() -> Vec<u8> {
    let names = b"name_of_an_object.o/\nof_another_object.o/\n";
    let members = [
        member("//", names),
        member("/0", b"\x7fobject \0 one"),
        member("two.o/", b"\x7fobject \0 two!"),
        member("/21", b"\x7fobject 3"),
    ];
    let texts = b"first\0second\0third\0fourth\0\0";
    let size = 4 + 4 * 4 + texts.len();
    let mut starts = vec![8 + 60 + size.next_multiple_of(2)];
    starts.extend(members.iter().map(Vec::len));
    let start = |member: usize| starts[..=member].iter().sum::<usize>() as u32;
    let mut symbols = 4u32.to_be_bytes().to_vec();
    for of in [1, 2, 2, 3] {
        symbols.extend(start(of).to_be_bytes());
    }
    symbols.extend(texts);
    let front = [b"!<arch>\n".to_vec(), member("/", &symbols)].concat();
    [front, members.concat()].concat()
}

/// A package: a version, and two archives.
fn package() -> Vec<u8> {
    let members = [
        member("debian-binary", b"2.0\n"),
        member("control.tar", &tar()),
        member("data.tar", &tar()),
    ];
    [&b"!<arch>\n"[..], &members.concat()].concat()
}

/// Returns offset, name and content of each member of an archive; `None` if it is damaged.
fn members(text: &[u8]) -> Option<Vec<(usize, String, Vec<u8>)>> {
    let mut rest = text.strip_prefix(b"!<arch>\n")?;
    let mut members = Vec::new();
    while !rest.is_empty() {
        let (head, after) = rest.split_at_checked(60)?;
        head.ends_with(b"`\n").then_some(())?;
        let field = |from: usize, to: usize| std::str::from_utf8(&head[from..to]).ok();
        let size: usize = field(48, 58)?.trim_end().parse().ok()?;
        let (content, after) = after.split_at_checked(size)?;
        let at = text.len() - rest.len();
        members.push((at, field(0, 16)?.trim_end().to_string(), content.to_vec()));
        rest = match size % 2 {
            0 => after,
            _ => after.strip_prefix(b"\n")?,
        };
    }
    Some(members)
}

/// Returns, for each symbol of a library, its name, and name and content of its member.
fn symbols(text: &[u8]) -> Option<Vec<(String, String, Vec<u8>)>> {
    let members = members(text)?;
    let table = |name: &str| members.iter().find(|member| member.1 == name);
    let symbols = &table("/")?.2;
    let word = |at: usize| Some(u32::from_be_bytes(*symbols.get(at..)?.first_chunk()?) as usize);
    let count = word(0)?;
    let mut texts = symbols.get(4 + 4 * count..)?.split(|byte| *byte == 0);
    let read = (0..count).map(|index| {
        let at = word(4 + 4 * index)?;
        let (_, name, content) = members.iter().find(|member| member.0 == at)?;
        let symbol = String::from_utf8(texts.next()?.to_vec()).ok()?;
        let long = name.strip_prefix('/').map(|at| {
            let names = &table("//")?.2;
            let name = names.get(at.parse::<usize>().ok()?..)?;
            let name = name.split(|byte| *byte == b'\n').next()?;
            String::from_utf8(name.to_vec()).ok()
        });
        let name = long.unwrap_or_else(|| Some(name.clone()))?;
        Some((symbol, name, content.clone()))
    });
    read.collect()
}

#[test]
fn a_library_keeps_the_tables_of_what_is_left() {
    let library = library();
    assert_eq!(symbols(&library).map(|symbols| symbols.len()), Some(4));
    let fails = |text: &[u8]| {
        let is_it = |(symbol, name, content): &(String, String, Vec<u8>)| {
            let is_named = symbol == "fourth" && name.starts_with("of_an");
            is_named && content.ends_with(b"3")
        };
        symbols(text).is_some_and(|symbols| symbols.iter().any(is_it))
    };
    let reduced = reduce(&library, &fails, true);
    let left = symbols(&reduced.text).expect("a library");
    assert_eq!(left, [("fourth".into(), "of_an".into(), b"3".to_vec())]);
    let least = 8 + 3 * 60 + (4 + 4 + 7 + 1) + (5 + 1) + (1 + 1);
    assert!(reduced.text.len() <= least, "{}", reduced.text.len());
}

#[test]
fn a_package_of_archives_is_reduced_inside() {
    let needs = |text: &[u8]| {
        let members = members(text)?;
        let (_, _, control) = members.iter().find(|member| member.1 == "control.tar")?;
        let size = usize::from_str_radix(std::str::from_utf8(control.get(124..135)?).ok()?, 8);
        let sum: u32 = control
            .get(..512)?
            .iter()
            .map(|byte| u32::from(*byte))
            .sum();
        let digits = &control[148..154];
        let stated = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()?;
        let own: u32 = control[148..156].iter().map(|byte| u32::from(*byte)).sum();
        let content = control.get(512..512 + size.ok()?)?;
        (sum - own + 8 * 32 == stated && content.ends_with(b"text")).then_some(())
    };
    let reduced = reduce(&package(), &|text| needs(text).is_some(), false);
    let least = 8 + 60 + 1024;
    assert!(reduced.text.len() <= least, "{}", reduced.text.len());
    assert!(reduced.tests < 300, "{} tests", reduced.tests);
}

#[test]
fn texts_that_a_list_names_go_with_their_lines() {
    let list = "<part type=\"text of the document\"/>\n".repeat(12);
    let texts: Vec<String> = (0..12)
        .map(|part| {
            let line = |at: usize| format!("<p id=\"{at}\">line {} of a text</p>\n", part * at);
            let sect = if part == 7 { "<sect/>\n" } else { "" };
            let lines: String = (0..16).map(line).collect();
            format!("<body>\n{lines}{sect}</body>\n")
        })
        .collect();
    let members = texts.iter().map(|text| ("part", text.as_bytes(), true));
    let first = std::iter::once(("list", list.as_bytes(), true));
    let all: Vec<(&str, &[u8], bool)> = first.chain(members).collect();
    let has = |text: &[u8], word: &[u8]| text.windows(word.len()).any(|one| one == word);
    let fails = |file: &[u8]| {
        contents(file).is_some_and(|all| match all.split_first() {
            Some((list, parts)) => {
                let named = list.windows(6).filter(|one| one == b"<part ").count();
                named > 0 && named <= parts.len() && parts.iter().any(|text| has(text, b"<sect/>"))
            }
            None => false,
        })
    };
    let text = zip(&all);
    // Tests until hardly more is left than two members.
    let tests = Cell::new(0);
    let is_large = Cell::new(true);
    let counted = |file: &[u8]| {
        tests.set(tests.get() + usize::from(is_large.get()));
        let is_failure = fails(file);
        is_large.set(is_large.get() && !(is_failure && file.len() < 400));
        is_failure
    };
    reduce(&text, &counted, false);
    assert!(tests.get() <= 62, "{} tests", tests.get());
}

#[test]
fn a_file_inside_of_another_one_can_be_deleted_as_a_whole() {
    let text = gzip(&png());
    let document = open(&text).expect("a document");
    let contents = (0..document.parts().len()).map(|part| {
        let mut content = Vec::new();
        let fewer = document.without(&[part]).text();
        let read = GzDecoder::new(&fewer[..]).read_to_end(&mut content);
        read.is_ok().then_some(content)
    });
    let contents: Vec<Option<Vec<u8>>> = contents.collect();
    assert!(contents.contains(&Some(Vec::new())), "{contents:?}");
}
