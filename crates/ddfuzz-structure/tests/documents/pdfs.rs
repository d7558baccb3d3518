//! PDF: tables and streams state where the objects that are left are, and what only a deleted object
//! refers to goes with it.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::ZlibDecoder;

use crate::open;
use crate::samples::zlib;
use crate::searches::reduce;

/// Objects of a document of `pages` pages, each with a text.
fn objects(pages: usize, is_packed: bool) -> Vec<(usize, Vec<u8>)> {
    let kids: Vec<String> = (0..pages)
        .map(|page| format!("{} 0 R", 4 + 2 * page))
        .collect();
    let kids = kids.join(" ");
    let mut objects = vec![
        (1, b"<< /Type /Catalog /Pages 2 0 R >>".to_vec()),
        (
            2,
            format!("<</Type/Pages/Kids[{kids}]/Count {pages}>>").into_bytes(),
        ),
        (3, b"<</Producer (made up \\) here)/Size<00ff>>>".to_vec()),
    ];
    for page in 0..pages {
        let number = 4 + 2 * page;
        let dictionary = format!("<</Type/Page/Parent 2 0 R/Contents {} 0 R>>", number + 1);
        objects.push((number, dictionary.into_bytes()));
        let text = format!("BT (page {page} of {pages} pages of a text) Tj ET\n").repeat(3);
        let (filter, data) = match is_packed {
            true => ("/Filter/FlateDecode", zlib(text.as_bytes())),
            false => ("", text.into_bytes()),
        };
        let head = format!("<<{filter}/Length {}>>stream\n", data.len());
        objects.push((
            number + 1,
            [head.as_bytes(), &data, b"\nendstream"].concat(),
        ));
    }
    objects
}

/// A document with a table of its objects.
pub fn pdf() -> Vec<u8> {
    let mut text = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut table = "0000000000 65535 f \n".to_owned();
    let objects = objects(4, true);
    for (number, object) in &objects {
        table += &format!("{:010} 00000 n \n", text.len());
        text.extend(
            [
                format!("{number} 0 obj\n").as_bytes(),
                object,
                b"\nendobj\n",
            ]
            .concat(),
        );
    }
    let (start, size) = (text.len(), objects.len() + 1);
    let tail = format!("xref\n0 {size}\n{table}trailer\n<</Size {size}/Root 1 0 R/Info 3 0 R>>\n");
    text.extend(format!("{tail}startxref\n{start}\n%%EOF\n").bytes());
    text
}

/// A document whose objects without a stream are in one, and a stream states where they are.
pub fn packed_pdf() -> Vec<u8> {
    let mut text = b"%PDF-1.5\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let (inner, outer): (Vec<_>, Vec<_>) = objects(3, false)
        .into_iter()
        .partition(|(_, object)| !object.ends_with(b"endstream"));
    let mut rows = BTreeMap::from([(0, [0, 0, 0, 255])]);
    let (mut pairs, mut members) = (String::new(), Vec::new());
    for (index, (number, object)) in inner.iter().enumerate() {
        pairs += &format!("{number} {} ", members.len());
        members.extend([object, &b"\n"[..]].concat());
        rows.insert(*number, [2, 0, 20, index as u8]);
    }
    let row = |at: usize| [1, (at >> 8) as u8, at as u8, 0];
    for (number, object) in &outer {
        rows.insert(*number, row(text.len()));
        text.extend(
            [
                format!("{number} 0 obj\n").as_bytes(),
                object,
                b"\nendobj\n",
            ]
            .concat(),
        );
    }
    rows.insert(20, row(text.len()));
    let data = zlib(&[pairs.as_bytes(), &members].concat());
    let head = format!(
        "20 0 obj\n<</Type/ObjStm/N {}/First {}/Filter/FlateDecode/Length {}>>\nstream\n",
        inner.len(),
        pairs.len(),
        data.len()
    );
    text.extend([head.as_bytes(), &data, b"\nendstream\nendobj\n"].concat());
    rows.insert(21, row(text.len()));
    let start = text.len();
    let mut above = [0; 4];
    let lines = rows.values().flat_map(|row| {
        let before = std::mem::replace(&mut above, *row);
        [2].into_iter().chain(
            row.iter()
                .zip(before)
                .map(|(byte, before)| byte.wrapping_sub(before)),
        )
    });
    let data = zlib(&lines.collect::<Vec<u8>>());
    let head = format!(
        "21 0 obj\n<</Type/XRef/Root 1 0 R/Size 22/W[1 2 1]/Index[0 {} 20 2]/Filter/FlateDecode\
         /DecodeParms<</Predictor 12/Columns 4>>/Length {}>>\nstream\n",
        rows.len() - 2,
        data.len()
    );
    text.extend([head.as_bytes(), &data, b"\nendstream\nendobj\n"].concat());
    text.extend(format!("startxref\n{start}\n%%EOF\n").bytes());
    text
}

