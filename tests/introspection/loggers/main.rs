//! Run with tracing-subscriber 0.3 and its feature `json`: cargo run -- json|flat|text > FILE
fn main() {
    let kind = std::env::args().nth(1).unwrap_or_default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG);
    match kind.as_str() {
        "json" => subscriber.json().init(),
        "flat" => subscriber.json().flatten_event(true).init(),
        _ => subscriber.init(),
    }
    let _span = tracing::info_span!("request", id = 7).entered();
    tracing::debug!(key = "user:7", "cache miss");
    tracing::info!(port = 3000, "listening");
    tracing::warn!(ms = 812.5, "slow query");
    tracing::error!(error = "card declined", order = "o-17", "payment failed");
}
