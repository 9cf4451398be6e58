//! Prompts, resources and suggestions, as a client asks for them.

use super::calls::{CallOutcome, OfferCall};
use super::request::{RmcpContext, check_cursor, is_modern};
use crate::mcp::answer::{Answer, AnswerFormat};
use crate::mcp::call_context::CallContext;
use crate::mcp::completion::MAX_VALUES;
use crate::mcp::connection::{Connection, RequestContext};
use crate::mcp::errors;
use crate::mcp::host::{Host, OfferKind};
use crate::mcp::paused_calls::CallRequest;
use crate::mcp::task_use::TaskUse;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, CompleteRequestMethod, CompleteRequestParams, CompleteResult, CompletionInfo, ConstString,
    GetPromptRequestMethod, GetPromptRequestParams, GetPromptResponse, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, PaginatedRequestParams, ReadResourceRequestMethod,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference, SubscribeRequestMethod,
    UnsubscribeRequestMethod,
};
use role_policy::Caller;
use serde_json::{Map, Value, json};
use std::sync::PoisonError;

/// The most resources that one client of the `initialize` era may watch.
// The limit bounds the memory that one client can take with subscriptions.
const MAX_WATCHED: usize = 256;

impl Connection {
    pub(super) async fn listed_prompts(
        &self,
        params: Option<PaginatedRequestParams>,
        request: &RmcpContext,
    ) -> Result<ListPromptsResult, ErrorData> {
        let page = self.page::<ListPromptsRequestMethod, _>(
            OfferKind::Prompt,
            params,
            request,
            Host::listed_prompts,
        );
        let OfferPage { items, ttl_ms, cache_scope } = page.await?;
        let mut result = ListPromptsResult::with_all_items(items);
        (result.ttl_ms, result.cache_scope) = (ttl_ms, cache_scope);
        Ok(result)
    }

    pub(super) async fn listed_resources(
        &self,
        params: Option<PaginatedRequestParams>,
        request: &RmcpContext,
    ) -> Result<ListResourcesResult, ErrorData> {
        let page = self.page::<ListResourcesRequestMethod, _>(
            OfferKind::Resource,
            params,
            request,
            Host::listed_resources,
        );
        let OfferPage { items, ttl_ms, cache_scope } = page.await?;
        let mut result = ListResourcesResult::with_all_items(items);
        (result.ttl_ms, result.cache_scope) = (ttl_ms, cache_scope);
        Ok(result)
    }

    pub(super) async fn listed_templates(
        &self,
        params: Option<PaginatedRequestParams>,
        request: &RmcpContext,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let page = self.page::<ListResourceTemplatesRequestMethod, _>(
            OfferKind::Resource,
            params,
            request,
            Host::listed_resource_templates,
        );
        let OfferPage { items, ttl_ms, cache_scope } = page.await?;
        let mut result = ListResourceTemplatesResult::with_all_items(items);
        (result.ttl_ms, result.cache_scope) = (ttl_ms, cache_scope);
        Ok(result)
    }

    /// Returns the one page of a list of prompts or resources.
    async fn page<M: ConstString, T>(
        &self,
        kind: OfferKind,
        params: Option<PaginatedRequestParams>,
        request: &RmcpContext,
        list: impl FnOnce(&Host, &Caller) -> Vec<T>,
    ) -> Result<OfferPage<T>, ErrorData> {
        let RequestContext { host, caller, .. } = self.context_of_offers::<M>(kind, request).await?;
        check_cursor(&host, params)?;
        let (ttl_ms, cache_scope) = cache_hints(request);
        Ok(OfferPage { items: list(&host, &caller), ttl_ms, cache_scope })
    }

