//! The tree of the LaTeX environments in a text.

use crate::passes::markup::{PairParser, is_name, next};
use crate::passes::tree::Tree;

/// The bytes that precede the name of a LaTeX environment at its beginning.
const BEGIN: &[u8] = b"\\begin{";
/// The bytes that precede the name of a LaTeX environment at its end.
const END: &[u8] = b"\\end{";

/// Parses a text into the tree of its LaTeX environments, each from `\begin{name}` to `\end{name}`,
/// with the lines inside and outside of them as leaves; `None` if it has no environment.
pub(super) fn environments(text: &[u8]) -> Option<Tree> {
    let mut parser = PairParser::new(text);
    let mut at = 0;
    while let Some(start) = next(text, at, b"\\") {
        let rest = &text[start..];
        let is_begin = rest.starts_with(BEGIN);
        let head = if is_begin { BEGIN.len() } else { END.len() };
        let name = start + head
            ..start
                + head
                + rest
                    .iter()
                    .skip(head)
                    .take_while(|byte| is_name(byte))
                    .count();
        at = start + 1;
        if !is_begin && !rest.starts_with(END) || text.get(name.end) != Some(&b'}') {
            continue;
        }
        lines(&mut parser, start);
        at = name.end + 1;
        if is_begin {
            parser.begin(start, at, name);
        } else {
            parser.end(start, at, &|open| *open == text[name.clone()]);
        }
    }
    lines(&mut parser, text.len());
    parser.finish()
}

/// Adds the text from the end of the last node up to the position `end` to the tree, as one leaf
/// for each line.
fn lines(parser: &mut PairParser<'_>, end: usize) {
    while let Some(line) = next(&parser.text[..end], parser.from, b"\n") {
        parser.leaf(line + 1);
    }
    parser.leaf(end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::markup::tests::reduce;

    #[test]
    fn environments_are_deleted_from_around_others() {
        let text = r"\begin{document}
\begin{table}[h]
  \begin{tabular}{l|r}
    a & b \\ \hline
  \end{tabular}
\end{table}
\begin{itemize}
  \item one
\end{itemize}
\end{document}
";
        let name = |piece: &str| piece.split_once('}').map(|(name, _)| name.to_owned());
        let fails = |text: &str| {
            let (mut open, mut found) = (Vec::new(), false);
            for piece in text.split('\\').skip(1) {
                if let Some(rest) = piece.strip_prefix("begin{") {
                    open.extend(name(rest));
                } else if let Some(rest) = piece.strip_prefix("end{")
                    && open.pop() != name(rest)
                {
                    return false;
                }
                found |= piece.starts_with("hline") && open.iter().any(|name| name == "tabular");
            }
            found && open.is_empty()
        };
        let (best, tests) = reduce(text, fails);
        assert_eq!(best, r"\begin{tabular}\hline\end{tabular}");
        assert!(tests <= 200, "{tests} tests");
    }

    #[test]
    fn hostile_environments_do_no_harm() {
        for piece in [
            r"\begin{",
            r"\begin{a}",
            r"\end{a}",
            r"\",
            r"\begin{a}\end{b}",
            r"\end{",
        ] {
            let text = piece.repeat(1 << 12);
            assert!(environments(text.as_bytes()).is_none(), "{piece}");
        }
        let pairs = r"\begin{a}\end{a}".repeat(1 << 12);
        assert!(environments(pairs.as_bytes()).is_some());
    }
}