/// Returns the rest of the text after the first place of `sign`.
fn after<'a>(text: &'a [u8], sign: &str) -> Option<&'a [u8]> {
    let at = text
        .windows(sign.len())
        .position(|bytes| bytes == sign.as_bytes())?;
    Some(&text[at + sign.len()..])
}

/// Reads a number at the beginning of `text`.
fn number(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}

/// Returns the stream after a dictionary, decompressed.
fn stream(object: &[u8]) -> Option<Vec<u8>> {
    let dictionary = object.split(|byte| *byte == b'>').next()?;
    let size = number(after(object, "/Length ")?)?;
    let data = after(object, "stream\n")?;
    data.get(size..)?.strip_prefix(b"\nendstream")?;
    let data = data.get(..size)?;
    if after(dictionary, "/FlateDecode").is_none() {
        return Some(data.to_vec());
    }
    let mut content = Vec::new();
    ZlibDecoder::new(data).read_to_end(&mut content).ok()?;
    Some(content)
}

/// Returns the objects that the table of a document lists; `None` if one of them is not there.
fn listed(text: &[u8]) -> Option<BTreeMap<usize, Vec<u8>>> {
    let mut rest = text.get(number(after(text, "startxref\n")?)?..)?;
    rest = rest.strip_prefix(b"xref\n")?;
    let mut objects = BTreeMap::new();
    while let Some(from) = number(rest) {
        rest = after(rest, " ")?;
        let count = number(rest)?;
        rest = after(rest, "\n")?;
        for index in from..from + count {
            let (row, next) = rest.split_at_checked(20)?;
            rest = next;
            if row[17] == b'f' {
                continue;
            }
            let at: usize = std::str::from_utf8(&row[..10]).ok()?.parse().ok()?;
            let object = text
                .get(at..)?
                .strip_prefix(format!("{index} 0 obj").as_bytes())?;
            objects.insert(index, object.to_vec());
        }
    }
    Some(objects)
}

/// Returns the rows of the stream that states where objects are, by their numbers.
fn rows(text: &[u8]) -> Option<BTreeMap<usize, [u8; 4]>> {
    let table = text.get(number(after(text, "startxref\n")?)?..)?;
    let content = stream(table)?;
    let rows: Vec<[u8; 4]> = match after(table, "/DecodeParms").is_some() {
        true => {
            let mut above = [0_u8; 4];
            let rows = content.chunks_exact(5).map(|row| {
                above = std::array::from_fn(|at| above[at].wrapping_add(row[1 + at]));
                above
            });
            rows.collect()
        }
        false => content
            .chunks_exact(4)
            .map(|row| row.try_into().unwrap())
            .collect(),
    };
    let index = after(table, "/Index[")?
        .split(|byte| *byte == b']')
        .next()?;
    let index: Vec<usize> = index
        .split(|byte| *byte == b' ')
        .filter_map(number)
        .collect();
    let numbers = index
        .chunks_exact(2)
        .flat_map(|run| (run[0]..).take(run[1].min(100)));
    let numbers: Vec<usize> = numbers.collect();
    (numbers.len() == rows.len()).then(|| numbers.into_iter().zip(rows).collect())
}

