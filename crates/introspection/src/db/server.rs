//! The way of a request through a database server: a connection of its own, a time limit, and an end to the statement when
//! that has passed.

use super::deadline::{StatementStopSteps, run_bounded};
use super::response::DbResponse;
use super::{DbBridge, Error};
use sqlx::Connection;
use std::sync::OnceLock;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time that the server's own limit is longer than ours. Ours stops the statement and says so; the server's ends it
/// if this process cannot.
pub(super) const SERVER_LIMIT_MARGIN: Duration = Duration::from_secs(1);

/// A kind of database server, and one database of it.
pub(super) trait DatabaseServer: Sync {
    /// A connection to it.
    type Connection: Connection;
    /// The number by which the server knows a connection.
    type ConnectionId: Copy + Send + Sync;

    /// Opens a connection.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the user.
    fn connect(&self) -> impl Future<Output = Result<Self::Connection, Error>> + Send;

    /// Returns the number of a connection.
    ///
    /// # Errors
    /// The server does not answer.
    fn connection_id(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<Self::ConnectionId, Error>> + Send;

    /// Ends the statement of another connection. Every user may do that to its own connections.
    ///
    /// # Errors
    /// The server cannot be reached or does not do it.
    fn stop_statement(&self, id: Self::ConnectionId) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Ends another connection, for a statement that catches its cancellation and goes on. The same right as above.
    ///
    /// # Errors
    /// The server cannot be reached or does not do it.
    fn end_connection(&self, id: Self::ConnectionId) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Opens the transaction that the action needs and runs the request in it. The connection is closed afterwards.
    ///
    /// # Errors
    /// What the server says, and what it is not asked to do.
    fn execute(
        &self,
        connection: &mut Self::Connection,
        id: Self::ConnectionId,
        request: &DbBridge,
        cancel: &CancellationToken,
    ) -> impl Future<Output = Result<DbResponse, Error>> + Send;
}

/// Runs `request` on `server`.
///
/// # Errors
/// Those of the server; [`Error::TimedOut`] or [`Error::Cancelled`] where the statement was stopped.
pub(super) async fn run<S: DatabaseServer>(
    server: &S,
    request: &DbBridge,
    cancel: &CancellationToken,
) -> Result<DbResponse, Error> {
    let connection_id = OnceLock::new();
    // Cancelled by the caller, and when the time is over.
    let stopping = cancel.child_token();
    let work = async {
        let mut connection = server.connect().await?;
        let id = S::connection_id(&mut connection).await?;
        // It is set once, so this cannot fail.
        let _ = connection_id.set(id);
        let response = server.execute(&mut connection, id, request, &stopping).await;
        // Closing rolls back whatever is not committed. A failure to say goodbye changes nothing.
        let _ = connection.close().await;
        response
    };
    let (connection_id, stopping) = (&connection_id, &stopping);
    let steps = StatementStopSteps {
        stop: move || async move {
            stopping.cancel();
            if let Some(id) = connection_id.get() {
                let _ = server.stop_statement(*id).await;
            }
        },
        end: move || async move {
            if let Some(id) = connection_id.get() {
                let _ = server.end_connection(*id).await;
            }
        },
    };
    run_bounded(request, cancel, work, steps).await
}
