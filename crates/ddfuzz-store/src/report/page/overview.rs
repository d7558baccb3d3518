//! The first part of a campaign's page: what was run, what was found, and the table of groups.

use std::time::Duration;

use maud::{Markup, html};

use super::data::{CampaignFacts, GroupSummary};
use super::group::severity;
use super::load::LoadedGroup;
use super::stats::StatsPoint;
use super::{CampaignReport, stats};
use crate::CodeCoverage;
use crate::report::code::name_of;
use crate::report::html::text;
use crate::report::size;
use crate::report::text::{cut, hex_line};

/// Maximum number of characters that the table of groups shows of the sentence on what failed, and
/// of the location of the crash.
const CELL: (usize, usize) = (110, 70);
/// Number of groups from which on the columns of their table have fixed widths, so that a browser
/// lays out only the visible part.
const BIG: usize = 500;
/// Maximum number of never reached functions that the page of a campaign lists.
const MOST_FUNCTIONS: usize = 500;
/// Maximum number of campaigns, after the first one, that the page of an output directory lists.
const MOST_CAMPAIGNS: usize = 50;

/// Returns the title of the page, at most 80 characters: name and arguments of the target or,
/// without a target, the path of the output directory.
pub(super) fn subject(report: &CampaignReport) -> String {
    let target = report
        .campaigns
        .first()
        .and_then(|one| one.target.as_deref());
    let name = target.map(|target| {
        let (program, arguments) = target.split_once(' ').unwrap_or((target, ""));
        let name = program.rsplit('/').next().unwrap_or(program);
        format!("{name} {arguments}").trim_end().to_owned()
    });
    cut(&name.unwrap_or_else(|| report.out.clone()), 80)
}

/// Formats the numbers of groups of each kind: `3 groups of crashes, 1 group of hangs`.
fn found(groups: &[GroupSummary]) -> String {
    let kinds = [
        ("crash", "crashes"),
        ("flaky", "crashes that did not occur again"),
        ("hang", "hangs"),
        ("oom", "out-of-memory failures"),
    ];
    let parts = kinds.iter().filter_map(|(kind, name)| {
        let count = groups.iter().filter(|group| group.kind == *kind).count() as u64;
        (count > 0).then(|| format!("{} of {name}", size::counted(count, "group")))
    });
    let parts: Vec<String> = parts.collect();
    match parts.is_empty() {
        true => "nothing that fails".to_owned(),
        false => parts.join(", "),
    }
}

/// Maximum number of bytes of the most severe group's reproducer that the head of the page shows.
const FIRST_BYTES: usize = 32;

/// Makes the head of the page: what was found, and, for the most severe group (`worst`), all that
/// is needed to see it fail. If `is_study`, the head also links to the section of the utilities.
pub(super) fn head(
    report: &CampaignReport,
    groups: &[GroupSummary],
    worst: Option<&LoadedGroup>,
    is_study: bool,
) -> Markup {
    let subject = match is_study {
        true => "A study of utilities".to_owned(),
        false => subject(report),
    };
    html! {
        header {
            h1 { (text(&subject)) ": " (found(groups)) }
            @if !groups.is_empty() {
                p class="lead" {
                    "A group is one bug: inputs that make the program fail at the same place."
                    @if groups.len() > 1 { " This is the most severe one:" }
                }
            }
            @if let Some(worst) = worst { (first_of_all(worst)) }
            p class="faint" {
                "On this page: " a href="#groups" { "all groups" } ", "
                @if is_study { a href="#utilities" { "the utilities" } ", " }
                a href="#overview" { "the campaign" }
                @if !groups.is_empty() { ", and each group in full" }
                ". Made by ddfuzz " (text(&report.ddfuzz)) " at " (text(&report.made)) "."
            }
        }
    }
}

