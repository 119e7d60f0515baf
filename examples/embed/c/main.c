/* Kernels in a C program: softmax of rows and a matrix product, compared with a reference on the host.
 *
 * The kernels come from softmax.c and matmul.c, which `tk build --emit header` writes. All that this file adds is memory on the
 * GPU, for which it asks the driver itself; a program that has the CUDA runtime would use cudaMalloc and cudaMemcpy.
 * Without a GPU it prints why and ends with 77. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "matmul.h"
#include "softmax.h"

enum { ROWS = 37, COLUMNS = 1000, M = 129, N = 100, K = 257, NO_GPU = 77 };

/* The part of the driver that this program needs. */
static struct {
    int (*init)(unsigned);
    int (*device)(int *, int);
    int (*context)(void **, int);
    int (*current)(void *);
    int (*alloc)(uint64_t *, size_t);
    int (*to_gpu)(uint64_t, const void *, size_t);
    int (*to_host)(void *, uint64_t, size_t);
} cu;

static void check(int failed, const char *what)
{
    if (failed) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static int find(void *library, const char *name, void *slot)
{
    void *symbol = dlsym(library, name);
    memcpy(slot, &symbol, sizeof symbol);
    return symbol != NULL;
}

/* Makes the first GPU current; 0 if there is none. */
static int start(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    int device = 0;
    return library != NULL && find(library, "cuInit", &cu.init) && find(library, "cuDeviceGet", &cu.device)
        && find(library, "cuDevicePrimaryCtxRetain", &cu.context) && find(library, "cuCtxSetCurrent", &cu.current)
        && find(library, "cuMemAlloc_v2", &cu.alloc) && find(library, "cuMemcpyHtoD_v2", &cu.to_gpu)
        && find(library, "cuMemcpyDtoH_v2", &cu.to_host) && cu.init(0) == 0 && cu.device(&device, 0) == 0
        && cu.context(&context, device) == 0 && cu.current(context) == 0;
}

static void *upload(const void *from, size_t bytes)
{
    uint64_t address = 0;
    check(cu.alloc(&address, bytes), "there is no memory on the GPU");
    check(cu.to_gpu(address, from, bytes), "a copy to the GPU failed");
    return (void *)(uintptr_t)address;
}

/* bf16 is the upper half of a float; the values of this program have no lower half. */
static uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static double from_bf16(uint16_t value)
{
    uint32_t bits = (uint32_t)value << 16;
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

/* Multiples of 1/8 from -2 to 2. */
static void fill(uint16_t *to, size_t count)
{
    uint32_t state = 1;
    size_t i;
    for (i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        to[i] = to_bf16((float)(state >> 27) / 8.0f - 2.0f);
    }
}

static int compare(const char *what, const uint16_t *found, const double *wanted, size_t count)
{
    double worst = 0.0;
    size_t i;
    for (i = 0; i < count; i++) {
        double error = fabs(from_bf16(found[i]) - wanted[i]) / (fabs(wanted[i]) + 1e-3);
        worst = error > worst || isnan(error) ? error : worst;
    }
    printf("%s: %zu elements, largest relative error %.2e\n", what, count, worst);
    return worst <= 1e-2;
}

static uint16_t x[ROWS * COLUMNS], a[M * K], b[K * N], found[ROWS * COLUMNS];
static double wanted[ROWS * COLUMNS];

static int softmax(void)
{
    tk_view2 from = {NULL, TK_BF16, {ROWS, COLUMNS}, {COLUMNS, 1}}, to = from;
    int i, j;
    from.data = upload(x, sizeof x);
    to.data = upload(x, sizeof x);
    check(tk_softmax(NULL, &from, &to) != TK_OK, tk_softmax_error());
    check(cu.to_host(found, (uint64_t)(uintptr_t)to.data, sizeof x), "the kernel failed");
    for (i = 0; i < ROWS; i++) {
        double most = -INFINITY, sum = 0.0;
        for (j = 0; j < COLUMNS; j++) {
            most = fmax(most, from_bf16(x[i * COLUMNS + j]));
        }
        for (j = 0; j < COLUMNS; j++) {
            sum += wanted[i * COLUMNS + j] = exp(from_bf16(x[i * COLUMNS + j]) - most);
        }
        for (j = 0; j < COLUMNS; j++) {
            wanted[i * COLUMNS + j] /= sum;
        }
    }
    return compare("softmax", found, wanted, ROWS * COLUMNS);
}

static int matmul(void)
{
    tk_view2 left = {NULL, TK_BF16, {M, K}, {K, 1}}, right = {NULL, TK_BF16, {K, N}, {N, 1}};
    tk_view2 out = {NULL, TK_BF16, {M, N}, {N, 1}};
    int i, j, k;
    left.data = upload(a, sizeof a);
    right.data = upload(b, sizeof b);
    out.data = upload(x, M * N * sizeof *x);
    check(tk_matmul(NULL, &left, &right, NULL, &out) != TK_OK, tk_matmul_error());
    check(cu.to_host(found, (uint64_t)(uintptr_t)out.data, M * N * sizeof *x), "the kernel failed");
    for (i = 0; i < M; i++) {
        for (j = 0; j < N; j++) {
            double sum = 0.0;
            for (k = 0; k < K; k++) {
                sum += from_bf16(a[i * K + k]) * from_bf16(b[k * N + j]);
            }
            wanted[i * N + j] = sum;
        }
    }
    return compare("matmul", found, wanted, M * N);
}

int main(void)
{
    fill(x, ROWS * COLUMNS);
    fill(a, M * K);
    fill(b, K * N);
    if (!start()) {
        tk_view2 none = {x, TK_BF16, {ROWS, COLUMNS}, {COLUMNS, 1}};
        tk_status status = tk_softmax(NULL, &none, &none);
        fprintf(stderr, "no GPU: %s (status %d)\n", tk_softmax_error(), (int)status);
        return NO_GPU;
    }
    return softmax() && matmul() ? 0 : 1;
}
