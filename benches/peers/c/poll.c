// One thread, poll(): all sockets are in one array.

#include "server.h"

#include <poll.h>

static struct pollfd *entries; // the first is the listening socket's
static struct rest *rests;     // by place in `entries`
static size_t entries_room, rests_room, count;
static char buffer[LOOP_BUFFER];

static void add(int fd)
{
    entries = grown(entries, &entries_room, count, sizeof *entries);
    rests = grown(rests, &rests_room, count, sizeof *rests);
    entries[count] = (struct pollfd){.fd = fd, .events = POLLIN};
    rests[count] = (struct rest){0};
    count++;
}

// Whether the connection stays; when not, the last one has taken its place.
static bool take_turn(size_t place)
{
    enum wants wants = turn(entries[place].fd, &rests[place], buffer, false);
    if (wants == WANTS_CLOSE) {
        forget(&rests[place]);
        close(entries[place].fd);
        count--;
        entries[place] = entries[count];
        rests[place] = rests[count];
        return false;
    }
    entries[place].events = wants == WANTS_WRITE ? POLLOUT : POLLIN;
    return true;
}

int main(int argc, char **argv)
{
    int listener = listen_on(argc, argv, SOCK_NONBLOCK);
    add(listener);
    announce(listener);
    for (;;) {
        int ready = poll(entries, count, -1);
        if (ready < 0) {
            if (errno != EINTR)
                die("poll");
            continue;
        }
        bool clients_wait = entries[0].revents != 0;
        ready -= clients_wait;
        for (size_t place = 1; ready > 0 && place < count;) {
            bool stays = true;
            if (entries[place].revents != 0) {
                ready--;
                stays = take_turn(place);
            }
            place += stays;
        }
        for (int i = 0; clients_wait && i < ACCEPTS_A_ROUND; i++) {
            int client = accept_client(listener, SOCK_NONBLOCK);
            clients_wait = client >= 0;
            if (clients_wait)
                add(client);
        }
    }
}
