//! The tree of blocks that keywords enclose in a program text, such as `if … fi`, `do … done` and
//! `function … end`.

use crate::passes::markup::PairParser;
use crate::passes::structure::FEWEST_PAIRS;
use crate::passes::tree::Tree;
use crate::passes::words::{Token, tokens};

/// Keywords that begin a block of a program, each with the keywords that may end the block.
const PAIRS: &[(&str, &[&str])] = &[
    ("if", &["fi", "end", "endif"]),
    ("unless", &["end"]),
    ("while", &["done", "end", "endwhile"]),
    ("until", &["done", "end"]),
    ("for", &["done", "end", "endfor"]),
    ("do", &["done", "end", "od"]),
    ("case", &["esac", "end", "endcase"]),
    ("begin", &["end"]),
    ("function", &["end", "endfunction"]),
    ("def", &["end"]),
    ("class", &["end"]),
    ("module", &["end"]),
];
/// Keywords that separate the branches of a block, such as `else`.
const BRANCHES: &[&str] = &["else", "elif", "elseif", "elsif"];
/// Keywords that end the head of a block or branch, as in `while … do`.
const HEADS: &[&str] = &["then", "do"];
/// Characters directly after which a word is a name, not a keyword, as in `$end` and `list.end`.
const NAMED: &[u8] = b".$-:@/=<>!+*%?";
/// Classes of tokens that end a value: `a` for words, `0` for numbers and strings, and closing
/// brackets. A keyword after such a token in the same line belongs to the same statement, as in
/// `return a if b`; only `function` and `do` begin a block even after such a token.
const VALUES: &[u8] = b"a0)]}";

/// Parses a program text into the tree of its blocks, which keywords enclose, and of its
/// statements. `None` if it has fewer than [`FEWEST_PAIRS`] blocks, or if keywords do not match.
pub(super) fn blocks(text: &[u8]) -> Option<Tree> {
    at_least(FEWEST_PAIRS, text)
}

/// Parses a program text into the tree of its blocks as [`blocks`] does, but also a text with a
/// single block. `None` if there is no block, or if keywords do not match.
pub(super) fn few_blocks(text: &[u8]) -> Option<Tree> {
    at_least(1, text)
}

fn at_least(fewest: usize, text: &[u8]) -> Option<Tree> {
    let tokens = code(text);
    let mut words = Words {
        text,
        tokens: &tokens,
        stop: 0,
        line: 0,
    };
    let (mut parser, mut odd, mut at) = (PairParser::new(text), 0, 0);
    while let Some(token) = tokens.get(at) {
        let (place, word) = (words.own(at), words.lower(at));
        let word = word.as_str();
        at += 1;
        if words.begins_block(at - 1) {
            parser.leaf(place.start);
            let head = words.head(at - 1);
            at = head;
            parser.begin(place.start, words.own(head - 1).end, place);
        } else if BRANCHES.contains(&word) && words.is_keyword(at - 1) {
            parser.leaf(place.start);
            at = if word == "else" {
                at
            } else {
                words.head(at - 1)
            };
            parser.leaf(tokens[at - 1].place.end);
        } else if words.ends_block(at - 1) {
            parser.leaf(place.start);
            let before = parser.open.len();
            let closes = |open: &[u8]| {
                let open = String::from_utf8_lossy(open).to_lowercase();
                PAIRS
                    .iter()
                    .any(|(begin, ends)| *begin == open && ends.contains(&word))
            };
            parser.end(place.start, place.end, &closes);
            // The closing of no block, or of one with others in it that have none.
            odd += usize::from(parser.open.len() + 1 != before);
        } else if token.class == b';' || words.ends_line(at - 1) {
            parser.leaf(token.place.end);
        }
    }
    odd += parser.open.len();
    let tree = parser.finish()?;
    let pairs = tree.nodes.iter().filter(|node| node.pair).count();
    (pairs >= fewest && odd * 4 <= pairs).then_some(tree)
}

