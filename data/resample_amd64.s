//go:build !noasm && !fspda_noasm

#include "textflag.h"

// Bytes 0, 1, 2 and 4, 5, 6 of each lane: two pixels.
DATA twoPixels<>+0(SB)/8, $0x8080060504020100
DATA twoPixels<>+8(SB)/8, $0x8080808080808080
DATA twoPixels<>+16(SB)/8, $0x8080060504020100
DATA twoPixels<>+24(SB)/8, $0x8080808080808080
GLOBL twoPixels<>(SB), RODATA|NOPTR, $32

// TAP adds a source row times its weight to Y0 and Y1.
#define TAP(row, weight) \
	VPMOVZXBW (row), Y2           \
	VPMOVZXBW 16(row), Y3         \
	VPSLLW    $7, Y2, Y2          \
	VPSLLW    $7, Y3, Y3          \
	VPMULHRSW weight, Y2, Y2      \
	VPMULHRSW weight, Y3, Y3      \
	VPADDSW   Y2, Y0, Y0          \
	VPADDSW   Y3, Y1, Y1          \
	ADDQ      $32, row

// BEGIN is what the sums begin with: dst where Y7 is all ones, else 0.
#define BEGIN \
	VPAND (DI), Y7, Y0   \
	VPAND 32(DI), Y7, Y1

// END stores the sums.
#define END \
	VMOVDQU Y0, (DI)   \
	VMOVDQU Y1, 32(DI) \
	ADDQ    $64, DI    \
	SUBQ    $32, CX

// func sumRowsAVX2(dst *int16, src *uint8, stride, n int, weight *int16, taps, more int)
TEXT ·sumRowsAVX2(SB), NOSPLIT, $0-56
	MOVQ     dst+0(FP), DI
	MOVQ     src+8(FP), SI
	MOVQ     stride+16(FP), DX
	MOVQ     n+24(FP), CX
	MOVQ     weight+32(FP), BX
	MOVQ     taps+40(FP), AX
	MOVQ     more+48(FP), R11
	VPXOR    Y7, Y7, Y7
	TESTQ    R11, R11
	JZ       begin
	VPCMPEQW Y7, Y7, Y7

begin:
	VPBROADCASTW (BX), Y8
	CMPQ         AX, $1
	JEQ          one
	LEAQ         (SI)(DX*1), R8
	VPBROADCASTW 2(BX), Y9
	CMPQ         AX, $2
	JEQ          two
	LEAQ         (SI)(DX*2), R9
	VPBROADCASTW 4(BX), Y10
	CMPQ         AX, $3
	JEQ          three
	LEAQ         (R8)(DX*2), R10
	VPBROADCASTW 6(BX), Y11

four:
	BEGIN
	TAP(SI, Y8)
	TAP(R8, Y9)
	TAP(R9, Y10)
	TAP(R10, Y11)
	END
	JNZ four
	VZEROUPPER
	RET

three:
	BEGIN
	TAP(SI, Y8)
	TAP(R8, Y9)
	TAP(R9, Y10)
	END
	JNZ three
	VZEROUPPER
	RET

two:
	BEGIN
	TAP(SI, Y8)
	TAP(R8, Y9)
	END
	JNZ two
	VZEROUPPER
	RET

one:
	BEGIN
	TAP(SI, Y8)
	END
	JNZ one
	VZEROUPPER
	RET

// func sumColumnsAVX2(dst *uint8, line *int16, where *uint32, weights *int16, groups, pairs int)
TEXT ·sumColumnsAVX2(SB), NOSPLIT, $0-48
	MOVQ     dst+0(FP), DI
	MOVQ     line+8(FP), SI
	MOVQ     where+16(FP), DX
	MOVQ     weights+24(FP), BX
	MOVQ     groups+32(FP), CX
	MOVQ     pairs+40(FP), AX
	VMOVDQU  twoPixels<>(SB), Y6
	VPCMPEQW Y7, Y7, Y7
	VPSRLW   $15, Y7, Y7
	VPSLLW   $6, Y7, Y7         // half a level

group:
	MOVL  (DX), R8
	MOVL  4(DX), R9
	MOVL  8(DX), R10
	MOVL  12(DX), R11
	ADDQ  SI, R8
	ADDQ  SI, R9
	ADDQ  SI, R10
	ADDQ  SI, R11
	VMOVDQU     (R8), X0
	VMOVDQU     (R9), X1
	VINSERTI128 $1, (R10), Y0, Y0
	VINSERTI128 $1, (R11), Y1, Y1
	VPMULHRSW   (BX), Y0, Y0
	VPMULHRSW   32(BX), Y1, Y1
	ADDQ  $64, BX
	MOVQ  AX, R12
	DECQ  R12
	JZ    fold

pair: // two source pixels more for each
	ADDQ  $12, R8
	ADDQ  $12, R9
	ADDQ  $12, R10
	ADDQ  $12, R11
	VMOVDQU     (R8), X2
	VMOVDQU     (R9), X3
	VINSERTI128 $1, (R10), Y2, Y2
	VINSERTI128 $1, (R11), Y3, Y3
	VPMULHRSW   (BX), Y2, Y2
	VPMULHRSW   32(BX), Y3, Y3
	VPADDSW     Y2, Y0, Y0
	VPADDSW     Y3, Y1, Y1
	ADDQ  $64, BX
	DECQ  R12
	JNZ   pair

fold: // the second pixel of each pair to the first
	VPSRLDQ      $6, Y0, Y2
	VPSRLDQ      $6, Y1, Y3
	VPADDSW      Y2, Y0, Y0
	VPADDSW      Y3, Y1, Y1
	VPUNPCKLQDQ  Y1, Y0, Y0
	VPADDSW      Y7, Y0, Y0
	VPSRLW       $7, Y0, Y0
	VPACKUSWB    Y0, Y0, Y0
	VPSHUFB      Y6, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VMOVQ        X0, (DI)
	VMOVQ        X1, 6(DI)
	ADDQ         $16, DX
	ADDQ         $12, DI
	DECQ         CX
	JNZ          group
	VZEROUPPER
	RET
