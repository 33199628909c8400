; Made from runtime.c by generate.py with ziglang 0.17.1.

%union._LARGE_INTEGER = type { i64 }
%struct.line = type { i32, i32, ptr, [48 x i8] }
%struct.job = type { ptr, ptr, i64, i64, i64, i64, i64, [8 x i8], i32, [60 x i8], i64, [56 x i8] }
%struct.arena = type { ptr, i64, ptr, [40 x i8] }
%struct.lane = type { ptr, ptr, ptr, i64, i64, i32, i32 }
%union.number = type { double }

@size_of.sizes = internal unnamed_addr constant [12 x i8] c"\02\04\08\01\02\04\08\01\01\02\04\08", align 1

define i64 @tn_now() local_unnamed_addr nounwind {
entry:
  %count.i = alloca %union._LARGE_INTEGER, align 8
  %frequency.i = alloca %union._LARGE_INTEGER, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %count.i) nounwind
  call void @llvm.lifetime.start.p0(ptr nonnull %frequency.i) nounwind
  %call.i = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i) nounwind
  %call1.i = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i) nounwind
  %0 = load i64, ptr %count.i, align 8
  %1 = load i64, ptr %frequency.i, align 8
  %div.i = sdiv i64 %0, %1
  %rem.i = srem i64 %0, %1
  %mul.i = mul nsw i64 %div.i, 1000000000
  %mul2.i = mul nsw i64 %rem.i, 1000000000
  %div3.i = sdiv i64 %mul2.i, %1
  %add.i = add nsw i64 %div3.i, %mul.i
  call void @llvm.lifetime.end.p0(ptr nonnull %frequency.i) nounwind
  call void @llvm.lifetime.end.p0(ptr nonnull %count.i) nounwind
  ret i64 %add.i
}

define ptr @tn_launch(ptr noundef readnone captures(none) %self, ptr noundef readonly captures(none) %arguments, i64 noundef %count) local_unnamed_addr nounwind {
entry:
  %cmp = icmp eq i64 %count, 1
  br i1 %cmp, label %cond.end, label %if.then

cond.end:
  %0 = load ptr, ptr %arguments, align 8
  %call = tail call ptr @PyLong_AsVoidPtr(ptr noundef %0) nounwind
  %cmp1 = icmp eq ptr %call, null
  br i1 %cmp1, label %if.then, label %if.end

if.then:
  %call2 = tail call i32 @PyErr_BadArgument() nounwind
  br label %cleanup

if.end:
  %add.ptr.i = getelementptr inbounds i8, ptr %call, i64 -128
  %call.i = tail call i32 @GetCurrentThreadId() nounwind
  %conv.i = zext i32 %call.i to i64
  %pool = getelementptr inbounds nuw i8, ptr %call, i64 64
  %1 = load ptr, ptr %pool, align 8
  %main_thread = getelementptr inbounds nuw i8, ptr %1, i64 16
  %2 = load i64, ptr %main_thread, align 16
  %cmp5 = icmp eq i64 %2, %conv.i
  %cond6 = zext i1 %cmp5 to i32
  %thread1.i = getelementptr inbounds i8, ptr %call, i64 -112
  store i64 %conv.i, ptr %thread1.i, align 16
  %flags2.i = getelementptr inbounds nuw i8, ptr %call, i64 60
  store i32 %cond6, ptr %flags2.i, align 4
  store atomic i32 0, ptr %call monotonic, align 16
  %site.i = getelementptr inbounds nuw i8, ptr %call, i64 4
  store atomic i32 -1, ptr %site.i monotonic, align 4
  %clock_read.i = getelementptr inbounds i8, ptr %call, i64 -96
  %tick_interval.i = getelementptr inbounds i8, ptr %call, i64 -64
  tail call void @llvm.memset.p0.i64(ptr noundef nonnull align 32 dereferenceable(20) %clock_read.i, i8 0, i64 20, i1 false)
  store i64 20000000, ptr %tick_interval.i, align 64
  %stop.i = getelementptr inbounds nuw i8, ptr %call, i64 56
  store atomic i32 0, ptr %stop.i release, align 8
  %call7 = tail call ptr @PyEval_SaveThread() nounwind
  %thread_state = getelementptr inbounds i8, ptr %call, i64 -120
  store ptr %call7, ptr %thread_state, align 8
  %3 = load ptr, ptr %add.ptr.i, align 64
  %call9 = tail call i32 %3(ptr noundef nonnull %call) nounwind
  store atomic i32 -1, ptr %stop.i release, align 8
  %arenas.i = getelementptr inbounds nuw i8, ptr %call, i64 112
  %4 = load atomic i64, ptr %arenas.i monotonic, align 16
  %cmp.not.i = icmp eq i64 %4, 0
  br i1 %cmp.not.i, label %if.end.i, label %if.then.i

if.then.i:
  tail call fastcc void @reset_arenas(ptr noundef nonnull %call)
  br label %if.end.i

if.end.i:
  %cmp1.not.i = icmp eq i32 %call9, 0
  br i1 %cmp1.not.i, label %end_launch.exit.thread, label %if.then12

end_launch.exit.thread:
  %5 = load atomic i32, ptr %call monotonic, align 8
  br label %if.end13

if.then12:
  tail call fastcc void @stay_at_exit(ptr noundef %call)
  br label %if.end13

if.end13:
  %cond.i35 = phi i32 [ %5, %end_launch.exit.thread ], [ %call9, %if.then12 ]
  %6 = load ptr, ptr %thread_state, align 8
  tail call void @PyEval_RestoreThread(ptr noundef %6) nounwind
  %python_error = getelementptr inbounds i8, ptr %call, i64 -80
  %7 = load i32, ptr %python_error, align 16
  %tobool.not = icmp eq i32 %7, 0
  br i1 %tobool.not, label %cond.false16, label %cleanup

cond.false16:
  %call17 = tail call ptr @PyLong_FromLong(i32 noundef %cond.i35) nounwind
  br label %cleanup

cleanup:
  %retval.0 = phi ptr [ null, %if.then ], [ %call17, %cond.false16 ], [ null, %if.end13 ]
  ret ptr %retval.0
}

declare void @llvm.lifetime.start.p0(ptr captures(none)) nounwind

declare ptr @PyLong_AsVoidPtr(ptr noundef) local_unnamed_addr

declare i32 @PyErr_BadArgument() local_unnamed_addr

declare ptr @PyEval_SaveThread() local_unnamed_addr

define internal fastcc void @stay_at_exit(ptr noundef nonnull readonly captures(none) %block) unnamed_addr noinline nounwind {
entry:
  %flags = getelementptr inbounds nuw i8, ptr %block, i64 60
  %0 = load i32, ptr %flags, align 4
  %and = and i32 %0, 1
  %tobool.not = icmp eq i32 %and, 0
  br i1 %tobool.not, label %while.cond.preheader, label %while.end

while.cond.preheader:
  %pool = getelementptr inbounds nuw i8, ptr %block, i64 64
  %1 = load ptr, ptr %pool, align 8
  %quit3 = getelementptr inbounds nuw i8, ptr %1, i64 4
  %2 = load atomic i32, ptr %quit3 seq_cst, align 4
  %tobool1.not4 = icmp eq i32 %2, 0
  br i1 %tobool1.not4, label %while.end, label %while.body

while.body:
  tail call void @Sleep(i32 noundef 1000000) nounwind
  %3 = load ptr, ptr %pool, align 8
  %quit = getelementptr inbounds nuw i8, ptr %3, i64 4
  %4 = load atomic i32, ptr %quit seq_cst, align 4
  %tobool1.not = icmp eq i32 %4, 0
  br i1 %tobool1.not, label %while.end, label %while.body

while.end:
  ret void
}

declare void @PyEval_RestoreThread(ptr noundef) local_unnamed_addr

declare ptr @PyLong_FromLong(i32 noundef) local_unnamed_addr

declare void @llvm.lifetime.end.p0(ptr captures(none)) nounwind

define range(i32 0, 2) i32 @tn_stop(ptr noundef captures(none) %block) local_unnamed_addr nounwind {
entry:
  %stop = getelementptr inbounds nuw i8, ptr %block, i64 56
  %0 = cmpxchg ptr %stop, i32 0, i32 1 acq_rel acquire, align 4
  %1 = extractvalue { i32, i1 } %0, 1
  %conv = zext i1 %1 to i32
  ret i32 %conv
}

define noundef i32 @tn_fail(ptr noundef captures(none) %block, i32 noundef returned %code, i32 noundef %site, i32 noundef %count, ptr noundef readonly captures(none) %payload) local_unnamed_addr nounwind {
entry:
  %0 = cmpxchg ptr %block, i32 0, i32 %code acq_rel acquire, align 4
  %1 = extractvalue { i32, i1 } %0, 1
  br i1 %1, label %if.then, label %if.end

if.then:
  %site1 = getelementptr inbounds nuw i8, ptr %block, i64 4
  store atomic i32 %site, ptr %site1 monotonic, align 4
  %2 = icmp sgt i32 %count, 0
  br i1 %2, label %for.body.lr.ph, label %for.cond.cleanup

for.body.lr.ph:
  %3 = tail call i32 @llvm.umin.i32(i32 %count, i32 6)
  %payload3 = getelementptr inbounds nuw i8, ptr %block, i64 8
  %wide.trip.count = zext nneg i32 %3 to i64
  br label %for.body

for.cond.cleanup:
  %stop.i = getelementptr inbounds nuw i8, ptr %block, i64 56
  %4 = cmpxchg ptr %stop.i, i32 0, i32 %code acq_rel acquire, align 4
  br label %if.end

for.body:
  %indvars.iv = phi i64 [ 0, %for.body.lr.ph ], [ %indvars.iv.next, %for.body ]
  %arrayidx = getelementptr inbounds nuw i64, ptr %payload, i64 %indvars.iv
  %5 = load i64, ptr %arrayidx, align 8
  %arrayidx5 = getelementptr inbounds nuw i64, ptr %payload3, i64 %indvars.iv
  store i64 %5, ptr %arrayidx5, align 8
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body

if.end:
  ret i32 %code
}

define noundef i32 @tn_poll(ptr noundef captures(none) %block, i32 noundef %site) local_unnamed_addr nounwind {
entry:
  %stop = getelementptr inbounds nuw i8, ptr %block, i64 56
  %0 = load atomic i32, ptr %stop monotonic, align 8
  %cmp = icmp eq i32 %0, 0
  br i1 %cmp, label %land.lhs.true, label %cond.false

land.lhs.true:
  %lane = getelementptr inbounds i8, ptr %block, i64 -56
  %1 = load ptr, ptr %lane, align 8
  %cmp1.not = icmp eq ptr %1, null
  br i1 %cmp1.not, label %if.then5, label %if.then

if.then:
  %block.i = getelementptr inbounds nuw i8, ptr %1, i64 16
  %2 = load ptr, ptr %block.i, align 8
  %stop.i = getelementptr inbounds nuw i8, ptr %2, i64 56
  %3 = load atomic i32, ptr %stop.i monotonic, align 8
  %cmp.not.i = icmp eq i32 %3, 0
  br i1 %cmp.not.i, label %if.end, label %cond.false

if.end:
  %member.i = getelementptr inbounds nuw i8, ptr %1, i64 24
  %4 = load i64, ptr %member.i, align 8
  %arrayidx.i.i = getelementptr inbounds nuw i8, ptr %2, i64 144
  %5 = load atomic i64, ptr %arrayidx.i.i monotonic, align 8
  %cmp3.i.not = icmp sgt i64 %4, %5
  br i1 %cmp3.i.not, label %cond.false, label %if.then5

if.then5:
  %call.i = tail call i32 @GetCurrentThreadId() nounwind
  %conv.i = zext i32 %call.i to i64
  %thread = getelementptr inbounds i8, ptr %block, i64 -112
  %6 = load i64, ptr %thread, align 16
  %cmp7.not = icmp eq i64 %6, %conv.i
  br i1 %cmp7.not, label %lor.lhs.false, label %cleanup

lor.lhs.false:
  %left = getelementptr inbounds i8, ptr %block, i64 -84
  %7 = load i32, ptr %left, align 4
  %dec = add nsw i32 %7, -1
  store i32 %dec, ptr %left, align 4
  %cmp8 = icmp sgt i32 %7, 0
  br i1 %cmp8, label %cleanup, label %if.end12

if.end12:
  %call11 = tail call fastcc i32 @poll_clock(ptr noundef nonnull %block)
  %cmp13 = icmp eq i32 %call11, 0
  br i1 %cmp13, label %cleanup, label %cond.false

cond.false:
  %status.133 = phi i32 [ 1, %if.end12 ], [ 1, %if.end ], [ %3, %if.then ], [ %0, %entry ]
  tail call fastcc void @leave(ptr noundef nonnull %block, i32 noundef %site)
  br label %cleanup

cleanup:
  %retval.0 = phi i32 [ 0, %if.then5 ], [ 0, %lor.lhs.false ], [ %status.133, %cond.false ], [ 0, %if.end12 ]
  ret i32 %retval.0
}

define internal fastcc range(i32 0, 2) i32 @poll_clock(ptr noundef captures(none) %block) unnamed_addr noinline nounwind {
entry:
  %count.i47 = alloca %union._LARGE_INTEGER, align 8
  %frequency.i48 = alloca %union._LARGE_INTEGER, align 8
  %count.i = alloca %union._LARGE_INTEGER, align 8
  %frequency.i = alloca %union._LARGE_INTEGER, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %count.i) nounwind
  call void @llvm.lifetime.start.p0(ptr nonnull %frequency.i) nounwind
  %call.i = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i) nounwind
  %call1.i = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i) nounwind
  %0 = load i64, ptr %count.i, align 8
  %1 = load i64, ptr %frequency.i, align 8
  %div.i = sdiv i64 %0, %1
  %rem.i = srem i64 %0, %1
  %mul.i = mul nsw i64 %div.i, 1000000000
  %mul2.i = mul nsw i64 %rem.i, 1000000000
  %div3.i = sdiv i64 %mul2.i, %1
  %add.i = add nsw i64 %div3.i, %mul.i
  call void @llvm.lifetime.end.p0(ptr nonnull %frequency.i) nounwind
  call void @llvm.lifetime.end.p0(ptr nonnull %count.i) nounwind
  %clock_read = getelementptr inbounds i8, ptr %block, i64 -96
  %2 = load i64, ptr %clock_read, align 32
  store i64 %add.i, ptr %clock_read, align 32
  %cmp = icmp eq i64 %2, 0
  br i1 %cmp, label %if.then, label %if.end

if.then:
  %last_tick = getelementptr inbounds nuw i8, ptr %block, i64 104
  store i64 %add.i, ptr %last_tick, align 8
  br label %cleanup

if.end:
  %sub = sub nsw i64 %add.i, %2
  %cmp3 = icmp slt i64 %sub, 100000
  br i1 %cmp3, label %cond.true, label %cond.end

cond.true:
  %skip = getelementptr inbounds i8, ptr %block, i64 -88
  %3 = load i32, ptr %skip, align 8
  %shl = shl i32 %3, 1
  %or = and i32 %shl, 14
  %and = or disjoint i32 %or, 1
  br label %cond.end

cond.end:
  %cond = phi i32 [ %and, %cond.true ], [ 0, %if.end ]
  %left = getelementptr inbounds i8, ptr %block, i64 -84
  store i32 %cond, ptr %left, align 4
  %skip4 = getelementptr inbounds i8, ptr %block, i64 -88
  store i32 %cond, ptr %skip4, align 8
  %last_tick5 = getelementptr inbounds nuw i8, ptr %block, i64 104
  %4 = load i64, ptr %last_tick5, align 8
  %sub6 = sub nsw i64 %add.i, %4
  %tick_interval = getelementptr inbounds i8, ptr %block, i64 -64
  %5 = load i64, ptr %tick_interval, align 64
  %cmp7 = icmp slt i64 %sub6, %5
  br i1 %cmp7, label %cleanup, label %if.end9

if.end9:
  %call10 = call fastcc i32 @tick(ptr noundef nonnull %block)
  call void @llvm.lifetime.start.p0(ptr nonnull %count.i47) nounwind
  call void @llvm.lifetime.start.p0(ptr nonnull %frequency.i48) nounwind
  %call.i49 = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i47) nounwind
  %call1.i50 = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i48) nounwind
  %6 = load i64, ptr %count.i47, align 8
  %7 = load i64, ptr %frequency.i48, align 8
  %div.i51 = sdiv i64 %6, %7
  %rem.i52 = srem i64 %6, %7
  %mul.i53 = mul nsw i64 %div.i51, 1000000000
  %mul2.i54 = mul nsw i64 %rem.i52, 1000000000
  %div3.i55 = sdiv i64 %mul2.i54, %7
  %add.i56 = add nsw i64 %div3.i55, %mul.i53
  call void @llvm.lifetime.end.p0(ptr nonnull %frequency.i48) nounwind
  call void @llvm.lifetime.end.p0(ptr nonnull %count.i47) nounwind
  store i64 %add.i56, ptr %clock_read, align 32
  store i64 %add.i56, ptr %last_tick5, align 8
  %sub14 = sub nsw i64 %add.i56, %add.i
  %mul = shl nsw i64 %sub14, 3
  %8 = call i64 @llvm.smax.i64(i64 %mul, i64 20000000)
  %9 = call i64 @llvm.umin.i64(i64 %8, i64 160000000)
  store i64 %9, ptr %tick_interval, align 64
  br label %cleanup

cleanup:
  %retval.0 = phi i32 [ 0, %if.then ], [ %call10, %if.end9 ], [ 0, %cond.end ]
  ret i32 %retval.0
}

define internal fastcc void @leave(ptr noundef captures(none) %block, i32 noundef %site) unnamed_addr noinline nounwind {
entry:
  %site1 = getelementptr inbounds nuw i8, ptr %block, i64 4
  %0 = cmpxchg ptr %site1, i32 -1, i32 %site acq_rel acquire, align 4
  ret void
}

define void @tn_print(ptr noundef readonly captures(none) %block, i32 noundef %site, i32 noundef %count, ptr noundef readonly captures(none) %words) local_unnamed_addr nounwind {
entry:
  %print_ring = getelementptr inbounds nuw i8, ptr %block, i64 72
  %0 = load ptr, ptr %print_ring, align 8
  %cmp = icmp eq ptr %0, null
  br i1 %cmp, label %cleanup, label %for.cond.preheader

for.cond.preheader:
  %1 = cmpxchg ptr %0, i32 0, i32 1 acq_rel acquire, align 4
  %2 = extractvalue { i32, i1 } %1, 1
  br i1 %2, label %for.cond.cleanup, label %for.body

for.cond.cleanup:
  %conv = zext i32 %count to i64
  %capacity = getelementptr inbounds nuw i8, ptr %0, i64 32
  %3 = load i64, ptr %capacity, align 32
  %sub = add i64 %3, -1
  %head4 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %4 = load atomic i64, ptr %head4 monotonic, align 8
  %add = add i64 %4, 1
  %add5 = add i64 %add, %conv
  %tail = getelementptr inbounds nuw i8, ptr %0, i64 16
  %5 = load atomic i64, ptr %tail acquire, align 16
  %sub7 = sub i64 %add5, %5
  %6 = load i64, ptr %capacity, align 32
  %cmp9.not = icmp ugt i64 %sub7, %6
  br i1 %cmp9.not, label %if.else, label %if.then11

for.body:
  %tries.054 = phi i32 [ %inc, %if.end3 ], [ 1, %for.cond.preheader ]
  %rem = and i32 %tries.054, 63
  %cmp1 = icmp eq i32 %rem, 0
  br i1 %cmp1, label %if.then2, label %if.end3

if.then2:
  %call.i = tail call i32 @SwitchToThread() nounwind
  br label %if.end3

if.end3:
  tail call void @llvm.x86.sse2.pause()
  %inc = add nuw nsw i32 %tries.054, 1
  %7 = cmpxchg ptr %0, i32 0, i32 1 acq_rel acquire, align 4
  %8 = extractvalue { i32, i1 } %7, 1
  br i1 %8, label %for.cond.cleanup, label %for.body

if.then11:
  %shl = shl nuw i64 %conv, 32
  %conv12 = zext i32 %site to i64
  %or = or disjoint i64 %shl, %conv12
  %words13 = getelementptr inbounds nuw i8, ptr %0, i64 64
  %and = and i64 %4, %sub
  %arrayidx = getelementptr inbounds nuw i64, ptr %words13, i64 %and
  store i64 %or, ptr %arrayidx, align 8
  %cmp1555.not = icmp eq i32 %count, 0
  br i1 %cmp1555.not, label %for.cond.cleanup17, label %for.body18

for.cond.cleanup17:
  store atomic i64 %add5, ptr %head4 release, align 8
  br label %if.end31

for.body18:
  %i.056 = phi i64 [ %inc26, %for.body18 ], [ 0, %if.then11 ]
  %arrayidx19 = getelementptr inbounds nuw i64, ptr %words, i64 %i.056
  %9 = load i64, ptr %arrayidx19, align 8
  %add22 = add i64 %i.056, %add
  %and23 = and i64 %add22, %sub
  %arrayidx24 = getelementptr inbounds nuw i64, ptr %words13, i64 %and23
  store i64 %9, ptr %arrayidx24, align 8
  %inc26 = add nuw nsw i64 %i.056, 1
  %exitcond.not = icmp eq i64 %inc26, %conv
  br i1 %exitcond.not, label %for.cond.cleanup17, label %for.body18

if.else:
  %dropped = getelementptr inbounds nuw i8, ptr %0, i64 24
  %10 = atomicrmw add ptr %dropped, i64 1 monotonic, align 8
  br label %if.end31

if.end31:
  store atomic i32 0, ptr %0 release, align 64
  br label %cleanup

cleanup:
  ret void
}

define i64 @tn_print_take(ptr noundef captures(none) %ring, ptr noundef writeonly captures(none) %out, ptr noundef writeonly captures(none) initializes((0, 8)) %dropped) local_unnamed_addr nounwind {
entry:
  %dropped1 = getelementptr inbounds nuw i8, ptr %ring, i64 24
  %0 = atomicrmw xchg ptr %dropped1, i64 0 monotonic, align 8
  store i64 %0, ptr %dropped, align 8
  %head2 = getelementptr inbounds nuw i8, ptr %ring, i64 8
  %1 = load atomic i64, ptr %head2 acquire, align 8
  %tail4 = getelementptr inbounds nuw i8, ptr %ring, i64 16
  %2 = load atomic i64, ptr %tail4 monotonic, align 16
  %sub = sub i64 %1, %2
  %capacity = getelementptr inbounds nuw i8, ptr %ring, i64 32
  %3 = load i64, ptr %capacity, align 32
  %sub6 = add i64 %3, -1
  %cmp21.not = icmp eq i64 %1, %2
  br i1 %cmp21.not, label %for.cond.cleanup, label %for.body.lr.ph

for.body.lr.ph:
  %words = getelementptr inbounds nuw i8, ptr %ring, i64 64
  br label %for.body

for.cond.cleanup:
  store atomic i64 %1, ptr %tail4 release, align 16
  ret i64 %sub

for.body:
  %i.022 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.body ]
  %add = add i64 %i.022, %2
  %and = and i64 %add, %sub6
  %arrayidx = getelementptr inbounds nuw i64, ptr %words, i64 %and
  %4 = load i64, ptr %arrayidx, align 8
  %arrayidx7 = getelementptr inbounds nuw i64, ptr %out, i64 %i.022
  store i64 %4, ptr %arrayidx7, align 8
  %inc = add nuw i64 %i.022, 1
  %exitcond.not = icmp eq i64 %inc, %sub
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body
}