    pub(super) async fn written_prompt(
        &self,
        params: GetPromptRequestParams,
        request: &RmcpContext,
    ) -> Result<GetPromptResponse, ErrorData> {
        let context = self.context_of_offers::<GetPromptRequestMethod>(OfferKind::Prompt, request).await?;
        let host = context.host.clone();
        let no_such_prompt = || errors::no_such_prompt(&host.redactor().redact(&params.name));
        let found = host.find_prompt(&context.caller, &params.name).ok_or_else(no_such_prompt)?;
        let mut arguments = params.arguments.clone().unwrap_or_default();
        // After those of the client, which has no say in them.
        arguments.extend(found.arguments);
        let call = OfferCall {
            kind: OfferKind::Prompt,
            name: found.tool.to_owned(),
            request: CallRequest {
                target: format!("prompts/get {}", params.name),
                arguments,
                state: params.request_state.clone(),
                responses: params.input_responses.clone().unwrap_or_default(),
            },
            task: TaskUse::default(),
            format: AnswerFormat::Structured,
        };
        match self.advance_call(context, call, request).await? {
            CallOutcome::Ended(Ok(answer)) if answer.is_failed() => Err(errors::failed_answer(&answer, None)),
            CallOutcome::Ended(Ok(answer)) => Ok(answer.into_prompt_result().into()),
            CallOutcome::InputRequired(question) => Ok(question.into()),
            // The policy may have hidden the prompt since it was found. A prompt never becomes a task.
            CallOutcome::Ended(Err(_)) | CallOutcome::Task(_) => Err(no_such_prompt()),
        }
    }

    pub(super) async fn resource_contents(
        &self,
        params: ReadResourceRequestParams,
        request: &RmcpContext,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let context =
            self.context_of_offers::<ReadResourceRequestMethod>(OfferKind::Resource, request).await?;
        let host = context.host.clone();
        let uri = host.redactor().redact(&params.uri).into_owned();
        let found =
            host.find_resource(&context.caller, &params.uri).ok_or_else(|| errors::no_such_resource(&uri))?;
        let call = OfferCall {
            kind: OfferKind::Resource,
            name: found.tool.to_owned(),
            request: CallRequest {
                target: format!("resources/read {}", params.uri),
                arguments: found.arguments,
                state: params.request_state,
                responses: params.input_responses.unwrap_or_default(),
            },
            task: TaskUse::default(),
            format: AnswerFormat::Structured,
        };
        match self.advance_call(context, call, request).await? {
            CallOutcome::Ended(Ok(answer)) if answer.is_failed() => {
                Err(errors::failed_answer(&answer, Some(&uri)))
            }
            CallOutcome::Ended(Ok(answer)) => {
                let mut result =
                    ReadResourceResult::new(answer.into_resource_contents(&uri, found.mime_type));
                (result.ttl_ms, result.cache_scope) = cache_hints(request);
                Ok(result.into())
            }
            CallOutcome::InputRequired(question) => Ok(question.into()),
            CallOutcome::Ended(Err(_)) | CallOutcome::Task(_) => Err(errors::no_such_resource(&uri)),
        }
    }

    /// Notes that a client of the `initialize` era wants to be told of changes of a resource.
    pub(super) fn watch_resource(&self, uri: String, request: &RmcpContext) -> Result<(), ErrorData> {
        let RequestContext { host, caller, .. } = self.request_context(&request.extensions)?;
        if self.capabilities.resources.is_none() {
            return Err(ErrorData::method_not_found::<SubscribeRequestMethod>());
        }
        if host.find_resource(&caller, &uri).is_none() {
            return Err(errors::no_such_resource(&host.redactor().redact(&uri)));
        }
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        // A second subscription to the same resource takes no further place.
        if watched.len() >= MAX_WATCHED && !watched.contains(&uri) {
            return Err(ErrorData::invalid_params(
                format!("{MAX_WATCHED} resources are watched already, which is the most there may be"),
                None,
            ));
        }
        watched.insert(uri);
        Ok(())
    }

    /// Notes that a client of the `initialize` era wants to be told of a resource no more.
    pub(super) fn unwatch_resource(&self, uri: &str, request: &RmcpContext) -> Result<(), ErrorData> {
        self.request_context(&request.extensions)?;
        if self.capabilities.resources.is_none() {
            return Err(ErrorData::method_not_found::<UnsubscribeRequestMethod>());
        }
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
        Ok(())
    }

