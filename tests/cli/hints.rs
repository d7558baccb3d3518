//! What a run tells besides its outcome, as `ddfuzz min` uses it.

use crate::ddfuzz::Desk;

fn hash_of(payload: &[u8]) -> u32 {
    payload.iter().fold(77, |hash: u32, byte| {
        hash.rotate_left(5).wrapping_mul(31) ^ u32::from(*byte)
    })
}

/// A frame of some hundred bytes, of which four matter.
fn frame() -> Vec<u8> {
    let mut payload: Vec<u8> = (0..600u32)
        .map(|at| (at * at / 3 % 120) as u8 + 130)
        .collect();
    for (at, byte) in [(71, b'B'), (288, b'U'), (290, b'G'), (533, b'!')] {
        payload[at] = byte;
    }
    let mut frame = (payload.len() as u16).to_le_bytes().to_vec();
    frame.extend(hash_of(&payload).to_le_bytes());
    frame.extend(payload);
    frame
}

/// A line of the log holds comparisons where its run was observed.
fn observed(log: &[u8]) -> usize {
    let lines = log.split(|byte| *byte == b'\n');
    let told = lines.filter(|line| line.windows(14).any(|part| part == b"\"comparisons\":"));
    told.count()
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_hash_that_nobody_knows_is_repaired_by_what_an_unmodified_program_compares() {
    let desk = Desk::new();
    desk.compile("tests/cli/programs/protected.c", "protected");
    desk.write("crash", frame());
    let words = "min crash --json -- ./protected";
    let record = desk.call(words).exits(0).json();
    assert_eq!(record["claim"], "1-minimal");
    assert_eq!(record["size_after"], 10);
    assert!(
        record["tests"]["executed"].as_u64() <= Some(190),
        "{record}"
    );
    let minimized = desk.read("crash.min");
    assert_eq!(&minimized[6..], b"BUG!");
    let log = desk.read("crash.min.log.jsonl");
    assert!(observed(&log) > 0);
    desk.call("log verify crash.min.log.jsonl").exits(0);
    // What was observed stands in the log: going on asks for nothing again.
    let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    desk.write("crash.min.log.jsonl", lines[..lines.len() / 2].concat());
    let resumed = desk.call("min crash --json --resume -- ./protected");
    assert_eq!(resumed.exits(0).json()["size_after"], 10);
    assert_eq!(desk.read("crash.min"), minimized);
    assert_eq!(observed(&desk.read("crash.min.log.jsonl")), observed(&log));
}

#[test]
fn what_a_program_did_not_read_is_cut_in_one_test() {
    let desk = Desk::new();
    // It reads one block, and dies of what stands in it.
    desk.write(
        "early.c",
        "#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n\
         int main(void) { static char block[4096]; ssize_t size = read(0, block, sizeof block);\n\
         if (size > 0 && memchr(block, 'q', (size_t)size)) abort();\n return 0; }\n",
    );
    desk.compile(&desk.file("early.c").display().to_string(), "early");
    let mut crash = vec![b'.'; 50_000];
    crash[2500] = b'q';
    desk.write("crash", crash);
    desk.call("min crash -- ./early").exits(0);
    assert_eq!(desk.read("crash.min"), b"q");
    let log = String::from_utf8(desk.read("crash.min.log.jsonl")).unwrap();
    assert!(log.contains("\"read\":4096"), "{log}");
    assert!(log.contains("\"rule\":\"unread\",\"size\":4096"), "{log}");
}

/// Lines of a shell that take longer than the program that they execute: some 0.1 s.
const SLOW: &str = "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done";

#[test]
fn a_wrapper_that_takes_most_of_a_run_is_named_once() {
    let desk = Desk::new();
    let slow = format!("{SLOW}\nSHIMMED=1 exec /bin/sh \"$@\"");
    desk.script("shim", &slow);
    desk.script("crash.sh", "grep -q x \"$1\" && kill -SEGV $$; exit 0");
    desk.write("in", "a text with an x in it\n");
    let slow = "min in --force --jobs 1 --cwd . --exec command -- ./shim crash.sh @@";
    let said = desk.call(slow).exits(0).err;
    let note = said.lines().filter(|line| line.starts_with("note: "));
    let [note] = note.collect::<Vec<_>>()[..] else {
        panic!("{said}");
    };
    let is_told = note.contains("of the ")
        && note.contains("of CPU time of a run pass before ")
        && note.contains("shim executes /")
        && note.ends_with(
            "in its place (the environment then lacks what the wrapper does to SHIMMED)",
        );
    assert!(is_told, "{note}");
    // What is advised is faster, and nothing is advised then.
    let said = desk.call("min in --force --jobs 1 --cwd . --exec command -- /bin/sh crash.sh @@");
    assert!(!said.exits(0).err.contains("note: "));
}

#[test]
fn an_interpreter_that_is_a_slow_script_is_named_for_a_test() {
    let desk = Desk::new();
    let shim = desk.script("shim", &format!("{SLOW}\nexec /bin/sh \"$@\""));
    let test = desk.script("test.sh", "grep -q x \"$1\"");
    let lines = String::from_utf8(desk.read("test.sh")).unwrap();
    let shimmed = lines.replacen("/bin/sh", &shim.display().to_string(), 1);
    std::fs::write(&test, shimmed).unwrap();
    desk.write("in", "x!\n");
    let said = desk
        .call("min in --force --jobs 1 --test ./test.sh")
        .exits(0)
        .err;
    let note = said.lines().find(|line| line.starts_with("note: "));
    let note = note.unwrap_or_else(|| panic!("{said}"));
    assert!(note.contains("; to be faster, begin it with #!/"), "{note}");
    std::fs::write(&test, lines).unwrap();
    let said = desk.call("min in --force --jobs 1 --test ./test.sh");
    assert!(!said.exits(0).err.contains("note: "));
}
