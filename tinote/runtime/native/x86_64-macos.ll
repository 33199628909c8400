; Made from runtime.c by generate.py with ziglang 0.17.1.

%struct.arena = type { ptr, i64, ptr, [40 x i8] }
%struct.timespec = type { i64, i64 }
%struct.line = type { i32, i32, ptr, [48 x i8] }
%struct.job = type { ptr, ptr, i64, i64, i64, i64, i64, [8 x i8], i32, [60 x i8], i64, [56 x i8] }
%struct._opaque_pthread_attr_t = type { i64, [56 x i8] }

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
  br label %cleanup33

if.end:
  %add.ptr.i = getelementptr inbounds i8, ptr %call, i64 -128
  %call4 = tail call ptr @pthread_self() nounwind
  %1 = ptrtoint ptr %call4 to i64
  %thread = getelementptr inbounds i8, ptr %call, i64 -112
  store i64 %1, ptr %thread, align 16
  %pool = getelementptr inbounds nuw i8, ptr %call, i64 64
  %2 = load ptr, ptr %pool, align 16
  %main_thread = getelementptr inbounds nuw i8, ptr %2, i64 16
  %3 = load i64, ptr %main_thread, align 16
  %cmp6 = icmp eq i64 %3, %1
  %cond7 = zext i1 %cmp6 to i32
  %flags = getelementptr inbounds nuw i8, ptr %call, i64 60
  store i32 %cond7, ptr %flags, align 4
  store atomic i32 0, ptr %call monotonic, align 16
  %site = getelementptr inbounds nuw i8, ptr %call, i64 4
  store i32 0, ptr %site, align 4
  %python_error = getelementptr inbounds i8, ptr %call, i64 -80
  %clock_read = getelementptr inbounds i8, ptr %call, i64 -96
  %tick_interval = getelementptr inbounds i8, ptr %call, i64 -64
  tail call void @llvm.memset.p0.i64(ptr noundef nonnull align 16 dereferenceable(20) %clock_read, i8 0, i64 20, i1 false)
  store i64 20000000, ptr %tick_interval, align 16
  %stop = getelementptr inbounds nuw i8, ptr %call, i64 56
  store atomic i32 0, ptr %stop release, align 8
  %call9 = tail call ptr @PyEval_SaveThread() nounwind
  %thread_state = getelementptr inbounds i8, ptr %call, i64 -120
  store ptr %call9, ptr %thread_state, align 8
  %4 = load ptr, ptr %add.ptr.i, align 16
  %call11 = tail call i32 %4(ptr noundef nonnull %call) nounwind
  store atomic i32 -1, ptr %stop release, align 8
  %arenas = getelementptr inbounds nuw i8, ptr %call, i64 112
  %5 = load atomic i64, ptr %arenas monotonic, align 16
  %cmp14.not = icmp eq i64 %5, 0
  br i1 %cmp14.not, label %if.end16, label %if.then15

if.then15:
  tail call fastcc void @reset_arenas(ptr noundef %call)
  br label %if.end16

if.end16:
  %cmp17.not = icmp eq i32 %call11, 0
  br i1 %cmp17.not, label %if.end19, label %if.then18

if.then18:
  tail call fastcc void @stay_at_exit(ptr noundef %call)
  br label %if.end19

if.end19:
  %6 = load ptr, ptr %thread_state, align 8
  tail call void @PyEval_RestoreThread(ptr noundef %6) nounwind
  %7 = load i32, ptr %python_error, align 16
  %tobool.not = icmp eq i32 %7, 0
  br i1 %tobool.not, label %if.end23, label %cleanup33

if.end23:
  %8 = load atomic i32, ptr %call monotonic, align 8
  %cond30 = select i1 %cmp17.not, i32 %8, i32 %call11
  %conv = sext i32 %cond30 to i64
  %call31 = tail call ptr @PyLong_FromLong(i64 noundef %conv) nounwind
  br label %cleanup33

cleanup33:
  %retval.1 = phi ptr [ null, %if.then ], [ %call31, %if.end23 ], [ null, %if.end19 ]
  ret ptr %retval.1
}

declare void @llvm.lifetime.start.p0(ptr captures(none)) nounwind

declare ptr @PyLong_AsVoidPtr(ptr noundef) local_unnamed_addr

declare i32 @PyErr_BadArgument() local_unnamed_addr

declare ptr @pthread_self() local_unnamed_addr

declare ptr @PyEval_SaveThread() local_unnamed_addr

define internal fastcc void @reset_arenas(ptr noundef nonnull captures(none) %block) unnamed_addr noinline nounwind {
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
  %5 = load ptr, ptr %chunk.addr.06.i.i, align 16
  %capacity.i.i = getelementptr inbounds nuw i8, ptr %chunk.addr.06.i.i, i64 16
  %6 = load i64, ptr %capacity.i.i, align 16
  %7 = atomicrmw sub ptr %committed, i64 %6 monotonic, align 8
  tail call void @free(ptr noundef nonnull %chunk.addr.06.i.i)
  %cmp.not.i.i = icmp eq ptr %5, null
  br i1 %cmp.not.i.i, label %free_chain.exit.i, label %while.body.i.i

free_chain.exit.i:
  store ptr null, ptr %first.i, align 16
  br label %if.end.i

if.end.i:
  %first2.i = getelementptr inbounds nuw i8, ptr %arrayidx.i.i, i64 16
  %8 = load ptr, ptr %first2.i, align 16
  store ptr %8, ptr %arrayidx.i.i, align 16
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
  %call = tail call i32 @"\01_sleep"(i32 noundef 1000) nounwind
  %3 = load ptr, ptr %pool, align 8
  %quit = getelementptr inbounds nuw i8, ptr %3, i64 4
  %4 = load atomic i32, ptr %quit seq_cst, align 4
  %tobool1.not = icmp eq i32 %4, 0
  br i1 %tobool1.not, label %while.end, label %while.body

while.end:
  ret void
}

declare void @PyEval_RestoreThread(ptr noundef) local_unnamed_addr

declare ptr @PyLong_FromLong(i64 noundef) local_unnamed_addr

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
  store i32 %site, ptr %site1, align 4
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

define i32 @tn_poll(ptr noundef captures(none) %block, i32 noundef %tid) local_unnamed_addr nounwind {
entry:
  %stop1 = getelementptr inbounds nuw i8, ptr %block, i64 56
  %0 = load atomic i32, ptr %stop1 monotonic, align 8
  %cmp.not = icmp eq i32 %0, 0
  br i1 %cmp.not, label %if.end, label %cleanup8

if.end:
  %call2 = tail call ptr @pthread_self() nounwind
  %1 = ptrtoint ptr %call2 to i64
  %thread = getelementptr inbounds i8, ptr %block, i64 -112
  %2 = load i64, ptr %thread, align 16
  %cmp3.not = icmp eq i64 %2, %1
  br i1 %cmp3.not, label %if.end5, label %cleanup8

if.end5:
  %left = getelementptr inbounds i8, ptr %block, i64 -84
  %3 = load i32, ptr %left, align 4
  %dec = add nsw i32 %3, -1
  store i32 %dec, ptr %left, align 4
  %cmp6 = icmp sgt i32 %3, 0
  br i1 %cmp6, label %cleanup8, label %cond.false

cond.false:
  %call7 = tail call fastcc i32 @poll_clock(ptr noundef nonnull %block)
  br label %cleanup8

cleanup8:
  %retval.1 = phi i32 [ %0, %entry ], [ 0, %if.end ], [ %call7, %cond.false ], [ 0, %if.end5 ]
  ret i32 %retval.1
}

