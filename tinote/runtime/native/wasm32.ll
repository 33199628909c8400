; Made from wasm.c by generate.py with ziglang 0.17.1.

%struct.control = type { i32, i32, i64, i64, i64, i64 }
%struct.pair = type { double, double }
%union.number = type { double }
%struct.lane = type { ptr, [4 x i8], ptr, [4 x i8], ptr, i64, i64, i32, i32 }

@tn_control = hidden local_unnamed_addr global %struct.control zeroinitializer, align 8
@EXP = internal unnamed_addr constant [12 x double] [double 5.000000e-01, double 0x3FC5555555555555, double 0x3FA5555555555555, double 0x3F81111111111111, double 0x3F56C16C16C16C17, double 0x3F2A01A01A01A01A, double 0x3EFA01A01A01A01A, double 0x3EC71DE3A556C734, double 0x3E927E4FB7789F5C, double 0x3E5AE64567F544E4, double 0x3E21EED8EFF8D898, double 0x3DE6124613A86D09], align 16
@size_of.sizes = internal unnamed_addr constant [12 x i8] c"\02\04\08\01\02\04\08\01\01\02\04\08", align 1
@LOG = internal unnamed_addr constant [12 x double] [double 4.000000e-01, double 0x3FD2492492492492, double 0x3FCC71C71C71C71C, double 0x3FC745D1745D1746, double 0x3FC3B13B13B13B14, double 0x3FC1111111111111, double 0x3FBE1E1E1E1E1E1E, double 0x3FBAF286BCA1AF28, double 0x3FB8618618618618, double 0x3FB642C8590B2164, double 8.000000e-02, double 0x3FB2F684BDA12F68], align 16
@TWO_OVER_PI = internal unnamed_addr constant [39 x i32] [i32 0, i32 -1560706194, i32 1313084713, i32 -64530479, i32 -181084736, i32 -614296167, i32 1011060801, i32 -28220501, i32 -558119583, i32 -1222349254, i32 1112396512, i32 105459434, i32 164729372, i32 -31593700, i32 -1322670274, i32 -394119691, i32 784024708, i32 -375623642, i32 -1268810175, i32 965858873, i32 -2091697676, i32 -1669046389, i32 -1107744709, i32 536385535, i32 -570058737, i32 -282127989, i32 1510632735, i32 1832287951, i32 667617719, i32 1330003814, i32 -1637881299, i32 1965537991, i32 -337251973, i32 1023883767, i32 -1974299926, i32 1811636145, i32 529358088, i32 1443049542, i32 -59020373], align 16
@SIN = internal unnamed_addr constant [6 x double] [double 0xBFC5555555555548, double 0x3F8111111110F7CA, double 0xBF2A01A019BFD184, double 0x3EC71DE35671268A, double 0xBE5AE5E59F590B51, double 0x3DE5D8FA31AD7FF9], align 16
@COS = internal unnamed_addr constant [6 x double] [double 0x3FA555555555554B, double 0xBF56C16C16C14F8A, double 0x3EFA01A019C8390D, double 0xBE927E4F7EA37780, double 0x3E21EE9D7527E435, double 0xBDA8FA465E50A7A6], align 16
@ARCTANGENTS = internal unnamed_addr constant [17 x %struct.pair] [%struct.pair zeroinitializer, %struct.pair { double 0x3FAFF55BB72CFDEA, double 0xBC3C934D86D23F1D }, %struct.pair { double 0x3FBFD5BA9AAC2F6E, double 0xBC4CD37686760C17 }, %struct.pair { double 0x3FC7B97B4BCE5B02, double 0x3C5347B0B4F881CA }, %struct.pair { double 0x3FCF5B75F92C80DD, double 0x3C68AB6E3CF7AFBD }, %struct.pair { double 0x3FD362773707EBCC, double 0xBC6963A544B672D8 }, %struct.pair { double 0x3FD6F61941E4DEF1, double 0xBC7C63AAE6F6E918 }, %struct.pair { double 0x3FDA64EEC3CC23FD, double 0xBC724DEC1B50B7FF }, %struct.pair { double 0x3FDDAC670561BB4F, double 0x3C7A2B7F222F65E2 }, %struct.pair { double 0x3FE0657E94DB30D0, double 0xBC7D5B495F6349E6 }, %struct.pair { double 0x3FE1E00BABDEFEB4, double 0xBC5928DF287A668F }, %struct.pair { double 0x3FE345F01CCE37BB, double 0x3C81021137C71102 }, %struct.pair { double 0x3FE4978FA3269EE1, double 0x3C72419A87F2A458 }, %struct.pair { double 0x3FE5D58987169B18, double 0x3C60028E4BC5E7CA }, %struct.pair { double 0x3FE700A7C5784634, double 0xBC78C34D25AADEF6 }, %struct.pair { double 0x3FE819D0B7158A4D, double 0xBC7BF76229D3B917 }, %struct.pair { double 0x3FE921FB54442D18, double 0x3C81A62633145C07 }], align 16
@ATAN = internal unnamed_addr constant [5 x double] [double 0xBFD5555555555555, double 2.000000e-01, double 0xBFC2492492492492, double 0x3FBC71C71C71C71C, double 0xBFB745D1745D1746], align 16

define hidden noundef i32 @tn_fail(ptr noundef captures(none) %block, i32 noundef returned %code, i32 noundef %site, i32 noundef %count, ptr noundef readonly captures(none) %payload) local_unnamed_addr nounwind {
entry:
  %atomic-load = load atomic i32, ptr %block seq_cst, align 4
  %cmp = icmp eq i32 %atomic-load, 0
  br i1 %cmp, label %if.then, label %if.end

if.then:
  store atomic i32 %code, ptr %block seq_cst, align 4
  %site2 = getelementptr inbounds nuw i8, ptr %block, i32 4
  store atomic i32 %site, ptr %site2 seq_cst, align 4
  %invariant.smin = tail call i32 @llvm.smin.i32(i32 %count, i32 6)
  %0 = icmp sgt i32 %count, 0
  br i1 %0, label %for.body.lr.ph, label %if.end

for.body.lr.ph:
  %payload5 = getelementptr inbounds nuw i8, ptr %block, i32 8
  br label %for.body

for.body:
  %i.015 = phi i32 [ 0, %for.body.lr.ph ], [ %inc, %for.body ]
  %arrayidx = getelementptr inbounds nuw i64, ptr %payload, i32 %i.015
  %1 = load i64, ptr %arrayidx, align 8
  %arrayidx6 = getelementptr inbounds nuw i64, ptr %payload5, i32 %i.015
  store i64 %1, ptr %arrayidx6, align 8
  %inc = add nuw nsw i32 %i.015, 1
  %exitcond.not = icmp eq i32 %inc, %invariant.smin
  br i1 %exitcond.not, label %if.end, label %for.body

if.end:
  ret i32 %code
}

declare void @llvm.lifetime.start.p0(ptr captures(none)) nounwind

declare void @llvm.lifetime.end.p0(ptr captures(none)) nounwind

define hidden range(i32 0, 2) i32 @tn_poll(ptr noundef captures(none) %block, i32 noundef %site) local_unnamed_addr alwaysinline nounwind {
entry:
  %atomic-load = load atomic i32, ptr @tn_control seq_cst, align 8
  %cmp = icmp eq i32 %atomic-load, 0
  br i1 %cmp, label %land.lhs.true, label %cond.false

land.lhs.true:
  %0 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tn_control, i32 8), align 8
  %dec = add nsw i64 %0, -1
  store i64 %dec, ptr getelementptr inbounds nuw (i8, ptr @tn_control, i32 8), align 8
  %cmp1 = icmp sgt i64 %0, 0
  br i1 %cmp1, label %cond.end, label %cond.false

cond.false:
  tail call fastcc void @interrupted(ptr noundef %block, i32 noundef %site)
  br label %cond.end

cond.end:
  %cond = phi i32 [ 1, %cond.false ], [ 0, %land.lhs.true ]
  ret i32 %cond
}

define internal fastcc void @interrupted(ptr noundef captures(none) %block, i32 noundef %site) unnamed_addr noinline nounwind {
entry:
  store i64 0, ptr getelementptr inbounds nuw (i8, ptr @tn_control, i32 8), align 8
  %site1 = getelementptr inbounds nuw i8, ptr %block, i32 4
  %atomic-load = load atomic i32, ptr %site1 seq_cst, align 4
  %cmp = icmp eq i32 %atomic-load, -1
  br i1 %cmp, label %if.then, label %if.end

if.then:
  store atomic i32 %site, ptr %site1 seq_cst, align 4
  br label %if.end

if.end:
  ret void
}

define hidden void @tn_print(ptr noundef %block, i32 noundef %site, i32 noundef %count, ptr noundef readonly captures(none) %words) local_unnamed_addr nounwind {
entry:
  %print_ring = getelementptr inbounds nuw i8, ptr %block, i32 72
  %0 = load ptr, ptr %print_ring, align 8
  %cmp = icmp eq ptr %0, null
  br i1 %cmp, label %cleanup30, label %if.end

if.end:
  %conv = zext i32 %count to i64
  %add = add nuw nsw i64 %conv, 1
  %capacity = getelementptr inbounds nuw i8, ptr %0, i32 32
  %1 = load i64, ptr %capacity, align 32
  %sub = add i64 %1, -1
  %head = getelementptr inbounds nuw i8, ptr %0, i32 8
  %atomic-load = load atomic i64, ptr %head seq_cst, align 8
  %add1 = add i64 %atomic-load, 1
  %add2 = add i64 %add1, %add
  %tail = getelementptr inbounds nuw i8, ptr %0, i32 16
  %atomic-load3 = load atomic i64, ptr %tail seq_cst, align 16
  %sub4 = sub i64 %add2, %atomic-load3
  %2 = load i64, ptr %capacity, align 32
  %cmp6 = icmp ugt i64 %sub4, %2
  br i1 %cmp6, label %if.then8, label %if.end9

if.then8:
  %dropped = getelementptr inbounds nuw i8, ptr %0, i32 24
  %3 = atomicrmw add ptr %dropped, i64 1 seq_cst, align 8
  br label %cleanup30

if.end9:
  %shl = shl i64 %add, 32
  %conv10 = zext i32 %site to i64
  %or = or disjoint i64 %shl, %conv10
  %words11 = getelementptr inbounds nuw i8, ptr %0, i32 64
  %and = and i64 %atomic-load, %sub
  %idxprom = trunc i64 %and to i32
  %arrayidx = getelementptr inbounds nuw i64, ptr %words11, i32 %idxprom
  store i64 %or, ptr %arrayidx, align 8
  %4 = ptrtoint ptr %block to i32
  %conv12 = zext i32 %4 to i64
  %inc14 = add i64 %atomic-load, 2
  %and15 = and i64 %add1, %sub
  %idxprom16 = trunc i64 %and15 to i32
  %arrayidx17 = getelementptr inbounds nuw i64, ptr %words11, i32 %idxprom16
  store i64 %conv12, ptr %arrayidx17, align 8
  %cmp1851 = icmp sgt i32 %count, 0
  br i1 %cmp1851, label %for.body, label %for.cond.cleanup

for.cond.cleanup:
  %at.0.lcssa = phi i64 [ %inc14, %if.end9 ], [ %inc22, %for.body ]
  store atomic i64 %at.0.lcssa, ptr %head seq_cst, align 8
  br label %cleanup30

for.body:
  %i.053 = phi i32 [ %inc26, %for.body ], [ 0, %if.end9 ]
  %at.052 = phi i64 [ %inc22, %for.body ], [ %inc14, %if.end9 ]
  %arrayidx20 = getelementptr inbounds nuw i64, ptr %words, i32 %i.053
  %5 = load i64, ptr %arrayidx20, align 8
  %inc22 = add i64 %at.052, 1
  %and23 = and i64 %at.052, %sub
  %idxprom24 = trunc i64 %and23 to i32
  %arrayidx25 = getelementptr inbounds nuw i64, ptr %words11, i32 %idxprom24
  store i64 %5, ptr %arrayidx25, align 8
  %inc26 = add nuw nsw i32 %i.053, 1
  %exitcond.not = icmp eq i32 %inc26, %count
  br i1 %exitcond.not, label %for.cond.cleanup, label %for.body

cleanup30:
  ret void
}

define hidden i32 @tn_parallel_for(ptr noundef %block, ptr noundef readonly captures(none) %task, i64 noundef %low, i64 noundef %high, i64 noundef %grain) local_unnamed_addr alwaysinline nounwind {
entry:
  %cmp = icmp slt i64 %low, %high
  br i1 %cmp, label %cond.true, label %cond.end

cond.true:
  %call = tail call i32 %task(ptr noundef %block, i64 noundef %low, i64 noundef %high, i32 noundef 0) nounwind
  br label %cond.end

cond.end:
  %cond = phi i32 [ %call, %cond.true ], [ 0, %entry ]
  ret i32 %cond
}

define hidden i32 @tn_parallel_for_dynamic(ptr noundef %block, ptr noundef readonly captures(none) %task, i64 noundef %low, i64 noundef %high, i64 noundef %grain) local_unnamed_addr alwaysinline nounwind {
entry:
  %cmp.i = icmp slt i64 %low, %high
  br i1 %cmp.i, label %cond.true.i, label %tn_parallel_for.exit

cond.true.i:
  %call.i = tail call i32 %task(ptr noundef %block, i64 noundef %low, i64 noundef %high, i32 noundef 0) nounwind
  br label %tn_parallel_for.exit

tn_parallel_for.exit:
  %cond.i = phi i32 [ %call.i, %cond.true.i ], [ 0, %entry ]
  ret i32 %cond.i
}

define hidden ptr @tn_arena_alloc(ptr noundef readonly captures(none) %block, i32 noundef %tid, i64 noundef %bytes) local_unnamed_addr nounwind {
entry:
  %0 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tn_control, i32 24), align 8
  %memory_limit = getelementptr inbounds nuw i8, ptr %block, i32 120
  %1 = load i64, ptr %memory_limit, align 8
  %cmp = icmp ugt i64 %bytes, %1
  br i1 %cmp, label %cleanup10, label %lor.lhs.false

lor.lhs.false:
  %add = add i64 %0, %bytes
  %2 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tn_control, i32 16), align 8
  %sub = sub i64 %add, %2
  %cmp1 = icmp ugt i64 %sub, %1
  br i1 %cmp1, label %cleanup10, label %if.end

if.end:
  %sub4 = add i64 %add, 63
  %and = and i64 %sub4, -64
  %3 = tail call i32 @llvm.wasm.memory.size.i32(i32 0)
  %conv = zext i32 %3 to i64
  %mul = shl nuw nsw i64 %conv, 16
  %cmp5 = icmp ugt i64 %and, %mul
  br i1 %cmp5, label %land.lhs.true, label %if.end8

land.lhs.true:
  %call = tail call fastcc zeroext i1 @grow_to(i64 noundef %and)
  br i1 %call, label %if.end8, label %cleanup10

if.end8:
  store i64 %and, ptr getelementptr inbounds nuw (i8, ptr @tn_control, i32 24), align 8
  %conv9 = trunc i64 %0 to i32
  %4 = inttoptr i32 %conv9 to ptr
  br label %cleanup10

cleanup10:
  %retval.1 = phi ptr [ null, %entry ], [ null, %lor.lhs.false ], [ %4, %if.end8 ], [ null, %land.lhs.true ]
  ret ptr %retval.1
}

declare i32 @llvm.wasm.memory.size.i32(i32) nounwind

define internal fastcc zeroext i1 @grow_to(i64 noundef range(i64 1, -63) %end) unnamed_addr noinline nounwind {
entry:
  %0 = tail call i32 @llvm.wasm.memory.size.i32(i32 0)
  %conv = zext i32 %0 to i64
  %sub = add i64 %end, 65535
  %div39 = lshr i64 %sub, 16
  %1 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tn_control, i32 32), align 8
  %div140 = lshr i64 %1, 16
  %cmp.not = icmp samesign ugt i64 %div39, %conv
  br i1 %cmp.not, label %if.end, label %cleanup25

if.end:
  %cmp3 = icmp samesign ugt i64 %div39, %div140
  br i1 %cmp3, label %cleanup25, label %if.end6

if.end6:
  %div741 = lshr i64 %conv, 2
  %add8 = add nuw nsw i64 %div741, %conv
  %spec.select = tail call i64 @llvm.umin.i64(i64 %add8, i64 %div140)
  %cmp13 = icmp samesign ugt i64 %spec.select, %div39
  br i1 %cmp13, label %land.lhs.true, label %if.end20

land.lhs.true:
  %2 = trunc i64 %spec.select to i32
  %conv16 = sub i32 %2, %0
  %3 = tail call i32 @llvm.wasm.memory.grow.i32(i32 0, i32 %conv16)
  %cmp17.not = icmp eq i32 %3, -1
  br i1 %cmp17.not, label %if.end20, label %cleanup25

if.end20:
  %4 = trunc i64 %div39 to i32
  %conv22 = sub i32 %4, %0
  %5 = tail call i32 @llvm.wasm.memory.grow.i32(i32 0, i32 %conv22)
  %cmp23 = icmp ne i32 %5, -1
  br label %cleanup25

cleanup25:
  %retval.1 = phi i1 [ false, %if.end ], [ true, %entry ], [ %cmp23, %if.end20 ], [ true, %land.lhs.true ]
  ret i1 %retval.1
}

define hidden i64 @tn_arena_mark(ptr noundef readnone captures(none) %block, i32 noundef %tid) local_unnamed_addr nounwind {
entry:
  %0 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tn_control, i32 24), align 8
  ret i64 %0
}

define hidden void @tn_arena_release(ptr noundef readnone captures(none) %block, i32 noundef %tid, i64 noundef %mark) local_unnamed_addr nounwind {
entry:
  store i64 %mark, ptr getelementptr inbounds nuw (i8, ptr @tn_control, i32 24), align 8
  ret void
}

define hidden float @__powisf2(float noundef %base, i32 noundef %exponent) local_unnamed_addr nounwind {
entry:
  %cond = tail call i32 @llvm.abs.i32(i32 %exponent, i1 false)
  %and18 = and i32 %cond, 1
  %tobool.not19 = icmp eq i32 %and18, 0
  %spec.select20 = select i1 %tobool.not19, float 1.000000e+00, float %base
  %shr21 = lshr i32 %cond, 1
  %cmp122 = icmp eq i32 %shr21, 0
  br i1 %cmp122, label %if.then2, label %for.inc

if.then2:
  %spec.select.lcssa = phi float [ %spec.select20, %entry ], [ %spec.select, %for.inc ]
  %cmp = icmp slt i32 %exponent, 0
  %div = fdiv float 1.000000e+00, %spec.select.lcssa
  %cond9 = select i1 %cmp, float %div, float %spec.select.lcssa
  ret float %cond9

for.inc:
  %shr25 = phi i32 [ %shr, %for.inc ], [ %shr21, %entry ]
  %spec.select24 = phi float [ %spec.select, %for.inc ], [ %spec.select20, %entry ]
  %base.addr.023 = phi float [ %mul4, %for.inc ], [ %base, %entry ]
  %mul4 = fmul float %base.addr.023, %base.addr.023
  %and = and i32 %shr25, 1
  %tobool.not = icmp eq i32 %and, 0
  %mul = fmul float %mul4, %spec.select24
  %spec.select = select i1 %tobool.not, float %spec.select24, float %mul
  %shr = lshr i32 %shr25, 1
  %cmp1 = icmp eq i32 %shr, 0
  br i1 %cmp1, label %if.then2, label %for.inc
}

define hidden double @__powidf2(double noundef %base, i32 noundef %exponent) local_unnamed_addr nounwind {
entry:
  %cond = tail call i32 @llvm.abs.i32(i32 %exponent, i1 false)
  %and18 = and i32 %cond, 1
  %tobool.not19 = icmp eq i32 %and18, 0
  %spec.select20 = select i1 %tobool.not19, double 1.000000e+00, double %base
  %shr21 = lshr i32 %cond, 1
  %cmp122 = icmp eq i32 %shr21, 0
  br i1 %cmp122, label %if.then2, label %for.inc

if.then2:
  %spec.select.lcssa = phi double [ %spec.select20, %entry ], [ %spec.select, %for.inc ]
  %cmp = icmp slt i32 %exponent, 0
  %div = fdiv double 1.000000e+00, %spec.select.lcssa
  %cond9 = select i1 %cmp, double %div, double %spec.select.lcssa
  ret double %cond9

for.inc:
  %shr25 = phi i32 [ %shr, %for.inc ], [ %shr21, %entry ]
  %spec.select24 = phi double [ %spec.select, %for.inc ], [ %spec.select20, %entry ]
  %base.addr.023 = phi double [ %mul4, %for.inc ], [ %base, %entry ]
  %mul4 = fmul double %base.addr.023, %base.addr.023
  %and = and i32 %shr25, 1
  %tobool.not = icmp eq i32 %and, 0
  %mul = fmul double %mul4, %spec.select24
  %spec.select = select i1 %tobool.not, double %spec.select24, double %mul
  %shr = lshr i32 %shr25, 1
  %cmp1 = icmp eq i32 %shr, 0
  br i1 %cmp1, label %if.then2, label %for.inc
}

define hidden zeroext i16 @__truncdfhf2(double noundef %value) local_unnamed_addr nounwind {
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
  ret i16 %or29
}

declare void @llvm.memcpy.p0.p0.i32(ptr noalias writeonly captures(none), ptr noalias readonly captures(none), i32, i1 immarg) nounwind

define hidden i32 @tn_replay(ptr noundef captures(none) %block) local_unnamed_addr nounwind {
entry:
  %bits.i = alloca %union.number, align 8
  %lane = alloca %struct.lane, align 8
  call void @llvm.lifetime.start.p0(ptr nonnull %lane) nounwind
  call void @llvm.memset.p0.i64(ptr noundef nonnull align 8 dereferenceable(48) %lane, i8 0, i64 48, i1 false)
  %slots = getelementptr inbounds nuw i8, ptr %block, i32 128
  %0 = load i64, ptr %slots, align 8
  %conv = trunc i64 %0 to i32
  %1 = inttoptr i32 %conv to ptr
  store ptr %1, ptr %lane, align 8
  %registers = getelementptr inbounds nuw i8, ptr %lane, i32 8
  %arrayidx2 = getelementptr inbounds nuw i8, ptr %block, i32 136
  %2 = load i64, ptr %arrayidx2, align 8
  %conv3 = trunc i64 %2 to i32
  %3 = inttoptr i32 %conv3 to ptr
  store ptr %3, ptr %registers, align 8
  %member54.i = getelementptr inbounds nuw i8, ptr %lane, i32 24
  %flags.i.i = getelementptr inbounds nuw i8, ptr %block, i32 60
  %block2.i.i = getelementptr inbounds nuw i8, ptr %lane, i32 16
  %thread_state.i.i = getelementptr inbounds i8, ptr %block, i32 -120
  %python_error12.i.i = getelementptr inbounds i8, ptr %block, i32 -80
  br label %for.cond.i

for.cond.i:
  %at.0.i = phi ptr [ %1, %entry ], [ %at.1.i, %cleanup.i ]
  %4 = load i64, ptr %at.0.i, align 8
  switch i64 %4, label %sw.default.i [
    i64 0, label %if.end
    i64 1, label %sw.bb3.i
    i64 2, label %sw.bb6.i
    i64 3, label %sw.bb12.i
    i64 13, label %sw.bb23.i
    i64 14, label %sw.bb37.i
    i64 15, label %sw.bb50.i
    i64 4, label %sw.bb64.i
    i64 16, label %for.cond87.preheader.i
    i64 5, label %sw.bb96.i
    i64 6, label %sw.bb106.i
    i64 7, label %sw.bb115.i
    i64 8, label %sw.bb128.i
    i64 9, label %sw.bb137.i
    i64 10, label %sw.bb151.i
    i64 17, label %sw.bb164.i
    i64 18, label %sw.bb176.i
    i64 19, label %sw.bb189.i
    i64 20, label %sw.bb203.i
    i64 21, label %sw.bb217.i
    i64 22, label %sw.bb231.i
    i64 11, label %sw.bb236.i
  ]

for.cond87.preheader.i:
  %arrayidx88.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %move.0475.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %5 = load i64, ptr %arrayidx88.i, align 8
  %cmp89476.i = icmp sgt i64 %5, 0
  br i1 %cmp89476.i, label %for.body.i, label %cleanup.i

sw.bb3.i:
  %sub.ptr.lhs.cast.i = ptrtoint ptr %at.0.i to i32
  %sub.ptr.sub.i = sub i32 %sub.ptr.lhs.cast.i, %conv
  %sub.ptr.div.i = ashr exact i32 %sub.ptr.sub.i, 3
  %atomic-load.i.i = load atomic i32, ptr @tn_control seq_cst, align 8
  %cmp.i.i = icmp eq i32 %atomic-load.i.i, 0
  br i1 %cmp.i.i, label %land.lhs.true.i.i, label %tn_poll.exit.i

land.lhs.true.i.i:
  %6 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tn_control, i32 8), align 8
  %dec.i.i = add nsw i64 %6, -1
  store i64 %dec.i.i, ptr getelementptr inbounds nuw (i8, ptr @tn_control, i32 8), align 8
  %cmp1.i.i = icmp sgt i64 %6, 0
  br i1 %cmp1.i.i, label %if.then.i, label %tn_poll.exit.i

tn_poll.exit.i:
  call fastcc void @interrupted(ptr noundef %block, i32 noundef %sub.ptr.div.i)
  br label %if.end.i

if.then.i:
  %arrayidx4.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %7 = load i64, ptr %arrayidx4.i, align 8
  %conv.i = trunc i64 %7 to i32
  %8 = inttoptr i32 %conv.i to ptr
  %add.ptr.i30.i.i = getelementptr inbounds i8, ptr %8, i32 -128
  %9 = load i32, ptr %flags.i.i, align 4
  %flags1.i.i.i = getelementptr inbounds nuw i8, ptr %8, i32 60
  store i32 %9, ptr %flags1.i.i.i, align 4
  store atomic i32 0, ptr %8 seq_cst, align 4
  %site.i.i.i = getelementptr inbounds nuw i8, ptr %8, i32 4
  store atomic i32 -1, ptr %site.i.i.i seq_cst, align 4
  %10 = load i64, ptr getelementptr inbounds nuw (i8, ptr @tn_control, i32 16), align 8
  store i64 %10, ptr getelementptr inbounds nuw (i8, ptr @tn_control, i32 24), align 8
  %11 = load ptr, ptr %block2.i.i, align 8
  %cmp.i421.i = icmp eq ptr %11, null
  %cond.i422.i = select i1 %cmp.i421.i, ptr null, ptr %lane
  %lane3.i.i = getelementptr inbounds i8, ptr %8, i32 -56
  store ptr %cond.i422.i, ptr %lane3.i.i, align 8
  %12 = load ptr, ptr %thread_state.i.i, align 8
  %thread_state4.i.i = getelementptr inbounds i8, ptr %8, i32 -120
  store ptr %12, ptr %thread_state4.i.i, align 8
  %13 = load ptr, ptr %add.ptr.i30.i.i, align 64
  %call6.i.i = call i32 %13(ptr noundef nonnull %8) nounwind
  %cmp.not.i.i.i = icmp eq i32 %call6.i.i, 0
  br i1 %cmp.not.i.i.i, label %cond.false.i.i.i, label %launch_within.exit.i

cond.false.i.i.i:
  %atomic-load.i.i.i = load atomic i32, ptr %8 seq_cst, align 4
  br label %launch_within.exit.i

launch_within.exit.i:
  %cond.i.i.i = phi i32 [ %atomic-load.i.i.i, %cond.false.i.i.i ], [ %call6.i.i, %if.then.i ]
  %14 = load ptr, ptr %thread_state4.i.i, align 8
  store ptr %14, ptr %thread_state.i.i, align 8
  %python_error.i.i = getelementptr inbounds i8, ptr %8, i32 -80
  %15 = load i32, ptr %python_error.i.i, align 16
  %16 = load i32, ptr %python_error12.i.i, align 16
  %or.i.i = or i32 %16, %15
  store i32 %or.i.i, ptr %python_error12.i.i, align 16
  store ptr null, ptr %lane3.i.i, align 8
  br label %if.end.i

if.end.i:
  %status.0.i = phi i32 [ %cond.i.i.i, %launch_within.exit.i ], [ 1, %tn_poll.exit.i ]
  %add.ptr.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  br label %sw.epilog.i

sw.bb6.i:
  %arrayidx7.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %17 = load i64, ptr %arrayidx7.i, align 8
  %conv8.i = trunc i64 %17 to i32
  %18 = inttoptr i32 %conv8.i to ptr
  %arrayidx9.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %19 = load i64, ptr %arrayidx9.i, align 8
  %conv10.i = trunc i64 %19 to i32
  call void @llvm.memset.p0.i32(ptr align 1 %18, i8 0, i32 %conv10.i, i1 false)
  %add.ptr11.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  br label %cleanup.i

sw.bb12.i:
  %arrayidx13.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %20 = load i64, ptr %arrayidx13.i, align 8
  %conv14.i = trunc i64 %20 to i32
  %21 = inttoptr i32 %conv14.i to ptr
  %arrayidx15.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  %22 = load i64, ptr %arrayidx15.i, align 8
  %conv16.i = trunc i64 %22 to i32
  %23 = inttoptr i32 %conv16.i to ptr
  %arrayidx17.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 32
  %24 = load i64, ptr %arrayidx17.i, align 8
  %add.ptr18.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 40
  %arrayidx19.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %25 = load i64, ptr %arrayidx19.i, align 8
  call fastcc void @copy(ptr noundef %21, ptr noundef %23, i64 noundef %24, ptr noundef nonnull %add.ptr18.i, i64 noundef %25)
  %26 = load i64, ptr %arrayidx17.i, align 8
  %27 = trunc i64 %26 to i32
  %add.ptr22.idx.i = mul i32 %27, 24
  %add.ptr22.i = getelementptr inbounds i8, ptr %add.ptr18.i, i32 %add.ptr22.idx.i
  br label %cleanup.i

