//! Layers from async functions, as axum's `from_fn` makes them.
//!
//! A request of the protocol meets eleven layers. For each of them axum boxes the inner services, the layer's future and the
//! future of its [`Next`](axum::middleware::Next), and takes the request apart for the extractors: a tenth of a small call.
//! Here a layer shares what is below it, borrows what it extracts, and boxes its future alone.

use crate::response;
use crate::state::App;
use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// The future of every service of the stack.
pub(crate) type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// Boxes the future of a service of axum's, which has a type of its own.
pub(crate) fn boxed(
    future: impl Future<Output = Result<Response, Infallible>> + Send + 'static,
) -> ResponseFuture {
    Box::pin(future)
}

/// The layers below, and the endpoint. A listener has all of them.
#[derive(Clone)]
pub(crate) struct Next(Arc<dyn SharedService>);

impl Next {
    /// Erases the type of a service that is always ready.
    pub(crate) fn new<S>(service: S) -> Self
    where
        S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        Self(Arc::new(service))
    }

    /// Answers a request with the layers below.
    pub(crate) async fn run(self, request: Request) -> Response {
        match self.0.call_shared(request).await {
            Ok(response) => response,
            Err(impossible) => match impossible {},
        }
    }
}

/// A service that is always ready, and that many requests use at once.
trait SharedService: Send + Sync {
    fn call_shared(&self, request: Request) -> ResponseFuture;
}

impl<S> SharedService for S
where
    S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>
        + Clone
        + Send
        + Sync,
{
    fn call_shared(&self, request: Request) -> ResponseFuture {
        self.clone().call(request)
    }
}

/// Makes a layer from an async function of extractors, the request and [`Next`].
pub(crate) fn layer_fn<F, E>(app: App, function: F) -> FnLayer<F, E>
where
    F: LayerFn<E>,
{
    FnLayer { app, function, extractors: PhantomData }
}

/// A layer from an async function.
pub(crate) struct FnLayer<F, E> {
    app: App,
    function: F,
    extractors: PhantomData<fn() -> E>,
}

impl<F: Copy, E> Clone for FnLayer<F, E> {
    fn clone(&self) -> Self {
        Self { app: self.app, function: self.function, extractors: PhantomData }
    }
}

impl<F, E, S> Layer<S> for FnLayer<F, E>
where
    F: LayerFn<E>,
    S: Service<Request, Response = Response, Error = Infallible, Future = ResponseFuture>
        + Clone
        + Send
        + Sync
        + 'static,
{
    type Service = FnService<F, E>;

    fn layer(&self, inner: S) -> Self::Service {
        FnService { app: self.app, function: self.function, next: Next::new(inner), extractors: PhantomData }
    }
}

/// An async function in front of the layers below it.
pub(crate) struct FnService<F, E> {
    app: App,
    function: F,
    next: Next,
    extractors: PhantomData<fn() -> E>,
}

impl<F: Copy, E> Clone for FnService<F, E> {
    fn clone(&self) -> Self {
        Self { app: self.app, function: self.function, next: self.next.clone(), extractors: PhantomData }
    }
}

impl<F: LayerFn<E>, E> Service<Request> for FnService<F, E> {
    type Response = Response;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        self.function.call(self.app, request, self.next.clone())
    }
}

/// An async function that can be a layer: up to four extractors, the request, and [`Next`].
pub(crate) trait LayerFn<E>: Copy + Send + Sync + 'static {
    fn call(self, app: App, request: Request, next: Next) -> ResponseFuture;
}

macro_rules! impl_layer_fn {
    ($($extractor:ident),*) => {
        #[allow(non_snake_case, reason = "each argument has the name of its type")]
        #[allow(unused_variables, reason = "a layer without extractors needs no state")]
        impl<F, R, $($extractor,)*> LayerFn<($($extractor,)*)> for F
        where
            F: Fn($($extractor,)* Request, Next) -> R + Copy + Send + Sync + 'static,
            R: Future<Output = Response> + Send + 'static,
            $($extractor: Extract,)*
        {
            fn call(self, app: App, request: Request, next: Next) -> ResponseFuture {
                $(let Some($extractor) = $extractor::extract(app, &request) else {
                    return Box::pin(std::future::ready(Ok(missing::<$extractor>())));
                };)*
                let future = self($($extractor,)* request, next);
                Box::pin(async move { Ok(future.await) })
            }
        }
    };
}

impl_layer_fn!();
impl_layer_fn!(T1);
impl_layer_fn!(T1, T2);
impl_layer_fn!(T1, T2, T3);
impl_layer_fn!(T1, T2, T3, T4);

/// An argument of a layer.
pub(crate) trait Extract: Sized {
    /// Returns `None` if no layer above has put it into the request.
    fn extract(app: App, request: &Request) -> Option<Self>;
}

impl Extract for State<App> {
    fn extract(app: App, _request: &Request) -> Option<Self> {
        Some(Self(app))
    }
}

impl<T: Clone + Send + Sync + 'static> Extract for Extension<T> {
    fn extract(_app: App, request: &Request) -> Option<Self> {
        request.extensions().get::<T>().cloned().map(Self)
    }
}

/// Answers where the router has its layers in a wrong order.
fn missing<E>() -> Response {
    tracing::error!("no layer above has put {} into the request", std::any::type_name::<E>());
    response::text(StatusCode::INTERNAL_SERVER_ERROR, "a layer of the server is missing\n")
}
