//! The connection as rmcp calls it: one handler for both eras of the protocol, `initialize` and 2026-07-28.
#![allow(
    deprecated,
    reason = "SEP-2577 takes logging out of the protocol one day, and today's clients have it"
)]

mod calls;
mod offers;
mod request;

use super::answer::AnswerFormat;
use super::client_requests::ClientCapability;
use super::connection::{Connection, RequestContext};
use super::header_parameters::check_headers;
use super::host::OfferKind;
use super::list_changes::{Changes, NotifiedPeer};
use super::log_level::LogLevel;
use super::paused_calls::CallRequest;
use super::task_use::TaskUse;
use super::{errors, list_changes};
use calls::{CallOutcome, OfferCall};
use request::{RmcpContext, check_cursor, has_tasks, is_modern, takes_structured};
use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CompleteRequestParams, CompleteResult, CreateTaskResult, CustomRequest, CustomResult, DiscoverResult,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, InitializeRequestParams,
    InitializeResult, InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{MaybeSendFuture, NotificationContext, SubscriptionContext};
use std::sync::Arc;

// Each future is boxed: rmcp's future of a request has room for that of every method, and is moved several times on its
// way into a task.
impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(self.capabilities.clone()).with_server_info(self.server.clone())
    }

    fn initialize(
        &self,
        params: InitializeRequestParams,
        request: RmcpContext,
    ) -> impl Future<Output = Result<InitializeResult, ErrorData>> + MaybeSendFuture + '_ {
        Box::pin(async move {
            request.peer.set_peer_info(params.clone());
            let mut result = self.negotiate_initialize(&params)?;
            // The one extension is tasks, which 2026-07-28 has.
            result.capabilities.extensions = None;
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
            check_cursor(&host, params)?;
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
            let to = NotifiedPeer {
                peer: notification.peer,
                watched: Arc::clone(&self.watched),
                log_level: Arc::clone(&self.log_level),
            };
            // The watch begins here and not in the task, which runs at some later time.
            tokio::spawn(list_changes::notify_peer(to, Changes::new(context)));
        }
    }

    async fn on_roots_list_changed(&self, notification: NotificationContext<RoleServer>) {
        self.ask_for_roots(&notification);
    }

    /// Accepts what a client of 2026-07-28 subscribes to, as far as there is such a thing.
    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // rmcp sends the acknowledgement before it calls `listen`, and the client may act on it at once.
        if let Some(host) = self.watched_host() {
            self.pending_watches.begin(requested, &host);
        }
        Some(requested.supported_by(&self.capabilities))
    }

    fn listen(
        &self,
        subscription: SubscriptionContext,
    ) -> impl Future<Output = Result<(), ErrorData>> + MaybeSendFuture + '_ {
        Box::pin(async move {
            let context = self.request_context(&subscription.request_context().extensions)?;
            list_changes::notify_subscription(subscription, context, &self.pending_watches).await;
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
            let context = self.request_context(&request.extensions)?;
            let host = context.host.clone();
            let format = match takes_structured(&request) {
                true => host.answer_format(),
                false => AnswerFormat::TextOnly,
            };
            let task = check_tool_request(&context, &params, &request)?;
            let call = OfferCall {
                kind: OfferKind::Tool,
                request: CallRequest {
                    target: format!("tools/call {}", params.name),
                    arguments: params.arguments.unwrap_or_default(),
                    state: params.request_state,
                    responses: params.input_responses.unwrap_or_default(),
                },
                name: params.name.into_owned(),
                task,
                format,
            };
            let found_before = self.found.len();
            let answer = match self.advance_call(context, call, &request).await? {
                CallOutcome::Ended(answer) => answer,
                CallOutcome::InputRequired(question) => return Ok(CallToolResponse::InputRequired(question)),
                CallOutcome::Task(task) => return Ok(CallToolResponse::Task(CreateTaskResult::new(task))),
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

    /// Returns none, always. rmcp asks for it to check `x-mcp-header` parameters before the role is known, and a caller is
    /// told of no tool that it may not see. The check is made where the call begins.
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

    fn list_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        request: RmcpContext,
    ) -> impl Future<Output = Result<ListPromptsResult, ErrorData>> + MaybeSendFuture + '_ {
        Box::pin(async move { self.listed_prompts(params, &request).await })
    }

    fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        request: RmcpContext,
    ) -> impl Future<Output = Result<GetPromptResponse, ErrorData>> + MaybeSendFuture + '_ {
        Box::pin(async move { self.written_prompt(params, &request).await })
    }

    fn list_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        request: RmcpContext,
    ) -> impl Future<Output = Result<ListResourcesResult, ErrorData>> + MaybeSendFuture + '_ {
        Box::pin(async move { self.listed_resources(params, &request).await })
    }

    fn list_resource_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        request: RmcpContext,
    ) -> impl Future<Output = Result<ListResourceTemplatesResult, ErrorData>> + MaybeSendFuture + '_ {
        Box::pin(async move { self.listed_templates(params, &request).await })
    }

    fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        request: RmcpContext,
    ) -> impl Future<Output = Result<ReadResourceResponse, ErrorData>> + MaybeSendFuture + '_ {
        Box::pin(async move { self.resource_contents(params, &request).await })
    }

    async fn subscribe(&self, params: SubscribeRequestParams, request: RmcpContext) -> Result<(), ErrorData> {
        self.watch_resource(params.uri, &request)
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        request: RmcpContext,
    ) -> Result<(), ErrorData> {
        self.unwatch_resource(&params.uri, &request)
    }

    fn complete(
        &self,
        params: CompleteRequestParams,
        request: RmcpContext,
    ) -> impl Future<Output = Result<CompleteResult, ErrorData>> + MaybeSendFuture + '_ {
        Box::pin(async move { self.suggestions(params, &request).await })
    }

    async fn set_level(&self, params: SetLevelRequestParams, request: RmcpContext) -> Result<(), ErrorData> {
        let RequestContext { host, .. } = self.request_context(&request.extensions)?;
        // 2026-07-28 has a level in each request instead.
        if !host.has_client_log() || is_modern(&request) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        self.log_level.set(LogLevel::from_protocol(params.level));
        Ok(())
    }

    async fn get_task(
        &self,
        params: GetTaskParams,
        request: RmcpContext,
    ) -> Result<GetTaskResult, ErrorData> {
        let RequestContext { host, caller, .. } = self.request_context(&request.extensions)?;
        host.tasks()
            .get(&caller, &params.task_id, |tool| host.is_callable(&caller, tool))
            .map(GetTaskResult::new)
    }

    async fn update_task(&self, params: UpdateTaskParams, request: RmcpContext) -> Result<(), ErrorData> {
        let RequestContext { host, caller, .. } = self.request_context(&request.extensions)?;
        let sees = |tool: &str| host.is_callable(&caller, tool);
        host.tasks().update(&caller, &params.task_id, params.input_responses, sees)
    }

    async fn cancel_task(&self, params: CancelTaskParams, request: RmcpContext) -> Result<(), ErrorData> {
        let RequestContext { host, caller, .. } = self.request_context(&request.extensions)?;
        host.tasks().cancel(&caller, &params.task_id, |tool| host.is_callable(&caller, tool))
    }
}

