/* Launches on the CPU through tklang.h, and everything that it refuses. Prints what happened, a line each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tklang.h"

static const char *shown(tk_status status) { return status == TK_OK ? "ok" : tk_bundle_error(); }

static void numbers(const char *what, const float *x, int n)
{
    int i;
    printf("%s", what);
    for (i = 0; i < n; i++) printf(" %g", (double)x[i]);
    printf("\n");
}

static const int64_t matrix[] = {2, 3}, vector[] = {3}, none[] = {0, 3}, negative[] = {-1, 3}, sixteen[] = {16};

static void refuse(tk_bundle *b, const char *kernel, const tk_argument *a, size_t n, const tk_choice *c, size_t m)
{
    tk_status status = tk_bundle_launch(b, NULL, kernel, a, n, c, m);
    printf("%d %s\n", (int)status, shown(status));
}

static void launches(tk_bundle *b)
{
    float x[] = {1, 2, 3, 4, 5, 6}, y[6] = {0}, by[16] = {10, 20, 30}, z[16] = {0}, both[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int64_t by_columns[] = {1, 2}, backwards[] = {-3, -1};
    const uint16_t h[] = {0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600}; /* 1 to 6 */
    uint16_t k[6] = {0};
    const int32_t few[] = {7, 8}, large[] = {7, 100};
    const int64_t two[] = {2}, line[] = {1, 4};
    tk_choice block = {"BLOCK", "32"};
    {
        tk_argument a[] = {tk_tensor(x, TK_F32, 2, matrix, NULL), tk_absent(), tk_tensor(y, TK_F32, 2, matrix, NULL)};
        printf("%s\n", shown(tk_bundle_launch(b, NULL, "scaled", a, 3, NULL, 0)));
        numbers("twice:", y, 6);
    }
    {
        tk_argument a[] = {tk_tensor(x, TK_F32, 2, matrix, by_columns), tk_tensor(by, TK_F32, 1, sixteen, NULL),
                           tk_tensor(y + 5, TK_F32, 2, matrix, backwards), tk_integer(-1)};
        printf("%s\n", shown(tk_bundle_launch(b, NULL, "scaled", a, 4, NULL, 0)));
        numbers("strides:", y, 6);
    }
    {
        tk_argument a[] = {tk_tensor(h, TK_F16, 2, matrix, NULL), tk_absent(), tk_tensor(k, TK_F16, 2, matrix, NULL),
                           tk_number(0.5)};
        printf("%s\n", shown(tk_bundle_launch(b, NULL, "scaled", a, 4, NULL, 0)));
        printf("halves: %04x %04x %04x\n", k[0], k[2], k[5]);
    }
    {
        /* Arrays that overlap. */
        tk_argument a[] = {tk_tensor(both, TK_F32, 2, line, NULL), tk_absent(), tk_tensor(both + 2, TK_F32, 2, line, NULL)};
        printf("%s\n", shown(tk_bundle_launch(b, NULL, "scaled", a, 3, NULL, 0)));
        numbers("overlap:", both, 8);
    }
    {
        tk_argument a[] = {tk_tensor(NULL, TK_F32, 2, none, NULL), tk_absent(), tk_tensor(NULL, TK_F32, 2, none, NULL)};
        printf("empty: %s\n", shown(tk_bundle_launch(b, NULL, "scaled", a, 3, NULL, 0)));
    }
    {
        tk_argument a[] = {tk_tensor(x, TK_F32, 1, vector, NULL), tk_tensor(z, TK_F32, 1, sixteen, NULL), tk_integer(3)};
        printf("%s\n", shown(tk_bundle_launch(b, NULL, "pointers", a, 3, &block, 1)));
        numbers("pointers:", z, 4);
    }
    {
        tk_argument a[] = {tk_tensor(few, TK_I32, 1, two, NULL)};
        printf("%s\n", shown(tk_bundle_launch(b, NULL, "says", a, 1, NULL, 0)));
        printf("%s", tk_bundle_printed(b));
        printf("then: \"%s\"\n", tk_bundle_printed(b));
        a[0] = tk_tensor(large, TK_I32, 1, two, NULL);
        refuse(b, "says", a, 1, NULL, 0);
        (void)tk_bundle_printed(b);
    }
}