define internal fastcc range(i32 0, 2) i32 @poll_clock(ptr noundef captures(none) %block) unnamed_addr noinline nounwind {
entry:
  %time.i47 = alloca %struct.timespec, align 8
  %time.i = alloca %struct.timespec, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %time.i) nounwind
  %call.i = call i32 @clock_gettime(i32 noundef 6, ptr noundef nonnull %time.i) nounwind
  %0 = load i64, ptr %time.i, align 8
  %mul.i = mul nsw i64 %0, 1000000000
  %tv_nsec.i = getelementptr inbounds nuw i8, ptr %time.i, i64 8
  %1 = load i64, ptr %tv_nsec.i, align 8
  %add.i = add nsw i64 %mul.i, %1
  call void @llvm.lifetime.end.p0(ptr nonnull %time.i) nounwind
  %clock_read = getelementptr inbounds i8, ptr %block, i64 -96
  %2 = load i64, ptr %clock_read, align 16
  store i64 %add.i, ptr %clock_read, align 16
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
  %5 = load i64, ptr %tick_interval, align 16
  %cmp7 = icmp slt i64 %sub6, %5
  br i1 %cmp7, label %cleanup, label %if.end9

if.end9:
  %call10 = call fastcc i32 @tick(ptr noundef nonnull %block)
  call void @llvm.lifetime.start.p0(ptr nonnull %time.i47) nounwind
  %call.i48 = call i32 @clock_gettime(i32 noundef 6, ptr noundef nonnull %time.i47) nounwind
  %6 = load i64, ptr %time.i47, align 8
  %mul.i49 = mul nsw i64 %6, 1000000000
  %tv_nsec.i50 = getelementptr inbounds nuw i8, ptr %time.i47, i64 8
  %7 = load i64, ptr %tv_nsec.i50, align 8
  %add.i51 = add nsw i64 %mul.i49, %7
  call void @llvm.lifetime.end.p0(ptr nonnull %time.i47) nounwind
  store i64 %add.i51, ptr %clock_read, align 16
  store i64 %add.i51, ptr %last_tick5, align 8
  %sub14 = sub nsw i64 %add.i51, %add.i
  %mul = shl nsw i64 %sub14, 3
  %8 = call i64 @llvm.smax.i64(i64 %mul, i64 20000000)
  %9 = call i64 @llvm.umin.i64(i64 %8, i64 160000000)
  store i64 %9, ptr %tick_interval, align 16
  br label %cleanup

cleanup:
  %retval.0 = phi i32 [ 0, %if.then ], [ %call10, %if.end9 ], [ 0, %cond.end ]
  ret i32 %retval.0
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
  %3 = load i64, ptr %capacity, align 16
  %sub = add i64 %3, -1
  %head5 = getelementptr inbounds nuw i8, ptr %0, i64 8
  %4 = load atomic i64, ptr %head5 monotonic, align 8
  %add = add i64 %4, 1
  %add6 = add i64 %add, %conv
  %tail = getelementptr inbounds nuw i8, ptr %0, i64 16
  %5 = load atomic i64, ptr %tail acquire, align 16
  %sub8 = sub i64 %add6, %5
  %6 = load i64, ptr %capacity, align 16
  %cmp10.not = icmp ugt i64 %sub8, %6
  br i1 %cmp10.not, label %if.else, label %if.then12

for.body:
  %tries.055 = phi i32 [ %inc, %if.end4 ], [ 1, %for.cond.preheader ]
  %rem = and i32 %tries.055, 63
  %cmp1 = icmp eq i32 %rem, 0
  br i1 %cmp1, label %if.then2, label %if.end4

if.then2:
  %call3 = tail call i32 @sched_yield() nounwind
  br label %if.end4

if.end4:
  tail call void @llvm.x86.sse2.pause()
  %inc = add nuw nsw i32 %tries.055, 1
  %7 = cmpxchg ptr %0, i32 0, i32 1 acq_rel acquire, align 4
  %8 = extractvalue { i32, i1 } %7, 1
  br i1 %8, label %for.cond.cleanup, label %for.body

if.then12:
  %shl = shl nuw i64 %conv, 32
  %conv13 = zext i32 %site to i64
  %or = or disjoint i64 %shl, %conv13
  %words14 = getelementptr inbounds nuw i8, ptr %0, i64 64
  %and = and i64 %4, %sub
  %arrayidx = getelementptr inbounds nuw i64, ptr %words14, i64 %and
  store i64 %or, ptr %arrayidx, align 8
  %cmp1656.not = icmp eq i32 %count, 0
  br i1 %cmp1656.not, label %for.cond.cleanup18, label %for.body19

for.cond.cleanup18:
  store atomic i64 %add6, ptr %head5 release, align 8
  br label %if.end32

for.body19:
  %i.057 = phi i64 [ %inc27, %for.body19 ], [ 0, %if.then12 ]
  %arrayidx20 = getelementptr inbounds nuw i64, ptr %words, i64 %i.057
  %9 = load i64, ptr %arrayidx20, align 8
  %add23 = add i64 %i.057, %add
  %and24 = and i64 %add23, %sub
  %arrayidx25 = getelementptr inbounds nuw i64, ptr %words14, i64 %and24
  store i64 %9, ptr %arrayidx25, align 8
  %inc27 = add nuw nsw i64 %i.057, 1
  %exitcond.not = icmp eq i64 %inc27, %conv
  br i1 %exitcond.not, label %for.cond.cleanup18, label %for.body19

if.else:
  %dropped = getelementptr inbounds nuw i8, ptr %0, i64 24
  %10 = atomicrmw add ptr %dropped, i64 1 monotonic, align 8
  br label %if.end32

if.end32:
  store atomic i32 0, ptr %0 release, align 16
  br label %cleanup

cleanup:
  ret void
}

declare i32 @sched_yield() local_unnamed_addr

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
  %3 = load i64, ptr %capacity, align 16
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

