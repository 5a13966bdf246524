// A process for every client, with blocking calls.

#include "server.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static char buffer[SINGLE_BUFFER];
static pid_t parent;

static void reap(int signal)
{
    (void)signal;
    int saved = errno;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    errno = saved;
}

// The children are in the parent's process group; they end before it does.
static void end(int signal)
{
    kill(0, signal);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR) {
    }
    _exit(0);
}

static _Noreturn void serve_client(int client)
{
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent)
        serve(client, buffer, sizeof buffer);
    _exit(0);
}

int main(int argc, char **argv)
{
    int listener = listen_on(argc, argv, 0);
    parent = getpid();
    if (getpgrp() != parent && setpgid(0, 0) < 0)
        die("setpgid");
    struct sigaction on_child = {.sa_handler = reap, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    struct sigaction on_end = {.sa_handler = end};
    sigaddset(&on_child.sa_mask, SIGTERM);
    sigaddset(&on_end.sa_mask, SIGCHLD);
    if (sigaction(SIGCHLD, &on_child, NULL) < 0 || sigaction(SIGTERM, &on_end, NULL) < 0)
        die("sigaction");
    announce(listener);
    for (;;) {
        int client = accept_client(listener, 0);
        if (client < 0)
            continue;
        pid_t child = fork();
        if (child == 0) {
            close(listener);
            serve_client(client);
        }
        if (child < 0)
            perror("fork");
        close(client);
    }
}
