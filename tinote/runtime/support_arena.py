"""LLVM text of the arenas: one bump allocator a thread for the values that the iterations of a launch save.

    tn_arena_alloc(block, tid, bytes) -> ptr
        64-byte aligned; null past the launch's memory limit or when the system has no more
    tn_arena_mark(block, tid) -> i64            the present top
    tn_arena_release(block, tid, mark)          back to it
    tn_arena_free(block)                        gives everything back to the system (when the block goes)

An arena is a chain of chunks of growing size; the one in use has an offset, all behind it are empty. A mark counts the
capacity of the chunks before plus the offset, so it needs no pointer. Chunks stay for the next launch of the block as
long as they are few (`ARENA_KEEP`). Nothing exists until the first allocation.
"""

from __future__ import annotations

__all__ = ["TEXT"]

TEXT = """
declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare void @free(ptr)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)

define internal ptr @arena_of(ptr %block, i32 %tid) {
  %arenas.at = getelementptr i8, ptr %block, i64 $ARENAS
  %arenas = load atomic ptr, ptr %arenas.at acquire, align 8
  %none = icmp eq ptr %arenas, null
  %wide = zext i32 %tid to i64
  %offset = mul i64 %wide, $ARENA_BYTES
  %arena = getelementptr i8, ptr %arenas, i64 %offset
  %result = select i1 %none, ptr null, ptr %arena
  ret ptr %result
}

define internal i32 @arena_create(ptr %block) noinline {
entry:
  %threads.at = getelementptr i8, ptr %block, i64 $NUM_THREADS
  %threads = load i32, ptr %threads.at
  %wide = zext i32 %threads to i64
  %new = call ptr @calloc(i64 %wide, i64 $ARENA_BYTES)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %done, label %publish
publish:
  %arenas.at = getelementptr i8, ptr %block, i64 $ARENAS
  %pair = cmpxchg ptr %arenas.at, ptr null, ptr %new acq_rel acquire
  %won = extractvalue { ptr, i1 } %pair, 1
  br i1 %won, label %done, label %late
late:
  call void @free(ptr %new)
  br label %done
done:
  %result = phi i32 [ 1, %entry ], [ 0, %publish ], [ 0, %late ]
  ret i32 %result
}

define ptr @tn_arena_alloc(ptr %block, i32 %tid, i64 %bytes) {
entry:
  %limit.at = getelementptr i8, ptr %block, i64 $MEMORY_LIMIT
  %limit = load i64, ptr %limit.at
  %over = icmp ugt i64 %bytes, %limit
  br i1 %over, label %refuse, label %find
refuse:
  ret ptr null
find:
  %up = add i64 %bytes, 63
  %size = and i64 %up, -64
  %found = call ptr @arena_of(ptr %block, i32 %tid)
  %none = icmp eq ptr %found, null
  br i1 %none, label %create, label %have
create:
  %failed = call i32 @arena_create(ptr %block)
  %created = icmp eq i32 %failed, 0
  br i1 %created, label %again, label %refuse
again:
  %made = call ptr @arena_of(ptr %block, i32 %tid)
  br label %have
have:
  %arena = phi ptr [ %found, %find ], [ %made, %again ]
  %chunk = load ptr, ptr %arena
  %empty = icmp eq ptr %chunk, null
  br i1 %empty, label %grow, label %try
try:
  %offset.at = getelementptr i8, ptr %arena, i64 $ARENA_OFFSET
  %offset = load i64, ptr %offset.at
  %top = add i64 %offset, %size
  %capacity.at = getelementptr i8, ptr %chunk, i64 $CHUNK_CAPACITY
  %capacity = load i64, ptr %capacity.at
  %fits = icmp ule i64 %top, %capacity
  br i1 %fits, label %bump, label %grow
bump:
  store i64 %top, ptr %offset.at
  %data = getelementptr i8, ptr %chunk, i64 $CHUNK_DATA
  %result = getelementptr i8, ptr %data, i64 %offset
  ret ptr %result
grow:
  %grown = call ptr @arena_grow(ptr %block, ptr %arena, i64 %size)
  ret ptr %grown
}

; The next chunk of the chain if it is large enough; else it and all behind it go (they are empty) and a new one comes.
define internal ptr @arena_grow(ptr %block, ptr %arena, i64 %size) noinline {
entry:
  %offset.at = getelementptr i8, ptr %arena, i64 $ARENA_OFFSET
  %current = load ptr, ptr %arena
  %none = icmp eq ptr %current, null
  br i1 %none, label %fresh, label %follow
follow:
  %next.at = getelementptr i8, ptr %current, i64 $CHUNK_NEXT
  %next = load ptr, ptr %next.at
  %last = icmp eq ptr %next, null
  br i1 %last, label %double, label %check
check:
  %next.capacity.at = getelementptr i8, ptr %next, i64 $CHUNK_CAPACITY
  %next.capacity = load i64, ptr %next.capacity.at
  %enough = icmp ule i64 %size, %next.capacity
  br i1 %enough, label %use, label %discard
discard:
  call void @arena_chain_free(ptr %block, ptr %next)
  store ptr null, ptr %next.at
  br label %double
double:
  %capacity.at = getelementptr i8, ptr %current, i64 $CHUNK_CAPACITY
  %capacity = load i64, ptr %capacity.at
  %base.at = getelementptr i8, ptr %current, i64 $CHUNK_BASE
  %base = load i64, ptr %base.at
  %new.base = add i64 %base, %capacity
  %twice = shl i64 %capacity, 1
  %tamed = call i64 @llvm.umin.i64(i64 %twice, i64 $CHUNK_MAX_CAPACITY)
  br label %fresh
fresh:
  %wish = phi i64 [ $CHUNK_FIRST_CAPACITY, %entry ], [ %tamed, %double ]
  %place = phi i64 [ 0, %entry ], [ %new.base, %double ]
  %wanted = call i64 @llvm.umax.i64(i64 %wish, i64 %size)
  %first.try = call ptr @arena_chunk(ptr %block, i64 %wanted)
  %refused = icmp eq ptr %first.try, null
  br i1 %refused, label %modest, label %link
modest:
  %second.try = call ptr @arena_chunk(ptr %block, i64 %size)
  %nothing = icmp eq ptr %second.try, null
  br i1 %nothing, label %fail, label %link
fail:
  ret ptr null
link:
  %chunk = phi ptr [ %first.try, %fresh ], [ %second.try, %modest ]
  %chunk.base.at = getelementptr i8, ptr %chunk, i64 $CHUNK_BASE
  store i64 %place, ptr %chunk.base.at
  %previous.at = getelementptr i8, ptr %chunk, i64 $CHUNK_PREVIOUS
  store ptr %current, ptr %previous.at
  br i1 %none, label %head, label %tail
head:
  %first.at = getelementptr i8, ptr %arena, i64 $ARENA_FIRST
  store ptr %chunk, ptr %first.at
  br label %use
tail:
  %current.next.at = getelementptr i8, ptr %current, i64 $CHUNK_NEXT
  store ptr %chunk, ptr %current.next.at
  br label %use
use:
  %chosen = phi ptr [ %next, %check ], [ %chunk, %head ], [ %chunk, %tail ]
  store ptr %chosen, ptr %arena
  store i64 %size, ptr %offset.at
  %data = getelementptr i8, ptr %chosen, i64 $CHUNK_DATA
  ret ptr %data
}

; A chunk that counts against the launch's limit, which all threads share.
define internal ptr @arena_chunk(ptr %block, i64 %capacity) noinline {
entry:
  %committed.at = getelementptr i8, ptr %block, i64 $COMMITTED
  %limit.at = getelementptr i8, ptr %block, i64 $MEMORY_LIMIT
  %limit = load i64, ptr %limit.at
  %before = atomicrmw add ptr %committed.at, i64 %capacity monotonic
  %total = add i64 %before, %capacity
  %over = icmp ugt i64 %total, %limit
  br i1 %over, label %undo, label %get
get:
  %bytes = add i64 %capacity, $CHUNK_OVERHEAD
  %raw = call ptr @malloc(i64 %bytes)
  %failed = icmp eq ptr %raw, null
  br i1 %failed, label %undo, label %fill
undo:
  %ignored = atomicrmw sub ptr %committed.at, i64 %capacity monotonic
  ret ptr null
fill:
  %number = ptrtoint ptr %raw to i64
  %up = add i64 %number, 63
  %down = and i64 %up, -64
  %shift = sub i64 %down, %number
  %chunk = getelementptr i8, ptr %raw, i64 %shift
  store ptr null, ptr %chunk
  %capacity.at = getelementptr i8, ptr %chunk, i64 $CHUNK_CAPACITY
  store i64 %capacity, ptr %capacity.at
  %raw.at = getelementptr i8, ptr %chunk, i64 $CHUNK_RAW
  store ptr %raw, ptr %raw.at
  ret ptr %chunk
}

define internal void @arena_chain_free(ptr %block, ptr %first) noinline {
entry:
  %committed.at = getelementptr i8, ptr %block, i64 $COMMITTED
  br label %next
next:
  %chunk = phi ptr [ %first, %entry ], [ %following, %drop ]
  %end = icmp eq ptr %chunk, null
  br i1 %end, label %done, label %drop
drop:
  %following = load ptr, ptr %chunk
  %capacity.at = getelementptr i8, ptr %chunk, i64 $CHUNK_CAPACITY
  %capacity = load i64, ptr %capacity.at
  %ignored = atomicrmw sub ptr %committed.at, i64 %capacity monotonic
  %raw.at = getelementptr i8, ptr %chunk, i64 $CHUNK_RAW
  %raw = load ptr, ptr %raw.at
  call void @free(ptr %raw)
  br label %next
done:
  ret void
}

define i64 @tn_arena_mark(ptr %block, i32 %tid) {
entry:
  %arena = call ptr @arena_of(ptr %block, i32 %tid)
  %none = icmp eq ptr %arena, null
  br i1 %none, label %zero, label %have
have:
  %chunk = load ptr, ptr %arena
  %empty = icmp eq ptr %chunk, null
  br i1 %empty, label %zero, label %sum
sum:
  %offset.at = getelementptr i8, ptr %arena, i64 $ARENA_OFFSET
  %offset = load i64, ptr %offset.at
  %base.at = getelementptr i8, ptr %chunk, i64 $CHUNK_BASE
  %base = load i64, ptr %base.at
  %mark = add i64 %base, %offset
  ret i64 %mark
zero:
  ret i64 0
}

define void @tn_arena_release(ptr %block, i32 %tid, i64 %mark) {
entry:
  %arena = call ptr @arena_of(ptr %block, i32 %tid)
  %none = icmp eq ptr %arena, null
  br i1 %none, label %done, label %have
have:
  %current = load ptr, ptr %arena
  %empty = icmp eq ptr %current, null
  br i1 %empty, label %done, label %walk
walk:
  %chunk = phi ptr [ %current, %have ], [ %previous, %back ]
  %base.at = getelementptr i8, ptr %chunk, i64 $CHUNK_BASE
  %base = load i64, ptr %base.at
  %behind = icmp ugt i64 %base, %mark
  br i1 %behind, label %back, label %here
back:
  %previous.at = getelementptr i8, ptr %chunk, i64 $CHUNK_PREVIOUS
  %previous = load ptr, ptr %previous.at
  br label %walk
here:
  %offset = sub i64 %mark, %base
  %offset.at = getelementptr i8, ptr %arena, i64 $ARENA_OFFSET
  store ptr %chunk, ptr %arena
  store i64 %offset, ptr %offset.at
  br label %done
done:
  ret void
}

; After a launch: every arena is empty again; chunks go back to the system when they are many.
define internal void @arena_reset(ptr %block) noinline {
entry:
  %committed.at = getelementptr i8, ptr %block, i64 $COMMITTED
  %committed = load atomic i64, ptr %committed.at monotonic, align 8
  %many = icmp ugt i64 %committed, $ARENA_KEEP
  call void @arena_rewind(ptr %block, i1 %many)
  ret void
}

define internal void @arena_rewind(ptr %block, i1 %give.back) noinline {
entry:
  %threads.at = getelementptr i8, ptr %block, i64 $NUM_THREADS
  %threads = load i32, ptr %threads.at
  br label %next
next:
  %tid = phi i32 [ 0, %entry ], [ %following, %store ]
  %more = icmp ult i32 %tid, %threads
  br i1 %more, label %rewind, label %done
rewind:
  %arena = call ptr @arena_of(ptr %block, i32 %tid)
  %first.at = getelementptr i8, ptr %arena, i64 $ARENA_FIRST
  %first = load ptr, ptr %first.at
  br i1 %give.back, label %drop, label %store
drop:
  call void @arena_chain_free(ptr %block, ptr %first)
  store ptr null, ptr %first.at
  br label %store
store:
  %start = phi ptr [ %first, %rewind ], [ null, %drop ]
  store ptr %start, ptr %arena
  %offset.at = getelementptr i8, ptr %arena, i64 $ARENA_OFFSET
  store i64 0, ptr %offset.at
  %following = add i32 %tid, 1
  br label %next
done:
  ret void
}

define void @tn_arena_free(ptr %block) {
entry:
  %arenas.at = getelementptr i8, ptr %block, i64 $ARENAS
  %arenas = load ptr, ptr %arenas.at
  %none = icmp eq ptr %arenas, null
  br i1 %none, label %done, label %drop
drop:
  call void @arena_rewind(ptr %block, i1 true)
  store ptr null, ptr %arenas.at
  call void @free(ptr %arenas)
  br label %done
done:
  ret void
}
"""
