//! From a request to a document.

use crate::budget::{Budget, Want, share};
use crate::cache::Cache;
use crate::catalogue::{Catalogue, Diff};
use crate::changes::Changes;
use crate::error::Error;
use crate::form::Summary;
use crate::load::Loader;
use crate::manifest::{Cacheable, Compiled, GitEntry, Kind, LeftOut, Manifest, SectionEntry};
use crate::request::{DEFAULT_BUDGET, Format, Redact, Request};
use crate::section::{Item, Ladder, Page, Pen, Section};
use crate::source::Tree;
use crate::text::{grouped, sha256, shown_path};
use crate::{prefix, sources, tail};

/// Compiles documents from the files of one project.
///
/// A request and the content of the files decide every byte: no clock, no environment, no order of a file system.
pub struct Compiler<'a> {
    tree: &'a dyn Tree,
    cache: &'a Cache,
    catalogue: &'a Catalogue,
    redact: Option<&'a dyn Redact>,
}

impl std::fmt::Debug for Compiler<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiler").field("cache", &self.cache).finish_non_exhaustive()
    }
}

/// What the names of things left out take in the document: beyond so many, their number.
const TOLD: usize = 12;
/// Names that are listed as inside.
const NAMED: usize = 24;

/// A half of the document before its size is known.
struct Half<'a> {
    items: Vec<Box<dyn Item + 'a>>,
    /// What stands around the items.
    around: usize,
    /// What the whole has more than its parts, counted one by one: where they meet, more tokens may begin.
    excess: usize,
}

impl Half<'_> {
    fn least(&self) -> usize {
        self.around + self.items.iter().map(|item| item.least()).sum::<usize>()
    }

    fn most(&self) -> usize {
        self.around + self.items.iter().map(|item| item.most()).sum::<usize>() + self.excess
    }

    /// What each item may have of `tokens`. With more, none has less.
    fn shares(&self, tokens: usize) -> Vec<usize> {
        let wants =
            self.items.iter().map(|item| Want { weight: item.weight(), most: item.most() - item.least() });
        let wants: Vec<Want> = wants.collect();
        let shares = share(tokens.saturating_sub(self.least()), &wants);
        self.items.iter().zip(shares).map(|(item, share)| item.least() + share).collect()
    }

    /// Writes the items into `page`, in `tokens` at most.
    fn write(&self, tokens: usize, page: &mut Page<'_>) {
        for (item, share) in self.items.iter().zip(self.shares(tokens)) {
            item.write(share, page);
        }
    }

    /// How much of each item there is with `tokens`.
    fn levels(&self, tokens: usize) -> Vec<usize> {
        self.items.iter().zip(self.shares(tokens)).map(|(item, share)| item.level(share)).collect()
    }

    /// The most tokens with which less is written than with `tokens`; none if there is no less.
    fn below(&self, tokens: usize) -> Option<usize> {
        let levels = self.levels(tokens);
        let (mut less, mut same) = (self.least(), tokens);
        if less >= same || self.levels(less) == levels {
            return None;
        }
        while same - less > 1 {
            let middle = less + (same - less) / 2;
            if self.levels(middle) == levels {
                same = middle;
            } else {
                less = middle;
            }
        }
        Some(less)
    }
}

impl<'a> Compiler<'a> {
    /// A compiler of the files in `tree`, with tokens by the counter of `cache`, the built-in catalogue, and no
    /// redaction. What the cache holds makes it faster and no other difference.
    pub fn new(tree: &'a dyn Tree, cache: &'a Cache) -> Self {
        Self { tree, cache, catalogue: Catalogue::built_in(), redact: None }
    }

    /// Which documents a role reads, and where they are looked for. [`Catalogue::built_in`] by default.
    #[must_use]
    pub fn catalogue(mut self, catalogue: &'a Catalogue) -> Self {
        self.catalogue = catalogue;
        self
    }

    /// What masks secrets. Nothing by default.
    #[must_use]
    pub fn redact(mut self, redact: &'a dyn Redact) -> Self {
        self.redact = Some(redact);
        self
    }