define ptr @tn_pool_new(i64 noundef %main_thread, i32 noundef %cores, i64 noundef %spin) local_unnamed_addr nounwind {
entry:
  %call.i = tail call ptr @_aligned_malloc(i64 noundef 16832, i64 noundef 64) nounwind
  %cmp = icmp eq ptr %call.i, null
  br i1 %cmp, label %cleanup, label %if.end

if.end:
  tail call void @llvm.memset.p0.i64(ptr noundef nonnull align 64 dereferenceable(16832) %call.i, i8 0, i64 16832, i1 false)
  %cores1 = getelementptr inbounds nuw i8, ptr %call.i, i64 12
  store i32 %cores, ptr %cores1, align 4
  %spin2 = getelementptr inbounds nuw i8, ptr %call.i, i64 24
  store i64 %spin, ptr %spin2, align 8
  %main_thread1.i = getelementptr inbounds nuw i8, ptr %call.i, i64 16
  store i64 %main_thread, ptr %main_thread1.i, align 16
  %epoch.i = getelementptr inbounds nuw i8, ptr %call.i, i64 32
  store i32 1, ptr %epoch.i, align 32
  store atomic i32 0, ptr %call.i seq_cst, align 64
  %quit.i = getelementptr inbounds nuw i8, ptr %call.i, i64 4
  store atomic i32 0, ptr %quit.i seq_cst, align 4
  %workers.i = getelementptr inbounds nuw i8, ptr %call.i, i64 8
  store atomic i32 0, ptr %workers.i seq_cst, align 8
  %alive.i = getelementptr inbounds nuw i8, ptr %call.i, i64 36
  store atomic i32 0, ptr %alive.i seq_cst, align 4
  %parked.i = getelementptr inbounds nuw i8, ptr %call.i, i64 64
  store atomic i32 0, ptr %parked.i seq_cst, align 64
  %remaining.i = getelementptr inbounds nuw i8, ptr %call.i, i64 128
  store atomic i32 0, ptr %remaining.i seq_cst, align 64
  %waiting.i = getelementptr inbounds nuw i8, ptr %call.i, i64 132
  store atomic i32 0, ptr %waiting.i seq_cst, align 4
  %mutex.i = getelementptr inbounds nuw i8, ptr %call.i, i64 256
  tail call void @InitializeSRWLock(ptr noundef nonnull %mutex.i) nounwind
  %work.i = getelementptr inbounds nuw i8, ptr %call.i, i64 320
  tail call void @InitializeConditionVariable(ptr noundef nonnull %work.i) nounwind
  %done.i = getelementptr inbounds nuw i8, ptr %call.i, i64 384
  tail call void @InitializeConditionVariable(ptr noundef nonnull %done.i) nounwind
  %lines.i = getelementptr inbounds nuw i8, ptr %call.i, i64 448
  br label %for.body.i

for.body.i:
  %indvars.iv.i = phi i64 [ 0, %if.end ], [ %indvars.iv.next.i, %for.body.i ]
  %arrayidx.i = getelementptr inbounds nuw %struct.line, ptr %lines.i, i64 %indvars.iv.i
  store atomic i32 0, ptr %arrayidx.i seq_cst, align 64
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %exitcond.not.i = icmp eq i64 %indvars.iv.next.i, 256
  br i1 %exitcond.not.i, label %cleanup, label %for.body.i

cleanup:
  ret ptr %call.i
}

declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg) nounwind

define void @tn_pool_reset(ptr noundef initializes((16, 24)) %pool, i64 noundef %main_thread) local_unnamed_addr nounwind {
entry:
  %main_thread1 = getelementptr inbounds nuw i8, ptr %pool, i64 16
  store i64 %main_thread, ptr %main_thread1, align 16
  %epoch = getelementptr inbounds nuw i8, ptr %pool, i64 32
  %0 = load i32, ptr %epoch, align 32
  %inc = add nsw i32 %0, 1
  store i32 %inc, ptr %epoch, align 32
  store atomic i32 0, ptr %pool seq_cst, align 64
  %quit = getelementptr inbounds nuw i8, ptr %pool, i64 4
  store atomic i32 0, ptr %quit seq_cst, align 4
  %workers = getelementptr inbounds nuw i8, ptr %pool, i64 8
  store atomic i32 0, ptr %workers seq_cst, align 8
  %alive = getelementptr inbounds nuw i8, ptr %pool, i64 36
  store atomic i32 0, ptr %alive seq_cst, align 4
  %parked = getelementptr inbounds nuw i8, ptr %pool, i64 64
  store atomic i32 0, ptr %parked seq_cst, align 64
  %remaining = getelementptr inbounds nuw i8, ptr %pool, i64 128
  store atomic i32 0, ptr %remaining seq_cst, align 64
  %waiting = getelementptr inbounds nuw i8, ptr %pool, i64 132
  store atomic i32 0, ptr %waiting seq_cst, align 4
  %mutex = getelementptr inbounds nuw i8, ptr %pool, i64 256
  tail call void @InitializeSRWLock(ptr noundef nonnull %mutex) nounwind
  %work = getelementptr inbounds nuw i8, ptr %pool, i64 320
  tail call void @InitializeConditionVariable(ptr noundef nonnull %work) nounwind
  %done = getelementptr inbounds nuw i8, ptr %pool, i64 384
  tail call void @InitializeConditionVariable(ptr noundef nonnull %done) nounwind
  %lines = getelementptr inbounds nuw i8, ptr %pool, i64 448
  br label %for.body

for.cond.cleanup:
  ret void

for.body:
  %indvars.iv = phi i64 [ 0, %entry ], [ %indvars.iv.next, %for.body ]
  %arrayidx = getelementptr inbounds nuw %struct.line, ptr %lines, i64 %indvars.iv
  store atomic i32 0, ptr %arrayidx seq_cst, align 64
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, 256
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body
}

define i32 @tn_pool_quit(ptr noundef %pool) local_unnamed_addr nounwind {
entry:
  %quit = getelementptr inbounds nuw i8, ptr %pool, i64 4
  store atomic i32 1, ptr %quit seq_cst, align 4
  %mutex = getelementptr inbounds nuw i8, ptr %pool, i64 256
  tail call void @AcquireSRWLockExclusive(ptr noundef nonnull %mutex) nounwind
  %work = getelementptr inbounds nuw i8, ptr %pool, i64 320
  tail call void @WakeAllConditionVariable(ptr noundef nonnull %work) nounwind
  tail call void @ReleaseSRWLockExclusive(ptr noundef nonnull %mutex) nounwind
  %alive = getelementptr inbounds nuw i8, ptr %pool, i64 36
  %0 = load atomic i32, ptr %alive seq_cst, align 4
  ret i32 %0
}

define i32 @tn_parallel_for(ptr noundef %block, ptr noundef %task, i64 noundef %low, i64 noundef %high, i64 noundef %grain) local_unnamed_addr nounwind {
entry:
  %call = tail call fastcc i32 @parallel_for(ptr noundef %block, ptr noundef %task, i64 noundef %low, i64 noundef %high, i64 noundef %grain, i1 noundef zeroext false)
  ret i32 %call
}

define internal fastcc i32 @parallel_for(ptr noundef %block, ptr noundef %task, i64 noundef %low, i64 noundef %high, i64 noundef %asked_grain, i1 noundef zeroext %dynamic) unnamed_addr nounwind {
entry:
  %job = alloca %struct.job, align 64
  %cmp.not = icmp slt i64 %low, %high
  br i1 %cmp.not, label %if.end, label %return

if.end:
  %sub = sub i64 %high, %low
  %cond = tail call i64 @llvm.smax.i64(i64 %asked_grain, i64 1)
  %num_threads = getelementptr inbounds nuw i8, ptr %block, i64 96
  %0 = load i32, ptr %num_threads, align 8
  %cmp2 = icmp ule i64 %sub, %cond
  %cmp3 = icmp slt i32 %0, 2
  %or.cond = select i1 %cmp2, i1 true, i1 %cmp3
  br i1 %or.cond, label %if.then4, label %if.end5

if.then4:
  %call = tail call i32 %task(ptr noundef nonnull %block, i64 noundef %low, i64 noundef %high, i32 noundef 0) nounwind
  br label %return

if.end5:
  %sub6 = add i64 %sub, -1
  %div = udiv i64 %sub6, %cond
  %add = add nuw i64 %div, 1
  %conv = zext nneg i32 %0 to i64
  %cond.i = tail call noundef i64 @llvm.umin.i64(i64 %add, i64 %conv)
  %cmp8 = icmp ult i64 %sub, 4611686018427387904
  %cmp10 = icmp slt i64 %asked_grain, 4503599627370496
  %1 = and i1 %cmp8, %cmp10
  call void @llvm.lifetime.start.p0(ptr nonnull %job) nounwind
  store ptr %block, ptr %job, align 64
  %task14 = getelementptr inbounds nuw i8, ptr %job, i64 8
  store ptr %task, ptr %task14, align 8
  %low15 = getelementptr inbounds nuw i8, ptr %job, i64 16
  store i64 %low, ptr %low15, align 16
  %count16 = getelementptr inbounds nuw i8, ptr %job, i64 24
  store i64 %sub, ptr %count16, align 8
  %quotient = getelementptr inbounds nuw i8, ptr %job, i64 32
  %div17 = udiv i64 %sub, %cond.i
  store i64 %div17, ptr %quotient, align 32
  %remainder = getelementptr inbounds nuw i8, ptr %job, i64 40
  %rem = urem i64 %sub, %cond.i
  store i64 %rem, ptr %remainder, align 8
  %grain18 = getelementptr inbounds nuw i8, ptr %job, i64 48
  %or.cond46 = and i1 %dynamic, %1
  %cond25 = select i1 %or.cond46, i64 %cond, i64 0
  store i64 %cond25, ptr %grain18, align 16
  %2 = getelementptr inbounds nuw i8, ptr %job, i64 56
  %result = getelementptr inbounds nuw i8, ptr %job, i64 64
  %pool26 = getelementptr inbounds nuw i8, ptr %block, i64 64
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(136) %2, i8 0, i64 136, i1 false)
  %3 = load ptr, ptr %pool26, align 8
  %quit = getelementptr inbounds nuw i8, ptr %3, i64 4
  %4 = load atomic i32, ptr %quit monotonic, align 4
  %tobool.not = icmp eq i32 %4, 0
  br i1 %tobool.not, label %land.lhs.true27, label %if.end34

land.lhs.true27:
  %5 = cmpxchg ptr %3, i32 0, i32 1 acq_rel acquire, align 4
  %6 = extractvalue { i32, i1 } %5, 1
  br i1 %6, label %if.then30, label %if.end34

if.then30:
  %conv31 = trunc nuw nsw i64 %cond.i to i32
  %sub32 = add nsw i32 %conv31, -1
  %workers.i = getelementptr inbounds nuw i8, ptr %3, i64 8
  %7 = load atomic i32, ptr %workers.i monotonic, align 8
  %cmp.i = icmp slt i32 %7, %sub32
  br i1 %cmp.i, label %if.then.i, label %if.end.i

if.then.i:
  tail call fastcc void @grow(ptr noundef nonnull %3, i32 noundef range(i32 -2147483648, 2147483647) %sub32)
  br label %if.end.i

if.end.i:
  %epoch1.i = getelementptr inbounds nuw i8, ptr %3, i64 32
  %8 = load i32, ptr %epoch1.i, align 32
  %job2.i = getelementptr inbounds nuw i8, ptr %3, i64 192
  store ptr %job, ptr %job2.i, align 64
  %remaining.i = getelementptr inbounds nuw i8, ptr %3, i64 128
  store atomic i32 %sub32, ptr %remaining.i monotonic, align 64
  %cmp3.not66.i = icmp eq i32 %sub32, 0
  br i1 %cmp3.not66.i, label %for.cond.cleanup.i, label %for.body.lr.ph.i

for.body.lr.ph.i:
  %lines.i = getelementptr inbounds nuw i8, ptr %3, i64 448
  br label %for.body.i

for.cond.cleanup.i:
  %parked.i = getelementptr inbounds nuw i8, ptr %3, i64 64
  %9 = atomicrmw or ptr %parked.i, i32 0 seq_cst, align 64
  %cmp7.i = icmp sgt i32 %9, 0
  br i1 %cmp7.i, label %if.then8.i, label %if.end10.i

for.body.i:
  %indvars.iv.i = phi i64 [ 1, %for.body.lr.ph.i ], [ %indvars.iv.next.i, %for.body.i ]
  %arrayidx.i = getelementptr inbounds nuw %struct.line, ptr %lines.i, i64 %indvars.iv.i
  store atomic i32 1, ptr %arrayidx.i release, align 64
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %exitcond.not.i = icmp eq i64 %indvars.iv.next.i, %cond.i
  br i1 %exitcond.not.i, label %for.cond.cleanup.i, label %for.body.i

if.then8.i:
  %mutex.i = getelementptr inbounds nuw i8, ptr %3, i64 256
  call void @AcquireSRWLockExclusive(ptr noundef nonnull %mutex.i) nounwind
  %work.i = getelementptr inbounds nuw i8, ptr %3, i64 320
  call void @WakeAllConditionVariable(ptr noundef nonnull %work.i) nounwind
  call void @ReleaseSRWLockExclusive(ptr noundef nonnull %mutex.i) nounwind
  br label %if.end10.i

if.end10.i:
  call fastcc void @run_piece(ptr noundef nonnull %job, i32 noundef 0)
  br i1 %cmp3.not66.i, label %for.cond.cleanup14.i, label %for.body15.lr.ph.i

for.body15.lr.ph.i:
  %lines16.i = getelementptr inbounds nuw i8, ptr %3, i64 448
  %10 = zext nneg i32 %sub32 to i64
  br label %for.body15.i

for.cond.cleanup14.i:
  %11 = load atomic i32, ptr %remaining.i acquire, align 64
  %cmp.i.i = icmp slt i32 %11, 1
  br i1 %cmp.i.i, label %if.end30.i, label %if.then29.i

for.body15.i:
  %indvars.iv71.i = phi i64 [ %10, %for.body15.lr.ph.i ], [ %indvars.iv.next72.i, %for.inc24.i ]
  %arrayidx18.i = getelementptr inbounds nuw %struct.line, ptr %lines16.i, i64 %indvars.iv71.i
  %12 = cmpxchg ptr %arrayidx18.i, i32 1, i32 0 acq_rel acquire, align 4
  %13 = extractvalue { i32, i1 } %12, 1
  br i1 %13, label %if.then19.i, label %for.inc24.i

if.then19.i:
  %14 = trunc nuw nsw i64 %indvars.iv71.i to i32
  call fastcc void @run_piece(ptr noundef nonnull %job, i32 noundef %14)
  %15 = atomicrmw sub ptr %remaining.i, i32 1 seq_cst, align 64
  br label %for.inc24.i

for.inc24.i:
  %indvars.iv.next72.i = add nsw i64 %indvars.iv71.i, -1
  %cmp13.i = icmp sgt i64 %indvars.iv71.i, 1
  br i1 %cmp13.i, label %for.body15.i, label %for.cond.cleanup14.i

if.then29.i:
  %16 = load ptr, ptr %job, align 64
  call fastcc void @join(ptr noundef %16, ptr noundef nonnull %3, i32 noundef %8)
  br label %if.end30.i

if.end30.i:
  %17 = load i32, ptr %epoch1.i, align 32
  %cmp32.not.i = icmp eq i32 %17, %8
  br i1 %cmp32.not.i, label %if.end34.i, label %cleanup

if.end34.i:
  store atomic i32 0, ptr %3 release, align 64
  %18 = load atomic i32, ptr %result acquire, align 64
  br label %cleanup

if.end34:
  %conv35 = trunc nuw nsw i64 %cond.i to i32
  br label %for.body

for.cond.cleanup:
  %19 = load atomic i32, ptr %result monotonic, align 64
  br label %cleanup

for.body:
  %index.073 = phi i32 [ 0, %if.end34 ], [ %inc, %for.body ]
  call fastcc void @run_piece(ptr noundef nonnull %job, i32 noundef %index.073)
  %inc = add nuw i32 %index.073, 1
  %exitcond.not = icmp eq i32 %inc, %conv35
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body

cleanup:
  %retval.0 = phi i32 [ %19, %for.cond.cleanup ], [ %18, %if.end34.i ], [ 7, %if.end30.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %job) nounwind
  br label %return

return:
  %retval.2 = phi i32 [ 0, %entry ], [ %call, %if.then4 ], [ %retval.0, %cleanup ]
  ret i32 %retval.2
}

define i32 @tn_parallel_for_dynamic(ptr noundef %block, ptr noundef %task, i64 noundef %low, i64 noundef %high, i64 noundef %grain) local_unnamed_addr nounwind {
entry:
  %call = tail call fastcc i32 @parallel_for(ptr noundef %block, ptr noundef %task, i64 noundef %low, i64 noundef %high, i64 noundef %grain, i1 noundef zeroext true)
  ret i32 %call
}

define i32 @tn_clear(ptr noundef %block) local_unnamed_addr nounwind {
entry:
  %arrayidx = getelementptr inbounds nuw i8, ptr %block, i64 136
  %0 = load i64, ptr %arrayidx, align 8
  %call.i = tail call fastcc i32 @parallel_for(ptr noundef %block, ptr noundef nonnull @clear_piece, i64 noundef 0, i64 noundef %0, i64 noundef 262144, i1 noundef zeroext false)
  ret i32 %call.i
}

define internal noundef i32 @clear_piece(ptr noundef readonly captures(none) %block, i64 noundef %low, i64 noundef %high, i32 %tid) nounwind {
entry:
  %slots = getelementptr inbounds nuw i8, ptr %block, i64 128
  %0 = load i64, ptr %slots, align 8
  %1 = inttoptr i64 %0 to ptr
  %add.ptr = getelementptr inbounds i8, ptr %1, i64 %low
  %sub = sub nsw i64 %high, %low
  tail call void @llvm.memset.p0.i64(ptr align 1 %add.ptr, i8 0, i64 %sub, i1 false)
  ret i32 0
}

define ptr @tn_arena_alloc(ptr noundef captures(none) %block, i32 noundef %tid, i64 noundef %bytes) local_unnamed_addr nounwind {
entry:
  %memory_limit = getelementptr inbounds nuw i8, ptr %block, i64 120
  %0 = load i64, ptr %memory_limit, align 8
  %cmp = icmp ugt i64 %bytes, %0
  br i1 %cmp, label %return, label %if.end

if.end:
  %sub = add i64 %bytes, 63
  %and = and i64 %sub, -64
  %arenas1.i = getelementptr inbounds nuw i8, ptr %block, i64 112
  %1 = load atomic i64, ptr %arenas1.i acquire, align 8
  %2 = inttoptr i64 %1 to ptr
  %idxprom.i = sext i32 %tid to i64
  %arrayidx.i = getelementptr inbounds %struct.arena, ptr %2, i64 %idxprom.i
  %cmp131 = icmp eq i64 %1, 0
  br i1 %cmp131, label %land.lhs.true, label %if.end5

land.lhs.true:
  %call2 = tail call fastcc ptr @create_arenas(ptr noundef nonnull %block, i32 noundef %tid)
  %cmp3 = icmp eq ptr %call2, null
  br i1 %cmp3, label %return, label %if.end5

if.end5:
  %arena.0 = phi ptr [ %call2, %land.lhs.true ], [ %arrayidx.i, %if.end ]
  %3 = load ptr, ptr %arena.0, align 64
  %cmp6 = icmp eq ptr %3, null
  br i1 %cmp6, label %if.then9, label %lor.lhs.false

lor.lhs.false:
  %offset = getelementptr inbounds nuw i8, ptr %arena.0, i64 8
  %4 = load i64, ptr %offset, align 8
  %add7 = add i64 %4, %and
  %capacity = getelementptr inbounds nuw i8, ptr %3, i64 16
  %5 = load i64, ptr %capacity, align 16
  %cmp8 = icmp ugt i64 %add7, %5
  br i1 %cmp8, label %if.then9, label %if.end11

if.then9:
  %call10 = tail call fastcc ptr @grow_arena(ptr noundef nonnull %block, ptr noundef %arena.0, i64 noundef %and)
  br label %return

if.end11:
  %data = getelementptr inbounds nuw i8, ptr %3, i64 64
  %add.ptr = getelementptr inbounds nuw i8, ptr %data, i64 %4
  store i64 %add7, ptr %offset, align 8
  br label %return

return:
  %retval.2 = phi ptr [ null, %entry ], [ null, %land.lhs.true ], [ %call10, %if.then9 ], [ %add.ptr, %if.end11 ]
  ret ptr %retval.2
}

define internal fastcc ptr @create_arenas(ptr noundef captures(none) %block, i32 noundef %tid) unnamed_addr noinline nounwind {
entry:
  %num_threads = getelementptr inbounds nuw i8, ptr %block, i64 96
  %0 = load i32, ptr %num_threads, align 8
  %conv = sext i32 %0 to i64
  %mul = shl nsw i64 %conv, 6
  %call.i = tail call ptr @_aligned_malloc(i64 noundef %mul, i64 noundef 64) nounwind
  %cmp = icmp eq ptr %call.i, null
  br i1 %cmp, label %cleanup, label %if.end

if.end:
  tail call void @llvm.memset.p0.i64(ptr nonnull align 64 %call.i, i8 0, i64 %mul, i1 false)
  %arenas = getelementptr inbounds nuw i8, ptr %block, i64 112
  %1 = ptrtoint ptr %call.i to i64
  %2 = cmpxchg ptr %arenas, i64 0, i64 %1 acq_rel acquire, align 8
  %3 = extractvalue { i64, i1 } %2, 1
  br i1 %3, label %if.end3, label %if.then2

if.then2:
  %4 = extractvalue { i64, i1 } %2, 0
  %5 = inttoptr i64 %4 to ptr
  tail call void @_aligned_free(ptr noundef nonnull %call.i) nounwind
  %idxprom = sext i32 %tid to i64
  %arrayidx = getelementptr inbounds %struct.arena, ptr %5, i64 %idxprom
  br label %cleanup

if.end3:
  %idxprom4 = sext i32 %tid to i64
  %arrayidx5 = getelementptr inbounds %struct.arena, ptr %call.i, i64 %idxprom4
  br label %cleanup

cleanup:
  %retval.0 = phi ptr [ %arrayidx, %if.then2 ], [ %arrayidx5, %if.end3 ], [ null, %entry ]
  ret ptr %retval.0
}

