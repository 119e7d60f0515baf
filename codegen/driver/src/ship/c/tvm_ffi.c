/* The stable C interface of TVM-FFI, as far as it is used: values, tensors, errors, streams. */

typedef struct tkf_any {
    int32_t type;
    uint32_t length; /* of a short text */
    union {
        int64_t integer;
        double number;
        const void *pointer;
        char text[8];
    } value;
} tkf_any;

typedef struct tkf_tensor {
    void *data;
    struct { int32_t type, id; } device;
    int32_t rank;
    struct { uint8_t code, bits; uint16_t lanes; } dtype;
    const int64_t *shape, *strides;
    uint64_t offset;
} tkf_tensor;

enum { TKF_NONE = 0, TKF_INT = 1, TKF_BOOL = 2, TKF_FLOAT = 3, TKF_TENSOR_POINTER = 7, TKF_RAW_TEXT = 8, TKF_SHORT_TEXT = 11, TKF_TEXT = 65, TKF_TENSOR = 70 };

/* Bytes before the contents of an object. */
enum { TKF_OBJECT = 24 };

#ifdef __cplusplus
#define TKF_EXPORT extern "C"
#else
#define TKF_EXPORT extern
#endif
TKF_EXPORT void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
TKF_EXPORT void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id);

/* A call: its kernel, and the device of its tensors. */
typedef struct tkf_call {
    const char *kernel;
    int32_t count, device, id;
} tkf_call;

static int tkf_fail(const tkf_call *call, const char *kind, const char *name, const char *what)
{
    char text[512];
    if (name != NULL) {
        (void)snprintf(text, sizeof text, "argument `%s` of kernel `%s` %s", name, call->kernel, what);
    } else {
        (void)snprintf(text, sizeof text, "kernel `%s` %s", call->kernel, what);
    }
    TVMFFIErrorSetRaisedFromCStr(kind, text);
    return -1;
}

static int tkf_dtype(const tkf_tensor *t, tk_dtype *to)
{
    static const struct { uint8_t code, bits; tk_dtype dtype; } types[] = {
        {0, 8, TK_I8}, {0, 16, TK_I16}, {0, 32, TK_I32}, {0, 64, TK_I64}, {1, 8, TK_U8}, {1, 16, TK_U16}, {1, 32, TK_U32},
        {1, 64, TK_U64}, {2, 16, TK_F16}, {2, 32, TK_F32}, {2, 64, TK_F64}, {4, 16, TK_BF16}, {6, 8, TK_BOOL},
        {10, 8, TK_F8E4M3}, {11, 8, TK_F8E4M3FNUZ}, {12, 8, TK_F8E5M2}, {13, 8, TK_F8E5M2FNUZ}, {14, 8, TK_E8M0},
    };
    size_t i;
    for (i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (t->dtype.code == types[i].code && t->dtype.bits == types[i].bits && t->dtype.lanes == 1) {
            *to = types[i].dtype;
            return 0;
        }
    }
    return -1;
}

/* The tensor of an argument; NULL for None. A rank below 0 is any. */
static int tkf_get(tkf_call *call, const tkf_any *args, int32_t i, const char *name, int32_t rank, int optional, const tkf_tensor **to, tk_dtype *dtype)
{
    char text[128];
    const tkf_tensor *t;
    *to = NULL;
    if (i >= call->count || args[i].type == TKF_NONE) {
        return optional ? 0 : tkf_fail(call, "TypeError", name, "must be given: it is not optional");
    }
    if (args[i].type == TKF_TENSOR) {
        t = (const tkf_tensor *)(const void *)((const char *)args[i].value.pointer + TKF_OBJECT);
    } else if (args[i].type == TKF_TENSOR_POINTER) {
        t = (const tkf_tensor *)args[i].value.pointer;
    } else {
        return tkf_fail(call, "TypeError", name, "must be a tensor");
    }
    if (rank >= 0 && t->rank != rank) {
        (void)snprintf(text, sizeof text, "must be a tensor of rank %d, and is one of rank %d", (int)rank, (int)t->rank);
        return tkf_fail(call, "ValueError", name, text);
    }
    if (t->device.type != TKF_DEVICE) {
        return tkf_fail(call, "ValueError", name, "is not in memory of a GPU of the vendor that this was built for");
    }
    if (call->device >= 0 && call->id != t->device.id) {
        return tkf_fail(call, "ValueError", name, "is on another GPU than the tensors before it");
    }
    call->device = t->device.type;
    call->id = t->device.id;
    if (tkf_dtype(t, dtype) != 0) {
        return tkf_fail(call, "TypeError", name, "has elements without a type in the language");
    }
    *to = t;
    return 0;
}

