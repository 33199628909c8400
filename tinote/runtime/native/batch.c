// Runs a captured step for many members: programs that are one but for the values that they begin with.
//
//   tn_replay_batch(block) -> status
//       slot 0: the lanes, each with the program over memory of its own; slot 1: how many members; slot 2 becomes the
//       number of the first one that fails, or how many there are; slot 3: how many members follow each other in a lane.
//
// Lanes take members in their order, on the threads of the pool, one thread a member. What follows a member that has
// failed is not begun, and stopped where it has begun; those before it run to their end, one of which may fail, too. So
// the member that a fault names is the one that a loop over them would have stopped at.

#include "runtime.h"

static inline _Atomic int64_t *failed_member(struct block *batch) {
    return (_Atomic int64_t *)&batch->slots[2];
}

// How the batch is stopped that a member is part of: from outside, or by a member before it.
static int32_t stop_of_member(const struct lane *lane) {
    int32_t status = atomic_load_explicit(&lane->block->stop, memory_order_relaxed);
    if (status != OK) return status;
    return lane->member > atomic_load_explicit(failed_member(lane->block), memory_order_relaxed) ? STATUS_INTERRUPT : OK;
}

static void note_failed(struct block *batch, int64_t member) {
    _Atomic int64_t *failed = failed_member(batch);
    int64_t known = atomic_load(failed);
    while (member < known && !atomic_compare_exchange_weak(failed, &known, member)) {
    }
}

static int32_t run_members(struct block *block, int64_t low, int64_t high, int32_t tid) {
    struct lane *lane = (struct lane *)ADDRESS(block->slots[0]) + tid;
    for (int64_t member = low; member < high && member < atomic_load(failed_member(block)); member++) {
        lane->member = member;
        int32_t status = run_lane(block, lane);
        if (status == OK) continue;
        if (member > atomic_load(failed_member(block))) break; // it was stopped, since one before it has failed
        lane->status = status;
        if (status == STATUS_INTERRUPT || status == STATUS_LOST) return status;
        note_failed(block, member);
    }
    return OK;
}

int32_t tn_replay_batch(struct block *block) {
    int64_t count = block->slots[1];
    struct lane *lanes = ADDRESS(block->slots[0]);
    for (int32_t tid = 0; tid < block->num_threads; tid++) {
        lanes[tid].block = block;
        lanes[tid].status = OK;
        lanes[tid].site = NO_SITE;
    }
    atomic_store(failed_member(block), count);
    int32_t status = tn_parallel_for_dynamic(block, run_members, 0, count, block->slots[3]);
    int64_t failed = atomic_load(failed_member(block));
    for (int32_t tid = 0; status == OK && tid < block->num_threads; tid++)
        if (lanes[tid].status != OK && lanes[tid].member == failed)
            return tn_fail(block, lanes[tid].status, lanes[tid].site, 0, NULL);
    return status;
}
