/* What launches are made of; a source file has those that it uses. A result that does not fit sets *wrong. */
/* helper: fit */
static int64_t tki_fit(int64_t v, int bits, int *wrong)
{
    int64_t most = bits >= 64 ? INT64_MAX : (INT64_C(1) << (bits - 1)) - 1;
    *wrong |= v > most || v < -most - 1;
    return v;
}
/* helper: add */
static int64_t tki_add(int64_t a, int64_t b, int bits, int *wrong)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) {
        *wrong = 1;
        return 0;
    }
    return tki_fit(a + b, bits, wrong);
}
/* helper: sub */
static int64_t tki_sub(int64_t a, int64_t b, int bits, int *wrong)
{
    if (b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b) {
        *wrong = 1;
        return 0;
    }
    return tki_fit(a - b, bits, wrong);
}
/* helper: mul */
static int64_t tki_mul(int64_t a, int64_t b, int bits, int *wrong)
{
    int over;
    if (a > 0) {
        over = b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a;
    } else {
        over = b > 0 ? a < INT64_MIN / b : a != 0 && b < INT64_MAX / a;
    }
    if (over) {
        *wrong = 1;
        return 0;
    }
    return tki_fit(a * b, bits, wrong);
}
/* helper: neg */
static int64_t tki_neg(int64_t a, int bits, int *wrong)
{
    if (a == INT64_MIN) {
        *wrong = 1;
        return 0;
    }
    return tki_fit(-a, bits, wrong);
}
/* helper: abs */
static int64_t tki_abs(int64_t a, int bits, int *wrong)
{
    if (a == INT64_MIN) {
        *wrong = 1;
        return 0;
    }
    return tki_fit(a < 0 ? -a : a, bits, wrong);
}
/* helper: next_pow2 */
static int64_t tki_next_pow2(int64_t a, int bits, int *wrong)
{
    int64_t power = 1;
    if (a > INT64_C(1) << 62) {
        *wrong = 1;
        return 1;
    }
    while (power < a) {
        power *= 2;
    }
    return tki_fit(power, bits, wrong);
}
/* helper: div */
static int64_t tki_div(int64_t a, int64_t b, int bits, int *wrong)
{
    if (b == 0 || (a == INT64_MIN && b == -1)) {
        *wrong = 1;
        return 0;
    }
    return tki_fit(a / b, bits, wrong);
}
/* helper: rem */
static int64_t tki_rem(int64_t a, int64_t b, int bits, int *wrong)
{
    (void)bits;
    if (b == 0) {
        *wrong = 1;
        return 0;
    }
    return b == -1 ? 0 : a % b;
}
/* helper: cdiv */
static int64_t tki_cdiv(int64_t a, int64_t b, int bits, int *wrong)
{
    if (b == 0 || (a == INT64_MIN && b == -1)) {
        *wrong = 1;
        return 0;
    }
    return tki_fit(a / b + (a % b != 0 && (a > 0) == (b > 0)), bits, wrong);
}
/* helper: min */
static int64_t tki_min(int64_t a, int64_t b, int bits, int *wrong)
{
    (void)bits;
    (void)wrong;
    return a < b ? a : b;
}
/* helper: max */
static int64_t tki_max(int64_t a, int64_t b, int bits, int *wrong)
{
    (void)bits;
    (void)wrong;
    return a > b ? a : b;
}
/* helper: wrap */
static int64_t tki_wrap(int64_t a, int bits, int *wrong)
{
    int64_t high = INT64_C(1) << (bits - 1), low = (int64_t)((uint64_t)a & ((uint64_t)high * 2 - 1));
    (void)wrong;
    return low >= high ? low - high * 2 : low;
}
/* helper: wrap_unsigned */
static int64_t tki_wrap_unsigned(int64_t a, int bits, int *wrong)
{
    (void)wrong;
    return (int64_t)((uint64_t)a & ((UINT64_C(1) << bits) - 1));
}
/* helper: float */
static uint64_t tki_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
/* helper: double */
static uint64_t tki_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
/* helper: memory */
/* Memory for the time of a launch: undefined at first (0), zero (1), or zero and left so by the kernel (2). */
typedef struct tki_memory {
    int64_t count;
    int64_t element_bytes;
    int kind;
    uint64_t address;
} tki_memory;

static tki_memory tki_want(int64_t count, int64_t element_bytes, int kind)
{
    tki_memory out;
    out.count = count;
    out.element_bytes = element_bytes;
    out.kind = kind;
    out.address = 0;
    return out;
}

static void tki_give(const tki_driver *driver, uint64_t room, void *stream)
{
    if (room != 0) {
        (void)driver->release(room, stream);
    }
}

/* Adds those of a kind to an allocation of `total` bytes, each at a multiple of 256 bytes. */
static tk_status tki_lay(const char *kernel, tki_memory *held, size_t count, int kind, size_t *total)
{
    size_t i;
    for (i = 0; i < count; i++) {
        if (held[i].kind != kind) {
            continue;
        }
        if (held[i].count < 0 || held[i].count > INT64_MAX / 8 / held[i].element_bytes || *total > SIZE_MAX / 2) {
            return tki_fail(
                TK_GRID, "a workspace of kernel `%s` has %lld elements", kernel, (long long)held[i].count);
        }
        *total = (*total + 255) / 256 * 256;
        held[i].address = *total;
        *total += (size_t)(held[i].count * held[i].element_bytes);
    }
    return TK_OK;
}

