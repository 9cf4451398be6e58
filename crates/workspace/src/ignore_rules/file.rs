//! The rules of one ignore file.

use std::collections::HashMap;

use super::rule::{IgnoreRule, RulePattern};

/// The most rules that are compared one by one. More are looked up, as far as they are plain: a file of hundreds of rules is
/// asked about every entry of a project.
const MAX_COMPARED_RULES: usize = 16;

/// The rules of one ignore file.
#[derive(Debug, Default)]
pub struct IgnoreFile {
    /// In the order of the file.
    rules: Vec<IgnoreRule>,
    /// The rules that match one name or one path, names with one extension (with its dot), or paths in one folder of the
    /// ignore file's own. Positions in `rules`, in ascending order.
    by_name: HashMap<Vec<u8>, Vec<usize>>,
    by_path: HashMap<Vec<u8>, Vec<usize>>,
    by_extension: HashMap<Vec<u8>, Vec<usize>>,
    by_top: HashMap<Vec<u8>, Vec<usize>>,
    /// The positions of all other rules, in ascending order.
    compared: Vec<usize>,
}

impl IgnoreFile {
    /// Parses an ignore file. No line is an error, because git gives each one a meaning.
    pub fn parse(text: &[u8]) -> Self {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let lines = text.split(|&byte| byte == b'\n');
        let rules = lines.filter_map(|line| IgnoreRule::parse(line.strip_suffix(b"\r").unwrap_or(line)));
        let mut file = Self { rules: rules.collect(), ..Self::default() };
        let is_indexed = file.rules.len() > MAX_COMPARED_RULES;
        for (at, rule) in file.rules.iter().enumerate() {
            let (index, key) = match &rule.matcher {
                _ if !is_indexed => (None, &[][..]),
                RulePattern::Name(name) => (Some(&mut file.by_name), name.as_slice()),
                RulePattern::Path(path) => (Some(&mut file.by_path), path.as_slice()),
                RulePattern::NameSuffix(suffix) => match extension(suffix) {
                    Some(extension) => (Some(&mut file.by_extension), extension),
                    None => (None, &[][..]),
                },
                // The slash before a `**` is a part of the pattern.
                RulePattern::PathPattern { prefix, pattern } => match top(prefix)
                    .or((pattern.starts_with(b"/") && !prefix.is_empty()).then_some(prefix.as_slice()))
                {
                    Some(top) => (Some(&mut file.by_top), top),
                    None => (None, &[][..]),
                },
                RulePattern::NamePattern { .. } => (None, &[][..]),
            };
            match index {
                Some(index) => index.entry(key.to_vec()).or_default().push(at),
                None => file.compared.push(at),
            }
        }
        file
    }

    /// Returns true if the file has no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns whether `path` is ignored, or `None` if no rule matches it. The last rule that matches decides.
    ///
    /// The path is relative to the folder of the ignore file and has slashes. Rules about the folders above it are no rules
    /// about it: ask for each folder on the way down.
    pub fn decide(&self, path: &[u8], is_folder: bool) -> Option<bool> {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        let looked_up = self.look_up(path, name, is_folder);
        let mut later = self.compared.iter().rev().copied().take_while(|&at| Some(at) > looked_up);
        let matching = later.find(|&at| self.rules[at].matches(path, name, is_folder));
        matching.or(looked_up).map(|at| !self.rules[at].negated)
    }

    /// Returns the position of the last indexed rule that matches.
    fn look_up(&self, path: &[u8], name: &[u8], is_folder: bool) -> Option<usize> {
        let last = |index: &HashMap<Vec<u8>, Vec<usize>>, key: Option<&[u8]>| {
            if index.is_empty() {
                return None;
            }
            let mut positions = index.get(key?)?.iter().rev().copied();
            positions.find(|&at| self.rules[at].matches(path, name, is_folder))
        };
        let exact = last(&self.by_name, Some(name)).max(last(&self.by_path, Some(path)));
        exact.max(last(&self.by_extension, extension(name))).max(last(&self.by_top, top(path)))
    }
}

/// Returns `name` from its last dot on.
fn extension(name: &[u8]) -> Option<&[u8]> {
    name.get(name.iter().rposition(|&byte| byte == b'.')?..)
}

/// Returns the first component of `path`, unless it is the only one.
fn top(path: &[u8]) -> Option<&[u8]> {
    path.get(..path.iter().position(|&byte| byte == b'/')?)
}

#[cfg(test)]
mod tests {
    use super::IgnoreFile;

    #[test]
    fn the_last_rule_that_matches_decides_and_no_rule_decides_nothing() {
        let rules = IgnoreFile::parse(
            b"\xef\xbb\xbf*.log\r\n!keep.log\n# no\n\\#yes\ntrailing \nkept\\ \n/top\na/**/z\ncut\0off\n?[Ll]iteral*x\n",
        );
        let cases = [
            ("x/y.log", Some(true)),
            ("x/keep.log", Some(false)),
            ("no", None),
            ("#yes", Some(true)),
            ("trailing", Some(true)),
            ("kept ", Some(true)),
            ("top", Some(true)),
            ("x/top", None),
            ("a/z", Some(true)),
            ("a/b/c/z", Some(true)),
            ("b/a/z", None),
            ("cut", Some(true)),
            ("aliteral-x", Some(true)),
            ("literal-x", None),
            ("a", None),
        ];
        for (path, expected) in cases {
            assert_eq!(rules.decide(path.as_bytes(), false), expected, "{path}");
        }
    }

    #[test]
    fn many_rules_decide_as_few_do() {
        let lines: Vec<String> = (0..40)
            .map(|number| match number % 10 {
                0 => format!("name{}", number % 3),
                1 => "*.log".to_owned(),
                2 => format!("!name{}/", number % 5),
                3 => format!("/a/name{}", number % 3),
                4 => "!keep.*".to_owned(),
                5 => "**/deep.log/".to_owned(),
                6 => "!*.tar.gz".to_owned(),
                7 => "a/**/deep.*".to_owned(),
                8 => "!a/*/name?".to_owned(),
                _ => "*gz".to_owned(),
            })
            .collect();
        let whole = IgnoreFile::parse(lines.join("\n").as_bytes());
        let parts: Vec<IgnoreFile> = lines.iter().map(|line| IgnoreFile::parse(line.as_bytes())).collect();
        for folder in ["", "a/", "b/a/"] {
            for name in ["name0", "name1", "name2", "x.log", "keep.log", "deep.log", "y.tar.gz", "gz", "none"]
            {
                for is_folder in [false, true] {
                    let path = format!("{folder}{name}");
                    let last = parts.iter().rev().find_map(|part| part.decide(path.as_bytes(), is_folder));
                    assert_eq!(whole.decide(path.as_bytes(), is_folder), last, "{path} {is_folder}");
                }
            }
        }
    }

    #[test]
    fn a_pattern_made_to_be_slow_is_not() {
        let pattern = "a*".repeat(200) + "b";
        let path = "a".repeat(4000);
        let started = std::time::Instant::now();
        assert_eq!(IgnoreFile::parse(pattern.as_bytes()).decide(path.as_bytes(), false), None);
        assert!(started.elapsed().as_secs() < 20);
    }
}
