/* Calls functions of TVM-FFI as a framework does; driver.c writes down what they ask of the driver. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct any { int32_t type; uint32_t length; union { int64_t i; double f; const void *p; char text[8]; } v; } any;
typedef struct tensor {
    void *data; int32_t device, id, rank; uint8_t code, bits; uint16_t lanes; const int64_t *shape, *strides; uint64_t offset;
} tensor;
typedef struct object { char head[24]; union { tensor t; const char *text; } in; } object;

int __tvm_ffi_pointers(void *handle, const any *args, int32_t count, any *result);
int __tvm_ffi_every(void *handle, const any *args, int32_t count, any *result);

static void (*fake)(const char *, int);
static char said[600];

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message)
{
    (void)snprintf(said, sizeof said, "%s: %s", kind, message);
}

void *TVMFFIEnvGetStream(int32_t device, int32_t id)
{
    printf("  the stream of device %d, %d\n", (int)device, (int)id);
    return NULL;
}

static void show(const char *what, int failed, const any *result)
{
    printf("%s: %s\n", what, failed ? said : result->type == 0 ? "None" : "something");
}

static any of_object(const object *o, int32_t type) { any a = {0, 0, {0}}; a.type = type; a.v.p = o; return a; }
static any integer(int64_t i) { any a = {1, 0, {0}}; a.v.i = i; return a; }
static any number(double f) { any a = {3, 0, {0}}; a.v.f = f; return a; }
static any short_text(const char *text) { any a = {11, 0, {0}}; a.length = (uint32_t)strlen(text); memcpy(a.v.text, text, a.length); return a; }

int main(void)
{
    static const int64_t shape[2] = {100, 1}, apart[1] = {2};
    static const any none = {0, 0, {0}};
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *symbol = library != NULL ? dlsym(library, "fake") : NULL;
    object x = {{0}, {{(void *)0x0f00, 2, 0, 1, 2, 32, 1, shape, NULL, 0x100}}}, y = x, z = x, long_text;
    any args[9], result;
    if (symbol == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    memcpy(&fake, &symbol, sizeof fake);
    setvbuf(stdout, NULL, _IONBF, 0);
    y.in.t.data = (void *)0x2000;
    y.in.t.offset = 0;
    args[0] = of_object(&x, 70);
    args[1] = of_object(&y, 70);
    args[2] = integer(1000);
    args[3] = number(0.5);
    fake("words", 7);
#define POINTERS(what, count) show(what, __tvm_ffi_pointers(NULL, args, count, &result), &result)
    POINTERS("pointers", 4);
    args[3] = integer(2);
    args[1] = none;
    args[1].type = 7;
    args[1].v.p = &y.in.t;
    POINTERS("a tensor by its address, an integer for a float", 4);
    POINTERS("too few", 3);
    POINTERS("too many", 5);
    args[2] = number(3.0);
    POINTERS("a float for an integer", 4);
    args[2] = integer(INT64_C(1) << 31);
    POINTERS("an integer that does not fit", 4);
    args[2] = integer(-1);
    POINTERS("a requirement", 4);
    args[2] = integer(1000);
    z.in.t.device = 1;
    args[0] = of_object(&z, 70);
    POINTERS("in memory of the host", 4);
    z = x;
    z.in.t.id = 1;
    args[0] = of_object(&z, 70);
    POINTERS("on two GPUs", 4);
    z = x;
    z.in.t.lanes = 4;
    args[0] = of_object(&z, 70);
    POINTERS("vectors", 4);
    args[0] = short_text("x");
    POINTERS("a text", 4);
    args[0] = none;
    POINTERS("None", 4);

    fake("words", 13);
#define EVERY(what, count) show(what, __tvm_ffi_every(NULL, args, count, &result), &result)
    args[0] = of_object(&x, 70);
    args[1] = none;
    args[2] = of_object(&y, 70);
    args[3] = integer(0);
    EVERY("defaults", 4);
    args[4] = number(0.25);
    args[5] = integer(1);
    args[5].type = 2;
    args[6] = integer(2);
    EVERY("a value as a number", 7);
    args[6] = short_text("1");
    EVERY("a value as a text", 7);
    long_text.in.text = "3";
    args[6] = of_object(&long_text, 65);
    EVERY("a value that was not built", 7);
    args[6] = number(1.0);
    EVERY("a value of another kind", 7);
    z = y;
    z.in.t.strides = apart;
    args[2] = of_object(&z, 70);
    EVERY("with strides", 5);
    z.in.t.rank = 2;
    EVERY("of another rank", 5);
    return 0;
}
