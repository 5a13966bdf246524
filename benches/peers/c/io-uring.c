// One thread, io_uring: accepting and receiving are submitted once and complete many times; received data is in a
// buffer of a shared ring and is sent from there; all operations of a round are submitted by the call that waits.

#include "server.h"

#include <liburing.h>
#include <sys/mman.h>

enum {
    SUBMISSIONS = 4096,
    COMPLETIONS = 32768,
    BUFFERS = 1024, // a power of two
    BUFFER = 16 * 1024,
    GROUP = 0,
    MOST_QUEUED = 16, // received and not sent yet, of one connection; then it is not read from
};

enum operation { ACCEPT, RECEIVE, SEND, CANCEL };

struct connection {
    int first, last; // received buffers, in order; the first is being sent. NONE: there is none
    unsigned queued;
    unsigned sent; // bytes of the first
    bool receiving, cancelling, starved;
    bool ended; // nothing more comes from the peer
};

enum { NONE = -1 };

static struct io_uring ring;
static struct io_uring_buf_ring *pool;
static char *memory;
static int following[BUFFERS]; // the next buffer of the same connection
static unsigned lengths[BUFFERS];
static int available; // buffers that the kernel may fill
static int returned;  // of these, not yet shown to the kernel
static struct connection *connections; // by descriptor
static size_t room;
static int *starved; // descriptors of those for whom there was no buffer
static size_t starved_room, starved_count;

static struct io_uring_sqe *next_entry(void)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
    if (entry == NULL) {
        io_uring_submit(&ring);
        entry = io_uring_get_sqe(&ring);
    }
    if (entry == NULL)
        die("io_uring_get_sqe");
    return entry;
}

static uint64_t label(enum operation operation, int fd)
{
    return (uint64_t)fd << 2 | operation;
}

static void ask_accept(int listener)
{
    struct io_uring_sqe *entry = next_entry();
    io_uring_prep_multishot_accept(entry, listener, NULL, NULL, SOCK_CLOEXEC);
    io_uring_sqe_set_data64(entry, label(ACCEPT, listener));
}

static void ask_receive(int fd)
{
    struct io_uring_sqe *entry = next_entry();
    io_uring_prep_recv_multishot(entry, fd, NULL, 0, 0);
    io_uring_sqe_set_flags(entry, IOSQE_BUFFER_SELECT);
    entry->buf_group = GROUP;
    io_uring_sqe_set_data64(entry, label(RECEIVE, fd));
    connections[fd].receiving = true;
}

static void ask_not_to_receive(int fd)
{
    struct io_uring_sqe *entry = next_entry();
    io_uring_prep_cancel64(entry, label(RECEIVE, fd), 0);
    io_uring_sqe_set_data64(entry, label(CANCEL, fd));
    connections[fd].cancelling = true;
}

static void ask_send(int fd)
{
    struct connection *connection = &connections[fd];
    int buffer = connection->first;
    struct io_uring_sqe *entry = next_entry();
    io_uring_prep_send(entry, fd, memory + (size_t)buffer * BUFFER + connection->sent,
                       lengths[buffer] - connection->sent, MSG_NOSIGNAL | MSG_WAITALL);
    io_uring_sqe_set_data64(entry, label(SEND, fd));
}

static void give_back(int buffer)
{
    io_uring_buf_ring_add(pool, memory + (size_t)buffer * BUFFER, BUFFER, (unsigned short)buffer,
                          io_uring_buf_ring_mask(BUFFERS), returned++);
    available++;
}

// Returns the first buffer.
static void drop_first(struct connection *connection)
{
    int buffer = connection->first;
    connection->first = following[buffer];
    connection->queued--;
    connection->sent = 0;
    give_back(buffer);
}

// Submits what a connection needs, or closes it.
static void go_on(int fd)
{
    struct connection *connection = &connections[fd];
    bool idle = connection->first == NONE;
    if (connection->receiving) {
        if (connection->queued >= MOST_QUEUED && !connection->cancelling)
            ask_not_to_receive(fd);
    } else if (connection->ended) {
        if (idle && !connection->starved)
            close(fd);
    } else if (idle && !connection->starved) {
        ask_receive(fd);
    }
}

