//! Texts in languages: their grammar is recognized, what fits none is a text, and hostile texts do no
//! harm.

use std::cell::Cell;
use std::collections::HashSet;

use ddfuzz_delta::{Full, Structure, SyntaxTree};
use ddfuzz_structure::{language_of_file, structure_named, structure_of};

use crate::searches::{reduce, reduce_by};

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

/// A program of 16 functions with comments, made of `function` for each name.
fn functions(function: &dyn Fn(usize, &str) -> String) -> String {
    let call = |index| {
        if index == 11 {
            "crash(total)"
        } else {
            "total + 1"
        }
    };
    (0..16).map(|index| function(index, call(index))).collect()
}

/// Few tests empty all blocks but one, even if no function can be deleted whole.
#[test]
fn blocks_are_emptied_together() {
    let c = functions(&|index, call| {
        format!(
            "/* Returns the total of {index}. */\nint f{index}(int first)\n{{\n    int total = first;\n    \
             if (first > {index}) {{ total += first * 2; }}\n    total = total * {index};\n    \
             return {call};\n}}\n"
        )
    });
    let python = functions(&|index, call| {
        format!(
            "def f{index}(first):\n    \"\"\"The documentation.\"\"\"\n    # The total of {index}.\n    \
             total = first\n    if first > {index}:\n        total += first * 2\n    \
             total = total * {index}\n    return {call}\n"
        )
    }) + "def g():\n    pass\n";
    let other = functions(&|index, call| {
        // A small text without a grammar is not reduced by its statements.
        let more = format!("    let note: &str = \"{}\";\n", "words ".repeat(12)).repeat(8);
        format!(
            "// Returns the total of {index}.\nfn f{index}(first: i32) -> i32 {{\n    let mut total = \
             first;\n    if first > {index} {{ total += first * 2; }}\n{more}    {call}\n}}\n"
        )
    });
    for (name, program) in [("c", c), ("python", python), ("text", other)] {
        let structure = structure_of(program.as_bytes());
        if name != "text" {
            assert_eq!(structure.name(), Some(name));
        }
        let errors = |text: &[u8]| match &structure {
            Structure::Syntax(grammar) => grammar.errors(text),
            _ => Some(0),
        };
        let (tests, needed) = (Cell::new(0), Cell::new(None));
        let fails = |text: &[u8]| {
            tests.set(tests.get() + 1);
            let is_named = |index| {
                let name = format!("f{index}(");
                text.windows(name.len()).any(|one| one == name.as_bytes())
            };
            let has_call = text.windows(6).any(|one| one == b"crash(");
            let fails = has_call && (0..16).all(is_named) && errors(text) == Some(0);
            if fails && text.len() < program.len() / 2 && needed.get().is_none() {
                needed.set(Some(tests.get()));
            }
            fails
        };
        reduce(program.as_bytes(), &fails, false);
        let needed = needed.get().expect("the text becomes smaller");
        assert!(needed <= 40, "{name}: {needed} tests to the half");
    }
}

#[test]
fn macros_do_not_hide_that_a_text_is_in_c() {
    let c = functions(&|index, call| {
        format!(
            "local unsigned f{index}(void *desc, z_const unsigned char **buf) {{\n    \
             struct ind *me = (struct ind *)desc;\n    int total = me->size;\n    \
             if (total > {index} && buf != NULL)\n        total += me->size * 2;\n    \
             for (int i = 0; i < total; i++) {{ total = total * i + buf[i][0]; }}\n    \
             return {call};\n}}\n"
        )
    });
    let errors = parse("c", c.as_bytes()).expect("a tree").errors;
    assert!(errors > 8, "{errors} errors");
    assert_eq!(structure_of(c.as_bytes()).name(), Some("c"));
}