static void refusals(tk_bundle *b)
{
    float x[6] = {0};
    tk_choice block = {"BLOCK", "64"}, other = {"SIZE", "1"}, nothing = {NULL, "1"}, right = {"BLOCK", "16"};
    tk_argument t = tk_tensor(x, TK_F32, 2, matrix, NULL), v = tk_tensor(x, TK_F32, 1, vector, NULL);
    tk_argument a[] = {t, tk_absent(), t, tk_absent()};
    tk_argument p[] = {t, t, tk_integer(3)};
    refuse(NULL, "scaled", a, 4, NULL, 0);
    refuse(b, NULL, a, 4, NULL, 0);
    refuse(b, "scale", a, 4, NULL, 0);
    refuse(b, "sc\xff", a, 4, NULL, 0);
    refuse(b, "scaled", NULL, 4, NULL, 0);
    refuse(b, "scaled", a, 2, NULL, 0);
    a[0] = v;
    refuse(b, "scaled", a, 4, NULL, 0);
    a[0] = tk_tensor(x, TK_I32, 2, matrix, NULL);
    refuse(b, "scaled", a, 4, NULL, 0);
    a[0] = tk_tensor(x, (tk_dtype)99, 2, matrix, NULL);
    refuse(b, "scaled", a, 4, NULL, 0);
    a[0] = tk_tensor(x, TK_F32, 6, matrix, NULL);
    refuse(b, "scaled", a, 4, NULL, 0);
    a[0] = tk_tensor(x, TK_F32, 2, NULL, NULL);
    refuse(b, "scaled", a, 4, NULL, 0);
    a[0] = tk_tensor(NULL, TK_F32, 2, matrix, NULL);
    refuse(b, "scaled", a, 4, NULL, 0);
    a[0] = tk_tensor(x, TK_F32, 2, negative, NULL);
    refuse(b, "scaled", a, 4, NULL, 0);
    a[0] = tk_tensor(x, TK_F32, 2, none, NULL);
    refuse(b, "scaled", a, 4, NULL, 0);
    {
        /* Extents and strides that leave memory. */
        const int64_t huge[] = {INT64_MAX, INT64_MAX}, two[] = {2, 2}, up[] = {INT64_MAX, 1}, down[] = {INT64_MIN, 1};
        a[0] = tk_tensor(x, TK_F32, 2, huge, NULL);
        refuse(b, "scaled", a, 4, NULL, 0);
        a[0] = tk_tensor(x, TK_F32, 2, two, up);
        refuse(b, "scaled", a, 4, NULL, 0);
        a[0] = tk_tensor(x, TK_F32, 2, two, down);
        refuse(b, "scaled", a, 4, NULL, 0);
        refuse(b, "scaled", a, (size_t)1 << 62, NULL, 0);
    }
    a[0] = tk_integer(1);
    refuse(b, "scaled", a, 4, NULL, 0);
    a[0].kind = (tk_argument_kind)17;
    refuse(b, "scaled", a, 4, NULL, 0);
    a[0] = t;
    a[3] = t;
    refuse(b, "scaled", a, 4, NULL, 0);
    refuse(b, "pointers", p, 3, &block, 1);
    refuse(b, "pointers", p, 3, &other, 1);
    refuse(b, "pointers", p, 3, &nothing, 1);
    refuse(b, "pointers", p, 3, NULL, 1);
    refuse(b, "pointers", p, 3, NULL, 0);
    p[2] = tk_number(0.5);
    refuse(b, "pointers", p, 3, &right, 1);
    p[2] = tk_integer(INT64_C(1) << 40);
    refuse(b, "pointers", p, 3, &right, 1);
    {
        tk_argument s[] = {tk_tensor(x, TK_I32, 1, vector, NULL), tk_integer(-1)};
        refuse(b, "sized", s, 2, NULL, 0);
    }
}

static void opened(const char *path, const char *device)
{
    tk_bundle *b = (tk_bundle *)(void *)&b;
    tk_status status = tk_bundle_open(path, device, &b);
    printf("%d %s%s\n", (int)status, shown(status), b == NULL ? "" : " (not NULL)");
    tk_bundle_close(b);
}

/* argv: a bundle, then files that are none. */
int main(int argc, char **argv)
{
    tk_bundle *b = NULL;
    tk_status status;
    size_t i;
    int n;
    if (argc < 2) return 2;
    printf("before: \"%s\"\n", tk_bundle_error());
    printf("%s\n", shown(tk_bundle_open(argv[1], "cpu", &b)));
    if (b == NULL) return 1;
    for (i = 0; tk_bundle_kernel(b, i) != NULL; i++) printf("kernel %s\n", tk_bundle_kernel(b, i));
    launches(b);
    refusals(b);
    printf("unopened: \"%s\" %d\n", tk_bundle_printed(NULL), tk_bundle_kernel(NULL, 0) == NULL);
    tk_bundle_close(b);
    for (n = 2; n < argc; n++) opened(argv[n], "cpu");
    opened(NULL, "cpu");
    opened(argv[1], NULL);
    opened(argv[1], "");
    opened(argv[1], "gpu");
    opened(argv[1], "cpu:1");
    opened(argv[1], "cuda:x");
    printf("%d\n", (int)tk_bundle_open(argv[1], "cuda:99", &b));
    status = tk_bundle_open(argv[1], "cpu", NULL);
    printf("%d %s\n", (int)status, shown(status));
    status = tk_bundle_read("TKB", 3, "cpu", &b);
    printf("%d %s\n", (int)status, shown(status));
    status = tk_bundle_read(NULL, 3, "cpu", &b);
    printf("%d %s\n", (int)status, shown(status));
    {
        static unsigned char bytes[1 << 20];
        FILE *f = fopen(argv[1], "rb");
        size_t count = f != NULL ? fread(bytes, 1, sizeof bytes, f) : 0;
        printf("read: %s\n", shown(tk_bundle_read(bytes, count, "cpu", &b)));
        memset(bytes, 0xff, sizeof bytes);
        printf("kernel %s\n", tk_bundle_kernel(b, 0));
        tk_bundle_close(b);
        if (f != NULL) fclose(f);
    }
    tk_bundle_close(NULL);
    return 0;
}
