/* The driver, found when it is first needed. HIP took the form of its calls from CUDA; what differs stands in this table. */

#if TKI_HIP
#define TKI_VENDOR "AMD runtime"
#define TKI_OLD "ROCm 5.5 or newer is needed"
#define TKI_NAME(cuda, hip) hip
/* Of hipDeviceAttribute_t: compute capability, multiprocessors, the most shared memory of a block. */
#define TKI_ASKED {23, 61, 63, 74}
/* Of the same: PCI domain, bus and device. */
#define TKI_PLACE {69, 67, 68}
static const char *const tki_libraries[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"};
#else
#define TKI_VENDOR "NVIDIA driver"
#define TKI_OLD "CUDA 12 or newer is needed"
#define TKI_NAME(cuda, hip) cuda
#define TKI_ASKED {75, 76, 16, 97}
#ifdef _WIN32
static const char *const tki_libraries[] = {"nvcuda.dll"};
#else
static const char *const tki_libraries[] = {"libcuda.so.1"};
#endif
#endif

typedef int (*tki_call)(void);

typedef struct tki_driver {
    int (*init)(unsigned);
    int (*get_error_name)(int, const char **);
    int (*get_error_string)(int, const char **);
#if !TKI_HIP
    int (*context)(void **);
    int (*context_id)(void *, unsigned long long *);
    int (*set_attribute)(void *, int, int);
#endif
    int (*device)(int *);
    int (*attribute)(int *, int, int);
    int (*load)(void **, const void *);
    int (*unload)(void *);
    int (*capture_mode)(int *);
    int (*function)(void **, void *, const char *);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
    int (*cooperative)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **);
    int (*alloc)(uint64_t *, size_t, void *);
    int (*release)(uint64_t, void *);
    int (*fill)(uint64_t, unsigned char, size_t, void *);
#if TKI_KEEPS
    int (*stream_number)(void *, unsigned long long *);
    int (*stream_recorded)(void *, int *);
    int (*stream_create)(void **, unsigned);
    int (*stream_wait)(void *);
    int (*stream_destroy)(void *);
#endif
#if TKI_MAPS > 0
    int (*encode)(void *, unsigned, unsigned, uint64_t, const uint64_t *, const uint64_t *, const unsigned *,
                  const unsigned *, unsigned, unsigned, unsigned, unsigned);
#endif
} tki_driver;

/* What is known of a context. */
typedef struct tki_device {
    uint64_t id;
#if TKI_HIP
    /* gfx90a is 90010: major * 10000 + minor * 100 + stepping. Several architectures have one compute capability. */
    long architecture;
#else
    int major, minor;
#endif
    int64_t sms, shared_bytes;
    struct tki_device *next;
} tki_device;

/* A function in a context. */
typedef struct tki_loaded {
    uint64_t id;
    void *function;
    struct tki_loaded *next;
} tki_loaded;

#if TKI_MAPS > 0
/* A number: that of an argument, or -1 and a value. */
typedef struct tki_word {
    int number;
    uint64_t value;
} tki_word;

/* A dimension of a tensor: how long it is, elements from one to the next, and whether the map begins one extent before the
   address. */
typedef struct tki_dimension {
    tki_word extent, stride;
    int before;
} tki_dimension;

/* A tensor that is described to the copy engine: the number of its address among the arguments; its dimensions, the fastest
   first; bytes of an element, lines of a box, bytes of a line; 1 for elements of f32. */
typedef struct tki_map {
    unsigned address, rank;
    tki_dimension dimensions[5];
    unsigned bytes, lines, span, real;
} tki_map;

/* CUtensorMap of cuda.h. */
typedef struct tki_encoded {
    TKI_ALIGNED(64) uint64_t words[16];
} tki_encoded;

/* A tensor: its address, and of each dimension how long it is and the bytes from one to the next. */
typedef struct tki_tensor {
    uint64_t address, extents[5], steps[5];
} tki_tensor;

/* The last tensors that a map was made of, and what was made. */
#define TKI_REMEMBERED 4
typedef struct tki_made {
    tki_tensor tensors[TKI_REMEMBERED];
    tki_encoded maps[TKI_REMEMBERED];
    unsigned count, next;
} tki_made;
#endif

/* A binary and what its launches have in common. */
typedef struct tki_variant {
    const unsigned char *binary;
    const char *kernel;
    const char *symbol;
    unsigned threads, shared_bytes, blocks_per_program;
    int cooperative, control;
#if TKI_MAPS > 0
    const tki_map *maps;
    tki_made *made;
    size_t map_count;
#endif
    TKI_ATOMIC(tki_loaded *) loaded;
} tki_variant;

