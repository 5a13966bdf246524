// Clients of an HTTP/2 server without TLS, on epoll, one thread, a closed loop: what a load generator
// has to do and nothing else, so a bound for those that do more. Each client keeps a number of
// streams open; each reply's status and body are checked, and each response time is recorded.
//
//   load-http2 PORT [-c CLIENTS] [-m STREAMS] [-d SECONDS | -n REQUESTS] [-g]
//
// -g: print "ready" once all are connected, and wait for a line on standard input. The CPU time in the
// result does not include connecting.
//
// System calls a request: a share of recv, send and epoll_wait: all replies that one recv brings are
// answered with the next requests in one send.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "times.h"

enum {
    HEAD = 9,
    INPUT = 256 * 1024,
    KEPT = 16384 + HEAD, // part of a frame
    SLOTS = 4096,        // of sending times; open streams are fewer, and replies nearly in order
    MOST_CLIENTS = 28000,
    MOST_STREAMS = 1024,
    WINDOW = 1 << 30,
    EVENTS = 1024,
    DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7, WINDOW_UPDATE = 8,
    END_STREAM = 1, ACK = 1, END_HEADERS = 4,
    OK_INDEXED = 0x88, // ":status: 200" as a header block has it
};

struct client {
    int fd;
    unsigned kept; // bytes of an incomplete frame
    unsigned next_stream, open;
    uint32_t received; // bytes for which no window was given back
    uint64_t *sent_at; // by stream
    unsigned *body;    // bytes of the reply's body so far, by stream
    unsigned char *part;
};

static struct client *clients;
static unsigned count = 50, streams = 1;
static unsigned char input[KEPT + INPUT], output[1 << 20];
static size_t to_send;
static unsigned char request[512];
static size_t request_size;
static unsigned char body[1 << 20]; // that of the first reply
static unsigned body_size;
static bool is_known;
static uint64_t begun, most_requests = UINT64_MAX;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "load-http2: %s: %s\n", what, errno != 0 ? strerror(errno) : "wrong");
    exit(1);
}

// Sending.

static void put(const void *bytes, size_t length)
{
    if (to_send + length > sizeof output)
        die("output");
    memcpy(output + to_send, bytes, length);
    to_send += length;
}

static void put_frame(unsigned kind, unsigned flags, uint32_t stream, const void *payload, unsigned length)
{
    unsigned char head[HEAD] = {0, (unsigned char)(length >> 8), (unsigned char)length,
                                (unsigned char)kind, (unsigned char)flags};
    uint32_t number = htonl(stream);
    memcpy(head + 5, &number, 4);
    put(head, HEAD);
    put(payload, length);
}

static void flush(const struct client *client)
{
    size_t sent = 0;
    while (sent < to_send) {
        ssize_t now_sent = send(client->fd, output + sent, to_send - sent, MSG_NOSIGNAL);
        if (now_sent >= 0)
            sent += (size_t)now_sent;
        else if (errno != EAGAIN && errno != EINTR)
            die("send");
    }
    to_send = 0;
}

static void ask(struct client *client, uint64_t time)
{
    if (begun == most_requests || client->next_stream > INT32_MAX)
        return;
    begun++;
    client->open++;
    unsigned slot = client->next_stream / 2 % SLOTS;
    client->sent_at[slot] = time;
    client->body[slot] = 0;
    uint32_t number = htonl(client->next_stream);
    memcpy(request + 5, &number, 4);
    client->next_stream += 2;
    put(request, request_size);
}

// Receiving.

static void check_body(struct client *client, unsigned slot, const unsigned char *bytes, unsigned length)
{
    unsigned at = client->body[slot];
    if (at + length > sizeof body)
        die("body");
    if (!is_known) {
        memcpy(body + at, bytes, length);
        body_size = at + length;
    } else if (at + length > body_size || memcmp(body + at, bytes, length) != 0) {
        die("body");
    }
    client->body[slot] = at + length;
}

static void frame(struct client *client, const unsigned char *head, unsigned length)
{
    unsigned kind = head[3], flags = head[4];
    uint32_t stream;
    memcpy(&stream, head + 5, 4);
    stream = ntohl(stream) & 0x7fffffff;
    const unsigned char *payload = head + HEAD;
    unsigned slot = stream / 2 % SLOTS;
    switch (kind) {
    case HEADERS: {
        // After what changes the size of the table.
        const unsigned char *first = payload;
        while (first < payload + length && (*first & 0xe0) == 0x20)
            first++;
        if (flags & END_HEADERS ? *first != OK_INDEXED : true)
            die("status");
        break;
    }
    case DATA:
        check_body(client, slot, payload, length);
        client->received += length;
        break;
    case SETTINGS:
        if ((flags & ACK) == 0)
            put_frame(SETTINGS, ACK, 0, NULL, 0);
        return;
    case PING:
        if ((flags & ACK) == 0)
            put_frame(PING, ACK, 0, payload, length);
        return;
    case RST_STREAM:
    case GOAWAY:
        die("the server ended it");
    default:
        return;
    }
    if (flags & END_STREAM) {
        if (is_known && client->body[slot] != body_size)
            die("length");
        is_known = true;
        uint64_t time = now();
        record(time - client->sent_at[slot]);
        replies++;
        client->open--;
        ask(client, time);
    }
}

