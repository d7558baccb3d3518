//! The values of variables are those that gdb shows, for both compilers and several levels of
//! optimization. gdb is a peer in tests only.
#![cfg(target_arch = "x86_64")]

mod explained;
#[path = "../../../tests/needs/mod.rs"]
mod needs;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ddfuzz_explain::engine::watchdog::TimeLimit;
use ddfuzz_explain::engine::{Engine, Point, Side};
use ddfuzz_explain::graph::{Graph, LeafKind, Object, Origin};
use ddfuzz_explain::types::{Encoding, Shape, Types, integer};
use explained::{program_by, target};

/// A value that is compared: the expression, and the value as a number.
#[derive(Debug)]
struct Value {
    expression: String,
    /// The function in whose frame, which may be inlined, gdb knows the expression.
    function: Option<String>,
    number: Number,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Integer(i128),
    Float(f64),
}

/// The values of the innermost frame's variables and of all global ones.
fn values(types: &Types, graph: &Graph) -> Vec<Value> {
    let innermost = graph
        .objects
        .iter()
        .filter_map(|object| match object.origin {
            Origin::Local { frame, .. } => Some(frame),
            _ => None,
        });
    let innermost = innermost.max().unwrap_or(0);
    let mut names: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for object in &graph.objects {
        let is_shown = match object.origin {
            Origin::Local { frame, .. } => frame == innermost,
            Origin::Global(_) => true,
            _ => false,
        };
        // A variable that another one hides cannot be named; nor can what the C library declares.
        if !is_shown || names.contains(&object.name.as_str()) || object.name.starts_with("std") {
            continue;
        }
        names.push(&object.name);
        found.extend(leaves(types, object));
    }
    found
}

fn leaves(types: &Types, object: &Object) -> Vec<Value> {
    let mut found = Vec::new();
    let function = match object.origin {
        Origin::Local { .. } => Some(object.function.clone()),
        _ => None,
    };
    for leaf in &object.leaves {
        let bytes = object.value(leaf);
        let described = types.get(leaf.of);
        let expression = match (object.origin, object.function.as_str()) {
            (Origin::Global(_), function) if !function.is_empty() => {
                format!("{function}::{}{}", object.name, leaf.path)
            }
            _ => format!("{}{}", object.name, leaf.path),
        };
        let number = match (&leaf.kind, &described.shape) {
            (LeafKind::Bytes, _) if leaf.path.contains('{') || leaf.of == Types::BYTE => continue,
            (LeafKind::Bytes, Shape::Base(_)) => {
                for (index, byte) in bytes.iter().enumerate() {
                    let is_signed = described.name == "char";
                    let number = if is_signed {
                        i128::from(*byte as i8)
                    } else {
                        i128::from(*byte)
                    };
                    found.push(Value {
                        expression: format!("{expression}[{index}]"),
                        function: function.clone(),
                        number: Number::Integer(number),
                    });
                }
                continue;
            }
            (LeafKind::Pointer(_), _) => Number::Integer(integer(bytes, None, false)),
            (_, Shape::Base(Encoding::Float)) => {
                let shown = types.show(leaf.of, bytes, None);
                Number::Float(shown.parse().unwrap())
            }
            (_, Shape::Base(encoding)) => {
                let is_char = described.name == "char" || described.name == "signed char";
                let is_signed = *encoding == Encoding::Signed || is_char;
                Number::Integer(integer(bytes, leaf.bits, is_signed))
            }
            _ => Number::Integer(integer(bytes, leaf.bits, true)),
        };
        found.push(Value {
            expression,
            function: function.clone(),
            number,
        });
    }
    found
}

/// Selects the frame of a function, which may be inlined: `frame function` takes the frame that
/// inlined functions share.
const SELECT: &str = "\
python
def select(name):
    frame = gdb.newest_frame()
    while frame.function().name != name:
        frame = frame.older()
    frame.select()
end
";

