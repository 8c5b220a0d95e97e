//go:build !noasm

#include "textflag.h"

// func normalizeSSE2(dst *float32, pixels *uint8, n int, scale, shift float32)
TEXT ·normalizeSSE2(SB), NOSPLIT, $0-32
	MOVQ   dst+0(FP), DI
	MOVQ   pixels+8(FP), SI
	MOVQ   n+16(FP), CX
	MOVSS  scale+24(FP), X6
	MOVSS  shift+28(FP), X7
	SHUFPS $0, X6, X6
	SHUFPS $0, X7, X7
	PXOR   X5, X5

loop:
	MOVOU     (SI), X0  // 16 bytes
	MOVO      X0, X2
	PUNPCKLBW X5, X0    // bytes 0..7 as 16 bits
	PUNPCKHBW X5, X2    // bytes 8..15
	MOVO      X0, X1
	MOVO      X2, X3
	PUNPCKLWL X5, X0    // four times four as 32 bits
	PUNPCKHWL X5, X1
	PUNPCKLWL X5, X2
	PUNPCKHWL X5, X3
	CVTPL2PS  X0, X0
	CVTPL2PS  X1, X1
	CVTPL2PS  X2, X2
	CVTPL2PS  X3, X3
	MULPS     X6, X0
	MULPS     X6, X1
	MULPS     X6, X2
	MULPS     X6, X3
	ADDPS     X7, X0
	ADDPS     X7, X1
	ADDPS     X7, X2
	ADDPS     X7, X3
	MOVUPS    X0, (DI)
	MOVUPS    X1, 16(DI)
	MOVUPS    X2, 32(DI)
	MOVUPS    X3, 48(DI)
	ADDQ      $16, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       loop
	RET
