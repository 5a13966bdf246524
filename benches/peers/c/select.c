// One thread, select(): two sets of descriptors below FD_SETSIZE; clients with a higher one are rejected.

#include "server.h"

#include <sys/select.h>

static struct rest rests[FD_SETSIZE];
static fd_set reading, writing;
static char buffer[LOOP_BUFFER];

static void take_turn(int fd)
{
    switch (turn(fd, &rests[fd], buffer, false)) {
    case WANTS_READ:
    case WANTS_MORE_READ:
        FD_SET(fd, &reading);
        FD_CLR(fd, &writing);
        break;
    case WANTS_WRITE:
        FD_SET(fd, &writing);
        FD_CLR(fd, &reading);
        break;
    case WANTS_CLOSE:
        FD_CLR(fd, &reading);
        FD_CLR(fd, &writing);
        forget(&rests[fd]);
        close(fd);
        break;
    }
}

int main(int argc, char **argv)
{
    int listener = listen_on(argc, argv, SOCK_NONBLOCK);
    int highest = listener;
    FD_SET(listener, &reading);
    announce(listener);
    for (;;) {
        fd_set readable = reading, writable = writing;
        int ready = select(highest + 1, &readable, &writable, NULL, NULL);
        if (ready < 0) {
            if (errno != EINTR)
                die("select");
            continue;
        }
        bool clients_wait = FD_ISSET(listener, &readable);
        ready -= clients_wait;
        for (int fd = listener + 1; ready > 0 && fd <= highest; fd++) {
            if (FD_ISSET(fd, &readable) || FD_ISSET(fd, &writable)) {
                ready--;
                take_turn(fd);
            }
        }
        for (int i = 0; clients_wait && i < ACCEPTS_A_ROUND; i++) {
            int client = accept_client(listener, SOCK_NONBLOCK);
            if (client < 0)
                break;
            if (client >= FD_SETSIZE) {
                close(client);
                continue;
            }
            FD_SET(client, &reading);
            highest = client > highest ? client : highest;
        }
    }
}
