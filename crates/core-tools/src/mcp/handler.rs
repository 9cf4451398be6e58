//! The connection as rmcp calls it: one handler for both eras of the protocol, `initialize` and 2026-07-28.

use super::answer::{Answer, AnswerFormat, ToolError};
use super::approval::{ClientApprover, ClientQuestion, Resumed, RunningCall, supports_forms};
use super::call_context::CallContext;
use super::connection::{Connection, RequestContext};
use super::host::NoSuchTool;
use super::progress::ProgressReporter;
use super::progress_notifications::with_progress;
use super::{errors, list_changes};
use approvals::shown_text;
use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, CustomRequest, CustomResult, DiscoverResult,
    InitializeRequestParams, InitializeResult, InputRequiredResult, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{MaybeSendFuture, NotificationContext, SubscriptionContext};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// rmcp's context of a request, as opposed to ours.
type RmcpContext = rmcp::service::RequestContext<RoleServer>;

// Each future is boxed: rmcp's future of a request has room for that of every method, and is moved several times on its
// way into a task.
impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
            .with_server_info(self.server.clone())
    }

    fn initialize(
        &self,
        params: InitializeRequestParams,
        request: RmcpContext,
    ) -> impl Future<Output = Result<InitializeResult, ErrorData>> + MaybeSendFuture + '_ {
        Box::pin(async move {
            request.peer.set_peer_info(params.clone());
            let mut result = self.negotiate_initialize(&params)?;
            if let Some(roots) = self.client_roots().filter(|_| params.capabilities.roots.is_some()) {
                roots.expect();
            }
            result.instructions = Some(self.instructions(&request.extensions)?);
            Ok(result)
        })
    }

    fn discover(
        &self,
        request: RmcpContext,
    ) -> impl Future<Output = Result<DiscoverResult, ErrorData>> + MaybeSendFuture + '_ {
        Box::pin(async move {
            let versions = self.supported_protocol_versions().into_owned();
            let config = self.get_info().with_instructions(self.instructions(&request.extensions)?);
            Ok(DiscoverResult::from_server_info(versions, config))
        })
    }

    fn list_tools(
        &self,
        params: Option<PaginatedRequestParams>,
        request: RmcpContext,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + MaybeSendFuture + '_ {
        Box::pin(async move {
            self.settle_roots().await;
            let RequestContext { host, caller, .. } = self.request_context(&request.extensions)?;
            if let Some(cursor) = params.and_then(|params| params.cursor) {
                return Err(errors::invalid_cursor(&host.redactor().redact(&cursor)));
            }
            let mut tools = host.list_with(&caller, &self.found);
            if !takes_structured(&request) {
                // A client would look for the object that the schema promises, and these get none.
                tools.iter_mut().for_each(|tool| tool.output_schema = None);
            }
            let mut result = ListToolsResult::with_all_items(tools);
            if is_modern(&request) {
                // The list is the caller's own, and a policy may be reloaded at any time.
                result.ttl_ms = Some(0);
                result.cache_scope = Some(CacheScope::Private);
            }
            Ok(result)
        })
    }

    /// Tells a client of the `initialize` era of changes of its list, on its connection.
    async fn on_initialized(&self, notification: NotificationContext<RoleServer>) {
        self.ask_for_roots(&notification);
        if self.starts_list_watch()
            && let Ok(context) = self.request_context(&notification.extensions)
        {
            tokio::spawn(list_changes::notify_peer(notification.peer, context));
        }
    }

    async fn on_roots_list_changed(&self, notification: NotificationContext<RoleServer>) {
        self.ask_for_roots(&notification);
    }

    /// Accepts what a client of 2026-07-28 subscribes to, as far as there is such a thing.
    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    fn listen(
        &self,
        subscription: SubscriptionContext,
    ) -> impl Future<Output = Result<(), ErrorData>> + MaybeSendFuture + '_ {
        Box::pin(async move {
            let context = self.request_context(&subscription.request_context().extensions)?;
            list_changes::notify_subscription(subscription, context).await;
            Ok(())
        })
    }

    fn call_tool(
        &self,
        params: CallToolRequestParams,
        request: RmcpContext,
    ) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + MaybeSendFuture + '_ {
        Box::pin(async move {
            if let Some(question) = self.question_for_roots(&params, &request) {
                return Ok(CallToolResponse::InputRequired(question));
            }
            self.settle_roots().await;
            let mut context = self.request_context(&request.extensions)?;
            let format = match takes_structured(&request) {
                true => context.host.answer_format(),
                false => AnswerFormat::TextOnly,
            };
            let (host, caller, cancel) =
                (context.host.clone(), context.caller.clone(), context.cancel.clone());
            let mut running = match host.paused_calls().resume(&caller, &params) {
                Resumed::Call(running) => {
                    // The call acquires its own permits again: with those of this request it would hold two of each.
                    context.call_permit = None;
                    if let Some(release) = context.permit_release.take() {
                        release.release();
                    }
                    running
                }
                Resumed::OtherCall => return Ok(CallToolResult::into(other_call().into_result(format))),
                Resumed::NewCall => self.start_call(context, &params, &request),
            };
            let found_before = self.found.len();
            let (progress, call_cancel) = (running.progress.clone(), running.cancel.clone());
            let call = next_step(&mut running);
            let call = cancel_with(call, &request.ct, &cancel, &call_cancel);
            let step = match request.meta.get_progress_token() {
                Some(token) => with_progress(call, &progress, token, &request, host.redactor()).await,
                None => call.await,
            };
            let answer = match step {
                Ok(answer) => Ok(answer),
                Err(CallPause::NoSuchTool(error)) => Err(error),
                Err(CallPause::Question(question)) => {
                    let arguments = params.arguments.clone().unwrap_or_default();
                    let limit = host.approvals().timeout;
                    let tool = params.name.to_string();
                    return Ok(
                        match host.paused_calls().pause(caller, tool, arguments, question, running, limit) {
                            Some(question) => CallToolResponse::InputRequired(question),
                            None => CallToolResult::into(too_many_questions().into_result(format)),
                        },
                    );
                }
            };
            if self.found.len() > found_before && !is_modern(&request) {
                // A client that cannot be told asks for the list when it pleases.
                let _ = request.peer.notify_tool_list_changed().await;
            }
            match answer {
                Ok(answer) => Ok(CallToolResult::into(answer.into_result(format))),
                Err(error) => Err(errors::no_such_tool(&error, request.protocol_version().as_ref())),
            }
        })
    }

    /// Returns none, always. rmcp asks for it to check `x-mcp-header` parameters before the role is known: no tool uses
    /// them, and a caller is told of no tool that it may not see.
    fn get_tool(&self, _name: &str) -> Option<Tool> {
        None
    }

    fn on_custom_request(
        &self,
        custom: CustomRequest,
        request: RmcpContext,
    ) -> impl Future<Output = Result<CustomResult, ErrorData>> + MaybeSendFuture + '_ {
        Box::pin(async move {
            let RequestContext { host, .. } = self.request_context(&request.extensions)?;
            Err(errors::unreadable_request(&host.redactor().redact(&custom.method)))
        })
    }

    // Methods of capabilities that are not declared. rmcp's defaults would answer with empty lists.

    async fn list_prompts(
        &self,
        _params: Option<PaginatedRequestParams>,
        _request: RmcpContext,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _params: Option<PaginatedRequestParams>,
        _request: RmcpContext,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _params: Option<PaginatedRequestParams>,
        _request: RmcpContext,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _params: CompleteRequestParams,
        _request: RmcpContext,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }
}

