/* What a launch through the generated C costs the host, beside the driver's own call, and one in a graph: `make` builds it.
 *
 * The generated source is part of this file, so that the bare launches are of the very function that the generated code has loaded. */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "launch_kernels.c"

enum { LAUNCHES = 20000, BURST = 500, TRIES = 7, RECORDED = 1000, REPLAYS = 20 };

static struct {
    int (*init)(unsigned);
    int (*device)(int *, int);
    int (*context)(void **, int);
    int (*current)(void *);
    int (*alloc)(uint64_t *, size_t);
    int (*stream)(void **, unsigned);
    int (*wait)(void *);
    int (*begin)(void *, unsigned);
    int (*end)(void *, void **);
    int (*make)(void **, void *, unsigned long long);
    int (*replay)(void *, void *);
} cu;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void check(int code, const char *what)
{
    if (code != 0) {
        fprintf(stderr, "%s: %d %s\n", what, code, tk_launch_kernels_error());
        exit(1);
    }
}

static void *stream;
static uint64_t address;

static void ours(void)
{
    tk_pointer x = {(void *)(uintptr_t)address, TK_F32};
    check((int)tk_nothing(stream, x, x, x, 1), "tk_nothing");
}

static void *function;

static void bare(void)
{
    static int one = 1;
    static int grid = 1;
    void *pointers[7] = {&address, &address, &address, &one, &grid, &grid, &grid};
    check(atomic_load(&tki_found)->launch(function, 1, 1, 1, 128, 1, 1, 0, stream, pointers, NULL), "cuLaunchKernel");
}

/* Microseconds of a launch, in bursts for which the queue of the GPU has room. */
static double timed(void (*launch)(void))
{
    double sum = 0.0;
    int i, j;
    for (i = 0; i < LAUNCHES / BURST; i++) {
        double begin;
        check(cu.wait(stream), "cuStreamSynchronize");
        begin = now();
        for (j = 0; j < BURST; j++) {
            launch();
        }
        sum += now() - begin;
    }
    check(cu.wait(stream), "cuStreamSynchronize");
    return sum / LAUNCHES;
}

int main(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL, *graph = NULL, *exec = NULL;
    double best[2] = {1e9, 1e9}, replay = 1e9;
    int device = 0, i, j;
    check(library == NULL, "there is no NVIDIA driver");
#define FIND(field, name) check(!tki_symbol(library, name, &cu.field), name)
    FIND(init, "cuInit");
    FIND(device, "cuDeviceGet");
    FIND(context, "cuDevicePrimaryCtxRetain");
    FIND(current, "cuCtxSetCurrent");
    FIND(alloc, "cuMemAlloc_v2");
    FIND(stream, "cuStreamCreate");
    FIND(wait, "cuStreamSynchronize");
    FIND(begin, "cuStreamBeginCapture_v2");
    FIND(end, "cuStreamEndCapture");
    FIND(make, "cuGraphInstantiateWithFlags");
    FIND(replay, "cuGraphLaunch");
    check(cu.init(0), "cuInit");
    check(cu.device(&device, 0), "cuDeviceGet");
    check(cu.context(&context, device), "cuDevicePrimaryCtxRetain");
    check(cu.current(context), "cuCtxSetCurrent");
    check(cu.stream(&stream, 1), "cuStreamCreate");
    check(cu.alloc(&address, 4096), "cuMemAlloc");
    ours();
    for (i = 0; i < (int)(sizeof tki_of_tk_nothing / sizeof *tki_of_tk_nothing); i++) {
        tki_loaded *l = atomic_load(&tki_of_tk_nothing[i].loaded);
        function = l != NULL ? l->function : function;
    }
    (void)timed(bare);
    (void)timed(ours);
    for (i = 0; i < TRIES; i++) {
        double b = timed(bare), o = timed(ours);
        best[0] = b < best[0] ? b : best[0];
        best[1] = o < best[1] ? o : best[1];
    }
    check(cu.begin(stream, 2), "cuStreamBeginCapture");
    for (i = 0; i < RECORDED; i++) {
        ours();
    }
    check(cu.end(stream, &graph), "cuStreamEndCapture");
    check(cu.make(&exec, graph, 0), "cuGraphInstantiate");
    for (i = 0; i < TRIES; i++) {
        double begin;
        check(cu.replay(exec, stream), "cuGraphLaunch");
        check(cu.wait(stream), "cuStreamSynchronize");
        begin = now();
        for (j = 0; j < REPLAYS; j++) {
            check(cu.replay(exec, stream), "cuGraphLaunch");
        }
        check(cu.wait(stream), "cuStreamSynchronize");
        begin = (now() - begin) / REPLAYS / RECORDED;
        replay = begin < replay ? begin : replay;
    }
    printf("{\"bare_us\": %.4f, \"c_us\": %.4f, \"of_bare\": %.4f, \"graph_us_per_kernel\": %.4f}\n", best[0], best[1], best[1] / best[0], replay);
    return 0;
}
