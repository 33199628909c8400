"""LLVM text of the fork-join loops: contiguous pieces of an iteration range on the threads of the pool.

    tn_parallel_for(block, task, low, high, grain) -> status
        a static split: the same thread count gives the same pieces, always
    tn_parallel_for_dynamic(block, task, low, high, grain) -> status
        chunks of `grain` iterations from a shared counter

A loop becomes a job on the caller's stack and up to `num_threads` numbered pieces. Piece 0 is the caller's; each other
one is offered to the worker of its number by a claim word. Whoever turns the word from 1 to 0 runs the piece: the
worker if it is awake in time, else the caller, which after its own piece takes what nobody has begun. So a worker that
is slow to wake, or could not be started at all, costs nothing but speed, and the pieces and their thread numbers never
depend on timing. A job ends when the pieces that workers took have ended; only then do its words change, so a claimed
piece reads them without a lock.

The caller waits for the last workers as they wait for it, with a tick every 20 ms. A launch that finds the pool in use
runs its pieces one after the other on its own thread.
"""

from __future__ import annotations

__all__ = ["TEXT"]

TEXT = """
; Runs piece `index` of a job, unless the launch is stopping, and records what it returned if that is the first fault.
define internal void @piece(ptr %job, i32 %index) noinline {
entry:
  %block = load ptr, ptr %job
  %stop.at = getelementptr i8, ptr %block, i64 $STOP
  %task.at = getelementptr i8, ptr %job, i64 $JOB_TASK
  %task = load ptr, ptr %task.at
  %low.at = getelementptr i8, ptr %job, i64 $JOB_LOW
  %low = load i64, ptr %low.at
  %grain.at = getelementptr i8, ptr %job, i64 $JOB_GRAIN
  %grain = load i64, ptr %grain.at
  %static = icmp eq i64 %grain, 0
  br i1 %static, label %split, label %chunks
split:
  %stop = load atomic i32, ptr %stop.at monotonic, align 4
  %stopping = icmp ne i32 %stop, 0
  br i1 %stopping, label %record, label %bounds
bounds:
  %quotient.at = getelementptr i8, ptr %job, i64 $JOB_QUOTIENT
  %quotient = load i64, ptr %quotient.at
  %remainder.at = getelementptr i8, ptr %job, i64 $JOB_REMAINDER
  %remainder = load i64, ptr %remainder.at
  %wide = zext i32 %index to i64
  %even = mul i64 %wide, %quotient
  %extra = call i64 @llvm.umin.i64(i64 %wide, i64 %remainder)
  %offset = add i64 %even, %extra
  %from = add i64 %low, %offset
  %longer = icmp ult i64 %wide, %remainder
  %one = zext i1 %longer to i64
  %length = add i64 %quotient, %one
  %to = add i64 %from, %length
  %status = call i32 %task(ptr %block, i64 %from, i64 %to, i32 %index)
  br label %record
chunks:
  %count.at = getelementptr i8, ptr %job, i64 $JOB_COUNT
  %count = load i64, ptr %count.at
  %next.at = getelementptr i8, ptr %job, i64 $JOB_NEXT
  br label %next
next:
  %stop.now = load atomic i32, ptr %stop.at monotonic, align 4
  %stopping.now = icmp ne i32 %stop.now, 0
  br i1 %stopping.now, label %record, label %take
take:
  %start = atomicrmw add ptr %next.at, i64 %grain monotonic
  %more = icmp ult i64 %start, %count
  br i1 %more, label %chunk, label %done
chunk:
  %rest = sub i64 %count, %start
  %size = call i64 @llvm.umin.i64(i64 %rest, i64 %grain)
  %chunk.low = add i64 %low, %start
  %chunk.high = add i64 %chunk.low, %size
  %chunk.status = call i32 %task(ptr %block, i64 %chunk.low, i64 %chunk.high, i32 %index)
  %chunk.failed = icmp ne i32 %chunk.status, 0
  br i1 %chunk.failed, label %record, label %next
record:
  %result = phi i32 [ %stop, %split ], [ %status, %bounds ], [ %stop.now, %next ], [ %chunk.status, %chunk ]
  %failed = icmp ne i32 %result, 0
  br i1 %failed, label %keep, label %done
keep:
  %result.at = getelementptr i8, ptr %job, i64 $JOB_RESULT
  %ignored.1 = cmpxchg ptr %result.at, i32 0, i32 %result acq_rel monotonic
  %ignored.2 = cmpxchg ptr %stop.at, i32 0, i32 %result seq_cst seq_cst
  br label %done
done:
  ret void
}

define i32 @tn_parallel_for(ptr %block, ptr %task, i64 %low, i64 %high, i64 %grain) {
  %status = call i32 @parallel(ptr %block, ptr %task, i64 %low, i64 %high, i64 %grain, i1 false)
  ret i32 %status
}

define i32 @tn_parallel_for_dynamic(ptr %block, ptr %task, i64 %low, i64 %high, i64 %grain) {
  %status = call i32 @parallel(ptr %block, ptr %task, i64 %low, i64 %high, i64 %grain, i1 true)
  ret i32 %status
}

define internal i32 @parallel(ptr %block, ptr %task, i64 %low, i64 %high, i64 %asked.grain, i1 %dynamic) noinline {
entry:
  %job = alloca [$JOB_BYTES x i8], align 64
  %empty = icmp sge i64 %low, %high
  br i1 %empty, label %nothing, label %size
nothing:
  ret i32 0
; Counts are unsigned: high - low may not fit a signed word.
size:
  %count = sub i64 %high, %low
  %grain = call i64 @llvm.smax.i64(i64 %asked.grain, i64 1)
  %threads.at = getelementptr i8, ptr %block, i64 $NUM_THREADS
  %threads = load i32, ptr %threads.at
  %pool.at = getelementptr i8, ptr %block, i64 $POOL
  %pool = load ptr, ptr %pool.at
  %small = icmp ule i64 %count, %grain
  %single = icmp sle i32 %threads, 1
  %alone = or i1 %small, %single
  br i1 %alone, label %direct, label %divide
direct:
  %direct.status = call i32 %task(ptr %block, i64 %low, i64 %high, i32 0)
  ret i32 %direct.status
divide:
  %less = sub i64 %count, 1
  %full = udiv i64 %less, %grain
  %chunks = add i64 %full, 1
  %threads.wide = zext i32 %threads to i64
  %pieces.wide = call i64 @llvm.umin.i64(i64 %chunks, i64 %threads.wide)
  %pieces = trunc i64 %pieces.wide to i32
  store ptr %block, ptr %job
  %task.at = getelementptr i8, ptr %job, i64 $JOB_TASK
  store ptr %task, ptr %task.at
  %low.at = getelementptr i8, ptr %job, i64 $JOB_LOW
  store i64 %low, ptr %low.at
  %count.at = getelementptr i8, ptr %job, i64 $JOB_COUNT
  store i64 %count, ptr %count.at
  %quotient = udiv i64 %count, %pieces.wide
  %remainder = urem i64 %count, %pieces.wide
  %quotient.at = getelementptr i8, ptr %job, i64 $JOB_QUOTIENT
  store i64 %quotient, ptr %quotient.at
  %remainder.at = getelementptr i8, ptr %job, i64 $JOB_REMAINDER
  store i64 %remainder, ptr %remainder.at
  ; A counter that threads add to must not wrap: loops of more than 2^62 turns are split statically.
  %countable = icmp ult i64 %count, 4611686018427387904
  %modest = icmp ult i64 %grain, 4503599627370496
  %sane = and i1 %countable, %modest
  %is.dynamic = and i1 %dynamic, %sane
  %job.grain = select i1 %is.dynamic, i64 %grain, i64 0
  %grain.at = getelementptr i8, ptr %job, i64 $JOB_GRAIN
  store i64 %job.grain, ptr %grain.at
  %result.at = getelementptr i8, ptr %job, i64 $JOB_RESULT
  store i32 0, ptr %result.at
  %next.at = getelementptr i8, ptr %job, i64 $JOB_NEXT
  store i64 0, ptr %next.at
  %others = sub i32 %pieces, 1
  %quit.at = getelementptr i8, ptr %pool, i64 $POOL_QUIT
  %quit = load atomic i32, ptr %quit.at monotonic, align 4
  %quitting = icmp ne i32 %quit, 0
  br i1 %quitting, label %serial, label %own
own:
  %pair = cmpxchg ptr %pool, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %pair, 1
  br i1 %mine, label %prepare, label %serial
serial:
  br label %serial.next
serial.next:
  %s = phi i32 [ 0, %serial ], [ %s.after, %serial.run ]
  %s.more = icmp slt i32 %s, %pieces
  br i1 %s.more, label %serial.run, label %serial.done
serial.run:
  call void @piece(ptr %job, i32 %s)
  %s.after = add i32 %s, 1
  br label %serial.next
serial.done:
  %serial.status = load i32, ptr %result.at
  ret i32 %serial.status
prepare:
  %workers.at = getelementptr i8, ptr %pool, i64 $POOL_WORKERS
  %workers = load i32, ptr %workers.at
  %few = icmp slt i32 %workers, %others
  br i1 %few, label %hire, label %post
hire:
  call void @grow(ptr %pool, i32 %others)
  br label %post
post:
  %epoch.at = getelementptr i8, ptr %pool, i64 $POOL_EPOCH
  %epoch = load i32, ptr %epoch.at
  %job.at = getelementptr i8, ptr %pool, i64 $POOL_JOB
  store ptr %job, ptr %job.at
  %remaining.at = getelementptr i8, ptr %pool, i64 $POOL_REMAINING
  store atomic i32 %others, ptr %remaining.at monotonic, align 4
  br label %offer.next
offer.next:
  %o = phi i32 [ 1, %post ], [ %o.after, %offer ]
  %o.more = icmp sle i32 %o, %others
  br i1 %o.more, label %offer, label %wake
offer:
  %o.line = call ptr @line_of(ptr %pool, i32 %o)
  store atomic i32 1, ptr %o.line release, align 4
  %o.after = add i32 %o, 1
  br label %offer.next
wake:
  ; Either a worker that goes to park sees its offer, or we see it parked.
  fence seq_cst
  %mutex = getelementptr i8, ptr %pool, i64 $POOL_MUTEX
  %parked.at = getelementptr i8, ptr %pool, i64 $POOL_PARKED
  %parked = load atomic i32, ptr %parked.at seq_cst, align 4
  %sleeping = icmp sgt i32 %parked, 0
  br i1 %sleeping, label %ring, label %work
ring:
  %work.at = getelementptr i8, ptr %pool, i64 $POOL_WORK
  %ignored.1 = call i32 @pthread_mutex_lock(ptr %mutex)
  %ignored.2 = call i32 @pthread_cond_broadcast(ptr %work.at)
  %ignored.3 = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %work
work:
  call void @piece(ptr %job, i32 0)
  br label %steal.next
steal.next:
  %v = phi i32 [ %others, %work ], [ %v.after, %steal.after ]
  %v.more = icmp sgt i32 %v, 0
  br i1 %v.more, label %steal, label %join
steal:
  %v.line = call ptr @line_of(ptr %pool, i32 %v)
  %v.won = call i1 @claim(ptr %v.line)
  br i1 %v.won, label %steal.run, label %steal.after
steal.run:
  call void @piece(ptr %job, i32 %v)
  %ignored.4 = atomicrmw sub ptr %remaining.at, i32 1 seq_cst
  br label %steal.after
steal.after:
  %v.after = sub i32 %v, 1
  br label %steal.next
join:
  %lost = call i32 @join(ptr %block, ptr %pool, i32 %epoch)
  %is.lost = icmp ne i32 %lost, 0
  br i1 %is.lost, label %gone, label %finish
gone:
  ret i32 %lost
finish:
  store atomic i32 0, ptr %pool release, align 4
  %status = load atomic i32, ptr %result.at acquire, align 4
  ret i32 %status
}

; Waits until no piece is left: spinning first, then parked, with a tick every 20 ms. Non-zero if the workers are gone
; (a fork inside the launch).
define internal i32 @join(ptr %block, ptr %pool, i32 %epoch) noinline {
entry:
  %remaining.at = getelementptr i8, ptr %pool, i64 $POOL_REMAINING
  %waiting.at = getelementptr i8, ptr %pool, i64 $POOL_WAITING
  %epoch.at = getelementptr i8, ptr %pool, i64 $POOL_EPOCH
  %mutex = getelementptr i8, ptr %pool, i64 $POOL_MUTEX
  %done = getelementptr i8, ptr %pool, i64 $POOL_DONE
  %first = load atomic i32, ptr %remaining.at acquire, align 4
  %at.once = icmp sle i32 %first, 0
  br i1 %at.once, label %check, label %prepare
prepare:
  %spin = call i64 @spin_time(ptr %pool)
  %begin = call i64 @now()
  %deadline = add i64 %begin, %spin
  br label %spinning
spinning:
  %turn = phi i32 [ 0, %prepare ], [ %turned, %pausing ], [ 0, %clock ]
  %left = load atomic i32, ptr %remaining.at acquire, align 4
  %over = icmp sle i32 %left, 0
  br i1 %over, label %check, label %count
count:
  %turned = add i32 %turn, 1
  %often = icmp eq i32 %turned, 32
  br i1 %often, label %clock, label %pausing
pausing:
  call void @pause()
  br label %spinning
clock:
  %time = call i64 @now()
  %late = icmp sge i64 %time, %deadline
  br i1 %late, label %park, label %spinning
park:
  %ignored.1 = call i32 @pthread_mutex_lock(ptr %mutex)
  store atomic i32 1, ptr %waiting.at seq_cst, align 4
  %still = load atomic i32, ptr %remaining.at seq_cst, align 4
  %ended = icmp sle i32 %still, 0
  br i1 %ended, label %unpark, label %wait
wait:
  call void @condition_wait(ptr %done, ptr %mutex, i64 $TICK_NS)
  br label %unpark
unpark:
  store atomic i32 0, ptr %waiting.at seq_cst, align 4
  %ignored.2 = call i32 @pthread_mutex_unlock(ptr %mutex)
  %now.left = load atomic i32, ptr %remaining.at acquire, align 4
  %now.over = icmp sle i32 %now.left, 0
  br i1 %now.over, label %check, label %ticking
ticking:
  %ignored.3 = call i32 @poll_clock(ptr %block)
  %now.epoch = load i32, ptr %epoch.at
  %same = icmp eq i32 %now.epoch, %epoch
  br i1 %same, label %park, label %gone
check:
  %last.epoch = load i32, ptr %epoch.at
  %kept = icmp eq i32 %last.epoch, %epoch
  br i1 %kept, label %fine, label %gone
fine:
  ret i32 0
gone:
  ret i32 $STATUS_LOST
}
"""
