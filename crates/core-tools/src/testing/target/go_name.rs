//! Names of tests as the reports of Go have them.

/// A name of a Go test, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GoTestName<'a> {
    /// The package, such as `example.org/package`, where the name has one.
    pub(crate) package: Option<&'a str>,
    /// The test, such as `TestName/subtest`.
    pub(crate) test: &'a str,
}

impl<'a> GoTestName<'a> {
    /// Takes `example.org/package.TestName/subtest` apart. Any other text is the name of a test, or a part of
    /// one.
    pub(crate) fn parse(name: &'a str) -> Self {
        let begins = [".Test", ".Example", ".Fuzz"].iter().filter_map(|kind| name.find(kind)).min();
        match begins {
            Some(dot) if dot > 0 && !name[..dot].contains(' ') => {
                Self { package: Some(&name[..dot]), test: &name[dot + 1..] }
            }
            _ => Self { package: None, test: name },
        }
    }
}