define noundef ptr @tn_pool_new(i64 noundef %main_thread, i32 noundef %cores, i64 noundef %spin) local_unnamed_addr nounwind {
entry:
  %call = tail call align 64 dereferenceable_or_null(16832) ptr @aligned_alloc(i64 noundef 64, i64 noundef 16832)
  %cmp = icmp eq ptr %call, null
  br i1 %cmp, label %cleanup, label %if.end

if.end:
  tail call void @llvm.memset.p0.i64(ptr noundef nonnull align 64 dereferenceable(16832) %call, i8 noundef 0, i64 noundef 16832, i1 noundef false) nounwind
  %cores2 = getelementptr inbounds nuw i8, ptr %call, i64 12
  store i32 %cores, ptr %cores2, align 4
  %spin3 = getelementptr inbounds nuw i8, ptr %call, i64 24
  store i64 %spin, ptr %spin3, align 8
  %main_thread1.i = getelementptr inbounds nuw i8, ptr %call, i64 16
  store i64 %main_thread, ptr %main_thread1.i, align 16
  %epoch.i = getelementptr inbounds nuw i8, ptr %call, i64 32
  store i32 1, ptr %epoch.i, align 32
  store atomic i32 0, ptr %call seq_cst, align 64
  %quit.i = getelementptr inbounds nuw i8, ptr %call, i64 4
  store atomic i32 0, ptr %quit.i seq_cst, align 4
  %workers.i = getelementptr inbounds nuw i8, ptr %call, i64 8
  store atomic i32 0, ptr %workers.i seq_cst, align 8
  %alive.i = getelementptr inbounds nuw i8, ptr %call, i64 36
  store atomic i32 0, ptr %alive.i seq_cst, align 4
  %parked.i = getelementptr inbounds nuw i8, ptr %call, i64 64
  store atomic i32 0, ptr %parked.i seq_cst, align 64
  %remaining.i = getelementptr inbounds nuw i8, ptr %call, i64 128
  store atomic i32 0, ptr %remaining.i seq_cst, align 64
  %waiting.i = getelementptr inbounds nuw i8, ptr %call, i64 132
  store atomic i32 0, ptr %waiting.i seq_cst, align 4
  %mutex.i = getelementptr inbounds nuw i8, ptr %call, i64 256
  %call.i = tail call i32 @pthread_mutex_init(ptr noundef nonnull %mutex.i, ptr noundef null) nounwind
  %work.i = getelementptr inbounds nuw i8, ptr %call, i64 320
  %call8.i = tail call i32 @"\01_pthread_cond_init"(ptr noundef nonnull %work.i, ptr noundef null) nounwind
  %done.i = getelementptr inbounds nuw i8, ptr %call, i64 384
  %call.i.i = tail call i32 @"\01_pthread_cond_init"(ptr noundef nonnull %done.i, ptr noundef null) nounwind
  %lines.i = getelementptr inbounds nuw i8, ptr %call, i64 448
  br label %for.body.i

for.body.i:
  %indvars.iv.i = phi i64 [ 0, %if.end ], [ %indvars.iv.next.i, %for.body.i ]
  %arrayidx.i = getelementptr inbounds nuw %struct.line, ptr %lines.i, i64 %indvars.iv.i
  store atomic i32 0, ptr %arrayidx.i seq_cst, align 64
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %exitcond.not.i = icmp eq i64 %indvars.iv.next.i, 256
  br i1 %exitcond.not.i, label %cleanup, label %for.body.i

cleanup:
  ret ptr %call
}

declare noalias noundef ptr @aligned_alloc(i64 allocalign noundef, i64 noundef) local_unnamed_addr nounwind

define void @tn_pool_reset(ptr noundef initializes((16, 24)) %pool, i64 noundef %main_thread) local_unnamed_addr nounwind {
entry:
  %main_thread1 = getelementptr inbounds nuw i8, ptr %pool, i64 16
  store i64 %main_thread, ptr %main_thread1, align 16
  %epoch = getelementptr inbounds nuw i8, ptr %pool, i64 32
  %0 = load i32, ptr %epoch, align 16
  %inc = add nsw i32 %0, 1
  store i32 %inc, ptr %epoch, align 16
  store atomic i32 0, ptr %pool seq_cst, align 16
  %quit = getelementptr inbounds nuw i8, ptr %pool, i64 4
  store atomic i32 0, ptr %quit seq_cst, align 4
  %workers = getelementptr inbounds nuw i8, ptr %pool, i64 8
  store atomic i32 0, ptr %workers seq_cst, align 8
  %alive = getelementptr inbounds nuw i8, ptr %pool, i64 36
  store atomic i32 0, ptr %alive seq_cst, align 4
  %parked = getelementptr inbounds nuw i8, ptr %pool, i64 64
  store atomic i32 0, ptr %parked seq_cst, align 16
  %remaining = getelementptr inbounds nuw i8, ptr %pool, i64 128
  store atomic i32 0, ptr %remaining seq_cst, align 16
  %waiting = getelementptr inbounds nuw i8, ptr %pool, i64 132
  store atomic i32 0, ptr %waiting seq_cst, align 4
  %mutex = getelementptr inbounds nuw i8, ptr %pool, i64 256
  %call = tail call i32 @pthread_mutex_init(ptr noundef nonnull %mutex, ptr noundef null) nounwind
  %work = getelementptr inbounds nuw i8, ptr %pool, i64 320
  %call8 = tail call i32 @"\01_pthread_cond_init"(ptr noundef nonnull %work, ptr noundef null) nounwind
  %done = getelementptr inbounds nuw i8, ptr %pool, i64 384
  %call.i = tail call i32 @"\01_pthread_cond_init"(ptr noundef nonnull %done, ptr noundef null) nounwind
  %lines = getelementptr inbounds nuw i8, ptr %pool, i64 448
  br label %for.body

for.cond.cleanup:
  ret void

for.body:
  %indvars.iv = phi i64 [ 0, %entry ], [ %indvars.iv.next, %for.body ]
  %arrayidx = getelementptr inbounds nuw %struct.line, ptr %lines, i64 %indvars.iv
  store atomic i32 0, ptr %arrayidx seq_cst, align 16
  %indvars.iv.next = add nuw nsw i64 %indvars.iv, 1
  %exitcond.not = icmp eq i64 %indvars.iv.next, 256
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body
}

declare i32 @pthread_mutex_init(ptr noundef, ptr noundef) local_unnamed_addr

declare i32 @"\01_pthread_cond_init"(ptr noundef, ptr noundef) local_unnamed_addr

define i32 @tn_pool_quit(ptr noundef %pool) local_unnamed_addr nounwind {
entry:
  %quit = getelementptr inbounds nuw i8, ptr %pool, i64 4
  store atomic i32 1, ptr %quit seq_cst, align 4
  %mutex = getelementptr inbounds nuw i8, ptr %pool, i64 256
  %call = tail call i32 @pthread_mutex_lock(ptr noundef nonnull %mutex) nounwind
  %work = getelementptr inbounds nuw i8, ptr %pool, i64 320
  %call1 = tail call i32 @pthread_cond_broadcast(ptr noundef nonnull %work) nounwind
  %call3 = tail call i32 @pthread_mutex_unlock(ptr noundef nonnull %mutex) nounwind
  %alive = getelementptr inbounds nuw i8, ptr %pool, i64 36
  %0 = load atomic i32, ptr %alive seq_cst, align 4
  ret i32 %0
}

declare i32 @pthread_mutex_lock(ptr noundef) local_unnamed_addr

declare i32 @pthread_cond_broadcast(ptr noundef) local_unnamed_addr

