/* Calls the generated functions; driver.c writes down what they ask of the driver. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "kernels.h"

#ifndef LIBRARY
#define LIBRARY "libcuda.so.1"
#endif

/* The maps of a product; AMD's GPUs have none. */
#ifdef HIP
#define MAPS 0
#else
#define MAPS 2
#endif

static void (*fake)(const char *, int);

static void show(const char *what, tk_status status)
{
    printf("%s: %d%s%s\n", what, (int)status, status == TK_OK ? "" : ", ", status == TK_OK ? "" : tk_kernels_error());
}

static tk_status every(tk_dtype dtype, int64_t count, tk_view1 *bias, int64_t n, float p, enum tk_every_MODE mode)
{
    tk_view1 x = {(void *)0x1000, TK_F16, {100}, {1}}, y = {(void *)0x2000, TK_F16, {100}, {1}};
    x.dtype = y.dtype = dtype;
    x.shape[0] = y.shape[0] = count;
    return tk_every(NULL, &x, bias, &y, n, p, true, mode);
}

static tk_status product(int64_t m, int64_t n, int64_t k, int64_t stride)
{
    tk_view2 a = {(void *)0x1000, TK_F16, {m, k}, {stride, 1}}, b = {(void *)0x200000, TK_F16, {k, n}, {n, 1}};
    tk_view2 c = {(void *)0x400000, TK_F32, {m, n}, {n, 1}};
    return tk_product(NULL, &a, &b, &c);
}

static tk_status grouped(uintptr_t address, int64_t rows, int32_t first)
{
    tk_view2 a = {(void *)address, TK_F16, {rows, 192}, {192, 1}}, c = {(void *)0x400000, TK_F32, {64, 64}, {64, 1}};
    tk_view3 b = {(void *)0x200000, TK_F16, {5, 192, 64}, {12288, 64, 1}};
    return tk_grouped(NULL, &a, &b, &c, first, 100, 3);
}

