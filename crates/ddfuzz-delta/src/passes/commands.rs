//! The syntax tree of a shell script: simple commands, and compound commands, which contain lists
//! of commands.

use std::ops::Range;

use crate::document::{Grammar, Structure, SyntaxClass, SyntaxTree};
use crate::passes::plain::{KEYWORDS, TreeBuilder};
use crate::passes::words::tokens;

/// Kind of the root node of a script's syntax tree. It is above 255, because the kind of a word or
/// sign is its first byte.
const ROOT: u16 = 0x100;
/// Kind of those nodes of a script's syntax tree that are commands, simple and compound.
const COMMAND: u16 = 0x101;
/// Kind of those nodes of a script's syntax tree that are branches of a compound command: of `if`,
/// what follows `elif` or `else`; of `case`, a pattern with its commands.
const BRANCH: u16 = 0x102;
/// Kind of those nodes of a script's syntax tree that are commands inside of a pipeline, or of a
/// list with `&&` or `||`.
const PART: u16 = 0x103;
/// Maximum nesting depth of compound commands; deeper inside, keywords are read as words.
const DEEPEST: usize = 64;
/// Maximum size, in bytes, of a quoted string or a `$(…)` or `${…}` that is read as one unit.
const LONGEST: usize = 1 << 13;
/// Total number of bytes of one text in which the ends of `$(` and `${` are searched for without
/// success; after that many, each `$(` and `${` is read as a single sign. This bounds the time.
const MOST_SEARCHED: usize = 64 * LONGEST;
/// Minimum number of compound commands with their end keyword that a text must have to be taken for
/// a script.
const FEWEST: usize = 4;

/// A grammar for shell scripts. It makes a tree of every text; [`is_script`] says whether the text
/// is a script.
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

/// Returns true if a text is a shell script: it has at least [`FEWEST`] complete compound commands,
/// and at most an eighth as many keywords without a counterpart.
pub(super) fn is_script(text: &[u8]) -> bool {
    let reader = Reader::read(text);
    reader.ended >= FEWEST && reader.odd * 8 <= reader.ended
}

/// State of reading a shell script: the position in the text, and the tree so far.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    tree: TreeBuilder,
    /// Number of compound commands that have begun before the present position and not ended.
    depth: usize,
    /// End lines of the here-documents that begin after the line being read.
    documents: Vec<Vec<u8>>,
    /// Number of compound commands so far that end with `fi`, `done` or `esac`.
    ended: usize,
    /// Number of keywords so far that have no counterpart, such as an `if` without `fi`.
    odd: usize,
    /// Number of bytes so far in which the ends of `$(` and `${` were searched for without success.
    searched: usize,
}

impl Reader<'_> {
    /// Reads the script `text` to its end, and returns the reader with its tree.
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

    /// Reads commands up to one of the keywords `stops`, or up to another keyword or sign that ends
    /// a list of commands. Returns true if it stopped at one of these, false if it reached the end
    /// of the text.
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

    /// Returns true if the text goes on with `)` or `;;`, which end a list of commands; else false.
    fn is_end_of_list(&self) -> bool {
        self.text[self.at] == b')' || self.text[self.at..].starts_with(b";;")
    }

    /// Skips blanks and comments. If `lines` is true, also skips newlines, here-documents after
    /// them, and the signs `;` and `&` between commands.
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

    /// Skips the here-documents whose `<<` stood in the line that was just read; they begin at the
    /// present position.
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

    /// Returns the word at the present position, which may be a brace; empty if another sign is at
    /// this position.
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

    /// Adds the next `len` bytes, a keyword or sign, to the tree as punctuation, which is deleted
    /// only with the node around it.
    fn sign(&mut self, len: usize) {
        let place = self.at..(self.at + len).min(self.text.len());
        self.at = place.end;
        if let Some(first) = self.text.get(place.start) {
            self.tree
                .leaf(place, u16::from(*first), SyntaxClass::Punctuation);
        }
    }

    /// Reads a list of commands that should end with one of the keywords `stops`; adds that keyword
    /// to the tree and returns it. If something else ends the list, returns an empty text, and
    /// counts the list as a keyword without a counterpart.
    fn list_before(&mut self, stops: &[&'static [u8]]) -> &'static [u8] {
        let is_there = self.list(stops);
        let found = stops.iter().find(|stop| is_there && self.word() == **stop);
        self.odd += usize::from(found.is_none());
        let found = found.copied().unwrap_or_default();
        self.sign(found.len());
        found
    }

    /// Reads one command, together with the commands that `|`, `&&` and `||` connect to it and the
    /// sign that ends it. If `is_simple`, a keyword at its beginning is read as a word.
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

    /// Ends open nodes of the tree, the innermost first, until only `depth` of them are open. They
    /// end at the present position of the parser, or before the blanks in front of it, but not
    /// before offset `start`.
    fn close(&mut self, depth: usize, start: usize) {
        let written = self.text[start..self.at].trim_ascii_end().len();
        self.tree.end_at(depth, start + written);
    }

    /// Reads a compound command and the redirections after it; returns false if none begins at the
    /// present position.
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

    /// Reads the body of a loop, after `do`, up to `done`, and adds its commands to the tree.
    fn body(&mut self) {
        let found = self.list_before(&[b"done"]);
        self.ended += usize::from(!found.is_empty());
    }

    /// Reads the rest of an `if` command, up to `fi`, and adds its commands, and a node for each
    /// `elif` and `else`, to the tree.
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

    /// Reads the rest of a `case` command, from `in` up to `esac`, and adds a node for each pattern
    /// with its commands to the tree.
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

    /// Reads the words of a simple command, up to the end of the line, a sign between commands, or
    /// one of the keywords `stops`. If a name and `()` come first, reads the definition of a
    /// function with its body.
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

    /// Returns the number of bytes of the unit at the present position: a quoted string, `$(…)`,
    /// `${…}`, an escaped character, or a single byte. Counts the bytes in which the end of a `$(`
    /// or `${` was searched for without success; after [`MOST_SEARCHED`] of them, these signs count
    /// as single bytes.
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

    /// Reads `<<` and the word after it, and adds the word to `documents`: the here-document that
    /// begins after this line ends with a line that equals the word.
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

    /// Adds the words and signs in the range `place` of the text to the tree.
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

/// Keywords of a shell script before which a list of commands ends.
const ENDS: &[&[u8]] = &[
    b"}", b"do", b"done", b"elif", b"else", b"esac", b"fi", b"then",
];

/// Returns the number of bytes of the unit at the beginning of `rest`, which must not be empty: a
/// quoted string, `$(…)`, `${…}`, an escaped character, or a single byte.
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

/// Returns the length of the string in quotes `quote` at the beginning of `rest`; 1 if it does not
/// end.
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
