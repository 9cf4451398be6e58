//! The policy in front of a server that is not ours.
mod catalogue;
mod json;
mod judge;
mod lines;
mod message;
mod methods;
mod outbox;
mod outline;