declare i32 @pthread_mutex_unlock(ptr noundef) local_unnamed_addr

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
  %8 = load i32, ptr %epoch1.i, align 16
  %job2.i = getelementptr inbounds nuw i8, ptr %3, i64 192
  store ptr %job, ptr %job2.i, align 16
  %remaining.i = getelementptr inbounds nuw i8, ptr %3, i64 128
  store atomic i32 %sub32, ptr %remaining.i monotonic, align 16
  %cmp3.not69.i = icmp eq i32 %sub32, 0
  br i1 %cmp3.not69.i, label %for.cond.cleanup.i, label %for.body.lr.ph.i

for.body.lr.ph.i:
  %lines.i = getelementptr inbounds nuw i8, ptr %3, i64 448
  br label %for.body.i

for.cond.cleanup.i:
  %parked.i = getelementptr inbounds nuw i8, ptr %3, i64 64
  %9 = atomicrmw or ptr %parked.i, i32 0 seq_cst, align 16
  %cmp7.i = icmp sgt i32 %9, 0
  br i1 %cmp7.i, label %if.then8.i, label %if.end12.i

for.body.i:
  %indvars.iv.i = phi i64 [ 1, %for.body.lr.ph.i ], [ %indvars.iv.next.i, %for.body.i ]
  %arrayidx.i = getelementptr inbounds nuw %struct.line, ptr %lines.i, i64 %indvars.iv.i
  store atomic i32 1, ptr %arrayidx.i release, align 16
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %exitcond.not.i = icmp eq i64 %indvars.iv.next.i, %cond.i
  br i1 %exitcond.not.i, label %for.cond.cleanup.i, label %for.body.i

if.then8.i:
  %mutex.i = getelementptr inbounds nuw i8, ptr %3, i64 256
  %call.i = call i32 @pthread_mutex_lock(ptr noundef nonnull %mutex.i) nounwind
  %work.i = getelementptr inbounds nuw i8, ptr %3, i64 320
  %call9.i = call i32 @pthread_cond_broadcast(ptr noundef nonnull %work.i) nounwind
  %call11.i = call i32 @pthread_mutex_unlock(ptr noundef nonnull %mutex.i) nounwind
  br label %if.end12.i

if.end12.i:
  call fastcc void @run_piece(ptr noundef nonnull %job, i32 noundef 0)
  br i1 %cmp3.not69.i, label %for.cond.cleanup16.i, label %for.body17.lr.ph.i

for.body17.lr.ph.i:
  %lines18.i = getelementptr inbounds nuw i8, ptr %3, i64 448
  %10 = zext nneg i32 %sub32 to i64
  br label %for.body17.i

for.cond.cleanup16.i:
  %11 = load atomic i32, ptr %remaining.i acquire, align 16
  %cmp.i.i = icmp slt i32 %11, 1
  br i1 %cmp.i.i, label %if.end33.i, label %if.then32.i

for.body17.i:
  %indvars.iv74.i = phi i64 [ %10, %for.body17.lr.ph.i ], [ %indvars.iv.next75.i, %for.inc27.i ]
  %arrayidx20.i = getelementptr inbounds nuw %struct.line, ptr %lines18.i, i64 %indvars.iv74.i
  %12 = cmpxchg ptr %arrayidx20.i, i32 1, i32 0 acq_rel acquire, align 4
  %13 = extractvalue { i32, i1 } %12, 1
  br i1 %13, label %if.then22.i, label %for.inc27.i

if.then22.i:
  %14 = trunc nuw nsw i64 %indvars.iv74.i to i32
  call fastcc void @run_piece(ptr noundef nonnull %job, i32 noundef %14)
  %15 = atomicrmw sub ptr %remaining.i, i32 1 seq_cst, align 16
  br label %for.inc27.i

for.inc27.i:
  %indvars.iv.next75.i = add nsw i64 %indvars.iv74.i, -1
  %cmp15.i = icmp sgt i64 %indvars.iv74.i, 1
  br i1 %cmp15.i, label %for.body17.i, label %for.cond.cleanup16.i

if.then32.i:
  %16 = load ptr, ptr %job, align 64
  call fastcc void @join(ptr noundef %16, ptr noundef nonnull %3, i32 noundef %8)
  br label %if.end33.i

if.end33.i:
  %17 = load i32, ptr %epoch1.i, align 16
  %cmp35.not.i = icmp eq i32 %17, %8
  br i1 %cmp35.not.i, label %if.end37.i, label %cleanup

if.end37.i:
  store atomic i32 0, ptr %3 release, align 16
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
  %retval.0 = phi i32 [ %19, %for.cond.cleanup ], [ %18, %if.end37.i ], [ 7, %if.end33.i ]
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
  tail call void @llvm.memset.p0.i64(ptr noundef align 1 %add.ptr, i8 noundef 0, i64 noundef %sub, i1 noundef false) nounwind
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
  %3 = load ptr, ptr %arena.0, align 16
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
  %call = tail call align 64 ptr @aligned_alloc(i64 noundef 64, i64 noundef %mul)
  %cmp = icmp eq ptr %call, null
  br i1 %cmp, label %cleanup, label %if.end

if.end:
  tail call void @llvm.memset.p0.i64(ptr noundef nonnull align 64 %call, i8 noundef 0, i64 noundef %mul, i1 noundef false) nounwind
  %arenas = getelementptr inbounds nuw i8, ptr %block, i64 112
  %1 = ptrtoint ptr %call to i64
  %2 = cmpxchg ptr %arenas, i64 0, i64 %1 acq_rel acquire, align 8
  %3 = extractvalue { i64, i1 } %2, 1
  br i1 %3, label %if.end4, label %if.then3

if.then3:
  %4 = extractvalue { i64, i1 } %2, 0
  %5 = inttoptr i64 %4 to ptr
  tail call void @free(ptr noundef nonnull %call)
  %idxprom = sext i32 %tid to i64
  %arrayidx = getelementptr inbounds %struct.arena, ptr %5, i64 %idxprom
  br label %cleanup

if.end4:
  %idxprom5 = sext i32 %tid to i64
  %arrayidx6 = getelementptr inbounds %struct.arena, ptr %call, i64 %idxprom5
  br label %cleanup

cleanup:
  %retval.0 = phi ptr [ %arrayidx, %if.then3 ], [ %arrayidx6, %if.end4 ], [ null, %entry ]
  ret ptr %retval.0
}

