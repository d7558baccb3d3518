//! The sentences about a sanitizer's report, and about heap blocks that are freed or moved too
//! early. Pure.

use crate::failure::CHECKED_CLASS;
use crate::named_places::{calls, function_at};
use crate::report::{AccessRecord, Explanation, FrameRecord};
use crate::story::{base, plain};
use ddfuzz_triage::short_function;

/// Writes a sentence about the bad access that AddressSanitizer reports in the failing run or, if
/// it reports none, about the check of UndefinedBehaviorSanitizer that has failed. `None` if there
/// is neither, or if the place of the access is not known.
pub(crate) fn access(it: &Explanation) -> Option<String> {
    let Some(found) = it.access.as_ref() else {
        return check(it);
    };
    let place = found.place.first().map(function_at)?;
    let bytes = bytes(found.bytes);
    let named = found
        .name
        .as_ref()
        .map_or("memory".to_owned(), |it| plain(it));
    let verb = if found.writes { "writes" } else { "reads" };
    let what = match (found.bytes, reaches_beyond(found)) {
        (0, _) if found.kind.ends_with("-free") => format!("frees {}", block(found)),
        (0, _) if found.kind.ends_with("-param-overlap") => {
            "copies between places that overlap".to_owned()
        }
        (0, _) => format!("does what AddressSanitizer calls {}", found.kind),
        (_, true) => format!("{verb} {bytes}, outside from {named} on, {}", beside(found)),
        (_, false) => format!("{verb} {bytes} at {named}, {}", beside(found)),
    };
    let allocated = match found.allocated.is_empty() {
        true => String::new(),
        false => format!(", allocated by {}", calls(&found.allocated)),
    };
    let index = match (&found.index, found.element) {
        (Some(name), Some(element)) => format!("; {name} is {element}"),
        _ => String::new(),
    };
    Some(format!("{place} {what}{allocated}{index}."))
}

/// Writes a sentence about the check of UndefinedBehaviorSanitizer by which the failing run has
/// failed; `None` if it has failed in another way, or if the place or message is not known.
fn check(it: &Explanation) -> Option<String> {
    let class = it.crash.class.as_ref();
    class.filter(|it| it.starts_with(CHECKED_CLASS))?;
    let message = it.crash.message.as_ref()?.lines().next()?;
    let message = message.trim_start_matches("runtime error: ");
    let function = short_function(it.crash.function.as_deref()?);
    let place = it.crash.line.zip(it.crash.file.as_ref());
    let place = place.map_or(String::new(), |(line, file)| {
        format!(" at {}:{line}", base(file))
    });
    Some(format!(
        "{function}{place} does what a check forbids: {message}."
    ))
}

/// Returns the size of an element of the accessed object; `None` if it is not known that its named
/// elements are all of the object.
fn element_size(it: &AccessRecord) -> Option<u64> {
    let is_array = it.element.is_some() && it.elements > 1;
    let is_whole = is_array && it.object_bytes.is_multiple_of(it.elements);
    is_whole.then(|| it.object_bytes / it.elements)
}

/// Returns true if the access is larger than an element of its object and reported behind it: that
/// of a function such as `memcpy`, which may have begun inside; what is reported is the first byte
/// outside.
fn reaches_beyond(it: &AccessRecord) -> bool {
    let is_large = element_size(it).is_some_and(|size| it.bytes > size);
    is_large && it.distance >= it.object_bytes as i64 && !it.is_of_freed()
}

/// Says of how many bytes an access or an object is.
fn bytes(count: u64) -> String {
    match count {
        1 => "1 byte".to_owned(),
        _ => format!("{count} bytes"),
    }
}

/// Describes the heap block that is freed by an access.
fn block(it: &AccessRecord) -> String {
    match it.object_bytes {
        0 => "what is no heap block".to_owned(),
        size => format!("a heap block of {} that was freed before", bytes(size)),
    }
}

/// Describes where an access is, as seen from its object.
fn beside(it: &AccessRecord) -> String {
    let size = it.object_bytes;
    let object = match it.region.as_deref() {
        Some("heap") => format!("a heap block of {}", bytes(size)),
        Some(_) => format!("a variable of {}", bytes(size)),
        None => return "where no object is".to_owned(),
    };
    if it.is_of_freed() {
        return format!("in {object} that was freed");
    }
    let end = it.distance - size as i64;
    let from = match (it.distance < 0, end) {
        (true, _) => format!("{} before", bytes(it.distance.unsigned_abs())),
        (_, 0) => "behind the end of".to_owned(),
        (_, 1..) => format!("{} behind the end of", bytes(end.unsigned_abs())),
        _ => "across the end of".to_owned(),
    };
    match element_size(it) {
        Some(_) => format!("{from} {object} with {} elements", it.elements),
        None => format!("{from} {object}"),
    }
}

