//! The environments of tox and the sessions of nox that a run left out: both succeed without them.

/// The number of environments that are named.
const MAX_NAMED: usize = 20;

/// Returns a note on the environments that the summary of tox or nox calls skipped, such as those of a Python that is not
/// installed.
pub(super) fn skipped_environments(text: &str) -> Option<String> {
    let has_tox_summary = text
        .lines()
        .any(|line| line.starts_with("  congratulations :)") || line.starts_with("  evaluation failed :("));
    let of_tox = |line: &str| {
        let (name, rest) = line.strip_prefix("  ").filter(|_| has_tox_summary)?.split_once(": SKIP")?;
        (rest.is_empty() || rest.starts_with(" (")).then(|| name.to_owned())
    };
    let of_nox = |line: &str| {
        let (name, rest) = line.strip_prefix("nox > * ")?.split_once(": skipped")?;
        Some(format!("{name}{rest}"))
    };
    let mut skipped: Vec<_> = text.lines().filter_map(|line| of_tox(line).or_else(|| of_nox(line))).collect();
    let all = skipped.len();
    skipped.truncate(MAX_NAMED);
    (all > 0).then(|| {
        let more = if all > MAX_NAMED { ", ..." } else { "" };
        format!("{all} environments were skipped, and their tests did not run: {}{more}", skipped.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tox_and_nox_skip_is_named() {
        let tox = "py27: skipped because could not find python interpreter with spec(s): py27\n  py311: OK (0.58=setup[0.52]+cmd[0.06] seconds)\n  py27: SKIP (0.99 seconds)\n  congratulations :) (1.62 seconds)\n";
        let note = skipped_environments(tox).unwrap();
        assert_eq!(note, "1 environments were skipped, and their tests did not run: py27");
        let nox =
            "nox > * tests-3.11: success\nnox > * tests-2.7: skipped (Python interpreter 2.7 not found)\n";
        assert!(
            skipped_environments(nox).unwrap().ends_with("run: tests-2.7 (Python interpreter 2.7 not found)")
        );
        assert_eq!(skipped_environments("  a: SKIP (1)\n  ok\n"), None, "no summary of tox");
    }
}