sw.bb23.i:
  %arrayidx24.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %28 = load i64, ptr %arrayidx24.i, align 8
  %arrayidx25.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %29 = load i64, ptr %arrayidx25.i, align 8
  %conv26.i = trunc i64 %29 to i32
  %30 = inttoptr i32 %conv26.i to ptr
  %arrayidx27.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  %31 = load i64, ptr %arrayidx27.i, align 8
  %arrayidx28.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 32
  %32 = load i64, ptr %arrayidx28.i, align 8
  %conv29.i = trunc i64 %32 to i32
  %33 = inttoptr i32 %conv29.i to ptr
  %arrayidx30.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 40
  %34 = load i64, ptr %arrayidx30.i, align 8
  %add.ptr31.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 48
  call fastcc void @convert(i64 noundef %28, ptr noundef %30, i64 noundef %31, ptr noundef %33, i64 noundef %34, ptr noundef nonnull %add.ptr31.i)
  %35 = load i64, ptr %arrayidx30.i, align 8
  %36 = trunc i64 %35 to i32
  %add.ptr36.idx.i = mul i32 %36, 24
  %add.ptr36.i = getelementptr inbounds i8, ptr %add.ptr31.i, i32 %add.ptr36.idx.i
  br label %cleanup.i

sw.bb37.i:
  %arrayidx38.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %37 = load i64, ptr %arrayidx38.i, align 8
  %conv39.i = trunc i64 %37 to i32
  %38 = inttoptr i32 %conv39.i to ptr
  %arrayidx40.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  %39 = load i64, ptr %arrayidx40.i, align 8
  %conv41.i = trunc i64 %39 to i32
  %40 = inttoptr i32 %conv41.i to ptr
  %41 = load i64, ptr %40, align 8
  %conv42.i = trunc i64 %41 to i32
  %42 = inttoptr i32 %conv42.i to ptr
  %43 = load i64, ptr %member54.i, align 8
  %arrayidx43.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 32
  %44 = load i64, ptr %arrayidx43.i, align 8
  %mul44.i = mul nsw i64 %44, %43
  %idx.ext45.i = trunc i64 %mul44.i to i32
  %add.ptr46.i = getelementptr inbounds i8, ptr %42, i32 %idx.ext45.i
  %arrayidx47.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %45 = load i64, ptr %arrayidx47.i, align 8
  %conv48.i = trunc i64 %45 to i32
  call void @llvm.memcpy.p0.p0.i32(ptr align 1 %38, ptr align 1 %add.ptr46.i, i32 %conv48.i, i1 false)
  %add.ptr49.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 40
  br label %cleanup.i

sw.bb50.i:
  %arrayidx51.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  %46 = load i64, ptr %arrayidx51.i, align 8
  %conv52.i = trunc i64 %46 to i32
  %47 = inttoptr i32 %conv52.i to ptr
  %48 = load i64, ptr %47, align 8
  %conv53.i = trunc i64 %48 to i32
  %49 = inttoptr i32 %conv53.i to ptr
  %50 = load i64, ptr %member54.i, align 8
  %arrayidx55.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 32
  %51 = load i64, ptr %arrayidx55.i, align 8
  %mul56.i = mul nsw i64 %51, %50
  %idx.ext57.i = trunc i64 %mul56.i to i32
  %add.ptr58.i = getelementptr inbounds i8, ptr %49, i32 %idx.ext57.i
  %arrayidx59.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %52 = load i64, ptr %arrayidx59.i, align 8
  %conv60.i = trunc i64 %52 to i32
  %53 = inttoptr i32 %conv60.i to ptr
  %arrayidx61.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %54 = load i64, ptr %arrayidx61.i, align 8
  %conv62.i = trunc i64 %54 to i32
  call void @llvm.memcpy.p0.p0.i32(ptr align 1 %add.ptr58.i, ptr align 1 %53, i32 %conv62.i, i1 false)
  %add.ptr63.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 40
  br label %cleanup.i

sw.bb64.i:
  call void @llvm.lifetime.start.p0(ptr nonnull %bits.i) nounwind
  store i64 0, ptr %bits.i, align 8
  %arrayidx65.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %55 = load i64, ptr %arrayidx65.i, align 8
  %arrayidx66.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  %56 = load i64, ptr %arrayidx66.i, align 8
  %arrayidx67.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %57 = load i64, ptr %arrayidx67.i, align 8
  %idxprom.i = trunc i64 %57 to i32
  %arrayidx68.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom.i
  %call69.i = call fastcc i32 @store(i64 noundef %55, ptr noundef nonnull %bits.i, i64 noundef %56, ptr noundef byval(%union.number) align 8 %arrayidx68.i)
  %cmp70.i = icmp eq i32 %call69.i, 0
  br i1 %cmp70.i, label %if.then72.i, label %if.end79.i

if.then72.i:
  %arrayidx73.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 32
  %58 = load i64, ptr %arrayidx73.i, align 8
  %conv74.i = trunc i64 %58 to i32
  %59 = inttoptr i32 %conv74.i to ptr
  %arrayidx75.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 40
  %60 = load i64, ptr %arrayidx75.i, align 8
  %add.ptr76.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 48
  %61 = load i64, ptr %arrayidx65.i, align 8
  %idxprom.i.i = trunc i64 %61 to i32
  %arrayidx.i.i = getelementptr inbounds i8, ptr @size_of.sizes, i32 %idxprom.i.i
  %62 = load i8, ptr %arrayidx.i.i, align 1
  %conv.i.i = sext i8 %62 to i64
  call fastcc void @fill(ptr noundef %59, i64 noundef %60, ptr noundef nonnull %add.ptr76.i, ptr noundef %bits.i, i64 noundef %conv.i.i)
  br label %if.end79.i

if.end79.i:
  %add.ptr80.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 48
  %arrayidx81.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 40
  %63 = load i64, ptr %arrayidx81.i, align 8
  %.tr.i = trunc i64 %63 to i32
  %add.ptr84.idx.i = shl i32 %.tr.i, 4
  %add.ptr84.i = getelementptr inbounds i8, ptr %add.ptr80.i, i32 %add.ptr84.idx.i
  call void @llvm.lifetime.end.p0(ptr nonnull %bits.i) nounwind
  br label %sw.epilog.i

for.body.i:
  %move.0479.i = phi ptr [ %move.0.i, %for.body.i ], [ %move.0475.i, %for.cond87.preheader.i ]
  %at.0.pn478.i = phi ptr [ %move.0479.i, %for.body.i ], [ %at.0.i, %for.cond87.preheader.i ]
  %i.0477.i = phi i64 [ %inc.i, %for.body.i ], [ 0, %for.cond87.preheader.i ]
  %arrayidx91.i = getelementptr inbounds nuw i8, ptr %at.0.pn478.i, i32 24
  %64 = load i64, ptr %arrayidx91.i, align 8
  %conv92.i = trunc i64 %64 to i32
  %65 = inttoptr i32 %conv92.i to ptr
  %66 = load i64, ptr %65, align 8
  %67 = load i64, ptr %move.0479.i, align 8
  %conv94.i = trunc i64 %67 to i32
  %68 = inttoptr i32 %conv94.i to ptr
  store i64 %66, ptr %68, align 8
  %inc.i = add nuw nsw i64 %i.0477.i, 1
  %move.0.i = getelementptr inbounds nuw i8, ptr %move.0479.i, i32 16
  %69 = load i64, ptr %arrayidx88.i, align 8
  %cmp89.i = icmp slt i64 %inc.i, %69
  br i1 %cmp89.i, label %for.body.i, label %cleanup.i

sw.bb96.i:
  %arrayidx97.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %70 = load i64, ptr %arrayidx97.i, align 8
  %arrayidx98.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 32
  %71 = load i64, ptr %arrayidx98.i, align 8
  %conv99.i = trunc i64 %71 to i32
  %72 = inttoptr i32 %conv99.i to ptr
  %arrayidx100.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  %73 = load i64, ptr %arrayidx100.i, align 8
  %arrayidx101.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %74 = load i64, ptr %arrayidx101.i, align 8
  %idxprom102.i = trunc i64 %74 to i32
  %arrayidx103.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom102.i
  %call104.i = call fastcc i32 @store(i64 noundef %70, ptr noundef %72, i64 noundef %73, ptr noundef byval(%union.number) align 8 %arrayidx103.i)
  %add.ptr105.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 40
  br label %sw.epilog.i

sw.bb106.i:
  %arrayidx107.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %75 = load i64, ptr %arrayidx107.i, align 8
  %arrayidx108.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  %76 = load i64, ptr %arrayidx108.i, align 8
  %conv109.i = trunc i64 %76 to i32
  %77 = inttoptr i32 %conv109.i to ptr
  %arrayidx110.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %78 = load i64, ptr %arrayidx110.i, align 8
  %idxprom111.i = trunc i64 %78 to i32
  %arrayidx112.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom111.i
  switch i64 %75, label %sw.default.i.i [
    i64 0, label %sw.bb.i.i
    i64 1, label %sw.bb1.i.i
    i64 2, label %sw.bb2.i.i
    i64 3, label %sw.bb3.i.i
    i64 4, label %sw.bb5.i.i
    i64 5, label %sw.bb7.i.i
    i64 6, label %sw.bb9.i.i
    i64 7, label %sw.bb10.i.i
    i64 8, label %sw.bb14.i.i
    i64 9, label %sw.bb16.i.i
    i64 10, label %sw.bb18.i.i
  ]

sw.bb.i.i:
  %bits.0.copyload.i.i = load i16, ptr %77, align 1
  %conv.i.i.i = zext i16 %bits.0.copyload.i.i to i32
  %shr.i.i.i = lshr i32 %conv.i.i.i, 10
  %and.i.i.i = and i32 %shr.i.i.i, 31
  %and3.i.i.i = and i32 %conv.i.i.i, 1023
  %conv4.i.i.i = zext nneg i32 %and3.i.i.i to i64
  %cmp.i.i.i = icmp eq i32 %and.i.i.i, 31
  br i1 %cmp.i.i.i, label %if.then.i.i.i, label %if.else.i.i.i

if.then.i.i.i:
  %shl.i.i.i = shl nuw nsw i64 %conv4.i.i.i, 42
  %or.i.i.i = or disjoint i64 %shl.i.i.i, 9218868437227405312
  %79 = bitcast i64 %or.i.i.i to double
  br label %real_of_half.exit.i.i

if.else.i.i.i:
  %conv5.i.i.i = uitofp nneg i32 %and3.i.i.i to double
  %mul.i.i.i = fmul double %conv5.i.i.i, 0x3E70000000000000
  %cmp7.not.i.i.i = icmp eq i32 %and.i.i.i, 0
  br i1 %cmp7.not.i.i.i, label %real_of_half.exit.i.i, label %if.then9.i.i.i

if.then9.i.i.i:
  %80 = add nuw nsw i32 %and.i.i.i, 1008
  %sub.i.i.i = zext nneg i32 %80 to i64
  %shl10.i.i.i = shl nuw nsw i64 %sub.i.i.i, 52
  %shl11.i.i.i = shl nuw nsw i64 %conv4.i.i.i, 42
  %or12.i.i.i = or disjoint i64 %shl10.i.i.i, %shl11.i.i.i
  %81 = bitcast i64 %or12.i.i.i to double
  br label %real_of_half.exit.i.i

real_of_half.exit.i.i:
  %found.sroa.0.0.i.i.i = phi double [ %79, %if.then.i.i.i ], [ %81, %if.then9.i.i.i ], [ %mul.i.i.i, %if.else.i.i.i ]
  %fneg.i.i.i = fneg double %found.sroa.0.0.i.i.i
  %tobool.not23.i.i.i = icmp slt i16 %bits.0.copyload.i.i, 0
  %cond.i.i425.i = select i1 %tobool.not23.i.i.i, double %fneg.i.i.i, double %found.sroa.0.0.i.i.i
  store double %cond.i.i425.i, ptr %arrayidx112.i, align 8
  br label %load.exit.i

sw.bb1.i.i:
  %82 = load float, ptr %77, align 4
  %conv.i424.i = fpext float %82 to double
  store double %conv.i424.i, ptr %arrayidx112.i, align 8
  br label %load.exit.i

sw.bb2.i.i:
  %83 = load double, ptr %77, align 8
  store double %83, ptr %arrayidx112.i, align 8
  br label %load.exit.i

sw.bb3.i.i:
  %84 = load i8, ptr %77, align 1
  %conv4.i.i = sext i8 %84 to i64
  store i64 %conv4.i.i, ptr %arrayidx112.i, align 8
  br label %load.exit.i

sw.bb5.i.i:
  %85 = load i16, ptr %77, align 2
  %conv6.i.i = sext i16 %85 to i64
  store i64 %conv6.i.i, ptr %arrayidx112.i, align 8
  br label %load.exit.i

sw.bb7.i.i:
  %86 = load i32, ptr %77, align 4
  %conv8.i.i = sext i32 %86 to i64
  store i64 %conv8.i.i, ptr %arrayidx112.i, align 8
  br label %load.exit.i

sw.bb9.i.i:
  %87 = load i64, ptr %77, align 8
  store i64 %87, ptr %arrayidx112.i, align 8
  br label %load.exit.i

sw.bb10.i.i:
  %88 = load i8, ptr %77, align 1
  %cmp.i423.i = icmp ne i8 %88, 0
  %conv13.i.i = zext i1 %cmp.i423.i to i64
  store i64 %conv13.i.i, ptr %arrayidx112.i, align 8
  br label %load.exit.i

sw.bb14.i.i:
  %89 = load i8, ptr %77, align 1
  %conv15.i.i = zext i8 %89 to i64
  store i64 %conv15.i.i, ptr %arrayidx112.i, align 8
  br label %load.exit.i

sw.bb16.i.i:
  %90 = load i16, ptr %77, align 2
  %conv17.i.i = zext i16 %90 to i64
  store i64 %conv17.i.i, ptr %arrayidx112.i, align 8
  br label %load.exit.i

sw.bb18.i.i:
  %91 = load i32, ptr %77, align 4
  %conv19.i.i = zext i32 %91 to i64
  store i64 %conv19.i.i, ptr %arrayidx112.i, align 8
  br label %load.exit.i

sw.default.i.i:
  %92 = load i64, ptr %77, align 8
  store i64 %92, ptr %arrayidx112.i, align 8
  %cmp20.i.i = icmp slt i64 %92, 0
  %cond.i426.i = select i1 %cmp20.i.i, i32 6, i32 0
  br label %load.exit.i

load.exit.i:
  %retval.0.i.i = phi i32 [ %cond.i426.i, %sw.default.i.i ], [ 0, %real_of_half.exit.i.i ], [ 0, %sw.bb1.i.i ], [ 0, %sw.bb2.i.i ], [ 0, %sw.bb3.i.i ], [ 0, %sw.bb5.i.i ], [ 0, %sw.bb7.i.i ], [ 0, %sw.bb9.i.i ], [ 0, %sw.bb10.i.i ], [ 0, %sw.bb14.i.i ], [ 0, %sw.bb16.i.i ], [ 0, %sw.bb18.i.i ]
  %add.ptr114.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 32
  br label %sw.epilog.i

sw.bb115.i:
  %arrayidx116.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %93 = load i64, ptr %arrayidx116.i, align 8
  %idxprom117.i = trunc i64 %93 to i32
  %arrayidx118.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom117.i
  %94 = load i64, ptr %arrayidx118.i, align 8
  %add.i = add nsw i64 %94, 1
  store i64 %add.i, ptr %arrayidx118.i, align 8
  %arrayidx119.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  %95 = load i64, ptr %arrayidx119.i, align 8
  %96 = load i64, ptr %arrayidx116.i, align 8
  %idxprom121.i = trunc i64 %96 to i32
  %arrayidx122.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom121.i
  %97 = load i64, ptr %arrayidx122.i, align 8
  %add123.i = add i64 %97, %95
  %arrayidx124.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %98 = load i64, ptr %arrayidx124.i, align 8
  %idxprom125.i = trunc i64 %98 to i32
  %arrayidx126.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom125.i
  store i64 %add123.i, ptr %arrayidx126.i, align 8
  %add.ptr127.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 32
  br label %cleanup.i

sw.bb128.i:
  %arrayidx129.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %99 = load i64, ptr %arrayidx129.i, align 8
  %idxprom130.i = trunc i64 %99 to i32
  %arrayidx131.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom130.i
  %100 = load i64, ptr %arrayidx131.i, align 8
  %conv132.i = sitofp i64 %100 to double
  %arrayidx133.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %101 = load i64, ptr %arrayidx133.i, align 8
  %idxprom134.i = trunc i64 %101 to i32
  %arrayidx135.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom134.i
  store double %conv132.i, ptr %arrayidx135.i, align 8
  %add.ptr136.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  br label %cleanup.i

sw.bb137.i:
  %arrayidx138.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %102 = load i64, ptr %arrayidx138.i, align 8
  %idxprom139.i = trunc i64 %102 to i32
  %arrayidx140.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom139.i
  %103 = load i64, ptr %arrayidx140.i, align 8
  %conv141.i = sitofp i64 %103 to double
  %arrayidx142.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %104 = load i64, ptr %arrayidx142.i, align 8
  %idxprom143.i = trunc i64 %104 to i32
  %arrayidx144.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom143.i
  store double %conv141.i, ptr %arrayidx144.i, align 8
  %105 = load i64, ptr %arrayidx138.i, align 8
  %idxprom146.i = trunc i64 %105 to i32
  %arrayidx147.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom146.i
  %106 = load i64, ptr %arrayidx147.i, align 8
  %107 = add i64 %106, 9007199254740992
  %108 = icmp ult i64 %107, 18014398509481985
  %add.ptr150.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  br i1 %108, label %cleanup.i, label %if.then

sw.bb151.i:
  %arrayidx152.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %109 = load i64, ptr %arrayidx152.i, align 8
  %arrayidx153.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  %110 = load i64, ptr %arrayidx153.i, align 8
  %idxprom154.i = trunc i64 %110 to i32
  %arrayidx155.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom154.i
  %111 = load double, ptr %arrayidx155.i, align 8
  %arrayidx156.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 32
  %112 = load i64, ptr %arrayidx156.i, align 8
  %idxprom157.i = trunc i64 %112 to i32
  %arrayidx158.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom157.i
  %113 = load double, ptr %arrayidx158.i, align 8
  %arrayidx159.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %114 = load i64, ptr %arrayidx159.i, align 8
  %idxprom160.i = trunc i64 %114 to i32
  %arrayidx161.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom160.i
  switch i64 %109, label %sw.default.i443.i [
    i64 0, label %sw.bb.i442.i
    i64 1, label %sw.bb1.i441.i
    i64 2, label %sw.bb2.i440.i
    i64 3, label %sw.bb3.i437.i
    i64 11, label %sw.bb4.i.i
    i64 4, label %sw.bb6.i.i
    i64 5, label %sw.bb7.i433.i
    i64 6, label %sw.bb9.i432.i
    i64 7, label %sw.bb11.i.i
    i64 8, label %sw.bb12.i.i
    i64 9, label %sw.bb13.i.i
    i64 10, label %sw.bb14.i430.i
    i64 12, label %sw.bb16.i429.i
    i64 13, label %sw.bb19.i.i
    i64 14, label %sw.bb23.i.i
    i64 15, label %sw.bb27.i.i
    i64 16, label %sw.bb31.i.i
  ]

sw.bb.i442.i:
  %add.i.i = fadd double %111, %113
  store double %add.i.i, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.bb1.i441.i:
  %sub.i.i = fsub double %111, %113
  store double %sub.i.i, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.bb2.i440.i:
  %mul.i.i = fmul double %111, %113
  store double %mul.i.i, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.bb3.i437.i:
  %div.i.i = fdiv double %111, %113
  store double %div.i.i, ptr %arrayidx161.i, align 8
  %cmp.i438.i = fcmp oeq double %113, 0.000000e+00
  %cond.i439.i = select i1 %cmp.i438.i, i32 3, i32 0
  br label %compute_reals.exit.i

sw.bb4.i.i:
  %div5.i.i = fdiv double %111, %113
  store double %div5.i.i, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.bb6.i.i:
  %cmp.i.i434.i = fcmp oeq double %113, 0.000000e+00
  br i1 %cmp.i.i434.i, label %compute_reals.exit.i, label %if.end.i.i.i

if.end.i.i.i:
  %fmod.i.i.i = frem double %111, %113
  %sub.i.i435.i = fsub double %111, %fmod.i.i.i
  %div.i.i.i = fdiv double %sub.i.i435.i, %113
  %cmp1.i.i.i = fcmp une double %fmod.i.i.i, 0.000000e+00
  br i1 %cmp1.i.i.i, label %if.then2.i.i.i, label %if.end11.i.i.i

if.then2.i.i.i:
  %cmp3.i.i.i = fcmp olt double %113, 0.000000e+00
  %115 = fcmp uge double %fmod.i.i.i, 0.000000e+00
  %cmp6.not.i.i.i = xor i1 %cmp3.i.i.i, %115
  %sub9.i.i.i = fadd double %div.i.i.i, -1.000000e+00
  %spec.select.i.i = select i1 %cmp6.not.i.i.i, double %div.i.i.i, double %sub9.i.i.i
  br label %if.end11.i.i.i

if.end11.i.i.i:
  %whole.0.i.i.i = phi double [ %div.i.i.i, %if.end.i.i.i ], [ %spec.select.i.i, %if.then2.i.i.i ]
  %cmp12.i.i.i = fcmp une double %whole.0.i.i.i, 0.000000e+00
  br i1 %cmp12.i.i.i, label %if.then14.i.i.i, label %if.else19.i.i.i

if.then14.i.i.i:
  %116 = call double @llvm.floor.f64(double %whole.0.i.i.i)
  %sub15.i.i.i = fsub double %whole.0.i.i.i, %116
  %cmp16.i.i.i = fcmp ogt double %sub15.i.i.i, 5.000000e-01
  %add18.i.i.i = fadd double %116, 1.000000e+00
  %cond.i.i436.i = select i1 %cmp16.i.i.i, double %add18.i.i.i, double %116
  br label %if.end21.i.i.i

if.else19.i.i.i:
  %div20.i.i.i = fdiv double %111, %113
  %117 = call double @llvm.copysign.f64(double 0.000000e+00, double %div20.i.i.i)
  br label %if.end21.i.i.i

if.end21.i.i.i:
  %storemerge.i.i.i = phi double [ %117, %if.else19.i.i.i ], [ %cond.i.i436.i, %if.then14.i.i.i ]
  store double %storemerge.i.i.i, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.bb7.i433.i:
  %cmp.i87.i.i = fcmp oeq double %113, 0.000000e+00
  br i1 %cmp.i87.i.i, label %compute_reals.exit.i, label %if.end.i88.i.i

if.end.i88.i.i:
  %fmod.i89.i.i = frem double %111, %113
  %cmp1.i92.i.i = fcmp une double %fmod.i89.i.i, 0.000000e+00
  br i1 %cmp1.i92.i.i, label %if.then2.i108.i.i, label %if.else.i93.i.i

if.then2.i108.i.i:
  %cmp3.i109.i.i = fcmp olt double %113, 0.000000e+00
  %118 = fcmp uge double %fmod.i89.i.i, 0.000000e+00
  %cmp6.not.i110.i.i = xor i1 %cmp3.i109.i.i, %118
  %add.i112.i.i = fadd double %113, %fmod.i89.i.i
  %spec.select123.i.i = select i1 %cmp6.not.i110.i.i, double %fmod.i89.i.i, double %add.i112.i.i
  br label %if.end11.i94.i.i

if.else.i93.i.i:
  %119 = call double @llvm.copysign.f64(double 0.000000e+00, double %113)
  br label %if.end11.i94.i.i

if.end11.i94.i.i:
  %rest.0.i95.i.i = phi double [ %119, %if.else.i93.i.i ], [ %spec.select123.i.i, %if.then2.i108.i.i ]
  store double %rest.0.i95.i.i, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.bb9.i432.i:
  %cmp.i115.i.i = fcmp une double %111, 0.000000e+00
  %cmp1.i116.i.i = fcmp uge double %113, 0.000000e+00
  %or.cond.not31.i.i.i = or i1 %cmp.i115.i.i, %cmp1.i116.i.i
  %120 = call double @llvm.fabs.f64(double %113)
  %121 = fcmp ueq double %120, 0x7FF0000000000000
  %or.cond23.i.i.i = or i1 %or.cond.not31.i.i.i, %121
  br i1 %or.cond23.i.i.i, label %if.end.i118.i.i, label %compute_reals.exit.i

if.end.i118.i.i:
  %cmp3.i119.i.i = fcmp uge double %111, 0.000000e+00
  %122 = call double @llvm.fabs.f64(double %111)
  %123 = fcmp ueq double %122, 0x7FF0000000000000
  %124 = call double @llvm.floor.f64(double %113)
  %cmp7.i.i.i = fcmp oeq double %124, %113
  %125 = or i1 %cmp3.i119.i.i, %cmp7.i.i.i
  %126 = or i1 %123, %125
  %or.cond28.not.i.i.i = or i1 %121, %126
  br i1 %or.cond28.not.i.i.i, label %if.end9.i.i.i, label %compute_reals.exit.i

if.end9.i.i.i:
  %127 = call double @llvm.pow.f64(double %111, double %113)
  store double %127, ptr %arrayidx161.i, align 8
  %128 = call double @llvm.fabs.f64(double %127)
  %129 = fcmp une double %128, 0x7FF0000000000000
  %or.cond30.i.i.i = or i1 %123, %129
  %130 = fcmp one double %120, 0x7FF0000000000000
  %131 = select i1 %130, i32 6, i32 0
  %cond.i120.i.i = select i1 %or.cond30.i.i.i, i32 0, i32 %131
  br label %compute_reals.exit.i

sw.bb11.i.i:
  %fneg.i.i = fneg double %111
  store double %fneg.i.i, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.bb12.i.i:
  %132 = call double @llvm.fabs.f64(double %111)
  store double %132, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.bb13.i.i:
  %133 = call double @llvm.sqrt.f64(double %111)
  store double %133, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.bb14.i430.i:
  %cmp.i121.i.i = fcmp une double %113, 0.000000e+00
  %mul.i.i431.i = fmul double %111, %113
  %cond.i122.i.i = select i1 %cmp.i121.i.i, double %mul.i.i431.i, double %113
  store double %cond.i122.i.i, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.bb16.i429.i:
  %cmp17.i.i = fcmp olt double %111, %113
  %conv18.i.i = zext i1 %cmp17.i.i to i64
  store i64 %conv18.i.i, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.bb19.i.i:
  %cmp20.i428.i = fcmp ole double %111, %113
  %conv22.i.i = zext i1 %cmp20.i428.i to i64
  store i64 %conv22.i.i, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.bb23.i.i:
  %cmp24.i.i = fcmp ogt double %111, %113
  %conv26.i.i = zext i1 %cmp24.i.i to i64
  store i64 %conv26.i.i, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.bb27.i.i:
  %cmp28.i.i = fcmp oge double %111, %113
  %conv30.i.i = zext i1 %cmp28.i.i to i64
  store i64 %conv30.i.i, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.bb31.i.i:
  %cmp32.i.i = fcmp oeq double %111, %113
  %conv34.i.i = zext i1 %cmp32.i.i to i64
  store i64 %conv34.i.i, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

sw.default.i443.i:
  %cmp35.i.i = fcmp une double %111, %113
  %conv37.i.i = zext i1 %cmp35.i.i to i64
  store i64 %conv37.i.i, ptr %arrayidx161.i, align 8
  br label %compute_reals.exit.i

compute_reals.exit.i:
  %retval.0.i427.i = phi i32 [ 0, %sw.default.i443.i ], [ 0, %sw.bb.i442.i ], [ 0, %sw.bb1.i441.i ], [ 0, %sw.bb2.i440.i ], [ %cond.i439.i, %sw.bb3.i437.i ], [ 0, %sw.bb4.i.i ], [ 0, %sw.bb31.i.i ], [ 3, %sw.bb6.i.i ], [ 3, %sw.bb7.i433.i ], [ 0, %sw.bb11.i.i ], [ 0, %sw.bb12.i.i ], [ 0, %sw.bb13.i.i ], [ 0, %sw.bb14.i430.i ], [ 0, %sw.bb16.i429.i ], [ 0, %sw.bb19.i.i ], [ 0, %sw.bb23.i.i ], [ 0, %sw.bb27.i.i ], [ 0, %if.end21.i.i.i ], [ 0, %if.end11.i94.i.i ], [ %cond.i120.i.i, %if.end9.i.i.i ], [ 3, %sw.bb9.i432.i ], [ 6, %if.end.i118.i.i ]
  %add.ptr163.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 40
  br label %sw.epilog.i

sw.bb164.i:
  %arrayidx165.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %134 = load i64, ptr %arrayidx165.i, align 8
  %idxprom166.i = trunc i64 %134 to i32
  %arrayidx167.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom166.i
  %135 = load double, ptr %arrayidx167.i, align 8
  %arrayidx168.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  %136 = load i64, ptr %arrayidx168.i, align 8
  %idxprom169.i = trunc i64 %136 to i32
  %arrayidx170.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom169.i
  %137 = load double, ptr %arrayidx170.i, align 8
  %add171.i = fadd double %135, %137
  %arrayidx172.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %138 = load i64, ptr %arrayidx172.i, align 8
  %idxprom173.i = trunc i64 %138 to i32
  %arrayidx174.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom173.i
  store double %add171.i, ptr %arrayidx174.i, align 8
  %add.ptr175.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 32
  br label %cleanup.i

sw.bb176.i:
  %arrayidx178.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %139 = load i64, ptr %arrayidx178.i, align 8
  %idxprom179.i = trunc i64 %139 to i32
  %arrayidx180.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom179.i
  %140 = load double, ptr %arrayidx180.i, align 8
  %arrayidx182.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  %141 = load i64, ptr %arrayidx182.i, align 8
  %idxprom183.i = trunc i64 %141 to i32
  %arrayidx184.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom183.i
  %142 = load double, ptr %arrayidx184.i, align 8
  %sub.i = fsub double %140, %142
  %arrayidx185.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %143 = load i64, ptr %arrayidx185.i, align 8
  %idxprom186.i = trunc i64 %143 to i32
  %arrayidx187.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom186.i
  store double %sub.i, ptr %arrayidx187.i, align 8
  %add.ptr188.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 32
  br label %cleanup.i