define internal fastcc ptr @grow_arena(ptr noundef captures(none) %block, ptr noundef nonnull captures(none) %arena, i64 noundef range(i64 0, -63) %size) unnamed_addr noinline nounwind {
entry:
  %0 = load ptr, ptr %arena, align 64
  %cmp = icmp eq ptr %0, null
  br i1 %cmp, label %cond.end11, label %cond.end

cond.end:
  %1 = load ptr, ptr %0, align 64
  %cmp2.not = icmp eq ptr %1, null
  br i1 %cmp2.not, label %cond.false9, label %land.lhs.true

land.lhs.true:
  %capacity = getelementptr inbounds nuw i8, ptr %1, i64 16
  %2 = load i64, ptr %capacity, align 16
  %cmp3 = icmp ult i64 %2, %size
  br i1 %cmp3, label %while.body.lr.ph.i, label %if.end30

while.body.lr.ph.i:
  %committed.i = getelementptr inbounds i8, ptr %block, i64 -72
  br label %while.body.i

while.body.i:
  %chunk.addr.06.i = phi ptr [ %1, %while.body.lr.ph.i ], [ %3, %while.body.i ]
  %3 = load ptr, ptr %chunk.addr.06.i, align 64
  %capacity.i = getelementptr inbounds nuw i8, ptr %chunk.addr.06.i, i64 16
  %4 = load i64, ptr %capacity.i, align 16
  %5 = atomicrmw sub ptr %committed.i, i64 %4 monotonic, align 8
  tail call void @_aligned_free(ptr noundef nonnull %chunk.addr.06.i) nounwind
  %cmp.not.i = icmp eq ptr %3, null
  br i1 %cmp.not.i, label %free_chain.exit, label %while.body.i

free_chain.exit:
  store ptr null, ptr %0, align 64
  br label %cond.false9

cond.false9:
  %capacity10 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %6 = load i64, ptr %capacity10, align 16
  %mul = shl i64 %6, 1
  %cond.i = tail call noundef i64 @llvm.umin.i64(i64 %mul, i64 67108864)
  br label %cond.end11

cond.end11:
  %cond12 = phi i64 [ %cond.i, %cond.false9 ], [ 262144, %entry ]
  %cmp13 = icmp ugt i64 %cond12, %size
  br i1 %cmp13, label %if.then14, label %if.then18

if.then14:
  %committed.i64 = getelementptr inbounds i8, ptr %block, i64 -72
  %7 = atomicrmw add ptr %committed.i64, i64 %cond12 monotonic, align 8
  %add.i = add i64 %7, %cond12
  %memory_limit.i = getelementptr inbounds nuw i8, ptr %block, i64 120
  %8 = load i64, ptr %memory_limit.i, align 8
  %cmp.not.i65 = icmp ugt i64 %add.i, %8
  br i1 %cmp.not.i65, label %if.then4.i, label %if.end.i

if.end.i:
  %add1.i = add nuw nsw i64 %cond12, 64
  %call.i.i = tail call ptr @_aligned_malloc(i64 noundef %add1.i, i64 noundef 64) nounwind
  %cmp3.i = icmp eq ptr %call.i.i, null
  br i1 %cmp3.i, label %if.then4.i, label %if.end23

if.then4.i:
  %9 = atomicrmw sub ptr %committed.i64, i64 %cond12 monotonic, align 8
  br label %if.then18

if.then18:
  %committed.i66 = getelementptr inbounds i8, ptr %block, i64 -72
  %10 = atomicrmw add ptr %committed.i66, i64 %size monotonic, align 8
  %add.i67 = add i64 %10, %size
  %memory_limit.i68 = getelementptr inbounds nuw i8, ptr %block, i64 120
  %11 = load i64, ptr %memory_limit.i68, align 8
  %cmp.not.i69 = icmp ugt i64 %add.i67, %11
  br i1 %cmp.not.i69, label %if.end20, label %if.end.i70

if.end.i70:
  %add1.i71 = add i64 %size, 64
  %call.i.i72 = tail call ptr @_aligned_malloc(i64 noundef %add1.i71, i64 noundef 64) nounwind
  %cmp3.i73 = icmp eq ptr %call.i.i72, null
  br i1 %cmp3.i73, label %if.end20, label %if.end23

if.end20:
  %12 = atomicrmw sub ptr %committed.i66, i64 %size monotonic, align 8
  br label %cleanup32

if.end23:
  %call.i.i.sink91 = phi ptr [ %call.i.i, %if.end.i ], [ %call.i.i72, %if.end.i70 ]
  %cond12.sink = phi i64 [ %cond12, %if.end.i ], [ %size, %if.end.i70 ]
  tail call void @llvm.memset.p0.i64(ptr noundef nonnull align 64 dereferenceable(16) %call.i.i.sink91, i8 0, i64 16, i1 false)
  %.compoundliteral.sroa.2.0..sroa_idx.i = getelementptr inbounds nuw i8, ptr %call.i.i.sink91, i64 16
  store i64 %cond12.sink, ptr %.compoundliteral.sroa.2.0..sroa_idx.i, align 16
  %.compoundliteral.sroa.3.0..sroa_idx.i = getelementptr inbounds nuw i8, ptr %call.i.i.sink91, i64 24
  tail call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(40) %.compoundliteral.sroa.3.0..sroa_idx.i, i8 0, i64 40, i1 false)
  %previous = getelementptr inbounds nuw i8, ptr %call.i.i.sink91, i64 8
  store ptr %0, ptr %previous, align 8
  br i1 %cmp, label %if.then25, label %if.else

if.then25:
  %first = getelementptr inbounds nuw i8, ptr %arena, i64 16
  store ptr %call.i.i.sink91, ptr %first, align 16
  br label %if.end30

if.else:
  %base = getelementptr inbounds nuw i8, ptr %0, i64 24
  %13 = load i64, ptr %base, align 8
  %capacity26 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %14 = load i64, ptr %capacity26, align 16
  %add = add i64 %14, %13
  %base27 = getelementptr inbounds nuw i8, ptr %call.i.i.sink91, i64 24
  store i64 %add, ptr %base27, align 8
  store ptr %call.i.i.sink91, ptr %0, align 64
  br label %if.end30

if.end30:
  %chunk.3 = phi ptr [ %1, %land.lhs.true ], [ %call.i.i.sink91, %if.then25 ], [ %call.i.i.sink91, %if.else ]
  store ptr %chunk.3, ptr %arena, align 64
  %offset = getelementptr inbounds nuw i8, ptr %arena, i64 8
  store i64 %size, ptr %offset, align 8
  %data = getelementptr inbounds nuw i8, ptr %chunk.3, i64 64
  br label %cleanup32

cleanup32:
  %retval.1 = phi ptr [ %data, %if.end30 ], [ null, %if.end20 ]
  ret ptr %retval.1
}

define i64 @tn_arena_mark(ptr noundef readonly captures(none) %block, i32 noundef %tid) local_unnamed_addr nounwind {
entry:
  %arenas1.i = getelementptr inbounds nuw i8, ptr %block, i64 112
  %0 = load atomic i64, ptr %arenas1.i acquire, align 8
  %1 = inttoptr i64 %0 to ptr
  %idxprom.i = sext i32 %tid to i64
  %arrayidx.i = getelementptr inbounds %struct.arena, ptr %1, i64 %idxprom.i
  %cmp6 = icmp eq i64 %0, 0
  br i1 %cmp6, label %cond.end, label %lor.lhs.false

lor.lhs.false:
  %2 = load ptr, ptr %arrayidx.i, align 64
  %cmp1 = icmp eq ptr %2, null
  br i1 %cmp1, label %cond.end, label %cond.false

cond.false:
  %base = getelementptr inbounds nuw i8, ptr %2, i64 24
  %3 = load i64, ptr %base, align 8
  %offset = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 8
  %4 = load i64, ptr %offset, align 8
  %add = add i64 %4, %3
  br label %cond.end

cond.end:
  %cond = phi i64 [ %add, %cond.false ], [ 0, %lor.lhs.false ], [ 0, %entry ]
  ret i64 %cond
}

define void @tn_arena_release(ptr noundef readonly captures(none) %block, i32 noundef %tid, i64 noundef %mark) local_unnamed_addr nounwind {
entry:
  %arenas1.i = getelementptr inbounds nuw i8, ptr %block, i64 112
  %0 = load atomic i64, ptr %arenas1.i acquire, align 8
  %1 = inttoptr i64 %0 to ptr
  %idxprom.i = sext i32 %tid to i64
  %arrayidx.i = getelementptr inbounds %struct.arena, ptr %1, i64 %idxprom.i
  %cmp15 = icmp eq i64 %0, 0
  br i1 %cmp15, label %cleanup, label %lor.lhs.false

lor.lhs.false:
  %2 = load ptr, ptr %arrayidx.i, align 64
  %cmp1 = icmp eq ptr %2, null
  br i1 %cmp1, label %cleanup, label %while.cond.preheader

while.cond.preheader:
  %base16 = getelementptr inbounds nuw i8, ptr %2, i64 24
  %3 = load i64, ptr %base16, align 8
  %cmp317 = icmp ugt i64 %3, %mark
  br i1 %cmp317, label %while.body, label %while.end

while.body:
  %4 = phi ptr [ %5, %while.body ], [ %2, %while.cond.preheader ]
  %previous = getelementptr inbounds nuw i8, ptr %4, i64 8
  %5 = load ptr, ptr %previous, align 8
  store ptr %5, ptr %arrayidx.i, align 64
  %base = getelementptr inbounds nuw i8, ptr %5, i64 24
  %6 = load i64, ptr %base, align 8
  %cmp3 = icmp ugt i64 %6, %mark
  br i1 %cmp3, label %while.body, label %while.end

while.end:
  %.lcssa = phi i64 [ %3, %while.cond.preheader ], [ %6, %while.body ]
  %sub = sub nuw i64 %mark, %.lcssa
  %offset = getelementptr inbounds nuw i8, ptr %arrayidx.i, i64 8
  store i64 %sub, ptr %offset, align 8
  br label %cleanup

cleanup:
  ret void
}

define void @tn_arena_free(ptr noundef captures(none) %block) local_unnamed_addr nounwind {
entry:
  %arenas1.i = getelementptr inbounds nuw i8, ptr %block, i64 112
  %0 = load atomic i64, ptr %arenas1.i acquire, align 8
  %1 = inttoptr i64 %0 to ptr
  %cmp = icmp eq i64 %0, 0
  br i1 %cmp, label %cleanup, label %if.end

if.end:
  %num_threads.i = getelementptr inbounds nuw i8, ptr %block, i64 96
  %2 = load i32, ptr %num_threads.i, align 8
  %cmp11.i = icmp sgt i32 %2, 0
  br i1 %cmp11.i, label %for.body.lr.ph.i, label %rewind_arenas.exit

for.body.lr.ph.i:
  %committed.i.i = getelementptr inbounds i8, ptr %block, i64 -72
  br label %for.body.i

for.body.i:
  %indvars.iv.i = phi i64 [ 0, %for.body.lr.ph.i ], [ %indvars.iv.next.i, %free_chain.exit.i ]
  %3 = load atomic i64, ptr %arenas1.i acquire, align 8
  %4 = inttoptr i64 %3 to ptr
  %arrayidx.i.i = getelementptr inbounds nuw %struct.arena, ptr %4, i64 %indvars.iv.i
  %cmp.i.i = icmp eq i64 %3, 0
  %cond.i.i = select i1 %cmp.i.i, ptr null, ptr %arrayidx.i.i
  %first.i = getelementptr inbounds nuw i8, ptr %cond.i.i, i64 16
  %5 = load ptr, ptr %first.i, align 16
  %cmp.not5.i.i = icmp eq ptr %5, null
  br i1 %cmp.not5.i.i, label %free_chain.exit.i, label %while.body.i.i

while.body.i.i:
  %chunk.addr.06.i.i = phi ptr [ %6, %while.body.i.i ], [ %5, %for.body.i ]
  %6 = load ptr, ptr %chunk.addr.06.i.i, align 64
  %capacity.i.i = getelementptr inbounds nuw i8, ptr %chunk.addr.06.i.i, i64 16
  %7 = load i64, ptr %capacity.i.i, align 16
  %8 = atomicrmw sub ptr %committed.i.i, i64 %7 monotonic, align 8
  tail call void @_aligned_free(ptr noundef nonnull %chunk.addr.06.i.i) nounwind
  %cmp.not.i.i = icmp eq ptr %6, null
  br i1 %cmp.not.i.i, label %free_chain.exit.i, label %while.body.i.i

free_chain.exit.i:
  store ptr null, ptr %first.i, align 16
  %first2.i = getelementptr inbounds nuw i8, ptr %arrayidx.i.i, i64 16
  %9 = load ptr, ptr %first2.i, align 16
  store ptr %9, ptr %arrayidx.i.i, align 64
  %offset.i = getelementptr inbounds nuw i8, ptr %arrayidx.i.i, i64 8
  store i64 0, ptr %offset.i, align 8
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %10 = load i32, ptr %num_threads.i, align 8
  %11 = sext i32 %10 to i64
  %cmp.i5 = icmp slt i64 %indvars.iv.next.i, %11
  br i1 %cmp.i5, label %for.body.i, label %rewind_arenas.exit

rewind_arenas.exit:
  store atomic i64 0, ptr %arenas1.i monotonic, align 8
  tail call void @_aligned_free(ptr noundef nonnull %1) nounwind
  br label %cleanup

cleanup:
  ret void
}

define float @__powisf2(float noundef %base, i32 noundef %exponent) local_unnamed_addr nounwind {
entry:
  %cond = tail call i32 @llvm.abs.i32(i32 %exponent, i1 false)
  %and18 = and i32 %cond, 1
  %tobool.not19 = icmp eq i32 %and18, 0
  %result.120 = select i1 %tobool.not19, float 1.000000e+00, float %base
  %shr21 = lshr i32 %cond, 1
  %cmp122 = icmp eq i32 %shr21, 0
  br i1 %cmp122, label %if.then2, label %for.inc

if.then2:
  %result.1.lcssa = phi float [ %result.120, %entry ], [ %result.1, %for.inc ]
  %cmp = icmp slt i32 %exponent, 0
  %div = fdiv float 1.000000e+00, %result.1.lcssa
  %cond9 = select i1 %cmp, float %div, float %result.1.lcssa
  ret float %cond9

for.inc:
  %shr25 = phi i32 [ %shr, %for.inc ], [ %shr21, %entry ]
  %result.124 = phi float [ %result.1, %for.inc ], [ %result.120, %entry ]
  %base.addr.023 = phi float [ %mul4, %for.inc ], [ %base, %entry ]
  %mul4 = fmul float %base.addr.023, %base.addr.023
  %and = and i32 %shr25, 1
  %tobool.not = icmp eq i32 %and, 0
  %mul = fmul float %mul4, %result.124
  %result.1 = select i1 %tobool.not, float %result.124, float %mul
  %shr = lshr i32 %shr25, 1
  %cmp1 = icmp eq i32 %shr, 0
  br i1 %cmp1, label %if.then2, label %for.inc
}

define double @__powidf2(double noundef %base, i32 noundef %exponent) local_unnamed_addr nounwind {
entry:
  %cond = tail call i32 @llvm.abs.i32(i32 %exponent, i1 false)
  %and18 = and i32 %cond, 1
  %tobool.not19 = icmp eq i32 %and18, 0
  %result.120 = select i1 %tobool.not19, double 1.000000e+00, double %base
  %shr21 = lshr i32 %cond, 1
  %cmp122 = icmp eq i32 %shr21, 0
  br i1 %cmp122, label %if.then2, label %for.inc

if.then2:
  %result.1.lcssa = phi double [ %result.120, %entry ], [ %result.1, %for.inc ]
  %cmp = icmp slt i32 %exponent, 0
  %div = fdiv double 1.000000e+00, %result.1.lcssa
  %cond9 = select i1 %cmp, double %div, double %result.1.lcssa
  ret double %cond9

for.inc:
  %shr25 = phi i32 [ %shr, %for.inc ], [ %shr21, %entry ]
  %result.124 = phi double [ %result.1, %for.inc ], [ %result.120, %entry ]
  %base.addr.023 = phi double [ %mul4, %for.inc ], [ %base, %entry ]
  %mul4 = fmul double %base.addr.023, %base.addr.023
  %and = and i32 %shr25, 1
  %tobool.not = icmp eq i32 %and, 0
  %mul = fmul double %mul4, %result.124
  %result.1 = select i1 %tobool.not, double %result.124, double %mul
  %shr = lshr i32 %shr25, 1
  %cmp1 = icmp eq i32 %shr, 0
  br i1 %cmp1, label %if.then2, label %for.inc
}

define half @__truncdfhf2(double noundef %value) local_unnamed_addr nounwind {
entry:
  %0 = tail call double @llvm.fabs.f64(double %value)
  %and1 = bitcast double %0 to i64
  %cmp = fcmp uno double %value, 0.000000e+00
  br i1 %cmp, label %if.then, label %if.else

if.then:
  %shr3 = lshr i64 %and1, 42
  %1 = trunc i64 %shr3 to i16
  %conv5 = and i16 %1, 511
  %or = or disjoint i16 %conv5, 32256
  br label %if.end26

if.else:
  %cmp8 = fcmp ult double %0, 6.552000e+04
  br i1 %cmp8, label %if.else11, label %if.end26

if.else11:
  %cmp12 = fcmp olt double %0, 0x3F10000000000000
  br i1 %cmp12, label %if.then14, label %if.else16

if.then14:
  %add = fadd double %0, 0x41B0000000000000
  %2 = bitcast double %add to i64
  %conv15 = trunc i64 %2 to i16
  br label %if.end26

if.else16:
  %sub18 = add nuw i64 %and1, 2199023255551
  %shr19 = lshr i64 %and1, 42
  %and20 = and i64 %shr19, 1
  %add21 = add nuw i64 %sub18, %and20
  %shr22 = lshr i64 %add21, 42
  %3 = trunc i64 %shr22 to i16
  %conv24 = add i16 %3, 16384
  br label %if.end26

if.end26:
  %half.sroa.0.0 = phi i16 [ %or, %if.then ], [ %conv24, %if.else16 ], [ %conv15, %if.then14 ], [ 31744, %if.else ]
  %4 = bitcast double %value to i64
  %shr = lshr i64 %4, 48
  %5 = trunc nuw i64 %shr to i16
  %conv = and i16 %5, -32768
  %or29 = or i16 %half.sroa.0.0, %conv
  %6 = bitcast i16 %or29 to half
  ret half %6
}

declare void @llvm.memcpy.p0.p0.i64(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i64, i1 immarg) nounwind

define i32 @tn_replay(ptr noundef captures(none) %block) local_unnamed_addr nounwind {
entry:
  %lane = alloca %struct.lane, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %lane) nounwind
  %slots = getelementptr inbounds nuw i8, ptr %block, i64 128
  %0 = load i64, ptr %slots, align 8
  %1 = inttoptr i64 %0 to ptr
  store ptr %1, ptr %lane, align 8
  %registers = getelementptr inbounds nuw i8, ptr %lane, i64 8
  %arrayidx2 = getelementptr inbounds nuw i8, ptr %block, i64 136
  %2 = load i64, ptr %arrayidx2, align 8
  %3 = inttoptr i64 %2 to ptr
  store ptr %3, ptr %registers, align 8
  %block3 = getelementptr inbounds nuw i8, ptr %lane, i64 16
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(32) %block3, i8 0, i64 32, i1 false)
  %call = call fastcc i32 @run_lane(ptr noundef %block, ptr noundef nonnull %lane)
  %cmp.not = icmp eq i32 %call, 0
  br i1 %cmp.not, label %if.end, label %if.then

if.then:
  %site = getelementptr inbounds nuw i8, ptr %lane, i64 44
  %4 = load i32, ptr %site, align 4
  %5 = cmpxchg ptr %block, i32 0, i32 %call acq_rel acquire, align 4
  %6 = extractvalue { i32, i1 } %5, 1
  br i1 %6, label %if.then.i, label %cleanup

if.then.i:
  %site1.i = getelementptr inbounds nuw i8, ptr %block, i64 4
  store atomic i32 %4, ptr %site1.i monotonic, align 4
  %stop.i.i = getelementptr inbounds nuw i8, ptr %block, i64 56
  %7 = cmpxchg ptr %stop.i.i, i32 0, i32 %call acq_rel acquire, align 4
  br label %cleanup

if.end:
  %end = getelementptr inbounds nuw i8, ptr %lane, i64 32
  %8 = load i64, ptr %end, align 8
  %arrayidx9 = getelementptr inbounds nuw i8, ptr %block, i64 144
  store i64 %8, ptr %arrayidx9, align 8
  br label %cleanup

cleanup:
  call void @llvm.lifetime.end.p0(ptr nonnull %lane) nounwind
  ret i32 %call
}

