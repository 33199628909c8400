// The runtime of a WebAssembly module as one translation unit: one thread, no Python, and nothing that it imports but its
// memory. The functions are those of `launch.c`, `parallel.c` and `arena.c`, to generated code.
//
//   tn_control    what JavaScript tells it: to stop, after how many polls, and where memory is free
//
// Saved values are taken from the end of memory, which grows; a launch gives all of them back.

#include "runtime.h"

#include <math.h>
#include <string.h>

#define INLINED __attribute__((always_inline))
#define PAGE ((uint64_t)65536)

struct control tn_control;

static inline void begin_launch(struct block *block, uintptr_t thread, int32_t flags) {
    (void)thread;
    block->flags = flags;
    block->status = STATUS_OK;
    block->site = NO_SITE;
    tn_control.top = tn_control.heap;
}

static inline int32_t end_launch(struct block *block, int32_t returned) {
    return returned != STATUS_OK ? returned : block->status;
}

int32_t tn_fail(struct block *block, int32_t code, int32_t site, int32_t count, const int64_t *payload) {
    if (block->status == STATUS_OK) {
        block->status = code;
        block->site = site;
        for (int32_t i = 0; i < count && i < PAYLOAD_WORDS; i++) block->payload[i] = payload[i];
    }
    return code;
}

NOT_INLINED static int32_t interrupted(struct block *block, int32_t site) {
    tn_control.polls = 0;
    if (block->site == NO_SITE) block->site = site;
    return STATUS_INTERRUPT;
}

INLINED int32_t tn_poll(struct block *block, int32_t site) {
    return tn_control.stop == 0 && --tn_control.polls >= 0 ? STATUS_OK : interrupted(block, site);
}

// A record begins with the block of the launch that prints, whose kernel knows the site.
void tn_print(struct block *block, int32_t site, int32_t count, const uint64_t *words) {
    struct ring *ring = block->print_ring;
    if (ring == NULL) return;
    uint64_t length = (uint64_t)(uint32_t)count + 1, mask = ring->capacity - 1, at = ring->head;
    if (at + 1 + length - ring->tail > ring->capacity) {
        ring->dropped++;
        return;
    }
    ring->words[at++ & mask] = length << 32 | (uint32_t)site;
    ring->words[at++ & mask] = (uintptr_t)block;
    for (int32_t i = 0; i < count; i++) ring->words[at++ & mask] = words[i];
    ring->head = at;
}

INLINED int32_t tn_parallel_for(struct block *block, loop_task *task, int64_t low, int64_t high, int64_t grain) {
    (void)grain;
    return low < high ? task(block, low, high, 0) : STATUS_OK;
}

INLINED int32_t tn_parallel_for_dynamic(struct block *block, loop_task *task, int64_t low, int64_t high, int64_t grain) {
    return tn_parallel_for(block, task, low, high, grain);
}

// Memory up to an address, as far as there may be so much. It grows by a quarter where it can.
NOT_INLINED static bool grow_to(uint64_t end) {
    uint64_t pages = __builtin_wasm_memory_size(0), needed = (end + PAGE - 1) / PAGE, most = tn_control.limit / PAGE;
    if (needed <= pages) return true;
    if (needed > most) return false;
    uint64_t wish = pages + pages / 4;
    if (wish > most) wish = most;
    if (wish > needed && __builtin_wasm_memory_grow(0, (size_t)(wish - pages)) != SIZE_MAX) return true;
    return __builtin_wasm_memory_grow(0, (size_t)(needed - pages)) != SIZE_MAX;
}

void *tn_arena_alloc(struct block *block, int32_t tid, uint64_t bytes) {
    (void)tid;
    uint64_t start = tn_control.top, limit = block->memory_limit;
    if (bytes > limit || start + bytes - tn_control.heap > limit) return NULL;
    uint64_t end = (start + bytes + CACHE_LINE - 1) & -(uint64_t)CACHE_LINE;
    if (end > PAGE * __builtin_wasm_memory_size(0) && !grow_to(end)) return NULL;
    tn_control.top = end;
    return (void *)(uintptr_t)start;
}

uint64_t tn_arena_mark(struct block *block, int32_t tid) {
    (void)block;
    (void)tid;
    return tn_control.top;
}

void tn_arena_release(struct block *block, int32_t tid, uint64_t mark) {
    (void)block;
    (void)tid;
    tn_control.top = mark;
}

#include "compiler_rt.c"

#include "replay.c"

#include "maths.c"

// --- what LLVM's code generator calls besides

float __extendhfsf2(half_value value);
half_value __truncsfhf2(float value);
__int128 __multi3(__int128 a, __int128 b);

float __extendhfsf2(half_value value) {
    return (float)real_of_half(value);
}

half_value __truncsfhf2(float value) {
    return __truncdfhf2((double)value);
}

__int128 __multi3(__int128 a, __int128 b) {
    union {
        __int128 whole;
        uint64_t half[2];
    } x = {a}, y = {b}, product;
    uint64_t low_x = (uint32_t)x.half[0], high_x = x.half[0] >> 32, low_y = (uint32_t)y.half[0], high_y = y.half[0] >> 32;
    uint64_t low = low_x * low_y, first = high_x * low_y + (low >> 32), second = low_x * high_y + (uint32_t)first;
    product.half[0] = second << 32 | (uint32_t)low;
    product.half[1] = high_x * high_y + (first >> 32) + (second >> 32) + x.half[0] * y.half[1] + x.half[1] * y.half[0];
    return product.whole;
}
