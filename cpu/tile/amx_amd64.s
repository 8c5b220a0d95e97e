//go:build !noasm && !fspda_noasm

#include "textflag.h"

// Instructions on tiles, which Go's assembler does not have. Tiles 0 to 3 are the sums of two times
// two parts of C, 4 and 5 are rows of A, 6 and 7 columns of B.
#define LDTILECFG_AX       BYTE $0xC4; BYTE $0xE2; BYTE $0x78; BYTE $0x49; BYTE $0x00
#define TILERELEASE        BYTE $0xC4; BYTE $0xE2; BYTE $0x78; BYTE $0x49; BYTE $0xC0
#define LOAD_A_SI_CX       BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x4B; BYTE $0x24; BYTE $0x0E
#define LOAD_A2_DI_CX      BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x4B; BYTE $0x2C; BYTE $0x0F
#define LOAD_B_BX_DX       BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x4B; BYTE $0x34; BYTE $0x13
#define LOAD_B2_64_BX_DX   BYTE $0xC4; BYTE $0xE2; BYTE $0x7B; BYTE $0x4B; BYTE $0x7C; BYTE $0x13; BYTE $0x40
#define ADD_A_B            BYTE $0xC4; BYTE $0xE2; BYTE $0x4A; BYTE $0x5C; BYTE $0xC4
#define ADD_A_B2           BYTE $0xC4; BYTE $0xE2; BYTE $0x42; BYTE $0x5C; BYTE $0xCC
#define ADD_A2_B           BYTE $0xC4; BYTE $0xE2; BYTE $0x4A; BYTE $0x5C; BYTE $0xD5
#define ADD_A2_B2          BYTE $0xC4; BYTE $0xE2; BYTE $0x42; BYTE $0x5C; BYTE $0xDD
#define STORE_0_AX_DX      BYTE $0xC4; BYTE $0xE2; BYTE $0x7A; BYTE $0x4B; BYTE $0x04; BYTE $0x10
#define STORE_1_64_AX_DX   BYTE $0xC4; BYTE $0xE2; BYTE $0x7A; BYTE $0x4B; BYTE $0x4C; BYTE $0x10; BYTE $0x40
#define STORE_2_AX_DX      BYTE $0xC4; BYTE $0xE2; BYTE $0x7A; BYTE $0x4B; BYTE $0x14; BYTE $0x10
#define STORE_3_64_AX_DX   BYTE $0xC4; BYTE $0xE2; BYTE $0x7A; BYTE $0x4B; BYTE $0x5C; BYTE $0x10; BYTE $0x40

// The memory at space: the sums, 32 rows of 32; 16 pairs of each row of A and of A2; and 16 rows of B.
#define SPACE_A  4096
#define SPACE_A2 5120
#define SPACE_B  6144

// func amxProduct(args *Args, config *byte, second int, wide int, space *float32)
TEXT ·amxProduct(SB), NOSPLIT, $32-40
	MOVQ config+8(FP), AX
	LDTILECFG_AX      // all tiles become zeros
	MOVQ args+0(FP), R8
	MOVQ second+16(FP), R9
	MOVQ wide+24(FP), R10
	MOVQ space+32(FP), R11
	MOVQ 0(R8), SI    // A
	MOVQ 8(R8), DI    // A2
	MOVQ 16(R8), CX   // ARow
	MOVQ 32(R8), BX   // B
	MOVQ 40(R8), DX   // BRow
	MOVQ 64(R8), R13  // Groups

group:
	MOVQ 56(R8), R12  // Runs

run:
	MOVQ 48(R8), AX   // K
	SHRQ $4, AX
	JZ   rest

steps:
	LOAD_B_BX_DX
	LOAD_A_SI_CX
	ADD_A_B
	TESTQ R10, R10
	JZ   narrow
	LOAD_B2_64_BX_DX
	ADD_A_B2
	TESTQ R9, R9
	JZ   next
	LOAD_A2_DI_CX
	ADD_A2_B
	ADD_A2_B2
	JMP  next

narrow:
	TESTQ R9, R9
	JZ   next
	LOAD_A2_DI_CX
	ADD_A2_B

next:
	ADDQ $64, SI
	ADDQ $64, DI
	MOVQ DX, R15
	SHLQ $4, R15
	ADDQ R15, BX
	DECQ AX
	JNZ  steps

rest:
	// Less than 16 pairs are left: copies of them end with zeros.
	MOVQ 48(R8), AX
	ANDQ $15, AX
	JZ   end
	MOVQ CX, arow-8(SP)
	MOVQ SI, a-16(SP)
	MOVQ DI, a2-24(SP)
	MOVQ AX, CX
	MOVL $1, R15
	SHLL CX, R15
	DECL R15
	KMOVW R15, K1
	MOVQ arow-8(SP), CX
	MOVQ config+8(FP), R15
	MOVBQZX 48(R15), R15 // rows of A
	LEAQ SPACE_A(R11), AX

