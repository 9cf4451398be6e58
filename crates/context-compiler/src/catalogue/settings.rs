//! The TOML form of a catalogue. A key that is absent leaves the value as it is.

use super::role::{DiffDetail, RoleProfile};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The content of a catalogue file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CatalogueSettings {
    pub(super) layout: CatalogueLayoutSettings,
    pub(super) roles: BTreeMap<String, CatalogueRoleSettings>,
}

/// The table `[layout]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CatalogueLayoutSettings {
    folders: Option<Vec<String>>,
    conventions: Option<Vec<String>>,
    orientation: Option<Vec<String>>,
    order: Option<Vec<String>>,
    phases: Option<Vec<String>>,
    plans: Option<Vec<String>>,
}

/// A table `[roles.NAME]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CatalogueRoleSettings {
    /// The role whose values are taken for the keys that are absent here.
    pub(super) extends: Option<String>,
    /// Must be true to replace a role that exists already.
    #[serde(rename = "override")]
    pub(super) replaces: bool,
    pub(super) documents: Option<Vec<String>>,
    include: Option<Vec<String>>,
    exclude: Option<Vec<String>>,
    diff: Option<DiffDetail>,
    #[serde(rename = "plans")]
    max_plans: Option<usize>,
    #[serde(rename = "budget")]
    budget_tokens: Option<usize>,
    completed_phases: Option<bool>,
}

/// The places of documents and plans in a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlanningLayout {
    /// The folders in which a document is looked for, in this order; `""` is the root.
    pub(crate) folders: Vec<String>,
    /// Files in the root that replace a missing `CONVENTIONS.md`.
    pub(crate) conventions: Vec<String>,
    /// Files in the root that explain a project without planning documents.
    pub(crate) orientation: Vec<String>,
    /// The order of documents. `*` stands for those not named, which are in byte order among themselves.
    pub(crate) order: Vec<String>,
    /// The folders that contain one folder for each phase.
    pub(crate) phases: Vec<String>,
    /// File names of plans; a leading `*` matches any beginning.
    pub(crate) plans: Vec<String>,
}

impl CatalogueLayoutSettings {
    /// Returns `base` with the values that are set here.
    pub(super) fn apply_to(self, base: PlanningLayout) -> PlanningLayout {
        PlanningLayout {
            folders: self.folders.unwrap_or(base.folders),
            conventions: self.conventions.unwrap_or(base.conventions),
            orientation: self.orientation.unwrap_or(base.orientation),
            order: self.order.unwrap_or(base.order),
            phases: self.phases.unwrap_or(base.phases),
            plans: self.plans.unwrap_or(base.plans),
        }
    }
}

impl CatalogueRoleSettings {
    /// Returns `base` with the values that are set here.
    pub(super) fn apply_to(self, base: RoleProfile) -> RoleProfile {
        RoleProfile {
            documents: self.documents.unwrap_or(base.documents),
            include: self.include.unwrap_or(base.include),
            exclude: self.exclude.unwrap_or(base.exclude),
            diff: self.diff.unwrap_or(base.diff),
            max_plans: self.max_plans.unwrap_or(base.max_plans),
            budget_tokens: self.budget_tokens.or(base.budget_tokens),
            completed_phases: self.completed_phases.unwrap_or(base.completed_phases),
        }
    }
}

impl PlanningLayout {
    /// Returns `documents` in the order in which they are compiled, each once.
    pub(crate) fn sort_documents<'a>(&self, documents: &'a [String]) -> Vec<&'a str> {
        let unnamed_position = self.order.iter().position(|name| name == "*").unwrap_or(self.order.len());
        let position =
            |document: &str| self.order.iter().position(|name| name == document).unwrap_or(unnamed_position);
        let mut sorted: Vec<&str> = documents.iter().map(String::as_str).collect();
        sorted.sort_by(|a, b| (position(a), *a).cmp(&(position(b), *b)));
        sorted.dedup();
        sorted
    }
}
