//! Texts in languages: their grammar is recognized, what fits none is a text, and hostile texts do no
//! harm.

use ddfuzz_delta::{Structure, SyntaxTree};
use ddfuzz_structure::{structure_named, structure_of};

use crate::searches::reduce;

const C: &str = "#include <stdio.h>\n\nint main(int argc, char **argv)\n{\n    for (int i = 0; i < argc; \
    i++) { printf(\"%s\\n\", argv[i]); }\n    return 0;\n}\n";
const JSON: &str =
    r#"{"a": [1, 2, {"b": null, "c": "text"}], "d": {"e": [true, false], "f": -1.5}}"#;
const JAVASCRIPT: &str = "function f(a, b) { const c = [a, `${b}`]; return c.map((x) => x + 1); }\n\
    class D extends E { g() { return this.h?.[0] ?? 1; } }\nf(1, new D());\n";
const PYTHON: &str = "import sys\n\ndef f(a, b=1):\n    for c in range(a):\n        if c % 2 == 0:\n\
    \x20           print(f'{b}', c)\n    return [d for d in sys.argv if d]\n\nf(len(sys.argv))\n";

fn parse(name: &str, text: &[u8]) -> Option<SyntaxTree> {
    match structure_named(name) {
        Some(Structure::Syntax(grammar)) => grammar.parse(text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn languages_are_recognized_by_their_texts() {
    for (name, text) in [
        ("c", C),
        ("json", JSON),
        ("javascript", JAVASCRIPT),
        ("python", PYTHON),
    ] {
        assert_eq!(structure_of(text.as_bytes()).name(), Some(name), "{text}");
        let tree = parse(name, text.as_bytes()).expect("a tree");
        assert_eq!(tree.errors, 0);
        let root = &tree.nodes[0];
        assert_eq!(root.last, tree.nodes.len());
        for (index, node) in tree.nodes.iter().enumerate().skip(1) {
            let parent = node.parent.expect("the root is the first node");
            let around = &tree.nodes[parent];
            assert!(parent < index && node.last <= around.last);
            assert!(around.place.start <= node.place.start && node.place.end <= around.place.end);
        }
    }
}

#[test]
fn a_language_is_recognized_by_the_beginning_of_a_large_text() {
    // The beginning ends within the class.
    let method = "    async #write (level, ...args) {\n        if (this.#silent) {\n            \
        return\n        }\n        this.#stream.write(level, ...args)\n    }\n\n";
    let text = format!("class Display {{\n{}}}\n", method.repeat(400));
    assert!(text.len() > 1 << 15);
    assert_eq!(structure_of(text.as_bytes()).name(), Some("javascript"));
}

#[test]
fn other_texts_have_no_grammar() {
    for text in [
        "a line\nand another, of prose (with a bracket); and = more\n",
        "((([[[]]])))",
        "x = 1;\n",
        "key: value\nlist:\n  - a\n  - b\n",
        "<a href='x'>text</a>",
        "1,2,3\n4,5,6\n",
        &"INSERT INTO account (id, name, balance) VALUES (1, 'customer 1', 13.50);\n".repeat(40),
    ] {
        assert_eq!(structure_of(text.as_bytes()).name(), Some("text"), "{text}");
    }
}

#[test]
fn hostile_texts_are_parsed_in_bounded_time() {
    let texts = [
        "(".repeat(20_000),
        "[".repeat(20_000) + &"]".repeat(20_000),
        "{\"a\":".repeat(3_000),
        "f(".repeat(5_000) + &")".repeat(5_000),
        "a=b;\n".repeat(3_000),
        "\u{0}\u{fffd};{(=#\"'".repeat(1000),
    ];
    for text in texts {
        structure_of(text.as_bytes());
        for name in ["c", "json", "javascript", "python"] {
            if let Some(tree) = parse(name, text.as_bytes()) {
                assert_eq!(
                    tree.nodes.first().map_or(0, |root| root.last),
                    tree.nodes.len()
                );
            }
        }
    }
    assert!(parse("c", &vec![b'a'; 2 << 20]).is_none(), "too large");
    parse("c", b"int a = \"\xff\xfe\";\x80");
}

#[test]
fn a_program_is_reduced_by_its_syntax() {
    let functions = (0..12).map(|index| {
        format!(
            "int compute_{index}(int first, const char *name)\n{{\n    int total = {index};\n    \
             if (first > {index}) {{ total += first * 2; }}\n    return total{};\n}}\n",
            if index == 7 {
                " ? crash(total, name) : 0"
            } else {
                ""
            }
        )
    });
    let program = functions.collect::<String>();
    assert_eq!(structure_of(program.as_bytes()).name(), Some("c"));
    let fails = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        let is_balanced = |open: char, close: char| {
            let depth = text.chars().try_fold(0u32, |depth, one| match one {
                one if one == open => Some(depth + 1),
                one if one == close => depth.checked_sub(1),
                _ => Some(depth),
            });
            depth == Some(0)
        };
        text.contains("crash(") && is_balanced('(', ')') && is_balanced('{', '}')
    };
    let reduced = reduce(program.as_bytes(), &fails, true);
    assert_eq!(reduced.text, b"crash()");
    assert!(reduced.tests <= 60, "{} tests", reduced.tests);
}
