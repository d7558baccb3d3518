//! Finds the functions of a Rust source.
//!
//! The source is read token by token, so that neither strings nor comments look like code, and
//! functions inside macros are seen as well.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// The line of its `fn`, from 1.
    pub line: usize,
    /// Lines from its `fn` to the end of its body.
    pub lines: usize,
    /// Whether `#[test]` stands before it.
    pub is_test: bool,
}

/// The tokens of a source.
pub fn tokens(source: &str) -> TokenStream {
    // The lines of its positions would count a first line that is for the system's loader.
    source.parse().expect("what the compiler reads are tokens")
}

/// The functions of `source`, in the order of their beginnings.
pub fn functions(source: &str) -> Vec<Function> {
    let mut found = Vec::new();
    collect(tokens(source), &mut found);
    found.sort_by_key(|function| function.line);
    found
}

fn collect(stream: TokenStream, found: &mut Vec<Function>) {
    let all: Vec<TokenTree> = stream.into_iter().collect();
    let mut is_test = false;
    for (at, token) in all.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                is_test |=
                    group.delimiter() == Delimiter::Bracket && is_attribute(&all, at, "test");
                collect(group.stream(), found);
            }
            TokenTree::Ident(word) if *word == "fn" => {
                if let Some((name, end)) = name_and_end(&all[at + 1..]) {
                    let line = word.span().start().line;
                    let lines = end + 1 - line;
                    found.push(Function {
                        name,
                        line,
                        lines,
                        is_test,
                    });
                }
                is_test = false;
            }
            _ => {}
        }
    }
}

/// Whether the group at `at` is the attribute of this name.
pub fn is_attribute(all: &[TokenTree], at: usize, name: &str) -> bool {
    let hash = at.checked_sub(1).and_then(|before| all.get(before));
    let TokenTree::Group(group) = &all[at] else {
        return false;
    };
    let first = group.stream().into_iter().next();
    matches!(hash, Some(TokenTree::Punct(mark)) if mark.as_char() == '#')
        && matches!(first, Some(TokenTree::Ident(word)) if word == name)
}

/// The name and the last line of the function whose `fn` stands before `rest`; `None` for types
/// of functions, and for functions without a body.
fn name_and_end(rest: &[TokenTree]) -> Option<(String, usize)> {
    let Some(TokenTree::Ident(name)) = rest.first() else {
        return None;
    };
    for token in rest {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == ';' => return None,
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => {
                return Some((name.to_string(), body.span_close().end().line));
            }
            _ => {}
        }
    }
    None
}

#[test]
fn functions_are_found_wherever_they_stand() {
    let source = r##"
        trait Shape { fn area(&self) -> f64; }
        /// fn in_a_comment() {}
        const TEXT: &str = "fn in_a_string() { todo!() }";
        type Callback = fn(u8) -> u8;
        impl Shape for Square {
            fn area(&self) -> f64 {
                '{'; r#"}"#;
            }
        }
        made_by_a_macro! {
            #[test]
            fn in_a_macro() { }
        }
        #[test]
        #[should_panic]
        async fn outer() {
            fn inner() {}
        }
        fn last() {}
    "##;
    let found = functions(source);
    let short: Vec<(&str, usize, bool)> = found
        .iter()
        .map(|function| (function.name.as_str(), function.lines, function.is_test))
        .collect();
    let expected = [
        ("area", 3, false),
        ("in_a_macro", 1, true),
        ("outer", 3, true),
        ("inner", 1, false),
        ("last", 1, false),
    ];
    assert_eq!(short, expected);
}
