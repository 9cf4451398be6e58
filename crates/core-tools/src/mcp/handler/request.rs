//! A request as rmcp hands it over: its era, its client, and its place in a list.

use crate::mcp::errors;
use crate::mcp::host::Host;
use approvals::shown_text;
use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::model::{PaginatedRequestParams, ProtocolVersion};
use std::sync::Arc;

/// rmcp's context of a request, as opposed to ours.
pub(super) type RmcpContext = rmcp::service::RequestContext<RoleServer>;

/// Returns the name of the client of a request, for the audit. It is the client's own word.
pub(super) fn client_name(request: &RmcpContext) -> Arc<str> {
    let name = match is_modern(request) {
        true => request.meta.client_info().map(|client| client.name),
        false => request.peer.peer_info().map(|info| info.client_info.name.clone()),
    };
    name.map_or_else(|| "the client".into(), |name| format!("the client `{}`", shown_text(&name, 64)).into())
}

/// Returns the error for a cursor, if there is one: every list is one page.
pub(super) fn check_cursor(host: &Host, params: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match params.and_then(|params| params.cursor) {
        Some(cursor) => Err(errors::invalid_cursor(&host.redactor().redact(&cursor))),
        None => Ok(()),
    }
}

/// Returns true if the client of a request has tasks. Those of the `initialize` era cannot be told of one.
pub(super) fn has_tasks(request: &RmcpContext) -> bool {
    is_modern(request)
        && request.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

pub(super) fn is_modern(request: &RmcpContext) -> bool {
    request.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Returns true if the client's protocol has `structuredContent`, which came with 2025-06-18.
pub(super) fn takes_structured(request: &RmcpContext) -> bool {
    request.protocol_version().is_none_or(|version| version >= ProtocolVersion::V_2025_06_18)
}
