//! The spans and log records that an OpenTelemetry collector gets.

use crate::SOON;
use integration_tests::{Era, HttpServer, Project, unused_port, wait_until};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind, status::StatusCode};
use prost::Message;
use rustix::process::Signal;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request: its path, its headers in small letters, its body.
type CollectedRequest = (String, Vec<String>, Vec<u8>);

/// A collector, which takes everything.
struct TraceCollector {
    address: std::net::SocketAddr,
    sent: Arc<Mutex<Vec<CollectedRequest>>>,
}

impl TraceCollector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let sent: Arc<Mutex<Vec<CollectedRequest>>> = Arc::default();
        let all = Arc::clone(&sent);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, all) = (stream.unwrap(), Arc::clone(&all));
                std::thread::spawn(move || take(stream, &all));
            }
        });
        Self { address, sent }
    }

    fn decoded<M: Message + Default>(&self, path: &str) -> Vec<M> {
        let sent = self.sent.lock().unwrap();
        let bodies = sent.iter().filter(|(sent, ..)| sent == path).map(|(_, _, body)| body);
        bodies.map(|body| M::decode(&**body).unwrap()).collect()
    }

    fn spans(&self) -> Vec<Span> {
        let all = self.decoded::<ExportTraceServiceRequest>("/v1/traces");
        let scopes = all.into_iter().flat_map(|request| request.resource_spans);
        scopes.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }
}

fn take(stream: TcpStream, all: &Mutex<Vec<CollectedRequest>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_ascii_lowercase());
        }
        let length = lines.iter().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let mut body = vec![0; length.expect("a length")];
        reader.read_exact(&mut body).unwrap();
        let path = lines[0].split(' ').nth(1).unwrap().to_owned();
        all.lock().unwrap().push((path, lines, body));
        reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    }
}

fn start(project: &Project, variables: &[(&str, &str)]) -> HttpServer {
    HttpServer::start_in(project, &[], variables)
}

fn value<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    found.value.as_ref()?.value.as_ref()
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> &'a str {
    match value(attributes, key) {
        Some(Value::StringValue(text)) => text,
        other => panic!("{key}: {other:?} in {attributes:?}"),
    }
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

