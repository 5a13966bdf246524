// Clients of an echo server, on io_uring, one thread: each has one request outstanding and checks
// every byte of the reply. Receiving is asked for once and completes many times into a shared ring
// of buffers; a send that went well is not reported; what is asked for in a round is handed over in
// the call that waits.
//
// It goes through the phases of `throng load --controlled` and tells them the same way: a line of
// JSON on standard output for each, a line on standard input awaited before the warm-up and before
// closing, and a last line with the result. A client rests after its first answer until all have
// theirs.

#include "load.h"

#include <liburing.h>
#include <netinet/tcp.h>
#include <sys/mman.h>

enum {
    BUFFER = 1024,       // holds a reply
    MOST_BUFFERS = 4096, // a power of two, as all their numbers
    SUBMISSIONS = 4096,
    COMPLETIONS = 32768,
    CONNECTS_A_ROUND = 64,
    MOST_RETRIES = 1000, // interrupted operations of one client
    GROUP = 0,
};

static const double WARM_UP_S = 0.5, TIMEOUT_S = 10, SETTLE_S = 60, GRACE_S = 2;

enum operation { CONNECT, RECEIVE, SEND };

static struct io_uring ring;
static struct io_uring_buf_ring *pool;
static char *memory;
static unsigned buffers;
static int returned; // buffers not yet shown to the kernel
static unsigned *starved, starved_count; // clients for whom there was no buffer

// Operations.

static struct io_uring_sqe *next_entry(void)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
    if (entry == NULL) {
        int result = io_uring_submit(&ring);
        entry = io_uring_get_sqe(&ring);
        if (entry == NULL)
            die("io_uring_submit", result < 0 ? -result : ENOSPC);
    }
    return entry;
}

static void label(struct io_uring_sqe *entry, enum operation operation, unsigned place)
{
    io_uring_sqe_set_data64(entry, (uint64_t)place << 2 | operation);
}

static void ask_connect(unsigned place)
{
    struct io_uring_sqe *entry = next_entry();
    io_uring_prep_connect(entry, clients[place].fd, (struct sockaddr *)&server, sizeof server);
    label(entry, CONNECT, place);
}

static void ask_receive(unsigned place)
{
    struct io_uring_sqe *entry = next_entry();
    io_uring_prep_recv_multishot(entry, clients[place].fd, NULL, 0, 0);
    io_uring_sqe_set_flags(entry, IOSQE_BUFFER_SELECT);
    entry->buf_group = GROUP;
    label(entry, RECEIVE, place);
}

// Sends the rest of the request. MSG_WAITALL makes the kernel go on after a short send, and a send
// that stays short in spite of it a failure, which is reported.
static void ask_send(unsigned place)
{
    struct client *client = &clients[place];
    struct io_uring_sqe *entry = next_entry();
    io_uring_prep_send(entry, client->fd, pattern + client->start + client->sent,
                       SIZE - client->sent, MSG_NOSIGNAL | MSG_WAITALL);
    io_uring_sqe_set_flags(entry, IOSQE_CQE_SKIP_SUCCESS);
    label(entry, SEND, place);
}

static void give_back(unsigned buffer)
{
    io_uring_buf_ring_add(pool, memory + (size_t)buffer * BUFFER, BUFFER, (unsigned short)buffer,
                          io_uring_buf_ring_mask(buffers), returned++);
}

// Clients.

// The descriptor stays open until the end, so that what the kernel still does with it does no harm.
static void end(struct client *client)
{
    if (client->state == ASKING && client->answered_after >= 0)
        waiting--;
    client->state = OVER;
    if (client->fd >= 0)
        shutdown(client->fd, SHUT_RDWR);
    failed++;
    failed_unanswered += client->answered_after < 0;
}

static void fail(struct client *client, enum failure failure)
{
    failures[failure]++;
    end(client);
}

// Whether to do again what ended with `error`; else the client has failed.
static bool try_again(struct client *client, int error)
{
    bool passing = error == EINTR || error == EAGAIN || error == ECANCELED;
    if (passing && client->retries++ < MOST_RETRIES)
        return true;
    fail(client, failure_of(error));
    return false;
}

static void ask(unsigned place)
{
    struct client *client = &clients[place];
    client->state = ASKING;
    client->start = (client->start + REQUEST_STRIDE) % PERIOD;
    client->sent = client->received = 0;
    waiting += client->answered_after >= 0;
    requests++;
    ask_send(place);
}

static void begin(unsigned place)
{
    struct client *client = &clients[place];
    client->state = CONNECTING;
    client->began = now();
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (client->fd < 0 ||
        setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0) {
        fail(client, failure_of(errno));
        return;
    }
    ask_connect(place);
}

static void begin_some(void)
{
    for (int left = CONNECTS_A_ROUND; left > 0 && unborn < count && !ending; left--)
        begin(unborn++);
}

static void has_connected(unsigned place, int result)
{
    struct client *client = &clients[place];
    if (result < 0) {
        if (try_again(client, -result))
            ask_connect(place);
        return;
    }
    connected++;
    client->state = RESTING;
    ask_receive(place);
    if (!ending)
        ask(place);
}

static void has_reply(unsigned place)
{
    struct client *client = &clients[place];
    client->replies++;
    client->counted += counting;
    client->state = RESTING;
    if (client->answered_after < 0) {
        client->answered_after = now() - client->began;
        answered++;
    } else {
        waiting--;
    }
    if (settled && !ending)
        ask(place);
}