define internal fastcc ptr @grow_arena(ptr noundef captures(none) %block, ptr noundef nonnull captures(none) %arena, i64 noundef range(i64 0, -63) %size) unnamed_addr noinline nounwind {
entry:
  %0 = load ptr, ptr %arena, align 16
  %cmp = icmp eq ptr %0, null
  br i1 %cmp, label %cond.end11, label %cond.end

cond.end:
  %1 = load ptr, ptr %0, align 16
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
  %3 = load ptr, ptr %chunk.addr.06.i, align 16
  %capacity.i = getelementptr inbounds nuw i8, ptr %chunk.addr.06.i, i64 16
  %4 = load i64, ptr %capacity.i, align 16
  %5 = atomicrmw sub ptr %committed.i, i64 %4 monotonic, align 8
  tail call void @free(ptr noundef nonnull %chunk.addr.06.i)
  %cmp.not.i = icmp eq ptr %3, null
  br i1 %cmp.not.i, label %free_chain.exit, label %while.body.i

free_chain.exit:
  store ptr null, ptr %0, align 16
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
  br i1 %cmp13, label %if.then14, label %cond.end11.if.then18_crit_edge

cond.end11.if.then18_crit_edge:
  %memory_limit.i68.phi.trans.insert = getelementptr inbounds nuw i8, ptr %block, i64 120
  %.pre = load i64, ptr %memory_limit.i68.phi.trans.insert, align 8
  br label %if.then18

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
  %call2.i = tail call align 64 ptr @aligned_alloc(i64 noundef 64, i64 noundef %add1.i)
  %cmp3.i = icmp eq ptr %call2.i, null
  br i1 %cmp3.i, label %if.then4.i, label %if.end23

if.then4.i:
  %9 = atomicrmw sub ptr %committed.i64, i64 %cond12 monotonic, align 8
  br label %if.then18

if.then18:
  %10 = phi i64 [ %.pre, %cond.end11.if.then18_crit_edge ], [ %8, %if.then4.i ]
  %committed.i66 = getelementptr inbounds i8, ptr %block, i64 -72
  %11 = atomicrmw add ptr %committed.i66, i64 %size monotonic, align 8
  %add.i67 = add i64 %11, %size
  %cmp.not.i69 = icmp ugt i64 %add.i67, %10
  br i1 %cmp.not.i69, label %if.end20, label %if.end.i70

if.end.i70:
  %add1.i71 = add i64 %size, 64
  %call2.i72 = tail call align 64 ptr @aligned_alloc(i64 noundef 64, i64 noundef %add1.i71)
  %cmp3.i73 = icmp eq ptr %call2.i72, null
  br i1 %cmp3.i73, label %if.end20, label %if.end23

if.end20:
  %12 = atomicrmw sub ptr %committed.i66, i64 %size monotonic, align 8
  br label %cleanup32

if.end23:
  %call2.i.sink91 = phi ptr [ %call2.i, %if.end.i ], [ %call2.i72, %if.end.i70 ]
  %cond12.sink = phi i64 [ %cond12, %if.end.i ], [ %size, %if.end.i70 ]
  tail call void @llvm.memset.p0.i64(ptr noundef nonnull align 64 dereferenceable(16) %call2.i.sink91, i8 0, i64 16, i1 false)
  %.compoundliteral.sroa.2.0..sroa_idx.i = getelementptr inbounds nuw i8, ptr %call2.i.sink91, i64 16
  store i64 %cond12.sink, ptr %.compoundliteral.sroa.2.0..sroa_idx.i, align 16
  %.compoundliteral.sroa.3.0..sroa_idx.i = getelementptr inbounds nuw i8, ptr %call2.i.sink91, i64 24
  tail call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(40) %.compoundliteral.sroa.3.0..sroa_idx.i, i8 0, i64 40, i1 false)
  %previous = getelementptr inbounds nuw i8, ptr %call2.i.sink91, i64 8
  store ptr %0, ptr %previous, align 8
  br i1 %cmp, label %if.then25, label %if.else

if.then25:
  %first = getelementptr inbounds nuw i8, ptr %arena, i64 16
  store ptr %call2.i.sink91, ptr %first, align 16
  br label %if.end30

if.else:
  %base = getelementptr inbounds nuw i8, ptr %0, i64 24
  %13 = load i64, ptr %base, align 8
  %capacity26 = getelementptr inbounds nuw i8, ptr %0, i64 16
  %14 = load i64, ptr %capacity26, align 16
  %add = add i64 %14, %13
  %base27 = getelementptr inbounds nuw i8, ptr %call2.i.sink91, i64 24
  store i64 %add, ptr %base27, align 8
  store ptr %call2.i.sink91, ptr %0, align 16
  br label %if.end30

if.end30:
  %chunk.3 = phi ptr [ %1, %land.lhs.true ], [ %call2.i.sink91, %if.then25 ], [ %call2.i.sink91, %if.else ]
  store ptr %chunk.3, ptr %arena, align 16
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
  %2 = load ptr, ptr %arrayidx.i, align 16
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
  %2 = load ptr, ptr %arrayidx.i, align 16
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
  store ptr %5, ptr %arrayidx.i, align 16
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
  %6 = load ptr, ptr %chunk.addr.06.i.i, align 16
  %capacity.i.i = getelementptr inbounds nuw i8, ptr %chunk.addr.06.i.i, i64 16
  %7 = load i64, ptr %capacity.i.i, align 16
  %8 = atomicrmw sub ptr %committed.i.i, i64 %7 monotonic, align 8
  tail call void @free(ptr noundef nonnull %chunk.addr.06.i.i)
  %cmp.not.i.i = icmp eq ptr %6, null
  br i1 %cmp.not.i.i, label %free_chain.exit.i, label %while.body.i.i

free_chain.exit.i:
  store ptr null, ptr %first.i, align 16
  %first2.i = getelementptr inbounds nuw i8, ptr %arrayidx.i.i, i64 16
  %9 = load ptr, ptr %first2.i, align 16
  store ptr %9, ptr %arrayidx.i.i, align 16
  %offset.i = getelementptr inbounds nuw i8, ptr %arrayidx.i.i, i64 8
  store i64 0, ptr %offset.i, align 8
  %indvars.iv.next.i = add nuw nsw i64 %indvars.iv.i, 1
  %10 = load i32, ptr %num_threads.i, align 8
  %11 = sext i32 %10 to i64
  %cmp.i5 = icmp slt i64 %indvars.iv.next.i, %11
  br i1 %cmp.i5, label %for.body.i, label %rewind_arenas.exit

rewind_arenas.exit:
  store atomic i64 0, ptr %arenas1.i monotonic, align 8
  tail call void @free(ptr noundef %1)
  br label %cleanup

cleanup:
  ret void
}

declare void @free(ptr allocptr noundef captures(none)) local_unnamed_addr nounwind

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

declare i32 @"\01_sleep"(i32 noundef) local_unnamed_addr

