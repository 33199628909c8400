// Compiles and launches kernels with the DLL in llvmlite's wheel for Windows, as `tinote/runtime/jit.py` does.
//
//   windows_jit llvmlite.dll cpu folder count
//
// The folder has `runtime.ll` and, for each launch, `K.ll` and `K.launch`: the number of threads, the bytes of private
// copies a thread, how many slots and how many blocks of memory; for each slot the block that it points into, or -1, and
// its offset or value; for each block its size and its bytes. `K.result` gets the status and the bytes afterwards. Every
// word has 8 bytes. What the runtime asks of Python is here.

#include "layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __declspec(dllexport)

struct element {
    uint8_t kind;
    const char *value;
    size_t length;
};

struct symbol {
    const char *name;
    uint64_t address;
};

enum { OBJECT = 2, LIBRARY = 3, FOR_OBJECTS = 1 };

// --- an interpreter that nobody else waits for

EXPORT void *PyLong_AsVoidPtr(void *number) {
    return number;
}

EXPORT void *PyLong_FromLong(long number) {
    return (void *)(intptr_t)(number + 1); // not null
}

EXPORT int PyErr_BadArgument(void) {
    return 0;
}

EXPORT int PyErr_CheckSignals(void) {
    return 0;
}

EXPORT void *PyEval_SaveThread(void) {
    return NULL;
}

EXPORT void PyEval_RestoreThread(void *state) {
    (void)state;
}

EXPORT void *PyObject_CallObject(void *callable, void *arguments) {
    (void)callable, (void)arguments;
    return NULL;
}

EXPORT void Py_DecRef(void *object) {
    (void)object;
}

// --- the DLL

static HMODULE library;
static const char *folder;
static char *fault;

static void check(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "%s: %s\n", what, fault != NULL ? fault : "failed");
    exit(1);
}

static void *function(const char *name) {
    void *found = (void *)GetProcAddress(library, name);
    check(found != NULL, name);
    return found;
}

#define CALL(result, name, parameters, ...) (((result(*) parameters)function("LLVMPY_" name))(__VA_ARGS__))

static FILE *file(const char *name, const char *mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *found = fopen(path, mode);
    check(found != NULL, path);
    return found;
}

static char *text_of(const char *name) {
    FILE *from = file(name, "rb");
    fseek(from, 0, SEEK_END);
    size_t length = (size_t)ftell(from);
    rewind(from);
    char *text = calloc(length + 1, 1);
    check(fread(text, 1, length, from) == length, name);
    fclose(from);
    return text;
}

static const char *triple;

static void *machine_for(const char *cpu) {
    void *target = CALL(void *, "GetTargetFromTriple", (const char *, char **), triple, &fault);
    check(target != NULL, triple);
    return CALL(void *, "CreateTargetMachine",
                (void *, const char *, const char *, const char *, int, const char *, const char *, int, int, const char *),
                target, triple, cpu, "", 3, "pic", "large", 0, 1, "");
}

static struct element object_of(void *machine, const char *name) {
    void *context = CALL(void *, "ContextCreate", (void));
    void *module = CALL(void *, "ParseAssembly", (void *, const char *, char **), context, text_of(name), &fault);
    check(module != NULL, name);
    void *data = CALL(void *, "CreateTargetMachineData", (void *), machine);
    char *layout;
    CALL(void, "CopyStringRepOfTargetData", (void *, char **), data, &layout);
    CALL(void, "SetTarget", (void *, const char *), module, triple);
    CALL(void, "SetDataLayout", (void *, const char *), module, layout);
    void *buffer = CALL(void *, "TargetMachineEmitToMemory", (void *, void *, int, char **), machine, module,
                        FOR_OBJECTS, &fault);
    check(buffer != NULL, name);
    const char *begin = CALL(const char *, "GetBufferStart", (void *), buffer);
    return (struct element){OBJECT, begin, CALL(size_t, "GetBufferSize", (void *), buffer)};
}

static void link_to(void *jit, const char *name, struct element *elements, size_t count, struct symbol *exports,
                    size_t exported) {
    void *tracker = CALL(void *, "LLJIT_Link",
                         (void *, const char *, struct element *, size_t, struct symbol *, size_t, struct symbol *,
                          size_t, char **),
                         jit, name, elements, count, NULL, 0, exports, exported, &fault);
    check(tracker != NULL, name);
}

