//! Finds the paths of a Rust source, token by token: strings and comments do not look like code,
//! and what stands inside macros is seen as well.

use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path as far as it tells what it leads to: `crate::exec::Run`, `libc::SIGSEGV`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its parts. Braces in a `use` are multiplied out, and `super` is resolved.
    pub parts: Vec<String>,
    /// Its line, from 1.
    pub line: usize,
}

/// The paths of one source file.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// All of them.
    pub found: Vec<Found>,
    /// Every word, with its line.
    pub words: Vec<(String, usize)>,
}

impl Paths {
    /// The paths of the source `text` of the file `file`.
    pub fn of(file: &Path, text: &str) -> Paths {
        let mut paths = Paths::default();
        let stream: TokenStream = text.parse().expect("what the compiler reads are tokens");
        paths.read_words(stream.clone());
        paths.collect(&home(file), stream);
        paths
    }

    fn read_words(&mut self, stream: TokenStream) {
        for token in stream {
            match token {
                TokenTree::Group(group) => self.read_words(group.stream()),
                TokenTree::Ident(word) => {
                    self.words
                        .push((word.to_string(), word.span().start().line));
                }
                _ => {}
            }
        }
    }

    /// Collects from code that stands in the module `home`.
    fn collect(&mut self, home: &[String], stream: TokenStream) {
        let all: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while let Some(token) = all.get(at) {
            match token {
                TokenTree::Group(group) => {
                    let inside = inline_module(&all[..at]).map(|name| [home, &[name]].concat());
                    self.collect(inside.as_deref().unwrap_or(home), group.stream());
                    at += 1;
                }
                TokenTree::Ident(_) => {
                    let before = self.found.len();
                    at += self.path(home, &[], &all[at..]).max(1);
                    // A word alone is a variable, unless it is used as a crate.
                    let is_word = |found: &Found| found.parts.len() == 1;
                    if !follows_use(&all[..at]) && self.found[before..].iter().all(is_word) {
                        self.found.truncate(before);
                    }
                }
                _ => at += 1,
            }
        }
    }

    /// Reads the path at the beginning of `rest`, behind `before`, and gives the number of its
    /// tokens.
    fn path(&mut self, home: &[String], before: &[String], rest: &[TokenTree]) -> usize {
        let mut parts = before.to_vec();
        let mut at = 0;
        let line = rest.first().map_or(0, |token| token.span().start().line);
        loop {
            match rest.get(at) {
                Some(TokenTree::Ident(word)) => parts.push(word.to_string()),
                Some(TokenTree::Group(group))
                    if group.delimiter() == Delimiter::Brace && at > 0 =>
                {
                    self.branches(home, &parts, group.stream());
                    return at + 1;
                }
                _ => break,
            }
            at += 1;
            if !is_separator(&rest[at..]) {
                break;
            }
            at += 2;
        }
        if parts.len() > before.len() {
            let parts = resolved(home, &parts);
            self.found.push(Found { parts, line });
        }
        at
    }

    /// The paths in the braces of a `use`.
    fn branches(&mut self, home: &[String], before: &[String], stream: TokenStream) {
        let all: Vec<TokenTree> = stream.into_iter().collect();
        let is_comma =
            |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ',');
        for branch in all.split(is_comma).filter(|branch| !branch.is_empty()) {
            self.path(home, before, branch);
        }
    }

    /// The modules of ours that are used.
    pub fn modules(&self) -> impl Iterator<Item = (&str, usize)> {
        self.found
            .iter()
            .filter_map(|found| match &found.parts[..] {
                [root, module, ..] if root == "crate" => Some((module.as_str(), found.line)),
                _ => None,
            })
    }
}

/// The module that a file below `src/` is, as parts of its path in its crate.
fn home(file: &Path) -> Vec<String> {
    let file = file.with_extension("");
    let inside = file.iter().skip_while(|part| *part != "src").skip(1);
    let mut parts: Vec<String> = inside
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if matches!(
        parts.last().map(String::as_str),
        Some("mod" | "lib" | "main")
    ) {
        parts.pop();
    }
    parts
}

/// The name of the module whose body comes next.
fn inline_module(before: &[TokenTree]) -> Option<String> {
    match before {
        [.., TokenTree::Ident(keyword), TokenTree::Ident(name)] if *keyword == "mod" => {
            Some(name.to_string())
        }
        _ => None,
    }
}

/// Whether the last of these tokens is a word that is used as a crate.
fn follows_use(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [.., TokenTree::Ident(keyword), TokenTree::Ident(_)] if *keyword == "use")
}

fn is_separator(rest: &[TokenTree]) -> bool {
    matches!(rest, [TokenTree::Punct(one), TokenTree::Punct(two), ..]
        if one.as_char() == ':' && two.as_char() == ':')
}

/// The path from `crate` on, where it begins with `super` or `self`.
fn resolved(home: &[String], parts: &[String]) -> Vec<String> {
    let up = parts.iter().take_while(|part| *part == "super").count();
    let skipped = if parts[0] == "self" { 1 } else { up };
    if skipped == 0 {
        return parts.to_vec();
    }
    let mut whole = vec!["crate".to_owned()];
    whole.extend_from_slice(&home[..home.len().saturating_sub(up)]);
    whole.extend_from_slice(&parts[skipped..]);
    whole
}

/// The paths in a made-up source of `src/exec/run.rs`, joined again.
#[cfg(test)]
fn joined(source: &str) -> Vec<String> {
    let paths = Paths::of(Path::new("src/exec/run.rs"), source);
    let found = paths.found.iter();
    found.map(|found| found.parts.join("::")).collect()
}

#[test]
fn paths_are_found_in_code_and_in_macros() {
    let source = "fn a() -> crate::triage::Key { assert!(nix::unistd::getuid() == 0) }";
    assert_eq!(
        joined(source),
        ["crate::triage::Key", "nix::unistd::getuid"]
    );
}

#[test]
fn braces_of_a_use_are_multiplied_out() {
    let source =
        "use crate::{delta::{Config, Search as S}, store};\npub use std::{fs, io::{self}};";
    let expected = [
        "crate::delta::Config",
        "crate::delta::Search",
        "crate::store",
        "std::fs",
        "std::io::self",
    ];
    assert_eq!(joined(source), expected);
}

#[test]
fn super_leads_up_from_files_and_from_inline_modules() {
    assert_eq!(joined("use super::Run;"), ["crate::exec::Run"]);
    assert_eq!(
        joined("use super::super::triage::Key;"),
        ["crate::triage::Key"]
    );
    let inline = "mod tests { use super::super::super::cli::Ui; use self::a::B; }";
    assert_eq!(
        joined(inline),
        ["crate::cli::Ui", "crate::exec::run::tests::a::B"]
    );
}

#[test]
fn a_word_alone_is_a_crate_only_where_it_is_used_as_one() {
    assert_eq!(
        joined("use libc; fn a(object: u8) { let nix = object; }"),
        ["libc"]
    );
}

#[test]
fn comments_and_strings_hold_no_paths() {
    let source = "/// See crate::cli::main.\nconst A: &str = \"crate::cli\"; // crate::cli::x";
    assert_eq!(joined(source), [""; 0]);
}
