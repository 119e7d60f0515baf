/* What C11 and C++17 spell differently, and POSIX and Windows. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#define TKI_OPEN(name) ((void *)LoadLibraryA(name))
#define TKI_WHY() "its library cannot be loaded"
#else
#include <dlfcn.h>
#define TKI_OPEN(name) dlopen(name, RTLD_NOW | RTLD_LOCAL)
#define TKI_WHY() dlerror()
#endif

#ifdef __cplusplus
#include <atomic>
#define TKI_ATOMIC(type) std::atomic<type>
#define TKI_LOCAL thread_local
#define TKI_ALIGNED(bytes) alignas(bytes)
using std::atomic_flag;
using std::atomic_flag_clear_explicit;
using std::atomic_flag_test_and_set_explicit;
using std::atomic_load_explicit;
using std::atomic_store_explicit;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
#else
#include <stdatomic.h>
#define TKI_ATOMIC(type) _Atomic(type)
#define TKI_LOCAL _Thread_local
#define TKI_ALIGNED(bytes) _Alignas(bytes)
#endif

