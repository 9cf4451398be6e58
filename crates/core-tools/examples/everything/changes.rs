//! Tools that change the lists and the resources, so that clients are told.

use crate::NoInput;
use crate::resources::WATCHED;
use core_tools::mcp::{Answer, Availability, CallContext, ClientNotices, Tool};

/// Returns a tool that switches `availability` and says so.
fn switch(name: &'static str, description: &'static str, availability: &Availability) -> Tool {
    let availability = availability.clone();
    Tool::new(name, "Change a list", description, move |_: NoInput, _: CallContext| {
        availability.set(!availability.is_on());
        let state = if availability.is_on() { "on" } else { "off" };
        async move { Ok(Answer::text(state)) }
    })
    .adds()
}

pub(crate) fn tools(tool: &Availability, prompt: &Availability, notices: &ClientNotices) -> Vec<Tool> {
    let notices = notices.clone();
    vec![
        switch("test_trigger_tool_change", "Adds a tool to the list, or removes it.", tool),
        switch("test_trigger_prompt_change", "Adds a prompt to the list, or removes it.", prompt),
        Tool::new("test_extra_tool", "Extra", "A tool that comes and goes.", |_: NoInput, _| async {
            Ok(Answer::text("extra"))
        })
        .available_while(tool),
        Tool::new(
            "test_update_resource",
            "Change a resource",
            "Changes a resource.",
            move |_: NoInput, _| {
                notices.resource_updated(WATCHED);
                async { Ok(Answer::text("changed")) }
            },
        )
        .adds(),
    ]
}
