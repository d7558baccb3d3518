//! The result of `clean` as one page that needs nothing else.

use super::{CleanResult, Distribution, Kept, clean_table};
use crate::report::html::{Cell, END, escaped, head, table};
use crate::report::size;

/// The drawings, in pixels.
const WIDTH: usize = 640;
const HEIGHT: usize = 220;
/// Room below the columns for their names, and above them for the title.
const BELOW: usize = 30;
const ABOVE: usize = 24;
/// What the columns of the table are.
const LEGEND: &str = "<p>A feature is an edge of the program together with a range of how often a \
    run passes it (1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more). Unique features are those \
    that no other file of the corpus reaches. \u{201c}Bytes before\u{201d} is the size before \
    trimming; the last column says what trimming has proved of the file (1-minimal: no part of it \
    can be deleted alone), and is empty where the file was not trimmed.</p>\n";
/// So many kept files are listed.
const LISTED: usize = 5000;

/// The page: the table of steps, how sizes and times spread before and after, and the kept files
/// (at most 5,000), a table that sorts by a click on a column.
pub fn clean_html(result: &CleanResult) -> String {
    let mut page = head("Corpus cleanup");
    page += &format!("<pre>{}</pre>\n", lines(&clean_table(result, None)));
    if let Some(spread) = &result.spread {
        let sizes = (&spread.sizes_before, &spread.sizes_after);
        let times = (&spread.times_before, &spread.times_after);
        page += "<h2>Sizes and times</h2>\n<p>Grey: all different files of the corpus that neither \
                 crash nor hang. Blue: the kept files. Both axes are logarithmic.</p>\n";
        page += &histogram("size of a file, in bytes", sizes.0, sizes.1);
        page += &histogram("time of a run, in µs", times.0, times.1);
    }
    page += "<h2>Kept files</h2>\n";
    page += LEGEND;
    page += &kept(&result.kept);
    if result.kept.len() > LISTED {
        let more = size::grouped((result.kept.len() - LISTED) as u64);
        page += &format!("<p>and {more} more, in clean.json</p>\n");
    }
    page + END
}

/// Text of several lines.
fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escaped).collect();
    lines.join("\n")
}

fn kept(files: &[Kept]) -> String {
    let heads = [
        "file",
        "bytes",
        "bytes before",
        "µs a run",
        "features",
        "unique features",
        "why it is kept",
        "trimming",
    ];
    let rows = files.iter().take(LISTED).map(|kept| {
        vec![
            Cell::text(&kept.from.0.to_string_lossy()),
            Cell::number(kept.size),
            Cell::number(kept.size_before),
            Cell::number(kept.us),
            Cell::number(kept.features),
            Cell::number(kept.only_here),
            Cell::text(&kept.why),
            Cell::text(kept.claim.as_deref().unwrap_or_default()),
        ]
    });
    table(&heads, rows)
}

/// Two distributions as columns beside each other.
fn histogram(title: &str, before: &Distribution, after: &Distribution) -> String {
    let ranges = before.counts().len().max(after.counts().len()).max(1);
    let most = before.counts().iter().chain(after.counts()).max();
    let most = most.copied().unwrap_or(0);
    let room = (HEIGHT - BELOW - ABOVE) as f64;
    let high = |count: u64| room * (count as f64 + 1.0).ln() / (most as f64 + 1.0).ln().max(1.0);
    let step = WIDTH / ranges;
    let mut svg = format!(
        "<svg width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
         <text x=\"0\" y=\"14\">{}</text>\n",
        escaped(title)
    );
    let column = |class: &str, range: usize, shift: usize, count: u64| {
        let tall = high(count);
        let (x, y) = (range * step + shift, (HEIGHT - BELOW) as f64 - tall);
        let wide = (step / 2).saturating_sub(1).max(1);
        let count = size::grouped(count);
        format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y:.1}\" width=\"{wide}\" height=\"{tall:.1}\">\
             <title>{count}</title></rect>\n"
        )
    };
    for range in 0..ranges {
        let of = |spread: &Distribution| spread.counts().get(range).copied().unwrap_or(0);
        svg += &column("before", range, 0, of(before));
        svg += &column("after", range, step / 2, of(after));
        svg += &format!(
            "<text x=\"{}\" y=\"{}\">{}</text>\n",
            range * step,
            HEIGHT - BELOW + 16,
            short(Distribution::least(range))
        );
    }
    svg + "</svg>\n"
}

/// A power of two in at most four characters.
fn short(value: u64) -> String {
    match value {
        0..1024 => value.to_string(),
        value => {
            let units = ["K", "M", "G", "T", "P", "E"];
            let power = (value.ilog2() / 10).min(6) as usize;
            format!("{}{}", value >> (10 * power), units[power - 1])
        }
    }
}
