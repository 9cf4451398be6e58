//! The pages.

use super::html::Html;
use super::recent::Ended;
use super::{STYLE, Viewer, traces as kept};
use crate::route::App;
use core_tools::mcp::{Left, Outcome};
use std::time::{Duration, SystemTime};

/// The form to sign in.
pub(super) fn sign_in(said: Option<&'static str>) -> Html {
    let mut html = head("Sign in", false);
    html.raw("<body><main id=\"main\" class=\"sign-in\"><h1>CoreTools</h1>");
    html.raw("<form method=\"post\" action=\"/ui/sign-in\"><p id=\"hint\" class=\"faint\">");
    html.raw("With the token that your agent uses: <code>mcp-http token new</code> makes one.</p>");
    if let Some(said) = said {
        html.raw("<p class=\"said bad\" role=\"alert\">").raw(said).raw("</p>");
    }
    html.raw(
        "<label for=\"token\">Token</label><input id=\"token\" name=\"token\" type=\"password\" required ",
    );
    html.raw("autocomplete=\"current-password\" aria-describedby=\"hint\" autofocus>");
    html.raw("<button>Sign in</button></form></main></body></html>");
    html
}

/// What runs and what ran.
pub(super) fn calls(app: &App, viewer: &Viewer, agents: &Html, query: &str) -> Html {
    let mut html = begin("Calls", viewer, true);
    html.raw("<p class=\"said\" role=\"status\">").raw(outcome_of(query)).raw("</p>");
    html.raw("<p class=\"bar\" id=\"bar\"><span>").raw(match viewer.sees_all {
        true => "Everybody’s calls at this server process.",
        false => "Your calls at this server process.",
    });
    html.raw("</span></p>");
    let own = (!viewer.sees_all).then_some(&*viewer.principal.name);
    now(&mut html, app, own);
    programs(&mut html, app, viewer, own);
    let [calls, refusals] = app.ui.recent.lately(own);
    lately(&mut html, &calls);
    not_run(&mut html, &refusals, viewer.sees_all);
    html.add(agents);
    sessions(&mut html, app, own);
    end(html)
}

/// What a form came to. The words are ours, whatever was asked for.
fn outcome_of(query: &str) -> &'static str {
    match query {
        "said=stopped" => "The program was stopped.",
        "said=gone" => "There is no such program any more.",
        "said=ended" => "The session was ended.",
        "said=not-ended" => "The session was not ended: it is over, or the policy does not let you.",
        "said=refused" => "The program was not stopped: the policy does not let you.",
        _ => "",
    }
}

fn now(html: &mut Html, app: &App, own: Option<&str>) {
    let calls = app.ui.recent.running(own);
    section(html, "now", "Calls now", |html| {
        table(html, "now", &["Caller", "Role", "Tool", "Running for"], calls.len(), |html| {
            for call in &calls {
                html.raw("<tr><td class=\"name\">").text(&call.principal).raw("</td><td>").text(&call.role);
                html.raw("</td><td class=\"name\"><code>")
                    .text(&call.tool)
                    .raw("</code></td><td class=\"time\">");
                html.text(span(call.since.elapsed())).raw("</td></tr>");
            }
        });
    });
}

fn programs(html: &mut Html, app: &App, viewer: &Viewer, own: Option<&str>) {
    let hosts = app.tenants.hosts();
    let mine = |left: &Left| own.is_none_or(|own| left.principal == own);
    let mut programs: Vec<Left> = hosts.iter().flat_map(core_tools::mcp::Host::left).filter(mine).collect();
    programs.sort_by_key(|left| (left.state != "running", left.duration));
    let may_stop = may_call(app, viewer, "stop_command");
    section(html, "programs", "Background programs", |html| {
        let columns = ["Caller", "Command", "State", "For", "Stop"];
        let columns = if may_stop { &columns[..] } else { columns.get(..4).unwrap_or_default() };
        table(html, "programs", columns, programs.len(), |html| {
            for left in &programs {
                html.raw("<tr><td class=\"name\">").text(&left.principal).raw("</td><td><code>");
                html.text(cut(&left.command, 300)).raw("</code></td><td>").text(left.state);
                html.raw("</td><td class=\"time\">").text(span(left.duration)).raw("</td>");
                if may_stop {
                    html.raw("<td>");
                    if left.state == "running" {
                        let id = left.id.to_string();
                        let (owner, command) = (&*left.principal, &*left.command);
                        let ends = Ends { owner, field: "id", id: &id, word: "Stop", command };
                        button(html, viewer, &ends);
                    }
                    html.raw("</td>");
                }
                html.raw("</tr>");
            }
        });
    });
}

