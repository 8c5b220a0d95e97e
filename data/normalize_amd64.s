//go:build !noasm && !fspda_noasm

#include "textflag.h"

// func normalizeSSE2(dst *float32, pixels *uint8, n int, scale, shift float32, ahead *uint8)
TEXT ·normalizeSSE2(SB), NOSPLIT, $0-40
	MOVQ   dst+0(FP), DI
	MOVQ   pixels+8(FP), SI
	MOVQ   n+16(FP), CX
	MOVQ   ahead+32(FP), DX
	MOVSS  scale+24(FP), X6
	MOVSS  shift+28(FP), X7
	SHUFPS $0, X6, X6
	SHUFPS $0, X7, X7
	PXOR   X5, X5

loop:
	PREFETCHT0 (DX)
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
	ADDQ      $16, DX
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       loop
	RET

// func normalizeAVX2(dst *float32, pixels *uint8, n int, scale, shift float32, ahead *uint8)
TEXT ·normalizeAVX2(SB), NOSPLIT, $0-40
	MOVQ         dst+0(FP), DI
	MOVQ         pixels+8(FP), SI
	MOVQ         n+16(FP), CX
	MOVQ         ahead+32(FP), DX
	VBROADCASTSS scale+24(FP), Y6
	VBROADCASTSS shift+28(FP), Y7
	SUBQ         $64, CX
	JLT          few

many: // 64 pixels: a cache line
	PREFETCHT0 (DX)
	VPMOVZXBD  (SI), Y0
	VPMOVZXBD  8(SI), Y1
	VPMOVZXBD  16(SI), Y2
	VPMOVZXBD  24(SI), Y3
	VCVTDQ2PS  Y0, Y0
	VCVTDQ2PS  Y1, Y1
	VCVTDQ2PS  Y2, Y2
	VCVTDQ2PS  Y3, Y3
	VMULPS     Y6, Y0, Y0
	VMULPS     Y6, Y1, Y1
	VMULPS     Y6, Y2, Y2
	VMULPS     Y6, Y3, Y3
	VADDPS     Y7, Y0, Y0
	VADDPS     Y7, Y1, Y1
	VADDPS     Y7, Y2, Y2
	VADDPS     Y7, Y3, Y3
	VMOVUPS    Y0, (DI)
	VMOVUPS    Y1, 32(DI)
	VMOVUPS    Y2, 64(DI)
	VMOVUPS    Y3, 96(DI)
	VPMOVZXBD  32(SI), Y0
	VPMOVZXBD  40(SI), Y1
	VPMOVZXBD  48(SI), Y2
	VPMOVZXBD  56(SI), Y3
	VCVTDQ2PS  Y0, Y0
	VCVTDQ2PS  Y1, Y1
	VCVTDQ2PS  Y2, Y2
	VCVTDQ2PS  Y3, Y3
	VMULPS     Y6, Y0, Y0
	VMULPS     Y6, Y1, Y1
	VMULPS     Y6, Y2, Y2
	VMULPS     Y6, Y3, Y3
	VADDPS     Y7, Y0, Y0
	VADDPS     Y7, Y1, Y1
	VADDPS     Y7, Y2, Y2
	VADDPS     Y7, Y3, Y3
	VMOVUPS    Y0, 128(DI)
	VMOVUPS    Y1, 160(DI)
	VMOVUPS    Y2, 192(DI)
	VMOVUPS    Y3, 224(DI)
	ADDQ       $64, SI
	ADDQ       $64, DX
	ADDQ       $256, DI
	SUBQ       $64, CX
	JGE        many

few:
	ADDQ       $64, CX
	JZ         done
	PREFETCHT0 (DX)

one: // 16 pixels
	VPMOVZXBD  (SI), Y0
	VPMOVZXBD  8(SI), Y1
	VCVTDQ2PS  Y0, Y0
	VCVTDQ2PS  Y1, Y1
	VMULPS     Y6, Y0, Y0
	VMULPS     Y6, Y1, Y1
	VADDPS     Y7, Y0, Y0
	VADDPS     Y7, Y1, Y1
	VMOVUPS    Y0, (DI)
	VMOVUPS    Y1, 32(DI)
	ADDQ       $16, SI
	ADDQ       $64, DI
	SUBQ       $16, CX
	JNZ        one

done:
	VZEROUPPER
	RET

// func normalizeAVX512(dst *float32, pixels *uint8, n int, scale, shift float32, ahead *uint8)
TEXT ·normalizeAVX512(SB), NOSPLIT, $0-40
	MOVQ         dst+0(FP), DI
	MOVQ         pixels+8(FP), SI
	MOVQ         n+16(FP), CX
	MOVQ         ahead+32(FP), DX
	VBROADCASTSS scale+24(FP), Z6
	VBROADCASTSS shift+28(FP), Z7
	SUBQ         $64, CX
	JLT          few

