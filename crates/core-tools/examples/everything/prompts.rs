//! The prompts.

use crate::NoInput;
use crate::answers::red_point;
use crate::client::ask_text;
use core_tools::mcp::{AnswerMedia, Availability, Completer, Prompt, PromptMessage};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TwoArguments {
    /// First test argument
    arg1: String,
    /// Second test argument
    arg2: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct EmbeddedResource {
    /// URI of the resource to embed
    resource_uri: String,
}

/// Returns the prompts. One of them is there only while `extra` is on.
pub(crate) fn prompts(extra: &Availability) -> Vec<Prompt> {
    vec![
        Prompt::new("test_simple_prompt", "Simple", "A prompt without arguments.", |_: NoInput, _| async {
            Ok(vec![PromptMessage::user("This is a simple prompt for testing.")])
        }),
        Prompt::new(
            "test_prompt_with_arguments",
            "Arguments",
            "A prompt with two arguments.",
            |input: TwoArguments, _| async move {
                let TwoArguments { arg1, arg2 } = input;
                Ok(vec![PromptMessage::user(format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))])
            },
        )
        .completes("arg1", Completer::of_values(["test", "test1", "testing", "paris", "park", "party"])),
        Prompt::new(
            "test_prompt_with_embedded_resource",
            "Resource",
            "A prompt with a resource.",
            |input: EmbeddedResource, _| async move {
                Ok(vec![
                    PromptMessage::media(AnswerMedia::Resource {
                        uri: input.resource_uri,
                        mime_type: "text/plain".to_owned(),
                        text: "Embedded resource content for testing.".to_owned(),
                    }),
                    PromptMessage::user("Please process the embedded resource above."),
                ])
            },
        ),
        Prompt::new("test_prompt_with_image", "Picture", "A prompt with a picture.", |_: NoInput, _| async {
            Ok(vec![
                PromptMessage::media(red_point()),
                PromptMessage::user("Please analyze the image above."),
            ])
        }),
        Prompt::new(
            "test_input_required_result_prompt",
            "Asking",
            "A prompt that asks the user for its context.",
            |_: NoInput, context| async move {
                let message = "What context should the prompt use?";
                let text = ask_text(&context, "user_context", message, "context").await?;
                Ok(vec![PromptMessage::user(format!("Context: {text}"))])
            },
        ),
        Prompt::new("test_extra_prompt", "Extra", "A prompt that comes and goes.", |_: NoInput, _| async {
            Ok(vec![PromptMessage::user("extra")])
        })
        .available_while(extra),
    ]
}
