//! Dividing tokens: a division in which nobody gets less when there is more to divide.

/// The largest budget, in tokens.
pub const MAX_BUDGET: usize = 2_000_000;

/// A budget in a model's tokens, and how many of those one counted token may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) tokens: usize,
    /// In thousandths.
    pub(crate) factor: u32,
}

impl Budget {
    /// The most counted tokens of which the model sees no more than the budget.
    pub(crate) fn counted(self) -> usize {
        self.tokens.saturating_mul(1_000) / self.factor.max(1) as usize
    }

    /// What the model sees of `counted` tokens, rounded up.
    pub(crate) fn seen(self, counted: usize) -> usize {
        counted.saturating_mul(self.factor as usize).div_ceil(1_000)
    }
}

/// What wants a share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    /// Its share, relative to those of the others.
    pub(crate) weight: usize,
    /// What it can use at most.
    pub(crate) most: usize,
}

/// Divides `available` by weight. What one cannot use goes to the others, so that the small are whole before the
/// large are cut.
///
/// Each gets `min(weight × level, most)` for the highest level that fits. So with more to divide no share shrinks,
/// which a division by order of precedence does not give: there a larger share for the first may leave less for
/// the second.
pub(crate) fn share(available: usize, wants: &[Want]) -> Vec<usize> {
    let at = |level: usize| wants.iter().map(move |want| want.weight.saturating_mul(level).min(want.most));
    let total = |level: usize| at(level).fold(0_usize, usize::saturating_add);
    let highest = wants.iter().map(|want| want.most).max().unwrap_or(0);
    let (mut fits, mut above) = (0, highest + 1);
    while above - fits > 1 {
        let middle = fits + (above - fits) / 2;
        if total(middle) <= available {
            fits = middle;
        } else {
            above = middle;
        }
    }
    at(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wants() -> impl Strategy<Value = Vec<Want>> {
        let want = (1..9_usize, 0..5_000_usize).prop_map(|(weight, most)| Want { weight, most });
        proptest::collection::vec(want, 0..8)
    }

    #[test]
    fn the_small_are_whole_before_the_large_are_cut() {
        let wants = [100, 5_000, 5_000].map(|most| Want { weight: 1, most });
        assert_eq!(share(1_100, &wants), [100, 500, 500]);
    }

    #[test]
    fn a_factor_rounds_so_that_the_budget_holds() {
        let budget = Budget { tokens: 1_000, factor: 1_350 };
        assert_eq!(budget.counted(), 740);
        assert!(budget.seen(740) <= 1_000 && budget.seen(741) > 1_000);
    }

    proptest! {
        #[test]
        fn shares_fit_and_grow_with_what_is_there(wants in wants(), less in 0..20_000_usize, more in 0..5_000_usize) {
            let (small, large) = (share(less, &wants), share(less + more, &wants));
            prop_assert!(small.iter().sum::<usize>() <= less);
            prop_assert!(small.iter().zip(&large).all(|(small, large)| small <= large));
            if wants.iter().map(|want| want.most).sum::<usize>() <= less {
                prop_assert!(small.iter().zip(&wants).all(|(share, want)| *share == want.most));
            }
        }
    }
}
