//! Draws the overview page of the full screen: figures, charts, the table of groups, the last
//! events.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::draw::{clock, keys, plain, plot, rule, size_bar, span, spread};
use super::model::{Group, ScreenModel};
use crate::campaign::Progress;
use crate::cli::ui::rate;
use crate::report::size;
use crate::report::text::cut;
use crate::store::Kind;

/// Width in columns of the labels at the left of the overview, such as "runs".
const LABEL_WIDTH: usize = 10;
/// Minimum and maximum width in columns of a sparkline (a plot in one line).
const SPARK_WIDTHS: (usize, usize) = (8, 40);
/// Number of rows of each chart of the overview, on tall terminals.
const CHART_ROWS: usize = 6;
/// Minimum heights of the terminal, in rows: the first is that for charts on the overview, the
/// second that for the list of last events.
const MIN_HEIGHTS: (usize, usize) = (36, 12);

/// Draws the overview page of the full screen as lines of text.
pub(super) fn lines(model: &ScreenModel, width: usize, height: usize) -> Vec<Line<'static>> {
    let mut lines = vec![title(model, width)];
    let has_charts = height >= MIN_HEIGHTS.0 && width >= 60;
    lines.extend(figures(model, width, !has_charts));
    if has_charts {
        lines.extend(charts(model, width));
    }
    let events = match height.checked_sub(lines.len() + 1) {
        Some(room) if height >= MIN_HEIGHTS.1 => (room / 3).clamp(3, 12),
        _ => 0,
    };
    // Rules stand above the groups and above the events; the last line is that of the keys.
    let rules = 1 + usize::from(events > 0);
    let room = height.saturating_sub(lines.len() + events + rules + 1);
    lines.push(rule(model, "groups", width));
    let mut groups = group_lines(model, width, room);
    groups.resize(room, Line::default());
    lines.extend(groups);
    if events > 0 {
        lines.push(rule(model, "last events", width));
        lines.extend(last_events(model, events, width));
    }
    lines.truncate(height.saturating_sub(1));
    lines.push(footer(model, width));
    lines
}

fn title(model: &ScreenModel, width: usize) -> Line<'static> {
    let heading = &model.heading;
    let left = vec![
        span("ddfuzz ", model.palette.accent()),
        span(heading.target.clone(), model.palette.strong()),
        plain(match heading.seed {
            Some(seed) => format!(" by {}, {}, seed {seed}", heading.way, heading.engine),
            None => format!(" by {}, {}", heading.way, heading.engine),
        }),
    ];
    let time = span(clock(model.elapsed), model.palette.strong());
    let used: usize = left.iter().map(Span::width).sum();
    if used + time.width() < width {
        return spread(left, time, width);
    }
    // Where there is no room for both, the target's name is cut and not the time.
    let room = width.saturating_sub(time.width() + 2);
    let text: String = left.iter().map(|one| one.content.as_ref()).collect();
    let cut = crate::report::text::cut(&text, room);
    spread(vec![span(cut, model.palette.strong())], time, width)
}

fn footer(model: &ScreenModel, width: usize) -> Line<'static> {
    if model.stopping {
        let text = "stopping, the state is being saved; Ctrl-C again stops at once";
        return Line::from(span(text, model.palette.pending()));
    }
    let all = [
        ("q", "quit"),
        ("↑↓", "select"),
        ("enter", "open the group"),
        ("ctrl-z", "suspend"),
    ];
    keys(model, &all, width)
}

/// Function that returns the values of a figure (such as runs per second) over the time of the
/// campaign, one for each of the given number of columns.
type Spark<'a> = &'a dyn Fn(usize) -> Vec<f64>;

/// Draws one figure of the overview as a line. `name`: its label. `said`: its current value.
/// `spark`: returns its values over time, which are drawn as a sparkline if there is room.
fn figure(
    model: &ScreenModel,
    name: &str,
    said: String,
    spark: Option<Spark<'_>>,
    width: usize,
) -> Line<'static> {
    let said = span(said, Style::new());
    let used = LABEL_WIDTH + said.width();
    let mut spans = vec![
        span(format!("{name:<LABEL_WIDTH$}"), model.palette.faint()),
        said,
    ];
    let columns = width
        .saturating_sub(used + 2)
        .min(width / 3)
        .min(SPARK_WIDTHS.1);
    if let Some(spark) = spark.filter(|_| columns >= SPARK_WIDTHS.0)
        && let Some(row) = plot(&spark(columns), 1).pop()
    {
        spans.push(plain(" ".repeat(width - used - row.chars().count())));
        spans.push(span(row, model.palette.good()));
    }
    Line::from(spans)
}