/// Writes a sentence about the call that moves a heap block (`realloc`, or `free` after a copy of
/// the content to a longer block) although the program still uses the block's old address: how the
/// run ends if the old block stays. `None` if the explanation has no such call.
pub(crate) fn moved_early(it: &Explanation) -> Option<String> {
    (!it.moved_early.is_empty()).then(|| {
        if it.access.is_some() {
            return reported_free(it, "If the old block stays when it is moved by realloc in", &it.moved_early);
        }
        if it.is_copied {
            return format!(
                "{} frees a block whose content was copied to a longer one before. If the old block stays, \
                 with the content of the new one, the run does not fail (tested).{}",
                calls(&it.moved_early),
                used_late(it)
            );
        }
        format!(
            "Without the move of a block by realloc in {}, the run does not fail: a pointer to where it was \
             is used later, or that memory is used again before it is set.{}",
            calls(&it.moved_early),
            used_late(it)
        )
    })
}

/// Writes a sentence about the call of `free` that frees a heap block too early: how the run ends
/// if this call does nothing. `None` if the explanation has no such call.
pub(crate) fn freed_early(it: &Explanation) -> Option<String> {
    (!it.freed_early.is_empty()).then(|| {
        if it.access.is_some() {
            return reported_free(it, "Without the free by", &it.freed_early);
        }
        format!(
            "Without the free by {}{}, the run does not fail: what it frees is used later, or its memory is \
             used again before it is set.{}",
            calls(&it.freed_early),
            match it.freed_together {
                0 | 1 => String::new(),
                2 => " and that before it".to_owned(),
                more => format!(" and the {} before it", more - 1),
            },
            used_late(it)
        )
    })
}

/// Writes a sentence about the call that freed or moved a heap block, in a run in which
/// AddressSanitizer reports a later access to this block: how the run ends if the block stays. The
/// sentence begins with `beginning`, followed by `place`: the place of the call, and those of its
/// callers.
fn reported_free(it: &Explanation, beginning: &str, place: &[FrameRecord]) -> String {
    let ends = match it.freed_together {
        0 => "this access is not reported, and the run fails in another way".to_owned(),
        1 => "the run does not fail".to_owned(),
        2 => "and a call of free next to it, the run does not fail".to_owned(),
        more => format!(
            "and {} calls of free next to it, the run does not fail",
            more - 1
        ),
    };
    let comma = if it.freed_together > 1 { "" } else { "," };
    format!("{beginning} {}{comma} {ends}.", calls(place))
}

/// Writes a sentence about the first use of a heap block after it was freed or moved too early,
/// with a space before it; an empty text if no such use is known.
fn used_late(it: &Explanation) -> String {
    match it.used_late.is_empty() {
        true => String::new(),
        false => format!(" It is used after that by {}.", calls(&it.used_late)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(change: impl FnOnce(&mut AccessRecord)) -> String {
        let frame = |function: &str, line| FrameRecord {
            function: function.to_owned(),
            file: Some("a.c".to_owned()),
            line: Some(line),
        };
        let mut access = AccessRecord {
            kind: "heap-buffer-overflow".to_owned(),
            place: vec![frame("find", 20)],
            bytes: 4,
            name: Some("t->values[3]".to_owned()),
            element: Some(3),
            elements: 3,
            index: Some("i".to_owned()),
            region: Some("heap".to_owned()),
            object_bytes: 12,
            distance: 12,
            allocated: vec![frame("init", 7)],
            ..AccessRecord::default()
        };
        change(&mut access);
        let it = Explanation {
            access: Some(access),
            ..Explanation::default()
        };
        super::access(&it).unwrap()
    }

    #[test]
    fn an_access_is_told_from_its_object() {
        assert_eq!(
            told(|_| {}),
            "find at a.c:20 reads 4 bytes at t->values[3], behind the end of a heap block of 12 bytes \
             with 3 elements, allocated by init at a.c:7; i is 3."
        );
        let before = told(|it| {
            (it.element, it.distance, it.index) = (Some(-1), -4, None);
            it.name = Some("t->values[-1]".to_owned());
            (it.region, it.allocated) = (Some("global".to_owned()), Vec::new());
        });
        assert_eq!(
            before,
            "find at a.c:20 reads 4 bytes at t->values[-1], 4 bytes before a variable of 12 bytes with \
             3 elements."
        );
        let copied = told(|it| {
            (it.bytes, it.writes, it.index) = (30, true, None);
            it.allocated = Vec::new();
        });
        assert_eq!(
            copied,
            "find at a.c:20 writes 30 bytes, outside from t->values[3] on, behind the end of a heap \
             block of 12 bytes with 3 elements."
        );
        let member = told(|it| {
            (it.object_bytes, it.distance, it.index) = (28, 28, None);
            (it.region, it.allocated) = (Some("stack".to_owned()), Vec::new());
        });
        assert_eq!(
            member,
            "find at a.c:20 reads 4 bytes at t->values[3], behind the end of a variable of 28 bytes."
        );
        let again = told(|it| {
            (it.bytes, it.kind) = (0, "double-free".to_owned());
            it.index = None;
        });
        assert_eq!(
            again,
            "find at a.c:20 frees a heap block of 12 bytes that was freed before, allocated by init at \
             a.c:7."
        );
    }
}
