//! What the pages speak of: programs, inputs and tests by the names that their commands have.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// No command takes longer than this; one that does has gone wrong.
const LONGEST: Duration = Duration::from_secs(100);

/// Bounds for whatever a page lets run without one, or for minutes: a reader's time is not ours.
const SETTINGS: &str = "\
[common]
jobs = 1

[run]
runs = 60
max-len = 3000
budget-time = \"10s\"

[watch]
once = true

[doctor]
time = \"200ms\"
";

/// A reader's directory.
pub struct Stage {
    dir: tempfile::TempDir,
}

/// What a command said, on stdout and stderr together, and its exit code.
pub struct Said {
    pub code: Option<i32>,
    pub text: String,
}

impl Stage {
    /// The directory for a page of this name and text.
    pub fn of(page: &Path, text: &str) -> Stage {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let stage = Stage { dir: dir.unwrap() };
        // Targets run as nobody where the tests run as root.
        allow(&stage.file(""), 0o755);
        stage.programs(page, text);
        stage.inputs();
        stage.write("ddfuzz.toml", SETTINGS);
        if text.contains("ddfuzz changes v1..HEAD") {
            stage.repository();
        }
        if page.ends_with("export.md") {
            stage.must("ddfuzz triage crash-1 -o ddfuzz-out -- ./program @@");
        }
        if page.ends_with("minimization.md") {
            stage.must("ddfuzz min crash-1 -o small --log LOG -- ./program @@");
        }
        stage
    }

    fn programs(&self, page: &Path, text: &str) {
        // The page that asks what prevents a crash has a program of another kind.
        let source = match page.ends_with("difference.md") {
            true => "unless.c",
            false => "program.c",
        };
        let source = crate::tree::root().join("tests/book/programs").join(source);
        let mut compiler = Command::new("cc");
        compiler.args(["-g", "-O1", "-w", "-D_GNU_SOURCE", "-o"]);
        compiler.args([self.file("program"), source]);
        assert!(compiler.status().expect("a C compiler").success());
        for name in ["parser", "my_fuzzer", "harness", "program-rebuilt"] {
            std::fs::copy(self.file("program"), self.file(name)).unwrap();
        }
        // Sources that the page itself shows.
        for block in crate::blocks::blocks(text) {
            if block.language == "c" {
                self.write("entry.c", block.lines.join("\n") + "\n");
            }
        }
        for test in ["is-it.sh", "is-interesting.sh"] {
            self.write(test, "#!/bin/sh\ngrep -q bug \"$1\"\n");
            allow(&self.file(test), 0o755);
        }
    }

    /// Two commits of a program, of which the second fails by its test.
    fn repository(&self) {
        self.write("test.sh", "#!/bin/sh\ngrep -q works program.txt\n");
        allow(&self.file("test.sh"), 0o755);
        let git = |words: &str| {
            let mut command = Command::new("git");
            command
                .arg("-C")
                .arg(self.dir.path())
                .args(["-c", "user.name=Ann"]);
            command
                .args(["-c", "user.email=ann@example.org"])
                .args(words.split(' '));
            assert!(command.status().expect("git").success(), "git {words}");
        };
        self.write("program.txt", "it works\n");
        git("init --quiet");
        git("add test.sh program.txt");
        git("commit --quiet -m one");
        git("tag v1");
        self.write("program.txt", "it fails\n");
        git("commit --quiet -a -m two");
    }

    fn inputs(&self) {
        let long = format!("{}\nand a bug\n", "some words ".repeat(20));
        let folders = [
            "samples",
            "corpus",
            "artifacts",
            "afl-out",
            "crashes",
            "more",
            "workspace",
            "tests",
        ];
        for folder in folders {
            std::fs::create_dir(self.file(folder)).unwrap();
        }
        self.write("samples/1", "some words\n");
        self.write("samples/2", "buy a but\n");
        self.write("corpus/1", "a few words\n");
        self.write("corpus/2", "a few words more\n");
        for name in ["crash-1", "crash-2", "crash-17", "bad", "text", "smaller"] {
            self.write(name, &long);
        }
        for name in ["artifacts/1", "afl-out/1", "crashes/1", "workspace/1"] {
            self.write(name, "a bug here, and shouts!\n");
        }
        self.write("afl-out/2", "say ! twice: !\n");
        self.write("more/crash-17", &long);
        self.write("good", long.replace("bug", "bag"));
        self.write("options", "-v -s -x\n");
        self.write("known.txt", "0123456789ab  # a key\n");
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.file(name), text).unwrap();
    }

    /// The command with names of groups that stand in the output directory, for those that a page
    /// has in their place.
    fn named(&self, text: &str) -> String {
        let crashes = self.file("ddfuzz-out/crashes");
        let inputs: Vec<PathBuf> = folders(&crashes)
            .iter()
            .flat_map(|group| folders(group))
            .flat_map(|variant| folders(&variant))
            .collect();
        // A group may hold smaller inputs that are not minimized: these have no log.
        let minimized = inputs.iter().find(|input| input.join("log.jsonl").exists());
        let Some(entry) = minimized.or(inputs.first()) else {
            return text.to_owned();
        };
        let below = entry.strip_prefix(&crashes).unwrap().display().to_string();
        text.replace("GROUP/VARIANT/INPUT", &below)
            .replace("3fa4…/…/…", &below)
            .replace("3fa4", &below[..6])
    }

    /// Runs a command as a reader would type it.
    pub fn run(&self, text: &str) -> Said {
        let own = Path::new(env!("CARGO_BIN_EXE_ddfuzz")).parent().unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(
            std::iter::once(own.to_owned()).chain(std::env::split_paths(&path)),
        );
        let text = self.named(&text.replace("cargo run -- ", "ddfuzz "));
        let mut shell = Command::new("bash");
        shell
            .args(["-c", &format!("exec 2>&1\n{text}")])
            .current_dir(self.dir.path())
            .env("PATH", path.unwrap())
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        let output = assert_cmd::Command::from_std(shell)
            .timeout(LONGEST)
            .output()
            .unwrap();
        Said {
            code: output.status.code(),
            text: String::from_utf8_lossy(&output.stdout).into_owned(),
        }
    }

    fn must(&self, command: &str) {
        let said = self.run(command);
        assert!(matches!(said.code, Some(0 | 1)), "{command}: {}", said.text);
    }
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The folders of a folder, by name.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}
