//! The client's user, who is asked by elicitation.

use super::client_answer::ClientAnswer;
use super::elicitation::{form, verdict};
use crate::mcp::client_requests::{ClientRequestError, ClientRequests, Unanswered};
use approvals::ApprovalQuestion;
use rmcp::model::{ElicitRequest, ElicitResult, InputRequest};
use std::sync::Arc;

/// The key of the question among the requests of a call.
const KEY: &str = "approval";

/// Asks the user of the client of one call. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ClientApprover {
    requests: ClientRequests,
    /// The client, as it names itself.
    pub(in crate::mcp) name: Arc<str>,
}

impl ClientApprover {
    pub(in crate::mcp) fn new(requests: ClientRequests, name: Arc<str>) -> Self {
        Self { requests, name }
    }

    /// Asks, and waits for the answer. Dropping the future takes the question back.
    pub(in crate::mcp) async fn ask(&self, question: &ApprovalQuestion) -> ClientAnswer {
        let Some(params) = form(question) else { return ClientAnswer::None("the question has no form") };
        let request = InputRequest::Elicitation(ElicitRequest::new(params));
        match self.requests.ask::<ElicitResult>(KEY, request, Unanswered::End).await {
            Ok(result) => verdict(&result),
            Err(ClientRequestError::Unreadable { .. }) => {
                ClientAnswer::None("the answer of the client could not be read")
            }
            Err(_) => ClientAnswer::None("the client sent no answer of its user"),
        }
    }
}