/// Asks gdb for values at points of a program.
fn gdb(program: &Path, call: &Call, asked: &[(Point, Vec<Value>)]) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input");
    std::fs::write(&input, call.input).unwrap();
    let start = format!("starti {} < {}", call.args.join(" "), input.display());
    let mut script =
        String::from("set confirm off\nset width 0\nset language c\nset debuginfod enabled off\n");
    script += "set disable-randomization on\nset print address on\nset print symbol off\n";
    script += SELECT;
    let _ = writeln!(script, "{start}");
    for (point, values) in asked {
        let _ = writeln!(
            script,
            "tbreak *{:#x}\nignore $bpnum {}\ncontinue",
            point.pc,
            point.nth - 1
        );
        let mut selected = None;
        for value in values {
            if value.function.is_some() && selected != value.function.as_ref() {
                selected = value.function.as_ref();
                let _ = writeln!(
                    script,
                    "python select('{}')",
                    value.function.as_deref().unwrap()
                );
            }
            // A float as it is, everything else as an integer.
            let cast = match value.number {
                Number::Integer(_) => format!("(long)({})", value.expression),
                Number::Float(_) => format!("(double)({})", value.expression),
            };
            let _ = writeln!(script, "echo =\\n\noutput {cast}\necho \\n");
        }
        // The next point is counted from the beginning.
        let _ = writeln!(script, "echo =END\\n\nkill\n{start}");
    }
    let file = folder.path().join("script");
    std::fs::write(&file, script).unwrap();
    let mut command = Command::new("gdb");
    command
        .args(["-nx", "-batch", "-x"])
        .arg(&file)
        .arg(program);
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        text.matches("=END\n").count(),
        asked.len(),
        "{program:?} {errors}"
    );
    let states = text.split("=END\n").take(asked.len());
    states.map(shown_values).collect()
}

/// The values in what gdb prints at one point.
fn shown_values(state: &str) -> Vec<String> {
    let values = state.split("=\n").skip(1);
    values
        .map(|value| value.lines().next().unwrap_or("").to_owned())
        .collect()
}

fn is_equal(number: Number, shown: &str) -> bool {
    match number {
        Number::Integer(number) => shown
            .parse::<i128>()
            .is_ok_and(|it| it as i64 == number as i64),
        Number::Float(number) => shown.parse::<f64>().is_ok_and(|it| {
            it == number
                || (it - number).abs() <= number.abs() * 1e-6
                || it.is_nan() && number.is_nan()
        }),
    }
}

/// Whether a value depends on where the stack is: gdb starts the program with another environment.
fn is_on_stack(value: &Value) -> bool {
    matches!(value.number, Number::Integer(number) if (0x7fff_0000_0000..0x7fff_ffff_ffff).contains(&number))
}

/// Compares the values at points spread over a run; returns how many states and values agreed.
fn compare(program: &Path, call: &Call, states: usize) -> (usize, usize) {
    let target = target(program, call.args);
    let inputs = [call.input.to_vec(), call.input.to_vec()];
    let mut engine = Engine::new([&target, &target], inputs, Duration::from_secs(900)).unwrap();
    let points = engine.trace(Side::Failing).unwrap().points;
    let step = points.len().div_ceil(states).max(1);
    let mut asked = Vec::new();
    for point in points.iter().skip(step / 2).step_by(step) {
        let mut stand = engine
            .stand(
                Side::Failing,
                *point,
                TimeLimit::of(Duration::from_secs(60)),
            )
            .unwrap();
        let captured = engine.capture_at(&mut stand).unwrap();
        asked.push((*point, values(&engine.info.types, &captured.graph)));
    }
    let answers = gdb(program, call, &asked);
    assert_eq!(answers.len(), asked.len());
    let mut compared = 0;
    for ((point, values), shown) in asked.iter().zip(&answers) {
        assert_eq!(
            values.len(),
            shown.len(),
            "{program:?} {:?}: {shown:?}",
            engine.place(point.pc)
        );
        for (value, shown) in values.iter().zip(shown) {
            let agrees = is_on_stack(value) || is_equal(value.number, shown);
            assert!(
                agrees,
                "{program:?} {:?}: {value:?} is {shown} in gdb",
                engine.place(point.pc)
            );
            compared += 1;
        }
    }
    (asked.len(), compared)
}

/// A program with what it is given.
struct Call {
    name: &'static str,
    args: &'static [&'static str],
    input: &'static [u8],
}