    /// The document that `request` asks for.
    ///
    /// A file that changed between its reading and the end is read again, once; what then still changes is named
    /// in the [diagnostics](Manifest::diagnostics).
    ///
    /// # Errors
    /// A request that cannot be used, a plan that was named and cannot be read, and a budget in which not even a
    /// line for each section fits.
    pub fn compile(&self, request: &Request) -> Result<Compiled, Error> {
        let (compiled, moved) = self.compile_once(request)?;
        if moved.is_empty() {
            return Ok(compiled);
        }
        let (mut compiled, moved) = self.compile_once(request)?;
        let diagnostics = moved.iter().map(|path| format!("{} keeps changing", shown_path(path)));
        compiled.manifest.diagnostics.extend(diagnostics);
        Ok(compiled)
    }

    fn compile_once(&self, request: &Request) -> Result<(Compiled, Vec<String>), Error> {
        request.check()?;
        let role = self.catalogue.role(&request.role);
        let layout = self.catalogue.layout();
        let tokens = request.budget.or(role.budget).unwrap_or(DEFAULT_BUDGET);
        let budget = Budget { tokens, factor: request.factor };
        let counter = self.cache.counter();
        let pen = Pen { format: request.format, counter };
        let loader = Loader::new(self.tree, self.redact);
        let mut diagnostics = Vec::new();
        if !self.catalogue.knows(&request.role) {
            diagnostics.push(format!("unknown_role: `{}` reads what any other role does", request.role));
        }

        let documents = prefix::documents(&loader, layout, &role);
        let mut inside = documents.names;
        let mut left_out = documents.left_out;
        let plans = tail::plans(&loader, layout, &role, request)?;
        inside.extend(plans.names);
        left_out.extend(plans.left_out);
        diagnostics.extend(plans.diagnostics);

        let detail = request.diff.unwrap_or(role.diff);
        let asked = request.changes.as_ref().filter(|_| detail != Diff::Off);
        let mut sections: Vec<(Section, usize)> =
            plans.sections.into_iter().map(|section| (section, PLANS)).collect();
        if let Some(section) = request.test_failures.as_deref().and_then(|said| tail::failures(&loader, said))
        {
            inside.push(section.path.clone());
            sections.push((section, FAILURES));
        }
        if let Some(changes) = asked {
            let paths = documents.sections.iter().chain(sections.iter().map(|(section, _)| section));
            let paths: Vec<&str> = paths.map(|section| section.path.as_str()).collect();
            if let Some((section, unread)) = tail::changes(&loader, changes, detail, &paths) {
                inside.push(section.path.clone());
                sections.push((section, CHANGES));
                left_out.extend(unread);
            }
        }

        let include = request.include.as_ref().unwrap_or(&role.include);
        let exclude = [role.exclude.as_slice(), &request.exclude].concat();
        let present: Vec<String> = documents
            .sections
            .iter()
            .chain(sections.iter().map(|(section, _)| section))
            .map(|section| section.path.clone())
            .collect();
        let present: Vec<&str> = present.iter().map(String::as_str).collect();
        let changed = asked.map(|changes| changes.files.iter().map(|file| file.path.clone()).collect());
        let selected = sources::select(
            &loader,
            self.cache,
            pen,
            include,
            &exclude,
            request.code,
            &present,
            changed.unwrap_or_default(),
        )?;
        let sources = selected.map(|selected| {
            inside.push(format!("{} source files", grouped(selected.sources.len())));
            left_out.extend(selected.left_out);
            diagnostics.extend(selected.diagnostics);
            selected.sources
        });

        let cost = |text: &str| counter.count(text);
        let format = request.format;
        let ladder = |(section, weight): (Section, usize)| {
            let path = loader.name(&section.path).into_owned();
            Box::new(Ladder::new(Section { path, ..section }, weight, pen)) as Box<dyn Item + '_>
        };
        for left in &mut left_out {
            left.path = loader.name(&left.path).into_owned();
            left.reason = loader.name(&left.reason).into_owned();
        }
        for diagnostic in &mut diagnostics {
            *diagnostic = loader.name(diagnostic).into_owned();
        }
        let mut first = Half {
            items: documents.sections.into_iter().map(|section| ladder((section, 1))).collect(),
            around: cost(format.prefix_open()) + cost(format.prefix_close()) + 1,
            excess: 0,
        };
        let write_first = |first: &Half<'_>, tokens: usize| {
            let mut page =
                Page { pen, text: format.prefix_open().to_owned(), entries: Vec::new(), in_prefix: true };
            first.write(tokens, &mut page);
            page.text.push_str(format.prefix_close());
            (cost(&page.text), page)
        };
        // Or what could use no more would be cut where the budget is ample.
        first.excess = write_first(&first, first.most()).0.saturating_sub(first.most());
        let phase = request.phase.filter(|phase| *phase > 0);
        let head = format.tail_open(&request.role, phase);
        let since = |changes: &Changes| {
            let base = shown_path(&loader.name(&changes.base)).into_owned();
            (base, loader.name(&tail::told(changes)).into_owned())
        };
        let end = format.tail_close(&Summary {
            inside: named(inside.iter().map(|name| listed(format, &loader.name(name))).collect(), NAMED),
            changes: asked.map(since),
            left_out: told(format, &left_out),
        });
        // What changes least first: a cache serves what is as it was, up to the first difference.
        let plans = sections.partition_point(|(section, _)| section.kind == Kind::Plan);
        let mut items: Vec<Box<dyn Item + '_>> = sections.into_iter().map(ladder).collect();
        if let Some(sources) = sources {
            items.insert(plans, Box::new(sources));
        }
        let second = Half { items, around: cost(&head) + cost(&end) + 2, excess: 0 };

