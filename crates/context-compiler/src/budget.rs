//! Budgets in tokens, and a division in which no share shrinks when there is more to divide.

/// The largest budget that a request may have, in tokens.
pub const MAX_BUDGET_TOKENS: usize = 2_000_000;

/// A budget in tokens of the model, and how many of those one counted token may become.
///
/// The counter and the model often have different vocabularies. Everything inside the crate is in counted tokens; only
/// the request and the manifest speak of tokens of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenBudget {
    pub(crate) model_tokens: usize,
    /// Tokens of the model for 1,000 counted tokens.
    pub(crate) factor_permille: u32,
}

impl TokenBudget {
    /// The most counted tokens that fit the budget, rounded down.
    pub(crate) fn counted_tokens(self) -> usize {
        self.model_tokens.saturating_mul(1_000) / self.factor_permille.max(1) as usize
    }

    /// The tokens of the model that `counted` tokens may become, rounded up.
    pub(crate) fn to_model_tokens(self, counted: usize) -> usize {
        counted.saturating_mul(self.factor_permille as usize).div_ceil(1_000)
    }
}

/// The tokens that one section asks for when a budget is divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SectionBudgetRequest {
    /// The size of its share relative to those of the other sections.
    pub(crate) weight: usize,
    /// The most tokens that it can use.
    pub(crate) max_tokens: usize,
}

/// Divides `available` tokens by weight, and gives what one section cannot use to the others. So small sections are
/// complete before large ones are cut.
///
/// Each section gets `min(weight × level, max_tokens)` for the highest level that fits, and therefore no share shrinks
/// when there is more to divide. A division in order of precedence does not have that property: a larger share for the
/// first section may leave less for the second.
pub(crate) fn divide(available: usize, requests: &[SectionBudgetRequest]) -> Vec<usize> {
    let shares_at = |level: usize| {
        requests.iter().map(move |request| request.weight.saturating_mul(level).min(request.max_tokens))
    };
    let total_at = |level: usize| shares_at(level).fold(0_usize, usize::saturating_add);
    let highest = requests.iter().map(|request| request.max_tokens).max().unwrap_or(0);
    // The total grows with the level, so the highest one that fits is found by bisection.
    // Level 0 always fits. With a weight of 1 or more, every section has all that it can use at `highest`, so no level
    // above it gives more.
    let (mut fits, mut exceeds) = (0, highest + 1);
    while exceeds - fits > 1 {
        let middle = fits + (exceeds - fits) / 2;
        if total_at(middle) <= available {
            fits = middle;
        } else {
            exceeds = middle;
        }
    }
    shares_at(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn requests() -> impl Strategy<Value = Vec<SectionBudgetRequest>> {
        let request = (1..9_usize, 0..5_000_usize)
            .prop_map(|(weight, max_tokens)| SectionBudgetRequest { weight, max_tokens });
        proptest::collection::vec(request, 0..8)
    }

    #[test]
    fn small_sections_are_complete_before_large_ones_are_cut() {
        let requests = [100, 5_000, 5_000].map(|max_tokens| SectionBudgetRequest { weight: 1, max_tokens });
        assert_eq!(divide(1_100, &requests), [100, 500, 500]);
    }

    #[test]
    fn a_factor_rounds_so_that_the_budget_holds() {
        let budget = TokenBudget { model_tokens: 1_000, factor_permille: 1_350 };
        assert_eq!(budget.counted_tokens(), 740);
        assert!(budget.to_model_tokens(740) <= 1_000 && budget.to_model_tokens(741) > 1_000);
    }

    proptest! {
        #[test]
        fn shares_fit_and_grow_with_what_is_available(
            requests in requests(), less in 0..20_000_usize, more in 0..5_000_usize,
        ) {
            let (small, large) = (divide(less, &requests), divide(less + more, &requests));
            prop_assert!(small.iter().sum::<usize>() <= less);
            prop_assert!(small.iter().zip(&large).all(|(small, large)| small <= large));
            if requests.iter().map(|request| request.max_tokens).sum::<usize>() <= less {
                prop_assert!(small.iter().zip(&requests).all(|(share, request)| *share == request.max_tokens));
            }
        }
    }
}
