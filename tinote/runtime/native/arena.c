// The arenas: one bump allocator a thread for the values that the iterations of a launch save.
//
//   tn_arena_alloc(block, tid, bytes) -> pointer
//       64-byte aligned; null past the launch's memory limit or when the system has no more
//   tn_arena_mark(block, tid) -> mark       the present top
//   tn_arena_release(block, tid, mark)      back to it
//   tn_arena_free(block)                    gives everything back to the system (when the block goes)
//
// An arena is a chain of chunks of growing size; the one in use has an offset, all behind it are empty. A mark counts
// the capacity of the chunks before plus the offset, so it needs no pointer. Chunks stay for the next launch of the
// block as long as they are few. Nothing exists until the first allocation.

#include "runtime.h"

#include <string.h>

#define FIRST_CAPACITY ((uint64_t)256 << 10)
#define LARGEST_CAPACITY ((uint64_t)64 << 20)
#define KEPT_BYTES ((uint64_t)64 << 20) // of chunks that a block keeps for its next launch

static inline struct arena *arena_of(struct block *block, int32_t tid) {
    struct arena *arenas = atomic_load_explicit(&block->arenas, memory_order_acquire);
    return arenas == NULL ? NULL : &arenas[tid];
}

// The arena of a thread where none exists yet; null when the system has no memory.
NOT_INLINED static struct arena *create_arenas(struct block *block, int32_t tid) {
    size_t bytes = (size_t)block->num_threads * sizeof(struct arena);
    struct arena *created = allocate(bytes), *known = NULL;
    if (created == NULL) return NULL;
    memset(created, 0, bytes);
    // Of several threads that come first, one's arenas are used.
    if (!atomic_compare_exchange_strong_explicit(&block->arenas, &known, created, memory_order_acq_rel,
                                                 memory_order_acquire)) {
        deallocate(created);
        return &known[tid];
    }
    return &created[tid];
}

// A chunk that counts against the launch's limit, which all threads share; null past it.
static struct chunk *new_chunk(struct block *block, uint64_t capacity) {
    struct header *header = header_of(block);
    uint64_t before = atomic_fetch_add_explicit(&header->committed, capacity, memory_order_relaxed);
    struct chunk *chunk = NULL;
    if (before + capacity <= block->memory_limit) chunk = allocate(sizeof(struct chunk) + capacity);
    if (chunk == NULL)
        atomic_fetch_sub_explicit(&header->committed, capacity, memory_order_relaxed);
    else
        *chunk = (struct chunk){.capacity = capacity};
    return chunk;
}

static void free_chain(struct block *block, struct chunk *chunk) {
    while (chunk != NULL) {
        struct chunk *next = chunk->next;
        atomic_fetch_sub_explicit(&header_of(block)->committed, chunk->capacity, memory_order_relaxed);
        deallocate(chunk);
        chunk = next;
    }
}

// The next chunk of the chain if it is large enough; else it and all behind it go (they are empty) and a new one comes.
NOT_INLINED static void *grow_arena(struct block *block, struct arena *arena, uint64_t size) {
    struct chunk *current = arena->current;
    struct chunk *chunk = current == NULL ? NULL : current->next;
    if (chunk != NULL && chunk->capacity < size) {
        free_chain(block, chunk);
        chunk = current->next = NULL;
    }
    if (chunk == NULL) {
        uint64_t wish = current == NULL ? FIRST_CAPACITY : least(2 * current->capacity, LARGEST_CAPACITY);
        if (wish > size) chunk = new_chunk(block, wish);
        if (chunk == NULL) chunk = new_chunk(block, size);
        if (chunk == NULL) return NULL;
        chunk->previous = current;
        if (current == NULL) {
            arena->first = chunk;
        } else {
            chunk->base = current->base + current->capacity;
            current->next = chunk;
        }
    }
    arena->current = chunk;
    arena->offset = size;
    return chunk->data;
}

void *tn_arena_alloc(struct block *block, int32_t tid, uint64_t bytes) {
    if (bytes > block->memory_limit) return NULL;
    uint64_t size = (bytes + CACHE_LINE - 1) & -(uint64_t)CACHE_LINE;
    struct arena *arena = arena_of(block, tid);
    if (arena == NULL && (arena = create_arenas(block, tid)) == NULL) return NULL;
    struct chunk *chunk = arena->current;
    if (chunk == NULL || arena->offset + size > chunk->capacity) return grow_arena(block, arena, size);
    void *result = chunk->data + arena->offset;
    arena->offset += size;
    return result;
}

uint64_t tn_arena_mark(struct block *block, int32_t tid) {
    struct arena *arena = arena_of(block, tid);
    return arena == NULL || arena->current == NULL ? 0 : arena->current->base + arena->offset;
}

void tn_arena_release(struct block *block, int32_t tid, uint64_t mark) {
    struct arena *arena = arena_of(block, tid);
    if (arena == NULL || arena->current == NULL) return;
    while (arena->current->base > mark) arena->current = arena->current->previous;
    arena->offset = mark - arena->current->base;
}

static void rewind_arenas(struct block *block, bool give_back) {
    for (int32_t tid = 0; tid < block->num_threads; tid++) {
        struct arena *arena = arena_of(block, tid);
        if (give_back) {
            free_chain(block, arena->first);
            arena->first = NULL;
        }
        arena->current = arena->first;
        arena->offset = 0;
    }
}

// After a launch: every arena is empty again; chunks go back to the system when they are many.
NOT_INLINED static void reset_arenas(struct block *block) {
    rewind_arenas(block, atomic_load_explicit(&header_of(block)->committed, memory_order_relaxed) > KEPT_BYTES);
}

void tn_arena_free(struct block *block) {
    struct arena *arenas = arena_of(block, 0);
    if (arenas == NULL) return;
    rewind_arenas(block, true);
    atomic_store_explicit(&block->arenas, NULL, memory_order_relaxed);
    deallocate(arenas);
}
