// What the C servers share: listening, accepting, and one turn of a connection.

#ifndef SERVER_H
#define SERVER_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 4096,
    LOOP_BUFFER = 256 * 1024,  // shared by all connections of a loop
    SINGLE_BUFFER = 64 * 1024, // of a thread or process that serves one
    ACCEPTS_A_ROUND = 1024,
    READS_A_TURN = 4,
};

static inline _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

// Listens on the port given on the command line; 0 lets the kernel choose. `flags` as socket(2).
static inline int listen_on(int argc, char **argv, int flags)
{
    char *end = NULL;
    unsigned long port = argc == 2 ? strtoul(argv[1], &end, 10) : 0;
    if (argc != 2 || *argv[1] == '\0' || *end != '\0' || port > 65535) {
        fprintf(stderr, "usage: %s PORT\n", argv[0]);
        exit(2);
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (listener < 0)
        die("socket");
    const int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // accepted sockets inherit it
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr = {htonl(INADDR_LOOPBACK)},
    };
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0)
        die("bind");
    if (listen(listener, BACKLOG) < 0)
        die("listen");
    return listener;
}

// Prints the address; from then on clients may connect.
static inline void announce(int listener)
{
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    if (getsockname(listener, (struct sockaddr *)&address, &length) < 0)
        die("getsockname");
    printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
}

// The next client, or -1 when none waits. `flags` as accept4(2).
static inline int accept_client(int listener, int flags)
{
    for (int tries = 0; tries < 64; tries++) {
        int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | flags);
        if (client >= 0)
            return client;
        if (errno == EAGAIN)
            return -1;
        if (errno != EINTR && errno != ECONNABORTED)
            die("accept");
    }
    return -1;
}

// Makes room for place `index` in an array of `*room` zeroed elements of `size` bytes.
static inline void *grown(void *array, size_t *room, size_t index, size_t size)
{
    if (index < *room)
        return array;
    size_t more = *room < 1024 ? 1024 : 2 * *room;
    while (more <= index)
        more *= 2;
    array = realloc(array, more * size);
    if (array == NULL)
        die("realloc");
    memset((char *)array + *room * size, 0, (more - *room) * size);
    *room = more;
    return array;
}

// Spins as often per turn as SPIN_PER_TURN in the environment: a slowdown of known size.
static inline void spin(void)
{
    static long turns = -1;
    if (turns < 0) {
        const char *text = getenv("SPIN_PER_TURN");
        turns = text ? strtol(text, NULL, 10) : 0;
    }
    for (volatile long i = 0; i < turns; i++)
        ;
}

// What the peer of a connection has not taken yet.
struct rest {
    char *bytes;
    size_t length;
    size_t sent;
};

enum wants { WANTS_READ, WANTS_MORE_READ, WANTS_WRITE, WANTS_CLOSE };

static inline void forget(struct rest *rest)
{
    free(rest->bytes);
    *rest = (struct rest){0};
}

// Sends the rest: WANTS_READ when all of it left.
static inline enum wants send_rest(int fd, struct rest *rest)
{
    while (rest->sent < rest->length) {
        ssize_t sent = send(fd, rest->bytes + rest->sent, rest->length - rest->sent, MSG_NOSIGNAL);
        if (sent >= 0)
            rest->sent += (size_t)sent;
        else if (errno == EAGAIN)
            return WANTS_WRITE;
        else if (errno != EINTR)
            return WANTS_CLOSE;
    }
    forget(rest);
    return WANTS_READ;
}

// Sends bytes; what the peer does not take at once becomes the rest.
static inline enum wants send_or_keep(int fd, struct rest *rest, const char *bytes, size_t length)
{
    ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
    if (sent == (ssize_t)length)
        return WANTS_READ;
    if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR)
            return WANTS_CLOSE;
        sent = 0;
    }
    rest->length = length - (size_t)sent;
    rest->bytes = malloc(rest->length);
    if (rest->bytes == NULL)
        die("malloc");
    memcpy(rest->bytes, bytes + sent, rest->length);
    return send_rest(fd, rest);
}

// Reads and answers without waiting. A read shorter than the buffer has emptied the socket, so it
// is not repeated unless the peer is known to have closed its side (`to_the_end`).
static inline enum wants turn(int fd, struct rest *rest, char *buffer, bool to_the_end)
{
    if (rest->bytes != NULL) {
        enum wants wants = send_rest(fd, rest);
        if (wants != WANTS_READ)
            return wants;
    }
    for (int reads = 0; reads < READS_A_TURN; reads++) {
        ssize_t got = recv(fd, buffer, LOOP_BUFFER, 0);
        if (got == 0)
            return WANTS_CLOSE;
        if (got < 0) {
            if (errno == EAGAIN)
                return WANTS_READ;
            if (errno == EINTR)
                continue;
            return WANTS_CLOSE;
        }
        enum wants wants = send_or_keep(fd, rest, buffer, (size_t)got);
        if (wants != WANTS_READ)
            return wants;
        if (got < LOOP_BUFFER && !to_the_end)
            return WANTS_READ;
    }
    return WANTS_MORE_READ;
}

// Serves a blocking socket until its peer has closed its side or failed.
static inline void serve(int fd, char *buffer, size_t size)
{
    for (;;) {
        ssize_t got = recv(fd, buffer, size, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return;
        for (ssize_t sent = 0; sent < got;) {
            ssize_t count = send(fd, buffer + sent, (size_t)(got - sent), MSG_NOSIGNAL);
            if (count >= 0)
                sent += count;
            else if (errno != EINTR)
                return;
        }
    }
}

#endif