static TKI_LOCAL char tki_text[1024];
static atomic_flag tki_busy = ATOMIC_FLAG_INIT;
static TKI_ATOMIC(tki_driver *) tki_found;
static TKI_ATOMIC(tki_device *) tki_devices;

static tk_status tki_fail(tk_status status, const char *form, ...)
{
    va_list list;
    va_start(list, form);
    vsnprintf(tki_text, sizeof tki_text, form, list);
    va_end(list);
    return status;
}

static void tki_lock(void)
{
    while (atomic_flag_test_and_set_explicit(&tki_busy, memory_order_acquire)) {
    }
}

static void tki_unlock(void)
{
    atomic_flag_clear_explicit(&tki_busy, memory_order_release);
}

/* ISO C has no conversion from an object pointer to a function pointer; POSIX says that the bits are the same. */
static int tki_symbol(void *library, const char *name, void *slot)
{
#ifdef _WIN32
    FARPROC symbol = GetProcAddress((HMODULE)library, name);
#else
    void *symbol = dlsym(library, name);
#endif
    memcpy(slot, &symbol, sizeof symbol);
    return symbol != NULL;
}

static tk_status tki_find_driver(tki_driver **out)
{
    static tki_driver driver;
    void *library = NULL;
    const char *missing = NULL;
    size_t i;
    tk_status status = TK_OK;
    int code;
    tki_lock();
    *out = atomic_load_explicit(&tki_found, memory_order_acquire);
    if (*out != NULL) {
        tki_unlock();
        return TK_OK;
    }
    for (i = 0; i < sizeof tki_libraries / sizeof *tki_libraries && library == NULL; i++) {
        library = TKI_OPEN(tki_libraries[i]);
    }
    if (library == NULL) {
        const char *why = TKI_WHY();
        tki_unlock();
        return tki_fail(TK_NO_DRIVER, "there is no " TKI_VENDOR ": %s; install one, or run on a machine with a GPU",
                       why != NULL ? why : "its library cannot be loaded");
    }
#define TKI_SYMBOL(field, cuda, hip) \
    if (!tki_symbol(library, TKI_NAME(cuda, hip), &driver.field) && missing == NULL) missing = TKI_NAME(cuda, hip)
    TKI_SYMBOL(init, "cuInit", "hipInit");
    TKI_SYMBOL(get_error_name, "cuGetErrorName", "hipDrvGetErrorName");
    TKI_SYMBOL(get_error_string, "cuGetErrorString", "hipDrvGetErrorString");
    TKI_SYMBOL(device, "cuCtxGetDevice", "hipGetDevice");
    TKI_SYMBOL(attribute, "cuDeviceGetAttribute", "hipDeviceGetAttribute");
    TKI_SYMBOL(load, "cuModuleLoadData", "hipModuleLoadData");
    TKI_SYMBOL(unload, "cuModuleUnload", "hipModuleUnload");
    TKI_SYMBOL(capture_mode, "cuThreadExchangeStreamCaptureMode", "hipThreadExchangeStreamCaptureMode");
    TKI_SYMBOL(function, "cuModuleGetFunction", "hipModuleGetFunction");
    TKI_SYMBOL(launch, "cuLaunchKernel", "hipModuleLaunchKernel");
    TKI_SYMBOL(cooperative, "cuLaunchCooperativeKernel", "hipModuleLaunchCooperativeKernel");
    TKI_SYMBOL(alloc, "cuMemAllocAsync", "hipMallocAsync");
    TKI_SYMBOL(release, "cuMemFreeAsync", "hipFreeAsync");
    TKI_SYMBOL(fill, "cuMemsetD8Async", "hipMemsetD8Async");
#if !TKI_HIP
    TKI_SYMBOL(context, "cuCtxGetCurrent", "");
    TKI_SYMBOL(set_attribute, "cuFuncSetAttribute", "");
    /* From CUDA 12 on: contexts have numbers that are never used again. */
    (void)tki_symbol(library, "cuCtxGetId", &driver.context_id);
#endif
#if TKI_KEEPS
    TKI_SYMBOL(stream_create, "cuStreamCreate", "");
    TKI_SYMBOL(stream_wait, "cuStreamSynchronize", "");
    TKI_SYMBOL(stream_destroy, "cuStreamDestroy_v2", "");
    /* From CUDA 12 on: streams have numbers that are never used again. */
    (void)tki_symbol(library, "cuStreamGetId", &driver.stream_number);
    (void)tki_symbol(library, "cuStreamIsCapturing", &driver.stream_recorded);
#endif
#undef TKI_SYMBOL
#if TKI_MAPS > 0
    (void)tki_symbol(library, "cuTensorMapEncodeTiled", &driver.encode);
#endif
    if (missing != NULL) {
        status = tki_fail(TK_NO_DRIVER, "the " TKI_VENDOR " is too old: it has no %s; " TKI_OLD, missing);
    } else if ((code = driver.init(0)) != 0) {
        const char *name = NULL;
        (void)driver.get_error_name(code, &name);
        status = tki_fail(TK_NO_DRIVER, "the " TKI_VENDOR " finds no GPU that it can use: %s", name != NULL ? name : "?");
    } else {
        *out = &driver;
        atomic_store_explicit(&tki_found, &driver, memory_order_release);
    }
    tki_unlock();
    return status;
}

