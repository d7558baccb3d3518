//! What there is to run, and what of it is said.

use std::path::{Path, PathBuf};

use crate::cli::{Failure, Output};
use crate::files::regular::Unread;
use crate::report::size;
use crate::report::text::printable;
use crate::store::foreign::{self, Inputs};

/// Finds the inputs below all paths, and says what was recognised. The output directory `out`
/// may stand below them, and is passed over then.
pub fn find(paths: &[PathBuf], out: Option<&Path>, output: &Output) -> Result<Inputs, Failure> {
    let mut found = Inputs::default();
    let real_out = out.and_then(|out| out.canonicalize().ok());
    let inside = |path: &Path| {
        let real = path.canonicalize();
        (real_out.as_ref()).is_some_and(|out| real.is_ok_and(|real| real.starts_with(out)))
    };
    for path in paths {
        if let Err(error) = path.symlink_metadata().and_then(|_| path.metadata()) {
            return Err(Failure::file(path, "reading the input", &error));
        }
        if inside(path) {
            let message = format!("{} is in the output directory", path.display());
            return Err(Failure::usage(message)
                .path(path)
                .hint("give another output directory with -o"));
        }
        foreign::find(path, &mut found)?;
    }
    for own in out.map_or_else(Vec::new, |out| found.pass_over(out)) {
        let own = own.display();
        output.detail(&format!("skipped {own}: the output directory"));
    }
    for directory in &found.directories {
        let idle = directory.inputs == 0 && directory.passed_over.is_empty();
        if idle && directory.layout == foreign::Layout::Plain {
            continue;
        }
        let path = printable(&directory.path.to_string_lossy());
        let inputs = size::counted(directory.inputs, "input");
        let passed = match directory.passed_over.len() as u64 {
            0 => String::new(),
            count => format!(", {} skipped", size::grouped(count)),
        };
        let layout = directory.layout.name();
        output.say(&format!("{path}: {layout}, {inputs}{passed}"));
        for (path, why) in &directory.passed_over {
            let path = printable(&path.to_string_lossy());
            output.detail(&format!("skipped {path}: {why}"));
        }
    }
    Ok(found)
}

/// Why a file was not read, with sizes as people read them.
pub fn why_unread(error: &Unread) -> String {
    match error {
        Unread::TooLarge { limit } => format!("it is larger than {}", size::limit(*limit)),
        other => other.to_string(),
    }
}

/// Says why a file or directory was not read.
pub fn say_unread(path: &Path, why: &str, output: &Output) {
    let path = printable(&path.to_string_lossy());
    let hint = match why {
        why if why == Unread::Missing.to_string() => " any more",
        why if why.starts_with("it is larger") => "; --max-len allows more",
        _ => "",
    };
    output.say(&format!("warning: {path} is not run: {why}{hint}"));
}