#if TKI_KEEPS
/* Memory that a kernel leaves zero. That of a stream belongs to its number, which no other stream of the context gets, and launches of
   a stream follow one another. It is not freed: a launch of another thread may be about to use it. */
typedef struct tki_kept {
    const char *kernel;
    uint64_t context, address;
    unsigned long long stream;
    size_t bytes;
    struct tki_kept *next;
} tki_kept;

static int tki_zeros(const tki_driver *driver, uint64_t *address, size_t bytes, void *stream)
{
    int code = driver->alloc(address, bytes, stream);
    if (code == 0) {
        code = driver->fill(*address, 0, bytes, stream);
        if (code != 0) {
            tki_give(driver, *address, stream);
        }
    }
    *address = code == 0 ? *address : 0;
    return code;
}

/* Memory for a launch that is recorded, whose graph may run beside its stream: zeroed now, by another stream. */
static int tki_zeros_recorded(const tki_driver *driver, uint64_t *address, size_t bytes)
{
    void *own = NULL;
    int code, mode = 2;
    /* Allocating and waiting are allowed in relaxed mode alone. */
    (void)driver->capture_mode(&mode);
    code = driver->stream_create(&own, 1);
    if (code == 0) {
        code = tki_zeros(driver, address, bytes, own);
        if (code == 0 && (code = driver->stream_wait(own)) != 0) {
            tki_give(driver, *address, own);
        }
        (void)driver->stream_destroy(own);
    }
    (void)driver->capture_mode(&mode);
    return code;
}

/* Memory of a kernel that is zero when the next launch of this stream begins, if each leaves it so. */
static int tki_keep(
    const tki_driver *driver, uint64_t context, const char *kernel, uint64_t *address, size_t bytes, void *stream)
{
    static tki_kept *all;
    tki_kept *k;
    unsigned long long number = 0;
    size_t most = 0;
    int code, recorded = 0;
    code = driver->stream_recorded(stream, &recorded);
    if (code == 0 && recorded == 1) {
        return tki_zeros_recorded(driver, address, bytes);
    }
    code = code == 0 ? driver->stream_number(stream, &number) : code;
    if (code != 0) {
        return code;
    }
    tki_lock();
    for (k = all; k != NULL; k = k->next) {
        if (k->context == context && k->stream == number && k->kernel == kernel) {
            most = k->bytes > most ? k->bytes : most;
            if (k->bytes >= bytes) {
                break;
            }
        }
    }
    if (k == NULL && (k = (tki_kept *)calloc(1, sizeof *k)) != NULL) {
        /* Twice as much as before, so what is no longer used is less than what is. */
        bytes = bytes > 2 * most ? bytes : 2 * most;
        code = tki_zeros(driver, &k->address, bytes, stream);
        if (code == 0) {
            k->context = context;
            k->stream = number;
            k->kernel = kernel;
            k->bytes = bytes;
            k->next = all;
            all = k;
        } else {
            free(k);
            k = NULL;
        }
    }
    *address = k != NULL ? k->address : 0;
    tki_unlock();
    /* 2 is CUDA_ERROR_OUT_OF_MEMORY. */
    return k != NULL || code != 0 ? code : 2;
}
#endif

/* Takes memory for all: one allocation, `room`, with those that are zeroed first, and one that is kept for those that the kernel leaves
 * zero, where the driver tells streams apart. One without bytes is null. */
static tk_status tki_take(
    const tki_driver *driver, const tki_device *device, const char *kernel, tki_memory *held, size_t count, uint64_t *room,
    void *stream)
{
    size_t i, total = 0, zeroed = 0, kept = 0;
    uint64_t zeros = 0;
    int code = 0;
    tk_status status;
#if TKI_KEEPS
    const int keeps = driver->stream_number != NULL && driver->stream_recorded != NULL;
#else
    const int keeps = 0;
#endif
    for (i = 0; i < count; i++) {
        held[i].kind = held[i].kind == 2 && !keeps ? 1 : held[i].kind;
    }
    status = tki_lay(kernel, held, count, 2, &kept);
    status = status == TK_OK ? tki_lay(kernel, held, count, 1, &total) : status;
    zeroed = total;
    status = status == TK_OK ? tki_lay(kernel, held, count, 0, &total) : status;
    if (status != TK_OK) {
        return status;
    }
#if TKI_KEEPS
    code = kept > 0 ? tki_keep(driver, device->id, kernel, &zeros, kept, stream) : 0;
#else
    (void)device;
#endif
    if (code == 0 && total > 0) {
        code = driver->alloc(room, total, stream);
    }
    if (code == 0 && zeroed > 0) {
        code = driver->fill(*room, 0, zeroed, stream);
    }
    if (code != 0) {
        tki_give(driver, *room, stream);
        return tki_refused(driver, code, kernel, "has no memory for its workspaces");
    }
    for (i = 0; i < count; i++) {
        held[i].address = held[i].count > 0 ? (held[i].kind == 2 ? zeros : *room) + held[i].address : 0;
    }
    return TK_OK;
}
/* helper: log */
static void tki_log(atomic_flag *once, const char *text)
{
    const char *asked = getenv("TK_LOG");
    if (asked != NULL && asked[0] != 0 && strcmp(asked, "0") != 0
        && !atomic_flag_test_and_set_explicit(once, memory_order_relaxed)) {
        fprintf(stderr, "tk: %s\n", text);
    }
}
