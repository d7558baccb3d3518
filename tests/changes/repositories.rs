//! Repositories for tests: written as one stream for `git fast-import`, so that many commits cost
//! little.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum File {
    Text(Vec<u8>),
    Script(Vec<u8>),
    Link(&'static str),
    Submodule(&'static str),
}

impl From<&str> for File {
    fn from(text: &str) -> File {
        File::Text(text.into())
    }
}

/// The files of a version, by path.
pub type Files = BTreeMap<Vec<u8>, File>;

/// The files of a version, from pairs of path and text.
pub fn files(pairs: &[(&str, &str)]) -> Files {
    pairs
        .iter()
        .map(|(path, text)| (path.as_bytes().to_vec(), File::from(*text)))
        .collect()
}

/// A commit of a generated repository.
pub struct Commit {
    pub subject: String,
    pub files: Files,
    /// Indices of the parents among the commits; the commit before if empty.
    pub parents: Vec<usize>,
}

impl Commit {
    pub fn new(subject: &str, files: Files) -> Commit {
        Commit {
            subject: subject.to_owned(),
            files,
            parents: Vec::new(),
        }
    }
}

/// Calls git in a folder, without the settings of the user; it must succeed.
#[track_caller]
pub fn git(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(words);
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
        command.env(name, "Ann");
    }
    for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
        command.env(name, "ann@example.org");
    }
    let done = command.output().expect("git starts");
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "git {words:?}: {error}");
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

/// Creates a repository with these commits in `folder`. The first is the tag `A`, the last the tag
/// `B`, and is checked out.
pub fn create(folder: &Path, commits: &[Commit]) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "--quiet", "--initial-branch=main"]);
    let mut child = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("git starts");
    let mut stream = Vec::new();
    for (at, commit) in commits.iter().enumerate() {
        stream.extend(stream_of(at, commit));
    }
    for (tag, at) in [("A", 1), ("B", commits.len())] {
        stream.extend(format!("reset refs/tags/{tag}\nfrom :{at}\n\n").into_bytes());
    }
    stream.extend(format!("reset refs/heads/main\nfrom :{}\n\n", commits.len()).into_bytes());
    child.stdin.take().unwrap().write_all(&stream).unwrap();
    assert!(child.wait().unwrap().success());
    git(folder, &["reset", "--quiet", "--hard", "main"]);
    folder.to_owned()
}

fn stream_of(at: usize, commit: &Commit) -> Vec<u8> {
    let mut text = format!(
        "commit refs/heads/main-{at}\nmark :{}\nauthor Ann <ann@example.org> {time} +0000\n\
         committer Ann <ann@example.org> {time} +0000\ndata {}\n{}\n",
        at + 1,
        commit.subject.len(),
        commit.subject,
        time = 1_700_000_000 + 3600 * at
    )
    .into_bytes();
    let parents = match &commit.parents[..] {
        [] if at == 0 => Vec::new(),
        [] => vec![at - 1],
        parents => parents.to_vec(),
    };
    for (order, parent) in parents.iter().enumerate() {
        let word = if order == 0 { "from" } else { "merge" };
        text.extend(format!("{word} :{}\n", parent + 1).into_bytes());
    }
    text.extend(b"deleteall\n");
    for (path, file) in &commit.files {
        let (mode, content) = match file {
            File::Text(content) => ("100644", content.clone()),
            File::Script(content) => ("100755", content.clone()),
            File::Link(target) => ("120000", target.as_bytes().to_vec()),
            File::Submodule(id) => {
                text.extend(format!("M 160000 {id} ").into_bytes());
                text.extend(quoted(path));
                text.push(b'\n');
                continue;
            }
        };
        text.extend(format!("M {mode} inline ").into_bytes());
        text.extend(quoted(path));
        text.extend(format!("\ndata {}\n", content.len()).into_bytes());
        text.extend(content);
        text.push(b'\n');
    }
    text
}