static void hear(unsigned place, const char *bytes, unsigned length)
{
    struct client *client = &clients[place];
    const char *due = pattern + client->start + client->received;
    if (client->state != ASKING || length > SIZE - client->received ||
        memcmp(due, bytes, length) != 0) {
        fail(client, WRONG);
        return;
    }
    client->received += length;
    if (client->received == SIZE)
        has_reply(place);
}

static void has_received(unsigned place, const struct io_uring_cqe *completion)
{
    struct client *client = &clients[place];
    int result = completion->res;
    if (completion->flags & IORING_CQE_F_BUFFER) {
        unsigned buffer = completion->flags >> IORING_CQE_BUFFER_SHIFT;
        if (result > 0 && client->state != OVER)
            hear(place, memory + (size_t)buffer * BUFFER, (unsigned)result);
        give_back(buffer);
    }
    if (client->state == OVER)
        return;
    if (result == 0 && ending && client->state == RESTING) {
        end(client);
    } else if (result == 0) {
        fail(client, CLOSED);
    } else if (result == -ENOBUFS) {
        starved[starved_count++] = place; // nothing is asked for before it has left the list
    } else if ((result > 0 || try_again(client, -result)) &&
               !(completion->flags & IORING_CQE_F_MORE)) {
        ask_receive(place);
    }
}

// A send is reported only when it failed or was cut short.
static void has_sent(unsigned place, int result)
{
    struct client *client = &clients[place];
    if (client->state != ASKING)
        return;
    if (result >= 0)
        client->sent += (unsigned)result;
    else if (!try_again(client, -result))
        return;
    if (client->sent < SIZE)
        ask_send(place);
}

// Submits operations, waits for at most `wait_ms` and processes all completions.
static void turn(int wait_ms)
{
    struct __kernel_timespec limit = {.tv_nsec = wait_ms * 1000000LL};
    struct io_uring_cqe *completion;
    int result = io_uring_submit_and_wait_timeout(&ring, &completion, 1, &limit, NULL);
    if (result < 0 && result != -ETIME && result != -EINTR && result != -EBUSY)
        die("io_uring_submit_and_wait_timeout", -result);
    unsigned head, seen = 0;
    io_uring_for_each_cqe(&ring, head, completion)
    {
        uint64_t data = io_uring_cqe_get_data64(completion);
        unsigned place = (unsigned)(data >> 2);
        switch ((enum operation)(data & 3)) {
        case CONNECT:
            has_connected(place, completion->res);
            break;
        case RECEIVE:
            has_received(place, completion);
            break;
        case SEND:
            has_sent(place, completion->res);
            break;
        }
        seen++;
    }
    io_uring_cq_advance(&ring, seen);
    io_uring_buf_ring_advance(pool, returned);
    returned = 0;
    // All buffers are back.
    while (starved_count > 0) {
        unsigned place = starved[--starved_count];
        if (clients[place].state != OVER)
            ask_receive(place);
    }
}

// Clients that were answered and have not failed.
static unsigned active(void)
{
    return answered - (failed - failed_unanswered);
}

// Phases.

// Until all clients have had their first answer or failed, or none came for long.
static void settle(void)
{
    double began = now(), news_at = began, time = began;
    unsigned news = 0;
    while (answered + failed_unanswered < count && time < news_at + TIMEOUT_S &&
           time < began + SETTLE_S) {
        begin_some();
        turn(unborn < count ? 0 : 10);
        time = now();
        if (answered > news) {
            news = answered;
            news_at = time;
        }
    }
}

static void go_on_for(double seconds)
{
    for (double until = now() + seconds; active() > 0 && now() < until;) {
        begin_some();
        turn(10);
    }
}

// Runs all phases; returns the length of the measurement.
static double run(double steady_s)
{
    say("connect");
    settle();
    double from = 0, until = 0;
    if (active() > 0) {
        say("warm-up");
        await_line();
        settled = true;
        for (unsigned place = 0; place < count; place++)
            if (clients[place].state == RESTING)
                ask(place);
        go_on_for(WARM_UP_S);
        from = now();
        counting = true;
        say("measure");
        go_on_for(steady_s);
        counting = false;
        ending = true;
        until = now();
        say("drain");
        for (double last = until + GRACE_S; waiting > 0 && now() < last;)
            turn(10);
    }
    say("idle");
    await_line();
    return until - from;
}

// Beginning.

static void start_ring(void)
{
    struct io_uring_params parameters = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
        .cq_entries = COMPLETIONS,
    };
    int result = io_uring_queue_init_params(SUBMISSIONS, &ring, &parameters);
    if (result < 0)
        die("io_uring (Linux 6.1 or newer)", -result);
    for (buffers = 64; buffers < count && buffers < MOST_BUFFERS;)
        buffers *= 2;
    pool = mmap(NULL, buffers * sizeof(struct io_uring_buf), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory = malloc((size_t)buffers * BUFFER);
    starved = calloc(count, sizeof *starved);
    if (pool == MAP_FAILED || memory == NULL || starved == NULL)
        die("memory for buffers", ENOMEM);
    struct io_uring_buf_reg registration = {
        .ring_addr = (uintptr_t)pool,
        .ring_entries = buffers,
        .bgid = GROUP,
    };
    result = io_uring_register_buf_ring(&ring, &registration, 0);
    if (result < 0)
        die("io_uring_register_buf_ring", -result);
    io_uring_buf_ring_init(pool);
    for (unsigned buffer = 0; buffer < buffers; buffer++)
        give_back(buffer);
    io_uring_buf_ring_advance(pool, returned);
    returned = 0;
}

int main(int argc, char **argv)
{
    double steady_s = begin_load(argc, argv);
    start_ring();
    tell_result(run(steady_s));
    return answered > 0 ? 0 : 1;
}
