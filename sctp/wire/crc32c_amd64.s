#include "textflag.h"

// Each pair is x^(D+32) and x^(D-32) modulo the Castagnoli polynomial, reflected and shifted left by
// one: what 64 bits are multiplied with to move them D bits on. crc32c_test.go derives them.

DATA fold2048<>+0(SB)/8, $0x0dcb17aa4
DATA fold2048<>+8(SB)/8, $0x0b9e02b86
GLOBL fold2048<>(SB), RODATA|NOPTR, $16

DATA fold512<>+0(SB)/8, $0x0740eef02
DATA fold512<>+8(SB)/8, $0x09e4addf8
GLOBL fold512<>(SB), RODATA|NOPTR, $16

// One pair for each lane of 128 bits: by 384, 256 and 128 bits to the last lane, which stays.
DATA foldLanes<>+0(SB)/8, $0x01c291d04
DATA foldLanes<>+8(SB)/8, $0x1d82c63da
DATA foldLanes<>+16(SB)/8, $0x1384aa63a
DATA foldLanes<>+24(SB)/8, $0x0ba4fc28e
DATA foldLanes<>+32(SB)/8, $0x0f20c0dfe
DATA foldLanes<>+40(SB)/8, $0x14cd00bd6
DATA foldLanes<>+48(SB)/8, $0
DATA foldLanes<>+56(SB)/8, $0
GLOBL foldLanes<>(SB), RODATA|NOPTR, $64

// FOLD moves the 512 bits of z on by the distance in Z5 and adds what lies there.
#define FOLD(z, next) \
	VPCLMULQDQ $0x00, Z5, z, Z6  \
	VPCLMULQDQ $0x11, Z5, z, Z7  \
	VPTERNLOGQ $0x96, Z6, Z7, next

// func fold(state uint32, p []byte) uint32
TEXT ·fold(SB), NOSPLIT, $0-36
	MOVL state+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX
	CMPQ CX, $128
	JB   tail
	VMOVD AX, X4
	CMPQ CX, $256
	JB   short

	// Four registers side by side.
	VMOVDQU64       (SI), Z0
	VMOVDQU64       64(SI), Z1
	VMOVDQU64       128(SI), Z2
	VMOVDQU64       192(SI), Z3
	VPXORQ          Z4, Z0, Z0
	VBROADCASTI32X4 fold2048<>(SB), Z5
	ADDQ            $256, SI
	SUBQ            $256, CX
	CMPQ            CX, $256
	JB              join

wide:
	VMOVDQU64 (SI), Z8
	VMOVDQU64 64(SI), Z9
	VMOVDQU64 128(SI), Z10
	VMOVDQU64 192(SI), Z11
	FOLD(Z0, Z8)
	FOLD(Z1, Z9)
	FOLD(Z2, Z10)
	FOLD(Z3, Z11)
	VMOVDQA64 Z8, Z0
	VMOVDQA64 Z9, Z1
	VMOVDQA64 Z10, Z2
	VMOVDQA64 Z11, Z3
	ADDQ      $256, SI
	SUBQ      $256, CX
	CMPQ      CX, $256
	JAE       wide

join:
	VBROADCASTI32X4 fold512<>(SB), Z5
	FOLD(Z0, Z1)
	FOLD(Z1, Z2)
	FOLD(Z2, Z3)
	JMP             more

short:
	VMOVDQU64       (SI), Z3
	VPXORQ          Z4, Z3, Z3
	VBROADCASTI32X4 fold512<>(SB), Z5
	ADDQ            $64, SI
	SUBQ            $64, CX

more:
	CMPQ      CX, $64
	JB        lanes
	VMOVDQU64 (SI), Z8
	FOLD(Z3, Z8)
	VMOVDQA64 Z8, Z3
	ADDQ      $64, SI
	SUBQ      $64, CX
	JMP       more

lanes:
	VMOVDQU64     foldLanes<>(SB), Z5
	VPCLMULQDQ    $0x00, Z5, Z3, Z6
	VPCLMULQDQ    $0x11, Z5, Z3, Z7
	VPXORQ        Z6, Z7, Z7
	VEXTRACTI32X4 $3, Z3, X3
	VEXTRACTI64X4 $1, Z7, Y6
	VPXOR         Y6, Y7, Y7
	VEXTRACTI128  $1, Y7, X6
	VPXOR         X6, X7, X7
	VPXOR         X3, X7, X7
	VMOVQ         X7, R8
	VPEXTRQ       $1, X7, R9
	VZEROUPPER
	XORL          AX, AX
	CRC32Q        R8, AX
	CRC32Q        R9, AX

tail:
	CMPQ   CX, $8
	JB     last
	CRC32Q (SI), AX
	ADDQ   $8, SI
	SUBQ   $8, CX
	JMP    tail

last:
	TESTQ  $4, CX
	JZ     two
	CRC32L (SI), AX
	ADDQ   $4, SI

two:
	TESTQ  $2, CX
	JZ     one
	CRC32W (SI), AX
	ADDQ   $2, SI

one:
	TESTQ  $1, CX
	JZ     done
	CRC32B (SI), AX

done:
	MOVL AX, ret+32(FP)
	RET
