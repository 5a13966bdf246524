// A thread for every client, with blocking calls.

#include "server.h"

#include <pthread.h>
#include <stdint.h>

enum { STACK = 128 * 1024 };

static void *serve_client(void *argument)
{
    int client = (int)(intptr_t)argument;
    char buffer[SINGLE_BUFFER];
    serve(client, buffer, sizeof buffer);
    close(client);
    return NULL;
}

int main(int argc, char **argv)
{
    int listener = listen_on(argc, argv, 0);
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, STACK) != 0 ||
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) != 0)
        die("pthread_attr");
    announce(listener);
    for (;;) {
        int client = accept_client(listener, 0);
        pthread_t thread;
        if (client >= 0 &&
            pthread_create(&thread, &attributes, serve_client, (void *)(intptr_t)client) != 0) {
            fprintf(stderr, "no thread for a client\n");
            close(client);
        }
    }
}
