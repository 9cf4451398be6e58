//! The compiler: from a request to a document.

use crate::budget::TokenBudget;
use crate::cache::ContentCache;
use crate::catalogue::{Catalogue, DiffDetail, PlanningLayout, RoleProfile};
use crate::change_section::{changes_section, describe_outcome};
use crate::changes::RepositoryChanges;
use crate::decoded_text::{display_path, group_digits, sha256_hex};
use crate::documents::collect_documents;
use crate::error::Error;
use crate::format::{DocumentFormat, DocumentSummary};
use crate::load::FileLoader;
use crate::manifest::{
    CacheThresholds, CompiledContext, GitSummary, Manifest, OmittedContent, SectionKind, UnusedBudget,
};
use crate::plans::collect_plans;
use crate::request::{ContextRequest, DEFAULT_BUDGET_TOKENS, Redact};
use crate::section::QuotedSection;
use crate::segment::{BudgetSplit, RenderedSegment, SegmentPlan};
use crate::source::SourceTree;
use crate::source_files::{SourceFiles, SourceFilesRequest, collect_source_files};
use crate::test_failures::{bounded_request, test_failures_section};
use crate::trim::TrimmableSection;
use crate::writer::{FlexibleSegmentSection, SectionRenderer};
use std::collections::BTreeSet;

/// The most omissions that the summary of a document names; the others are only counted.
const MAX_NAMED_OMISSIONS: usize = 12;
/// The most contents that the summary of a document names.
const MAX_NAMED_CONTENTS: usize = 24;

/// The weight of a document in the prefix.
const DOCUMENT_WEIGHT: usize = 1;
// The weights of the tail: a plan says what to do next, so it loses less than what was done.
const PLAN_WEIGHT: usize = 4;
const FAILURES_WEIGHT: usize = 3;
const CHANGES_WEIGHT: usize = 3;
/// The part of the budget that new files have at most, as its divisor, to be whole as source files and no additions.
const NEW_FILES_SHARE: usize = 6;

/// Compiles documents from the files of one project.
///
/// The request and the content of the files decide every byte of a document. The clock, the environment and the order in
/// which a file system lists its entries do not.
pub struct Compiler<'a> {
    tree: &'a dyn SourceTree,
    cache: ContentCache,
    catalogue: &'a Catalogue,
    redact: Option<&'a dyn Redact>,
}