#[test]
fn a_span_of_each_request_tells_who_called_what_and_how_it_came_out() {
    let project = Project::with([("a.txt", "the content of a file")]);
    let collector = TraceCollector::start();
    let endpoint = format!("http://{}", collector.address);
    let mut server = start(
        &project,
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20for-the-collector"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=trial"),
            // Nothing leaves by time: what is there at the end is what the end has sent.
            ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
        ],
    );
    let token = server.token("ada", "readonly", &[]);
    let mut client = server.connect(&token, Era::Modern);
    client.call("read_file", json!({"path": "a.txt"}));
    client.failure("read_file", json!({"path": "no-such-file"}));
    client.failure("read_file", json!({"path": "../outside"}));
    client.reply("tools/call", json!({"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}));
    client.reply("tools/call", json!({"name": "made_up_by_a_client", "arguments": {}}));
    let parent = format!("00-{TRACE}-b7ad6b7169203331-01");
    client.reply(
        "tools/call",
        json!({"name": "file_exists", "arguments": {"path": "a.txt"}, "_meta": {"traceparent": parent}}),
    );
    server.signal(Signal::TERM);
    assert!(server.wait(SOON).success());
    let spans = collector.spans();
    let named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let reads = named("tools/call read_file");
    assert_eq!(reads.len(), 3, "{spans:#?}");
    for read in &reads {
        assert_eq!(read.kind, SpanKind::Server as i32);
        assert!(read.end_time_unix_nano > read.start_time_unix_nano && read.parent_span_id.is_empty());
        for (key, said) in [
            ("mcp.method.name", "tools/call"),
            ("gen_ai.tool.name", "read_file"),
            ("gen_ai.operation.name", "execute_tool"),
            ("user.name", "ada"),
            ("coretools.role", "readonly"),
            ("client.address", "127.0.0.1"),
        ] {
            assert_eq!(text(&read.attributes, key), said);
        }
    }
    let failed =
        |span: &Span| span.status.as_ref().is_some_and(|status| status.code == StatusCode::Error as i32);
    assert_eq!(reads.iter().map(|span| failed(span)).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(text(&reads[1].attributes, "error.type"), "tool_error");
    assert!(value(&reads[0].attributes, "error.type").is_none());
    // One that is hidden has its name for who operates the server; one that there is not, no name of its own.
    let hidden = named("tools/call write_file");
    assert_eq!(text(&hidden[0].attributes, "coretools.decision"), "hidden");
    assert!(named("tools/call made_up_by_a_client").is_empty());
    let unknown = named("tools/call").into_iter().find(|span| failed(span)).unwrap();
    assert_eq!(text(&unknown.attributes, "gen_ai.tool.name"), "made_up_by_a_client");
    assert_eq!(text(&unknown.attributes, "error.type"), "unknown");
    // The client's own trace goes on.
    let child = named("tools/call file_exists")[0];
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(
        (hex(&child.trace_id), hex(&child.parent_span_id)),
        (TRACE.to_owned(), "b7ad6b7169203331".to_owned())
    );
    // What the server is, and what it says to be let in.
    let sent = collector.decoded::<ExportTraceServiceRequest>("/v1/traces");
    let resource = &sent[0].resource_spans[0].resource.as_ref().unwrap().attributes;
    assert_eq!(text(resource, "service.name"), "mcp-http");
    assert_eq!(text(resource, "deployment.environment.name"), "trial");
    let everything = collector.sent.lock().unwrap();
    assert!(
        everything
            .iter()
            .all(|(_, lines, _)| lines.iter().any(|line| line == "authorization: bearer for-the-collector"))
    );
    // No argument and no answer.
    for (_, _, body) in everything.iter() {
        let body = String::from_utf8_lossy(body);
        assert!(!body.contains("no-such-file") && !body.contains("the content of a file"), "{body}");
    }
}

#[test]
fn the_log_is_sent_too_masked_and_beside_standard_error() {
    let project = Project::empty();
    let collector = TraceCollector::start();
    let endpoint = format!("http://{}/v1/logs", collector.address);
    let mut server = start(
        &project,
        &[
            ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", &endpoint),
            ("OTEL_SERVICE_NAME", "tools"),
            ("MY_API_KEY", "a-token-that-nobody-may-see"),
        ],
    );
    let token = server.token("a-token-that-nobody-may-see", "readonly", &[]);
    server.connect(&token, Era::Modern).call("file_exists", json!({"path": "a"}));
    assert!(server.tokens(&["revoke", "a-token-that-nobody-may-see"]).status.success());
    wait_until(SOON, "the end of a token is told", || server.log().contains("may call no more"));
    server.signal(Signal::TERM);
    assert!(server.wait(SOON).success());
    let sent = collector.decoded::<ExportLogsServiceRequest>("/v1/logs");
    assert_eq!(
        text(&sent[0].resource_logs[0].resource.as_ref().unwrap().attributes, "service.name"),
        "tools"
    );
    let records =
        sent.into_iter().flat_map(|request| request.resource_logs).flat_map(|resource| resource.scope_logs);
    let records: Vec<_> = records.flat_map(|scope| scope.log_records).collect();
    let body = |value: &Option<AnyValue>| match value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        other => panic!("{other:?}"),
    };
    let told = records.iter().find(|record| body(&record.body).contains("may call no more")).unwrap();
    assert_eq!(
        (&*told.severity_text, &*body(&told.body)),
        ("WARN", "[redacted:environment] may call no more")
    );
    assert!(collector.spans().is_empty(), "no endpoint for traces was given");
}

#[test]
fn a_collector_that_is_away_costs_a_line_in_the_log_and_no_call() {
    let project = Project::empty();
    let endpoint = format!("http://127.0.0.1:{}", unused_port());
    let mut server =
        start(&project, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint), ("OTEL_BSP_SCHEDULE_DELAY", "50")]);
    let mut client = server.connect(&server.token("ada", "readonly", &[]), Era::Modern);
    wait_until(SOON, "it is told", || {
        client.call("file_exists", json!({"path": "a"}));
        server.log().contains("spans cannot be sent to the OpenTelemetry collector")
    });
    for _ in 0..20 {
        client.call("file_exists", json!({"path": "a"}));
    }
    server.signal(Signal::TERM);
    assert!(server.wait(SOON).success());
    assert_eq!(server.log().matches("spans cannot be sent").count(), 1, "{}", server.log());
}

#[test]
fn what_cannot_be_done_is_said_at_the_start() {
    let project = Project::empty();
    for (variables, said) in [
        (
            [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            "OTEL_EXPORTER_OTLP_PROTOCOL=grpc: expected http/protobuf",
        ),
        (
            [("OTEL_TRACES_EXPORTER", "jaeger"), ("OTEL_LOGS_EXPORTER", "none")],
            "OTEL_TRACES_EXPORTER=jaeger: expected otlp or none",
        ),
        ([("OTEL_EXPORTER_OTLP_ENDPOINT", "not a url"), ("OTEL_LOGS_EXPORTER", "none")], "OpenTelemetry: "),
    ] {
        let mut command = HttpServer::program(&project);
        command.args(["--anonymous-role", "readonly", "--listen", "127.0.0.1:0"]).envs(variables);
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(said), "{error}");
    }
}
