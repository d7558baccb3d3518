//! Nothing is left for later, and nothing public is left unexplained.

use proc_macro2::{TokenStream, TokenTree};

use crate::assert_none;
use crate::functions::{is_attribute, tokens};
use crate::tree::rust_files;

/// What stands for work that was not done, with its line.
fn unfinished(stream: TokenStream, found: &mut Vec<(usize, String)>) {
    let all: Vec<TokenTree> = stream.into_iter().collect();
    for (at, token) in all.iter().enumerate() {
        let line = token.span().start().line;
        match token {
            TokenTree::Group(group) => {
                if is_attribute(&all, at, "ignore") {
                    found.push((line, "ignore".to_owned()));
                }
                unfinished(group.stream(), found);
            }
            TokenTree::Ident(word) if *word == "todo" || *word == "unimplemented" => {
                let next = all.get(at + 1);
                if matches!(next, Some(TokenTree::Punct(mark)) if mark.as_char() == '!') {
                    found.push((line, word.to_string()));
                }
            }
            _ => {}
        }
    }
}

#[test]
fn nothing_is_left_for_later() {
    let mut all = Vec::new();
    for (file, text) in rust_files() {
        let mut found = Vec::new();
        unfinished(tokens(&text), &mut found);
        all.extend(
            found
                .iter()
                .map(|(line, what)| format!("{}:{line}: {what}", file.display())),
        );
    }
    assert_none("unfinished work and tests that are not run", &all);
}

#[test]
fn each_source_file_begins_by_saying_what_it_is() {
    let silent: Vec<String> = rust_files()
        .into_iter()
        .filter(|(file, _)| ["src", "crates"].iter().any(|top| file.starts_with(top)))
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(file, _)| file.display().to_string())
        .collect();
    assert_none("files without a //! header", &silent);
}

#[test]
fn unfinished_work_is_told_from_talk_about_it() {
    let source = "/// todo!()\nconst A: &str = \"#[ignore]\";\n#[test]\n#[ignore = \"why\"]\nfn b() { todo!(); }";
    let mut found = Vec::new();
    unfinished(tokens(source), &mut found);
    assert_eq!(found, [(4, "ignore".to_owned()), (5, "todo".to_owned())]);
}
