//! Changes that are no lines of a text, and texts that are none.

use crate::repositories::{Commit, File, Files, create, files, git};
use crate::{changes, needs, result};

/// Searches between two versions, without a history, and returns the changes as `KIND FILE`; checks
/// that the patch makes the first version fail.
fn found(old: Files, new: Files, test: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let repository = create(
        &folder.path().join("repository"),
        &[Commit::new("one", old), Commit::new("two", new)],
    );
    let found = result(&mut changes(
        folder.path(),
        &["A..B", "--repo", "repository", "--run", test],
    ));
    assert_eq!(found["claim"], "1-minimal");
    git(&repository, &["checkout", "--quiet", "A"]);
    git(&repository, &["apply", found["cause"].as_str().unwrap()]);
    let tested = std::process::Command::new("sh")
        .arg("-c")
        .arg(test)
        .current_dir(&repository)
        .output()
        .unwrap();
    assert!(
        !tested.status.success(),
        "the patch does not make it fail: {tested:?}"
    );
    let changes = found["changes"].as_array().unwrap().iter();
    let units = changes.clone().filter(|change| change["joined"] != true);
    assert_eq!(found["removals"], units.count());
    let shown = |change: &serde_json::Value| {
        let joined = if change["joined"] == true {
            " (joined)"
        } else {
            ""
        };
        format!(
            "{} {}{joined}",
            change["kind"].as_str().unwrap(),
            change["file"].as_str().unwrap_or("?")
        )
    };
    changes.map(shown).collect()
}

fn with(base: &Files, more: &[(&[u8], File)]) -> Files {
    let mut all = base.clone();
    all.extend(
        more.iter()
            .map(|(path, file)| (path.to_vec(), file.clone())),
    );
    all
}

fn base() -> Files {
    files(&[
        ("keep", "1\n2\n3\n"),
        ("gone", "x\n"),
        ("noise", "1\n"),
        ("dir/file", "y\n"),
    ])
}

#[test]
fn new_deleted_and_renamed_files_are_one_change_each() {
    let noise: (&[u8], File) = (b"noise", "2\n".into());
    let new = with(&base(), &[(b"new/one", "n\n".into()), noise.clone()]);
    assert_eq!(
        found(base(), new, "! test -e new/one"),
        ["new file new/one"]
    );
    let mut new = with(&base(), std::slice::from_ref(&noise));
    new.remove(&b"gone"[..]);
    assert_eq!(found(base(), new, "test -e gone"), ["deleted file gone"]);
    let mut new = with(&base(), &[noise, (b"moved", "1\n2\n3\n".into())]);
    new.remove(&b"keep"[..]);
    assert_eq!(found(base(), new, "test -e keep"), ["renamed file keep"]);
}

#[test]
fn a_change_of_a_renamed_file_has_the_path_to_which_the_patch_applies() {
    let text = |last: &str| -> File { format!("1\n2\n3\n4\n5\n{last}\n").as_str().into() };
    let old = with(&base(), &[(b"a.txt", text("6"))]);
    let new = with(&base(), &[(b"b.txt", text("bad"))]);
    let folder = tempfile::tempdir().unwrap();
    let commits = [Commit::new("one", old), Commit::new("two", new)];
    create(&folder.path().join("repository"), &commits);
    let words = [
        "A..B",
        "--repo",
        "repository",
        "--run",
        "! grep -q bad *.txt",
    ];
    let found = result(&mut changes(folder.path(), &words));
    assert_eq!(crate::places(&found), ["a.txt:6"]);
    assert_eq!(found["changes"][0]["new_file"], "b.txt");
    let patch = std::fs::read_to_string(found["cause"].as_str().unwrap()).unwrap();
    assert!(
        patch.contains("--- a/a.txt") && !patch.contains("b.txt"),
        "{patch}"
    );
}

#[test]
fn modes_links_and_binaries_are_one_change_each() {
    let noise: (&[u8], File) = (b"noise", "2\n".into());
    let script = with(
        &base(),
        &[
            (b"keep", File::Script(b"1\n2\n3\n".to_vec())),
            noise.clone(),
        ],
    );
    assert_eq!(found(base(), script, "! test -x keep"), ["mode keep"]);
    let old = with(&base(), &[(b"link", File::Link("keep"))]);
    let new = with(&old, &[(b"link", File::Link("nowhere")), noise.clone()]);
    assert_eq!(found(old, new, "test -e link"), ["link link"]);
    let new = with(&base(), &[(b"keep", File::Link("noise")), noise.clone()]);
    assert_eq!(found(base(), new, "! test -L keep"), ["type keep"]);
    let old = with(
        &base(),
        &[(b"data", File::Text(b"\0\x01good\xff\n".to_vec()))],
    );
    let new = with(
        &old,
        &[(b"data", File::Text(b"\0\x01wrong\xfe\n".to_vec())), noise],
    );
    assert_eq!(found(old, new, "! grep -aq wrong data"), ["binary data"]);
}

