//go:build !noasm && !fspda_noasm

#include "textflag.h"

// func sumColumnsAVX512(dst *uint8, line *int16, where *uint32, index, weights *int16, groups, taps int)
TEXT ·sumColumnsAVX512(SB), NOSPLIT, $0-56
	MOVQ         dst+0(FP), DI
	MOVQ         line+8(FP), SI
	MOVQ         where+16(FP), DX
	MOVQ         index+24(FP), R9
	MOVQ         weights+32(FP), BX
	MOVQ         groups+40(FP), CX
	MOVQ         taps+48(FP), AX
	MOVL         $64, R10       // half a level
	VPBROADCASTW R10, Z6
	MOVL         $3, R10        // from a tap to the next
	VPBROADCASTW R10, Z7

group:
	MOVL      (DX), R8
	ADDQ      SI, R8
	VMOVDQU16 (R8), Z0
	VMOVDQU16 64(R8), Z1
	VMOVDQU16 (R9), Z2
	VMOVDQA64 Z2, Z3
	VPERMI2W  Z1, Z0, Z3
	VPMULHRSW (BX), Z3, Z4
	ADDQ      $64, BX
	MOVQ      AX, R12
	DECQ      R12
	JZ        store

tap:
	VPADDW    Z7, Z2, Z2
	VMOVDQA64 Z2, Z3
	VPERMI2W  Z1, Z0, Z3
	VPMULHRSW (BX), Z3, Z3
	VPADDSW   Z3, Z4, Z4
	ADDQ      $64, BX
	DECQ      R12
	JNZ       tap

store:
	VPADDSW Z6, Z4, Z4
	VPSRLW  $7, Z4, Z4
	VPMOVWB Z4, Y5
	VMOVDQU Y5, (DI)
	ADDQ    $30, DI
	ADDQ    $4, DX
	ADDQ    $64, R9
	DECQ    CX
	JNZ     group
	VZEROUPPER
	RET
