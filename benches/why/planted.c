// An echo server with one planted cost: planted PORT KIND. One epoll loop (two threads for `lock`), 64 bytes a request.
// Build: cc -O2 -g -pthread -o planted planted.c
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *kind;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t sink;
static char from[1 << 16], to[1 << 16];

__attribute__((noinline)) void planted_spin(void) {
    uint64_t x = sink;
    for (int i = 0; i < 1500; i++) x = x * 6364136223846793005ull + 1;
    sink = x;
}

__attribute__((noinline)) void planted_copy(void) {
    memcpy(to, from, sizeof from);
    sink += to[sink % sizeof to];
}

__attribute__((noinline)) void planted_call(void) {
    for (int i = 0; i < 4; i++) sink += syscall(SYS_getppid);
}

__attribute__((noinline)) void planted_sleep(void) {
    struct timespec time = {0, 20000};
    nanosleep(&time, 0);
}

__attribute__((noinline)) void planted_allocation(void) {
    char *kept[300];
    for (int i = 0; i < 300; i++) {
        kept[i] = malloc(16 + 24 * (i % 20));
        kept[i][0] = i;
    }
    for (int i = 0; i < 300; i++) {
        sink += kept[i][0];
        free(kept[i]);
    }
}

static void planted_lock(void) {
    // Held while this thread sleeps, so that others have to wait.
    pthread_mutex_lock(&lock);
    planted_sleep();
    pthread_mutex_unlock(&lock);
}

static void plant(void) {
    if (!strcmp(kind, "spin")) planted_spin();
    if (!strcmp(kind, "copy")) planted_copy();
    if (!strcmp(kind, "call")) planted_call();
    if (!strcmp(kind, "sleep")) planted_sleep();
    if (!strcmp(kind, "allocation")) planted_allocation();
    if (!strcmp(kind, "lock")) planted_lock();
    // The same work as `lock`, without one.
    if (!strcmp(kind, "nolock")) planted_sleep();
}

static void *loop(void *argument) {
    int listener = *(int *)argument, set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.fd = listener};
    epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        struct epoll_event ready[64];
        int count = epoll_wait(set, ready, 64, -1);
        for (int i = 0; i < count; i++) {
            int fd = ready[i].data.fd;
            if (fd == listener) {
                int connection = accept4(listener, 0, 0, SOCK_NONBLOCK);
                if (connection < 0) continue;
                int one = 1;
                setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                struct epoll_event added = {.events = EPOLLIN, .data.fd = connection};
                epoll_ctl(set, EPOLL_CTL_ADD, connection, &added);
                continue;
            }
            char bytes[4096];
            ssize_t got = recv(fd, bytes, sizeof bytes, 0);
            if (got <= 0) {
                if (got == 0 || errno != EAGAIN) close(fd);
                continue;
            }
            plant();
            send(fd, bytes, got, MSG_NOSIGNAL);
        }
    }
    return 0;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    kind = arguments[2];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(arguments[1])),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 512)) return 1;
    int threads = strstr(kind, "lock") ? 4 : 1;
    pthread_t thread;
    for (int i = 1; i < threads; i++) pthread_create(&thread, 0, loop, &listener);
    loop(&listener);
}