#[test]
fn a_file_that_becomes_a_directory_is_one_change_with_the_files_in_it() {
    let mut new = with(
        &base(),
        &[(b"gone/inside", "i\n".into()), (b"noise", "2\n".into())],
    );
    new.remove(&b"gone"[..]);
    assert_eq!(
        found(base(), new, "! test -d gone"),
        ["deleted file gone", "new file gone/inside (joined)"]
    );
    let mut new = with(&base(), &[(b"dir", "now a file\n".into())]);
    new.remove(&b"dir/file"[..]);
    assert_eq!(
        found(base(), new, "test -d dir"),
        ["new file dir", "deleted file dir/file (joined)"]
    );
}

#[test]
fn two_files_that_change_places_are_one_change() {
    let long = |word: &str| -> File { word.repeat(200).as_str().into() };
    let old = with(
        &base(),
        &[(b"left", long("left\n")), (b"right", long("right\n"))],
    );
    let new = with(
        &base(),
        &[(b"left", long("right\n")), (b"right", long("left\n"))],
    );
    let changes = found(old, new, "grep -q left left");
    assert!(!changes.is_empty());
}

#[test]
fn lines_with_carriage_returns_without_an_end_and_with_any_bytes_are_kept() {
    let old = with(
        &base(),
        &[(
            b"text",
            File::Text(b"a\r\nb\r\nc\r\n\xe4\xf6\r\nend".to_vec()),
        )],
    );
    let new = with(
        &base(),
        &[(
            b"text",
            File::Text(b"a\r\nB\r\nc\r\n\xfc\xdf\r\nend\r\n".to_vec()),
        )],
    );
    let test = "! LC_ALL=C grep -q \"$(printf '^B\\r$')\" text";
    assert_eq!(found(old.clone(), new.clone(), test), ["hunk text"]);
    let test = "! LC_ALL=C grep -q \"$(printf '^\\374\\337\\r$')\" text";
    assert_eq!(found(old, new, test), ["hunk text"]);
}

#[test]
fn names_of_files_need_not_be_utf_8() {
    let odd: &[u8] = b"sub dir/\"odd\"\\\xff\n.conf";
    let old = with(&base(), &[(odd, "1\n2\n3\n".into())]);
    let new = with(
        &base(),
        &[(odd, "1\nbad\n3\n".into()), (b"noise", "2\n".into())],
    );
    let changes = found(old, new, "! grep -rq bad 'sub dir'");
    assert_eq!(changes.len(), 1);
    assert!(changes[0].starts_with("hunk "), "{changes:?}");
}

#[test]
fn submodules_and_pointers_of_lfs_are_warned_of() {
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n";
    let one = File::Submodule("1111111111111111111111111111111111111111");
    let two = File::Submodule("2222222222222222222222222222222222222222");
    let old = with(
        &base(),
        &[(b"module", one), (b"large", "version 0\n".into())],
    );
    let new = with(
        &old,
        &[
            (b"module", two),
            (b"large", pointer.into()),
            (b"noise", "bad\n".into()),
        ],
    );
    let folder = tempfile::tempdir().unwrap();
    create(
        &folder.path().join("repository"),
        &[Commit::new("one", old), Commit::new("two", new)],
    );
    let words = [
        "A..B",
        "--repo",
        "repository",
        "--run",
        "test -d module && ! grep bad noise",
    ];
    let done = crate::output(&mut changes(folder.path(), &words));
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{error}");
    assert!(
        error.contains("submodule") && error.contains("LFS"),
        "{error}"
    );
}

#[test]
fn two_directories_are_compared_without_a_repository() {
    let folder = tempfile::tempdir().unwrap();
    for (name, value) in [("old", "good"), ("new", "bad")] {
        let sub = folder.path().join(name).join("sub");
        std::fs::create_dir_all(&sub).unwrap();
        std::fs::write(sub.join("value"), format!("a\n{value}\n")).unwrap();
        std::fs::write(sub.join("other"), format!("{name}\n")).unwrap();
        std::os::unix::fs::symlink("other", sub.join("link")).unwrap();
    }
    let words = [
        "old",
        "new",
        "--run",
        "test -L sub/link && ! grep bad sub/value",
    ];
    let found = result(&mut changes(folder.path(), &words));
    assert_eq!(crate::places(&found), ["sub/value:2"]);
    assert_eq!(found["changes"][0]["commits"].as_array().unwrap().len(), 0);
}