define internal fastcc i32 @run_lane(ptr noundef captures(none) %block, ptr noundef %lane) unnamed_addr nounwind {
entry:
  %bits = alloca %union.number, align 8
  %0 = load ptr, ptr %lane, align 8
  %registers1 = getelementptr inbounds nuw i8, ptr %lane, i64 8
  %1 = load ptr, ptr %registers1, align 8
  %member41 = getelementptr inbounds nuw i8, ptr %lane, i64 24
  %sub.ptr.rhs.cast = ptrtoint ptr %0 to i64
  %stop.i = getelementptr inbounds nuw i8, ptr %block, i64 56
  %lane.i = getelementptr inbounds i8, ptr %block, i64 -56
  %thread.i = getelementptr inbounds i8, ptr %block, i64 -112
  %left.i = getelementptr inbounds i8, ptr %block, i64 -84
  %block2.i = getelementptr inbounds nuw i8, ptr %lane, i64 16
  %flags.i = getelementptr inbounds nuw i8, ptr %block, i64 60
  %thread_state.i = getelementptr inbounds i8, ptr %block, i64 -120
  %python_error32.i = getelementptr inbounds i8, ptr %block, i64 -80
  br label %for.cond

for.cond:
  %at.0 = phi ptr [ %0, %entry ], [ %at.1, %cleanup ]
  %2 = load i64, ptr %at.0, align 8
  switch i64 %2, label %sw.default [
    i64 0, label %sw.bb
    i64 1, label %sw.bb3
    i64 2, label %sw.bb7
    i64 3, label %sw.bb11
    i64 13, label %sw.bb20
    i64 14, label %sw.bb31
    i64 15, label %sw.bb39
    i64 4, label %sw.bb48
    i64 16, label %for.cond69.preheader
    i64 5, label %sw.bb76
    i64 6, label %sw.bb85
    i64 7, label %sw.bb92
    i64 8, label %sw.bb102
    i64 9, label %sw.bb109
    i64 10, label %sw.bb120
    i64 17, label %sw.bb130
    i64 18, label %sw.bb139
    i64 19, label %sw.bb149
    i64 20, label %sw.bb160
    i64 21, label %sw.bb171
    i64 22, label %sw.bb182
    i64 11, label %sw.bb186
  ]

for.cond69.preheader:
  %arrayidx70 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %move.0436 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %3 = load i64, ptr %arrayidx70, align 8
  %cmp71437 = icmp sgt i64 %3, 0
  br i1 %cmp71437, label %for.body, label %cleanup

sw.bb:
  %arrayidx2 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %4 = load i64, ptr %arrayidx2, align 8
  %end = getelementptr inbounds nuw i8, ptr %lane, i64 32
  store i64 %4, ptr %end, align 8
  br label %cleanup214

sw.bb3:
  %sub.ptr.lhs.cast = ptrtoint ptr %at.0 to i64
  %sub.ptr.sub = sub i64 %sub.ptr.lhs.cast, %sub.ptr.rhs.cast
  %sub.ptr.div = lshr exact i64 %sub.ptr.sub, 3
  %conv = trunc i64 %sub.ptr.div to i32
  %5 = load atomic i32, ptr %stop.i monotonic, align 8
  %cmp.i = icmp eq i32 %5, 0
  br i1 %cmp.i, label %land.lhs.true.i, label %tn_poll.exit

land.lhs.true.i:
  %6 = load ptr, ptr %lane.i, align 8
  %cmp1.not.i = icmp eq ptr %6, null
  br i1 %cmp1.not.i, label %if.then5.i, label %if.then.i

if.then.i:
  %block.i.i = getelementptr inbounds nuw i8, ptr %6, i64 16
  %7 = load ptr, ptr %block.i.i, align 8
  %stop.i.i = getelementptr inbounds nuw i8, ptr %7, i64 56
  %8 = load atomic i32, ptr %stop.i.i monotonic, align 8
  %cmp.not.i.i = icmp eq i32 %8, 0
  br i1 %cmp.not.i.i, label %if.end.i, label %tn_poll.exit

if.end.i:
  %member.i.i = getelementptr inbounds nuw i8, ptr %6, i64 24
  %9 = load i64, ptr %member.i.i, align 8
  %arrayidx.i.i.i = getelementptr inbounds nuw i8, ptr %7, i64 144
  %10 = load atomic i64, ptr %arrayidx.i.i.i monotonic, align 8
  %cmp3.i.not.i = icmp sgt i64 %9, %10
  br i1 %cmp3.i.not.i, label %tn_poll.exit, label %if.then5.i

if.then5.i:
  %call.i.i = tail call i32 @GetCurrentThreadId() nounwind
  %conv.i.i = zext i32 %call.i.i to i64
  %11 = load i64, ptr %thread.i, align 16
  %cmp7.not.i = icmp eq i64 %11, %conv.i.i
  br i1 %cmp7.not.i, label %lor.lhs.false.i, label %if.then

lor.lhs.false.i:
  %12 = load i32, ptr %left.i, align 4
  %dec.i = add nsw i32 %12, -1
  store i32 %dec.i, ptr %left.i, align 4
  %cmp8.i = icmp sgt i32 %12, 0
  br i1 %cmp8.i, label %if.then, label %if.end12.i

if.end12.i:
  %call11.i = tail call fastcc i32 @poll_clock(ptr noundef nonnull %block)
  %cmp13.i = icmp eq i32 %call11.i, 0
  br i1 %cmp13.i, label %if.then, label %tn_poll.exit

tn_poll.exit:
  %status.133.i = phi i32 [ 1, %if.end12.i ], [ 1, %if.end.i ], [ %8, %if.then.i ], [ %5, %sw.bb3 ]
  tail call fastcc void @leave(ptr noundef nonnull %block, i32 noundef %conv)
  br label %if.end

if.then:
  %arrayidx5 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %13 = load i64, ptr %arrayidx5, align 8
  %14 = inttoptr i64 %13 to ptr
  %add.ptr.i62.i = getelementptr inbounds i8, ptr %14, i64 -128
  %15 = load ptr, ptr %block2.i, align 8
  %cmp.not.i = icmp eq ptr %15, null
  br i1 %cmp.not.i, label %if.end6.i, label %if.then.i367

if.then.i367:
  %stop.i.i368 = getelementptr inbounds nuw i8, ptr %15, i64 56
  %16 = load atomic i32, ptr %stop.i.i368 monotonic, align 8
  %cmp.not.i.i369 = icmp eq i32 %16, 0
  br i1 %cmp.not.i.i369, label %stop_of_member.exit.i, label %if.end

stop_of_member.exit.i:
  %17 = load i64, ptr %member41, align 8
  %arrayidx.i.i.i371 = getelementptr inbounds nuw i8, ptr %15, i64 144
  %18 = load atomic i64, ptr %arrayidx.i.i.i371 monotonic, align 8
  %cmp3.i.not.i372 = icmp sgt i64 %17, %18
  br i1 %cmp3.i.not.i372, label %if.end, label %if.end6.i

if.end6.i:
  %call.i.i373 = tail call i32 @GetCurrentThreadId() nounwind
  %conv.i.i374 = zext i32 %call.i.i373 to i64
  %19 = load i64, ptr %thread.i, align 16
  %cmp8.i376 = icmp eq i64 %19, %conv.i.i374
  %20 = load i32, ptr %flags.i, align 4
  %thread1.i.i = getelementptr inbounds i8, ptr %14, i64 -112
  store i64 %19, ptr %thread1.i.i, align 16
  %flags2.i.i = getelementptr inbounds nuw i8, ptr %14, i64 60
  store i32 %20, ptr %flags2.i.i, align 4
  store atomic i32 0, ptr %14 monotonic, align 16
  %site.i.i = getelementptr inbounds nuw i8, ptr %14, i64 4
  store atomic i32 -1, ptr %site.i.i monotonic, align 4
  %clock_read.i.i = getelementptr inbounds i8, ptr %14, i64 -96
  %tick_interval.i.i = getelementptr inbounds i8, ptr %14, i64 -64
  tail call void @llvm.memset.p0.i64(ptr noundef nonnull align 32 dereferenceable(20) %clock_read.i.i, i8 0, i64 20, i1 false)
  store i64 20000000, ptr %tick_interval.i.i, align 64
  %stop.i63.i = getelementptr inbounds nuw i8, ptr %14, i64 56
  store atomic i32 0, ptr %stop.i63.i release, align 8
  %21 = load ptr, ptr %block2.i, align 8
  %cmp11.i = icmp eq ptr %21, null
  %cond.i = select i1 %cmp11.i, ptr null, ptr %lane
  %lane12.i = getelementptr inbounds i8, ptr %14, i64 -56
  store ptr %cond.i, ptr %lane12.i, align 8
  br i1 %cmp8.i376, label %if.then13.i, label %if.end15.i

if.then13.i:
  %22 = load ptr, ptr %thread_state.i, align 8
  %thread_state14.i = getelementptr inbounds i8, ptr %14, i64 -120
  store ptr %22, ptr %thread_state14.i, align 8
  br label %if.end15.i

if.end15.i:
  %23 = load ptr, ptr %add.ptr.i62.i, align 64
  %call17.i = tail call i32 %23(ptr noundef nonnull %14) nounwind
  store atomic i32 -1, ptr %stop.i63.i release, align 8
  %arenas.i.i = getelementptr inbounds nuw i8, ptr %14, i64 112
  %24 = load atomic i64, ptr %arenas.i.i monotonic, align 16
  %cmp.not.i65.i = icmp eq i64 %24, 0
  br i1 %cmp.not.i65.i, label %if.end.i66.i, label %if.then.i.i

if.then.i.i:
  tail call fastcc void @reset_arenas(ptr noundef nonnull %14)
  br label %if.end.i66.i

if.end.i66.i:
  %cmp1.not.i.i = icmp eq i32 %call17.i, 0
  br i1 %cmp1.not.i.i, label %cond.false.i.i, label %end_launch.exit.i

cond.false.i.i:
  %25 = load atomic i32, ptr %14 monotonic, align 8
  br label %end_launch.exit.i

end_launch.exit.i:
  %cond.i67.i = phi i32 [ %25, %cond.false.i.i ], [ %call17.i, %if.end.i66.i ]
  br i1 %cmp8.i376, label %land.lhs.true.i377, label %if.end33.i

land.lhs.true.i377:
  %print_ring.i.i = getelementptr inbounds nuw i8, ptr %14, i64 72
  %26 = load ptr, ptr %print_ring.i.i, align 8
  %cmp.not.i68.i = icmp eq ptr %26, null
  br i1 %cmp.not.i68.i, label %if.then29.i, label %has_printed.exit.i

has_printed.exit.i:
  %head.i.i = getelementptr inbounds nuw i8, ptr %26, i64 8
  %27 = load atomic i64, ptr %head.i.i acquire, align 8
  %tail.i.i = getelementptr inbounds nuw i8, ptr %26, i64 16
  %28 = load atomic i64, ptr %tail.i.i monotonic, align 16
  %cmp2.i.not.i = icmp eq i64 %27, %28
  br i1 %cmp2.i.not.i, label %if.then29.i, label %if.then21.i

if.then21.i:
  %call23.i = tail call fastcc i32 @show_prints(ptr noundef nonnull %14)
  %cmp24.i = icmp eq i32 %cond.i67.i, 0
  %spec.select.i = select i1 %cmp24.i, i32 %call23.i, i32 %cond.i67.i
  br label %if.then29.i

if.then29.i:
  %returned.1.ph.i = phi i32 [ %spec.select.i, %if.then21.i ], [ %cond.i67.i, %has_printed.exit.i ], [ %cond.i67.i, %land.lhs.true.i377 ]
  %thread_state30.i = getelementptr inbounds i8, ptr %14, i64 -120
  %29 = load ptr, ptr %thread_state30.i, align 8
  store ptr %29, ptr %thread_state.i, align 8
  %python_error.i = getelementptr inbounds i8, ptr %14, i64 -80
  %30 = load i32, ptr %python_error.i, align 16
  %31 = load i32, ptr %python_error32.i, align 16
  %or.i = or i32 %31, %30
  store i32 %or.i, ptr %python_error32.i, align 16
  br label %if.end33.i

if.end33.i:
  %returned.172.i = phi i32 [ %returned.1.ph.i, %if.then29.i ], [ %cond.i67.i, %end_launch.exit.i ]
  store ptr null, ptr %lane12.i, align 8
  br label %if.end

if.end:
  %status.0 = phi i32 [ %status.133.i, %tn_poll.exit ], [ %returned.172.i, %if.end33.i ], [ 1, %stop_of_member.exit.i ], [ %16, %if.then.i367 ]
  %add.ptr = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  br label %sw.epilog

sw.bb7:
  %arrayidx8 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %32 = load i64, ptr %arrayidx8, align 8
  %33 = inttoptr i64 %32 to ptr
  %arrayidx9 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %34 = load i64, ptr %arrayidx9, align 8
  tail call void @llvm.memset.p0.i64(ptr align 1 %33, i8 0, i64 %34, i1 false)
  %add.ptr10 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  br label %cleanup

sw.bb11:
  %arrayidx12 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %35 = load i64, ptr %arrayidx12, align 8
  %36 = inttoptr i64 %35 to ptr
  %arrayidx13 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  %37 = load i64, ptr %arrayidx13, align 8
  %38 = inttoptr i64 %37 to ptr
  %arrayidx14 = getelementptr inbounds nuw i8, ptr %at.0, i64 32
  %39 = load i64, ptr %arrayidx14, align 8
  %add.ptr15 = getelementptr inbounds nuw i8, ptr %at.0, i64 40
  %arrayidx16 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %40 = load i64, ptr %arrayidx16, align 8
  tail call fastcc void @copy(ptr noundef %36, ptr noundef %38, i64 noundef %39, ptr noundef nonnull %add.ptr15, i64 noundef %40)
  %41 = load i64, ptr %arrayidx14, align 8
  %add.ptr19.idx = mul nsw i64 %41, 24
  %add.ptr19 = getelementptr inbounds i8, ptr %add.ptr15, i64 %add.ptr19.idx
  br label %cleanup

sw.bb20:
  %arrayidx21 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %42 = load i64, ptr %arrayidx21, align 8
  %arrayidx22 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %43 = load i64, ptr %arrayidx22, align 8
  %44 = inttoptr i64 %43 to ptr
  %arrayidx23 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  %45 = load i64, ptr %arrayidx23, align 8
  %arrayidx24 = getelementptr inbounds nuw i8, ptr %at.0, i64 32
  %46 = load i64, ptr %arrayidx24, align 8
  %47 = inttoptr i64 %46 to ptr
  %arrayidx25 = getelementptr inbounds nuw i8, ptr %at.0, i64 40
  %48 = load i64, ptr %arrayidx25, align 8
  %add.ptr26 = getelementptr inbounds nuw i8, ptr %at.0, i64 48
  tail call fastcc void @convert(i64 noundef %42, ptr noundef %44, i64 noundef %45, ptr noundef %47, i64 noundef %48, ptr noundef nonnull %add.ptr26)
  %49 = load i64, ptr %arrayidx25, align 8
  %add.ptr30.idx = mul nsw i64 %49, 24
  %add.ptr30 = getelementptr inbounds i8, ptr %add.ptr26, i64 %add.ptr30.idx
  br label %cleanup

sw.bb31:
  %arrayidx32 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %50 = load i64, ptr %arrayidx32, align 8
  %51 = inttoptr i64 %50 to ptr
  %arrayidx33 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  %52 = load i64, ptr %arrayidx33, align 8
  %53 = inttoptr i64 %52 to ptr
  %54 = load i64, ptr %53, align 8
  %55 = inttoptr i64 %54 to ptr
  %56 = load i64, ptr %member41, align 8
  %arrayidx34 = getelementptr inbounds nuw i8, ptr %at.0, i64 32
  %57 = load i64, ptr %arrayidx34, align 8
  %mul35 = mul nsw i64 %57, %56
  %add.ptr36 = getelementptr inbounds i8, ptr %55, i64 %mul35
  %arrayidx37 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %58 = load i64, ptr %arrayidx37, align 8
  tail call void @llvm.memcpy.p0.p0.i64(ptr align 1 %51, ptr align 1 %add.ptr36, i64 %58, i1 false)
  %add.ptr38 = getelementptr inbounds nuw i8, ptr %at.0, i64 40
  br label %cleanup

sw.bb39:
  %arrayidx40 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  %59 = load i64, ptr %arrayidx40, align 8
  %60 = inttoptr i64 %59 to ptr
  %61 = load i64, ptr %60, align 8
  %62 = inttoptr i64 %61 to ptr
  %63 = load i64, ptr %member41, align 8
  %arrayidx42 = getelementptr inbounds nuw i8, ptr %at.0, i64 32
  %64 = load i64, ptr %arrayidx42, align 8
  %mul43 = mul nsw i64 %64, %63
  %add.ptr44 = getelementptr inbounds i8, ptr %62, i64 %mul43
  %arrayidx45 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %65 = load i64, ptr %arrayidx45, align 8
  %66 = inttoptr i64 %65 to ptr
  %arrayidx46 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %67 = load i64, ptr %arrayidx46, align 8
  tail call void @llvm.memcpy.p0.p0.i64(ptr align 1 %add.ptr44, ptr align 1 %66, i64 %67, i1 false)
  %add.ptr47 = getelementptr inbounds nuw i8, ptr %at.0, i64 40
  br label %cleanup

sw.bb48:
  call void @llvm.lifetime.start.p0(ptr nonnull %bits) nounwind
  store i64 0, ptr %bits, align 8
  %arrayidx49 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %68 = load i64, ptr %arrayidx49, align 8
  %arrayidx50 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  %69 = load i64, ptr %arrayidx50, align 8
  %arrayidx51 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %70 = load i64, ptr %arrayidx51, align 8
  %arrayidx52 = getelementptr inbounds %union.number, ptr %1, i64 %70
  %71 = load i64, ptr %arrayidx52, align 8
  %call53 = call fastcc i32 @store(i64 noundef %68, ptr noundef nonnull %bits, i64 noundef %69, i64 %71)
  %cmp54 = icmp eq i32 %call53, 0
  br i1 %cmp54, label %if.then56, label %if.end62

if.then56:
  %arrayidx57 = getelementptr inbounds nuw i8, ptr %at.0, i64 32
  %72 = load i64, ptr %arrayidx57, align 8
  %73 = inttoptr i64 %72 to ptr
  %arrayidx58 = getelementptr inbounds nuw i8, ptr %at.0, i64 40
  %74 = load i64, ptr %arrayidx58, align 8
  %add.ptr59 = getelementptr inbounds nuw i8, ptr %at.0, i64 48
  %75 = load i64, ptr %arrayidx49, align 8
  %arrayidx.i = getelementptr inbounds i8, ptr @size_of.sizes, i64 %75
  %76 = load i8, ptr %arrayidx.i, align 1
  %conv.i = sext i8 %76 to i64
  call fastcc void @fill(ptr noundef %73, i64 noundef %74, ptr noundef nonnull %add.ptr59, ptr noundef %bits, i64 noundef %conv.i)
  br label %if.end62

if.end62:
  %add.ptr63 = getelementptr inbounds nuw i8, ptr %at.0, i64 48
  %arrayidx64 = getelementptr inbounds nuw i8, ptr %at.0, i64 40
  %77 = load i64, ptr %arrayidx64, align 8
  %add.ptr66.idx = shl nsw i64 %77, 4
  %add.ptr66 = getelementptr inbounds i8, ptr %add.ptr63, i64 %add.ptr66.idx
  call void @llvm.lifetime.end.p0(ptr nonnull %bits) nounwind
  br label %sw.epilog

for.body:
  %move.0440 = phi ptr [ %move.0, %for.body ], [ %move.0436, %for.cond69.preheader ]
  %at.0.pn439 = phi ptr [ %move.0440, %for.body ], [ %at.0, %for.cond69.preheader ]
  %i.0438 = phi i64 [ %inc, %for.body ], [ 0, %for.cond69.preheader ]
  %arrayidx73 = getelementptr inbounds nuw i8, ptr %at.0.pn439, i64 24
  %78 = load i64, ptr %arrayidx73, align 8
  %79 = inttoptr i64 %78 to ptr
  %80 = load i64, ptr %79, align 8
  %81 = load i64, ptr %move.0440, align 8
  %82 = inttoptr i64 %81 to ptr
  store i64 %80, ptr %82, align 8
  %inc = add nuw nsw i64 %i.0438, 1
  %move.0 = getelementptr inbounds nuw i8, ptr %move.0440, i64 16
  %83 = load i64, ptr %arrayidx70, align 8
  %cmp71 = icmp slt i64 %inc, %83
  br i1 %cmp71, label %for.body, label %cleanup

sw.bb76:
  %arrayidx77 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %84 = load i64, ptr %arrayidx77, align 8
  %arrayidx78 = getelementptr inbounds nuw i8, ptr %at.0, i64 32
  %85 = load i64, ptr %arrayidx78, align 8
  %86 = inttoptr i64 %85 to ptr
  %arrayidx79 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  %87 = load i64, ptr %arrayidx79, align 8
  %arrayidx80 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %88 = load i64, ptr %arrayidx80, align 8
  %arrayidx81 = getelementptr inbounds %union.number, ptr %1, i64 %88
  %89 = load i64, ptr %arrayidx81, align 8
  %call83 = tail call fastcc i32 @store(i64 noundef %84, ptr noundef %86, i64 noundef %87, i64 %89)
  %add.ptr84 = getelementptr inbounds nuw i8, ptr %at.0, i64 40
  br label %sw.epilog

sw.bb85:
  %arrayidx86 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %90 = load i64, ptr %arrayidx86, align 8
  %arrayidx87 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  %91 = load i64, ptr %arrayidx87, align 8
  %92 = inttoptr i64 %91 to ptr
  %arrayidx88 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %93 = load i64, ptr %arrayidx88, align 8
  %arrayidx89 = getelementptr inbounds %union.number, ptr %1, i64 %93
  switch i64 %90, label %sw.default.i [
    i64 0, label %sw.bb.i
    i64 1, label %sw.bb1.i
    i64 2, label %sw.bb2.i
    i64 3, label %sw.bb3.i
    i64 4, label %sw.bb5.i
    i64 5, label %sw.bb7.i
    i64 6, label %sw.bb9.i
    i64 7, label %sw.bb10.i
    i64 8, label %sw.bb14.i
    i64 9, label %sw.bb16.i
    i64 10, label %sw.bb18.i
  ]

sw.bb.i:
  %bits.0.copyload.i = load i16, ptr %92, align 1
  %conv.i.i381 = zext i16 %bits.0.copyload.i to i32
  %shr.i.i = lshr i32 %conv.i.i381, 10
  %and.i.i = and i32 %shr.i.i, 31
  %and3.i.i = and i32 %conv.i.i381, 1023
  %conv4.i.i = zext nneg i32 %and3.i.i to i64
  %cmp.i.i = icmp eq i32 %and.i.i, 31
  br i1 %cmp.i.i, label %if.then.i.i382, label %if.else.i.i

if.then.i.i382:
  %shl.i.i = shl nuw nsw i64 %conv4.i.i, 42
  %or.i.i = or disjoint i64 %shl.i.i, 9218868437227405312
  %94 = bitcast i64 %or.i.i to double
  br label %real_of_half.exit.i

if.else.i.i:
  %conv5.i.i = uitofp nneg i32 %and3.i.i to double
  %mul.i.i = fmul double %conv5.i.i, 0x3E70000000000000
  %cmp7.not.i.i = icmp eq i32 %and.i.i, 0
  br i1 %cmp7.not.i.i, label %real_of_half.exit.i, label %if.then9.i.i

if.then9.i.i:
  %95 = add nuw nsw i32 %and.i.i, 1008
  %sub.i.i = zext nneg i32 %95 to i64
  %shl10.i.i = shl nuw nsw i64 %sub.i.i, 52
  %shl11.i.i = shl nuw nsw i64 %conv4.i.i, 42
  %or12.i.i = or disjoint i64 %shl10.i.i, %shl11.i.i
  %96 = bitcast i64 %or12.i.i to double
  br label %real_of_half.exit.i

real_of_half.exit.i:
  %found.sroa.0.0.i.i = phi double [ %94, %if.then.i.i382 ], [ %96, %if.then9.i.i ], [ %mul.i.i, %if.else.i.i ]
  %fneg.i.i = fneg double %found.sroa.0.0.i.i
  %tobool.not23.i.i = icmp slt i16 %bits.0.copyload.i, 0
  %cond.i.i = select i1 %tobool.not23.i.i, double %fneg.i.i, double %found.sroa.0.0.i.i
  store double %cond.i.i, ptr %arrayidx89, align 8
  br label %load.exit

sw.bb1.i:
  %97 = load float, ptr %92, align 4
  %conv.i380 = fpext float %97 to double
  store double %conv.i380, ptr %arrayidx89, align 8
  br label %load.exit

sw.bb2.i:
  %98 = load double, ptr %92, align 8
  store double %98, ptr %arrayidx89, align 8
  br label %load.exit

sw.bb3.i:
  %99 = load i8, ptr %92, align 1
  %conv4.i = sext i8 %99 to i64
  store i64 %conv4.i, ptr %arrayidx89, align 8
  br label %load.exit

sw.bb5.i:
  %100 = load i16, ptr %92, align 2
  %conv6.i = sext i16 %100 to i64
  store i64 %conv6.i, ptr %arrayidx89, align 8
  br label %load.exit

sw.bb7.i:
  %101 = load i32, ptr %92, align 4
  %conv8.i = sext i32 %101 to i64
  store i64 %conv8.i, ptr %arrayidx89, align 8
  br label %load.exit

sw.bb9.i:
  %102 = load i64, ptr %92, align 8
  store i64 %102, ptr %arrayidx89, align 8
  br label %load.exit

sw.bb10.i:
  %103 = load i8, ptr %92, align 1
  %cmp.i379 = icmp ne i8 %103, 0
  %conv13.i = zext i1 %cmp.i379 to i64
  store i64 %conv13.i, ptr %arrayidx89, align 8
  br label %load.exit

sw.bb14.i:
  %104 = load i8, ptr %92, align 1
  %conv15.i = zext i8 %104 to i64
  store i64 %conv15.i, ptr %arrayidx89, align 8
  br label %load.exit

sw.bb16.i:
  %105 = load i16, ptr %92, align 2
  %conv17.i = zext i16 %105 to i64
  store i64 %conv17.i, ptr %arrayidx89, align 8
  br label %load.exit

sw.bb18.i:
  %106 = load i32, ptr %92, align 4
  %conv19.i = zext i32 %106 to i64
  store i64 %conv19.i, ptr %arrayidx89, align 8
  br label %load.exit

sw.default.i:
  %107 = load i64, ptr %92, align 8
  store i64 %107, ptr %arrayidx89, align 8
  %cmp20.i = icmp slt i64 %107, 0
  %cond.i383 = select i1 %cmp20.i, i32 6, i32 0
  br label %load.exit

load.exit:
  %retval.0.i378 = phi i32 [ %cond.i383, %sw.default.i ], [ 0, %real_of_half.exit.i ], [ 0, %sw.bb1.i ], [ 0, %sw.bb2.i ], [ 0, %sw.bb3.i ], [ 0, %sw.bb5.i ], [ 0, %sw.bb7.i ], [ 0, %sw.bb9.i ], [ 0, %sw.bb10.i ], [ 0, %sw.bb14.i ], [ 0, %sw.bb16.i ], [ 0, %sw.bb18.i ]
  %add.ptr91 = getelementptr inbounds nuw i8, ptr %at.0, i64 32
  br label %sw.epilog

sw.bb92:
  %arrayidx93 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %108 = load i64, ptr %arrayidx93, align 8
  %arrayidx94 = getelementptr inbounds %union.number, ptr %1, i64 %108
  %109 = load i64, ptr %arrayidx94, align 8
  %add = add nsw i64 %109, 1
  store i64 %add, ptr %arrayidx94, align 8
  %arrayidx95 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  %110 = load i64, ptr %arrayidx95, align 8
  %111 = load i64, ptr %arrayidx93, align 8
  %arrayidx97 = getelementptr inbounds %union.number, ptr %1, i64 %111
  %112 = load i64, ptr %arrayidx97, align 8
  %add98 = add i64 %112, %110
  %arrayidx99 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %113 = load i64, ptr %arrayidx99, align 8
  %arrayidx100 = getelementptr inbounds %union.number, ptr %1, i64 %113
  store i64 %add98, ptr %arrayidx100, align 8
  %add.ptr101 = getelementptr inbounds nuw i8, ptr %at.0, i64 32
  br label %cleanup

sw.bb102:
  %arrayidx103 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %114 = load i64, ptr %arrayidx103, align 8
  %arrayidx104 = getelementptr inbounds %union.number, ptr %1, i64 %114
  %115 = load i64, ptr %arrayidx104, align 8
  %conv105 = sitofp i64 %115 to double
  %arrayidx106 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %116 = load i64, ptr %arrayidx106, align 8
  %arrayidx107 = getelementptr inbounds %union.number, ptr %1, i64 %116
  store double %conv105, ptr %arrayidx107, align 8
  %add.ptr108 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  br label %cleanup

sw.bb109:
  %arrayidx110 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %117 = load i64, ptr %arrayidx110, align 8
  %arrayidx111 = getelementptr inbounds %union.number, ptr %1, i64 %117
  %118 = load i64, ptr %arrayidx111, align 8
  %conv112 = sitofp i64 %118 to double
  %arrayidx113 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %119 = load i64, ptr %arrayidx113, align 8
  %arrayidx114 = getelementptr inbounds %union.number, ptr %1, i64 %119
  store double %conv112, ptr %arrayidx114, align 8
  %120 = load i64, ptr %arrayidx110, align 8
  %arrayidx116 = getelementptr inbounds %union.number, ptr %1, i64 %120
  %121 = load i64, ptr %arrayidx116, align 8
  %122 = add i64 %121, 9007199254740992
  %123 = icmp ult i64 %122, 18014398509481985
  %add.ptr119 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  br i1 %123, label %cleanup, label %if.then206

sw.bb120:
  %arrayidx121 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %124 = load i64, ptr %arrayidx121, align 8
  %arrayidx122 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  %125 = load i64, ptr %arrayidx122, align 8
  %arrayidx123 = getelementptr inbounds %union.number, ptr %1, i64 %125
  %126 = load double, ptr %arrayidx123, align 8
  %arrayidx124 = getelementptr inbounds nuw i8, ptr %at.0, i64 32
  %127 = load i64, ptr %arrayidx124, align 8
  %arrayidx125 = getelementptr inbounds %union.number, ptr %1, i64 %127
  %128 = load double, ptr %arrayidx125, align 8
  %arrayidx126 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %129 = load i64, ptr %arrayidx126, align 8
  %arrayidx127 = getelementptr inbounds %union.number, ptr %1, i64 %129
  switch i64 %124, label %sw.default.i400 [
    i64 0, label %sw.bb.i399
    i64 1, label %sw.bb1.i398
    i64 2, label %sw.bb2.i397
    i64 3, label %sw.bb3.i394
    i64 11, label %sw.bb4.i
    i64 4, label %sw.bb6.i
    i64 5, label %sw.bb7.i389
    i64 6, label %sw.bb9.i388
    i64 7, label %sw.bb11.i
    i64 8, label %sw.bb12.i
    i64 9, label %sw.bb13.i
    i64 10, label %sw.bb15.i
    i64 12, label %sw.bb17.i
    i64 13, label %sw.bb20.i
    i64 14, label %sw.bb24.i
    i64 15, label %sw.bb28.i
    i64 16, label %sw.bb32.i
  ]

sw.bb.i399:
  %add.i = fadd double %126, %128
  store double %add.i, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.bb1.i398:
  %sub.i = fsub double %126, %128
  store double %sub.i, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.bb2.i397:
  %mul.i = fmul double %126, %128
  store double %mul.i, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.bb3.i394:
  %div.i = fdiv double %126, %128
  store double %div.i, ptr %arrayidx127, align 8
  %cmp.i395 = fcmp oeq double %128, 0.000000e+00
  %cond.i396 = select i1 %cmp.i395, i32 3, i32 0
  br label %compute_reals.exit

sw.bb4.i:
  %div5.i = fdiv double %126, %128
  store double %div5.i, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.bb6.i:
  %cmp.i.i390 = fcmp oeq double %128, 0.000000e+00
  br i1 %cmp.i.i390, label %compute_reals.exit, label %if.end.i.i

if.end.i.i:
  %call.i.i391 = tail call double @fmod(double noundef %126, double noundef %128) nounwind
  %sub.i.i392 = fsub double %126, %call.i.i391
  %div.i.i = fdiv double %sub.i.i392, %128
  %cmp1.i.i = fcmp une double %call.i.i391, 0.000000e+00
  br i1 %cmp1.i.i, label %if.then2.i.i, label %if.end11.i.i

if.then2.i.i:
  %cmp3.i.i = fcmp olt double %128, 0.000000e+00
  %130 = fcmp uge double %call.i.i391, 0.000000e+00
  %cmp6.not.i.i = xor i1 %cmp3.i.i, %130
  br i1 %cmp6.not.i.i, label %if.end11.i.i, label %if.then8.i.i

if.then8.i.i:
  %sub9.i.i = fadd double %div.i.i, -1.000000e+00
  br label %if.end11.i.i

if.end11.i.i:
  %whole.0.i.i = phi double [ %sub9.i.i, %if.then8.i.i ], [ %div.i.i, %if.then2.i.i ], [ %div.i.i, %if.end.i.i ]
  %cmp12.i.i = fcmp une double %whole.0.i.i, 0.000000e+00
  br i1 %cmp12.i.i, label %if.then14.i.i, label %if.else19.i.i

if.then14.i.i:
  %131 = tail call double @llvm.floor.f64(double %whole.0.i.i)
  %sub15.i.i = fsub double %whole.0.i.i, %131
  %cmp16.i.i = fcmp ogt double %sub15.i.i, 5.000000e-01
  %add18.i.i = fadd double %131, 1.000000e+00
  %cond.i.i393 = select i1 %cmp16.i.i, double %add18.i.i, double %131
  br label %if.end21.i.i

if.else19.i.i:
  %div20.i.i = fdiv double %126, %128
  %132 = tail call double @llvm.copysign.f64(double 0.000000e+00, double %div20.i.i)
  br label %if.end21.i.i

if.end21.i.i:
  %storemerge.i.i = phi double [ %132, %if.else19.i.i ], [ %cond.i.i393, %if.then14.i.i ]
  store double %storemerge.i.i, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.bb7.i389:
  %cmp.i88.i = fcmp oeq double %128, 0.000000e+00
  br i1 %cmp.i88.i, label %compute_reals.exit, label %if.end.i89.i

if.end.i89.i:
  %call.i90.i = tail call double @fmod(double noundef %126, double noundef %128) nounwind
  %cmp1.i93.i = fcmp une double %call.i90.i, 0.000000e+00
  br i1 %cmp1.i93.i, label %if.then2.i109.i, label %if.else.i94.i

if.then2.i109.i:
  %cmp3.i110.i = fcmp olt double %128, 0.000000e+00
  %133 = fcmp uge double %call.i90.i, 0.000000e+00
  %cmp6.not.i111.i = xor i1 %cmp3.i110.i, %133
  br i1 %cmp6.not.i111.i, label %if.end11.i95.i, label %if.then8.i112.i

if.then8.i112.i:
  %add.i113.i = fadd double %128, %call.i90.i
  br label %if.end11.i95.i

if.else.i94.i:
  %134 = tail call double @llvm.copysign.f64(double 0.000000e+00, double %128)
  br label %if.end11.i95.i

if.end11.i95.i:
  %rest.0.i96.i = phi double [ %add.i113.i, %if.then8.i112.i ], [ %call.i90.i, %if.then2.i109.i ], [ %134, %if.else.i94.i ]
  store double %rest.0.i96.i, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.bb9.i388:
  %cmp.i116.i = fcmp une double %126, 0.000000e+00
  %cmp1.i117.i = fcmp uge double %128, 0.000000e+00
  %or.cond.not31.i.i = or i1 %cmp.i116.i, %cmp1.i117.i
  %135 = tail call double @llvm.fabs.f64(double %128)
  %136 = fcmp ueq double %135, 0x7FF0000000000000
  %or.cond23.i.i = or i1 %or.cond.not31.i.i, %136
  br i1 %or.cond23.i.i, label %if.end.i119.i, label %compute_reals.exit

if.end.i119.i:
  %cmp3.i120.i = fcmp uge double %126, 0.000000e+00
  %137 = tail call double @llvm.fabs.f64(double %126)
  %138 = fcmp ueq double %137, 0x7FF0000000000000
  %139 = tail call double @llvm.floor.f64(double %128)
  %cmp7.i.i = fcmp oeq double %139, %128
  %140 = or i1 %cmp3.i120.i, %cmp7.i.i
  %141 = or i1 %138, %140
  %or.cond28.not.i.i = or i1 %136, %141
  br i1 %or.cond28.not.i.i, label %if.end9.i.i, label %compute_reals.exit

if.end9.i.i:
  %call.i121.i = tail call double @pow(double noundef %126, double noundef %128) nounwind
  store double %call.i121.i, ptr %arrayidx127, align 8
  %142 = tail call double @llvm.fabs.f64(double %call.i121.i)
  %143 = fcmp une double %142, 0x7FF0000000000000
  %or.cond30.i.i = or i1 %138, %143
  %144 = fcmp one double %135, 0x7FF0000000000000
  %145 = select i1 %144, i32 6, i32 0
  %cond.i122.i = select i1 %or.cond30.i.i, i32 0, i32 %145
  br label %compute_reals.exit

sw.bb11.i:
  %fneg.i = fneg double %126
  store double %fneg.i, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.bb12.i:
  %146 = tail call double @llvm.fabs.f64(double %126)
  store double %146, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.bb13.i:
  %call14.i387 = tail call double @sqrt(double noundef %126) nounwind
  store double %call14.i387, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.bb15.i:
  %cmp.i123.i = fcmp une double %128, 0.000000e+00
  %mul.i.i386 = fmul double %126, %128
  %cond.i124.i = select i1 %cmp.i123.i, double %mul.i.i386, double %128
  store double %cond.i124.i, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.bb17.i:
  %cmp18.i = fcmp olt double %126, %128
  %conv19.i385 = zext i1 %cmp18.i to i64
  store i64 %conv19.i385, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.bb20.i:
  %cmp21.i = fcmp ole double %126, %128
  %conv23.i = zext i1 %cmp21.i to i64
  store i64 %conv23.i, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.bb24.i:
  %cmp25.i = fcmp ogt double %126, %128
  %conv27.i = zext i1 %cmp25.i to i64
  store i64 %conv27.i, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.bb28.i:
  %cmp29.i = fcmp oge double %126, %128
  %conv31.i = zext i1 %cmp29.i to i64
  store i64 %conv31.i, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.bb32.i:
  %cmp33.i = fcmp oeq double %126, %128
  %conv35.i = zext i1 %cmp33.i to i64
  store i64 %conv35.i, ptr %arrayidx127, align 8
  br label %compute_reals.exit

sw.default.i400:
  %cmp36.i = fcmp une double %126, %128
  %conv38.i = zext i1 %cmp36.i to i64
  store i64 %conv38.i, ptr %arrayidx127, align 8
  br label %compute_reals.exit

compute_reals.exit:
  %retval.0.i384 = phi i32 [ 0, %sw.default.i400 ], [ 0, %sw.bb.i399 ], [ 0, %sw.bb1.i398 ], [ 0, %sw.bb2.i397 ], [ %cond.i396, %sw.bb3.i394 ], [ 0, %sw.bb4.i ], [ 0, %sw.bb32.i ], [ 3, %sw.bb6.i ], [ 3, %sw.bb7.i389 ], [ 0, %sw.bb11.i ], [ 0, %sw.bb12.i ], [ 0, %sw.bb13.i ], [ 0, %sw.bb15.i ], [ 0, %sw.bb17.i ], [ 0, %sw.bb20.i ], [ 0, %sw.bb24.i ], [ 0, %sw.bb28.i ], [ 0, %if.end21.i.i ], [ 0, %if.end11.i95.i ], [ %cond.i122.i, %if.end9.i.i ], [ 3, %sw.bb9.i388 ], [ 6, %if.end.i119.i ]
  %add.ptr129 = getelementptr inbounds nuw i8, ptr %at.0, i64 40
  br label %sw.epilog

sw.bb130:
  %arrayidx131 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %147 = load i64, ptr %arrayidx131, align 8
  %arrayidx132 = getelementptr inbounds %union.number, ptr %1, i64 %147
  %148 = load double, ptr %arrayidx132, align 8
  %arrayidx133 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  %149 = load i64, ptr %arrayidx133, align 8
  %arrayidx134 = getelementptr inbounds %union.number, ptr %1, i64 %149
  %150 = load double, ptr %arrayidx134, align 8
  %add135 = fadd double %148, %150
  %arrayidx136 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %151 = load i64, ptr %arrayidx136, align 8
  %arrayidx137 = getelementptr inbounds %union.number, ptr %1, i64 %151
  store double %add135, ptr %arrayidx137, align 8
  %add.ptr138 = getelementptr inbounds nuw i8, ptr %at.0, i64 32
  br label %cleanup

sw.bb139:
  %arrayidx141 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %152 = load i64, ptr %arrayidx141, align 8
  %arrayidx142 = getelementptr inbounds %union.number, ptr %1, i64 %152
  %153 = load double, ptr %arrayidx142, align 8
  %arrayidx144 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  %154 = load i64, ptr %arrayidx144, align 8
  %arrayidx145 = getelementptr inbounds %union.number, ptr %1, i64 %154
  %155 = load double, ptr %arrayidx145, align 8
  %sub = fsub double %153, %155
  %arrayidx146 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %156 = load i64, ptr %arrayidx146, align 8
  %arrayidx147 = getelementptr inbounds %union.number, ptr %1, i64 %156
  store double %sub, ptr %arrayidx147, align 8
  %add.ptr148 = getelementptr inbounds nuw i8, ptr %at.0, i64 32
  br label %cleanup

sw.bb149:
  %arrayidx151 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %157 = load i64, ptr %arrayidx151, align 8
  %arrayidx152 = getelementptr inbounds %union.number, ptr %1, i64 %157
  %158 = load double, ptr %arrayidx152, align 8
  %arrayidx154 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  %159 = load i64, ptr %arrayidx154, align 8
  %arrayidx155 = getelementptr inbounds %union.number, ptr %1, i64 %159
  %160 = load double, ptr %arrayidx155, align 8
  %mul156 = fmul double %158, %160
  %arrayidx157 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %161 = load i64, ptr %arrayidx157, align 8
  %arrayidx158 = getelementptr inbounds %union.number, ptr %1, i64 %161
  store double %mul156, ptr %arrayidx158, align 8
  %add.ptr159 = getelementptr inbounds nuw i8, ptr %at.0, i64 32
  br label %cleanup

sw.bb160:
  %arrayidx162 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %162 = load i64, ptr %arrayidx162, align 8
  %arrayidx163 = getelementptr inbounds %union.number, ptr %1, i64 %162
  %163 = load double, ptr %arrayidx163, align 8
  %arrayidx165 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  %164 = load i64, ptr %arrayidx165, align 8
  %arrayidx166 = getelementptr inbounds %union.number, ptr %1, i64 %164
  %165 = load double, ptr %arrayidx166, align 8
  %cmp.i401 = fcmp une double %165, 0.000000e+00
  %mul.i402 = fmul double %163, %165
  %cond.i403 = select i1 %cmp.i401, double %mul.i402, double %165
  %arrayidx168 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %166 = load i64, ptr %arrayidx168, align 8
  %arrayidx169 = getelementptr inbounds %union.number, ptr %1, i64 %166
  store double %cond.i403, ptr %arrayidx169, align 8
  %add.ptr170 = getelementptr inbounds nuw i8, ptr %at.0, i64 32
  br label %cleanup

sw.bb171:
  %arrayidx172 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %167 = load i64, ptr %arrayidx172, align 8
  %arrayidx173 = getelementptr inbounds %union.number, ptr %1, i64 %167
  %arrayidx174 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %168 = load i64, ptr %arrayidx174, align 8
  %arrayidx175 = getelementptr inbounds %union.number, ptr %1, i64 %168
  %169 = load i64, ptr %arrayidx175, align 8
  %cmp176.not = icmp eq i64 %169, 0
  %idxprom = select i1 %cmp176.not, i64 4, i64 3
  %arrayidx179 = getelementptr inbounds nuw i64, ptr %at.0, i64 %idxprom
  %170 = load i64, ptr %arrayidx179, align 8
  %arrayidx180 = getelementptr inbounds %union.number, ptr %1, i64 %170
  %171 = load i64, ptr %arrayidx180, align 8
  store i64 %171, ptr %arrayidx173, align 8
  %add.ptr181 = getelementptr inbounds nuw i8, ptr %at.0, i64 40
  br label %cleanup

sw.bb182:
  %arrayidx183 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %172 = load i64, ptr %arrayidx183, align 8
  %173 = inttoptr i64 %172 to ptr
  %call184 = tail call i32 %173() nounwind
  %add.ptr185 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  br label %sw.epilog

sw.bb186:
  %arrayidx187 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %174 = load i64, ptr %arrayidx187, align 8
  %arrayidx188 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  %175 = load i64, ptr %arrayidx188, align 8
  %arrayidx189 = getelementptr inbounds %union.number, ptr %1, i64 %175
  %176 = load i64, ptr %arrayidx189, align 8
  %arrayidx190 = getelementptr inbounds nuw i8, ptr %at.0, i64 32
  %177 = load i64, ptr %arrayidx190, align 8
  %arrayidx191 = getelementptr inbounds %union.number, ptr %1, i64 %177
  %178 = load i64, ptr %arrayidx191, align 8
  %arrayidx192 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %179 = load i64, ptr %arrayidx192, align 8
  %arrayidx193 = getelementptr inbounds %union.number, ptr %1, i64 %179
  switch i64 %174, label %compute_integers.exit [
    i64 0, label %sw.bb.i419
    i64 1, label %sw.bb1.i418
    i64 2, label %sw.bb3.i417
    i64 3, label %sw.bb5.i411
    i64 4, label %sw.bb11.i405
    i64 5, label %sw.bb11.i405
    i64 7, label %sw.bb37.i
    i64 8, label %sw.bb40.i
    i64 12, label %sw.bb48.i
    i64 13, label %sw.bb52.i
    i64 14, label %sw.bb56.i
    i64 15, label %sw.bb60.i
    i64 16, label %sw.bb64.i
    i64 17, label %sw.bb68.i
  ]

sw.bb.i419:
  %180 = tail call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %176, i64 %178)
  %181 = extractvalue { i64, i1 } %180, 1
  %182 = extractvalue { i64, i1 } %180, 0
  store i64 %182, ptr %arrayidx193, align 8
  %cond.i420 = select i1 %181, i32 6, i32 0
  br label %compute_integers.exit

