//! A reader of small tables, in Rust, with planted bugs: one command a line.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::rc::Rc;

/// Says in the file CANARY which bug is about to happen.
#[inline(never)]
fn canary(bug: &str) {
    let Some(path) = std::env::var_os("CANARY") else {
        return;
    };
    if let Ok(mut file) = std::fs::OpenOptions::new().append(true).open(path) {
        let _ = file.write_all(format!("{bug}\n").as_bytes());
    }
}

#[derive(Default)]
struct Table {
    names: BTreeMap<String, u32>,
    rows: Vec<u32>,
    shared: Rc<RefCell<Vec<u32>>>,
}

#[inline(never)]
fn value_of(table: &Table, name: &str) -> u32 {
    if !table.names.contains_key(name) {
        canary("unwrap-of-missing");
    }
    *table.names.get(name).unwrap()
}

#[inline(never)]
fn print_value(table: &Table, name: &str) {
    println!("{name} = {}", value_of(table, name));
}

#[inline(never)]
fn sum_values(table: &Table, names: &str) -> u32 {
    names.split(',').map(|name| value_of(table, name)).sum()
}

#[inline(never)]
fn row(table: &Table, at: usize) -> u32 {
    if at >= table.rows.len() {
        canary("row-out-of-bounds");
    }
    table.rows[at]
}

#[inline(never)]
fn rows(table: &Table, from: usize, to: usize) -> u32 {
    (from..to)
        .map(|at| row(table, at))
        .fold(0, u32::wrapping_add)
}

#[inline(never)]
fn part(text: &str, from: usize, to: usize) -> &str {
    if from > to || to > text.len() {
        canary("part-out-of-range");
    } else if !text.is_char_boundary(from) || !text.is_char_boundary(to) {
        canary("part-cuts-a-letter");
    }
    let bytes = &text.as_bytes()[from..to];
    let _ = bytes.len();
    &text[from..to]
}

#[inline(never)]
fn column(line: &str, which: usize) -> &str {
    let mut from = 0;
    for _ in 0..which {
        from = line
            .get(from..)
            .and_then(|rest| rest.find(','))
            .map_or(line.len() + 1, |at| from + at + 1);
    }
    part(line, from, line.len())
}

#[inline(never)]
fn set_mode(mode: &str) -> u32 {
    match mode {
        "a" => 1,
        "b" => 2,
        other => {
            canary("mode-panics");
            panic!("mode {other} of {} letters is not known", other.len())
        }
    }
}

#[inline(never)]
fn update(table: &Table, by: u32) {
    let shared = Rc::clone(&table.shared);
    let borrowed = table.shared.borrow();
    if borrowed.contains(&by) {
        canary("borrowed-twice");
        shared.borrow_mut().push(by);
    }
    drop(borrowed);
    shared.borrow_mut().push(by);
}

#[inline(never)]
fn area(width: u8, height: u8) -> u8 {
    if u32::from(width) * u32::from(height) > 255 {
        canary("area-overflows");
    }
    width.checked_mul(height).expect("the area fits")
}

#[inline(never)]
fn share(all: u32, parts: u32) -> u32 {
    if parts == 0 {
        canary("shared-by-nobody");
    }
    all / parts
}

#[inline(never)]
fn kind(letter: u8) -> u32 {
    match letter {
        b'x' => 1,
        b'y' => 2,
        _ => {
            canary("kind-unreachable");
            unreachable!("kinds are checked before")
        }
    }
}

#[inline(never)]
fn number(text: &str) -> u32 {
    if text.parse::<u32>().is_err() {
        canary("number-expected");
    }
    let expecting = format!("a number in {text:?}");
    text.parse().expect(&expecting)
}

#[inline(never)]
fn sort_by_weight(words: &str) -> Vec<&str> {
    let mut words: Vec<&str> = words.split(',').collect();
    words.sort_by(|a, b| {
        let weight = |word: &str| {
            if word.is_empty() {
                canary("empty-word-in-sort");
            }
            word.chars().next().unwrap()
        };
        weight(a).cmp(&weight(b))
    });
    words
}

#[inline(never)]
fn initials(words: &str) -> String {
    let initial = |word: &str| {
        if word.len() < 2 {
            canary("short-word-in-map");
        }
        word.as_bytes()[1] as char
    };
    words.split(' ').map(initial).collect()
}

trait Weight: Copy {
    const LEAST: u64;
    fn weight(self) -> u64;
}

impl Weight for u8 {
    const LEAST: u64 = 3;
    fn weight(self) -> u64 {
        self.into()
    }
}

impl Weight for u32 {
    const LEAST: u64 = 300;
    fn weight(self) -> u64 {
        self.into()
    }
}

