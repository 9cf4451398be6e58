//! The query of a page's address: filters, and what a form has done.

use super::super::form;
use http::Uri;
use std::collections::HashMap;

/// The fields of a query. One that is no query, or has a field twice, has none.
#[derive(Debug, Default)]
pub(super) struct PageQuery(HashMap<String, String>);

impl PageQuery {
    pub(super) fn of(uri: &Uri) -> Self {
        Self(form::parse(uri.query().unwrap_or_default().as_bytes()).unwrap_or_default())
    }

    /// Returns a field without blanks around it; empty if it is missing.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |value| value.trim())
    }
}
