//go:build !noasm && !fspda_noasm

#include "textflag.h"

// Constants of float64: all bits but the sign, how far from a half a quotient may be rounded, and up to what size.
DATA latticeAbs<>+0(SB)/8, $0x7fffffffffffffff
GLOBL latticeAbs<>(SB), RODATA|NOPTR, $8
DATA latticeNear<>+0(SB)/8, $0x3fdffffbce4217d3
GLOBL latticeNear<>(SB), RODATA|NOPTR, $8
DATA latticeLimit<>+0(SB)/8, $0x41d0000000000000
GLOBL latticeLimit<>(SB), RODATA|NOPTR, $8

// func latticeEncodeAVX2(dst, x *float32, n int, inverse float64, mask uint32) (sure bool)
TEXT ·latticeEncodeAVX2(SB), NOSPLIT, $0-41
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSD inverse+24(FP), Y0
	MOVL         mask+32(FP), R8
	VMOVD        R8, X1
	VPBROADCASTD X1, X1
	VBROADCASTSD latticeAbs<>(SB), Y2
	VBROADCASTSD latticeNear<>(SB), Y3
	VBROADCASTSD latticeLimit<>(SB), Y4
	VPCMPEQQ     Y5, Y5, Y5
	XORQ         AX, AX

encode:
	VCVTPS2PD  (SI)(AX*4), Y6
	VMULPD     Y0, Y6, Y6
	VROUNDPD   $8, Y6, Y7
	VSUBPD     Y7, Y6, Y8
	VANDPD     Y2, Y8, Y8
	VCMPPD     $0x11, Y3, Y8, Y8
	VANDPD     Y2, Y7, Y9
	VCMPPD     $0x11, Y4, Y9, Y9
	VANDPD     Y8, Y5, Y5
	VANDPD     Y9, Y5, Y5
	VCVTPD2DQY Y7, X7
	VPAND      X1, X7, X7
	VCVTDQ2PS  X7, X7
	VMOVUPS    X7, (DI)(AX*4)
	ADDQ       $4, AX
	CMPQ       AX, CX
	JLT        encode

	VMOVMSKPD Y5, DX
	CMPL      DX, $15
	SETEQ     sure+40(FP)
	VZEROUPPER
	RET

// func latticeDecodeAVX2(dst, codes, ref *float32, n int, c *latticeConstants) (far int, largest float64, sure bool)
TEXT ·latticeDecodeAVX2(SB), NOSPLIT, $0-57
	MOVQ         dst+0(FP), DI
	MOVQ         codes+8(FP), SI
	MOVQ         ref+16(FP), DX
	MOVQ         n+24(FP), CX
	MOVQ         c+32(FP), BX
	VBROADCASTSD 0(BX), Y0
	VBROADCASTSD 8(BX), Y1
	VBROADCASTSD 16(BX), Y2
	VBROADCASTSD 24(BX), Y3
	VBROADCASTSD 32(BX), Y4
	VBROADCASTSD latticeAbs<>(SB), Y5
	VBROADCASTSD latticeNear<>(SB), Y10
	VBROADCASTSD latticeLimit<>(SB), Y11
	VPCMPEQQ     Y12, Y12, Y12
	VXORPD       Y13, Y13, Y13
	VPXOR        Y14, Y14, Y14
	XORQ         AX, AX

decode:
	VCVTPS2PD  (SI)(AX*4), Y6
	VCVTPS2PD  (DX)(AX*4), Y7
	VMULPD     Y0, Y7, Y8
	VMULPD     Y1, Y6, Y9
	VSUBPD     Y9, Y8, Y8
	VROUNDPD   $8, Y8, Y9
	VSUBPD     Y9, Y8, Y8
	VANDPD     Y5, Y8, Y8
	VCMPPD     $0x11, Y10, Y8, Y8
	VANDPD     Y8, Y12, Y12
	VANDPD     Y5, Y9, Y8
	VCMPPD     $0x11, Y11, Y8, Y8
	VANDPD     Y8, Y12, Y12
	VMULPD     Y2, Y9, Y9
	VADDPD     Y6, Y9, Y9
	VMULPD     Y3, Y9, Y8
	VSUBPD     Y7, Y8, Y8
	VANDPD     Y5, Y8, Y8
	VMAXPD     Y8, Y13, Y13
	VCMPPD     $0x1e, Y4, Y8, Y8
	VPSUBQ     Y8, Y14, Y14
	VCVTPD2PSY Y9, X9
	VMOVUPS    X9, (DI)(AX*4)
	ADDQ       $4, AX
	CMPQ       AX, CX
	JLT        decode

	VEXTRACTF128 $1, Y13, X8
	VMAXPD       X8, X13, X13
	VPERMILPD    $1, X13, X8
	VMAXSD       X8, X13, X13
	VMOVSD       X13, largest+48(FP)
	VEXTRACTI128 $1, Y14, X8
	VPADDQ       X8, X14, X14
	VPSRLDQ      $8, X14, X8
	VPADDQ       X8, X14, X14
	VMOVQ        X14, far+40(FP)
	VMOVMSKPD    Y12, DX
	CMPL         DX, $15
	SETEQ        sure+56(FP)
	VZEROUPPER
	RET
