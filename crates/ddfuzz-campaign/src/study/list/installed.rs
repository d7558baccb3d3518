//! Installed programs, found on a fixed search path, and the Debian packages that contain them,
//! read from dpkg's files.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Directories in which utilities are searched, in this order, after those of
/// [`Selection::path`](super::super::Selection::path).
pub const PATH: [&str; 4] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/games"];

/// Directories in which utilities are searched last. They hold administrators' programs, some of
/// which need no privileges (`zic`).
const SYSTEM_PATH: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Directory of the files of dpkg, Debian's package manager.
const DPKG: &str = "/var/lib/dpkg";

/// An installed Debian package: its name and version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Package {
    /// Name of the installed package, without the architecture.
    pub name: String,
    /// Version of the installed package, as dpkg writes it.
    pub version: String,
}

/// An installed program and the package that contains it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Installed {
    /// Path of the installed program, in one of the directories of [`PATH`].
    pub path: PathBuf,
    /// The installed package that contains the program.
    pub package: Package,
}

/// Finds the executable of a utility by path or name, and returns its path; names are searched in
/// [`PATH`], then in `/usr/sbin` and `/sbin`. `None` if no executable is found.
pub fn find(utility: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata()
            .is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    match utility.contains('/') {
        true => Some(PathBuf::from(utility)).filter(is_program),
        false if utility.is_empty() => None,
        false => PATH
            .iter()
            .chain(&SYSTEM_PATH)
            .map(|folder| Path::new(folder).join(utility))
            .find(is_program),
    }
}

/// Finds the package that contains a program, if necessary after following links; `None` if no
/// package does, or there is no dpkg.
pub fn package_of(path: &Path) -> Option<Package> {
    DpkgDatabase::get().package_of(path)
}

/// Returns all executables of installed packages in the directories of [`PATH`], sorted by path,
/// without symbolic links; empty without dpkg.
pub fn installed() -> Vec<Installed> {
    let known = DpkgDatabase::get();
    let offered = |path: &Path| in_one_of(path, &PATH) && is_regular(path);
    let programs = known.owners.iter().filter(|(path, _)| offered(path));
    let mut all: Vec<Installed> = programs
        .filter_map(|(path, package)| {
            Some(Installed {
                path: path.clone(),
                package: known.package(package)?,
            })
        })
        .collect();
    all.sort();
    all
}

/// Returns the paths of the executables that a package has in the directories of [`PATH`], sorted,
/// without symbolic links.
pub fn programs_of(package: &str) -> Vec<PathBuf> {
    let all = installed().into_iter();
    all.filter(|program| program.package.name == package)
        .map(|program| program.path)
        .collect()
}

/// Returns the existing files below the absolute path `folder` (such as `/usr/share/applications`)
/// that dpkg lists for an installed package, sorted by path.
pub(super) fn files_of(package: &str, folder: &Path) -> Vec<PathBuf> {
    let lists = DpkgDatabase::get().lists.get(package).into_iter().flatten();
    let mut files: Vec<PathBuf> = lists
        .flat_map(|list| lines(list))
        .filter(|path| path.starts_with(folder) && path.is_file())
        .collect();
    files.sort();
    files
}

