//! Systems that lack what newer or more open ones have.

use std::process::Command;

use ddfuzz::exec::{Ended, Freshness, Program, Target, Way, start};

use crate::programs::{compile, target};
use crate::stage;

#[test]
fn an_old_and_strict_kernel_is_good_enough() {
    let wrapper = compile("odd_system", &[]);
    let mut command = Command::new(&wrapper.path);
    let refused = |number: i64, errno: i32| format!("{number}:{errno}");
    command
        .arg(refused(libc::SYS_close_range, libc::ENOSYS))
        .arg(refused(libc::SYS_personality, libc::EPERM))
        .arg(refused(libc::SYS_landlock_create_ruleset, libc::ENOSYS))
        .arg("--")
        .arg(std::env::current_exe().unwrap());
    stage::prepare(&mut command, "odd system", &["ways::"], &wrapper.path);
    stage::play(&mut command);
}

/// A call with this value of an argument (from 0) is refused.
fn refused_for(call: i64, argument: u32, value: u32, errno: i32) -> String {
    format!("{call}/{argument}={value}:{errno}")
}

/// The tests of `scene` on a system that refuses these calls.
fn refusing(scene: &str, calls: &[String], tests: &[&str]) {
    let wrapper = compile("odd_system", &[]);
    let mut command = Command::new(&wrapper.path);
    command.args(calls).arg("--");
    command.arg(std::env::current_exe().unwrap());
    stage::prepare(&mut command, scene, tests, &wrapper.path);
    stage::play(&mut command);
}

/// What `doctor` says of the machine by this name.
fn machine(name: &str) -> ddfuzz::exec::machine::Check {
    let checks = ddfuzz::exec::machine::checks();
    checks.into_iter().find(|check| check.name == name).unwrap()
}

/// Linux 5.15: userfaultfd knows no asynchronous mode, and nobody lists written pages.
#[test]
#[cfg(target_arch = "x86_64")]
fn where_the_kernel_does_not_watch_memory_all_of_it_is_put_back() {
    let calls = [
        refused_for(libc::SYS_ioctl, 1, 0xc018_aa3f, libc::EINVAL),
        refused_for(libc::SYS_ioctl, 1, 0xc060_6610, libc::ENOTTY),
    ];
    let tests = [
        "snapshot::whatever_a_run_changes",
        "odd_system::without_a_watch_of_memory",
    ];
    refusing("no watch", &calls, &tests);
}