#[test]
fn the_ending_of_a_file_names_a_language_that_the_text_confirms() {
    for (name, text, language) in [
        ("a.py", "x = 1\n", Some("python")),
        ("folder.c/a.h", "int x;\n", Some("c")),
        ("a.json", "[1]", Some("json")),
        ("a.json", C, None),
        ("a.py", C, None),
        ("a.txt", PYTHON, None),
        ("py", PYTHON, None),
        ("a.c", "int a[] = \u{7}{1};", None),
    ] {
        let found = language_of_file(name.as_bytes(), text.as_bytes());
        assert_eq!(found, language, "{name}: {text}");
    }
}

#[test]
fn a_deep_nest_in_the_wrong_grammar_is_left_to_its_brackets() {
    let nest = "[".repeat(10_000) + &"]".repeat(10_000);
    let fails = |text: &[u8]| {
        let opened = text.iter().take_while(|byte| **byte == b'[').count();
        let closed = &text[opened..];
        opened >= 6 && closed.len() == opened && closed.iter().all(|byte| *byte == b']')
    };
    for grammar in ["c", "json", "python"] {
        let structure = structure_named(grammar).expect("a known grammar");
        let search = Full::structured(nest.as_bytes(), structure);
        let reduced = reduce_by(Box::new(search), nest.as_bytes(), &fails, false);
        let text = String::from_utf8_lossy(&reduced.text);
        assert!(text == "[[[[[[]]]]]]", "{grammar}: {} bytes", text.len());
        assert!(reduced.tests <= 60, "{grammar}: {} tests", reduced.tests);
    }
}

/// Checks whether a script makes a table and then groups by it; `JOIN` clauses may stand between.
fn groups_by_a_known_table(text: &[u8]) -> Option<()> {
    let text = std::str::from_utf8(text).ok()?;
    let mut words = text
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let mut next = |wanted: &str| {
        words
            .next()
            .filter(|word| wanted.is_empty() || *word == wanted)
    };
    next("CREATE")?;
    let known = next("")?;
    next("SELECT")?;
    next("")?;
    next("FROM")?;
    next(known)?;
    loop {
        match next("")? {
            "JOIN" => next("").and(next("ON")).and(next("")).and(next(""))?,
            word => break (word == "GROUP").then_some(())?,
        };
    }
    next("").is_none().then_some(())
}

#[test]
fn clauses_go_and_names_become_short_without_a_grammar() {
    let script = "CREATE accounts; SELECT balance FROM accounts JOIN owners ON owner = name \
                  JOIN banks ON bank = place GROUP;";
    let fails = |text: &[u8]| groups_by_a_known_table(text).is_some();
    let search = Full::structured(script.as_bytes(), Structure::Text);
    let reduced = reduce_by(Box::new(search), script.as_bytes(), &fails, true);
    let size = "CREATE a SELECT b FROM a GROUP".len();
    let text = String::from_utf8_lossy(&reduced.text);
    assert_eq!(reduced.text.len(), size, "{text}");
    assert!(reduced.tests <= 300, "{} tests", reduced.tests);
}

/// The words of a text that are names: those that are no keywords of C.
fn names(text: &[u8]) -> Vec<&[u8]> {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let words = text.split(|byte| !is_letter(byte));
    let words = words.filter(|word| word.first().is_some_and(|byte| !byte.is_ascii_digit()));
    let keywords: [&[u8]; 6] = [b"int", b"if", b"while", b"return", b"void", b"char"];
    words.filter(|word| !keywords.contains(word)).collect()
}

/// Checks whether a function is there in which brackets match, no name stands at one place only, and a
/// value is assigned where it should be compared.
fn draws_one_warning(text: &[u8]) -> bool {
    let names = names(text);
    let is_alone =
        |name: &&[u8]| *name != b"f" && names.iter().filter(|other| *other == name).count() == 1;
    let is_function = text.starts_with(b"int f(int m)");
    let count = |wanted: u8| text.iter().filter(|byte| **byte == wanted).count();
    let inked: Vec<u8> = text.iter().filter(|byte| **byte != b' ').copied().collect();
    let is_whole = count(b'(') == count(b')') && count(b'{') == count(b'}');
    is_function
        && is_whole
        && !names.iter().any(is_alone)
        && inked.windows(4).any(|bytes| bytes == b"m=1)")
}

