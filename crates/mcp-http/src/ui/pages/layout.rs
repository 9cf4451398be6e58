//! The frame of a page, and what several pages have.

use super::super::viewer::PageViewer;
use super::head::head;
use maud::{DOCTYPE, Markup, html};

/// A page in the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NavigationPage {
    Overview,
    Calls,
    History,
    Tokens,
    Sessions,
    Approvals,
    Roles,
    Traces,
}

impl NavigationPage {
    fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Calls => "Calls",
            Self::History => "History",
            Self::Tokens => "Tokens",
            Self::Sessions => "Sessions",
            Self::Approvals => "Approvals",
            Self::Roles => "Roles",
            Self::Traces => "Traces",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Overview => "/ui",
            Self::Calls => "/ui/calls",
            Self::History => "/ui/history",
            Self::Tokens => "/ui/tokens",
            Self::Sessions => "/ui/sessions",
            Self::Approvals => "/ui/approvals",
            Self::Roles => "/ui/roles",
            Self::Traces => "/ui/traces",
        }
    }

    const ALL: [Self; 8] = [
        Self::Overview,
        Self::Calls,
        Self::History,
        Self::Tokens,
        Self::Sessions,
        Self::Approvals,
        Self::Roles,
        Self::Traces,
    ];

    /// Returns true if only a viewer who sees everything gets the page.
    fn needs_all(self) -> bool {
        matches!(self, Self::History | Self::Approvals | Self::Traces)
    }

    /// Returns true if the page is kept up to date.
    fn is_live(self) -> bool {
        matches!(self, Self::Overview | Self::Calls | Self::Sessions | Self::Approvals)
    }
}

/// Renders a page with its navigation.
pub(super) fn page(page: NavigationPage, viewer: &PageViewer, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(page.title(), page.is_live()))
            body {
                a class="skip" href="#main" { "To the content" }
                header {
                    p class="brand" { strong { "CoreTools" } }
                    nav aria-label="Pages" {
                        ul {
                            @for other in NavigationPage::ALL {
                                @if !other.needs_all() || viewer.sees_all {
                                    li {
                                        a href=(other.path()) aria-current=[(other == page).then_some("page")] {
                                            (other.title())
                                            @if other == NavigationPage::Approvals { (badge(viewer)) }
                                        }
                                    }
                                }
                            }
                        }
                    }
                    p class="who" { (viewer.principal.name) ", role " (viewer.caller.role()) }
                    @if viewer.login.is_some() {
                        form method="post" action="/ui/sign-out" { button { "Sign out" } }
                    }
                }
                main id="main" tabindex="-1" {
                    h1 { (page.title()) }
                    (content)
                }
            }
        }
    }
}

/// Renders the number of calls that wait for an approval.
fn badge(viewer: &PageViewer) -> Markup {
    let count = viewer.pending_approvals;
    html! {
        span id="pending" data-live {
            @if count > 0 { " " span class="badge" data-count=(count) { (count) } }
        }
    }
}

/// Renders a part of a page that is kept up to date.
pub(super) fn section(id: &str, title: &str, content: &Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby={ (id) "-title" } data-live {
            h2 id={ (id) "-title" } { (title) }
            (content)
        }
    }
}

/// Renders a text with paths, which a narrow column breaks after a `/` rather than within a name.
pub(super) fn path_text(text: &str) -> Markup {
    html! { code { @for part in text.split_inclusive('/') { (part) @if part.ends_with('/') { wbr; } } } }
}

/// A cell of a table.
pub(super) struct TableCell {
    class: &'static str,
    content: Markup,
}

/// Returns a cell with this content.
pub(super) fn cell(content: impl maud::Render) -> TableCell {
    TableCell { class: "", content: html! { (content) } }
}

impl TableCell {
    /// Sets the class of the cell: `name` and `time` stay on one line.
    pub(super) fn class(mut self, class: &'static str) -> Self {
        self.class = class;
        self
    }
}

/// Renders the table of a section as [`table`] does. On a narrow screen several values stand in a line.
pub(super) fn compact_table(section_id: &str, columns: &[&str], rows: &[Vec<TableCell>]) -> Markup {
    styled_table(section_id, "stacks compact", columns, rows)
}

/// Renders the table of a section, or "None." where it has no rows. On a narrow screen each row becomes a block, in which each
/// value has the name of its column; the roles keep it a table for screen readers.
pub(super) fn table(section_id: &str, columns: &[&str], rows: &[Vec<TableCell>]) -> Markup {
    styled_table(section_id, "stacks", columns, rows)
}

fn styled_table(section_id: &str, class: &str, columns: &[&str], rows: &[Vec<TableCell>]) -> Markup {
    if rows.is_empty() {
        return html! { p class="faint" { "None." } };
    }
    html! {
        // The keyboard reaches it, so that a table which is wider than the window can be scrolled.
        div class="scroll" tabindex="0" role="group" id={ (section_id) "-table" } aria-labelledby={ (section_id) "-title" } {
            table class=(class) role="table" {
                thead role="rowgroup" {
                    tr role="row" {
                        @for column in columns { th scope="col" role="columnheader" { (column) } }
                    }
                }
                tbody role="rowgroup" {
                    @for row in rows {
                        tr role="row" {
                            @for (cell, column) in row.iter().zip(columns) {
                                td role="cell" class=[(!cell.class.is_empty()).then_some(cell.class)] data-label=(column) {
                                    div { (cell.content) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A button that ends something, in a form of its own.
pub(super) struct PageEndButton<'a> {
    pub(super) owner: &'a str,
    /// The field of the form that names it.
    pub(super) field: &'static str,
    pub(super) id: &'a str,
    /// The word on the button.
    pub(super) word: &'static str,
    pub(super) command: &'a str,
}

impl PageEndButton<'_> {
    /// Renders the form.
    pub(super) fn render(&self, viewer: &PageViewer) -> Markup {
        let Self { owner, field, id, word, command } = self;
        let label = format!("{word} {} of {owner}", super::format::truncated(command, 60));
        html! {
            form method="post" action="/ui/stop" {
                input type="hidden" name="owner" value=(owner);
                input type="hidden" name=(field) value=(id);
                (form_secret(viewer))
                // The label names what it ends, for screen readers that read buttons without their rows. The id lets the
                // focus return to it when the section is replaced.
                button class="stop" id={ "end-" (field) "-" (id) "-" (owner) } aria-label=(label) { (word) }
            }
        }
    }
}

/// Renders the field with the secret of the viewer's forms.
pub(super) fn form_secret(viewer: &PageViewer) -> Markup {
    html! {
        @if let Some(login) = &viewer.login {
            input type="hidden" name="secret" value=(login.form_secret);
        }
    }
}

/// Renders the result of a form, which is read out when it changes.
pub(super) fn said(text: &str) -> Markup {
    html! { p class="said" role="status" { (text) } }
}

/// Renders the bar with what the page shows, into which the script puts its button.
pub(super) fn bar(text: &Markup) -> Markup {
    html! { p class="bar" id="bar" { span { (text) } } }
}