impl std::fmt::Debug for Compiler<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiler").field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl<'a> Compiler<'a> {
    /// A compiler of the files in `tree`, with the built-in catalogue, a cache of its own in memory, the
    /// [best counter](crate::tokens::default_counter) of this build, and no redaction.
    pub fn new(tree: &'a dyn SourceTree) -> Self {
        let cache = ContentCache::default();
        Self { tree, cache, catalogue: Catalogue::built_in(), redact: None }
    }

    /// Uses the facts in `cache` and counts tokens with its counter. By default, a compiler has an empty cache of its
    /// own. To avoid reading and counting unchanged files again, share a cache between compilers, or open a cache in a
    /// folder. A cache changes only the duration of a compilation.
    #[must_use]
    pub fn cache(mut self, cache: &ContentCache) -> Self {
        self.cache = cache.clone();
        self
    }

    /// Takes the documents of each role, and the folders where they are looked for, from `catalogue`.
    /// [`Catalogue::built_in`] by default.
    #[must_use]
    pub fn catalogue(mut self, catalogue: &'a Catalogue) -> Self {
        self.catalogue = catalogue;
        self
    }

    /// Masks secrets with `redact`. Nothing is masked by default.
    #[must_use]
    pub fn redact(mut self, redact: &'a dyn Redact) -> Self {
        self.redact = Some(redact);
        self
    }

    /// Compiles the document that `request` asks for.
    ///
    /// If a file changes between its reading and the end of the compilation, everything is compiled once more. A file
    /// that changes again is named in the [diagnostics](crate::Manifest::diagnostics).
    ///
    /// # Errors
    /// A field of the request is invalid, the plan that it names cannot be read, or the budget is too small for one line
    /// of each section.
    pub fn compile(&self, request: &ContextRequest) -> Result<CompiledContext, Error> {
        let request = &*bounded_request(request);
        let (compiled, changed) = self.compile_once(request)?;
        // Once more and no further: a file that is written all the time, such as a log, would never let it end.
        if changed.is_empty() {
            return Ok(compiled);
        }
        let (mut compiled, changed) = self.compile_once(request)?;
        let diagnostics = changed.iter().map(|path| format!("{} keeps changing", display_path(path)));
        compiled.manifest.diagnostics.extend(diagnostics);
        Ok(compiled)
    }

    /// Compiles the document, and returns the files that changed meanwhile beside it.
    fn compile_once(&self, request: &ContextRequest) -> Result<(CompiledContext, Vec<String>), Error> {
        request.validate()?;
        let role = self.catalogue.role(&request.role);
        let budget = TokenBudget {
            model_tokens: request.budget_tokens.or(role.budget_tokens).unwrap_or(DEFAULT_BUDGET_TOKENS),
            factor_permille: request.token_factor_permille,
        };
        let renderer = SectionRenderer { format: request.format, counter: self.cache.counter() };
        let loader = FileLoader::new(self.tree, self.redact);
        let changes = RequestedChanges::changes(request, &role);
        let mut contents = self.collect(request, &role, &changes, renderer, &loader)?;
        // Before the summary, which prints the omissions.
        contents.mask_names(&loader);
        let phase = request.phase.filter(|phase| *phase > 0);
        let summary = contents.summary(request.format, &changes, &loader);

        let trimmable = |(section, weight): (QuotedSection, usize)| {
            let path = loader.mask_name(&section.path).into_owned();
            let section = TrimmableSection::new(QuotedSection { path, ..section }, weight, renderer);
            Box::new(section) as Box<dyn FlexibleSegmentSection + '_>
        };
        let documents = contents.documents.into_iter().map(|section| (section, DOCUMENT_WEIGHT));
        let prefix = SegmentPlan::prefix(renderer, documents.map(trimmable).collect());
        // Plans change least and come first: a provider's cache serves a prompt up to its first difference. Source files
        // follow, then failures and changes.
        let plans = contents.tail.partition_point(|(section, _)| section.kind == SectionKind::Plan);
        let mut sections: Vec<Box<dyn FlexibleSegmentSection + '_>> =
            contents.tail.into_iter().map(trimmable).collect();
        if let Some(source_files) = contents.source_files {
            sections.insert(plans, Box::new(source_files));
        }
        let tail = SegmentPlan::tail(
            renderer,
            request.format.tail_open(&request.role, phase),
            request.format.tail_close(&summary),
            sections,
        );

        let split = BudgetSplit {
            prefix: &prefix,
            tail: &tail,
            prefix_share_percent: request.prefix_share_percent as usize,
            is_orientation: contents.is_orientation,
        };
        if !split.fits(budget) {
            let needed = split.smallest_budget(budget.factor_permille);
            return Err(Error::BudgetTooSmall { budget: budget.model_tokens, needed });
        }
        let (prefix_tokens, tail_tokens) = split.divide(budget);
        let limit_reason = tail.limit_reason();
        let prefix = prefix.render_within(prefix_tokens);
        let tail = tail.render_within(tail_tokens);
        let counted = prefix.tokens + tail.tokens;
        if counted > budget.counted_tokens() {
            // Not seen yet: the bounds of the parts have always covered the whole. The budget is a promise all the same.
            let needed = budget.to_model_tokens(counted);
            return Err(Error::BudgetTooSmall { budget: budget.model_tokens, needed });
        }
        let compiled = CompiledContext {
            manifest: Manifest {
                git: changes.list.map(git_summary),
                unused: unused_budget(budget, &prefix, &tail, limit_reason),
                left_out: contents.omissions,
                diagnostics: contents.diagnostics,
                ..manifest(request, phase, budget, renderer, &prefix, &tail)
            },
            prefix: prefix.text,
            tail: tail.text,
        };
        Ok((compiled, loader.changed_since_read()))
    }

    /// Collects everything that the document can contain.
    fn collect<'l>(
        &'l self,
        request: &'l ContextRequest,
        role: &'l RoleProfile,
        changes: &RequestedChanges<'l>,
        renderer: SectionRenderer<'l>,
        loader: &'l FileLoader<'l>,
    ) -> Result<DocumentContents<'l>, Error> {
        let mut contents = DocumentContents::default();
        if !self.catalogue.has_role(&request.role) {
            let role = &request.role;
            contents.diagnostics.push(format!("unknown_role: `{role}` reads what any other role does"));
        }
        let layout = self.catalogue.layout();
        let phase = request.phase.filter(|phase| *phase > 0);
        let documents = collect_documents(loader, layout, role, phase);
        contents.is_orientation = documents.is_orientation;
        contents.documents = documents.sections;
        contents.included = documents.names;
        contents.omissions = documents.omissions;
        let plans = collect_plans(loader, layout, role, request)?;
        contents.included.extend(plans.names);
        contents.omissions.extend(plans.omissions);
        contents.diagnostics.extend(plans.diagnostics);
        contents.tail.extend(plans.sections.into_iter().map(|section| (section, PLAN_WEIGHT)));
        let failures = request.test_failures.as_deref();
        if let Some(section) = failures.and_then(|output| test_failures_section(loader, output)) {
            contents.push_tail(section, FAILURES_WEIGHT);
        }
        let selected = collect_source_files(
            loader,
            &self.cache,
            renderer,
            SourceFilesRequest {
                include: match &request.include {
                    Some(include) => Some(include),
                    None => Some(role.include.as_slice()).filter(|include| !include.is_empty()),
                },
                exclude: [role.exclude.as_slice(), &request.exclude].concat(),
                detail: request.code_detail,
                already_included: contents.paths(),
                planning: contents.planning_paths(layout),
                changed: changes.paths(),
                task: request.task.as_deref(),
                failures,
                changes: changes.list,
            },
        )?;
        if let Some(selected) = selected {
            contents.omissions.extend(selected.omissions);
            contents.diagnostics.extend(selected.diagnostics);
            contents.source_files = selected.files;
        }
        if let Some(list) = changes.list {
            // The hunks of a file whose whole text is there would repeat it.
            let mut included = contents.paths();
            if let Some(files) = &contents.source_files {
                // So would the addition of a new file, whose every line is new.
                let is_new =
                    |path: &str| list.files.iter().any(|file| file.path == path && file.kind.is_new());
                let budget = request.budget_tokens.or(role.budget_tokens).unwrap_or(DEFAULT_BUDGET_TOKENS);
                included.extend(files.surely_whole(budget / NEW_FILES_SHARE, is_new));
            }
            let included: Vec<&str> = included.iter().map(String::as_str).collect();
            if let Some((section, omissions)) = changes_section(loader, list, changes.detail, &included) {
                contents.push_tail(section, CHANGES_WEIGHT);
                contents.omissions.extend(omissions);
            }
        }
        if let Some(files) = &contents.source_files {
            contents.included.push(format!("{} source files", group_digits(files.len())));
        }
        Ok(contents)
    }
}

