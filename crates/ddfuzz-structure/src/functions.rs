//! Finds the functions in the source of a program, by the grammars of tree-sitter.

use std::ops::Range;

use tree_sitter::Node;

use crate::grammar::{TreeSitter, visit};
use crate::language::KnownLanguage;

/// Maximum size, in bytes, of source files in which functions are searched for.
const LARGEST: usize = 1 << 20;
/// Names of the languages in which functions are searched for.
const LANGUAGES: [&str; 3] = ["c", "javascript", "python"];
/// Maximum depth in a syntax tree at which functions are searched for.
const DEEPEST: u32 = 16;

/// A function in the source of a program: its name and place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name of the function in the source.
    pub name: String,
    /// Range of bytes of the source that defines the function.
    pub place: Range<usize>,
}

/// Returns the outermost functions in the source of a program, in the order of the text. The
/// language is chosen by the extension of the file's name. `None` if the language is not C,
/// JavaScript or Python, or if the source is larger than 1 MiB or cannot be parsed.
pub fn functions(file_name: &[u8], text: &[u8]) -> Option<Vec<Function>> {
    let known = KnownLanguage::of_file(file_name)?;
    if !LANGUAGES.contains(&known.name()) {
        return None;
    }
    if text.len() > LARGEST {
        return None;
    }
    let grammar = TreeSitter::new(known)?;
    let mut found: Vec<Function> = Vec::new();
    visit(&grammar.tree(text)?, &mut |node, depth| {
        let is_inside = found
            .last()
            .is_some_and(|last| node.start_byte() < last.place.end);
        if depth <= DEEPEST && !is_inside && is_function(node.kind()) {
            found.extend(name_of(node, text).map(|name| Function {
                name,
                place: node.start_byte()..node.end_byte(),
            }));
        }
        true
    });
    Some(found)
}

fn is_function(kind: &str) -> bool {
    matches!(
        kind,
        "function_definition"
            | "function_declaration"
            | "generator_function_declaration"
            | "method_definition"
    )
}

/// Returns the name of the function that a syntax node defines: the text of the node's field
/// `name`, or in C the identifier that its declarators contain. `None` if it has none.
fn name_of(node: Node<'_>, text: &[u8]) -> Option<String> {
    let mut named = node
        .child_by_field_name("name")
        .or_else(|| node.child_by_field_name("declarator"))?;
    while let Some(inner) = named.child_by_field_name("declarator") {
        named = inner;
    }
    let name = text.get(named.start_byte()..named.end_byte())?;
    Some(String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(file: &str, text: &str) -> Vec<(String, String)> {
        let found = functions(file.as_bytes(), text.as_bytes()).expect("a grammar is known");
        let lines = |function: Function| {
            let first = text[..function.place.start].matches('\n').count() + 1;
            let last = text[..function.place.end].matches('\n').count() + 1;
            (function.name, format!("{first}-{last}"))
        };
        found.into_iter().map(lines).collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let pair = |(name, lines): &(&str, &str)| ((*name).to_owned(), (*lines).to_owned());
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn functions_are_found_with_their_lines() {
        let c = "int limit;\n\nstatic char *name_of(int kind)\n{\n    return 0;\n}\n\n\
                 int main(void)\n{\n    return limit;\n}\n";
        assert_eq!(
            found("a/b.c", c),
            pairs(&[("name_of", "3-6"), ("main", "8-11")])
        );
        let python = "import sys\n\ndef outer(a):\n    def inner():\n        pass\n    return inner\n\n\
                      class C:\n    def method(self):\n        return 1\n";
        assert_eq!(
            found("x.py", python),
            pairs(&[("outer", "3-6"), ("method", "9-10")])
        );
        let script = "const a = 1;\nfunction f(b) {\n  return b;\n}\nclass D {\n  g() {\n    return 1;\n  }\n}\n";
        assert_eq!(found("x.js", script), pairs(&[("f", "2-4"), ("g", "6-8")]));
    }

    #[test]
    fn without_a_grammar_there_is_no_answer() {
        assert_eq!(functions(b"main.rs", b"fn main() {}"), None);
        assert_eq!(functions(b"Makefile", b"all:"), None);
    }
}
