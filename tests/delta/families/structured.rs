//! Families of structured texts.

use ddfuzz::delta::Outcome;

use super::bytes::{contains, fails_if};
use super::count::Case;
use super::json::{self, Value};
use super::random::Random;

/// How deep each byte lies; `None` where brackets do not match.
fn depths(text: &[u8]) -> Option<Vec<usize>> {
    let mut open = Vec::new();
    let mut depths = Vec::new();
    for byte in text {
        match byte {
            b'(' => open.push(b')'),
            b'[' => open.push(b']'),
            b'{' => open.push(b'}'),
            b')' | b']' | b'}' => {
                depths.push(open.len());
                (open.pop()? == *byte).then_some(())?;
                continue;
            }
            _ => {}
        }
        depths.push(open.len());
    }
    open.is_empty().then_some(depths)
}

fn brackets(random: &mut Random, kinds: usize, depth: usize, size: usize, text: &mut Vec<u8>) {
    let end = text.len() + size;
    while text.len() + 2 < end {
        let room = end - text.len() - 2;
        if depth == 0 || random.below(3) == 0 {
            let letters = 1 + random.below(6.min(room + 1));
            text.extend(random.letters(letters));
            continue;
        }
        let kind = random.below(kinds);
        text.push(b"([{"[kind]);
        let inside = random.below(room + 1);
        brackets(random, kinds, depth - 1, inside, text);
        text.push(b")]}"[kind]);
    }
}

/// Nested brackets with something in them; what is not balanced is refused.
fn nested(seed: u64, kinds: usize, core: &[u8], judge: fn(&[u8], &[usize]) -> bool) -> Case {
    let mut random = Random::new(seed);
    let mut input = Vec::new();
    brackets(&mut random, kinds, 12, 4096 - core.len(), &mut input);
    // Behind a letter: anywhere at all depths.
    let letters: Vec<_> = (0..input.len())
        .filter(|at| input[*at].is_ascii_lowercase())
        .collect();
    let at = letters[random.below(letters.len())];
    input.splice(at..at, core.iter().copied());
    Case::new(input, move |text| match depths(text) {
        Some(depths) => fails_if(judge(text, &depths)),
        None => Outcome::Unresolved,
    })
}

pub fn nested_needle(seed: u64) -> Case {
    nested(seed, 1, b"needleneedle", |text, _| {
        contains(text, b"needleneedle")
    })
}

pub fn nested_kinds(seed: u64) -> Case {
    nested(seed, 3, b"[({x})]{[y]}", |text, _| {
        contains(text, b"[({x})]{[y]}")
    })
}

pub fn nested_deep(seed: u64) -> Case {
    nested(seed, 1, b"(((((ab((XX))))))c)", |text, depths| {
        (1..text.len()).any(|at| text[at - 1] == b'X' && text[at] == b'X' && depths[at] >= 5)
    })
}

pub fn nested_depth(seed: u64) -> Case {
    nested(seed, 3, b"((((((((((x))))))))))", |_, depths| {
        depths.iter().any(|depth| *depth >= 6)
    })
}

fn value(random: &mut Random, depth: usize, size: usize, text: &mut Vec<u8>) {
    match random.below(8) {
        _ if depth == 0 || size < 12 => match random.below(4) {
            0 => text.extend_from_slice(b"null"),
            1 => text.extend_from_slice(b"true"),
            2 => text.extend_from_slice(random.below(100_000).to_string().as_bytes()),
            _ => string(random, text),
        },
        kind => {
            let object = kind % 2 == 0;
            text.push(b"[{"[usize::from(object)]);
            let end = text.len() + size;
            let mut first = true;
            while first || text.len() < end {
                if !first {
                    text.extend_from_slice(b", ");
                }
                first = false;
                if object {
                    string(random, text);
                    text.extend_from_slice(b": ");
                }
                let inside = random.below(size);
                value(random, depth - 1, inside, text);
            }
            text.push(b"]}"[usize::from(object)]);
        }
    }
}

fn string(random: &mut Random, text: &mut Vec<u8>) {
    text.push(b'"');
    let letters = 1 + random.below(12);
    text.extend(random.letters(letters));
    text.push(b'"');
}

/// A JSON text whose value must be so somewhere; what is no JSON is refused.
fn json_with(seed: u64, core: &str, judge: fn(&Value) -> bool) -> Case {
    let mut random = Random::new(seed);
    let mut input = b"{".to_vec();
    let put = random.below(3500);
    let mut done = false;
    while input.len() < 4000 || !done {
        string(&mut random, &mut input);
        input.extend_from_slice(b": ");
        if input.len() > put && !done {
            done = true;
            input.extend_from_slice(b"[1, {\"deep\": [");
            input.extend_from_slice(core.as_bytes());
            input.extend_from_slice(b", 3]}], ");
        } else {
            let size = random.below(400);
            value(&mut random, 6, size, &mut input);
            input.extend_from_slice(b",\n  ");
        }
        if done && input.ends_with(b"], ") {
            continue;
        }
    }
    input.extend_from_slice(b"\"end\": 0}\n");
    Case::new(input, move |text| match json::read(text) {
        Some(value) => fails_if(any(&value, judge)),
        None => Outcome::Unresolved,
    })
}

fn any(value: &Value, judge: fn(&Value) -> bool) -> bool {
    judge(value)
        || match value {
            Value::List(items) => items.iter().any(|one| any(one, judge)),
            Value::Object(members) => members.iter().any(|(_, one)| any(one, judge)),
            _ => false,
        }
}

fn member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Object(members) = value else {
        return None;
    };
    members
        .iter()
        .find(|(key, _)| key == name.as_bytes())
        .map(|(_, value)| value)
}

/// An object in a list in an object.
pub fn json_path(seed: u64) -> Case {
    let core = "{\"name\": \"one\", \"crash\": [7, {\"y\": [1, 2], \"x\": true, \"z\": \"w\"}, null], \"id\": 12}";
    json_with(seed, core, |value| {
        matches!(member(value, "crash"), Some(Value::List(items))
            if items.iter().any(|item| member(item, "x") == Some(&Value::Bool(true))))
    })
}

/// Two members of one object.
pub fn json_members(seed: u64) -> Case {
    let core =
        "{\"name\": \"one\", \"type\": 12, \"more\": [1, 2, {}], \"size\": -17, \"x\": null}";
    json_with(seed, core, |value| {
        matches!(
            (member(value, "type"), member(value, "size")),
            (Some(Value::Number), Some(Value::Number))
        )
    })
}

/// A string with a word.
pub fn json_word(seed: u64) -> Case {
    json_with(
        seed,
        "{\"name\": \"some <script> here\"}",
        |value| matches!(value, Value::Text(text) if contains(text, b"<script>")),
    )
}
