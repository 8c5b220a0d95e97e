//go:build !noasm && !fspda_noasm

#include "textflag.h"

// WORD is a number for each word of a vector, PAIR two numbers for each pair of words.
#define WORD(name, value) \
	DATA name<>+0(SB)/2, $value \
	GLOBL name<>(SB), RODATA|NOPTR, $2

WORD(middle, 128)
WORD(red, 26345)   // crRed - 2^16
WORD(blue, -14942) // cbBlue - 2^17
WORD(one, 1)

// -cbGreen, and 2^16 - crGreen
DATA green<>+0(SB)/2, $-22554
DATA green<>+2(SB)/2, $18734
GLOBL green<>(SB), RODATA|NOPTR, $4

DATA half<>+0(SB)/4, $32768
GLOBL half<>(SB), RODATA|NOPTR, $4

// Eight pixels: bytes 0 to 15 from eight bytes red and eight green, and from eight blue; then bytes
// 16 to 23.
DATA pixels<>+0(SB)/8, $0x0a02800901800800
DATA pixels<>+8(SB)/8, $0x05800c04800b0380
DATA pixels<>+16(SB)/8, $0x8080018080008080
DATA pixels<>+24(SB)/8, $0x8004808003808002
DATA pixels<>+32(SB)/8, $0x800f07800e06800d
DATA pixels<>+40(SB)/8, $0x8080808080808080
DATA pixels<>+48(SB)/8, $0x0780800680800580
DATA pixels<>+56(SB)/8, $0x8080808080808080
GLOBL pixels<>(SB), RODATA|NOPTR, $64

// func fromYCbCrAVX2(dst, ys, cbs, crs *uint8, groups int)
TEXT ·fromYCbCrAVX2(SB), NOSPLIT, $0-40
	MOVQ           dst+0(FP), DI
	MOVQ           ys+8(FP), SI
	MOVQ           cbs+16(FP), BX
	MOVQ           crs+24(FP), DX
	MOVQ           groups+32(FP), CX
	VPBROADCASTW   middle<>(SB), Y15
	VPBROADCASTW   red<>(SB), Y14
	VPBROADCASTW   blue<>(SB), Y13
	VPBROADCASTW   one<>(SB), Y12
	VPBROADCASTD   green<>(SB), Y11
	VPBROADCASTD   half<>(SB), Y10
	VBROADCASTI128 pixels<>+0(SB), Y9
	VBROADCASTI128 pixels<>+16(SB), Y8
	VBROADCASTI128 pixels<>+32(SB), Y7
	VBROADCASTI128 pixels<>+48(SB), Y6

group:
	VPMOVZXBW (SI), Y0
	VPMOVZXBW (BX), Y1
	VPMOVZXBW (DX), Y2
	VPSUBW    Y15, Y1, Y1
	VPSUBW    Y15, Y2, Y2

	// green: (cb, cr) times its factors, less cr
	VPUNPCKLWD Y2, Y1, Y3
	VPUNPCKHWD Y2, Y1, Y4
	VPMADDWD   Y11, Y3, Y3
	VPMADDWD   Y11, Y4, Y4
	VPADDD     Y10, Y3, Y3
	VPADDD     Y10, Y4, Y4
	VPSRAD     $16, Y3, Y3
	VPSRAD     $16, Y4, Y4
	VPACKSSDW  Y4, Y3, Y3
	VPSUBW     Y2, Y3, Y3
	VPADDW     Y0, Y3, Y3

	// red: cr, and the upper half of 2·cr times its factor, halved and rounded
	VPADDW  Y2, Y2, Y4
	VPMULHW Y14, Y4, Y4
	VPADDW  Y12, Y4, Y4
	VPSRAW  $1, Y4, Y4
	VPADDW  Y2, Y4, Y4
	VPADDW  Y0, Y4, Y4

	// blue: 2·cb, and the same of 2·cb
	VPADDW  Y1, Y1, Y1
	VPMULHW Y13, Y1, Y5
	VPADDW  Y12, Y5, Y5
	VPSRAW  $1, Y5, Y5
	VPADDW  Y1, Y5, Y5
	VPADDW  Y0, Y5, Y5

	VPACKUSWB    Y3, Y4, Y4
	VPACKUSWB    Y5, Y5, Y5
	VPSHUFB      Y9, Y4, Y0
	VPSHUFB      Y8, Y5, Y1
	VPOR         Y1, Y0, Y0
	VPSHUFB      Y7, Y4, Y2
	VPSHUFB      Y6, Y5, Y3
	VPOR         Y3, Y2, Y2
	VMOVDQU      X0, (DI)
	VMOVQ        X2, 16(DI)
	VEXTRACTI128 $1, Y0, 24(DI)
	VEXTRACTI128 $1, Y2, X2
	VMOVQ        X2, 40(DI)
	ADDQ         $16, SI
	ADDQ         $16, BX
	ADDQ         $16, DX
	ADDQ         $48, DI
	DECQ         CX
	JNZ          group
	VZEROUPPER
	RET

// func weighSumAVX2(dst *int16, near, far *uint8, groups int)
TEXT ·weighSumAVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ near+8(FP), SI
	MOVQ far+16(FP), DX
	MOVQ groups+24(FP), CX

group:
	VPMOVZXBW (SI), Y0
	VPMOVZXBW (DX), Y1
	VPADDW    Y0, Y0, Y2
	VPADDW    Y0, Y1, Y1
	VPADDW    Y2, Y1, Y1
	VMOVDQU   Y1, (DI)
	ADDQ      $16, SI
	ADDQ      $16, DX
	ADDQ      $32, DI
	DECQ      CX
	JNZ       group
	VZEROUPPER
	RET

// func interpolateAVX2(dst *uint8, s *int16, left, right, shift, groups int)
TEXT ·interpolateAVX2(SB), NOSPLIT, $0-48
	MOVQ         dst+0(FP), DI
	MOVQ         s+8(FP), SI
	MOVQ         groups+40(FP), CX
	VMOVQ        left+16(FP), X6
	VMOVQ        right+24(FP), X7
	VMOVQ        shift+32(FP), X5
	VPBROADCASTW X6, Y6
	VPBROADCASTW X7, Y7

group:
	VMOVDQU 2(SI), Y0
	VPADDW  Y0, Y0, Y1
	VPADDW  Y0, Y1, Y1
	VPADDW  (SI), Y1, Y2
	VPADDW  4(SI), Y1, Y3
	VPADDW  Y6, Y2, Y2
	VPADDW  Y7, Y3, Y3
	VPSRAW  X5, Y2, Y2
	VPSRAW  X5, Y3, Y3
	VPSLLW  $8, Y3, Y3
	VPOR    Y3, Y2, Y2
	VMOVDQU Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     group
	VZEROUPPER
	RET