sw.bb189.i:
  %arrayidx191.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %144 = load i64, ptr %arrayidx191.i, align 8
  %idxprom192.i = trunc i64 %144 to i32
  %arrayidx193.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom192.i
  %145 = load double, ptr %arrayidx193.i, align 8
  %arrayidx195.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  %146 = load i64, ptr %arrayidx195.i, align 8
  %idxprom196.i = trunc i64 %146 to i32
  %arrayidx197.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom196.i
  %147 = load double, ptr %arrayidx197.i, align 8
  %mul198.i = fmul double %145, %147
  %arrayidx199.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %148 = load i64, ptr %arrayidx199.i, align 8
  %idxprom200.i = trunc i64 %148 to i32
  %arrayidx201.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom200.i
  store double %mul198.i, ptr %arrayidx201.i, align 8
  %add.ptr202.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 32
  br label %cleanup.i

sw.bb203.i:
  %arrayidx205.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %149 = load i64, ptr %arrayidx205.i, align 8
  %idxprom206.i = trunc i64 %149 to i32
  %arrayidx207.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom206.i
  %150 = load double, ptr %arrayidx207.i, align 8
  %arrayidx209.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  %151 = load i64, ptr %arrayidx209.i, align 8
  %idxprom210.i = trunc i64 %151 to i32
  %arrayidx211.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom210.i
  %152 = load double, ptr %arrayidx211.i, align 8
  %cmp.i444.i = fcmp une double %152, 0.000000e+00
  %mul.i445.i = fmul double %150, %152
  %cond.i446.i = select i1 %cmp.i444.i, double %mul.i445.i, double %152
  %arrayidx213.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %153 = load i64, ptr %arrayidx213.i, align 8
  %idxprom214.i = trunc i64 %153 to i32
  %arrayidx215.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom214.i
  store double %cond.i446.i, ptr %arrayidx215.i, align 8
  %add.ptr216.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 32
  br label %cleanup.i

sw.bb217.i:
  %arrayidx218.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %154 = load i64, ptr %arrayidx218.i, align 8
  %idxprom219.i = trunc i64 %154 to i32
  %arrayidx220.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom219.i
  %arrayidx221.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %155 = load i64, ptr %arrayidx221.i, align 8
  %idxprom222.i = trunc i64 %155 to i32
  %arrayidx223.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom222.i
  %156 = load i64, ptr %arrayidx223.i, align 8
  %cmp224.not.i = icmp eq i64 %156, 0
  %cond226.i = select i1 %cmp224.not.i, i32 4, i32 3
  %arrayidx227.i = getelementptr inbounds nuw i64, ptr %at.0.i, i32 %cond226.i
  %157 = load i64, ptr %arrayidx227.i, align 8
  %idxprom228.i = trunc i64 %157 to i32
  %arrayidx229.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom228.i
  %158 = load i64, ptr %arrayidx229.i, align 8
  store i64 %158, ptr %arrayidx220.i, align 8
  %add.ptr230.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 40
  br label %cleanup.i

sw.bb231.i:
  %arrayidx232.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %159 = load i64, ptr %arrayidx232.i, align 8
  %conv233.i = trunc i64 %159 to i32
  %160 = inttoptr i32 %conv233.i to ptr
  %call234.i = call i32 %160() nounwind
  %add.ptr235.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  br label %sw.epilog.i

sw.bb236.i:
  %arrayidx237.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %161 = load i64, ptr %arrayidx237.i, align 8
  %arrayidx238.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  %162 = load i64, ptr %arrayidx238.i, align 8
  %idxprom239.i = trunc i64 %162 to i32
  %arrayidx240.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom239.i
  %163 = load i64, ptr %arrayidx240.i, align 8
  %arrayidx241.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 32
  %164 = load i64, ptr %arrayidx241.i, align 8
  %idxprom242.i = trunc i64 %164 to i32
  %arrayidx243.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom242.i
  %165 = load i64, ptr %arrayidx243.i, align 8
  %arrayidx244.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %166 = load i64, ptr %arrayidx244.i, align 8
  %idxprom245.i = trunc i64 %166 to i32
  %arrayidx246.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom245.i
  switch i64 %161, label %compute_integers.exit.i [
    i64 0, label %sw.bb.i458.i
    i64 1, label %sw.bb1.i457.i
    i64 2, label %sw.bb3.i456.i
    i64 3, label %sw.bb5.i451.i
    i64 4, label %sw.bb11.i448.i
    i64 5, label %sw.bb11.i448.i
    i64 7, label %sw.bb37.i.i
    i64 8, label %sw.bb40.i.i
    i64 12, label %sw.bb48.i.i
    i64 13, label %sw.bb52.i.i
    i64 14, label %sw.bb56.i.i
    i64 15, label %sw.bb60.i.i
    i64 16, label %sw.bb64.i.i
    i64 17, label %sw.bb68.i.i
  ]

sw.bb.i458.i:
  %167 = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %163, i64 %165)
  %168 = extractvalue { i64, i1 } %167, 1
  %169 = extractvalue { i64, i1 } %167, 0
  store i64 %169, ptr %arrayidx246.i, align 8
  %cond.i459.i = select i1 %168, i32 6, i32 0
  br label %compute_integers.exit.i

sw.bb1.i457.i:
  %170 = call { i64, i1 } @llvm.ssub.with.overflow.i64(i64 %163, i64 %165)
  %171 = extractvalue { i64, i1 } %170, 1
  %172 = extractvalue { i64, i1 } %170, 0
  store i64 %172, ptr %arrayidx246.i, align 8
  %cond2.i.i = select i1 %171, i32 6, i32 0
  br label %compute_integers.exit.i

sw.bb3.i456.i:
  %173 = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %163, i64 %165)
  %174 = extractvalue { i64, i1 } %173, 1
  %175 = extractvalue { i64, i1 } %173, 0
  store i64 %175, ptr %arrayidx246.i, align 8
  %cond4.i.i = select i1 %174, i32 6, i32 0
  br label %compute_integers.exit.i

sw.bb5.i451.i:
  %cmp.i452.i = icmp eq i64 %165, 0
  br i1 %cmp.i452.i, label %compute_integers.exit.i, label %if.end.i.i

if.end.i.i:
  %conv.i453.i = sitofp i64 %163 to double
  %conv6.i454.i = sitofp i64 %165 to double
  %div.i455.i = fdiv double %conv.i453.i, %conv6.i454.i
  store double %div.i455.i, ptr %arrayidx246.i, align 8
  %176 = add i64 %163, 9007199254740992
  %177 = icmp ult i64 %176, 18014398509481985
  br i1 %177, label %land.rhs.i.i, label %compute_integers.exit.i

land.rhs.i.i:
  %178 = add i64 %165, 9007199254740992
  %179 = icmp ult i64 %178, 18014398509481985
  %180 = select i1 %179, i32 0, i32 6
  br label %compute_integers.exit.i

sw.bb11.i448.i:
  %cmp12.i.i = icmp eq i64 %165, 0
  br i1 %cmp12.i.i, label %compute_integers.exit.i, label %if.end15.i.i

if.end15.i.i:
  %cmp16.i.i = icmp eq i64 %163, -9223372036854775808
  %cmp18.i.i = icmp eq i64 %165, -1
  %or.cond.i.i = and i1 %cmp16.i.i, %cmp18.i.i
  br i1 %or.cond.i.i, label %compute_integers.exit.i, label %if.end21.i.i

if.end21.i.i:
  %.frozen = freeze i64 %163
  %.frozen32 = freeze i64 %165
  %div22.i.i = sdiv i64 %.frozen, %.frozen32
  %181 = mul i64 %div22.i.i, %.frozen32
  %rem.i.i.decomposed = sub i64 %.frozen, %181
  %cmp23.not.i.i = icmp eq i64 %rem.i.i.decomposed, 0
  br i1 %cmp23.not.i.i, label %if.end33.i.i, label %land.lhs.true25.i.i

land.lhs.true25.i.i:
  %cmp30.not.unshifted.i.i = xor i64 %rem.i.i.decomposed, %165
  %cmp30.not.i.i = icmp sgt i64 %cmp30.not.unshifted.i.i, -1
  br i1 %cmp30.not.i.i, label %if.end33.i.i, label %if.then32.i.i

if.then32.i.i:
  %add.i449.i = add nsw i64 %rem.i.i.decomposed, %165
  %sub.i450.i = add nsw i64 %div22.i.i, -1
  br label %if.end33.i.i

if.end33.i.i:
  %quotient.0.i.i = phi i64 [ %sub.i450.i, %if.then32.i.i ], [ %div22.i.i, %land.lhs.true25.i.i ], [ %div22.i.i, %if.end21.i.i ]
  %rest.0.i.i = phi i64 [ %add.i449.i, %if.then32.i.i ], [ %rem.i.i.decomposed, %land.lhs.true25.i.i ], [ 0, %if.end21.i.i ]
  %cmp34.i.i = icmp eq i64 %161, 5
  %cond36.i.i = select i1 %cmp34.i.i, i64 %rest.0.i.i, i64 %quotient.0.i.i
  store i64 %cond36.i.i, ptr %arrayidx246.i, align 8
  br label %compute_integers.exit.i

sw.bb37.i.i:
  %182 = call { i64, i1 } @llvm.ssub.with.overflow.i64(i64 0, i64 %163)
  %183 = extractvalue { i64, i1 } %182, 1
  %184 = extractvalue { i64, i1 } %182, 0
  store i64 %184, ptr %arrayidx246.i, align 8
  %cond39.i.i = select i1 %183, i32 6, i32 0
  br label %compute_integers.exit.i

sw.bb40.i.i:
  %cmp41.i.i = icmp slt i64 %163, 0
  br i1 %cmp41.i.i, label %cond.true43.i.i, label %cond.false45.i.i

cond.true43.i.i:
  %185 = call { i64, i1 } @llvm.ssub.with.overflow.i64(i64 0, i64 %163)
  %186 = extractvalue { i64, i1 } %185, 1
  %187 = extractvalue { i64, i1 } %185, 0
  store i64 %187, ptr %arrayidx246.i, align 8
  %cond39.i.i.i = select i1 %186, i32 6, i32 0
  br label %compute_integers.exit.i

cond.false45.i.i:
  store i64 %163, ptr %arrayidx246.i, align 8
  br label %compute_integers.exit.i

sw.bb48.i.i:
  %cmp49.i.i = icmp slt i64 %163, %165
  %conv51.i.i = zext i1 %cmp49.i.i to i64
  store i64 %conv51.i.i, ptr %arrayidx246.i, align 8
  br label %compute_integers.exit.i

sw.bb52.i.i:
  %cmp53.i.i = icmp sle i64 %163, %165
  %conv55.i.i = zext i1 %cmp53.i.i to i64
  store i64 %conv55.i.i, ptr %arrayidx246.i, align 8
  br label %compute_integers.exit.i

sw.bb56.i.i:
  %cmp57.i.i = icmp sgt i64 %163, %165
  %conv59.i.i = zext i1 %cmp57.i.i to i64
  store i64 %conv59.i.i, ptr %arrayidx246.i, align 8
  br label %compute_integers.exit.i

sw.bb60.i.i:
  %cmp61.i.i = icmp sge i64 %163, %165
  %conv63.i.i = zext i1 %cmp61.i.i to i64
  store i64 %conv63.i.i, ptr %arrayidx246.i, align 8
  br label %compute_integers.exit.i

sw.bb64.i.i:
  %cmp65.i.i = icmp eq i64 %163, %165
  %conv67.i.i = zext i1 %cmp65.i.i to i64
  store i64 %conv67.i.i, ptr %arrayidx246.i, align 8
  br label %compute_integers.exit.i

sw.bb68.i.i:
  %cmp69.i.i = icmp ne i64 %163, %165
  %conv71.i.i = zext i1 %cmp69.i.i to i64
  store i64 %conv71.i.i, ptr %arrayidx246.i, align 8
  br label %compute_integers.exit.i

compute_integers.exit.i:
  %retval.0.i447.i = phi i32 [ 0, %cond.false45.i.i ], [ %cond.i459.i, %sw.bb.i458.i ], [ %cond2.i.i, %sw.bb1.i457.i ], [ %cond4.i.i, %sw.bb3.i456.i ], [ 0, %sw.bb68.i.i ], [ 3, %sw.bb5.i451.i ], [ %180, %land.rhs.i.i ], [ 3, %sw.bb11.i448.i ], [ 0, %if.end33.i.i ], [ %cond39.i.i, %sw.bb37.i.i ], [ 6, %if.end15.i.i ], [ 0, %sw.bb48.i.i ], [ 0, %sw.bb52.i.i ], [ 0, %sw.bb56.i.i ], [ 0, %sw.bb60.i.i ], [ 0, %sw.bb64.i.i ], [ 6, %if.end.i.i ], [ %cond39.i.i.i, %cond.true43.i.i ], [ 6, %sw.bb236.i ]
  %add.ptr248.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 40
  br label %sw.epilog.i

sw.default.i:
  %arrayidx249.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %188 = load i64, ptr %arrayidx249.i, align 8
  %idxprom250.i = trunc i64 %188 to i32
  %arrayidx251.i = getelementptr inbounds %union.number, ptr %3, i32 %idxprom250.i
  %189 = load i64, ptr %arrayidx251.i, align 8
  %cmp252.not.i = icmp eq i64 %189, 0
  br i1 %cmp252.not.i, label %cond.false.i, label %cond.true.i

cond.true.i:
  %add.ptr254.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 24
  br label %cleanup.i

cond.false.i:
  %arrayidx255.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 16
  %190 = load i64, ptr %arrayidx255.i, align 8
  %idx.ext256.i = trunc i64 %190 to i32
  %add.ptr257.i = getelementptr inbounds i64, ptr %1, i32 %idx.ext256.i
  br label %cleanup.i

sw.epilog.i:
  %next.0.i = phi ptr [ %add.ptr248.i, %compute_integers.exit.i ], [ %add.ptr.i, %if.end.i ], [ %add.ptr105.i, %sw.bb96.i ], [ %add.ptr114.i, %load.exit.i ], [ %add.ptr163.i, %compute_reals.exit.i ], [ %add.ptr235.i, %sw.bb231.i ], [ %add.ptr84.i, %if.end79.i ]
  %status.1.i = phi i32 [ %retval.0.i447.i, %compute_integers.exit.i ], [ %status.0.i, %if.end.i ], [ %call104.i, %sw.bb96.i ], [ %retval.0.i.i, %load.exit.i ], [ %retval.0.i427.i, %compute_reals.exit.i ], [ %call234.i, %sw.bb231.i ], [ %call69.i, %if.end79.i ]
  %cmp259.not.i = icmp eq i32 %status.1.i, 0
  br i1 %cmp259.not.i, label %cleanup.i, label %if.then

cleanup.i:
  %at.1.i = phi ptr [ %next.0.i, %sw.epilog.i ], [ %add.ptr150.i, %sw.bb137.i ], [ %add.ptr257.i, %cond.false.i ], [ %add.ptr254.i, %cond.true.i ], [ %add.ptr230.i, %sw.bb217.i ], [ %add.ptr216.i, %sw.bb203.i ], [ %add.ptr202.i, %sw.bb189.i ], [ %add.ptr188.i, %sw.bb176.i ], [ %add.ptr175.i, %sw.bb164.i ], [ %add.ptr136.i, %sw.bb128.i ], [ %add.ptr127.i, %sw.bb115.i ], [ %add.ptr63.i, %sw.bb50.i ], [ %add.ptr49.i, %sw.bb37.i ], [ %add.ptr36.i, %sw.bb23.i ], [ %add.ptr22.i, %sw.bb12.i ], [ %add.ptr11.i, %sw.bb6.i ], [ %move.0475.i, %for.cond87.preheader.i ], [ %move.0.i, %for.body.i ]
  br label %for.cond.i

if.then:
  %status.1469.i = phi i32 [ %status.1.i, %sw.epilog.i ], [ 6, %sw.bb137.i ]
  %sub.ptr.lhs.cast262.i = ptrtoint ptr %at.0.i to i32
  %sub.ptr.sub264.i = sub i32 %sub.ptr.lhs.cast262.i, %conv
  %sub.ptr.div265.i = ashr exact i32 %sub.ptr.sub264.i, 3
  %site.i = getelementptr inbounds nuw i8, ptr %lane, i32 44
  store i32 %sub.ptr.div265.i, ptr %site.i, align 4
  %atomic-load.i = load atomic i32, ptr %block seq_cst, align 4
  %cmp.i = icmp eq i32 %atomic-load.i, 0
  br i1 %cmp.i, label %if.then.i19, label %cleanup

if.then.i19:
  store atomic i32 %status.1469.i, ptr %block seq_cst, align 4
  %site2.i = getelementptr inbounds nuw i8, ptr %block, i32 4
  store atomic i32 %sub.ptr.div265.i, ptr %site2.i seq_cst, align 4
  br label %cleanup

if.end:
  %arrayidx2.i = getelementptr inbounds nuw i8, ptr %at.0.i, i32 8
  %191 = load i64, ptr %arrayidx2.i, align 8
  %arrayidx11 = getelementptr inbounds nuw i8, ptr %block, i32 144
  store i64 %191, ptr %arrayidx11, align 8
  br label %cleanup

cleanup:
  %retval.0 = phi i32 [ 0, %if.end ], [ %status.1469.i, %if.then ], [ %status.1469.i, %if.then.i19 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %lane) nounwind
  ret i32 %retval.0
}

declare void @llvm.memset.p0.i64(ptr writeonly captures(none), i8, i64, i1 immarg) nounwind

define hidden double @ldexp(double noundef %x, i32 noundef %n) local_unnamed_addr nounwind {
entry:
  %cmp19 = icmp sgt i32 %n, 1000
  br i1 %cmp19, label %while.body, label %while.cond2.preheader

while.cond2.preheader:
  %x.addr.0.lcssa = phi double [ %x, %entry ], [ %mul, %while.body ]
  %n.addr.0.lcssa = phi i32 [ %n, %entry ], [ %spec.store.select, %while.body ]
  %cmp323 = icmp slt i32 %n.addr.0.lcssa, -960
  br i1 %cmp323, label %while.body4, label %while.end9

while.body:
  %n.addr.021 = phi i32 [ %spec.store.select, %while.body ], [ %n, %entry ]
  %x.addr.020 = phi double [ %mul, %while.body ], [ %x, %entry ]
  %mul = fmul double %x.addr.020, 0x7E70000000000000
  %0 = tail call i32 @llvm.umin.i32(i32 %n.addr.021, i32 4000)
  %spec.store.select = add nsw i32 %0, -1000
  %cmp = icmp ugt i32 %n.addr.021, 2000
  br i1 %cmp, label %while.body, label %while.cond2.preheader

while.body4:
  %n.addr.125 = phi i32 [ %spec.store.select12, %while.body4 ], [ %n.addr.0.lcssa, %while.cond2.preheader ]
  %x.addr.124 = phi double [ %mul5, %while.body4 ], [ %x.addr.0.lcssa, %while.cond2.preheader ]
  %mul5 = fmul double %x.addr.124, 0x3F0000000000000
  %1 = tail call i32 @llvm.umax.i32(i32 %n.addr.125, i32 -3960)
  %spec.store.select12 = add nuw nsw i32 %1, 960
  %cmp3 = icmp ult i32 %n.addr.125, -1920
  br i1 %cmp3, label %while.body4, label %while.end9

while.end9:
  %x.addr.1.lcssa = phi double [ %x.addr.0.lcssa, %while.cond2.preheader ], [ %mul5, %while.body4 ]
  %n.addr.1.lcssa = phi i32 [ %n.addr.0.lcssa, %while.cond2.preheader ], [ %spec.store.select12, %while.body4 ]
  %add10 = add nsw i32 %n.addr.1.lcssa, 1023
  %conv = zext nneg i32 %add10 to i64
  %shl = shl i64 %conv, 52
  %2 = bitcast i64 %shl to double
  %mul11 = fmul double %x.addr.1.lcssa, %2
  ret double %mul11
}

define hidden double @exp(double noundef %x) local_unnamed_addr nounwind {
entry:
  %0 = fcmp uno double %x, 0.000000e+00
  br i1 %0, label %cond.end, label %cond.false

cond.false:
  %cmp.i = fcmp ogt double %x, 7.100000e+02
  br i1 %cmp.i, label %cond.end, label %if.end.i

if.end.i:
  %cmp1.i = fcmp olt double %x, -7.460000e+02
  br i1 %cmp1.i, label %cond.end, label %if.end3.i

if.end3.i:
  %mul.i.i = fmul double %x, 0x3FF71547652B82FE
  %add.i.i = fadd double %mul.i.i, 0x4338000000000000
  %sub.i.i = fadd double %add.i.i, 0xC338000000000000
  %mul1.i.i = fmul double %sub.i.i, 0x3FE62E42FEE00000
  %sub2.i.i = fsub double %x, %mul1.i.i
  %mul3.i.i = fmul double %sub.i.i, 0x3DEA39EF35793C76
  %sub4.i.i = fsub double %sub2.i.i, %mul3.i.i
  br label %for.body.i.i.i

for.body.i.i.i:
  %k.010.i.i.i = phi i32 [ %dec.i.i.i, %for.body.i.i.i ], [ 10, %if.end3.i ]
  %value.09.i.i.i = phi double [ %add.i.i.i, %for.body.i.i.i ], [ 0x3DE6124613A86D09, %if.end3.i ]
  %mul.i.i.i = fmul double %sub4.i.i, %value.09.i.i.i
  %arrayidx2.i.i.i = getelementptr inbounds nuw double, ptr @EXP, i32 %k.010.i.i.i
  %1 = load double, ptr %arrayidx2.i.i.i, align 8
  %add.i.i.i = fadd double %mul.i.i.i, %1
  %dec.i.i.i = add nsw i32 %k.010.i.i.i, -1
  %cmp.not.i.i.i = icmp eq i32 %k.010.i.i.i, 0
  br i1 %cmp.not.i.i.i, label %exp_within.exit.i, label %for.body.i.i.i

exp_within.exit.i:
  %mul8.i.i = fmul double %sub4.i.i, %sub4.i.i
  %sub5.i.i = fsub double %sub2.i.i, %sub4.i.i
  %sub6.i.i = fsub double %sub5.i.i, %mul3.i.i
  %add7.i.i = fadd double %sub6.i.i, 0.000000e+00
  %mul9.i.i = fmul double %mul8.i.i, %add.i.i.i
  %add.i41.i.i = fadd double %sub4.i.i, 1.000000e+00
  %sub.i.i.i = fadd double %add.i41.i.i, -1.000000e+00
  %sub1.i.i.i = fsub double %sub4.i.i, %sub.i.i.i
  %add12.i.i = fadd double %add.i41.i.i, %mul9.i.i
  %mul13.i.i = fmul double %add7.i.i, %add12.i.i
  %add14.i.i = fadd double %mul9.i.i, %mul13.i.i
  %add15.i.i = fadd double %sub1.i.i.i, %add14.i.i
  %add16.i.i = fadd double %add.i41.i.i, %add15.i.i
  %conv.i.i = fptosi double %sub.i.i to i32
  %div.i.i = sdiv i32 %conv.i.i, 2
  %add17.i.i = add nsw i32 %div.i.i, 1023
  %conv18.i.i = zext i32 %add17.i.i to i64
  %shl.i.i = shl i64 %conv18.i.i, 52
  %2 = bitcast i64 %shl.i.i to double
  %mul20.i.i = fmul double %add16.i.i, %2
  %add21.i.i = add nsw i32 %conv.i.i, 1023
  %sub22.i.i = sub i32 %add21.i.i, %div.i.i
  %conv23.i.i = zext i32 %sub22.i.i to i64
  %shl24.i.i = shl i64 %conv23.i.i, 52
  %3 = bitcast i64 %shl24.i.i to double
  %mul26.i.i = fmul double %mul20.i.i, %3
  br label %cond.end

cond.end:
  %cond = phi double [ %x, %entry ], [ %mul26.i.i, %exp_within.exit.i ], [ 0x7FF0000000000000, %cond.false ], [ 0.000000e+00, %if.end.i ]
  ret double %cond
}

declare i1 @llvm.is.fpclass.f64(double, i32 immarg) nounwind

define internal fastcc double @exp_pair(double noundef %x, double noundef %low) unnamed_addr nounwind {
entry:
  %cmp = fcmp ogt double %x, 7.100000e+02
  br i1 %cmp, label %return, label %if.end

if.end:
  %cmp1 = fcmp olt double %x, -7.460000e+02
  br i1 %cmp1, label %return, label %if.end3

if.end3:
  %mul.i = fmul double %x, 0x3FF71547652B82FE
  %add.i = fadd double %mul.i, 0x4338000000000000
  %sub.i = fadd double %add.i, 0xC338000000000000
  %mul1.i = fmul double %sub.i, 0x3FE62E42FEE00000
  %sub2.i = fsub double %x, %mul1.i
  %mul3.i = fmul double %sub.i, 0x3DEA39EF35793C76
  %sub4.i = fsub double %sub2.i, %mul3.i
  br label %for.body.i.i

for.body.i.i:
  %k.010.i.i = phi i32 [ %dec.i.i, %for.body.i.i ], [ 10, %if.end3 ]
  %value.09.i.i = phi double [ %add.i.i, %for.body.i.i ], [ 0x3DE6124613A86D09, %if.end3 ]
  %mul.i.i = fmul double %sub4.i, %value.09.i.i
  %arrayidx2.i.i = getelementptr inbounds nuw double, ptr @EXP, i32 %k.010.i.i
  %0 = load double, ptr %arrayidx2.i.i, align 8
  %add.i.i = fadd double %mul.i.i, %0
  %dec.i.i = add nsw i32 %k.010.i.i, -1
  %cmp.not.i.i = icmp eq i32 %k.010.i.i, 0
  br i1 %cmp.not.i.i, label %exp_within.exit, label %for.body.i.i

exp_within.exit:
  %mul8.i = fmul double %sub4.i, %sub4.i
  %sub5.i = fsub double %sub2.i, %sub4.i
  %sub6.i = fsub double %sub5.i, %mul3.i
  %add7.i = fadd double %low, %sub6.i
  %mul9.i = fmul double %mul8.i, %add.i.i
  %add.i41.i = fadd double %sub4.i, 1.000000e+00
  %sub.i.i = fadd double %add.i41.i, -1.000000e+00
  %sub1.i.i = fsub double %sub4.i, %sub.i.i
  %add12.i = fadd double %add.i41.i, %mul9.i
  %mul13.i = fmul double %add7.i, %add12.i
  %add14.i = fadd double %mul9.i, %mul13.i
  %add15.i = fadd double %sub1.i.i, %add14.i
  %add16.i = fadd double %add.i41.i, %add15.i
  %conv.i = fptosi double %sub.i to i32
  %div.i = sdiv i32 %conv.i, 2
  %add17.i = add nsw i32 %div.i, 1023
  %conv18.i = zext i32 %add17.i to i64
  %shl.i = shl i64 %conv18.i, 52
  %1 = bitcast i64 %shl.i to double
  %mul20.i = fmul double %add16.i, %1
  %add21.i = add nsw i32 %conv.i, 1023
  %sub22.i = sub i32 %add21.i, %div.i
  %conv23.i = zext i32 %sub22.i to i64
  %shl24.i = shl i64 %conv23.i, 52
  %2 = bitcast i64 %shl24.i to double
  %mul26.i = fmul double %mul20.i, %2
  br label %return

return:
  %retval.0 = phi double [ %mul26.i, %exp_within.exit ], [ 0x7FF0000000000000, %entry ], [ 0.000000e+00, %if.end ]
  ret double %retval.0
}

define hidden double @exp2(double noundef %x) local_unnamed_addr nounwind {
entry:
  %0 = fcmp uno double %x, 0.000000e+00
  br i1 %0, label %return, label %if.end

if.end:
  %cmp = fcmp ogt double %x, 1.024000e+03
  br i1 %cmp, label %return, label %if.end2

if.end2:
  %cmp3 = fcmp olt double %x, -1.076000e+03
  br i1 %cmp3, label %return, label %if.end5

if.end5:
  %1 = tail call double @llvm.nearbyint.f64(double %x)
  %sub = fsub double %x, %1
  %mul.i = fmul double %sub, 0x3FE62E42FEFA39EF
  %mul.i27 = fmul double %mul.i, 0x3FF71547652B82FE
  %add.i28 = fadd double %mul.i27, 0x4338000000000000
  %sub.i29 = fadd double %add.i28, 0xC338000000000000
  %mul1.i = fmul double %sub.i29, 0x3FE62E42FEE00000
  %sub2.i = fsub double %mul.i, %mul1.i
  %mul3.i30 = fmul double %sub.i29, 0x3DEA39EF35793C76
  %sub4.i = fsub double %sub2.i, %mul3.i30
  br label %for.body.i.i

for.body.i.i:
  %k.010.i.i = phi i32 [ %dec.i.i, %for.body.i.i ], [ 10, %if.end5 ]
  %value.09.i.i = phi double [ %add.i.i, %for.body.i.i ], [ 0x3DE6124613A86D09, %if.end5 ]
  %mul.i.i31 = fmul double %sub4.i, %value.09.i.i
  %arrayidx2.i.i = getelementptr inbounds nuw double, ptr @EXP, i32 %k.010.i.i
  %2 = load double, ptr %arrayidx2.i.i, align 8
  %add.i.i = fadd double %mul.i.i31, %2
  %dec.i.i = add nsw i32 %k.010.i.i, -1
  %cmp.not.i.i = icmp eq i32 %k.010.i.i, 0
  br i1 %cmp.not.i.i, label %exp_within.exit, label %for.body.i.i

exp_within.exit:
  %mul.i.i = fmul double %sub, 0x41A0000002000000
  %sub.i.i = fsub double %mul.i.i, %sub
  %sub1.i.i = fsub double %mul.i.i, %sub.i.i
  %sub3.i.i = fsub double %sub, %sub1.i.i
  %mul3.i = fmul double %sub1.i.i, 0x3FE62E4300000000
  %sub.i = fsub double %mul3.i, %mul.i
  %mul6.i = fmul double %sub1.i.i, 0x3E205C6110000000
  %3 = fsub double %sub.i, %mul6.i
  %mul9.i = fmul double %sub3.i.i, 0x3FE62E4300000000
  %add10.i = fadd double %mul9.i, %3
  %mul13.i = fmul double %sub3.i.i, 0x3E205C6110000000
  %4 = fsub double %add10.i, %mul13.i
  %mul = fmul double %sub, 0x3C7ABC9E3B39803F
  %add = fadd double %mul, %4
  %mul8.i = fmul double %sub4.i, %sub4.i
  %sub5.i = fsub double %sub2.i, %sub4.i
  %sub6.i = fsub double %sub5.i, %mul3.i30
  %add7.i = fadd double %add, %sub6.i
  %mul9.i32 = fmul double %mul8.i, %add.i.i
  %add.i41.i = fadd double %sub4.i, 1.000000e+00
  %sub.i.i33 = fadd double %add.i41.i, -1.000000e+00
  %sub1.i.i34 = fsub double %sub4.i, %sub.i.i33
  %add12.i = fadd double %add.i41.i, %mul9.i32
  %mul13.i35 = fmul double %add7.i, %add12.i
  %add14.i36 = fadd double %mul9.i32, %mul13.i35
  %add15.i = fadd double %sub1.i.i34, %add14.i36
  %add16.i = fadd double %add.i41.i, %add15.i
  %conv.i = fptosi double %sub.i29 to i32
  %div.i = sdiv i32 %conv.i, 2
  %add17.i = add nsw i32 %div.i, 1023
  %conv18.i = zext i32 %add17.i to i64
  %shl.i = shl i64 %conv18.i, 52
  %5 = bitcast i64 %shl.i to double
  %mul20.i = fmul double %add16.i, %5
  %add21.i = add nsw i32 %conv.i, 1023
  %sub22.i = sub i32 %add21.i, %div.i
  %conv23.i = zext i32 %sub22.i to i64
  %shl24.i = shl i64 %conv23.i, 52
  %6 = bitcast i64 %shl24.i to double
  %mul26.i = fmul double %mul20.i, %6
  %conv = fptosi double %1 to i32
  %div = sdiv i32 %conv, 2
  %add7 = add nsw i32 %div, 1023
  %conv8 = zext i32 %add7 to i64
  %shl = shl i64 %conv8, 52
  %7 = bitcast i64 %shl to double
  %mul10 = fmul double %mul26.i, %7
  %add11 = add nsw i32 %conv, 1023
  %sub12 = sub i32 %add11, %div
  %conv13 = zext i32 %sub12 to i64
  %shl14 = shl i64 %conv13, 52
  %8 = bitcast i64 %shl14 to double
  %mul16 = fmul double %mul10, %8
  br label %return

return:
  %retval.0 = phi double [ %mul16, %exp_within.exit ], [ %x, %entry ], [ 0x7FF0000000000000, %if.end ], [ 0.000000e+00, %if.end2 ]
  ret double %retval.0
}