define internal fastcc range(i32 0, 2) i32 @tick(ptr noundef captures(none) %block) unnamed_addr noinline nounwind {
entry:
  %python_error = getelementptr inbounds i8, ptr %block, i64 -80
  %0 = load i32, ptr %python_error, align 16
  %tobool.not = icmp eq i32 %0, 0
  br i1 %tobool.not, label %if.end, label %cleanup30

if.end:
  %print_ring = getelementptr inbounds nuw i8, ptr %block, i64 72
  %1 = load ptr, ptr %print_ring, align 8
  %cmp.not = icmp eq ptr %1, null
  br i1 %cmp.not, label %land.lhs.true, label %land.end

land.end:
  %head = getelementptr inbounds nuw i8, ptr %1, i64 8
  %2 = load atomic i64, ptr %head acquire, align 8
  %tail = getelementptr inbounds nuw i8, ptr %1, i64 16
  %3 = load atomic i64, ptr %tail monotonic, align 16
  %cmp2.not = icmp eq i64 %2, %3
  br i1 %cmp2.not, label %land.lhs.true, label %if.end5

land.lhs.true:
  %flags = getelementptr inbounds nuw i8, ptr %block, i64 60
  %4 = load i32, ptr %flags, align 4
  %and = and i32 %4, 1
  %tobool3.not = icmp eq i32 %and, 0
  br i1 %tobool3.not, label %cleanup30, label %if.end5

if.end5:
  %.not = phi i1 [ true, %land.lhs.true ], [ false, %land.end ]
  %thread_state = getelementptr inbounds i8, ptr %block, i64 -120
  %5 = load ptr, ptr %thread_state, align 8
  tail call void @PyEval_RestoreThread(ptr noundef %5) nounwind
  %call6 = tail call i32 @PyErr_CheckSignals() nounwind
  %cmp7 = icmp ne i32 %call6, 0
  %or.cond.not = or i1 %.not, %cmp7
  br i1 %or.cond.not, label %if.end19, label %if.then12

if.then12:
  %drain = getelementptr inbounds i8, ptr %block, i64 -104
  %6 = load ptr, ptr %drain, align 8
  %call13 = tail call ptr @PyObject_CallObject(ptr noundef %6, ptr noundef null) nounwind
  %cmp14 = icmp eq ptr %call13, null
  br i1 %cmp14, label %if.end26.critedge, label %if.then17

if.then17:
  tail call void @Py_DecRef(ptr noundef nonnull %call13) nounwind
  store i32 0, ptr %python_error, align 16
  %call22.c = tail call ptr @PyEval_SaveThread() nounwind
  store ptr %call22.c, ptr %thread_state, align 8
  br label %cleanup30

if.end19:
  %conv = zext i1 %cmp7 to i32
  store i32 %conv, ptr %python_error, align 16
  %call22 = tail call ptr @PyEval_SaveThread() nounwind
  store ptr %call22, ptr %thread_state, align 8
  br i1 %cmp7, label %if.end26, label %cleanup30

if.end26.critedge:
  store i32 1, ptr %python_error, align 16
  %call22.c46 = tail call ptr @PyEval_SaveThread() nounwind
  store ptr %call22.c46, ptr %thread_state, align 8
  br label %if.end26

if.end26:
  %7 = cmpxchg ptr %block, i32 0, i32 1 acq_rel acquire, align 4
  %stop.i = getelementptr inbounds nuw i8, ptr %block, i64 56
  %8 = cmpxchg ptr %stop.i, i32 0, i32 1 acq_rel acquire, align 4
  br label %cleanup30

cleanup30:
  %retval.2 = phi i32 [ 1, %entry ], [ 0, %land.lhs.true ], [ 1, %if.end26 ], [ 0, %if.end19 ], [ 0, %if.then17 ]
  ret i32 %retval.2
}

declare i32 @clock_gettime(i32 noundef, ptr noundef) local_unnamed_addr

declare i32 @PyErr_CheckSignals() local_unnamed_addr

declare ptr @PyObject_CallObject(ptr noundef, ptr noundef) local_unnamed_addr

declare void @Py_DecRef(ptr noundef) local_unnamed_addr

declare void @llvm.x86.sse2.pause() nounwind

declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg) nounwind

define internal fastcc void @run_piece(ptr noundef captures(none) %job, i32 noundef %index) unnamed_addr noinline nounwind {
entry:
  %grain = getelementptr inbounds nuw i8, ptr %job, i64 48
  %0 = load i64, ptr %grain, align 16
  %cmp = icmp eq i64 %0, 0
  br i1 %cmp, label %cond.true, label %cond.false

cond.true:
  %1 = load ptr, ptr %job, align 16
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
  %3 = load ptr, ptr %job, align 16
  %stop1.i14 = getelementptr inbounds nuw i8, ptr %3, i64 56
  %4 = load atomic i32, ptr %stop1.i14 monotonic, align 8
  %cmp.not.i15 = icmp eq i32 %4, 0
  br i1 %cmp.not.i15, label %if.end.i16, label %if.then

if.end.i16:
  %5 = load i64, ptr %grain, align 16
  %6 = atomicrmw add ptr %next.i, i64 %5 monotonic, align 16
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
  %11 = load i64, ptr %quotient.i, align 16
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
  %15 = load ptr, ptr %job, align 16
  %stop.i = getelementptr inbounds nuw i8, ptr %15, i64 56
  %16 = cmpxchg ptr %stop.i, i32 0, i32 %cond22 acq_rel acquire, align 4
  br label %if.end

if.end:
  ret void
}

define internal fastcc void @grow(ptr noundef %pool, i32 noundef range(i32 -2147483648, 2147483647) %wanted) unnamed_addr noinline nounwind {
entry:
  %all = alloca i32, align 4
  %old = alloca i32, align 4
  %attributes = alloca %struct._opaque_pthread_attr_t, align 8
  %thread = alloca ptr, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %all) nounwind
  call void @llvm.lifetime.start.p0(ptr nonnull %old) nounwind
  store i32 -1721, ptr %all, align 4
  %call1 = call i32 @"\01_pthread_sigmask"(i32 noundef 3, ptr noundef nonnull %all, ptr noundef nonnull %old) nounwind
  call void @llvm.lifetime.start.p0(ptr nonnull %attributes) nounwind
  %call2 = call i32 @pthread_attr_init(ptr noundef nonnull %attributes) nounwind
  %call3 = call i32 @pthread_attr_setstacksize(ptr noundef nonnull %attributes, i64 noundef 8388608) nounwind
  %call4 = call i32 @pthread_attr_setdetachstate(ptr noundef nonnull %attributes, i32 noundef 2) nounwind
  %workers = getelementptr inbounds nuw i8, ptr %pool, i64 8
  %0 = load atomic i32, ptr %workers seq_cst, align 8
  %cmp6.not.not44 = icmp slt i32 %0, %wanted
  br i1 %cmp6.not.not44, label %for.body8.lr.ph, label %cleanup23

for.body8.lr.ph:
  %lines = getelementptr inbounds nuw i8, ptr %pool, i64 448
  %alive = getelementptr inbounds nuw i8, ptr %pool, i64 36
  %1 = sext i32 %0 to i64
  %wide.trip.count = sext i32 %wanted to i64
  br label %for.body8

