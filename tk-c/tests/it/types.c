/* What a launch says of each element type. */
#include <stdio.h>
#include "tklang.h"

#define TRY(type) do { a[0] = tk_tensor(x, type, 2, shape, NULL); \
    printf(#type " %s\n", tk_bundle_launch(b, NULL, "scaled", a, 3, NULL, 0) == TK_OK ? "ok" : tk_bundle_error()); } while (0)

int main(int argc, char **argv)
{
    static double x[16];
    const int64_t shape[] = {1, 16};
    tk_argument a[] = {tk_absent(), tk_absent(), tk_tensor(x, TK_I8, 2, shape, NULL)};
    tk_bundle *b;
    if (argc < 2 || tk_bundle_open(argv[1], "cpu", &b) != TK_OK) return 1;
    TRY(TK_BOOL); TRY(TK_I8); TRY(TK_I16); TRY(TK_I32); TRY(TK_I64); TRY(TK_U8); TRY(TK_U16); TRY(TK_U32); TRY(TK_U64);
    TRY(TK_F8E4M3); TRY(TK_F8E5M2); TRY(TK_F16); TRY(TK_BF16); TRY(TK_F32); TRY(TK_F64); TRY(TK_E2M1); TRY(TK_E8M0);
    TRY(TK_F8E4M3FNUZ); TRY(TK_F8E5M2FNUZ);
    tk_bundle_close(b);
    return 0;
}