declare double @llvm.nearbyint.f64(double) nounwind

define hidden double @tanh(double noundef %x) local_unnamed_addr nounwind {
entry:
  %0 = tail call double @llvm.fabs.f64(double %x)
  %cmp = fcmp olt double %0, 0x3E30000000000000
  %1 = fcmp uno double %x, 0.000000e+00
  %or.cond = or i1 %1, %cmp
  br i1 %or.cond, label %cleanup, label %if.end

if.end:
  %cmp1 = fcmp ogt double %0, 2.200000e+01
  br i1 %cmp1, label %if.then2, label %if.end3

if.then2:
  %2 = tail call double @llvm.copysign.f64(double 1.000000e+00, double %x)
  br label %cleanup

if.end3:
  %mul = fmul double %0, 2.000000e+00
  %mul4 = fmul double %mul, 0x3FF71547652B82FE
  %add = fadd double %mul4, 0x4338000000000000
  %sub = fadd double %add, 0xC338000000000000
  %mul5 = fmul double %sub, 0x3FE62E42FEE00000
  %sub6 = fsub double %mul, %mul5
  %mul7 = fmul double %sub, 0x3DEA39EF35793C76
  %sub8 = fsub double %sub6, %mul7
  br label %for.body.i

for.body.i:
  %k.010.i = phi i32 [ %dec.i, %for.body.i ], [ 10, %if.end3 ]
  %value.09.i = phi double [ %add.i, %for.body.i ], [ 0x3DE6124613A86D09, %if.end3 ]
  %mul.i = fmul double %sub8, %value.09.i
  %arrayidx2.i = getelementptr inbounds nuw double, ptr @EXP, i32 %k.010.i
  %3 = load double, ptr %arrayidx2.i, align 8
  %add.i = fadd double %mul.i, %3
  %dec.i = add nsw i32 %k.010.i, -1
  %cmp.not.i = icmp eq i32 %k.010.i, 0
  br i1 %cmp.not.i, label %polynomial.exit, label %for.body.i

polynomial.exit:
  %sub9 = fsub double %sub6, %sub8
  %sub10 = fsub double %sub9, %mul7
  %mul11 = fmul double %sub8, %sub8
  %mul12 = fmul double %mul11, %add.i
  %add13 = fadd double %sub8, 1.000000e+00
  %mul14 = fmul double %add13, %sub10
  %add15 = fadd double %mul14, %mul12
  %add16 = fadd double %sub8, %add15
  %conv = fptosi double %sub to i32
  %add17 = add nsw i32 %conv, 1023
  %conv18 = zext i32 %add17 to i64
  %shl = shl i64 %conv18, 52
  %4 = bitcast i64 %shl to double
  %mul20 = fmul double %add16, %4
  %sub21 = fadd double %4, -1.000000e+00
  %add22 = fadd double %sub21, %mul20
  %add23 = fadd double %add22, 2.000000e+00
  %div = fdiv double %add22, %add23
  %5 = tail call double @llvm.copysign.f64(double %div, double %x)
  br label %cleanup

cleanup:
  %retval.0 = phi double [ %5, %polynomial.exit ], [ %2, %if.then2 ], [ %x, %entry ]
  ret double %retval.0
}

declare double @llvm.fabs.f64(double) nounwind

declare double @llvm.copysign.f64(double, double) nounwind

define hidden double @log(double noundef %x) local_unnamed_addr nounwind {
entry:
  %ref.tmp = alloca %struct.pair, align 8
  %or.cond = fcmp ueq double %x, 0x7FF0000000000000
  br i1 %or.cond, label %return, label %if.end

if.end:
  %cmp1 = fcmp oeq double %x, 0.000000e+00
  br i1 %cmp1, label %return, label %if.end3

if.end3:
  %cmp4 = fcmp olt double %x, 0.000000e+00
  br i1 %cmp4, label %return, label %if.end6

if.end6:
  call void @llvm.lifetime.start.p0(ptr nonnull %ref.tmp) nounwind
  call fastcc void @log_pair(ptr dead_on_unwind writable sret(%struct.pair) align 8 %ref.tmp, double noundef %x)
  %0 = load double, ptr %ref.tmp, align 8
  call void @llvm.lifetime.end.p0(ptr nonnull %ref.tmp) nounwind
  br label %return

return:
  %retval.0 = phi double [ %0, %if.end6 ], [ %x, %entry ], [ 0xFFF0000000000000, %if.end ], [ 0x7FF8000000000000, %if.end3 ]
  ret double %retval.0
}

define internal fastcc void @log_pair(ptr dead_on_unwind noalias nonnull writable writeonly sret(%struct.pair) align 8 captures(none) %agg.result, double noundef %x) unnamed_addr nounwind {
entry:
  %cmp = fcmp olt double %x, 0x10000000000000
  %mul = fmul double %x, 0x4350000000000000
  %x.addr.0 = select i1 %cmp, double %mul, double %x
  %0 = bitcast double %x.addr.0 to i64
  %sub = add i64 %0, -4604544271217802189
  %and = and i64 %sub, 4503599627370495
  %add1 = add nuw nsw i64 %and, 4604544271217802189
  %1 = bitcast i64 %add1 to double
  %sub3 = fadd double %1, -1.000000e+00
  %add.i = fadd double %sub3, 2.000000e+00
  %sub.i = fadd double %add.i, -2.000000e+00
  %2 = fsub double %sub.i, %add.i
  %sub2.i = fadd double %2, 2.000000e+00
  %sub3.i = fsub double %sub3, %sub.i
  %add4.i = fadd double %sub3.i, %sub2.i
  %div.i = fdiv double %sub3, %add.i
  %mul.i.i.i = fmul double %div.i, 0x41A0000002000000
  %sub.i.i.i = fsub double %mul.i.i.i, %div.i
  %sub1.i.i.i = fsub double %mul.i.i.i, %sub.i.i.i
  %sub3.i.i.i = fsub double %div.i, %sub1.i.i.i
  %mul.i18.i.i = fmul double %add.i, 0x41A0000002000000
  %sub.i19.i.i = fsub double %mul.i18.i.i, %add.i
  %sub1.i20.i.i = fsub double %mul.i18.i.i, %sub.i19.i.i
  %sub3.i22.i.i = fsub double %add.i, %sub1.i20.i.i
  %mul.i.i = fmul double %add.i, %div.i
  %mul3.i.i = fmul double %sub1.i20.i.i, %sub1.i.i.i
  %sub.i.i = fsub double %mul3.i.i, %mul.i.i
  %mul6.i.i = fmul double %sub1.i.i.i, %sub3.i22.i.i
  %add.i.i = fadd double %mul6.i.i, %sub.i.i
  %mul9.i.i = fmul double %sub1.i20.i.i, %sub3.i.i.i
  %add10.i.i = fadd double %mul9.i.i, %add.i.i
  %mul13.i.i = fmul double %sub3.i22.i.i, %sub3.i.i.i
  %add14.i.i = fadd double %mul13.i.i, %add10.i.i
  %sub.i44 = fsub double %sub3, %mul.i.i
  %sub5.i = fsub double %sub.i44, %add14.i.i
  %mul.i = fmul double %div.i, %add4.i
  %sub8.i = fsub double 0.000000e+00, %mul.i
  %add.i45 = fadd double %sub8.i, %sub5.i
  %div12.i = fdiv double %add.i45, %add.i
  %mul.i.i56 = fmul double %div.i, %div.i
  %mul3.i.i57 = fmul double %sub1.i.i.i, %sub1.i.i.i
  %sub.i.i58 = fsub double %mul3.i.i57, %mul.i.i56
  %mul6.i.i59 = fmul double %sub1.i.i.i, %sub3.i.i.i
  %add.i.i60 = fadd double %sub.i.i58, %mul6.i.i59
  %add10.i.i62 = fadd double %mul6.i.i59, %add.i.i60
  %mul13.i.i63 = fmul double %sub3.i.i.i, %sub3.i.i.i
  %add14.i.i64 = fadd double %mul13.i.i63, %add10.i.i62
  %mul.i65 = fmul double %div.i, %div12.i
  %add.i66 = fadd double %mul.i65, %mul.i65
  %add8.i = fadd double %add14.i.i64, %add.i66
  %add.i9.i = fadd double %mul.i.i56, %add8.i
  br label %for.body.i

for.body.i:
  %k.010.i = phi i32 [ %dec.i, %for.body.i ], [ 10, %entry ]
  %value.09.i = phi double [ %add.i126, %for.body.i ], [ 0x3FB2F684BDA12F68, %entry ]
  %mul.i125 = fmul double %add.i9.i, %value.09.i
  %arrayidx2.i = getelementptr inbounds nuw double, ptr @LOG, i32 %k.010.i
  %3 = load double, ptr %arrayidx2.i, align 8
  %add.i126 = fadd double %mul.i125, %3
  %dec.i = add nsw i32 %k.010.i, -1
  %cmp.not.i = icmp eq i32 %k.010.i, 0
  br i1 %cmp.not.i, label %polynomial.exit, label %for.body.i

polynomial.exit:
  %mul.i.i77 = fmul double %div.i, %add.i9.i
  %mul12 = fmul double %add.i9.i, %mul.i.i77
  %4 = fsub double %mul.i.i56, %add.i9.i
  %sub1.i.i = fadd double %add8.i, %4
  %mul.i87 = fmul double %div.i, %sub1.i.i
  %mul7.i89 = fmul double %div12.i, %add.i9.i
  %add.i90 = fadd double %mul7.i89, %mul.i87
  %mul.i18.i.i73 = fmul double %add.i9.i, 0x41A0000002000000
  %sub.i19.i.i74 = fsub double %mul.i18.i.i73, %add.i9.i
  %sub1.i20.i.i75 = fsub double %mul.i18.i.i73, %sub.i19.i.i74
  %sub3.i22.i.i76 = fsub double %add.i9.i, %sub1.i20.i.i75
  %mul13.i.i84 = fmul double %sub3.i.i.i, %sub3.i22.i.i76
  %mul9.i.i82 = fmul double %sub3.i.i.i, %sub1.i20.i.i75
  %mul3.i.i78 = fmul double %sub1.i.i.i, %sub1.i20.i.i75
  %sub.i.i79 = fsub double %mul3.i.i78, %mul.i.i77
  %mul6.i.i80 = fmul double %sub1.i.i.i, %sub3.i22.i.i76
  %add.i.i81 = fadd double %sub.i.i79, %mul6.i.i80
  %add10.i.i83 = fadd double %mul9.i.i82, %add.i.i81
  %add14.i.i85 = fadd double %mul13.i.i84, %add10.i.i83
  %add8.i91 = fadd double %add.i90, %add14.i.i85
  %add.i9.i92 = fadd double %mul.i.i77, %add8.i91
  %mul.i116 = fmul double %add.i9.i92, 0x3C85555555555555
  %sub.i11.i94 = fsub double %add.i9.i92, %mul.i.i77
  %sub1.i.i95 = fsub double %add8.i91, %sub.i11.i94
  %mul7.i118 = fmul double %sub1.i.i95, 0x3FE5555555555555
  %add.i119 = fadd double %mul.i116, %mul7.i118
  %mul.i.i.i98 = fmul double %add.i9.i92, 0x41A0000002000000
  %sub.i.i.i99 = fsub double %mul.i.i.i98, %add.i9.i92
  %sub1.i.i.i100 = fsub double %mul.i.i.i98, %sub.i.i.i99
  %sub3.i.i.i101 = fsub double %add.i9.i92, %sub1.i.i.i100
  %mul13.i.i113 = fmul double %sub3.i.i.i101, 0x3E35555558000000
  %mul9.i.i111 = fmul double %sub3.i.i.i101, 0x3FE5555558000000
  %mul3.i.i107 = fmul double %sub1.i.i.i100, 0x3FE5555558000000
  %mul.i.i106 = fmul double %add.i9.i92, 0x3FE5555555555555
  %sub.i.i108 = fsub double %mul3.i.i107, %mul.i.i106
  %mul6.i.i109 = fmul double %sub1.i.i.i100, 0x3E35555558000000
  %5 = fsub double %sub.i.i108, %mul6.i.i109
  %add10.i.i112 = fadd double %mul9.i.i111, %5
  %6 = fsub double %add10.i.i112, %mul13.i.i113
  %add8.i120 = fadd double %add.i119, %6
  %add.i9.i121 = fadd double %mul.i.i106, %add8.i120
  %sub.i11.i123 = fsub double %add.i9.i121, %mul.i.i106
  %sub1.i.i124 = fsub double %add8.i120, %sub.i11.i123
  %exponent.0 = select i1 %cmp, i32 -54, i32 0
  %shr = ashr i64 %sub, 52
  %conv = trunc nsw i64 %shr to i32
  %add = add nsw i32 %exponent.0, %conv
  %mul15 = fmul double %mul12, %add.i126
  %conv16 = sitofp i32 %add to double
  %mul17 = fmul double %conv16, 0x3FE62E42FEE00000
  %mul19 = fmul double %div.i, 2.000000e+00
  %add.i127 = fadd double %mul17, %mul19
  %sub.i128 = fsub double %add.i127, %mul17
  %sub1.i129 = fsub double %add.i127, %sub.i128
  %sub2.i131 = fsub double %mul17, %sub1.i129
  %sub3.i132 = fsub double %mul19, %sub.i128
  %add4.i133 = fadd double %sub3.i132, %sub2.i131
  %add.i134 = fadd double %add.i127, %add.i9.i121
  %sub.i135 = fsub double %add.i134, %add.i127
  %sub1.i136 = fsub double %add.i134, %sub.i135
  %sub2.i138 = fsub double %add.i127, %sub1.i136
  %sub3.i139 = fsub double %add.i9.i121, %sub.i135
  %add4.i140 = fadd double %sub3.i139, %sub2.i138
  %add25 = fadd double %add4.i133, %add4.i140
  %mul27 = fmul double %conv16, 0x3DEA39EF35793C76
  %mul29 = fmul double %div12.i, 2.000000e+00
  %add31 = fadd double %sub1.i.i124, %mul15
  %add32 = fadd double %mul29, %add31
  %add33 = fadd double %mul27, %add32
  %add34 = fadd double %add25, %add33
  %add.i141 = fadd double %add.i134, %add34
  store double %add.i141, ptr %agg.result, align 8
  %low.i142 = getelementptr inbounds nuw i8, ptr %agg.result, i32 8
  %sub.i143 = fsub double %add.i141, %add.i134
  %sub1.i144 = fsub double %add34, %sub.i143
  store double %sub1.i144, ptr %low.i142, align 8
  ret void
}

define hidden double @pow(double noundef %x, double noundef %y) local_unnamed_addr nounwind {
entry:
  %logarithm = alloca %struct.pair, align 8
  %cmp = fcmp oeq double %y, 0.000000e+00
  %cmp1 = fcmp oeq double %x, 1.000000e+00
  %or.cond = or i1 %cmp1, %cmp
  br i1 %or.cond, label %return, label %if.end

if.end:
  %or.cond113 = fcmp uno double %x, %y
  br i1 %or.cond113, label %if.then3, label %if.end4

if.then3:
  %add = fadd double %x, %y
  br label %return

if.end4:
  %0 = tail call double @llvm.fabs.f64(double %x)
  %1 = tail call double @llvm.floor.f64(double %y)
  %cmp5 = fcmp oeq double %1, %y
  %2 = tail call double @llvm.fabs.f64(double %y)
  %3 = fcmp oeq double %2, 0x7FF0000000000000
  br i1 %3, label %if.then6, label %if.end15

if.then6:
  %cmp7 = fcmp oeq double %0, 1.000000e+00
  %cmp8 = fcmp ogt double %0, 1.000000e+00
  %4 = fcmp ule double %y, 0.000000e+00
  %cmp11 = xor i1 %cmp8, %4
  %5 = select i1 %cmp11, double 0x7FF0000000000000, double 0.000000e+00
  %cond13 = select i1 %cmp7, double 1.000000e+00, double %5
  br label %return

if.end15:
  %6 = bitcast double %x to i64
  %7 = icmp slt i64 %6, 0
  %or.cond78 = and i1 %7, %cmp5
  br i1 %or.cond78, label %land.rhs, label %land.end

land.rhs:
  %cmp.i = fcmp olt double %2, 0x4340000000000000
  %conv.i = fptosi double %y to i64
  %and.i = and i64 %conv.i, 1
  %tobool.i = icmp ne i64 %and.i, 0
  %8 = select i1 %cmp.i, i1 %tobool.i, i1 false
  %9 = select i1 %8, double -1.000000e+00, double 1.000000e+00
  br label %land.end

land.end:
  %cond18 = phi double [ %9, %land.rhs ], [ 1.000000e+00, %if.end15 ]
  %cmp20 = fcmp oeq double %x, 0.000000e+00
  br i1 %cmp20, label %if.then22, label %if.end30

if.then22:
  %cmp23 = fcmp olt double %y, 0.000000e+00
  %mul = fmul double %cond18, 0x7FF0000000000000
  %mul27 = tail call double @llvm.copysign.f64(double 0.000000e+00, double %cond18)
  %cond29 = select i1 %cmp23, double %mul, double %mul27
  br label %return

if.end30:
  %10 = fcmp oeq double %0, 0x7FF0000000000000
  br i1 %10, label %if.then31, label %if.end40

if.then31:
  %cmp32 = fcmp olt double %y, 0.000000e+00
  %mul35 = tail call double @llvm.copysign.f64(double 0.000000e+00, double %cond18)
  %mul37 = fmul double %cond18, 0x7FF0000000000000
  %cond39 = select i1 %cmp32, double %mul35, double %mul37
  br label %return

if.end40:
  %cmp41 = fcmp uge double %x, 0.000000e+00
  %or.cond79 = or i1 %cmp41, %cmp5
  br i1 %or.cond79, label %if.end46, label %return

if.end46:
  %cmp47 = fcmp oeq double %0, 1.000000e+00
  br i1 %cmp47, label %return, label %if.end50

if.end50:
  call void @llvm.lifetime.start.p0(ptr nonnull %logarithm) nounwind
  call fastcc void @log_pair(ptr dead_on_unwind writable sret(%struct.pair) align 8 %logarithm, double noundef %0)
  %11 = load double, ptr %logarithm, align 8
  %mul51 = fmul double %y, %11
  %12 = tail call double @llvm.fabs.f64(double %mul51)
  %or.cond80 = fcmp ogt double %12, 1.000000e+03
  br i1 %or.cond80, label %if.then57, label %if.end66

if.then57:
  %cmp58 = fcmp ogt double %mul51, 0.000000e+00
  %mul61 = fmul double %cond18, 0x7FF0000000000000
  %mul63 = tail call double @llvm.copysign.f64(double 0.000000e+00, double %cond18)
  %cond65 = select i1 %cmp58, double %mul61, double %mul63
  br label %cleanup

if.end66:
  %mul.i.i = fmul double %y, 0x41A0000002000000
  %sub.i.i = fsub double %mul.i.i, %y
  %sub1.i.i = fsub double %mul.i.i, %sub.i.i
  %sub3.i.i = fsub double %y, %sub1.i.i
  %mul.i18.i = fmul double %11, 0x41A0000002000000
  %sub.i19.i = fsub double %mul.i18.i, %11
  %sub1.i20.i = fsub double %mul.i18.i, %sub.i19.i
  %sub3.i22.i = fsub double %11, %sub1.i20.i
  %mul3.i = fmul double %sub1.i.i, %sub1.i20.i
  %sub.i = fsub double %mul3.i, %mul51
  %mul6.i = fmul double %sub1.i.i, %sub3.i22.i
  %add.i = fadd double %sub.i, %mul6.i
  %mul9.i = fmul double %sub3.i.i, %sub1.i20.i
  %add10.i = fadd double %mul9.i, %add.i
  %mul13.i = fmul double %sub3.i.i, %sub3.i22.i
  %add14.i = fadd double %mul13.i, %add10.i
  %low69 = getelementptr inbounds nuw i8, ptr %logarithm, i32 8
  %13 = load double, ptr %low69, align 8
  %mul70 = fmul double %y, %13
  %add71 = fadd double %add14.i, %mul70
  %call72 = tail call fastcc double @exp_pair(double noundef %mul51, double noundef %add71)
  %mul73 = fmul double %cond18, %call72
  br label %cleanup

cleanup:
  %retval.0 = phi double [ %cond65, %if.then57 ], [ %mul73, %if.end66 ]
  call void @llvm.lifetime.end.p0(ptr nonnull %logarithm) nounwind
  br label %return

return:
  %retval.3 = phi double [ 1.000000e+00, %entry ], [ %add, %if.then3 ], [ %cond13, %if.then6 ], [ %cond29, %if.then22 ], [ %cond39, %if.then31 ], [ 0x7FF8000000000000, %if.end40 ], [ %retval.0, %cleanup ], [ %cond18, %if.end46 ]
  ret double %retval.3
}

declare double @llvm.floor.f64(double) nounwind

define hidden double @sin(double noundef %x) local_unnamed_addr nounwind {
entry:
  %0 = tail call double @llvm.fabs.f64(double %x)
  %cmp = fcmp olt double %0, 0x3E40000000000000
  br i1 %cmp, label %cond.end, label %cond.false

cond.false:
  %call = tail call fastcc double @wave(double noundef %x, i32 noundef 0)
  br label %cond.end

cond.end:
  %cond = phi double [ %call, %cond.false ], [ %x, %entry ]
  ret double %cond
}

define internal fastcc double @wave(double noundef %x, i32 noundef range(i32 0, 2) %ahead) unnamed_addr nounwind {
entry:
  %rest = alloca %struct.pair, align 8
  %0 = tail call double @llvm.fabs.f64(double %x)
  %1 = fcmp ueq double %0, 0x7FF0000000000000
  br i1 %1, label %return, label %if.end

if.end:
  call void @llvm.lifetime.start.p0(ptr nonnull %rest) nounwind
  %call = call fastcc i32 @reduced(double noundef %x, ptr noundef %rest)
  %add = add nsw i32 %call, %ahead
  %and = and i32 %add, 1
  %tobool.not = icmp eq i32 %and, 0
  %rest11.sroa.0.0.copyload = load double, ptr %rest, align 8
  %rest11.sroa.4.0.rest.sroa_idx = getelementptr inbounds nuw i8, ptr %rest, i32 8
  %rest11.sroa.4.0.copyload = load double, ptr %rest11.sroa.4.0.rest.sroa_idx, align 8
  %mul.i12 = fmul double %rest11.sroa.0.0.copyload, %rest11.sroa.0.0.copyload
  br i1 %tobool.not, label %for.body.i.i13, label %for.body.i.i

for.body.i.i:
  %k.010.i.i = phi i32 [ %dec.i.i, %for.body.i.i ], [ 4, %if.end ]
  %value.09.i.i = phi double [ %add.i21.i, %for.body.i.i ], [ 0xBDA8FA465E50A7A6, %if.end ]
  %mul.i20.i = fmul double %mul.i12, %value.09.i.i
  %arrayidx2.i.i = getelementptr inbounds nuw double, ptr @COS, i32 %k.010.i.i
  %2 = load double, ptr %arrayidx2.i.i, align 8
  %add.i21.i = fadd double %mul.i20.i, %2
  %dec.i.i = add nsw i32 %k.010.i.i, -1
  %cmp.not.i.i = icmp eq i32 %k.010.i.i, 0
  br i1 %cmp.not.i.i, label %cosine_of.exit, label %for.body.i.i

cosine_of.exit:
  %mul.i = fmul double %mul.i12, -5.000000e-01
  %add.i17.i = fadd double %mul.i, 1.000000e+00
  %mul13.i = fmul double %mul.i12, %mul.i12
  %sub.i19.i = fadd double %add.i17.i, -1.000000e+00
  %sub1.i.i = fsub double %mul.i, %sub.i19.i
  %mul.i.i.i = fmul double %rest11.sroa.0.0.copyload, 0x41A0000002000000
  %sub.i.i.i = fsub double %mul.i.i.i, %rest11.sroa.0.0.copyload
  %sub1.i.i.i = fsub double %mul.i.i.i, %sub.i.i.i
  %sub3.i.i.i = fsub double %rest11.sroa.0.0.copyload, %sub1.i.i.i
  %mul13.i.i = fmul double %sub3.i.i.i, %sub3.i.i.i
  %mul6.i.i = fmul double %sub1.i.i.i, %sub3.i.i.i
  %mul3.i.i = fmul double %sub1.i.i.i, %sub1.i.i.i
  %sub.i.i = fsub double %mul3.i.i, %mul.i12
  %add.i.i = fadd double %sub.i.i, %mul6.i.i
  %add10.i.i = fadd double %mul6.i.i, %add.i.i
  %add14.i.i = fadd double %mul13.i.i, %add10.i.i
  %mul7.i = fmul double %add14.i.i, 5.000000e-01
  %mul10.i = fmul double %rest11.sroa.0.0.copyload, %rest11.sroa.4.0.copyload
  %add.i = fadd double %mul10.i, %mul7.i
  %sub.i = fsub double %sub1.i.i, %add.i
  %mul15.i = fmul double %mul13.i, %add.i21.i
  %add16.i = fadd double %sub.i, %mul15.i
  br label %cond.end

for.body.i.i13:
  %k.010.i.i14 = phi i32 [ %dec.i.i19, %for.body.i.i13 ], [ 4, %if.end ]
  %value.09.i.i15 = phi double [ %add.i.i18, %for.body.i.i13 ], [ 0x3DE5D8FA31AD7FF9, %if.end ]
  %mul.i.i16 = fmul double %mul.i12, %value.09.i.i15
  %arrayidx2.i.i17 = getelementptr inbounds nuw double, ptr @SIN, i32 %k.010.i.i14
  %3 = load double, ptr %arrayidx2.i.i17, align 8
  %add.i.i18 = fadd double %mul.i.i16, %3
  %dec.i.i19 = add nsw i32 %k.010.i.i14, -1
  %cmp.not.i.i20 = icmp eq i32 %k.010.i.i14, 0
  br i1 %cmp.not.i.i20, label %sine_of.exit, label %for.body.i.i13

sine_of.exit:
  %mul5.i = fmul double %rest11.sroa.0.0.copyload, %mul.i12
  %mul6.i = fmul double %mul5.i, %add.i.i18
  %mul8.i = fmul double %mul.i12, 5.000000e-01
  %sub.i22 = fsub double 1.000000e+00, %mul8.i
  %mul9.i = fmul double %rest11.sroa.4.0.copyload, %sub.i22
  %add.i23 = fadd double %mul9.i, %mul6.i
  br label %cond.end

cond.end:
  %value.sroa.5.0 = phi double [ %add.i23, %sine_of.exit ], [ %add16.i, %cosine_of.exit ]
  %value.sroa.0.0 = phi double [ %rest11.sroa.0.0.copyload, %sine_of.exit ], [ %add.i17.i, %cosine_of.exit ]
  %add1 = fadd double %value.sroa.5.0, %value.sroa.0.0
  %and2 = and i32 %add, 2
  %tobool3.not = icmp eq i32 %and2, 0
  %fneg = fneg double %add1
  %cond = select i1 %tobool3.not, double %add1, double %fneg
  call void @llvm.lifetime.end.p0(ptr nonnull %rest) nounwind
  br label %return

return:
  %retval.0 = phi double [ %cond, %cond.end ], [ 0x7FF8000000000000, %entry ]
  ret double %retval.0
}

define hidden double @cos(double noundef %x) local_unnamed_addr nounwind {
entry:
  %call = tail call fastcc double @wave(double noundef %x, i32 noundef 1)
  ret double %call
}

