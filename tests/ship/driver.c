/* A driver that writes down what it is asked instead of doing it: what the generated C is tested against. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The same as AMD's runtime. */
#ifdef HIP
#define cuInit hipInit
#define cuGetErrorName hipDrvGetErrorName
#define cuGetErrorString hipDrvGetErrorString
#define cuCtxGetDevice hipGetDevice
#define cuDeviceGetAttribute hipDeviceGetAttribute
#define cuModuleLoadData hipModuleLoadData
#define cuModuleUnload hipModuleUnload
#define cuThreadExchangeStreamCaptureMode hipThreadExchangeStreamCaptureMode
#define cuModuleGetFunction hipModuleGetFunction
#define cuLaunchKernel hipModuleLaunchKernel
#define cuLaunchCooperativeKernel hipModuleLaunchCooperativeKernel
#define cuMemAllocAsync hipMallocAsync
#define cuMemFreeAsync hipFreeAsync
#define cuMemsetD8Async hipMemsetD8Async
#define MINOR 4
#define MAJOR_ATTRIBUTE 23
#define MINOR_ATTRIBUTE 61
#define SMS_ATTRIBUTE 63
#define SHARED 65536
#else
#define MINOR 0
#define MAJOR_ATTRIBUTE 75
#define MINOR_ATTRIBUTE 76
#define SMS_ATTRIBUTE 16
#define SHARED 232448
#endif

static uint64_t next = 0x7000;
static int words = 0, major = 9, refuse = 0, recorded = 0;
static void *context = &next;

/* For the test: how many words a kernel takes, the compute capability, whether there is a context, what fails. */
void fake(const char *what, int value)
{
    if (strcmp(what, "words") == 0) {
        words = value;
    } else if (strcmp(what, "major") == 0) {
        major = value;
        next += 0x10; /* another context */
    } else if (strcmp(what, "context") == 0) {
        context = value ? &next : NULL;
    } else if (strcmp(what, "refuse") == 0) {
        refuse = value;
    } else if (strcmp(what, "recorded") == 0) {
        recorded = value;
    }
}

int cuInit(unsigned flags) { (void)flags; return 0; }
int cuGetErrorName(int code, const char **out) { (void)code; *out = "CUDA_ERROR_FAKE"; return 0; }
int cuGetErrorString(int code, const char **out) { (void)code; *out = "it was told to fail"; return 0; }
int cuCtxGetCurrent(void **out) { *out = context; return 0; }
int cuCtxGetId(void *c, unsigned long long *out) { (void)c; *out = (unsigned long long)major; return 0; }
#ifdef HIP
int cuCtxGetDevice(int *out) { *out = major; return context == NULL; }
#else
int cuCtxGetDevice(int *out) { *out = 0; return 0; }
#endif

int cuDeviceGetAttribute(int *out, int attribute, int device)
{
    (void)device;
#ifdef HIP
    /* Where the GPU is plugged in: domain 0, a bus, device 0. The test describes the buses. */
    if (attribute == 67 || attribute == 68 || attribute == 69) {
        *out = attribute == 67 ? major : 0;
        return 0;
    }
#endif
    *out = attribute == MAJOR_ATTRIBUTE ? major : attribute == MINOR_ATTRIBUTE ? MINOR : attribute == SMS_ATTRIBUTE ? 132 : SHARED;
    return 0;
}

int cuModuleLoadData(void **module, const void *image)
{
    const unsigned char *bytes = image;
    printf("  load %s\n", bytes[0] == 0x7f && bytes[1] == 'E' ? "a cubin" : bytes[0] == '/' ? "PTX" : "something else");
    *module = (void *)(uintptr_t)image;
    return 0;
}

int cuModuleUnload(void *module) { (void)module; return 0; }
int cuThreadExchangeStreamCaptureMode(int *mode) { int old = 0; *mode = old; return 0; }

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    (void)name;
    *function = module;
    return 0;
}

int cuFuncSetAttribute(void *function, int attribute, int value)
{
    (void)function;
    printf("  attribute %d = %d\n", attribute, value);
    return 0;
}

static int launch(const char *how, void *f, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned shared, void **params)
{
    int i;
    (void)f;
    if (refuse) {
        return 1;
    }
    printf("  %s %u %u %u, %u threads, %s shared:", how, x, y, z, threads, shared ? "some" : "no");
    for (i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, params[i], sizeof word);
        printf(" %llx", (unsigned long long)word);
    }
    printf("\n");
    return 0;
}

int cuLaunchKernel(void *f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
                   void **params, void **extra)
{
    (void)by; (void)bz; (void)stream; (void)extra;
    return launch("launch", f, x, y, z, bx, shared, params);
}

int cuLaunchCooperativeKernel(void *f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                              void *stream, void **params)
{
    (void)by; (void)bz; (void)stream;
    return launch("cooperative", f, x, y, z, bx, shared, params);
}

int cuTensorMapEncodeTiled(void *map, unsigned type, unsigned rank, uint64_t address, const uint64_t *extents,
                           const uint64_t *strides, const unsigned *box, const unsigned *steps, unsigned interleave,
                           unsigned swizzle, unsigned promotion, unsigned fill)
{
    unsigned i;
    if (refuse) {
        return 1;
    }
    printf("  describe type %u at %llx,", type, (unsigned long long)address);
    for (i = 0; i < rank; i++) {
        printf(" %u of %llu by %u,", box[i], (unsigned long long)extents[i], steps[i]);
    }
    for (i = 0; i + 1 < rank; i++) {
        printf(" %llu bytes apart,", (unsigned long long)strides[i]);
    }
    printf(" modes %u %u %u %u%s\n", interleave, swizzle, promotion, fill, (uintptr_t)map % 64 == 0 ? "" : ", not aligned");
    memcpy(map, &address, sizeof address);
    return 0;
}

int cuMemAllocAsync(uint64_t *out, size_t bytes, void *stream)
{
    (void)stream;
    *out = 0x9000;
    printf("  alloc %zu\n", bytes);
    return 0;
}

int cuMemFreeAsync(uint64_t address, void *stream)
{
    (void)stream;
    printf("  free %llx\n", (unsigned long long)address);
    return 0;
}

#ifndef HIP
int cuStreamGetId(void *stream, unsigned long long *out) { *out = (unsigned long long)(uintptr_t)stream; return 0; }

int cuStreamIsCapturing(void *stream, int *out) { (void)stream; *out = recorded; return 0; }

int cuStreamCreate(void **out, unsigned flags)
{
    printf("  create a stream, %u\n", flags);
    *out = (void *)0x80;
    return 0;
}

int cuStreamSynchronize(void *stream) { (void)stream; printf("  wait\n"); return 0; }

int cuStreamDestroy_v2(void *stream) { (void)stream; printf("  destroy the stream\n"); return 0; }
#endif

int cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, void *stream)
{
    (void)stream;
    printf("  fill %llx with %u, %zu bytes\n", (unsigned long long)address, value, bytes);
    return 0;
}
