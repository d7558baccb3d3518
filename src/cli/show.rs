//! `ddfuzz show`: prints the groups of an output directory.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::reports::{ReportArgs, target_name};
use super::revisit::reports::{SheetArgs, Studied, StudyReportArgs};
use super::{Exit, Failure, Output, ui};
use crate::report::ci::{Findings, markdown};
use crate::report::study::{self, UtilityResult, table};
use crate::report::text::shell_operand;
use crate::report::{GroupView, RunGroup, block_in_full, groups_table, size};
use crate::store::{CodeCoverage, IncompleteGroup, Kind, Reader, StoreError};

/// Show the groups of an output directory
#[derive(clap::Args)]
#[command(after_help = "Example:\n  ddfuzz show ddfuzz-out\n  ddfuzz show ddfuzz-out 3fa4")]
pub struct ShowArgs {
    /// Output directory
    #[arg(default_value = "ddfuzz-out")]
    out: PathBuf,
    /// Show only the groups whose major key begins with these hex digits, each in full: its
    /// message, stack and source
    group: Option<String>,
    #[command(flatten)]
    reports: ReportArgs,
    #[command(flatten)]
    sheets: SheetArgs,
}

#[derive(Serialize)]
struct Shown {
    groups: Vec<RunGroup>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    utilities: Vec<UtilityResult>,
    /// Which code (functions, blocks) of an unmodified program the campaign has reached; absent if
    /// that was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<CodeCoverage>,
}

pub fn run(args: ShowArgs, output: &Output) -> Result<Exit, Failure> {
    let output = &args.reports.check(output)?;
    let study_files = args.study_files();
    let output = &study_files.check(output)?;
    let reader = Reader::open(&args.out)?;
    let studied = Studied::read(&reader)?;
    warn_of_incomplete(&reader, "shown", output)?;
    if studied.is_empty() && !args.sheets.is_empty() {
        return Err(Studied::none(&args.out));
    }
    let mut views = all_views(&reader, &studied)?;
    let mut text = args.text(&mut views, &studied)?;
    let code = reader.code()?.filter(|_| args.group.is_none());
    if let Some(code) = &code {
        text = format!("{}\n{}", text.trim_end(), code.text());
    }
    args.write(&reader, &views, &studied)?;
    output.result(
        &text,
        &Shown {
            groups: views.iter().map(RunGroup::from).collect(),
            utilities: studied.rows.iter().map(UtilityResult::from).collect(),
            code,
        },
    );
    let careless = |view: &&GroupView| (view.minimized.as_ref()).is_some_and(|it| it.any_input);
    for view in views.iter().filter(careless) {
        output.warn_of_any_input(&view.major.short());
    }
    Ok(Exit::Done)
}

impl ShowArgs {
    /// Returns the options that name the report files of a study (Markdown, CSV, HTML).
    fn study_files(&self) -> StudyReportArgs {
        StudyReportArgs {
            markdown: self.reports.markdown.clone(),
            sheets: self.sheets.clone(),
        }
    }

    /// Formats the crash groups `views` as a table, after the table of utilities if the directory
    /// has a study. If the user names groups by the beginning of their keys, formats these in full
    /// instead, and removes all others from `views`; fails if there are none.
    fn text(&self, views: &mut Vec<GroupView>, studied: &Studied) -> Result<String, Failure> {
        let width = ui::stdout_width();
        let Some(beginning) = &self.group else {
            let groups = match views.is_empty() {
                true => format!("no groups in {}", self.out.display()),
                false => groups_table(views, width),
            };
            return Ok(match studied.rows.is_empty() {
                true => groups,
                false => format!("{}\n{groups}", table(&studied.rows, width)),
            });
        };
        let digits = beginning.to_ascii_lowercase();
        views.retain(|view| view.major.to_string().starts_with(&digits));
        if views.is_empty() {
            let message = format!("no group of {} begins with {beginning}", self.out.display());
            return Err(Failure::usage(message).path(&self.out).hint(format!(
                "`ddfuzz show {}` lists the groups",
                shell_operand(&self.out)
            )));
        }
        Ok(views
            .iter()
            .map(block_in_full)
            .collect::<Vec<_>>()
            .join("\n"))
    }

    fn write(
        &self,
        reader: &Reader,
        views: &[GroupView],
        studied: &Studied,
    ) -> Result<(), Failure> {
        let mut reports = self.reports.clone();
        if !studied.is_empty() {
            self.study_files().write(&studied.rows)?;
            reports.markdown = None;
        }
        reports.write(&findings(reader, &self.out, views)?)
    }
}