        let plan = Division { first: &first, second: &second, share: request.prefix_share as usize };
        if !plan.fits(budget) {
            return Err(Error::BudgetTooSmall { budget: tokens, needed: plan.needed(budget.factor) });
        }
        let (for_first, for_second) = plan.divide(budget);
        let (prefix, prefix_tokens, mut entries) =
            exactly(&first, for_first, |tokens| write_first(&first, tokens));
        let (tail, tail_tokens, rest) = exactly(&second, for_second, |tokens| {
            let mut page = Page { pen, text: head.clone(), entries: Vec::new(), in_prefix: false };
            second.write(tokens, &mut page);
            page.text.push_str(&end);
            (cost(&page.text), page)
        });
        entries.extend(rest);
        let counted = prefix_tokens + tail_tokens;
        if counted > budget.counted() {
            // The pieces of a text never were more tokens than the text by as much; but a promise is kept.
            return Err(Error::BudgetTooSmall { budget: tokens, needed: budget.seen(counted) });
        }

        let prefix_hash = sha256(prefix.as_bytes());
        let cache_hit = request.known_prefix.as_deref().is_some_and(|known| known == prefix_hash);
        let seen_prefix = budget.seen(prefix_tokens);
        let manifest = Manifest {
            format_version: 1,
            role: request.role.clone(),
            phase,
            format,
            counter: counter.name().to_owned(),
            counter_is_estimate: counter.is_estimate(),
            factor: f64::from(request.factor) / 1_000.0,
            budget: tokens,
            tokens: budget.seen(counted),
            counted_tokens: counted,
            input_tokens_estimate: budget.seen(counted),
            prefix_hash,
            prefix_bytes: prefix.len(),
            prefix_tokens,
            volatile_bytes: tail.len(),
            volatile_tokens: tail_tokens,
            total_size: prefix.len() + tail.len(),
            cache_hit,
            cache_read_tokens_estimate: if cache_hit { seen_prefix } else { 0 },
            cache_write_tokens_estimate: if cache_hit { 0 } else { seen_prefix },
            cacheable: Cacheable {
                min_512: seen_prefix >= 512,
                min_1024: seen_prefix >= 1024,
                min_2048: seen_prefix >= 2048,
                min_4096: seen_prefix >= 4096,
            },
            git: asked.map(git_entry),
            sections: entries,
            left_out,
            diagnostics,
        };
        Ok((Compiled { prefix, tail, manifest }, loader.moved()))
    }
}