many: // 64 pixels: a cache line
	PREFETCHT0 (DX)
	VPMOVZXBD  (SI), Z0
	VPMOVZXBD  16(SI), Z1
	VPMOVZXBD  32(SI), Z2
	VPMOVZXBD  48(SI), Z3
	VCVTDQ2PS  Z0, Z0
	VCVTDQ2PS  Z1, Z1
	VCVTDQ2PS  Z2, Z2
	VCVTDQ2PS  Z3, Z3
	VMULPS     Z6, Z0, Z0
	VMULPS     Z6, Z1, Z1
	VMULPS     Z6, Z2, Z2
	VMULPS     Z6, Z3, Z3
	VADDPS     Z7, Z0, Z0
	VADDPS     Z7, Z1, Z1
	VADDPS     Z7, Z2, Z2
	VADDPS     Z7, Z3, Z3
	VMOVUPS    Z0, (DI)
	VMOVUPS    Z1, 64(DI)
	VMOVUPS    Z2, 128(DI)
	VMOVUPS    Z3, 192(DI)
	ADDQ       $64, SI
	ADDQ       $64, DX
	ADDQ       $256, DI
	SUBQ       $64, CX
	JGE        many

few:
	ADDQ       $64, CX
	JZ         done
	PREFETCHT0 (DX)

one: // 16 pixels
	VPMOVZXBD  (SI), Z0
	VCVTDQ2PS  Z0, Z0
	VMULPS     Z6, Z0, Z0
	VADDPS     Z7, Z0, Z0
	VMOVUPS    Z0, (DI)
	ADDQ       $16, SI
	ADDQ       $64, DI
	SUBQ       $16, CX
	JNZ        one

done:
	VZEROUPPER
	RET

// func patternAVX2(dst *float32, pixels *uint8, n int, p *pattern)
TEXT ·patternAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ pixels+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ p+24(FP), DX
	VMOVUPS 0(DX), Y6
	VMOVUPS 32(DX), Y7
	VMOVUPS 64(DX), Y8
	VMOVUPS 192(DX), Y9
	VMOVUPS 224(DX), Y10
	VMOVUPS 256(DX), Y11

loop: // 48 pixels
	VPMOVZXBD (SI), Y0
	VPMOVZXBD 8(SI), Y1
	VPMOVZXBD 16(SI), Y2
	VPMOVZXBD 24(SI), Y3
	VPMOVZXBD 32(SI), Y4
	VPMOVZXBD 40(SI), Y5
	VCVTDQ2PS Y0, Y0
	VCVTDQ2PS Y1, Y1
	VCVTDQ2PS Y2, Y2
	VCVTDQ2PS Y3, Y3
	VCVTDQ2PS Y4, Y4
	VCVTDQ2PS Y5, Y5
	VMULPS Y6, Y0, Y0
	VMULPS Y7, Y1, Y1
	VMULPS Y8, Y2, Y2
	VMULPS Y6, Y3, Y3
	VMULPS Y7, Y4, Y4
	VMULPS Y8, Y5, Y5
	VADDPS Y9, Y0, Y0
	VADDPS Y10, Y1, Y1
	VADDPS Y11, Y2, Y2
	VADDPS Y9, Y3, Y3
	VADDPS Y10, Y4, Y4
	VADDPS Y11, Y5, Y5
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VMOVUPS Y4, 128(DI)
	VMOVUPS Y5, 160(DI)
	ADDQ $48, SI
	ADDQ $192, DI
	SUBQ $48, CX
	JNZ loop
	VZEROUPPER
	RET

// func patternAVX512(dst *float32, pixels *uint8, n int, p *pattern)
TEXT ·patternAVX512(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ pixels+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ p+24(FP), DX
	VMOVUPS 0(DX), Z4
	VMOVUPS 64(DX), Z5
	VMOVUPS 128(DX), Z6
	VMOVUPS 192(DX), Z7
	VMOVUPS 256(DX), Z8
	VMOVUPS 320(DX), Z9

loop: // 48 pixels
	VPMOVZXBD (SI), Z0
	VPMOVZXBD 16(SI), Z1
	VPMOVZXBD 32(SI), Z2
	VCVTDQ2PS Z0, Z0
	VCVTDQ2PS Z1, Z1
	VCVTDQ2PS Z2, Z2
	VMULPS Z4, Z0, Z0
	VMULPS Z5, Z1, Z1
	VMULPS Z6, Z2, Z2
	VADDPS Z7, Z0, Z0
	VADDPS Z8, Z1, Z1
	VADDPS Z9, Z2, Z2
	VMOVUPS Z0, (DI)
	VMOVUPS Z1, 64(DI)
	VMOVUPS Z2, 128(DI)
	ADDQ $48, SI
	ADDQ $192, DI
	SUBQ $48, CX
	JNZ loop
	VZEROUPPER
	RET
