"""The LLVM text of the support module: what generated code and the launcher call.

Launching, polling, faults and prints are here; the threads in `support_pool`, the loops that run on them in
`support_parallel`, the memory for saved values in `support_arena`. `$NAME` in the text is a constant of `layout` or of
the platform. The module is small on purpose: it is compiled once per process, at a low level.

    tn_launch(self, arguments, count) -> PyObject *
        the launch as a Python builtin of one argument (a fast call), the block's address
    tn_poll(block, tid) -> status                    called by loops once a strip
    tn_fail(block, code, site, n, payload) -> code   the first fault of a launch wins
    tn_print(block, site, n, words)                  appends to the launch's ring
    tn_print_take(ring, out, dropped) -> words       takes all records out of a ring
    tn_stop(block) -> i32                            stops a running launch from another thread; 1 if one ran

Threads and signals: only the thread that launched ever touches Python. It gives the interpreter lock up for the launch
and takes it back for each tick, in which Python runs pending signal handlers and prints are drained. An exception of
either stays set and is what the launch's caller sees.
"""

from __future__ import annotations

import signal
import string
import sys
import time

from tinote.runtime import layout, support_arena, support_clear, support_parallel, support_pool

__all__ = ["EXPORTS", "support_text"]

EXPORTS = (
    "tn_arena_alloc",
    "tn_arena_free",
    "tn_arena_mark",
    "tn_arena_release",
    "tn_clear",
    "tn_fail",
    "tn_launch",
    "tn_parallel_for",
    "tn_parallel_for_dynamic",
    "tn_poll",
    "tn_pool_new",
    "tn_pool_quit",
    "tn_pool_reset",
    "tn_print",
    "tn_print_take",
    "tn_stop",
)

# Signals that a fault of the thread itself raises: blocking them would only turn a report into a silent end.
_FAULT_SIGNALS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP")

