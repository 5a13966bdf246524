/* An echo server for one client at a time: the start of every stage of the course.

   cc -O2 -Wall -o student server.c && ./student 7000

   Copy it, and change `serve` for the model of the stage. Nothing else needs to change. */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sends all bytes. Returns -1 if the client has gone. */
static int send_all(int client, const char *bytes, ssize_t length)
{
	while (length > 0) {
		ssize_t sent = send(client, bytes, length, 0);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -1;
		bytes += sent;
		length -= sent;
	}
	return 0;
}

/* Sends back what a client sends, until it closes. */
static void converse(int client)
{
	char buffer[16384];
	for (;;) {
		ssize_t length = recv(client, buffer, sizeof buffer, 0);
		if (length < 0 && errno == EINTR)
			continue;
		if (length <= 0 || send_all(client, buffer, length) < 0)
			break;
	}
	close(client);
}

/* Serves all clients. As it is, each waits until the one before it has left. */
static void serve(int listener)
{
	for (;;) {
		int client = accept(listener, NULL, NULL);
		if (client >= 0)
			converse(client);
	}
}

int main(int count, char **arguments)
{
	if (count != 2) {
		fprintf(stderr, "usage: %s PORT\n", arguments[0]);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int on = 1;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(atoi(arguments[1])),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1024) < 0) {
		perror("cannot listen");
		return 1;
	}
	serve(listener);
}
