// What a load is besides how its clients send and receive: their state, the report of phases, and the result.

#ifndef LOAD_H
#define LOAD_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    SIZE = 1000,          // of a request
    PERIOD = 65521,       // starting places in the pattern; prime, so that strides visit all
    CLIENT_STRIDE = 7919, // between the first requests of neighbouring clients
    REQUEST_STRIDE = 389, // between requests of one client
    MOST_CLIENTS = 28000, // a loopback address has about as many ports to connect from
};

static const double LINE_S = 15, LONGEST_STEADY_S = 600;

enum state { UNBORN, CONNECTING, ASKING, RESTING, OVER };
enum failure { REFUSED, TIMEOUT, NO_PORT, NO_DESCRIPTOR, RESET, CLOSED, WRONG, UNANSWERED, OTHER };
enum { FAILURES = OTHER + 1 };
static const char *const failure_names[FAILURES] = {
    "refused",      "connect-timeout", "no-port",    "no-descriptor", "reset",
    "closed-early", "wrong-reply",     "unanswered", "other",
};

struct client {
    int fd;
    enum state state;
    unsigned start;    // of its request, in the pattern
    unsigned sent;     // of the request, as far as is known; only a send cut short is reported
    unsigned received; // and checked, of the reply
    unsigned retries;
    double began, answered_after; // the latter negative: not yet
    unsigned long replies, counted; // counted: those in the steady part
};

static char pattern[PERIOD + SIZE];
static struct sockaddr_in server = {.sin_family = AF_INET};
static struct client *clients;
static unsigned count, unborn, connected, answered, failed, failed_unanswered;
static unsigned waiting; // for a reply that is not their first
static unsigned long failures[FAILURES], requests;
static bool settled, counting, ending; // all go on asking; replies count; nobody asks any more

static _Noreturn void die(const char *what, int error)
{
    fprintf(stderr, "load-io-uring: %s: %s\n", what, strerror(error));
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static enum failure failure_of(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return REFUSED;
    case ETIMEDOUT:
        return TIMEOUT;
    case EADDRNOTAVAIL:
        return NO_PORT;
    case EMFILE:
    case ENFILE:
        return NO_DESCRIPTOR;
    case ECONNRESET:
    case ECONNABORTED:
    case EPIPE:
        return RESET;
    default:
        return OTHER;
    }
}

// Phases and the result.

static void say(const char *phase)
{
    printf("{\"phase\":\"%s\",\"connected\":%u,\"answered\":%u,\"failed\":%u}\n", phase, connected,
           answered, failed);
    if (fflush(stdout) != 0)
        die("standard output", errno);
}

// The end of input means the same as a line: the parent has gone.
static void await_line(void)
{
    double until = now() + LINE_S;
    char byte = 0;
    for (int left = 4096; left > 0 && byte != '\n'; left--) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        double wait_s = until - now();
        int ready = wait_s > 0 ? poll(&input, 1, (int)(wait_s * 1e3) + 1) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            die("no line came on standard input", ETIMEDOUT);
        if (read(STDIN_FILENO, &byte, 1) <= 0)
            return;
    }
}

static void tell_result(double steady_s)
{
    unsigned long verified = 0, counted = 0, least = 0, most = 0;
    unsigned served = 0;
    double squares = 0, longest_first = 0;
    for (unsigned place = 0; place < count; place++) {
        const struct client *client = &clients[place];
        verified += client->replies;
        failures[UNANSWERED] += client->state == ASKING && client->answered_after >= 0;
        if (client->answered_after < 0)
            continue;
        counted += client->counted;
        squares += (double)client->counted * (double)client->counted;
        least = served == 0 || client->counted < least ? client->counted : least;
        most = client->counted > most ? client->counted : most;
        if (client->answered_after > longest_first)
            longest_first = client->answered_after;
        served++;
    }
    printf("{\"clients\":%u,\"connected\":%u,\"served\":%u,\"requests\":%lu,\"verified\":%lu,",
           count, connected, served, requests, verified);
    printf("\"window\":{\"duration_s\":%.6f,\"replies\":%lu,\"replies_per_s\":%.1f},", steady_s,
           counted, steady_s > 0 ? (double)counted / steady_s : 0);
    printf("\"first_reply\":{\"max_us\":%.1f},\"fairness\":", longest_first * 1e6);
    if (counted > 0)
        printf("{\"min\":%lu,\"max\":%lu,\"jain\":%.6f},", least, most,
               (double)counted * (double)counted / (served * squares));
    else
        printf("null,");
    printf("\"errors\":{");
    const char *between = "";
    for (int failure = 0; failure < FAILURES; failure++) {
        if (failures[failure] > 0) {
            printf("%s\"%s\":%lu", between, failure_names[failure], failures[failure]);
            between = ",";
        }
    }
    printf("}}\n");
    if (fflush(stdout) != 0)
        die("standard output", errno);
}

// Beginning.

static void make_clients(void)
{
    // Marsaglia's xorshift generator: enough to make neighbouring slices differ.
    uint64_t noise = 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < sizeof pattern; i++) {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        pattern[i] = (char)(noise >> 32);
    }
    clients = calloc(count, sizeof *clients);
    if (clients == NULL)
        die("memory for clients", ENOMEM);
    for (unsigned place = 0; place < count; place++)
        clients[place] = (struct client){
            .fd = -1, .answered_after = -1, .start = place * CLIENT_STRIDE % PERIOD};
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static _Noreturn void usage(const char *program)
{
    fprintf(stderr,
            "usage: %s PORT [-c CLIENTS] [-d TIME]\n"
            "  PORT on 127.0.0.1; up to %d CLIENTS [50]; TIME of the steady part, as 1.5s [10s]\n",
            program, MOST_CLIENTS);
    exit(2);
}

// Parses the command line; returns the length of the measurement.
static double begin_load(int argc, char **argv)
{
    unsigned long wanted = 50, port;
    double steady_s = 10;
    char *rest = "";
    for (int option; (option = getopt(argc, argv, "c:d:")) != -1;) {
        if (option == 'c') {
            wanted = strtoul(optarg, &rest, 10);
        } else if (option == 'd') {
            steady_s = strtod(optarg, &rest);
            if (strcmp(rest, "ms") == 0)
                steady_s /= 1e3;
            if (rest > optarg && (strcmp(rest, "ms") == 0 || strcmp(rest, "s") == 0))
                rest = "";
        }
        if (option == '?' || *rest != '\0')
            usage(argv[0]);
    }
    if (optind != argc - 1)
        usage(argv[0]);
    port = strtoul(argv[optind], &rest, 10);
    if (*rest != '\0' || port == 0 || port > 65535 || wanted == 0 || wanted > MOST_CLIENTS ||
        !(steady_s > 0 && steady_s <= LONGEST_STEADY_S))
        usage(argv[0]);
    count = (unsigned)wanted;
    server.sin_port = htons((uint16_t)port);
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    make_clients();
    return steady_s;
}

#endif
