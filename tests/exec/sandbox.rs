//! What a target in a sandbox can do, and what it cannot, by every way.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;

use ddfuzz::exec::sandbox::supported_parts;
use ddfuzz::exec::{Ended, Executor, Freshness, Program, Sandbox, Target, Traceable, Way, start};

use crate::needs;
use crate::programs::{Compiled, compile, open_directory, patient, running};

const WAYS: [Way; 3] = [Way::Command, Way::Inject, Way::Snapshot];

/// Whether this system supports all that the promises rest on; says so if not.
#[track_caller]
fn offered() -> bool {
    let missing = supported_parts().into_iter().find(|offered| !offered.works);
    if let Some(offered) = &missing {
        let why = offered.why_not.as_deref().unwrap_or_default();
        needs::missing(offered.what, why);
    }
    missing.is_none()
}

/// A target in a sandbox, with time for many attempts.
pub fn sandboxed(program: &Compiled) -> Target {
    let mut target = patient(Program::Path(program.path.clone()));
    target.sandbox = Sandbox::On;
    target.limits.cpu = std::time::Duration::from_secs(20);
    target
}

fn executor(target: &Target, way: Way) -> Box<dyn Executor> {
    let started = start(target, Some(way), Freshness::Shared);
    started.unwrap().executor
}

/// Has each of `lines` tried, by every way and traced; they are to come out as expected.
fn expect(target: &Target, lines: &[String]) {
    let input = lines.join("\n") + "\n";
    let check = |ended: Ended, how: &str| match ended {
        Ended::Exit(0) => {}
        Ended::Exit(number) => {
            let line = usize::try_from(number)
                .ok()
                .and_then(|at| lines.get(at - 1));
            panic!("{how}: {line:?} came out otherwise ({ended})");
        }
        _ => panic!("{how}: {ended}"),
    };
    for way in WAYS {
        let mut executor = executor(target, way);
        for _ in 0..2 {
            let ended = executor.run(input.as_bytes()).unwrap().ended;
            check(ended, way.name());
        }
    }
    for way in WAYS {
        let traceable = Traceable::forking(target, way).unwrap();
        for random in [false, true] {
            let mut traced = traceable.start(input.as_bytes(), random).unwrap();
            traced.release().unwrap();
            check(traced.wait().unwrap(), &format!("traced, by {way}"));
        }
    }
}

