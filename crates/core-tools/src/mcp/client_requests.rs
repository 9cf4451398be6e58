//! The requests of a tool to the client that called it: questions to its user, to its model, and for its roots.
#![allow(
    deprecated,
    reason = "SEP-2577 takes sampling and roots out of the protocol one day, and today's clients have them"
)]

use super::approval::supports_forms;
use super::permits::{CallPermit, CallPermits};
use crate::redact::Redactor;
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ClientResult, CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequest, ElicitRequestParams, ElicitResult, InputRequest, InputResponses, ListRootsRequest,
    ListRootsResult, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// A capability of a client that a tool may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientCapability {
    /// The client shows forms to its user (`elicitation`).
    Elicitation,
    /// The client asks its model (`sampling`).
    Sampling,
    /// The client names its roots (`roots`).
    Roots,
}

impl ClientCapability {
    /// Returns true if a client with these capabilities declares this one.
    pub(super) fn is_declared(self, capabilities: &ClientCapabilities) -> bool {
        match self {
            Self::Elicitation => supports_forms(capabilities),
            Self::Sampling => capabilities.sampling.is_some(),
            Self::Roots => capabilities.roots.is_some(),
        }
    }
}

/// The error of a request to the client that got no usable answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientRequestError {
    /// The client does not have the capability, or the call has no client.
    #[error("the client does not declare `{0}`, which this request needs")]
    Undeclared(&'static str),
    /// The client is gone, was not reached, or refused the request.
    #[error("the client did not answer the request `{0}`")]
    Unanswered(String),
    /// The answer does not have the form that the protocol prescribes.
    #[error("the answer of the client to the request `{key}` cannot be read")]
    Unreadable {
        /// The key of the request.
        key: String,
        /// The reason.
        #[source]
        source: serde_json::Error,
    },
    /// The request itself cannot be written in the protocol's form.
    #[error("the request `{key}` cannot be sent")]
    Unsendable {
        /// The key of the request.
        key: String,
        /// The reason.
        #[source]
        source: serde_json::Error,
    },
}

/// The requests that a tool may send to the client of its call. Cheap to clone.
///
/// Each request has a key, which is unique in its call. A client of the `initialize` era gets the request on its
/// connection. A client of 2026-07-28 gets all requests that wait as the answer to its call, and sends the call again
/// with its answers; the tool does not notice. In a task, the requests appear in the state of the task. While a request
/// waits, the call holds no permit.
#[derive(Clone, Default)]
pub struct ClientRequests(Option<Arc<ClientOfCall>>);

/// The client of one call.
struct ClientOfCall {
    capabilities: ClientCapabilities,
    route: RequestRoute,
    /// The answers that the client has sent with its call, before it was asked.
    given: Mutex<InputResponses>,
    redactor: Redactor,
    permits: CallPermits,
    /// The permit that the call holds.
    held: Mutex<Option<CallPermit>>,
}

/// The way to a client.
enum RequestRoute {
    /// The connection of a client of the `initialize` era.
    Peer(Peer<RoleServer>),
    /// The reader of the requests of one call, who sends them to a client of 2026-07-28.
    Events(mpsc::Sender<CallEvent>),
}

/// A wish of a call that runs, for the handler of its request.
#[derive(Debug)]
pub(super) enum CallEvent {
    /// The client is to be asked.
    Request(Box<PendingRequest>),
    /// The call is to go on as a task.
    BeginTask,
}

/// A request to a client of 2026-07-28 that waits for its answer.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) key: String,
    pub(super) request: InputRequest,
    pub(super) answer_to: oneshot::Sender<Value>,
    pub(super) unanswered: Unanswered,
}

/// The fate of a request that the client leaves out when it sends its call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// It is sent once more.
    AskAgain,
    /// It ends without an answer: no answer is no.
    End,
}

impl PendingRequest {
    /// Returns true if the user is asked for an approval of the call.
    pub(super) fn is_approval(&self) -> bool {
        self.unanswered == Unanswered::End
    }
}

impl ClientRequests {
    /// The requests of a call of a client of the `initialize` era.
    pub(super) fn of_peer(
        peer: Peer<RoleServer>,
        capabilities: ClientCapabilities,
        redactor: Redactor,
        permits: CallPermits,
    ) -> Self {
        Self::new(RequestRoute::Peer(peer), capabilities, InputResponses::new(), redactor, permits)
    }

    /// The requests of a call of a client of 2026-07-28, which go to `events`. `given` are the answers that came with
    /// the call.
    pub(super) fn of_request(
        events: mpsc::Sender<CallEvent>,
        capabilities: ClientCapabilities,
        given: InputResponses,
        redactor: Redactor,
        permits: CallPermits,
    ) -> Self {
        Self::new(RequestRoute::Events(events), capabilities, given, redactor, permits)
    }

    fn new(
        route: RequestRoute,
        capabilities: ClientCapabilities,
        given: InputResponses,
        redactor: Redactor,
        permits: CallPermits,
    ) -> Self {
        let (given, held) = (Mutex::new(given), Mutex::default());
        Self(Some(Arc::new(ClientOfCall { capabilities, route, given, redactor, permits, held })))
    }

    /// Returns true if the client declares this capability.
    pub fn supports(&self, capability: ClientCapability) -> bool {
        self.0.as_ref().is_some_and(|client| capability.is_declared(&client.capabilities))
    }

    /// Asks the user of the client by a form.
    ///
    /// # Errors
    /// The client shows no forms, or did not answer.
    pub async fn elicit(
        &self,
        key: &str,
        params: ElicitRequestParams,
    ) -> Result<ElicitResult, ClientRequestError> {
        self.require(ClientCapability::Elicitation, "elicitation")?;
        self.ask(key, InputRequest::Elicitation(ElicitRequest::new(params)), Unanswered::AskAgain).await
    }

