//! Holds back the end of the input until every request before it has its answer.
//!
//! A client may write its calls and close its side at once. The service would end with the
//! input, and the answers of calls that still run would be lost though their writes are not.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Notify;

pub struct Drain<T> {
    inner: T,
    open: Arc<Open>,
    has_ended: bool,
}

/// The requests without an answer. A cancelled one gets none.
#[derive(Default)]
pub struct Open {
    requests: Mutex<HashSet<RequestId>>,
    fewer: Notify,
}

impl<T> Drain<T> {
    pub fn new(inner: T) -> Self {
        Self {
            inner,
            open: Arc::default(),
            has_ended: false,
        }
    }

    pub fn open(&self) -> Arc<Open> {
        Arc::clone(&self.open)
    }
}

impl Open {
    fn requests(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self, id: &RequestId) {
        self.requests().remove(id);
        self.fewer.notify_waiters();
    }

    pub async fn all_answered(&self) {
        loop {
            // Before the look, so that no notice in between is missed.
            let fewer = self.fewer.notified();
            if self.requests().is_empty() {
                return;
            }
            fewer.await;
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Drain<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let open = Arc::clone(&self.open);
        let sent = self.inner.send(item);
        async move {
            let sent = sent.await;
            if let Some(id) = answered {
                open.close(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        if !self.has_ended {
            match self.inner.receive().await {
                Some(message) => {
                    match &message {
                        JsonRpcMessage::Request(request) => {
                            self.open.requests().insert(request.id.clone());
                        }
                        JsonRpcMessage::Notification(note) => {
                            if let ClientNotification::CancelledNotification(note) =
                                &note.notification
                                && let Some(id) = &note.params.request_id
                            {
                                self.open.close(id);
                            }
                        }
                        _ => {}
                    }
                    return Some(message);
                }
                None => self.has_ended = true,
            }
        }
        self.open.all_answered().await;
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