sw.bb1.i418:
  %183 = tail call { i64, i1 } @llvm.ssub.with.overflow.i64(i64 %176, i64 %178)
  %184 = extractvalue { i64, i1 } %183, 1
  %185 = extractvalue { i64, i1 } %183, 0
  store i64 %185, ptr %arrayidx193, align 8
  %cond2.i = select i1 %184, i32 6, i32 0
  br label %compute_integers.exit

sw.bb3.i417:
  %186 = tail call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %176, i64 %178)
  %187 = extractvalue { i64, i1 } %186, 1
  %188 = extractvalue { i64, i1 } %186, 0
  store i64 %188, ptr %arrayidx193, align 8
  %cond4.i = select i1 %187, i32 6, i32 0
  br label %compute_integers.exit

sw.bb5.i411:
  %cmp.i412 = icmp eq i64 %178, 0
  br i1 %cmp.i412, label %compute_integers.exit, label %if.end.i413

if.end.i413:
  %conv.i414 = sitofp i64 %176 to double
  %conv6.i415 = sitofp i64 %178 to double
  %div.i416 = fdiv double %conv.i414, %conv6.i415
  store double %div.i416, ptr %arrayidx193, align 8
  %189 = add i64 %176, 9007199254740992
  %190 = icmp ult i64 %189, 18014398509481985
  br i1 %190, label %land.rhs.i, label %compute_integers.exit

land.rhs.i:
  %191 = add i64 %178, 9007199254740992
  %192 = icmp ult i64 %191, 18014398509481985
  %193 = select i1 %192, i32 0, i32 6
  br label %compute_integers.exit

sw.bb11.i405:
  %cmp12.i = icmp eq i64 %178, 0
  br i1 %cmp12.i, label %compute_integers.exit, label %if.end15.i406

if.end15.i406:
  %cmp16.i = icmp eq i64 %176, -9223372036854775808
  %cmp18.i407 = icmp eq i64 %178, -1
  %or.cond.i = and i1 %cmp16.i, %cmp18.i407
  br i1 %or.cond.i, label %compute_integers.exit, label %if.end21.i

if.end21.i:
  %div22.i = sdiv i64 %176, %178
  %rem.i = srem i64 %176, %178
  %cmp23.not.i = icmp eq i64 %rem.i, 0
  br i1 %cmp23.not.i, label %if.end33.i410, label %land.lhs.true25.i

land.lhs.true25.i:
  %cmp30.not.unshifted.i = xor i64 %rem.i, %178
  %cmp30.not.i = icmp sgt i64 %cmp30.not.unshifted.i, -1
  br i1 %cmp30.not.i, label %if.end33.i410, label %if.then32.i

if.then32.i:
  %add.i408 = add nsw i64 %rem.i, %178
  %sub.i409 = add nsw i64 %div22.i, -1
  br label %if.end33.i410

if.end33.i410:
  %quotient.0.i = phi i64 [ %sub.i409, %if.then32.i ], [ %div22.i, %land.lhs.true25.i ], [ %div22.i, %if.end21.i ]
  %rest.0.i = phi i64 [ %add.i408, %if.then32.i ], [ %rem.i, %land.lhs.true25.i ], [ 0, %if.end21.i ]
  %cmp34.i = icmp eq i64 %174, 5
  %cond36.i = select i1 %cmp34.i, i64 %rest.0.i, i64 %quotient.0.i
  store i64 %cond36.i, ptr %arrayidx193, align 8
  br label %compute_integers.exit