define hidden double @tan(double noundef %x) local_unnamed_addr nounwind {
entry:
  %rest = alloca %struct.pair, align 8
  %0 = tail call double @llvm.fabs.f64(double %x)
  %cmp = fcmp olt double %0, 0x3E40000000000000
  br i1 %cmp, label %return, label %if.end

if.end:
  %1 = fcmp ueq double %0, 0x7FF0000000000000
  br i1 %1, label %return, label %if.end2

if.end2:
  call void @llvm.lifetime.start.p0(ptr nonnull %rest) nounwind
  %call = call fastcc i32 @reduced(double noundef %x, ptr noundef %rest)
  %rest16.sroa.0.0.copyload = load double, ptr %rest, align 8
  %rest16.sroa.4.0.rest.sroa_idx = getelementptr inbounds nuw i8, ptr %rest, i32 8
  %rest16.sroa.4.0.copyload = load double, ptr %rest16.sroa.4.0.rest.sroa_idx, align 8
  %mul.i = fmul double %rest16.sroa.0.0.copyload, %rest16.sroa.0.0.copyload
  br label %for.body.i.i

for.body.i.i:
  %k.010.i.i = phi i32 [ %dec.i.i, %for.body.i.i ], [ 4, %if.end2 ]
  %value.09.i.i = phi double [ %add.i.i, %for.body.i.i ], [ 0x3DE5D8FA31AD7FF9, %if.end2 ]
  %mul.i.i = fmul double %mul.i, %value.09.i.i
  %arrayidx2.i.i = getelementptr inbounds nuw double, ptr @SIN, i32 %k.010.i.i
  %2 = load double, ptr %arrayidx2.i.i, align 8
  %add.i.i = fadd double %mul.i.i, %2
  %dec.i.i = add nsw i32 %k.010.i.i, -1
  %cmp.not.i.i = icmp eq i32 %k.010.i.i, 0
  br i1 %cmp.not.i.i, label %for.body.i.i20, label %for.body.i.i

for.body.i.i20:
  %k.010.i.i21 = phi i32 [ %dec.i.i24, %for.body.i.i20 ], [ 4, %for.body.i.i ]
  %value.09.i.i22 = phi double [ %add.i21.i, %for.body.i.i20 ], [ 0xBDA8FA465E50A7A6, %for.body.i.i ]
  %mul.i20.i = fmul double %mul.i, %value.09.i.i22
  %arrayidx2.i.i23 = getelementptr inbounds nuw double, ptr @COS, i32 %k.010.i.i21
  %3 = load double, ptr %arrayidx2.i.i23, align 8
  %add.i21.i = fadd double %mul.i20.i, %3
  %dec.i.i24 = add nsw i32 %k.010.i.i21, -1
  %cmp.not.i.i25 = icmp eq i32 %k.010.i.i21, 0
  br i1 %cmp.not.i.i25, label %cosine_of.exit, label %for.body.i.i20

cosine_of.exit:
  %mul5.i = fmul double %rest16.sroa.0.0.copyload, %mul.i
  %mul6.i = fmul double %mul5.i, %add.i.i
  %mul8.i = fmul double %mul.i, 5.000000e-01
  %sub.i = fsub double 1.000000e+00, %mul8.i
  %mul9.i = fmul double %rest16.sroa.4.0.copyload, %sub.i
  %add.i = fadd double %mul9.i, %mul6.i
  %mul.i19 = fmul double %mul.i, -5.000000e-01
  %add.i17.i = fadd double %mul.i19, 1.000000e+00
  %mul13.i = fmul double %mul.i, %mul.i
  %sub.i19.i = fadd double %add.i17.i, -1.000000e+00
  %sub1.i.i = fsub double %mul.i19, %sub.i19.i
  %mul.i.i.i = fmul double %rest16.sroa.0.0.copyload, 0x41A0000002000000
  %sub.i.i.i = fsub double %mul.i.i.i, %rest16.sroa.0.0.copyload
  %sub1.i.i.i = fsub double %mul.i.i.i, %sub.i.i.i
  %sub3.i.i.i = fsub double %rest16.sroa.0.0.copyload, %sub1.i.i.i
  %mul13.i.i = fmul double %sub3.i.i.i, %sub3.i.i.i
  %mul6.i.i = fmul double %sub1.i.i.i, %sub3.i.i.i
  %mul3.i.i = fmul double %sub1.i.i.i, %sub1.i.i.i
  %sub.i.i = fsub double %mul3.i.i, %mul.i
  %add.i.i26 = fadd double %sub.i.i, %mul6.i.i
  %add10.i.i = fadd double %mul6.i.i, %add.i.i26
  %add14.i.i = fadd double %mul13.i.i, %add10.i.i
  %mul7.i = fmul double %add14.i.i, 5.000000e-01
  %mul10.i = fmul double %rest16.sroa.0.0.copyload, %rest16.sroa.4.0.copyload
  %add.i27 = fadd double %mul10.i, %mul7.i
  %sub.i28 = fsub double %sub1.i.i, %add.i27
  %mul15.i = fmul double %mul13.i, %add.i21.i
  %add16.i = fadd double %sub.i28, %mul15.i
  %add.i30 = fadd double %rest16.sroa.0.0.copyload, %add.i
  %sub.i32 = fsub double %add.i30, %rest16.sroa.0.0.copyload
  %sub1.i = fsub double %add.i, %sub.i32
  %add.i33 = fadd double %add.i17.i, %add16.i
  %sub.i35 = fsub double %add.i33, %add.i17.i
  %sub1.i36 = fsub double %add16.i, %sub.i35
  %and = and i32 %call, 1
  %tobool.not = icmp eq i32 %and, 0
  br i1 %tobool.not, label %cond.false, label %cond.true

cond.true:
  %fneg = fneg double %add.i33
  %fneg10 = fneg double %sub1.i36
  %div.i = fdiv double %fneg, %add.i30
  %mul.i.i.i39 = fmul double %div.i, 0x41A0000002000000
  %sub.i.i.i40 = fsub double %mul.i.i.i39, %div.i
  %sub1.i.i.i41 = fsub double %mul.i.i.i39, %sub.i.i.i40
  %sub3.i.i.i42 = fsub double %div.i, %sub1.i.i.i41
  %mul.i18.i.i = fmul double %add.i30, 0x41A0000002000000
  %sub.i19.i.i = fsub double %mul.i18.i.i, %add.i30
  %sub1.i20.i.i = fsub double %mul.i18.i.i, %sub.i19.i.i
  %sub3.i22.i.i = fsub double %add.i30, %sub1.i20.i.i
  %mul.i.i43 = fmul double %add.i30, %div.i
  %mul3.i.i44 = fmul double %sub1.i20.i.i, %sub1.i.i.i41
  %sub.i.i45 = fsub double %mul3.i.i44, %mul.i.i43
  %mul6.i.i46 = fmul double %sub3.i22.i.i, %sub1.i.i.i41
  %add.i.i47 = fadd double %mul6.i.i46, %sub.i.i45
  %mul9.i.i = fmul double %sub1.i20.i.i, %sub3.i.i.i42
  %add10.i.i48 = fadd double %mul9.i.i, %add.i.i47
  %mul13.i.i49 = fmul double %sub3.i22.i.i, %sub3.i.i.i42
  %add14.i.i50 = fadd double %mul13.i.i49, %add10.i.i48
  %sub.i51 = fsub double %fneg, %mul.i.i43
  %sub5.i = fsub double %sub.i51, %add14.i.i50
  %mul.i53 = fmul double %sub1.i, %div.i
  %sub8.i = fsub double %fneg10, %mul.i53
  %add.i54 = fadd double %sub8.i, %sub5.i
  %div12.i = fdiv double %add.i54, %add.i30
  br label %cond.end

cond.false:
  %div.i57 = fdiv double %add.i30, %add.i33
  %mul.i.i.i58 = fmul double %div.i57, 0x41A0000002000000
  %sub.i.i.i59 = fsub double %mul.i.i.i58, %div.i57
  %sub1.i.i.i60 = fsub double %mul.i.i.i58, %sub.i.i.i59
  %sub3.i.i.i61 = fsub double %div.i57, %sub1.i.i.i60
  %mul.i18.i.i62 = fmul double %add.i33, 0x41A0000002000000
  %sub.i19.i.i63 = fsub double %mul.i18.i.i62, %add.i33
  %sub1.i20.i.i64 = fsub double %mul.i18.i.i62, %sub.i19.i.i63
  %sub3.i22.i.i65 = fsub double %add.i33, %sub1.i20.i.i64
  %mul.i.i66 = fmul double %add.i33, %div.i57
  %mul3.i.i67 = fmul double %sub1.i20.i.i64, %sub1.i.i.i60
  %sub.i.i68 = fsub double %mul3.i.i67, %mul.i.i66
  %mul6.i.i69 = fmul double %sub1.i.i.i60, %sub3.i22.i.i65
  %add.i.i70 = fadd double %mul6.i.i69, %sub.i.i68
  %mul9.i.i71 = fmul double %sub1.i20.i.i64, %sub3.i.i.i61
  %add10.i.i72 = fadd double %mul9.i.i71, %add.i.i70
  %mul13.i.i73 = fmul double %sub3.i22.i.i65, %sub3.i.i.i61
  %add14.i.i74 = fadd double %mul13.i.i73, %add10.i.i72
  %sub.i75 = fsub double %add.i30, %mul.i.i66
  %sub5.i76 = fsub double %sub.i75, %add14.i.i74
  %mul.i79 = fmul double %div.i57, %sub1.i36
  %sub8.i80 = fsub double %sub1.i, %mul.i79
  %add.i81 = fadd double %sub8.i80, %sub5.i76
  %div12.i83 = fdiv double %add.i81, %add.i33
  br label %cond.end

cond.end:
  %value.sroa.5.0 = phi double [ %div12.i83, %cond.false ], [ %div12.i, %cond.true ]
  %value.sroa.0.0 = phi double [ %div.i57, %cond.false ], [ %div.i, %cond.true ]
  %add = fadd double %value.sroa.5.0, %value.sroa.0.0
  call void @llvm.lifetime.end.p0(ptr nonnull %rest) nounwind
  br label %return

return:
  %retval.0 = phi double [ %x, %entry ], [ %add, %cond.end ], [ 0x7FF8000000000000, %if.end ]
  ret double %retval.0
}

define internal fastcc i32 @reduced(double noundef %x, ptr noundef nonnull writeonly captures(none) %rest) unnamed_addr nounwind {
entry:
  %turns.i = alloca [6 x i32], align 16
  %0 = tail call double @llvm.fabs.f64(double %x)
  %cmp = fcmp ult double %0, 0x41D0000000000000
  br i1 %cmp, label %if.end6, label %if.then

if.then:
  %1 = bitcast double %0 to i64
  %shr.i = lshr i64 %1, 52
  %conv.i = trunc nuw nsw i64 %shr.i to i16
  %add.i = add nsw i16 %conv.i, -1045
  call void @llvm.lifetime.start.p0(ptr nonnull %turns.i) nounwind
  call void @llvm.memset.p0.i32(ptr noundef nonnull align 16 dereferenceable(24) %turns.i, i8 0, i32 24, i1 false)
  %and.i = lshr i64 %1, 32
  %2 = and i64 %and.i, 1048575
  %conv4.i = or disjoint i64 %2, 1048576
  %div163.i = sdiv i16 %add.i, 32
  %div.sext.i = sext i16 %div163.i to i32
  %3 = mul i16 %div163.i, 32
  %rem164.i.decomposed = sub i16 %add.i, %3
  %rem.sext.i = sext i16 %rem164.i.decomposed to i32
  %4 = getelementptr i32, ptr @TWO_OVER_PI, i32 %div.sext.i
  %tobool.not.i = icmp eq i16 %rem164.i.decomposed, 0
  %sub15.i = sub nsw i32 32, %rem.sext.i
  %5 = and i64 %1, 4294967295
  br label %for.body11.lr.ph.i

for.body11.lr.ph.i:
  %cmp.i = phi i1 [ true, %if.then ], [ false, %for.cond.cleanup10.i ]
  %k.0153.i.sroa.phi.sroa.speculated = phi i64 [ %5, %if.then ], [ %conv4.i, %for.cond.cleanup10.i ]
  %k.0153.i = phi i32 [ 0, %if.then ], [ 1, %for.cond.cleanup10.i ]
  %sub7148.i = sub nuw nsw i32 5, %k.0153.i
  br label %for.body11.i

for.cond.cleanup.i:
  %6 = load i32, ptr %turns.i, align 16
  %shl41.i70 = shl i32 %6, 2
  br label %cond.end50.i

for.cond.cleanup10.i:
  br i1 %cmp.i, label %for.body11.lr.ph.i, label %for.cond.cleanup.i

for.body11.i:
  %sub7152.i = phi i32 [ %sub7148.i, %for.body11.lr.ph.i ], [ %sub7.i, %cond.end.i ]
  %carry.0151.i = phi i64 [ 0, %for.body11.lr.ph.i ], [ %shr29.i, %cond.end.i ]
  %i.0150.i = phi i32 [ 5, %for.body11.lr.ph.i ], [ %dec.i, %cond.end.i ]
  %arrayidx.i = getelementptr i32, ptr %4, i32 %i.0150.i
  %7 = load i32, ptr %arrayidx.i, align 4
  %shl.i = shl i32 %7, %rem.sext.i
  br i1 %tobool.not.i, label %cond.end.i, label %cond.true.i

cond.true.i:
  %arrayidx14.i = getelementptr i8, ptr %arrayidx.i, i32 4
  %8 = load i32, ptr %arrayidx14.i, align 4
  %shr16.i = lshr i32 %8, %sub15.i
  %9 = or disjoint i32 %shr16.i, %shl.i
  br label %cond.end.i

cond.end.i:
  %cond.i = phi i32 [ %9, %cond.true.i ], [ %shl.i, %for.body11.i ]
  %conv18.i = zext i32 %cond.i to i64
  %mul.i = mul nuw i64 %k.0153.i.sroa.phi.sroa.speculated, %conv18.i
  %arrayidx22.i = getelementptr inbounds nuw i32, ptr %turns.i, i32 %sub7152.i
  %10 = load i32, ptr %arrayidx22.i, align 4
  %conv23.i = zext i32 %10 to i64
  %add24.i = add nuw nsw i64 %carry.0151.i, %conv23.i
  %add25.i = add nuw i64 %add24.i, %mul.i
  %conv26.i = trunc i64 %add25.i to i32
  store i32 %conv26.i, ptr %arrayidx22.i, align 4
  %shr29.i = lshr i64 %add25.i, 32
  %dec.i = add nsw i32 %i.0150.i, -1
  %sub7.i = sub nsw i32 %dec.i, %k.0153.i
  %cmp8.i = icmp sgt i32 %sub7.i, -1
  br i1 %cmp8.i, label %for.body11.i, label %for.cond.cleanup10.i

for.cond.cleanup38.i:
  %arrayidx40.i = getelementptr inbounds nuw i8, ptr %turns.i, i32 20
  store i32 %shl41.i, ptr %arrayidx40.i, align 4
  %11 = load i32, ptr %turns.i, align 16
  %tobool59.i = icmp slt i32 %11, 0
  br i1 %tobool59.i, label %for.body66.i, label %for.body82.i.preheader

for.body82.i.preheader:
  br label %for.body82.i

cond.end50.i:
  %shl41.i73 = phi i32 [ %shl41.i70, %for.cond.cleanup.i ], [ %shl41.i, %cond.end50.i ]
  %i34.0154.i71 = phi i32 [ 0, %for.cond.cleanup.i ], [ %add42.i, %cond.end50.i ]
  %arrayidx40.i72 = getelementptr inbounds nuw i32, ptr %turns.i, i32 %i34.0154.i71
  %add42.i = add nuw nsw i32 %i34.0154.i71, 1
  %arrayidx47.i = getelementptr inbounds nuw i32, ptr %turns.i, i32 %add42.i
  %12 = load i32, ptr %arrayidx47.i, align 4
  %shr48.i = lshr i32 %12, 30
  %13 = or disjoint i32 %shr48.i, %shl41.i73
  store i32 %13, ptr %arrayidx40.i72, align 4
  %shl41.i = shl i32 %12, 2
  %cmp43.not.i = icmp eq i32 %add42.i, 5
  br i1 %cmp43.not.i, label %for.cond.cleanup38.i, label %cond.end50.i

for.body66.i:
  %i61.0156.i = phi i32 [ %dec75.i, %for.body66.i ], [ 5, %for.cond.cleanup38.i ]
  %carry60.0155.i = phi i64 [ %shr73.i, %for.body66.i ], [ 1, %for.cond.cleanup38.i ]
  %arrayidx68.i = getelementptr inbounds nuw i32, ptr %turns.i, i32 %i61.0156.i
  %14 = load i32, ptr %arrayidx68.i, align 4
  %not.i = xor i32 %14, -1
  %conv69.i = zext i32 %not.i to i64
  %add70.i = add nuw nsw i64 %carry60.0155.i, %conv69.i
  %conv71.i = trunc i64 %add70.i to i32
  store i32 %conv71.i, ptr %arrayidx68.i, align 4
  %shr73.i = lshr i64 %add70.i, 32
  %dec75.i = add nsw i32 %i61.0156.i, -1
  %cmp63.not.i = icmp eq i32 %i61.0156.i, 0
  br i1 %cmp63.not.i, label %for.body82.i.preheader, label %for.body66.i

for.cond.cleanup81.i:
  %mul.i.i.i.i = fmul double %add.i144.i, 0x41A0000002000000
  %sub.i.i.i.i = fsub double %mul.i.i.i.i, %add.i144.i
  %sub1.i.i.i.i = fsub double %mul.i.i.i.i, %sub.i.i.i.i
  %sub3.i.i.i.i = fsub double %add.i144.i, %sub1.i.i.i.i
  %mul.i.i.i = fmul double %add.i144.i, 0x3FF921FB54442D18
  %mul3.i.i.i = fmul double %sub1.i.i.i.i, 0x3FF921FB58000000
  %sub.i.i.i = fsub double %mul3.i.i.i, %mul.i.i.i
  %mul6.i.i.i = fmul double %sub1.i.i.i.i, 0x3E4DDE9740000000
  %15 = fsub double %sub.i.i.i, %mul6.i.i.i
  %mul9.i.i.i = fmul double %sub3.i.i.i.i, 0x3FF921FB58000000
  %add10.i.i.i = fadd double %mul9.i.i.i, %15
  %mul13.i.i.i = fmul double %sub3.i.i.i.i, 0x3E4DDE9740000000
  %16 = fsub double %add10.i.i.i, %mul13.i.i.i
  %mul.i.i = fmul double %add.i144.i, 0x3C91A62633145C07
  %mul7.i.i = fmul double %sub1.i147.i, 0x3FF921FB54442D18
  %add.i.i = fadd double %mul.i.i, %mul7.i.i
  %add8.i.i = fadd double %add.i.i, %16
  %add.i9.i.i = fadd double %mul.i.i.i, %add8.i.i
  %sub.i11.i.i = fsub double %add.i9.i.i, %mul.i.i.i
  %sub1.i.i.i = fsub double %add8.i.i, %sub.i11.i.i
  store double %add.i9.i.i, ptr %rest, align 8
  %tmp93.sroa.4.0.rest.sroa_idx.i = getelementptr inbounds nuw i8, ptr %rest, i32 8
  store double %sub1.i.i.i, ptr %tmp93.sroa.4.0.rest.sroa_idx.i, align 8
  br i1 %tobool59.i, label %if.then97.i, label %reduced_by_bits.exit

for.body82.i:
  %i77.0160.i = phi i32 [ %dec90.i, %for.body82.i ], [ 5, %for.body82.i.preheader ]
  %scale.0159.i = phi double [ %mul91.i, %for.body82.i ], [ 0x33F0000000000000, %for.body82.i.preheader ]
  %fraction.sroa.0.0158.i = phi double [ %add.i144.i, %for.body82.i ], [ 0.000000e+00, %for.body82.i.preheader ]
  %fraction.sroa.6.0157.i = phi double [ %sub1.i147.i, %for.body82.i ], [ 0.000000e+00, %for.body82.i.preheader ]
  %arrayidx83.i = getelementptr inbounds nuw i32, ptr %turns.i, i32 %i77.0160.i
  %17 = load i32, ptr %arrayidx83.i, align 4
  %conv84.i = uitofp i32 %17 to double
  %mul85.i = fmul double %scale.0159.i, %conv84.i
  %add.i143.i = fadd double %fraction.sroa.0.0158.i, %mul85.i
  %sub.i.i = fsub double %add.i143.i, %fraction.sroa.0.0158.i
  %sub1.i.i = fsub double %add.i143.i, %sub.i.i
  %sub2.i.i = fsub double %fraction.sroa.0.0158.i, %sub1.i.i
  %sub3.i.i = fsub double %mul85.i, %sub.i.i
  %add4.i.i = fadd double %sub3.i.i, %sub2.i.i
  %add88.i = fadd double %fraction.sroa.6.0157.i, %add4.i.i
  %add.i144.i = fadd double %add.i143.i, %add88.i
  %sub.i146.i = fsub double %add.i144.i, %add.i143.i
  %sub1.i147.i = fsub double %add88.i, %sub.i146.i
  %dec90.i = add nsw i32 %i77.0160.i, -1
  %mul91.i = fmul double %scale.0159.i, 0x41F0000000000000
  %cmp79.not.i = icmp eq i32 %i77.0160.i, 0
  br i1 %cmp79.not.i, label %for.cond.cleanup81.i, label %for.body82.i

if.then97.i:
  %fneg.i = fneg double %add.i9.i.i
  %fneg103.i = fneg double %sub1.i.i.i
  store double %fneg.i, ptr %rest, align 8
  store double %fneg103.i, ptr %tmp93.sroa.4.0.rest.sroa_idx.i, align 8
  br label %reduced_by_bits.exit

reduced_by_bits.exit:
  %18 = phi double [ %sub1.i.i.i, %for.cond.cleanup81.i ], [ %fneg103.i, %if.then97.i ]
  %19 = phi double [ %add.i9.i.i, %for.cond.cleanup81.i ], [ %fneg.i, %if.then97.i ]
  %shr33.i = lshr i32 %6, 30
  %.lobit.i = lshr i32 %11, 31
  %add107.i = add nuw nsw i32 %.lobit.i, %shr33.i
  call void @llvm.lifetime.end.p0(ptr nonnull %turns.i) nounwind
  %cmp1 = fcmp ogt double %x, 0.000000e+00
  br i1 %cmp1, label %cleanup26, label %if.end

if.end:
  %fneg = fneg double %19
  %fneg5 = fneg double %18
  store double %fneg, ptr %rest, align 8
  store double %fneg5, ptr %tmp93.sroa.4.0.rest.sroa_idx.i, align 8
  %sub = sub nsw i32 0, %add107.i
  br label %cleanup26

if.end6:
  %mul = fmul double %x, 0x3FE45F306DC9C883
  %add = fadd double %mul, 0x4338000000000000
  %sub7 = fadd double %add, 0xC338000000000000
  %mul.i.i42 = fmul double %sub7, 0x41A0000002000000
  %sub.i.i43 = fsub double %mul.i.i42, %sub7
  %sub1.i.i44 = fsub double %mul.i.i42, %sub.i.i43
  %sub3.i.i45 = fsub double %sub7, %sub1.i.i44
  %mul.i46 = fmul double %sub7, 0x3FF921FB54442D18
  %mul3.i = fmul double %sub1.i.i44, 0x3FF921FB58000000
  %sub.i = fsub double %mul3.i, %mul.i46
  %mul6.i = fmul double %sub1.i.i44, 0x3E4DDE9740000000
  %20 = fsub double %sub.i, %mul6.i
  %mul9.i = fmul double %sub3.i.i45, 0x3FF921FB58000000
  %add10.i = fadd double %mul9.i, %20
  %mul13.i = fmul double %sub3.i.i45, 0x3E4DDE9740000000
  %21 = fsub double %add10.i, %mul13.i
  %mul.i52 = fmul double %sub7, 0x3C91A62633145C07
  %mul3.i54 = fmul double %sub1.i.i44, 0x3C91A62630000000
  %sub.i55 = fsub double %mul3.i54, %mul.i52
  %mul6.i56 = fmul double %sub1.i.i44, 0x3AE8A2E038000000
  %add.i57 = fadd double %mul6.i56, %sub.i55
  %mul9.i58 = fmul double %sub3.i.i45, 0x3C91A62630000000
  %add10.i59 = fadd double %mul9.i58, %add.i57
  %mul13.i60 = fmul double %sub3.i.i45, 0x3AE8A2E038000000
  %add14.i61 = fadd double %mul13.i60, %add10.i59
  %sub9 = fsub double %x, %mul.i46
  %sub11 = fsub double %sub9, %21
  %fneg13 = fneg double %mul.i52
  %add.i62 = fsub double %sub11, %mul.i52
  %sub.i63 = fsub double %add.i62, %sub11
  %sub1.i = fsub double %add.i62, %sub.i63
  %sub2.i = fsub double %sub11, %sub1.i
  %sub3.i = fsub double %fneg13, %sub.i63
  %add4.i = fadd double %sub3.i, %sub2.i
  %tmp.sroa.4.0.rest.sroa_idx = getelementptr inbounds nuw i8, ptr %rest, i32 8
  %sub18 = fsub double %add4.i, %add14.i61
  %mul19 = fmul double %sub7, 0x391F1976B7ED8FBC
  %22 = fadd double %sub18, %mul19
  %add.i65 = fadd double %add.i62, %22
  %sub.i67 = fsub double %add.i65, %add.i62
  %sub1.i68 = fsub double %22, %sub.i67
  store double %add.i65, ptr %rest, align 8
  store double %sub1.i68, ptr %tmp.sroa.4.0.rest.sroa_idx, align 8
  %conv = fptosi double %sub7 to i32
  br label %cleanup26

cleanup26:
  %retval.1 = phi i32 [ %conv, %if.end6 ], [ %sub, %if.end ], [ %add107.i, %reduced_by_bits.exit ]
  ret i32 %retval.1
}

