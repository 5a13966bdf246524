// An HTTP server that plants a stall: a loop of one thread that answers each GET at once with a
// short text, except that in each period it stops for a while, as one that collects garbage does.
//
//   stalling PORT [STALL_MS [PERIOD_MS]]      (100 ms in each 1000 ms)

#include "../../peers/c/server.h"

#include <sys/epoll.h>
#include <time.h>

enum { EVENTS = 1024, NANOSECONDS_A_MS = 1000000 };

static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";
static const char request_end[] = {'\r', '\n', '\r', '\n'};
static char buffer[SINGLE_BUFFER];
static unsigned char *matched; // by descriptor: bytes of the request's end that have come
static size_t room;

static long long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void sleep_until(long long time)
{
    struct timespec wake = {.tv_sec = time / 1000000000, .tv_nsec = time % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL) == EINTR)
        ;
}

static void accept_some(int listener, int queue)
{
    for (int count = 0; count < ACCEPTS_A_ROUND; count++) {
        int client = accept_client(listener, SOCK_NONBLOCK);
        if (client < 0)
            return;
        matched = grown(matched, &room, (size_t)client, sizeof *matched);
        matched[client] = 0;
        struct epoll_event event = {.events = EPOLLIN, .data.fd = client};
        if (epoll_ctl(queue, EPOLL_CTL_ADD, client, &event) < 0)
            die("epoll_ctl");
    }
}

// Answers what ends in what is here; a client that does not read its answers is cut off.
static void answer(int fd)
{
    ssize_t got = recv(fd, buffer, sizeof buffer, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    for (ssize_t i = 0; i < got; i++) {
        if (buffer[i] == request_end[matched[fd]])
            matched[fd]++;
        else
            matched[fd] = buffer[i] == '\r';
        if (matched[fd] < sizeof request_end)
            continue;
        matched[fd] = 0;
        if (send(fd, reply, sizeof reply - 1, MSG_NOSIGNAL) != (ssize_t)sizeof reply - 1)
            got = -1;
    }
    if (got <= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    long stall_ms = argc > 2 ? strtol(argv[2], NULL, 10) : 100;
    long period_ms = argc > 3 ? strtol(argv[3], NULL, 10) : 1000;
    if (stall_ms < 0 || period_ms <= stall_ms) {
        fprintf(stderr, "usage: %s PORT [STALL_MS [PERIOD_MS]]\n", argv[0]);
        return 2;
    }
    int listener = listen_on(argc > 2 ? 2 : argc, argv, SOCK_NONBLOCK);
    int queue = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event first = {.events = EPOLLIN, .data.fd = listener};
    if (queue < 0 || epoll_ctl(queue, EPOLL_CTL_ADD, listener, &first) < 0)
        die("epoll");
    announce(listener);
    static struct epoll_event events[EVENTS];
    long long stall_at = now() + period_ms * (long long)NANOSECONDS_A_MS;
    for (;;) {
        long long left = stall_at - now();
        if (left <= 0) {
            sleep_until(stall_at + stall_ms * (long long)NANOSECONDS_A_MS);
            stall_at += period_ms * (long long)NANOSECONDS_A_MS;
            continue;
        }
        int ready = epoll_wait(queue, events, EVENTS, (int)(left / NANOSECONDS_A_MS) + 1);
        if (ready < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd == listener)
                accept_some(listener, queue);
            else
                answer(events[i].data.fd);
        }
    }
}
