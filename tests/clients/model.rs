//! A stand-in for a model, which would need an account: on loopback it asks for the given calls one after the other,
//! and keeps what its client gives it for them. Client and server are the real ones. It speaks what the clients do:
//! Anthropic's Messages API, Gemini's API, and OpenAI's Responses API.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub(crate) struct ScriptedModel {
    address: SocketAddr,
    results: Arc<Mutex<Vec<Value>>>,
    refusals: Arc<Mutex<VecDeque<Refusal>>>,
    /// The conversation of each request, as its API has it.
    conversations: Arc<Mutex<Vec<Value>>>,
}

/// An answer with which a model refuses a request that could call tools.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// The status line, such as `429 Too Many Requests`.
    pub(crate) status: &'static str,
    pub(crate) body: RefusalBody,
    /// How many results the request must bring, so that the refusal comes in the middle of a conversation.
    pub(crate) after_results: usize,
}

/// The text of a refusal.
#[derive(Clone, Debug)]
pub(crate) enum RefusalBody {
    /// An error.
    Error(Value),
    /// The events of a stream, which begins well and fails.
    Stream(Vec<Value>),
}

/// A call that it asks for: a tool by our name for it, whatever the client makes of that, or one of the client's own as
/// `own:NAME`; and arguments.
pub(crate) type RequestedCall = (&'static str, Value);

/// Results so far, and the events of the answer.
type ModelTurn = (Vec<Value>, Vec<Value>);

impl ScriptedModel {
    /// One that asks for `calls`, and is done.
    pub(crate) fn asking(calls: &[RequestedCall]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let model = Self {
            address: listener.local_addr().unwrap(),
            results: Arc::default(),
            refusals: Arc::default(),
            conversations: Arc::default(),
        };
        let (calls, results) = (Arc::new(calls.to_vec()), Arc::clone(&model.results));
        let refusals = Arc::clone(&model.refusals);
        let conversations = Arc::clone(&model.conversations);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (calls, results) = (Arc::clone(&calls), Arc::clone(&results));
                let (refusals, conversations) = (Arc::clone(&refusals), Arc::clone(&conversations));
                std::thread::spawn(move || answer(stream, &calls, &results, &refusals, &conversations));
            }
        });
        model
    }

    /// Has the next requests refused, one after the other.
    pub(crate) fn refusing(self, refusals: impl IntoIterator<Item = Refusal>) -> Self {
        self.refusals.lock().unwrap().extend(refusals);
        self
    }

    /// Returns the refusals that were not used yet.
    pub(crate) fn refusals_left(&self) -> usize {
        self.refusals.lock().unwrap().len()
    }

    /// Returns true if a conversation that it was sent has this text.
    pub(crate) fn was_told(&self, text: &str) -> bool {
        let conversations = self.conversations.lock().unwrap();
        conversations.iter().any(|conversation| conversation.to_string().contains(text))
    }

    /// Returns the number of messages in the longest conversation that it was sent.
    pub(crate) fn longest_conversation(&self) -> usize {
        let conversations = self.conversations.lock().unwrap();
        let lengths = conversations.iter().filter_map(|conversation| conversation.as_array().map(Vec::len));
        lengths.max().unwrap_or_default()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns what the client gave it for each call, in order, as its API has it.
    pub(crate) fn results(&self) -> Vec<Value> {
        self.results.lock().unwrap().clone()
    }
}

