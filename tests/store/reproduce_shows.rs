//! The reproducer script of what is no plain crash: it ends by itself, and shows what was found.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ddfuzz::exec::{Limits, Program, Target};
use ddfuzz::store::Kind;

use crate::reproduce::{filed, filed_as, run, sh};

/// A C program, compiled with these flags.
fn compiled(folder: &Path, source: &str, flags: &[&str]) -> Target {
    let (text, program) = (folder.join("source.c"), folder.join("program"));
    std::fs::write(&text, source).unwrap();
    let mut compiler = Command::new("gcc");
    compiler.args(["-w", "-O1"]).args(flags);
    let status = compiler.arg(&text).arg("-o").arg(&program).status();
    assert!(status.unwrap().success());
    Target::new(Program::Path(program))
}

fn text(script: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(script).unwrap()).into_owned()
}

#[test]
fn a_sleeper_is_ended_by_its_time() {
    let fixture = filed_as(Kind::Hang, "hang");
    let limits = Limits {
        cpu: Duration::from_millis(10),
        wall: Duration::from_millis(10),
        ..Limits::default()
    };
    let mut target = Target {
        limits,
        ..sh("exec sleep 1000")
    };
    let script = fixture.script(&target);
    assert_eq!(run(&script).status.code(), Some(124));
    assert!(text(&script).contains("# It hangs: "));
    // Without PATH among the variables, too.
    target.env_only = true;
    target.args[1] = "exec /bin/sleep 1000".into();
    assert_eq!(run(&fixture.script(&target)).status.code(), Some(124));
}

#[test]
fn memory_is_refused_to_what_eats_it() {
    let fixture = filed_as(Kind::Oom, "oom");
    let source = "#include <stdlib.h>\n#include <string.h>\nint main(void) { for (;;) { \
                  char *block = malloc(1 << 20); if (!block) abort(); memset(block, 1, 1 << 20); } }";
    let folder = tempfile::tempdir().unwrap();
    let mut target = compiled(folder.path(), source, &[]);
    target.limits.memory = 64 << 20;
    let script = fixture.script(&target);
    assert_eq!(run(&script).status.code(), Some(128 + libc::SIGABRT));
    assert!(text(&script).contains("# It runs out of memory: "));
}

#[test]
fn memory_is_refused_to_what_only_undefinedbehaviorsanitizer_checks() {
    let source = "#include <stdlib.h>\n#include <string.h>\nint main(int argc, char **argv) { \
                  for (;;) { char *block = malloc(argc << 20); if (!block) abort(); \
                  memset(block, argv[0][0], argc << 20); } }";
    let folder = tempfile::tempdir().unwrap();
    let mut target = compiled(folder.path(), source, &["-fsanitize=undefined"]);
    target.limits.memory = 64 << 20;
    let script = filed_as(Kind::Oom, "oom").script_kept(&target);
    assert_eq!(text(&script.1).matches("ulimit -d 65536\n").count(), 1);
    assert_eq!(run(&script.1).status.code(), Some(128 + libc::SIGABRT));
}

#[test]
fn each_sanitizer_that_reports_is_told_to_abort() {
    for class in ["asan", "hwasan", "lsan", "msan", "tsan", "ubsan"] {
        let fixture = filed_as(Kind::Crash, &format!("{class}:kind"));
        let text = text(&fixture.script(&sh("exit 0")));
        assert!(
            text.contains("# A sanitizer reports it, and aborts: 134 "),
            "{text}"
        );
        let leaks = u8::from(class == "lsan");
        let options = format!(
            "abort_on_error=1:halt_on_error=1:symbolize=0:print_stacktrace=1:\
                               verify_asan_link_order=0:handle_abort=1:detect_leaks={leaks}:"
        );
        assert!(text.contains(&options), "{text}");
        for name in ["ASAN", "HWASAN", "LSAN", "MSAN", "TSAN", "UBSAN"] {
            assert!(text.contains(&format!(" {name}_OPTIONS=")), "{text}");
        }
    }
}

const SANITIZED: &str = "#include <stdlib.h>\n#include <unistd.h>\nstatic char *volatile last;\n\
    int main(void) { char c = 0; read(0, &c, 1); last = malloc(7); last[c == 'o' ? 7 : 0] = 1; \
    last = NULL; return 0; }";

#[test]
fn a_sanitizer_reports_and_aborts_as_in_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut target = compiled(folder.path(), SANITIZED, &["-fsanitize=address"]);
    for only in [false, true] {
        target.env_only = only;
        let script = filed_as(Kind::Crash, "asan:heap-buffer-overflow").script_kept(&target);
        let output = run(&script.1);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(128 + libc::SIGABRT), "{said}");
        assert!(said.contains("heap-buffer-overflow"), "{said}");
    }
}

#[test]
fn what_leaks_is_asked_for_leaks_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut target = compiled(folder.path(), SANITIZED, &["-fsanitize=address"]);
    target.env = vec![("ASAN_OPTIONS".into(), "verbosity=0".into())];
    for (class, status) in [("lsan:leak", 128 + libc::SIGABRT), ("segv", 0)] {
        // The input is no 'o'.
        let (mut fixture, _) = filed_as(Kind::Crash, class).script_kept(&target);
        fixture.minimize(b"x");
        let output = run(&fixture.script(&target));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{class}: {said}");
    }
}

#[test]
fn the_status_that_a_panic_ends_with_is_named() {
    let fixture = filed_as(Kind::Crash, "rustpanic");
    let script = fixture.script(&sh("exit 101"));
    assert_eq!(run(&script).status.code(), Some(101));
    assert!(text(&script).contains("# It panics: 101 "));
    assert_eq!(
        script.metadata().unwrap().permissions().mode() & 0o100,
        0o100
    );
    let plain = filed(Kind::Crash);
    assert!(!text(&plain.script(&sh("exit 101"))).contains("# It "));
}