/// Containers whose seccomp profile forbids userfaultfd, and Linux 6.6, which lists no pages.
#[test]
#[cfg(target_arch = "x86_64")]
fn each_refused_part_of_the_watch_is_said() {
    let tests = ["odd_system::without_a_watch_of_memory"];
    let userfaultfd = [format!("{}:{}", libc::SYS_userfaultfd, libc::EPERM)];
    refusing("no userfaultfd", &userfaultfd, &tests);
    let scan = [refused_for(libc::SYS_ioctl, 1, 0xc060_6610, libc::ENOTTY)];
    refusing("no scan", &scan, &tests);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn without_a_watch_of_memory_programs_are_run_and_doctor_says_why() {
    let scenes = ["no watch", "no userfaultfd", "no scan"];
    let Some(scene) = scenes.iter().find(|scene| stage::plays(scene)) else {
        return;
    };
    let said = machine("memory-watch");
    let missing = match *scene {
        "no scan" => "PAGEMAP_SCAN",
        _ => "userfaultfd",
    };
    assert!(!said.ok && said.detail.contains(missing), "{said:?}");
    assert!(machine("call-watch").ok);
    let program = compile("hostile", &[]);
    let started = start(&target(&program), None, Freshness::Shared).unwrap();
    let mut executor = started.executor;
    assert_eq!(executor.way(), Way::Snapshot, "{}", started.why);
    for _ in 0..50 {
        assert_eq!(executor.run(b"*").unwrap().ended, Ended::Exit(42));
    }
    assert_eq!(executor.refusals(), []);
}

/// Linux 5.10: no process may have its system calls dispatched to itself.
#[test]
#[cfg(target_arch = "x86_64")]
fn where_calls_are_not_watched_programs_are_forked_at_main() {
    let calls = [refused_for(libc::SYS_prctl, 0, 59, libc::EINVAL)];
    let tests = ["odd_system::without_a_watch_of_calls"];
    refusing("no dispatch", &calls, &tests);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn without_a_watch_of_calls_inject_is_chosen_and_doctor_says_why() {
    if !stage::plays("no dispatch") {
        return;
    }
    assert!(!machine("call-watch").ok);
    let program = compile("hostile", &[]);
    let mut started = start(&target(&program), None, Freshness::Shared).unwrap();
    assert_eq!(started.executor.way(), Way::Inject, "{}", started.why);
    assert!(started.why.ends_with("forked at main"), "{}", started.why);
    let ended = started.executor.run(b"crash\n").unwrap().ended;
    assert_eq!(ended, Ended::Signal(libc::SIGSEGV));
    let asked = start(&target(&program), Some(Way::Snapshot), Freshness::Shared);
    let error = asked.err().unwrap().to_string();
    assert!(error.contains("cannot be stopped"), "{error}");
}

/// Containers whose seccomp profile forbids seccomp itself: nobody can stop a run before a call.
#[test]
#[cfg(target_arch = "x86_64")]
fn where_calls_cannot_be_filtered_programs_are_forked_at_their_point() {
    const PR_SET_SECCOMP: u32 = 22;
    let calls = [
        format!("{}:{}", libc::SYS_seccomp, libc::ENOSYS),
        refused_for(libc::SYS_prctl, 0, PR_SET_SECCOMP, libc::EINVAL),
    ];
    let tests = ["odd_system::without_a_filter_of_calls"];
    refusing("no filter", &calls, &tests);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn without_a_filter_of_calls_inject_is_chosen_and_the_reason_is_said() {
    if !stage::plays("no filter") {
        return;
    }
    let program = compile("hostile", &[]);
    let mut started = start(&target(&program), None, Freshness::Shared).unwrap();
    assert_eq!(started.executor.way(), Way::Inject, "{}", started.why);
    let ended = started.executor.run(b"crash\n").unwrap().ended;
    assert_eq!(ended, Ended::Signal(libc::SIGSEGV));
    let asked = start(&target(&program), Some(Way::Snapshot), Freshness::Shared);
    let error = asked.err().unwrap().to_string();
    assert!(error.contains("filter"), "{error}");
}

/// Where the kernel does not tell how many page faults there were, all written pages are listed
/// after each run.
#[test]
#[cfg(target_arch = "x86_64")]
fn where_page_faults_are_not_counted_what_a_run_writes_is_put_back() {
    let calls = [format!("{}:{}", libc::SYS_getrusage, libc::EPERM)];
    let tests = [
        "snapshot::whatever_a_run_changes",
        "snapshot::a_page_that_one_run",
    ];
    refusing("no fault count", &calls, &tests);
}

/// The tests of `scene` on a system that refuses these calls, with all targets in a sandbox.
fn sandboxed_without(scene: &str, calls: &[i64], tests: &[&str]) {
    let wrapper = compile("odd_system", &[]);
    let mut command = Command::new(&wrapper.path);
    for call in calls {
        command.arg(format!("{call}:{}", libc::EPERM));
    }
    command.arg("--").arg(std::env::current_exe().unwrap());
    stage::prepare(&mut command, scene, tests, &wrapper.path);
    stage::sandbox(&mut command);
    stage::play(&mut command);
}

#[test]
fn a_sandbox_holds_what_it_can_where_namespaces_are_refused() {
    let tests = [
        "odd_system::without_namespaces",
        "hostile::no_descendant",
        "hostile::odd_habits",
        "sandbox_ends::a_crash",
        "sandbox::its_scratch",
    ];
    sandboxed_without("no namespaces", &[libc::SYS_unshare], &tests);
}

#[test]
fn without_namespaces_files_and_sockets_are_closed_and_the_disk_is_watched() {
    if !stage::plays("no namespaces") {
        return;
    }
    let supported_parts = ddfuzz::exec::sandbox::supported_parts();
    let refused = supported_parts
        .iter()
        .filter(|one| one.what.ends_with("namespace"));
    assert!(refused.clone().count() >= 5);
    for one in refused {
        let why = one.why_not.as_deref();
        assert_eq!(why, Some("Operation not permitted"), "{}", one.what);
    }
    let program = compile("sandbox", &[]);
    let mut target = target(&program);
    target.limits.cpu = std::time::Duration::from_secs(60);
    for way in [Way::Command, Way::Inject, Way::Snapshot] {
        let started = start(&target, Some(way), Freshness::Shared);
        let mut executor = started.unwrap().executor;
        let mut ended = |input: &[u8]| executor.run(input).unwrap().ended;
        let closed = b"- write /tmp/ddfuzz-canary\n- socket 2\n+ write here\n";
        assert_eq!(ended(closed), Ended::Exit(0), "{way}");
        let full = ended(b"- many-files\n");
        assert_eq!(full, Ended::OutOfMemory, "{way}");
        assert_eq!(ended(b"+ write here\n"), Ended::Exit(0), "{way}");
    }
}

#[test]
fn a_sandbox_holds_what_it_can_where_landlock_and_filters_are_refused() {
    let calls = [libc::SYS_landlock_create_ruleset, libc::SYS_seccomp];
    let tests = [
        "hostile::no_descendant",
        "sandbox_ends::a_crash",
        "sandbox::its_scratch",
    ];
    sandboxed_without("no landlock", &calls, &tests);
}

#[test]
fn a_mount_namespace_is_used_where_its_files_cannot_be_made_read_only() {
    let calls = [libc::SYS_landlock_create_ruleset, libc::SYS_mount_setattr];
    let tests = [
        "odd_system::without_read_only_files",
        "hostile::no_descendant",
        "sandbox::its_scratch",
    ];
    sandboxed_without("no read-only files", &calls, &tests);
}

#[test]
fn without_read_only_files_and_landlock_nothing_is_said_to_keep_files() {
    if !stage::plays("no read-only files") {
        return;
    }
    let supported_parts = ddfuzz::exec::sandbox::supported_parts();
    let works = |what: &str| {
        supported_parts
            .iter()
            .any(|one| one.what == what && one.works)
    };
    assert!(
        !works("read-only files") && !works("landlock"),
        "{supported_parts:?}"
    );
    assert!(!ddfuzz::exec::sandbox::keep_files(&supported_parts));
}

#[test]
fn where_tracing_is_refused_the_targets_own_waits_tell() {
    let wrapper = compile("odd_system", &[]);
    let program = compile("family", &["-pthread"]);
    let mut command = Command::new(&wrapper.path);
    command
        .arg(format!("{}:{}", libc::SYS_ptrace, libc::EPERM))
        .arg("--")
        .arg(std::env::current_exe().unwrap());
    let tests = ["odd_system::without_tracing"];
    stage::prepare(&mut command, "no tracing", &tests, &program.path);
    stage::play(&mut command);
}

#[test]
fn without_tracing_inject_sees_what_the_target_reaps() {
    if !stage::plays("no tracing") {
        return;
    }
    let target = Target::new(Program::Path(stage::given()));
    for (way, seen) in [(Way::Command, false), (Way::Inject, true)] {
        let mut executor = start(&target, Some(way), Freshness::Shared)
            .unwrap()
            .executor;
        let mut ended = |word: &str| executor.run(format!("{word}\n").as_bytes()).unwrap().ended;
        for word in ["fork", "exec", "grandchild", "thread", "spawn", "vfork"] {
            let crash = Ended::Signal(libc::SIGSEGV);
            let expected = if seen { crash } else { Ended::Exit(0) };
            assert_eq!(ended(word), expected, "{word} by {way}");
            assert_eq!(ended("well"), Ended::Exit(0), "{way}");
        }
        for word in ["wait", "wait3", "wait4", "waitid", "waitpid"] {
            let crash = Ended::Signal(libc::SIGABRT);
            let expected = if seen { crash } else { Ended::Exit(0) };
            assert_eq!(ended(word), expected, "{word} by {way}");
        }
        assert_eq!(ended("stops"), Ended::Exit(6), "{way}");
    }
}

#[test]
fn processes_are_swept_away_by_kernels_that_do_not_list_children() {
    let runtime = format!(
        "-I{}/crates/ddfuzz-exec/runtime",
        env!("CARGO_MANIFEST_DIR")
    );
    for files in ["/proc/thread-self/children", "/nonexistent"] {
        let define = format!("-DOUR_CHILDREN=\"{files}\"");
        let program = compile("sweeper", &[&runtime, &define]);
        let status = Command::new(&program.path).status().unwrap();
        assert!(status.success(), "{files}: {status}");
    }
}

#[test]
fn a_strict_umask_changes_nothing() {
    let program = compile("hostile", &[]);
    let mut command = stage::command(
        "umask",
        &["odd_system::under_a_strict_umask"],
        &program.path,
    );
    // SAFETY: umask is async-signal-safe and always succeeds.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, || {
            libc::umask(0o077);
            Ok(())
        });
    }
    stage::play(&mut command);
}