/// A stream of numbers that depends on the seed alone.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }
}

/// A program of settings, each a line `NAME=VALUE` of one of its files; lines change from commit to
/// commit, and some of the changes are causes.
pub struct Settings {
    pub commits: Vec<Commit>,
    /// Places of the causes in the last version, as `FILE:LINE`.
    pub causes: Vec<String>,
    /// Command that tests a version: it fails if all causes are there.
    pub test: String,
}

/// Number of files of a program of settings.
const FILES: usize = 25;

/// Chooses lines of the files at random; no two of them are neighbors, so that each is a hunk of its
/// own.
fn shuffled_places(random: &mut Random, length: usize, count: usize) -> Vec<(usize, usize)> {
    let mut places: Vec<(usize, usize)> = (0..FILES)
        .flat_map(|file| (0..length / 2).map(move |line| (file, 2 * line)))
        .collect();
    for at in (1..places.len()).rev() {
        places.swap(at, random.below(at + 1));
    }
    places.truncate(count);
    places
}

/// Generates a history of `commits` commits with `hunks` changed lines, of which `causes` in different
/// commits make the test fail together.
pub fn settings(seed: u64, commits: usize, hunks: usize, causes: usize) -> Settings {
    let mut random = Random(seed);
    let length = 2 * hunks.div_ceil(FILES) + 4;
    let line = |file: usize| move |line| format!("v{file}_{line}=0");
    let mut texts: Vec<Vec<String>> = (0..FILES)
        .map(|file| (0..length).map(line(file)).collect())
        .collect();
    let places = shuffled_places(&mut random, length, hunks);
    let mut of_commit: Vec<Vec<(usize, usize)>> = vec![Vec::new(); commits];
    for (at, place) in places.into_iter().enumerate() {
        let commit = if at < commits {
            at
        } else {
            random.below(commits)
        };
        of_commit[commit].push(place);
    }
    let mut culprits: Vec<usize> = Vec::new();
    while culprits.len() < causes {
        let commit = random.below(commits);
        if !culprits.contains(&commit) {
            culprits.push(commit);
        }
    }
    let path = |file: usize| format!("part{}/f{file}.conf", file % 5);
    let version = |texts: &[Vec<String>]| -> Files {
        let file = |(at, lines): (usize, &Vec<String>)| {
            (
                path(at).into_bytes(),
                File::Text(format!("{}\n", lines.join("\n")).into_bytes()),
            )
        };
        texts.iter().enumerate().map(file).collect()
    };
    let mut made = vec![Commit::new("begin", version(&texts))];
    let (mut found, mut test) = (Vec::new(), "true".to_owned());
    for (commit, places) in of_commit.iter().enumerate() {
        for (file, line) in places {
            texts[*file][*line] = format!("v{file}_{line}={}", 1 + random.below(1000));
        }
        if culprits.contains(&commit) {
            let (file, line) = places[random.below(places.len())];
            let number = found.len();
            texts[file][line] = format!("v{file}_{line}=wrong{number}");
            found.push(format!("{}:{}", path(file), line + 1));
            test = format!("{test} && grep -q =wrong{number} {}", path(file));
        }
        made.push(Commit::new(&format!("change {commit}"), version(&texts)));
    }
    found.sort();
    Settings {
        commits: made,
        causes: found,
        test: format!("if {test}; then exit 1; fi"),
    }
}

/// A path as a string of C, as `git fast-import` reads it.
fn quoted(path: &[u8]) -> Vec<u8> {
    let byte = |byte: &u8| match byte {
        b'"' | b'\\' => vec![b'\\', *byte],
        b' '..=b'~' => vec![*byte],
        _ => format!("\\{byte:03o}").into_bytes(),
    };
    let inside: Vec<u8> = path.iter().flat_map(byte).collect();
    [&b"\""[..], &inside, b"\""].concat()
}