for.body8:
  %indvars.iv = phi i64 [ %1, %for.body8.lr.ph ], [ %indvars.iv.next, %cleanup ]
  %indvars.iv.next = add nsw i64 %indvars.iv, 1
  %arrayidx9 = getelementptr inbounds %struct.line, ptr %lines, i64 %indvars.iv.next
  %index10 = getelementptr inbounds nuw i8, ptr %arrayidx9, i64 4
  %2 = trunc nsw i64 %indvars.iv.next to i32
  store i32 %2, ptr %index10, align 4
  %pool11 = getelementptr inbounds nuw i8, ptr %arrayidx9, i64 8
  store ptr %pool, ptr %pool11, align 8
  %3 = atomicrmw add ptr %alive, i32 1 seq_cst, align 4
  call void @llvm.lifetime.start.p0(ptr nonnull %thread) nounwind
  %call13 = call i32 @pthread_create(ptr noundef nonnull %thread, ptr noundef nonnull %attributes, ptr noundef nonnull @work, ptr noundef nonnull %arrayidx9) nounwind
  %cmp14.not = icmp eq i32 %call13, 0
  br i1 %cmp14.not, label %cleanup, label %cleanup.thread

cleanup.thread:
  %4 = atomicrmw sub ptr %alive, i32 1 seq_cst, align 4
  call void @llvm.lifetime.end.p0(ptr nonnull %thread) nounwind
  br label %cleanup23

cleanup:
  store atomic i32 %2, ptr %workers seq_cst, align 8
  call void @llvm.lifetime.end.p0(ptr nonnull %thread) nounwind
  %exitcond.not = icmp eq i64 %indvars.iv.next, %wide.trip.count
  br i1 %exitcond.not, label %cleanup23, label %for.body8

cleanup23:
  %call25 = call i32 @pthread_attr_destroy(ptr noundef nonnull %attributes) nounwind
  %call26 = call i32 @"\01_pthread_sigmask"(i32 noundef 3, ptr noundef nonnull %old, ptr noundef null) nounwind
  call void @llvm.lifetime.end.p0(ptr nonnull %attributes) nounwind
  call void @llvm.lifetime.end.p0(ptr nonnull %old) nounwind
  call void @llvm.lifetime.end.p0(ptr nonnull %all) nounwind
  ret void
}

define internal fastcc void @join(ptr noundef captures(none) %block, ptr noundef %pool, i32 noundef %epoch) unnamed_addr noinline nounwind {
entry:
  %length.i = alloca %struct.timespec, align 8
  %time.i13.i = alloca %struct.timespec, align 8
  %time.i.i = alloca %struct.timespec, align 8
  %remaining = getelementptr inbounds nuw i8, ptr %pool, i64 128
  %workers1.i = getelementptr inbounds nuw i8, ptr %pool, i64 8
  %0 = load atomic i32, ptr %workers1.i monotonic, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %time.i.i) nounwind
  %call.i.i = call i32 @clock_gettime(i32 noundef 6, ptr noundef nonnull %time.i.i) nounwind
  %1 = load i64, ptr %time.i.i, align 8
  %mul.i.i = mul nsw i64 %1, 1000000000
  %tv_nsec.i.i = getelementptr inbounds nuw i8, ptr %time.i.i, i64 8
  %2 = load i64, ptr %tv_nsec.i.i, align 8
  %add.i.i = add nsw i64 %mul.i.i, %2
  call void @llvm.lifetime.end.p0(ptr nonnull %time.i.i) nounwind
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
  %tv_nsec.i16.i = getelementptr inbounds nuw i8, ptr %time.i13.i, i64 8
  br label %for.body.i

for.body.i:
  %i.021.i = phi i32 [ 0, %cond.end.i ], [ %i.021.i.be, %for.body.i.backedge ]
  %5 = load atomic i32, ptr %remaining acquire, align 4
  %cmp.i30 = icmp slt i32 %5, 1
  br i1 %cmp.i30, label %do.end, label %if.end.i

if.end.i:
  call void @llvm.x86.sse2.pause()
  %inc.i = add nuw nsw i32 %i.021.i, 1
  %exitcond.not.i = icmp eq i32 %inc.i, 32
  br i1 %exitcond.not.i, label %do.cond.i, label %for.body.i.backedge

for.body.i.backedge:
  %i.021.i.be = phi i32 [ %inc.i, %if.end.i ], [ 0, %do.cond.i ]
  br label %for.body.i

do.cond.i:
  call void @llvm.lifetime.start.p0(ptr nonnull %time.i13.i) nounwind
  %call.i14.i = call i32 @clock_gettime(i32 noundef 6, ptr noundef nonnull %time.i13.i) nounwind
  %6 = load i64, ptr %time.i13.i, align 8
  %mul.i15.i = mul nsw i64 %6, 1000000000
  %7 = load i64, ptr %tv_nsec.i16.i, align 8
  %add.i17.i = add nsw i64 %mul.i15.i, %7
  call void @llvm.lifetime.end.p0(ptr nonnull %time.i13.i) nounwind
  %cmp6.i = icmp slt i64 %add.i17.i, %add.i
  br i1 %cmp6.i, label %for.body.i.backedge, label %do.body.preheader

do.body.preheader:
  %mutex = getelementptr inbounds nuw i8, ptr %pool, i64 256
  %waiting = getelementptr inbounds nuw i8, ptr %pool, i64 132
  %done = getelementptr inbounds nuw i8, ptr %pool, i64 384
  %tv_nsec.i = getelementptr inbounds nuw i8, ptr %length.i, i64 8
  %epoch17 = getelementptr inbounds nuw i8, ptr %pool, i64 32
  br label %do.body

do.body:
  %call1 = call i32 @pthread_mutex_lock(ptr noundef nonnull %mutex) nounwind
  store atomic i32 1, ptr %waiting seq_cst, align 4
  %8 = load atomic i32, ptr %remaining seq_cst, align 16
  %cmp.i28 = icmp slt i32 %8, 1
  br i1 %cmp.i28, label %if.end6, label %if.then4

if.then4:
  call void @llvm.lifetime.start.p0(ptr nonnull %length.i) nounwind
  store i64 0, ptr %length.i, align 8
  store i64 20000000, ptr %tv_nsec.i, align 8
  %call.i = call i32 @pthread_cond_timedwait_relative_np(ptr noundef nonnull %done, ptr noundef nonnull %mutex, ptr noundef nonnull %length.i) nounwind
  call void @llvm.lifetime.end.p0(ptr nonnull %length.i) nounwind
  br label %if.end6

if.end6:
  store atomic i32 0, ptr %waiting seq_cst, align 4
  %call10 = call i32 @pthread_mutex_unlock(ptr noundef nonnull %mutex) nounwind
  %9 = load atomic i32, ptr %remaining acquire, align 16
  %cmp.i29 = icmp slt i32 %9, 1
  br i1 %cmp.i29, label %do.end, label %if.end15

if.end15:
  %call16 = call fastcc i32 @poll_clock(ptr noundef %block)
  %10 = load i32, ptr %epoch17, align 16
  %cmp = icmp eq i32 %10, %epoch
  br i1 %cmp, label %do.body, label %do.end

do.end:
  ret void
}

declare i32 @"\01_pthread_sigmask"(i32 noundef, ptr noundef, ptr noundef) local_unnamed_addr

declare i32 @pthread_attr_init(ptr noundef) local_unnamed_addr

declare i32 @pthread_attr_setstacksize(ptr noundef, i64 noundef) local_unnamed_addr