/// Makes the list of facts on the most severe group: what failed, how severe this is, the location,
/// the input, and the command that shows the crash.
fn first_of_all(worst: &LoadedGroup) -> Markup {
    let report = &worst.report;
    let summary = &report.summary;
    html! {
        dl class="worst" {
            dt { "what" } dd {
                @if let Some(utility) = &summary.utility { (text(utility)) ": " }
                a href={ "#" (summary.anchor()) } { (text(&summary.sentence)) }
            }
            dt { "how bad" } dd { (severity(&summary.severity)) ": " (text(&summary.severity_reason)) }
            @if let Some(place) = &summary.place { dt { "where" } dd { (text(place)) } }
            dt { "input" } dd {
                (size::counted(summary.size_after, "byte"))
                @if summary.size_after < summary.size_before {
                    " (" (size::counted(summary.size_before, "byte")) " as found)"
                }
                @if summary.size_after > 0 {
                    ": " code { (text(&hex_line(&worst.reproducer, FIRST_BYTES))) }
                }
            }
            @if let Some(command) = report.commands.first() {
                dt { "reproduce" } dd {
                    code { (text(&command.command)) } " (typed in the output directory)"
                }
            }
        }
    }
}

/// Makes the HTML section on the campaign: its target and command line, its counts, the code that
/// it has reached, and the curves of its statistics over time.
pub(super) fn campaign(report: &CampaignReport, groups: &[GroupSummary]) -> Markup {
    html! {
        section id="overview" {
            h2 { "The campaign" }
            (facts(report, groups))
            (stats::curves(&report.stats))
        }
    }
}

fn facts(report: &CampaignReport, groups: &[GroupSummary]) -> Markup {
    html! {
        dl {
            @if let Some(own) = report.campaigns.first() { (origin(own)) }
            @if let Some(last) = report.stats.last() { (counts(last, groups, report.code.is_some())) }
            @if let Some(code) = &report.code { (reached(code)) }
            dt { "directory" } dd { code { (text(&report.out)) } }
        }
        @if report.campaigns.len() > 1 {
            details {
                summary { "other campaigns in this directory: " (report.campaigns.len() - 1) }
                @for other in report.campaigns.iter().skip(1).take(MOST_CAMPAIGNS) {
                    dl { (origin(other)) }
                }
            }
        }
    }
}

fn counts(last: &StatsPoint, groups: &[GroupSummary], has_blocks: bool) -> Markup {
    // The last line of the statistics may be older than the last result.
    let open = groups.iter().filter(|group| group.status == "-").count() as u64;
    let open = open.min(last.minimizing);
    html! {
        dt { "runs" } dd {
            (size::grouped(last.runs))
            @if last.runs_per_s > 0.0 { " (" (size::grouped(last.runs_per_s as u64)) " per second while fuzzing)" }
            "; " (size::duration(Duration::from_millis(last.time_ms))) " with all minimizations"
            @if last.crashes + last.hangs + last.ooms > 0 {
                "; crashed: " (size::grouped(last.crashes)) ", hung: " (size::grouped(last.hangs))
                ", out of memory: " (size::grouped(last.ooms))
            }
        }
        @if let (Some(edges), Some(of), false) = (last.edges, last.edges_of, has_blocks) {
            dt { "coverage" } dd {
                (size::grouped(edges)) " of " (size::grouped(of)) " edges, by "
                (size::counted(last.corpus, "input"))
            }
        }
        dt { "minimizer" } dd {
            (format!("{:.1} % of the workers' time", last.minimizer_share * 100.0))
            @if open > 0 { "; still to minimize: " (size::counted(open, "group")) }
        }
    }
}

/// Formats as HTML how much of the program's code the campaign has reached, and lists at most 500
/// functions that no run has reached.
fn reached(code: &CodeCoverage) -> Markup {
    let never = &code.never_reached;
    html! {
        dt { "code reached" } dd {
            (code.summary())
            @for (file, counts) in code.by_file() { br; (text(&file)) ": " (counts) }
            @if !never.is_empty() {
                details {
                    summary { "never reached by a run that passed: " (size::counted(never.len() as u64, "function")) }
                    table {
                        thead { tr { th { "function" } th { "file" } th { "blocks" } } }
                        tbody {
                            @for function in never.iter().take(MOST_FUNCTIONS) {
                                tr {
                                    td class="any" { code { (text(&cut(&function.title(), CELL.0))) } }
                                    td { (text(&name_of(&function.file))) }
                                    td class="n" { (size::grouped(function.blocks)) }
                                } "\n"
                            }
                        }
                    }
                    @if never.len() > MOST_FUNCTIONS {
                        p { "The others are in " code { "code.json" } "." }
                    }
                }
            }
        }
    }
}

