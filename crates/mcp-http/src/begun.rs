//! What is known of a request when its span begins, whether this build makes spans or not.
#![cfg_attr(not(feature = "telemetry"), allow(dead_code, reason = "nobody looks at it here"))]

/// What a span begins with.
#[derive(Debug)]
pub(crate) struct Begun<'a> {
    pub(crate) method: &'a str,
    pub(crate) id: Option<String>,
    pub(crate) parent: Option<&'a Parent>,
    pub(crate) version: Option<&'a str>,
    pub(crate) principal: &'a str,
    pub(crate) role: &'a str,
    pub(crate) from: String,
}

/// Which span of a client a request belongs to, by W3C Trace Context: in `_meta`, or else in the headers.
#[derive(Debug, Default, Clone)]
pub(crate) struct Parent {
    pub(crate) traceparent: String,
    pub(crate) tracestate: Option<String>,
}
