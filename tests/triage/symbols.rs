//! Names and lines that stand outside of the program: as distributions install them. Needs the
//! binutils that come with a C compiler, and `xz`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use ddfuzz::triage::{Place, Symbolizer};
use object::{Object, ObjectSymbol};

const SOURCE: &str = "
__attribute__((noinline)) static int hidden(int *p) { return *p + 1; }
__attribute__((noinline)) int shown(int *p) { return hidden(p) * 3; }
int main(int argc, char **argv) { return shown(&argc); }
";

/// `inner` and `outer` are inlined into `main`.
const INLINED: &str = "
static inline __attribute__((always_inline)) int inner(volatile int *p) {
  int got = *p;
  __asm__ volatile(\"#SITE\");
  return got;
}
static inline __attribute__((always_inline)) int outer(volatile int *p) {
  return inner(p) * 3;
}
int main(int argc, char **argv) {
  (void)argv;
  return outer(&argc);
}
";

/// A program with debug information, and tools to take it apart.
struct Built {
    folder: tempfile::TempDir,
}

impl Built {
    fn new(flags: &[&str]) -> Built {
        let folder = tempfile::tempdir().expect("a folder");
        let built = Built { folder };
        std::fs::write(built.file("split.c"), SOURCE).expect("the source is written");
        let mut cc = vec!["cc", "-O1", "-g", "split.c", "-o", "full"];
        cc.extend(flags);
        built.run(&cc);
        built
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, words: &[&str]) {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(self.folder.path());
        let output = command.output().expect("the tool runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
    }

    /// Offset of the function in the program, whose other forms have the same.
    fn offset(&self, function: &str) -> u64 {
        let image = std::fs::read(self.file("full")).expect("a program");
        let elf = object::File::parse(&*image).expect("an ELF file");
        let symbol = elf.symbols().find(|symbol| symbol.name() == Ok(function));
        symbol.expect("a symbol").address()
    }

    fn build_id(&self) -> String {
        let image = std::fs::read(self.file("full")).expect("a program");
        let elf = object::File::parse(&*image).expect("an ELF file");
        let id = elf.build_id().expect("notes").expect("a build id");
        id.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What is said of the function `hidden` of the file `name`.
    fn hidden_in(&self, name: &str, roots: &[&Path]) -> Place {
        let roots = roots.iter().map(|root| root.to_path_buf()).collect();
        let path: Arc<Path> = self.file(name).into();
        Symbolizer::looking_in(roots).place(&path, self.offset("hidden"))
    }

    fn strip_into(&self, name: &str) {
        self.run(&["objcopy", "--only-keep-debug", "full", "full.debug"]);
        self.run(&["strip", "-s", "full", "-o", name]);
    }
}

fn is_hidden_with_its_line(place: &Place) -> bool {
    let line = place
        .line
        .as_deref()
        .is_some_and(|it| it.ends_with("split.c:2"));
    place.name.as_deref() == Some("hidden") && line
}

#[test]
fn a_debug_file_is_found_by_build_id() {
    let built = Built::new(&["-Wl,--build-id"]);
    built.strip_into("stripped");
    assert_eq!(built.hidden_in("stripped", &[]).line, None);
    let id = built.build_id();
    let root = built.file("debug");
    let folder = root.join(".build-id").join(&id[..2]);
    std::fs::create_dir_all(&folder).expect("a folder");
    let place = folder.join(format!("{}.debug", &id[2..]));
    std::fs::rename(built.file("full.debug"), place).expect("a new place");
    let found = built.hidden_in("stripped", &[&root]);
    assert!(is_hidden_with_its_line(&found), "{found:?}");
}

#[test]
fn a_debug_file_is_found_by_its_link_beside_the_program_and_below_a_root() {
    let built = Built::new(&[]);
    built.strip_into("stripped");
    built.run(&["objcopy", "--add-gnu-debuglink=full.debug", "stripped"]);
    let found = built.hidden_in("stripped", &[]);
    assert!(is_hidden_with_its_line(&found), "{found:?}");
    let root = built.file("debug");
    let below = built
        .folder
        .path()
        .strip_prefix("/")
        .expect("an absolute path");
    let folder = root.join(below);
    std::fs::create_dir_all(&folder).expect("a folder");
    let moved = std::fs::rename(built.file("full.debug"), folder.join("full.debug"));
    moved.expect("a new place");
    let found = built.hidden_in("stripped", &[&root]);
    assert!(is_hidden_with_its_line(&found), "{found:?}");
}

#[test]
fn a_debug_file_of_another_build_is_not_believed() {
    let built = Built::new(&["-Wl,--build-id=0x0102030405060708"]);
    built.strip_into("stripped");
    built.run(&["objcopy", "--add-gnu-debuglink=full.debug", "stripped"]);
    let other = Built::new(&["-Wl,--build-id=0x1111111111111111"]);
    other.strip_into("stripped");
    let copied = std::fs::copy(other.file("full.debug"), built.file("full.debug"));
    copied.expect("a copy");
    assert_eq!(built.hidden_in("stripped", &[]), Place::default());
}

#[test]
fn the_small_symbol_table_of_a_stripped_program_names_its_functions() {
    if crate::needs::program("xz").is_none() {
        return;
    }
    let built = Built::new(&[]);
    built.run(&["objcopy", "--strip-debug", "full", "mini"]);
    built.run(&["xz", "mini"]);
    built.run(&["strip", "-s", "full", "-o", "stripped"]);
    assert_eq!(built.hidden_in("stripped", &[]), Place::default());
    built.run(&[
        "objcopy",
        "--add-section",
        ".gnu_debugdata=mini.xz",
        "stripped",
    ]);
    let found = built.hidden_in("stripped", &[]);
    assert_eq!((found.name.as_deref(), found.line), (Some("hidden"), None));
}

#[test]
fn a_small_symbol_table_that_is_malformed_is_passed_over() {
    let built = Built::new(&[]);
    built.run(&["strip", "-s", "full", "-o", "stripped"]);
    std::fs::write(built.file("bad"), b"\xfd7zXZ\0 no table").expect("written");
    built.run(&["objcopy", "--add-section", ".gnu_debugdata=bad", "stripped"]);
    assert_eq!(built.hidden_in("stripped", &[]), Place::default());
}

#[test]
fn a_program_that_was_built_anew_is_read_anew() {
    let built = Built::new(&[]);
    let path: Arc<Path> = built.file("program").into();
    built.run(&["strip", "-s", "full", "-o", "program"]);
    let mut symbolizer = Symbolizer::looking_in(Vec::new());
    let offset = built.offset("hidden");
    assert_eq!(symbolizer.place(&path, offset), Place::default());
    built.run(&["cp", "full", "program"]);
    built.run(&["touch", "-d", "2030-01-01", "program"]);
    let found = symbolizer.place(&path, offset);
    assert!(is_hidden_with_its_line(&found), "{found:?}");
}

#[test]
fn name_and_line_of_an_inlined_function_are_of_one_level() {
    // GNU's assembler passes over what has no line.
    if crate::needs::program("clang").is_none() {
        return;
    }
    let built = Built {
        folder: tempfile::tempdir().expect("a folder"),
    };
    std::fs::write(built.file("inlined.c"), INLINED).expect("the source is written");
    built.run(&["clang", "-O1", "-gdwarf-4", "-S", "inlined.c"]);
    let text = std::fs::read_to_string(built.file("inlined.s")).expect("assembly");
    // As compilers do with what they make up: an instruction of no line.
    let made_up = "nop\n\t.loc\t1 0 0\n\t.globl site\nsite:\tnop";
    std::fs::write(built.file("inlined.s"), text.replace("#SITE", made_up)).expect("written");
    built.run(&["clang", "inlined.s", "-o", "full"]);
    let path: Arc<Path> = built.file("full").into();
    let place = Symbolizer::looking_in(Vec::new()).place(&path, built.offset("site"));
    assert_eq!(place.name.as_deref(), Some("main"));
    assert_eq!(place.inlined, ["inner", "outer"]);
    let number = |line: &Option<String>| {
        let line = line.as_deref().expect("a line");
        line.rsplit_once(':').expect("FILE:LINE").1.to_owned()
    };
    let numbers: Vec<String> = place.lines.iter().map(number).collect();
    // Of `inner` that of the instruction before it.
    assert_eq!(numbers, ["4", "8", "12"], "{place:?}");
    assert_eq!(place.line, place.lines[0]);
}
