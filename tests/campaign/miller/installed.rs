//! What is installed, as a Debian system tells.

use std::path::{Path, PathBuf};

use ddfuzz::campaign::study::list::extensions::{MOST, extensions, in_text};
use ddfuzz::campaign::study::list::installed::{find, installed, package_of, programs_of};

use crate::needs;

fn is_debian() -> bool {
    let is = Path::new("/var/lib/dpkg/status").is_file();
    if !is {
        needs::missing("dpkg", "this is no Debian system");
    }
    is
}

#[test]
fn names_are_looked_for_in_a_clean_path() {
    assert!(find("cat").is_some_and(|path| path.ends_with("bin/cat")));
    assert_eq!(find("/bin/sh"), Some(PathBuf::from("/bin/sh")));
    for none in [
        "",
        "surely-not-installed",
        "/bin",
        "/etc/passwd",
        "./Cargo.toml",
    ] {
        assert_eq!(find(none), None, "{none}");
    }
}

#[test]
fn packages_are_found_behind_merged_folders_and_links() {
    if !is_debian() {
        return;
    }
    let of = |path: &str| package_of(Path::new(path)).map(|package| package.name);
    assert_eq!(of("/bin/cat").as_deref(), Some("coreutils"));
    assert_eq!(of("/usr/bin/cat").as_deref(), Some("coreutils"));
    // A link of alternatives.
    let awk = of("/usr/bin/awk").expect("every Debian has one");
    assert!(awk.ends_with("awk"), "{awk}");
    assert_eq!(of("/usr/bin/surely-not-installed"), None);
    let version = package_of(Path::new("/bin/cat"))
        .expect("it is installed")
        .version;
    assert!(
        version.starts_with(|c: char| c.is_ascii_digit()),
        "{version}"
    );
}

#[test]
fn installed_programs_are_regular_and_have_packages() {
    if !is_debian() {
        return;
    }
    let all = installed();
    assert!(all.len() > 100, "only {} programs", all.len());
    assert!(all.is_sorted());
    let cat = programs_of("coreutils");
    assert!(cat.contains(&PathBuf::from("/usr/bin/sort")), "{cat:?}");
    assert!(programs_of("surely-not-installed").is_empty());
}

#[test]
fn extensions_are_read_off_a_manual() {
    let page = ".TH X 1\n.SH NAME\nx \\- reads *.pbm and \\fIfile\\fP\\&.svg files\n\
                .B x foo.svg, i.e. e.g. www.gnu.org a@b.com /etc/x.conf 1.5 end.\n\
                .\\\" comment.txt\n.ie n .ds x y.foo\n'br x.bar\n.I bar.toolong\nsee .tar.gz.";
    assert_eq!(in_text(page), ["pbm", "svg", "svg", "gz"]);
}

#[test]
fn extensions_of_a_program_are_few() {
    let Some(gcc) = needs::program("gcc") else {
        return;
    };
    let found = extensions(&gcc);
    assert!(found.len() <= MOST, "{found:?}");
    assert!(
        found.iter().all(|one| (1..=5).contains(&one.len())),
        "{found:?}"
    );
    assert!(extensions(Path::new("/surely/not/installed")).is_empty());
}
