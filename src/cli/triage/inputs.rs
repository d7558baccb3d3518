//! What there is to run, and what of it is said.

use std::path::PathBuf;

use crate::cli::{Failure, Output};
use crate::files::regular::Unread;
use crate::report::size;
use crate::report::text::printable;
use crate::store::foreign::{self, Inputs};

/// Finds the inputs below all paths, and says what was recognised.
pub fn find(paths: &[PathBuf], output: &Output) -> Result<Inputs, Failure> {
    let mut found = Inputs::default();
    for path in paths {
        if let Err(error) = path.symlink_metadata().and_then(|_| path.metadata()) {
            return Err(Failure::file(path, "reading", &error));
        }
        foreign::find(path, &mut found)?;
    }
    for directory in &found.directories {
        let path = printable(&directory.path.to_string_lossy());
        let inputs = size::counted(directory.inputs, "input");
        let passed = match directory.passed_over.len() as u64 {
            0 => String::new(),
            count => format!(", {} passed over", size::grouped(count)),
        };
        let layout = directory.layout.name();
        output.say(&format!("{path}: {layout}, {inputs}{passed}"));
        for (path, why) in &directory.passed_over {
            let path = printable(&path.to_string_lossy());
            output.detail(&format!("passed over {path}: {why}"));
        }
    }
    Ok(found)
}

/// Says why a file or directory was not read.
pub fn say_unread(path: &std::path::Path, why: &str, output: &Output) {
    let path = printable(&path.to_string_lossy());
    let hint = match why {
        why if why == Unread::Missing.to_string() => " any more",
        why if why.starts_with("it is larger") => "; --max-len allows more",
        _ => "",
    };
    output.say(&format!("warning: {path} is not run: {why}{hint}"));
}
