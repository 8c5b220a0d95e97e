//go:build !noasm && !fspda_noasm

#include "textflag.h"

// Pairs of constants: the first multiplies the even, the second the odd word of a lane.
#define PAIR(name, first, second) \
	DATA name<>+0(SB)/2, $first    \
	DATA name<>+2(SB)/2, $second   \
	GLOBL name<>(SB), RODATA|NOPTR, $4

PAIR(sum2, 4433, -10704)  // in2, in6: fix0541, fix0541 - fix1847
PAIR(sum3, 10703, 4433)   // in2, in6: fix0541 + fix0765, fix0541
PAIR(cross3, -6436, 9633) // in7 + in3, in5 + in1: fix1175 - fix1961, fix1175
PAIR(cross4, 9633, 6437)  // in7 + in3, in5 + in1: fix1175, fix1175 - fix0390
PAIR(odd0, -4927, -7373)  // in7, in1: fix0298 - fix0899, -fix0899
PAIR(odd3, -7373, 4926)   // in7, in1: -fix0899, fix1501 - fix0899
PAIR(odd1, -4176, -20995) // in5, in3: fix2053 - fix2562, -fix2562
PAIR(odd2, -20995, 4177)  // in5, in3: -fix2562, fix3072 - fix2562

DATA roundColumns<>+0(SB)/4, $0x400
GLOBL roundColumns<>(SB), RODATA|NOPTR, $4
DATA roundRows<>+0(SB)/4, $0x20000
GLOBL roundRows<>(SB), RODATA|NOPTR, $4
DATA middle<>+0(SB)/4, $0x80808080
GLOBL middle<>(SB), RODATA|NOPTR, $4

// LOAD loads row i of both blocks, times quant.
#define LOAD(i, x, y) \
	VMOVDQU        16*i(SI), x          \
	VINSERTI128    $1, 128+16*i(SI), y, y \
	VPMULLW        32*i(SP), y, y

// QUANT copies row i of quant to both lanes of the frame.
#define QUANT(i) \
	VBROADCASTI128 16*i(BX), Y0 \
	VMOVDQU        Y0, 32*i(SP)

// EVEN computes the even part of Y0, Y2, Y4, Y6 and stores it: the low and the high words of
// each of four sums.
#define EVEN(round) \
	VPBROADCASTD sum3<>(SB), Y14 \
	VPBROADCASTD sum2<>(SB), Y15 \
	VPUNPCKLWD   Y6, Y2, Y8      \
	VPUNPCKHWD   Y6, Y2, Y9      \
	VPMADDWD     Y14, Y8, Y10    \
	VPMADDWD     Y14, Y9, Y11    \
	VPMADDWD     Y15, Y8, Y8     \
	VPMADDWD     Y15, Y9, Y9     \
	VPADDW       Y4, Y0, Y12     \
	VPSUBW       Y4, Y0, Y13     \
	VPXOR        Y15, Y15, Y15   \
	VPBROADCASTD round<>(SB), Y14 \
	VPUNPCKLWD   Y12, Y15, Y0    \
	VPUNPCKHWD   Y12, Y15, Y2    \
	VPUNPCKLWD   Y13, Y15, Y4    \
	VPUNPCKHWD   Y13, Y15, Y6    \
	VPSRAD       $3, Y0, Y0      \
	VPSRAD       $3, Y2, Y2      \
	VPSRAD       $3, Y4, Y4      \
	VPSRAD       $3, Y6, Y6      \
	VPADDD       Y14, Y0, Y0     \
	VPADDD       Y14, Y2, Y2     \
	VPADDD       Y14, Y4, Y4     \
	VPADDD       Y14, Y6, Y6     \
	VPADDD       Y10, Y0, Y12    \
	VPADDD       Y11, Y2, Y13    \
	VPSUBD       Y10, Y0, Y0     \
	VPSUBD       Y11, Y2, Y2     \
	VPADDD       Y8, Y4, Y14     \
	VPADDD       Y9, Y6, Y15     \
	VPSUBD       Y8, Y4, Y4      \
	VPSUBD       Y9, Y6, Y6      \
	VMOVDQU      Y12, 256(SP)    \
	VMOVDQU      Y13, 288(SP)    \
	VMOVDQU      Y14, 320(SP)    \
	VMOVDQU      Y15, 352(SP)    \
	VMOVDQU      Y4, 384(SP)     \
	VMOVDQU      Y6, 416(SP)     \
	VMOVDQU      Y0, 448(SP)     \
	VMOVDQU      Y2, 480(SP)