impl Connection {
    /// Makes the call of a request.
    fn start_call(
        &self,
        request_context: RequestContext,
        params: &CallToolRequestParams,
        request: &RmcpContext,
    ) -> RunningCall {
        let RequestContext {
            host,
            caller,
            limits,
            call_permit,
            call_admission,
            permit_release,
            process_permits,
            observer,
            cancel: _,
        } = request_context;
        let asks_client = host.approvals().asks_client()
            && request.client_capabilities().is_some_and(|capabilities| supports_forms(&capabilities));
        let (approver, questions) = match asks_client {
            false => (None, None),
            true => client_approver(request),
        };
        // A call that may be paused outlives the request that began it.
        let cancel = match questions {
            Some(_) => CancellationToken::new(),
            None => request.ct.child_token(),
        };
        let mut context = CallContext::new(caller, cancel.clone());
        (context.limits, context.observer) = (limits, observer);
        context.found = self.found.clone();
        (context.call_permit, context.process_permits) = (call_permit, process_permits);
        (context.call_admission, context.permit_release) = (call_admission, permit_release);
        context.client_approver = approver;
        if request.meta.get_progress_token().is_some() {
            context.progress = ProgressReporter::requested();
        }
        let progress = context.progress.clone();
        let (name, arguments) = (params.name.clone(), params.arguments.clone().unwrap_or_default());
        // Boxed: inline, each of the futures around it would hold it once more, and be moved with it.
        let call = Box::pin(async move { host.call(&name, arguments, context).await });
        RunningCall { call, questions, progress, cancel }
    }

