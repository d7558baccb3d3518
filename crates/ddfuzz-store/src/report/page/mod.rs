//! The report on a campaign: one HTML page that loads no other file, the data behind it, and a text
//! for an issue on one group.
//!
//! [`campaign_page`] shows all groups in a table, and as many of them in full as fit into
//! `SECTIONS` bytes, so that even a page of 10,000 groups is small enough for a browser. The data
//! is read from the output directory, which another process may write to at the same time.

mod course;
mod data;
mod group;
mod input;
mod issue;
mod lineage;
mod load;
mod overview;
mod stats;

use std::cmp::Reverse;
use std::path::Path;
use std::time::SystemTime;

use maud::{PreEscaped, html};
use schemars::schema_for;
use serde_json::Value;

pub use data::{
    CampaignFacts, CampaignReport, CommandReport, CourseReport, ExplanationReport, FaultReport,
    GroupReport, GroupSummary, InputReport, PhaseReport, ProvedReport, SourceReport, StackLine,
    StackReport, TestReport, VariantReport,
};
pub use issue::issue;
pub use load::TargetKnowledge;
pub use stats::StatsPoint;

use crate::report::html::page;
use crate::report::study::{Row, rates_section, rows, study_groups, utilities_section};
use crate::{Entry, EntryId, Kind, Reader, StoreError, rfc3339};
use ddfuzz_triage::Severity;
use load::Candidate;

/// Maximum total size, in bytes, of the groups' sections in a page; once it is exceeded, no further
/// group is shown in full.
const SECTIONS: usize = 4 << 20;

/// File name of the HTML report in an output directory.
pub const PAGE: &str = "report.html";

/// Returns the JSON schema of the output of `ddfuzz report --json`.
pub fn schema() -> Value {
    schema_for!(CampaignReport).to_value()
}

/// A [`TargetKnowledge`] that knows nothing of any target: reports then have no command of cargo
/// and no exported test.
pub struct NoKnowledge;

impl TargetKnowledge for NoKnowledge {
    fn cargo(&self, _: &Entry) -> Option<String> {
        None
    }

    fn test(&self, _: &Entry) -> Option<(String, String)> {
        None
    }
}

/// Makes the page of an output directory, as HTML. `folder` is the absolute path of the directory
/// that the page will be in, because links are relative to it.
///
/// # Errors
/// If the output directory cannot be read.
pub fn campaign_page(
    reader: &Reader,
    folder: &Path,
    knowledge: &dyn TargetKnowledge,
) -> Result<String, StoreError> {
    let report = report_without_groups(reader)?;
    let candidates = candidates(reader)?;
    let links = group::Links { folder };
    let mut sections = String::new();
    let mut worst = None;
    let mut shown = 0;
    for candidate in &candidates {
        if sections.len() > SECTIONS {
            break;
        }
        if let Some(loaded) = load::load(reader, candidate, knowledge)? {
            sections += &group::section(&loaded, &links).into_string();
            sections.push('\n');
            worst.get_or_insert(loaded);
        }
        shown += 1;
    }
    let summaries: Vec<GroupSummary> = candidates.into_iter().map(|one| one.summary).collect();
    let studied = studied(reader)?;
    let body = html! {
        (overview::head(&report, &summaries, worst.as_ref(), !studied.is_empty()))
        main {
            (overview::table(&summaries, shown))
            @if !studied.is_empty() { (utilities_section(&studied)) (rates_section(&studied)) }
            (overview::campaign(&report, &summaries))
            (PreEscaped(sections))
        }
    };
    Ok(page(&overview::subject(&report), &body))
}

/// Reads the utilities of all studies in an output directory, one row each; empty if there is no
/// study.
fn studied(reader: &Reader) -> Result<Vec<Row>, StoreError> {
    let studies = reader.studies()?;
    match studies.is_empty() {
        true => Ok(Vec::new()),
        false => Ok(rows(&studies, &study_groups(reader)?)),
    }
}

/// Collects the data behind the page of an output directory, with all groups in full.
///
/// # Errors
/// If the output directory cannot be read.
pub fn campaign_report(
    reader: &Reader,
    knowledge: &dyn TargetKnowledge,
) -> Result<CampaignReport, StoreError> {
    let mut report = report_without_groups(reader)?;
    for candidate in candidates(reader)? {
        let loaded = load::load(reader, &candidate, knowledge)?;
        report.groups.extend(loaded.map(|loaded| loaded.report));
    }
    Ok(report)
}

/// Collects the data that a report shows of the group to which the stored input `id` belongs;
/// `None` if the group is not in the output directory.
///
/// # Errors
///
/// If the output directory cannot be read.
pub fn group_report(
    reader: &Reader,
    id: &EntryId,
    knowledge: &dyn TargetKnowledge,
) -> Result<Option<GroupReport>, StoreError> {
    let Some(group) = reader.group(id.kind(), id.major())? else {
        return Ok(None);
    };
    let builds = reader.campaigns()?.last_builds();
    let Some(candidate) = Candidate::read(reader, group, &builds, &reader.last_checks())? else {
        return Ok(None);
    };
    let loaded = load::load(reader, &candidate, knowledge)?;
    Ok(loaded.map(|loaded| loaded.report))
}

/// Collects what a report says of an output directory and its campaigns; the report's list of
/// groups stays empty.
fn report_without_groups(reader: &Reader) -> Result<CampaignReport, StoreError> {
    let campaigns = reader.campaigns()?;
    // In a study each utility has counts of its own, which do not add up to a course.
    let has_course = (campaigns.current.as_ref()).is_some_and(|campaign| campaign.target.is_some());
    Ok(CampaignReport {
        ddfuzz: env!("CARGO_PKG_VERSION").to_owned(),
        made: rfc3339(SystemTime::now()),
        out: data::absolute(reader.root()),
        campaigns: campaigns.all().map(CampaignFacts::from).collect(),
        stats: match has_course {
            true => stats::points(&reader.stats()?),
            false => Vec::new(),
        },
        code: reader.code()?,
        groups: Vec::new(),
    })
}

/// Reads the summaries of all groups of crashes, hangs and out-of-memory failures in the output
/// directory that have a stored input, from which the report on a campaign chooses the groups that
/// it shows. They are in the report's order: by kind, then by severity and frequency, highest
/// first.
fn candidates(reader: &Reader) -> Result<Vec<Candidate>, StoreError> {
    let mut all = Vec::new();
    let builds = reader.campaigns()?.last_builds();
    let checks = reader.last_checks();
    for kind in Kind::ALL {
        for group in reader.groups(kind)? {
            all.extend(Candidate::read(reader, group, &builds, &checks)?);
        }
    }
    let severity = |candidate: &Candidate| -> Severity { candidate.group.record.severity };
    all.sort_by_key(|one| {
        let runs = Reverse(one.summary.runs_seen);
        (
            one.group.kind,
            Reverse(severity(one)),
            runs,
            one.summary.major.clone(),
        )
    });
    Ok(all)
}