static void accepted(int listener, const struct io_uring_cqe *completion)
{
    int fd = completion->res;
    if (fd >= 0) {
        connections = grown(connections, &room, (size_t)fd, sizeof *connections);
        connections[fd] = (struct connection){.first = NONE, .last = NONE};
        ask_receive(fd);
    } else if (fd != -ECONNABORTED && fd != -EINTR) {
        errno = -fd;
        die("accept");
    }
    if (!(completion->flags & IORING_CQE_F_MORE))
        ask_accept(listener);
}

static void received(int fd, const struct io_uring_cqe *completion)
{
    struct connection *connection = &connections[fd];
    int result = completion->res;
    if (!(completion->flags & IORING_CQE_F_MORE))
        connection->receiving = connection->cancelling = false;
    if (completion->flags & IORING_CQE_F_BUFFER) {
        int buffer = (int)(completion->flags >> IORING_CQE_BUFFER_SHIFT);
        available--;
        if (result <= 0 || connection->ended) {
            give_back(buffer);
        } else {
            lengths[buffer] = (unsigned)result;
            following[buffer] = NONE;
            connection->queued++;
            if (connection->first == NONE) {
                connection->first = buffer;
                ask_send(fd);
            } else {
                following[connection->last] = buffer;
            }
            connection->last = buffer;
        }
    }
    if (result == -ENOBUFS) {
        starved = grown(starved, &starved_room, starved_count, sizeof *starved);
        starved[starved_count++] = fd;
        connection->starved = true;
    } else if (result <= 0 && result != -ECANCELED && result != -EINTR) {
        connection->ended = true;
    }
    go_on(fd);
}

static void sent(int fd, int result)
{
    struct connection *connection = &connections[fd];
    if (result > 0) {
        connection->sent += (unsigned)result;
        if (connection->sent == lengths[connection->first])
            drop_first(connection);
    } else if (result != -EINTR && result != -EAGAIN) {
        while (connection->first != NONE)
            drop_first(connection);
        connection->ended = true;
        shutdown(fd, SHUT_RDWR); // ends the receiving too
    }
    if (connection->first != NONE)
        ask_send(fd);
    go_on(fd);
}

// Once buffers came back, those who found none receive again.
static void feed_starved(void)
{
    io_uring_buf_ring_advance(pool, returned);
    returned = 0;
    for (int left = available; left > 0 && starved_count > 0; left--) {
        int fd = starved[--starved_count];
        connections[fd].starved = false;
        go_on(fd);
    }
}

static void start_ring(void)
{
    struct io_uring_params parameters = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
        .cq_entries = COMPLETIONS,
    };
    int result = io_uring_queue_init_params(SUBMISSIONS, &ring, &parameters);
    pool = mmap(NULL, BUFFERS * sizeof(struct io_uring_buf), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory = malloc((size_t)BUFFERS * BUFFER);
    if (pool == MAP_FAILED || memory == NULL)
        die("memory for buffers");
    struct io_uring_buf_reg buffers = {
        .ring_addr = (uintptr_t)pool,
        .ring_entries = BUFFERS,
        .bgid = GROUP,
    };
    if (result == 0)
        result = io_uring_register_buf_ring(&ring, &buffers, 0);
    if (result < 0) {
        errno = -result;
        die("io_uring");
    }
    io_uring_buf_ring_init(pool);
    available = 0;
    for (int buffer = 0; buffer < BUFFERS; buffer++)
        give_back(buffer);
    feed_starved();
}

int main(int argc, char **argv)
{
    int listener = listen_on(argc, argv, 0);
    start_ring();
    ask_accept(listener);
    announce(listener);
    for (;;) {
        int result = io_uring_submit_and_wait(&ring, 1);
        if (result < 0 && result != -EINTR && result != -EBUSY) {
            errno = -result;
            die("io_uring_submit_and_wait");
        }
        struct io_uring_cqe *completion;
        unsigned head, seen = 0;
        io_uring_for_each_cqe(&ring, head, completion)
        {
            uint64_t data = io_uring_cqe_get_data64(completion);
            int fd = (int)(data >> 2);
            switch ((enum operation)(data & 3)) {
            case ACCEPT:
                accepted(fd, completion);
                break;
            case RECEIVE:
                received(fd, completion);
                break;
            case SEND:
                sent(fd, completion->res);
                break;
            case CANCEL:
                break;
            }
            seen++;
        }
        io_uring_cq_advance(&ring, seen);
        feed_starved();
    }
}