    pub(super) async fn suggestions(
        &self,
        params: CompleteRequestParams,
        request: &RmcpContext,
    ) -> Result<CompleteResult, ErrorData> {
        let context =
            self.context_of_offers::<CompleteRequestMethod>(OfferKind::Completions, request).await?;
        let (host, caller) = (context.host.clone(), context.caller.clone());
        let redacted = |text: &str| host.redactor().redact(text).into_owned();
        let tool = match &params.r#ref {
            Reference::Prompt(prompt) => host
                .prompt_completions(&caller, &prompt.name)
                .ok_or_else(|| errors::no_such_prompt(&redacted(&prompt.name)))?,
            Reference::Resource(resource) => host
                .resource_completions(&caller, &resource.uri)
                .ok_or_else(|| errors::no_such_resource(&redacted(&resource.uri)))?,
            _ => {
                return Err(ErrorData::invalid_params(
                    "the reference is neither a prompt nor a resource",
                    None,
                ));
            }
        };
        if !host.has_completions(&caller, &tool) {
            // What has none suggests nothing.
            return Ok(CompleteResult::new(CompletionInfo::default()));
        }
        let others = params.context.and_then(|context| context.arguments).unwrap_or_default();
        let arguments = json!({
            "argument": params.argument.name,
            "value": params.argument.value,
            "arguments": others,
        });
        let arguments: Map<String, Value> = arguments.as_object().cloned().unwrap_or_default();
        let answer = call_completions(&host, &tool, arguments, context, request).await?;
        Ok(CompleteResult::new(completion_info(&answer)))
    }

    /// Returns the context of a request for offers of one kind, by the method `M`.
    ///
    /// # Errors
    /// This server has no offers of this kind, or the request has no caller.
    async fn context_of_offers<M: ConstString>(
        &self,
        kind: OfferKind,
        request: &RmcpContext,
    ) -> Result<RequestContext, ErrorData> {
        self.settle_roots().await;
        let context = self.request_context(&request.extensions)?;
        let is_declared = match kind {
            OfferKind::Tool => self.capabilities.tools.is_some(),
            OfferKind::Prompt => self.capabilities.prompts.is_some(),
            OfferKind::Resource => self.capabilities.resources.is_some(),
            OfferKind::Completions => self.capabilities.completions.is_some(),
        };
        match is_declared {
            true => Ok(context),
            false => Err(ErrorData::method_not_found::<M>()),
        }
    }
}

/// A list of prompts or resources, which is one page, and the hints for caches.
struct OfferPage<T> {
    items: Vec<T>,
    ttl_ms: Option<u64>,
    cache_scope: Option<CacheScope>,
}

/// Makes the call that finds suggestions.
async fn call_completions(
    host: &Host,
    tool: &str,
    arguments: Map<String, Value>,
    context: RequestContext,
    request: &RmcpContext,
) -> Result<Answer, ErrorData> {
    let mut call = CallContext::new(context.caller, request.ct.child_token());
    (call.limits, call.observer) = (context.limits, context.observer);
    (call.call_permit, call.process_permits) = (context.call_permit, context.process_permits);
    (call.call_admission, call.permit_release) = (context.call_admission, context.permit_release);
    let (cancel, ended) = (call.cancel.clone(), context.cancel.clone());
    let answer = host.call_offer(OfferKind::Completions, tool, arguments, call);
    let mut answer = std::pin::pin!(answer);
    let answer = tokio::select! {
        biased;
        // An answer that is there counts, even if the client cancels at the same moment.
        answer = &mut answer => answer,
        () = ended.cancelled() => {
            cancel.cancel();
            answer.await
        }
    };
    match answer {
        Ok(answer) if answer.is_failed() => Err(errors::failed_answer(&answer, None)),
        Ok(answer) => Ok(answer),
        Err(error) => Err(ErrorData::invalid_params(error.to_string(), None)),
    }
}

/// Returns the suggestions in the answer of a completer.
fn completion_info(answer: &Answer) -> CompletionInfo {
    let values = answer.as_structured().and_then(|object| object.get("values")).and_then(Value::as_array);
    let mut values: Vec<String> =
        values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let has_more = values.len() > MAX_VALUES;
    values.truncate(MAX_VALUES);
    let mut info = CompletionInfo::default();
    // The completer was not read beyond the limit, so that the total is unknown if there are more.
    info.total = (!has_more).then(|| u32::try_from(values.len()).unwrap_or(u32::MAX));
    (info.values, info.has_more) = (values, Some(has_more));
    info
}

/// Returns the hints of a list or a content: it is the caller's own, and a policy may be reloaded at any time.
fn cache_hints(request: &RmcpContext) -> (Option<u64>, Option<CacheScope>) {
    match is_modern(request) {
        true => (Some(0), Some(CacheScope::Private)),
        false => (None, None),
    }
}
