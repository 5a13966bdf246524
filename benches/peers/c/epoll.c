// One thread, epoll, level-triggered: a socket is waited for either to read or to write.

#include "server.h"

#include <sys/epoll.h>

enum { EVENTS = 1024 };

static int queue;
static struct rest *rests; // by descriptor
static size_t room;
static char buffer[LOOP_BUFFER];

static void take_turn(int fd)
{
    spin();
    bool was_writing = rests[fd].bytes != NULL;
    enum wants wants = turn(fd, &rests[fd], buffer, false);
    if (wants == WANTS_CLOSE) {
        forget(&rests[fd]);
        close(fd);
    } else if ((wants == WANTS_WRITE) != was_writing) {
        struct epoll_event event = {
            .events = wants == WANTS_WRITE ? EPOLLOUT : EPOLLIN,
            .data.fd = fd,
        };
        if (epoll_ctl(queue, EPOLL_CTL_MOD, fd, &event) < 0)
            die("epoll_ctl");
    }
}

static void accept_some(int listener)
{
    for (int count = 0; count < ACCEPTS_A_ROUND; count++) {
        int client = accept_client(listener, SOCK_NONBLOCK);
        if (client < 0)
            return;
        rests = grown(rests, &room, (size_t)client, sizeof *rests);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = client};
        if (epoll_ctl(queue, EPOLL_CTL_ADD, client, &event) < 0)
            die("epoll_ctl");
    }
}

int main(int argc, char **argv)
{
    int listener = listen_on(argc, argv, SOCK_NONBLOCK);
    queue = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event first = {.events = EPOLLIN, .data.fd = listener};
    if (queue < 0 || epoll_ctl(queue, EPOLL_CTL_ADD, listener, &first) < 0)
        die("epoll");
    announce(listener);
    static struct epoll_event events[EVENTS];
    for (;;) {
        int ready = epoll_wait(queue, events, EVENTS, -1);
        if (ready < 0 && errno != EINTR)
            die("epoll_wait");
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd == listener)
                accept_some(listener);
            else
                take_turn(events[i].data.fd);
        }
    }
}