static void hear(struct client *client)
{
    unsigned char *from = input + KEPT - client->kept;
    memcpy(from, client->part, client->kept);
    ssize_t got = recv(client->fd, input + KEPT, INPUT, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0)
        die("recv");
    errno = 0;
    unsigned char *end = input + KEPT + got;
    while (end - from >= HEAD) {
        unsigned length = (unsigned)from[0] << 16 | (unsigned)from[1] << 8 | from[2];
        if (end - from < (ptrdiff_t)(HEAD + length))
            break;
        frame(client, from, length);
        from += HEAD + length;
    }
    client->kept = (unsigned)(end - from);
    if (client->kept > KEPT)
        die("frame");
    memcpy(client->part, from, client->kept);
    if (client->received > WINDOW / 2) {
        uint32_t more = htonl(client->received);
        client->received = 0;
        put_frame(WINDOW_UPDATE, 0, 0, &more, sizeof more);
    }
    flush(client);
}

// Beginning.

static void make_request(unsigned long port)
{
    char authority[32];
    int length = snprintf(authority, sizeof authority, "127.0.0.1:%lu", port);
    unsigned char *block = request + HEAD, *end = block;
    *end++ = 0x82; // :method: GET
    *end++ = 0x86; // :scheme: http
    *end++ = 0x84; // :path: /
    *end++ = 0x01; // :authority, not indexed
    *end++ = (unsigned char)length;
    memcpy(end, authority, (size_t)length), end += length;
    *end++ = 0x0f, *end++ = 0x2b; // user-agent, not indexed
    *end++ = 6;
    memcpy(end, "throng", 6), end += 6;
    request[2] = (unsigned char)(end - block);
    request[3] = HEADERS;
    request[4] = END_STREAM | END_HEADERS;
    request_size = (size_t)(end - request);
}

static void make_clients(const struct sockaddr_in *server, int queue)
{
    clients = calloc(count, sizeof *clients);
    for (unsigned place = 0; place < count; place++) {
        const int on = 1;
        struct client *client = &clients[place];
        *client = (struct client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                                  .next_stream = 1,
                                  .sent_at = calloc(SLOTS, sizeof(uint64_t)),
                                  .body = calloc(SLOTS, sizeof(unsigned)),
                                  .part = malloc(KEPT)};
        struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = client};
        if (client->fd < 0 || connect(client->fd, (const struct sockaddr *)server, sizeof *server) < 0 ||
            setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
            die("connect");
        put("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
        // No pushes, and a window that is not the limit.
        const unsigned char settings[] = {0, 2, 0, 0, 0, 0, 0, 4, WINDOW >> 24, 0, 0, 0};
        put_frame(SETTINGS, 0, 0, settings, sizeof settings);
        uint32_t more = htonl(WINDOW - 65535);
        put_frame(WINDOW_UPDATE, 0, 0, &more, sizeof more);
        flush(client);
        if (fcntl(client->fd, F_SETFL, O_NONBLOCK) < 0 ||
            epoll_ctl(queue, EPOLL_CTL_ADD, client->fd, &event) < 0)
            die("epoll");
    }
}

static void wait_for_line(void)
{
    puts("ready");
    fflush(stdout);
    for (int byte = 0; byte != '\n' && byte != EOF;)
        byte = getchar();
}

static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// Until all requests are answered or the time is over; returns the time taken.
static double run(int queue, double seconds)
{
    static struct epoll_event events[EVENTS];
    uint64_t from = now(), until = from + (uint64_t)(seconds * 1e9);
    for (unsigned place = 0; place < count; place++) {
        for (unsigned stream = 0; stream < streams; stream++)
            ask(&clients[place], now());
        flush(&clients[place]);
    }
    while (replies < most_requests && now() < until) {
        int ready = epoll_wait(queue, events, EVENTS, 10);
        if (ready < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < ready; i++)
            hear(events[i].data.ptr);
    }
    return (double)(now() - from) / 1e9;
}

int main(int argc, char **argv)
{
    double seconds = 10;
    bool waits = false;
    for (int option; (option = getopt(argc, argv, "c:m:d:n:g")) != -1;) {
        if (option == 'c')
            count = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'm')
            streams = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'd')
            seconds = strtod(optarg, NULL);
        else if (option == 'n')
            most_requests = strtoull(optarg, NULL, 10), seconds = 600;
        else if (option == 'g')
            waits = true;
    }
    unsigned long port = optind == argc - 1 ? strtoul(argv[optind], NULL, 10) : 0;
    if (port == 0 || port > 65535 || count == 0 || count > MOST_CLIENTS || streams == 0 ||
        streams > MOST_STREAMS || !(seconds > 0)) {
        fprintf(stderr, "usage: %s PORT [-c CLIENTS] [-m STREAMS] [-d SECONDS | -n REQUESTS] [-g]\n",
                argv[0]);
        return 2;
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    struct sockaddr_in server = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)port),
                                 .sin_addr = {htonl(INADDR_LOOPBACK)}};
    make_request(port);
    int queue = epoll_create1(EPOLL_CLOEXEC);
    if (queue < 0)
        die("epoll");
    make_clients(&server, queue);
    if (waits)
        wait_for_line();
    double cpu = cpu_seconds(), took = run(queue, seconds);
    printf("{\"requests\":%lu,\"rate_per_s\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"cpu_s\":%.6f}\n",
           (unsigned long)replies, (double)replies / took, percentile_us(0.5), percentile_us(0.99),
           cpu_seconds() - cpu);
    return 0;
}