_LAUNCH = """
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLong(i64)
declare i32 @PyErr_BadArgument()
declare i32 @PyErr_CheckSignals()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyObject_CallObject(ptr, ptr)
declare void @Py_DecRef(ptr)
declare i64 @pthread_self()
declare i32 @clock_gettime(i32, ptr)
declare i32 @sched_yield()
declare i32 @sleep(i32)

define internal i64 @now() {
  %time = alloca [2 x i64], align 16
  %ignored = call i32 @clock_gettime(i32 $CLOCK_MONOTONIC, ptr %time)
  %seconds = load i64, ptr %time
  %fraction.at = getelementptr i8, ptr %time, i64 8
  %fraction = load i64, ptr %fraction.at
  %scaled = mul i64 %seconds, 1000000000
  %now = add i64 %scaled, %fraction
  ret i64 %now
}

define ptr @tn_launch(ptr %self, ptr %arguments, i64 %count) {
entry:
  %one = icmp eq i64 %count, 1
  br i1 %one, label %convert, label %bad
bad:
  %ignored = call i32 @PyErr_BadArgument()
  ret ptr null
convert:
  %argument = load ptr, ptr %arguments
  %block = call ptr @PyLong_AsVoidPtr(ptr %argument)
  %missing = icmp eq ptr %block, null
  br i1 %missing, label %bad, label %start
start:
  %me = call i64 @pthread_self()
  %thread.at = getelementptr i8, ptr %block, i64 $THREAD
  store i64 %me, ptr %thread.at
  %pool.at = getelementptr i8, ptr %block, i64 $POOL
  %pool = load ptr, ptr %pool.at
  %main.at = getelementptr i8, ptr %pool, i64 $POOL_MAIN_THREAD
  %main = load i64, ptr %main.at
  %is.main = icmp eq i64 %me, %main
  %flags = zext i1 %is.main to i32
  %flags.at = getelementptr i8, ptr %block, i64 $FLAGS
  store i32 %flags, ptr %flags.at
  store i64 0, ptr %block
  %error.at = getelementptr i8, ptr %block, i64 $PYTHON_ERROR
  store i32 0, ptr %error.at
  %read.at = getelementptr i8, ptr %block, i64 $CLOCK_READ
  store i64 0, ptr %read.at
  %skip.at = getelementptr i8, ptr %block, i64 $SKIP
  store i64 0, ptr %skip.at
  %interval.at = getelementptr i8, ptr %block, i64 $TICK_INTERVAL
  store i64 $TICK_NS, ptr %interval.at
  %stop.at = getelementptr i8, ptr %block, i64 $STOP
  store atomic i32 0, ptr %stop.at seq_cst, align 4
  %entry.at = getelementptr i8, ptr %block, i64 $ENTRY
  %function = load ptr, ptr %entry.at
  %state.at = getelementptr i8, ptr %block, i64 $THREAD_STATE
  %state = call ptr @PyEval_SaveThread()
  store ptr %state, ptr %state.at
  %returned = call i32 %function(ptr %block)
  store atomic i32 $STOP_IDLE, ptr %stop.at seq_cst, align 4
  %arenas.at = getelementptr i8, ptr %block, i64 $ARENAS
  %arenas = load ptr, ptr %arenas.at
  %unused = icmp eq ptr %arenas, null
  br i1 %unused, label %leave, label %reset
reset:
  call void @arena_reset(ptr %block)
  br label %leave
; A daemon thread whose launch was stopped because the interpreter exits has nobody to tell: it stays here.
leave:
  %failed = icmp ne i32 %returned, 0
  %elsewhere = xor i1 %is.main, true
  %daemon = and i1 %failed, %elsewhere
  br i1 %daemon, label %ask, label %finish
ask:
  %quit.at = getelementptr i8, ptr %pool, i64 $POOL_QUIT
  %quit = load atomic i32, ptr %quit.at seq_cst, align 4
  %quitting = icmp ne i32 %quit, 0
  br i1 %quitting, label %forever, label %finish
forever:
  %ignored.sleep = call i32 @sleep(i32 1000)
  br label %forever
finish:
  %kept = load ptr, ptr %state.at
  call void @PyEval_RestoreThread(ptr %kept)
  %error = load i32, ptr %error.at
  %raised = icmp ne i32 %error, 0
  br i1 %raised, label %raise, label %report
raise:
  ret ptr null
report:
  %silent = icmp eq i32 %returned, 0
  %recorded = load i32, ptr %block
  %status = select i1 %silent, i32 %recorded, i32 %returned
  %wide = sext i32 %status to i64
  %result = call ptr @PyLong_FromLong(i64 %wide)
  ret ptr %result
}

define i32 @tn_stop(ptr %block) {
  %stop.at = getelementptr i8, ptr %block, i64 $STOP
  %pair = cmpxchg ptr %stop.at, i32 0, i32 $STATUS_INTERRUPT seq_cst seq_cst
  %done = extractvalue { i32, i1 } %pair, 1
  %ran = zext i1 %done to i32
  ret i32 %ran
}

define i32 @tn_fail(ptr %block, i32 %code, i32 %site, i32 %n, ptr %payload) {
entry:
  %pair = cmpxchg ptr %block, i32 0, i32 %code acq_rel acquire
  %first = extractvalue { i32, i1 } %pair, 1
  br i1 %first, label %record, label %done
record:
  %site.at = getelementptr i8, ptr %block, i64 $SITE
  store i32 %site, ptr %site.at
  %many = icmp sgt i32 %n, $PAYLOAD_WORDS
  %words = select i1 %many, i32 $PAYLOAD_WORDS, i32 %n
  %target = getelementptr i8, ptr %block, i64 $PAYLOAD
  br label %next
next:
  %i = phi i32 [ 0, %record ], [ %after, %copy ]
  %more = icmp slt i32 %i, %words
  br i1 %more, label %copy, label %stop
copy:
  %wide = sext i32 %i to i64
  %from = getelementptr i64, ptr %payload, i64 %wide
  %to = getelementptr i64, ptr %target, i64 %wide
  %word = load i64, ptr %from
  store i64 %word, ptr %to
  %after = add i32 %i, 1
  br label %next
stop:
  %stop.at = getelementptr i8, ptr %block, i64 $STOP
  %ignored = cmpxchg ptr %stop.at, i32 0, i32 %code seq_cst seq_cst
  br label %done
done:
  ret i32 %code
}

define i32 @tn_poll(ptr %block, i32 %tid) {
entry:
  %stop.at = getelementptr i8, ptr %block, i64 $STOP
  %stop = load atomic i32, ptr %stop.at monotonic, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %leave, label %who
leave:
  ret i32 %stop
; The launching thread may run pieces of any number, so the thread decides and not `tid`.
who:
  %me = call i64 @pthread_self()
  %thread.at = getelementptr i8, ptr %block, i64 $THREAD
  %launcher = load i64, ptr %thread.at
  %mine = icmp eq i64 %me, %launcher
  br i1 %mine, label %count, label %go
count:
  %left.at = getelementptr i8, ptr %block, i64 $LEFT
  %left = load i32, ptr %left.at
  %skip = icmp sgt i32 %left, 0
  br i1 %skip, label %less, label %clock
less:
  %fewer = sub i32 %left, 1
  store i32 %fewer, ptr %left.at
  br label %go
clock:
  %status = call i32 @poll_clock(ptr %block)
  ret i32 %status
go:
  ret i32 0
}

; Reads the clock, decides how many polls may pass until the next reading, and ticks when an interval is over.
define internal i32 @poll_clock(ptr %block) noinline {
entry:
  %now = call i64 @now()
  %read.at = getelementptr i8, ptr %block, i64 $CLOCK_READ
  %tick.at = getelementptr i8, ptr %block, i64 $LAST_TICK
  %read = load i64, ptr %read.at
  store i64 %now, ptr %read.at
  %first = icmp eq i64 %read, 0
  br i1 %first, label %begin, label %pace
begin:
  store i64 %now, ptr %tick.at
  br label %go
pace:
  %skip.at = getelementptr i8, ptr %block, i64 $SKIP
  %left.at = getelementptr i8, ptr %block, i64 $LEFT
  %skip = load i32, ptr %skip.at
  %passed = sub i64 %now, %read
  %short = icmp slt i64 %passed, 100000
  %twice = shl i32 %skip, 1
  %grown = or i32 %twice, 1
  %bounded = and i32 %grown, 15
  %paced = select i1 %short, i32 %bounded, i32 0
  store i32 %paced, ptr %skip.at
  store i32 %paced, ptr %left.at
  %last = load i64, ptr %tick.at
  %since = sub i64 %now, %last
  %interval.at = getelementptr i8, ptr %block, i64 $TICK_INTERVAL
  %interval = load i64, ptr %interval.at
  %due = icmp sge i64 %since, %interval
  br i1 %due, label %act, label %go
act:
  %status = call i32 @tick(ptr %block)
  %after = call i64 @now()
  store i64 %after, ptr %tick.at
  store i64 %after, ptr %read.at
  ; Where others keep the interpreter lock busy, taking it costs milliseconds: then ask less often.
  %cost = sub i64 %after, %now
  %wanted = mul i64 %cost, 8
  %low = call i64 @llvm.smax.i64(i64 %wanted, i64 $TICK_NS)
  %next = call i64 @llvm.smin.i64(i64 %low, i64 $TICK_NS_MAX)
  store i64 %next, ptr %interval.at
  ret i32 %status
go:
  ret i32 0
}
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)

; Lets Python run signal handlers (on its main thread) and drains prints. Non-zero: an exception is set.
define internal i32 @tick(ptr %block) noinline {
entry:
  %error.at = getelementptr i8, ptr %block, i64 $PYTHON_ERROR
  %error = load i32, ptr %error.at
  %already = icmp ne i32 %error, 0
  br i1 %already, label %stopped, label %look
stopped:
  ret i32 $STATUS_INTERRUPT
look:
  %flags.at = getelementptr i8, ptr %block, i64 $FLAGS
  %flags = load i32, ptr %flags.at
  %bit = and i32 %flags, 1
  %main = icmp ne i32 %bit, 0
  %ring.at = getelementptr i8, ptr %block, i64 $PRINT_RING
  %ring = load ptr, ptr %ring.at
  %none = icmp eq ptr %ring, null
  br i1 %none, label %decide, label %peek
peek:
  %head.at = getelementptr i8, ptr %ring, i64 $RING_HEAD
  %tail.at = getelementptr i8, ptr %ring, i64 $RING_TAIL
  %head = load atomic i64, ptr %head.at acquire, align 8
  %tail = load atomic i64, ptr %tail.at monotonic, align 8
  %some = icmp ne i64 %head, %tail
  br label %decide
decide:
  %pending = phi i1 [ false, %look ], [ %some, %peek ]
  %needed = or i1 %main, %pending
  br i1 %needed, label %take, label %quiet
quiet:
  ret i32 0
take:
  %state.at = getelementptr i8, ptr %block, i64 $THREAD_STATE
  %state = load ptr, ptr %state.at
  call void @PyEval_RestoreThread(ptr %state)
  %signalled = call i32 @PyErr_CheckSignals()
  %raised = icmp ne i32 %signalled, 0
  br i1 %raised, label %stop, label %prints
prints:
  br i1 %pending, label %drain, label %back
drain:
  %drain.at = getelementptr i8, ptr %block, i64 $DRAIN
  %callable = load ptr, ptr %drain.at
  %result = call ptr @PyObject_CallObject(ptr %callable, ptr null)
  %failed = icmp eq ptr %result, null
  br i1 %failed, label %stop, label %drop
drop:
  call void @Py_DecRef(ptr %result)
  br label %back
back:
  %again = call ptr @PyEval_SaveThread()
  store ptr %again, ptr %state.at
  ret i32 0
stop:
  store i32 1, ptr %error.at
  %kept = call ptr @PyEval_SaveThread()
  store ptr %kept, ptr %state.at
  %ignored.status = cmpxchg ptr %block, i32 0, i32 $STATUS_INTERRUPT acq_rel acquire
  %stop.at = getelementptr i8, ptr %block, i64 $STOP
  %ignored.stop = cmpxchg ptr %stop.at, i32 0, i32 $STATUS_INTERRUPT seq_cst seq_cst
  ret i32 $STATUS_INTERRUPT
}

define void @tn_print(ptr %block, i32 %site, i32 %n, ptr %words) {
entry:
  %ring.at = getelementptr i8, ptr %block, i64 $PRINT_RING
  %ring = load ptr, ptr %ring.at
  %none = icmp eq ptr %ring, null
  br i1 %none, label %done, label %lock
lock:
  %tries = phi i32 [ 0, %entry ], [ %tried, %wait ]
  %pair = cmpxchg ptr %ring, i32 0, i32 1 acquire monotonic
  %held = extractvalue { i32, i1 } %pair, 1
  br i1 %held, label %fit, label %busy
busy:
  %tried = add i32 %tries, 1
  %rest = and i32 %tried, 63
  %yield = icmp eq i32 %rest, 0
  br i1 %yield, label %give, label %wait
give:
  %ignored = call i32 @sched_yield()
  br label %wait
wait:
  call void @pause()
  br label %lock
fit:
  %head.at = getelementptr i8, ptr %ring, i64 $RING_HEAD
  %tail.at = getelementptr i8, ptr %ring, i64 $RING_TAIL
  %capacity.at = getelementptr i8, ptr %ring, i64 $RING_CAPACITY
  %data = getelementptr i8, ptr %ring, i64 $RING_WORDS
  %head = load i64, ptr %head.at
  %tail = load atomic i64, ptr %tail.at acquire, align 8
  %capacity = load i64, ptr %capacity.at
  %mask = sub i64 %capacity, 1
  %count = zext i32 %n to i64
  %with = add i64 %head, 1
  %end = add i64 %with, %count
  %used = sub i64 %end, %tail
  %fits = icmp ule i64 %used, %capacity
  br i1 %fits, label %write, label %full
full:
  %dropped.at = getelementptr i8, ptr %ring, i64 $RING_DROPPED
  %ignored.count = atomicrmw add ptr %dropped.at, i64 1 monotonic
  br label %unlock
write:
  %site.wide = zext i32 %site to i64
  %high = shl i64 %count, 32
  %title = or i64 %high, %site.wide
  %slot = and i64 %head, %mask
  %slot.at = getelementptr i64, ptr %data, i64 %slot
  store i64 %title, ptr %slot.at
  br label %next
next:
  %i = phi i64 [ 0, %write ], [ %after, %copy ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %copy, label %publish
copy:
  %from = getelementptr i64, ptr %words, i64 %i
  %word = load i64, ptr %from
  %place = add i64 %with, %i
  %wrapped = and i64 %place, %mask
  %to = getelementptr i64, ptr %data, i64 %wrapped
  store i64 %word, ptr %to
  %after = add i64 %i, 1
  br label %next
publish:
  store atomic i64 %end, ptr %head.at release, align 8
  br label %unlock
unlock:
  store atomic i32 0, ptr %ring release, align 4
  br label %done
done:
  ret void
}

; Only the launching thread takes, and writers never touch what is not taken yet: no lock is needed.
define i64 @tn_print_take(ptr %ring, ptr %out, ptr %dropped) {
entry:
  %head.at = getelementptr i8, ptr %ring, i64 $RING_HEAD
  %tail.at = getelementptr i8, ptr %ring, i64 $RING_TAIL
  %dropped.at = getelementptr i8, ptr %ring, i64 $RING_DROPPED
  %capacity.at = getelementptr i8, ptr %ring, i64 $RING_CAPACITY
  %data = getelementptr i8, ptr %ring, i64 $RING_WORDS
  %lost = atomicrmw xchg ptr %dropped.at, i64 0 monotonic
  store i64 %lost, ptr %dropped
  %head = load atomic i64, ptr %head.at acquire, align 8
  %tail = load i64, ptr %tail.at
  %capacity = load i64, ptr %capacity.at
  %mask = sub i64 %capacity, 1
  %count = sub i64 %head, %tail
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %after, %copy ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %copy, label %done
copy:
  %place = add i64 %tail, %i
  %wrapped = and i64 %place, %mask
  %from = getelementptr i64, ptr %data, i64 %wrapped
  %to = getelementptr i64, ptr %out, i64 %i
  %word = load i64, ptr %from
  store i64 %word, ptr %to
  %after = add i64 %i, 1
  br label %next
done:
  store atomic i64 %head, ptr %tail.at release, align 8
  ret i64 %count
}
"""

