//! Sentences of the text about accesses outside of variables, and about variables that are read
//! before anything sets them. Pure.

use ddfuzz_triage::short_function;

use crate::named_places::{calls, plain_place, shown_place};
use crate::report::{Explanation, OverrunRecord};

/// Returns up to three sentences of the explanation's text: about the write outside of a variable,
/// about the read outside of an array, and about the variable that is read before anything sets it.
/// What the result does not have gets no sentence.
pub(crate) fn outside(it: &Explanation) -> impl Iterator<Item = String> {
    let all = [overrun(it), overread(it), unset(it)];
    all.into_iter().flatten()
}

/// Returns a sentence about the write that reaches out of its variable into another; `None` if the
/// result has no such write.
fn overrun(it: &Explanation) -> Option<String> {
    let found = it.overrun.as_ref()?;
    let what = crossing(found, ["writes to", "writes", "into"]);
    let so = if found.is_averted { "" } else { " so" };
    let line = found.place.first().and_then(|it| it.line);
    let next = found.next.iter().filter(|it| it.line != line);
    let next: Vec<String> = next.map(plain_place).collect();
    let with = match next.is_empty() {
        true => String::new(),
        false => format!(" and what {} writes behind it", next.join(", ")),
    };
    Some(format!(
        "{what}. With this{with} undone, the run does not fail{so}."
    ))
}

/// Returns, as a text, what the access `found` reaches outside of its variable: the names of other
/// variables and, if a return address is among the bytes, `the return address of` its function. The
/// text is empty if there is none of these.
fn reached(found: &OverrunRecord) -> String {
    let variables = found.into.join(", ");
    let address = (found.return_of.as_deref())
        .map(|it| format!("the return address of {}", short_function(it)));
    match (variables.is_empty(), address) {
        (_, None) => variables,
        (true, Some(address)) => address,
        (false, Some(address)) => format!("{variables} and {address}"),
    }
}

/// Returns the beginning of a sentence that says which access (a write or read, `found`) reaches
/// out of which variable, and where to. `words` are the verb with an element as its object (`writes
/// to`), the verb with a number of bytes as its object (`writes`), and the preposition between
/// these bytes and the variable (`into`).
fn crossing(found: &OverrunRecord, words: [&str; 3]) -> String {
    let [to, bytes, of] = words;
    let (variable, place) = (&found.variable, calls(&found.place));
    match found.element {
        Some(element) => format!(
            "{place} {to} element {element} of {variable}, which has {}: that is {}",
            found.elements,
            match reached(found) {
                names if names.is_empty() => "where no variable is".to_owned(),
                names => format!("in {names}"),
            }
        ),
        None => format!(
            "{place} {bytes} {} bytes {of} {variable}, which has {}: the last {} {}",
            found.written,
            found.bytes,
            found.beyond,
            match reached(found) {
                names if names.is_empty() => "are where no variable is".to_owned(),
                // Others may be between these, and what the compiler keeps on the stack.
                names => format!("reach into {names}"),
            }
        ),
    }
}

/// Returns a sentence about the read outside of an array; `None` if the result has no such read.
fn overread(it: &Explanation) -> Option<String> {
    let found = it.overread.as_ref()?;
    let instead = &found.instead;
    if !found.is_text {
        let what = crossing(&found.access, ["reads", "reads", "from"]);
        return Some(format!(
            "{what}. With {instead} read there, the run does not fail (tested)."
        ));
    }
    let (variable, bytes) = (&found.access.variable, found.access.bytes);
    let filled = match found.filled.is_empty() {
        true => String::new(),
        false => format!(", and {} wrote the last one", calls(&found.filled)),
    };
    Some(format!(
        "{} reads the text in {variable} past its end: no 0 ends it within the {bytes} bytes{filled}. \
         With a 0 there, the run does not fail (tested).",
        calls(&found.access.place)
    ))
}

/// Returns a sentence about the variable that is read before anything sets it; `None` if the result
/// has no such variable.
fn unset(it: &Explanation) -> Option<String> {
    let found = it.unset.as_ref()?;
    let read = (found.read.as_ref()).map(|it| format!(" {}", shown_place(it)));
    let begins = match found.is_local {
        true => "the call of its function",
        false => "its block was allocated",
    };
    if found.is_reused {
        return Some(format!(
            "{}{} has its value from {}. Since then {} has set other fields of the same record anew, and \
             not this one. With 0 there from then on, the run does not fail (tested).",
            found.variable,
            read.map_or_else(String::new, |it| format!(", read{it},")),
            calls(&found.since),
            calls(&found.beside),
        ));
    }
    let beside = match found.beside.is_empty() {
        true => String::new(),
        false => format!(" Other fields of it are set by {}.", calls(&found.beside)),
    };
    Some(format!(
        "{} is read{}, and nothing has set it since {begins}: {}.{beside} With {} there, the run does not fail (tested).",
        found.variable,
        read.unwrap_or_default(),
        calls(&found.since),
        found.instead,
    ))
}