sw.bb37.i:
  %194 = tail call { i64, i1 } @llvm.ssub.with.overflow.i64(i64 0, i64 %176)
  %195 = extractvalue { i64, i1 } %194, 1
  %196 = extractvalue { i64, i1 } %194, 0
  store i64 %196, ptr %arrayidx193, align 8
  %cond39.i = select i1 %195, i32 6, i32 0
  br label %compute_integers.exit

sw.bb40.i:
  %cmp41.i = icmp slt i64 %176, 0
  br i1 %cmp41.i, label %cond.true43.i, label %cond.false45.i

cond.true43.i:
  %197 = tail call { i64, i1 } @llvm.ssub.with.overflow.i64(i64 0, i64 %176)
  %198 = extractvalue { i64, i1 } %197, 1
  %199 = extractvalue { i64, i1 } %197, 0
  store i64 %199, ptr %arrayidx193, align 8
  %cond39.i.i = select i1 %198, i32 6, i32 0
  br label %compute_integers.exit

cond.false45.i:
  store i64 %176, ptr %arrayidx193, align 8
  br label %compute_integers.exit

sw.bb48.i:
  %cmp49.i = icmp slt i64 %176, %178
  %conv51.i = zext i1 %cmp49.i to i64
  store i64 %conv51.i, ptr %arrayidx193, align 8
  br label %compute_integers.exit

sw.bb52.i:
  %cmp53.i = icmp sle i64 %176, %178
  %conv55.i = zext i1 %cmp53.i to i64
  store i64 %conv55.i, ptr %arrayidx193, align 8
  br label %compute_integers.exit

sw.bb56.i:
  %cmp57.i = icmp sgt i64 %176, %178
  %conv59.i = zext i1 %cmp57.i to i64
  store i64 %conv59.i, ptr %arrayidx193, align 8
  br label %compute_integers.exit

sw.bb60.i:
  %cmp61.i = icmp sge i64 %176, %178
  %conv63.i = zext i1 %cmp61.i to i64
  store i64 %conv63.i, ptr %arrayidx193, align 8
  br label %compute_integers.exit

sw.bb64.i:
  %cmp65.i = icmp eq i64 %176, %178
  %conv67.i = zext i1 %cmp65.i to i64
  store i64 %conv67.i, ptr %arrayidx193, align 8
  br label %compute_integers.exit

sw.bb68.i:
  %cmp69.i = icmp ne i64 %176, %178
  %conv71.i = zext i1 %cmp69.i to i64
  store i64 %conv71.i, ptr %arrayidx193, align 8
  br label %compute_integers.exit

compute_integers.exit:
  %retval.0.i404 = phi i32 [ 0, %cond.false45.i ], [ %cond.i420, %sw.bb.i419 ], [ %cond2.i, %sw.bb1.i418 ], [ %cond4.i, %sw.bb3.i417 ], [ 0, %sw.bb68.i ], [ 3, %sw.bb5.i411 ], [ %193, %land.rhs.i ], [ 3, %sw.bb11.i405 ], [ 0, %if.end33.i410 ], [ %cond39.i, %sw.bb37.i ], [ 6, %if.end15.i406 ], [ 0, %sw.bb48.i ], [ 0, %sw.bb52.i ], [ 0, %sw.bb56.i ], [ 0, %sw.bb60.i ], [ 0, %sw.bb64.i ], [ 6, %if.end.i413 ], [ %cond39.i.i, %cond.true43.i ], [ 6, %sw.bb186 ]
  %add.ptr195 = getelementptr inbounds nuw i8, ptr %at.0, i64 40
  br label %sw.epilog

sw.default:
  %arrayidx196 = getelementptr inbounds nuw i8, ptr %at.0, i64 8
  %200 = load i64, ptr %arrayidx196, align 8
  %arrayidx197 = getelementptr inbounds %union.number, ptr %1, i64 %200
  %201 = load i64, ptr %arrayidx197, align 8
  %cmp198.not = icmp eq i64 %201, 0
  br i1 %cmp198.not, label %cond.false, label %cond.true

cond.true:
  %add.ptr200 = getelementptr inbounds nuw i8, ptr %at.0, i64 24
  br label %cleanup

cond.false:
  %arrayidx201 = getelementptr inbounds nuw i8, ptr %at.0, i64 16
  %202 = load i64, ptr %arrayidx201, align 8
  %add.ptr202 = getelementptr inbounds i64, ptr %0, i64 %202
  br label %cleanup

sw.epilog:
  %next.0 = phi ptr [ %add.ptr195, %compute_integers.exit ], [ %add.ptr, %if.end ], [ %add.ptr84, %sw.bb76 ], [ %add.ptr91, %load.exit ], [ %add.ptr129, %compute_reals.exit ], [ %add.ptr185, %sw.bb182 ], [ %add.ptr66, %if.end62 ]
  %status.1 = phi i32 [ %retval.0.i404, %compute_integers.exit ], [ %status.0, %if.end ], [ %call83, %sw.bb76 ], [ %retval.0.i378, %load.exit ], [ %retval.0.i384, %compute_reals.exit ], [ %call184, %sw.bb182 ], [ %call53, %if.end62 ]
  %cmp204.not = icmp eq i32 %status.1, 0
  br i1 %cmp204.not, label %cleanup, label %if.then206

if.then206:
  %status.1430 = phi i32 [ %status.1, %sw.epilog ], [ 6, %sw.bb109 ]
  %sub.ptr.lhs.cast207 = ptrtoint ptr %at.0 to i64
  %sub.ptr.sub209 = sub i64 %sub.ptr.lhs.cast207, %sub.ptr.rhs.cast
  %sub.ptr.div210 = lshr exact i64 %sub.ptr.sub209, 3
  %conv211 = trunc i64 %sub.ptr.div210 to i32
  %site = getelementptr inbounds nuw i8, ptr %lane, i64 44
  store i32 %conv211, ptr %site, align 4
  br label %cleanup214

cleanup:
  %at.1 = phi ptr [ %next.0, %sw.epilog ], [ %add.ptr119, %sw.bb109 ], [ %add.ptr202, %cond.false ], [ %add.ptr200, %cond.true ], [ %add.ptr181, %sw.bb171 ], [ %add.ptr170, %sw.bb160 ], [ %add.ptr159, %sw.bb149 ], [ %add.ptr148, %sw.bb139 ], [ %add.ptr138, %sw.bb130 ], [ %add.ptr108, %sw.bb102 ], [ %add.ptr101, %sw.bb92 ], [ %add.ptr47, %sw.bb39 ], [ %add.ptr38, %sw.bb31 ], [ %add.ptr30, %sw.bb20 ], [ %add.ptr19, %sw.bb11 ], [ %add.ptr10, %sw.bb7 ], [ %move.0436, %for.cond69.preheader ], [ %move.0, %for.body ]
  br label %for.cond

cleanup214:
  %retval.1.ph = phi i32 [ 0, %sw.bb ], [ %status.1430, %if.then206 ]
  ret i32 %retval.1.ph
}

define i32 @tn_replay_batch(ptr noundef %block) local_unnamed_addr nounwind {
entry:
  %slots = getelementptr inbounds nuw i8, ptr %block, i64 128
  %arrayidx = getelementptr inbounds nuw i8, ptr %block, i64 136
  %0 = load i64, ptr %arrayidx, align 8
  %1 = load i64, ptr %slots, align 8
  %2 = inttoptr i64 %1 to ptr
  %num_threads = getelementptr inbounds nuw i8, ptr %block, i64 96
  %3 = load i32, ptr %num_threads, align 8
  %cmp71 = icmp sgt i32 %3, 0
  br i1 %cmp71, label %for.body, label %for.cond.cleanup

for.cond.cleanup:
  %arrayidx.i = getelementptr inbounds nuw i8, ptr %block, i64 144
  store atomic i64 %0, ptr %arrayidx.i seq_cst, align 8
  %arrayidx11 = getelementptr inbounds nuw i8, ptr %block, i64 152
  %4 = load i64, ptr %arrayidx11, align 8
  %call.i = tail call fastcc i32 @parallel_for(ptr noundef nonnull %block, ptr noundef nonnull @run_members, i64 noundef 0, i64 noundef %0, i64 noundef %4, i1 noundef zeroext true)
  %5 = load atomic i64, ptr %arrayidx.i seq_cst, align 8
  %cmp16 = icmp eq i32 %call.i, 0
  br i1 %cmp16, label %land.rhs.lr.ph, label %cleanup

land.rhs.lr.ph:
  %6 = load i32, ptr %num_threads, align 8
  %smax = tail call i32 @llvm.smax.i32(i32 %6, i32 0)
  %wide.trip.count = zext nneg i32 %smax to i64
  %exitcond.not79 = icmp slt i32 %6, 1
  br i1 %exitcond.not79, label %cleanup, label %for.body20

for.body:
  %indvars.iv = phi i64 [ %indvars.iv.next, %for.body ], [ 0, %entry ]
  %arrayidx3 = getelementptr inbounds nuw %struct.lane, ptr %2, i64 %indvars.iv
  %block4 = getelementptr inbounds nuw i8, ptr %arrayidx3, i64 16
  store ptr %block, ptr %block4, align 8
  %status = getelementptr inbounds nuw i8, ptr %arrayidx3, i64 40
  store i32 0, ptr %status, align 8
  %site = getelementptr inbounds nuw i8, ptr %arrayidx3, i64 44
  store i32 -1, ptr %site, align 4
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %7 = load i32, ptr %num_threads, align 8
  %8 = sext i32 %7 to i64
  %cmp = icmp slt i64 %indvars.iv.next, %8
  br i1 %cmp, label %for.body, label %for.cond.cleanup

for.body20:
  %indvars.iv7680 = phi i64 [ %indvars.iv.next77, %for.inc35 ], [ 0, %land.rhs.lr.ph ]
  %arrayidx22 = getelementptr inbounds nuw %struct.lane, ptr %2, i64 %indvars.iv7680
  %status23 = getelementptr inbounds nuw i8, ptr %arrayidx22, i64 40
  %9 = load i32, ptr %status23, align 8
  %cmp24.not = icmp eq i32 %9, 0
  br i1 %cmp24.not, label %for.inc35, label %land.lhs.true

land.lhs.true:
  %member = getelementptr inbounds nuw i8, ptr %arrayidx22, i64 24
  %10 = load i64, ptr %member, align 8
  %cmp27 = icmp eq i64 %10, %5
  br i1 %cmp27, label %if.then, label %for.inc35

if.then:
  %site33 = getelementptr inbounds nuw i8, ptr %arrayidx22, i64 44
  %11 = load i32, ptr %site33, align 4
  %12 = cmpxchg ptr %block, i32 0, i32 %9 acq_rel acquire, align 4
  %13 = extractvalue { i32, i1 } %12, 1
  br i1 %13, label %if.then.i, label %cleanup

if.then.i:
  %site1.i = getelementptr inbounds nuw i8, ptr %block, i64 4
  store atomic i32 %11, ptr %site1.i monotonic, align 4
  %stop.i.i = getelementptr inbounds nuw i8, ptr %block, i64 56
  %14 = cmpxchg ptr %stop.i.i, i32 0, i32 %9 acq_rel acquire, align 4
  br label %cleanup

for.inc35:
  %indvars.iv.next77 = add nuw nsw i64 %indvars.iv7680, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next77, %wide.trip.count
  br i1 %exitcond.not, label %cleanup, label %for.body20

cleanup:
  %15 = phi i32 [ %9, %if.then.i ], [ %9, %if.then ], [ %call.i, %for.cond.cleanup ], [ 0, %land.rhs.lr.ph ], [ 0, %for.inc35 ]
  ret i32 %15
}

define internal range(i32 0, 8) i32 @run_members(ptr noundef captures(none) %block, i64 noundef %low, i64 noundef %high, i32 noundef %tid) nounwind {
entry:
  %slots = getelementptr inbounds nuw i8, ptr %block, i64 128
  %0 = load i64, ptr %slots, align 8
  %1 = inttoptr i64 %0 to ptr
  %idx.ext = sext i32 %tid to i64
  %add.ptr = getelementptr inbounds %struct.lane, ptr %1, i64 %idx.ext
  %arrayidx.i = getelementptr inbounds nuw i8, ptr %block, i64 144
  %cmp49 = icmp slt i64 %low, %high
  br i1 %cmp49, label %land.rhs.lr.ph, label %cleanup15

land.rhs.lr.ph:
  %member2 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 24
  %status10 = getelementptr inbounds nuw i8, ptr %add.ptr, i64 40
  br label %land.rhs

land.rhs:
  %member.050 = phi i64 [ %low, %land.rhs.lr.ph ], [ %inc, %for.inc ]
  %2 = load atomic i64, ptr %arrayidx.i seq_cst, align 8
  %cmp1 = icmp slt i64 %member.050, %2
  br i1 %cmp1, label %for.body, label %cleanup15

for.body:
  store i64 %member.050, ptr %member2, align 8
  %call3 = tail call fastcc i32 @run_lane(ptr noundef nonnull %block, ptr noundef %add.ptr)
  %cmp4 = icmp eq i32 %call3, 0
  br i1 %cmp4, label %for.inc, label %if.end

if.end:
  %3 = load atomic i64, ptr %arrayidx.i seq_cst, align 8
  %cmp7 = icmp sgt i64 %member.050, %3
  br i1 %cmp7, label %cleanup15, label %if.end9

if.end9:
  store i32 %call3, ptr %status10, align 8
  switch i32 %call3, label %if.end14 [
    i32 7, label %cleanup15
    i32 1, label %cleanup15
  ]

if.end14:
  %4 = load atomic i64, ptr %arrayidx.i seq_cst, align 8
  br label %while.cond.i

while.cond.i:
  %known.0.i = phi i64 [ %4, %if.end14 ], [ %7, %land.rhs.i ]
  %cmp.i = icmp slt i64 %member.050, %known.0.i
  br i1 %cmp.i, label %land.rhs.i, label %for.inc

land.rhs.i:
  %5 = cmpxchg weak ptr %arrayidx.i, i64 %known.0.i, i64 %member.050 seq_cst seq_cst, align 8
  %6 = extractvalue { i64, i1 } %5, 1
  %7 = extractvalue { i64, i1 } %5, 0
  br i1 %6, label %for.inc, label %while.cond.i

for.inc:
  %inc = add nsw i64 %member.050, 1
  %exitcond.not = icmp eq i64 %inc, %high
  br i1 %exitcond.not, label %cleanup15, label %land.rhs

cleanup15:
  %8 = phi i32 [ 0, %entry ], [ 0, %if.end ], [ %call3, %if.end9 ], [ 0, %for.inc ], [ 0, %land.rhs ], [ %call3, %if.end9 ]
  ret i32 %8
}

declare i32 @QueryPerformanceCounter(ptr noundef) local_unnamed_addr

declare i32 @QueryPerformanceFrequency(ptr noundef) local_unnamed_addr

declare i32 @GetCurrentThreadId() local_unnamed_addr

define internal fastcc void @reset_arenas(ptr noundef captures(none) %block) unnamed_addr noinline nounwind {
entry:
  %committed = getelementptr inbounds i8, ptr %block, i64 -72
  %0 = load atomic i64, ptr %committed monotonic, align 8
  %cmp = icmp ugt i64 %0, 67108864
  %num_threads.i = getelementptr inbounds nuw i8, ptr %block, i64 96
  %1 = load i32, ptr %num_threads.i, align 8
  %cmp11.i = icmp sgt i32 %1, 0
  br i1 %cmp11.i, label %for.body.lr.ph.i, label %rewind_arenas.exit

for.body.lr.ph.i:
  %arenas1.i.i = getelementptr inbounds nuw i8, ptr %block, i64 112
  br label %for.body.i

for.body.i:
  %indvars.iv.i = phi i64 [ 0, %for.body.lr.ph.i ], [ %indvars.iv.next.i, %if.end.i ]
  %2 = load atomic i64, ptr %arenas1.i.i acquire, align 8
  %3 = inttoptr i64 %2 to ptr
  %arrayidx.i.i = getelementptr inbounds nuw %struct.arena, ptr %3, i64 %indvars.iv.i
  br i1 %cmp, label %if.then.i, label %if.end.i

if.then.i:
  %cmp.i.i = icmp eq i64 %2, 0
  %cond.i.i = select i1 %cmp.i.i, ptr null, ptr %arrayidx.i.i
  %first.i = getelementptr inbounds nuw i8, ptr %cond.i.i, i64 16
  %4 = load ptr, ptr %first.i, align 16
  %cmp.not5.i.i = icmp eq ptr %4, null
  br i1 %cmp.not5.i.i, label %free_chain.exit.i, label %while.body.i.i

while.body.i.i:
  %chunk.addr.06.i.i = phi ptr [ %5, %while.body.i.i ], [ %4, %if.then.i ]
  %5 = load ptr, ptr %chunk.addr.06.i.i, align 64
  %capacity.i.i = getelementptr inbounds nuw i8, ptr %chunk.addr.06.i.i, i64 16
  %6 = load i64, ptr %capacity.i.i, align 16
  %7 = atomicrmw sub ptr %committed, i64 %6 monotonic, align 8
  tail call void @_aligned_free(ptr noundef nonnull %chunk.addr.06.i.i) nounwind
  %cmp.not.i.i = icmp eq ptr %5, null
  br i1 %cmp.not.i.i, label %free_chain.exit.i, label %while.body.i.i

free_chain.exit.i:
  store ptr null, ptr %first.i, align 16
  br label %if.end.i

if.end.i:
  %first2.i = getelementptr inbounds nuw i8, ptr %arrayidx.i.i, i64 16
  %8 = load ptr, ptr %first2.i, align 16
  store ptr %8, ptr %arrayidx.i.i, align 64
  %offset.i = getelementptr inbounds nuw i8, ptr %arrayidx.i.i, i64 8
  store i64 0, ptr %offset.i, align 8
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %9 = load i32, ptr %num_threads.i, align 8
  %10 = sext i32 %9 to i64
  %cmp.i = icmp slt i64 %indvars.iv.next.i, %10
  br i1 %cmp.i, label %for.body.i, label %rewind_arenas.exit

rewind_arenas.exit:
  ret void
}

declare void @Sleep(i32 noundef) local_unnamed_addr

define internal fastcc range(i32 0, 2) i32 @tick(ptr noundef captures(none) %block) unnamed_addr noinline nounwind {
entry:
  %python_error = getelementptr inbounds i8, ptr %block, i64 -80
  %0 = load i32, ptr %python_error, align 16
  %tobool.not = icmp eq i32 %0, 0
  br i1 %tobool.not, label %if.end, label %cleanup23

if.end:
  %print_ring.i = getelementptr inbounds nuw i8, ptr %block, i64 72
  %1 = load ptr, ptr %print_ring.i, align 8
  %cmp.not.i = icmp eq ptr %1, null
  br i1 %cmp.not.i, label %land.lhs.true, label %has_printed.exit

has_printed.exit:
  %head.i = getelementptr inbounds nuw i8, ptr %1, i64 8
  %2 = load atomic i64, ptr %head.i acquire, align 8
  %tail.i = getelementptr inbounds nuw i8, ptr %1, i64 16
  %3 = load atomic i64, ptr %tail.i monotonic, align 16
  %cmp2.i.not = icmp eq i64 %2, %3
  br i1 %cmp2.i.not, label %land.lhs.true, label %if.end4

land.lhs.true:
  %flags = getelementptr inbounds nuw i8, ptr %block, i64 60
  %4 = load i32, ptr %flags, align 4
  %and = and i32 %4, 1
  %tobool2.not = icmp eq i32 %and, 0
  br i1 %tobool2.not, label %cleanup23, label %if.end4

if.end4:
  %.not = phi i1 [ true, %land.lhs.true ], [ false, %has_printed.exit ]
  %thread_state = getelementptr inbounds i8, ptr %block, i64 -120
  %5 = load ptr, ptr %thread_state, align 8
  tail call void @PyEval_RestoreThread(ptr noundef %5) nounwind
  %call5 = tail call i32 @PyErr_CheckSignals() nounwind
  %cmp = icmp ne i32 %call5, 0
  %or.cond.not = or i1 %.not, %cmp
  br i1 %or.cond.not, label %if.end13, label %if.then10

if.then10:
  %drain.i = getelementptr inbounds i8, ptr %block, i64 -104
  %6 = load ptr, ptr %drain.i, align 8
  %call1.i = tail call ptr @PyObject_CallObject(ptr noundef %6, ptr noundef null) nounwind
  %cmp.not.i35 = icmp eq ptr %call1.i, null
  br i1 %cmp.not.i35, label %if.end20.critedge, label %if.then.i

if.then.i:
  tail call void @Py_DecRef(ptr noundef nonnull %call1.i) nounwind
  store i32 0, ptr %python_error, align 16
  %call16.c36 = tail call ptr @PyEval_SaveThread() nounwind
  store ptr %call16.c36, ptr %thread_state, align 8
  br label %cleanup23

if.end13:
  %conv = zext i1 %cmp to i32
  store i32 %conv, ptr %python_error, align 16
  %call16 = tail call ptr @PyEval_SaveThread() nounwind
  store ptr %call16, ptr %thread_state, align 8
  br i1 %cmp, label %if.end20, label %cleanup23

if.end20.critedge:
  store i32 1, ptr %python_error, align 16
  %call16.c = tail call ptr @PyEval_SaveThread() nounwind
  store ptr %call16.c, ptr %thread_state, align 8
  br label %if.end20

if.end20:
  %7 = cmpxchg ptr %block, i32 0, i32 1 acq_rel acquire, align 4
  %stop.i = getelementptr inbounds nuw i8, ptr %block, i64 56
  %8 = cmpxchg ptr %stop.i, i32 0, i32 1 acq_rel acquire, align 4
  br label %cleanup23

cleanup23:
  %retval.2 = phi i32 [ 1, %entry ], [ 0, %land.lhs.true ], [ 1, %if.end20 ], [ 0, %if.end13 ], [ 0, %if.then.i ]
  ret i32 %retval.2
}

declare i32 @PyErr_CheckSignals() local_unnamed_addr

declare ptr @PyObject_CallObject(ptr noundef, ptr noundef) local_unnamed_addr

declare void @Py_DecRef(ptr noundef) local_unnamed_addr

declare i32 @SwitchToThread() local_unnamed_addr

declare void @llvm.x86.sse2.pause() nounwind

declare ptr @_aligned_malloc(i64 noundef, i64 noundef) local_unnamed_addr

declare void @InitializeSRWLock(ptr noundef) local_unnamed_addr

declare void @InitializeConditionVariable(ptr noundef) local_unnamed_addr

declare void @AcquireSRWLockExclusive(ptr noundef) local_unnamed_addr

declare void @WakeAllConditionVariable(ptr noundef) local_unnamed_addr

declare void @ReleaseSRWLockExclusive(ptr noundef) local_unnamed_addr