const fn call(name: &'static str, args: &'static [&'static str], input: &'static [u8]) -> Call {
    Call { name, args, input }
}

/// Ten programs; the first two, with variables of all kinds, are compared at each level.
const CALLS: [Call; 10] = [
    call("values.c", &[], b""),
    call("mixed.c", &[], b""),
    call("words.c", &[], b"a bc def\nghij a\n"),
    call("recs.c", &[], b"+a\n+b\n-a\n+c\n"),
    call("stack.c", &[], b"1 2 3 + 5 print\n"),
    call("calc.c", &[], b"x=4\n(x-3)*2\n7\n"),
    call("sample.c", &["9", "8", "7"], b""),
    call("calls.c", &[], b""),
    call("stripe.c", &[], b""),
    call("refused.c", &[], b"?y\n"),
];

#[test]
fn values_are_those_of_gdb() {
    let (mut states, mut compared) = (0, 0);
    if needs::program("gdb").is_none() {
        return;
    }
    let builds = ["gcc", "clang"]
        .into_iter()
        .flat_map(|compiler| ["-O0", "-Og", "-O1"].map(|level| (compiler, level)));
    let builds: Vec<(&str, &str)> = builds.collect();
    for (number, call) in CALLS.iter().enumerate() {
        for (index, (compiler, level)) in builds.iter().enumerate() {
            let is_compared = number < 2 || index == number % builds.len();
            if !is_compared || needs::program(compiler).is_none() {
                continue;
            }
            let program = program_by(compiler, call.name, &["-g", level, "-w"]);
            let (more, values) = compare(&program, call, 4);
            (states, compared) = (states + more, compared + values);
        }
    }
    println!("{states} states, {compared} values");
    assert!(
        states >= 50 && compared > 1000,
        "{states} states, {compared} values"
    );
}

/// The numbers behind global pointers at the end of a run, by the expression for each: of what the
/// objects are that begin there, or have a part there.
fn behind_pointers(program: &Path) -> (Point, BTreeMap<String, i128>) {
    let target = target(program, &[]);
    let inputs = [Vec::new(), Vec::new()];
    let mut engine = Engine::new([&target, &target], inputs, Duration::from_secs(900)).unwrap();
    let point = *engine.trace(Side::Failing).unwrap().points.last().unwrap();
    let limit = TimeLimit::of(Duration::from_secs(60));
    let mut stand = engine.stand(Side::Failing, point, limit).unwrap();
    let graph = engine.capture_at(&mut stand).unwrap().graph;
    let types = &engine.info.types;
    let mut found = BTreeMap::new();
    for object in graph.objects.iter() {
        let Some((from, ..)) = object.reached else {
            continue;
        };
        let pointer = &graph.objects[from].name;
        for leaf in &object.leaves {
            let is_number = matches!(types.get(leaf.of).shape, Shape::Base(Encoding::Signed));
            if is_number && leaf.kind == LeafKind::Scalar {
                let path = leaf.path.trim_start_matches('.');
                let number = integer(object.value(leaf), None, true);
                found.insert(format!("{pointer}->{path}"), number);
            }
        }
    }
    (point, found)
}

#[test]
fn objects_of_derived_classes_are_those_of_gdb() {
    if needs::program("gdb").is_none() {
        return;
    }
    for (compiler, level) in [("g++", "-O0"), ("clang++", "-O0")] {
        if needs::program(compiler).is_none() {
            continue;
        }
        let program = program_by(compiler, "classes.cc", &["-g", level, "-w"]);
        let (point, found) = behind_pointers(&program);
        let folder = tempfile::tempdir().unwrap();
        let mut script =
            "set confirm off\nset debuginfod enabled off\nset print object on\n".to_owned();
        let _ = writeln!(
            script,
            "starti\ntbreak *{:#x}\nignore $bpnum {}\ncontinue",
            point.pc,
            point.nth - 1
        );
        for expression in found.keys() {
            let _ = writeln!(script, "echo =\\n\noutput {expression}\necho \\n");
        }
        let file = folder.path().join("script");
        std::fs::write(&file, script).unwrap();
        let mut gdb = Command::new("gdb");
        gdb.args(["-nx", "-batch", "-x"]).arg(&file).arg(&program);
        let output = gdb.stdin(std::process::Stdio::null()).output().unwrap();
        let shown = shown_values(&String::from_utf8_lossy(&output.stdout));
        let numbers: Vec<String> = found.values().map(i128::to_string).collect();
        assert_eq!(shown, numbers, "{compiler} {level} {found:?}");
        for of_class in [
            "circle->radius",
            "square->side",
            "square->length",
            "named->side",
            "named->number",
            "hidden->inside",
            "box->cells[1]",
            "plain->number",
        ] {
            assert!(
                found.contains_key(of_class),
                "{compiler} {level} {of_class} {found:?}"
            );
        }
        // Where a virtual base is, only the running program knows.
        assert!(
            !found.contains_key("unknown->extra"),
            "{compiler} {level} {found:?}"
        );
    }
}
