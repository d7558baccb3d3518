//! What explanations cost: a test at a point with heaps of 2, 64 and 256 MiB, beside a program that
//! forks itself and does nothing else; reading a state of 1000 vertices; chains of small programs,
//! critical slices, and the bundled targets' historic bugs. `cargo bench --bench explain`.

#[path = "../cost/mod.rs"]
mod cost;
mod programs;
#[path = "../../tests/targets/reproducers.rs"]
mod reproducers;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ddfuzz::exec::{Program, Target};
use ddfuzz::explain::engine::watchdog::TimeLimit;
use ddfuzz::explain::engine::{Engine, Side};
use ddfuzz::explain::plan::Plan;

/// Fills a heap of so many MiB, and makes a list of so many elements; or, given a third number,
/// prints the median time in ms of so many forks that end at once.
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
struct node { long value; struct node *next; };
static int shorter(const void *one, const void *other)
{
    double left = *(const double *)one, right = *(const double *)other;
    return (left > right) - (left < right);
}
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}
static void forks(int count)
{
    double *times = calloc(count, sizeof *times);
    for (int i = 0; i < count; i++) {
        double began = now();
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, 0, 0);
        times[i] = now() - began;
    }
    qsort(times, count, sizeof *times, shorter);
    printf("%f\n", times[count / 2]);
    exit(0);
}
int main(int argc, char **argv)
{
    struct node *list = 0;
    long filled = 0;
    for (int i = 0; i < atoi(argv[1]); i++) {
        char *block = malloc(1 << 20);
        memset(block, 1, 1 << 20);
        filled += block[17];
    }
    if (argc > 3)
        forks(atoi(argv[3]));
    for (int i = 0; i < atoi(argv[2]); i++) {
        struct node *node = malloc(sizeof *node);
        node->value = i;
        node->next = list;
        list = node;
    }
    printf("%ld\n", filled);
    return 0;
}
"#;

/// Number of tests of which the median is shown.
const TESTS: usize = 200;

fn compiled(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("heap.c"), folder.join("heap"));
    std::fs::write(&source, SOURCE).expect("the source is written");
    let flags = ["-g", "-O0", "-o"];
    let done = Command::new("cc")
        .args(flags)
        .arg(&program)
        .arg(&source)
        .status();
    assert!(
        done.is_ok_and(|status| status.success()),
        "a C compiler is needed"
    );
    program
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Median time in ms of a fork of the program with such a heap, which ends at once.
fn forked(program: &Path, mebibytes: u32) -> f64 {
    let args = [mebibytes.to_string(), "0".to_owned(), TESTS.to_string()];
    let output = Command::new(program).args(args).output();
    let output = output.expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().expect("a time")
}

/// Median time of a test, and of reading the state, with its number of vertices.
fn measured(program: &Path, mebibytes: u32, elements: u32) -> (Duration, Duration, usize) {
    let mut target = Target::new(Program::Path(program.to_owned()));
    target.args = vec![mebibytes.to_string().into(), elements.to_string().into()];
    let inputs = [Vec::new(), Vec::new()];
    let time = Duration::from_secs(600);
    let mut engine = Engine::new([&target, &target], inputs, time).expect("it starts");
    let trace = engine.trace(Side::Passing).expect("it runs");
    // The statement that prints: everything is allocated.
    let point = trace.points[trace.points.len() - 3];
    let mut stand = engine
        .stand(Side::Passing, point, TimeLimit::of(time))
        .expect("it gets there");
    let mut tests = Vec::new();
    for _ in 0..TESTS {
        let began = Instant::now();
        engine
            .go_on(&mut stand, &Plan::default())
            .expect("it runs on");
        tests.push(began.elapsed());
    }
    let mut reads = Vec::new();
    let mut vertices = 0;
    for _ in 0..20 {
        let began = Instant::now();
        vertices = engine
            .capture_at(&mut stand)
            .expect("it is read")
            .graph
            .vertices();
        reads.push(began.elapsed());
    }
    (median(tests), median(reads), vertices)
}

/// Whether a goal is reached, in a word.
fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let allow = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), allow).expect("everybody may run the program");
    let program = compiled(folder.path());
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    for (mebibytes, goal) in [(2, 0.4), (64, 2.0), (256, 7.0)] {
        let (test, ..) = measured(&program, mebibytes, 10);
        println!(
            "a test at a point, heap of {mebibytes:3} MiB: {:.2} ms (goal {goal} ms: {}), {:.2} times a \
             bare fork",
            ms(test),
            verdict(ms(test) <= goal),
            ms(test) / forked(&program, mebibytes)
        );
    }
    let (_, read, vertices) = measured(&program, 1, 330);
    println!(
        "reading a state of {vertices} vertices: {:.2} ms (goal 5 ms for 1000: {})",
        ms(read),
        verdict(ms(read) <= 5.0)
    );
    programs::small(folder.path());
    programs::slices(folder.path());
    programs::bundled(folder.path());
}
