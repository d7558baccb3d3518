//! Texts with a grammar: brackets, lines, JSON, a tag.

use super::{Case, Set, Stream};

/// The family `brackets`.
pub fn brackets(set: Set) -> Vec<Case> {
    let of = |(variant, number, pairs): (&'static str, usize, &[&str])| {
        let mut stream = set.stream(1000 + number as u64);
        let size = set.size(4096, &mut stream);
        let mut input = String::new();
        let place = stream.below(size / 2);
        let mut is_deep = false;
        while input.len() < size || !is_deep {
            // One tree is too deep, the others are not.
            let levels = match !is_deep && input.len() >= place {
                true => 7,
                false => 4,
            };
            is_deep |= levels == 7;
            tree(levels, pairs, levels == 7, &mut stream, &mut input);
        }
        Case {
            family: "brackets",
            variant,
            source: "brackets.c",
            defines: vec![("VARIANT", number.to_string())],
            bug: "nesting_too_deep",
            input: input.into_bytes(),
            minimum: b"(((((())))))".to_vec(),
            is_text: true,
            ending: "",
        }
    };
    let kinds = [
        ("round", 0, &["()"][..]),
        ("three kinds", 1, &["()", "[]", "{}"]),
    ];
    kinds.map(of).to_vec()
}

/// A tree of brackets with words and siblings, exactly `levels` deep where `is_full`.
fn tree(levels: usize, pairs: &[&str], is_full: bool, stream: &mut Stream, text: &mut String) {
    let pair = stream.pick(pairs);
    text.push_str(&pair[..1]);
    text.push_str(&stream.word());
    if levels > 1 {
        let children = stream.below(3) + usize::from(is_full);
        for child in 0..children {
            let full = is_full && child == 0;
            let below = if full {
                levels - 1
            } else {
                (levels - 1).min(3)
            };
            tree(below, pairs, full, stream, text);
            text.push(' ');
        }
    }
    text.push_str(&pair[1..]);
}

/// The family `header-line`.
pub fn header_lines(set: Set) -> Vec<Case> {
    let of = |(number, variant, header, line): (usize, &'static str, &str, &str)| {
        let mut stream = set.stream(1100 + number as u64);
        let lines = set.size(1000, &mut stream);
        let mut all: Vec<String> = (0..lines)
            .map(|_| {
                format!(
                    "{} {} {};",
                    stream.word(),
                    stream.word(),
                    stream.below(1000)
                )
            })
            .collect();
        let place = stream.below(lines);
        all[place] = line.to_owned();
        Case {
            family: "header-line",
            variant,
            source: "header_line.c",
            defines: vec![("VARIANT", number.to_string())],
            bug: "line_is_not_handled",
            input: format!("{header}\n{}\n", all.join("\n")).into_bytes(),
            minimum: format!("{header}\n{line}\n").into_bytes(),
            is_text: true,
            ending: "",
        }
    };
    [
        (0, "long header", "%PDF", "trouble!"),
        (1, "long line", "V2", "goto end ;"),
    ]
    .map(of)
    .to_vec()
}

/// The family `json`.
pub fn jsons(set: Set) -> Vec<Case> {
    let of = |(number, variant, minimum): (usize, &'static str, &str)| {
        let mut stream = set.stream(1200 + number as u64);
        let size = set.size(4096, &mut stream);
        Case {
            family: "json",
            variant,
            source: "json.c",
            defines: vec![("VARIANT", number.to_string())],
            bug: "value_is_not_expected",
            input: json(number, size, &mut stream).into_bytes(),
            minimum: minimum.as_bytes().to_vec(),
            is_text: true,
            ending: "json",
        }
    };
    [
        (0, "number", "{\"items\":[{\"key\":-1}]}"),
        (1, "null", "{\"user\":{\"name\":null}}"),
        (2, "empty list", "{\"row\":{\"cells\":[[]]}}"),
    ]
    .map(of)
    .to_vec()
}

/// An object of which one member breaks the reader.
fn json(number: usize, size: usize, stream: &mut Stream) -> String {
    let mut members = Vec::new();
    while members.iter().map(String::len).sum::<usize>() < size {
        members.push(member(3, stream));
    }
    let others: Vec<String> = (0..8).map(|_| member(1, stream)).collect();
    let (before, behind) = (others[..4].join(", "), others[4..].join(", "));
    let breaks = match number {
        0 => format!(
            "\"items\": [{{{before}}}, {{{before}, \"key\": -{}, {behind}}}, {{{behind}}}]",
            1 + stream.below(900)
        ),
        1 => format!("\"user\": {{{before}, \"name\": null, {behind}}}"),
        _ => format!("\"row\": {{{before}, \"cells\": [[1, 2], [], [3]], {behind}}}"),
    };
    let place = members.len() / 4 + stream.below(members.len() / 2);
    members.insert(place, breaks);
    format!("{{\n  {}\n}}\n", members.join(",\n  "))
}

/// A member with values up to `levels` deep.
fn member(levels: usize, stream: &mut Stream) -> String {
    let key = stream.word();
    format!("\"{key}\": {}", json_value(levels, stream))
}

fn json_value(levels: usize, stream: &mut Stream) -> String {
    match stream.below(if levels == 0 { 4 } else { 7 }) {
        0 => stream.below(100_000).to_string(),
        1 => stream.pick(&["true", "false"]).to_owned(),
        2 => format!("{}.{}", stream.below(100), stream.below(100)),
        3 => format!("\"{} {}\"", stream.word(), stream.word()),
        4 => {
            let all: Vec<String> = (0..1 + stream.below(4))
                .map(|_| json_value(levels - 1, stream))
                .collect();
            format!("[{}]", all.join(", "))
        }
        _ => {
            let all: Vec<String> = (0..1 + stream.below(4))
                .map(|_| member(levels - 1, stream))
                .collect();
            format!("{{{}}}", all.join(", "))
        }
    }
}

/// The family `select`: the line of the ISSTA paper, for which its figure holds; held out, the
/// family `element`, a longer line.
pub fn selects(set: Set) -> Vec<Case> {
    let (family, line) = match set {
        Set::Tuned | Set::Seed(_) | Set::Real => {
            ("select", "<SELECT NAME=\"priority\" MULTIPLE SIZE=7>")
        }
        Set::HeldOut => (
            "element",
            "<td align=left><SELECT NAME=\"bug_severity\" SIZE=9 MULTIPLE>",
        ),
    };
    let of = |(number, variant): (usize, &'static str)| Case {
        family,
        variant,
        source: "select.c",
        defines: vec![("VARIANT", number.to_string())],
        bug: "print_select",
        input: line.as_bytes().to_vec(),
        minimum: b"<SELECT>".to_vec(),
        is_text: true,
        ending: "",
    };
    [(0, "tag"), (1, "bytes")].map(of).to_vec()
}