define hidden double @atan2(double noundef %y, double noundef %x) local_unnamed_addr nounwind {
entry:
  %other.i = alloca %struct.pair, align 8
  %.compoundliteral33104 = alloca %struct.pair, align 8
  %.compoundliteral103 = alloca %struct.pair, align 8
  %angle = alloca %struct.pair, align 8
  %or.cond74 = fcmp uno double %x, %y
  br i1 %or.cond74, label %if.then, label %if.end

if.then:
  %add = fadd double %y, %x
  br label %return

if.end:
  %0 = tail call double @llvm.fabs.f64(double %y)
  %1 = tail call double @llvm.fabs.f64(double %x)
  %2 = fcmp oeq double %0, 0x7FF0000000000000
  %3 = fcmp oeq double %1, 0x7FF0000000000000
  %or.cond76 = and i1 %2, %3
  %a.0 = select i1 %or.cond76, double 1.000000e+00, double %0
  %b.0 = select i1 %or.cond76, double 1.000000e+00, double %1
  %cmp = fcmp oeq double %a.0, 0.000000e+00
  %4 = fcmp oeq double %b.0, 0x7FF0000000000000
  %or.cond77 = or i1 %cmp, %4
  br i1 %or.cond77, label %if.then4, label %if.end5

if.then4:
  %5 = bitcast double %x to i64
  %6 = icmp slt i64 %5, 0
  %cond = select i1 %6, double 0x400921FB54442D18, double 0.000000e+00
  %7 = tail call double @llvm.copysign.f64(double %cond, double %y)
  br label %return

if.end5:
  %cmp6 = fcmp oeq double %b.0, 0.000000e+00
  %8 = fcmp oeq double %a.0, 0x7FF0000000000000
  %or.cond78 = or i1 %cmp6, %8
  br i1 %or.cond78, label %if.then8, label %if.end9

if.then8:
  %9 = tail call double @llvm.copysign.f64(double 0x3FF921FB54442D18, double %y)
  br label %return

if.end9:
  %cmp10 = fcmp ogt double %a.0, %b.0
  %cond11 = select i1 %cmp10, double %a.0, double %b.0
  %10 = bitcast double %cond11 to i64
  %11 = add nsw i64 %10, -6863485832112635904
  %or.cond = icmp ult i64 %11, -4508103226997866496
  br i1 %or.cond, label %if.then17, label %if.end22

if.then17:
  %shr = lshr i64 %10, 52
  %conv = trunc nuw nsw i64 %shr to i32
  %sub18 = sub nsw i32 1023, %conv
  %cmp19.i = icmp samesign ult i64 %10, 103582791429521408
  br i1 %cmp19.i, label %while.body.i, label %while.cond2.preheader.i

while.cond2.preheader.i:
  %x.addr.0.lcssa.i = phi double [ %a.0, %if.then17 ], [ %mul.i, %while.body.i ]
  %n.addr.0.lcssa.i = phi i32 [ %sub18, %if.then17 ], [ %spec.store.select.i, %while.body.i ]
  %cmp323.i = icmp slt i32 %n.addr.0.lcssa.i, -960
  br i1 %cmp323.i, label %while.body4.i, label %ldexp.exit

while.body.i:
  %n.addr.021.i = phi i32 [ %spec.store.select.i, %while.body.i ], [ %sub18, %if.then17 ]
  %x.addr.020.i = phi double [ %mul.i, %while.body.i ], [ %a.0, %if.then17 ]
  %mul.i = fmul double %x.addr.020.i, 0x7E70000000000000
  %12 = tail call i32 @llvm.umin.i32(i32 %n.addr.021.i, i32 4000)
  %spec.store.select.i = add nsw i32 %12, -1000
  %cmp.i = icmp ugt i32 %n.addr.021.i, 2000
  br i1 %cmp.i, label %while.body.i, label %while.cond2.preheader.i

while.body4.i:
  %n.addr.125.i = phi i32 [ %spec.store.select12.i, %while.body4.i ], [ %n.addr.0.lcssa.i, %while.cond2.preheader.i ]
  %x.addr.124.i = phi double [ %mul5.i, %while.body4.i ], [ %x.addr.0.lcssa.i, %while.cond2.preheader.i ]
  %mul5.i = fmul double %x.addr.124.i, 0x3F0000000000000
  %13 = tail call i32 @llvm.umax.i32(i32 %n.addr.125.i, i32 -3960)
  %spec.store.select12.i = add nuw nsw i32 %13, 960
  %cmp3.i = icmp ult i32 %n.addr.125.i, -1920
  br i1 %cmp3.i, label %while.body4.i, label %ldexp.exit

ldexp.exit:
  %x.addr.1.lcssa.i = phi double [ %x.addr.0.lcssa.i, %while.cond2.preheader.i ], [ %mul5.i, %while.body4.i ]
  %n.addr.1.lcssa.i = phi i32 [ %n.addr.0.lcssa.i, %while.cond2.preheader.i ], [ %spec.store.select12.i, %while.body4.i ]
  %add10.i = add nsw i32 %n.addr.1.lcssa.i, 1023
  %conv.i = zext nneg i32 %add10.i to i64
  %shl.i = shl i64 %conv.i, 52
  %14 = bitcast i64 %shl.i to double
  %mul11.i = fmul double %x.addr.1.lcssa.i, %14
  br i1 %cmp19.i, label %while.body.i96, label %while.cond2.preheader.i80

while.cond2.preheader.i80:
  %x.addr.0.lcssa.i81 = phi double [ %b.0, %ldexp.exit ], [ %mul.i99, %while.body.i96 ]
  %n.addr.0.lcssa.i82 = phi i32 [ %sub18, %ldexp.exit ], [ %spec.store.select.i100, %while.body.i96 ]
  %cmp323.i83 = icmp slt i32 %n.addr.0.lcssa.i82, -960
  br i1 %cmp323.i83, label %while.body4.i90, label %ldexp.exit102

while.body.i96:
  %n.addr.021.i97 = phi i32 [ %spec.store.select.i100, %while.body.i96 ], [ %sub18, %ldexp.exit ]
  %x.addr.020.i98 = phi double [ %mul.i99, %while.body.i96 ], [ %b.0, %ldexp.exit ]
  %mul.i99 = fmul double %x.addr.020.i98, 0x7E70000000000000
  %15 = tail call i32 @llvm.umin.i32(i32 %n.addr.021.i97, i32 4000)
  %spec.store.select.i100 = add nsw i32 %15, -1000
  %cmp.i101 = icmp ugt i32 %n.addr.021.i97, 2000
  br i1 %cmp.i101, label %while.body.i96, label %while.cond2.preheader.i80

while.body4.i90:
  %n.addr.125.i91 = phi i32 [ %spec.store.select12.i94, %while.body4.i90 ], [ %n.addr.0.lcssa.i82, %while.cond2.preheader.i80 ]
  %x.addr.124.i92 = phi double [ %mul5.i93, %while.body4.i90 ], [ %x.addr.0.lcssa.i81, %while.cond2.preheader.i80 ]
  %mul5.i93 = fmul double %x.addr.124.i92, 0x3F0000000000000
  %16 = tail call i32 @llvm.umax.i32(i32 %n.addr.125.i91, i32 -3960)
  %spec.store.select12.i94 = add nuw nsw i32 %16, 960
  %cmp3.i95 = icmp ult i32 %n.addr.125.i91, -1920
  br i1 %cmp3.i95, label %while.body4.i90, label %ldexp.exit102

ldexp.exit102:
  %x.addr.1.lcssa.i84 = phi double [ %x.addr.0.lcssa.i81, %while.cond2.preheader.i80 ], [ %mul5.i93, %while.body4.i90 ]
  %n.addr.1.lcssa.i85 = phi i32 [ %n.addr.0.lcssa.i82, %while.cond2.preheader.i80 ], [ %spec.store.select12.i94, %while.body4.i90 ]
  %add10.i86 = add nsw i32 %n.addr.1.lcssa.i85, 1023
  %conv.i87 = zext nneg i32 %add10.i86 to i64
  %shl.i88 = shl i64 %conv.i87, 52
  %17 = bitcast i64 %shl.i88 to double
  %mul11.i89 = fmul double %x.addr.1.lcssa.i84, %17
  br label %if.end22

if.end22:
  %a.1 = phi double [ %mul11.i, %ldexp.exit102 ], [ %a.0, %if.end9 ]
  %b.1 = phi double [ %mul11.i89, %ldexp.exit102 ], [ %b.0, %if.end9 ]
  %mul23 = fmul double %b.1, 0x3C30000000000000
  %cmp24 = fcmp olt double %a.1, %mul23
  br i1 %cmp24, label %if.then26, label %if.end32

if.then26:
  %18 = bitcast double %x to i64
  %19 = icmp slt i64 %18, 0
  br i1 %19, label %cond.true27, label %cond.false29

cond.true27:
  %20 = tail call double @llvm.copysign.f64(double 0x400921FB54442D18, double %y)
  br label %return

cond.false29:
  %div = fdiv double %y, %x
  br label %return

if.end32:
  call void @llvm.lifetime.start.p0(ptr nonnull %angle) nounwind
  call void @llvm.lifetime.start.p0(ptr nonnull %.compoundliteral103)
  call void @llvm.lifetime.start.p0(ptr nonnull %.compoundliteral33104)
  store double %b.1, ptr %.compoundliteral33104, align 8
  %.compoundliteral33.sroa.2.0..compoundliteral33104.sroa_idx = getelementptr inbounds nuw i8, ptr %.compoundliteral33104, i32 8
  store double 0.000000e+00, ptr %.compoundliteral33.sroa.2.0..compoundliteral33104.sroa_idx, align 8
  store double %a.1, ptr %.compoundliteral103, align 8
  %.compoundliteral.sroa.2.0..compoundliteral103.sroa_idx = getelementptr inbounds nuw i8, ptr %.compoundliteral103, i32 8
  store double 0.000000e+00, ptr %.compoundliteral.sroa.2.0..compoundliteral103.sroa_idx, align 8
  %cmp.i105 = fcmp ugt double %a.1, %b.1
  br i1 %cmp.i105, label %if.end.i, label %if.then.i

if.then.i:
  call fastcc void @angle_below(ptr dead_on_unwind nonnull writable sret(%struct.pair) align 8 %angle, ptr noundef nonnull byval(%struct.pair) align 8 %.compoundliteral103, ptr noundef nonnull byval(%struct.pair) align 8 %.compoundliteral33104)
  br label %angle_of.exit

if.end.i:
  call void @llvm.lifetime.start.p0(ptr nonnull %other.i) nounwind
  call fastcc void @angle_below(ptr dead_on_unwind writable sret(%struct.pair) align 8 %other.i, ptr noundef nonnull byval(%struct.pair) align 8 %.compoundliteral33104, ptr noundef nonnull byval(%struct.pair) align 8 %.compoundliteral103)
  %21 = load double, ptr %other.i, align 8
  %fneg.i = fneg double %21
  %add.i.i = fsub double 0x3FF921FB54442D18, %21
  %sub.i.i = fadd double %add.i.i, 0xBFF921FB54442D18
  %22 = fsub double %sub.i.i, %add.i.i
  %sub2.i.i = fadd double %22, 0x3FF921FB54442D18
  %sub3.i.i = fsub double %fneg.i, %sub.i.i
  %add4.i.i = fadd double %sub3.i.i, %sub2.i.i
  %low4.i = getelementptr inbounds nuw i8, ptr %other.i, i32 8
  %23 = load double, ptr %low4.i, align 8
  %sub.i = fsub double 0x3C91A62633145C07, %23
  %add.i = fadd double %sub.i, %add4.i.i
  %add.i5.i = fadd double %add.i.i, %add.i
  store double %add.i5.i, ptr %angle, align 8
  %low.i6.i = getelementptr inbounds nuw i8, ptr %angle, i32 8
  %24 = fsub double %add.i.i, %add.i5.i
  %sub1.i8.i = fadd double %add.i, %24
  store double %sub1.i8.i, ptr %low.i6.i, align 8
  call void @llvm.lifetime.end.p0(ptr nonnull %other.i) nounwind
  br label %angle_of.exit

angle_of.exit:
  call void @llvm.lifetime.end.p0(ptr nonnull %.compoundliteral103)
  call void @llvm.lifetime.end.p0(ptr nonnull %.compoundliteral33104)
  %25 = bitcast double %x to i64
  %26 = icmp slt i64 %25, 0
  %27 = load double, ptr %angle, align 8
  br i1 %26, label %cond.true36, label %cond.end40

cond.true36:
  %fneg.i106 = fneg double %27
  %add.i.i107 = fsub double 0x400921FB54442D18, %27
  %sub.i.i108 = fadd double %add.i.i107, 0xC00921FB54442D18
  %28 = fsub double %sub.i.i108, %add.i.i107
  %sub2.i.i109 = fadd double %28, 0x400921FB54442D18
  %sub3.i.i110 = fsub double %fneg.i106, %sub.i.i108
  %add4.i.i111 = fadd double %sub3.i.i110, %sub2.i.i109
  %low3.i = getelementptr inbounds nuw i8, ptr %angle, i32 8
  %29 = load double, ptr %low3.i, align 8
  %sub.i112 = fsub double 0x3CA1A62633145C07, %29
  %add.i113 = fadd double %sub.i112, %add4.i.i111
  %add4.i = fadd double %add.i.i107, %add.i113
  br label %cond.end40

cond.end40:
  %cond41 = phi double [ %add4.i, %cond.true36 ], [ %27, %angle_of.exit ]
  %30 = tail call double @llvm.copysign.f64(double %cond41, double %y)
  call void @llvm.lifetime.end.p0(ptr nonnull %angle) nounwind
  br label %return

return:
  %retval.2 = phi double [ %add, %if.then ], [ %7, %if.then4 ], [ %9, %if.then8 ], [ %30, %cond.end40 ], [ %20, %cond.true27 ], [ %div, %cond.false29 ]
  ret double %retval.2
}

define hidden double @asin(double noundef %x) local_unnamed_addr nounwind {
entry:
  %other.i = alloca %struct.pair, align 8
  %agg.tmp11 = alloca %struct.pair, align 8
  %.compoundliteral10 = alloca %struct.pair, align 8
  %ref.tmp = alloca %struct.pair, align 8
  %0 = tail call double @llvm.fabs.f64(double %x)
  %cmp = fcmp ugt double %0, 1.000000e+00
  br i1 %cmp, label %cleanup, label %if.end

if.end:
  %cmp1 = fcmp olt double %0, 0x3E40000000000000
  br i1 %cmp1, label %cleanup, label %if.end3

if.end3:
  call void @llvm.lifetime.start.p0(ptr nonnull %ref.tmp) nounwind
  %mul.i.i.i = fmul double %0, 0x41A0000002000000
  %1 = fsub double %0, %mul.i.i.i
  %sub1.i.i.i = fadd double %mul.i.i.i, %1
  %sub3.i.i.i = fsub double %0, %sub1.i.i.i
  %mul.i.i = fmul double %x, %x
  %mul3.i.i = fmul double %sub1.i.i.i, %sub1.i.i.i
  %sub.i.i = fsub double %mul3.i.i, %mul.i.i
  %mul6.i.i = fmul double %sub1.i.i.i, %sub3.i.i.i
  %add.i.i = fadd double %sub.i.i, %mul6.i.i
  %add10.i.i = fadd double %mul6.i.i, %add.i.i
  %mul13.i.i = fmul double %sub3.i.i.i, %sub3.i.i.i
  %add14.i.i = fadd double %mul13.i.i, %add10.i.i
  %fneg.i = fneg double %mul.i.i
  %add.i4.i = fsub double 1.000000e+00, %mul.i.i
  %sub.i5.i = fadd double %add.i4.i, -1.000000e+00
  %2 = fsub double %sub.i5.i, %add.i4.i
  %sub2.i.i = fadd double %2, 1.000000e+00
  %sub3.i.i = fsub double %fneg.i, %sub.i5.i
  %add4.i.i = fadd double %sub3.i.i, %sub2.i.i
  %sub.i = fsub double %add4.i.i, %add14.i.i
  %add.i7.i = fadd double %add.i4.i, %sub.i
  %cmp.i.i = fcmp oeq double %add.i7.i, 0.000000e+00
  br i1 %cmp.i.i, label %opposite.exit, label %if.end.i.i

if.end.i.i:
  %3 = fsub double %add.i4.i, %add.i7.i
  %sub1.i10.i = fadd double %sub.i, %3
  %4 = tail call double @llvm.sqrt.f64(double %add.i7.i)
  %mul.i.i.i.i = fmul double %4, 0x41A0000002000000
  %5 = fsub double %4, %mul.i.i.i.i
  %sub1.i.i.i.i = fadd double %mul.i.i.i.i, %5
  %sub3.i.i.i.i = fsub double %4, %sub1.i.i.i.i
  %mul.i.i12.i = fmul double %4, %4
  %mul3.i.i.i = fmul double %sub1.i.i.i.i, %sub1.i.i.i.i
  %sub.i.i13.i = fsub double %mul3.i.i.i, %mul.i.i12.i
  %mul6.i.i.i = fmul double %sub1.i.i.i.i, %sub3.i.i.i.i
  %add.i.i.i = fadd double %sub.i.i13.i, %mul6.i.i.i
  %add10.i.i.i = fadd double %mul6.i.i.i, %add.i.i.i
  %mul13.i.i.i = fmul double %sub3.i.i.i.i, %sub3.i.i.i.i
  %add14.i.i.i = fadd double %mul13.i.i.i, %add10.i.i.i
  %sub.i14.i = fsub double %add.i7.i, %mul.i.i12.i
  %sub7.i.i = fsub double %sub.i14.i, %add14.i.i.i
  %add.i15.i = fadd double %sub1.i10.i, %sub7.i.i
  %mul.i16.i = fmul double %4, 2.000000e+00
  %div.i.i = fdiv double %add.i15.i, %mul.i16.i
  br label %opposite.exit

opposite.exit:
  %.sink.i.i = phi double [ %4, %if.end.i.i ], [ 0.000000e+00, %if.end3 ]
  %div.sink.i.i = phi double [ %div.i.i, %if.end.i.i ], [ 0.000000e+00, %if.end3 ]
  call void @llvm.lifetime.start.p0(ptr nonnull %.compoundliteral10)
  call void @llvm.lifetime.start.p0(ptr nonnull %agg.tmp11)
  store double %.sink.i.i, ptr %agg.tmp11, align 8
  %agg.tmp.sroa.2.0.agg.tmp11.sroa_idx = getelementptr inbounds nuw i8, ptr %agg.tmp11, i32 8
  store double %div.sink.i.i, ptr %agg.tmp.sroa.2.0.agg.tmp11.sroa_idx, align 8
  store double %0, ptr %.compoundliteral10, align 8
  %.compoundliteral.sroa.2.0..compoundliteral10.sroa_idx = getelementptr inbounds nuw i8, ptr %.compoundliteral10, i32 8
  store double 0.000000e+00, ptr %.compoundliteral.sroa.2.0..compoundliteral10.sroa_idx, align 8
  %cmp.i = fcmp ugt double %0, %.sink.i.i
  br i1 %cmp.i, label %if.end.i, label %if.then.i

if.then.i:
  call fastcc void @angle_below(ptr dead_on_unwind nonnull writable sret(%struct.pair) align 8 %ref.tmp, ptr noundef nonnull byval(%struct.pair) align 8 %.compoundliteral10, ptr noundef nonnull byval(%struct.pair) align 8 %agg.tmp11)
  %.pre = load double, ptr %ref.tmp, align 8
  br label %angle_of.exit

if.end.i:
  call void @llvm.lifetime.start.p0(ptr nonnull %other.i) nounwind
  call fastcc void @angle_below(ptr dead_on_unwind writable sret(%struct.pair) align 8 %other.i, ptr noundef nonnull byval(%struct.pair) align 8 %agg.tmp11, ptr noundef nonnull byval(%struct.pair) align 8 %.compoundliteral10)
  %6 = load double, ptr %other.i, align 8
  %fneg.i12 = fneg double %6
  %add.i.i13 = fsub double 0x3FF921FB54442D18, %6
  %sub.i.i14 = fadd double %add.i.i13, 0xBFF921FB54442D18
  %7 = fsub double %sub.i.i14, %add.i.i13
  %sub2.i.i15 = fadd double %7, 0x3FF921FB54442D18
  %sub3.i.i16 = fsub double %fneg.i12, %sub.i.i14
  %add4.i.i17 = fadd double %sub3.i.i16, %sub2.i.i15
  %low4.i = getelementptr inbounds nuw i8, ptr %other.i, i32 8
  %8 = load double, ptr %low4.i, align 8
  %sub.i18 = fsub double 0x3C91A62633145C07, %8
  %add.i = fadd double %sub.i18, %add4.i.i17
  %add.i5.i = fadd double %add.i.i13, %add.i
  call void @llvm.lifetime.end.p0(ptr nonnull %other.i) nounwind
  br label %angle_of.exit

angle_of.exit:
  %9 = phi double [ %.pre, %if.then.i ], [ %add.i5.i, %if.end.i ]
  call void @llvm.lifetime.end.p0(ptr nonnull %.compoundliteral10)
  call void @llvm.lifetime.end.p0(ptr nonnull %agg.tmp11)
  %10 = tail call double @llvm.copysign.f64(double %9, double %x)
  call void @llvm.lifetime.end.p0(ptr nonnull %ref.tmp) nounwind
  br label %cleanup

cleanup:
  %retval.0 = phi double [ 0x7FF8000000000000, %entry ], [ %10, %angle_of.exit ], [ %x, %if.end ]
  ret double %retval.0
}

define hidden double @acos(double noundef %x) local_unnamed_addr nounwind {
entry:
  %other.i = alloca %struct.pair, align 8
  %.compoundliteral7 = alloca %struct.pair, align 8
  %agg.tmp6 = alloca %struct.pair, align 8
  %angle = alloca %struct.pair, align 8
  %0 = tail call double @llvm.fabs.f64(double %x)
  %cmp = fcmp ugt double %0, 1.000000e+00
  br i1 %cmp, label %cleanup, label %if.end

if.end:
  call void @llvm.lifetime.start.p0(ptr nonnull %angle) nounwind
  %mul.i.i.i = fmul double %0, 0x41A0000002000000
  %1 = fsub double %0, %mul.i.i.i
  %sub1.i.i.i = fadd double %mul.i.i.i, %1
  %sub3.i.i.i = fsub double %0, %sub1.i.i.i
  %mul.i.i = fmul double %x, %x
  %mul3.i.i = fmul double %sub1.i.i.i, %sub1.i.i.i
  %sub.i.i = fsub double %mul3.i.i, %mul.i.i
  %mul6.i.i = fmul double %sub1.i.i.i, %sub3.i.i.i
  %add.i.i = fadd double %sub.i.i, %mul6.i.i
  %add10.i.i = fadd double %mul6.i.i, %add.i.i
  %mul13.i.i = fmul double %sub3.i.i.i, %sub3.i.i.i
  %add14.i.i = fadd double %mul13.i.i, %add10.i.i
  %fneg.i = fneg double %mul.i.i
  %add.i4.i = fsub double 1.000000e+00, %mul.i.i
  %sub.i5.i = fadd double %add.i4.i, -1.000000e+00
  %2 = fsub double %sub.i5.i, %add.i4.i
  %sub2.i.i = fadd double %2, 1.000000e+00
  %sub3.i.i = fsub double %fneg.i, %sub.i5.i
  %add4.i.i = fadd double %sub3.i.i, %sub2.i.i
  %sub.i = fsub double %add4.i.i, %add14.i.i
  %add.i7.i = fadd double %add.i4.i, %sub.i
  %cmp.i.i = fcmp oeq double %add.i7.i, 0.000000e+00
  br i1 %cmp.i.i, label %opposite.exit, label %if.end.i.i

if.end.i.i:
  %3 = fsub double %add.i4.i, %add.i7.i
  %sub1.i10.i = fadd double %sub.i, %3
  %4 = tail call double @llvm.sqrt.f64(double %add.i7.i)
  %mul.i.i.i.i = fmul double %4, 0x41A0000002000000
  %5 = fsub double %4, %mul.i.i.i.i
  %sub1.i.i.i.i = fadd double %mul.i.i.i.i, %5
  %sub3.i.i.i.i = fsub double %4, %sub1.i.i.i.i
  %mul.i.i12.i = fmul double %4, %4
  %mul3.i.i.i = fmul double %sub1.i.i.i.i, %sub1.i.i.i.i
  %sub.i.i13.i = fsub double %mul3.i.i.i, %mul.i.i12.i
  %mul6.i.i.i = fmul double %sub1.i.i.i.i, %sub3.i.i.i.i
  %add.i.i.i = fadd double %sub.i.i13.i, %mul6.i.i.i
  %add10.i.i.i = fadd double %mul6.i.i.i, %add.i.i.i
  %mul13.i.i.i = fmul double %sub3.i.i.i.i, %sub3.i.i.i.i
  %add14.i.i.i = fadd double %mul13.i.i.i, %add10.i.i.i
  %sub.i14.i = fsub double %add.i7.i, %mul.i.i12.i
  %sub7.i.i = fsub double %sub.i14.i, %add14.i.i.i
  %add.i15.i = fadd double %sub1.i10.i, %sub7.i.i
  %mul.i16.i = fmul double %4, 2.000000e+00
  %div.i.i = fdiv double %add.i15.i, %mul.i16.i
  br label %opposite.exit

opposite.exit:
  %.sink.i.i = phi double [ %4, %if.end.i.i ], [ 0.000000e+00, %if.end ]
  %div.sink.i.i = phi double [ %div.i.i, %if.end.i.i ], [ 0.000000e+00, %if.end ]
  call void @llvm.lifetime.start.p0(ptr nonnull %agg.tmp6)
  call void @llvm.lifetime.start.p0(ptr nonnull %.compoundliteral7)
  store double %0, ptr %.compoundliteral7, align 8
  %.compoundliteral.sroa.2.0..compoundliteral7.sroa_idx = getelementptr inbounds nuw i8, ptr %.compoundliteral7, i32 8
  store double 0.000000e+00, ptr %.compoundliteral.sroa.2.0..compoundliteral7.sroa_idx, align 8
  store double %.sink.i.i, ptr %agg.tmp6, align 8
  %agg.tmp.sroa.2.0.agg.tmp6.sroa_idx = getelementptr inbounds nuw i8, ptr %agg.tmp6, i32 8
  store double %div.sink.i.i, ptr %agg.tmp.sroa.2.0.agg.tmp6.sroa_idx, align 8
  %cmp.i = fcmp ugt double %.sink.i.i, %0
  br i1 %cmp.i, label %if.end.i, label %if.then.i

if.then.i:
  call fastcc void @angle_below(ptr dead_on_unwind nonnull writable sret(%struct.pair) align 8 %angle, ptr noundef nonnull byval(%struct.pair) align 8 %agg.tmp6, ptr noundef nonnull byval(%struct.pair) align 8 %.compoundliteral7)
  br label %angle_of.exit

if.end.i:
  call void @llvm.lifetime.start.p0(ptr nonnull %other.i) nounwind
  call fastcc void @angle_below(ptr dead_on_unwind writable sret(%struct.pair) align 8 %other.i, ptr noundef nonnull byval(%struct.pair) align 8 %.compoundliteral7, ptr noundef nonnull byval(%struct.pair) align 8 %agg.tmp6)
  %6 = load double, ptr %other.i, align 8
  %fneg.i8 = fneg double %6
  %add.i.i9 = fsub double 0x3FF921FB54442D18, %6
  %sub.i.i10 = fadd double %add.i.i9, 0xBFF921FB54442D18
  %7 = fsub double %sub.i.i10, %add.i.i9
  %sub2.i.i11 = fadd double %7, 0x3FF921FB54442D18
  %sub3.i.i12 = fsub double %fneg.i8, %sub.i.i10
  %add4.i.i13 = fadd double %sub3.i.i12, %sub2.i.i11
  %low4.i = getelementptr inbounds nuw i8, ptr %other.i, i32 8
  %8 = load double, ptr %low4.i, align 8
  %sub.i14 = fsub double 0x3C91A62633145C07, %8
  %add.i = fadd double %sub.i14, %add4.i.i13
  %add.i5.i = fadd double %add.i.i9, %add.i
  store double %add.i5.i, ptr %angle, align 8
  %low.i6.i = getelementptr inbounds nuw i8, ptr %angle, i32 8
  %9 = fsub double %add.i.i9, %add.i5.i
  %sub1.i8.i = fadd double %add.i, %9
  store double %sub1.i8.i, ptr %low.i6.i, align 8
  call void @llvm.lifetime.end.p0(ptr nonnull %other.i) nounwind
  br label %angle_of.exit

angle_of.exit:
  call void @llvm.lifetime.end.p0(ptr nonnull %agg.tmp6)
  call void @llvm.lifetime.end.p0(ptr nonnull %.compoundliteral7)
  %cmp1 = fcmp olt double %x, 0.000000e+00
  %10 = load double, ptr %angle, align 8
  br i1 %cmp1, label %cond.true, label %cond.end

cond.true:
  %fneg.i15 = fneg double %10
  %add.i.i16 = fsub double 0x400921FB54442D18, %10
  %sub.i.i17 = fadd double %add.i.i16, 0xC00921FB54442D18
  %11 = fsub double %sub.i.i17, %add.i.i16
  %sub2.i.i18 = fadd double %11, 0x400921FB54442D18
  %sub3.i.i19 = fsub double %fneg.i15, %sub.i.i17
  %add4.i.i20 = fadd double %sub3.i.i19, %sub2.i.i18
  %low3.i = getelementptr inbounds nuw i8, ptr %angle, i32 8
  %12 = load double, ptr %low3.i, align 8
  %sub.i21 = fsub double 0x3CA1A62633145C07, %12
  %add.i22 = fadd double %sub.i21, %add4.i.i20
  %add4.i = fadd double %add.i.i16, %add.i22
  br label %cond.end

cond.end:
  %cond = phi double [ %add4.i, %cond.true ], [ %10, %angle_of.exit ]
  call void @llvm.lifetime.end.p0(ptr nonnull %angle) nounwind
  br label %cleanup

cleanup:
  %retval.0 = phi double [ %cond, %cond.end ], [ 0x7FF8000000000000, %entry ]
  ret double %retval.0
}

define hidden double @fmod(double noundef %x, double noundef %y) local_unnamed_addr nounwind {
entry:
  %0 = tail call double @llvm.fabs.f64(double %x)
  %1 = tail call double @llvm.fabs.f64(double %y)
  %cmp.i = fcmp one double %0, 0x7FF0000000000000
  %cmp1.i = fcmp one double %y, 0.000000e+00
  %or.cond.i = and i1 %cmp.i, %cmp1.i
  br i1 %or.cond.i, label %if.end.i, label %remainder_of.exit

if.end.i:
  %cmp2.i = fcmp olt double %0, %1
  br i1 %cmp2.i, label %remainder_of.exit, label %if.end4.i

if.end4.i:
  %2 = bitcast double %0 to i64
  %shr.i.i = lshr i64 %2, 52
  %conv.i.i = trunc nuw nsw i64 %shr.i.i to i32
  %cmp.i.i = icmp eq i64 %shr.i.i, 0
  %cond.i.i = select i1 %cmp.i.i, i32 1, i32 %conv.i.i
  %3 = bitcast double %1 to i64
  %shr.i35.i = lshr i64 %3, 52
  %conv.i36.i = trunc nuw nsw i64 %shr.i35.i to i32
  %cmp.i37.i = icmp eq i64 %shr.i35.i, 0
  %cond.i38.i = select i1 %cmp.i37.i, i32 1, i32 %conv.i36.i
  %and.i.i = and i64 %2, 4503599627370495
  %cmp.i39.i = icmp samesign ult i64 %2, 4503599627370496
  %or.i.i = or disjoint i64 %and.i.i, 4503599627370496
  %cond.i40.i = select i1 %cmp.i39.i, i64 %and.i.i, i64 %or.i.i
  %and.i41.i = and i64 %3, 4503599627370495
  %cmp.i42.i = icmp samesign ult i64 %3, 4503599627370496
  %or.i43.i = or disjoint i64 %and.i41.i, 4503599627370496
  %cond.i44.i = select i1 %cmp.i42.i, i64 %and.i41.i, i64 %or.i43.i
  %of_a.047.i = urem i64 %cond.i40.i, %cond.i44.i
  %cmp848.i = icmp samesign ugt i32 %cond.i.i, %cond.i38.i
  br i1 %cmp848.i, label %for.body.i, label %for.end.i

for.body.i:
  %of_a.050.i = phi i64 [ %of_a.0.i, %for.body.i ], [ %of_a.047.i, %if.end4.i ]
  %left.049.i = phi i32 [ %sub12.i, %for.body.i ], [ %cond.i.i, %if.end4.i ]
  %sub.i = sub nsw i32 %left.049.i, %cond.i38.i
  %cond.i = tail call i32 @llvm.smin.i32(i32 %sub.i, i32 10)
  %sh_prom.i = zext nneg i32 %cond.i to i64
  %shl.i = shl i64 %of_a.050.i, %sh_prom.i
  %sub12.i = sub nsw i32 %left.049.i, %cond.i
  %of_a.0.i = urem i64 %shl.i, %cond.i44.i
  %cmp8.i = icmp sgt i32 %sub12.i, %cond.i38.i
  br i1 %cmp8.i, label %for.body.i, label %for.end.i

for.end.i:
  %of_a.0.lcssa.i = phi i64 [ %of_a.047.i, %if.end4.i ], [ %of_a.0.i, %for.body.i ]
  %conv.i = uitofp nneg i64 %of_a.0.lcssa.i to double
  %sub13.i = add nsw i32 %cond.i38.i, -1075
  %cmp323.i.i = icmp samesign ult i32 %cond.i38.i, 115
  br i1 %cmp323.i.i, label %while.body4.i.i, label %ldexp.exit.i

while.body4.i.i:
  %n.addr.125.i.i = phi i32 [ %spec.store.select12.i.i, %while.body4.i.i ], [ %sub13.i, %for.end.i ]
  %x.addr.124.i.i = phi double [ %mul5.i.i, %while.body4.i.i ], [ %conv.i, %for.end.i ]
  %mul5.i.i = fmul double %x.addr.124.i.i, 0x3F0000000000000
  %4 = tail call i32 @llvm.umax.i32(i32 %n.addr.125.i.i, i32 -3960)
  %spec.store.select12.i.i = add nuw nsw i32 %4, 960
  %cmp3.i.i = icmp ult i32 %n.addr.125.i.i, -1920
  br i1 %cmp3.i.i, label %while.body4.i.i, label %ldexp.exit.i

ldexp.exit.i:
  %x.addr.1.lcssa.i.i = phi double [ %conv.i, %for.end.i ], [ %mul5.i.i, %while.body4.i.i ]
  %n.addr.1.lcssa.i.i = phi i32 [ %sub13.i, %for.end.i ], [ %spec.store.select12.i.i, %while.body4.i.i ]
  %add10.i.i = add nsw i32 %n.addr.1.lcssa.i.i, 1023
  %conv.i45.i = zext nneg i32 %add10.i.i to i64
  %shl.i.i = shl i64 %conv.i45.i, 52
  %5 = bitcast i64 %shl.i.i to double
  %mul11.i.i = fmul double %x.addr.1.lcssa.i.i, %5
  %6 = tail call double @llvm.copysign.f64(double %mul11.i.i, double %x)
  br label %remainder_of.exit

remainder_of.exit:
  %retval.0.i = phi double [ 0x7FF8000000000000, %entry ], [ %6, %ldexp.exit.i ], [ %x, %if.end.i ]
  ret double %retval.0.i
}

