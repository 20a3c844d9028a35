//! A scripted DynamoDB, for responses that the emulator never gives.

use std::sync::{Arc, Mutex};

use http::Response;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;

/// Runs a DynamoDB that gives `answers` one after the other, the last one repeatedly. Returns its address.
///
/// # Panics
/// Without a free port.
pub async fn scripted_database(answers: Vec<(u16, Value)>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("it works");
    let address = listener.local_addr().expect("it works");
    let answers = Arc::new(Mutex::new(answers));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answers = Arc::clone(&answers);
            let service = service_fn(move |request: Request<Incoming>| {
                let answers = Arc::clone(&answers);
                async move {
                    let _body = request.into_body().collect().await;
                    let mut answers = answers.lock().expect("it works");
                    let (status, body) =
                        if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
                    let response = Response::builder()
                        .status(status)
                        .header("content-type", "application/x-amz-json-1.0");
                    response.body(Full::new(Bytes::from(body.to_string())))
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    format!("http://{address}")
}