/// What a button ends.
pub(super) struct Ends<'a> {
    pub(super) owner: &'a str,
    /// How the form names it.
    pub(super) field: &'static str,
    pub(super) id: &'a str,
    /// What is said of it.
    pub(super) word: &'static str,
    pub(super) command: &'a str,
}

pub(super) fn button(html: &mut Html, viewer: &Viewer, ends: &Ends<'_>) {
    html.raw("<form method=\"post\" action=\"/ui/stop\"><input type=\"hidden\" name=\"owner\" value=\"");
    html.text(ends.owner).raw("\"><input type=\"hidden\" name=\"").raw(ends.field).raw("\" value=\"");
    html.text(ends.id);
    if let Some(login) = &viewer.login {
        html.raw("\"><input type=\"hidden\" name=\"secret\" value=\"").text(&login.secret);
    }
    // Its own name, for whoever hears buttons without their rows; its own id, for the focus to come back to.
    html.raw("\"><button class=\"stop\" id=\"end-").text(ends.id).raw("-").text(ends.owner);
    html.raw("\" aria-label=\"").raw(ends.word).raw(" ").text(cut(ends.command, 60)).raw(" of ");
    html.text(ends.owner).raw("\">").raw(ends.word).raw("</button></form>");
}

fn lately(html: &mut Html, calls: &[Ended]) {
    section(html, "lately", "Calls lately", |html| {
        let columns = ["Ended (UTC)", "Caller", "Tool", "Outcome", "Took", "Arguments", "Answer"];
        table(html, "lately", &columns, calls.len(), |html| {
            for call in calls {
                html.raw("<tr><td class=\"time\">").text(when(call.at)).raw("</td><td class=\"name\">");
                html.text(&call.principal).raw("</td><td class=\"name\"><code>").text(&call.tool);
                html.raw("</code></td><td>").raw(match call.outcome {
                    Outcome::Ok => "<span class=\"good\">ok</span>",
                    Outcome::Failed => "<span class=\"bad\">failed</span>",
                    Outcome::NotRun => "not run",
                });
                html.raw("</td><td class=\"time\">").text(span(call.duration)).raw("</td><td><code>");
                html.text(&call.arguments).raw("</code></td><td class=\"time\">").text(bytes(call.bytes_out));
                html.raw("</td></tr>");
            }
        });
    });
}

fn not_run(html: &mut Html, refusals: &[Ended], sees_all: bool) {
    section(html, "refused", "Not run", |html| {
        let columns = ["At (UTC)", "Caller", "Role", "Tool", "Why", "Rule", "Arguments"];
        table(html, "refused", &columns, refusals.len(), |html| {
            for call in refusals {
                html.raw("<tr><td class=\"time\">").text(when(call.at)).raw("</td><td class=\"name\">");
                html.text(&call.principal)
                    .raw("</td><td>")
                    .text(&call.role)
                    .raw("</td><td class=\"name\"><code>");
                html.text(&call.tool).raw("</code></td><td class=\"some\">");
                // Whether there is a tool is not told to whom it is hidden from.
                let hidden = matches!(call.decision, "hidden" | "unknown") && !sees_all;
                html.text(if hidden { "no such tool" } else { call.decision }).raw("</td><td><code>");
                html.text(if hidden { "" } else { &call.rule }).raw("</code></td><td><code>");
                html.text(if hidden { "" } else { &call.arguments }).raw("</code></td></tr>");
            }
        });
    });
}

fn sessions(html: &mut Html, app: &App, own: Option<&str>) {
    let mut sessions = app.sessions.list();
    sessions.retain(|session| own.is_none_or(|own| &*session.principal == own));
    section(html, "sessions", "Sessions", |html| {
        html.raw(
            "<p class=\"faint\">Of clients of the <code>initialize</code> era; newer ones have none.</p>",
        );
        table(html, "sessions", &["Caller", "Open requests", "Last used"], sessions.len(), |html| {
            for session in &sessions {
                html.raw("<tr><td class=\"name\">")
                    .text(&session.principal)
                    .raw("</td><td>")
                    .text(session.open);
                html.raw("</td><td class=\"time\">").text(span(session.idle)).raw(" ago</td></tr>");
            }
        });
    });
}

pub(super) fn may_call(app: &App, viewer: &Viewer, tool: &str) -> bool {
    let (policy, facts) = (app.tenants.whole().policy(), app.tenants.whole().facts());
    facts.iter().find(|known| known.name == tool).is_some_and(|tool| policy.sees(&viewer.caller, tool))
}