static tk_status tki_refused(const tki_driver *driver, int code, const char *kernel, const char *what)
{
    const char *name = NULL, *text = NULL;
    (void)driver->get_error_name(code, &name);
    (void)driver->get_error_string(code, &text);
    return tki_fail(TK_FAILED, "kernel `%s` %s: %s (%s)", kernel, what, text != NULL ? text : "?", name != NULL ? name : "?");
}

#if TKI_HIP
/* The architecture of a GPU, as the kernel driver tells it for the place where it is plugged in; 0 where it does not. The
   location is bus, device and function, of 8, 5 and 3 bits. */
static long tki_architecture(const tki_driver *driver, int ordinal)
{
    static const int asked[3] = TKI_PLACE;
    const char *system = getenv("TK_SYSFS");
    char path[4096], line[256];
    int place[3], node, i;
    for (i = 0; i < 3; i++) {
        if (driver->attribute(&place[i], asked[i], ordinal) != 0) {
            return 0;
        }
    }
    for (node = 0;; node++) {
        long domain = 0, location = -1, version = 0;
        FILE *file;
        snprintf(path, sizeof path, "%s/class/kfd/kfd/topology/nodes/%d/properties", system != NULL ? system : "/sys", node);
        file = fopen(path, "r");
        if (file == NULL) {
            return 0;
        }
        while (fgets(line, sizeof line, file) != NULL) {
            (void)(sscanf(line, "domain %ld", &domain) == 1 || sscanf(line, "location_id %ld", &location) == 1 ||
                   sscanf(line, "gfx_target_version %ld", &version) == 1);
        }
        fclose(file);
        if (version > 0 && domain == place[0] && location >= 0 && (location >> 8 & 0xff) == place[1] &&
            (location >> 3 & 0x1f) == place[2]) {
            return version;
        }
    }
}
#endif

/* The driver, and what is known of the current context. */
static tk_status tki_enter(const tki_driver **out, const tki_device **device)
{
    tki_driver *driver = atomic_load_explicit(&tki_found, memory_order_acquire);
    tki_device *d;
#if !TKI_HIP
    void *context = NULL;
    unsigned long long number = 0;
#endif
#if TKI_HIP
    long architecture;
#endif
    uint64_t id;
    int ordinal = 0, value[4] = {0, 0, 0, 0};
    /* Compute capability, multiprocessors, the most shared memory of a block. */
    static const int asked[4] = TKI_ASKED;
    size_t i;
    if (driver == NULL) {
        tk_status status = tki_find_driver(&driver);
        if (status != TK_OK) {
            return status;
        }
    }
    *out = driver;
#if TKI_HIP
    /* A device has one context, which its first use makes. */
    if (driver->device(&ordinal) != 0) {
        return tki_fail(TK_NO_CONTEXT, "this thread has no HIP device; call hipSetDevice");
    }
    id = (uint64_t)ordinal + 1;
#else
    if (driver->context(&context) != 0 || context == NULL) {
        return tki_fail(TK_NO_CONTEXT, "no CUDA context is current in this thread; call cuCtxSetCurrent or cudaSetDevice");
    }
    id = (uint64_t)(uintptr_t)context;
    if (driver->context_id != NULL && driver->context_id(context, &number) == 0) {
        id = number;
    }
#endif
    for (d = atomic_load_explicit(&tki_devices, memory_order_acquire); d != NULL; d = d->next) {
        if (d->id == id) {
            *device = d;
            return TK_OK;
        }
    }
#if !TKI_HIP
    if (driver->device(&ordinal) != 0) {
        return tki_fail(TK_NO_CONTEXT, "the current CUDA context has no device");
    }
#endif
    for (i = 0; i < 4; i++) {
        if (driver->attribute(&value[i], asked[i], ordinal) != 0) {
            return tki_fail(TK_FAILED, "the " TKI_VENDOR " does not say what the GPU is");
        }
    }
#if TKI_HIP
    architecture = tki_architecture(driver, ordinal);
    if (architecture <= 0) {
        return tki_fail(TK_FAILED, "the kernel driver `amdgpu` does not say which architecture the GPU has, in /sys/class/kfd/kfd/topology");
    }
#endif
    d = (tki_device *)malloc(sizeof *d);
    if (d == NULL) {
        return tki_fail(TK_FAILED, "there is no memory left");
    }
    d->id = id;
#if TKI_HIP
    d->architecture = architecture;
#else
    d->major = value[0];
    d->minor = value[1];
#endif
    d->sms = value[2];
    d->shared_bytes = value[3];
    tki_lock();
    d->next = atomic_load_explicit(&tki_devices, memory_order_relaxed);
    atomic_store_explicit(&tki_devices, d, memory_order_release);
    tki_unlock();
    *device = d;
    return TK_OK;
}

