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