/// Checks what a tool that the caller sees needs of a request, and returns its use of tasks. A tool that the caller does
/// not see needs nothing: the call says that it is not there.
fn check_tool_request(
    context: &RequestContext,
    params: &CallToolRequestParams,
    request: &RmcpContext,
) -> Result<TaskUse, ErrorData> {
    let Some(tool) = context.host.tool(&context.caller, &params.name) else { return Ok(TaskUse::default()) };
    if let Some(parts) = request.extensions.get::<http::request::Parts>().filter(|_| is_modern(request)) {
        let arguments = params.arguments.clone().unwrap_or_default();
        check_headers(tool.input(), &arguments, &parts.headers).map_err(|message| {
            errors::header_mismatch(context.host.redactor().redact(&message).into_owned())
        })?;
    }
    let capabilities = request.client_capabilities().unwrap_or_default();
    let task = tool.task();
    if task.is_required && !has_tasks(request) {
        return Err(errors::tasks_required());
    }
    let declares = |capability: &ClientCapability| capability.is_declared(&capabilities);
    match tool.required_capabilities().iter().copied().filter(|needed| !declares(needed)).collect::<Vec<_>>()
    {
        missing if missing.is_empty() => Ok(task),
        missing => Err(errors::capabilities_required(&missing)),
    }
}

impl Connection {
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