/// Who may call what: all roles for who sees everything, the caller's own for others.
pub(super) fn roles(app: &App, viewer: &Viewer) -> Html {
    let mut html = begin("Roles", viewer, false);
    let host = app.tenants.whole();
    let (policy, mut facts) = (host.policy(), host.facts());
    let mut roles: Vec<&str> = match viewer.sees_all {
        true => policy.roles().collect(),
        false => viewer.caller.roles().collect(),
    };
    if !viewer.sees_all {
        // What is hidden from a caller is hidden here.
        facts.retain(|tool| policy.sees(&viewer.caller, tool));
    }
    roles.dedup();
    html.raw("<p class=\"faint\">A role may call a tool (yes), call it with arguments that its rules allow (rules), or ");
    html.raw("does not know of it (no).</p>");
    html.raw("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Roles and tools\"><table><thead><tr>");
    html.raw("<th scope=\"col\">Tool</th>");
    for role in &roles {
        html.raw("<th scope=\"col\">").text(role).raw("</th>");
    }
    html.raw("</tr></thead>");
    let mut toolset = "";
    for tool in &facts {
        if tool.toolset != toolset {
            html.raw(if toolset.is_empty() { "<tbody>" } else { "</tbody><tbody>" });
            html.raw("<tr><th scope=\"rowgroup\" colspan=\"").text(roles.len() + 1).raw("\">");
            html.text(tool.toolset).raw("</th></tr>");
            toolset = tool.toolset;
        }
        html.raw("<tr><th scope=\"row\"><code>").text(tool.name).raw("</code></th>");
        for role in &roles {
            let sees = policy.sees(&role_policy::Caller::new(*role), tool);
            html.raw(match (sees, policy.requirements(role, tool).is_empty()) {
                (false, _) => "<td class=\"faint\">no</td>",
                (true, true) => "<td class=\"good\">yes</td>",
                (true, false) => "<td class=\"some\">rules</td>",
            });
        }
        html.raw("</tr>");
    }
    html.raw(if toolset.is_empty() { "</table></div>" } else { "</tbody></table></div>" });
    rules(&mut html, app, viewer, &roles);
    end(html)
}

/// The rules of the caller's own roles, in words.
fn rules(html: &mut Html, app: &App, viewer: &Viewer, roles: &[&str]) {
    if viewer.sees_all {
        return;
    }
    let (policy, mut facts) = (app.tenants.whole().policy(), app.tenants.whole().facts());
    facts.retain(|tool| policy.sees(&viewer.caller, tool));
    let rules = facts.iter().flat_map(|tool| {
        roles.iter().flat_map(|role| policy.requirements(role, tool)).map(|rule| (tool.name, rule))
    });
    let rules: Vec<_> = rules.collect();
    if rules.is_empty() {
        return;
    }
    html.raw("<h2>Rules</h2><ul>");
    for (tool, rule) in &rules {
        html.raw("<li><code>").text(tool).raw("</code>: ").text(rule).raw("</li>");
    }
    html.raw("</ul>");
}

/// The flame graphs that were kept.
pub(super) fn traces(app: &App, viewer: &Viewer) -> Html {
    let mut html = begin("Traces", viewer, false);
    let traces = kept::list(&app.ui.traces);
    html.raw("<p class=\"faint\">CPU profiles that <code>capture_trace</code> took, the latest first.</p>");
    match traces.first() {
        None => {
            html.raw("<p>None.</p>");
        }
        Some(latest) => {
            let words = described(&latest.name);
            html.raw("<h2>").text(&words).raw("</h2><a href=\"/ui/trace/").text(&latest.name);
            html.raw("\"><img src=\"/ui/trace/")
                .text(&latest.name)
                .raw("\" alt=\"Flame graph of ")
                .text(&words);
            html.raw("; opens alone\"></a>");
        }
    }
    if traces.len() > 1 {
        html.raw("<h2>Before</h2><ul>");
        for trace in traces.iter().skip(1) {
            html.raw("<li><a href=\"/ui/trace/").text(&trace.name).raw("\">").text(described(&trace.name));
            html.raw("</a></li>");
        }
        html.raw("</ul>");
    }
    end(html)
}

/// `trace-2026-11-22T120304.123-node-4711-cpu-….svg` in words.
fn described(name: &str) -> String {
    let words = || {
        let rest = name.strip_prefix("trace-")?;
        let (date, time) = (rest.get(..10)?, rest.get(11..17)?);
        let mut parts = rest.get(17..)?.split('-').skip(1);
        let (runtime, pid, kind) = (parts.next()?, parts.next()?, parts.next()?);
        let (hour, minute, second) = (time.get(..2)?, time.get(2..4)?, time.get(4..)?);
        Some(format!("{runtime}, process {pid}, {kind}, {date} {hour}:{minute}:{second} UTC"))
    };
    words().unwrap_or_else(|| name.to_owned())
}

