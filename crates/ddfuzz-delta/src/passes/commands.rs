//! The syntax tree of a shell script: commands, compound commands with the lists of commands in them, and
//! here-documents.

use std::ops::Range;

use crate::document::{Grammar, Structure, SyntaxClass, SyntaxTree};
use crate::passes::plain::{KEYWORDS, TreeBuilder};
use crate::passes::words::tokens;

/// Number that stands for the kind of the root of a tree. The kind of words and signs is their first byte.
const ROOT: u16 = 0x100;
/// Number that stands for the kind of commands, simple and compound.
const COMMAND: u16 = 0x101;
/// Number that stands for the kind of branches of a compound command: what follows `elif` or `else`, or a
/// pattern of `case`.
const BRANCH: u16 = 0x102;
/// Number that stands for the kind of commands that are parts of a pipeline or of a list with `&&` or `||`.
const PART: u16 = 0x103;
/// Maximum depth of compound commands; inside of deeper ones, keywords are words.
const DEEPEST: usize = 64;
/// Maximum size, in bytes, of quoted texts and of what stands in brackets after `$`.
const LONGEST: usize = 1 << 13;
/// Number of bytes that are searched in vain, in all of a text, for the ends of brackets after `$`; later
/// brackets are single signs, so that a text of brackets without ends takes no longer than others.
const MOST_SEARCHED: usize = 64 * LONGEST;
/// Minimum number of compound commands, each ended by its keyword, in a text that is taken for a script.
const FEWEST: usize = 4;

/// A grammar for shell scripts. Every text has a tree; [`is_script`] says whether it fits.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandText;

impl Grammar for CommandText {
    fn name(&self) -> &str {
        Structure::TEXT
    }

    fn parse(&self, text: &[u8]) -> Option<SyntaxTree> {
        Some(Reader::read(text).tree.finish())
    }
}

/// Returns true if a text is a shell script: it has several compound commands, and most keywords have their
/// counterparts.
pub(super) fn is_script(text: &[u8]) -> bool {
    let reader = Reader::read(text);
    reader.ended >= FEWEST && reader.odd * 8 <= reader.ended
}

/// A reader of a script, which adds its commands to a tree.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    tree: TreeBuilder,
    /// Number of compound commands around the present one.
    depth: usize,
    /// The lines that end the here-documents which begin after the present line.
    documents: Vec<Vec<u8>>,
    /// Number of compound commands that end with `fi`, `done` or `esac`.
    ended: usize,
    /// Number of keywords without their counterparts.
    odd: usize,
    /// Number of bytes that were searched in vain for the ends of brackets after `$`.
    searched: usize,
}