/* Loads a binary into the current context. */
static tk_status tki_load(const tki_driver *driver, const tki_device *device, tki_variant *variant, void **function)
{
    void *module = NULL;
    tki_loaded *l;
    int code, mode = 2;
    if ((int64_t)variant->shared_bytes > device->shared_bytes) {
        return tki_fail(TK_FAILED, "kernel `%s` needs %u bytes of shared memory for a block, and the GPU has %lld", variant->kernel,
                       variant->shared_bytes, (long long)device->shared_bytes);
    }
    tki_lock();
    for (l = atomic_load_explicit(&variant->loaded, memory_order_relaxed); l != NULL; l = l->next) {
        if (l->id == device->id) {
            *function = l->function;
            tki_unlock();
            return TK_OK;
        }
    }
    /* A stream that is being recorded allows loading in relaxed mode alone. */
    (void)driver->capture_mode(&mode);
    code = driver->load(&module, variant->binary);
    (void)driver->capture_mode(&mode);
    if (code == 0) {
        code = driver->function(function, module, variant->symbol);
    }
#if !TKI_HIP
    /* A function has 48 KiB without being asked; 8 is CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES. */
    if (code == 0 && variant->shared_bytes > 49152) {
        code = driver->set_attribute(*function, 8, (int)variant->shared_bytes);
    }
#endif
    l = code == 0 ? (tki_loaded *)malloc(sizeof *l) : NULL;
    if (l != NULL) {
        l->id = device->id;
        l->function = *function;
        l->next = atomic_load_explicit(&variant->loaded, memory_order_relaxed);
        atomic_store_explicit(&variant->loaded, l, memory_order_release);
    }
    tki_unlock();
    if (l == NULL && module != NULL) {
        (void)driver->unload(module);
    }
    if (code != 0) {
        return tki_refused(driver, code, variant->kernel, "cannot be loaded");
    }
    return l != NULL ? TK_OK : tki_fail(TK_FAILED, "there is no memory left");
}

#if TKI_MAPS > 0
static uint64_t tki_number(tki_word word, const uint64_t *words)
{
    return word.number < 0 ? word.value : words[word.number];
}

/* Describes a tensor: tiled, a swizzle over the bytes of a line, 256 bytes at a time from memory, 0 outside. The bits are copied
   as they are: only where elements are added to memory does a type matter. The first dimension has no stride: its elements lie together. */
static int tki_encode(const tki_driver *driver, const tki_map *map, const tki_tensor *tensor, tki_encoded *out)
{
    static const unsigned every[5] = {1, 1, 1, 1, 1};
    const unsigned box[5] = {map->span / map->bytes, map->lines, 1, 1, 1};
    const unsigned type = map->real ? 7 : map->bytes == 1 ? 0 : map->bytes == 2 ? 1 : map->bytes == 4 ? 2 : 4;
    const unsigned swizzle = map->span == 32 ? 1 : map->span == 64 ? 2 : 3;
    return driver->encode(out->words, type, map->rank, tensor->address, tensor->extents, tensor->steps + 1, box, every, 0,
                          swizzle, 2, 0);
}