    /// Asks the model of the client.
    ///
    /// # Errors
    /// The client has no model, or did not answer.
    pub async fn sample(
        &self,
        key: &str,
        params: CreateMessageRequestParams,
    ) -> Result<CreateMessageResult, ClientRequestError> {
        self.require(ClientCapability::Sampling, "sampling")?;
        self.ask(key, InputRequest::CreateMessage(CreateMessageRequest::new(params)), Unanswered::AskAgain)
            .await
    }

    /// Asks the client for its roots. They are what the client says, and grant nothing.
    ///
    /// # Errors
    /// The client has no roots, or did not answer.
    pub async fn roots(&self, key: &str) -> Result<ListRootsResult, ClientRequestError> {
        self.require(ClientCapability::Roots, "roots")?;
        self.ask(key, InputRequest::ListRoots(ListRootsRequest::default()), Unanswered::AskAgain).await
    }

    fn require(&self, capability: ClientCapability, name: &'static str) -> Result<(), ClientRequestError> {
        match self.supports(capability) {
            true => Ok(()),
            false => Err(ClientRequestError::Undeclared(name)),
        }
    }

    /// Notes the permit that the call holds while it runs. Returns the one that was noted before.
    pub(super) fn hold(&self, permit: Option<CallPermit>) -> Option<CallPermit> {
        let client = self.0.as_ref()?;
        std::mem::replace(&mut *client.held.lock().unwrap_or_else(PoisonError::into_inner), permit)
    }

    /// Lets the call go on as a task, if its client has tasks.
    pub(super) async fn begin_task(&self) {
        if let Some(ClientOfCall { route: RequestRoute::Events(events), .. }) = self.0.as_deref() {
            // Without a reader the call goes on as it is.
            let _ = events.send(CallEvent::BeginTask).await;
        }
    }

    /// Sends a request, and waits for its answer. Dropping the future takes the request back.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        key: &str,
        request: InputRequest,
        unanswered: Unanswered,
    ) -> Result<T, ClientRequestError> {
        let client = self.0.as_deref().ok_or_else(|| ClientRequestError::Unanswered(key.to_owned()))?;
        // An approval is never taken from a call that comes with it: it holds for the question that was shown.
        if unanswered == Unanswered::AskAgain
            && let Some(given) = client.given(key)
        {
            return Ok(given);
        }
        // The request is masked before the permit is released, so that an error leaves the permit with the call.
        let request = client.masked(key, &request)?;
        let released = client.release_permit();
        let answer = match &client.route {
            RequestRoute::Peer(peer) => ask_peer(peer, request).await,
            RequestRoute::Events(events) => ask_by_events(events, key, request, unanswered).await,
        };
        // The permit is needed again even without an answer, because the tool goes on with its work.
        if let Some(permit) = released {
            client.acquire_again(&permit).await;
        }
        let answer = answer.ok_or_else(|| ClientRequestError::Unanswered(key.to_owned()))?;
        serde_json::from_value(answer)
            .map_err(|source| ClientRequestError::Unreadable { key: key.to_owned(), source })
    }
}

impl ClientOfCall {
    /// Takes an answer that came with the call, if it can be read as one.
    fn given<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner).remove(key)?;
        serde_json::from_value(given).ok()
    }

    /// Returns a request with its secrets masked, as in every answer.
    fn masked(&self, key: &str, request: &InputRequest) -> Result<InputRequest, ClientRequestError> {
        let unsendable = |source| ClientRequestError::Unsendable { key: key.to_owned(), source };
        let mut value = serde_json::to_value(request).map_err(unsendable)?;
        self.redactor.redact_json(&mut value);
        serde_json::from_value(value).map_err(unsendable)
    }

    /// Frees the permit of the call while it waits for something other than work.
    fn release_permit(&self) -> Option<CallPermit> {
        let permit = self.held.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        permit.clone().release();
        Some(permit)
    }

    /// Waits until the call may go on.
    async fn acquire_again(&self, permit: &CallPermit) {
        // The semaphore is never closed, so a permit comes.
        if let Ok(acquired) = self.permits.acquire().await {
            permit.refill(&acquired);
        }
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(permit.clone());
    }
}

async fn ask_by_events(
    events: &mpsc::Sender<CallEvent>,
    key: &str,
    request: InputRequest,
    unanswered: Unanswered,
) -> Option<Value> {
    let (answer_to, answer) = oneshot::channel();
    let pending = PendingRequest { key: key.to_owned(), request, answer_to, unanswered };
    events.send(CallEvent::Request(Box::new(pending))).await.ok()?;
    answer.await.ok()
}

async fn ask_peer(peer: &Peer<RoleServer>, request: InputRequest) -> Option<Value> {
    let request = match request {
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        _ => return None,
    };
    let handle = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await.ok()?;
    let mut open = OpenRequest(Some(handle));
    let received = (&mut open.0.as_mut()?.rx).await;
    open.0 = None;
    match received.ok()?.ok()? {
        ClientResult::ElicitResult(result) => serde_json::to_value(result).ok(),
        ClientResult::CreateMessageResult(result) => serde_json::to_value(result).ok(),
        ClientResult::ListRootsResult(result) => serde_json::to_value(result).ok(),
        _ => None,
    }
}

/// A request that the client has not answered. Dropping it tells the client that the answer is not needed any more.
struct OpenRequest(Option<RequestHandle<RoleServer>>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        // Outside a runtime, as at the end of the process, nothing can be sent any more.
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(handle.cancel(Some("the call does not wait for an answer any more".to_owned())));
        }
    }
}

impl fmt::Debug for ClientRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRequests").field("has_client", &self.0.is_some()).finish_non_exhaustive()
    }
}