fn lines(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A directory in which everybody may do anything, with a file and a directory in it.
fn canary() -> tempfile::TempDir {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;
    let dir = open_directory();
    std::fs::write(dir.path().join("file"), "sings").unwrap();
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    let all = [dir.path().to_owned(), dir.path().join("folder")];
    for path in &all {
        set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }
    set_permissions(dir.path().join("file"), Permissions::from_mode(0o666)).unwrap();
    dir
}

/// Tries to change everything about a canary.
fn changes(canary: &Path) -> Vec<String> {
    let at = canary.display();
    vec![
        format!("write {at}/new"),
        format!("overwrite {at}/file"),
        format!("truncate {at}/file"),
        format!("rename {at}/file {at}/other"),
        format!("link {at}/file here"),
        format!("mkdir {at}/made"),
        format!("symlink x {at}/link"),
        format!("remove {at}/folder"),
        format!("remove {at}/file"),
    ]
}

#[test]
fn nothing_is_written_outside_of_the_scratch_directory() {
    if !offered() {
        return;
    }
    let program = compile("sandbox", &[]);
    let canary = canary();
    let mut all: Vec<String> = changes(canary.path())
        .into_iter()
        .map(|line| format!("- {line}"))
        .collect();
    all.push(format!("- chmod {}/file", canary.path().display()));
    for place in ["/dev/shm", "/dev", "/proc/self/x"] {
        all.push(format!("- write {place}/ddfuzz-canary"));
    }
    all.extend(lines(&[
        "- overwrite @INPUT",
        "- remove @INPUT",
        "- chmod @INPUT",
        "+ read @INPUT",
        "- overwrite /etc/passwd",
        "+ read /etc/passwd",
    ]));
    let mut target = sandboxed(&program);
    target.args = vec!["@@".into()];
    expect(&target, &all);
    let left = std::fs::read_dir(canary.path()).unwrap().count();
    let file = std::fs::read(canary.path().join("file")).unwrap();
    assert_eq!((left, file), (2, b"sings".to_vec()));
}

#[test]
fn what_is_written_to_a_place_for_temporary_files_goes_to_the_scratch_directory() {
    if !offered() {
        return;
    }
    let program = compile("sandbox", &[]);
    let mut places = vec!["/tmp", "/var/tmp"];
    // Where the program itself stands, nothing is covered.
    places.retain(|place| !program.path.starts_with(place));
    let name = format!("ddfuzz-canary-{}", std::process::id());
    let write = |place: &&str| format!("+ write {place}/{name}");
    let all: Vec<String> = places.iter().map(write).collect();
    expect(&sandboxed(&program), &all);
    for place in ["/tmp", "/var/tmp"] {
        assert!(!Path::new(place).join(&name).exists(), "{place}");
    }
}

#[test]
fn the_same_is_written_without_a_sandbox() {
    if crate::programs::is_sandboxed() {
        return;
    }
    let program = compile("sandbox", &[]);
    for way in WAYS {
        let canary = canary();
        let mut target = sandboxed(&program);
        target.sandbox = Sandbox::Off;
        // Others' files are not linked to (fs.protected_hardlinks).
        let able = changes(canary.path());
        let able = able.iter().filter(|line| !line.starts_with("link"));
        let mut input = String::new();
        for line in able {
            let line = line.replace(&format!("remove {}/file", canary.path().display()), "pair");
            input.push_str(&format!("+ {line}\n"));
        }
        let ended = executor(&target, way).run(input.as_bytes()).unwrap().ended;
        assert_eq!(ended, Ended::Exit(0), "{way}");
        assert!(canary.path().join("made").exists(), "{way}");
    }
}

#[test]
fn its_scratch_directory_and_what_programs_live_on_are_there() {
    let program = compile("sandbox", &[]);
    let all = [
        "+ home",
        "+ write file",
        "+ truncate file",
        "+ mkdir folder",
        "+ rename file folder/file",
        "+ link folder/file link",
        "+ symlink link other",
        "+ chmod folder/file",
        "+ remove folder/file",
        "+ remove folder",
        "+ tmpfile",
        "+ overwrite /dev/null",
        "+ overwrite /dev/zero",
        "+ read /proc/self/maps",
        "+ thread",
        "+ popen",
        "+ pair",
        "- descriptors",
        "- lock",
    ];
    expect(&sandboxed(&program), &lines(&all));
}

#[test]
fn no_packet_leaves_and_nobody_is_reached() {
    if !offered() {
        return;
    }
    let program = compile("sandbox", &[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let place = canary();
    let local = place.path().join("socket");
    let named = UnixListener::bind(&local).unwrap();
    named.set_nonblocking(true).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&local, mode).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut all = vec![
        format!("- connect {port}"),
        format!("- connect-local {}", local.display()),
    ];
    for family in [
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
        libc::AF_PACKET,
    ] {
        for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_RAW] {
            all.push(format!("- socket {family} {kind}"));
        }
    }
    all.extend(lines(&["- interfaces", "+ socket 1", "+ pair"]));
    expect(&sandboxed(&program), &all);
    assert!(listener.accept().is_err() && named.accept().is_err());
}

#[test]
fn other_processes_and_the_systems_own_are_out_of_reach() {
    if !offered() {
        return;
    }
    let program = compile("sandbox", &[]);
    let us = std::process::id();
    let all = [
        format!("- kill {us}"),
        format!("- attach {us}"),
        format!("- read /proc/{us}/status"),
        "- kill 1".to_owned(),
        "- attach 1".to_owned(),
        "- read /proc/1/mem".to_owned(),
        "- setuid".to_owned(),
        "- unshare".to_owned(),
        "- clone-namespace".to_owned(),
        "- clone3".to_owned(),
        "- mount".to_owned(),
        "- io_uring".to_owned(),
        "- bpf".to_owned(),
        "- key".to_owned(),
        "- type".to_owned(),
        "- old-call".to_owned(),
        "- x32".to_owned(),
    ];
    expect(&sandboxed(&program), &all);
}

#[test]
fn a_full_scratch_directory_is_an_error_of_the_target_alone() {
    if !offered() {
        return;
    }
    let program = compile("sandbox", &[]);
    for attempt in ["- fill", "- many-files"] {
        expect(&sandboxed(&program), &lines(&[attempt]));
    }
}

#[test]
fn no_daemon_outlives_its_run() {
    let program = compile("sandbox", &[]);
    for way in WAYS {
        let mut executor = executor(&sandboxed(&program), way);
        for _ in 0..3 {
            let ended = executor.run(b"+ daemon\n").unwrap().ended;
            assert_eq!(ended, Ended::Exit(0), "{way}");
            // The servers of untraced and of traced runs, and the child of each that waits for the
            // next run.
            let most = if way == Way::Command { 0 } else { 4 };
            assert!(running(&program.path) <= most, "{way}");
        }
        drop(executor);
        assert_eq!(running(&program.path), 0, "{way}");
    }
}

#[test]
fn a_program_that_nobody_reaches_is_run_as_nobody_all_the_same() {
    use std::os::unix::fs::PermissionsExt;
    if !nix::unistd::geteuid().is_root() {
        return; // everybody else runs what he can
    }
    let program = compile("sandbox", &[]);
    let closed = program.path.parent().unwrap();
    std::fs::set_permissions(closed, PermissionsExt::from_mode(0o700)).unwrap();
    let lines = lines(&["+ read /etc/passwd", "- read /etc/shadow"]);
    expect(&sandboxed(&program), &lines);
    // A directory cannot be brought to him.
    let mut target = sandboxed(&program);
    target.cwd = Some(closed.to_owned());
    for way in WAYS {
        let refused = start(&target, Some(way), Freshness::Shared);
        let why = refused.err().expect("it is refused").to_string();
        assert!(why.contains("the user nobody cannot access"), "{why}");
        assert!(why.contains(closed.to_str().unwrap()), "{why}");
    }
}
