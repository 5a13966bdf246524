// libuv: one loop, callbacks. The loop writes what the peer does not take at once, and reads nothing more meanwhile.

#include "server.h"

#include <uv.h>

// A client's stream, and the write that waits for room.
struct client {
    uv_tcp_t stream;
    uv_write_t write;
    char *rest;
};

static char buffer[LOOP_BUFFER];

static void lend_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *lent)
{
    (void)handle;
    (void)suggested;
    *lent = uv_buf_init(buffer, sizeof buffer);
}

static void closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void end(uv_stream_t *stream)
{
    if (!uv_is_closing((uv_handle_t *)stream))
        uv_close((uv_handle_t *)stream, closed);
}

static void heard(uv_stream_t *stream, ssize_t got, const uv_buf_t *lent);

static void written(uv_write_t *write, int status)
{
    struct client *client = write->data;
    free(client->rest);
    client->rest = NULL;
    if (status < 0 || uv_read_start((uv_stream_t *)&client->stream, lend_buffer, heard) < 0)
        end((uv_stream_t *)&client->stream);
}

static void heard(uv_stream_t *stream, ssize_t got, const uv_buf_t *lent)
{
    if (got < 0) {
        end(stream);
        return;
    }
    if (got == 0)
        return;
    uv_buf_t answer = uv_buf_init(lent->base, (unsigned)got);
    int sent = uv_try_write(stream, &answer, 1);
    if (sent == got)
        return;
    if (sent < 0 && sent != UV_EAGAIN) {
        end(stream);
        return;
    }
    sent = sent < 0 ? 0 : sent;
    struct client *client = stream->data;
    size_t length = (size_t)(got - sent);
    client->rest = malloc(length);
    if (client->rest == NULL)
        die("malloc");
    memcpy(client->rest, lent->base + sent, length);
    answer = uv_buf_init(client->rest, (unsigned)length);
    uv_read_stop(stream);
    if (uv_write(&client->write, stream, &answer, 1, written) < 0)
        end(stream);
}

static void arrived(uv_stream_t *listener, int status)
{
    if (status < 0)
        return;
    struct client *client = calloc(1, sizeof *client);
    if (client == NULL || uv_tcp_init(listener->loop, &client->stream) < 0)
        die("a client");
    client->stream.data = client;
    client->write.data = client;
    uv_stream_t *stream = (uv_stream_t *)&client->stream;
    if (uv_accept(listener, stream) < 0 || uv_tcp_nodelay(&client->stream, 1) < 0 ||
        uv_read_start(stream, lend_buffer, heard) < 0)
        end(stream);
}

int main(int argc, char **argv)
{
    int fd = listen_on(argc, argv, SOCK_NONBLOCK);
    uv_loop_t *loop = uv_default_loop();
    uv_tcp_t listener;
    int status = uv_tcp_init(loop, &listener);
    if (status == 0)
        status = uv_tcp_open(&listener, fd);
    if (status == 0)
        status = uv_listen((uv_stream_t *)&listener, BACKLOG, arrived);
    if (status < 0) {
        fprintf(stderr, "libuv: %s\n", uv_strerror(status));
        return 1;
    }
    announce(fd);
    return uv_run(loop, UV_RUN_DEFAULT);
}
