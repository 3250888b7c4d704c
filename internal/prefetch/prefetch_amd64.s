#include "textflag.h"

// EACH asks, in a way of its own, for each line that has any of CX octets from AX on.
#define EACH(ask) \
	LEAQ -1(AX)(CX*1), CX; \
	ANDQ $~63, AX; \
next: \
	ask; \
	ADDQ $64, AX; \
	CMPQ AX, CX; \
	JLS  next; \
	RET

#define TO_READ PREFETCHT0 (AX)

#define TO_COME PREFETCHT1 (AX)

// TO_WRITE is PREFETCHW (AX), which the assembler does not know.
#define TO_WRITE BYTE $0x0f; BYTE $0x0d; BYTE $0x08

// func lines(p unsafe.Pointer, octets int)
TEXT ·lines(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ octets+8(FP), CX
	EACH(TO_READ)

// func part(p unsafe.Pointer, octets int)
TEXT ·part(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ octets+8(FP), CX
	EACH(TO_COME)

// func behind(pp unsafe.Pointer, octets int)
TEXT ·behind(SB), NOSPLIT, $0-16
	MOVQ pp+0(FP), AX
	MOVQ octets+8(FP), CX
	MOVQ (AX), AX
	EACH(TO_COME)

// func beyond(pp unsafe.Pointer, off uintptr, octets int)
TEXT ·beyond(SB), NOSPLIT, $0-24
	MOVQ  pp+0(FP), AX
	MOVQ  off+8(FP), BX
	MOVQ  octets+16(FP), CX
	MOVQ  (AX), AX
	TESTQ AX, AX
	JEQ   nowhere
	MOVQ  (AX)(BX*1), AX
	EACH(TO_COME)

nowhere:
	RET

// func ring(slice unsafe.Pointer, index *uint32, size uintptr, octets int)
TEXT ·ring(SB), NOSPLIT, $0-32
	MOVQ  slice+0(FP), BX
	MOVQ  index+8(FP), SI
	MOVQ  octets+24(FP), CX
	MOVQ  (BX), AX
	MOVQ  8(BX), DX
	MOVL  (SI), SI
	DECQ  DX
	ANDQ  DX, SI
	IMULQ size+16(FP), SI
	ADDQ  SI, AX
	EACH(TO_COME)

// func room(p unsafe.Pointer, octets int)
TEXT ·room(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ octets+8(FP), CX
	EACH(TO_WRITE)

// func address(p uintptr, octets int)
TEXT ·address(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ octets+8(FP), CX
	EACH(TO_COME)

// func self() (stack, of uintptr)
TEXT ·self(SB), NOSPLIT, $0-16
	LEAQ stack+0(FP), AX
	MOVQ AX, stack+0(FP)
	MOVQ R14, of+8(FP)
	RET
