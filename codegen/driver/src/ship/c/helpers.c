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
/* Memory for the time of a launch. */
typedef struct tki_memory {
    int64_t count;
    int64_t element_bytes;
    int zeroed;
    uint64_t address;
} tki_memory;

static tki_memory tki_want(int64_t count, int64_t element_bytes, int zeroed)
{
    tki_memory out;
    out.count = count;
    out.element_bytes = element_bytes;
    out.zeroed = zeroed;
    out.address = 0;
    return out;
}

static void tki_give(const tki_driver *driver, uint64_t room, void *stream)
{
    if (room != 0) {
        (void)driver->release(room, stream);
    }
}

/* Takes one allocation for all, `room`: those that are zeroed first, each at a multiple of 256 bytes. One without bytes is
 * null. */
static tk_status tki_take(
    const tki_driver *driver, const char *kernel, tki_memory *held, size_t count, uint64_t *room, void *stream)
{
    size_t i, total = 0, zeroed = 0;
    int first, code;
    for (first = 1; first >= 0; first--) {
        for (i = 0; i < count; i++) {
            if ((held[i].zeroed != 0) != first) {
                continue;
            }
            if (held[i].count < 0 || held[i].count > INT64_MAX / 8 / held[i].element_bytes || total > SIZE_MAX / 2) {
                return tki_fail(
                    TK_GRID, "a workspace of kernel `%s` has %lld elements", kernel, (long long)held[i].count);
            }
            total = (total + 255) / 256 * 256;
            held[i].address = total;
            total += (size_t)(held[i].count * held[i].element_bytes);
        }
        zeroed = first ? total : zeroed;
    }
    code = total > 0 ? driver->alloc(room, total, stream) : 0;
    if (code == 0 && zeroed > 0) {
        code = driver->fill(*room, 0, zeroed, stream);
    }
    if (code != 0) {
        tki_give(driver, *room, stream);
        return tki_refused(driver, code, kernel, "has no memory for its workspaces");
    }
    for (i = 0; i < count; i++) {
        held[i].address = held[i].count > 0 ? *room + held[i].address : 0;
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