fn origin(campaign: &CampaignFacts) -> Markup {
    html! {
        @if let Some(target) = &campaign.target { dt { "target" } dd { code { (text(&cut(target, 2000))) } } }
        dt { "command" } dd { code { (text(&cut(&campaign.command, 2000))) } }
        dt { "started" } dd {
            (text(&campaign.started)) " on " (text(&campaign.host))
            @if !campaign.ways.is_empty() { ", executed by " (text(&campaign.ways.join(", "))) }
            @if let Some(seed) = campaign.seed { ", seed " (seed) }
        }
    }
}

/// Makes the table of groups. The rows of the first `shown` groups link to the sections of these
/// groups in the page. The other groups have no sections; links to them lead to their rows.
pub(super) fn table(groups: &[GroupSummary], shown: usize) -> Markup {
    let with_utility = groups.iter().any(|group| group.utility.is_some());
    // Browsers skip rows of a big table that are out of sight.
    let big = match (groups.len() > BIG, with_utility) {
        (false, _) => "",
        (true, false) => " big",
        (true, true) => " big named",
    };
    html! {
        section id="groups" {
            h2 { "Groups" }
            @if groups.is_empty() { p { "Nothing was found." } } @else {
                div class="scroll" {
                    table class={ "sorted" (big) } {
                        thead { tr {
                            @if with_utility { th { "utility" } }
                            th { "what" } th { "severity" } th class="wide" { "class" } th { "where" }
                            th { "bytes" } th class="wide" { "as found" } th class="wide" { "runs" }
                            th class="wide" { "first seen" } th class="wide" { "status" }
                        } }
                        tbody {
                            @for (index, group) in groups.iter().enumerate() {
                                (row(group, index < shown, with_utility)) "\n"
                            }
                        }
                    }
                }
            }
            @if shown < groups.len() {
                p {
                    "The first " (size::grouped(shown as u64)) " groups are shown in full below; "
                    code { "ddfuzz show . KEY" } " shows any other."
                }
            }
        }
    }
}

fn row(group: &GroupSummary, has_section: bool, with_utility: bool) -> Markup {
    let what = text(&cut(&group.sentence, CELL.0));
    let place = group.place.as_deref().unwrap_or("-");
    let anchor = group.anchor();
    let rank = match group.severity.as_str() {
        "high" => "3",
        "medium" => "2",
        _ => "1",
    };
    let seen = group.first_seen.split('T').next().unwrap_or_default();
    html! {
        tr id=[(!has_section).then_some(&anchor)] {
            @if with_utility { td { (text(group.utility.as_deref().unwrap_or("-"))) } }
            td class="any" {
                @if has_section { a href={ "#" (anchor) } { (what) } } @else { (what) }
                @if group.kind != "crash" { " (" (text(&group.kind)) ")" }
                @if !has_section { " " code { (group.major) } }
            }
            td class="w" data-key=(rank) { (severity(&group.severity)) }
            td class="wide" { (text(&group.class)) }
            td class="any" { (text(&cut(place, CELL.1))) }
            td class="n" data-key=(group.size_after) { (size::grouped(group.size_after)) }
            td class="n wide" data-key=(group.size_before) { (size::grouped(group.size_before)) }
            td class="n wide" data-key=(group.runs_seen) { (size::grouped(group.runs_seen)) }
            td class="w wide" data-key=(group.first_seen) { (text(seen)) }
            @let is_short = group.status.len() < 14;
            td class={ "wide" (if is_short { " w" } else { "" }) } { (text(&cut(&group.status, 40))) }
        }
    }
}