/// Returns the data of the groups `views` of the output directory `out` that reports for CI servers
/// contain.
fn findings(reader: &Reader, out: &Path, views: &[GroupView]) -> Result<Findings, Failure> {
    let target = reader.campaigns()?.current.and_then(|campaign| {
        let limits = campaign.limits?;
        campaign.target?.target(limits)
    });
    Ok(Findings {
        target: target.map_or_else(|| out.display().to_string(), |one| target_name(&one)),
        summary: size::counted(views.len() as u64, "group"),
        groups: views.iter().map(Into::into).collect(),
    })
}

/// Returns the Markdown report that `ddfuzz show --markdown` writes of the output directory `out`.
pub fn markdown_of(reader: &Reader, out: &Path) -> Result<String, Failure> {
    let studied = Studied::read(reader)?;
    if !studied.is_empty() {
        return Ok(study::markdown(&studied.rows));
    }
    let views = all_views(reader, &studied)?;
    Ok(markdown(&findings(reader, out, &views)?))
}

/// Returns the groups of all kinds of failures in an output directory; a group found in a study of
/// many programs appears once for each program (utility) that shows it.
fn all_views(reader: &Reader, studied: &Studied) -> Result<Vec<GroupView>, StoreError> {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        let of_study = studied
            .groups
            .iter()
            .filter(|group| group.view.kind == kind);
        let of_study: Vec<GroupView> = of_study.map(|group| group.view.clone()).collect();
        let others = views(reader, kind)?.into_iter();
        all.extend(others.filter(|view| of_study.is_empty() || view.utility.is_none()));
        all.extend(of_study);
    }
    Ok(all)
}

/// Prints a warning for each group in an output directory that has no complete input, and therefore
/// is missing in lists of groups. `done`: what the command does with other groups, as a word like
/// `shown`. Also prints a warning for each file `minimized` that has lost its content.
pub fn warn_of_incomplete(reader: &Reader, done: &str, output: &Output) -> Result<(), StoreError> {
    for group in reader.incomplete_groups()? {
        output.say(&incomplete_group(reader.root(), &group, done));
    }
    warn_of_lost_reproducers(reader, output)
}

/// Prints a warning for each file `minimized` in an output directory that has lost its content.
pub fn warn_of_lost_reproducers(reader: &Reader, output: &Output) -> Result<(), StoreError> {
    for id in reader.lost_reproducers()? {
        output.say(&format!(
            "warning: minimized in {} has lost its content: original is taken in its place",
            id.folder(reader.root()).display()
        ));
    }
    Ok(())
}

/// Returns the warning about a group without a complete input in the output directory `out`.
/// `done`: what the command does with other groups, as a word like `shown`.
pub fn incomplete_group(out: &Path, group: &IncompleteGroup, done: &str) -> String {
    let (folder, major, out) = (group.kind.folder(), &group.major, out.display());
    let (lacks, advice) = (what_is_missing(group), advice_where_incomplete(group));
    format!(
        "warning: the group {major} is not {done}: none of its inputs is complete in {out} (in \
         {folder}/{major}, {lacks}); {advice}"
    )
}

/// Returns words that say which files of a group are missing or damaged, so that the group has no
/// complete input.
pub fn what_is_missing(group: &IncompleteGroup) -> &'static str {
    match (group.has_originals, group.has_reproducers) {
        (true, false) => "each crash.json is missing or damaged",
        (true, true) => "each crash.json is missing or damaged, or its original is missing",
        (false, _) => "each original is missing",
    }
}

/// Returns the advice for the user, in words, on a group whose entries are incomplete: which of
/// their files (original or minimized inputs) `ddfuzz triage` can make complete again.
pub fn advice_where_incomplete(group: &IncompleteGroup) -> String {
    let files = match (group.has_originals, group.has_reproducers) {
        (true, false) => "original",
        (true, true) => "original or minimized",
        (false, true) => "minimized",
        (false, false) => return "no input of it is left".to_owned(),
    };
    format!(
        "`ddfuzz triage` of the files called {files} there, with another -o, makes complete inputs \
         of them"
    )
}

/// Returns all groups of a kind (crash, hang, out of memory, flaky), the most severe first, and
/// then by major key (hash that identifies the bug), each with the data of the crash that
/// represents it; groups without a complete crash are left out.
pub fn views(reader: &Reader, kind: Kind) -> Result<Vec<GroupView>, StoreError> {
    let builds = reader.campaigns()?.last_builds();
    let checks = reader.last_checks();
    let mut views = Vec::new();
    for group in reader.groups(kind)? {
        if let Some(entry) = reader.best_entry(&group, &builds)? {
            let view = GroupView::load(&group, &entry)?;
            views.push(view.since(&group, &entry, &builds, &checks)?);
        }
    }
    views.sort_by_key(|view| Reverse(view.severity));
    Ok(views)
}
