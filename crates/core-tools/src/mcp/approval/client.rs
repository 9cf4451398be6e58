//! The client's user, who is asked by elicitation.

use super::client_answer::ClientAnswer;
use super::elicitation::{form, verdict};
use approvals::ApprovalQuestion;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{ClientResult, ElicitRequest, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle};
use std::fmt;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

type AskClient = dyn Fn(ApprovalQuestion) -> BoxFuture<'static, ClientAnswer> + Send + Sync;

/// Asks the user of the client of one call. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ClientApprover {
    ask: Arc<AskClient>,
    /// The client, as it names itself.
    pub(in crate::mcp) name: Arc<str>,
}

/// A question to a client of 2026-07-28, which goes out as the answer to its call.
#[derive(Debug)]
pub(in crate::mcp) struct ClientQuestion {
    pub(in crate::mcp) question: ApprovalQuestion,
    pub(in crate::mcp) answer_to: oneshot::Sender<ClientAnswer>,
}

impl ClientApprover {
    /// Asks a client of the `initialize` era by `elicitation/create`.
    pub(in crate::mcp) fn of_peer(peer: Peer<RoleServer>, name: Arc<str>) -> Self {
        let ask = move |question: ApprovalQuestion| {
            let peer = peer.clone();
            async move { ask_peer(peer, &question).await }.boxed()
        };
        Self { ask: Arc::new(ask), name }
    }

    /// Asks a client of 2026-07-28: the question goes to `questions`, whose reader sends it to the client.
    pub(in crate::mcp) fn of_request(questions: mpsc::Sender<ClientQuestion>, name: Arc<str>) -> Self {
        let ask = move |question| {
            let questions = questions.clone();
            async move {
                let (answer_to, answer) = oneshot::channel();
                if questions.send(ClientQuestion { question, answer_to }).await.is_err() {
                    return ClientAnswer::None("the client is gone");
                }
                answer.await.unwrap_or(ClientAnswer::None("the client did not send an answer"))
            }
            .boxed()
        };
        Self { ask: Arc::new(ask), name }
    }

    /// Asks, and waits for the answer. Dropping the future takes the question back.
    pub(in crate::mcp) async fn ask(&self, question: ApprovalQuestion) -> ClientAnswer {
        (self.ask)(question).await
    }
}

impl fmt::Debug for ClientApprover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientApprover").field("name", &self.name).finish_non_exhaustive()
    }
}

async fn ask_peer(peer: Peer<RoleServer>, question: &ApprovalQuestion) -> ClientAnswer {
    let Some(params) = form(question) else { return ClientAnswer::None("the question has no form") };
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
    let Ok(handle) = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await else {
        return ClientAnswer::None("the client cannot be asked");
    };
    let mut open = OpenQuestion(Some(handle));
    let received = match &mut open.0 {
        Some(handle) => (&mut handle.rx).await,
        None => return ClientAnswer::None("the client cannot be asked"),
    };
    open.0 = None;
    match received {
        Ok(Ok(ClientResult::ElicitResult(result))) => verdict(&result),
        _ => ClientAnswer::None("the client did not ask its user"),
    }
}

/// A question that the client has not answered. Dropping it tells the client that the answer is not needed any more.
struct OpenQuestion(Option<RequestHandle<RoleServer>>);

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(handle.cancel(Some("the call does not wait for an answer any more".to_owned())));
        }
    }
}
