//go:build !noasm && !fspda_noasm

#include "textflag.h"

// func sumRowsAVX512(dst *float32, n int, a *float32, terms int, v *float32, stride int)
TEXT ·sumRowsAVX512(SB), NOSPLIT, $0-48
	MOVQ  dst+0(FP), DI
	MOVQ  n+8(FP), CX
	MOVQ  a+16(FP), SI
	MOVQ  terms+24(FP), DX
	MOVQ  v+32(FP), BX
	MOVQ  stride+40(FP), R8
	SHLQ  $2, R8
	MOVQ  $-1, AX           // a bit of a mask for each of n numbers
	NEGQ  CX
	SHRQ  CX, AX            // by 64-n
	KMOVW AX, K1
	SHRQ  $16, AX
	KMOVW AX, K2
	SHRQ  $16, AX
	KMOVW AX, K3
	SHRQ  $16, AX
	KMOVW AX, K4
	VPXORD Z0, Z0, Z0
	VPXORD Z1, Z1, Z1
	VPXORD Z2, Z2, Z2
	VPXORD Z3, Z3, Z3

term:
	VBROADCASTSS (SI), Z4
	VMULPS.Z     (BX), Z4, K1, Z5
	VMULPS.Z     64(BX), Z4, K2, Z6
	VMULPS.Z     128(BX), Z4, K3, Z7
	VMULPS.Z     192(BX), Z4, K4, Z8
	VADDPS       Z5, Z0, Z0
	VADDPS       Z6, Z1, Z1
	VADDPS       Z7, Z2, Z2
	VADDPS       Z8, Z3, Z3
	ADDQ         $4, SI
	ADDQ         R8, BX
	DECQ         DX
	JNZ          term

	VMOVUPS Z0, K1, (DI)
	VMOVUPS Z1, K2, 64(DI)
	VMOVUPS Z2, K3, 128(DI)
	VMOVUPS Z3, K4, 192(DI)
	VZEROUPPER
	RET