fn figures(model: &ScreenModel, width: usize, sparks: bool) -> Vec<Line<'static>> {
    let Some(progress) = &model.progress else {
        return vec![Line::from("starting the target")];
    };
    let history = &model.history;
    let line = |name: &str, said: String, spark: Spark<'_>| {
        figure(model, name, said, sparks.then_some(spark), width)
    };
    let none: Spark<'_> = &|_| Vec::new();
    let now = history.rate_now().map_or_else(|| "-".to_owned(), rate);
    let rates = format!("{now}/s now, {}/s mean", rate(progress.runs_per_s));
    let mut lines = vec![
        line("rate", rates, &|columns| history.rates(columns)),
        line("runs", runs(progress), none),
    ];
    if let Some(edges) = progress.edges {
        let levels = |columns: usize| history.levels(columns, |one| one.edges);
        lines.push(line("coverage", coverage(edges, progress), &levels));
    }
    if progress.corpus > 0 || progress.edges.is_some() {
        let levels = |columns: usize| history.levels(columns, |one| Some(one.corpus));
        lines.push(line("corpus", corpus(progress), &levels));
    }
    lines.push(line("groups", groups(model, progress), none));
    lines
}

fn runs(progress: &Progress) -> String {
    format!(
        "{}: {} crashed, {}, {}",
        size::grouped(progress.runs),
        size::grouped(progress.crashes),
        size::counted(progress.hangs, "hang"),
        size::counted(progress.ooms, "oom"),
    )
}

fn coverage(edges: u64, progress: &Progress) -> String {
    match progress.edges_of {
        Some(all) if all > 0 => format!(
            "{} of {} edges ({:.1} %)",
            size::grouped(edges),
            size::grouped(all),
            edges as f64 * 100.0 / all as f64
        ),
        _ => size::counted(edges, "edge"),
    }
}

fn corpus(progress: &Progress) -> String {
    let stability = progress
        .stability
        .map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0));
    format!(
        "{}, stability {stability}",
        size::counted(progress.corpus, "input")
    )
}

fn groups(model: &ScreenModel, progress: &Progress) -> String {
    if let Some(phase) = progress.phase.text() {
        return phase;
    }
    let minimized = model.groups.iter().filter(|one| one.claim.is_some());
    format!(
        "{}, {} minimized, {} waiting; minimizer {:.1} %",
        size::grouped(progress.groups),
        size::grouped(minimized.count() as u64),
        size::grouped(progress.minimizing),
        progress.minimizer_share * 100.0,
    )
}

/// Draws charts over time of the runs per second and, if the target reports coverage, of the number
/// of covered edges.
fn charts(model: &ScreenModel, width: usize) -> Vec<Line<'static>> {
    let has_coverage = model
        .progress
        .as_ref()
        .is_some_and(|one| one.edges.is_some());
    let columns = match has_coverage {
        true => (width - 2) / 2,
        false => width,
    };
    let history = &model.history;
    let mut charts = vec![("runs/s", history.rates(columns))];
    if has_coverage {
        charts.push(("edges", history.levels(columns, |one| one.edges)));
    }
    let mut lines = vec![Line::default(); CHART_ROWS + 1];
    for (index, (name, values)) in charts.iter().enumerate() {
        let most = values.iter().copied().fold(0.0, f64::max);
        let head = format!("{name}, to {}", rate(most));
        let gap = if index > 0 { "  " } else { "" };
        let pad = |text: &str| format!("{gap}{text:<columns$}");
        lines[0].push_span(span(pad(&head), model.palette.faint()));
        for (line, row) in lines[1..].iter_mut().zip(plot(values, CHART_ROWS)) {
            line.push_span(span(pad(&row), model.palette.good()));
        }
    }
    lines
}

fn last_events(model: &ScreenModel, rows: usize, width: usize) -> Vec<Line<'static>> {
    let first = model.events.len().saturating_sub(rows);
    let mut lines: Vec<Line<'static>> = model
        .events()
        .skip(first)
        .map(|event| {
            let style = match event.is_note {
                true => model.palette.pending(),
                false => Style::new(),
            };
            let time = format!("{}  ", clock(event.at));
            let room = width.saturating_sub(time.chars().count());
            let text = crate::report::text::cut(&event.text, room);
            Line::from(vec![span(time, model.palette.faint()), span(text, style)])
        })
        .collect();
    lines.resize(rows, Line::default());
    lines
}

/// Maximum width in columns of the crash class in the table of groups.
const MAX_CLASS_WIDTH: usize = 16;
/// Minimum terminal width in columns for the table of groups to have full group keys and long size
/// bars.
const WIDE: usize = 78;
/// Minimum width in columns of the table column with the crash's place in the source; the column is
/// omitted if there is less room.
const MIN_PLACE_WIDTH: usize = 12;

/// The widths, in characters, of the columns in the table of crash groups.
struct Columns {
    class: usize,
    key: usize,
    seen: usize,
    size: usize,
    bar: usize,
    claim: usize,
    is_wide: bool,
    /// Width of the column with the crash's place in the user's code; 0 if there is no room for it.
    place: usize,
}