declare i32 @pthread_attr_setdetachstate(ptr noundef, i32 noundef) local_unnamed_addr

declare i32 @pthread_create(ptr noundef, ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr

define internal noalias noundef ptr @work(ptr noundef captures(none) %argument) nounwind {
entry:
  %time.i13.i = alloca %struct.timespec, align 8
  %time.i.i = alloca %struct.timespec, align 8
  %pool1 = getelementptr inbounds nuw i8, ptr %argument, i64 8
  %0 = load ptr, ptr %pool1, align 8
  %workers1.i = getelementptr inbounds nuw i8, ptr %0, i64 8
  %tv_nsec.i.i = getelementptr inbounds nuw i8, ptr %time.i.i, i64 8
  %cores.i = getelementptr inbounds nuw i8, ptr %0, i64 12
  %spin.i = getelementptr inbounds nuw i8, ptr %0, i64 24
  %tv_nsec.i16.i = getelementptr inbounds nuw i8, ptr %time.i13.i, i64 8
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
  call void @llvm.lifetime.start.p0(ptr nonnull %time.i.i) nounwind
  %call.i.i = call i32 @clock_gettime(i32 noundef 6, ptr noundef nonnull %time.i.i) nounwind
  %2 = load i64, ptr %time.i.i, align 8
  %mul.i.i = mul nsw i64 %2, 1000000000
  %3 = load i64, ptr %tv_nsec.i.i, align 8
  %add.i.i = add nsw i64 %mul.i.i, %3
  call void @llvm.lifetime.end.p0(ptr nonnull %time.i.i) nounwind
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
  %i.021.i = phi i32 [ 0, %cond.end.i ], [ %i.021.i.be, %for.body.i.backedge ]
  %6 = load atomic i32, ptr %argument acquire, align 4
  %cmp.i17.not = icmp eq i32 %6, 0
  br i1 %cmp.i17.not, label %if.end.i, label %while.body

if.end.i:
  call void @llvm.x86.sse2.pause()
  %inc.i = add nuw nsw i32 %i.021.i, 1
  %exitcond.not.i = icmp eq i32 %inc.i, 32
  br i1 %exitcond.not.i, label %do.cond.i, label %for.body.i.backedge

for.body.i.backedge:
  %i.021.i.be = phi i32 [ %inc.i, %if.end.i ], [ 0, %do.cond.i ]
  br label %for.body.i

do.cond.i:
  call void @llvm.lifetime.start.p0(ptr nonnull %time.i13.i) nounwind
  %call.i14.i = call i32 @clock_gettime(i32 noundef 6, ptr noundef nonnull %time.i13.i) nounwind
  %7 = load i64, ptr %time.i13.i, align 8
  %mul.i15.i = mul nsw i64 %7, 1000000000
  %8 = load i64, ptr %tv_nsec.i16.i, align 8
  %add.i17.i = add nsw i64 %mul.i15.i, %8
  call void @llvm.lifetime.end.p0(ptr nonnull %time.i13.i) nounwind
  %cmp6.i = icmp slt i64 %add.i17.i, %add.i
  br i1 %cmp6.i, label %for.body.i.backedge, label %lor.rhs

lor.rhs:
  %call.i = call i32 @pthread_mutex_lock(ptr noundef nonnull %mutex.i) nounwind
  %9 = atomicrmw add ptr %parked.i, i32 1 seq_cst, align 16
  %10 = load atomic i32, ptr %quit1.i seq_cst, align 4
  %tobool.not19.i = icmp eq i32 %10, 0
  br i1 %tobool.not19.i, label %land.rhs.i, label %while.end

land.rhs.i:
  %11 = load atomic i32, ptr %argument seq_cst, align 16
  %cmp.i.not.not.i = icmp eq i32 %11, 0
  br i1 %cmp.i.not.not.i, label %while.body.i, label %park.exit

while.body.i:
  %call6.i = call i32 @"\01_pthread_cond_wait"(ptr noundef nonnull %work.i, ptr noundef nonnull %mutex.i) nounwind
  %12 = load atomic i32, ptr %quit1.i seq_cst, align 4
  %tobool.not.i = icmp eq i32 %12, 0
  br i1 %tobool.not.i, label %land.rhs.i, label %while.end

park.exit:
  %13 = atomicrmw sub ptr %parked.i, i32 1 seq_cst, align 16
  %call11.i = call i32 @pthread_mutex_unlock(ptr noundef nonnull %mutex.i) nounwind
  br label %while.body

while.body:
  %14 = cmpxchg ptr %argument, i32 1, i32 0 acq_rel acquire, align 4
  %15 = extractvalue { i32, i1 } %14, 1
  br i1 %15, label %if.then, label %while.cond.backedge

if.then:
  %16 = load ptr, ptr %job, align 16
  %17 = load i32, ptr %index, align 4
  call fastcc void @run_piece(ptr noundef %16, i32 noundef %17)
  %18 = atomicrmw sub ptr %remaining.i, i32 1 seq_cst, align 16
  %cmp.not.i = icmp eq i32 %18, 1
  br i1 %cmp.not.i, label %lor.lhs.false.i, label %while.cond.backedge

lor.lhs.false.i:
  %19 = load atomic i32, ptr %waiting.i seq_cst, align 4
  %tobool.not.i12 = icmp eq i32 %19, 0
  br i1 %tobool.not.i12, label %while.cond.backedge, label %if.end.i13

if.end.i13:
  %call.i15 = call i32 @pthread_mutex_lock(ptr noundef nonnull %mutex.i) nounwind
  %call2.i = call i32 @pthread_cond_signal(ptr noundef nonnull %done.i) nounwind
  %call4.i16 = call i32 @pthread_mutex_unlock(ptr noundef nonnull %mutex.i) nounwind
  br label %while.cond.backedge

while.cond.backedge:
  br label %while.cond

while.end:
  %20 = atomicrmw sub ptr %parked.i, i32 1 seq_cst, align 16
  %call11.i19 = call i32 @pthread_mutex_unlock(ptr noundef nonnull %mutex.i) nounwind
  %alive = getelementptr inbounds nuw i8, ptr %0, i64 36
  %21 = atomicrmw sub ptr %alive, i32 1 seq_cst, align 4
  ret ptr null
}

declare i32 @pthread_attr_destroy(ptr noundef) local_unnamed_addr

declare i32 @"\01_pthread_cond_wait"(ptr noundef, ptr noundef) local_unnamed_addr

declare i32 @pthread_cond_signal(ptr noundef) local_unnamed_addr

declare i32 @pthread_cond_timedwait_relative_np(ptr noundef, ptr noundef, ptr noundef) local_unnamed_addr

declare i64 @llvm.smax.i64(i64, i64) nounwind

declare i32 @llvm.abs.i32(i32, i1 immarg) nounwind

declare double @llvm.fabs.f64(double) nounwind

declare i64 @llvm.umin.i64(i64, i64) nounwind

declare i32 @llvm.umin.i32(i32, i32) nounwind
