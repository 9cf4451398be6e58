//! The recorded counts, and how those of a build compare with them.

use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::path::Path;

/// The instructions that each operation takes.
pub(crate) type Counts = BTreeMap<&'static str, u64>;

/// The growth of a count that is an error, in percent.
pub(crate) const MAX_GROWTH: f64 = 3.0;

const HEADING: &str = "\
# Instructions of one start with `tools/list`, one read, one list of 200 entries, one command and one decision of the
# policy, in each profile. Written by `UPDATE_INSTRUCTIONS=1 .ci/run instructions`; docs/benchmarks/start.md explains them.
";

/// The counts of each profile, as `counts.toml` has them.
#[derive(Debug, Default)]
pub(crate) struct RecordedCounts(BTreeMap<String, BTreeMap<String, u64>>);

/// The counts of a build beside the recorded ones.
#[derive(Debug)]
pub(crate) struct CountComparison(Vec<ComparedCount>);

#[derive(Debug)]
struct ComparedCount {
    name: &'static str,
    measured: u64,
    recorded: Option<u64>,
}

impl RecordedCounts {
    /// Reads the file. Its form is that of [`write`](Self::write): tables of whole numbers.
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        Self::parse(&text)
    }

    fn parse(text: &str) -> Self {
        let mut profiles = BTreeMap::<String, BTreeMap<String, u64>>::new();
        let mut profile = String::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                name.clone_into(&mut profile);
                continue;
            }
            let (name, count) = line.split_once(" = ").unwrap_or_else(|| panic!("no count: {line}"));
            let count = count.replace('_', "").parse().unwrap_or_else(|_| panic!("no number: {line}"));
            profiles.entry(profile.clone()).or_default().insert(name.to_owned(), count);
        }
        Self(profiles)
    }

    pub(crate) fn replace(&mut self, profile: &str, counts: Counts) {
        let counts = counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        self.0.insert(profile.to_owned(), counts);
    }

    pub(crate) fn write(&self, path: &Path) {
        std::fs::write(path, self.to_string()).expect("the counts can be written");
    }

    pub(crate) fn compare(&self, profile: &str, measured: &Counts) -> CountComparison {
        let recorded = self.0.get(profile);
        let compared = measured.iter().map(|(name, measured)| ComparedCount {
            name,
            measured: *measured,
            recorded: recorded.and_then(|recorded| recorded.get(*name)).copied(),
        });
        CountComparison(compared.collect())
    }
}

impl fmt::Display for RecordedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEADING)?;
        for (profile, counts) in &self.0 {
            write!(f, "\n[{profile}]\n")?;
            for (name, count) in counts {
                writeln!(f, "{name} = {}", grouped(*count))?;
            }
        }
        Ok(())
    }
}

impl CountComparison {
    /// Returns the operations whose counts have grown too much, or are not recorded.
    pub(crate) fn grown(&self) -> Vec<&'static str> {
        let grown = self.0.iter().filter(|count| count.growth().is_none_or(|growth| growth > MAX_GROWTH));
        grown.map(|count| count.name).collect()
    }
}

impl ComparedCount {
    /// Returns the growth in percent.
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn growth(&self) -> Option<f64> {
        self.recorded.map(|recorded| (self.measured as f64 / recorded as f64 - 1.0) * 100.0)
    }
}

impl fmt::Display for CountComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for count in &self.0 {
            write!(f, "{:<10}{:>14}", count.name, grouped(count.measured))?;
            match (count.recorded, count.growth()) {
                (Some(recorded), Some(growth)) => {
                    write!(f, "  recorded {:>14}  {growth:+.2} %", grouped(recorded))?;
                    if growth < -MAX_GROWTH {
                        f.write_str("  record it, so that what was gained is guarded")?;
                    }
                    f.write_char('\n')?;
                }
                _ => f.write_str("  not recorded\n")?,
            }
        }
        Ok(())
    }
}

/// Writes a number with `_` between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

#[test]
fn growth_beyond_three_percent_and_a_count_without_a_record_are_found() {
    let recorded =
        RecordedCounts::parse("# text\n\n[debug]\nlist = 1_000\nread = 1_000\nstart = 10_000_000\n");
    let measured = Counts::from([("start", 10_290_000), ("read", 1_031), ("list", 900), ("new", 1)]);
    let comparison = recorded.compare("debug", &measured);
    assert_eq!(comparison.grown(), ["new", "read"]);
    insta::assert_snapshot!(comparison, @r"
    list                 900  recorded          1_000  -10.00 %  record it, so that what was gained is guarded
    new                    1  not recorded
    read               1_031  recorded          1_000  +3.10 %
    start         10_290_000  recorded     10_000_000  +2.90 %
    ");
    assert_eq!(recorded.compare("dist", &measured).grown(), ["list", "new", "read", "start"]);
}

#[test]
fn what_is_written_is_read_again() {
    let mut recorded = RecordedCounts::default();
    recorded.replace("debug", Counts::from([("start", 102_415_079), ("read", 7)]));
    let again = RecordedCounts::parse(&recorded.to_string());
    assert_eq!(again.0, recorded.0);
}