impl Reader<'_> {
    /// Reads a whole text.
    fn read(text: &[u8]) -> Reader<'_> {
        let mut reader = Reader {
            text,
            at: 0,
            tree: TreeBuilder::default(),
            depth: 0,
            documents: Vec::new(),
            ended: 0,
            odd: 0,
            searched: 0,
        };
        reader.tree.begin(0..text.len(), ROOT, SyntaxClass::Other);
        while reader.list(&[]) {
            // What ends no command here is a word of one.
            reader.odd += 1;
            reader.command(true);
        }
        reader
    }

    /// Reads commands up to one of the keywords `stops`, or up to what ends any list of commands. Returns
    /// false at the end of the text.
    fn list(&mut self, stops: &[&[u8]]) -> bool {
        loop {
            self.blanks(true);
            if self.at == self.text.len() {
                return false;
            }
            let word = self.word();
            if stops.contains(&word) || ENDS.contains(&word) || self.is_end_of_list() {
                return true;
            }
            self.command(false);
        }
    }

    /// Returns true at a sign that ends a list of commands.
    fn is_end_of_list(&self) -> bool {
        self.text[self.at] == b')' || self.text[self.at..].starts_with(b";;")
    }

    /// Skips blanks and comments; with `lines`, also newlines and the signs between commands.
    fn blanks(&mut self, lines: bool) {
        while let Some(byte) = self.text.get(self.at) {
            let rest = &self.text[self.at..];
            match byte {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if rest.starts_with(b"\\\n") => self.at += 2,
                b'#' => self.at += rest.iter().take_while(|byte| **byte != b'\n').count(),
                b'\n' if lines => {
                    self.at += 1;
                    self.skip_documents();
                }
                b';' | b'&' if lines && !rest.starts_with(b";;") => self.at += 1,
                _ => return,
            }
        }
    }

    /// Skips the here-documents that begin at the present line.
    fn skip_documents(&mut self) {
        for end in std::mem::take(&mut self.documents) {
            while self.at < self.text.len() {
                let rest = &self.text[self.at..];
                let line = rest.split_inclusive(|byte| *byte == b'\n').next();
                let line = line.unwrap_or_default();
                self.at += line.len();
                if line.trim_ascii() == end {
                    break;
                }
            }
        }
    }

    /// Returns the word at the present position; empty if a sign stands there, except for a brace.
    fn word(&self) -> &[u8] {
        let rest = &self.text[self.at..];
        if let Some(b'{' | b'}') = rest.first() {
            return &rest[..1];
        }
        let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let word = &rest[..rest.iter().take_while(is_word).count()];
        let after = rest.get(word.len());
        let is_whole = after.is_none_or(|byte| b" \t\r\n;&|()<>".contains(byte));
        if is_whole { word } else { b"" }
    }

    /// Adds the keyword or sign of `len` bytes at the present position as one that stays with its command.
    fn sign(&mut self, len: usize) {
        let place = self.at..(self.at + len).min(self.text.len());
        self.at = place.end;
        if let Some(first) = self.text.get(place.start) {
            self.tree
                .leaf(place, u16::from(*first), SyntaxClass::Punctuation);
        }
    }

    /// Reads a list up to one of the keywords `stops`; returns the keyword, which it adds, or nothing if
    /// something else ends the list.
    fn list_before(&mut self, stops: &[&'static [u8]]) -> &'static [u8] {
        let is_there = self.list(stops);
        let found = stops.iter().find(|stop| is_there && self.word() == **stop);
        self.odd += usize::from(found.is_none());
        let found = found.copied().unwrap_or_default();
        self.sign(found.len());
        found
    }

    /// Reads one command with all that is connected to it by `|`, `&&` and `||`, and the sign that ends
    /// it. If `is_simple`, keywords at its beginning are words.
    fn command(&mut self, is_simple: bool) {
        let (start, depth) = (self.at, self.tree.depth());
        self.tree
            .begin(start..start, COMMAND, SyntaxClass::Statement);
        loop {
            let part = self.at;
            self.tree.begin(part..part, PART, SyntaxClass::Expression);
            if is_simple || self.depth == DEEPEST || !self.compound() {
                self.words(&[]);
            }
            self.close(depth + 1, part);
            let rest = &self.text[self.at..];
            let connects = match rest {
                [b'&', b'&', ..] | [b'|', b'|', ..] | [b'|', b'&', ..] => 2,
                [b'|', ..] => 1,
                _ => 0,
            };
            if connects == 0 {
                break;
            }
            self.sign(connects);
            self.blanks(true);
            if self.at == self.text.len() {
                break;
            }
        }
        let rest = &self.text[self.at..];
        let is_ended = matches!(rest, [b';' | b'&', ..]) && !rest.starts_with(b";;");
        self.at += usize::from(is_ended);
        if rest.starts_with(b"\n") && !self.documents.is_empty() {
            self.at += 1;
            self.skip_documents();
        }
        // Progress, also where nothing fits.
        self.at = self.at.max(start + 1).min(self.text.len());
        self.close(depth, start);
    }

    /// Ends the open nodes until `depth` are open, of which the last one began at `start`.
    fn close(&mut self, depth: usize, start: usize) {
        let written = self.text[start..self.at].trim_ascii_end().len();
        self.tree.end_at(depth, start + written);
    }

    /// Reads a compound command; returns false if none begins here.
    fn compound(&mut self) -> bool {
        self.depth += 1;
        let is_there = self.compound_inside();
        self.depth -= 1;
        if is_there {
            self.words(&[]);
        }
        is_there
    }

    fn compound_inside(&mut self) -> bool {
        let word = self.word();
        let len = word.len();
        match word {
            b"if" => {
                self.sign(len);
                self.branches();
            }
            b"while" | b"until" => {
                self.sign(len);
                self.list_before(&[b"do"]);
                self.body();
            }
            b"for" | b"select" => {
                self.sign(len);
                self.words(&[b"do"]);
                self.list_before(&[b"do"]);
                self.body();
            }
            b"case" => {
                self.sign(len);
                self.words(&[b"in"]);
                self.patterns();
            }
            b"{" => {
                self.sign(len);
                self.list_before(&[b"}"]);
            }
            _ if self.text.get(self.at) == Some(&b'(') => {
                self.sign(1);
                self.list(&[]);
                self.sign(1);
            }
            _ => return false,
        }
        true
    }

    /// Reads what follows `do`.
    fn body(&mut self) {
        let found = self.list_before(&[b"done"]);
        self.ended += usize::from(!found.is_empty());
    }

    /// Reads what follows `if`.
    fn branches(&mut self) {
        self.list_before(&[b"then"]);
        self.list(&[b"elif", b"else", b"fi"]);
        loop {
            let (start, depth) = (self.at, self.tree.depth());
            let word = self.word();
            let (len, has_condition) = (word.len(), word == b"elif");
            if word != b"elif" && word != b"else" {
                break;
            }
            self.tree.begin(start..start, BRANCH, SyntaxClass::Other);
            self.sign(len);
            if has_condition {
                self.list_before(&[b"then"]);
            }
            self.list(&[b"elif", b"else", b"fi"]);
            self.close(depth, start);
        }
        let found = self.list_before(&[b"fi"]);
        self.ended += usize::from(!found.is_empty());
    }

    /// Reads what follows `case … in`.
    fn patterns(&mut self) {
        self.blanks(false);
        if self.word() == b"in" {
            self.sign(2);
        }
        loop {
            self.blanks(true);
            if self.at == self.text.len() || self.word() == b"esac" {
                break;
            }
            let (start, depth) = (self.at, self.tree.depth());
            self.tree.begin(start..start, BRANCH, SyntaxClass::Other);
            let pattern = self.text[start..].iter();
            let len = pattern.take_while(|byte| !b")\n".contains(byte)).count();
            self.sign(len + 1);
            self.list(&[b"esac"]);
            if self.text[self.at..].starts_with(b";;") {
                self.at += 2;
            }
            self.at = self.at.max(start + 1);
            self.close(depth, start);
        }
        let is_there = self.at < self.text.len();
        self.ended += usize::from(is_there);
        self.odd += usize::from(!is_there);
        self.sign(4 * usize::from(is_there));
    }

    /// Reads words, to the end of the line or to a sign between commands, or to one of the keywords
    /// `stops`; and the body of a function, if its name and parentheses are read.
    fn words(&mut self, stops: &[&[u8]]) {
        let start = self.at;
        while self.at < self.text.len() {
            let before = self.at;
            self.blanks(false);
            let begins = self.at > before || before == start;
            if self.at == self.text.len() || begins && stops.contains(&self.word()) {
                break;
            }
            let rest = &self.text[self.at..];
            if rest.starts_with(b"()") && before > start {
                self.tokens(start..self.at);
                self.sign(2);
                self.blanks(true);
                if self.at < self.text.len() && self.depth < DEEPEST {
                    self.compound();
                }
                return;
            }
            match rest[0] {
                b'\n' | b';' | b')' | b'|' | b'(' => break,
                b'&' if !self.text[..self.at].ends_with(b">") && rest.get(1) != Some(&b'>') => {
                    break;
                }
                b'<' if rest.starts_with(b"<<") && !rest.starts_with(b"<<<") => self.document(),
                _ => self.at += self.length_of_sign(),
            }
        }
        self.tokens(start..self.at);
    }

    /// Returns the number of bytes at the present position that belong together ([`length_of_sign`]).
    fn length_of_sign(&mut self) -> usize {
        let rest = &self.text[self.at..];
        let has_bracket = matches!(rest, [b'$', b'(' | b'{', ..]);
        if has_bracket && self.searched >= MOST_SEARCHED {
            return 1;
        }
        let length = length_of_sign(rest);
        if has_bracket && length == 1 {
            self.searched += rest.len().min(LONGEST);
        }
        length
    }

    /// Reads `<<` and the word that ends a here-document.
    fn document(&mut self) {
        self.at += 2;
        let rest = &self.text[self.at..];
        let skipped = rest
            .iter()
            .take_while(|byte| b"- \t".contains(byte))
            .count();
        let word = rest[skipped..].iter();
        let word: Vec<u8> = word
            .take_while(|byte| !b" \t\n;&|)<>".contains(byte))
            .copied()
            .collect();
        self.at += skipped + word.len();
        let end: Vec<u8> = word
            .into_iter()
            .filter(|byte| !b"'\"\\".contains(byte))
            .collect();
        if !end.is_empty() {
            self.documents.push(end);
        }
    }

    /// Adds the words and signs in a range of the text.
    fn tokens(&mut self, place: Range<usize>) {
        for token in tokens(&self.text[place.clone()]) {
            let start = place.start + token.place.start;
            let word = start..start + token.of(&self.text[place.clone()]).len();
            let class = match token.class {
                b'a' if !KEYWORDS.contains(&&self.text[word.clone()]) => SyntaxClass::Identifier,
                b'0' if b"'\"".contains(&self.text[word.start]) => SyntaxClass::Text,
                b'0' => SyntaxClass::Number,
                _ => SyntaxClass::Other,
            };
            if !word.is_empty() {
                self.tree.leaf(word, u16::from(token.class), class);
            }
        }
    }
}

/// Keywords that end a list of commands.
const ENDS: &[&[u8]] = &[
    b"}", b"do", b"done", b"elif", b"else", b"esac", b"fi", b"then",
];

/// Returns the number of bytes at the beginning of `rest`, which is not empty, that belong together: a
/// quoted text, what stands in brackets after `$`, or one byte.
fn length_of_sign(rest: &[u8]) -> usize {
    let rest = &rest[..rest.len().min(LONGEST)];
    let close = match rest {
        [b'\\', _, ..] => return 2,
        [b'\'', ..] => return quoted(rest, b'\''),
        [b'"', ..] => return quoted(rest, b'"'),
        [b'`', ..] => return quoted(rest, b'`'),
        [b'$', b'(', ..] => b')',
        [b'$', b'{', ..] => b'}',
        _ => return 1,
    };
    let (open, mut depth, mut at) = (rest[1], 0, 1);
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 1,
            quote @ (b'\'' | b'"') => at += quoted(&rest[at..], quote) - 1,
            byte if byte == open => depth += 1,
            byte if byte == close => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return at.min(rest.len());
        }
    }
    1
}

