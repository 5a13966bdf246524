"""The same answer as an ASGI and as a WSGI application."""

BODY = b"x" * 1000


async def asgi(scope, receive, send):
    """For uvicorn."""
    if scope["type"] != "http":
        return
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"1000")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": BODY})


def wsgi(_environment, start_response):
    """For gunicorn."""
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "1000")])
    return [BODY]