/// One bug, compiled twice.
#[inline(never)]
fn heavy<T: Weight>(all: &[T]) -> u64 {
    let sum: u64 = all.iter().map(|one| one.weight()).sum();
    if sum < T::LEAST {
        canary("generic-too-light");
    }
    assert!(sum >= T::LEAST, "{sum} is too light");
    sum
}

#[inline(never)]
fn in_a_thread(text: String) {
    let worker = std::thread::spawn(move || {
        if text.contains('!') {
            canary("thread-gives-up");
            panic!("no shouting in {} letters", text.len());
        }
        text.len()
    });
    // As many programs do: what went wrong there is worth the same status.
    if worker.join().is_err() {
        std::process::exit(101);
    }
}

#[inline(never)]
fn nested(text: &[u8], depth: u64) -> u64 {
    let mut path = [0u8; 64];
    path[depth as usize % 64] = text.first().copied().unwrap_or(0);
    if depth == 2_000 {
        canary("nested-too-deep");
    }
    match text.split_first() {
        Some((b'[', rest)) => nested(rest, depth + 1) + u64::from(std::hint::black_box(&path)[3]),
        _ => depth,
    }
}

/// Trusts a length that came from the file.
#[inline(never)]
fn peek(address: usize) -> u8 {
    canary("peek-anywhere");
    // SAFETY: there is none; this is the bug.
    unsafe { std::ptr::read_volatile(address as *const u8) }
}

/// The standard library names itself as the place of this one and of the next.
#[inline(never)]
fn pause(seconds: f64) -> std::time::Duration {
    if seconds < 0.0 {
        canary("negative-pause");
    }
    std::time::Duration::from_secs_f64(seconds) + std::time::Duration::from_millis(1)
}

#[inline(never)]
fn patience(text: &str) -> u64 {
    let seconds: f64 = text.parse().unwrap_or(1.0);
    if seconds < 0.0 {
        canary("negative-patience");
    }
    std::time::Duration::from_secs_f64(seconds * 2.0).as_secs()
}

#[inline(never)]
fn insert(table: &mut Table, at: usize, value: u32) {
    if at > table.rows.len() {
        canary("insert-behind-the-end");
    }
    table.rows.insert(at, value);
}

fn look(table: &mut Table, word: &str, rest: &str, a: usize, b: usize) {
    match word {
        "get" => print_value(table, rest),
        "sum" => println!("{}", sum_values(table, rest)),
        "row" => println!("{}", row(table, a)),
        "rows" => println!("{}", rows(table, a, b)),
        "part" => println!("{}", part(rest, a, b)),
        "column" => println!("{}", column(rest, rest.len() % 7)),
        "mode" => println!("{}", set_mode(rest)),
        "modes" => println!("{}", rest.split(',').map(set_mode).sum::<u32>()),
        "update" => update(table, a as u32),
        "area" => println!("{}", area(a as u8, b as u8)),
        "share" => println!("{}", share(a as u32, b as u32)),
        "each" => println!("{}", share(table.rows.len() as u32, a as u32)),
        _ => compute(table, word, rest, a, b),
    }
}

fn compute(table: &mut Table, word: &str, rest: &str, a: usize, b: usize) {
    match word {
        "kind" => println!("{}", rest.bytes().map(kind).sum::<u32>()),
        "number" => println!("{}", number(rest)),
        "numbers" => println!("{}", rest.split(',').map(number).max().unwrap_or(0)),
        "sort" => println!("{:?}", sort_by_weight(rest)),
        "initials" => println!("{}", initials(rest)),
        "bytes" => println!("{}", heavy(rest.as_bytes())),
        "weight" => println!("{}", heavy(&table.rows)),
        "thread" => in_a_thread(rest.to_owned()),
        "nested" => println!("{}", nested(rest.as_bytes(), 0)),
        "peek" => println!("{}", peek(a)),
        "pause" => println!("{:?}", pause(-(a as f64))),
        "pauses" => println!(
            "{:?}",
            rest.split(',')
                .map(|one| pause(one.parse().unwrap_or(0.0)))
                .max()
        ),
        "patience" => println!("{}", patience(rest)),
        "insert" => insert(table, a, b as u32),
        _ => {}
    }
}

fn main() {
    let mut input = Vec::new();
    std::io::stdin()
        .read_to_end(&mut input)
        .expect("stdin can be read");
    let input = String::from_utf8_lossy(&input);
    let mut table = Table::default();
    for line in input.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut numbers = rest.split(' ').map(|word| word.parse().unwrap_or(0));
        let (a, b) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        match word {
            "name" => {
                table.names.insert(rest.to_owned(), rest.len() as u32);
            }
            "push" => table.rows.push(a as u32),
            _ => look(&mut table, word, rest, a, b),
        }
    }
}
