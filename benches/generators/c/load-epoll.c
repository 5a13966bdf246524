// Clients of an echo or HTTP server, on epoll, one thread, a closed loop: what a load generator has
// to do and nothing else, so a bound for those that do more. Each client has one request
// outstanding, each reply is checked, each response time is recorded.
//
//   load-epoll PORT [-p echo|http] [-c CLIENTS] [-d SECONDS | -n REQUESTS] [-b ADDRESS] [-g]
//
// -b: the local address of the clients. -g: print "ready" once all are connected, and wait for a line on standard
// input. The CPU time in the result does not include connecting.
//
// System calls a request: recv, send, and a share of epoll_wait. The clock is read once a request:
// the next one leaves in the same breath, so a reply's time is also that of sending it.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
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
    SIZE = 1000,          // of an echo
    PERIOD = 65521,       // starting places in the pattern; prime, so that strides visit all
    CLIENT_STRIDE = 7919, // between the first requests of neighbouring clients
    REQUEST_STRIDE = 389, // between requests of one client
    INPUT = 256 * 1024,
    STATUS = 12, // bytes of "HTTP/1.1 200"
    MOST_CLIENTS = 28000,
    EVENTS = 1024,
};

struct client {
    int fd;
    unsigned start; // of its request, in the pattern
    unsigned sent, received;
    uint64_t sent_at;
};

static struct client *clients;
static unsigned count = 50;
static struct in_addr source;
static bool http, waits;
static char pattern[PERIOD + SIZE], input[INPUT];
static const char *request = pattern; // of HTTP; an echo begins at its client's place
static size_t request_size = SIZE;
static char *expected; // an HTTP reply
static size_t reply_size = SIZE, body_at;
static uint64_t begun, most_requests = UINT64_MAX;

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "load-epoll: %s: %s\n", what, errno != 0 ? strerror(errno) : "wrong");
    exit(1);
}

// Sends what has not left of the request.
static void send_rest(struct client *client)
{
    const char *from = http ? request : pattern + client->start;
    ssize_t sent =
        send(client->fd, from + client->sent, request_size - client->sent, MSG_NOSIGNAL);
    if (sent >= 0)
        client->sent += (unsigned)sent;
    else if (errno != EAGAIN && errno != EINTR)
        die("send");
}

static void ask(struct client *client, uint64_t time)
{
    if (begun == most_requests)
        return;
    begun++;
    client->sent_at = time;
    client->sent = client->received = 0;
    client->start += REQUEST_STRIDE;
    if (client->start >= PERIOD)
        client->start -= PERIOD;
    send_rest(client);
}

// Every byte of an echo; the status and the body of an HTTP reply, with the length of the first.
static bool is_right(const struct client *client, const char *bytes, size_t length)
{
    if (client->received + length > reply_size)
        return false;
    if (!http)
        return memcmp(bytes, pattern + client->start + client->received, length) == 0;
    if (client->received > 0 || length < reply_size)
        return true; // in pieces: its length alone is checked
    return memcmp(bytes, expected, STATUS) == 0 &&
           memcmp(bytes + body_at, expected + body_at, reply_size - body_at) == 0;
}

static void hear(struct client *client)
{
    ssize_t got = recv(client->fd, input, INPUT, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0)
        die("recv");
    errno = 0;
    if (!is_right(client, input, (size_t)got))
        die("reply");
    client->received += (unsigned)got;
    if (client->received == reply_size) {
        uint64_t time = now();
        record(time - client->sent_at);
        replies++;
        ask(client, time);
    }
}

// Beginning.

