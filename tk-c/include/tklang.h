/*
 * libtklang: kernels of bundles (`tk build --emit bundle`, or `--target cpu`) on GPUs and on the CPU, for C and C++.
 *
 *     tk_bundle *kernels;
 *     int64_t shape[] = {64, 1000};
 *     if (tk_bundle_open("softmax.tkb", "cpu", &kernels) == TK_OK) {
 *         tk_argument arguments[] = {tk_tensor(x, TK_F32, 2, shape, NULL), tk_tensor(y, TK_F32, 2, shape, NULL)};
 *         if (tk_bundle_launch(kernels, NULL, "softmax", arguments, 2, NULL, 0) == TK_OK) ..
 *     }
 *     puts(tk_bundle_error());
 *
 * All functions may be called from all threads. Link with -ltklang.
 */
#ifndef TK_BUNDLE_H
#define TK_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef TK_LAUNCH_TYPES
#define TK_LAUNCH_TYPES 1

/* How a launch ended. The kernel itself runs later: what fails in it is told by the next call that waits for it. */
typedef enum tk_status {
    TK_OK = 0,
    TK_NO_DRIVER = 1,   /* the driver is missing, too old, or finds no GPU */
    TK_NO_CONTEXT = 2,  /* no context of the driver is current in the calling thread */
    TK_NO_TARGET = 3,   /* nothing was built for this GPU */
    TK_NO_VARIANT = 4,  /* nothing was built for these arguments */
    TK_ARGUMENT = 5,    /* an argument is null, or an extent is negative or too large */
    TK_REQUIREMENT = 6, /* a requirement of the kernel does not hold */
    TK_GRID = 7,        /* the grid is negative or larger than a GPU takes, or a workspace has no size */
    TK_FAILED = 8,      /* the driver refused the launch or reports an earlier failure, or the kernel failed on the CPU */
    TK_BUNDLE = 9       /* a file of kernels cannot be read: tk_bundle_open of tklang.h */
} tk_status;

typedef enum tk_dtype {
    TK_BOOL = 1, TK_I8, TK_I16, TK_I32, TK_I64, TK_U8, TK_U16, TK_U32, TK_U64, TK_F8E4M3, TK_F8E5M2, TK_F16, TK_BF16,
    TK_F32, TK_F64, TK_E2M1, TK_E8M0, TK_F8E4M3FNUZ, TK_F8E5M2FNUZ
} tk_dtype;

/* Elements in the memory of the GPU. */
typedef struct tk_pointer { void *data; tk_dtype dtype; } tk_pointer;

/* Tensors in the memory of the GPU; strides are in elements. */
typedef struct tk_view1 { void *data; tk_dtype dtype; int64_t shape[1]; int64_t strides[1]; } tk_view1;
typedef struct tk_view2 { void *data; tk_dtype dtype; int64_t shape[2]; int64_t strides[2]; } tk_view2;
typedef struct tk_view3 { void *data; tk_dtype dtype; int64_t shape[3]; int64_t strides[3]; } tk_view3;
typedef struct tk_view4 { void *data; tk_dtype dtype; int64_t shape[4]; int64_t strides[4]; } tk_view4;
typedef struct tk_view5 { void *data; tk_dtype dtype; int64_t shape[5]; int64_t strides[5]; } tk_view5;

#endif

/* Kernels of a bundle on a device. */
typedef struct tk_bundle tk_bundle;

typedef enum tk_argument_kind { TK_ABSENT, TK_TENSOR, TK_INTEGER, TK_NUMBER, TK_BOOLEAN } tk_argument_kind;

/* An argument of a launch, made by one of the functions below. */
typedef struct tk_argument {
    tk_argument_kind kind;
    tk_dtype dtype;
    int32_t rank;
    void *data;
    const int64_t *shape, *strides;
    int64_t integer; /* also 0 or 1 */
    double number;
} tk_argument;

/* A compile-time parameter, where a kernel was built for several values of it: {"BLOCK", "1024"}. */
typedef struct tk_choice { const char *name, *value; } tk_choice;

/* A tensor, or a pointer to the elements that a shape has: memory of the device, on the CPU any memory, which is used where it
   is. A table of addresses (TK_U64) works on GPUs alone. Strides are in elements;
   NULL is row-major. `shape` and `strides` must live until the launch returns. */
static inline tk_argument tk_tensor(const void *data, tk_dtype dtype, int32_t rank, const int64_t *shape,
                                    const int64_t *strides)
{
    tk_argument a = {TK_TENSOR, dtype, rank, (void *)(uintptr_t)data, shape, strides, 0, 0};
    return a;
}

/* Numbers, which become those of the parameter's type: an integer also a float, rounded, if the type reaches it. One that the
   type does not have is TK_ARGUMENT, as is a float for an integer. A `u64` has the values of an int64_t here. */
static inline tk_argument tk_integer(int64_t value)
{
    tk_argument a = {TK_INTEGER, TK_I64, 0, NULL, NULL, NULL, value, 0};
    return a;
}

static inline tk_argument tk_number(double value)
{
    tk_argument a = {TK_NUMBER, TK_F64, 0, NULL, NULL, NULL, 0, value};
    return a;
}

static inline tk_argument tk_boolean(bool value)
{
    tk_argument a = {TK_BOOLEAN, TK_BOOL, 0, NULL, NULL, NULL, value, 0};
    return a;
}

/* An optional argument that is not there, or the default of a number. */
static inline tk_argument tk_absent(void)
{
    tk_argument a = {TK_ABSENT, TK_I64, 0, NULL, NULL, NULL, 0, 0};
    return a;
}

/* Opens a file, which must not change while it is open, on a device: "cpu", or the number of a GPU as in "cuda:0" and "hip:1"; its primary context is used. The file is
   not trusted, but its machine code runs: it must come from a trusted source. */
tk_status tk_bundle_open(const char *path, const char *device, tk_bundle **bundle);

/* The same for the bytes of a file, which are copied. */
tk_status tk_bundle_read(const void *bytes, size_t count, const char *device, tk_bundle **bundle);

/* Frees what a bundle has loaded, and NULL. No launch of it may be running. */
void tk_bundle_close(tk_bundle *bundle);

/* The name of a kernel, counted from 0; NULL after the last. It lives as long as the bundle. */
const char *tk_bundle_kernel(const tk_bundle *bundle, size_t number);

/* Launches a kernel with its arguments in order. On a GPU the launch is asynchronous, in `stream`, a CUstream, cudaStream_t or
   hipStream_t; NULL is the default stream. On the CPU, where `stream` is not used, the kernel has finished on return. */
tk_status tk_bundle_launch(tk_bundle *bundle, void *stream, const char *kernel, const tk_argument *arguments,
                           size_t argument_count, const tk_choice *choices, size_t choice_count);

/* What kernels have printed since the last call, on a GPU those that have finished. Never NULL; it lives until the next call
   of this function in this thread. */
const char *tk_bundle_printed(tk_bundle *bundle);

/* Why the last call in this thread that returned another status than TK_OK did so. Never NULL; it lives as long as the thread,
   and changes with the next such call. */
const char *tk_bundle_error(void);

#ifdef __cplusplus
}
#endif

#endif