#[test]
fn tables_of_pdf_follow_the_objects_that_are_left() {
    let text = pdf();
    assert_eq!(listed(&text).map(|objects| objects.len()), Some(11));
    let document = open(&text).expect("a document");
    let mut sizes = Vec::new();
    for part in 0..document.parts().len() {
        let fewer = document.without(&[part]).text();
        if after(&fewer, "xref\n0 ").is_none() {
            continue;
        }
        let Some(objects) = listed(&fewer) else {
            panic!("without {part}: {}", String::from_utf8_lossy(&fewer));
        };
        sizes.push(objects.len());
        let streams = objects
            .values()
            .filter(|object| after(object, "/Length ").is_some());
        assert!(
            streams.into_iter().all(|object| stream(object).is_some()),
            "without {part}"
        );
    }
    // A page goes with its text, and the catalog alone.
    assert!(sizes.contains(&9) && sizes.contains(&10), "{sizes:?}");
}

#[test]
fn streams_of_objects_follow_the_objects_that_are_left() {
    let text = packed_pdf();
    assert_eq!(rows(&text).map(|rows| rows.len()), Some(12));
    let document = open(&text).expect("a document");
    let mut sizes = Vec::new();
    for part in 0..document.parts().len() {
        let fewer = document.without(&[part]).text();
        let Some(rows) = rows(&fewer) else {
            continue;
        };
        sizes.push(rows.len());
        let is_right = rows.iter().all(|(number, row)| match row[0] {
            1 => {
                let at = usize::from(row[1]) << 8 | usize::from(row[2]);
                fewer[at..].starts_with(format!("{number} 0 obj").as_bytes())
            }
            2 => {
                let content = after(&fewer, "/ObjStm").and_then(stream);
                content.is_none_or(|content| {
                    let pairs = content.split(|byte| *byte == b' ');
                    let pair = pairs.filter_map(self::number).nth(2 * usize::from(row[3]));
                    pair == Some(*number)
                })
            }
            _ => true,
        });
        assert!(is_right, "without {part}: {rows:?}");
    }
    assert!(sizes.contains(&10), "{sizes:?}");
}

#[test]
fn a_pdf_is_reduced_to_one_text() {
    for (text, least) in [(pdf(), 260), (packed_pdf(), 330)] {
        let fails = |text: &[u8]| {
            let listed = listed(text).map(|objects| objects.into_values().collect::<Vec<_>>());
            let objects = listed.or_else(|| {
                let rows = rows(text)?;
                let rows = rows.values().filter(|row| row[0] == 1);
                let starts = rows.map(|row| usize::from(row[1]) << 8 | usize::from(row[2]));
                Some(
                    starts
                        .filter_map(|at| text.get(at..))
                        .map(<[u8]>::to_vec)
                        .collect(),
                )
            });
            let has = |object: &Vec<u8>| {
                let content = stream(object);
                content.is_some_and(|content| after(&content, "page 2").is_some())
            };
            objects.is_some_and(|objects| objects.iter().any(has))
        };
        let reduced = reduce(&text, &fails, false);
        let shown = String::from_utf8_lossy(&reduced.text).into_owned();
        assert!(
            reduced.text.len() <= least,
            "{} {shown}",
            reduced.text.len()
        );
    }
}

/// The offset of the table is computed anew where it stands behind an object that is cut off.
#[test]
fn what_stands_behind_a_broken_object_is_read() {
    let head = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages [2 0 R\n";
    let table = "xref\n0 1\n0000000000 65535 f \ntrailer\n<</Size 1>>\n2 0 obj\n<< /Kids [\n";
    let text = format!("{head}{table}startxref\n{}\n%%EOF\n", head.len());
    let fails = |text: &[u8]| {
        let table = after(text, "startxref\n").and_then(number);
        let table = table.and_then(|at| text.get(at..));
        table.is_some_and(|table| table.starts_with(b"xref\n"))
    };
    assert!(fails(text.as_bytes()));
    let reduced = reduce(text.as_bytes(), &fails, false);
    let shown = String::from_utf8_lossy(&reduced.text).into_owned();
    assert!(reduced.text.len() <= 50, "{shown}");
}
