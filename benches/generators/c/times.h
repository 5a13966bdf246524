// The clock and the response times of the plain load generators.

#include <stdint.h>
#include <time.h>

enum {
    SUB_BITS = 7, // of a response time, kept beside its magnitude: errors below 1 %
    BUCKETS = (64 - SUB_BITS + 1) << SUB_BITS,
};

static uint64_t times[BUCKETS], replies;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// Response times, in buckets with a fixed relative width.

static void record(uint64_t time)
{
    unsigned shift = 0;
    if (time >> SUB_BITS != 0)
        shift = 64 - SUB_BITS - (unsigned)__builtin_clzll(time);
    times[((uint64_t)shift << SUB_BITS) + (time >> shift)]++;
}

static double percentile_us(double share)
{
    uint64_t wanted = (uint64_t)(share * (double)replies), seen = 0;
    for (uint64_t bucket = 0; bucket < BUCKETS; bucket++) {
        seen += times[bucket];
        if (seen > wanted) {
            uint64_t shift = bucket >> SUB_BITS;
            return (double)((bucket - (shift << SUB_BITS)) << shift) / 1e3;
        }
    }
    return 0;
}