define hidden float @fmodf(float noundef %x, float noundef %y) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %x to double
  %0 = tail call double @llvm.fabs.f64(double %conv)
  %1 = tail call float @llvm.fabs.f32(float %y)
  %2 = fpext float %1 to double
  %cmp.i = fcmp one double %0, 0x7FF0000000000000
  %cmp1.i = fcmp one float %y, 0.000000e+00
  %or.cond.i = and i1 %cmp1.i, %cmp.i
  br i1 %or.cond.i, label %if.end.i, label %remainder_of.exit

if.end.i:
  %cmp2.i = fcmp olt double %0, %2
  br i1 %cmp2.i, label %remainder_of.exit, label %if.end4.i

if.end4.i:
  %3 = bitcast double %0 to i64
  %shr.i.i = lshr i64 %3, 52
  %conv.i.i = trunc nuw nsw i64 %shr.i.i to i32
  %cmp.i.i = icmp eq i64 %shr.i.i, 0
  %cond.i.i = select i1 %cmp.i.i, i32 1, i32 %conv.i.i
  %4 = bitcast double %2 to i64
  %shr.i35.i = lshr i64 %4, 52
  %conv.i36.i = trunc nuw nsw i64 %shr.i35.i to i32
  %cmp.i37.i = icmp eq i64 %shr.i35.i, 0
  %cond.i38.i = select i1 %cmp.i37.i, i32 1, i32 %conv.i36.i
  %and.i.i = and i64 %3, 4503599627370495
  %cmp.i39.i = icmp samesign ult i64 %3, 4503599627370496
  %or.i.i = or disjoint i64 %and.i.i, 4503599627370496
  %cond.i40.i = select i1 %cmp.i39.i, i64 %and.i.i, i64 %or.i.i
  %and.i41.i = and i64 %4, 4503599627370495
  %cmp.i42.i = icmp samesign ult i64 %4, 4503599627370496
  %or.i43.i = or disjoint i64 %and.i41.i, 4503599627370496
  %cond.i44.i = select i1 %cmp.i42.i, i64 %and.i41.i, i64 %or.i43.i
  %of_a.047.i = urem i64 %cond.i40.i, %cond.i44.i
  %cmp848.i = icmp samesign ugt i32 %cond.i.i, %cond.i38.i
  br i1 %cmp848.i, label %for.body.i, label %for.end.i

for.body.i:
  %of_a.050.i = phi i64 [ %of_a.0.i, %for.body.i ], [ %of_a.047.i, %if.end4.i ]
  %left.049.i = phi i32 [ %sub12.i, %for.body.i ], [ %cond.i.i, %if.end4.i ]
  %sub.i = sub nsw i32 %left.049.i, %cond.i38.i
  %cond.i = tail call i32 @llvm.smin.i32(i32 %sub.i, i32 10)
  %sh_prom.i = zext nneg i32 %cond.i to i64
  %shl.i = shl i64 %of_a.050.i, %sh_prom.i
  %sub12.i = sub nsw i32 %left.049.i, %cond.i
  %of_a.0.i = urem i64 %shl.i, %cond.i44.i
  %cmp8.i = icmp sgt i32 %sub12.i, %cond.i38.i
  br i1 %cmp8.i, label %for.body.i, label %for.end.i

for.end.i:
  %of_a.0.lcssa.i = phi i64 [ %of_a.047.i, %if.end4.i ], [ %of_a.0.i, %for.body.i ]
  %conv.i = uitofp nneg i64 %of_a.0.lcssa.i to double
  %sub13.i = add nsw i32 %cond.i38.i, -1075
  %cmp323.i.i = icmp samesign ult i32 %cond.i38.i, 115
  br i1 %cmp323.i.i, label %while.body4.i.i, label %ldexp.exit.i

while.body4.i.i:
  %n.addr.125.i.i = phi i32 [ %spec.store.select12.i.i, %while.body4.i.i ], [ %sub13.i, %for.end.i ]
  %x.addr.124.i.i = phi double [ %mul5.i.i, %while.body4.i.i ], [ %conv.i, %for.end.i ]
  %mul5.i.i = fmul double %x.addr.124.i.i, 0x3F0000000000000
  %5 = tail call i32 @llvm.umax.i32(i32 %n.addr.125.i.i, i32 -3960)
  %spec.store.select12.i.i = add nuw nsw i32 %5, 960
  %cmp3.i.i = icmp ult i32 %n.addr.125.i.i, -1920
  br i1 %cmp3.i.i, label %while.body4.i.i, label %ldexp.exit.i

ldexp.exit.i:
  %x.addr.1.lcssa.i.i = phi double [ %conv.i, %for.end.i ], [ %mul5.i.i, %while.body4.i.i ]
  %n.addr.1.lcssa.i.i = phi i32 [ %sub13.i, %for.end.i ], [ %spec.store.select12.i.i, %while.body4.i.i ]
  %add10.i.i = add nsw i32 %n.addr.1.lcssa.i.i, 1023
  %conv.i45.i = zext nneg i32 %add10.i.i to i64
  %shl.i.i = shl i64 %conv.i45.i, 52
  %6 = bitcast i64 %shl.i.i to double
  %mul11.i.i = fmul double %x.addr.1.lcssa.i.i, %6
  %7 = tail call double @llvm.copysign.f64(double %mul11.i.i, double %conv)
  %8 = fptrunc double %7 to float
  br label %remainder_of.exit

remainder_of.exit:
  %retval.0.i = phi float [ 0x7FF8000000000000, %entry ], [ %8, %ldexp.exit.i ], [ %x, %if.end.i ]
  ret float %retval.0.i
}

define hidden double @fma(double noundef %a, double noundef %b, double noundef %c) local_unnamed_addr nounwind {
entry:
  %0 = tail call double @llvm.fabs.f64(double %a)
  %1 = fcmp ueq double %0, 0x7FF0000000000000
  br i1 %1, label %if.then, label %lor.lhs.false

lor.lhs.false:
  %cmp = fcmp oeq double %a, 0.000000e+00
  %2 = tail call i1 @llvm.is.fpclass.f64(double %b, i32 615)
  %or.cond32 = or i1 %cmp, %2
  %cmp5 = fcmp oeq double %c, 0.000000e+00
  %or.cond33 = or i1 %or.cond32, %cmp5
  br i1 %or.cond33, label %if.then, label %if.end

if.then:
  %mul = fmul double %a, %b
  %add = fadd double %mul, %c
  br label %return

if.end:
  %3 = tail call double @llvm.fabs.f64(double %c)
  %4 = fcmp ueq double %3, 0x7FF0000000000000
  br i1 %4, label %return, label %if.end7

if.end7:
  %5 = bitcast double %a to i64
  %shr6.i = lshr i64 %5, 52
  %6 = trunc nuw nsw i64 %shr6.i to i32
  %conv7.i = and i32 %6, 2047
  %cmp8.i = icmp eq i32 %conv7.i, 0
  br i1 %cmp8.i, label %cond.true.i, label %exponent_of.exit

cond.true.i:
  %x.tr10.i = phi double [ %mul.i, %cond.true.i ], [ %a, %if.end7 ]
  %accumulator.tr9.i = phi i32 [ %sub.i, %cond.true.i ], [ 0, %if.end7 ]
  %mul.i = fmul double %x.tr10.i, 0x4350000000000000
  %sub.i = add nsw i32 %accumulator.tr9.i, -54
  %7 = bitcast double %mul.i to i64
  %shr.i = lshr i64 %7, 52
  %8 = trunc nuw nsw i64 %shr.i to i32
  %conv.i = and i32 %8, 2047
  %cmp.i = icmp eq i32 %conv.i, 0
  br i1 %cmp.i, label %cond.true.i, label %cond.false.loopexit.i

cond.false.loopexit.i:
  %9 = add i32 %accumulator.tr9.i, -1077
  br label %exponent_of.exit

exponent_of.exit:
  %accumulator.tr.lcssa.i = phi i32 [ -1023, %if.end7 ], [ %9, %cond.false.loopexit.i ]
  %conv.lcssa.i = phi i32 [ %conv7.i, %if.end7 ], [ %conv.i, %cond.false.loopexit.i ]
  %accumulator.ret.tr.i = add i32 %conv.lcssa.i, %accumulator.tr.lcssa.i
  %10 = bitcast double %b to i64
  %shr6.i56 = lshr i64 %10, 52
  %11 = trunc nuw nsw i64 %shr6.i56 to i32
  %conv7.i57 = and i32 %11, 2047
  %cmp8.i58 = icmp eq i32 %conv7.i57, 0
  br i1 %cmp8.i58, label %cond.true.i62, label %exponent_of.exit71

cond.true.i62:
  %x.tr10.i63 = phi double [ %mul.i65, %cond.true.i62 ], [ %b, %exponent_of.exit ]
  %accumulator.tr9.i64 = phi i32 [ %sub.i66, %cond.true.i62 ], [ 0, %exponent_of.exit ]
  %mul.i65 = fmul double %x.tr10.i63, 0x4350000000000000
  %sub.i66 = add nsw i32 %accumulator.tr9.i64, -54
  %12 = bitcast double %mul.i65 to i64
  %shr.i67 = lshr i64 %12, 52
  %13 = trunc nuw nsw i64 %shr.i67 to i32
  %conv.i68 = and i32 %13, 2047
  %cmp.i69 = icmp eq i32 %conv.i68, 0
  br i1 %cmp.i69, label %cond.true.i62, label %cond.false.loopexit.i70

cond.false.loopexit.i70:
  %14 = add i32 %accumulator.tr9.i64, -1077
  br label %exponent_of.exit71

exponent_of.exit71:
  %accumulator.tr.lcssa.i59 = phi i32 [ -1023, %exponent_of.exit ], [ %14, %cond.false.loopexit.i70 ]
  %conv.lcssa.i60 = phi i32 [ %conv7.i57, %exponent_of.exit ], [ %conv.i68, %cond.false.loopexit.i70 ]
  %accumulator.ret.tr.i61 = add i32 %conv.lcssa.i60, %accumulator.tr.lcssa.i59
  %15 = bitcast double %c to i64
  %shr6.i72 = lshr i64 %15, 52
  %16 = trunc nuw nsw i64 %shr6.i72 to i32
  %conv7.i73 = and i32 %16, 2047
  %cmp8.i74 = icmp eq i32 %conv7.i73, 0
  br i1 %cmp8.i74, label %cond.true.i78, label %exponent_of.exit87

cond.true.i78:
  %x.tr10.i79 = phi double [ %mul.i81, %cond.true.i78 ], [ %c, %exponent_of.exit71 ]
  %accumulator.tr9.i80 = phi i32 [ %sub.i82, %cond.true.i78 ], [ 0, %exponent_of.exit71 ]
  %mul.i81 = fmul double %x.tr10.i79, 0x4350000000000000
  %sub.i82 = add nsw i32 %accumulator.tr9.i80, -54
  %17 = bitcast double %mul.i81 to i64
  %shr.i83 = lshr i64 %17, 52
  %18 = trunc nuw nsw i64 %shr.i83 to i32
  %conv.i84 = and i32 %18, 2047
  %cmp.i85 = icmp eq i32 %conv.i84, 0
  br i1 %cmp.i85, label %cond.true.i78, label %cond.false.loopexit.i86

cond.false.loopexit.i86:
  %19 = add i32 %accumulator.tr9.i80, -1077
  br label %exponent_of.exit87

exponent_of.exit87:
  %accumulator.tr.lcssa.i75 = phi i32 [ -1023, %exponent_of.exit71 ], [ %19, %cond.false.loopexit.i86 ]
  %conv.lcssa.i76 = phi i32 [ %conv7.i73, %exponent_of.exit71 ], [ %conv.i84, %cond.false.loopexit.i86 ]
  %20 = add i32 %accumulator.ret.tr.i61, %accumulator.ret.tr.i
  %accumulator.ret.tr.i77 = sub i32 %accumulator.tr.lcssa.i75, %20
  %sub10 = add i32 %accumulator.ret.tr.i77, %conv.lcssa.i76
  %sub11 = sub nsw i32 0, %accumulator.ret.tr.i
  %cmp19.i = icmp slt i32 %accumulator.ret.tr.i, -1000
  br i1 %cmp19.i, label %while.body.i, label %while.cond2.preheader.i

while.cond2.preheader.i:
  %x.addr.0.lcssa.i = phi double [ %a, %exponent_of.exit87 ], [ %mul.i89, %while.body.i ]
  %n.addr.0.lcssa.i = phi i32 [ %sub11, %exponent_of.exit87 ], [ %spec.store.select.i, %while.body.i ]
  %cmp323.i = icmp slt i32 %n.addr.0.lcssa.i, -960
  br i1 %cmp323.i, label %while.body4.i, label %ldexp.exit

while.body.i:
  %n.addr.021.i = phi i32 [ %spec.store.select.i, %while.body.i ], [ %sub11, %exponent_of.exit87 ]
  %x.addr.020.i = phi double [ %mul.i89, %while.body.i ], [ %a, %exponent_of.exit87 ]
  %mul.i89 = fmul double %x.addr.020.i, 0x7E70000000000000
  %21 = tail call i32 @llvm.umin.i32(i32 %n.addr.021.i, i32 4000)
  %spec.store.select.i = add nsw i32 %21, -1000
  %cmp.i90 = icmp ugt i32 %n.addr.021.i, 2000
  br i1 %cmp.i90, label %while.body.i, label %while.cond2.preheader.i

while.body4.i:
  %n.addr.125.i = phi i32 [ %spec.store.select12.i, %while.body4.i ], [ %n.addr.0.lcssa.i, %while.cond2.preheader.i ]
  %x.addr.124.i = phi double [ %mul5.i, %while.body4.i ], [ %x.addr.0.lcssa.i, %while.cond2.preheader.i ]
  %mul5.i = fmul double %x.addr.124.i, 0x3F0000000000000
  %22 = tail call i32 @llvm.umax.i32(i32 %n.addr.125.i, i32 -3960)
  %spec.store.select12.i = add nuw nsw i32 %22, 960
  %cmp3.i = icmp ult i32 %n.addr.125.i, -1920
  br i1 %cmp3.i, label %while.body4.i, label %ldexp.exit

ldexp.exit:
  %x.addr.1.lcssa.i = phi double [ %x.addr.0.lcssa.i, %while.cond2.preheader.i ], [ %mul5.i, %while.body4.i ]
  %n.addr.1.lcssa.i = phi i32 [ %n.addr.0.lcssa.i, %while.cond2.preheader.i ], [ %spec.store.select12.i, %while.body4.i ]
  %add10.i = add nsw i32 %n.addr.1.lcssa.i, 1023
  %conv.i88 = zext nneg i32 %add10.i to i64
  %shl.i = shl i64 %conv.i88, 52
  %23 = bitcast i64 %shl.i to double
  %mul11.i = fmul double %x.addr.1.lcssa.i, %23
  %sub13 = sub nsw i32 0, %accumulator.ret.tr.i61
  %cmp19.i91 = icmp slt i32 %accumulator.ret.tr.i61, -1000
  br i1 %cmp19.i91, label %while.body.i108, label %while.cond2.preheader.i92

while.cond2.preheader.i92:
  %x.addr.0.lcssa.i93 = phi double [ %b, %ldexp.exit ], [ %mul.i111, %while.body.i108 ]
  %n.addr.0.lcssa.i94 = phi i32 [ %sub13, %ldexp.exit ], [ %spec.store.select.i112, %while.body.i108 ]
  %cmp323.i95 = icmp slt i32 %n.addr.0.lcssa.i94, -960
  br i1 %cmp323.i95, label %while.body4.i102, label %ldexp.exit114

while.body.i108:
  %n.addr.021.i109 = phi i32 [ %spec.store.select.i112, %while.body.i108 ], [ %sub13, %ldexp.exit ]
  %x.addr.020.i110 = phi double [ %mul.i111, %while.body.i108 ], [ %b, %ldexp.exit ]
  %mul.i111 = fmul double %x.addr.020.i110, 0x7E70000000000000
  %24 = tail call i32 @llvm.umin.i32(i32 %n.addr.021.i109, i32 4000)
  %spec.store.select.i112 = add nsw i32 %24, -1000
  %cmp.i113 = icmp ugt i32 %n.addr.021.i109, 2000
  br i1 %cmp.i113, label %while.body.i108, label %while.cond2.preheader.i92

while.body4.i102:
  %n.addr.125.i103 = phi i32 [ %spec.store.select12.i106, %while.body4.i102 ], [ %n.addr.0.lcssa.i94, %while.cond2.preheader.i92 ]
  %x.addr.124.i104 = phi double [ %mul5.i105, %while.body4.i102 ], [ %x.addr.0.lcssa.i93, %while.cond2.preheader.i92 ]
  %mul5.i105 = fmul double %x.addr.124.i104, 0x3F0000000000000
  %25 = tail call i32 @llvm.umax.i32(i32 %n.addr.125.i103, i32 -3960)
  %spec.store.select12.i106 = add nuw nsw i32 %25, 960
  %cmp3.i107 = icmp ult i32 %n.addr.125.i103, -1920
  br i1 %cmp3.i107, label %while.body4.i102, label %ldexp.exit114

ldexp.exit114:
  %x.addr.1.lcssa.i96 = phi double [ %x.addr.0.lcssa.i93, %while.cond2.preheader.i92 ], [ %mul5.i105, %while.body4.i102 ]
  %n.addr.1.lcssa.i97 = phi i32 [ %n.addr.0.lcssa.i94, %while.cond2.preheader.i92 ], [ %spec.store.select12.i106, %while.body4.i102 ]
  %add10.i98 = add nsw i32 %n.addr.1.lcssa.i97, 1023
  %conv.i99 = zext nneg i32 %add10.i98 to i64
  %shl.i100 = shl i64 %conv.i99, 52
  %26 = bitcast i64 %shl.i100 to double
  %mul11.i101 = fmul double %x.addr.1.lcssa.i96, %26
  %mul.i.i = fmul double %mul11.i, 0x41A0000002000000
  %sub.i.i = fsub double %mul.i.i, %mul11.i
  %sub1.i.i = fsub double %mul.i.i, %sub.i.i
  %sub3.i.i = fsub double %mul11.i, %sub1.i.i
  %mul.i18.i = fmul double %mul11.i101, 0x41A0000002000000
  %sub.i19.i = fsub double %mul.i18.i, %mul11.i101
  %sub1.i20.i = fsub double %mul.i18.i, %sub.i19.i
  %sub3.i22.i = fsub double %mul11.i101, %sub1.i20.i
  %mul.i115 = fmul double %mul11.i, %mul11.i101
  %mul3.i = fmul double %sub1.i.i, %sub1.i20.i
  %sub.i116 = fsub double %mul3.i, %mul.i115
  %mul6.i = fmul double %sub1.i.i, %sub3.i22.i
  %add.i = fadd double %sub.i116, %mul6.i
  %mul9.i = fmul double %sub3.i.i, %sub1.i20.i
  %add10.i117 = fadd double %mul9.i, %add.i
  %mul13.i = fmul double %sub3.i.i, %sub3.i22.i
  %add14.i = fadd double %mul13.i, %add10.i117
  %cmp15 = icmp sgt i32 %sub10, 110
  br i1 %cmp15, label %return, label %if.end17

if.end17:
  %cmp18 = icmp slt i32 %sub10, -120
  br i1 %cmp18, label %cond.true, label %cond.false

cond.true:
  %27 = tail call double @llvm.copysign.f64(double 0x3870000000000000, double %c)
  br label %cond.end

cond.false:
  br i1 %cmp8.i74, label %cond.true.i124, label %exponent_of.exit133

cond.true.i124:
  %x.tr10.i125 = phi double [ %mul.i127, %cond.true.i124 ], [ %c, %cond.false ]
  %accumulator.tr9.i126 = phi i32 [ %sub.i128, %cond.true.i124 ], [ 0, %cond.false ]
  %mul.i127 = fmul double %x.tr10.i125, 0x4350000000000000
  %sub.i128 = add nsw i32 %accumulator.tr9.i126, -54
  %28 = bitcast double %mul.i127 to i64
  %shr.i129 = lshr i64 %28, 52
  %29 = trunc nuw nsw i64 %shr.i129 to i32
  %conv.i130 = and i32 %29, 2047
  %cmp.i131 = icmp eq i32 %conv.i130, 0
  br i1 %cmp.i131, label %cond.true.i124, label %cond.false.loopexit.i132

cond.false.loopexit.i132:
  %.neg = sub i32 1077, %accumulator.tr9.i126
  br label %exponent_of.exit133

exponent_of.exit133:
  %accumulator.tr.lcssa.i121.neg = phi i32 [ 1023, %cond.false ], [ %.neg, %cond.false.loopexit.i132 ]
  %conv.lcssa.i122 = phi i32 [ %conv7.i73, %cond.false ], [ %conv.i130, %cond.false.loopexit.i132 ]
  %accumulator.ret.tr.i123.neg = sub i32 %accumulator.tr.lcssa.i121.neg, %conv.lcssa.i122
  %cmp19.i134 = icmp sgt i32 %accumulator.ret.tr.i123.neg, 1000
  br i1 %cmp19.i134, label %while.body.i151, label %while.cond2.preheader.i135

while.cond2.preheader.i135:
  %x.addr.0.lcssa.i136 = phi double [ %c, %exponent_of.exit133 ], [ %mul.i154, %while.body.i151 ]
  %n.addr.0.lcssa.i137 = phi i32 [ %accumulator.ret.tr.i123.neg, %exponent_of.exit133 ], [ %spec.store.select.i155, %while.body.i151 ]
  %cmp323.i138 = icmp slt i32 %n.addr.0.lcssa.i137, -960
  br i1 %cmp323.i138, label %while.body4.i145, label %ldexp.exit181

while.body.i151:
  %n.addr.021.i152 = phi i32 [ %spec.store.select.i155, %while.body.i151 ], [ %accumulator.ret.tr.i123.neg, %exponent_of.exit133 ]
  %x.addr.020.i153 = phi double [ %mul.i154, %while.body.i151 ], [ %c, %exponent_of.exit133 ]
  %mul.i154 = fmul double %x.addr.020.i153, 0x7E70000000000000
  %30 = tail call i32 @llvm.umin.i32(i32 %n.addr.021.i152, i32 4000)
  %spec.store.select.i155 = add nsw i32 %30, -1000
  %cmp.i156 = icmp ugt i32 %n.addr.021.i152, 2000
  br i1 %cmp.i156, label %while.body.i151, label %while.cond2.preheader.i135

while.body4.i145:
  %n.addr.125.i146 = phi i32 [ %spec.store.select12.i149, %while.body4.i145 ], [ %n.addr.0.lcssa.i137, %while.cond2.preheader.i135 ]
  %x.addr.124.i147 = phi double [ %mul5.i148, %while.body4.i145 ], [ %x.addr.0.lcssa.i136, %while.cond2.preheader.i135 ]
  %mul5.i148 = fmul double %x.addr.124.i147, 0x3F0000000000000
  %31 = tail call i32 @llvm.umax.i32(i32 %n.addr.125.i146, i32 -3960)
  %spec.store.select12.i149 = add nuw nsw i32 %31, 960
  %cmp3.i150 = icmp ult i32 %n.addr.125.i146, -1920
  br i1 %cmp3.i150, label %while.body4.i145, label %ldexp.exit181

ldexp.exit181:
  %x.addr.1.lcssa.i139 = phi double [ %x.addr.0.lcssa.i136, %while.cond2.preheader.i135 ], [ %mul5.i148, %while.body4.i145 ]
  %n.addr.1.lcssa.i140 = phi i32 [ %n.addr.0.lcssa.i137, %while.cond2.preheader.i135 ], [ %spec.store.select12.i149, %while.body4.i145 ]
  %add10.i141 = add nsw i32 %n.addr.1.lcssa.i140, 1023
  %conv.i142 = zext nneg i32 %add10.i141 to i64
  %shl.i143 = shl i64 %conv.i142, 52
  %32 = bitcast i64 %shl.i143 to double
  %mul11.i144 = fmul double %x.addr.1.lcssa.i139, %32
  %add10.i165 = add nsw i32 %sub10, 1023
  %conv.i166 = zext nneg i32 %add10.i165 to i64
  %shl.i167 = shl nuw nsw i64 %conv.i166, 52
  %33 = bitcast i64 %shl.i167 to double
  %mul11.i168 = fmul double %mul11.i144, %33
  br label %cond.end

cond.end:
  %cond = phi double [ %27, %cond.true ], [ %mul11.i168, %ldexp.exit181 ]
  %add.i182 = fadd double %mul.i115, %cond
  %sub.i183 = fsub double %add.i182, %mul.i115
  %sub1.i = fsub double %add.i182, %sub.i183
  %sub2.i = fsub double %mul.i115, %sub1.i
  %sub3.i = fsub double %cond, %sub.i183
  %add4.i = fadd double %sub3.i, %sub2.i
  %add.i.i = fadd double %add14.i, %add4.i
  %sub.i.i185 = fsub double %add.i.i, %add14.i
  %sub1.i.i186 = fsub double %add.i.i, %sub.i.i185
  %sub2.i.i = fsub double %add14.i, %sub1.i.i186
  %sub3.i.i187 = fsub double %add4.i, %sub.i.i185
  %add4.i.i = fadd double %sub3.i.i187, %sub2.i.i
  %34 = bitcast double %add.i.i to i64
  %cmp.i188 = fcmp une double %add4.i.i, 0.000000e+00
  %and.i = and i64 %34, 1
  %tobool.not.i = icmp eq i64 %and.i, 0
  %or.cond.i = and i1 %tobool.not.i, %cmp.i188
  br i1 %or.cond.i, label %if.then.i, label %odd_sum.exit

if.then.i:
  %cmp2.i = fcmp ogt double %add4.i.i, 0.000000e+00
  %35 = fcmp ule double %add.i.i, 0.000000e+00
  %cmp6.i = xor i1 %35, %cmp2.i
  %cond.i = select i1 %cmp6.i, i64 1, i64 -1
  %add.i189 = add i64 %cond.i, %34
  %36 = bitcast i64 %add.i189 to double
  br label %odd_sum.exit

odd_sum.exit:
  %word.0.i = phi double [ %add.i.i, %cond.end ], [ %36, %if.then.i ]
  %add26 = fadd double %add.i182, %word.0.i
  %cmp19.i190 = icmp sgt i32 %20, 1000
  br i1 %cmp19.i190, label %while.body.i207, label %while.cond2.preheader.i191

while.cond2.preheader.i191:
  %x.addr.0.lcssa.i192 = phi double [ %add26, %odd_sum.exit ], [ %mul.i210, %while.body.i207 ]
  %n.addr.0.lcssa.i193 = phi i32 [ %20, %odd_sum.exit ], [ %spec.store.select.i211, %while.body.i207 ]
  %cmp323.i194 = icmp slt i32 %n.addr.0.lcssa.i193, -960
  br i1 %cmp323.i194, label %while.body4.i201, label %ldexp.exit213

while.body.i207:
  %n.addr.021.i208 = phi i32 [ %spec.store.select.i211, %while.body.i207 ], [ %20, %odd_sum.exit ]
  %x.addr.020.i209 = phi double [ %mul.i210, %while.body.i207 ], [ %add26, %odd_sum.exit ]
  %mul.i210 = fmul double %x.addr.020.i209, 0x7E70000000000000
  %37 = tail call i32 @llvm.umin.i32(i32 %n.addr.021.i208, i32 4000)
  %spec.store.select.i211 = add nsw i32 %37, -1000
  %cmp.i212 = icmp ugt i32 %n.addr.021.i208, 2000
  br i1 %cmp.i212, label %while.body.i207, label %while.cond2.preheader.i191

while.body4.i201:
  %n.addr.125.i202 = phi i32 [ %spec.store.select12.i205, %while.body4.i201 ], [ %n.addr.0.lcssa.i193, %while.cond2.preheader.i191 ]
  %x.addr.124.i203 = phi double [ %mul5.i204, %while.body4.i201 ], [ %x.addr.0.lcssa.i192, %while.cond2.preheader.i191 ]
  %mul5.i204 = fmul double %x.addr.124.i203, 0x3F0000000000000
  %38 = tail call i32 @llvm.umax.i32(i32 %n.addr.125.i202, i32 -3960)
  %spec.store.select12.i205 = add nuw nsw i32 %38, 960
  %cmp3.i206 = icmp ult i32 %n.addr.125.i202, -1920
  br i1 %cmp3.i206, label %while.body4.i201, label %ldexp.exit213

ldexp.exit213:
  %x.addr.1.lcssa.i195 = phi double [ %x.addr.0.lcssa.i192, %while.cond2.preheader.i191 ], [ %mul5.i204, %while.body4.i201 ]
  %n.addr.1.lcssa.i196 = phi i32 [ %n.addr.0.lcssa.i193, %while.cond2.preheader.i191 ], [ %spec.store.select12.i205, %while.body4.i201 ]
  %add10.i197 = add nsw i32 %n.addr.1.lcssa.i196, 1023
  %conv.i198 = zext nneg i32 %add10.i197 to i64
  %shl.i199 = shl i64 %conv.i198, 52
  %39 = bitcast i64 %shl.i199 to double
  %mul11.i200 = fmul double %x.addr.1.lcssa.i195, %39
  br label %return

return:
  %retval.1 = phi double [ %add, %if.then ], [ %c, %if.end ], [ %mul11.i200, %ldexp.exit213 ], [ %c, %ldexp.exit114 ]
  ret double %retval.1
}

define hidden float @fmaf(float noundef %a, float noundef %b, float noundef %c) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %a to double
  %conv1 = fpext float %b to double
  %mul = fmul double %conv, %conv1
  %conv2 = fpext float %c to double
  %add = fadd double %mul, %conv2
  %0 = tail call double @llvm.fabs.f64(double %add)
  %1 = fcmp ueq double %0, 0x7FF0000000000000
  br i1 %1, label %cond.end, label %cond.true

