//! Programs and documents in six languages, each with one construct that their reader cannot do with.

use super::{Case, Set, Stream};

/// A generator: one item of a text, with parts up to `levels` deep.
type Item = fn(levels: usize, stream: &mut Stream) -> String;
/// A generator of the item in which the reader fails.
type Wrong = fn(stream: &mut Stream) -> String;

/// The families `toml`, `graphql`, `sql`, `lua`, `sh` and `scheme`.
pub fn cases(set: Set) -> Vec<Case> {
    let all: [(&'static str, Item, Wrong, &str); 6] = [
        ("toml", toml, toml_wrong, "[server.limits]\na=['']"),
        ("graphql", graphql, graphql_wrong, "{a{b{c@d(e:null)}}}"),
        (
            "sql",
            sql,
            sql_wrong,
            "CREATE TABLE a(a);SELECT*FROM a WHERE a IN(SELECT*FROM a HAVING a)",
        ),
        ("lua", lua, lua_wrong, "a={function()while 0do end end}"),
        ("sh", shell, shell_wrong, "$(for a in;do a;a;done)"),
        (
            "scheme",
            scheme,
            scheme_wrong,
            "(let()(lambda()(set! a 1)))",
        ),
    ];
    let cases = all.into_iter().enumerate();
    let case =
        |(number, (family, item, wrong, minimum)): (usize, (&'static str, Item, Wrong, &str))| {
            let mut stream = set.stream(1400 + number as u64);
            let size = set.size(4096, &mut stream);
            let mut input = String::new();
            let place = size / 4 + stream.below(size / 2);
            let mut is_wrong = false;
            while input.len() < size {
                if !is_wrong && input.len() >= place {
                    is_wrong = true;
                    input.push_str(&wrong(&mut stream));
                }
                input.push_str(&item(3, &mut stream));
            }
            Case {
                family,
                variant: "",
                source: "language.c",
                defines: vec![("VARIANT", number.to_string())],
                bug: "construct_is_not_expected",
                input: input.into_bytes(),
                minimum: minimum.as_bytes().to_vec(),
                is_text: true,
                ending: if family == "scheme" { "scm" } else { family },
            }
        };
    cases.map(case).collect()
}

/// Up to `most` items, at least one, with `between` them.
fn some(
    most: usize,
    between: &str,
    stream: &mut Stream,
    mut item: impl FnMut(&mut Stream) -> String,
) -> String {
    let count = 1 + stream.below(most);
    let all: Vec<String> = (0..count).map(|_| item(stream)).collect();
    all.join(between)
}

/// A name that is no word of any of the languages.
fn name(stream: &mut Stream) -> String {
    format!("{}_{}", stream.word(), stream.word())
}

fn toml(_: usize, stream: &mut Stream) -> String {
    let table = some(3, ".", stream, name);
    let keys = some(6, "", stream, |stream| {
        format!("{} = {}\n", name(stream), toml_value(2, stream))
    });
    format!("[{table}]  # {}\n{keys}\n", stream.word())
}

fn toml_value(levels: usize, stream: &mut Stream) -> String {
    match stream.below(if levels == 0 { 3 } else { 5 }) {
        0 => stream.below(10_000).to_string(),
        1 => stream.pick(&["true", "false"]).to_owned(),
        2 => format!("\"{} {}\"", stream.word(), stream.word()),
        3 => format!(
            "[{}]",
            some(4, ", ", stream, |stream| toml_value(levels - 1, stream))
        ),
        _ => {
            let pair = |stream: &mut Stream| {
                format!("{} = {}", name(stream), toml_value(levels - 1, stream))
            };
            format!("{{ {} }}", some(3, ", ", stream, pair))
        }
    }
}

fn toml_wrong(stream: &mut Stream) -> String {
    let others = |stream: &mut Stream| format!("{} = {}", name(stream), stream.below(1000));
    let (before, after) = (some(5, "\n", stream, others), some(5, "\n", stream, others));
    let list = some(4, ", ", stream, |stream| format!("\"{}\"", stream.word()));
    format!(
        "[server.limits]\n{before}\n{} = [{list}]\n{after}\n",
        name(stream)
    )
}

fn graphql(levels: usize, stream: &mut Stream) -> String {
    let head = match stream.below(3) {
        0 => format!("query {}($id: ID!, $first: Int) ", name(stream)),
        1 => format!("fragment {} on {} ", name(stream), name(stream)),
        _ => format!("mutation {} ", name(stream)),
    };
    format!("{head}{}\n", graphql_fields(levels, stream, None))
}

/// A selection; with `inner`, which is one more field of it.
fn graphql_fields(levels: usize, stream: &mut Stream, inner: Option<String>) -> String {
    let mut fields = some(4, "\n", stream, |stream| graphql_field(levels, stream));
    if let Some(inner) = inner {
        fields = format!("{fields}\n{inner}\n{}", graphql_field(0, stream));
    }
    format!("{{\n{fields}\n}}")
}

fn graphql_field(levels: usize, stream: &mut Stream) -> String {
    let arguments = match stream.below(3) {
        0 => format!(
            "(first: {}, after: \"{}\")",
            stream.below(99),
            stream.word()
        ),
        1 => format!("(where: {{{}: [{}, $id]}})", name(stream), stream.below(9)),
        _ => String::new(),
    };
    let directive = match stream.below(4) {
        0 => " @include(if: $first)",
        _ => "",
    };
    let below = match levels > 0 && stream.below(3) > 0 {
        true => graphql_fields(levels - 1, stream, None),
        false => String::new(),
    };
    format!("{}{arguments}{directive} {below}", name(stream))
}

fn graphql_wrong(stream: &mut Stream) -> String {
    let field = format!("{}(first: 3) @skip(if: null, unless: true)", name(stream));
    let around = |inner: String, stream: &mut Stream| {
        format!(
            "{} {}",
            name(stream),
            graphql_fields(1, stream, Some(inner))
        )
    };
    let inner = around(field, stream);
    let middle = around(inner, stream);
    let selection = graphql_fields(1, stream, Some(middle));
    format!("query {} {selection}\n", name(stream))
}

fn sql(levels: usize, stream: &mut Stream) -> String {
    let table = name(stream);
    let columns = some(5, ", ", stream, |stream| {
        format!("{} TEXT NOT NULL", name(stream))
    });
    let rows = some(3, ", ", stream, |stream| {
        let values = some(4, ", ", stream, |stream| format!("'{}'", stream.word()));
        format!("({values}, {})", stream.below(1000))
    });
    let select = sql_select(levels, &table, stream);
    format!("CREATE TABLE {table} ({columns});\nINSERT INTO {table} VALUES {rows};\n{select};\n")
}

fn sql_select(levels: usize, table: &str, stream: &mut Stream) -> String {
    let columns = some(4, ", ", stream, |stream| match stream.below(3) {
        0 => format!("count({}) AS {}", name(stream), name(stream)),
        _ => name(stream),
    });
    let filter = match stream.below(if levels == 0 { 1 } else { 2 }) {
        0 => format!("{} = {}", name(stream), stream.below(99)),
        _ => format!(
            "{} IN ({})",
            name(stream),
            sql_select(levels - 1, table, stream)
        ),
    };
    let rest = match stream.below(3) {
        0 => format!(" GROUP BY {} HAVING count(*) > 2", name(stream)),
        1 => format!(" ORDER BY {}", name(stream)),
        _ => String::new(),
    };
    format!("SELECT {columns} FROM {table} WHERE {filter}{rest}")
}

fn sql_wrong(stream: &mut Stream) -> String {
    let (table, other) = (name(stream), name(stream));
    let inner = format!(
        "SELECT {} FROM {other} JOIN {table} ON {} = {} WHERE {} < 7 HAVING max({}) > {}",
        name(stream),
        name(stream),
        name(stream),
        name(stream),
        name(stream),
        stream.below(50)
    );
    format!(
        "CREATE TABLE {table} ({} INT, {} TEXT);\nCREATE TABLE {other} ({} INT);\n\
         SELECT {}, {} FROM {table} WHERE {} = 'x' AND {} IN ({inner}) ORDER BY {};\n",
        name(stream),
        name(stream),
        name(stream),
        name(stream),
        name(stream),
        name(stream),
        name(stream),
        name(stream)
    )
}

fn lua(levels: usize, stream: &mut Stream) -> String {
    let expression = lua_expression(2, stream);
    let block = |stream: &mut Stream| some(3, "", stream, |stream| lua(levels - 1, stream));
    match stream.below(if levels == 0 { 2 } else { 6 }) {
        0 => format!(
            "local {} = {expression} -- {}\n",
            name(stream),
            stream.word()
        ),
        1 => format!(
            "{}.{}({expression}, {})\n",
            name(stream),
            name(stream),
            stream.below(99)
        ),
        2 => format!(
            "if {expression} then\n{}else\n{}end\n",
            block(stream),
            block(stream)
        ),
        3 => format!("while {expression} do\n{}end\n", block(stream)),
        4 => format!(
            "function {}({}, {})\n{}return {expression}\nend\n",
            name(stream),
            name(stream),
            name(stream),
            block(stream)
        ),
        _ => format!(
            "{} = {{{expression}, {} = {}}}\n",
            name(stream),
            name(stream),
            stream.below(9)
        ),
    }
}

fn lua_expression(levels: usize, stream: &mut Stream) -> String {
    match stream.below(if levels == 0 { 3 } else { 6 }) {
        0 => stream.below(1000).to_string(),
        1 => format!("\"{}\"", stream.word()),
        2 => name(stream),
        3 => format!(
            "({} + {})",
            lua_expression(levels - 1, stream),
            lua_expression(levels - 1, stream)
        ),
        4 => format!("{}({})", name(stream), lua_expression(levels - 1, stream)),
        _ => format!(
            "{} .. not {}",
            lua_expression(levels - 1, stream),
            lua_expression(levels - 1, stream)
        ),
    }
}

fn lua_wrong(stream: &mut Stream) -> String {
    let statements = |stream: &mut Stream| some(3, "", stream, |stream| lua(1, stream));
    format!(
        "function {}({})\nlocal {} = {{ {}, {} = function({})\n{}while {} < 9 do\n{}end\n{}end, {} }}\nend\n",
        name(stream),
        name(stream),
        name(stream),
        stream.below(99),
        name(stream),
        name(stream),
        statements(stream),
        name(stream),
        statements(stream),
        statements(stream),
        name(stream)
    )
}

fn shell(levels: usize, stream: &mut Stream) -> String {
    let block = |stream: &mut Stream| some(3, "", stream, |stream| shell(levels - 1, stream));
    match stream.below(if levels == 0 { 3 } else { 5 }) {
        0 => format!("{} > /tmp/{}\n", shell_words(stream), stream.word()),
        1 => format!(
            "{} | {} && {}\n",
            shell_words(stream),
            shell_words(stream),
            shell_words(stream)
        ),
        2 => format!(
            "{} $({} '{}')  # {}\n",
            name(stream),
            shell_words(stream),
            stream.word(),
            stream.word()
        ),
        3 => format!(
            "if {}; then\n{}else\n{}fi\n",
            shell_words(stream),
            block(stream),
            block(stream)
        ),
        _ => format!(
            "for {} in {}; do\n{}done\n",
            name(stream),
            shell_words(stream),
            block(stream)
        ),
    }
}

fn shell_words(stream: &mut Stream) -> String {
    some(4, " ", stream, |stream| match stream.below(4) {
        0 => format!("\"{} {}\"", stream.word(), stream.word()),
        1 => format!("-{}", name(stream)),
        2 => format!("${}", name(stream)),
        _ => format!("./{}", name(stream)),
    })
}

fn shell_wrong(stream: &mut Stream) -> String {
    format!(
        "if {}; then\n{}{} $(for {} in {}; do\n{}; {} | {}\ndone) {}\n{}fi\n",
        shell_words(stream),
        shell(1, stream),
        shell_words(stream),
        name(stream),
        shell_words(stream),
        shell_words(stream),
        shell_words(stream),
        shell_words(stream),
        shell_words(stream),
        shell(1, stream)
    )
}

fn scheme(levels: usize, stream: &mut Stream) -> String {
    let form = |stream: &mut Stream| scheme(levels - 1, stream);
    match stream.below(if levels == 0 { 3 } else { 6 }) {
        0 => stream.below(1000).to_string(),
        1 => format!("\"{}\"", stream.word()),
        2 => stream.word(),
        3 => format!(
            "(lambda ({} {})\n {})\n",
            stream.word(),
            stream.word(),
            some(3, "\n ", stream, form)
        ),
        4 => {
            let bound = stream.word();
            let (value, body) = (form(stream), some(3, "\n ", stream, form));
            format!(
                "(let (({bound} {value}))\n (set! {bound} {})\n {body})\n",
                stream.below(9)
            )
        }
        _ => format!("({} {})\n", stream.word(), some(4, " ", stream, form)),
    }
}

fn scheme_wrong(stream: &mut Stream) -> String {
    let forms = |stream: &mut Stream| some(3, "\n ", stream, |stream| scheme(2, stream));
    format!(
        "(let (({} {}) ({} 2))\n {}\n ({} (lambda ({})\n {}\n (set! {} (+ 1 {}))\n {})))\n",
        stream.word(),
        stream.below(99),
        stream.word(),
        forms(stream),
        stream.word(),
        stream.word(),
        forms(stream),
        name(stream).replace('_', "-"),
        stream.word(),
        forms(stream)
    )
}