#[test]
fn under_a_strict_umask_targets_are_nobody_and_read_their_files() {
    if !stage::plays("umask") {
        return;
    }
    let mut target = ddfuzz::exec::Target::new(ddfuzz::exec::Program::Path(stage::given()));
    target.args = vec!["@@".into()];
    for way in [Way::Command, Way::Inject, Way::Snapshot] {
        let mut executor = start(&target, Some(way), Freshness::Fresh)
            .unwrap()
            .executor;
        assert_eq!(
            executor.run(b"who\n").unwrap().ended,
            Ended::Exit(0),
            "{way}"
        );
        assert_eq!(
            executor.run(b"crash\n").unwrap().ended,
            Ended::Signal(11),
            "{way}"
        );
    }
    let bundled = ddfuzz::exec::Target::new(ddfuzz::exec::Program::Bundled("ul".to_owned()));
    let mut harness = start(&bundled, None, Freshness::Fresh).unwrap().executor;
    assert_eq!(harness.run(b"x").unwrap().ended, Ended::Exit(0));
}

#[test]
fn too_few_descriptors_are_a_named_error() {
    let program = compile("hostile", &[]);
    let scene = "odd_system::with_few_descriptors";
    let mut command = stage::command("descriptors", &[scene], &program.path);
    // SAFETY: setrlimit is async-signal-safe, and the limit lives as long as the call.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, || {
            let few = libc::rlimit {
                rlim_cur: 100,
                rlim_max: 100,
            };
            libc::setrlimit(libc::RLIMIT_NOFILE, &few);
            Ok(())
        });
    }
    stage::play(&mut command);
}

#[test]
fn with_few_descriptors_the_error_says_so() {
    if !stage::plays("descriptors") {
        return;
    }
    let mut plain = target(&compile("hostile", &[]));
    plain.program = ddfuzz::exec::Program::Path(stage::given());
    let error = start(&plain, None, Freshness::Fresh).err().unwrap();
    assert!(error.to_string().contains("ulimit -n"), "{error}");
}
