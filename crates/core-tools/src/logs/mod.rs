//! Reads the logs of the application.
mod backward;
mod forward;
mod json;
mod level;
mod line;
mod logfmt;
mod moment;
mod plain;
mod source;