// The first reply shows the length of all.
static void learn_reply(const struct sockaddr_in *server)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)server, sizeof *server) < 0 ||
        send(fd, request, request_size, MSG_NOSIGNAL) != (ssize_t)request_size)
        die("connect");
    size_t length = 0;
    for (char *body = NULL; body == NULL || length < reply_size;) {
        ssize_t got = recv(fd, input + length, INPUT - 1 - length, 0);
        if (got <= 0)
            die("first reply");
        length += (size_t)got;
        input[length] = '\0';
        if (body == NULL && (body = strstr(input, "\r\n\r\n")) != NULL) {
            char *field = strcasestr(input, "\r\ncontent-length:");
            if (strncmp(input, "HTTP/1.1 200", STATUS) != 0 || field == NULL || field > body)
                die("first reply");
            body_at = (size_t)(body + 4 - input);
            reply_size = body_at + strtoul(field + strlen("\r\ncontent-length:"), NULL, 10);
        }
    }
    expected = strndup(input, length);
    close(fd);
}

static void make_clients(const struct sockaddr_in *server, int queue)
{
    clients = calloc(count, sizeof *clients);
    if (clients == NULL)
        die("memory");
    for (unsigned place = 0; place < count; place++) {
        const int on = 1;
        const struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr = source};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (source.s_addr != 0 &&
            (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) < 0 ||
             bind(fd, (const struct sockaddr *)&local, sizeof local) < 0))
            die("bind");
        clients[place] =
            (struct client){.fd = fd, .start = (unsigned)((uint64_t)place * CLIENT_STRIDE % PERIOD)};
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                    .data.ptr = &clients[place]};
        if (fd < 0 || connect(fd, (const struct sockaddr *)server, sizeof *server) < 0 ||
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
            fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || epoll_ctl(queue, EPOLL_CTL_ADD, fd, &event) < 0)
            die("connect");
    }
}

static void make_pattern(void)
{
    // Marsaglia's xorshift generator: enough to make neighbouring slices differ.
    uint64_t noise = 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < sizeof pattern; i++) {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        pattern[i] = (char)(noise >> 32);
    }
}

static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void wait_for_line(void)
{
    puts("ready");
    fflush(stdout);
    for (int byte = 0; byte != '\n' && byte != EOF;)
        byte = getchar();
}

// Until all requests are answered or the time is over; returns the time taken.
static double run(int queue, double seconds)
{
    static struct epoll_event events[EVENTS];
    uint64_t from = now(), until = from + (uint64_t)(seconds * 1e9);
    for (unsigned place = 0; place < count; place++)
        ask(&clients[place], now());
    while (replies < most_requests && now() < until) {
        int ready = epoll_wait(queue, events, EVENTS, 10);
        if (ready < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < ready; i++) {
            struct client *client = events[i].data.ptr;
            if (client->sent < request_size)
                send_rest(client);
            hear(client);
        }
    }
    return (double)(now() - from) / 1e9;
}

int main(int argc, char **argv)
{
    double seconds = 10;
    for (int option; (option = getopt(argc, argv, "p:c:d:n:b:g")) != -1;) {
        if (option == 'p')
            http = strcmp(optarg, "http") == 0;
        else if (option == 'c')
            count = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'd')
            seconds = strtod(optarg, NULL);
        else if (option == 'n')
            most_requests = strtoull(optarg, NULL, 10), seconds = 600;
        else if (option == 'b' && inet_pton(AF_INET, optarg, &source) != 1)
            die("-b");
        else if (option == 'g')
            waits = true;
    }
    unsigned long port = optind == argc - 1 ? strtoul(argv[optind], NULL, 10) : 0;
    if (port == 0 || port > 65535 || count == 0 || count > MOST_CLIENTS || !(seconds > 0)) {
        fprintf(stderr,
                "usage: %s PORT [-p echo|http] [-c CLIENTS] [-d SECONDS | -n REQUESTS] "
                "[-b ADDRESS] [-g]\n",
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
    make_pattern();
    if (http) {
        static char text[128];
        request_size = (size_t)snprintf(text, sizeof text,
                                        "GET / HTTP/1.1\r\nHost: 127.0.0.1:%lu\r\n\r\n", port);
        request = text;
        learn_reply(&server);
    }
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