/* The map of a tensor, which is made once while it is among the last ones. */
static int tki_describe(const tki_driver *driver, const tki_map *map, tki_made *made, const uint64_t *words, tki_encoded *out)
{
    tki_tensor tensor;
    unsigned i;
    int code = 0;
    memset(&tensor, 0, sizeof tensor);
    tensor.address = words[map->address];
    for (i = 0; i < map->rank; i++) {
        const tki_dimension *d = &map->dimensions[i];
        tensor.steps[i] = tki_number(d->stride, words) * map->bytes;
        tensor.extents[i] = tki_number(d->extent, words);
        tensor.address -= d->before ? tensor.extents[i] * tensor.steps[i] : 0;
    }
    tki_lock();
    for (i = 0; i < made->count; i++) {
        if (memcmp(&made->tensors[i], &tensor, sizeof tensor) == 0) {
            *out = made->maps[i];
            break;
        }
    }
    if (i == made->count) {
        code = tki_encode(driver, map, &tensor, out);
        if (code == 0) {
            made->tensors[made->next] = tensor;
            made->maps[made->next] = *out;
            made->next = (made->next + 1) % TKI_REMEMBERED;
            made->count += made->count < TKI_REMEMBERED;
        }
    }
    tki_unlock();
    return code;
}
#endif

/* Launches the programs of a grid; words are the arguments, and room for the grid behind them. */
static tk_status tki_start(const tki_driver *driver, const tki_device *device, tki_variant *variant, const int64_t grid[3],
                          uint64_t *words, size_t count, uint64_t control, void *stream)
{
    void *function = NULL, *pointers[TKI_MOST + 4 + TKI_MAPS];
#if TKI_MAPS > 0
    tki_encoded maps[TKI_MAPS];
#endif
    const tki_loaded *l;
    /* The binaries of AMD have their shared memory themselves. */
    const unsigned shared_bytes = TKI_HIP ? 0 : variant->shared_bytes;
    unsigned blocks;
    size_t i;
    int code;
    for (i = 0; i < 3; i++) {
        int64_t most = i == 0 ? INT32_MAX : 65535;
        if (grid[i] < 0 || grid[i] > most) {
            return tki_fail(TK_GRID, "the grid of kernel `%s` has %lld programs on axis %d, and a GPU takes 0 to %lld",
                           variant->kernel, (long long)grid[i], (int)i, (long long)most);
        }
    }
    if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) {
        return TK_OK;
    }
    for (l = atomic_load_explicit(&variant->loaded, memory_order_acquire); l != NULL; l = l->next) {
        if (l->id == device->id) {
            function = l->function;
            break;
        }
    }
    if (function == NULL) {
        tk_status status = tki_load(driver, device, variant, &function);
        if (status != TK_OK) {
            return status;
        }
    }
    for (i = 0; i < 3; i++) {
        words[count + i] = (uint64_t)grid[i];
    }
    words[count + 3] = control;
    count += variant->control ? 4 : 3;
    for (i = 0; i < count; i++) {
        pointers[i] = &words[i];
    }
#if TKI_MAPS > 0
    if (variant->map_count > 0 && driver->encode == NULL) {
        return tki_fail(TK_NO_DRIVER, "the NVIDIA driver is too old for kernel `%s`: it has no cuTensorMapEncodeTiled; CUDA 12 or newer is needed",
                       variant->kernel);
    }
    for (i = 0; i < variant->map_count; i++) {
        code = tki_describe(driver, &variant->maps[i], &variant->made[i], words, &maps[i]);
        if (code != 0) {
            return tki_refused(driver, code, variant->kernel, "cannot create a tensor map for an argument");
        }
        pointers[count + i] = &maps[i];
    }
#endif
    blocks = (unsigned)grid[0] * variant->blocks_per_program;
    if (variant->cooperative) {
        code = driver->cooperative(function, blocks, (unsigned)grid[1], (unsigned)grid[2], variant->threads, 1, 1,
                                   shared_bytes, stream, pointers);
    } else {
        code = driver->launch(function, blocks, (unsigned)grid[1], (unsigned)grid[2], variant->threads, 1, 1,
                              shared_bytes, stream, pointers, NULL);
    }
    return code == 0 ? TK_OK : tki_refused(driver, code, variant->kernel, "cannot be launched");
}