impl Columns {
    fn of(groups: &[Group], width: usize) -> Columns {
        let widest = |least: usize, text: &dyn Fn(&Group) -> String| {
            let widths = groups.iter().map(|one| text(one).chars().count());
            widths.max().unwrap_or(0).max(least)
        };
        let is_wide = width >= WIDE;
        let mut columns = Columns {
            class: widest("CLASS".len(), &class).min(MAX_CLASS_WIDTH),
            key: if is_wide { 12 } else { 8 },
            seen: widest("SEEN".len(), &|one| size::grouped(one.seen)),
            size: widest("SIZE".len(), &|one| sizes(one, is_wide)),
            is_wide,
            bar: if is_wide { 8 } else { 4 },
            claim: widest("CLAIM".len(), &|one| one.standing().to_owned()),
            place: 0,
        };
        let fixed = columns.key + columns.seen + columns.size + columns.bar + columns.claim;
        // A mark, and two blanks between each two columns.
        let used = 2 + fixed + 5 * 2;
        // Where there is little room, the class is cut first.
        let room = width.saturating_sub(used).max("CLASS".len());
        columns.class = columns.class.min(room);
        let used = used + columns.class;
        let left = width.saturating_sub(used + 2);
        if left >= MIN_PLACE_WIDTH {
            columns.place = left;
        }
        columns
    }
}

/// Draws the table of crash groups in at most `rows` lines, scrolled so that the selected group is
/// visible.
pub(super) fn group_lines(model: &ScreenModel, width: usize, rows: usize) -> Vec<Line<'static>> {
    if rows == 0 {
        return Vec::new();
    }
    if model.groups.is_empty() {
        return vec![Line::from(span("none yet", model.palette.faint()))];
    }
    let all = model.groups.len();
    // Where not all fit, the last line says how many more there are.
    let shown = match rows - 1 {
        room if room >= all || room < 2 => room,
        room => room - 1,
    };
    let first = (model.selected + 1)
        .saturating_sub(shown)
        .min(all.saturating_sub(shown));
    let groups = &model.groups[first..all.min(first + shown)];
    let columns = Columns::of(groups, width);
    let mut lines = vec![head(model, &columns)];
    for (index, group) in groups.iter().enumerate() {
        let is_selected = first + index == model.selected;
        lines.push(row(model, group, &columns, is_selected));
    }
    if lines.len() < rows && all > first + shown {
        let more = size::grouped((all - first - shown) as u64);
        let more = span(format!("  and {more} more"), model.palette.faint());
        lines.push(Line::from(more));
    }
    lines
}

fn head(model: &ScreenModel, columns: &Columns) -> Line<'static> {
    let mut text = format!(
        "  {:<3$}  {:<4$}  {:>5$}  ",
        "CLASS", "GROUP", "SEEN", columns.class, columns.key, columns.seen
    );
    let (size, bar, claim) = (columns.size, columns.bar, columns.claim);
    text += &format!("{:>size$}  {:bar$}  {:<claim$}", "SIZE", "", "CLAIM");
    if columns.place > 0 {
        text.push_str("  WHERE");
    }
    Line::from(span(text, model.palette.faint()))
}

fn row(model: &ScreenModel, group: &Group, columns: &Columns, is_selected: bool) -> Line<'static> {
    let (width, key, seen) = (columns.class, columns.key, columns.seen);
    let (sized, claim, place) = (columns.size, columns.claim, columns.place);
    let palette = model.palette;
    let state = match (&group.claim, group.shrinks) {
        (Some(_), _) => palette.good(),
        (None, true) => palette.pending(),
        (None, false) => Style::new(),
    };
    let class = cut(&class(group), width);
    let runs = size::grouped(group.seen);
    let short = group.key.chars().take(key).collect::<String>();
    let mut line = Line::from(vec![
        plain(if is_selected { "▶ " } else { "  " }),
        span(format!("{class:<width$}"), palette.bad()),
        plain(format!(
            "  {short:<key$}  {runs:>seen$}  {:>sized$}  ",
            sizes(group, columns.is_wide)
        )),
        span(size_bar(group.size_before, group.size, columns.bar), state),
        span(format!("  {:<claim$}", group.standing()), state),
    ]);
    if place > 0 {
        line.push_span(plain(format!("  {}", cut(&group.place, place))));
    }
    match is_selected {
        true => line.style(palette.selected()),
        false => line,
    }
}

/// Returns the crash class of a group, preceded by "flaky" if the crash is flaky.
fn class(group: &Group) -> String {
    match group.kind {
        Kind::Flaky => format!("flaky {}", group.class),
        Kind::Crash | Kind::Hang | Kind::Oom => group.class.clone(),
    }
}

fn sizes(group: &Group, is_wide: bool) -> String {
    match is_wide {
        true => size::reduction(group.size_before, group.size),
        false if group.size_before == group.size => short(group.size),
        false => format!("{} → {}", short(group.size_before), short(group.size)),
    }
}

/// Formats a size in few characters, by powers of 1024: `9,999`, `39.1K`, `2.0M`.
fn short(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = None;
    for name in ['K', 'M', 'G'] {
        if value >= 1000.0 && bytes >= 10_000 {
            value /= 1024.0;
            unit = Some(name);
        }
    }
    match unit {
        Some(name) => format!("{value:.1}{name}"),
        None => size::grouped(bytes),
    }
}