/// Shares of the tail: what is to be done before what was done.
const PLANS: usize = 4;
const FAILURES: usize = 3;
const CHANGES: usize = 3;

/// How the budget is divided between the halves.
struct Division<'a> {
    first: &'a Half<'a>,
    second: &'a Half<'a>,
    /// What the first can have at most, in per cent.
    share: usize,
}

impl Division<'_> {
    /// What each half may have. The first depends on nothing in the second; what it cannot use is the second's.
    fn divide(&self, budget: Budget) -> (usize, usize) {
        let all = budget.counted();
        let first = (all.saturating_mul(self.share) / 100).min(self.first.most());
        (first, all - first)
    }

    fn fits(&self, budget: Budget) -> bool {
        let (first, second) = self.divide(budget);
        first >= self.first.least() && second >= self.second.least()
    }

    /// The smallest budget that fits. With more, both halves get more, so it can be searched for.
    fn needed(&self, factor: u32) -> usize {
        let (mut small, mut enough) = (0, 1_usize);
        while !self.fits(Budget { tokens: enough, factor }) && enough < usize::MAX / 20_000 {
            small = enough;
            enough *= 2;
        }
        while enough - small > 1 {
            let middle = small + (enough - small) / 2;
            if self.fits(Budget { tokens: middle, factor }) {
                enough = middle;
            } else {
                small = middle;
            }
        }
        enough
    }
}

/// Writes `half` with `tokens`, and with fewer while the whole has more tokens than its pieces had: that is rare, and
/// mostly few.
fn exactly<'a>(
    half: &Half<'_>,
    tokens: usize,
    write: impl Fn(usize) -> (usize, Page<'a>),
) -> (String, usize, Vec<SectionEntry>) {
    /// Of steps no longer than needed. Each writes and counts everything, so beyond these each is twice as long.
    const EXACT: u32 = 12;
    let mut given = tokens;
    for step in 0_u32.. {
        let (counted, page) = write(given);
        let over = counted.saturating_sub(tokens);
        // Less that changes nothing has not to be tried.
        let below = if over > 0 { half.below(given) } else { None };
        let Some(below) = below else { return (page.text, counted, page.entries) };
        let over = over.saturating_mul(1 << step.saturating_sub(EXACT).min(31));
        given = below.min(given.saturating_sub(over)).max(half.least());
    }
    (String::new(), 0, Vec::new())
}

/// At most `most` of `names`, and how many more there are.
fn named(mut names: Vec<String>, most: usize) -> Vec<String> {
    let more = names.len().saturating_sub(most);
    names.truncate(most);
    if more > 0 {
        names.push(format!("{} more", grouped(more)));
    }
    names
}

/// `name` as it stands in a list: quoted where its commas would look like those of the list.
fn listed(format: Format, name: &str) -> String {
    let name = shown_path(name);
    if format == Format::Markdown && name.contains(", ") { format!("\"{name}\"") } else { name.into_owned() }
}

/// What is told of what is not there.
fn told(format: Format, left_out: &[LeftOut]) -> Vec<String> {
    let told = left_out.iter().filter(|item| item.told);
    let told = told.map(|item| format!("{} ({})", listed(format, &item.path), shown_path(&item.reason)));
    named(told.collect(), TOLD)
}

fn git_entry(changes: &Changes) -> GitEntry {
    let (insertions, deletions) = tail::totals(changes);
    GitEntry {
        outcome: changes.outcome.clone(),
        since: changes.base.clone(),
        files: changes.files.len(),
        insertions,
        deletions,
        truncated: changes.truncated,
        filters_off: changes.filters_off,
    }
}