    /// Waits until the client has named the roots that it says it has.
    async fn settle_roots(&self) {
        if let Some(roots) = self.client_roots() {
            roots.settled().await;
        }
    }

    /// Asks a client of the `initialize` era for its roots, in a task of its own.
    fn ask_for_roots(&self, notification: &NotificationContext<RoleServer>) {
        if let Some(roots) = self.client_roots() {
            tokio::spawn(Arc::clone(roots).ask(notification.peer.clone()));
        }
    }

    /// Returns the question for the roots of a client of 2026-07-28 that has some, as the answer to its first call.
    fn question_for_roots(
        &self,
        params: &CallToolRequestParams,
        request: &RmcpContext,
    ) -> Option<InputRequiredResult> {
        let roots = self.client_roots().filter(|_| is_modern(request))?;
        request.meta.client_capabilities()?.roots?;
        roots.question(params.input_responses.as_ref())
    }
}

/// Returns what asks the user of the client of a request, and, for a client of 2026-07-28, the questions that are to be
/// sent to it.
fn client_approver(
    request: &RmcpContext,
) -> (Option<ClientApprover>, Option<mpsc::Receiver<ClientQuestion>>) {
    if is_modern(request) {
        let (sender, questions) = mpsc::channel(1);
        let name = request.meta.client_info().map(|client| client.name);
        return (Some(ClientApprover::of_request(sender, client_name(name))), Some(questions));
    }
    let name = request.peer.peer_info().map(|info| info.client_info.name.clone());
    (Some(ClientApprover::of_peer(request.peer.clone(), client_name(name))), None)
}

/// Returns the name of a client for the audit. It is the client's own word.
fn client_name(name: Option<String>) -> Arc<str> {
    name.map_or_else(|| "the client".into(), |name| format!("the client `{}`", shown_text(&name, 64)).into())
}

/// The reason why a call has no answer yet, or never has one.
enum CallPause {
    NoSuchTool(NoSuchTool),
    /// The client's user must be asked first.
    Question(ClientQuestion),
}

/// Waits for the answer of a call, or for its next question.
async fn next_step(running: &mut RunningCall) -> Result<Answer, CallPause> {
    tokio::select! {
        biased;
        answer = &mut running.call => answer.map_err(CallPause::NoSuchTool),
        question = RunningCall::question(&mut running.questions) => Err(CallPause::Question(question)),
    }
}

fn other_call() -> Answer {
    Answer::error(&ToolError::new(
        "not run: this answer of the user is for another call; an approval holds for the call with exactly the arguments \
         that were shown. Call again without `requestState`",
    ))
}

fn too_many_questions() -> Answer {
    Answer::error(&ToolError::new(
        "not run: too many calls wait for the answers of users already; try again when some were answered",
    ))
}

/// Waits for `call`, and cancels it once the request or its transport is cancelled.
async fn cancel_with<T>(
    call: impl Future<Output = T>,
    request: &CancellationToken,
    transport: &CancellationToken,
    call_cancel: &CancellationToken,
) -> T {
    let mut call = std::pin::pin!(call);
    tokio::select! {
        // The answer first: a call that has ended is not cancelled any more.
        biased;
        answer = &mut call => return answer,
        () = request.cancelled() => call_cancel.cancel(),
        () = transport.cancelled() => call_cancel.cancel(),
    }
    call.await
}

fn is_modern(request: &RmcpContext) -> bool {
    request.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Returns true if the client's protocol has `structuredContent`, which came with 2025-06-18.
fn takes_structured(request: &RmcpContext) -> bool {
    request.protocol_version().is_none_or(|version| version >= ProtocolVersion::V_2025_06_18)
}