// --- launches

static int64_t word(FILE *from) {
    int64_t found;
    check(fread(&found, sizeof found, 1, from) == 1, "a word");
    return found;
}

static void *zeros(size_t bytes) {
    void *memory = _aligned_malloc(bytes, 2 * CACHE_LINE);
    memset(memory, 0, bytes);
    return memory;
}

static void run(void *launch(void *, void **, ptrdiff_t), struct pool *pool, kernel_entry *entry, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "%s.launch", name);
    FILE *from = file(path, "rb");
    int64_t threads = word(from), stride = word(from), slots = word(from), count = word(from);
    char *place = zeros(sizeof(struct header) + sizeof(struct block) + 8 * (size_t)slots);
    struct block *block = (struct block *)(place + sizeof(struct header));
    int64_t *blocks = calloc((size_t)slots, sizeof *blocks);
    for (int64_t slot = 0; slot < slots; slot++) {
        blocks[slot] = word(from);
        block->slots[slot] = word(from);
    }
    char **memories = calloc((size_t)count, sizeof *memories);
    size_t *sizes = calloc((size_t)count, sizeof *sizes);
    for (int64_t k = 0; k < count; k++) {
        sizes[k] = (size_t)word(from);
        memories[k] = zeros(sizes[k]);
        check(fread(memories[k], 1, sizes[k], from) == sizes[k], "memory");
    }
    fclose(from);
    for (int64_t slot = 0; slot < slots; slot++)
        if (blocks[slot] >= 0) block->slots[slot] += (int64_t)memories[blocks[slot]];
    header_of(block)->entry = entry;
    block->pool = pool;
    block->scratch = zeros((size_t)(stride * threads) + 1);
    block->scratch_stride = stride;
    block->num_threads = (int32_t)threads;
    block->memory_limit = (uint64_t)1 << 30;
    atomic_store(&block->stop, STOP_IDLE);
    void *arguments[] = {block};
    int64_t status = (intptr_t)launch(NULL, arguments, 1) - 1;
    snprintf(path, sizeof path, "%s.result", name);
    FILE *to = file(path, "wb");
    fwrite(&status, sizeof status, 1, to);
    for (int64_t k = 0; k < count; k++) fwrite(memories[k], 1, sizes[k], to);
    fclose(to);
}

int main(int count, char **arguments) {
    check(count == 5, "windows_jit llvmlite.dll cpu folder count");
    library = LoadLibraryA(arguments[1]);
    check(library != NULL, arguments[1]);
    folder = arguments[3];
    CALL(void, "InitializeNativeTarget", (void));
    CALL(void, "InitializeNativeAsmPrinter", (void));
    char *found;
    CALL(void, "GetProcessTriple", (char **), &found);
    triple = found;
    printf("%s\n", triple);
    void *machine = machine_for(arguments[2]);
    void *jit = CALL(void *, "CreateLLJITCompiler", (void *, _Bool, _Bool, char **), machine_for(arguments[2]), true,
                     false, &fault);
    check(jit != NULL, "the JIT");
    struct element runtime[] = {object_of(machine, "runtime.ll"), {LIBRARY, "", 0}};
    struct symbol exports[] = {{"tn_launch", 0}, {"tn_pool_new", 0}, {"tn_pool_quit", 0}};
    link_to(jit, "tinote.runtime", runtime, 2, exports, 3);
    struct pool *(*pool_new)(uintptr_t, int32_t, int64_t) = (void *)exports[1].address;
    struct pool *pool = pool_new(GetCurrentThreadId(), 2, 30000);
    for (int k = 0; k < atoi(arguments[4]); k++) {
        char name[16], path[32];
        snprintf(name, sizeof name, "%d", k);
        snprintf(path, sizeof path, "%s.ll", name);
        struct element elements[] = {object_of(machine, path), {LIBRARY, "tinote.runtime", 14}, {LIBRARY, "", 0}};
        struct symbol entry = {"entry", 0};
        link_to(jit, name, elements, 3, &entry, 1);
        run((void *)exports[0].address, pool, (void *)entry.address, name);
        printf("%s\n", name);
    }
    int32_t (*pool_quit)(struct pool *) = (void *)exports[2].address;
    for (int tries = 0; pool_quit(pool) > 0; tries++) {
        check(tries < 30000, "the workers end");
        Sleep(1);
    }
    return 0;
}