define internal fastcc void @run_piece(ptr noundef captures(none) %job, i32 noundef %index) unnamed_addr noinline nounwind {
entry:
  %grain = getelementptr inbounds nuw i8, ptr %job, i64 48
  %0 = load i64, ptr %grain, align 16
  %cmp = icmp eq i64 %0, 0
  br i1 %cmp, label %cond.true, label %cond.false

cond.true:
  %1 = load ptr, ptr %job, align 64
  %stop1.i = getelementptr inbounds nuw i8, ptr %1, i64 56
  %2 = load atomic i32, ptr %stop1.i monotonic, align 8
  %cmp.not.i = icmp eq i32 %2, 0
  br i1 %cmp.not.i, label %cond.end, label %if.then

cond.false:
  %next.i = getelementptr inbounds nuw i8, ptr %job, i64 128
  %low.i12 = getelementptr inbounds nuw i8, ptr %job, i64 16
  %count.i = getelementptr inbounds nuw i8, ptr %job, i64 24
  %task.i13 = getelementptr inbounds nuw i8, ptr %job, i64 8
  br label %for.cond.i

for.cond.i:
  %3 = load ptr, ptr %job, align 64
  %stop1.i14 = getelementptr inbounds nuw i8, ptr %3, i64 56
  %4 = load atomic i32, ptr %stop1.i14 monotonic, align 8
  %cmp.not.i15 = icmp eq i32 %4, 0
  br i1 %cmp.not.i15, label %if.end.i16, label %if.then

if.end.i16:
  %5 = load i64, ptr %grain, align 16
  %6 = atomicrmw add ptr %next.i, i64 %5 monotonic, align 64
  %7 = load i64, ptr %count.i, align 8
  %cmp3.not.i = icmp ult i64 %6, %7
  br i1 %cmp3.not.i, label %if.end5.i, label %if.end

if.end5.i:
  %8 = load i64, ptr %low.i12, align 16
  %add.i17 = add i64 %8, %6
  %sub.i = sub nuw i64 %7, %6
  %cond.i.i18 = tail call noundef i64 @llvm.umin.i64(i64 %sub.i, i64 %5)
  %add8.i19 = add i64 %add.i17, %cond.i.i18
  %9 = load ptr, ptr %task.i13, align 8
  %call10.i = tail call i32 %9(ptr noundef nonnull %3, i64 noundef %add.i17, i64 noundef %add8.i19, i32 noundef %index) nounwind
  %cmp11.not.i = icmp eq i32 %call10.i, 0
  br i1 %cmp11.not.i, label %for.cond.i, label %if.then

cond.end:
  %conv = sext i32 %index to i64
  %low.i = getelementptr inbounds nuw i8, ptr %job, i64 16
  %10 = load i64, ptr %low.i, align 16
  %quotient.i = getelementptr inbounds nuw i8, ptr %job, i64 32
  %11 = load i64, ptr %quotient.i, align 32
  %mul.i = mul i64 %11, %conv
  %add.i = add i64 %mul.i, %10
  %remainder.i = getelementptr inbounds nuw i8, ptr %job, i64 40
  %12 = load i64, ptr %remainder.i, align 8
  %cond.i.i = tail call noundef i64 @llvm.umin.i64(i64 range(i64 -2147483648, 2147483648) %conv, i64 %12)
  %add2.i = add i64 %add.i, %cond.i.i
  %add4.i = add i64 %add2.i, %11
  %cmp6.i = icmp ugt i64 %12, %conv
  %conv7.i = zext i1 %cmp6.i to i64
  %add8.i = add i64 %add4.i, %conv7.i
  %task.i = getelementptr inbounds nuw i8, ptr %job, i64 8
  %13 = load ptr, ptr %task.i, align 8
  %call11.i = tail call i32 %13(ptr noundef nonnull %1, i64 noundef %add2.i, i64 noundef %add8.i, i32 noundef %index) nounwind
  %cmp2.not = icmp eq i32 %call11.i, 0
  br i1 %cmp2.not, label %if.end, label %if.then

if.then:
  %cond22 = phi i32 [ %call11.i, %cond.end ], [ %2, %cond.true ], [ %call10.i, %if.end5.i ], [ %4, %for.cond.i ]
  %result = getelementptr inbounds nuw i8, ptr %job, i64 64
  %14 = cmpxchg ptr %result, i32 0, i32 %cond22 acq_rel acquire, align 4
  %15 = load ptr, ptr %job, align 64
  %stop.i = getelementptr inbounds nuw i8, ptr %15, i64 56
  %16 = cmpxchg ptr %stop.i, i32 0, i32 %cond22 acq_rel acquire, align 4
  br label %if.end

if.end:
  ret void
}

define internal fastcc void @grow(ptr noundef %pool, i32 noundef range(i32 -2147483648, 2147483647) %wanted) unnamed_addr noinline nounwind {
entry:
  %workers = getelementptr inbounds nuw i8, ptr %pool, i64 8
  %0 = load atomic i32, ptr %workers seq_cst, align 8
  %cmp.not.not29 = icmp slt i32 %0, %wanted
  br i1 %cmp.not.not29, label %for.body.lr.ph, label %cleanup9

for.body.lr.ph:
  %lines = getelementptr inbounds nuw i8, ptr %pool, i64 448
  %alive = getelementptr inbounds nuw i8, ptr %pool, i64 36
  %1 = sext i32 %0 to i64
  %wide.trip.count = sext i32 %wanted to i64
  br label %for.body

for.body:
  %indvars.iv = phi i64 [ %1, %for.body.lr.ph ], [ %indvars.iv.next, %cleanup ]
  %indvars.iv.next = add nsw i64 %indvars.iv, 1
  %arrayidx = getelementptr inbounds %struct.line, ptr %lines, i64 %indvars.iv.next
  %index1 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 4
  %2 = trunc nsw i64 %indvars.iv.next to i32
  store i32 %2, ptr %index1, align 4
  %pool2 = getelementptr inbounds nuw i8, ptr %arrayidx, i64 8
  store ptr %pool, ptr %pool2, align 8
  %3 = atomicrmw add ptr %alive, i32 1 seq_cst, align 4
  %call.i = tail call dereferenceable_or_null(16) ptr @malloc(i64 noundef 16)
  %cmp.i = icmp eq ptr %call.i, null
  br i1 %cmp.i, label %cleanup.thread, label %if.end.i

if.end.i:
  store ptr @work, ptr %call.i, align 8
  %.compoundliteral.sroa.2.0..sroa_idx.i = getelementptr inbounds nuw i8, ptr %call.i, i64 8
  store ptr %arrayidx, ptr %.compoundliteral.sroa.2.0..sroa_idx.i, align 8
  %call3.i = tail call ptr @CreateThread(ptr noundef null, i64 noundef 8388608, ptr noundef nonnull @begin_thread, ptr noundef nonnull %call.i, i32 noundef 65536, ptr noundef null) nounwind
  %cmp4.not.i = icmp eq ptr %call3.i, null
  br i1 %cmp4.not.i, label %if.then5.i, label %cleanup

if.then5.i:
  tail call void @free(ptr noundef nonnull %call.i)
  br label %cleanup.thread

cleanup.thread:
  %4 = atomicrmw sub ptr %alive, i32 1 seq_cst, align 4
  br label %cleanup9

cleanup:
  %call7.i = tail call i32 @CloseHandle(ptr noundef nonnull %call3.i) nounwind
  store atomic i32 %2, ptr %workers seq_cst, align 8
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count
  br i1 %exitcond.not, label %cleanup9, label %for.body

cleanup9:
  ret void
}

define internal fastcc void @join(ptr noundef captures(none) %block, ptr noundef %pool, i32 noundef %epoch) unnamed_addr noinline nounwind {
entry:
  %count.i13.i = alloca %union._LARGE_INTEGER, align 8
  %frequency.i14.i = alloca %union._LARGE_INTEGER, align 8
  %count.i.i = alloca %union._LARGE_INTEGER, align 8
  %frequency.i.i = alloca %union._LARGE_INTEGER, align 8
  %remaining = getelementptr inbounds nuw i8, ptr %pool, i64 128
  %workers1.i = getelementptr inbounds nuw i8, ptr %pool, i64 8
  %0 = load atomic i32, ptr %workers1.i monotonic, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %count.i.i) nounwind
  call void @llvm.lifetime.start.p0(ptr nonnull %frequency.i.i) nounwind
  %call.i.i = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i.i) nounwind
  %call1.i.i = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i.i) nounwind
  %1 = load i64, ptr %count.i.i, align 8
  %2 = load i64, ptr %frequency.i.i, align 8
  %div.i.i = sdiv i64 %1, %2
  %rem.i.i = srem i64 %1, %2
  %mul.i.i = mul nsw i64 %div.i.i, 1000000000
  %mul2.i.i = mul nsw i64 %rem.i.i, 1000000000
  %div3.i.i = sdiv i64 %mul2.i.i, %2
  %add.i.i = add nsw i64 %div3.i.i, %mul.i.i
  call void @llvm.lifetime.end.p0(ptr nonnull %frequency.i.i) nounwind
  call void @llvm.lifetime.end.p0(ptr nonnull %count.i.i) nounwind
  %cores.i = getelementptr inbounds nuw i8, ptr %pool, i64 12
  %3 = load i32, ptr %cores.i, align 4
  %cmp.i = icmp slt i32 %0, %3
  br i1 %cmp.i, label %cond.true.i, label %cond.end.i

cond.true.i:
  %spin.i = getelementptr inbounds nuw i8, ptr %pool, i64 24
  %4 = load i64, ptr %spin.i, align 8
  br label %cond.end.i

cond.end.i:
  %cond.i = phi i64 [ %4, %cond.true.i ], [ 0, %entry ]
  %add.i = add nsw i64 %add.i.i, %cond.i
  br label %for.body.i

for.body.i:
  %i.026.i = phi i32 [ 0, %cond.end.i ], [ %i.026.i.be, %for.body.i.backedge ]
  %5 = load atomic i32, ptr %remaining acquire, align 4
  %cmp.i28 = icmp slt i32 %5, 1
  br i1 %cmp.i28, label %do.end, label %if.end.i

if.end.i:
  call void @llvm.x86.sse2.pause()
  %inc.i = add nuw nsw i32 %i.026.i, 1
  %exitcond.not.i = icmp eq i32 %inc.i, 32
  br i1 %exitcond.not.i, label %do.cond.i, label %for.body.i.backedge

for.body.i.backedge:
  %i.026.i.be = phi i32 [ %inc.i, %if.end.i ], [ 0, %do.cond.i ]
  br label %for.body.i

do.cond.i:
  call void @llvm.lifetime.start.p0(ptr nonnull %count.i13.i) nounwind
  call void @llvm.lifetime.start.p0(ptr nonnull %frequency.i14.i) nounwind
  %call.i15.i = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i13.i) nounwind
  %call1.i16.i = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i14.i) nounwind
  %6 = load i64, ptr %count.i13.i, align 8
  %7 = load i64, ptr %frequency.i14.i, align 8
  %div.i17.i = sdiv i64 %6, %7
  %rem.i18.i = srem i64 %6, %7
  %mul.i19.i = mul nsw i64 %div.i17.i, 1000000000
  %mul2.i20.i = mul nsw i64 %rem.i18.i, 1000000000
  %div3.i21.i = sdiv i64 %mul2.i20.i, %7
  %add.i22.i = add nsw i64 %div3.i21.i, %mul.i19.i
  call void @llvm.lifetime.end.p0(ptr nonnull %frequency.i14.i) nounwind
  call void @llvm.lifetime.end.p0(ptr nonnull %count.i13.i) nounwind
  %cmp6.i = icmp slt i64 %add.i22.i, %add.i
  br i1 %cmp6.i, label %for.body.i.backedge, label %do.body.preheader

do.body.preheader:
  %mutex = getelementptr inbounds nuw i8, ptr %pool, i64 256
  %waiting = getelementptr inbounds nuw i8, ptr %pool, i64 132
  %done = getelementptr inbounds nuw i8, ptr %pool, i64 384
  %epoch15 = getelementptr inbounds nuw i8, ptr %pool, i64 32
  br label %do.body

do.body:
  call void @AcquireSRWLockExclusive(ptr noundef nonnull %mutex) nounwind
  store atomic i32 1, ptr %waiting seq_cst, align 4
  %8 = load atomic i32, ptr %remaining seq_cst, align 64
  %cmp.i26 = icmp slt i32 %8, 1
  br i1 %cmp.i26, label %if.end5, label %if.then3

if.then3:
  %call.i = call i32 @SleepConditionVariableSRW(ptr noundef nonnull %done, ptr noundef nonnull %mutex, i32 noundef 20, i32 noundef 0) nounwind
  br label %if.end5

if.end5:
  store atomic i32 0, ptr %waiting seq_cst, align 4
  call void @ReleaseSRWLockExclusive(ptr noundef nonnull %mutex) nounwind
  %9 = load atomic i32, ptr %remaining acquire, align 64
  %cmp.i27 = icmp slt i32 %9, 1
  br i1 %cmp.i27, label %do.end, label %if.end13

if.end13:
  %call14 = call fastcc i32 @poll_clock(ptr noundef %block)
  %10 = load i32, ptr %epoch15, align 32
  %cmp = icmp eq i32 %10, %epoch
  br i1 %cmp, label %do.body, label %do.end

do.end:
  ret void
}

define internal void @work(ptr noundef captures(none) %argument) nounwind {
entry:
  %count.i13.i = alloca %union._LARGE_INTEGER, align 8
  %frequency.i14.i = alloca %union._LARGE_INTEGER, align 8
  %count.i.i = alloca %union._LARGE_INTEGER, align 8
  %frequency.i.i = alloca %union._LARGE_INTEGER, align 8
  %pool1 = getelementptr inbounds nuw i8, ptr %argument, i64 8
  %0 = load ptr, ptr %pool1, align 8
  %workers1.i = getelementptr inbounds nuw i8, ptr %0, i64 8
  %cores.i = getelementptr inbounds nuw i8, ptr %0, i64 12
  %spin.i = getelementptr inbounds nuw i8, ptr %0, i64 24
  %mutex.i = getelementptr inbounds nuw i8, ptr %0, i64 256
  %parked.i = getelementptr inbounds nuw i8, ptr %0, i64 64
  %quit1.i = getelementptr inbounds nuw i8, ptr %0, i64 4
  %work.i = getelementptr inbounds nuw i8, ptr %0, i64 320
  %job = getelementptr inbounds nuw i8, ptr %0, i64 192
  %index = getelementptr inbounds nuw i8, ptr %argument, i64 4
  %remaining.i = getelementptr inbounds nuw i8, ptr %0, i64 128
  %waiting.i = getelementptr inbounds nuw i8, ptr %0, i64 132
  %done.i = getelementptr inbounds nuw i8, ptr %0, i64 384
  br label %while.cond

while.cond:
  %1 = load atomic i32, ptr %workers1.i monotonic, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %count.i.i) nounwind
  call void @llvm.lifetime.start.p0(ptr nonnull %frequency.i.i) nounwind
  %call.i.i = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i.i) nounwind
  %call1.i.i = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i.i) nounwind
  %2 = load i64, ptr %count.i.i, align 8
  %3 = load i64, ptr %frequency.i.i, align 8
  %div.i.i = sdiv i64 %2, %3
  %rem.i.i = srem i64 %2, %3
  %mul.i.i = mul nsw i64 %div.i.i, 1000000000
  %mul2.i.i = mul nsw i64 %rem.i.i, 1000000000
  %div3.i.i = sdiv i64 %mul2.i.i, %3
  %add.i.i = add nsw i64 %div3.i.i, %mul.i.i
  call void @llvm.lifetime.end.p0(ptr nonnull %frequency.i.i) nounwind
  call void @llvm.lifetime.end.p0(ptr nonnull %count.i.i) nounwind
  %4 = load i32, ptr %cores.i, align 4
  %cmp.i = icmp slt i32 %1, %4
  br i1 %cmp.i, label %cond.true.i, label %cond.end.i

cond.true.i:
  %5 = load i64, ptr %spin.i, align 8
  br label %cond.end.i

cond.end.i:
  %cond.i = phi i64 [ %5, %cond.true.i ], [ 0, %while.cond ]
  %add.i = add nsw i64 %add.i.i, %cond.i
  br label %for.body.i

for.body.i:
  %i.026.i = phi i32 [ 0, %cond.end.i ], [ %i.026.i.be, %for.body.i.backedge ]
  %6 = load atomic i32, ptr %argument acquire, align 4
  %cmp.i16.not = icmp eq i32 %6, 0
  br i1 %cmp.i16.not, label %if.end.i, label %while.body

if.end.i:
  call void @llvm.x86.sse2.pause()
  %inc.i = add nuw nsw i32 %i.026.i, 1
  %exitcond.not.i = icmp eq i32 %inc.i, 32
  br i1 %exitcond.not.i, label %do.cond.i, label %for.body.i.backedge

for.body.i.backedge:
  %i.026.i.be = phi i32 [ %inc.i, %if.end.i ], [ 0, %do.cond.i ]
  br label %for.body.i

do.cond.i:
  call void @llvm.lifetime.start.p0(ptr nonnull %count.i13.i) nounwind
  call void @llvm.lifetime.start.p0(ptr nonnull %frequency.i14.i) nounwind
  %call.i15.i = call i32 @QueryPerformanceCounter(ptr noundef nonnull %count.i13.i) nounwind
  %call1.i16.i = call i32 @QueryPerformanceFrequency(ptr noundef nonnull %frequency.i14.i) nounwind
  %7 = load i64, ptr %count.i13.i, align 8
  %8 = load i64, ptr %frequency.i14.i, align 8
  %div.i17.i = sdiv i64 %7, %8
  %rem.i18.i = srem i64 %7, %8
  %mul.i19.i = mul nsw i64 %div.i17.i, 1000000000
  %mul2.i20.i = mul nsw i64 %rem.i18.i, 1000000000
  %div3.i21.i = sdiv i64 %mul2.i20.i, %8
  %add.i22.i = add nsw i64 %div3.i21.i, %mul.i19.i
  call void @llvm.lifetime.end.p0(ptr nonnull %frequency.i14.i) nounwind
  call void @llvm.lifetime.end.p0(ptr nonnull %count.i13.i) nounwind
  %cmp6.i = icmp slt i64 %add.i22.i, %add.i
  br i1 %cmp6.i, label %for.body.i.backedge, label %lor.rhs

lor.rhs:
  call void @AcquireSRWLockExclusive(ptr noundef nonnull %mutex.i) nounwind
  %9 = atomicrmw add ptr %parked.i, i32 1 seq_cst, align 64
  %10 = load atomic i32, ptr %quit1.i seq_cst, align 4
  %tobool.not16.i = icmp eq i32 %10, 0
  br i1 %tobool.not16.i, label %land.rhs.i, label %while.end

land.rhs.i:
  %11 = load atomic i32, ptr %argument seq_cst, align 64
  %cmp.i.not.not.i = icmp eq i32 %11, 0
  br i1 %cmp.i.not.not.i, label %while.body.i, label %park.exit

while.body.i:
  %call.i.i12 = call i32 @SleepConditionVariableSRW(ptr noundef nonnull %work.i, ptr noundef nonnull %mutex.i, i32 noundef -1, i32 noundef 0) nounwind
  %12 = load atomic i32, ptr %quit1.i seq_cst, align 4
  %tobool.not.i = icmp eq i32 %12, 0
  br i1 %tobool.not.i, label %land.rhs.i, label %while.end

park.exit:
  %13 = atomicrmw sub ptr %parked.i, i32 1 seq_cst, align 64
  call void @ReleaseSRWLockExclusive(ptr noundef nonnull %mutex.i) nounwind
  br label %while.body

while.body:
  %14 = cmpxchg ptr %argument, i32 1, i32 0 acq_rel acquire, align 4
  %15 = extractvalue { i32, i1 } %14, 1
  br i1 %15, label %if.then, label %while.cond.backedge

if.then:
  %16 = load ptr, ptr %job, align 64
  %17 = load i32, ptr %index, align 4
  call fastcc void @run_piece(ptr noundef %16, i32 noundef %17)
  %18 = atomicrmw sub ptr %remaining.i, i32 1 seq_cst, align 64
  %cmp.not.i = icmp eq i32 %18, 1
  br i1 %cmp.not.i, label %lor.lhs.false.i, label %while.cond.backedge

lor.lhs.false.i:
  %19 = load atomic i32, ptr %waiting.i seq_cst, align 4
  %tobool.not.i13 = icmp eq i32 %19, 0
  br i1 %tobool.not.i13, label %while.cond.backedge, label %if.end.i14

if.end.i14:
  call void @AcquireSRWLockExclusive(ptr noundef nonnull %mutex.i) nounwind
  call void @WakeConditionVariable(ptr noundef nonnull %done.i) nounwind
  call void @ReleaseSRWLockExclusive(ptr noundef nonnull %mutex.i) nounwind
  br label %while.cond.backedge

while.cond.backedge:
  br label %while.cond

while.end:
  %20 = atomicrmw sub ptr %parked.i, i32 1 seq_cst, align 64
  call void @ReleaseSRWLockExclusive(ptr noundef nonnull %mutex.i) nounwind
  %alive = getelementptr inbounds nuw i8, ptr %0, i64 36
  %21 = atomicrmw sub ptr %alive, i32 1 seq_cst, align 4
  ret void
}

declare noalias noundef ptr @malloc(i64 noundef) local_unnamed_addr nounwind

declare ptr @CreateThread(ptr noundef, i64 noundef, ptr noundef, ptr noundef, i32 noundef, ptr noundef) local_unnamed_addr

define internal noundef i32 @begin_thread(ptr noundef captures(none) %memory) nounwind {
entry:
  %beginning.sroa.0.0.copyload = load ptr, ptr %memory, align 8
  %beginning.sroa.4.0..sroa_idx = getelementptr inbounds nuw i8, ptr %memory, i64 8
  %beginning.sroa.4.0.copyload = load ptr, ptr %beginning.sroa.4.0..sroa_idx, align 8
  tail call void @free(ptr noundef %memory)
  tail call void %beginning.sroa.0.0.copyload(ptr noundef %beginning.sroa.4.0.copyload) nounwind
  ret i32 0
}

declare void @free(ptr allocptr noundef captures(none)) local_unnamed_addr nounwind

declare i32 @CloseHandle(ptr noundef) local_unnamed_addr

declare i32 @SleepConditionVariableSRW(ptr noundef, ptr noundef, i32 noundef, i32 noundef) local_unnamed_addr

declare void @WakeConditionVariable(ptr noundef) local_unnamed_addr

declare void @_aligned_free(ptr noundef) local_unnamed_addr

define internal fastcc void @copy(ptr noundef writeonly captures(none) %to, ptr noundef readonly captures(none) %from, i64 noundef %rank, ptr noundef readonly captures(none) %axes, i64 noundef %size) unnamed_addr nounwind {
entry:
  %cmp = icmp eq i64 %rank, 0
  br i1 %cmp, label %if.then, label %for.cond.preheader

for.cond.preheader:
  %0 = load i64, ptr %axes, align 8
  %cmp116 = icmp sgt i64 %0, 0
  br i1 %cmp116, label %for.body.lr.ph, label %for.end

for.body.lr.ph:
  %sub = add nsw i64 %rank, -1
  %add.ptr = getelementptr inbounds nuw i8, ptr %axes, i64 24
  %arrayidx2 = getelementptr inbounds nuw i8, ptr %axes, i64 8
  %arrayidx4 = getelementptr inbounds nuw i8, ptr %axes, i64 16
  br label %for.body

if.then:
  tail call void @llvm.memmove.p0.p0.i64(ptr align 1 %to, ptr align 1 %from, i64 %size, i1 false)
  br label %for.end

for.body:
  %i.019 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.body ]
  %to.addr.018 = phi ptr [ %to, %for.body.lr.ph ], [ %add.ptr3, %for.body ]
  %from.addr.017 = phi ptr [ %from, %for.body.lr.ph ], [ %add.ptr5, %for.body ]
  tail call fastcc void @copy(ptr noundef %to.addr.018, ptr noundef %from.addr.017, i64 noundef %sub, ptr noundef nonnull %add.ptr, i64 noundef %size)
  %inc = add nuw nsw i64 %i.019, 1
  %1 = load i64, ptr %arrayidx2, align 8
  %add.ptr3 = getelementptr inbounds i8, ptr %to.addr.018, i64 %1
  %2 = load i64, ptr %arrayidx4, align 8
  %add.ptr5 = getelementptr inbounds i8, ptr %from.addr.017, i64 %2
  %3 = load i64, ptr %axes, align 8
  %cmp1 = icmp slt i64 %inc, %3
  br i1 %cmp1, label %for.body, label %for.end

