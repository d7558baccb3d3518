//! Lists the seeds and dictionaries of the bundled targets (`corpora/`), for the binary to embed.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes `out/corpora.rs`: `CORPORA`, a `Corpus` of each target.
pub fn build(out: &Path, targets: &[&str]) {
    println!("cargo::rerun-if-changed=corpora");
    let mut list = String::from("pub const CORPORA: &[super::Corpus] = &[\n");
    for name in targets {
        let folder = Path::new("corpora").join(name);
        let seeds: String = files(&folder.join("seeds"))
            .iter()
            .map(|path| included(path) + ", ")
            .collect();
        let dictionary = included(folder.join(format!("{name}.dict")));
        writeln!(
            list,
            "    super::Corpus {{ name: \"{name}\", seeds: &[{seeds}], dictionary: {dictionary} }},"
        )
        .expect("a string takes what is written");
    }
    list.push_str("];\n");
    fs::write(out.join("corpora.rs"), list).expect("OUT_DIR is writable");
}

/// The files of a folder, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("each target has seeds");
    let paths = entries.map(|entry| entry.expect("the folder is readable").path());
    let mut files: Vec<PathBuf> = paths.collect();
    files.sort();
    files
}

fn included(path: impl AsRef<Path>) -> String {
    let path = path.as_ref().display();
    format!("include_bytes!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/{path}\"))")
}
