//go:build !noasm && !fspda_noasm

#include "textflag.h"

// What splitmix64 adds and multiplies by, and one; the counter of a lane moves on by eight draws.
DATA golden8<>+0(SB)/8, $0xf1bbcdcbfa53e0a8
GLOBL golden8<>(SB), RODATA|NOPTR, $8
DATA first<>+0(SB)/8, $0xbf58476d1ce4e5b9
GLOBL first<>(SB), RODATA|NOPTR, $8
DATA second<>+0(SB)/8, $0x94d049bb133111eb
GLOBL second<>(SB), RODATA|NOPTR, $8
DATA one<>+0(SB)/8, $1
GLOBL one<>(SB), RODATA|NOPTR, $8

// func drawAVX512(dst *uint32, groups int, lanes *lanes) (done int)
TEXT ·drawAVX512(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         groups+8(FP), CX
	MOVQ         lanes+16(FP), SI
	VMOVDQU64    (SI), Z0         // counter
	VMOVDQU64    64(SI), Z1       // rest before the even block
	VMOVDQU64    128(SI), Z2      // where the even block begins
	VPBROADCASTQ 192(SI), Z3      // part
	VPBROADCASTQ 200(SI), Z4      // short
	VPBROADCASTQ 208(SI), Z5      // part of a group
	VPBROADCASTQ 216(SI), Z6      // length of a group, without what the rests carry
	VPBROADCASTQ golden8<>(SB), Z7
	VPBROADCASTQ first<>(SB), Z8
	VPBROADCASTQ second<>(SB), Z9
	VPBROADCASTQ one<>(SB), Z10
	MOVL         $0xaaaa, AX
	KMOVW        AX, K3
	XORQ         AX, AX

group:
	// The draws.
	VPSRLQ  $30, Z0, Z11
	VPXORQ  Z0, Z11, Z11
	VPMULLQ Z8, Z11, Z11
	VPSRLQ  $27, Z11, Z12
	VPXORQ  Z12, Z11, Z11
	VPMULLQ Z9, Z11, Z11
	VPSRLQ  $31, Z11, Z12
	VPXORQ  Z12, Z11, Z11

	// Even blocks take the lower halves.
	VPADDQ    Z3, Z1, Z13
	VPCMPUQ   $1, Z3, Z13, K1
	VMOVDQA64 Z4, Z14
	VPADDQ    Z10, Z4, K1, Z14
	VPADDQ    Z14, Z2, Z15
	VPMULUDQ  Z14, Z11, Z16
	VPCMPUD   $1, Z14, Z16, K2

	// Odd blocks take the upper ones.
	VPADDQ    Z3, Z13, Z17
	VPCMPUQ   $1, Z3, Z17, K1
	VMOVDQA64 Z4, Z18
	VPADDQ    Z10, Z4, K1, Z18
	VPSRLQ    $32, Z11, Z19
	VPMULUDQ  Z18, Z19, Z19
	VPCMPUD   $1, Z18, Z19, K4
	KORTESTW  K2, K4
	JNZ       done                // one may have to be drawn again

	VPSRLQ    $32, Z16, Z16
	VPADDQ    Z2, Z16, Z16
	VPSRLQ    $32, Z19, Z19
	VPADDQ    Z15, Z19, Z19
	VPSLLQ    $32, Z19, Z19
	VPBLENDMD Z19, Z16, K3, Z16
	VMOVDQU64 Z16, (DI)

	VPADDQ  Z7, Z0, Z0
	VPADDQ  Z5, Z1, Z1
	VPCMPUQ $1, Z5, Z1, K1
	VPADDQ  Z6, Z2, Z2
	VPADDQ  Z10, Z2, K1, Z2
	ADDQ    $64, DI
	INCQ    AX
	CMPQ    AX, CX
	JLT     group

done:
	MOVQ AX, done+24(FP)
	VZEROUPPER
	RET