#[test]
fn names_go_with_their_uses() {
    let program = b"int f(int m) {\n    int one = 2, two = one, sum;\n    char *text, *rest;\n\
        \x20   rest = text;\n    while (sum < two) { sum = sum + f(one); rest = text + two; }\n\
        \x20   if (m = 1)\n        *rest = sum;\n    return f(m + sum);\n}\n";
    let search = Full::structured(program, structure_named("c").expect("a known grammar"));
    let reduced = reduce_by(Box::new(search), program, &draws_one_warning, true);
    let text = String::from_utf8_lossy(&reduced.text);
    let left: HashSet<&[u8]> = names(&reduced.text).into_iter().collect();
    assert_eq!(left.len(), 2, "{text}");
    assert!(reduced.text.len() <= 24, "{text}");
    assert!(reduced.tests <= 220, "{} tests: {text}", reduced.tests);
}

/// Checks whether a script makes tables and joins two that it made, which may be the same.
fn joins_known_tables(text: &[u8]) -> Option<()> {
    let text = std::str::from_utf8(text).ok()?;
    let mut known = HashSet::new();
    let mut joined = None;
    for statement in text.split(';') {
        let words = statement.split(|letter: char| !letter.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        match words[..] {
            [] => {}
            ["CREATE", "TABLE", name, ..] => {
                known.insert(name);
            }
            ["INSERT", "INTO", name, ..] => known.contains(name).then_some(())?,
            ["SELECT", _, "FROM", one, "JOIN", two, ..] => {
                (known.contains(one) && known.contains(two)).then_some(())?;
                joined = Some(());
            }
            _ => return None,
        }
    }
    joined
}

#[test]
fn names_of_a_text_without_a_grammar_become_one() {
    let script = "CREATE TABLE readers (name TEXT, born INT);\nCREATE TABLE loans (reader TEXT);\n\
                  INSERT INTO readers VALUES ('amber', 1970);\n\
                  SELECT name FROM readers JOIN loans ON reader = name;\n";
    let fails = |text: &[u8]| joins_known_tables(text).is_some();
    let search = Full::structured(script.as_bytes(), Structure::Text);
    let reduced = reduce_by(Box::new(search), script.as_bytes(), &fails, true);
    let text = String::from_utf8_lossy(&reduced.text);
    let size = "CREATE TABLE a;SELECT a FROM a JOIN a".len();
    assert_eq!(reduced.text.len(), size, "{text}");
    assert!(reduced.tests <= 200, "{} tests", reduced.tests);
}

#[test]
fn an_argument_goes_with_its_parameter() {
    let needle = "a long message ".repeat(12);
    let text = format!(
        "def draw(shape, color, width):\n    paint(shape)\n    raise ValueError('{needle}')\n\n\
         def paint(shape):\n    print(shape)\n\n\
         paint(4)\ndraw(1, 2, 3)\ndraw(5, 6, 7)\n"
    );
    let lists = |text: &str| -> Option<Vec<usize>> {
        let lists = text.split("draw(").skip(1).map(|rest| {
            let (list, _) = rest.split_once(')')?;
            Some(
                list.split(',')
                    .filter(|item| !item.trim().is_empty())
                    .count(),
            )
        });
        lists.collect()
    };
    let fails = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        let lists = lists(&text).unwrap_or_default();
        text.contains("def draw(")
            && text.contains(&needle)
            && lists.len() > 1
            && lists.iter().all(|items| *items == lists[0])
    };
    let reduced = reduce(text.as_bytes(), &fails, false);
    let left = String::from_utf8_lossy(&reduced.text);
    assert_eq!(lists(&left), Some(vec![0, 0]), "{left}");
    assert!(reduced.tests <= 700, "{} tests", reduced.tests);
}
