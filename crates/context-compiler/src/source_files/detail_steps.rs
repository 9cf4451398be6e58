//! The order in which files get more detail: a sequence of steps from no file to every file whole, of which as many are
//! taken as the budget allows. With more budget more steps are taken, so no file ever loses detail.

use super::index::SourceFileIndex;
use super::ranking::InclusionReason;

/// Tokens above which a file is whole only after smaller ones are.
const LARGE_FILE_TOKENS: usize = 6_000;
/// Tokens of a file that is whole at once, because its outline would save little.
const SMALL_FILE_TOKENS: usize = 160;
/// The files that get a line with their names, and those that get an outline, in the first round. Each later round has
/// twice as many.
const FIRST_LINES: usize = 16;
const FIRST_OUTLINES: usize = 6;

/// The detail in which one file is in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SourceFileDetail {
    /// Only counted in the list.
    Hidden,
    /// Its path in the list.
    Name,
    /// Its path in the list with the names that it exports.
    Line,
    /// The most important lines of a long outline.
    Head,
    Outline,
    Whole,
}

/// A step that brings one file to a detail.
#[derive(Clone, Copy, Debug)]
pub(super) struct DetailStep {
    pub(super) file: usize,
    pub(super) detail: SourceFileDetail,
}

/// Collects the steps, each of which brings a file further than it is.
struct DetailStepList<'a> {
    index: &'a SourceFileIndex,
    whole_costs: &'a [Option<usize>],
    may_be_whole: bool,
    details: Vec<SourceFileDetail>,
    steps: Vec<DetailStep>,
}

/// Returns the steps for the files of `index`. `whole_costs` are the tokens of each file that can be quoted, and
/// `every_file` is true if every file is wanted whole, and not only those that are related to the request.
pub(super) fn detail_steps(
    index: &SourceFileIndex,
    whole_costs: &[Option<usize>],
    may_be_whole: bool,
    every_file: bool,
) -> Vec<DetailStep> {
    let details = vec![SourceFileDetail::Hidden; whole_costs.len()];
    let mut list = DetailStepList { index, whole_costs, may_be_whole, details, steps: Vec::new() };
    let reason = |file: &usize| index.ranking.reasons.get(*file).copied();
    let order = &index.ranking.order;
    let with =
        |wanted: InclusionReason| order.iter().copied().filter(move |file| reason(file) == Some(wanted));
    // First in the budget is what changed, then what failures name, then what either uses.
    let first = [InclusionReason::Changed, InclusionReason::NamedByFailures];
    for wanted in first {
        with(wanted).for_each(|file| list.name(file));
        with(wanted).for_each(|file| list.head(file));
        with(wanted).filter(|file| !is_large(whole_costs, *file)).for_each(|file| list.whole(file));
    }
    let used: Vec<usize> = with(InclusionReason::UsedByChanges).collect();
    used.iter().for_each(|file| list.head(*file));
    let used = used.iter().take(FIRST_OUTLINES).filter(|file| !is_large(whole_costs, **file));
    used.for_each(|file| list.outline(*file));
    // Then outlines and the map take turns: the best files in outline, more of them with their names, many by path.
    let (mut lines, mut outlines) = (FIRST_LINES, FIRST_OUTLINES);
    loop {
        order.iter().take(lines).for_each(|file| list.line(*file));
        let is_related = |file: &&usize| every_file || reason(file) < Some(InclusionReason::Unrelated);
        order.iter().take(outlines).filter(is_related).for_each(|file| list.head(*file));
        order.iter().take(lines * 8).for_each(|file| list.name(*file));
        // A whole file can take what the outlines of ten others need.
        order.iter().take(outlines * 5 / 3).filter(is_related).for_each(|file| list.head(*file));
        let is_task = |file: &&usize| reason(file) == Some(InclusionReason::MatchesTask);
        let best = order.iter().take(outlines / 3).filter(is_task);
        best.filter(|file| !is_large(whole_costs, **file)).for_each(|file| list.whole(*file));
        if outlines >= order.len() {
            break;
        }
        (lines, outlines) = (lines * 2, outlines * 2);
    }
    order.iter().for_each(|file| list.name(*file));
    // Whole files last, large ones after small ones, since one of them can take what many others need.
    let up_to = |limit: InclusionReason| -> Vec<usize> {
        let is_wanted = |file: &usize| every_file || reason(file).is_some_and(|reason| reason <= limit);
        order.iter().copied().filter(is_wanted).collect()
    };
    let related = up_to(InclusionReason::Neighbour);
    let wanted = match index.ranking.is_directed {
        true => related.clone(),
        // Nothing says which file is wanted, so only those where a reader would begin.
        false => up_to(InclusionReason::EntryPoint),
    };
    first.into_iter().flat_map(with).for_each(|file| list.whole(file));
    related.iter().for_each(|file| list.outline(*file));
    wanted.iter().filter(|file| !is_large(whole_costs, **file)).for_each(|file| list.whole(*file));
    wanted.iter().for_each(|file| list.whole(*file));
    list.steps
}

fn is_large(whole_costs: &[Option<usize>], file: usize) -> bool {
    whole_costs.get(file).copied().flatten().is_some_and(|tokens| tokens > LARGE_FILE_TOKENS)
}

impl DetailStepList<'_> {
    fn push(&mut self, file: usize, detail: SourceFileDetail) {
        if let Some(current) = self.details.get_mut(file).filter(|current| **current < detail) {
            *current = detail;
            self.steps.push(DetailStep { file, detail });
        }
    }

    fn whole_cost(&self, file: usize) -> Option<usize> {
        self.whole_costs.get(file).copied().flatten().filter(|_| self.may_be_whole)
    }

    fn name(&mut self, file: usize) {
        self.push(file, SourceFileDetail::Name);
    }

    fn line(&mut self, file: usize) {
        self.push(file, SourceFileDetail::Line);
    }

    /// Takes the file to the head of its outline, or further if the whole is not much more.
    fn head(&mut self, file: usize) {
        let outline = self.index.outline_costs.get(file).copied().flatten();
        if self
            .whole_cost(file)
            .is_some_and(|whole| whole <= SMALL_FILE_TOKENS.max(outline.unwrap_or(0) * 5 / 4))
        {
            return self.push(file, SourceFileDetail::Whole);
        }
        match self.index.heads.get(file) {
            Some(Some(_)) => self.push(file, SourceFileDetail::Head),
            _ if outline.is_some() => self.push(file, SourceFileDetail::Outline),
            _ => self.push(file, SourceFileDetail::Line),
        }
    }

    fn outline(&mut self, file: usize) {
        if self.index.outline_costs.get(file).copied().flatten().is_some() {
            self.head(file);
            self.push(file, SourceFileDetail::Outline);
        } else {
            self.line(file);
        }
    }

    fn whole(&mut self, file: usize) {
        if self.whole_cost(file).is_some() {
            self.outline(file);
            self.push(file, SourceFileDetail::Whole);
        }
    }
}
