//! Layers as async functions: each gets the request and what is below it, and the compiler makes one future of all.
//!
//! A layer of axum or tower is a value: for each layer and request it clones and boxes the services below, boxes its own
//! future, and looks up what it extracts. A request of the protocol meets eleven layers, and that was a tenth of a small
//! call. Layers of routes that are asked for less often are axum's.

use axum::response::Response;

/// The layers below one, and the endpoint.
pub(crate) trait Next<R>: FnOnce(R) -> Self::Answer + Send {
    type Answer: Future<Output = Response> + Send;
}

impl<R, F, A> Next<R> for F
where
    F: FnOnce(R) -> A + Send,
    A: Future<Output = Response> + Send,
{
    type Answer = A;
}

/// Puts layers before an endpoint: `layers!(app, request => outermost, innermost; endpoint)`. The endpoint is a future that
/// answers `request`, as the layers have left it.
macro_rules! layers {
    ($app:ident, $request:ident => ; $endpoint:expr) => { $endpoint };
    ($app:ident, $request:ident => $layer:path $(, $below:path)*; $endpoint:expr) => {
        $layer($app, $request, move |$request| layers!($app, $request => $($below),*; $endpoint))
    };
}

pub(crate) use layers;