// ODD computes the odd part of Y1, Y3, Y5, Y7: low and high words in Y14 and Y15, Y8 and Y9, Y10
// and Y11, Y12 and Y13.
#define ODD \
	VPADDW       Y3, Y7, Y0      \
	VPADDW       Y1, Y5, Y2      \
	VPBROADCASTD cross3<>(SB), Y12 \
	VPBROADCASTD cross4<>(SB), Y13 \
	VPUNPCKLWD   Y2, Y0, Y4      \
	VPUNPCKHWD   Y2, Y0, Y6      \
	VPMADDWD     Y12, Y4, Y8     \
	VPMADDWD     Y12, Y6, Y9     \
	VPMADDWD     Y13, Y4, Y10    \
	VPMADDWD     Y13, Y6, Y11    \
	VPBROADCASTD odd0<>(SB), Y4  \
	VPBROADCASTD odd3<>(SB), Y6  \
	VPUNPCKLWD   Y1, Y7, Y0      \
	VPUNPCKHWD   Y1, Y7, Y2      \
	VPMADDWD     Y4, Y0, Y12     \
	VPMADDWD     Y4, Y2, Y13     \
	VPMADDWD     Y6, Y0, Y14     \
	VPMADDWD     Y6, Y2, Y15     \
	VPADDD       Y8, Y12, Y12    \
	VPADDD       Y9, Y13, Y13    \
	VPADDD       Y10, Y14, Y14   \
	VPADDD       Y11, Y15, Y15   \
	VPBROADCASTD odd1<>(SB), Y4  \
	VPBROADCASTD odd2<>(SB), Y6  \
	VPUNPCKLWD   Y3, Y5, Y0      \
	VPUNPCKHWD   Y3, Y5, Y2      \
	VPMADDWD     Y4, Y0, Y1      \
	VPMADDWD     Y4, Y2, Y5      \
	VPMADDWD     Y6, Y0, Y3      \
	VPMADDWD     Y6, Y2, Y7      \
	VPADDD       Y1, Y10, Y10    \
	VPADDD       Y5, Y11, Y11    \
	VPADDD       Y3, Y8, Y8      \
	VPADDD       Y7, Y9, Y9

// BUTTERFLY adds and subtracts an odd sum (low, high) and the even sum at an offset.
#define BUTTERFLY(at, low, high, shift, plus, minus, t) \
	VMOVDQU   at(SP), plus         \
	VMOVDQU   at+32(SP), t         \
	VPSUBD    low, plus, minus     \
	VPADDD    low, plus, plus      \
	VPADDD    high, t, low         \
	VPSUBD    high, t, t           \
	VPSRAD    $shift, plus, plus   \
	VPSRAD    $shift, low, low     \
	VPSRAD    $shift, minus, minus \
	VPSRAD    $shift, t, t         \
	VPACKSSDW low, plus, plus      \
	VPACKSSDW t, minus, minus

// PASS transforms Y0 to Y7.
#define PASS(round, shift) \
	EVEN(round)                                     \
	ODD                                             \
	BUTTERFLY(256, Y14, Y15, shift, Y0, Y7, Y6)     \
	BUTTERFLY(320, Y8, Y9, shift, Y1, Y6, Y15)      \
	BUTTERFLY(384, Y10, Y11, shift, Y2, Y5, Y15)    \
	BUTTERFLY(448, Y12, Y13, shift, Y3, Y4, Y15)