for.end:
  ret void
}

define internal fastcc void @convert(i64 noundef %to_type, ptr noundef writeonly captures(none) %to, i64 noundef %from_type, ptr noundef readonly captures(none) %from, i64 noundef %rank, ptr noundef readonly captures(none) %axes) unnamed_addr nounwind {
entry:
  %cmp = icmp eq i64 %rank, 0
  br i1 %cmp, label %if.then, label %for.cond.preheader

for.cond.preheader:
  %0 = load i64, ptr %axes, align 8
  %cmp221 = icmp sgt i64 %0, 0
  br i1 %cmp221, label %for.body.lr.ph, label %for.end

for.body.lr.ph:
  %sub = add nsw i64 %rank, -1
  %add.ptr = getelementptr inbounds nuw i8, ptr %axes, i64 24
  %arrayidx3 = getelementptr inbounds nuw i8, ptr %axes, i64 8
  %arrayidx5 = getelementptr inbounds nuw i8, ptr %axes, i64 16
  br label %for.body

if.then:
  switch i64 %from_type, label %sw.default.i [
    i64 0, label %sw.bb.i
    i64 1, label %sw.bb1.i
    i64 2, label %sw.bb2.i
    i64 3, label %sw.bb3.i
    i64 4, label %sw.bb5.i
    i64 5, label %sw.bb7.i
    i64 6, label %sw.bb9.i
    i64 7, label %sw.bb10.i
    i64 8, label %sw.bb14.i
    i64 9, label %sw.bb16.i
    i64 10, label %sw.bb18.i
  ]

sw.bb.i:
  %bits.0.copyload.i = load i16, ptr %from, align 1
  %conv.i.i = zext i16 %bits.0.copyload.i to i32
  %shr.i.i = lshr i32 %conv.i.i, 10
  %and.i.i = and i32 %shr.i.i, 31
  %and3.i.i = and i32 %conv.i.i, 1023
  %conv4.i.i = zext nneg i32 %and3.i.i to i64
  %cmp.i.i = icmp eq i32 %and.i.i, 31
  br i1 %cmp.i.i, label %if.then.i.i, label %if.else.i.i

if.then.i.i:
  %shl.i.i = shl nuw nsw i64 %conv4.i.i, 42
  %or.i.i = or disjoint i64 %shl.i.i, 9218868437227405312
  %1 = bitcast i64 %or.i.i to double
  br label %real_of_half.exit.i

if.else.i.i:
  %conv5.i.i = uitofp nneg i32 %and3.i.i to double
  %mul.i.i = fmul double %conv5.i.i, 0x3E70000000000000
  %cmp7.not.i.i = icmp eq i32 %and.i.i, 0
  br i1 %cmp7.not.i.i, label %real_of_half.exit.i, label %if.then9.i.i

if.then9.i.i:
  %2 = add nuw nsw i32 %and.i.i, 1008
  %sub.i.i = zext nneg i32 %2 to i64
  %shl10.i.i = shl nuw nsw i64 %sub.i.i, 52
  %shl11.i.i = shl nuw nsw i64 %conv4.i.i, 42
  %or12.i.i = or disjoint i64 %shl10.i.i, %shl11.i.i
  %3 = bitcast i64 %or12.i.i to double
  br label %real_of_half.exit.i

real_of_half.exit.i:
  %found.sroa.0.0.i.i = phi double [ %1, %if.then.i.i ], [ %3, %if.then9.i.i ], [ %mul.i.i, %if.else.i.i ]
  %fneg.i.i = fneg double %found.sroa.0.0.i.i
  %tobool.not23.i.i = icmp slt i16 %bits.0.copyload.i, 0
  %cond.i.i = select i1 %tobool.not23.i.i, double %fneg.i.i, double %found.sroa.0.0.i.i
  br label %load.exit

sw.bb1.i:
  %4 = load float, ptr %from, align 4
  %conv.i = fpext float %4 to double
  br label %load.exit

sw.bb2.i:
  %5 = load double, ptr %from, align 8
  br label %load.exit

sw.bb3.i:
  %6 = load i8, ptr %from, align 1
  %conv4.i = sext i8 %6 to i64
  %7 = bitcast i64 %conv4.i to double
  br label %load.exit

sw.bb5.i:
  %8 = load i16, ptr %from, align 2
  %conv6.i = sext i16 %8 to i64
  %9 = bitcast i64 %conv6.i to double
  br label %load.exit

sw.bb7.i:
  %10 = load i32, ptr %from, align 4
  %conv8.i = sext i32 %10 to i64
  %11 = bitcast i64 %conv8.i to double
  br label %load.exit

sw.bb9.i:
  %12 = load double, ptr %from, align 8
  br label %load.exit

sw.bb10.i:
  %13 = load i8, ptr %from, align 1
  %cmp.i = icmp ne i8 %13, 0
  %conv13.i = zext i1 %cmp.i to i64
  %14 = bitcast i64 %conv13.i to double
  br label %load.exit

sw.bb14.i:
  %15 = load i8, ptr %from, align 1
  %conv15.i = zext i8 %15 to i64
  %16 = bitcast i64 %conv15.i to double
  br label %load.exit

sw.bb16.i:
  %17 = load i16, ptr %from, align 2
  %conv17.i = zext i16 %17 to i64
  %18 = bitcast i64 %conv17.i to double
  br label %load.exit

sw.bb18.i:
  %19 = load i32, ptr %from, align 4
  %conv19.i = zext i32 %19 to i64
  %20 = bitcast i64 %conv19.i to double
  br label %load.exit

sw.default.i:
  %21 = load double, ptr %from, align 8
  br label %load.exit

load.exit:
  %number.sroa.0.0 = phi double [ %21, %sw.default.i ], [ %cond.i.i, %real_of_half.exit.i ], [ %conv.i, %sw.bb1.i ], [ %5, %sw.bb2.i ], [ %7, %sw.bb3.i ], [ %9, %sw.bb5.i ], [ %11, %sw.bb7.i ], [ %12, %sw.bb9.i ], [ %14, %sw.bb10.i ], [ %16, %sw.bb14.i ], [ %18, %sw.bb16.i ], [ %20, %sw.bb18.i ]
  switch i64 %to_type, label %if.end3.i [
    i64 2, label %if.then.i
    i64 1, label %if.then2.i
  ]

if.then.i:
  store double %number.sroa.0.0, ptr %to, align 8
  br label %for.end

if.then2.i:
  %conv.i18 = fptrunc double %number.sroa.0.0 to float
  store float %conv.i18, ptr %to, align 4
  br label %for.end

if.end3.i:
  %22 = tail call double @llvm.fabs.f64(double %number.sroa.0.0)
  %and1.i.i.i = bitcast double %22 to i64
  %cmp.i.i.i = fcmp uno double %number.sroa.0.0, 0.000000e+00
  br i1 %cmp.i.i.i, label %if.then.i.i.i, label %if.else.i.i.i

if.then.i.i.i:
  %shr3.i.i.i = lshr i64 %and1.i.i.i, 42
  %23 = trunc i64 %shr3.i.i.i to i16
  %conv5.i.i.i = and i16 %23, 511
  %or.i.i.i = or disjoint i16 %conv5.i.i.i, 32256
  br label %half_of_real.exit.i

if.else.i.i.i:
  %cmp8.i.i.i = fcmp ult double %22, 6.552000e+04
  br i1 %cmp8.i.i.i, label %if.else11.i.i.i, label %half_of_real.exit.i

if.else11.i.i.i:
  %cmp12.i.i.i = fcmp olt double %22, 0x3F10000000000000
  br i1 %cmp12.i.i.i, label %if.then14.i.i.i, label %if.else16.i.i.i

if.then14.i.i.i:
  %add.i.i.i = fadd double %22, 0x41B0000000000000
  %24 = bitcast double %add.i.i.i to i64
  %conv15.i.i.i = trunc i64 %24 to i16
  br label %half_of_real.exit.i

if.else16.i.i.i:
  %sub18.i.i.i = add nuw i64 %and1.i.i.i, 2199023255551
  %shr19.i.i.i = lshr i64 %and1.i.i.i, 42
  %and20.i.i.i = and i64 %shr19.i.i.i, 1
  %add21.i.i.i = add nuw i64 %sub18.i.i.i, %and20.i.i.i
  %shr22.i.i.i = lshr i64 %add21.i.i.i, 42
  %25 = trunc i64 %shr22.i.i.i to i16
  %conv24.i.i.i = add i16 %25, 16384
  br label %half_of_real.exit.i

half_of_real.exit.i:
  %half.sroa.0.0.i.i.i = phi i16 [ %or.i.i.i, %if.then.i.i.i ], [ %conv24.i.i.i, %if.else16.i.i.i ], [ %conv15.i.i.i, %if.then14.i.i.i ], [ 31744, %if.else.i.i.i ]
  %26 = bitcast double %number.sroa.0.0 to i64
  %shr.i.i.i = lshr i64 %26, 48
  %27 = trunc nuw i64 %shr.i.i.i to i16
  %conv.i.i.i = and i16 %27, -32768
  %or29.i.i.i = or i16 %half.sroa.0.0.i.i.i, %conv.i.i.i
  store i16 %or29.i.i.i, ptr %to, align 1
  br label %for.end

for.body:
  %i.024 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.body ]
  %to.addr.023 = phi ptr [ %to, %for.body.lr.ph ], [ %add.ptr4, %for.body ]
  %from.addr.022 = phi ptr [ %from, %for.body.lr.ph ], [ %add.ptr6, %for.body ]
  tail call fastcc void @convert(i64 noundef %to_type, ptr noundef %to.addr.023, i64 noundef %from_type, ptr noundef %from.addr.022, i64 noundef %sub, ptr noundef nonnull %add.ptr)
  %inc = add nuw nsw i64 %i.024, 1
  %28 = load i64, ptr %arrayidx3, align 8
  %add.ptr4 = getelementptr inbounds i8, ptr %to.addr.023, i64 %28
  %29 = load i64, ptr %arrayidx5, align 8
  %add.ptr6 = getelementptr inbounds i8, ptr %from.addr.022, i64 %29
  %30 = load i64, ptr %axes, align 8
  %cmp2 = icmp slt i64 %inc, %30
  br i1 %cmp2, label %for.body, label %for.end

for.end:
  ret void
}

define internal fastcc range(i32 0, 7) i32 @store(i64 noundef %type, ptr noundef writeonly captures(none) %at, i64 noundef %is_real, i64 %number.coerce) unnamed_addr nounwind {
entry:
  %spec.select.i = icmp ult i64 %type, 3
  br i1 %spec.select.i, label %if.then, label %if.end

if.then:
  %0 = bitcast i64 %number.coerce to double
  %tobool.not = icmp eq i64 %is_real, 0
  %conv = sitofp i64 %number.coerce to double
  %cond = select i1 %tobool.not, double %conv, double %0
  switch i64 %type, label %if.end3.i [
    i64 2, label %if.then.i
    i64 1, label %if.then2.i
  ]

if.then.i:
  store double %cond, ptr %at, align 8
  br label %return

if.then2.i:
  %conv.i = fptrunc double %cond to float
  store float %conv.i, ptr %at, align 4
  %1 = tail call float @llvm.fabs.f32(float %conv.i)
  %2 = fcmp oeq float %1, 0x7FF0000000000000
  %3 = tail call double @llvm.fabs.f64(double %cond)
  %4 = fcmp une double %3, 0x7FF0000000000000
  %5 = and i1 %4, %2
  %cond.i = select i1 %5, i32 6, i32 0
  br label %return

if.end3.i:
  %6 = tail call double @llvm.fabs.f64(double %cond)
  %and1.i.i.i = bitcast double %6 to i64
  %cmp.i.i.i = fcmp uno double %cond, 0.000000e+00
  br i1 %cmp.i.i.i, label %if.then.i.i.i, label %if.else.i.i.i

if.then.i.i.i:
  %shr3.i.i.i = lshr i64 %and1.i.i.i, 42
  %7 = trunc i64 %shr3.i.i.i to i16
  %conv5.i.i.i = and i16 %7, 511
  %or.i.i.i = or disjoint i16 %conv5.i.i.i, 32256
  br label %half_of_real.exit.i

if.else.i.i.i:
  %cmp8.i.i.i = fcmp ult double %6, 6.552000e+04
  br i1 %cmp8.i.i.i, label %if.else11.i.i.i, label %half_of_real.exit.i

if.else11.i.i.i:
  %cmp12.i.i.i = fcmp olt double %6, 0x3F10000000000000
  br i1 %cmp12.i.i.i, label %if.then14.i.i.i, label %if.else16.i.i.i

if.then14.i.i.i:
  %add.i.i.i = fadd double %6, 0x41B0000000000000
  %8 = bitcast double %add.i.i.i to i64
  %conv15.i.i.i = trunc i64 %8 to i16
  br label %half_of_real.exit.i

if.else16.i.i.i:
  %sub18.i.i.i = add nuw i64 %and1.i.i.i, 2199023255551
  %shr19.i.i.i = lshr i64 %and1.i.i.i, 42
  %and20.i.i.i = and i64 %shr19.i.i.i, 1
  %add21.i.i.i = add nuw i64 %sub18.i.i.i, %and20.i.i.i
  %shr22.i.i.i = lshr i64 %add21.i.i.i, 42
  %9 = trunc i64 %shr22.i.i.i to i16
  %conv24.i.i.i = add i16 %9, 16384
  br label %half_of_real.exit.i

half_of_real.exit.i:
  %half.sroa.0.0.i.i.i = phi i16 [ %or.i.i.i, %if.then.i.i.i ], [ %conv24.i.i.i, %if.else16.i.i.i ], [ %conv15.i.i.i, %if.then14.i.i.i ], [ 31744, %if.else.i.i.i ]
  %10 = bitcast double %cond to i64
  %shr.i.i.i = lshr i64 %10, 48
  %11 = trunc nuw i64 %shr.i.i.i to i16
  %conv.i.i.i = and i16 %11, -32768
  %or29.i.i.i = or i16 %half.sroa.0.0.i.i.i, %conv.i.i.i
  store i16 %or29.i.i.i, ptr %at, align 1
  %12 = and i16 %half.sroa.0.0.i.i.i, 32767
  %cmp5.i = icmp eq i16 %12, 31744
  %13 = fcmp une double %6, 0x7FF0000000000000
  %14 = and i1 %13, %cmp5.i
  %cond10.i = select i1 %14, i32 6, i32 0
  br label %return

if.end:
  %tobool2.not = icmp eq i64 %is_real, 0
  br i1 %tobool2.not, label %if.end4, label %return

if.end4:
  switch i64 %type, label %sw.default.i [
    i64 3, label %sw.bb.i
    i64 4, label %sw.bb2.i
    i64 5, label %sw.bb11.i
    i64 6, label %sw.bb20.i
    i64 7, label %sw.bb21.i
    i64 8, label %sw.bb25.i
    i64 9, label %sw.bb34.i
    i64 10, label %sw.bb43.i
  ]

sw.bb.i:
  %15 = add i64 %number.coerce, -128
  %or.cond.i = icmp ult i64 %15, -256
  br i1 %or.cond.i, label %return, label %if.end.i

if.end.i:
  %conv.i12 = trunc nsw i64 %number.coerce to i8
  store i8 %conv.i12, ptr %at, align 1
  br label %return

sw.bb2.i:
  %16 = add i64 %number.coerce, -32768
  %or.cond59.i = icmp ult i64 %16, -65536
  br i1 %or.cond59.i, label %return, label %if.end9.i

if.end9.i:
  %conv10.i = trunc nsw i64 %number.coerce to i16
  store i16 %conv10.i, ptr %at, align 2
  br label %return

sw.bb11.i:
  %17 = add i64 %number.coerce, -2147483648
  %or.cond60.i = icmp ult i64 %17, -4294967296
  br i1 %or.cond60.i, label %return, label %if.end18.i

if.end18.i:
  %conv19.i = trunc nsw i64 %number.coerce to i32
  store i32 %conv19.i, ptr %at, align 4
  br label %return

sw.bb20.i:
  store i64 %number.coerce, ptr %at, align 8
  br label %return

sw.bb21.i:
  %cmp22.i = icmp ne i64 %number.coerce, 0
  %conv24.i = zext i1 %cmp22.i to i8
  store i8 %conv24.i, ptr %at, align 1
  br label %return

sw.bb25.i:
  %or.cond61.i = icmp ugt i64 %number.coerce, 255
  br i1 %or.cond61.i, label %return, label %if.end32.i

if.end32.i:
  %conv33.i = trunc nuw i64 %number.coerce to i8
  store i8 %conv33.i, ptr %at, align 1
  br label %return

sw.bb34.i:
  %or.cond62.i = icmp ugt i64 %number.coerce, 65535
  br i1 %or.cond62.i, label %return, label %if.end41.i

if.end41.i:
  %conv42.i = trunc nuw i64 %number.coerce to i16
  store i16 %conv42.i, ptr %at, align 2
  br label %return

sw.bb43.i:
  %or.cond63.i = icmp ugt i64 %number.coerce, 4294967295
  br i1 %or.cond63.i, label %return, label %if.end50.i

if.end50.i:
  %conv51.i = trunc nuw i64 %number.coerce to i32
  store i32 %conv51.i, ptr %at, align 4
  br label %return

sw.default.i:
  %cmp52.i = icmp slt i64 %number.coerce, 0
  br i1 %cmp52.i, label %return, label %if.end58.i

if.end58.i:
  store i64 %number.coerce, ptr %at, align 8
  br label %return

return:
  %retval.0 = phi i32 [ 6, %if.end ], [ %cond10.i, %half_of_real.exit.i ], [ 0, %if.then.i ], [ %cond.i, %if.then2.i ], [ 6, %sw.bb43.i ], [ 0, %if.end58.i ], [ 0, %if.end50.i ], [ 0, %if.end.i ], [ 6, %sw.bb.i ], [ 0, %if.end9.i ], [ 6, %sw.bb2.i ], [ 0, %if.end18.i ], [ 0, %sw.bb20.i ], [ 0, %sw.bb21.i ], [ 6, %sw.bb11.i ], [ 0, %if.end32.i ], [ 6, %sw.bb25.i ], [ 0, %if.end41.i ], [ 6, %sw.bb34.i ], [ 6, %sw.default.i ]
  ret i32 %retval.0
}

define internal fastcc void @fill(ptr noundef writeonly captures(none) %at, i64 noundef %rank, ptr noundef readonly captures(none) %axes, ptr noundef nonnull readonly captures(none) %bits, i64 noundef range(i64 -128, 128) %size) unnamed_addr nounwind {
entry:
  %cmp = icmp eq i64 %rank, 0
  br i1 %cmp, label %if.then, label %for.cond.preheader

for.cond.preheader:
  %0 = load i64, ptr %axes, align 8
  %cmp112 = icmp sgt i64 %0, 0
  br i1 %cmp112, label %for.body.lr.ph, label %for.end

for.body.lr.ph:
  %sub = add nsw i64 %rank, -1
  %add.ptr = getelementptr inbounds nuw i8, ptr %axes, i64 16
  %arrayidx2 = getelementptr inbounds nuw i8, ptr %axes, i64 8
  br label %for.body

if.then:
  tail call void @llvm.memcpy.p0.p0.i64(ptr align 1 %at, ptr nonnull align 1 %bits, i64 %size, i1 false)
  br label %for.end

for.body:
  %i.014 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.body ]
  %at.addr.013 = phi ptr [ %at, %for.body.lr.ph ], [ %add.ptr3, %for.body ]
  tail call fastcc void @fill(ptr noundef %at.addr.013, i64 noundef %sub, ptr noundef nonnull %add.ptr, ptr noundef %bits, i64 noundef %size)
  %inc = add nuw nsw i64 %i.014, 1
  %1 = load i64, ptr %arrayidx2, align 8
  %add.ptr3 = getelementptr inbounds i8, ptr %at.addr.013, i64 %1
  %2 = load i64, ptr %axes, align 8
  %cmp1 = icmp slt i64 %inc, %2
  br i1 %cmp1, label %for.body, label %for.end

for.end:
  ret void
}

define internal fastcc range(i32 0, 2) i32 @show_prints(ptr noundef captures(none) %block) unnamed_addr noinline nounwind {
entry:
  %python_error = getelementptr inbounds i8, ptr %block, i64 -80
  %0 = load i32, ptr %python_error, align 16
  %tobool.not = icmp eq i32 %0, 0
  br i1 %tobool.not, label %if.end, label %cleanup

if.end:
  %thread_state = getelementptr inbounds i8, ptr %block, i64 -120
  %1 = load ptr, ptr %thread_state, align 8
  tail call void @PyEval_RestoreThread(ptr noundef %1) nounwind
  %drain.i = getelementptr inbounds i8, ptr %block, i64 -104
  %2 = load ptr, ptr %drain.i, align 8
  %call1.i = tail call ptr @PyObject_CallObject(ptr noundef %2, ptr noundef null) nounwind
  %cmp.not.i = icmp eq ptr %call1.i, null
  br i1 %cmp.not.i, label %drain_failed.exit, label %if.then.i

if.then.i:
  tail call void @Py_DecRef(ptr noundef nonnull %call1.i) nounwind
  br label %drain_failed.exit

drain_failed.exit:
  %conv = zext i1 %cmp.not.i to i32
  store i32 %conv, ptr %python_error, align 16
  %call3 = tail call ptr @PyEval_SaveThread() nounwind
  store ptr %call3, ptr %thread_state, align 8
  %3 = load i32, ptr %python_error, align 16
  %tobool6.not = icmp ne i32 %3, 0
  %cond = zext i1 %tobool6.not to i32
  br label %cleanup

cleanup:
  %retval.0 = phi i32 [ %cond, %drain_failed.exit ], [ 1, %entry ]
  ret i32 %retval.0
}

declare void @llvm.memmove.p0.p0.i64(ptr writeonly captures(none), ptr readonly captures(none), i64, i1 immarg) nounwind

declare double @llvm.fabs.f64(double) nounwind

declare double @sqrt(double noundef) local_unnamed_addr nounwind

declare double @fmod(double noundef, double noundef) local_unnamed_addr nounwind

declare double @llvm.copysign.f64(double, double) nounwind

declare double @llvm.floor.f64(double) nounwind

declare double @pow(double noundef, double noundef) local_unnamed_addr nounwind

declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64) nounwind

declare { i64, i1 } @llvm.ssub.with.overflow.i64(i64, i64) nounwind

declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64) nounwind

declare i64 @llvm.smax.i64(i64, i64) nounwind

declare i32 @llvm.abs.i32(i32, i1 immarg) nounwind

declare i64 @llvm.umin.i64(i64, i64) nounwind

declare float @llvm.fabs.f32(float) nounwind

declare i32 @llvm.umin.i32(i32, i32) nounwind

declare i32 @llvm.smax.i32(i32, i32) nounwind