/// The changes of a request, as far as its role shows them.
struct RequestedChanges<'a> {
    list: Option<&'a RepositoryChanges>,
    detail: DiffDetail,
}

impl<'a> RequestedChanges<'a> {
    fn changes(request: &'a ContextRequest, role: &RoleProfile) -> Self {
        let detail = request.diff_detail.unwrap_or(role.diff);
        Self { list: request.changes.as_ref().filter(|_| detail != DiffDetail::Off), detail }
    }

    fn paths(&self) -> BTreeSet<String> {
        self.list.iter().flat_map(|changes| &changes.files).map(|file| file.path.clone()).collect()
    }
}

/// Everything that a document can contain, before its budget is divided.
#[derive(Default)]
struct DocumentContents<'a> {
    /// The sections of the prefix.
    documents: Vec<QuotedSection>,
    /// The sections of the tail with their weights, plans first.
    tail: Vec<(QuotedSection, usize)>,
    source_files: Option<SourceFiles<'a>>,
    /// True if the documents are those of a project without planning documents.
    is_orientation: bool,
    /// The names of the contents, for the summary.
    included: Vec<String>,
    omissions: Vec<OmittedContent>,
    diagnostics: Vec<String>,
}

impl DocumentContents<'_> {
    fn push_tail(&mut self, section: QuotedSection, weight: usize) {
        self.included.push(section.path.clone());
        self.tail.push((section, weight));
    }

    /// Returns the paths of all sections so far.
    fn paths(&self) -> Vec<String> {
        let sections = self.documents.iter().chain(self.tail.iter().map(|(section, _)| section));
        sections.map(|section| section.path.clone()).collect()
    }

    /// Returns the paths that planning documents and plans occupy, also those that were left out, and the folders of the
    /// phases: nothing beneath them is a source file that nobody asked for.
    fn planning_paths(&self, layout: &PlanningLayout) -> Vec<String> {
        let omitted = self.omissions.iter().map(|omission| omission.path.clone());
        omitted.chain(layout.phases.iter().cloned()).collect()
    }

    /// Masks secrets in what the manifest prints. The paths of sections are masked when they are written, since they are
    /// needed until then.
    fn mask_names(&mut self, loader: &FileLoader<'_>) {
        for omission in &mut self.omissions {
            omission.path = loader.mask_name(&omission.path).into_owned();
            omission.reason = loader.mask_name(&omission.reason).into_owned();
        }
        for diagnostic in &mut self.diagnostics {
            *diagnostic = loader.mask_name(diagnostic).into_owned();
        }
    }

    fn summary(
        &self,
        format: DocumentFormat,
        changes: &RequestedChanges<'_>,
        loader: &FileLoader<'_>,
    ) -> DocumentSummary {
        let included = self.included.iter().map(|name| list_item(format, &loader.mask_name(name))).collect();
        let changes = changes.list.map(|changes| {
            let base = display_path(&loader.mask_name(&changes.base)).into_owned();
            (base, loader.mask_name(&describe_outcome(changes)).into_owned())
        });
        let omitted = self.omissions.iter().filter(|omission| omission.in_summary).map(|omission| {
            format!("{} ({})", list_item(format, &omission.path), display_path(&omission.reason))
        });
        DocumentSummary {
            included: truncate_list(included, MAX_NAMED_CONTENTS),
            changes,
            omitted: truncate_list(omitted.collect(), MAX_NAMED_OMISSIONS),
        }
    }
}

