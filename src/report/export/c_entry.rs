//! A C program that calls the entry function of a harness on the input.

use super::c_literal::elements;
use super::fails::Fails;
use super::{Reproducer, c_program};

/// Whose entry function a harness has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryFunction {
    /// `target_main` of ddfuzz's own targets, which returns an exit status.
    TargetMain,
    /// `LLVMFuzzerTestOneInput`, and `LLVMFuzzerInitialize` where there is one.
    LibFuzzer,
}

const INCLUDES: &str = "#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
";

const LIBFUZZER: &str = "int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

static int call(const uint8_t *data, size_t size, int argc, char **argv) {
    if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&argc, &argv);
    LLVMFuzzerTestOneInput(data, size);
    return 0;
}
";

const TARGET_MAIN: &str = "int target_main(const uint8_t *data, size_t size);

static int call(const uint8_t *data, size_t size, int argc, char **argv) {
    (void)argc;
    (void)argv;
    return target_main(data, size);
}
";

const MAIN: &str = "
// A copy of exactly its size, so that what reads beyond it can be noticed.
static int child(int argc, char **argv) {
    uint8_t *copy = malloc(INPUT_SIZE ? INPUT_SIZE : 1);
    if (!copy) return 0;
    memcpy(copy, input, INPUT_SIZE);
    alarm(SECONDS); // SIGALRM ends what hangs
    limit_memory();
    int status = call(copy, INPUT_SIZE, argc, argv);
    free(copy);
    return status;
}

int main(int argc, char **argv) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) return perror(\"fork\"), 2;
    if (pid == 0) exit(child(argc, argv));
    int status;
    if (waitpid(pid, &status, 0) != pid) return perror(\"waitpid\"), 2;
    return judge(status);
}
";

/// A program to be linked with the harness (not with libFuzzer, which has a `main`): it ends with
/// 0 where the entry returns, with 1 where it still fails, with 2 where it could not be called.
pub fn c_entry_test(of: &Reproducer, function: EntryFunction) -> String {
    let function = match function {
        EntryFunction::LibFuzzer => LIBFUZZER,
        EntryFunction::TargetMain => TARGET_MAIN,
    };
    format!(
        "// {}\n\
         // Ends with 0 where that is fixed, with 1 where it still fails.\n\
         //   cc -g -o test THIS_FILE.c harness.c && ./test\n\
         // With the sanitizers of the harness, without libFuzzer; of a harness in C++:\n\
         //   cc -g -c THIS_FILE.c && c++ -g -o test THIS_FILE.o harness.cc && ./test\n\
         {INCLUDES}\n\
         static const uint8_t input[] = {{\n{}}};\n\
         enum {{ INPUT_SIZE = {}, SECONDS = {} }};\n\n\
         {function}\n{}{}{MAIN}",
        of.title(),
        elements(&of.input),
        of.input.len(),
        of.patience().as_secs().max(1),
        limit_memory(of),
        c_program::judge(&Fails::of(of)),
    )
}

/// The function that limits memory, where that is what the group is about. The shadow of a
/// sanitizer is larger than any limit.
fn limit_memory(of: &Reproducer) -> String {
    let Some(kib) = of.memory() else {
        return "static void limit_memory(void) {}\n\n".to_owned();
    };
    format!(
        "#ifndef __has_feature\n#define __has_feature(name) 0\n#endif\n\
         static void limit_memory(void) {{\n\
         #if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer) && \\\n    \
             !__has_feature(memory_sanitizer) && !__has_feature(thread_sanitizer)\n    \
             struct rlimit limit = {{{kib}UL << 10, {kib}UL << 10}};\n    \
             setrlimit(RLIMIT_AS, &limit);\n\
         #endif\n}}\n\n"
    )
}
