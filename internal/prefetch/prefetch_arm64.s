#include "textflag.h"

// EACH asks, in a way of its own, for each line that has any of R1 octets from R0 on.
#define EACH(ask) \
	ADD R0, R1; \
	SUB $1, R1; \
	AND $~63, R0; \
next: \
	ask; \
	ADD $64, R0; \
	CMP R1, R0; \
	BLS next; \
	RET

#define TO_READ PRFM (R0), PLDL1KEEP

#define TO_COME PRFM (R0), PLDL2KEEP

#define TO_WRITE PRFM (R0), PSTL1KEEP

// func lines(p unsafe.Pointer, octets int)
TEXT ·lines(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD octets+8(FP), R1
	EACH(TO_READ)

// func part(p unsafe.Pointer, octets int)
TEXT ·part(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD octets+8(FP), R1
	EACH(TO_COME)

// func behind(pp unsafe.Pointer, octets int)
TEXT ·behind(SB), NOSPLIT, $0-16
	MOVD pp+0(FP), R0
	MOVD octets+8(FP), R1
	MOVD (R0), R0
	EACH(TO_COME)

// func beyond(pp unsafe.Pointer, off uintptr, octets int)
TEXT ·beyond(SB), NOSPLIT, $0-24
	MOVD pp+0(FP), R0
	MOVD off+8(FP), R2
	MOVD octets+16(FP), R1
	MOVD (R0), R0
	CBZ  R0, nowhere
	MOVD (R0)(R2), R0
	EACH(TO_COME)

nowhere:
	RET

// func ring(slice unsafe.Pointer, index *uint32, size uintptr, octets int)
TEXT ·ring(SB), NOSPLIT, $0-32
	MOVD  slice+0(FP), R2
	MOVD  index+8(FP), R3
	MOVD  size+16(FP), R4
	MOVD  octets+24(FP), R1
	MOVD  (R2), R0
	MOVD  8(R2), R5
	MOVWU (R3), R3
	SUB   $1, R5
	AND   R5, R3
	MUL   R4, R3
	ADD   R3, R0
	EACH(TO_COME)

// func room(p unsafe.Pointer, octets int)
TEXT ·room(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD octets+8(FP), R1
	EACH(TO_WRITE)

// func address(p uintptr, octets int)
TEXT ·address(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD octets+8(FP), R1
	EACH(TO_COME)

// func self() (stack, of uintptr)
TEXT ·self(SB), NOSPLIT, $0-16
	MOVD $stack+0(FP), R0
	MOVD R0, stack+0(FP)
	MOVD g, of+8(FP)
	RET