#[test]
fn each_version_of_a_directory_has_its_empty_directories() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    for (name, value) in [("old", "good"), ("new", "bad")] {
        for below in ["deep/made", "kept", name] {
            std::fs::create_dir_all(at(name).join(below)).unwrap();
        }
        std::fs::write(at(name).join("value"), format!("{value}\n")).unwrap();
    }
    // A file of the new version, which is an empty directory in the old one.
    std::fs::create_dir(at("old/other")).unwrap();
    std::fs::write(at("new/other"), "text\n").unwrap();
    std::fs::write(at("new/kept/file"), "text\n").unwrap();
    let build =
        "touch deep/made/file && touch old/x new/x && { [ -e kept/file ] || test -d kept; }";
    let words = ["old", "new", "--build", build, "--run", "! grep bad value"];
    let found = result(&mut changes(folder.path(), &words));
    assert_eq!(crate::places(&found), ["value:1"]);
    assert_eq!(found["tests"]["unresolved"], 0, "{found}");
    let log = std::process::Command::new(env!("CARGO_BIN_EXE_ddfuzz"))
        .args(["log", "verify", "out/changes/log.jsonl"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(log.status.success(), "{log:?}");
}

#[test]
fn each_file_of_many_hunks_is_read_and_looked_up_once_for_the_result() {
    let Some(git_program) = needs::program("git") else {
        return;
    };
    // Two commits change every second of 40 hunks each, so that git is asked which commit it was.
    let text = |one: u32, two: u32| {
        let hunk = |at: u32| format!("{at} {}\nsame {at}\n", [one, two][at as usize % 2]);
        (0..40).map(hunk).collect::<String>()
    };
    let commits: Vec<Commit> = [(0, 0), (1, 0), (1, 1)]
        .map(|(one, two)| Commit::new("c", files(&[("f", &text(one, two))])))
        .into();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    create(&at.join("repository"), &commits);
    // A git that writes down its calls, and the objects that it is asked for.
    let (bin, calls, asked) = (at.join("bin"), at.join("calls"), at.join("asked"));
    std::fs::create_dir(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\necho \"$*\" >>{calls}\ncase $1 in cat-file) tee -a {asked} | exec {git} \"$@\";;\n\
         *) exec {git} \"$@\";; esac\n",
        calls = calls.display(),
        asked = asked.display(),
        git = git_program.display(),
    );
    std::fs::write(bin.join("git"), script).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bin.join("git"), executable).unwrap();
    let path = std::env::var("PATH").unwrap();
    let words = [
        "A..B",
        "--repo",
        "repository",
        "--run",
        "! grep -q '^[0-9]* 1$' f",
    ];
    let mut command = changes(at, &words);
    command.args(["--no-history", "--budget-tests", "0"]);
    let found = result(command.env("PATH", format!("{}:{path}", bin.display())));
    let shown = found["changes"].as_array().unwrap();
    assert_eq!(shown.len(), 40);
    let commits: Vec<String> = shown
        .iter()
        .map(|change| change["commits"].to_string())
        .collect();
    // Each hunk has one of the two commits, in turn.
    assert!(
        commits
            .windows(3)
            .all(|three| three[0] == three[2] && three[0] != three[1])
    );
    // Of each version without one hunk, two objects are asked for.
    let lines = |file| std::fs::read_to_string(file).unwrap().lines().count();
    let (objects, calls) = (lines(&asked), lines(&calls));
    assert!(objects < 3 * 40, "{objects} objects are asked for");
    assert!(calls < 2 * 40, "git is called {calls} times");
}

#[test]
fn a_change_is_in_the_function_of_its_first_line() {
    let version = |two: &str, note: &str| {
        let one = "int one(int x)\n{\n    return x;\n}\n";
        let text = format!("{one}\n{two}    return x;\n}}\n");
        files(&[("p.c", &text), ("notes", &format!("Notes\n\n{note}\n"))])
    };
    let old = version("int two(int x)\n{\n", "good");
    let new = version("int two(int x) { x = x + 1;\n", "bad");
    for (test, function) in [
        ("! grep -q 'x + 1' p.c", serde_json::json!("two")),
        // No line of a file without a language is a function.
        ("! grep -q bad notes", serde_json::Value::Null),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let commits = [
            Commit::new("one", old.clone()),
            Commit::new("two", new.clone()),
        ];
        create(&folder.path().join("repository"), &commits);
        let words = ["A..B", "--repo", "repository", "--run", test];
        let found = result(&mut changes(folder.path(), &words));
        assert_eq!(found["changes"][0]["function"], function, "{found}");
    }
}

#[test]
fn the_directory_of_a_submodule_goes_with_it() {
    let id = "0123456789012345678901234567890123456789";
    let old = with(&base(), &[(b"sub", File::Submodule(id))]);
    let new = with(&base(), &[(b"noise", "2\n".into())]);
    let folder = tempfile::tempdir().unwrap();
    let commits = [Commit::new("one", old), Commit::new("two", new)];
    create(&folder.path().join("repository"), &commits);
    let words = ["A..B", "--repo", "repository", "--run", "test -d sub"];
    let found = result(&mut changes(folder.path(), &words));
    assert_eq!(crate::places(&found), ["sub:0"]);
    assert_eq!(found["claim"], "1-minimal");
}