/// Returns the length of the text in quotes at the beginning of `rest`; 1 if it does not end.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' if quote != b'\'' => at += 1,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::plain::tests::{assert_nested, texts_of};

    const SCRIPT: &str = "#!/bin/sh\nf ()\n{\n  cat <<EOF # c\nfi $1\nEOF\n  case \"$1\" in\n    a|b) g; h ;;\n    *) i\n  esac\n}\n\
        if [ \"$(f 'done')\" = x ] && true; then\n  for j in 1 2; do f $j; done | sort >&2 &\nelif k; then l\nelse\n  while m\n  do n; done\nfi\n";

    #[test]
    fn commands_of_a_script_are_nodes() {
        let tree = CommandText
            .parse(SCRIPT.as_bytes())
            .expect("any text has a tree");
        assert_nested(&tree);
        let commands = texts_of(&tree, SCRIPT.as_bytes(), COMMAND);
        let has = |text: &str| assert!(commands.contains(&text), "{text} is not in {commands:?}");
        has("cat <<EOF # c\nfi $1\nEOF");
        has("g;");
        has("for j in 1 2; do f $j; done | sort >&2 &");
        has("while m\n  do n; done");
        has("[ \"$(f 'done')\" = x ] && true;");
        assert!(commands[0].starts_with("f ()\n{") && commands[0].ends_with("esac\n}"));
        assert!(
            commands
                .iter()
                .any(|text| text.starts_with("if [") && text.ends_with("fi"))
        );
        let branches = texts_of(&tree, SCRIPT.as_bytes(), BRANCH);
        let expected = [
            "a|b) g; h ;;",
            "*) i",
            "elif k; then l",
            "else\n  while m\n  do n; done",
        ];
        assert_eq!(branches, expected);
        assert!(is_script(SCRIPT.as_bytes()));
    }

    #[test]
    fn other_texts_are_no_scripts() {
        for text in [
            "",
            "if (a) { b(); } else { c(); }\nfor (;;) { d(); }\n",
            "if a then\n  b()\nend\nfor c in d do\n  e()\nend\n",
            "If so, it is done.\nNot done yet; fi, fo.\n",
        ] {
            assert!(!is_script(text.repeat(8).as_bytes()), "{text}");
        }
    }

    #[test]
    fn ends_of_brackets_are_not_searched_in_vain_again_and_again() {
        for piece in ["$(", "${", "$(${", "$($()"] {
            let text = piece.repeat((1 << 17) / piece.len());
            let reader = Reader::read(text.as_bytes());
            assert!(reader.searched < MOST_SEARCHED + LONGEST, "{piece}");
        }
        // A few brackets without ends change nothing for the others.
        let text = "a $( b ${c}\n".repeat(8);
        assert!(Reader::read(text.as_bytes()).searched > 0);
    }

    #[test]
    fn hostile_texts_have_trees() {
        for piece in [
            "if ",
            "fi\n",
            "case a in ",
            "{ ",
            "( ",
            ")",
            ";;",
            "f() ",
            "<<a\n",
            "$(",
            "'",
            "\"",
            "`",
            "\\",
            "do\n",
            "a|",
            "#",
            "&",
            "\n",
            "for ",
        ] {
            let text = piece.repeat(1 << 12);
            let tree = CommandText
                .parse(text.as_bytes())
                .expect("any text has a tree");
            assert_nested(&tree);
        }
    }
}
