//! Links that hold as long as a report and what it links to are moved together.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// The link from a file in the folder `from` to the file `to`, both absolute, as a relative
/// reference of a URI: whatever is not plain stands as the escapes of its bytes.
pub(super) fn link(from: &Path, to: &Path) -> String {
    let (from, to) = (names(from), names(to));
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut link = "../".repeat(from.len() - same);
    for (at, name) in to[same..].iter().enumerate() {
        if at > 0 {
            link.push('/');
        }
        for byte in *name {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
                    link.push(*byte as char);
                }
                // Writing to a string never fails.
                _ => drop(write!(link, "%{byte:02X}")),
            }
        }
    }
    link
}

/// The names of an absolute path from the root on; `..` takes the one before it back, as a browser
/// would do with a link.
fn names(path: &Path) -> Vec<&[u8]> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.as_bytes()),
            Component::ParentDir => drop(names.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_goes_up_to_what_both_have_in_common() {
        let link = |from: &str, to: &str| link(Path::new(from), Path::new(to));
        assert_eq!(link("/a/out", "/a/out/crashes/x"), "crashes/x");
        assert_eq!(link("/a/reports", "/a/out/x"), "../out/x");
        assert_eq!(link("/", "/x"), "x");
        assert_eq!(link("/a/b/..", "/a/../a/out/x"), "out/x");
    }

    #[test]
    fn a_name_cannot_become_another_scheme_or_markup() {
        let to = Path::new("/o/javascript:alert(1)\"><b>\u{e4}");
        assert_eq!(
            link(Path::new("/o"), to),
            "javascript%3Aalert%281%29%22%3E%3Cb%3E%C3%A4"
        );
    }
}