int main(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW), *symbol = library != NULL ? dlsym(library, "fake") : NULL;
    tk_view1 x = {(void *)0x1000, TK_F16, {100}, {1}}, y = x, bias = {(void *)0x3000, TK_F32, {100}, {1}}, odd = x;
    tk_pointer from = {(void *)0x1000, TK_F32}, to = {(void *)0x2000, TK_F32};
    if (symbol == NULL) {
        printf("%s\n", dlerror());
        return 1;
    }
    memcpy(&fake, &symbol, sizeof fake);
    setvbuf(stdout, NULL, _IONBF, 0);
    fake("context", 0);
    show("without a context", every(TK_F16, 100, NULL, 0, 0.5f, TK_EVERY_MODE_DEFAULT));
    fake("context", 1);
    fake("words", 13);
    show("the default mode", every(TK_F16, 100, NULL, 5, 0.5f, TK_EVERY_MODE_DEFAULT));
    show("the same", every(TK_F16, 100, NULL, 5, 0.5f, TK_EVERY_MODE_1));
    show("mode 2", every(TK_F32, 96, NULL, 5, 0.25f, TK_EVERY_MODE_2));
    show("mode 3", every(TK_F32, 96, NULL, 5, 0.25f, (enum tk_every_MODE)3));
    fake("words", 16);
    show("with a bias", every(TK_F16, 100, &bias, 5, 0.5f, TK_EVERY_MODE_2));
    show("another type", every(TK_BF16, 100, NULL, 5, 0.5f, TK_EVERY_MODE_1));
    show("another length", every(TK_F16, 1000, NULL, 5, 0.5f, TK_EVERY_MODE_1));
    show("nothing", every(TK_F16, 0, NULL, 5, 0.5f, TK_EVERY_MODE_1));
    show("a negative length", every(TK_F16, -1, NULL, 5, 0.5f, TK_EVERY_MODE_1));
    show("a length of 2^31", every(TK_F16, INT64_C(1) << 31, NULL, 5, 0.5f, TK_EVERY_MODE_1));
    show("p = 1", every(TK_F16, 100, NULL, 5, 1.0f, TK_EVERY_MODE_1));
    show("p is not a number", every(TK_F16, 100, NULL, 5, 0.0f / (float)(every(TK_F16, 0, NULL, 5, 0.5f, TK_EVERY_MODE_1) != TK_OK), TK_EVERY_MODE_1));
    show("a division by zero", every(TK_F16, 100, NULL, 8, 0.5f, TK_EVERY_MODE_1));
    show("a grid of 2^16", every(TK_F16, 100, NULL, -2000000, 0.5f, TK_EVERY_MODE_2));
    y.shape[0] = 99;
    show("other shapes", tk_every(NULL, &x, NULL, &y, 5, 0.5f, true, TK_EVERY_MODE_1));
    odd.data = NULL;
    show("no address", tk_every(NULL, &odd, NULL, &odd, 5, 0.5f, true, TK_EVERY_MODE_1));
    show("no view", tk_every(NULL, NULL, NULL, &y, 5, 0.5f, true, TK_EVERY_MODE_1));
    fake("words", 7);
    x.dtype = TK_I32;
    show("meets", tk_meets(NULL, &x));
    fake("words", 8);
    show("counts", tk_counts(NULL, &x));
    show("counts again", tk_counts(NULL, &x));
    show("counts in another stream", tk_counts((void *)0x70, &x));
    fake("recorded", 1);
    show("counts in a graph", tk_counts(NULL, &x));
    fake("recorded", 0);
    x.shape[0] = 101;
    show("more counts", tk_counts(NULL, &x));
    x.shape[0] = 100;
    fake("words", 7);
    show("pointers", tk_pointers(NULL, from, to, 1000, 0.5));
    show("pointers, aligned", tk_pointers(NULL, from, to, 1024, 0.5));
    show("a negative count", tk_pointers(NULL, from, to, -1, 0.5));
    {
        tk_view1 table = {(void *)0x5000, TK_U64, {2}, {1}}, lengths = {(void *)0x6000, TK_I32, {2}, {1}};
        fake("words", 9);
        show("a table of addresses", tk_lists(NULL, &table, &lengths));
        table.shape[0] = 3;
        show("a table of another length", tk_lists(NULL, &table, &lengths));
        table.dtype = TK_F32;
        show("a table of numbers", tk_lists(NULL, &table, &lengths));
    }
    fake("words", 9);
    show("names", tk_add(NULL, from, 3, 0.5f, 2, 7, 8));
    show("a float that is negated", tk_add(NULL, from, 3, -0.5f, 2, 7, 8));
    show("a quotient that does not fit", tk_add(NULL, from, INT32_MIN, 0.5f, -1, 7, 8));
    /* The words of three views and of the grid; then what was written into the maps. */
    fake("words", 18 + MAPS);
    show("matrices", product(256, 128, 192, 192));
    show("rows that lie apart", product(256, 128, 192, 512));
    fake("words", 18);
    show("rows that the copy engine does not take", product(256, 128, 192, 193));
    show("all rows are one", product(256, 128, 192, 0));
    show("nothing to add", product(256, 128, 0, 1));
    show("no rows", product(0, 128, 192, 192));
    fake("words", 23 + MAPS);
    show("a range of rows, and one of several matrices", grouped(0x100000, 100, 7));
    show("the same tensors again", grouped(0x100000, 100, 9));
    fake("words", 23);
    show("more rows than a range may have", grouped(0x1000000000000, 1 << 30, 9));
    show("an address that is smaller than the tensor is long", grouped(0x1000, 100, 9));
    fake("refuse", 1);
    show("matrices that are refused", product(256, 128, 192, 320));
    show("refused", tk_pointers(NULL, from, to, 1024, 0.5));
    fake("refuse", 0);
#ifdef HIP
    fake("major", 8);
#else
    fake("major", 12);
    fake("words", 7);
    show("a newer GPU", tk_pointers(NULL, from, to, 1024, 0.5));
    fake("major", 7);
#endif
    show("an older GPU", tk_pointers(NULL, from, to, 1024, 0.5));
    return 0;
}
