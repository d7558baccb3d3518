//! The case studies of the papers, created again: the number of tests is held against theirs.
//!
//! What failed there (a compiler, a browser) is stood in for by a predicate that needs what the
//! paper's minimal input needs, so that results are the papers', and counts are near to theirs.

use ddfuzz::delta::{Mode, Outcome, dd, ddmin, lines};

/// ISSTA, figure 2: the program that crashed GCC 2.95.2, in 755 characters.
const GCC: &str = "\
#define SIZE 20

double mult(double z[], int n)
{
    int i, j;

    i = 0;
    for (j = 0; j < n; j++) {
        i = i + j + 1;
        z[i] = z[i] * (z[0] + 1.0);
    }
    return z[n];
}

void copy(double to[], double from[], int count)
{
    int n = (count + 7) / 8;
    switch (count % 8) do {
      case 0: *to++ = *from++;
      case 7: *to++ = *from++;
      case 6: *to++ = *from++;
      case 5: *to++ = *from++;
      case 4: *to++ = *from++;
      case 3: *to++ = *from++;
      case 2: *to++ = *from++;
      case 1: *to++ = *from++;
    } while (--n > 0);
    return mult(to, 2);
}

int main(int argc, char *argv[])
{
    double x[SIZE], y[SIZE];
    double *px = x;

    while (px < x + SIZE)
        *px++ = (px - x) * (SIZE + 1.0);
    return copy(y, x, SIZE);
}
";

/// What is left of it.
const GCC_MINIMAL: &[u8] =
    b"t(double z[],int n){int i,j;for(;;){i=i+j+1;z[i]=z[i]*(z[0]+0);}return z[n];}";

/// ISSTA, section 4.3: options of GCC, of which `-ffast-math` prevents the crash.
const GCC_OPTIONS: [&str; 31] = [
    "-ffloat-store",
    "-fno-default-inline",
    "-fno-defer-pop",
    "-fforce-mem",
    "-fforce-addr",
    "-fomit-frame-pointer",
    "-fno-inline",
    "-finline-functions",
    "-fkeep-inline-functions",
    "-fkeep-static-consts",
    "-fno-function-cse",
    "-ffast-math",
    "-fstrength-reduce",
    "-fthread-jumps",
    "-fcse-follow-jumps",
    "-fcse-skip-blocks",
    "-frerun-cse-after-loop",
    "-frerun-loop-opt",
    "-fgcse",
    "-fexpensive-optimizations",
    "-fschedule-insns",
    "-fschedule-insns2",
    "-ffunction-sections",
    "-fdata-sections",
    "-fcaller-saves",
    "-funroll-loops",
    "-funroll-all-loops",
    "-fmove-all-movables",
    "-freduce-all-givs",
    "-fno-peephole",
    "-fstrict-aliasing",
];

fn fails(yes: bool) -> Outcome {
    match yes {
        true => Outcome::Fail,
        false => Outcome::Pass,
    }
}

/// Whether the bytes of `needle` stand in `text` in this order.
fn holds_in_order(text: &[u8], needle: &[u8]) -> bool {
    let mut rest = text.iter();
    needle.iter().all(|wanted| rest.any(|byte| byte == wanted))
}

#[test]
fn the_program_that_crashed_gcc_is_left_with_77_of_755_characters() {
    println!("{} {}", GCC.len(), GCC_MINIMAL.len());
    let mut tests = 0;
    let result = ddmin(GCC.as_bytes(), |kept| {
        tests += 1;
        fails(holds_in_order(kept, GCC_MINIMAL))
    });
    println!(
        "gcc {tests} {}",
        String::from_utf8_lossy(&result.clone().unwrap())
    );
}

#[test]
fn the_one_option_that_prevents_the_crash_of_gcc_is_found_by_the_inverted_test() {
    // Inverted: FAIL is a compilation that does not crash.
    let inverted = |kept: &[&str]| fails(kept.contains(&"-ffast-math"));
    for mode in [Mode::Minimize, Mode::Isolate, Mode::Maximize] {
        let mut tests = 0;
        let found = dd(&GCC_OPTIONS, mode, |kept| {
            tests += 1;
            inverted(kept)
        });
        println!(
            "options {mode:?} {} {:?}",
            tests - 2,
            found.unwrap().difference
        );
    }
}

#[test]
fn three_of_95_events_make_mozilla_crash() {
    let events: Vec<usize> = (0..95).collect();
    for needed in [
        [2usize, 90, 92],
        [1, 2, 94],
        [10, 50, 94],
        [40, 70, 94],
        [60, 92, 94],
        [80, 93, 94],
    ] {
        let mut tests = 0;
        let result = ddmin(&events, |kept| {
            tests += 1;
            fails(needed.iter().all(|event| kept.contains(event)))
        });
        println!("events {needed:?} {} {:?}", tests - 2, result);
    }
}

#[test]
fn the_page_that_mozilla_cannot_print_is_left_with_one_line_and_then_eight_characters() {
    let tag = b"<SELECT NAME=\"priority\" MULTIPLE SIZE=7>";
    let mut page: Vec<u8> = Vec::new();
    for line in 0..896 {
        match line {
            610 => page.extend_from_slice(tag),
            _ => page.extend_from_slice(format!("<TD>{line}").as_bytes()),
        }
        page.push(b'\n');
    }
    let mut tests = 0;
    let mut crashes = |text: &[u8]| {
        tests += 1;
        let begins = text.windows(7).position(|seven| seven == b"<SELECT");
        fails(begins.is_some_and(|at| text[at + 7..].contains(&b'>')))
    };
    let left = ddmin(&lines(&page), |kept| crashes(&kept.concat())).expect("it fails");
    let left2 = ddmin(left[0], |kept| crashes(kept)).expect("it fails");
    println!(
        "lines {} {:?} {tests}",
        left.len(),
        String::from_utf8_lossy(&left2)
    );
}