fn head(title: &'static str, live: bool) -> Html {
    let mut html = Html::default();
    html.raw("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>").raw(title);
    html.raw(" · CoreTools</title><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    html.raw("<link rel=\"icon\" href=\"data:,\"><style>").raw(STYLE).raw("</style>");
    if live {
        html.raw("<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>");
        html.raw("<script src=\"/ui/live.js\" defer></script>");
    }
    html.raw("</head>");
    html
}

fn begin(title: &'static str, viewer: &Viewer, live: bool) -> Html {
    let mut html = head(title, live);
    html.raw(
        "<body><a class=\"skip\" href=\"#main\">To the content</a><header><p><strong>CoreTools</strong></p>",
    );
    html.raw("<nav aria-label=\"Pages\"><ul>");
    let mut pages = vec![("Calls", "<li><a href=\"/ui\""), ("Roles", "<li><a href=\"/ui/roles\"")];
    if viewer.sees_all {
        pages.push(("Traces", "<li><a href=\"/ui/traces\""));
    }
    for (name, link) in pages {
        html.raw(link).raw(if name == title { " aria-current=\"page\">" } else { ">" });
        html.raw(name).raw("</a></li>");
    }
    html.raw("</ul></nav><p class=\"who\">").text(&viewer.principal.name).raw(", role ");
    html.text(viewer.caller.role()).raw("</p>");
    if viewer.login.is_some() {
        html.raw("<form method=\"post\" action=\"/ui/sign-out\"><button>Sign out</button></form>");
    }
    html.raw("</header><main id=\"main\" tabindex=\"-1\"><h1>").raw(title).raw("</h1>");
    html
}

fn end(mut html: Html) -> Html {
    html.raw("</main></body></html>");
    html
}

/// A part of the page that is kept up to date.
pub(super) fn section(
    html: &mut Html,
    id: &'static str,
    title: &'static str,
    content: impl FnOnce(&mut Html),
) {
    html.raw("<section id=\"").raw(id).raw("\" aria-labelledby=\"").raw(id).raw("-title\" data-live>");
    html.raw("<h2 id=\"").raw(id).raw("-title\">").raw(title).raw("</h2>");
    content(html);
    html.raw("</section>");
}

pub(super) fn table(
    html: &mut Html,
    id: &'static str,
    columns: &[&'static str],
    rows: usize,
    body: impl FnOnce(&mut Html),
) {
    if rows == 0 {
        html.raw("<p class=\"faint\">None.</p>");
        return;
    }
    // Reached by the keyboard, for a window that is too narrow for it.
    html.raw("<div class=\"scroll\" tabindex=\"0\" role=\"group\" id=\"")
        .raw(id)
        .raw("-table\" aria-labelledby=\"");
    html.raw(id).raw("-title\"><table><thead><tr>");
    for column in columns {
        html.raw("<th scope=\"col\">").raw(column).raw("</th>");
    }
    html.raw("</tr></thead><tbody>");
    body(html);
    html.raw("</tbody></table></div>");
}

fn cut(text: &str, most: usize) -> String {
    let mut short: String = text.chars().take(most).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The time of a day, or how long ago it was.
fn when(at: SystemTime) -> String {
    let ago = at.elapsed().unwrap_or_default();
    if ago > Duration::from_secs(12 * 3600) {
        return format!("{} ago", span(ago));
    }
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn span(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.as_millis());
    match seconds {
        0 if millis == 0 => format!("{} µs", duration.as_micros()),
        0 => format!("{millis} ms"),
        1..=59 => format!("{seconds}.{} s", duration.subsec_millis() / 100),
        60..=3599 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..=86_399 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn bytes(bytes: usize) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=9_999_999 => format!("{} KB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_in_their_size() {
        for (millis, words) in [
            (0, "0 µs"),
            (12, "12 ms"),
            (3_250, "3.2 s"),
            (250_000, "4 min 10 s"),
            (7_260_000, "2 h 1 min"),
            (200_000_000, "2 d"),
        ] {
            assert_eq!(span(Duration::from_millis(millis)), words);
        }
        assert_eq!(bytes(12_345), "12 KB");
        assert_eq!(cut("äöü", 2), "äö…");
        assert_eq!(
            described("trace-2026-11-22T120304.123-node-4711-cpu-17.0.svg"),
            "node, process 4711, cpu, 2026-11-22 12:03:04 UTC"
        );
        assert_eq!(described("trace-x.svg"), "trace-x.svg");
    }
}