// TRANSPOSE transposes Y0 to Y7 in each lane, to Y8 to Y15.
#define TRANSPOSE \
	VPUNPCKLWD  Y1, Y0, Y8    \
	VPUNPCKHWD  Y1, Y0, Y9    \
	VPUNPCKLWD  Y3, Y2, Y10   \
	VPUNPCKHWD  Y3, Y2, Y11   \
	VPUNPCKLWD  Y5, Y4, Y12   \
	VPUNPCKHWD  Y5, Y4, Y13   \
	VPUNPCKLWD  Y7, Y6, Y14   \
	VPUNPCKHWD  Y7, Y6, Y15   \
	VPUNPCKLDQ  Y10, Y8, Y0   \
	VPUNPCKHDQ  Y10, Y8, Y1   \
	VPUNPCKLDQ  Y11, Y9, Y2   \
	VPUNPCKHDQ  Y11, Y9, Y3   \
	VPUNPCKLDQ  Y14, Y12, Y4  \
	VPUNPCKHDQ  Y14, Y12, Y5  \
	VPUNPCKLDQ  Y15, Y13, Y6  \
	VPUNPCKHDQ  Y15, Y13, Y7  \
	VPUNPCKLQDQ Y4, Y0, Y8    \
	VPUNPCKHQDQ Y4, Y0, Y9    \
	VPUNPCKLQDQ Y5, Y1, Y10   \
	VPUNPCKHQDQ Y5, Y1, Y11   \
	VPUNPCKLQDQ Y6, Y2, Y12   \
	VPUNPCKHQDQ Y6, Y2, Y13   \
	VPUNPCKLQDQ Y7, Y3, Y14   \
	VPUNPCKHQDQ Y7, Y3, Y15

// STORE stores two rows of 16 pixels and moves on by two rows.
#define STORE(first, second, x, y) \
	VPACKSSWB    second, first, y \
	VPXOR        Y7, y, y         \
	VPERMQ       $0xd8, y, y      \
	VMOVDQU      x, (R8)          \
	VEXTRACTI128 $1, y, (R8)(DX*1) \
	LEAQ         (R8)(DX*2), R8

// func inverseAVX2(dst *uint8, stride int, blocks *int16, quant *[64]int16, pairs int)
TEXT ·inverseAVX2(SB), NOSPLIT, $512-40
	MOVQ dst+0(FP), DI
	MOVQ stride+8(FP), DX
	MOVQ blocks+16(FP), SI
	MOVQ quant+24(FP), BX
	MOVQ pairs+32(FP), CX
	QUANT(0)
	QUANT(1)
	QUANT(2)
	QUANT(3)
	QUANT(4)
	QUANT(5)
	QUANT(6)
	QUANT(7)

pair:
	LOAD(0, X0, Y0)
	LOAD(1, X1, Y1)
	LOAD(2, X2, Y2)
	LOAD(3, X3, Y3)
	LOAD(4, X4, Y4)
	LOAD(5, X5, Y5)
	LOAD(6, X6, Y6)
	LOAD(7, X7, Y7)
	PASS(roundColumns, 11)
	TRANSPOSE
	VMOVDQA Y8, Y0
	VMOVDQA Y9, Y1
	VMOVDQA Y10, Y2
	VMOVDQA Y11, Y3
	VMOVDQA Y12, Y4
	VMOVDQA Y13, Y5
	VMOVDQA Y14, Y6
	VMOVDQA Y15, Y7
	PASS(roundRows, 18)
	TRANSPOSE
	VPBROADCASTD middle<>(SB), Y7
	MOVQ         DI, R8
	STORE(Y8, Y9, X0, Y0)
	STORE(Y10, Y11, X1, Y1)
	STORE(Y12, Y13, X2, Y2)
	STORE(Y14, Y15, X3, Y3)
	ADDQ $256, SI
	ADDQ $16, DI
	DECQ CX
	JNZ  pair
	VZEROUPPER
	RET