/* Copies the extents and strides of a tensor. */
static void tkf_axes(const tkf_tensor *t, int64_t *shape, int64_t *strides)
{
    int64_t step = 1;
    int32_t i;
    for (i = t->rank; i-- > 0;) {
        shape[i] = t->shape[i];
        strides[i] = t->strides != NULL ? t->strides[i] : step;
        step *= t->shape[i] > 1 ? t->shape[i] : 1;
    }
}

static void *tkf_data(const tkf_tensor *t)
{
    return (char *)t->data + t->offset;
}

/* The number of an argument; what is not given keeps its default. */
static int tkf_number(tkf_call *call, const tkf_any *args, int32_t i, const char *name, int optional, double low, double high, int is_float, int64_t *integer, double *number)
{
    if (i >= call->count || args[i].type == TKF_NONE) {
        return optional ? 0 : tkf_fail(call, "TypeError", name, "must be given: it has no default");
    }
    if (args[i].type == TKF_INT || args[i].type == TKF_BOOL) {
        *integer = args[i].value.integer;
        *number = (double)*integer;
    } else if (args[i].type == TKF_FLOAT && is_float) {
        *number = args[i].value.number;
    } else {
        return tkf_fail(call, "TypeError", name, is_float ? "must be a number" : "must be an integer");
    }
    if (!is_float && (*number < low || *number > high)) {
        return tkf_fail(call, "ValueError", name, "is out of the range of its type");
    }
    return 0;
}

/* The value, from 1, of a compile-time parameter that is given as a text or a number; 0 for its default. */
static int tkf_choice(tkf_call *call, const tkf_any *args, int32_t i, const char *name, const char *const *values, int has_default, int *to)
{
    char text[64];
    const char *given = text;
    int k;
    *to = 0;
    if (i >= call->count || args[i].type == TKF_NONE) {
        return has_default ? 0 : tkf_fail(call, "TypeError", name, "must be given: it has no default");
    }
    if (args[i].type == TKF_INT) {
        (void)snprintf(text, sizeof text, "%lld", (long long)args[i].value.integer);
    } else if (args[i].type == TKF_BOOL) {
        given = args[i].value.integer ? "true" : "false";
    } else if (args[i].type == TKF_RAW_TEXT) {
        given = (const char *)args[i].value.pointer;
    } else if (args[i].type == TKF_SHORT_TEXT) {
        (void)snprintf(text, sizeof text, "%.*s", (int)args[i].length, args[i].value.text);
    } else if (args[i].type == TKF_TEXT) {
        given = *(const char *const *)(const void *)((const char *)args[i].value.pointer + TKF_OBJECT);
    } else {
        return tkf_fail(call, "TypeError", name, "must be one of its built values, as a text");
    }
    for (k = 0; values[k] != NULL; k++) {
        if (strcmp(values[k], given) == 0) {
            *to = k + 1;
            return 0;
        }
    }
    return tkf_fail(call, "ValueError", name, "has no such value among those that were built");
}

static int tkf_end(tk_status status, const char *why, tkf_any *result)
{
    if (status == TK_OK) {
        result->type = TKF_NONE;
        result->length = 0;
        result->value.integer = 0;
        return 0;
    }
    TVMFFIErrorSetRaisedFromCStr(
        status == TK_ARGUMENT || status == TK_REQUIREMENT || status == TK_GRID ? "ValueError" : status == TK_NO_VARIANT ? "TypeError" : "RuntimeError", why);
    return -1;
}