/// Splits a text into tokens (words and signs) and returns those that are outside of comments.
fn code(text: &[u8]) -> Vec<Token> {
    let mut end = 0;
    let mut code = tokens(text);
    code.retain(|token| {
        let start = token.place.start;
        let is_free = start == 0 || text[start - 1].is_ascii_whitespace();
        let is_comment = token.class == b'#' || text[start..].starts_with(b"--");
        if start >= end && is_free && is_comment {
            let line = text[start..].iter().take_while(|byte| **byte != b'\n');
            end = start + line.count();
        }
        start >= end
    });
    code
}

/// The tokens of a program text (words and signs), with the rules that tell keywords from other
/// words.
struct Words<'a> {
    text: &'a [u8],
    tokens: &'a [Token],
    /// Index of the first token, after the word for which [`head`](Words::head) last searched, that
    /// is `then` or `do`, or begins or ends a block. Kept so that calls for words before it need
    /// not search again.
    stop: usize,
    /// Index of the first token of the line after that of the word for which [`head`](Words::head)
    /// last searched. Kept so that calls for other words of the same line need not search again.
    line: usize,
}

impl Words<'_> {
    /// Returns the range of the text that the token with the index `index` occupies, without the
    /// blanks after the token.
    fn own(&self, index: usize) -> std::ops::Range<usize> {
        let place = &self.tokens[index].place;
        place.start..place.start + self.text[place.clone()].trim_ascii_end().len()
    }

    fn lower(&self, index: usize) -> String {
        String::from_utf8_lossy(&self.text[self.own(index)]).to_lowercase()
    }

    /// Returns true if a line of the text ends after the token with this index.
    fn ends_line(&self, index: usize) -> bool {
        let end = self.tokens[index].place.end;
        let next = self.tokens.get(index + 1);
        let next = next.map_or(self.text.len(), |next| next.place.start);
        self.text[self.own(index).end..next.max(end)].contains(&b'\n')
    }

    /// Returns true if the word with this index may be a keyword; false if one of the characters
    /// [`NAMED`] directly before it makes it a name, and for numbers, strings and signs.
    fn is_keyword(&self, index: usize) -> bool {
        let is_named = index > 0
            && self.own(index - 1).end == self.own(index).start
            && NAMED.contains(&self.tokens[index - 1].class);
        self.tokens[index].class == b'a' && !is_named
    }

    /// Returns true if a statement can begin at the token with this index: it is the first one of
    /// the text or of its line, or follows a keyword or a sign that does not end a value. Else
    /// returns false.
    fn begins_statement(&self, index: usize) -> bool {
        let Some(before) = index.checked_sub(1) else {
            return true;
        };
        let word = self.lower(before);
        let is_keyword = BRANCHES.contains(&word.as_str())
            || HEADS.contains(&word.as_str())
            || PAIRS
                .iter()
                .any(|(begin, ends)| *begin == word || ends.contains(&word.as_str()));
        is_keyword || self.ends_line(before) || !VALUES.contains(&self.tokens[before].class)
    }

    fn begins_block(&self, index: usize) -> bool {
        let word = self.lower(index);
        let is_inside = matches!(word.as_str(), "function" | "do");
        PAIRS.iter().any(|(begin, _)| *begin == word)
            && self.is_keyword(index)
            && (is_inside || self.begins_statement(index))
    }

    fn ends_block(&self, index: usize) -> bool {
        let word = self.lower(index);
        let is_end = PAIRS.iter().any(|(_, ends)| ends.contains(&word.as_str()));
        let next = self.tokens.get(index + 1).map(|next| next.class);
        let is_over =
            self.ends_line(index) || next.is_none_or(|next| b"a;),}].|&>".contains(&next));
        is_end && self.is_keyword(index) && is_over
    }

    /// Returns the index of the first token after the head of the block or branch that begins with
    /// the word at `index`. The head ends with `then` or `do`, with the closing bracket of
    /// parameters, or else with its line. Each call must have a greater `index` than the calls
    /// before; then all calls together visit each token only once.
    fn head(&mut self, index: usize) -> usize {
        let word = self.lower(index);
        if matches!(word.as_str(), "begin" | "do") {
            return index + 1;
        }
        let is_head = |this: &Self, at: usize| HEADS.contains(&this.lower(at).as_str());
        let end = self.tokens.len();
        if self.stop <= index {
            let stops =
                |at: &usize| is_head(self, *at) || self.begins_block(*at) || self.ends_block(*at);
            self.stop = (index + 1..end).find(stops).unwrap_or(end);
        }
        if self.line <= index {
            let last = (index..end).find(|at| self.ends_line(*at));
            self.line = last.unwrap_or(end) + 1;
        }
        let (stop, line) = (self.stop, self.line);
        let has_parameters = matches!(word.as_str(), "function" | "def");
        let mut parameters = match has_parameters {
            true => index..stop.min(line),
            false => 0..0,
        };
        if let Some(close) = parameters.find(|at| self.tokens[*at].class == b')') {
            return close + 1;
        }
        // A head with parameters does not go on after its line.
        let goes_on = !has_parameters || stop < line;
        match stop < end && goes_on && is_head(self, stop) {
            true => stop + 1,
            false if line <= stop => line,
            false => index + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the blocks of a text, each as its opening (to the end of its head) and its closing
    /// keyword.
    fn pairs(text: &str) -> Vec<(&str, &str)> {
        let tree = blocks(text.as_bytes()).expect("blocks");
        let pairs = tree.nodes.iter().filter(|node| node.pair);
        pairs
            .map(|node| (&text[node.start..node.inner], &text[node.close..node.end]))
            .collect()
    }

    #[test]
    fn keywords_of_a_script_make_a_tree() {
        let text =
            "if a; then\nb $(for c in d; do\ne\ndone)\nelse\nwhile f # if\ndo\ng.end\ndone\nfi\n";
        let expected = [
            ("if a; then", "fi"),
            ("for c in d; do", "done"),
            ("while f # if\ndo", "done"),
        ];
        assert_eq!(pairs(text), expected);
    }

    #[test]
    fn keywords_of_a_program_make_a_tree() {
        let text = "a={function(b)\nwhile c do\nd() end end}\nfunction e()\nreturn f\nend -- end\n";
        let expected = [
            ("function(b)", "end"),
            ("while c do", "end"),
            ("function e()", "end"),
        ];
        assert_eq!(pairs(text), expected);
    }

    #[test]
    fn a_keyword_after_a_value_begins_no_block() {
        let text = "def a\nreturn b if c\nend\n".repeat(3);
        assert_eq!(pairs(&text), [("def a", "end"); 3]);
    }

    #[test]
    fn other_texts_have_no_blocks() {
        for text in [
            "",
            "if (a) {\n  end = b;\n}\nfor (;;) {\n  end++;\n}\nwhile (c) {\n}\n",
            "The end.\nIf so, it ends\nfor you\n",
            "if a\nend\nif b\nend\n",
        ] {
            assert!(blocks(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn hostile_keywords_do_no_harm() {
        for piece in [
            "if ",
            "end\n",
            "function ",
            "do\n",
            "if then ",
            "else\n",
            "#if",
        ] {
            assert!(blocks(piece.repeat(10_000).as_bytes()).is_none(), "{piece}");
        }
        for branches in ["elif x\n", "elif x "] {
            assert!(blocks(branches.repeat(100_000).as_bytes()).is_none());
        }
        assert!(blocks(&b"\xff if \xfe end\n".repeat(1000)).is_none());
        let nest = ["do\n".repeat(5000), "end\n".repeat(5000)].concat();
        let tree = blocks(nest.as_bytes());
        assert!(tree.is_none_or(|tree| tree.nodes.len() <= 10_000));
    }
}
