//! Nothing is too long to be read in one go.

use crate::assert_none;
use crate::functions::functions;
use crate::tree::rust_files;

const LINES_OF_A_FILE: usize = 700;
const LINES_OF_A_FUNCTION: usize = 60;

#[test]
fn no_file_has_more_than_700_lines() {
    let long = rust_files().into_iter().filter_map(|(file, text)| {
        let lines = text.lines().count();
        (lines > LINES_OF_A_FILE).then(|| format!("{}: {lines} lines", file.display()))
    });
    assert_none("files of more than 700 lines", &long.collect::<Vec<_>>());
}

#[test]
fn no_function_has_more_than_60_lines() {
    let mut long = Vec::new();
    for (file, text) in rust_files() {
        for function in functions(&text) {
            if function.lines > LINES_OF_A_FUNCTION {
                let (name, line, lines) = (function.name, function.line, function.lines);
                long.push(format!("{}:{line}: {name}: {lines} lines", file.display()));
            }
        }
    }
    assert_none("functions of more than 60 lines", &long);
}
