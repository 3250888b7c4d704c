#include "textflag.h"

// TIMES multiplies the parts of a register, 128 bits each, with two powers each: a and b together are the product.
#define TIMES(powers, a, b) \
	VPCLMULQDQ $0x00, powers, a, b; \
	VPCLMULQDQ $0x11, powers, a, a

// XOR adds b and c to a.
#define XOR(c, b, a) VPTERNLOGQ $0x96, c, b, a

// func fold(sum uint32, p []byte, powers *[16]uint64) uint32
TEXT ·fold(SB), NOSPLIT, $0-44
	MOVL sum+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX
	MOVQ powers+32(FP), DX

	// What is beside whole blocks goes first, by the instruction for it; all if there are less than two.
	MOVQ CX, BX
	CMPQ CX, $128
	JLT  beside
	ANDQ $63, BX

beside:
	SUBQ BX, CX
	SUBQ $8, BX
	JLT  four

eight:
	CRC32Q (SI), AX
	ADDQ   $8, SI
	SUBQ   $8, BX
	JGE    eight

four:
	TESTQ  $4, BX
	JEQ    two
	CRC32L (SI), AX
	ADDQ   $4, SI

two:
	TESTQ  $2, BX
	JEQ    one
	CRC32W (SI), AX
	ADDQ   $2, SI

one:
	TESTQ  $1, BX
	JEQ    blocks
	CRC32B (SI), AX
	INCQ   SI

blocks:
	TESTQ CX, CX
	JEQ   done

	// CX octets are left, whole blocks. Z0 is what is folded, Z8 the powers of 4 blocks, Z9 of 3, Z10 of 2, Z11 of 1.
	VMOVD            AX, X0
	VPXORQ           (SI), Z0, Z0
	VBROADCASTI32X4  48(DX), Z11
	SUBQ             $256, CX
	JLT              few
	VMOVDQU64        64(SI), Z1
	VMOVDQU64        128(SI), Z2
	VMOVDQU64        192(SI), Z3
	VBROADCASTI32X4  (DX), Z8
	VBROADCASTI32X4  16(DX), Z9
	VBROADCASTI32X4  32(DX), Z10
	ADDQ             $256, SI
	SUBQ             $256, CX
	JLT              join

many:
	TIMES(Z8, Z0, Z4)
	TIMES(Z8, Z1, Z5)
	TIMES(Z8, Z2, Z6)
	TIMES(Z8, Z3, Z7)
	XOR((SI), Z4, Z0)
	XOR(64(SI), Z5, Z1)
	XOR(128(SI), Z6, Z2)
	XOR(192(SI), Z7, Z3)
	ADDQ $256, SI
	SUBQ $256, CX
	JGE  many

join:
	// Four registers become one.
	TIMES(Z9, Z0, Z4)
	TIMES(Z10, Z1, Z5)
	TIMES(Z11, Z2, Z6)
	XOR(Z3, Z4, Z0)
	XOR(Z5, Z6, Z1)
	XOR(Z1, Z2, Z0)
	ADDQ $192, CX
	JLT  parts
	JMP  single

few:
	ADDQ $64, SI
	ADDQ $128, CX
	JLT  parts

single:
	TIMES(Z11, Z0, Z4)
	XOR((SI), Z4, Z0)
	ADDQ $64, SI
	SUBQ $64, CX
	JGE  single

parts:
	// Four parts become one, and that the remainder.
	VMOVDQU64     64(DX), Z8
	VEXTRACTI32X4 $3, Z0, X1
	TIMES(Z8, Z0, Z4)
	VPXORQ        Z4, Z0, Z0
	VEXTRACTI64X4 $1, Z0, Y2
	VPXOR         Y2, Y0, Y0
	VEXTRACTI128  $1, Y0, X2
	VPXOR         X1, X0, X0
	VPXOR         X2, X0, X0
	VMOVQ         X0, AX
	VPEXTRQ       $1, X0, BX
	VZEROUPPER
	XORL          DI, DI
	CRC32Q        AX, DI
	CRC32Q        BX, DI
	MOVL          DI, AX

done:
	MOVL AX, ret+40(FP)
	RET