copyA:
	VMOVDQU32.Z (SI), K1, Z0
	VMOVDQU32 Z0, (AX)
	ADDQ CX, SI
	ADDQ $64, AX
	DECQ R15
	JNZ  copyA
	MOVQ R9, R15
	TESTQ R15, R15
	JZ   copiedA
	LEAQ SPACE_A2(R11), AX

copyA2:
	VMOVDQU32.Z (DI), K1, Z0
	VMOVDQU32 Z0, (AX)
	ADDQ CX, DI
	ADDQ $64, AX
	DECQ R15
	JNZ  copyA2

copiedA:
	MOVQ 48(R8), R15
	ANDQ $15, R15
	MOVQ $16, CX
	SUBQ R15, CX         // rows of zeros
	LEAQ SPACE_B(R11), AX

copyB:
	VMOVDQU32 (BX), Z0
	VMOVDQU32 Z0, (AX)
	TESTQ R10, R10
	JZ   copiedB
	VMOVDQU32 64(BX), Z0
	VMOVDQU32 Z0, 64(AX)

copiedB:
	ADDQ DX, BX
	ADDQ $128, AX
	DECQ R15
	JNZ  copyB
	VPXORD Z0, Z0, Z0

zeroB:
	VMOVDQU32 Z0, (AX)
	VMOVDQU32 Z0, 64(AX)
	ADDQ $128, AX
	DECQ CX
	JNZ  zeroB
	MOVQ BX, b-32(SP)
	LEAQ SPACE_B(R11), BX
	MOVQ $128, DX
	LEAQ SPACE_A(R11), SI
	LEAQ SPACE_A2(R11), DI
	MOVQ $64, CX
	LOAD_B_BX_DX
	LOAD_A_SI_CX
	ADD_A_B
	TESTQ R10, R10
	JZ   narrowRest
	LOAD_B2_64_BX_DX
	ADD_A_B2

narrowRest:
	TESTQ R9, R9
	JZ   added
	LOAD_A2_DI_CX
	ADD_A2_B
	TESTQ R10, R10
	JZ   added
	ADD_A2_B2

added:
	MOVQ 48(R8), AX
	ANDQ $15, AX
	MOVQ a-16(SP), SI
	MOVQ a2-24(SP), DI
	MOVQ arow-8(SP), CX
	MOVQ b-32(SP), BX
	MOVQ 40(R8), DX
	LEAQ (SI)(AX*4), SI
	LEAQ (DI)(AX*4), DI

end:
	ADDQ 80(R8), BX      // BJump
	ADDQ 72(R8), SI      // AJump
	ADDQ 72(R8), DI
	DECQ R12
	JNZ  run
	DECQ R13
	JLE  sums            // zero groups mean one
	ADDQ 96(R8), BX      // BGap
	ADDQ 88(R8), SI      // AGap
	ADDQ 88(R8), DI
	JMP  group

sums:
	MOVQ R11, AX
	MOVQ $128, DX
	STORE_0_AX_DX
	TESTQ R10, R10
	JZ   stored
	STORE_1_64_AX_DX

stored:
	TESTQ R9, R9
	JZ   release
	ADDQ $2048, AX
	STORE_2_AX_DX
	TESTQ R10, R10
	JZ   release
	STORE_3_64_AX_DX

release:
	TILERELEASE
	VBROADCASTSS 152(R8), Z1 // Alpha
	VBROADCASTSS 156(R8), Z2 // Beta
	MOVQ 128(R8), CX         // Last
	MOVL $1, AX
	SHLL CX, AX
	DECL AX
	KMOVW AX, K1
	MOVQ config+8(FP), AX
	MOVBQZX 48(AX), R12
	MOVQ 104(R8), BX         // C
	MOVQ 120(R8), DX         // CRow
	MOVL 156(R8), R15
	ADDL R15, R15            // without its sign
	MOVQ R11, AX

row:
	XORQ SI, SI
	TESTQ R10, R10
	JZ   last
	MOVQ $64, SI
	TESTL R15, R15
	JZ   overwrite
	VMULPS (BX), Z2, Z3
	VFMADD231PS (AX), Z1, Z3
	VMOVUPS Z3, (BX)
	JMP  last

overwrite:
	VMULPS (AX), Z1, Z3
	VMOVUPS Z3, (BX)

last:
	TESTL R15, R15
	JZ   overwriteLast
	VMOVUPS.Z (BX)(SI*1), K1, Z3
	VMULPS Z2, Z3, Z3
	VFMADD231PS (AX)(SI*1), Z1, Z3
	VMOVUPS Z3, K1, (BX)(SI*1)
	JMP  written

overwriteLast:
	VMULPS (AX)(SI*1), Z1, Z3
	VMOVUPS Z3, K1, (BX)(SI*1)

written:
	ADDQ DX, BX
	ADDQ $128, AX
	DECQ R12
	JNZ  row
	TESTQ R9, R9
	JZ   done
	MOVQ R9, R12
	XORQ R9, R9
	LEAQ 2048(R11), AX
	MOVQ 112(R8), BX         // C2
	JMP  row

done:
	VZEROUPPER
	RET
