//! A person's approval of one call.

use crate::caller::Caller;
use crate::quoted::quoted;
use crate::tool::Call;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;

/// The identity of one call by one caller: a hash over its roles, principal and session, the tool and the canonical
/// arguments. A fingerprint is displayed as hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallFingerprint([u8; 32]);

impl CallFingerprint {
    /// Returns the fingerprint of `call` by `caller`. The order of members in the arguments does not matter.
    pub fn of(caller: &Caller, call: &Call) -> Self {
        let mut hash = Sha256::new();
        // Each part begins with its length, so that two different sequences of parts never give the same bytes.
        let mut roles: Vec<&str> = caller.roles().collect();
        roles.sort_unstable();
        update_length(&mut hash, roles.len());
        roles.into_iter().for_each(|role| update_text(&mut hash, role));
        for part in [caller.principal(), caller.session()] {
            hash.update([u8::from(part.is_some())]);
            update_text(&mut hash, part.unwrap_or_default());
        }
        update_text(&mut hash, call.tool());
        update_members(&mut hash, call.arguments());
        Self(hash.finalize().into())
    }

    /// Reads the hexadecimal digits that it is displayed as. `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

fn update_length(hash: &mut Sha256, length: usize) {
    hash.update(u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes());
}

fn update_text(hash: &mut Sha256, text: &str) {
    update_length(hash, text.len());
    hash.update(text.as_bytes());
}

fn update_members(hash: &mut Sha256, members: &serde_json::Map<String, Value>) {
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_unstable_by_key(|(name, _)| name.as_str());
    update_length(hash, sorted.len());
    for (name, value) in sorted {
        update_text(hash, name);
        update_value(hash, value);
    }
}

fn update_value(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(flag) => hash.update(if *flag { b"t" } else { b"f" }),
        Value::Number(number) => {
            hash.update(b"d");
            update_text(hash, &number.to_string());
        }
        Value::String(text) => {
            hash.update(b"s");
            update_text(hash, text);
        }
        Value::Array(elements) => {
            hash.update(b"a");
            update_length(hash, elements.len());
            elements.iter().for_each(|element| update_value(hash, element));
        }
        Value::Object(members) => {
            hash.update(b"o");
            update_members(hash, members);
        }
    }
}

impl fmt::Display for CallFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One reason why a person must approve a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskReason {
    /// The entry of `ask`, or the rule with `otherwise = "ask"`, with its file and line.
    pub rule: Arc<str>,
    /// The condition of the rule that does not hold. `None` for an entry of `ask`, which asks about every call.
    pub condition: Option<String>,
}

/// A call that the policy allows only with the approval of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRequest {
    call: Box<Call>,
    fingerprint: CallFingerprint,
    first: AskReason,
    others: Vec<AskReason>,
}

impl ApprovalRequest {
    /// Returns the request for `call`, or `None` if there is no reason to ask.
    pub(crate) fn new(caller: &Caller, call: &Call, reasons: Vec<AskReason>) -> Option<Self> {
        let mut reasons = reasons.into_iter();
        let first = reasons.next()?;
        let fingerprint = CallFingerprint::of(caller, call);
        Some(Self { call: Box::new(call.clone()), fingerprint, first, others: reasons.collect() })
    }

    /// Returns the call, as it was judged.
    pub fn call(&self) -> &Call {
        &self.call
    }

    /// Returns the identity of the call. An approval holds for this call and no other.
    pub fn fingerprint(&self) -> CallFingerprint {
        self.fingerprint
    }

    /// Returns the reasons to ask. There is at least one.
    pub fn reasons(&self) -> impl Iterator<Item = &AskReason> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns the first rule that asks.
    pub fn rule(&self) -> &Arc<str> {
        &self.first.rule
    }

    /// Returns the approval of the call by `approver`, the person who gave it. Call this only with the answer of a
    /// person in hand.
    pub fn approve(self, approver: impl Into<Arc<str>>) -> Approval {
        Approval { request: self, approver: approver.into() }
    }

    /// Returns true if an approval of `self` also approves `later`, the request for the same call by a policy that may
    /// have changed: `later` has no reason that the person did not see.
    fn covers(&self, later: &Self) -> bool {
        // The rule's label has a line number, which changes with each edit of the file. The condition names what the
        // call reaches.
        later.reasons().all(|reason| self.reasons().any(|seen| seen.condition == reason.condition))
    }
}

impl fmt::Display for ApprovalRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a person must approve this call")?;
        let conditions: Vec<&str> = self.reasons().filter_map(|reason| reason.condition.as_deref()).collect();
        match conditions.as_slice() {
            [] => Ok(()),
            conditions => write!(f, ": {}", conditions.join("; ")),
        }
    }
}

/// The approval of one call by a person. It is used up by
/// [`Policy::authorize_approved`](crate::Policy::authorize_approved).
// There is no `Clone`: one answer of a person runs one call.
#[derive(Debug)]
#[must_use = "an approval runs nothing by itself"]
pub struct Approval {
    request: ApprovalRequest,
    approver: Arc<str>,
}

impl Approval {
    /// Returns the person who gave it.
    pub fn approver(&self) -> &Arc<str> {
        &self.approver
    }

    /// Uses the approval up, and returns the person who gave it.
    pub(crate) fn into_approver(self) -> Arc<str> {
        self.approver
    }

    /// Returns true if it is for the call with this fingerprint.
    pub(crate) fn is_for(&self, fingerprint: CallFingerprint) -> bool {
        self.request.fingerprint == fingerprint
    }

    /// Returns true if it also approves `later`: see [`ApprovalRequest::covers`].
    pub(crate) fn covers(&self, later: &ApprovalRequest) -> bool {
        self.request.covers(later)
    }
}

/// Returns `message` with the program that the call would run.
pub(crate) fn with_program(message: &str, program: &str) -> String {
    format!("{message} (the call would run {})", quoted(&[program]))
}