fn is_regular(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

/// What dpkg's files say about installed packages: their programs, versions and file lists.
#[derive(Debug, Default)]
struct DpkgDatabase {
    /// Names of the packages that contain programs, by the paths of the programs, with links in
    /// directory names resolved.
    owners: HashMap<PathBuf, String>,
    /// Versions of installed packages, by the names of the packages.
    versions: HashMap<String, String>,
    /// Paths of dpkg's file lists of each package, by its name: one list for each architecture.
    lists: HashMap<String, Vec<PathBuf>>,
}

impl DpkgDatabase {
    /// Returns the dpkg database of this machine, which is read on first use.
    fn get() -> &'static DpkgDatabase {
        static KNOWN: OnceLock<DpkgDatabase> = OnceLock::new();
        KNOWN.get_or_init(|| DpkgDatabase::read(Path::new(DPKG)))
    }

    fn read(dpkg: &Path) -> DpkgDatabase {
        let status = fs::read(dpkg.join("status")).unwrap_or_default();
        let mut known = DpkgDatabase {
            versions: versions(&String::from_utf8_lossy(&status)),
            ..DpkgDatabase::default()
        };
        for list in fs::read_dir(dpkg.join("info"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let (path, name) = (list.path(), list.file_name());
            let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".list")) else {
                continue;
            };
            let package = name.split(':').next().unwrap_or(name).to_owned();
            if !known.versions.contains_key(&package) {
                continue;
            }
            for program in lines_if(&path, is_command) {
                known.owners.insert(merged(&program), package.clone());
            }
            known.lists.entry(package).or_default().push(path);
        }
        known.apply_diversions(&dpkg.join("diversions"));
        known
    }

    /// Applies dpkg's diversions, which `file` lists: one package has moved a file of another
    /// package and put its own file at the old path. Each diversion is three lines: the old path,
    /// the new path, and the package that diverts.
    fn apply_diversions(&mut self, file: &Path) {
        let lines: Vec<PathBuf> = lines(file).collect();
        for diversion in lines.chunks_exact(3) {
            let (from, to) = (merged(&diversion[0]), merged(&diversion[1]));
            let by = diversion[2].to_string_lossy().into_owned();
            // The lists of both packages contain the old path.
            let aside = self
                .owners
                .get(&from)
                .filter(|owner| **owner != by)
                .cloned();
            if let Some(owner) = aside {
                self.owners.insert(to, owner);
                self.owners.remove(&from);
            }
            if from.exists() && self.versions.contains_key(&by) {
                self.owners.insert(from, by);
            }
        }
    }

    fn package(&self, name: &str) -> Option<Package> {
        Some(Package {
            name: name.to_owned(),
            version: self.versions.get(name)?.clone(),
        })
    }

    fn package_of(&self, path: &Path) -> Option<Package> {
        let path = std::path::absolute(path).ok()?;
        let owner = self.owners.get(&merged(&path)).or_else(|| {
            let target = path.canonicalize().ok()?;
            self.owners.get(&target)
        });
        self.package(owner?)
    }
}

fn in_one_of(file: &Path, folders: &[&str]) -> bool {
    let folder = file.parent();
    folders.iter().any(|one| folder == Some(Path::new(one)))
}

/// Returns true if a line of one of dpkg's file lists is the path of a file in one of the
/// directories of programs, otherwise false. It compares bytes, because this is fast: the lists
/// have a hundred thousand lines, and most of them are no such path.
fn is_command(line: &[u8]) -> bool {
    let folder = line.rsplitn(2, |byte| *byte == b'/').nth(1);
    let mut folders = PATH.iter().chain(&SYSTEM_PATH);
    folders.any(|one| folder == Some(one.as_bytes()))
}

/// Returns `path` with the links in its directories resolved, and its file name unchanged. So two
/// paths of one file become equal where `/bin` is a link to `/usr/bin`, and packages may use
/// either.
fn merged(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => folder
            .canonicalize()
            .unwrap_or_else(|_| folder.to_owned())
            .join(name),
        _ => path.to_owned(),
    }
}

/// Reads the paths in a file that has one in each line; returns none if the file cannot be read.
fn lines(file: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    lines_if(file, |line| !line.is_empty())
}

/// Reads the paths in a file that has one in each line, and returns those for whose bytes `wanted`
/// returns true; none if the file cannot be read.
fn lines_if(file: &Path, wanted: fn(&[u8]) -> bool) -> impl Iterator<Item = PathBuf> + use<> {
    let bytes = fs::read(file).unwrap_or_default();
    let lines: Vec<PathBuf> = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| wanted(line))
        .map(|line| PathBuf::from(OsString::from_vec(line.to_vec())))
        .collect();
    lines.into_iter()
}

/// Reads the versions of installed packages, by name, from the text of dpkg's file `status`.
fn versions(status: &str) -> HashMap<String, String> {
    let of_paragraph = |paragraph: &str| {
        let field = |name: &str| {
            let mut lines = paragraph.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let installed = field("Status")?.split(' ').next_back() == Some("installed");
        let pair = (field("Package")?.to_owned(), field("Version")?.to_owned());
        installed.then_some(pair)
    };
    status.split("\n\n").filter_map(of_paragraph).collect()
}