/// Returns the manifest of the two segments, without what was left out.
fn manifest(
    request: &ContextRequest,
    phase: Option<u32>,
    budget: TokenBudget,
    renderer: SectionRenderer<'_>,
    prefix: &RenderedSegment,
    tail: &RenderedSegment,
) -> Manifest {
    let prefix_hash = sha256_hex(prefix.text.as_bytes());
    let cache_hit = request.known_prefix_hash.as_deref() == Some(prefix_hash.as_str());
    let prefix_model_tokens = budget.to_model_tokens(prefix.tokens);
    let counted_tokens = prefix.tokens + tail.tokens;
    let model_tokens = budget.to_model_tokens(counted_tokens);
    Manifest {
        format_version: 1,
        role: request.role.clone(),
        phase,
        format: request.format,
        counter: renderer.counter.name().to_owned(),
        counter_is_estimate: renderer.counter.is_estimate(),
        factor: f64::from(request.token_factor_permille) / 1_000.0,
        budget: budget.model_tokens,
        tokens: model_tokens,
        counted_tokens,
        input_tokens_estimate: model_tokens,
        prefix_hash,
        prefix_bytes: prefix.text.len(),
        prefix_tokens: prefix.tokens,
        volatile_bytes: tail.text.len(),
        volatile_tokens: tail.tokens,
        total_size: prefix.text.len() + tail.text.len(),
        cache_hit,
        cache_read_tokens_estimate: if cache_hit { prefix_model_tokens } else { 0 },
        cache_write_tokens_estimate: if cache_hit { 0 } else { prefix_model_tokens },
        cacheable: CacheThresholds::reached_by(prefix_model_tokens),
        git: None,
        unused: None,
        sections: prefix.entries.iter().chain(&tail.entries).cloned().collect(),
        left_out: Vec::new(),
        diagnostics: Vec::new(),
    }
}

/// Returns what the document leaves unused of its budget, and the reason, if that is more than a seventh.
fn unused_budget(
    budget: TokenBudget,
    prefix: &RenderedSegment,
    tail: &RenderedSegment,
    limit_reason: Option<&'static str>,
) -> Option<UnusedBudget> {
    /// The part of a budget that is used where there is enough to say, in per cent.
    const FULL_PERCENT: usize = 85;
    let used = budget.to_model_tokens(prefix.tokens + tail.tokens);
    if used * 100 >= budget.model_tokens * FULL_PERCENT {
        return None;
    }
    let is_cut = |segment: &RenderedSegment| segment.entries.iter().any(|entry| entry.pieces_left_out > 0);
    let reason = match (is_cut(prefix), is_cut(tail)) {
        (true, _) => {
            "the documents of the prefix have their part of the budget, and the tail needs no more than it has"
        }
        (false, true) => "what was left out is a piece that is larger than the rest of the budget",
        (false, false) => limit_reason.unwrap_or("everything that was asked for is in the document"),
    };
    Some(UnusedBudget { tokens: budget.model_tokens - used, reason: reason.to_owned() })
}

fn git_summary(changes: &RepositoryChanges) -> GitSummary {
    let total = changes.total_lines();
    GitSummary {
        outcome: changes.outcome.clone(),
        since: changes.base.clone(),
        files: changes.files.len(),
        insertions: total.added,
        deletions: total.removed,
        truncated: changes.truncated,
        filters_disabled: changes.filters_disabled,
    }
}

/// Returns the first `max` of `names`, and the number of the others as a last item.
fn truncate_list(mut names: Vec<String>, max: usize) -> Vec<String> {
    let more = names.len().saturating_sub(max);
    names.truncate(max);
    if more > 0 {
        names.push(format!("{} more", group_digits(more)));
    }
    names
}

/// Returns `name` as an item of a list. In Markdown a name with a comma is quoted, so that it does not look like two.
fn list_item(format: DocumentFormat, name: &str) -> String {
    let name = display_path(name);
    if format == DocumentFormat::Markdown && name.contains(", ") {
        format!("\"{name}\"")
    } else {
        name.into_owned()
    }
}
