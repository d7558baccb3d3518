//! The case studies of the papers, created again: the number of tests is held against theirs.
//!
//! What failed there (a compiler, a browser) is stood in for by a predicate that needs what the
//! paper's minimal input needs, so that results are the papers'; counts depend on what else fails.

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

/// Whether the bytes of `needle` stand in `text` in this order.
fn holds_in_order(text: &[u8], needle: &[u8]) -> bool {
    let mut rest = text.iter();
    needle.iter().all(|wanted| rest.any(|byte| byte == wanted))
}

/// A test that is counted.
struct Counted<F> {
    fails: F,
    tests: usize,
}

impl<F> Counted<F> {
    fn new(fails: F) -> Counted<F> {
        Counted { fails, tests: 0 }
    }

    fn test<T: ?Sized>(&mut self, kept: &T) -> Outcome
    where
        F: FnMut(&T) -> bool,
    {
        self.tests += 1;
        match (self.fails)(kept) {
            true => Outcome::Fail,
            false => Outcome::Pass,
        }
    }

    /// Tests, those of the axiom left out, as the papers do.
    fn count(&self) -> usize {
        self.tests - 2
    }
}

#[test]
fn the_program_that_crashed_gcc_is_left_with_77_of_755_characters() {
    assert_eq!((GCC.len(), GCC_MINIMAL.len()), (755, 77));
    let crashes = |kept: &[u8]| holds_in_order(kept, GCC_MINIMAL);
    let mut by_ddmin = Counted::new(crashes);
    let left = ddmin(GCC.as_bytes(), |kept| by_ddmin.test(kept));
    assert_eq!(left.as_deref(), Ok(GCC_MINIMAL));
    assert!(by_ddmin.count() <= 755 * 755 + 3 * 755);
    // The paper's 731 tests were those of a compiler. Of this predicate `ddmin` needs more, because
    // each of its rounds begins at the first part, and `dd` fewer, which goes on in a ring.
    let mut by_dd = Counted::new(crashes);
    let left = dd(GCC.as_bytes(), Mode::Minimize, |kept| by_dd.test(kept)).expect("it crashes");
    assert_eq!(left.fail, GCC_MINIMAL);
    assert!(by_dd.count() <= 731, "{} tests", by_dd.count());
}

#[test]
fn the_one_option_that_prevents_the_crash_of_gcc_is_found_by_the_inverted_test() {
    for mode in [Mode::Minimize, Mode::Isolate, Mode::Maximize] {
        // Inverted: FAIL is a compilation that does not crash.
        let mut inverted = Counted::new(|kept: &[&str]| kept.contains(&"-ffast-math"));
        let found = dd(&GCC_OPTIONS, mode, |kept| inverted.test(kept)).expect("one option");
        assert_eq!(found.difference, ["-ffast-math"]);
        // The paper counts 7; each of five rounds takes two tests at most.
        assert_eq!(inverted.count(), 8);
    }
}

#[test]
fn three_of_95_events_make_mozilla_crash() {
    let events: Vec<usize> = (0..95).collect();
    // Which of them is not printed: any three take about as many tests as the paper's 82.
    for needed in [[2, 90, 92], [10, 50, 94], [40, 70, 94], [80, 93, 94]] {
        let mut crashes =
            Counted::new(|kept: &[usize]| needed.iter().all(|event| kept.contains(event)));
        assert_eq!(
            ddmin(&events, |kept| crashes.test(kept)),
            Ok(needed.to_vec())
        );
        assert!(crashes.count() <= 82, "{} tests", crashes.count());
    }
}

#[test]
fn the_page_that_mozilla_cannot_print_is_left_with_one_line_and_then_eight_characters() {
    let mut page: Vec<u8> = Vec::new();
    for line in 0..896 {
        match line {
            610 => page.extend_from_slice(b"<SELECT NAME=\"priority\" MULTIPLE SIZE=7>"),
            _ => page.extend_from_slice(format!("<TD>{line}").as_bytes()),
        }
        page.push(b'\n');
    }
    let crashes = |text: &[u8]| {
        let begins = text.windows(7).position(|seven| seven == b"<SELECT");
        begins.is_some_and(|at| text[at + 7..].contains(&b'>'))
    };
    let mut of_lines = Counted::new(crashes);
    let left = ddmin(&lines(&page), |kept| of_lines.test(&*kept.concat())).expect("it crashes");
    assert_eq!(left.len(), 1);
    assert!(of_lines.count() <= 57, "{} tests", of_lines.count());
    let mut of_letters = Counted::new(crashes);
    let left = ddmin(left[0], |kept| of_letters.test(kept));
    assert_eq!(left.as_deref(), Ok(b"<SELECT>".as_slice()));
    assert!(of_letters.count() <= 90, "{} tests", of_letters.count());
}
