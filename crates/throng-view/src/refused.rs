//! Rejected requests, with the reason.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::page;
use throng_record::format::sentence;

/// A rejected request, with the reason.
pub(super) struct Refused(pub(super) StatusCode, pub(super) String);

impl Refused {
    pub(super) fn missing(why: &str) -> Self {
        Self(StatusCode::NOT_FOUND, why.to_owned())
    }

    pub(super) fn failed(error: &anyhow::Error) -> Self {
        let why = sentence(&format!("{error:#}"));
        Self(StatusCode::INTERNAL_SERVER_ERROR, why)
    }

    /// An unreadable record.
    pub(super) fn broken(error: &anyhow::Error) -> Self {
        let why = sentence(&format!("{error:#}"));
        Self(StatusCode::UNPROCESSABLE_ENTITY, why)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(status, why) = self;
        let title = status.canonical_reason().unwrap_or("Refused");
        let kind = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
        (status, kind, page::refusal(title, &why).into_string()).into_response()
    }
}
