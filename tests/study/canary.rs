//! What a study leaves behind: nothing but its output directory.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::lab::{Lab, utility};

/// Processes whose program stands in `folder`.
fn running(folder: &Path) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let programs = all.filter_map(|entry| std::fs::read_link(entry.path().join("exe")).ok());
    programs
        .filter(|program| program.starts_with(folder))
        .count()
}

#[test]
fn neither_files_nor_processes_are_left_by_what_tries_to() {
    let lab = Lab::with(&["strays", "zap"]);
    let bin = lab.desk.file("bin");
    // By its mode, everybody may write there.
    std::fs::set_permissions(&bin, Permissions::from_mode(0o777)).unwrap();
    let said = lab.revisit("strays zap --channel stdin --runs 120 --seed 1 --json");
    let result = said.exits(1).json();
    assert_eq!(utility(&result, "strays")["runs"], 60, "{result}");
    let mut left: Vec<_> = std::fs::read_dir(&bin).unwrap().flatten().collect();
    left.sort_by_key(std::fs::DirEntry::file_name);
    let names: Vec<_> = left.iter().map(std::fs::DirEntry::file_name).collect();
    assert_eq!(names, ["strays", "zap"]);
    assert_eq!(running(&bin), 0);
    lab.desk.is_left_clean();
}
