//! What a client is promised; a changed line here is a changed contract.