/// The text that a model reads in a result.
pub(crate) fn text(result: &Value) -> String {
    if let Some(text) = result["output"].as_str() {
        return text.to_owned();
    }
    for key in ["output", "error"] {
        if let Some(text) = result["response"][key].as_str() {
            return text.to_owned();
        }
    }
    // A tool of Codex answers a text, and a tool of an MCP server answers blocks.
    let blocks = if result["output"].is_array() { &result["output"] } else { &result["content"] };
    match blocks {
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}

/// Answers one request. What is not understood is closed, and the client says so.
fn answer(
    mut stream: TcpStream,
    calls: &[RequestedCall],
    results: &Mutex<Vec<Value>>,
    refusals: &Mutex<VecDeque<Refusal>>,
    conversations: &Mutex<Vec<Value>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = String::new();
    let mut length = 0;
    while reader.read_line(&mut head).ok()? > 2 {
        let line = head.lines().last()?.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let speaks: fn(&Value, &[RequestedCall]) -> Option<ModelTurn> = match head.lines().next()? {
        line if line.starts_with("POST /v1/messages") => messages,
        line if line.contains(":streamGenerateContent") => gemini,
        line if line.contains("/responses") => responses,
        _ => {
            let nothing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            return stream.write_all(nothing).ok();
        }
    };
    let request: Value = serde_json::from_slice(&body).ok()?;
    let (given, events) = speaks(&request, calls)?;
    let conversation = ["messages", "contents", "input"].iter().find_map(|name| request.get(*name));
    conversations.lock().ok()?.extend(conversation.cloned());
    let has_tools = request["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let refusal = {
        let mut refusals = refusals.lock().ok()?;
        let is_due = refusals.front().is_some_and(|next| has_tools && given.len() >= next.after_results);
        is_due.then(|| refusals.pop_front()).flatten()
    };
    if let Some(Refusal { status, body, .. }) = refusal {
        let (kind, body) = match body {
            RefusalBody::Error(body) => ("application/json", body.to_string()),
            RefusalBody::Stream(events) => ("text/event-stream", streamed(&events)),
        };
        // The client is not to try again by itself.
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nx-should-retry: false\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        return stream.write_all(answer.as_bytes()).ok();
    }
    let mut known = results.lock().ok()?;
    if given.len() > known.len() {
        *known = given;
    }
    drop(known);
    let mut answer =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_owned();
    answer.push_str(&streamed(&events));
    stream.write_all(answer.as_bytes()).ok()
}

/// The events of a stream, as they are sent.
fn streamed(events: &[Value]) -> String {
    let mut text = String::new();
    for event in events {
        if let Some(kind) = event["type"].as_str() {
            text.push_str(&format!("event: {kind}\n"));
        }
        text.push_str(&format!("data: {event}\n\n"));
    }
    text
}

/// The next call, by the client's name for the tool. A title or the like is asked for without tools.
fn next<'a>(calls: &'a [RequestedCall], done: usize, tools: &[&'a str]) -> Option<(&'a str, &'a Value)> {
    let (name, arguments) = calls.get(done)?;
    if let Some(own) = name.strip_prefix("own:") {
        return Some((tools.iter().find(|tool| **tool == own)?, arguments));
    }
    let ours = |tool: &&&str| {
        let rest = tool.split_once("coretools").map(|(_, rest)| rest.trim_start_matches(['_', '-']));
        rest == Some(name)
    };
    Some((tools.iter().find(ours)?, arguments))
}

/// A turn by <https://docs.anthropic.com/en/api/messages-streaming>.
fn messages(request: &Value, calls: &[RequestedCall]) -> Option<ModelTurn> {
    let messages = request["messages"].as_array()?;
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let given: Vec<Value> = blocks.filter(|block| block["type"] == "tool_result").cloned().collect();
    let tools = request["tools"].as_array().into_iter().flatten();
    let tools: Vec<&str> = tools.filter_map(|tool| tool["name"].as_str()).collect();
    let (block, delta, reason) = match next(calls, given.len(), &tools) {
        Some((tool, arguments)) => (
            json!({"type": "tool_use", "id": format!("toolu_{}", given.len()), "name": tool, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": arguments.to_string()}),
            "tool_use",
        ),
        None => {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": "done"}), "end_turn")
        }
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": request["model"],
        "stop_reason": null, "stop_sequence": null, "usage": usage});
    let events = vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    Some((given, events))
}

/// The same by <https://ai.google.dev/api/generate-content>.
fn gemini(request: &Value, calls: &[RequestedCall]) -> Option<ModelTurn> {
    let parts =
        request["contents"].as_array()?.iter().filter_map(|content| content["parts"].as_array()).flatten();
    let mut given: Vec<Value> = Vec::new();
    for response in parts.filter_map(|part| part.get("functionResponse")) {
        // A resumed conversation of Gemini CLI has the last one twice.
        if !given.contains(response) {
            given.push(response.clone());
        }
    }
    let declared = request["tools"].as_array().into_iter().flatten();
    let declared = declared.filter_map(|tools| tools["functionDeclarations"].as_array()).flatten();
    let tools: Vec<&str> = declared.filter_map(|tool| tool["name"].as_str()).collect();
    let part = match next(calls, given.len(), &tools) {
        Some((tool, arguments)) => json!({"functionCall": {"name": tool, "args": arguments}}),
        None => json!({"text": "done"}),
    };
    let content = json!({"role": "model", "parts": [part]});
    let usage = json!({"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2});
    let answer = json!({"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage});
    Some((given, vec![answer]))
}

/// The same by <https://platform.openai.com/docs/api-reference/responses-streaming>.
fn responses(request: &Value, calls: &[RequestedCall]) -> Option<ModelTurn> {
    let input = request["input"].as_array()?.iter();
    let given: Vec<Value> = input
        .filter(|item| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output")))
        .cloned()
        .collect();
    // The tools of a server stand beneath its name.
    let declared = request["tools"].as_array().into_iter().flatten();
    let mut names: Vec<(String, Option<&str>, &str)> = Vec::new();
    for tool in declared {
        let Some(name) = tool["name"].as_str() else { continue };
        match tool["tools"].as_array() {
            Some(inner) => names.extend(
                inner
                    .iter()
                    .filter_map(|tool| tool["name"].as_str())
                    .map(|tool| (format!("{name}__{tool}"), Some(name), tool)),
            ),
            None => names.push((name.to_owned(), None, name)),
        }
    }
    let tools: Vec<&str> = names.iter().map(|(whole, ..)| whole.as_str()).collect();
    let id = format!("call_{}", given.len());
    let item = match next(calls, given.len(), &tools) {
        Some((tool, arguments)) => {
            let (_, namespace, name) = names.iter().find(|(whole, ..)| whole == tool)?;
            let mut item = match arguments {
                Value::String(text) => {
                    json!({"type": "custom_tool_call", "call_id": id, "name": name, "input": text, "status": "completed"})
                }
                arguments => {
                    json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments.to_string()})
                }
            };
            if let Some(namespace) = namespace {
                item["namespace"] = json!(namespace);
            }
            item
        }
        None => json!({"type": "message", "role": "assistant", "id": "msg_1",
            "content": [{"type": "output_text", "text": "done", "annotations": []}]}),
    };
    let usage = json!({"input_tokens": 1, "input_tokens_details": null, "output_tokens": 1,
        "output_tokens_details": null, "total_tokens": 2});
    let events = vec![
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}),
    ];
    Some((given, events))
}