_PAUSE = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


def _pause(architecture: str) -> str:
    """The instruction that tells a core that it spins; nothing where we know none."""
    declaration, instruction = _PAUSE.get(_ARCHITECTURES.get(architecture, ""), ("", ""))
    return f"{declaration}\ndefine internal void @pause() alwaysinline {{\n  {instruction}\n  ret void\n}}\n"


def support_text(architecture: str) -> str:
    """The support module as LLVM text for an architecture (the first component of the target triple) and the operating
    system this process runs on."""
    if sys.platform == "win32":
        raise OSError("tinote runs kernels on Linux and macOS; this Python is a Windows one (use WSL)")
    faults = "".join(
        f"  %fault.{name} = call i32 @sigdelset(ptr %all, i32 {int(getattr(signal, name))})\n"
        for name in _FAULT_SIGNALS
        if hasattr(signal, name)
    )
    constants: dict[str, int | str] = {
        **layout.names(),
        "CLOCK_MONOTONIC": int(time.CLOCK_MONOTONIC),
        "TICK_NS": 20_000_000,
        "TICK_NS_MAX": 160_000_000,
        "SIG_SETMASK": int(signal.SIG_SETMASK),
        "UNBLOCK_FAULTS": faults,
        # PTHREAD_CREATE_DETACHED
        "DETACHED": 2 if sys.platform == "darwin" else 1,
    }
    waiting = support_pool.TIMED_WAIT_DARWIN if sys.platform == "darwin" else support_pool.TIMED_WAIT
    text = _LAUNCH + support_pool.TEXT + waiting + support_parallel.TEXT + support_clear.TEXT + support_arena.TEXT
    return string.Template(text).substitute(constants) + _pause(architecture)
