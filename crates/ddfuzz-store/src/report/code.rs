//! Text about the code of an unmodified program that the runs of a campaign have reached.

use std::path::Path;

use super::{size, text::printable};
use crate::code::{CodeCoverage, FileCoverage, UnreachedFunction};

/// Maximum number of never reached functions that the text on the reached code names.
const MOST_NAMED: usize = 10;

impl UnreachedFunction {
    /// Returns the function's name, without control characters, or its address if it has no name.
    pub fn title(&self) -> String {
        printable(self.name.as_deref().unwrap_or(&self.address))
    }
}

impl FileCoverage {
    fn text(&self) -> String {
        format!(
            "{} of {}, {} of {}",
            size::grouped(self.blocks),
            size::counted(self.blocks_of, "block"),
            size::grouped(self.functions),
            size::counted(self.functions_of, "function")
        )
    }
}

impl CodeCoverage {
    fn total(&self) -> FileCoverage {
        let sum = |of: fn(&FileCoverage) -> u64| self.files.iter().map(of).sum();
        FileCoverage {
            file: String::new(),
            blocks: sum(|file| file.blocks),
            blocks_of: sum(|file| file.blocks_of),
            functions: sum(|file| file.functions),
            functions_of: sum(|file| file.functions_of),
        }
    }

    /// Formats how much of the code of all files was reached: `412 of 1,234 blocks, 55 of 98
    /// functions`.
    pub fn summary(&self) -> String {
        self.total().text()
    }

    /// Formats for each file of code (the program and its libraries) its name, and how much of it
    /// was reached; empty if there is only one file.
    pub fn by_file(&self) -> Vec<(String, String)> {
        let files = match self.files.len() {
            1 => &[],
            _ => &self.files[..],
        };
        let files = files.iter();
        files
            .map(|file| (name_of(&file.file), file.text()))
            .collect()
    }

    /// Formats how much of the program's code was reached, and the names of the largest functions
    /// that were never reached, as a few lines of text.
    pub fn text(&self) -> String {
        let mut lines = vec![format!("code reached: {}", self.summary())];
        let files = self.by_file().into_iter();
        lines.extend(files.map(|(name, text)| format!("  {name}: {text}")));
        if !self.never_reached.is_empty() {
            let count = size::counted(self.never_reached.len() as u64, "function");
            let named = self.never_reached.iter().take(MOST_NAMED).map(|function| {
                format!(
                    "{} ({})",
                    function.title(),
                    size::counted(function.blocks, "block")
                )
            });
            let named: Vec<String> = named.collect();
            let more = match self.never_reached.len() > MOST_NAMED {
                true => ", …",
                false => "",
            };
            lines.push(format!(
                "never reached by a run that passed: {count}: {}{more}",
                named.join(", ")
            ));
        }
        lines.join("\n")
    }
}

/// Returns the name of a file without its folders, with control characters escaped.
pub(super) fn name_of(file: &str) -> String {
    let name = Path::new(file).file_name().unwrap_or_default();
    printable(&name.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_without_a_name_are_told_by_their_address() {
        let file = |file: &str, functions| FileCoverage {
            file: file.to_owned(),
            blocks: 1000,
            blocks_of: 2000,
            functions,
            functions_of: 12,
        };
        let never = |name: Option<&str>, blocks| UnreachedFunction {
            file: "/bin/x".to_owned(),
            address: "0x4510".to_owned(),
            name: name.map(str::to_owned),
            blocks,
        };
        let mut code = CodeCoverage {
            campaign: String::new(),
            files: vec![file("/bin/x", 10)],
            never_reached: vec![never(Some("usage"), 9), never(None, 1)],
        };
        assert_eq!(
            code.text(),
            "code reached: 1,000 of 2,000 blocks, 10 of 12 functions\n\
             never reached by a run that passed: 2 functions: usage (9 blocks), 0x4510 (1 block)"
        );
        code.files.push(file("/lib/libx.so.1", 12));
        code.never_reached.clear();
        assert_eq!(
            code.text(),
            "code reached: 2,000 of 4,000 blocks, 22 of 24 functions\n  \
             x: 1,000 of 2,000 blocks, 10 of 12 functions\n  \
             libx.so.1: 1,000 of 2,000 blocks, 12 of 12 functions"
        );
    }
}