cond.true:
  %sub.i.i = fsub double %add, %mul
  %sub1.i.i = fsub double %add, %sub.i.i
  %sub2.i.i = fsub double %mul, %sub1.i.i
  %sub3.i.i = fsub double %conv2, %sub.i.i
  %add4.i.i = fadd double %sub3.i.i, %sub2.i.i
  %2 = bitcast double %add to i64
  %cmp.i = fcmp une double %add4.i.i, 0.000000e+00
  %and.i = and i64 %2, 1
  %tobool.not.i = icmp eq i64 %and.i, 0
  %or.cond.i = and i1 %tobool.not.i, %cmp.i
  br i1 %or.cond.i, label %if.then.i, label %cond.end

if.then.i:
  %cmp2.i = fcmp ogt double %add4.i.i, 0.000000e+00
  %3 = fcmp ule double %add, 0.000000e+00
  %cmp6.i = xor i1 %3, %cmp2.i
  %cond.i = select i1 %cmp6.i, i64 1, i64 -1
  %add.i = add i64 %cond.i, %2
  %4 = bitcast i64 %add.i to double
  br label %cond.end

cond.end:
  %cond = phi double [ %add, %entry ], [ %add, %cond.true ], [ %4, %if.then.i ]
  %conv4 = fptrunc double %cond to float
  ret float %conv4
}

define hidden noundef float @expf(float noundef %x) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %x to double
  %0 = tail call double @llvm.exp.f64(double %conv)
  %conv1 = fptrunc double %0 to float
  ret float %conv1
}

declare double @llvm.exp.f64(double) nounwind

define hidden noundef float @exp2f(float noundef %x) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %x to double
  %0 = tail call double @llvm.exp2.f64(double %conv)
  %conv1 = fptrunc double %0 to float
  ret float %conv1
}

declare double @llvm.exp2.f64(double) nounwind

define hidden noundef float @logf(float noundef %x) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %x to double
  %0 = tail call double @llvm.log.f64(double %conv)
  %conv1 = fptrunc double %0 to float
  ret float %conv1
}

declare double @llvm.log.f64(double) nounwind

define hidden noundef float @sinf(float noundef %x) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %x to double
  %0 = tail call double @llvm.sin.f64(double %conv)
  %conv1 = fptrunc double %0 to float
  ret float %conv1
}

declare double @llvm.sin.f64(double) nounwind

define hidden noundef float @cosf(float noundef %x) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %x to double
  %0 = tail call double @llvm.cos.f64(double %conv)
  %conv1 = fptrunc double %0 to float
  ret float %conv1
}

declare double @llvm.cos.f64(double) nounwind

define hidden float @tanf(float noundef %x) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %x to double
  %0 = tail call double @llvm.tan.f64(double %conv)
  %conv1 = fptrunc double %0 to float
  ret float %conv1
}

declare double @llvm.tan.f64(double) nounwind

define hidden float @asinf(float noundef %x) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %x to double
  %0 = tail call double @llvm.asin.f64(double %conv)
  %conv1 = fptrunc double %0 to float
  ret float %conv1
}

declare double @llvm.asin.f64(double) nounwind

define hidden float @acosf(float noundef %x) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %x to double
  %0 = tail call double @llvm.acos.f64(double %conv)
  %conv1 = fptrunc double %0 to float
  ret float %conv1
}

declare double @llvm.acos.f64(double) nounwind

define hidden float @tanhf(float noundef %x) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %x to double
  %0 = tail call double @llvm.tanh.f64(double %conv)
  %conv1 = fptrunc double %0 to float
  ret float %conv1
}

declare double @llvm.tanh.f64(double) nounwind

define hidden float @atan2f(float noundef %x, float noundef %y) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %x to double
  %conv1 = fpext float %y to double
  %0 = tail call double @llvm.atan2.f64(double %conv, double %conv1)
  %conv2 = fptrunc double %0 to float
  ret float %conv2
}

declare double @llvm.atan2.f64(double, double) nounwind

define hidden noundef float @powf(float noundef %x, float noundef %y) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %x to double
  %conv1 = fpext float %y to double
  %0 = tail call double @llvm.pow.f64(double %conv, double %conv1)
  %conv2 = fptrunc double %0 to float
  ret float %conv2
}

declare double @llvm.pow.f64(double, double) nounwind

define hidden float @ldexpf(float noundef %x, i32 noundef %n) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %x to double
  %cmp19.i = icmp sgt i32 %n, 1000
  br i1 %cmp19.i, label %while.body.i, label %while.cond2.preheader.i

while.cond2.preheader.i:
  %x.addr.0.lcssa.i = phi double [ %conv, %entry ], [ %mul.i, %while.body.i ]
  %n.addr.0.lcssa.i = phi i32 [ %n, %entry ], [ %spec.store.select.i, %while.body.i ]
  %cmp323.i = icmp slt i32 %n.addr.0.lcssa.i, -960
  br i1 %cmp323.i, label %while.body4.i, label %ldexp.exit

while.body.i:
  %n.addr.021.i = phi i32 [ %spec.store.select.i, %while.body.i ], [ %n, %entry ]
  %x.addr.020.i = phi double [ %mul.i, %while.body.i ], [ %conv, %entry ]
  %mul.i = fmul double %x.addr.020.i, 0x7E70000000000000
  %0 = tail call i32 @llvm.umin.i32(i32 %n.addr.021.i, i32 4000)
  %spec.store.select.i = add nsw i32 %0, -1000
  %cmp.i = icmp ugt i32 %n.addr.021.i, 2000
  br i1 %cmp.i, label %while.body.i, label %while.cond2.preheader.i

while.body4.i:
  %n.addr.125.i = phi i32 [ %spec.store.select12.i, %while.body4.i ], [ %n.addr.0.lcssa.i, %while.cond2.preheader.i ]
  %x.addr.124.i = phi double [ %mul5.i, %while.body4.i ], [ %x.addr.0.lcssa.i, %while.cond2.preheader.i ]
  %mul5.i = fmul double %x.addr.124.i, 0x3F0000000000000
  %1 = tail call i32 @llvm.umax.i32(i32 %n.addr.125.i, i32 -3960)
  %spec.store.select12.i = add nuw nsw i32 %1, 960
  %cmp3.i = icmp ult i32 %n.addr.125.i, -1920
  br i1 %cmp3.i, label %while.body4.i, label %ldexp.exit

ldexp.exit:
  %x.addr.1.lcssa.i = phi double [ %x.addr.0.lcssa.i, %while.cond2.preheader.i ], [ %mul5.i, %while.body4.i ]
  %n.addr.1.lcssa.i = phi i32 [ %n.addr.0.lcssa.i, %while.cond2.preheader.i ], [ %spec.store.select12.i, %while.body4.i ]
  %add10.i = add nsw i32 %n.addr.1.lcssa.i, 1023
  %conv.i = zext nneg i32 %add10.i to i64
  %shl.i = shl i64 %conv.i, 52
  %2 = bitcast i64 %shl.i to double
  %mul11.i = fmul double %x.addr.1.lcssa.i, %2
  %conv1 = fptrunc double %mul11.i to float
  ret float %conv1
}

define hidden float @__extendhfsf2(i16 noundef zeroext %value) local_unnamed_addr nounwind {
entry:
  %conv.i = zext i16 %value to i32
  %shr.i = lshr i32 %conv.i, 10
  %and.i = and i32 %shr.i, 31
  %and3.i = and i32 %conv.i, 1023
  %conv4.i = zext nneg i32 %and3.i to i64
  %cmp.i = icmp eq i32 %and.i, 31
  br i1 %cmp.i, label %if.then.i, label %if.else.i

if.then.i:
  %shl.i = shl nuw nsw i64 %conv4.i, 42
  %or.i = or disjoint i64 %shl.i, 9218868437227405312
  %0 = bitcast i64 %or.i to double
  br label %real_of_half.exit

if.else.i:
  %conv5.i = uitofp nneg i32 %and3.i to double
  %mul.i = fmul double %conv5.i, 0x3E70000000000000
  %cmp7.not.i = icmp eq i32 %and.i, 0
  br i1 %cmp7.not.i, label %real_of_half.exit, label %if.then9.i

if.then9.i:
  %1 = add nuw nsw i32 %and.i, 1008
  %sub.i = zext nneg i32 %1 to i64
  %shl10.i = shl nuw nsw i64 %sub.i, 52
  %shl11.i = shl nuw nsw i64 %conv4.i, 42
  %or12.i = or disjoint i64 %shl10.i, %shl11.i
  %2 = bitcast i64 %or12.i to double
  br label %real_of_half.exit

real_of_half.exit:
  %found.sroa.0.0.i = phi double [ %0, %if.then.i ], [ %2, %if.then9.i ], [ %mul.i, %if.else.i ]
  %fneg.i = fneg double %found.sroa.0.0.i
  %tobool.not23.i = icmp slt i16 %value, 0
  %cond.i = select i1 %tobool.not23.i, double %fneg.i, double %found.sroa.0.0.i
  %conv = fptrunc double %cond.i to float
  ret float %conv
}

define hidden zeroext i16 @__truncsfhf2(float noundef %value) local_unnamed_addr nounwind {
entry:
  %conv = fpext float %value to double
  %0 = tail call double @llvm.fabs.f64(double %conv)
  %and1.i = bitcast double %0 to i64
  %cmp.i = fcmp uno float %value, 0.000000e+00
  br i1 %cmp.i, label %if.then.i, label %if.else.i

if.then.i:
  %shr3.i = lshr i64 %and1.i, 42
  %1 = trunc i64 %shr3.i to i16
  %conv5.i = and i16 %1, 511
  %or.i = or disjoint i16 %conv5.i, 32256
  br label %__truncdfhf2.exit

if.else.i:
  %cmp8.i = fcmp ult double %0, 6.552000e+04
  br i1 %cmp8.i, label %if.else11.i, label %__truncdfhf2.exit

if.else11.i:
  %cmp12.i = fcmp olt double %0, 0x3F10000000000000
  br i1 %cmp12.i, label %if.then14.i, label %if.else16.i

if.then14.i:
  %add.i = fadd double %0, 0x41B0000000000000
  %2 = bitcast double %add.i to i64
  %conv15.i = trunc i64 %2 to i16
  br label %__truncdfhf2.exit

if.else16.i:
  %sub18.i = add nuw i64 %and1.i, 2199023255551
  %shr19.i = lshr i64 %and1.i, 42
  %and20.i = and i64 %shr19.i, 1
  %add21.i = add nuw i64 %sub18.i, %and20.i
  %shr22.i = lshr i64 %add21.i, 42
  %3 = trunc i64 %shr22.i to i16
  %conv24.i = add i16 %3, 16384
  br label %__truncdfhf2.exit

__truncdfhf2.exit:
  %half.sroa.0.0.i = phi i16 [ %or.i, %if.then.i ], [ %conv24.i, %if.else16.i ], [ %conv15.i, %if.then14.i ], [ 31744, %if.else.i ]
  %4 = bitcast double %conv to i64
  %shr.i = lshr i64 %4, 48
  %5 = trunc nuw i64 %shr.i to i16
  %conv.i = and i16 %5, -32768
  %or29.i = or i16 %half.sroa.0.0.i, %conv.i
  ret i16 %or29.i
}

define hidden i128 @__multi3(i128 noundef %a, i128 noundef %b) local_unnamed_addr nounwind {
entry:
  %x.sroa.0.0.extract.trunc = trunc i128 %a to i64
  %x.sroa.6.0.extract.shift = lshr i128 %a, 64
  %x.sroa.6.0.extract.trunc = trunc nuw i128 %x.sroa.6.0.extract.shift to i64
  %y.sroa.0.0.extract.trunc = trunc i128 %b to i64
  %y.sroa.6.0.extract.shift = lshr i128 %b, 64
  %y.sroa.6.0.extract.trunc = trunc nuw i128 %y.sroa.6.0.extract.shift to i64
  %conv1 = and i64 %x.sroa.0.0.extract.trunc, 4294967295
  %shr = lshr i64 %x.sroa.0.0.extract.trunc, 32
  %conv5 = and i64 %y.sroa.0.0.extract.trunc, 4294967295
  %shr7 = lshr i64 %y.sroa.0.0.extract.trunc, 32
  %mul = mul nuw i64 %conv5, %conv1
  %mul8 = mul nuw i64 %conv5, %shr
  %shr9 = lshr i64 %mul, 32
  %add = add nuw i64 %shr9, %mul8
  %mul10 = mul nuw i64 %shr7, %conv1
  %conv12 = and i64 %add, 4294967295
  %add13 = add nuw i64 %conv12, %mul10
  %shl = shl i64 %add13, 32
  %conv15 = and i64 %mul, 4294967295
  %or = or disjoint i64 %shl, %conv15
  %mul17 = mul nuw i64 %shr7, %shr
  %shr18 = lshr i64 %add, 32
  %shr20 = lshr i64 %add13, 32
  %mul24 = mul i64 %y.sroa.6.0.extract.trunc, %x.sroa.0.0.extract.trunc
  %mul28 = mul i64 %x.sroa.6.0.extract.trunc, %y.sroa.0.0.extract.trunc
  %add19 = add i64 %mul17, %mul28
  %add21 = add i64 %add19, %mul24
  %add25 = add i64 %add21, %shr18
  %add29 = add i64 %add25, %shr20
  %product.sroa.4.0.insert.ext = zext i64 %add29 to i128
  %product.sroa.4.0.insert.shift = shl nuw i128 %product.sroa.4.0.insert.ext, 64
  %product.sroa.0.0.insert.ext = zext i64 %or to i128
  %product.sroa.0.0.insert.insert = or disjoint i128 %product.sroa.4.0.insert.shift, %product.sroa.0.0.insert.ext
  ret i128 %product.sroa.0.0.insert.insert
}

declare i32 @llvm.wasm.memory.grow.i32(i32, i32) nounwind

declare void @llvm.memset.p0.i32(ptr writeonly captures(none), i8, i32, i1 immarg) nounwind

define internal fastcc void @copy(ptr noundef writeonly captures(none) %to, ptr noundef readonly captures(none) %from, i64 noundef %rank, ptr noundef readonly captures(none) %axes, i64 noundef %size) unnamed_addr nounwind {
entry:
  %cmp = icmp eq i64 %rank, 0
  br i1 %cmp, label %if.then, label %for.cond.preheader

for.cond.preheader:
  %0 = load i64, ptr %axes, align 8
  %cmp118 = icmp sgt i64 %0, 0
  br i1 %cmp118, label %for.body.lr.ph, label %for.end

for.body.lr.ph:
  %sub = add nsw i64 %rank, -1
  %add.ptr = getelementptr inbounds nuw i8, ptr %axes, i32 24
  %arrayidx3 = getelementptr inbounds nuw i8, ptr %axes, i32 8
  %arrayidx5 = getelementptr inbounds nuw i8, ptr %axes, i32 16
  br label %for.body

if.then:
  %conv = trunc i64 %size to i32
  tail call void @llvm.memmove.p0.p0.i32(ptr align 1 %to, ptr align 1 %from, i32 %conv, i1 false)
  br label %for.end

for.body:
  %i.021 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.body ]
  %to.addr.020 = phi ptr [ %to, %for.body.lr.ph ], [ %add.ptr4, %for.body ]
  %from.addr.019 = phi ptr [ %from, %for.body.lr.ph ], [ %add.ptr7, %for.body ]
  tail call fastcc void @copy(ptr noundef %to.addr.020, ptr noundef %from.addr.019, i64 noundef %sub, ptr noundef nonnull %add.ptr, i64 noundef %size)
  %inc = add nuw nsw i64 %i.021, 1
  %1 = load i64, ptr %arrayidx3, align 8
  %idx.ext = trunc i64 %1 to i32
  %add.ptr4 = getelementptr inbounds i8, ptr %to.addr.020, i32 %idx.ext
  %2 = load i64, ptr %arrayidx5, align 8
  %idx.ext6 = trunc i64 %2 to i32
  %add.ptr7 = getelementptr inbounds i8, ptr %from.addr.019, i32 %idx.ext6
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
  %cmp222 = icmp sgt i64 %0, 0
  br i1 %cmp222, label %for.body.lr.ph, label %for.end

for.body.lr.ph:
  %sub = add nsw i64 %rank, -1
  %add.ptr = getelementptr inbounds nuw i8, ptr %axes, i32 24
  %arrayidx3 = getelementptr inbounds nuw i8, ptr %axes, i32 8
  %arrayidx5 = getelementptr inbounds nuw i8, ptr %axes, i32 16
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
  %conv.i19 = fptrunc double %number.sroa.0.0 to float
  store float %conv.i19, ptr %to, align 4
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
  %i.025 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.body ]
  %to.addr.024 = phi ptr [ %to, %for.body.lr.ph ], [ %add.ptr4, %for.body ]
  %from.addr.023 = phi ptr [ %from, %for.body.lr.ph ], [ %add.ptr7, %for.body ]
  tail call fastcc void @convert(i64 noundef %to_type, ptr noundef %to.addr.024, i64 noundef %from_type, ptr noundef %from.addr.023, i64 noundef %sub, ptr noundef nonnull %add.ptr)
  %inc = add nuw nsw i64 %i.025, 1
  %28 = load i64, ptr %arrayidx3, align 8
  %idx.ext = trunc i64 %28 to i32
  %add.ptr4 = getelementptr inbounds i8, ptr %to.addr.024, i32 %idx.ext
  %29 = load i64, ptr %arrayidx5, align 8
  %idx.ext6 = trunc i64 %29 to i32
  %add.ptr7 = getelementptr inbounds i8, ptr %from.addr.023, i32 %idx.ext6
  %30 = load i64, ptr %axes, align 8
  %cmp2 = icmp slt i64 %inc, %30
  br i1 %cmp2, label %for.body, label %for.end

for.end:
  ret void
}

define internal fastcc range(i32 0, 7) i32 @store(i64 noundef %type, ptr noundef writeonly captures(none) %at, i64 noundef %is_real, ptr noundef readonly byval(%union.number) align 8 captures(none) %number) unnamed_addr nounwind {
entry:
  %spec.select.i = icmp ult i64 %type, 3
  %tobool.not = icmp eq i64 %is_real, 0
  br i1 %spec.select.i, label %if.then, label %if.end

if.then:
  %0 = load double, ptr %number, align 8
  %.cast = bitcast double %0 to i64
  %conv = sitofp i64 %.cast to double
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
  br i1 %tobool.not, label %if.end4, label %return

if.end4:
  %15 = load i64, ptr %number, align 8
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
  %16 = add i64 %15, -128
  %or.cond.i = icmp ult i64 %16, -256
  br i1 %or.cond.i, label %return, label %if.end.i

if.end.i:
  %conv.i11 = trunc nsw i64 %15 to i8
  store i8 %conv.i11, ptr %at, align 1
  br label %return

sw.bb2.i:
  %17 = add i64 %15, -32768
  %or.cond59.i = icmp ult i64 %17, -65536
  br i1 %or.cond59.i, label %return, label %if.end9.i

if.end9.i:
  %conv10.i = trunc nsw i64 %15 to i16
  store i16 %conv10.i, ptr %at, align 2
  br label %return

sw.bb11.i:
  %18 = add i64 %15, -2147483648
  %or.cond60.i = icmp ult i64 %18, -4294967296
  br i1 %or.cond60.i, label %return, label %if.end18.i

if.end18.i:
  %conv19.i = trunc nsw i64 %15 to i32
  store i32 %conv19.i, ptr %at, align 4
  br label %return

sw.bb20.i:
  store i64 %15, ptr %at, align 8
  br label %return

sw.bb21.i:
  %cmp22.i = icmp ne i64 %15, 0
  %conv24.i = zext i1 %cmp22.i to i8
  store i8 %conv24.i, ptr %at, align 1
  br label %return

sw.bb25.i:
  %or.cond61.i = icmp ugt i64 %15, 255
  br i1 %or.cond61.i, label %return, label %if.end32.i

if.end32.i:
  %conv33.i = trunc nuw i64 %15 to i8
  store i8 %conv33.i, ptr %at, align 1
  br label %return

sw.bb34.i:
  %or.cond62.i = icmp ugt i64 %15, 65535
  br i1 %or.cond62.i, label %return, label %if.end41.i

if.end41.i:
  %conv42.i = trunc nuw i64 %15 to i16
  store i16 %conv42.i, ptr %at, align 2
  br label %return

sw.bb43.i:
  %or.cond63.i = icmp ugt i64 %15, 4294967295
  br i1 %or.cond63.i, label %return, label %if.end50.i

if.end50.i:
  %conv51.i = trunc nuw i64 %15 to i32
  store i32 %conv51.i, ptr %at, align 4
  br label %return

sw.default.i:
  %cmp52.i = icmp slt i64 %15, 0
  br i1 %cmp52.i, label %return, label %if.end58.i

if.end58.i:
  store i64 %15, ptr %at, align 8
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
  %cmp113 = icmp sgt i64 %0, 0
  br i1 %cmp113, label %for.body.lr.ph, label %for.end

for.body.lr.ph:
  %sub = add nsw i64 %rank, -1
  %add.ptr = getelementptr inbounds nuw i8, ptr %axes, i32 16
  %arrayidx3 = getelementptr inbounds nuw i8, ptr %axes, i32 8
  br label %for.body

if.then:
  %conv = trunc nsw i64 %size to i32
  tail call void @llvm.memcpy.p0.p0.i32(ptr align 1 %at, ptr nonnull align 1 %bits, i32 %conv, i1 false)
  br label %for.end

for.body:
  %i.015 = phi i64 [ 0, %for.body.lr.ph ], [ %inc, %for.body ]
  %at.addr.014 = phi ptr [ %at, %for.body.lr.ph ], [ %add.ptr4, %for.body ]
  tail call fastcc void @fill(ptr noundef %at.addr.014, i64 noundef %sub, ptr noundef nonnull %add.ptr, ptr noundef %bits, i64 noundef %size)
  %inc = add nuw nsw i64 %i.015, 1
  %1 = load i64, ptr %arrayidx3, align 8
  %idx.ext = trunc i64 %1 to i32
  %add.ptr4 = getelementptr inbounds i8, ptr %at.addr.014, i32 %idx.ext
  %2 = load i64, ptr %axes, align 8
  %cmp1 = icmp slt i64 %inc, %2
  br i1 %cmp1, label %for.body, label %for.end

for.end:
  ret void
}

declare void @llvm.memmove.p0.p0.i32(ptr writeonly captures(none), ptr readonly captures(none), i32, i1 immarg) nounwind

declare double @llvm.sqrt.f64(double) nounwind

declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64) nounwind

declare { i64, i1 } @llvm.ssub.with.overflow.i64(i64, i64) nounwind

declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64) nounwind

define internal fastcc void @angle_below(ptr dead_on_unwind noalias nonnull writable writeonly sret(%struct.pair) align 8 captures(none) %agg.result, ptr noundef readonly byval(%struct.pair) align 8 captures(none) %y, ptr noundef readonly byval(%struct.pair) align 8 captures(none) %x) unnamed_addr nounwind {
entry:
  %0 = load double, ptr %y, align 8
  %1 = load double, ptr %x, align 8
  %div = fdiv double %0, %1
  %mul = fmul double %div, 1.600000e+01
  %add = fadd double %mul, 5.000000e-01
  %conv = fptosi double %add to i32
  %conv2 = sitofp i32 %conv to double
  %div3 = fmul double %conv2, 6.250000e-02
  %mul.i.i = fmul double %div3, 0x41A0000002000000
  %sub.i.i = fsub double %mul.i.i, %div3
  %sub1.i.i = fsub double %mul.i.i, %sub.i.i
  %sub3.i.i = fsub double %div3, %sub1.i.i
  %mul.i18.i = fmul double %1, 0x41A0000002000000
  %sub.i19.i = fsub double %mul.i18.i, %1
  %sub1.i20.i = fsub double %mul.i18.i, %sub.i19.i
  %sub3.i22.i = fsub double %1, %sub1.i20.i
  %mul.i = fmul double %1, %div3
  %mul3.i = fmul double %sub1.i20.i, %sub1.i.i
  %sub.i = fsub double %mul3.i, %mul.i
  %mul6.i = fmul double %sub3.i22.i, %sub1.i.i
  %add.i = fadd double %mul6.i, %sub.i
  %mul9.i = fmul double %sub1.i20.i, %sub3.i.i
  %add10.i = fadd double %mul9.i, %add.i
  %mul13.i = fmul double %sub3.i22.i, %sub3.i.i
  %add14.i = fadd double %mul13.i, %add10.i
  %fneg = fneg double %mul.i
  %add.i45 = fsub double %0, %mul.i
  %sub.i46 = fsub double %add.i45, %0
  %sub1.i = fsub double %add.i45, %sub.i46
  %sub2.i = fsub double %0, %sub1.i
  %sub3.i = fsub double %fneg, %sub.i46
  %add4.i = fadd double %sub3.i, %sub2.i
  %sub = fsub double %add4.i, %add14.i
  %low9 = getelementptr inbounds nuw i8, ptr %y, i32 8
  %2 = load double, ptr %low9, align 8
  %low10 = getelementptr inbounds nuw i8, ptr %x, i32 8
  %3 = load double, ptr %low10, align 8
  %mul11 = fmul double %3, %div3
  %sub12 = fsub double %2, %mul11
  %add13 = fadd double %sub12, %sub
  %add.i48 = fadd double %add.i45, %add13
  %mul16 = fmul double %0, %div3
  %add.i52 = fadd double %1, %mul16
  %div.i = fdiv double %add.i48, %add.i52
  %mul25 = fmul double %div.i, %div.i
  %arrayidx = getelementptr inbounds %struct.pair, ptr @ARCTANGENTS, i32 %conv
  %4 = load double, ptr %arrayidx, align 16
  %low31 = getelementptr inbounds nuw i8, ptr %arrayidx, i32 8
  %5 = load double, ptr %low31, align 8
  br label %for.body.i

for.body.i:
  %k.010.i = phi i32 [ %dec.i, %for.body.i ], [ 3, %entry ]
  %value.09.i = phi double [ %add.i74, %for.body.i ], [ 0xBFB745D1745D1746, %entry ]
  %mul.i73 = fmul double %mul25, %value.09.i
  %arrayidx2.i = getelementptr inbounds nuw double, ptr @ATAN, i32 %k.010.i
  %6 = load double, ptr %arrayidx2.i, align 8
  %add.i74 = fadd double %mul.i73, %6
  %dec.i = add nsw i32 %k.010.i, -1
  %cmp.not.i = icmp eq i32 %k.010.i, 0
  br i1 %cmp.not.i, label %polynomial.exit, label %for.body.i

polynomial.exit:
  %mul34 = fmul double %div.i, %mul25
  %add.i66 = fadd double %4, %div.i
  %sub.i67 = fsub double %add.i66, %4
  %sub3.i71 = fsub double %div.i, %sub.i67
  %sub1.i68 = fsub double %add.i66, %sub.i67
  %sub2.i70 = fsub double %4, %sub1.i68
  %add4.i72 = fadd double %sub3.i71, %sub2.i70
  %sub.i50 = fsub double %add.i48, %add.i45
  %sub1.i51 = fsub double %add13, %sub.i50
  %sub.i53 = fsub double %add.i52, %1
  %sub3.i57 = fsub double %mul16, %sub.i53
  %sub1.i54 = fsub double %add.i52, %sub.i53
  %sub2.i56 = fsub double %1, %sub1.i54
  %add4.i58 = fadd double %sub3.i57, %sub2.i56
  %mul19 = fmul double %2, %div3
  %add20 = fadd double %3, %mul19
  %add22 = fadd double %add20, %add4.i58
  %mul.i64 = fmul double %add22, %div.i
  %sub8.i = fsub double %sub1.i51, %mul.i64
  %mul.i.i61 = fmul double %add.i52, %div.i
  %sub.i63 = fsub double %add.i48, %mul.i.i61
  %mul.i18.i.i = fmul double %add.i52, 0x41A0000002000000
  %sub.i19.i.i = fsub double %mul.i18.i.i, %add.i52
  %sub1.i20.i.i = fsub double %mul.i18.i.i, %sub.i19.i.i
  %sub3.i22.i.i = fsub double %add.i52, %sub1.i20.i.i
  %mul.i.i.i = fmul double %div.i, 0x41A0000002000000
  %sub.i.i.i = fsub double %mul.i.i.i, %div.i
  %sub1.i.i.i = fsub double %mul.i.i.i, %sub.i.i.i
  %sub3.i.i.i = fsub double %div.i, %sub1.i.i.i
  %mul13.i.i = fmul double %sub3.i22.i.i, %sub3.i.i.i
  %mul9.i.i = fmul double %sub1.i20.i.i, %sub3.i.i.i
  %mul6.i.i = fmul double %sub3.i22.i.i, %sub1.i.i.i
  %mul3.i.i = fmul double %sub1.i20.i.i, %sub1.i.i.i
  %sub.i.i62 = fsub double %mul3.i.i, %mul.i.i61
  %add.i.i = fadd double %mul6.i.i, %sub.i.i62
  %add10.i.i = fadd double %mul9.i.i, %add.i.i
  %add14.i.i = fadd double %mul13.i.i, %add10.i.i
  %sub5.i = fsub double %sub.i63, %add14.i.i
  %add.i65 = fadd double %sub8.i, %sub5.i
  %div12.i = fdiv double %add.i65, %add.i52
  %mul35 = fmul double %mul34, %add.i74
  %add36 = fadd double %div12.i, %mul35
  %add37 = fadd double %5, %add36
  %add38 = fadd double %add4.i72, %add37
  %add.i75 = fadd double %add.i66, %add38
  store double %add.i75, ptr %agg.result, align 8
  %low.i76 = getelementptr inbounds nuw i8, ptr %agg.result, i32 8
  %sub.i77 = fsub double %add.i75, %add.i66
  %sub1.i78 = fsub double %add38, %sub.i77
  store double %sub1.i78, ptr %low.i76, align 8
  ret void
}

declare i32 @llvm.abs.i32(i32, i1 immarg) nounwind

declare i32 @llvm.smin.i32(i32, i32) nounwind

declare float @llvm.fabs.f32(float) nounwind

declare i32 @llvm.umin.i32(i32, i32) nounwind

declare i32 @llvm.umax.i32(i32, i32) nounwind

declare i64 @llvm.umin.i64(i64, i64) nounwind
