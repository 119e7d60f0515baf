/* Threads that share a bundle, each with arrays, errors and a bundle of its own. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "tklang.h"

static tk_bundle *shared;
/* Elements of all threads in turn, and a number that all count up. */
static int32_t turns[8 * 100], total;
static const char *path;

static int first(const int *slot);

static void *work(void *slot)
{
    int *wrong = (int *)slot, i, j;
    const int64_t hundred[] = {100}, one[] = {1}, every[] = {8};
    int32_t *own_turns = turns + first(wrong);
    tk_argument counted[] = {tk_tensor(&total, TK_I32, 1, one, NULL), tk_tensor(own_turns, TK_I32, 1, hundred, every)};
    for (i = 0; i < 50; i++) {
        float x[48], y[48];
        const int64_t shape[] = {3, 16}, other[] = {2, 16};
        tk_argument a[] = {tk_tensor(x, TK_F32, 2, shape, NULL), tk_absent(), tk_tensor(y, TK_F32, 2, shape, NULL)};
        tk_bundle *own = shared;
        for (j = 0; j < 48; j++) x[j] = (float)(i + j);
        if (i % 10 == 0 && tk_bundle_open(path, "cpu", &own) != TK_OK) ++*wrong;
        if (tk_bundle_launch(own, NULL, "scaled", a, 3, NULL, 0) != TK_OK) ++*wrong;
        for (j = 0; j < 48; j++) *wrong += y[j] != 2 * x[j];
        a[2] = tk_tensor(y, TK_F32, 2, other, NULL);
        if (tk_bundle_launch(own, NULL, "scaled", a, 3, NULL, 0) != TK_REQUIREMENT) ++*wrong;
        if (strstr(tk_bundle_error(), "requires") == NULL) ++*wrong;
        if (own != shared) tk_bundle_close(own);
        memset(own_turns, 0, sizeof *own_turns);
        if (tk_bundle_launch(shared, NULL, "count", counted, 2, NULL, 0) != TK_OK) ++*wrong;
        for (j = 0; j < 100; j++) *wrong += own_turns[8 * j] != 7;
        for (j = 0; j < 100; j++) own_turns[8 * j] = 0;
    }
    return NULL;
}

static int wrong[8];

static int first(const int *slot) { return (int)(slot - wrong); }

int main(int argc, char **argv)
{
    pthread_t threads[8];
    int i, all = 0;
    if (argc < 2 || tk_bundle_open(argv[1], "cpu", &shared) != TK_OK) return 1;
    path = argv[1];
    for (i = 0; i < 8; i++) if (pthread_create(&threads[i], NULL, work, &wrong[i]) != 0) return 1;
    for (i = 0; i < 8; i++) { pthread_join(threads[i], NULL); all += wrong[i]; }
    tk_bundle_close(shared);
    all += total != 8 * 50 * 100;
    printf("8 threads, %d wrong\n", all);
    return 0;
}
