//! The resources.

use crate::answers::RED_POINT;
use core_tools::mcp::{Answer, AnswerMedia, Completer, Resource};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Data {
    /// The number of the data.
    id: String,
}

/// The resource that `test_update_resource` changes.
pub(crate) const WATCHED: &str = "test://watched-resource";

pub(crate) fn resources() -> Vec<Resource> {
    vec![
        Resource::new("test://static-text", "static-text", "Text", "A text.", |_| async {
            Ok(Answer::text("This is the content of the static text resource."))
        }),
        Resource::new("test://static-binary", "static-binary", "Picture", "A picture.", |_| async {
            Ok(Answer::default().with_media(Some(AnswerMedia::Image {
                data: RED_POINT.to_owned(),
                mime_type: "image/png".to_owned(),
            })))
        })
        .mime_type("image/png"),
        Resource::new(WATCHED, "watched-resource", "Watched", "A resource that changes.", |_| async {
            Ok(Answer::text("watched"))
        }),
        Resource::template(
            "test://template/{id}/data",
            "template-data",
            "Data",
            "Data by its number.",
            |input: Data, _| async move {
                let data = format!("Data for ID: {}", input.id);
                Ok(Answer::text(json!({"id": input.id, "templateTest": true, "data": data}).to_string()))
            },
        )
        .mime_type("application/json")
        .completes("id", Completer::of_values(["1", "12", "123"])),
    ]
}
