//! [`GatewayMeans`]: the parts of the server that the start of a gateway needs.

use process_runner::{Confinement, Runner};
use std::path::Path;

/// The parts of the server that the start of a gateway needs.
#[cfg_attr(not(feature = "credentials"), allow(dead_code, reason = "only credentials need all of them"))]
pub(super) struct GatewayMeans<'a> {
    /// The most that programs of the server may read.
    pub(super) readable: &'a Confinement,
    pub(super) temp: &'a Path,
    pub(super) runner: &'a Runner,
}
