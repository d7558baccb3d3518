//! Names say what they name.

use proc_macro2::{TokenStream, TokenTree};

use crate::assert_none;
use crate::functions::{functions, tokens};
use crate::tree::rust_files;

/// Names of modules that hold anything.
const SAY_NOTHING: [&str; 8] = [
    "utils", "util", "helpers", "helper", "common", "misc", "stuff", "shared",
];
/// Words of the shortest name that is a sentence.
const WORDS_OF_A_SENTENCE: usize = 3;

/// Names of the modules that are declared in a source.
fn modules(stream: TokenStream, found: &mut Vec<String>) {
    let mut behind_mod = false;
    for token in stream {
        match token {
            TokenTree::Group(group) => modules(group.stream(), found),
            TokenTree::Ident(name) if behind_mod => {
                found.push(name.to_string());
                behind_mod = false;
            }
            TokenTree::Ident(word) => behind_mod = word == "mod",
            _ => behind_mod = false,
        }
    }
}

#[test]
fn no_module_has_a_name_that_says_nothing() {
    let mut found = Vec::new();
    for (file, text) in rust_files() {
        let mut names = Vec::new();
        modules(tokens(&text), &mut names);
        let parts = file.with_extension("");
        names.extend(parts.iter().map(|part| part.to_string_lossy().into_owned()));
        names.retain(|name| SAY_NOTHING.contains(&name.as_str()));
        found.extend(
            names
                .iter()
                .map(|name| format!("{}: {name}", file.display())),
        );
    }
    assert_none("modules that could hold anything", &found);
}

#[test]
fn each_name_of_a_test_is_a_sentence() {
    let mut short = Vec::new();
    let mut tests = 0;
    for (file, text) in rust_files() {
        for test in functions(&text).iter().filter(|function| function.is_test) {
            tests += 1;
            if test.name.split('_').count() < WORDS_OF_A_SENTENCE {
                short.push(format!("{}:{}: {}", file.display(), test.line, test.name));
            }
        }
    }
    assert!(tests > 100, "only {tests} tests were found");
    assert_none("names of tests that are no sentences", &short);
}

#[test]
fn modules_are_found_wherever_they_are_declared() {
    let mut found = Vec::new();
    let source = "mod a; pub mod b { pub(crate) mod c {} } // mod d;\nconst E: &str = \"mod f;\";";
    modules(tokens(source), &mut found);
    assert_eq!(found, ["a", "b", "c"]);
}
