// One thread, epoll, edge-triggered: each socket is registered once, for everything.

#include "server.h"

#include <sys/epoll.h>

enum { EVENTS = 1024 };

static int queue;
static struct rest *rests; // by descriptor
static size_t room;
static char buffer[LOOP_BUFFER];

// Connections whose turn ended before their data did: no edge will report these.
static int *unfinished;
static size_t unfinished_room, unfinished_count;

static void take_turn(int fd, bool to_the_end)
{
    switch (turn(fd, &rests[fd], buffer, to_the_end)) {
    case WANTS_MORE_READ:
        unfinished = grown(unfinished, &unfinished_room, unfinished_count, sizeof *unfinished);
        unfinished[unfinished_count++] = fd;
        break;
    case WANTS_CLOSE:
        forget(&rests[fd]);
        close(fd);
        break;
    case WANTS_READ:
    case WANTS_WRITE:
        break;
    }
}

static void accept_some(int listener)
{
    for (int count = 0; count < ACCEPTS_A_ROUND; count++) {
        int client = accept_client(listener, SOCK_NONBLOCK);
        if (client < 0)
            return;
        rests = grown(rests, &room, (size_t)client, sizeof *rests);
        struct epoll_event event = {
            .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
            .data.fd = client,
        };
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
        int ready = epoll_wait(queue, events, EVENTS, unfinished_count > 0 ? 0 : -1);
        if (ready < 0 && errno != EINTR)
            die("epoll_wait");
        size_t to_finish = unfinished_count;
        bool clients_wait = false;
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                clients_wait = true;
            else
                take_turn(fd, events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR));
        }
        // One of these may have been closed above. Its descriptor is not reused yet, since accepting comes last, so its
        // turn fails with EBADF, which is harmless.
        for (size_t i = 0; i < to_finish; i++)
            take_turn(unfinished[i], true);
        if (to_finish > 0) {
            unfinished_count -= to_finish;
            memmove(unfinished, unfinished + to_finish, unfinished_count * sizeof *unfinished);
        }
        if (clients_wait)
            accept_some(listener);
    }
}
