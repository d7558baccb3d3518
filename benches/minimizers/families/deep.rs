//! Deeply nested inputs as they crash shells, regex engines and interpreters: `repeated` as fuzzers
//! find them, `mixed` as people and programs write them.

use super::{Case, Set, Stream};

/// Nested levels of each program that are too many, and bytes of its inputs.
const SHELL: (usize, usize) = (1000, 12_000);
const REGEX: (usize, usize) = (250, 10_000);
const INTERPRETER: (usize, usize) = (20, 17_000);

/// The families `shell`, `regex` and `interpreter`.
pub fn cases(set: Set) -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, variant) in ["repeated", "mixed"].into_iter().enumerate() {
        let is_mixed = variant == "mixed";
        let mut stream = set.stream(1300 + number as u64);
        let (deep, size) = SHELL;
        let size = set.size(size, &mut stream);
        let input = shell(deep, size, is_mixed, &mut stream);
        let minimum = "(".repeat(deep);
        cases.push(case(
            "shell",
            variant,
            deep,
            "saved_states_overrun",
            input,
            minimum,
        ));
        let (deep, size) = REGEX;
        let size = set.size(size, &mut stream);
        let input = regex(deep, size, is_mixed, &mut stream);
        let minimum = "(".repeat(deep);
        cases.push(case(
            "regex",
            variant,
            deep,
            "group_stack_overruns",
            input,
            minimum,
        ));
        let (deep, size) = INTERPRETER;
        let size = set.size(size, &mut stream);
        let input = program(deep, size, is_mixed, &mut stream);
        let minimum = "if a{".repeat(deep);
        cases.push(case(
            "interpreter",
            variant,
            deep,
            "scope_stack_overruns",
            input,
            minimum,
        ));
    }
    cases.sort_by_key(|case| match case.family {
        "shell" => 0,
        "regex" => 1,
        _ => 2,
    });
    cases
}

fn case(
    family: &'static str,
    variant: &'static str,
    deep: usize,
    bug: &'static str,
    input: String,
    minimum: String,
) -> Case {
    Case {
        family,
        variant,
        source: match family {
            "shell" => "shell.c",
            "regex" => "regex.c",
            _ => "interpreter.c",
        },
        defines: vec![("DEEP", deep.to_string())],
        bug,
        input: input.into_bytes(),
        minimum: minimum.into_bytes(),
        is_text: true,
        ending: "",
    }
}

fn shell(deep: usize, size: usize, is_mixed: bool, stream: &mut Stream) -> String {
    let mut text = format!("echo {}\n", stream.word());
    if !is_mixed {
        text.push_str(&"(".repeat(size - text.len()));
        return text;
    }
    while text.len() < size / 4 {
        let (one, two, three) = (stream.word(), stream.word(), stream.word());
        let line = match stream.below(4) {
            0 => format!("{one} -{two} \"{three} $({one} {two})\" | {two} '{one}'\n"),
            1 => format!("{one}={two}; {{ {two} {three}; }} # {one} and {two}\n"),
            2 => format!("( {one} {two} && {three} ) || {two} {one}\n"),
            _ => format!("{one} $({two} \"$({three})\") &\n"),
        };
        text.push_str(&line);
    }
    // Short commands between the levels, so that there is room for some levels more.
    for _ in 0..deep + 20 + stream.below(60) {
        text.push_str(stream.pick(&["(", "( ", "(a;", "{ b|", "c $(", "(x&&"]));
    }
    while text.len() < size {
        text.push_str(stream.pick(&["echo 1; ", "cat; ", "ls | wc; "]));
    }
    text
}

fn regex(deep: usize, size: usize, is_mixed: bool, stream: &mut Stream) -> String {
    if !is_mixed {
        return "(a|".repeat(size / 3);
    }
    let mut text = String::new();
    let atoms = [
        "a+", "[b-d]*", "\\w{2,5}", "x?", "(?:y|z)", ".", "[^0-9]+", "(?=e)", "f",
    ];
    while text.len() < size / 4 {
        text.push_str(stream.pick(&atoms));
    }
    let levels = deep + 10 + stream.below(40);
    for _ in 0..levels {
        for _ in 0..1 + stream.below(4) {
            text.push_str(stream.pick(&atoms));
        }
        text.push_str(stream.pick(&["(", "(?:", "|(", "(?!", "|(?:"]));
    }
    while text.len() + levels < size {
        text.push_str(stream.pick(&atoms));
    }
    text + &")".repeat(levels)
}

fn program(deep: usize, size: usize, is_mixed: bool, stream: &mut Stream) -> String {
    if !is_mixed {
        return "if x{".repeat(size / 5);
    }
    let mut text = String::new();
    while text.len() < size / 2 {
        statement(2, stream, &mut text);
    }
    let levels = deep + 3 + stream.below(12);
    for _ in 0..levels {
        statement(1, stream, &mut text);
        let head = format!("if {} < {} {{\n", stream.word(), stream.below(100));
        text.push_str(&head);
    }
    while text.len() + 2 * levels < size {
        statement(0, stream, &mut text);
    }
    text + &"}\n".repeat(levels)
}

/// A statement with blocks up to `levels` deep.
fn statement(levels: usize, stream: &mut Stream, text: &mut String) {
    let (one, two) = (stream.word(), stream.word());
    let number = stream.below(1000);
    match stream.below(if levels == 0 { 2 } else { 4 }) {
        0 => text.push_str(&format!("{one}_ = {two}_ + ({number} * {one}_);\n")),
        1 => text.push_str(&format!("print {number} - {one}_;\n")),
        kind => {
            let keyword = if kind == 2 { "if" } else { "while" };
            text.push_str(&format!("{keyword} {one}_ > {number} {{\n"));
            for _ in 0..1 + stream.below(3) {
                statement(levels - 1, stream, text);
            }
            text.push_str("}\n");
        }
    }
}
